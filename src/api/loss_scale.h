// SPDX-License-Identifier: MIT
// Which updates take place, and the factor on a loss, as a state of its program: nothing of it
// passes through the host.
#pragma once

#include "api/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The elements of the state: the factor on the next loss (1 where the loss has none); updates in a
// row whose gradients were finite, since it grew; updates so far whose gradients were not, and
// those that took place; and of the last step what its gradients were to be multiplied by, and
// whether (1 or 0) it changed anything. What all elements of an update need lies in one place, so
// that it is one binding.
enum class ScaleNumber { kFactor, kInARow, kSkipped, kTaken, kUnscale, kChanges };
inline constexpr std::int64_t kScaleNumbers = 6;

// The name of an objective's, whose loss has a factor or not.
std::string scale_state(const TrainedPart& trained, bool scales);
// Is it that of some objective?
bool is_scale_state(const std::string& name);
// Returns the state after `updates` updates, none of them skipped, if the loss has no factor.
std::vector<float> unscaled_state(std::int64_t updates);

class LossScaler {
 public:
  // Adds the state to the trace, which must be the thread's current one. Without options the loss
  // has no factor. Throws UserError on numbers out of range.
  LossScaler(Trace& trace, const TrainedPart& trained, const std::optional<LossScale>& options);

  // Does the loss have a factor?
  [[nodiscard]] bool scales() const { return scales_; }
  // What the loss is multiplied by, [].
  [[nodiscard]] ValueId factor() const { return factor_.id(); }
  // What the gradients are to be multiplied by, [].
  [[nodiscard]] Tensor unscale() const;
  // Sets the state from the norm of the gradients, [], and, where not all do, from which steps end
  // in an update, bool [].
  void follow(const Tensor& norm, const std::optional<Tensor>& due);
  // A number of this step's, after follow(), [].
  [[nodiscard]] Tensor number(ScaleNumber which) const;

 private:
  // The factor, of what the state says of it.
  [[nodiscard]] Tensor known(const Tensor& kept) const;
  [[nodiscard]] static Tensor element(const Tensor& state, ScaleNumber which);

  Trace& trace_;
  bool scales_;
  LossScale options_;
  Tensor old_, new_, factor_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
