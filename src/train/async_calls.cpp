// SPDX-License-Identifier: MIT
// Public asynchronous calls.
#include "train/async_calls.h"

#include "train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {

void queue_call(TrainerImpl& trainer, std::shared_ptr<FutureBase> state, std::function<void()> run,
                Executor* executor, const SourceLocation& location) {
  push_call(trainer, std::move(state), std::move(run), executor, location);
}

}  // namespace detail

Future<StepResult> Stepper::step_async(const FeedView& inputs, const StepOptions& options,
                                       Executor* executor, Loc loc) {
  return detail::queued(
      trainer_, executor, loc,
      [index = index_, kept = Feed(inputs), options](detail::TrainerImpl& trainer) {
        return trainer.objective(index).step(kept, options);
      });
}
Future<std::vector<float>> Stepper::run_async(int count, Executor* executor, Loc loc) {
  return detail::queued(trainer_, executor, loc,
                        [index = index_, count](detail::TrainerImpl& trainer) {
                          return trainer.objective(index).run(count);
                        });
}
Future<std::map<std::string, HostTensor>> Stepper::download_grads_async(Executor* executor,
                                                                        Loc loc) const {
  return detail::queued(trainer_, executor, loc, [index = index_](detail::TrainerImpl& trainer) {
    return trainer.objective(index).download_grads();
  });
}

Future<NamedTensors> TrainerBase::download_params_async(Executor* executor, Loc loc) const {
  return detail::queued(impl_, executor, loc,
                        [](detail::TrainerImpl& trainer) { return trainer.download_params(); });
}
Future<NamedTensors> TrainerBase::download_ema_async(Executor* executor, Loc loc) const {
  return detail::queued(impl_, executor, loc,
                        [](detail::TrainerImpl& trainer) { return trainer.download_ema(); });
}
Future<NamedTensors> TrainerBase::download_optimizer_async(Executor* executor, Loc loc) const {
  return detail::queued(impl_, executor, loc,
                        [](detail::TrainerImpl& trainer) { return trainer.download_optimizer(); });
}

Future<NamedTensors> CompiledFunction::run_async(const FeedView& inputs, const StepOptions& options,
                                                 Executor* executor, Loc loc) {
  return detail::queued(impl_, executor, loc,
                        [kept = Feed(inputs), options](detail::CompiledFunctionImpl& function) {
                          return function.run(kept, options);
                        });
}
Future<HostTensor> CompiledFunction::call_async(const FeedView& inputs, Executor* executor,
                                                Loc loc) {
  return detail::queued(impl_, executor, loc,
                        [kept = Feed(inputs)](detail::CompiledFunctionImpl& function) {
                          return function.call(kept);
                        });
}
Future<std::map<std::string, HostTensor>> CompiledFunction::download_params_async(
    Executor* executor, Loc loc) const {
  return detail::queued(impl_, executor, loc, [](detail::CompiledFunctionImpl& function) {
    return function.download_params();
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
