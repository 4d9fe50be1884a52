// SPDX-License-Identifier: MIT
// Public calls and creation of trainers.
#include "trace/source_location.h"
#include "train/async_calls.h"
#include "train/compiled_function.h"
#include "train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {

std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model,
                                          std::vector<ObjectiveSource> objectives, bool named,
                                          const TrainerOptions& options, SourceLocation location) {
  return with_source_location(location, [&] {
    return make_public_handle(std::make_shared<TrainerImpl>(
        std::move(model), with_common_options(std::move(objectives), named, options), options,
        location));
  });
}

std::shared_ptr<TrainerImpl> replace_trainer(TrainerImpl& old, ModelFunctions model,
                                             std::vector<TraceFunction> losses, bool keep,
                                             SourceLocation location) {
  return with_source_location(location, [&] {
    return make_public_handle(old.replaced(std::move(model), std::move(losses), keep, location));
  });
}

std::shared_ptr<CompiledFunctionImpl> attach_function(TrainerImpl& trainer, TraceFunction forward,
                                                      const FunctionOptions& options,
                                                      SourceLocation location) {
  return with_source_location(location, [&] {
    return make_public_handle(trainer.attach(std::move(forward), options, location));
  });
}

}  // namespace detail

StepResult Stepper::step(const FeedView& inputs, const StepOptions& options, Loc loc) {
  return with_source_location(loc,
                              [&] { return trainer_->objective(index_).step(inputs, options); });
}
StepOutcome Stepper::try_step(const FeedView& inputs, const StepOptions& options, Loc loc) {
  using Status = StepOutcome::Status;
  try {
    return {Status::kCompleted, step(inputs, options, loc), {}};
  } catch (const AbortedError& error) {
    return {Status::kAborted, {}, error.what()};
  } catch (const std::exception& error) {
    return {Status::kFailed, {}, error.what()};
  }
}
std::optional<StepResult> Stepper::step_for(double seconds, const FeedView& inputs, Loc loc) {
  return with_source_location(
      loc, [&] { return trainer_->objective(index_).step_for(seconds, inputs); });
}
bool Stepper::cancel_step() { return trainer_->objective(index_).cancel_step(); }
std::vector<float> Stepper::run(int count, Loc loc) {
  return with_source_location(loc, [&] { return trainer_->objective(index_).run(count); });
}
void Stepper::submit(const FeedView& inputs, Loc loc) {
  with_source_location(loc, [&] { trainer_->objective(index_).submit(inputs); });
}

void Stepper::submit(int count, Loc loc) {
  with_source_location(loc, [&] { trainer_->objective(index_).submit(count); });
}
void Stepper::bind_input(const NameRef& input, WGPUBufferImpl* buffer) {
  with_source_location(input.location,
                       [&] { trainer_->objective(index_).bind_input(input.name, buffer); });
}
std::vector<float> Stepper::losses(Loc loc) {
  return with_source_location(loc, [&] { return trainer_->objective(index_).losses(); });
}
std::int64_t Stepper::steps(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).steps(); });
}
std::int64_t Stepper::updates(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).updates(); });
}
std::int64_t Stepper::epoch(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).epoch(); });
}
std::int64_t Stepper::batches_per_epoch(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).batches_per_epoch(); });
}
double Stepper::lr(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).lr(); });
}
void Stepper::set_lr(Schedule schedule, Loc loc) {
  with_source_location(loc, [&] { trainer_->objective(index_).set_lr(schedule); });
}
void Stepper::set(const std::string& name, double value, Loc loc) {
  with_source_location(loc, [&] { trainer_->objective(index_).set(name, value); });
}
std::map<std::string, double> Stepper::scalars(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).scalars(); });
}
double Stepper::grad_norm(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).grad_norm(); });
}
double Stepper::loss_scale(Loc loc) const {
  return with_source_location(loc, [&] {
    return trainer_->objective(index_).scale_number(ScaleNumber::kFactor, "loss_scale");
  });
}
std::int64_t Stepper::skipped_updates(Loc loc) const {
  return with_source_location(loc, [&] {
    return static_cast<std::int64_t>(
        trainer_->objective(index_).scale_number(ScaleNumber::kSkipped, "skipped_updates"));
  });
}
std::vector<std::string> Stepper::captures(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).captures(); });
}
std::map<std::string, HostTensor> Stepper::download_grads(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).download_grads(); });
}
Profile Stepper::profile(const FeedView& inputs, const ProfileOptions& options, Loc loc) {
  return with_source_location(loc,
                              [&] { return trainer_->objective(index_).profile(inputs, options); });
}
HostTimes Stepper::host_times() const {
  return trainer_->objective(index_).session().device()->host_times();
}
std::vector<std::int64_t> Stepper::compiled_sizes(Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).compiled_sizes(); });
}
GraphView Stepper::graph(GraphStage stage, Loc loc) const {
  return with_source_location(loc, [&] { return trainer_->objective(index_).graph(stage); });
}
CompileReport Objective::report() const { return trainer_->objective(index_).session().report(); }
std::string Objective::explain() const { return trainer_->objective(index_).session().explain(); }

