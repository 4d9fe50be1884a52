// SPDX-License-Identifier: MIT
// How good predictions are: loss, accuracy, confusion, a table per class.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tensorgrad::cli {

inline constexpr std::int64_t kMostConfusedClasses = 1000;  // above, there is no matrix

struct Evaluation {
  std::int64_t count = 0;
  std::int64_t right = 0;
  double loss = 0;                      // mean of -log p(label)
  std::vector<std::int32_t> predicted;  // [count]
  std::vector<double> probability;      // [count], of the predicted class
  std::vector<std::int64_t> confusion;  // [true class, predicted class]; empty above the limit

  [[nodiscard]] double accuracy() const {
    return count == 0 ? 0 : static_cast<double>(right) / static_cast<double>(count);
  }
};

// `log_probabilities` is [labels.size(), classes].
Evaluation evaluate(std::span<const float> log_probabilities, std::span<const std::int32_t> labels,
                    std::int64_t classes);

// The index of the largest.
std::int32_t best_class(std::span<const float> log_probabilities);

// One line per class: count, precision, recall, F1, and what it is most often taken for. Empty
// without a confusion matrix.
std::string class_table(const Evaluation& evaluation, const std::vector<std::string>& class_names);

}  // namespace tensorgrad::cli
