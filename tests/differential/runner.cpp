// SPDX-License-Identifier: MIT
// Runs programs of public ops for tools/differential.py: differential_runner cpu|webgpu
//
// A request on the standard input is its length in bytes, 32 bits, and one value as in
// web/bindings/value.h: {inputs: [array ...], shapes: [[int ...] ...], calls: [call ...],
// outputs: [tensor ...]}. Tensors are numbered in the order in which they are made, the inputs
// first. A call is the list [name, file, line, arguments ...]. The reply, with its length, is
// {outputs: [array ...]} or {error: text}. Truths are returned as integers, f16 as f32.
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model.h"
#include "registry.h"
#include "requests.h"
#include "tracing.h"

namespace tensorgrad::web {

// What the bindings need of JavaScript, and of the parts that are not linked. No op calls these.
bool run_traced_function() { return false; }
bool run_callback(int, std::span<const std::byte>) { return false; }
std::vector<std::byte> take_reply() { return {}; }
OpTable language_layers() { return {}; }
MakerTable<MakeLayer> language_layer_makers() { return {}; }
RecoveryFunction Type<RecoveryFunction>::read(const Value&, const Where&) { return {}; }
std::shared_ptr<Device> Type<std::shared_ptr<Device>>::read(const Value&, const Where&) {
  return {};
}

namespace {

struct NoModel {
  void visit_fields(ParameterVisitor&) const {}
};

std::string input_name(std::size_t i) { return "in" + std::to_string(i); }
// Sorted as the numbers are.
std::string output_name(std::size_t i) {
  std::string digits = std::to_string(i);
  return "out" + std::string(6 - digits.size(), '0') + digits;
}

class Runner {
 public:
  explicit Runner(std::string kind) : device_{.kind = std::move(kind), .allow_software = true} {
    if (device_.kind == "cpu") device_.threads = 1;
  }

  void run(const Value& request, Writer& reply) {
    const std::vector<Value>& arrays = request["inputs"].items;
    const Where where{"a request", {}};
    FunctionOptions options{.device = device_};
    FeedView feed;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto dtype = static_cast<DType>(arrays[i].dtype);
      options.inputs.push_back(
          {input_name(i), read<Shape>(request["shapes"].items.at(i), where), dtype});
    }
    const Model model;
    CompiledFunction function = compile_function(
        NoModel(),
        [&](const NoModel&, const Inputs& in) {
          Tracing tracing(model, in);
          for (std::size_t i = 0; i < arrays.size(); ++i) tracing.add(in[input_name(i)]);
          for (const Value& call : request["calls"].items) {
            Writer ignored;
            call_op(call, ignored);
          }
          std::map<std::string, Tensor> outputs;
          for (const Value& each : request["outputs"].items) {
            const Tensor tensor = tracing.tensor(each.number, where);
            outputs.emplace(output_name(outputs.size()),
                            tensor.dtype() == DType::kBool ? cast(tensor, i32) : tensor);
          }
          return outputs;
        },
        options);
    if (!device_.opened) device_.opened = function.same_device().opened;
    std::vector<std::vector<std::uint32_t>> words;  // aligned
    words.reserve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      words.emplace_back(arrays[i].count);
      if (arrays[i].count > 0)
        std::memcpy(words.back().data(), arrays[i].text.data(), arrays[i].text.size());
      feed.add(input_name(i), FeedValue(options.inputs[i].dtype, words.back().data(),
                                        static_cast<std::size_t>(arrays[i].count)));
    }
    const NamedTensors results = function.run(feed);
    reply.object(1);
    reply.key("outputs");
    reply.list(request["outputs"].items.size());
    for (const auto& [name, tensor] : results) {
      if (tensor.dtype == f16) {
        const std::vector<float> values = tensor.floats();
        reply.array(static_cast<std::uint32_t>(f32), values.size(),
                    std::as_bytes(std::span(values)));
      } else {
        reply.array(static_cast<std::uint32_t>(tensor.dtype), tensor.bytes.size() / 4,
                    tensor.bytes);
      }
    }
  }

 private:
  DeviceOptions device_;
};

bool read_all(void* to, std::size_t size) { return std::fread(to, 1, size, stdin) == size; }

int serve(const std::string& kind) {
  Runner runner(kind);
  for (std::uint32_t size = 0; read_all(&size, sizeof size);) {
    std::vector<std::byte> bytes(size);
    if (!read_all(bytes.data(), size)) return 1;
    Writer reply;
    try {
      runner.run(decode(bytes), reply);
    } catch (const std::exception& error) {
      reply = Writer();
      reply.object(1);
      reply.key("error");
      reply.string(error.what());
    }
    const std::vector<std::byte> sent = reply.take();
    const auto length = static_cast<std::uint32_t>(sent.size());
    std::fwrite(&length, sizeof length, 1, stdout);
    std::fwrite(sent.data(), 1, sent.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tensorgrad::web

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: differential_runner cpu|webgpu\n", stderr);
    return 2;
  }
  return tensorgrad::web::serve(argv[1]);
}
