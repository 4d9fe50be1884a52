// SPDX-License-Identifier: MIT
// Picking some of a model's parameters, and what is special about them.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/optim/schedule.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What the wildcards of `pattern` meet in `text`, in order: '*' any characters, as few as can be,
// '?' one. Nothing where it does not match.
std::optional<std::vector<std::string>> match_pattern(const std::string& pattern,
                                                      const std::string& text);

// Some of a model's parameters: those whose names match a pattern ("*.bias"), or those that a
// function of name and shape picks.
class ParamFilter {
 public:
  using Pick = std::function<bool(const std::string& name, const Shape& shape)>;

  ParamFilter() = default;                                                 // none
  ParamFilter(const char* pattern) : ParamFilter(std::string(pattern)) {}  // NOLINT(*-explicit-*)
  ParamFilter(std::string pattern);                                        // NOLINT(*-explicit-*)
  template <class Function>
    requires(!std::same_as<Function, ParamFilter> &&
             std::predicate<const Function&, const std::string&, const Shape&>)
  ParamFilter(Function pick)  // NOLINT(*-explicit-*)
      : text_("chosen by a function"), pick_(std::move(pick)) {}

  [[nodiscard]] bool present() const { return static_cast<bool>(pick_); }
  [[nodiscard]] bool operator()(const std::string& name, const Shape& shape) const {
    return pick_ && pick_(name, shape);
  }
  // The pattern, or "chosen by a function".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  Pick pick_;
};

// Rows `begin` to `end` - 1 of a parameter's first axis.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};

// Parameters that are trained differently. A parameter belongs to the first group that picks it;
// what a group leaves open is as for the parameters of no group.
struct ParamGroup {
  ParamFilter params;
  // What Trainer::set() calls it: "lr_factor.NAME", "weight_decay.NAME". Empty: the filter's text.
  std::string name = {};
  double lr_factor = 1;                       // times the learning rate
  std::optional<Schedule> lr = std::nullopt;  // instead of the optimizer's; Trainer::set_lr() does
                                              // not change it
  std::optional<double> weight_decay = std::nullopt;  // where the optimizer has one
  bool freeze = false;  // not trained: no gradient is computed, no optimizer state kept
  // Which rows of a picked parameter are trained: the others keep every bit, their gradients count
  // as 0 for clipping and for the optimizer, and what an Update sees. None: all of them. Throws
  // UserError, when it is compiled, where ranges are empty, not in the parameter or not in order.
  std::function<std::vector<RowRange>(const std::string& name, const Shape& shape)> rows = nullptr;
};

// No weight decay for biases and norms: for every parameter with fewer than two axes.
ParamGroup no_weight_decay();

}  // namespace tensorgrad::inline TENSORGRAD_ABI
