// SPDX-License-Identifier: MIT
// Options of compile(), compile_function() and their calls, and the result types they return.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/nn/module.h"
#include "tensorgrad/optim/optimizers.h"
#include "tensorgrad/train/device.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/profile.h"
#include "tensorgrad/train/recovery.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Communicator;

/// Dynamic loss scaling against underflow of f16 gradients, with the names and defaults of
/// `torch.amp.GradScaler`. The loss is multiplied by a factor, and the gradients are divided by it
/// before anything else uses them. A factor that is a power of two leaves them bit-identical.
///
/// If the norm of an update's gradients is infinite or NaN, the update changes no parameter and no
/// optimizer state, and the factor is multiplied by `backoff_factor`. After `growth_interval`
/// successful updates in a row it is multiplied by `growth_factor`. It never falls below 2^-100.
/// The factor is part of the program's state and of checkpoints. Compiling throws UserError if a
/// value is out of range.
struct LossScale {
  double init_scale = 65536;    ///< Initial factor, in [2^-100, 2^100].
  double growth_factor = 2;     ///< Greater than 1.
  double backoff_factor = 0.5;  ///< In (0, 1]; with 1 the factor never falls.
  int growth_interval = 2000;   ///< Number of updates; with 0 the factor never grows.
};

/// Options of compile() for one loss. Only `optimizer` is required. Compiling throws UserError if a
/// value is out of range.
struct CompileOptions {
  /// Inputs passed to each step. A size may be kDynamic; it is the same in all inputs of a step.
  std::vector<InputSpec> inputs = {};

  /// Size of the dynamic dimension (kDynamic) of `inputs` that is compiled first, by compile(), and
  /// never evicted; BatchNorm needs at least 2. The step is compiled once for each size that
  /// occurs. The programs share parameters, states of the model and the optimizer, and the count of
  /// steps; each has its own working memory, which `memory_budget` limits separately. To bound
  /// their number, pad inputs to a few sizes (padded_size()) and mask the padding in the loss.
  std::int64_t dynamic_size = 1;

  int max_cached_sizes = 8;  ///< Number of other sizes kept, least recently used evicted first.

  /// Inputs kept on the device, each of shape [N, ...] with the same N. TrainerBase::upload_data()
  /// fills them. Each step draws a batch [batch, ...] without replacement. The last N % batch
  /// samples of an epoch are skipped.
  std::vector<InputSpec> dataset = {};

  std::int64_t batch = 0;    ///< Batch size for `dataset`, from 1 to N; 0 without a dataset.
  bool shuffle = true;       ///< Reshuffles `dataset` in each epoch; false: in order.
  Optimizer optimizer = {};  ///< Required; for example optim::AdamW.
  std::vector<ParamGroup> groups = {};  ///< Parameters with their own settings, or frozen.

  /// Parameters whose gradients are normalized, each by its own norm: g / (|g| + 1e-8). Gradients
  /// are processed in this order: mean over `accumulate` steps, `normalize_grads`,
  /// `clip_grad_value`, `clip_grad_norm`.
  ParamFilter normalize_grads = {};

  double clip_grad_value = 0;  ///< Clamps each gradient element to [-value, value]; 0: off.

  /// Limits the norm of all gradients together by scaling them with min(1, max / (norm + 1e-6)), as
  /// `torch.nn.utils.clip_grad_norm_`. 0: off.
  double clip_grad_norm = 0;

  /// Skips updates with non-finite gradients. If the norm of the gradients is infinite or NaN, the
  /// update changes no parameter and no optimizer state. It does not count for the optimizer (bias
  /// corrections, the first update of an EMA), but it does for schedules. Stepper::grad_norm()
  /// shows whether it happened, and Stepper::skipped_updates() how often.
  bool skip_nonfinite = false;

  /// Gradient accumulation: number of steps whose gradients are averaged for one update. Parameters
  /// change in every n-th step. Schedules and the optimizer count updates.
  int accumulate = 1;

  /// Decay of an exponential moving average (EMA) of the parameters, in [0, 1); 0: off. The average
  /// starts as the parameters after the first update. Each further update adds (1 - ema_decay) *
  /// (parameter - average) to it, like `torch.optim.swa_utils.get_ema_multi_avg_fn`.
  double ema_decay = 0;

  /// Rounds the operands of matrix products, convolutions and attention in the loss function to
  /// f16, as Autocast does. Their results are f16; sums are accumulated in f32. Parameters, their
  /// gradients and the optimizer states stay f32.
  bool mixed_precision = false;

  /// Loss scaling. If unset, `LossScale{}` applies with `mixed_precision`, and none without it.
  std::optional<LossScale> loss_scale = {};

  std::uint32_t seed = 0;  ///< Seed of initial values, random ops and the order of the data.

