// SPDX-License-Identifier: MIT
// Reference loops for state space scans, in double, and their inputs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/graph_builder.h"

namespace tensorgrad::testing {

// Lengths around those of chunks and segments.
inline constexpr std::array<std::int64_t, 7> kScanLengths = {1, 2, 63, 64, 65, 257, 1000};

struct ScanResults {
  Values y, state;
};

// Inputs of selective_scan().
struct SelectiveGiven {
  std::int64_t batch, length, channels, states;
  Values u, delta, rates, in, out, initial, skip, z;
};

// Computes the scan step by step:
//   h = e^(delta A) h + w B u
//   y = (C h + D u) silu(z)
ScanResults one_by_one(const SelectiveGiven& given, Discretization discretization);

struct SsdGiven {
  std::int64_t batch, length, heads, width, groups, states;
  Values x, dt, rates, in, out, initial;
};

ScanResults one_by_one(const SsdGiven& given);

struct RotaryGiven {
  std::int64_t batch, length, heads, ranks, width, states;
  Values x, dt, rates, lambda, theta, in, out;
};

// Computes the recurrence as in the paper, from a zero state.
ScanResults one_by_one(const RotaryGiven& given);

void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what);

// Compares the gradients `gradient0`, `gradient1`, ... with central differences of `value`. Each
// difference moves a quarter of a part's elements in random directions.
template <class G>
void check_slopes(const G& given, std::span<Values G::* const> parts, const ValueMap& got,
                  const std::string& gradient, const std::function<double(const G&)>& value,
                  const std::string& what) {
  constexpr double kStep = 1e-5;
  Draw draw(7);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Values& slopes = got.at(gradient + std::to_string(part));
    const std::size_t size = slopes.size();
    ASSERT_EQ(size, (given.*parts[part]).size()) << what << ", input " << part;
    // A small gradient may be the difference of sums as large as the others.
    double largest = 0;
    for (const double each : slopes) {
      ASSERT_TRUE(std::isfinite(each)) << what << ", input " << part;
      largest = std::max(largest, std::abs(each));
    }
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      G below = given, above = given;
      double slope = 0, all = 0;
      for (std::size_t i = size * quarter / 4; i < size * (quarter + 1) / 4; ++i) {
        const double direction = draw.values(f32, 1, -1, 1)[0];
        (below.*parts[part])[i] -= kStep * direction;
        (above.*parts[part])[i] += kStep * direction;
        slope += slopes[i] * direction;
        all += std::abs(slopes[i] * direction);
      }
      const double difference = (value(above) - value(below)) / (2 * kStep);
      EXPECT_NEAR(slope, difference, 2e-5 * all + 2e-6 * (1 + largest))
          << what << ", input " << part << ", quarter " << quarter;
    }
  }
}

// Random weights of y and the last state, whose weighted sum is the loss of reference and graph.
struct Weighted {
  Values y, state;
  [[nodiscard]] double of(const ScanResults& r) const {
    return std::inner_product(y.begin(), y.end(), r.y.begin(), 0.0) +
           std::inner_product(state.begin(), state.end(), r.state.begin(), 0.0);
  }
};

Tensor weighted(GraphBuilder& s, const Tensor& y, const Tensor& state, Weighted& weights);

// Adds the gradients as outputs `name`0, `name`1, ...
void give_gradients(GraphBuilder& s, const Tensor& loss, const std::vector<Tensor>& inputs,
                    const std::string& name);

// Inputs of a scan, as tensors and as numbers.
template <class G>
struct Drawn {
  std::vector<Tensor> t;
  G given;
};

template <class G, std::size_t N>
Drawn<G> drawn(const GraphBuilder& s, std::vector<Tensor> t, G given,
               Values G::* const (&parts)[N]) {
  for (std::size_t i = 0; i < N; ++i) given.*parts[i] = s.leaves.at("in" + std::to_string(i));
  return {std::move(t), std::move(given)};
}

inline constexpr Values SelectiveGiven::* kSelectiveParts[] = {
    &SelectiveGiven::u,   &SelectiveGiven::delta,   &SelectiveGiven::rates, &SelectiveGiven::in,
    &SelectiveGiven::out, &SelectiveGiven::initial, &SelectiveGiven::skip,  &SelectiveGiven::z};

inline constexpr Values SsdGiven::* kSsdParts[] = {&SsdGiven::x,     &SsdGiven::dt,
                                                   &SsdGiven::rates, &SsdGiven::in,
                                                   &SsdGiven::out,   &SsdGiven::initial};

inline constexpr Values RotaryGiven::* kRotaryParts[] = {
    &RotaryGiven::x,     &RotaryGiven::dt, &RotaryGiven::rates, &RotaryGiven::lambda,
    &RotaryGiven::theta, &RotaryGiven::in, &RotaryGiven::out};

// Draw inputs with a batch of 2.
Drawn<SelectiveGiven> draw_selective(GraphBuilder& s, std::int64_t length);
Drawn<SsdGiven> draw_ssd(GraphBuilder& s, std::int64_t length);
Drawn<RotaryGiven> draw_rotary(GraphBuilder& s, std::int64_t length);  // with two ranks
Drawn<RotaryGiven> draw_rotary_of_one_rank(GraphBuilder& s, std::int64_t length);

}  // namespace tensorgrad::testing
