// SPDX-License-Identifier: MIT
// Filters of parameters by name, and groups of parameters with their own training settings.
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

/// Returns the parts of `text` that the wildcards of `pattern` match, in order, or nullopt if the
/// whole text does not match. `*` matches any number of characters, as few as possible. `?` matches
/// one character.
std::optional<std::vector<std::string>> match_pattern(const std::string& pattern,
                                                      const std::string& text);

/// Selects parameters of a model by a name pattern such as `*.bias` (see match_pattern()), or by a
/// function of name and shape.
class ParamFilter {
 public:
  /// Function that returns true for the parameters to select.
  using Pick = std::function<bool(const std::string& name, const Shape& shape)>;

  /// Creates an empty filter, which selects nothing.
  ParamFilter() = default;

  /// Selects parameters whose names match a pattern.
  ParamFilter(const char* pattern) : ParamFilter(std::string(pattern)) {}  // NOLINT(*-explicit-*)
  ParamFilter(std::string pattern);                                        // NOLINT(*-explicit-*)

  /// Selects parameters for which `pick(name, shape)` returns true.
  template <class Function>
    requires(!std::same_as<Function, ParamFilter> &&
             std::predicate<const Function&, const std::string&, const Shape&>)
  ParamFilter(Function pick)  // NOLINT(*-explicit-*)
      : text_("chosen by a function"), pick_(std::move(pick)) {}

  /// Returns true unless the filter is empty.
  [[nodiscard]] bool present() const { return static_cast<bool>(pick_); }

  /// Returns true if the filter selects a parameter of this name and shape.
  [[nodiscard]] bool operator()(const std::string& name, const Shape& shape) const {
    return pick_ && pick_(name, shape);
  }

  /// Returns the pattern, or "chosen by a function".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  Pick pick_;
};

/// Rows [begin, end) of a parameter along its first axis.
struct RowRange {
  std::int64_t begin = 0;  ///< First row, counted from 0.
  std::int64_t end = 0;    ///< Row after the last one; above `begin`.
};

/// Training settings of some parameters. A parameter belongs to the first group that selects it.
/// Settings that a group leaves at their defaults are those of parameters without a group.
/// Compiling throws UserError if a filter selects no parameter, two groups have the same name, or a
/// number is negative.
struct ParamGroup {
  ParamFilter params;  ///< Parameters of the group.

  /// Name in Stepper::set(): "lr_factor.NAME" and "weight_decay.NAME". Empty: the filter's text.
  std::string name = {};

  double lr_factor = 1;  ///< Multiplies the learning rate, including `lr`.

  /// Learning rate instead of the optimizer's. Counts updates from the start of training;
  /// Stepper::set_lr() does not replace it.
  std::optional<Schedule> lr = std::nullopt;

  std::optional<double> weight_decay = std::nullopt;  ///< Weight decay instead of the optimizer's.
  bool freeze = false;  ///< Not trained: no gradients are computed and no optimizer states kept.

  /// Returns the rows of a parameter that are trained; if unset, all rows are trained. Other rows
  /// keep their values bit for bit. Their gradients count as 0 for clipping and in optim::Update.
  /// Compiling throws UserError if there are no rows, or if ranges are empty, overlap, are not in
  /// ascending order or exceed the parameter.
  std::function<std::vector<RowRange>(const std::string& name, const Shape& shape)> rows = nullptr;
};

/// Returns a group without weight decay for all parameters with fewer than two axes, such as biases
/// and the weights of norms.
ParamGroup no_weight_decay();

}  // namespace tensorgrad::inline TENSORGRAD_ABI
