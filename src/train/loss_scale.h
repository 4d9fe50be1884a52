// SPDX-License-Identifier: MIT
// Loss scaling and skipped updates. All of it is a state of the program and stays on the device.
#pragma once

#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Elements of the state. All are in one tensor, so that an update needs a single binding.
// - kFactor: the factor on the next loss; 1 without loss scaling.
// - kInARow: consecutive updates with finite gradients since the factor grew or an update was
//   skipped.
// - kSkipped: the number of updates skipped because gradients were not finite.
// - kTaken: the number of updates made.
// - kUnscale: the factor on the gradients of the last step.
// - kChanges: 1 if the last step made an update, otherwise 0.
enum class ScaleNumber { kFactor, kInARow, kSkipped, kTaken, kUnscale, kChanges };
inline constexpr std::int64_t kScaleNumbers = 6;

// Returns the state name of an objective. `scales`: its loss has a factor.
std::string scale_state(const ParameterRange& trained, bool scales);
// True if `name` is such a state of any objective.
bool is_scale_state(const std::string& name);
// Returns the state after `updates` updates without a skipped one, for a loss without a factor.
std::vector<float> unscaled_state(std::int64_t updates);

class LossScaler {
 public:
  // Adds the state to the trace, which must be the current one of the thread. Without options, the
  // loss has no factor. Throws UserError if an option is out of range.
  LossScaler(Trace& trace, const ParameterRange& trained, const std::optional<LossScale>& options);

  // True if the loss has a factor.
  [[nodiscard]] bool scales() const { return scales_; }
  // Returns the factor on the loss, [].
  [[nodiscard]] ValueId factor() const { return factor_.id(); }
  // Returns the factor on the gradients, [].
  [[nodiscard]] Tensor unscale() const;
  // Updates the state from the norm of the gradients, []. `due`, bool [], says whether this step
  // ends in an update; null: always.
  void follow(const Tensor& norm, const std::optional<Tensor>& due);
  // Returns an element of the state after this step, []. Call it after follow().
  [[nodiscard]] Tensor number(ScaleNumber which) const;

 private:
  // Returns the factor: the initial scale if `kept`, the element of the state, is 0.
  [[nodiscard]] Tensor known(const Tensor& kept) const;
  [[nodiscard]] static Tensor element(const Tensor& state, ScaleNumber which);

  Trace& trace_;
  bool scales_;
  LossScale options_;
  Tensor old_, new_, factor_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
