// SPDX-License-Identifier: MIT
// Calls of a compiled trainer: data, parameters and checkpoints. stepper.h has its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/train/async.h"
#include "tensorgrad/train/compiled_function.h"
#include "tensorgrad/train/data_loader.h"
#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/stepper.h"

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
// Queues an asynchronous call of the trainer, made at `location`.
void queue_call(TrainerImpl& trainer, std::shared_ptr<FutureBase> state, std::function<void()> run,
                Executor* executor, const SourceLocation& location);
// Compile a function on its own device, or on that of a trainer with the trainer's parameters.
std::shared_ptr<CompiledFunctionImpl> make_function(ModelFunctions model, TraceFunction forward,
                                                    const FunctionOptions& options,
                                                    SourceLocation location);
std::shared_ptr<CompiledFunctionImpl> attach_function(TrainerImpl& trainer, TraceFunction forward,
                                                      const FunctionOptions& options,
                                                      SourceLocation location);

}  // namespace detail

/// The calls of a trainer that do not depend on the type of the model: data, parameters,
/// checkpoints and reports. Base class of Trainer and MultiTrainer.
///
/// Movable. Any thread can call it. Concurrent calls of the trainer, its objectives and its
/// attached functions run one after another, in the order in which they are made: a call waits for
/// at most one call of each other thread. Uploads, downloads and resets take effect after the steps
/// queued before them.
class TrainerBase {
 public:
  /// Stops calls of step(), run(), submit() and profile() in other threads with an AbortedError. A
  /// call stops while it waits for its turn; run() and submit() also stop between groups of steps.
  /// Asynchronous calls of any kind that have not begun fail with the same error when their turn
  /// comes. Completed steps and their losses are kept. Later calls and attached functions are not
  /// affected.
  void abort();

  /// Queues `work()` behind the asynchronous calls made before and returns its future result, as
  /// Stepper::step_async(). Use it for calls that have no asynchronous form of their own:
  /// ```cpp
  /// tg::Future<void> saved = trainer.async([&] { trainer.save("model.safetensors"); });
  /// ```
  /// If `work` returns a reference, the future has a copy.
  template <class Work>
  auto async(Work work, Executor* executor = nullptr, Loc loc = Loc::current()) {
    using Result = std::decay_t<std::invoke_result_t<Work&>>;
    auto call = detail::prepare_call<Result>(std::move(work));
    detail::queue_call(*impl_, call.state, std::move(call.run), executor, loc);
    return Future<Result>(std::move(call.state));
  }

  /// Uploads the samples of a dataset entry, shared by all objectives that declare it. Throws
  /// UserError if the name is unknown, the type or size does not match, an index is out of range,
  /// or the entry is bound to a buffer.
  void upload_data(const std::string& name, const HostView& values, Loc loc = Loc::current());

  /// Binds a dataset entry to a buffer of the application, like CompiledFunction::bind_input(). A
  /// null buffer undoes the binding, and the entry must be uploaded again.
  void bind_data(const NameRef& entry, WGPUBufferImpl* buffer);

  /// Returns the names of all parameters, in model order.
  [[nodiscard]] std::vector<std::string> parameter_names() const;

  /// Returns copies of all parameters by name.
  [[nodiscard]] std::map<std::string, HostTensor> download_params(Loc loc = Loc::current()) const;

  /// Returns copies of the model's buffers and states by name, such as "norm.running_mean".
  /// Includes those that a loss uses.
  [[nodiscard]] std::map<std::string, HostTensor> download_buffers(Loc loc = Loc::current()) const;

  /// Returns the averages of the parameters by name, and the parameters themselves for those
  /// without an average. Throws UserError if `ema_decay` is not set.
  [[nodiscard]] std::map<std::string, HostTensor> download_ema(Loc loc = Loc::current()) const;

  /// Sets parameters (f32), buffers and states of the model by name. All parameters are required
  /// unless UploadOptions::partial is set; buffers are always optional. Before the first step, also
  /// sets the averages. Throws UserError if a name is missing or unknown, or a shape or dtype does
  /// not match. Nothing is changed if it throws.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const UploadOptions& options = {}, Loc loc = Loc::current());

