// SPDX-License-Identifier: MIT
// CompiledFunction: a compiled function without training.
#include "train/compiled_function.h"

#include <algorithm>
#include <exception>

#include "base/check.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "trace/source_location.h"
#include "train/async_calls.h"
#include "train/graph_view.h"
#include "train/import.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {
namespace {

// Number of memories of an output to keep, to be reused when the user has released them.
constexpr std::size_t kMaxGivenAway = 4;

}  // namespace

CompiledFunctionImpl::CompiledFunctionImpl(ModelFunctions model, ParameterTable table,
                                           TraceFunction function, const FunctionOptions& options,
                                           std::shared_ptr<Device> device, std::string reason,
                                           std::shared_ptr<CallLock> call_lock,
                                           const std::vector<const Instance*>& owners,
                                           const SourceLocation& location,
                                           std::shared_ptr<Recoverer> recoverer,
                                           std::shared_ptr<Communicator> ranks)
    : call_lock_(std::move(call_lock)),
      recoverer_(std::move(recoverer)),
      ranks_(std::move(ranks)),
      model_(std::move(model)),
      table_(std::move(table)),
      function_(std::move(function)),
      options_(options),
      location_(location),
      sizes_(options.inputs, options.dynamic_size, options.max_cached_sizes, "FunctionOptions",
             location) {
  sizes_.first().session =
      build(options.dynamic_size, std::move(device), std::move(reason), false, owners, location);
  if (owners.empty() && first().device()->info().computes) {
    first().upload_params(table_.initial(options_.seed.value_or(0), options_.initial));
  }
}

