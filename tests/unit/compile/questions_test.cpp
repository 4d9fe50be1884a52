// SPDX-License-Identifier: MIT
// Queries of a trainer: which inputs of a graph are indices, which op first returned NaN, and in
// which order the data are drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "compile/debug/interpret.h"
#include "compile/runtime/host_random.h"
#include "compile/runtime/index_bounds.h"
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

TEST(IndexBounds, are_found_through_views_and_concats) {
  GraphBuilder s;
  const Tensor table = s.input({7, 2}), plain = s.input({3, 2}, 0, 1, i32),
               part = s.input({2, 6}, 0, 1, i32), other = s.input({3}, 0, 1, i32);
  s.output("a", gather(table, 0, plain));
  s.output("b", gather(table, 0, concat({transpose(part), plain})));
  s.output("c", cast(other, f32));
  const auto bounds = index_bounds(s.graph());
  ASSERT_EQ(bounds.size(), 2U);
  for (const char* name : {"in1", "in2"}) {
    ASSERT_EQ(bounds.at(name).size(), 1U);
    EXPECT_EQ(bounds.at(name)[0].size, 7);
    EXPECT_EQ(bounds.at(name)[0].op, "gather");
    EXPECT_TRUE(bounds.at(name)[0].columns.empty());
  }
}

TEST(IndexBounds, are_the_tightest_of_all_uses) {
  GraphBuilder s;
  const Tensor i = s.input({4}, 0, 1, i32);
  s.output("a", gather(s.input({9}), 0, i));
  s.output("b", gather(s.input({5}), 0, i));
  s.output("c", scatter_add(zeros({6}), 0, i, s.input({4})));
  const auto bounds = index_bounds(s.graph());
  ASSERT_EQ(bounds.at("in0").size(), 1U);
  EXPECT_EQ(bounds.at("in0")[0].size, 5);
}

TEST(IndexBounds, of_a_slice_are_of_its_elements) {
  GraphBuilder s;
  const Tensor pairs = s.input({2, 3}, 0, 1, i32);
  s.output("a", gather(s.input({9}), 0, reshape(narrow(pairs, 1, 1, 2), {4})));
  const auto bounds = index_bounds(s.graph());
  ASSERT_EQ(bounds.at("in0").size(), 1U);
  EXPECT_EQ(bounds.at("in0")[0].columns, (std::vector<std::int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(bounds.at("in0")[0].row, 6);
}

NonFinite first_of(const Graph& graph, const ValueMap& leaves) {
  return first_non_finite(graph,
                          [&](const Node& leaf) { return leaves.at(leaf.attrs.text("name")); });
}

TEST(NonFinite, is_the_first_op_whose_inputs_were_finite) {
  GraphBuilder s;
  const Tensor x = s.input({3}, f32, {1, 0, -1});
  const Tensor root = sqrt(x);
  s.output("y", exp(root + log(abs(x))));
  const NonFinite found = first_of(s.graph(), s.leaves);
  EXPECT_EQ(found.op, "sqrt");
  EXPECT_EQ(found.element, 2);
  EXPECT_TRUE(std::isnan(found.value));
  EXPECT_EQ(found.type, "f32[3]");
  EXPECT_TRUE(found.location.known());
}

TEST(NonFinite, is_none_if_all_values_are_finite) {
  GraphBuilder s;
  s.output("y", exp(s.input({3}, -1, 1)));
  EXPECT_EQ(first_of(s.graph(), s.leaves).op, "");
}

TEST(HostRandom, order_is_a_permutation_that_seed_and_epoch_decide) {
  std::set<std::vector<std::int32_t>> orders;
  for (const std::uint32_t seed : {0U, 1U}) {
    for (std::uint32_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<std::int32_t> order = random_order(100, seed, epoch);
      EXPECT_EQ(order, random_order(100, seed, epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      std::vector<std::int32_t> counted(100);
      std::iota(counted.begin(), counted.end(), 0);
      EXPECT_EQ(order, counted);
    }
  }
  EXPECT_EQ(orders.size(), 10U);
  EXPECT_EQ(random_order(1, 3, 4), std::vector<std::int32_t>{0});
}

// Each position is equally likely for each row: the mean position of a row over many epochs.
TEST(HostRandom, order_is_uniform) {
  constexpr int kRows = 10, kEpochs = 4000;
  std::vector<double> place(kRows, 0);
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::int32_t> order = random_order(kRows, 1, epoch);
    for (int i = 0; i < kRows; ++i)
      place[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] += 1.0 * i / kEpochs;
  }
  // The standard deviation of a mean position is
  //   sqrt((100 - 1) / 12 / 4000) = 0.045
  for (const double mean : place) EXPECT_NEAR(mean, 4.5, 0.2);
}

// Known answers of Philox4x32-10 (Salmon et al. 2011) for key and counter 0.
TEST(HostRandom, words_match_philox) {
  const std::vector<std::uint32_t> want = {0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U};
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(random_word(i, 0, 0, 0), want[i]);
  EXPECT_NE(random_word(4, 0, 0, 0), want[0]);
}

}  // namespace
}  // namespace tensorgrad::testing
