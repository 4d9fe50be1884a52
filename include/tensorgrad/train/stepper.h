// SPDX-License-Identifier: MIT
// Training steps of one loss, and what can be asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/train/async.h"
#include "tensorgrad/train/fit.h"
#include "tensorgrad/train/graph_view.h"
#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/host_times.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class DataLoader;

namespace detail {
class TrainerImpl;
}

/// Training steps of one loss. Base class of Trainer and Objective.
///
/// All calls take effect in the order in which they are made, including calls after queued steps.
/// Concurrent calls run sequentially.
class Stepper {
 public:
  /// Runs one step on the given inputs, waits for it, and returns the loss and the requested
  /// captures. Inputs are checked before anything changes. The first step with captures compiles a
  /// second program, whose results can differ in the last bits.
  ///
  /// Throws UserError if an input is missing, unknown or has the wrong type or shape, if a dataset
  /// entry has not been uploaded, or if a requested capture does not exist. Throws AbortedError if
  /// TrainerBase::abort() is called while the step waits for its turn.
  StepResult step(const FeedView& inputs = {}, const StepOptions& options = {},
                  Loc loc = Loc::current());

  /// Queues step() and returns its future result. The inputs are copied; device tensors are kept
  /// alive. Errors, including those of inputs, are rethrown by Future::get() with the line of this
  /// call.
  ///
  /// Asynchronous calls of a trainer, its objectives and its attached functions run one after
  /// another, in the order in which they are made. Other calls do not wait for those that have not
  /// begun. `executor` runs the call and must outlive it; by default, a thread of the trainer does,
  /// or in browsers the event loop. Throws UserError if that thread cannot be started.
  ///
  /// TrainerBase::abort() cancels calls that have not begun: the future throws AbortedError.
  /// Destroying the last copy of the trainer does so too, and waits for a call that is running,
  /// except in browsers.
  [[nodiscard]] Future<StepResult> step_async(const FeedView& inputs = {},
                                              const StepOptions& options = {},
                                              Executor* executor = nullptr,
                                              Loc loc = Loc::current());

  /// Like step(), but returns errors as part of the result instead of throwing them.
  StepOutcome try_step(const FeedView& inputs = {}, const StepOptions& options = {},
                       Loc loc = Loc::current());

  /// Runs launches of a step for about `seconds`, estimated from earlier timings, but at least one
  /// launch. Returns the step's result once it is complete, else nothing. For programs that train
  /// between frames:
  /// ```cpp
  /// if (auto done = trainer.step_for(0.002, inputs)) show(done->loss);  // each frame
  /// ```
  /// The first call starts the step on `inputs`, like step(); the calls that continue it ignore
  /// theirs. Other calls of the trainer, its objectives and attached functions finish the step
  /// first; the next step_for() then returns its result. There are no captures.
  ///
  /// Throws the errors of step(), and UserError if `seconds` is negative or
  /// CompileOptions::detect_nan is set.
  std::optional<StepResult> step_for(double seconds, const FeedView& inputs = {},
                                     Loc loc = Loc::current());

  /// Discards the step that step_for() started, unless it has begun to change parameters or states.
  /// Returns true if it was discarded, and false if there is none or it must be finished.
  bool cancel_step();

  /// Runs `count` steps on the dataset or on bound inputs, and returns their losses. Throws
  /// UserError if a dataset entry has not been uploaded, an input is not bound (see bind_input()),
  /// or `count` is negative. Throws AbortedError if TrainerBase::abort() is called meanwhile;
  /// losses() then returns the losses of the completed steps.
  std::vector<float> run(int count, Loc loc = Loc::current());

  /// Queues run() and returns its future losses; see step_async().
  [[nodiscard]] Future<std::vector<float>> run_async(int count, Executor* executor = nullptr,
                                                     Loc loc = Loc::current());

