// SPDX-License-Identifier: MIT
// The calls of the public face, and what makes a trainer.
#include "api/at_line.h"
#include "api/forward.h"
#include "api/trainer.h"

namespace tensorgrad {
namespace detail {

std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model,
                                          std::vector<ObjectiveSource> objectives,
                                          const TrainerOptions& options, Site site) {
  return at_line(site, [&] {
    return std::make_shared<TrainerImpl>(
        std::move(model), with_common_options(std::move(objectives), options), options, site);
  });
}

std::shared_ptr<TrainerImpl> replace_trainer(TrainerImpl& old, ModelFunctions model,
                                             std::vector<TraceFunction> losses, bool keep,
                                             Site site) {
  return at_line(site,
                 [&] { return old.replaced(std::move(model), std::move(losses), keep, site); });
}

std::shared_ptr<ForwardImpl> attach_forward(TrainerImpl& trainer, TraceFunction forward,
                                            const ForwardOptions& options, Site site) {
  return at_line(site, [&] { return trainer.attach(std::move(forward), options, site); });
}

}  // namespace detail

StepResult Objective::step(const Feed& inputs, const StepOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->objective(index_).step(inputs, options); });
}
StepOutcome Objective::try_step(const Feed& inputs, const StepOptions& options, Loc loc) {
  using Status = StepOutcome::Status;
  try {
    return {Status::kCompleted, step(inputs, options, loc), {}};
  } catch (const AbortedError& error) {
    return {Status::kAborted, {}, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, {}, error.what()};
  }
}
std::vector<float> Objective::run(int count, Loc loc) {
  return at_line(loc, [&] { return impl_->objective(index_).run(count); });
}
void Objective::submit(int count, Loc loc) {
  at_line(loc, [&] { impl_->objective(index_).submit(count); });
}
void Objective::bind_input(const NameAt& input, WGPUBufferImpl* buffer) {
  at_line(input.site, [&] { impl_->objective(index_).bind_input(input.name, buffer); });
}
std::vector<float> Objective::losses(Loc loc) {
  return at_line(loc, [&] { return impl_->objective(index_).losses(); });
}
std::int64_t Objective::steps(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).steps(); });
}
std::int64_t Objective::updates(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).updates(); });
}
std::int64_t Objective::epoch(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).epoch(); });
}
std::int64_t Objective::batches_per_epoch(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).batches_per_epoch(); });
}
double Objective::lr(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).lr(); });
}
void Objective::set_lr(Schedule schedule, Loc loc) {
  at_line(loc, [&] { impl_->objective(index_).set_lr(std::move(schedule)); });
}
void Objective::set(const std::string& name, double value, Loc loc) {
  at_line(loc, [&] { impl_->objective(index_).set(name, value); });
}
std::map<std::string, double> Objective::scalars(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).scalars(); });
}
double Objective::grad_norm(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).grad_norm(); });
}
double Objective::loss_scale(Loc loc) const {
  return at_line(loc, [&] {
    return impl_->objective(index_).scale_number(ScaleNumber::kFactor, "loss_scale");
  });
}
std::int64_t Objective::skipped_updates(Loc loc) const {
  return at_line(loc, [&] {
    return static_cast<std::int64_t>(
        impl_->objective(index_).scale_number(ScaleNumber::kSkipped, "skipped_updates"));
  });
}
std::vector<std::string> Objective::captures(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).captures(); });
}
std::map<std::string, HostTensor> Objective::download_grads(Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).download_grads(); });
}
Profile Objective::profile(const Feed& inputs, const ProfileOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->objective(index_).profile(inputs, options); });
}
HostTimes Objective::host_times() const {
  return impl_->objective(index_).engine().device()->host_times();
}
GraphView Objective::graph(GraphStage stage, Loc loc) const {
  return at_line(loc, [&] { return impl_->objective(index_).graph(stage); });
}
CompileReport Objective::report() const { return impl_->report(index_); }
std::string Objective::explain() const { return impl_->explain(index_); }

Objective TrainerBase::operator[](const NameAt& objective) const {
  return at_line(objective.site,
                 [&] { return Objective(impl_.shared(), impl_->find(objective.name)); });
}
std::vector<std::string> TrainerBase::objectives() const { return impl_->names(); }
void TrainerBase::abort() { impl_->abort(); }
void TrainerBase::upload_data(const std::string& name, const HostView& values, Loc loc) {
  at_line(loc, [&] { impl_->upload_data(name, values); });
}
void TrainerBase::bind_data(const NameAt& entry, WGPUBufferImpl* buffer) {
  at_line(entry.site, [&] { impl_->bind_data(entry.name, buffer); });
}

std::vector<std::string> TrainerBase::parameter_names() const {
  std::vector<std::string> names;
  for (const ParameterEntry& entry : impl_->table().entries()) names.push_back(entry.name);
  return names;
}

std::map<std::string, HostTensor> TrainerBase::download_params() const {
  return impl_->download_params();
}
std::map<std::string, HostTensor> TrainerBase::download_ema(Loc loc) const {
  return at_line(loc, [&] { return impl_->download_ema(); });
}
std::map<std::string, HostTensor> TrainerBase::download_optimizer() const {
  return impl_->download_optimizer();
}
void TrainerBase::upload_params(const std::map<std::string, HostTensor>& params,
                                const UploadOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->upload_params(params, options.partial); });
}
void TrainerBase::import_weights(const std::string& path, const ImportOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->import_weights(path, options); });
}
void TrainerBase::upload_optimizer(const std::map<std::string, HostTensor>& states,
                                   const UploadOptions& options, Loc loc) {
  at_line(loc, [&] { impl_->upload_optimizer(states, options.partial); });
}
void TrainerBase::add_loader(const std::string& name, const DataLoader& loader, Loc loc) {
  at_line(loc, [&] { impl_->add_loader(name, loader.impl_.shared()); });
}
void TrainerBase::reset(const ResetOptions& options) { impl_->reset(options); }
void TrainerBase::save(const std::string& path, Loc loc) const {
  at_line(loc, [&] { impl_->save(path); });
}
void TrainerBase::load(const std::string& path, Loc loc) {
  at_line(loc, [&] { impl_->load(path); });
}
std::string TrainerBase::device() const { return impl_->engine().device_text(); }
DeviceOptions TrainerBase::same_device() const { return impl_->engine().same_device(); }

}  // namespace tensorgrad
