// SPDX-License-Identifier: MIT
// Forward: a compiled function without training.
#include "api/forward.h"

#include <algorithm>
#include <exception>
#include <sstream>

#include "api/async_calls.h"
#include "api/at_line.h"
#include "api/graph_view.h"
#include "api/import.h"
#include "base/check.h"
#include "compile/host_random.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {
namespace {

// Of the memory of an output that is known, to be used again when nobody has it.
constexpr std::size_t kMostGivenAway = 4;

}  // namespace

CompiledFunctionImpl::CompiledFunctionImpl(ModelFunctions model, ParameterTable table,
                                           TraceFunction function, const FunctionOptions& options,
                                           std::shared_ptr<Device> device, std::string why,
                                           std::shared_ptr<Turns> turns,
                                           const std::vector<const Instance*>& owners,
                                           const SourceLocation& location,
                                           std::shared_ptr<Recoverer> recoverer)
    : turns_(std::move(turns)),
      recoverer_(std::move(recoverer)),
      model_(std::move(model)),
      table_(std::move(table)),
      function_(std::move(function)),
      options_(options),
      location_(location),
      open_(check_open(options.inputs, location)) {
  if (open_ && (options.dynamic_size < 1 || options.max_cached_sizes < 1)) {
    throw UserError("FunctionOptions: dynamic_size and max_cached_sizes must be at least 1, got " +
                        std::to_string(options.dynamic_size) + " and " +
                        std::to_string(options.max_cached_sizes),
                    location);
  }
  first_.size = options.dynamic_size;
  first_.engine = build(first_.size, std::move(device), std::move(why), false, owners, location);
  if (owners.empty() && first_.engine->device()->info().computes) {
    first_.engine->upload_params(table_.initial(options_.seed.value_or(0), options_.initial));
  }
}

std::unique_ptr<TracedFunction> CompiledFunctionImpl::traced(std::int64_t size, bool captures,
                                                             const SourceLocation& location) const {
  return trace_function(table_, closed(options_.inputs, size), {}, 0, function_,
                        {.training = options_.training,
                         .autocast = options_.mixed_precision,
                         .captures = captures,
                         .weights = options_.weights,
                         .first_stream = kForwardStream},
                        location);
}

std::unique_ptr<Engine> CompiledFunctionImpl::build(std::int64_t size,
                                                    std::shared_ptr<Device> device, std::string why,
                                                    bool captures,
                                                    const std::vector<const Instance*>& owners,
                                                    const SourceLocation& location) {
  const std::vector<InputSpec> inputs = closed(options_.inputs, size);
  auto traced = this->traced(size, captures, location);
  if (traced->outputs.empty()) throw UserError("the traced function returns no output", location);
  for (const auto& [name, id] : traced->trace.captures) {
    if (traced->outputs.contains(name))
      throw UserError("capture: the name '" + name + "' is taken by an output",
                      traced->trace.graph[id].location);
    if (first_.engine == nullptr) captures_.push_back(name);
  }
  CompileRequest request;
  request.name = "forward";
  request.plan.params_elements = table_.elements();
  request.plan.memory_budget = options_.memory_budget;
  request.graph = std::move(traced->trace.graph);
  auto engine = std::make_unique<Engine>(std::move(request), traced->trace.scalars, inputs,
                                         std::vector<InputSpec>{}, std::move(device),
                                         std::move(why), options_.check_indices);
  SharedMemory shared;
  for (const Instance* owner : owners) {
    owner->share_with(engine->compiled().program, captures ? Share::kProgram : Share::kModel,
                      shared);
  }
  engine->allocate(std::move(shared));
  return engine;
}

void CompiledFunctionImpl::check_state(const std::string& name, const Type& type,
                                       std::int64_t size) const {
  const std::vector<StateEntry>& states = first_.engine->states();
  const auto same = [&](const StateEntry& other) {
    return other.name == name && other.type == type;
  };
  if (std::any_of(states.begin(), states.end(), same)) return;
  throw UserError("state '" + name + "' is " + to_string(type) + " for a dynamic size of " +
                      std::to_string(size) + ", but not for one of " + std::to_string(first_.size) +
                      "; the type of a state cannot depend on it",
                  location_);
}

