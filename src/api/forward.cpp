// SPDX-License-Identifier: MIT
// Forward: a compiled function without training.
#include "api/forward.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "api/at_line.h"
#include "api/import.h"
#include "base/check.h"
#include "compile/host_random.h"
#include "onnx/convert.h"
#include "ops/registry.h"

namespace tensorgrad {
namespace detail {

ForwardImpl::ForwardImpl(ModelFunctions model, ParameterTable table, TraceFunction function,
                         const ForwardOptions& options, std::shared_ptr<Device> device,
                         std::string why, std::shared_ptr<std::recursive_mutex> shared_mutex,
                         const std::vector<const Instance*>& owners, const Site& site)
    : mutex_(std::move(shared_mutex)),
      model_(std::move(model)),
      table_(std::move(table)),
      function_(std::move(function)),
      options_(options),
      site_(site) {
  engine_ = build(std::move(device), std::move(why), false, owners, site);
  if (owners.empty()) engine_->upload_params(table_.initial(options_.seed));
}

std::unique_ptr<Engine> ForwardImpl::build(std::shared_ptr<Device> device, std::string why,
                                           bool captures,
                                           const std::vector<const Instance*>& owners,
                                           const Site& site) {
  auto traced = trace_function(table_, options_.inputs, {}, 0, function_,
                               {.training = options_.training,
                                .captures = captures,
                                .weights = options_.weights,
                                .first_stream = kForwardStream},
                               site);
  if (traced->outputs.empty())
    throw UserError("forward: the traced function gives no output", site);
  for (const auto& [name, id] : traced->trace.captures) {
    if (traced->outputs.contains(name))
      throw UserError("capture: there is an output '" + name + "'", traced->trace.graph[id].site);
    if (!captures) captures_.push_back(name);
  }
  CompileRequest request;
  request.name = "forward";
  request.plan.params_elements = table_.elements();
  request.plan.memory_budget = options_.memory_budget;
  request.graph = std::move(traced->trace.graph);
  auto engine = std::make_unique<Engine>(std::move(request), traced->trace.scalars, options_.inputs,
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

Engine& ForwardImpl::capturing(const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (!capturing_)
    capturing_ = build(engine_->device(), engine_->why(), true, {&engine_->instance()}, site_);
  return *capturing_;
}

Outputs ForwardImpl::run(const Feed& inputs, const StepOptions& options) {
  const std::lock_guard lock(*mutex_);
  engine_->check(inputs);
  Engine& engine = options.captures.empty() ? *engine_ : capturing(options.captures);
  engine.upload_inputs(inputs);
  HyperValues hypers = engine_->hypers();
  hypers["_seed"] = options_.seed;
  hypers["_step"] = runs_++;
  engine.instance().run({hypers});
  Outputs outputs;
  for (const Port& port : engine_->compiled().program.outputs)
    outputs[port.name] = engine.download_output(port.name);
  for (const std::string& name : options.captures)
    outputs[name] = engine.download_output(capture_output(name));
  return outputs;
}

void ForwardImpl::take_averages(Checkpoint& checkpoint, const std::string& path) const {
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
  if (!found) throw UserError(path + ": the file has no averages of parameters");
}

void ForwardImpl::refuse_averages(const char* who) const {
  if (options_.weights != Weights::kEma) return;
  throw UserError(std::string(who) + ": the parameters are averages that a trainer keeps");
}

void ForwardImpl::upload_params(const std::map<std::string, HostTensor>& params, bool partial) {
  const std::lock_guard lock(*mutex_);
  refuse_averages("upload_params");
  if (partial && !table_.entries().empty()) {
    std::vector<float> flat = engine_->download_floats("params");
    table_.write(params, "upload_params", true, flat);
    engine_->upload_params(flat);
  } else {
    engine_->upload_params(table_.pack(params, "upload_params"));
  }
}

void ForwardImpl::load(const std::string& path, Weights weights) {
  const std::lock_guard lock(*mutex_);
  refuse_averages("load_params");
  Checkpoint checkpoint = read_checkpoint(path);
  if (weights == Weights::kEma) take_averages(checkpoint, path);
  const std::vector<float> params = table_.pack(checkpoint.params, path);
  std::map<std::string, const HostTensor*> states;
  if (!checkpoint.states.empty()) {  // else parameters alone
    for (const StateEntry& state : engine_->states())
      states[state.name] = &find_state(checkpoint, state.name, state.type, path);
  }
  engine_->upload_params(params);
  for (const auto& [name, tensor] : states)
    engine_->instance().upload(state_buffer(name), 0, tensor->bytes);
}

void ForwardImpl::import_weights(const std::string& path, const ImportOptions& options) {
  const std::lock_guard lock(*mutex_);
  refuse_averages("import_weights");
  const ImportedModel model =
      import_model(path, options, table_, engine_->states(), download_arena());
  engine_->upload_params(model.params);
  for (const auto& [name, tensor] : model.states)
    engine_->instance().upload(state_buffer(name), 0, tensor.bytes);
}

std::vector<float> ForwardImpl::download_arena() const {
  if (!engine_->instance().has_buffer("params"))
    return std::vector<float>(static_cast<size_t>(table_.elements()));
  return engine_->download_floats("params");
}

std::map<std::string, HostTensor> ForwardImpl::download_params() const {
  const std::lock_guard lock(*mutex_);
  if (table_.entries().empty()) return {};
  const std::vector<float> flat = download_arena();
  if (options_.weights != Weights::kEma) return table_.unpack(flat);
  return table_.averages(flat, [&](const std::string& state) {
    return engine_->download_floats(state_buffer(state));
  });
}

// The trace reads the trained parameters: averages, where they are asked for, are what these names
// stand for.
void ForwardImpl::export_onnx(const std::string& path, const OnnxOptions& options) const {
  const std::lock_guard lock(*mutex_);
  const auto traced = trace_function(
      table_, options_.inputs, {}, 0, function_,
      {.training = options_.training, .exported = true, .first_stream = kForwardStream}, site_);
  const NamedTensors params = download_params();
  std::map<std::string, std::vector<std::byte>> kept;
  const auto values = [&](const Node& leaf) -> std::span<const std::byte> {
    const std::string& name = leaf.attrs.text("name");
    if (leaf.op == &ops::parameter) return params.at(name).bytes;
    std::vector<std::byte>& bytes = kept[name];
    bytes.resize(static_cast<size_t>(numel(leaf.type.shape)) * kElementBytes);
    if (leaf.op == &ops::state) {
      engine_->instance().download(state_buffer(name), 0, bytes);
    } else {
      const std::uint32_t word = float_bits(traced->trace.scalars.at(name));
      std::memcpy(bytes.data(), &word, sizeof word);
    }
    return bytes;
  };
  io::write_onnx(path, onnx::to_onnx(traced->trace.graph, options.name, options.doc, values));
}

std::shared_ptr<ForwardImpl> make_forward(ModelFunctions model, TraceFunction forward,
                                          const ForwardOptions& options, Site site) {
  return at_line(site, [&] {
    std::string why;
    if (options.weights == Weights::kEma)
      throw UserError("compile_forward: averages are a trainer's; use attach()");
    std::shared_ptr<Device> device = open_device(options.device, why);
    ParameterTable table(model);
    return std::make_shared<ForwardImpl>(std::move(model), std::move(table), std::move(forward),
                                         options, std::move(device), std::move(why),
                                         std::make_shared<std::recursive_mutex>(),
                                         std::vector<const Instance*>{}, site);
  });
}

}  // namespace detail

Outputs Forward::run(const Feed& inputs, const StepOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->run(inputs, options); });
}
std::vector<std::string> Forward::captures() const { return impl_->captures(); }

HostTensor Forward::operator()(const Feed& inputs, Loc loc) {
  Outputs outputs = run(inputs, {}, loc);
  if (outputs.size() != 1) {
    throw UserError(
        "forward: the function gives " + std::to_string(outputs.size()) + " outputs; use run()",
        loc);
  }
  return std::move(outputs.begin()->second);
}

void Forward::upload_params(const std::map<std::string, HostTensor>& params,
                            const UploadOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->upload_params(params, options.partial); });
}
std::map<std::string, HostTensor> Forward::download_params() const {
  return impl_->download_params();
}
void Forward::import_weights(const std::string& path, const ImportOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->import_weights(path, options); });
}
void Forward::load_params(const std::string& path, Weights weights, Loc loc) {
  at_line(loc, [&] { impl_->load(path, weights); });
}
void Forward::export_onnx(const std::string& path, const OnnxOptions& options, Loc loc) const {
  at_line(loc, [&] { impl_->export_onnx(path, options); });
}
CompileReport Forward::report() const { return impl_->engine().report(); }
std::string Forward::explain() const { return impl_->engine().explain(); }
std::string Forward::device() const { return impl_->engine().device_text(); }

}  // namespace tensorgrad
