// SPDX-License-Identifier: MIT
// Calls of a compiled trainer and its objectives: stepping, data, parameters and checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/data/onnx.h"
#include "tensorgrad/data/weights.h"
#include "tensorgrad/train/compiled_function.h"
#include "tensorgrad/train/data_loader.h"
#include "tensorgrad/train/device_tensor.h"
#include "tensorgrad/train/graph_view.h"
#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {

class TrainerImpl;
class CompiledFunctionImpl;

// A model, and access to its fields.
struct ModelFunctions {
  std::function<void(ParameterVisitor&)> visit;
  std::shared_ptr<const void> owner;  // keeps the model alive at its address
};
using TraceFunction = std::function<std::map<std::string, Tensor>(const Inputs&)>;

// One loss of a trainer with its training options.
struct ObjectiveSource {
  std::string name;  // empty if it is the only one
  TraceFunction loss;
  ParamFilter params;  // empty: all
  CompileOptions options;
};

// Creates a trainer. Replaces seed, device and memory budget of the objectives by the trainer's.
std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model,
                                          std::vector<ObjectiveSource> objectives, bool named,
                                          const TrainerOptions& options, SourceLocation location);
// Creates a trainer like `old` for another model. `losses` has the same order as the objectives of
// `old`. With `keep`, copies parameters of equal name and shape and model states of equal name and
// type.
std::shared_ptr<TrainerImpl> replace_trainer(TrainerImpl& old, ModelFunctions model,
                                             std::vector<TraceFunction> losses, bool keep,
                                             SourceLocation location);
// Compile a function on its own device, or on that of a trainer with the trainer's parameters.
std::shared_ptr<CompiledFunctionImpl> make_function(ModelFunctions model, TraceFunction forward,
                                                    const FunctionOptions& options,
                                                    SourceLocation location);
std::shared_ptr<CompiledFunctionImpl> attach_function(TrainerImpl& trainer, TraceFunction forward,
                                                      const FunctionOptions& options,
                                                      SourceLocation location);

}  // namespace detail

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
  StepResult step(const Feed& inputs = {}, const StepOptions& options = {},
                  Loc loc = Loc::current());

  /// Like step(), but returns errors as part of the result instead of throwing them.
  StepOutcome try_step(const Feed& inputs = {}, const StepOptions& options = {},
                       Loc loc = Loc::current());

  /// Runs launches of a step for `seconds`, as many as fit by what they took before, but at least
  /// one. Returns the step's result once it is complete, else nothing. For programs that train
  /// between frames:
  /// ```cpp
  /// if (auto done = trainer.step_for(0.002, inputs)) show(done->loss);  // each frame
  /// ```
  /// The first call starts the step on `inputs`, as step(); the calls that continue it ignore
  /// theirs. Other calls of the trainer, its objectives and attached functions finish the step
  /// first; the next step_for() then returns its result. There are no captures.
  ///
  /// Throws as step(), and UserError if `seconds` is negative or CompileOptions::detect_nan is set.
  std::optional<StepResult> step_for(double seconds, const Feed& inputs = {},
                                     Loc loc = Loc::current());

  /// Discards the step that step_for() started, unless it has begun to change parameters or states.
  /// Returns true if it was discarded, and false if there is none or it must be finished.
  bool cancel_step();

  /// Runs `count` steps on the dataset or on bound inputs, and returns their losses. Throws
  /// UserError if a dataset entry has not been uploaded, an input is not bound (see bind_input()),
  /// or `count` is negative. Throws AbortedError if TrainerBase::abort() is called meanwhile;
  /// losses() then returns the losses of the completed steps.
  std::vector<float> run(int count, Loc loc = Loc::current());

  /// Queues `count` steps without waiting for their results. A GPU runs them asynchronously; the
  /// call blocks only while too many steps are in flight. The CPU runs them inside the call. Throws
  /// as run(), and UserError if CompileOptions::detect_nan is set.
  void submit(int count, Loc loc = Loc::current());

  /// Binds an input to a buffer of the application, as CompiledFunction::bind_input(). run() and
  /// submit() require that all inputs are bound.
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

  /// Returns the number of updates that loss scaling skipped because the gradients were not finite.
  /// Throws UserError unless `mixed_precision` or `loss_scale` is set.
  [[nodiscard]] std::int64_t skipped_updates(Loc loc = Loc::current()) const;

  /// Returns the names of all captures in the loss function.
  [[nodiscard]] std::vector<std::string> captures(Loc loc = Loc::current()) const;

  /// Returns the gradients of the last step by parameter, for all parameters that this loss trains.
  /// They are the gradients of that step's unscaled loss, before accumulation, normalization and
  /// clipping.
  [[nodiscard]] std::map<std::string, HostTensor> download_grads(Loc loc = Loc::current()) const;

  /// Runs ProfileOptions::steps real training steps on the same inputs and returns the median cost
  /// of each launch. Throws as step(), and UserError if `steps` is less than 1.
  Profile profile(const Feed& inputs = {}, const ProfileOptions& options = {},
                  Loc loc = Loc::current());

  /// Returns the host time spent on the device so far, for all programs on it. Call it before and
  /// after some steps and subtract.
  [[nodiscard]] HostTimes host_times() const;

  /// Returns the graph of a training step. GraphStage::kTraced retraces the loss function;
  /// GraphStage::kSimplified is the graph of the compiled program.
  [[nodiscard]] GraphView graph(GraphStage stage = GraphStage::kTraced,
                                Loc loc = Loc::current()) const;

 protected:
  Stepper(std::shared_ptr<detail::TrainerImpl> impl, std::size_t index)
      : trainer_(std::move(impl), "Trainer"), index_(index) {}
  // A trainer is copied and assigned whole, never by one of its bases.
  Stepper(const Stepper&) = default;
  Stepper(Stepper&&) = default;
  Stepper& operator=(const Stepper&) = default;
  Stepper& operator=(Stepper&&) = default;
  ~Stepper() = default;

  detail::Handle<detail::TrainerImpl> trainer_;
  std::size_t index_;
};