CompiledFunctionImpl::Sized& CompiledFunctionImpl::sized(std::int64_t size) {
  if (size == first_.size) return first_;
  const auto found = std::find_if(others_.begin(), others_.end(),
                                  [&](const Sized& each) { return each.size == size; });
  if (found != others_.end()) {
    others_.splice(others_.begin(), others_, found);
    return others_.front();
  }
  const Engine& first = *first_.engine;
  auto engine = build(size, first.device(), first.why(), false, {&first.instance()}, location_);
  for (const StateEntry& state : engine->states()) check_state(state.name, state.type, size);
  if (others_.size() == static_cast<std::size_t>(options_.max_cached_sizes)) others_.pop_back();
  others_.push_front({size, std::move(engine), nullptr, {}});
  return others_.front();
}

std::vector<std::int64_t> CompiledFunctionImpl::compiled_sizes() const {
  const auto lock = turns_->lock();
  std::vector<std::int64_t> sizes;
  if (open_) sizes.push_back(first_.size);
  for (const Sized& each : others_) sizes.push_back(each.size);
  return sizes;
}

Engine& CompiledFunctionImpl::capturing(Sized& sized, const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (!sized.capturing) {
    sized.engine->take_back_inputs();
    sized.capturing = build(sized.size, sized.engine->device(), sized.engine->why(), true,
                            {&sized.engine->instance()}, location_);
  }
  return *sized.capturing;
}

void CompiledFunctionImpl::use(const std::shared_ptr<Device>& device,
                               const std::vector<const Instance*>& owners) {
  const auto allocate = [&](Engine& engine, const std::vector<const Instance*>& from, Share share) {
    SharedMemory shared;
    for (const Instance* owner : from) owner->share_with(engine.compiled().program, share, shared);
    engine.use(device);
    engine.allocate(std::move(shared));
  };
  const auto use_sized = [&](Sized& sized, const std::vector<const Instance*>& from) {
    sized.given_away.clear();
    allocate(*sized.engine, from, Share::kModel);
    if (sized.capturing) allocate(*sized.capturing, {&sized.engine->instance()}, Share::kProgram);
  };
  use_sized(first_, owners);
  for (Sized& each : others_) use_sized(each, {&first_.engine->instance()});
}

void CompiledFunctionImpl::repeat(const Feed& inputs, bool captures, std::uint32_t run) {
  Sized& sized = checked(inputs);
  Engine& engine = captures ? capturing(sized, {}) : *sized.engine;
  engine.upload_inputs(inputs);
  const HyperValues hypers = hypers_of(*sized.engine, run);
  engine.instance().run({&hypers, 1});
}

void CompiledFunctionImpl::bind(const std::string& name, bool output, WGPUBufferImpl* native) {
  const auto lock = turns_->lock();
  const std::string call = output ? "bind_output" : "bind_input";
  if (open_)
    throw UserError(call + ": not supported for a dynamic size, as each size has its own buffers");
  std::vector<std::string> known;
  for (const InputSpec& spec : options_.inputs) {
    if (!output) known.push_back(spec.name);
  }
  for (const Port& port : first_.engine->compiled().program.outputs) {
    if (output) known.push_back(port.name);
  }
  check_known(call + ": unknown " + (output ? "output" : "input"), name, known);
  const std::string buffer = output ? output_buffer(name) : input_buffer(name);
  const auto memory = first_.engine->memory_for(buffer, native, call + ": '" + name + "'");
  first_.engine->bind(buffer, memory, native);
  if (first_.capturing) first_.capturing->bind(buffer, memory, native);
}

GraphView CompiledFunctionImpl::graph(GraphStage stage, std::optional<std::int64_t> size) {
  const Turn turn(*turns_);
  if (size && !open_) throw UserError("graph: a dynamic size is given, but no input has one");
  if (size && *size < 1)
    throw UserError("graph: expected a dynamic size of at least 1, got " + std::to_string(*size));
  const std::int64_t of = size.value_or(first_.size);
  if (stage == GraphStage::kTraced) return view_of(traced(of, false, location_)->trace.graph);
  return view_of(sized(of).engine->compiled().graph);
}