  /// Queues `count` steps without waiting for their results. A GPU runs them asynchronously; the
  /// call blocks only while too many steps are in flight. The CPU runs them inside the call. Throws
  /// the errors of run(), and UserError if CompileOptions::detect_nan is set.
  void submit(int count, Loc loc = Loc::current());

  /// Queues one step on the given inputs without waiting for its result; losses() returns the loss.
  /// For loops that train on batches from the host:
  /// ```cpp
  /// while (training) trainer.submit(loader.next());
  /// ```
  /// The inputs are copied. The results equal those of step() bit for bit. A GPU runs the steps
  /// asynchronously: while it is busy, up to 16 steps are gathered and submitted together, for
  /// which up to 16 MiB of device memory hold further batches. The call blocks only while too many
  /// steps are in flight. The CPU runs the step inside the call. Throws the errors of step(), and
  /// UserError if CompileOptions::detect_nan is set.
  void submit(const FeedView& inputs, Loc loc = Loc::current());

  /// Trains on the batches of a loader, epoch by epoch, with submit(). The first epoch is the rest
  /// of the loader's current one.
  /// ```cpp
  /// trainer.fit(loader, {.epochs = 20,
  ///                      .validate = [&] { return mean_loss(validation); },
  ///                      .patience = 3,
  ///                      .best_checkpoint = "best.safetensors"});
  /// ```
  /// Losses of steps that were queued before are discarded. With CompileOptions::detect_nan, each
  /// step waits for its loss. Throws UserError if an option is out of range, and the errors of
  /// submit(), DataLoader::next(), the callbacks and TrainerBase::save().
  FitResult fit(DataLoader& loader, const FitOptions& options = {}, Loc loc = Loc::current());

  /// Binds an input to a buffer of the application, like CompiledFunction::bind_input(). run() and
  /// submit(int) require that all inputs are bound.
  void bind_input(const NameRef& input, WGPUBufferImpl* buffer);

  /// Waits for all queued steps and returns their losses since the previous call, oldest first. If
  /// more than 4096 steps are unread, the oldest losses are lost. The loss of a step() made while
  /// queued steps are unread is included; losses returned by run() are not.
  std::vector<float> losses(Loc loc = Loc::current());

  /// Returns the number of steps done or queued.
  [[nodiscard]] std::int64_t steps(Loc loc = Loc::current()) const;

  /// Returns the number of updates, `steps() / accumulate` rounded down.
  [[nodiscard]] std::int64_t updates(Loc loc = Loc::current()) const;

  /// Returns the number of complete passes over the dataset, including queued steps.
  [[nodiscard]] std::int64_t epoch(Loc loc = Loc::current()) const;

  /// Returns the number of batches in an epoch, 0 without a dataset.
  [[nodiscard]] std::int64_t batches_per_epoch(Loc loc = Loc::current()) const;

  /// Returns the learning rate of the next step, before any factor of a parameter group.
  [[nodiscard]] double lr(Loc loc = Loc::current()) const;

  /// Replaces the learning-rate schedule. The new one starts at its step 0 with the next update.
  /// Groups with their own schedule (ParamGroup::lr) keep it. Throws UserError if the first rate is
  /// negative or not finite.
  void set_lr(Schedule schedule, Loc loc = Loc::current());

  /// Sets a run-time scalar without recompiling. The scalars of a program are:
  /// - names passed to scalar() in the loss function,
  /// - "clip_grad_norm", "clip_grad_value" and "weight_decay", if the option is set,
  /// - hyperparameters of the optimizer declared with optim::adjustable(), for example "beta1",
  /// - "lr_factor.NAME" and "weight_decay.NAME" of a parameter group that sets them.
  ///
  /// Throws UserError listing the known names if `name` is unknown, or if the value is out of range
  /// for the option.
  void set(const std::string& name, double value, Loc loc = Loc::current());

  /// Returns all run-time scalars with their values.
  [[nodiscard]] std::map<std::string, double> scalars(Loc loc = Loc::current()) const;

