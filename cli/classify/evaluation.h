// SPDX-License-Identifier: MIT
// Metrics of predictions: loss, accuracy, confusion matrix and a table by class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensorgrad/train/metrics.h"

namespace tensorgrad::cli {

inline constexpr std::int64_t kMaxConfusedClasses = 1000;  // no confusion matrix above it

struct Evaluation {
  std::int64_t count = 0;
  std::int64_t right = 0;                    // correct predictions
  double loss = 0;                           // mean of -log p(label)
  std::vector<std::int32_t> predicted;       // [count]
  std::vector<double> probability;           // [count], of the predicted class
  std::optional<ConfusionMatrix> confusion;  // empty above the limit

  [[nodiscard]] double accuracy() const {
    return count == 0 ? 0 : static_cast<double>(right) / static_cast<double>(count);
  }
};

// Returns the metrics of predictions. `log_probabilities` is [labels.size(), classes].
Evaluation evaluate(std::span<const float> log_probabilities, std::span<const std::int32_t> labels,
                    std::int64_t classes);

// Returns the index of the largest value; if several are equal, the first of them.
std::int32_t best_class(std::span<const float> log_probabilities);

// Returns a table with a line per class: count, precision, recall, F1 and the class it is most
// often confused with. Returns an empty string if there is no confusion matrix.
std::string class_table(const Evaluation& evaluation, const std::vector<std::string>& class_names);

}  // namespace tensorgrad::cli