CompiledFunctionImpl::Sized& CompiledFunctionImpl::checked(const Feed& inputs) {
  const std::int64_t size = dynamic_size(options_.inputs, inputs, first_.size);
  // Before anything is compiled for it.
  if (size != first_.size) check_feed(closed(options_.inputs, size), inputs, {});
  Sized& sized = this->sized(size);
  sized.engine->check(inputs);
  return sized;
}

HyperValues CompiledFunctionImpl::hypers_of(const Engine& engine, std::uint32_t run) const {
  HyperValues hypers;
  engine.put_hypers(hypers);
  hypers[kSeedScalar] = options_.seed.value_or(0);
  hypers[kStepScalar] = run;
  return hypers;
}

template <class Read>
auto CompiledFunctionImpl::run_guarded(const Feed& inputs, const StepOptions& options,
                                       Read&& read) {
  const Turn turn(*turns_);
  if (!recoverer_ || !recoverer_->on()) {
    if (recoverer_) recoverer_->finish();
    return read(execute(inputs, options, turn));
  }
  const std::uint32_t run = runs_;
  auto result = recoverer_->guarded([&] {
    runs_ = run;
    recoverer_->before_run();
    return read(execute(inputs, options, turn));
  });
  if (first_.engine->changes_states())
    recoverer_->log_run(shared_from_this(), KeptInputs(inputs), !options.captures.empty(), run);
  return result;
}

Profile CompiledFunctionImpl::profile(const Feed& inputs, const ProfileOptions& options) {
  const Turn turn(*turns_);
  const std::uint32_t run = runs_;
  Profile profile = guarded([&] {
    runs_ = run;
    Engine& engine = *checked(inputs).engine;
    turn.check();  // compiling may have taken long
    engine.upload_inputs(inputs);
    return engine.profile(options, [&] { return hypers_of(engine, runs_++); });
  });
  if (first_.engine->changes_states()) guarded([&] { changed(); });
  return profile;
}

CompiledFunctionImpl::Ran CompiledFunctionImpl::execute(const Feed& inputs,
                                                        const StepOptions& options,
                                                        const Turn& turn) {
  Sized& sized = checked(inputs);
  Engine& engine = options.captures.empty() ? *sized.engine : capturing(sized, options.captures);
  turn.check();  // compiling may have taken long
  engine.upload_inputs(inputs);
  const HyperValues hypers = hypers_of(*sized.engine, runs_++);
  engine.instance().run({&hypers, 1});
  Ran ran{sized, engine, {}};
  for (const Port& port : first_.engine->compiled().program.outputs) {
    if (!first_.engine->bound(output_buffer(port.name)))
      ran.outputs.emplace_back(port.name, port.name);
  }
  for (const std::string& name : options.captures)
    ran.outputs.emplace_back(name, capture_output(name));
  return ran;
}

NamedTensors CompiledFunctionImpl::run(const Feed& inputs, const StepOptions& options) {
  return run_guarded(inputs, options, [](const Ran& ran) {
    NamedTensors outputs;
    for (const auto& [name, output] : ran.outputs)
      outputs[name] = ran.engine.download_output(output);
    return outputs;
  });
}

NamedDeviceTensors CompiledFunctionImpl::run_on_device(const Feed& inputs,
                                                       const StepOptions& options) {
  return run_guarded(inputs, options, [](const Ran& ran) {
    NamedDeviceTensors outputs;
    for (const auto& [name, output] : ran.outputs) outputs.emplace(name, give_away(ran, output));
    return outputs;
  });
}

DeviceTensor CompiledFunctionImpl::give_away(const Ran& ran, const std::string& output) {
  const std::string buffer = output_buffer(output);
  auto value = ran.engine.output_value(output);
  auto& others = ran.sized.given_away[buffer];
  // One that nobody has any more.
  const auto unused = std::find_if(others.begin(), others.end(),
                                   [](const auto& each) { return each.use_count() == 1; });
  std::shared_ptr<Memory> next;
  if (unused != others.end()) {
    next = std::move(*unused);
    others.erase(unused);
  } else {
    next = std::make_shared<Memory>(value->memory->device(),
                                    ran.engine.instance().buffer_bytes(buffer), buffer);
  }
  for (Engine* engine : {ran.sized.engine.get(), ran.sized.capturing.get()}) {
    if (engine != nullptr && engine->instance().has_buffer(buffer))
      engine->instance().bind(buffer, next);
  }
  if (others.size() == kMostGivenAway) others.erase(others.begin());
  others.push_back(value->memory);
  return DeviceTensor(std::move(value));
}

