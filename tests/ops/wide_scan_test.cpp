// SPDX-License-Identifier: MIT
// Selective scans with enough channels to occupy a GPU by themselves, which run by blocks of
// channels at any length, with the steps of a sequence in one piece. Compared with loops over the
// steps in double.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernel/selective.h"
#include "state_space_loops.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

// Channels repeat, so a loop over a few of them is a reference for all. Their number is coprime to
// the channels of a block, and the last block is not full.
constexpr std::int64_t kBatches = 2, kDifferent = 5;
struct Width {
  std::int64_t channels, states;
};
constexpr Width kUsualStates = {2050, 16}, kManyStates = {514, 33};

// Repeats the values of the different channels, `few`, for all channels. Each channel has `inner`
// contiguous values.
Values repeated(const Values& few, std::int64_t channels, std::int64_t inner) {
  const std::int64_t row = kDifferent * inner, size = static_cast<std::int64_t>(few.size());
  Values all;
  all.reserve(static_cast<std::size_t>(size / kDifferent * channels));
  for (std::int64_t first = 0; first < size; first += row) {
    for (std::int64_t d = 0; d < channels; ++d) {
      const auto from = few.begin() + first + d % kDifferent * inner;
      all.insert(all.end(), from, from + inner);
    }
  }
  return all;
}

// The inverse: sums over equal channels, whose values should be equal.
Values added_up(const Values& all, std::int64_t channels, std::int64_t inner,
                const std::string& what) {
  const std::int64_t row = kDifferent * inner, size = static_cast<std::int64_t>(all.size());
  Values few;
  for (std::int64_t first = 0; first < size; first += channels * inner) {
    for (std::int64_t i = first; i < first + row; ++i) {
      const double one = all[static_cast<std::size_t>(i)];
      few.push_back(0);
      for (std::int64_t at = i; at < first + channels * inner; at += row) {
        const double other = all[static_cast<std::size_t>(at)];
        few.back() += other;
        if (std::abs(other - one) <= 1e-5 * (1 + std::abs(one))) continue;
        ADD_FAILURE() << what << ", elements " << i << " and " << at << ": " << one << " and "
                      << other;
        return few;
      }
    }
  }
  return few;
}

// Multiplies each value by the number of equal channels.
Values counted(Values few, std::int64_t channels, std::int64_t inner) {
  for (std::size_t i = 0; i < few.size(); ++i) {
    const std::int64_t d = static_cast<std::int64_t>(i) / inner % kDifferent;
    const std::int64_t alike = (channels - d + kDifferent - 1) / kDifferent;
    few[i] *= static_cast<double>(alike);
  }
  return few;
}

struct Part {
  Values SelectiveGiven::* values;
  Shape shape;         // of all channels
  std::int64_t inner;  // contiguous values per channel; 0: no channel axis
  double lo, hi;

  // Draws the values of the different channels.
  [[nodiscard]] Values drawn(GraphBuilder& s, std::int64_t channels) const {
    const std::int64_t count = numel(shape);
    return s.draw.values(f32, inner == 0 ? count : count / channels * kDifferent, lo, hi);
  }
};

std::vector<Part> parts_of(std::int64_t length, const Width& width) {
  using G = SelectiveGiven;
  const auto [channels, states] = width;
  const Shape steps = {kBatches, length, channels}, bc = {kBatches, length, states};
  return {{&G::u, steps, 1, -1, 1},
          {&G::delta, steps, 1, 0.01, 0.4},
          {&G::rates, {channels, states}, states, -2, -0.1},
          {&G::in, bc, 0, -1, 1},
          {&G::out, bc, 0, -1, 1},
          {&G::initial, {kBatches, channels, states}, states, -1, 1},
          {&G::skip, {channels}, 1, -1, 1},
          {&G::z, steps, 1, -3, 3}};
}

// Numbers, their tensors, and the scan.
struct WideScanCase {
  GraphBuilder builder;
  std::vector<Part> parts;
  SelectiveGiven given;
  std::vector<Tensor> inputs;

  WideScanCase(std::int64_t length, const Width& width)
      : builder(static_cast<std::uint64_t>(length)),
        parts(parts_of(length, width)),
        given{kBatches, length, kDifferent, width.states, {}, {}, {}, {}, {}, {}, {}, {}} {
    const SelectiveSizes sizes{kBatches, length, width.channels, width.states};
    EXPECT_TRUE(sizes.fills_gpu() && sizes.segments() == 1);
    for (const Part& part : parts) {
      given.*part.values = part.drawn(builder, width.channels);
      inputs.push_back(input(part, given.*part.values, width.channels));
    }
  }

  Tensor input(const Part& part, const Values& few, std::int64_t channels) {
    return builder.input(part.shape, f32,
                         part.inner == 0 ? few : repeated(few, channels, part.inner));
  }

  SelectiveScan scan(Discretization discretization) {
    const std::vector<Tensor>& t = inputs;
    const SelectiveScan made = selective_scan(
        t[0], t[1], t[2], t[3], t[4],
        {.D = t[6], .z = t[7], .initial_state = t[5], .discretization = discretization});
    builder.output("y", made.y);
    builder.output("state", made.state);
    return made;
  }
};

