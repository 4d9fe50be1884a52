// SPDX-License-Identifier: MIT
// Selective scans of so many channels that these alone keep a GPU busy: by blocks of channels
// whatever the length, the steps of a line in one piece. Against loops over the steps in double.
#include <cmath>
#include <vector>

#include "kernel/selective.h"
#include "state_space_loops.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

// Channels repeat: a loop over few of them is a reference for all. Their number and that of the
// channels of a block have no common divisor, and the last block is not full.
constexpr std::int64_t kBatches = 2, kDifferent = 5;
struct Width {
  std::int64_t channels, states;
};
constexpr Width kUsualStates = {2050, 16}, kManyStates = {514, 33};

// The numbers of all channels, where `few` has those of the different ones: `inner` numbers side by
// side are one's.
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

// The other way round: the sums over the channels that are alike, whose numbers should be equal.
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

// Times the number of channels that are alike.
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
  std::int64_t inner;  // numbers of a channel, side by side; 0: it has no channels
  double lo, hi;

  // Those of the different channels.
  [[nodiscard]] Values drawn(Sketch& s, std::int64_t channels) const {
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

// Outputs, last states, and the gradients of their sum with random weights; or of the outputs
// alone: then the kernel has the gate backward, too.
void check_wide(Where where, std::int64_t length, Discretization discretization, bool with_state,
                const Width& width = kUsualStates) {
  const auto [channels, states] = width;
  const SelectiveSizes sizes{kBatches, length, channels, states};
  ASSERT_TRUE(sizes.fills_gpu() && sizes.segments() == 1 && sizes.chunks() > 4);
  const std::string what = std::to_string(length) + " steps, ";
  Sketch s(static_cast<std::uint64_t>(length));
  SelectiveGiven g{kBatches, length, kDifferent, states, {}, {}, {}, {}, {}, {}, {}, {}};
  const std::vector<Part> parts = parts_of(length, width);
  std::vector<Tensor> t;
  const auto input = [&](const Part& part, const Values& few) {
    return s.input(part.shape, f32, part.inner == 0 ? few : repeated(few, channels, part.inner));
  };
  for (const Part& part : parts) {
    g.*part.values = part.drawn(s, channels);
    t.push_back(input(part, g.*part.values));
  }
  const SelectiveScan scan = selective_scan(
      t[0], t[1], t[2], t[3], t[4],
      {.D = t[6], .z = t[7], .initial_state = t[5], .discretization = discretization});
  s.output("y", scan.y);
  s.output("state", scan.state);
  const Part &of_y = parts[0], &of_state = parts[5];
  Weighted weights{of_y.drawn(s, channels), of_state.drawn(s, channels)};
  Tensor loss = sum(scan.y * input(of_y, weights.y));
  if (with_state) {
    loss = loss + sum(scan.state * input(of_state, weights.state));
  } else {
    weights.state.assign(weights.state.size(), 0);
  }
  give_gradients(s, loss, t, "d");

  ValueMap got = run_graph(s.graph(), s.leaves, where);
  const ScanResults want = one_by_one(g, discretization);
  expect_near(got.at("y"), repeated(want.y, channels, 1), 2e-5, what + "y");
  expect_near(got.at("state"), repeated(want.state, channels, states), 2e-5, what + "state");
  std::vector<Values SelectiveGiven::*> members;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    members.push_back(parts[i].values);
    if (parts[i].inner == 0) continue;
    const std::string name = "d" + std::to_string(i);
    got.at(name) = added_up(got.at(name), channels, parts[i].inner, what + name);
  }
  weights = {counted(weights.y, channels, 1), counted(weights.state, channels, states)};
  const auto value = [&](const SelectiveGiven& at) {
    return weights.of(one_by_one(at, discretization));
  };
  check_slopes<SelectiveGiven>(g, members, got, "d", value, what);
}

TEST(WideScan, is_that_of_a_loop_with_its_gradients_on_cpu) {
  for (const auto discretization : {Discretization::kEuler, Discretization::kZeroOrderHold}) {
    check_wide(Where::kCpu, 65, discretization, discretization == Discretization::kEuler);
    if (kSanitized) continue;
    check_wide(Where::kCpu, 257, discretization, false);
    check_wide(Where::kCpu, 1000, discretization, true, kManyStates);
  }
}

// A driver in software takes seconds to compile each.
TEST(WideScan, is_that_of_a_loop_with_its_gradients_on_webgpu) {
  check_wide(Where::kWebGpu, 65, Discretization::kZeroOrderHold, true);
  check_wide(Where::kWebGpu, 257, Discretization::kEuler, false);
  if (device_at(Where::kWebGpu)->info().software) return;
  check_wide(Where::kWebGpu, 65, Discretization::kEuler, false);
  check_wide(Where::kWebGpu, 257, Discretization::kZeroOrderHold, false);
  for (const Width& width : {kUsualStates, kManyStates})
    check_wide(Where::kWebGpu, 1000, Discretization::kEuler, true, width);
}

}  // namespace
}  // namespace tensorgrad::testing
