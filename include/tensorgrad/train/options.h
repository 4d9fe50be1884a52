// SPDX-License-Identifier: MIT
// What compile(), a step and their kin may be told, and what they tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/train/device.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/nn/module.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/optim/optimizers.h"

namespace tensorgrad {

// A factor on the loss, so that gradients which f16 has no numbers for get some; the gradients are
// divided by it before anything else is done to them. (torch.amp.GradScaler.) The factor is a state
// of the program: an update whose gradients' norm is infinite or NaN changes no parameter and no
// state of the optimizer, and the factor falls; after `growth_interval` updates in a row without
// one it grows. Powers of two change no bit of a gradient. It does not fall below 2^-100.
struct LossScale {
  double init_scale = 65536;
  double growth_factor = 2;     // more than 1
  double backoff_factor = 0.5;  // more than 0, at most 1 (it stays)
  int growth_interval = 2000;   // 0: it never grows
};

struct CompileOptions {
  std::vector<InputSpec> inputs = {};  // given anew for each step
  // Kept on the device: [N, ...], the same N for all. The function sees batches [batch, ...] of
  // them, drawn without repetition in an order that is shuffled anew for each epoch.
  std::vector<InputSpec> dataset = {};
  std::int64_t batch = 0;  // with `dataset`
  bool shuffle = true;     // with `dataset`
  Optimizer optimizer = {};
  std::vector<ParamGroup> groups = {};  // parameters that are trained differently, or not at all
  // What is done to the gradients, in this order, before the optimizer sees them:
  ParamFilter normalize_grads = {};  // of these parameters each: g / (norm of g + 1e-8)
  double clip_grad_value = 0;        // each element into [-this, this]; 0: off
  double clip_grad_norm = 0;         // scale all so that their norm is at most this; 0: off
  // An update whose gradients' norm is infinite or NaN changes no parameter and no state of the
  // optimizer. It counts as a step; Trainer::grad_norm() tells.
  bool skip_nonfinite = false;
  // Steps whose gradients are averaged for one update. Parameters change in every n-th step;
  // schedules and the optimizer count updates.
  int accumulate = 1;
  // Keep an average of the parameters, as torch.optim.swa_utils.get_ema_multi_avg_fn: the first
  // update's, then average += (1 - ema_decay) * (parameter - average). 0: off; less than 1.
  double ema_decay = 0;
  // The loss function's products take operands rounded to f16 and give f16, as Autocast says; sums
  // within them, the parameters, their gradients and the optimizer's states stay f32.
  bool mixed_precision = false;
  std::optional<LossScale> loss_scale = {};  // none: LossScale{} with mixed_precision, else off
  std::uint32_t seed = 0;  // of initial values, of random ops and of the order of data
  // Is asked about every parameter, in the order of the model, when the initial values are made: at
  // the beginning, and by reset(). Throws ShapeError, naming the parameter, where it gives what
  // does not fit, such as another number of values.
  InitFunction initial = {};
  DeviceOptions device = {};
  std::int64_t memory_budget = 0;  // bytes; refuse to compile a program that needs more; 0: none
  bool check_indices = true;       // refuse integer inputs that are out of a gather's range
  bool detect_nan = false;  // find the op that first gives NaN or infinity (slow; no submit())
};

// What the objectives of one trainer have in common.
struct TrainerOptions {
  // Of initial values. Objective k, counted from 0, draws its random numbers and its order of data
  // as a trainer of seed + k * 0x9e3779b9 (modulo 2^32) does.
  std::uint32_t seed = 0;
  DeviceOptions device = {};
  std::int64_t memory_budget = 0;  // bytes, of all together; 0: none
  InitFunction initial = {};       // as CompileOptions'
};

// Whose parameters an attached function reads.
enum class Weights {
  kTrained,
  kEma,  // CompileOptions::ema_decay's averages; parameters that have none as they are
};

struct ForwardOptions {
  std::vector<InputSpec> inputs = {};
  DeviceOptions device = {};  // of compile_forward; attach() shares the trainer's
  // Of initial values and of random ops, which draw otherwise than steps do. Not given: 0; with
  // attach() one of the function's own, made of the trainer's and of how many were attached before.
  std::optional<std::uint32_t> seed = {};
  InitFunction initial = {};  // of compile_forward, as CompileOptions'
  std::int64_t memory_budget = 0;
  bool check_indices = true;
  Weights weights = Weights::kTrained;  // of attach()
  bool mixed_precision = false;         // as CompileOptions': what a trainer's step computes
  bool training = false;  // what is_training() says in the function: with dropout and so on
  // Where inputs have an open size (kOpen), the function is compiled for each size that comes, with
  // memory of its own. For `open_size` that is done at once, and kept; of others, the `kept_sizes`
  // used last are.
  std::int64_t open_size = 1;
  int kept_sizes = 8;
};

// Of one step or run.
struct StepOptions {
  std::vector<std::string> captures = {};  // names that capture() has given to tensors
};

struct StepResult {
  float loss = 0;
  std::int64_t step = 0;  // steps done so far, this one included
  Outputs captures = {};  // those that were asked for
};

// What became of a step that does not throw.
struct StepOutcome {
  enum class Status { kCompleted, kAborted, kFailed };
  Status status = Status::kCompleted;
  StepResult result = {};  // completed
  std::string error = {};  // aborted, failed: as Error::what()
  [[nodiscard]] bool completed() const { return status == Status::kCompleted; }
};

// What became of a run of a function that does not throw.
struct RunOutcome {
  using Status = StepOutcome::Status;
  Status status = Status::kCompleted;
  Outputs outputs = {};    // completed
  std::string error = {};  // aborted, failed: as Error::what()
  [[nodiscard]] bool completed() const { return status == Status::kCompleted; }
};

struct UploadOptions {
  bool partial = false;  // what is not given stays
};

struct ResetOptions {
  bool params = true;     // parameters and the model's own states, to their initial values
  bool optimizer = true;  // the optimizer's states, step 0, the first epoch, the first schedule
};

// How a program was compiled, for people and tests.
struct CompileReport {
  double milliseconds = 0;
  int launches = 0;
  std::int64_t peak_bytes = 0;  // of all buffers of the device that its steps or runs have
  std::vector<std::pair<std::string, double>> passes;  // name, milliseconds
};

}  // namespace tensorgrad