  /// Returns the norm of all gradients in the last step, before `clip_grad_norm` scales them. With
  /// `accumulate`, it is the norm of the gradients summed so far, divided by `accumulate`. Throws
  /// UserError unless `clip_grad_norm`, `skip_nonfinite`, `mixed_precision` or `loss_scale` is set.
  [[nodiscard]] double grad_norm(Loc loc = Loc::current()) const;

  /// Returns the factor on the loss of the next step (see LossScale). Throws UserError unless
  /// `mixed_precision` or `loss_scale` is set.
  [[nodiscard]] double loss_scale(Loc loc = Loc::current()) const;

  /// Returns the number of updates that were skipped because the gradients were not finite. Throws
  /// UserError unless `skip_nonfinite`, `mixed_precision` or `loss_scale` is set.
  [[nodiscard]] std::int64_t skipped_updates(Loc loc = Loc::current()) const;

  /// Returns the names of all captures in the loss function.
  [[nodiscard]] std::vector<std::string> captures(Loc loc = Loc::current()) const;

  /// Returns the gradients of the last step by parameter, for all parameters that this loss trains.
  /// They are the gradients of that step's unscaled loss, before accumulation, normalization and
  /// clipping. Throws UserError with CompileOptions::shard_parameters.
  [[nodiscard]] std::map<std::string, HostTensor> download_grads(Loc loc = Loc::current()) const;

  /// Queues download_grads() and returns its future result; see step_async().
  [[nodiscard]] Future<std::map<std::string, HostTensor>> download_grads_async(
      Executor* executor = nullptr, Loc loc = Loc::current()) const;

  /// Runs ProfileOptions::steps real training steps on the same inputs and returns the median cost
  /// of each launch. Throws the errors of step(), and UserError if `steps` is less than 1.
  Profile profile(const FeedView& inputs = {}, const ProfileOptions& options = {},
                  Loc loc = Loc::current());

  /// Returns the host time spent on the device so far, for all programs on it. Call it before and
  /// after some steps and subtract.
  [[nodiscard]] HostTimes host_times() const;

  /// Returns the dynamic sizes with a compiled program: CompileOptions::dynamic_size, then the
  /// others, most recently used first. Empty if no input is dynamic.
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes(Loc loc = Loc::current()) const;

  /// Returns the graph of a training step. GraphStage::kTraced retraces the loss function;
  /// GraphStage::kSimplified is the graph of the compiled program.
  [[nodiscard]] GraphView graph(GraphStage stage = GraphStage::kTraced,
                                Loc loc = Loc::current()) const;

 protected:
  // Errors of a moved-from object name it by `what`.
  Stepper(std::shared_ptr<detail::TrainerImpl> impl, std::size_t index, const char* what)
      : trainer_(std::move(impl), what), index_(index) {}
  // A trainer is copied and assigned whole, never by one of its bases.
  Stepper(const Stepper&) = default;
  Stepper(Stepper&&) = default;
  Stepper& operator=(const Stepper&) = default;
  Stepper& operator=(Stepper&&) = default;
  ~Stepper() = default;

  detail::Handle<detail::TrainerImpl> trainer_;  ///< Trainer of the loss.
  std::size_t index_;                            ///< Number of the loss in the trainer, from 0.
};

/// One of the losses of a MultiTrainer, returned by `trainer["name"]`. Movable. It can outlive the
/// trainer.
class Objective : public Stepper {
 public:
  /// Wraps an implementation; called by MultiTrainer.
  Objective(std::shared_ptr<detail::TrainerImpl> impl, std::size_t index)
      : Stepper(std::move(impl), index, "Objective") {}

  /// Returns statistics of this objective's program.
  [[nodiscard]] CompileReport report() const;

  /// Returns a text with the launch table (kernels, fused ops, shapes, bytes, source lines) and the
  /// memory plan of this objective's program.
  [[nodiscard]] std::string explain() const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