/// One of the losses of a MultiTrainer, returned by `trainer["name"]`. Movable. It can outlive the
/// trainer.
class Objective : public Stepper {
 public:
  /// Wraps an implementation; called by MultiTrainer.
  Objective(std::shared_ptr<detail::TrainerImpl> impl, std::size_t index)
      : Stepper(std::move(impl), index) {}

  /// Returns statistics of this objective's program.
  [[nodiscard]] CompileReport report() const;

  /// Returns a text with the launch table (kernels, fused ops, shapes, bytes, source lines) and the
  /// memory plan of this objective's program.
  [[nodiscard]] std::string explain() const;
};

/// The calls of a trainer that do not depend on the type of the model: data, parameters,
/// checkpoints and reports. Base class of Trainer and MultiTrainer.
///
/// Movable. Any thread can call it. Concurrent calls of the trainer, its objectives and its
/// attached functions run sequentially. Uploads, downloads and resets take effect after the steps
/// queued before them.
class TrainerBase {
 public:
  /// Stops calls of step(), run(), submit() and profile() in other threads with an AbortedError. A
  /// call stops while it waits for its turn; run() and submit() also stop between groups of steps.
  /// Completed steps and their losses are kept. Later calls and attached functions are not
  /// affected.
  void abort();

  /// Uploads the samples of a dataset entry, shared by all objectives that declare it. Throws
  /// UserError if the name is unknown, the type or size does not match, an index is out of range,
  /// or the entry is bound to a buffer.
  void upload_data(const std::string& name, const HostView& values, Loc loc = Loc::current());

  /// Binds a dataset entry to a buffer of the application, as CompiledFunction::bind_input(). A
  /// null buffer undoes the binding, and the entry must be uploaded again.
  void bind_data(const NameRef& entry, WGPUBufferImpl* buffer);

  /// Returns the names of all parameters, in model order.
  [[nodiscard]] std::vector<std::string> parameter_names() const;

  /// Returns copies of all parameters by name.
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;

  /// Returns the averages of the parameters by name, and the parameters themselves for those
  /// without an average. Throws UserError if `ema_decay` is not set.
  [[nodiscard]] std::map<std::string, HostTensor> download_ema(Loc loc = Loc::current()) const;

  /// Sets parameters (f32) by name. All are required unless UploadOptions::partial is set. Before
  /// the first step, also sets their averages. Throws UserError if a name is missing or unknown, or
  /// a shape or dtype does not match. Nothing is changed if it throws.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const UploadOptions& options = {}, Loc loc = Loc::current());

  /// Loads parameters and buffers from a safetensors file of another library, as
  /// CompiledFunction::import_weights(). Before the first step, also sets the averages.
  void import_weights(const FileSource& source, const ImportOptions& options = {},
                      Loc loc = Loc::current());

  /// Returns the optimizer states by name, for example "exp_avg/in.weight". In a MultiTrainer,
  /// names begin with that of the objective: "actor.exp_avg/in.weight". Includes the gradients
  /// being accumulated ("grad_sum/...") and the averages ("ema/...").
  [[nodiscard]] std::map<std::string, HostTensor> download_optimizer() const;

  /// Sets optimizer states, named as by download_optimizer(). All are required unless
  /// UploadOptions::partial is set. Throws UserError if a name is missing or unknown, or a shape or
  /// dtype does not match. Nothing is changed if it throws.
  void upload_optimizer(const std::map<std::string, HostTensor>& states,
                        const UploadOptions& options = {}, Loc loc = Loc::current());