std::shared_ptr<CompiledFunctionImpl> CompiledFunctionImpl::replica(
    const SourceLocation& location) const {
  const auto lock = call_lock_->lock();
  if (recoverer_ != nullptr) {
    throw UserError(
        "replica: the function is attached to a trainer, which changes its weights; use "
        "compile_function() and load_params()");
  }
  if (first().changes_states())
    throw UserError("replica: the function sets a state, which each call depends on");
  auto made = std::make_shared<CompiledFunctionImpl>(
      model_, table_, function_, options_, first().device(), first().reason(),
      std::make_shared<CallLock>(), std::vector<const Instance*>{&first().instance()}, location);
  made->weights_ = weights_;
  return made;
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

std::unique_ptr<ProgramSession> CompiledFunctionImpl::build(
    std::int64_t size, std::shared_ptr<Device> device, std::string reason, bool captures,
    const std::vector<const Instance*>& owners, const SourceLocation& location) {
  const std::vector<InputSpec> inputs = closed(options_.inputs, size);
  auto traced = this->traced(size, captures, location);
  if (sizes_.first().session == nullptr) retrace_.keep(traced->trace.graph);
  if (traced->outputs.empty()) throw UserError("the traced function returns no output", location);
  for (const auto& [name, id] : traced->trace.captures) {
    if (traced->outputs.contains(name))
      throw UserError("capture: the name '" + name + "' is taken by an output",
                      traced->trace.graph[id].location);
    if (sizes_.first().session == nullptr) captures_.push_back(name);
  }
  if (sizes_.first().session == nullptr) printed_ = std::move(traced->trace.printed);
  CompileRequest request;
  request.name = "forward";
  table_.describe(request.plan);
  request.plan.memory_budget = options_.memory_budget;
  request.progress = options_.progress;
  request.graph = std::move(traced->trace.graph);
  auto session = std::make_unique<ProgramSession>(std::move(request), traced->trace.scalars, inputs,
                                                  std::vector<InputSpec>{}, std::move(device),
                                                  std::move(reason), options_.check_indices);
  session->set_initial(table_.buffers());
  SharedMemory shared;
  for (const Instance* owner : owners) {
    owner->share_with(session->compiled().program, captures ? Share::kProgram : Share::kModel,
                      shared);
  }
  session->allocate(std::move(shared));
  return session;
}

SizedSessions::Build CompiledFunctionImpl::builder() {
  return [this](std::int64_t size) {
    return build(size, first().device(), first().reason(), false, {&first().instance()}, location_);
  };
}

std::vector<std::int64_t> CompiledFunctionImpl::compiled_sizes() const {
  const auto lock = call_lock_->lock();
  return sizes_.sizes();
}

ProgramSession& CompiledFunctionImpl::capturing(SizedSession& sized,
                                                const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (!sized.capturing) {
    sized.session->take_back_inputs();
    sized.capturing = build(sized.size, sized.session->device(), sized.session->reason(), true,
                            {&sized.session->instance()}, location_);
  }
  return *sized.capturing;
}

void CompiledFunctionImpl::use(const std::shared_ptr<Device>& device,
                               const std::vector<const Instance*>& owners) {
  const auto allocate = [&](ProgramSession& session, const std::vector<const Instance*>& from,
                            Share share) {
    SharedMemory shared;
    for (const Instance* owner : from) owner->share_with(session.compiled().program, share, shared);
    session.use(device);
    session.allocate(std::move(shared));
  };
  const auto use_sized = [&](SizedSession& sized, const std::vector<const Instance*>& from) {
    sized.given_away.clear();
    allocate(*sized.session, from, Share::kModel);
    if (sized.capturing) allocate(*sized.capturing, {&sized.session->instance()}, Share::kProgram);
  };
  use_sized(sizes_.first(), owners);
  for (SizedSession& each : sizes_.others()) use_sized(each, {&first().instance()});
}

void CompiledFunctionImpl::repeat(const FeedView& inputs, bool captures, std::uint32_t run) {
  SizedSession& sized = sizes_.of_inputs(inputs, builder());
  ProgramSession& session = captures ? capturing(sized, {}) : *sized.session;
  session.upload_inputs(inputs);
  const ScalarValues scalars = scalars_of(*sized.session, run);
  run_once(session, scalars);
}

void CompiledFunctionImpl::bind(const std::string& name, bool output, WGPUBufferImpl* native) {
  const auto lock = call_lock_->lock();
  const std::string call = output ? "bind_output" : "bind_input";
  if (sizes_.dynamic())
    throw UserError(call + ": not supported for a dynamic size, as each size has its own buffers");
  std::vector<std::string> known;
  for (const InputSpec& spec : options_.inputs) {
    if (!output) known.push_back(spec.name);
  }
  for (const Port& port : first().compiled().program.outputs) {
    if (output) known.push_back(port.name);
  }
  check_known(call + ": unknown " + (output ? "output" : "input"), name, known);
  const std::string buffer = output ? output_buffer(name) : input_buffer(name);
  const auto memory = first().memory_for(buffer, native, call + ": '" + name + "'");
  first().bind(buffer, memory, native);
  if (sizes_.first().capturing) sizes_.first().capturing->bind(buffer, memory, native);
}

GraphView CompiledFunctionImpl::graph(GraphStage stage, std::optional<std::int64_t> size) {
  const ScopedCall scoped_call(*call_lock_);
  if (size && !sizes_.dynamic())
    throw UserError("graph: a dynamic size is given, but no input has one");
  if (size && *size < 1)
    throw UserError("graph: expected a dynamic size of at least 1, got " + std::to_string(*size));
  const std::int64_t of = size.value_or(sizes_.first().size);
  if (stage == GraphStage::kTraced)
    return make_graph_view(traced(of, false, location_)->trace.graph);
  return make_graph_view(sizes_.of_size(of, builder()).session->compiled().graph);
}

void CompiledFunctionImpl::check_retrace() const {
  retrace_.check("the function",
                 [&] { return traced(options_.dynamic_size, false, location_)->trace.graph; });
}

ScalarValues CompiledFunctionImpl::scalars_of(const ProgramSession& session,
                                              std::uint32_t run) const {
  ScalarValues scalars;
  session.set_scalars(scalars);
  scalars[kSeedScalar] = options_.seed.value_or(0);
  scalars[kStepScalar] = run;
  return scalars;
}

template <class Read>
auto CompiledFunctionImpl::run_guarded(const FeedView& inputs, const StepOptions& options,
                                       Read&& read) {
  const ScopedCall scoped_call(*call_lock_);
  check_retrace();
  const auto reading = weights_->to_read();
  if (!recoverer_ || !recoverer_->on()) {
    if (recoverer_) recoverer_->finish();
    return read(execute(inputs, options, scoped_call));
  }
  const std::uint32_t run = runs_;
  auto result = recoverer_->guarded([&] {
    runs_ = run;
    recoverer_->before_run();
    return read(execute(inputs, options, scoped_call));
  });
  if (first().changes_states())
    recoverer_->log_run(shared_from_this(), KeptInputs(inputs), captures_are_read(options), run);
  return result;
}

Profile CompiledFunctionImpl::profile(const FeedView& inputs, const ProfileOptions& options) {
  const ScopedCall scoped_call(*call_lock_);
  if (table_.sharded_params() != nullptr)
    throw UserError("profile: not supported with shard_parameters");
  check_retrace();
  const std::uint32_t run = runs_;
  Profile profile = guarded([&] {
    runs_ = run;
    ProgramSession& session = *sizes_.of_inputs(inputs, builder()).session;
    scoped_call.check();  // compilation may have taken long
    session.upload_inputs(inputs);
    return session.profile(options, [&] { return scalars_of(session, runs_++); });
  });
  if (first().changes_states()) guarded([&] { changed(); });
  return profile;
}

CompiledFunctionImpl::Ran CompiledFunctionImpl::execute(const FeedView& inputs,
                                                        const StepOptions& options,
                                                        const ScopedCall& scoped_call) {
  SizedSession& sized = sizes_.of_inputs(inputs, builder());
  ProgramSession& session =
      captures_are_read(options) ? capturing(sized, options.captures) : *sized.session;
  scoped_call.check();  // compilation may have taken long
  session.upload_inputs(inputs);
  const ScalarValues scalars = scalars_of(*sized.session, runs_++);
  run_once(session, scalars);
  session.print(printed_);
  Ran ran{sized, session, {}};
  for (const Port& port : first().compiled().program.outputs) {
    if (!first().bound(output_buffer(port.name))) ran.outputs.emplace_back(port.name, port.name);
  }
  for (const std::string& name : options.captures)
    ran.outputs.emplace_back(name, capture_output(name));
  return ran;
}

NamedTensors CompiledFunctionImpl::run(const FeedView& inputs, const StepOptions& options) {
  return run_guarded(inputs, options, [](const Ran& ran) {
    NamedTensors outputs;
    for (const auto& [name, output] : ran.outputs)
      outputs[name] = ran.session.download_output(output);
    return outputs;
  });
}

NamedDeviceTensors CompiledFunctionImpl::run_on_device(const FeedView& inputs,
                                                       const StepOptions& options) {
  return run_guarded(inputs, options, [](const Ran& ran) {
    NamedDeviceTensors outputs;
    for (const auto& [name, output] : ran.outputs) outputs.emplace(name, give_away(ran, output));
    return outputs;
  });
}

DeviceTensor CompiledFunctionImpl::give_away(const Ran& ran, const std::string& output) {
  const std::string buffer = output_buffer(output);
  auto value = ran.session.output_value(output);
  auto& others = ran.sized.given_away[buffer];
  // Memory that the user has released.
  const auto unused = std::find_if(others.begin(), others.end(),
                                   [](const auto& each) { return each.use_count() == 1; });
  std::shared_ptr<Memory> next;
  if (unused != others.end()) {
    next = std::move(*unused);
    others.erase(unused);
  } else {
    next = std::make_shared<Memory>(value->memory->device(),
                                    ran.session.instance().buffer_bytes(buffer), buffer);
  }
  for (ProgramSession* session : {ran.sized.session.get(), ran.sized.capturing.get()}) {
    if (session != nullptr && session->instance().has_buffer(buffer))
      session->instance().bind(buffer, next);
  }
  if (others.size() == kMaxGivenAway) others.erase(others.begin());
  others.push_back(value->memory);
  return DeviceTensor(std::move(value));
}

void CompiledFunctionImpl::refuse_averages(const char* who) const {
  if (options_.weights != WeightSource::kEma) return;
  throw UserError(std::string(who) + ": the parameters are averages kept by a trainer");
}

void CompiledFunctionImpl::upload_params(const std::map<std::string, HostTensor>& given,
                                         bool partial) {
  const auto lock = call_lock_->lock();
  const auto writing = weights_->to_write();
  refuse_averages("upload_params");
  std::map<std::string, HostTensor> params, buffers;
  for (const auto& [name, tensor] : given) {
    (table_.has_buffer(name) ? buffers : params).emplace(name, tensor);
  }
  first().check_states("upload_params", buffers);
  guarded([&] {
    set_params(params, buffers, partial);
    changed();
  });
}

void CompiledFunctionImpl::set_params(const NamedTensors& params, const NamedTensors& buffers,
                                      bool partial) {
  if (partial && !table_.entries().empty()) {
    std::vector<float> flat = download_arena();
    table_.write(params, "upload_params", true, flat);
    upload_arena(flat);
  } else {
    upload_arena(table_.pack(params, "upload_params"));
  }
  for (const auto& [name, tensor] : buffers) first().upload_state(name, tensor);
}

void CompiledFunctionImpl::load(const FileSource& source, WeightSource weights) {
  const auto lock = call_lock_->lock();
  const auto writing = weights_->to_write();
  refuse_averages("load_params");
  const std::string& path = source.name();
  std::set<std::string> buffers = table_.buffer_names();
  for (const StateEntry& state : first().states()) buffers.insert(state.name);
  Checkpoint checkpoint = read_checkpoint(source, buffers);
  if (weights == WeightSource::kEma) take_averages(checkpoint, path);
  const std::vector<float> params = table_.pack(checkpoint.params, path);
  std::map<std::string, const HostTensor*> states;
  if (!checkpoint.states.empty()) {  // otherwise the file has only parameters
    for (const StateEntry& state : first().states())
      states[state.name] = &find_state(checkpoint, state.name, state.type, path);
  }
  guarded([&] {
    upload_arena(params);
    for (const auto& [name, tensor] : states)
      first().instance().upload(state_buffer(name), 0, tensor->bytes);
    changed();
  });
}

void CompiledFunctionImpl::import_weights(const FileSource& source, const ImportOptions& options) {
  const auto lock = call_lock_->lock();
  const auto writing = weights_->to_write();
  refuse_averages("import_weights");
  guarded([&] {
    const ImportedModel model =
        import_model(source, options, table_, first().states(), download_arena());
    upload_arena(model.params);
    for (const auto& [name, tensor] : model.states)
      first().instance().upload(state_buffer(name), 0, tensor.bytes);
    changed();
  });
}

void CompiledFunctionImpl::run_once(ProgramSession& session, const ScalarValues& scalars) {
  const ParameterRange* const sharded = table_.sharded_params();
  if (sharded != nullptr && session.device()->info().computes) {
    ShardCopies copies;
    run_sharded(*ranks_, session.instance(), scalars, *sharded, copies);
  } else {
    session.instance().run({&scalars, 1});
  }
}

std::vector<float> CompiledFunctionImpl::download_arena() const {
  const ParameterRange* const sharded = table_.sharded_params();
  if (sharded != nullptr) return download_sharded(*ranks_, first(), *sharded);
  if (!first().instance().has_buffer("params"))
    return std::vector<float>(static_cast<size_t>(table_.elements()));
  return first().download_floats("params");
}

void CompiledFunctionImpl::upload_arena(const std::vector<float>& arena) {
  const ParameterRange* const sharded = table_.sharded_params();
  if (sharded != nullptr) {
    upload_sharded(*ranks_, first(), *sharded, arena);
  } else {
    first().upload_params(arena);
  }
}

NamedTensors CompiledFunctionImpl::download_buffers() const {
  const auto lock = call_lock_->lock();
  return guarded([&] {
    NamedTensors buffers;
    for (const StateEntry& state : first().states()) {
      if (state.name.starts_with(kOptimPrefix)) continue;
      const auto words = first().download_state(state);
      buffers[state.name] =
          host_tensor(state.type, state.type.dtype, to_stored(words, state.type.dtype));
    }
    return buffers;
  });
}

std::map<std::string, HostTensor> CompiledFunctionImpl::download_params() const {
  const auto lock = call_lock_->lock();
  if (table_.entries().empty()) return {};
  return guarded([&] {
    const std::vector<float> flat = download_arena();
    if (options_.weights != WeightSource::kEma) return table_.unpack(flat);
    return table_.averages(flat, [&](const std::string& state) {
      return first().download_floats(state_buffer(state));
    });
  });
}

std::shared_ptr<CompiledFunctionImpl> make_function(ModelFunctions model, TraceFunction forward,
                                                    const FunctionOptions& options,
                                                    SourceLocation location) {
  return with_source_location(location, [&] {
    std::string reason;
    if (options.weights == WeightSource::kEma)
      throw UserError("compile_function: only a trainer has averages; use attach()");
    std::shared_ptr<Device> device = open_device(options.device, reason);
    ParameterTable table(model);
    return make_public_handle(std::make_shared<CompiledFunctionImpl>(
        std::move(model), std::move(table), std::move(forward), options, std::move(device),
        std::move(reason), std::make_shared<CallLock>(), std::vector<const Instance*>{}, location));
  });
}

HostTensor CompiledFunctionImpl::call(const FeedView& inputs) {
  NamedTensors outputs = run(inputs, {});
  if (outputs.size() != 1) {
    throw UserError("the function has " + std::to_string(outputs.size()) +
                    " outputs, not one; use run()");
  }
  return std::move(outputs.begin()->second);
}

}  // namespace detail

