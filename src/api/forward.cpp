// SPDX-License-Identifier: MIT
// Forward: a compiled function without training.
#include "api/forward.h"

#include "api/at_line.h"
#include "api/checkpoint.h"
#include "base/check.h"

namespace tensorgrad {
namespace detail {

ForwardImpl::ForwardImpl(ModelFunctions model, TraceFunction function,
                         const ForwardOptions& options, std::shared_ptr<Device> device,
                         std::string why, std::shared_ptr<std::recursive_mutex> shared_mutex,
                         const std::shared_ptr<Instance>& owner, const Site& site)
    : mutex_(std::move(shared_mutex)), model_(std::move(model)), table_(model_) {
  auto traced = trace_function(table_, options.inputs, {}, 0, function, options.training, site);
  if (traced->outputs.empty())
    throw UserError("forward: the traced function gives no output", site);
  CompileRequest request;
  request.name = "forward";
  request.plan.params_elements = table_.elements();
  request.plan.memory_budget = options.memory_budget;
  request.graph = std::move(traced->trace.graph);
  seed_ = options.seed;
  engine_ = std::make_unique<Engine>(std::move(request), traced->trace.scalars, options.inputs,
                                     std::vector<InputSpec>{}, std::move(device), std::move(why),
                                     options.check_indices, owner);
  if (!owner) engine_->upload_params(table_.initial(seed_));
}

Outputs ForwardImpl::run(const Feed& inputs) {
  const std::lock_guard lock(*mutex_);
  engine_->check(inputs);
  engine_->upload_inputs(inputs);
  HyperValues hypers = engine_->hypers();
  hypers["_seed"] = seed_;
  hypers["_step"] = runs_++;
  engine_->instance().run({hypers});
  Outputs outputs;
  for (const Port& port : engine_->compiled().program.outputs) {
    HostTensor& tensor = outputs[port.name];
    tensor.dtype = port.dtype;
    tensor.shape = port.shape;
    tensor.bytes.resize(static_cast<size_t>(numel(port.shape)) * kElementBytes);
    engine_->instance().download(output_buffer(port.name), port.offset, tensor.bytes);
  }
  return outputs;
}

void ForwardImpl::upload_params(const std::map<std::string, HostTensor>& params,
                                const std::string& who) {
  const std::lock_guard lock(*mutex_);
  engine_->upload_params(table_.pack(params, who));
}

void ForwardImpl::load(const std::string& path) {
  const std::lock_guard lock(*mutex_);
  const Checkpoint checkpoint = read_checkpoint(path);
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

std::map<std::string, HostTensor> ForwardImpl::download_params() const {
  const std::lock_guard lock(*mutex_);
  if (table_.entries().empty()) return {};
  return table_.unpack(engine_->download_floats("params"));
}

std::shared_ptr<ForwardImpl> make_forward(ModelFunctions model, TraceFunction forward,
                                          const ForwardOptions& options, Site site) {
  return at_line(site, [&] {
    std::string why;
    std::shared_ptr<Device> device = open_device(options.device, why);
    return std::make_shared<ForwardImpl>(std::move(model), std::move(forward), options,
                                         std::move(device), std::move(why),
                                         std::make_shared<std::recursive_mutex>(), nullptr, site);
  });
}

}  // namespace detail

Outputs Forward::run(const Feed& inputs, Loc loc) {
  return at_line(loc, [&] { return impl_->run(inputs); });
}

HostTensor Forward::operator()(const Feed& inputs, Loc loc) {
  Outputs outputs = run(inputs, loc);
  if (outputs.size() != 1) {
    throw UserError(
        "forward: the function gives " + std::to_string(outputs.size()) + " outputs; use run()",
        loc);
  }
  return std::move(outputs.begin()->second);
}

void Forward::upload_params(const std::map<std::string, HostTensor>& params, Loc loc) {
  at_line(loc, [&] { impl_->upload_params(params); });
}
std::map<std::string, HostTensor> Forward::download_params() const {
  return impl_->download_params();
}
void Forward::load_params(const std::string& path, Loc loc) {
  at_line(loc, [&] { impl_->load(path); });
}
CompileReport Forward::report() const { return impl_->engine().report(); }
std::string Forward::explain() const { return impl_->engine().explain(); }
std::string Forward::device() const { return impl_->engine().device_text(); }

}  // namespace tensorgrad