  /// Overrides the initial values of parameters. It is called for every parameter in model order,
  /// by compile() and TrainerBase::reset(). They throw ShapeError naming the parameter if the
  /// returned values do not match its shape.
  InitFunction initial = {};

  DeviceOptions device = {};       ///< Device that runs the steps.
  std::int64_t memory_budget = 0;  ///< Bytes; compile() throws UserError above it. 0: no limit.
  RecoveryOptions recovery = {};   ///< Recovery from a lost device.

  /// Trains on several ranks, each with the same program on its part of the data: tg::Mpi{} of
  /// distributed/mpi.h, or a member of make_thread_group(). Updates use the mean gradient of all
  /// ranks, and losses are means too. `batch` and the inputs are those of one rank. All ranks make
  /// the same calls of the trainer. Not supported with several objectives, snapshots of
  /// `recovery`, `detect_nan`, Stepper::step_for() and Stepper::profile().
  std::shared_ptr<Communicator> distributed = {};

  /// Divides the optimizer's states among the ranks of `distributed`, as in stage 1 of ZeRO
  /// (Rajbhandari et al. 2020). Each rank keeps the states and the averages of its part of the
  /// parameters and updates this part, which the ranks then exchange. Losses, parameters and
  /// checkpoints are those of training without it. All ranks must then also make the calls that
  /// download optimizer states or averages. Compiling throws UserError if `distributed` is not set
  /// or the optimizer is not elementwise, such as optim::Muon.
  bool shard_optimizer = false;

  /// Divides parameters and gradients among the ranks as well, as in stage 3 of ZeRO (Rajbhandari
  /// et al. 2020), also known as fully sharded data parallel training. It implies
  /// `shard_optimizer`. Between steps, a rank keeps only its part of the parameters. In a step, the
  /// ranks exchange buckets of consecutive parameters, of at most Communicator::bucket_bytes(),
  /// just before they are used in the forward pass, and again in the backward pass. Checkpoints are
  /// those of training without it. All ranks must also make the calls that download parameters, and
  /// those of attached functions. Compiling throws UserError as with `shard_optimizer`, and with
  /// `normalize_grads`.
  bool shard_parameters = false;

  /// Called before each pass of a compile, and periodically during a pass. If it returns false, the
  /// compile throws AbortedError. It must not call the trainer. Recovery from a lost device
  /// compiles again.
  CompileWatcher progress = {};

  /// Throws UserError if an integer input or dataset entry that is used as an index is out of
  /// range. If false, kernels read 0 and drop writes for such indices.
  bool check_indices = true;

  /// Debugging aid, slow: if a step's loss is infinite or NaN, throws UserError naming the first op
  /// with a non-finite result and its source line. The step is recomputed op by op on the host in
  /// double precision. Stepper::submit() is not available.
  bool detect_nan = false;
};

/// Options that all objectives of a MultiTrainer share.
struct TrainerOptions {
  /// Seed of the initial values. Objective k, counted from 0, draws its random numbers and its
  /// order of the data like a single trainer with the seed (seed + k * 0x9e3779b9) mod 2^32.
  std::uint32_t seed = 0;

  DeviceOptions device = {};       ///< Device that runs the steps of all objectives.
  std::int64_t memory_budget = 0;  ///< Bytes for all objectives together; 0: no limit.
  InitFunction initial = {};       ///< See CompileOptions::initial.
  RecoveryOptions recovery = {};   ///< See CompileOptions::recovery.
};

/// Parameters that an attached function reads.
enum class WeightSource {
  kTrained,  ///< The trained parameters.
  kEma,      ///< Averages (CompileOptions::ema_decay); for parameters without one, like kTrained.
};

/// Options of compile_function() and attach().
struct FunctionOptions {
  std::vector<InputSpec> inputs = {};  ///< Inputs passed to each run. A size may be kDynamic.
  DeviceOptions device = {};  ///< For compile_function(); attach() uses the trainer's device.

  /// Seed of initial values and random ops. Its random numbers differ from those of training steps
  /// with the same seed. If unset: 0 for compile_function(); for attach(), derived from the
  /// trainer's seed and the number of functions attached before.
  std::optional<std::uint32_t> seed = {};

  InitFunction initial = {};       ///< For compile_function(); see CompileOptions::initial.
  CompileWatcher progress = {};    ///< See CompileOptions::progress; also for further sizes.
  std::int64_t memory_budget = 0;  ///< See CompileOptions::memory_budget.
  bool check_indices = true;       ///< See CompileOptions::check_indices.
  WeightSource weights = WeightSource::kTrained;  ///< For attach().
  bool mixed_precision = false;  ///< See CompileOptions; attach() does not inherit it.
  bool training = false;         ///< Value of is_training() in the function; true enables dropout.