NamedTensors CompiledFunction::run(const FeedView& inputs, const StepOptions& options, Loc loc) {
  return with_source_location(loc, [&] { return impl_->run(inputs, options); });
}
GraphView CompiledFunction::graph(GraphStage stage, std::optional<std::int64_t> dynamic_size,
                                  Loc loc) const {
  return with_source_location(loc, [&] { return impl_->graph(stage, dynamic_size); });
}
NamedDeviceTensors CompiledFunction::run_on_device(const FeedView& inputs,
                                                   const StepOptions& options, Loc loc) {
  return with_source_location(loc, [&] { return impl_->run_on_device(inputs, options); });
}
RunOutcome CompiledFunction::try_run(const FeedView& inputs, const StepOptions& options, Loc loc) {
  using Status = RunOutcome::Status;
  try {
    return {Status::kCompleted, run(inputs, options, loc), {}};
  } catch (const AbortedError& error) {
    return {Status::kAborted, {}, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, {}, error.what()};
  }
}
Profile CompiledFunction::profile(const FeedView& inputs, const ProfileOptions& options, Loc loc) {
  return with_source_location(loc, [&] { return impl_->profile(inputs, options); });
}
void CompiledFunction::abort() { impl_->abort(); }
void CompiledFunction::bind_input(const NameRef& input, WGPUBufferImpl* buffer) {
  with_source_location(input.location, [&] { impl_->bind(input.name, false, buffer); });
}
void CompiledFunction::bind_output(const NameRef& output, WGPUBufferImpl* buffer) {
  with_source_location(output.location, [&] { impl_->bind(output.name, true, buffer); });
}
std::vector<std::string> CompiledFunction::captures() const { return impl_->captures(); }