  /// Loads the parameters and model states of a checkpoint, or of a file of save_weights(), and
  /// keeps step, optimizer and options of this trainer. Use it to train a model further with
  /// another optimizer or other data, and load() to resume the same training. For files with other
  /// names or only a part of the model, use import_weights(). Before the first step, also sets the
  /// averages. Throws the errors of CompiledFunction::load_params().
  void load_params(const FileSource& source, WeightSource weights = WeightSource::kTrained,
                   Loc loc = Loc::current());

  /// Loads parameters and buffers from a safetensors file: a checkpoint, a file of save_weights(),
  /// or one of another library; see CompiledFunction::import_weights(). Before the first step, also
  /// sets the averages.
  void import_weights(const FileSource& source, const ImportOptions& options = {},
                      Loc loc = Loc::current());

  /// Returns the optimizer states by name, for example "exp_avg/in.weight". In a MultiTrainer,
  /// names begin with that of the objective: "actor.exp_avg/in.weight". Includes the gradients
  /// being accumulated ("grad_sum/...") and the averages ("ema/...").
  [[nodiscard]] std::map<std::string, HostTensor> download_optimizer(
      Loc loc = Loc::current()) const;

  /// Asynchronous forms of the downloads; see Stepper::step_async().
  [[nodiscard]] Future<NamedTensors> download_params_async(Executor* executor = nullptr,
                                                           Loc loc = Loc::current()) const;
  [[nodiscard]] Future<NamedTensors> download_ema_async(Executor* executor = nullptr,
                                                        Loc loc = Loc::current()) const;
  [[nodiscard]] Future<NamedTensors> download_optimizer_async(Executor* executor = nullptr,
                                                              Loc loc = Loc::current()) const;

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
  void reset(const ResetOptions& options = {}, Loc loc = Loc::current());

  /// Writes a checkpoint: a safetensors file with everything that the next step depends on. These
  /// are parameters, model and optimizer states, step, seed, position in the dataset and the
  /// loaders, schedule and run-time scalars. Throws IoError if the file cannot be written, and
  /// UserError if a registered loader has been destroyed, or a key of the metadata is reserved,
  /// occurs twice or is not UTF-8, or a value is not UTF-8.
  void save(const FileSink& sink, const SaveOptions& options = {}, Loc loc = Loc::current()) const;

  /// Returns the bytes of the checkpoint that save() writes.
  [[nodiscard]] std::vector<std::byte> save_bytes(const SaveOptions& options = {},
                                                  Loc loc = Loc::current()) const;

  /// Writes a safetensors file with the parameters, or with their averages, and the buffers of the
  /// model under their own names. `safetensors.torch.load_file()` and `load_state_dict()` of
  /// PyTorch take it. Throws IoError if the file cannot be written, and UserError if averages are
  /// requested but `ema_decay` is not set.
  void save_weights(const FileSink& sink, WeightSource weights = WeightSource::kTrained,
                    Loc loc = Loc::current()) const;

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
  TrainerBase(std::shared_ptr<detail::TrainerImpl> impl, const char* what)
      : impl_(std::move(impl), what) {}
  TrainerBase(const TrainerBase&) = default;
  TrainerBase(TrainerBase&&) = default;
  TrainerBase& operator=(const TrainerBase&) = default;
  TrainerBase& operator=(TrainerBase&&) = default;
  ~TrainerBase() = default;

  detail::Handle<detail::TrainerImpl> impl_;  ///< State shared by copies.
};

/// A handle of a trainer of one loss, without the type of its model. Every Trainer converts to it.
/// Copies share the trainer's parameters, states and counters, but stay with the old model if
/// `replace_model()` is called on the original.
class AnyTrainer : public TrainerBase, public Stepper {
 public:
  /// Wraps an implementation; called by compile().
  explicit AnyTrainer(const std::shared_ptr<detail::TrainerImpl>& impl)
      : TrainerBase(impl, "Trainer"), Stepper(impl, 0, "Trainer") {}
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

/// A handle of a trainer of several losses, without the type of its model. Every MultiTrainer
/// converts to it. Copies share the trainer's parameters, states and counters, like those of
/// AnyTrainer.
class AnyMultiTrainer : public TrainerBase {
 public:
  /// Wraps an implementation; called by compile().
  explicit AnyMultiTrainer(std::shared_ptr<detail::TrainerImpl> impl)
      : TrainerBase(std::move(impl), "MultiTrainer") {}
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
  void rebind(std::shared_ptr<detail::TrainerImpl> impl) {
    impl_ = {std::move(impl), "MultiTrainer"};
  }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
