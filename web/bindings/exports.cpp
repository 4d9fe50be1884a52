// SPDX-License-Identifier: MIT
// Functions that WebAssembly exports to web/src/instance.ts, and those that it imports.
#include <emscripten.h>

#include <typeinfo>

#include "full_module.h"
#include "requests.h"

// Runs the function being recorded, or one of its callbacks. Returns 0 if it threw.
EM_JS(int, tgw_run_traced, (), { return Module.tensorgrad.runTraced(); })
EM_JS(int, tgw_run_callback, (int number, const void* bytes, int size),
      { return Module.tensorgrad.runCallback(number, bytes >>> 0, size); })
EM_JS(void, tgw_emit, (int number, const void* bytes, int size),
      { Module.tensorgrad.emit(number, bytes >>> 0, size); })

namespace tensorgrad::web {
namespace {

// Result of the last call, and the value that JavaScript passed to tgw_reply().
std::vector<std::byte> output, reply;

enum class Status { kDone, kFailed, kThrew, kNeedsTape };

std::string_view class_of(const std::exception& error) {
  const auto is = [&]<class T>(const T*) { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is(static_cast<const ShapeError*>(nullptr))) return "ShapeError";
  if (is(static_cast<const DtypeError*>(nullptr))) return "DtypeError";
  if (is(static_cast<const IoError*>(nullptr))) return "IoError";
  if (is(static_cast<const DeviceLostError*>(nullptr))) return "DeviceLostError";
  if (is(static_cast<const DeviceError*>(nullptr))) return "DeviceError";
  if (is(static_cast<const NeedsFullModule*>(nullptr))) return "NeedsFullModule";
  if (is(static_cast<const UserError*>(nullptr))) return "UserError";
  if (is(static_cast<const AbortedError*>(nullptr))) return "AbortedError";
  return "InternalError";
}

void put_error(Writer& w, const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  w.object(4);
  w.key("name");
  w.string(class_of(error));
  w.key("message");
  w.string(error.what());
  w.key("file");
  w.string(ours != nullptr ? ours->location().file : "");
  w.key("line");
  w.number(ours != nullptr ? ours->location().line : 0);
}

// Calls `function(writer)`, keeps its output for tgw_result(), and catches its exceptions.
template <class Function>
int guarded(const Function& function) {
  Writer result;
  Status status = Status::kDone;
  try {
    function(result);
  } catch (const JavaScriptThrew&) {
    status = Status::kThrew;
  } catch (const NeedsTape& needed) {
    status = Status::kNeedsTape;
    result = {};
    result.number(static_cast<double>(needed.size));
  } catch (const std::exception& error) {
    status = Status::kFailed;
    result = {};
    put_error(result, error);
  }
  output = result.take();
  return static_cast<int>(status);
}

std::span<const std::byte> message(const std::byte* bytes, int size) {
  return {bytes, static_cast<std::size_t>(size)};
}

[[noreturn]] void record_in(const Model& model, const Inputs& inputs) {
  throw Recorded{Tracing(model, inputs).record()};
}

// Traces a function without compiling it. Checks its options as compilation would.
void record(const Value& request, Writer& result) {
  const Loc location = source_location(request["file"], request["line"]);
  const Where where{"compile", location};
  Model model = Model::from(request["model"]);
  try {
    if (request["kind"].text == "loss") {
      auto options = read<CompileOptions>(request["options"], where);
      options.device = {.kind = "null"};
      compile(
          std::move(model), [](const Model& m, const Inputs& in) -> Tensor { record_in(m, in); },
          options, location);
    } else if (request["kind"].text == "optimizer") {
      // Replays the tape of the loss; traced_optimizer() records the optimizer. Compiled as one of
      // several objectives, since only these select parameters.
      auto options = read<CompileOptions>(request["options"], where);
      const InitFunction initial = std::exchange(options.initial, {});
      options.seed = CompileOptions().seed;
      options.device = {};
      options.memory_budget = 0;
      options.recovery = {};
      const Value& params = request["params"];
      compile(
          std::move(model),
          {{"recorded", loss_function(TracedFunction::from(request["function"]), options.inputs),
            params.present() ? read<ParamFilter>(params, where.field("params")) : ParamFilter{},
            options}},
          {.device = {.kind = "null"}, .initial = initial}, location);
    } else {
      auto options = read<FunctionOptions>(request["options"], where);
      options.device = {.kind = "null"};
      // These belong to the trainer that the function is attached to, and to the recorded sizes.
      options.weights = WeightSource::kTrained;
      options.dynamic_size = FunctionOptions().dynamic_size;
      compile_function(
          std::move(model), [](const Model& m, const Inputs& in) -> Tensor { record_in(m, in); },
          options, location);
    }
  } catch (const Recorded& recorded) {
    put(result, recorded.tape);
  }
}

}  // namespace

bool run_traced_function() { return tgw_run_traced() != 0; }
bool run_callback(int number, std::span<const std::byte> bytes) {
  return tgw_run_callback(number, bytes.data(), static_cast<int>(bytes.size())) != 0;
}
void emit(double listener, std::span<const std::byte> event) {
  tgw_emit(static_cast<int>(listener), event.data(), static_cast<int>(event.size()));
}
std::vector<std::byte> take_reply() { return std::exchange(reply, {}); }

}  // namespace tensorgrad::web

using namespace tensorgrad;
using namespace tensorgrad::web;

extern "C" {

// Calls an op in the function being recorded.
EMSCRIPTEN_KEEPALIVE int tgw_call(const std::byte* bytes, int size) {
  return guarded([&](Writer& w) {
    const auto call = message(bytes, size);
    const Value decoded = decode(call);
    auto& tracing = Tracing::current(decoded.items.at(0).text,
                                     source_location(decoded.items.at(1), decoded.items.at(2)));
    w.append(tracing.call(call));
  });
}

// Records a function: {kind, model, options, file, line}. Returns its tape.
EMSCRIPTEN_KEEPALIVE int tgw_record(const std::byte* bytes, int size) {
  return guarded([&](Writer& w) { record(decode(message(bytes, size)), w); });
}

// Returns the names and shapes of the parameters of a model.
EMSCRIPTEN_KEEPALIVE int tgw_parameters(const std::byte* bytes, int size) {
  return guarded([&](Writer& w) {
    std::vector<std::pair<std::string, Shape>> all;
    ParameterVisitor visitor([&](const std::string& path, const Parameter& parameter) {
      all.emplace_back(path, parameter.shape());
    });
    Model::from(decode(message(bytes, size))).visit_fields(visitor);
    put(w, all);
  });
}

// Answers a request, which may wait for a device.
EMSCRIPTEN_KEEPALIVE int tgw_request(const std::byte* bytes, int size) {
  return guarded([&](Writer& w) { answer(decode(message(bytes, size)), w); });
}

// Keeps what a recorded function or a callback returns.
EMSCRIPTEN_KEEPALIVE void tgw_reply(const std::byte* bytes, int size) {
  const auto given = message(bytes, size);
  reply.assign(given.begin(), given.end());
}

// Aborts running calls of a trainer, a function or a generator.
EMSCRIPTEN_KEEPALIVE void tgw_abort(int id) {
  if (auto* object = trainers().find(id)) object->base().abort();
  if (auto* object = functions().find(id)) object->function.abort();
  stop_generator(id);
}

EMSCRIPTEN_KEEPALIVE const std::byte* tgw_result() { return output.data(); }
EMSCRIPTEN_KEEPALIVE int tgw_result_size() { return static_cast<int>(output.size()); }
}