HostTensor CompiledFunction::operator()(const FeedView& inputs, Loc loc) {
  return with_source_location(loc, [&] { return impl_->call(inputs); });
}

void CompiledFunction::upload_params(const std::map<std::string, HostTensor>& params,
                                     const UploadOptions& options, Loc loc) {
  with_source_location(loc, [&] { impl_->upload_params(params, options.partial); });
}
CompiledFunction CompiledFunction::replica(Loc loc) const {
  return with_source_location(loc, [&] { return CompiledFunction(impl_->replica(loc)); });
}
NamedTensors CompiledFunction::download_buffers(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_buffers(); });
}
std::map<std::string, HostTensor> CompiledFunction::download_params(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_params(); });
}
void CompiledFunction::import_weights(const FileSource& source, const ImportOptions& options,
                                      Loc loc) {
  with_source_location(loc, [&] { impl_->import_weights(source, options); });
}
void CompiledFunction::load_params(const FileSource& source, WeightSource weights, Loc loc) {
  with_source_location(loc, [&] { impl_->load(source, weights); });
}
void CompiledFunction::export_onnx(const FileSink& sink, const OnnxOptions& options,
                                   Loc loc) const {
  with_source_location(loc, [&] { impl_->export_onnx(sink, options); });
}
void CompiledFunction::export_web(const std::string& folder, const WebOptions& options,
                                  Loc loc) const {
  with_source_location(loc, [&] { web::write_files(folder, impl_->web_files(options)); });
}
std::map<std::string, std::vector<std::byte>> CompiledFunction::web_files(const WebOptions& options,
                                                                          Loc loc) const {
  return with_source_location(loc, [&] { return impl_->web_files(options); });
}
CompileReport CompiledFunction::report() const { return impl_->first().report(); }
std::string CompiledFunction::explain() const { return impl_->first().explain(); }
std::vector<std::int64_t> CompiledFunction::compiled_sizes() const {
  return impl_->compiled_sizes();
}
std::string CompiledFunction::device() const { return impl_->first().device_text(); }
DeviceOptions CompiledFunction::same_device() const { return impl_->first().same_device(); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
