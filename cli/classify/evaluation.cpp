// SPDX-License-Identifier: MIT
// Computes the metrics of predictions and formats them as a table.
#include "classify/evaluation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "plot/svg_text.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kNameWidth = 20;

// Returns a percentage such as "12.5", or "-" if the fraction is not defined.
std::string percent(double fraction) {
  return std::isnan(fraction) ? "-" : fmt::format("{:.1f}", 100.0 * fraction);
}

// Returns a shortened name without control characters, which would affect the terminal.
std::string shown_name(const std::string& name) {
  std::string text = shortened(name, kNameWidth);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  return text;
}

}  // namespace

std::int32_t best_class(std::span<const float> log_probabilities) {
  return static_cast<std::int32_t>(
      std::max_element(log_probabilities.begin(), log_probabilities.end()) -
      log_probabilities.begin());
}

Evaluation evaluate(std::span<const float> log_probabilities, std::span<const std::int32_t> labels,
                    std::int64_t classes) {
  const auto n = static_cast<std::size_t>(classes);
  Evaluation result;
  result.count = static_cast<std::int64_t>(labels.size());
  if (classes <= kMaxConfusedClasses) result.confusion.emplace(classes);
  double loss = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = log_probabilities.subspan(i * n, n);
    const std::int32_t best = best_class(row);
    const auto label = static_cast<std::size_t>(labels[i]);
    loss -= row[label];
    result.right += best == labels[i] ? 1 : 0;
    result.predicted.push_back(best);
    result.probability.push_back(std::exp(row[static_cast<std::size_t>(best)]));
    if (result.confusion) result.confusion->add(labels[i], best);
  }
  result.loss = loss / static_cast<double>(labels.size());
  return result;
}

std::string class_table(const Evaluation& evaluation, const std::vector<std::string>& class_names) {
  if (!evaluation.confusion) return "";
  const ConfusionMatrix& matrix = *evaluation.confusion;
  std::size_t width = 5;
  for (const std::string& name : class_names) width = std::max(width, columns_of(shown_name(name)));
  std::string out = fmt::format("{}  {:>7}  {:>9}  {:>6}  {:>5}  most often confused with\n",
                                padded("class", width), "count", "precision", "recall", "F1");
  for (std::int64_t c = 0; c < matrix.classes(); ++c) {
    const auto name_of_class = [&](std::int64_t i) {
      return shown_name(class_names[static_cast<std::size_t>(i)]);
    };
    std::int64_t truth = 0;
    std::int64_t rival = c;
    for (std::int64_t other = 0; other < matrix.classes(); ++other) {
      truth += matrix.count(c, other);
      if (other != c && matrix.count(c, other) > (rival == c ? 0 : matrix.count(c, rival)))
        rival = other;
    }
    const auto share = [&] {
      return static_cast<double>(matrix.count(c, rival)) / static_cast<double>(truth);
    };
    const std::string taken =
        rival == c ? "-" : fmt::format("{} ({}%)", name_of_class(rival), percent(share()));
    out += fmt::format("{}  {:>7}  {:>9}  {:>6}  {:>5}  {}\n", padded(name_of_class(c), width),
                       truth, percent(matrix.precision(c)), percent(matrix.recall(c)),
                       percent(matrix.f1(c)), taken);
  }
  return out;
}

}  // namespace tensorgrad::cli
