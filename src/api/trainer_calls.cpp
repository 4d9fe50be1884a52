// SPDX-License-Identifier: MIT
// The calls of the public face, and what makes a trainer.
#include "api/at_line.h"
#include "api/forward.h"
#include "api/trainer.h"

namespace tensorgrad {
namespace detail {

std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model, TraceFunction loss,
                                          const CompileOptions& options, Site site) {
  return at_line(site, [&] {
    return std::make_shared<TrainerImpl>(std::move(model), std::move(loss), options, site);
  });
}

std::shared_ptr<TrainerImpl> replace_trainer(TrainerImpl& old, ModelFunctions model,
                                             TraceFunction loss, bool keep, Site site) {
  return at_line(site, [&] { return old.replaced(std::move(model), std::move(loss), keep, site); });
}

std::shared_ptr<ForwardImpl> attach_forward(TrainerImpl& trainer, TraceFunction forward,
                                            const ForwardOptions& options, Site site) {
  return at_line(site, [&] { return trainer.attach(std::move(forward), options, site); });
}

}  // namespace detail

StepResult TrainerBase::step(const Feed& inputs, const StepOptions& options, Loc loc) {
  return at_line(loc, [&] { return impl_->step(inputs, options); });
}
StepOutcome TrainerBase::try_step(const Feed& inputs, const StepOptions& options, Loc loc) {
  using Status = StepOutcome::Status;
  try {
    return {Status::kCompleted, step(inputs, options, loc), {}};
  } catch (const AbortedError& error) {
    return {Status::kAborted, {}, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, {}, error.what()};
  }
}
void TrainerBase::abort() { impl_->abort(); }

std::vector<float> TrainerBase::run(int count, Loc loc) {
  return at_line(loc, [&] { return impl_->run(count); });
}
void TrainerBase::submit(int count, Loc loc) {
  at_line(loc, [&] { impl_->submit(count); });
}
std::vector<float> TrainerBase::losses() { return impl_->losses(); }
void TrainerBase::upload_data(const std::string& name, const HostView& values, Loc loc) {
  at_line(loc, [&] { impl_->upload_data(name, values); });
}
std::int64_t TrainerBase::steps() const { return impl_->steps(); }
std::int64_t TrainerBase::updates() const { return impl_->updates(); }
std::int64_t TrainerBase::epoch() const { return impl_->epoch(); }
std::int64_t TrainerBase::batches_per_epoch() const { return impl_->batches_per_epoch(); }
double TrainerBase::lr() const { return impl_->lr(); }
void TrainerBase::set_lr(Schedule schedule, Loc loc) {
  at_line(loc, [&] { impl_->set_lr(std::move(schedule)); });
}
void TrainerBase::set(const std::string& name, double value, Loc loc) {
  at_line(loc, [&] { impl_->set(name, value); });
}

std::map<std::string, double> TrainerBase::scalars() const { return impl_->scalars(); }
double TrainerBase::grad_norm(Loc loc) const {
  return at_line(loc, [&] { return impl_->grad_norm(); });
}
std::vector<std::string> TrainerBase::captures() const { return impl_->captures(); }

std::vector<std::string> TrainerBase::parameter_names() const {
  std::vector<std::string> names;
  for (const ParameterEntry& entry : impl_->table().entries()) names.push_back(entry.name);
  return names;
}

std::map<std::string, HostTensor> TrainerBase::download_params() const {
  return impl_->download_params();
}
std::map<std::string, HostTensor> TrainerBase::download_grads() const {
  return impl_->download_grads();
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
  at_line(loc, [&] { impl_->add_loader(name, loader.impl_); });
}
void TrainerBase::reset(const ResetOptions& options) { impl_->reset(options); }
void TrainerBase::save(const std::string& path, Loc loc) const {
  at_line(loc, [&] { impl_->save(path); });
}
void TrainerBase::load(const std::string& path, Loc loc) {
  at_line(loc, [&] { impl_->load(path); });
}
CompileReport TrainerBase::report() const { return impl_->engine().report(); }
std::string TrainerBase::explain() const { return impl_->engine().explain(); }
std::vector<std::pair<std::string, double>> TrainerBase::profile(const Feed& inputs, Loc loc) {
  return at_line(loc, [&] { return impl_->profile(inputs); });
}
std::string TrainerBase::device() const { return impl_->engine().device_text(); }

}  // namespace tensorgrad