  /// Registers a data loader. save() and load() then include its position under this name, and
  /// reset() of the optimizer rewinds it. The loader must not be destroyed before the last save()
  /// or load(). Throws UserError if another loader has the name.
  void add_loader(const std::string& name, const DataLoader& loader, Loc loc = Loc::current());

  /// Resets parameters, optimizer, or both to their initial state. Run-time scalars keep their
  /// values.
  void reset(const ResetOptions& options = {});

  /// Writes a checkpoint: a safetensors file with everything that the next step depends on. These
  /// are parameters, model and optimizer states, step, seed, position in the dataset and the
  /// loaders, schedule and run-time scalars. Throws IoError if the file cannot be written, and
  /// UserError if a registered loader has been destroyed.
  void save(const FileSink& sink, Loc loc = Loc::current()) const;

  /// Returns the bytes of the checkpoint that save() writes.
  [[nodiscard]] std::vector<std::byte> save_bytes(Loc loc = Loc::current()) const;

  /// Loads a checkpoint. If the trainer was compiled from the same model and options and has the
  /// same loaders and data, training resumes bit for bit.
  ///
  /// Throws IoError if the file cannot be read, is not a checkpoint, is damaged, or has a position
  /// beyond the end of the dataset. Throws UserError if objectives, parameters, states, loaders,
  /// run-time scalars, the optimizer's name (`kName`), `batch` or `accumulate` differ. Nothing is
  /// changed if it throws.
  ///
  /// The loss, the data and constants of the optimizer, such as betas, are not compared.
  /// Checkpoints of older versions lack the optimizer's name and `batch`; these are then not
  /// compared.
  void load(const FileSource& source, Loc loc = Loc::current());

  /// Returns what was done after each loss of the device so far; see RecoveryOptions.
  [[nodiscard]] std::vector<Recovery> recoveries() const;

  /// Returns the device's kind and name and why it was chosen.
  [[nodiscard]] std::string device() const;

  /// Returns options that compile another function or trainer for the same device.
  [[nodiscard]] DeviceOptions same_device() const;

  /// Returns statistics of all objectives together.
  [[nodiscard]] CompileReport report() const;

  /// Returns a text with the launch table (kernels, fused ops, shapes, bytes, source lines) and the
  /// memory plan of every objective.
  [[nodiscard]] std::string explain() const;

 protected:
  explicit TrainerBase(std::shared_ptr<detail::TrainerImpl> impl)
      : impl_(std::move(impl), "Trainer") {}
  TrainerBase(const TrainerBase&) = default;
  TrainerBase(TrainerBase&&) = default;
  TrainerBase& operator=(const TrainerBase&) = default;
  TrainerBase& operator=(TrainerBase&&) = default;
  ~TrainerBase() = default;

  detail::Handle<detail::TrainerImpl> impl_;
};

/// A trainer of one loss without the type of its model. Every Trainer converts to it. The copy
/// shares the trainer's parameters, states and counters, but stays with the old model if
/// `replace_model()` is called on the original.
class AnyTrainer : public TrainerBase, public Stepper {
 public:
  /// Wraps an implementation; called by compile().
  explicit AnyTrainer(const std::shared_ptr<detail::TrainerImpl>& impl)
      : TrainerBase(impl), Stepper(impl, 0) {}
  AnyTrainer(const AnyTrainer&) = default;
  AnyTrainer(AnyTrainer&&) = default;
  ~AnyTrainer() = default;

 protected:
  AnyTrainer& operator=(const AnyTrainer&) = default;
  AnyTrainer& operator=(AnyTrainer&&) = default;
  void rebind(std::shared_ptr<detail::TrainerImpl> impl) {
    impl_ = {std::move(impl), "Trainer"};
    trainer_ = impl_;
  }
};

/// A trainer of several losses without the type of its model. Every MultiTrainer converts to it.
/// The copy shares the trainer's parameters, states and counters, as a copy of AnyTrainer does.
class AnyMultiTrainer : public TrainerBase {
 public:
  /// Wraps an implementation; called by compile().
  explicit AnyMultiTrainer(std::shared_ptr<detail::TrainerImpl> impl)
      : TrainerBase(std::move(impl)) {}
  AnyMultiTrainer(const AnyMultiTrainer&) = default;
  AnyMultiTrainer(AnyMultiTrainer&&) = default;
  ~AnyMultiTrainer() = default;

  /// Returns an objective by name. Throws UserError listing the objectives if the name is unknown.
  [[nodiscard]] Objective operator[](const NameRef& objective) const;

  /// Returns the names of all objectives, in the order passed to compile().
  [[nodiscard]] std::vector<std::string> objectives() const;

 protected:
  AnyMultiTrainer& operator=(const AnyMultiTrainer&) = default;
  AnyMultiTrainer& operator=(AnyMultiTrainer&&) = default;
  void rebind(std::shared_ptr<detail::TrainerImpl> impl) { impl_ = {std::move(impl), "Trainer"}; }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
