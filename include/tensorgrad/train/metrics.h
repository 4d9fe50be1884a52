// SPDX-License-Identifier: MIT
// Metrics of classifiers, from predictions on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Counts the predictions of a classifier by true and predicted class, batch by batch:
/// ```cpp
/// tg::ConfusionMatrix matrix(10);
/// for (const auto& [x, labels] : batches) matrix.add(labels, forward({{"x", x}}).floats());
/// std::cout << matrix.accuracy() << ' ' << matrix.macro_f1() << '\n';
/// ```
/// A ratio whose denominator is 0 is NaN. Not safe for concurrent calls.
class ConfusionMatrix {
 public:
  /// Starts with zero counts. Throws UserError unless `classes` is between 1 and 30,000; the matrix
  /// has classes^2 counts.
  explicit ConfusionMatrix(std::int64_t classes);

  /// Counts one prediction. Throws UserError if a class is out of range.
  void add(std::int64_t label, std::int64_t predicted);

  /// Counts a batch: `labels` [N] and `scores` [N, classes] as logits, log probabilities or
  /// probabilities. The largest score is the prediction; of equal ones, the first. Throws UserError
  /// if the sizes do not match, if a label is out of range, or if a score is NaN. Nothing is
  /// counted if it throws.
  void add(std::span<const std::int32_t> labels, std::span<const float> scores);

  [[nodiscard]] std::int64_t classes() const { return classes_; }  ///< Number of classes.
  [[nodiscard]] std::int64_t total() const;                        ///< Number of predictions.

  /// Returns all counts, [true class, predicted class].
  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }

  /// Returns the number of predictions `predicted` of a class. Throws UserError if a class is out
  /// of range.
  [[nodiscard]] std::int64_t count(std::int64_t label, std::int64_t predicted) const;

  /// Returns the fraction of predictions that are right.
  [[nodiscard]] double accuracy() const;

  /// Returns the fraction of the predictions of a class that are right. Throws UserError if the
  /// class is out of range.
  [[nodiscard]] double precision(std::int64_t of_class) const;

  /// Returns the fraction of a true class that is predicted as such. Throws the errors of
  /// precision().
  [[nodiscard]] double recall(std::int64_t of_class) const;

  /// Returns the harmonic mean of precision and recall: 2 * right / (true + predicted). Throws the
  /// errors of precision().
  [[nodiscard]] double f1(std::int64_t of_class) const;

  /// Returns the mean of f1() over the classes that are a label or a prediction, like `f1_score()`
  /// of scikit-learn with `average="macro"`.
  [[nodiscard]] double macro_f1() const;

 private:
  [[nodiscard]] std::size_t index(std::int64_t label, std::int64_t predicted) const;
  // Number of examples of a class, and number of predictions of it.
  [[nodiscard]] std::int64_t labelled(std::int64_t of_class) const;
  [[nodiscard]] std::int64_t predicted(std::int64_t of_class) const;

  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