void expect_results(const ValueMap& got, const ScanResults& want, const Width& width,
                    const std::string& what) {
  expect_near(got.at("y"), repeated(want.y, width.channels, 1), 2e-5, what + "y");
  expect_near(got.at("state"), repeated(want.state, width.channels, width.states), 2e-5,
              what + "state");
}

// Checks outputs, last states, and the gradients of their randomly weighted sum. Without
// `with_state`, only the outputs contribute, and the backward kernel fuses the gate.
void check_wide(Where where, std::int64_t length, Discretization discretization, bool with_state,
                const Width& width = kUsualStates) {
  const auto [channels, states] = width;
  ASSERT_GT((SelectiveSizes{kBatches, length, channels, states}.chunks()), 4);
  const std::string what = std::to_string(length) + " steps, ";
  WideScanCase wide(length, width);
  GraphBuilder& s = wide.builder;
  const SelectiveScan scan = wide.scan(discretization);
  const Part &of_y = wide.parts[0], &of_state = wide.parts[5];
  Weighted weights{of_y.drawn(s, channels), of_state.drawn(s, channels)};
  Tensor loss = sum(scan.y * wide.input(of_y, weights.y, channels));
  if (with_state) {
    loss = loss + sum(scan.state * wide.input(of_state, weights.state, channels));
  } else {
    weights.state.assign(weights.state.size(), 0);
  }
  give_gradients(s, loss, wide.inputs, "d");

  ValueMap got = run_graph(s.graph(), s.leaves, where);
  expect_results(got, one_by_one(wide.given, discretization), width, what);
  std::vector<Values SelectiveGiven::*> members;
  for (std::size_t i = 0; i < wide.parts.size(); ++i) {
    const Part& part = wide.parts[i];
    members.push_back(part.values);
    if (part.inner == 0) continue;
    const std::string name = "d" + std::to_string(i);
    got.at(name) = added_up(got.at(name), channels, part.inner, what + name);
  }
  weights = {counted(weights.y, channels, 1), counted(weights.state, channels, states)};
  const auto value = [&](const SelectiveGiven& at) {
    return weights.of(one_by_one(at, discretization));
  };
  check_slopes<SelectiveGiven>(wide.given, members, got, "d", value, what);
}

TEST(WideScan, matches_a_loop_with_gradients_on_cpu) {
  for (const auto discretization : {Discretization::kEuler, Discretization::kZeroOrderHold}) {
    check_wide(Where::kCpu, 65, discretization, discretization == Discretization::kEuler);
    if (kSanitized) continue;
    check_wide(Where::kCpu, 257, discretization, false);
    check_wide(Where::kCpu, 1000, discretization, true, kManyStates);
  }
}

// A software driver takes seconds to compile each kernel, so it runs fewer cases.
TEST(WideScan, matches_a_loop_with_gradients_on_webgpu) {
  check_wide(Where::kWebGpu, 65, Discretization::kZeroOrderHold, true);
  check_wide(Where::kWebGpu, 257, Discretization::kEuler, false);
  if (device_at(Where::kWebGpu)->info().software) return;
  check_wide(Where::kWebGpu, 65, Discretization::kEuler, false);
  check_wide(Where::kWebGpu, 257, Discretization::kZeroOrderHold, false);
  for (const Width& width : {kUsualStates, kManyStates})
    check_wide(Where::kWebGpu, 1000, Discretization::kEuler, true, width);
}

// Forward only, at all lengths. Changing u at one step of the first sequence changes no bit before
// that step, nor in the second sequence.
void check_wide_forward(Where where) {
  for (const std::int64_t length : std::span(kScanLengths).first(kSanitized ? 3 : 7)) {
    const std::string what = std::to_string(length) + " steps, ";
    WideScanCase wide(length, kUsualStates);
    wide.scan(Discretization::kEuler);
    const Graph graph = wide.builder.graph();
    ValueMap leaves = wide.builder.leaves;
    const ValueMap got = run_graph(graph, leaves, where);
    expect_results(got, one_by_one(wide.given, Discretization::kEuler), kUsualStates, what);
    const std::int64_t row = kUsualStates.channels, changed = 2 * length / 3;
    const auto at_step = [&](std::int64_t t) { return static_cast<std::size_t>(t * row); };
    Values& u = leaves.at("in0");
    for (std::size_t i = at_step(changed); i < at_step(changed + 1); ++i) u[i] += 1;
    const Values &before = got.at("y"), after = run_graph(graph, leaves, where).at("y");
    std::size_t first_other = 0;
    while (first_other < before.size() && before[first_other] == after[first_other]) ++first_other;
    EXPECT_GE(first_other, at_step(changed)) << what;
    EXPECT_LT(first_other, at_step(changed + 1)) << what << "the step itself";
    const auto second = static_cast<std::ptrdiff_t>(at_step(length));
    EXPECT_TRUE(std::equal(before.begin() + second, before.end(), after.begin() + second)) << what;
  }
}

TEST(WideScan, ignores_later_steps_on_cpu) { check_wide_forward(Where::kCpu); }
TEST(WideScan, ignores_later_steps_on_webgpu) { check_wide_forward(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
