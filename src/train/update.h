// SPDX-License-Identifier: MIT
// Implementation of optim::Update for a part of the parameter arena. States have its layout.
#pragma once

#include "train/parameters.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Names of the runtime scalars that the trainer sets at each step.
inline constexpr const char* kLrScalar = "_lr";
inline constexpr const char* kCountScalar = "_t";
inline std::string group_lr_scalar(int group) { return kLrScalar + std::to_string(group); }
// True if the group's learning rate differs from the common one.
bool has_own_lr(const ParamGroup& group);
// Names of scalars that the user can set.
inline constexpr const char* kLrFactorPrefix = "lr_factor.";
inline constexpr const char* kDecayScalar = "weight_decay";

// Returns the name of the option that divides the states.
inline const char* shard_option(const ParameterRange& trained) {
  return trained.shards_params ? "shard_parameters" : "shard_optimizer";
}

class ArenaUpdate final : public optim::Update {
 public:
  // Must be constructed within the trace. `grads` are the gradients of the part's entries. For
  // other elements within the part, the optimizer sees zero gradients, and its changes to them are
  // discarded. `param` and `lr` have only the elements of this shard, the others those of the whole
  // part. If parameters are sharded, all have those of the shard, and `grad` is the mean over
  // the ranks. `optimizer` is named in errors.
  ArenaUpdate(Trace& trace, const ParameterRange& trained, const std::vector<ParamGroup>& groups,
              const std::vector<ValueId>& grads, std::string optimizer = "", int shard = 0);

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

  // Returns a runtime scalar, [], that the trainer sets at each step.
  [[nodiscard]] Tensor host_scalar(const std::string& name) const;
  // From now on, states and parameters change only if this bool [] is also true.
  void change_only_if(const Tensor& condition);
  // Replaces all previous conditions.
  void only_if(const Tensor& condition) { condition_ = condition; }
  // From now on, `grad`, masks and new states have only the elements of the shard. Does nothing if
  // they already do, or if there is only one shard.
  void keep_shard();
  // Returns the argument of set_param(), or null before it.
  [[nodiscard]] const std::optional<Tensor>& new_param() const { return new_param_; }

 private:
  [[nodiscard]] Attrs flat_attrs(const std::string& name, std::int64_t elements) const;
  // Returns the numbers of the elements: of the part, or of the shard.
  [[nodiscard]] Tensor element_index(bool of_shard) const;
  // Returns a bool mask of the elements from `begin` to `end` of the part: of all elements, or of
  // those of the shard.
  [[nodiscard]] Tensor between(std::int64_t begin, std::int64_t end) const;
  // Returns the mean over all ranks of the elements of the shard.
  [[nodiscard]] Tensor reduce_scatter(const std::vector<ValueId>& grads) const;
  // Throws UserError if the optimizer sees only a shard.
  void check_whole(const char* call) const;
  // Returns a tensor that has values[i] at the elements of range i.
  [[nodiscard]] Tensor by_range(const std::vector<Tensor>& values) const;
  [[nodiscard]] Tensor gated(const Tensor& value, const Tensor& old) const;
  // Returns a bool mask of the rows selected by ParamGroup::rows. Null if no group selects rows.
  [[nodiscard]] std::optional<Tensor> trained_rows() const;

  Trace& trace_;
  const ParameterRange& trained_;
  const std::vector<ParamGroup>& groups_;
  mutable Builder builder_;
  std::vector<ParamInfo> params_;
  Expr param_leaf_;
  std::string optimizer_;
  int shard_;
  std::optional<Tensor> shard_index_;  // element_index() of the shard; null if it is the whole part
  bool of_shard_ = false;              // after keep_shard()
  std::optional<Tensor> own_;          // mask of its own parameters; null if all
  std::optional<Tensor> rows_;         // mask of trained rows; null if all
  std::optional<Tensor> condition_, new_param_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
