// SPDX-License-Identifier: MIT
// Sizes near the limits of indices: tensors of almost 2^31 elements that are not stored, rows and
// positions above 2^24, and more workgroups than a dispatch has in one dimension.
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kLargest = 2147483647;
constexpr std::int64_t kOdd = (1 << 24) + 1;  // not representable in f32

class Sizes : public ::testing::TestWithParam<Where> {
 protected:
  static ValueMap run(GraphBuilder& s) { return run_graph(s.graph(), s.leaves, GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(cpu, Sizes, ::testing::Values(Where::kCpu));
INSTANTIATE_TEST_SUITE_P(webgpu, Sizes, ::testing::Values(Where::kWebGpu));

TEST_P(Sizes, counters_are_exact_up_to_the_end) {
  GraphBuilder s;
  s.output("i32", narrow(arange(kLargest), 0, kLargest - 3, 3));
  s.output("u32", narrow(arange(kLargest, u32) * 2 + 1, 0, kLargest - 2, 2));
  s.output("back", narrow(flip(arange(kLargest), 0), 0, 0, 2));
  // The columns of a matrix, split again: stacked windows.
  const Tensor table = reshape(arange(kLargest - 1), {3, 2, 357913941});
  s.output("part", narrow(reshape(transpose(table), {kLargest - 1}), 0, kLargest - 5, 4));
  const ValueMap got = run(s);
  EXPECT_EQ(got.at("i32"), (Values{2147483644, 2147483645, 2147483646}));
  EXPECT_EQ(got.at("u32"), (Values{4294967291, 4294967293}));
  EXPECT_EQ(got.at("back"), (Values{2147483646, 2147483645}));
  // Element e of [3, n, 2] is
  //   i * 2n + k * n + j  with i = e / 2n, j = e / 2 % n, k = e % 2
  EXPECT_EQ(got.at("part"), (Values{1789569703, 2147483644, 1789569704, 2147483645}));
}

TEST_P(Sizes, window_near_the_end_of_a_broadcast_is_exact) {
  GraphBuilder s;
  const std::int64_t rows = 536870911;
  const Tensor x = s.input({4}, f32, {1, 2, 3, 4});
  const Tensor many = broadcast_to(x, {rows, 4});
  s.output("end", narrow(many, 0, rows - 2, 2) * 2);
  s.output("slanted", narrow(reshape(many, {rows * 4}), 0, rows * 4 - 5, 5));
  s.output("picked", gather(x, 0, narrow(arange(kLargest), 0, kLargest - 4, 4) - 2147483643));
  const ValueMap got = run(s);
  EXPECT_EQ(got.at("end"), (Values{2, 4, 6, 8, 2, 4, 6, 8}));
  EXPECT_EQ(got.at("slanted"), (Values{4, 1, 2, 3, 4}));
  EXPECT_EQ(got.at("picked"), (Values{1, 2, 3, 4}));
}

TEST_P(Sizes, places_above_2_to_the_24_are_exact) {
  for (const char* skip : {"", "split_reduce"}) {
    // lavapipe leaves a loop after 65535 iterations. Without split_reduce, a thread needs more.
    if (GetParam() != Where::kCpu && *skip != 0) continue;
    const ScopedEnv env("TENSORGRAD_SKIP", skip);
    GraphBuilder s;
    const Tensor at = arange(kOdd + 2);
    const Tensor hit = cast(eq(at, s.input({}, i32, {kOdd})), f32);
    s.output("place", argmax(hit, 0));
    s.output("sum", sum(where(eq(hit, 1), at, 0)));
    const ValueMap got = run(s);
    EXPECT_EQ(got.at("place"), Values{kOdd}) << skip;
    EXPECT_EQ(got.at("sum"), Values{kOdd}) << skip;
  }
}

TEST_P(Sizes, more_workgroups_than_one_dimension_has) {
  GraphBuilder s;
  // Each row of 1024 elements has its own workgroup.
  const std::int64_t rows = 70001;
  const Tensor x = iota({rows, 1024}, 0) * s.input({}, i32, {3}) + iota({rows, 1024}, 1);
  s.output("rows", max(x, 1));
  const Values got = run(s).at("rows");
  for (std::int64_t row = 0; row < rows; ++row) {
    ASSERT_EQ(got[static_cast<std::size_t>(row)], static_cast<double>(row * 3 + 1023)) << row;
  }
}

TEST(SizesAtTrace, more_elements_than_an_index_holds_are_rejected) {
  GraphBuilder s;
  try {
    static_cast<void>(broadcast_to(s.input({1}), {65536, 32768}));
    ADD_FAILURE() << "accepted";
  } catch (const ShapeError& error) {
    EXPECT_NE(error.message().find("[65536,32768] has more than 2^31-1 elements"),
              std::string::npos)
        << error.message();
    EXPECT_TRUE(error.location().known());
  }
}

}  // namespace
}  // namespace tensorgrad::testing