CompileReport TrainerBase::report() const { return impl_->report(); }
std::string TrainerBase::explain() const { return impl_->explain(); }
Objective AnyMultiTrainer::operator[](const NameRef& objective) const {
  return with_source_location(
      objective.location, [&] { return Objective(impl_.shared(), impl_->find(objective.name)); });
}
std::vector<std::string> AnyMultiTrainer::objectives() const { return impl_->names(); }

void TrainerBase::abort() { impl_->abort(); }
void TrainerBase::upload_data(const std::string& name, const HostView& values, Loc loc) {
  with_source_location(loc, [&] { impl_->upload_data(name, values); });
}
void TrainerBase::bind_data(const NameRef& entry, WGPUBufferImpl* buffer) {
  with_source_location(entry.location, [&] { impl_->bind_data(entry.name, buffer); });
}

std::vector<std::string> TrainerBase::parameter_names() const {
  std::vector<std::string> names;
  for (const ParameterEntry& entry : impl_->table().entries()) names.push_back(entry.name);
  return names;
}

std::map<std::string, HostTensor> TrainerBase::download_params(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_params(); });
}
std::map<std::string, HostTensor> TrainerBase::download_buffers(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_buffers(); });
}
void TrainerBase::load_params(const FileSource& source, WeightSource weights, Loc loc) {
  with_source_location(loc, [&] { impl_->load_params(source, weights); });
}
void TrainerBase::save_weights(const FileSink& sink, WeightSource weights, Loc loc) const {
  with_source_location(loc, [&] { impl_->save_weights(sink, weights); });
}
std::map<std::string, HostTensor> TrainerBase::download_ema(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_ema(); });
}
std::map<std::string, HostTensor> TrainerBase::download_optimizer(Loc loc) const {
  return with_source_location(loc, [&] { return impl_->download_optimizer(); });
}
void TrainerBase::upload_params(const std::map<std::string, HostTensor>& params,
                                const UploadOptions& options, Loc loc) {
  with_source_location(loc, [&] { impl_->upload_params(params, options.partial); });
}
void TrainerBase::import_weights(const FileSource& source, const ImportOptions& options, Loc loc) {
  with_source_location(loc, [&] { impl_->import_weights(source, options); });
}
void TrainerBase::upload_optimizer(const std::map<std::string, HostTensor>& states,
                                   const UploadOptions& options, Loc loc) {
  with_source_location(loc, [&] { impl_->upload_optimizer(states, options.partial); });
}
void TrainerBase::add_loader(const std::string& name, const DataLoader& loader, Loc loc) {
  with_source_location(loc, [&] { impl_->add_loader(name, loader.impl_.shared()); });
}
void TrainerBase::reset(const ResetOptions& options, Loc loc) {
  with_source_location(loc, [&] { impl_->reset(options); });
}
void TrainerBase::save(const FileSink& sink, const SaveOptions& options, Loc loc) const {
  with_source_location(loc, [&] { impl_->save(sink, options); });
}
std::vector<std::byte> TrainerBase::save_bytes(const SaveOptions& options, Loc loc) const {
  std::vector<std::byte> bytes;
  save(bytes, options, loc);
  return bytes;
}
void TrainerBase::load(const FileSource& source, Loc loc) {
  with_source_location(loc, [&] { impl_->load(source); });
}
std::vector<Recovery> TrainerBase::recoveries() const { return impl_->recoveries(); }
std::string TrainerBase::device() const { return impl_->session().device_text(); }
DeviceOptions TrainerBase::same_device() const { return impl_->session().same_device(); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