void CompiledFunctionImpl::take_averages(Checkpoint& checkpoint, const std::string& path) const {
  std::vector<std::string> objectives = {""};
  std::istringstream names(checkpoint.fields[kObjectivesField]);
  for (std::string name; names >> name;) objectives.push_back(name);
  bool found = false;
  for (const std::string& objective : objectives) {
    const std::string prefix = TrainedPart{.objective = objective}.state(kEmaName) + "/";
    for (auto& [name, tensor] : checkpoint.params) {
      const auto average = checkpoint.states.find(prefix + name);
      if (average == checkpoint.states.end()) continue;  // that parameter has none
      tensor = average->second;
      found = true;
    }
  }
  if (!found) throw UserError(path + ": the file has no parameter averages");
}

void CompiledFunctionImpl::refuse_averages(const char* who) const {
  if (options_.weights != WeightSource::kEma) return;
  throw UserError(std::string(who) + ": the parameters are averages kept by a trainer");
}

void CompiledFunctionImpl::upload_params(const std::map<std::string, HostTensor>& given,
                                         bool partial) {
  const auto lock = turns_->lock();
  refuse_averages("upload_params");
  std::map<std::string, HostTensor> params, buffers;
  for (const auto& [name, tensor] : given) {
    (table_.has_buffer(name) ? buffers : params).emplace(name, tensor);
  }
  first_.engine->check_states("upload_params", buffers);
  guarded([&] {
    set_params(params, buffers, partial);
    changed();
  });
}

void CompiledFunctionImpl::set_params(const NamedTensors& params, const NamedTensors& buffers,
                                      bool partial) {
  if (partial && !table_.entries().empty()) {
    std::vector<float> flat = first_.engine->download_floats("params");
    table_.write(params, "upload_params", true, flat);
    first_.engine->upload_params(flat);
  } else {
    first_.engine->upload_params(table_.pack(params, "upload_params"));
  }
  for (const auto& [name, tensor] : buffers) first_.engine->upload_state(name, tensor);
}

void CompiledFunctionImpl::load(const FileSource& source, WeightSource weights) {
  const auto lock = turns_->lock();
  refuse_averages("load_params");
  const std::string& path = source.name();
  Checkpoint checkpoint = read_checkpoint(source);
  if (weights == WeightSource::kEma) take_averages(checkpoint, path);
  const std::vector<float> params = table_.pack(checkpoint.params, path);
  std::map<std::string, const HostTensor*> states;
  if (!checkpoint.states.empty()) {  // else parameters alone
    for (const StateEntry& state : first_.engine->states())
      states[state.name] = &find_state(checkpoint, state.name, state.type, path);
  }
  guarded([&] {
    first_.engine->upload_params(params);
    for (const auto& [name, tensor] : states)
      first_.engine->instance().upload(state_buffer(name), 0, tensor->bytes);
    changed();
  });
}

void CompiledFunctionImpl::import_weights(const FileSource& source, const ImportOptions& options) {
  const auto lock = turns_->lock();
  refuse_averages("import_weights");
  guarded([&] {
    const ImportedModel model =
        import_model(source, options, table_, first_.engine->states(), download_arena());
    first_.engine->upload_params(model.params);
    for (const auto& [name, tensor] : model.states)
      first_.engine->instance().upload(state_buffer(name), 0, tensor.bytes);
    changed();
  });
}

std::vector<float> CompiledFunctionImpl::download_arena() const {
  if (!first_.engine->instance().has_buffer("params"))
    return std::vector<float>(static_cast<size_t>(table_.elements()));
  return first_.engine->download_floats("params");
}

std::map<std::string, HostTensor> CompiledFunctionImpl::download_params() const {
  const auto lock = turns_->lock();
  if (table_.entries().empty()) return {};
  return guarded([&] {
    const std::vector<float> flat = download_arena();
    if (options_.weights != WeightSource::kEma) return table_.unpack(flat);
    return table_.averages(flat, [&](const std::string& state) {
      return first_.engine->download_floats(state_buffer(state));
    });
  });
}