  /// Size of the dynamic dimension (kDynamic) that is compiled first and never evicted. The
  /// function is compiled once for each size that occurs, and each program has its own working
  /// memory.
  std::int64_t dynamic_size = 1;

  int max_cached_sizes = 8;  ///< Number of other sizes kept, least recently used evicted first.
};

/// Options of one step or run.
struct StepOptions {
  std::vector<std::string> captures = {};  ///< Names of capture() tensors to return.
};

/// Result of a training step.
struct StepResult {
  float loss = 0;              ///< Without the factor of LossScale; the mean of all ranks.
  std::int64_t step = 0;       ///< Number of steps so far, including this one.
  NamedTensors captures = {};  ///< The requested captures.
};

/// Result of Stepper::try_step().
struct StepOutcome {
  /// Status of a call that has ended.
  enum class Status {
    kCompleted,  ///< The result is set.
    kAborted,    ///< It was stopped by abort().
    kFailed      ///< It failed with another error.
  };
  Status status = Status::kCompleted;  ///< Outcome of the step.
  StepResult result = {};              ///< Set if the step completed.
  std::string error = {};              ///< Otherwise, the exception's `what()`.

  /// Returns true if the step completed.
  [[nodiscard]] bool completed() const { return status == Status::kCompleted; }
};

/// Result of CompiledFunction::try_run().
struct RunOutcome {
  /// Status of a run.
  using Status = StepOutcome::Status;
  Status status = Status::kCompleted;  ///< Outcome of the run.
  NamedTensors outputs = {};           ///< Set if the run completed.
  std::string error = {};              ///< Otherwise, the exception's `what()`.

  /// Returns true if the run completed.
  [[nodiscard]] bool completed() const { return status == Status::kCompleted; }
};

/// Options of uploads.
struct UploadOptions {
  bool partial = false;  ///< Keeps tensors that are not passed instead of throwing UserError.
};

/// Rule that renames tensors of a file and permutes their axes.
struct NameRule {
  std::string pattern;      ///< Pattern of names in the file, see match_pattern().
  std::string replacement;  ///< New name; its i-th wildcard stands for the i-th one of `pattern`.

  /// Axes of the permutation, as for permute(). Use {1, 0} for matrices stored as [in, out], and
  /// {3, 2, 0, 1} for convolutions stored as [kH, kW, in, out]. Empty: unchanged.
  std::vector<int> permute = {};
};

/// Options of read_weights(), CompiledFunction::import_weights() and TrainerBase::import_weights().
struct ImportOptions {
  std::vector<NameRule> names = {};      ///< The first rule that matches applies; else no change.
  std::vector<std::string> ignore = {};  ///< Patterns of names in the file to skip.

  /// Keeps parameters and buffers that are not in the file, and allows rules that match nothing.
  bool partial = false;
};

/// Options of TrainerBase::reset().
struct ResetOptions {
  bool params = true;  ///< Parameters and model states, to their initial values.

  /// Optimizer states, averages, loss scale, step, epoch, learning-rate schedule and data loaders.
  bool optimizer = true;
};

/// Options of TrainerBase::save().
struct SaveOptions {
  /// Entries for the metadata of the file, by key, in UTF-8, such as the settings of the program.
  /// read_metadata() returns them; load() ignores them. Keys that start with `tensorgrad.` are
  /// reserved.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

/// Statistics of a compiled program.
struct CompileReport {
  double milliseconds = 0;      ///< Compile time, without building the device's kernels.
  int launches = 0;             ///< Kernel launches per step or run.
  std::int64_t peak_bytes = 0;  ///< Device memory of all buffers.

  /// Host memory of the trainer's snapshot (RecoveryOptions), of its copies of dataset entries and
  /// of the inputs that it keeps now; 0 without snapshots.
  std::int64_t snapshot_bytes = 0;
  /// Host memory through which a GPU exchanges gradients with other ranks. With
  /// CompileOptions::shard_parameters, that of a step on any device.
  std::int64_t exchange_bytes = 0;

  /// Device memory of the optimizer's states, of accumulated gradients and of averages, on this
  /// rank. It is a part of `peak_bytes`, and 0 for functions.
  std::int64_t optimizer_bytes = 0;
  /// Value of `optimizer_bytes` without CompileOptions::shard_optimizer.
  std::int64_t unsharded_optimizer_bytes = 0;
  /// Device memory of the parameters that this rank keeps between steps. It is a part of
  /// `peak_bytes`, and 0 for functions.
  std::int64_t parameter_bytes = 0;
  /// Value of `parameter_bytes` without CompileOptions::shard_parameters.
  std::int64_t unsharded_parameter_bytes = 0;
  std::vector<std::pair<std::string, double>> passes;  ///< Name and milliseconds of each pass.
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
