// SPDX-License-Identifier: MIT
#include "tensorgrad/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kMaxConfusionClasses = 30'000;

double ratio(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(std::int64_t classes) : classes_(classes) {
  if (classes < 1 || classes > kMaxConfusionClasses) {
    throw UserError("ConfusionMatrix: expected 1 to " + std::to_string(kMaxConfusionClasses) +
                    " classes, got " + std::to_string(classes));
  }
  counts_.resize(static_cast<std::size_t>(classes * classes));
}

std::size_t ConfusionMatrix::index(std::int64_t label, std::int64_t predicted) const {
  for (const std::int64_t each : {label, predicted}) {
    if (each >= 0 && each < classes_) continue;
    throw UserError("ConfusionMatrix: expected a class from 0 to " + std::to_string(classes_ - 1) +
                    ", got " + std::to_string(each));
  }
  return static_cast<std::size_t>(label * classes_ + predicted);
}

void ConfusionMatrix::add(std::int64_t label, std::int64_t predicted) {
  ++counts_[index(label, predicted)];
}

void ConfusionMatrix::add(std::span<const std::int32_t> labels, std::span<const float> scores) {
  const auto columns = static_cast<std::size_t>(classes_);
  if (scores.size() != labels.size() * columns) {
    throw UserError("ConfusionMatrix: expected " + std::to_string(labels.size() * columns) +
                    " scores for " + std::to_string(labels.size()) + " labels, got " +
                    std::to_string(scores.size()));
  }
  std::vector<std::size_t> cells;
  cells.reserve(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.subspan(i * columns, columns);
    if (std::any_of(row.begin(), row.end(), [](float score) { return std::isnan(score); }))
      throw UserError("ConfusionMatrix: a score of example " + std::to_string(i) + " is NaN");
    cells.push_back(index(labels[i], std::max_element(row.begin(), row.end()) - row.begin()));
  }
  for (const std::size_t cell : cells) ++counts_[cell];
}

std::int64_t ConfusionMatrix::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::int64_t ConfusionMatrix::count(std::int64_t label, std::int64_t predicted) const {
  return counts_[index(label, predicted)];
}

std::int64_t ConfusionMatrix::labelled(std::int64_t of_class) const {
  std::int64_t sum = 0;
  for (std::int64_t other = 0; other < classes_; ++other) sum += count(of_class, other);
  return sum;
}

std::int64_t ConfusionMatrix::predicted(std::int64_t of_class) const {
  std::int64_t sum = 0;
  for (std::int64_t other = 0; other < classes_; ++other) sum += count(other, of_class);
  return sum;
}

double ConfusionMatrix::accuracy() const {
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < classes_; ++c) right += count(c, c);
  return ratio(right, total());
}

double ConfusionMatrix::precision(std::int64_t of_class) const {
  return ratio(count(of_class, of_class), predicted(of_class));
}

double ConfusionMatrix::recall(std::int64_t of_class) const {
  return ratio(count(of_class, of_class), labelled(of_class));
}

double ConfusionMatrix::f1(std::int64_t of_class) const {
  return ratio(2 * count(of_class, of_class), labelled(of_class) + predicted(of_class));
}

double ConfusionMatrix::macro_f1() const {
  double sum = 0;
  std::int64_t defined = 0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    const double each = f1(c);
    if (std::isnan(each)) continue;
    sum += each;
    ++defined;
  }
  return defined == 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sum / static_cast<double>(defined);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