std::shared_ptr<CompiledFunctionImpl> make_function(ModelFunctions model, TraceFunction forward,
                                                    const FunctionOptions& options,
                                                    SourceLocation location) {
  return at_line(location, [&] {
    std::string why;
    if (options.weights == WeightSource::kEma)
      throw UserError("compile_function: only a trainer has averages; use attach()");
    std::shared_ptr<Device> device = open_device(options.device, why);
    ParameterTable table(model);
    return handle_of(std::make_shared<CompiledFunctionImpl>(
        std::move(model), std::move(table), std::move(forward), options, std::move(device),
        std::move(why), std::make_shared<Turns>(), std::vector<const Instance*>{}, location));
  });
}

HostTensor CompiledFunctionImpl::call(const Feed& inputs) {
  NamedTensors outputs = run(inputs, {});
  if (outputs.size() != 1) {
    throw UserError("the function has " + std::to_string(outputs.size()) +
                    " outputs, not one; use run()");
  }
  return std::move(outputs.begin()->second);
}

}  // namespace detail

NamedTensors CompiledFunction::run(const Feed& inputs, const StepOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->run(inputs, options); });
}
GraphView CompiledFunction::graph(GraphStage stage, std::optional<std::int64_t> dynamic_size,
                                  Loc loc) const {
  return at_line(loc, [&] { return impl_->graph(stage, dynamic_size); });
}
NamedDeviceTensors CompiledFunction::run_on_device(const Feed& inputs, const StepOptions& options,
                                                   Loc loc) {
  return at_line(loc, [&] { return impl_->run_on_device(inputs, options); });
}
RunOutcome CompiledFunction::try_run(const Feed& inputs, const StepOptions& options, Loc loc) {
  using Status = RunOutcome::Status;
  try {
    return {Status::kCompleted, run(inputs, options, loc), {}};
  } catch (const AbortedError& error) {
    return {Status::kAborted, {}, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, {}, error.what()};
  }
}
Profile CompiledFunction::profile(const Feed& inputs, const ProfileOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->profile(inputs, options); });
}
void CompiledFunction::abort() { impl_->abort(); }
void CompiledFunction::bind_input(const NameRef& input, WGPUBufferImpl* buffer) {
  at_line(input.location, [&] { impl_->bind(input.name, false, buffer); });
}
void CompiledFunction::bind_output(const NameRef& output, WGPUBufferImpl* buffer) {
  at_line(output.location, [&] { impl_->bind(output.name, true, buffer); });
}
std::vector<std::string> CompiledFunction::captures() const { return impl_->captures(); }

HostTensor CompiledFunction::operator()(const Feed& inputs, Loc loc) {
  return at_line(loc, [&] { return impl_->call(inputs); });
}

void CompiledFunction::upload_params(const std::map<std::string, HostTensor>& params,
                                     const UploadOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->upload_params(params, options.partial); });
}
std::map<std::string, HostTensor> CompiledFunction::download_params() const {
  return impl_->download_params();
}
void CompiledFunction::import_weights(const FileSource& source, const ImportOptions& options,
                                      Loc loc) {
  at_line(loc, [&] { impl_->import_weights(source, options); });
}
void CompiledFunction::load_params(const FileSource& source, WeightSource weights, Loc loc) {
  at_line(loc, [&] { impl_->load(source, weights); });
}
void CompiledFunction::export_onnx(const FileSink& sink, const OnnxOptions& options,
                                   Loc loc) const {
  at_line(loc, [&] { impl_->export_onnx(sink, options); });
}
void CompiledFunction::export_web(const std::string& folder, const WebOptions& options,
                                  Loc loc) const {
  at_line(loc, [&] { web::write_files(folder, impl_->web_files(options)); });
}
std::map<std::string, std::vector<std::byte>> CompiledFunction::web_files(const WebOptions& options,
                                                                          Loc loc) const {
  return at_line(loc, [&] { return impl_->web_files(options); });
}
CompileReport CompiledFunction::report() const { return impl_->engine().report(); }
std::string CompiledFunction::explain() const { return impl_->engine().explain(); }
std::vector<std::int64_t> CompiledFunction::compiled_sizes() const {
  return impl_->compiled_sizes();
}
std::string CompiledFunction::device() const { return impl_->engine().device_text(); }
DeviceOptions CompiledFunction::same_device() const { return impl_->engine().same_device(); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
