// SPDX-License-Identifier: MIT
// An optimizer's view of its part of the parameter arena; its states are laid out like it.
#pragma once

#include "api/parameters.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Names of the run-time scalars that the trainer sets each step.
inline constexpr const char* kLrScalar = "_lr";
inline constexpr const char* kCountScalar = "_t";
inline std::string group_lr_scalar(int group) { return kLrScalar + std::to_string(group); }
// Does the group have a learning rate that is not the common one?
bool has_own_lr(const ParamGroup& group);
// Names of scalars that are the user's to set.
inline constexpr const char* kLrFactorPrefix = "lr_factor.";
inline constexpr const char* kDecayScalar = "weight_decay";

class ArenaUpdate final : public optim::Update {
 public:
  // Within the trace; `grads` are those of the part's entries. Of what else lies within the part
  // the optimizer sees zeros, and changes nothing.
  ArenaUpdate(Trace& trace, const TrainedPart& trained, const std::vector<ParamGroup>& groups,
              const std::vector<ValueId>& grads);

  Tensor state(const std::string& name, double initial) override;
  void set_state(const std::string& name, Tensor value) override;
  void set_param(Tensor value) override;
  std::optional<Tensor> weight_decay(double initial) override;
  Tensor per_update(const std::string& name,
                    std::function<double(std::int64_t update)> value) override;
  Tensor hyperparameter(const std::string& name, const optim::Hyperparameter& number, double below,
                        const std::function<double(double)>& of) override;
  [[nodiscard]] const std::vector<ParamInfo>& param_infos() const override { return params_; }
  Tensor param_view(const Tensor& flat, std::size_t index) override;
  Tensor flatten(const std::vector<Tensor>& params) override;
  Tensor mask(const ParamFilter& filter) override;

  // [], set by the trainer for each step.
  [[nodiscard]] Tensor host_scalar(const std::string& name) const;
  // From now on states and parameters change only where this bool [] holds.
  void change_only_if(const Tensor& condition);
  // The same in the place of what was said before.
  void only_if(const Tensor& condition) { condition_ = condition; }
  // What set_param() was given; null before.
  [[nodiscard]] const std::optional<Tensor>& new_param() const { return new_param_; }

 private:
  [[nodiscard]] Attrs flat_attrs(const std::string& name) const;
  // One of `values` for each range of the part, at its elements.
  [[nodiscard]] Tensor by_range(const std::vector<Tensor>& values) const;
  [[nodiscard]] Tensor gated(const Tensor& value, const Tensor& old) const;
  // bool: is an element of a row that ParamGroup::rows says? None where no group does.
  [[nodiscard]] std::optional<Tensor> trained_rows() const;

  Trace& trace_;
  const TrainedPart& trained_;
  const std::vector<ParamGroup>& groups_;
  mutable Builder builder_;
  std::vector<ParamInfo> params_;
  Ex param_leaf_;
  std::optional<Tensor> own_;   // which elements are of its own parameters; none where all are
  std::optional<Tensor> rows_;  // which of those are trained; none where all are
  std::optional<Tensor> condition_, new_param_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
