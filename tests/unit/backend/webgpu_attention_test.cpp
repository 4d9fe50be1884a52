// SPDX-License-Identifier: MIT
// Attention on a WebGPU device with each tile of scores, regardless of the choice by size: the
// result and all gradients are compared with the interpreter.
#include <algorithm>
#include <functional>
#include <vector>

#include "codegen/wgsl/writer.h"
#include "kernel/attention.h"
#include "support/graph_builder.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

struct ScoreTile {
  int columns, rows, threads;  // with rows of keys, at most 16 columns
};
constexpr ScoreTile kScoreTiles[] = {{4, 8, 32}, {8, 8, 64}, {16, 16, 64}, {32, 32, 128}};

struct AttentionSize {
  std::int64_t batch, rows, columns, depth, width;  // depth is that of q and k
};

using AttentionForm = std::function<AttentionOptions(GraphBuilder&, const AttentionSize&)>;

AttentionOptions attend_all(GraphBuilder&, const AttentionSize&) { return {}; }
AttentionOptions attend_causally(GraphBuilder&, const AttentionSize&) {
  return {.causal = true, .scale = 0.6};
}
AttentionOptions attend_dropping(GraphBuilder&, const AttentionSize&) {
  return {.causal = true, .dropout = 0.3};
}
// A stored mask of booleans. No row attends to the last columns, so whole tiles are skipped.
AttentionOptions attend_masked(GraphBuilder& builder, const AttentionSize& s) {
  const Tensor column = iota({s.rows, s.columns}, 1, i32);
  return {.mask = builder.boolean({s.rows, s.columns}) && column < s.columns / 3};
}
// A stored mask of numbers, which are added to the scores.
AttentionOptions attend_biased(GraphBuilder& builder, const AttentionSize& s) {
  return {.mask = builder.input({s.batch, s.rows, s.columns}, -1, 1), .dropout = 0.2};
}

class WebGpuAttention : public ::testing::TestWithParam<ScoreTile> {
 protected:
  void SetUp() override {
    TENSORGRAD_GRAPH_DEVICE_OR_RETURN(device);
    device_ = device;
    WgslOptions options;
    options.attention_columns = GetParam().columns;
    device_->force_kernels(options);
  }
  void TearDown() override {
    if (device_ != nullptr) device_->force_kernels({});
  }

  void check(const AttentionSize& s, const AttentionForm& form) {
    GraphBuilder builder;
    const Tensor q = builder.input({s.batch, s.rows, s.depth}, -1, 1);
    const Tensor k = builder.input({s.batch, s.columns, s.depth}, -1, 1);
    const Tensor v = builder.input({s.batch, s.columns, s.width}, -1, 1);
    const Tensor o = scaled_dot_product_attention(q, k, v, form(builder, s));
    const std::vector<Tensor> d = grad(sum(square(o)), {q, k, v});
    builder.output("o", o);
    for (std::size_t i = 0; i < d.size(); ++i) builder.output("d" + std::to_string(i), d[i]);
    expect_tile(builder.graph());
    builder.check(Where::kWebGpu, 1e-4);
  }

  webgpu::WebGpuDevice* device_ = nullptr;

 private:
  // Expects the launches of a forward and a backward pass, all with the requested tile.
  void expect_tile(const Graph& graph) {
    const ScoreTile& tile = GetParam();
    const std::size_t before = parts_.size();
    bool in_one = false;
    for (const Launch& launch : compile_for_test(graph, 8).program.launches) {
      const AttentionKernel* attention = find_kernel<AttentionKernel>(launch);
      if (attention == nullptr) continue;
      const AttentionSizes& s = attention->sizes;
      const bool backward = attention->pass == AttentionPass::kBackward;
      const bool of_keys = backward || attention->pass == AttentionPass::kKeys;
      parts_.push_back(attention->pass);
      in_one |= backward;
      const WgslKernel kernel = write_wgsl(launch, device_->kernel_options());
      EXPECT_EQ(kernel.threads, tile.threads) << launch.name;
      const int columns = of_keys ? std::min(tile.columns, 16) : tile.columns;
      EXPECT_NE(kernel.body.find("col_start += " + std::to_string(columns) + "u"),
                std::string::npos);
      const std::int64_t rows = of_keys ? s.columns : s.rows;
      EXPECT_EQ(kernel.groups_x,
                s.batch * (backward ? s.dq_parts : (rows + tile.rows - 1) / tile.rows));
    }
    EXPECT_EQ(parts_.size() - before, in_one ? 2U : 3U);
  }

 protected:
  std::vector<AttentionPass> parts_;  // of the launches
};

TEST_P(WebGpuAttention, of_whole_tiles) {
  const int side = GetParam().rows;
  check({2, 2 * side, 3 * side, 16, 16}, attend_all);
  check({1, 2 * side, 2 * side, 16, 32}, attend_causally);
}

TEST_P(WebGpuAttention, of_tiles_that_hang_over) {
  const int side = GetParam().rows;
  check({2, side + 5, 2 * side + 3, 18, 30}, attend_all);
  check({1, 2 * side + 3, 2 * side - 1, 17, 21}, attend_causally);
}

TEST_P(WebGpuAttention, with_bool_masks_and_biases) {
  const int side = GetParam().rows;
  check({2, side + 3, 4 * side - 3, 16, 20}, attend_masked);
  check({2, side + 1, 2 * side - 3, 20, 16}, attend_biased);
}

TEST_P(WebGpuAttention, drops_the_same_forward_and_backward) {
  const int side = GetParam().rows;
  check({2, 2 * side - 3, 2 * side + 1, 16, 16}, attend_dropping);
}

TEST_P(WebGpuAttention, of_heads_of_sixty_four) {
  const int side = GetParam().rows;
  // dq stages 64 elements of both operands for all rows and columns, and the weights.
  constexpr std::int64_t kNeeded = 40 << 10;
  const std::int64_t bytes = device_->info().limits.max_workgroup_bytes;
  if (side == 32 && bytes < kNeeded)
    GTEST_SKIP() << "the device has " << bytes << " bytes of workgroup memory";
  check({1, side + 3, 2 * side - 3, 64, 64}, attend_causally);
}

// With many heads, one launch computes all gradients.
TEST_P(WebGpuAttention, backward_in_one_launch) {
  using enum AttentionPass;
  const int side = GetParam().rows;
  check({180, side + 3, side + 15, 6, 10}, attend_causally);
  check({180, side, side + 12, 4, 4}, attend_dropping);
  check({180, side, 3 * side, 4, 3}, attend_biased);
  check({66, 5, 250, 4, 8}, attend_masked);       // four parts; no row attends to two of them
  check({130, 2 * side, 250, 4, 4}, attend_all);  // two parts in two rounds
  for (std::size_t i = 0; i < parts_.size(); ++i)
    EXPECT_EQ(parts_[i], i % 2 == 0 ? kForward : kBackward);
  EXPECT_EQ(parts_.size(), 10U);
}

std::string name_of_tile(const ::testing::TestParamInfo<ScoreTile>& info) {
  return "tile_" + std::to_string(info.param.columns);
}
INSTANTIATE_TEST_SUITE_P(Tiles, WebGpuAttention, ::testing::ValuesIn(kScoreTiles), name_of_tile);

// ---- by the subgroup matrix -------------------------------------------------------------------

// Returns how many of the three attention launches use the subgroup matrix. The heads are slices of
// one tensor.
int count_by_subgroup_matrix(DType dtype, std::int64_t depth, const WgslOptions& options,
                             bool masked = false) {
  constexpr std::int64_t kHeads = 2, kLength = 256;
  GraphBuilder builder;
  const Tensor all = builder.input({3, kLength, kHeads, depth}, -1, 1, dtype);
  const auto heads = [&](int i) {
    return transpose(reshape(narrow(all, 0, i, 1), {kLength, kHeads, depth}), 0, 1);
  };
  AttentionOptions attending{.causal = true};
  if (masked) attending.mask = builder.boolean({kLength, kLength});
  const Tensor o = scaled_dot_product_attention(heads(0), heads(1), heads(2), attending);
  const Tensor dy = builder.input(o.shape(), -1, 1, dtype);
  builder.output("d", grad(sum(cast(o * dy, f32)), {all})[0]);
  int found = 0;
  for (const Launch& launch : compile_for_test(builder.graph(), 8).program.launches) {
    if (find_kernel<AttentionKernel>(launch) == nullptr) continue;
    const std::string text = emit_wgsl(launch, options);
    if (text.find("subgroupMatrixMultiplyAccumulate") != std::string::npos) ++found;
  }
  return found;
}

// Checks only the kernel text.
TEST(WebGpuAttentionBySubgroupMatrix, is_chosen_where_operands_are_f16) {
  WgslOptions options;
  options.max_workgroup_bytes = 48 << 10;
  EXPECT_EQ(count_by_subgroup_matrix(f16, 64, options), 0);
  options.subgroup_matrix = {16, 16, 16, 32};
  EXPECT_EQ(count_by_subgroup_matrix(f16, 64, options), 3);
  EXPECT_EQ(count_by_subgroup_matrix(f16, 128, options), 3);
  EXPECT_EQ(count_by_subgroup_matrix(f16, 64, options, true), 3);
  EXPECT_EQ(count_by_subgroup_matrix(f16, 24, options), 0);  // not a multiple of the matrix size
  EXPECT_EQ(count_by_subgroup_matrix(f32, 64, options), 0);
  options.subgroup_matrix_tile = -1;
  EXPECT_EQ(count_by_subgroup_matrix(f16, 64, options), 0);
}

// The variant for few queries, with blocks of 64 to 1024 keys.
class WebGpuAttentionOfFewQueries : public ::testing::Test {
 protected:
  void SetUp() override {
    TENSORGRAD_GRAPH_DEVICE_OR_RETURN(device);
    device_ = device;
  }

  void check(const AttentionSize& s, const AttentionForm& form) {
    GraphBuilder builder;
    const Tensor q = builder.input({s.batch, s.rows, s.depth}, -2, 2);
    const Tensor k = builder.input({s.batch, s.columns, s.depth}, -1, 1);
    const Tensor v = builder.input({s.batch, s.columns, s.width}, -1, 1);
    const Tensor o = scaled_dot_product_attention(q, k, v, form(builder, s));
    builder.output("o", o);
    builder.output("dq", grad(sum(square(o)), {q})[0]);  // needs the logsumexp of the forward pass
    int found = 0;
    for (const Launch& launch : compile_for_test(builder.graph(), 8).program.launches) {
      const AttentionKernel* attention = find_kernel<AttentionKernel>(launch);
      if (attention == nullptr || attention->pass != AttentionPass::kForward) continue;
      const WgslKernel kernel = write_wgsl(launch, device_->kernel_options());
      EXPECT_NE(kernel.body.find("of_reducers"), std::string::npos) << kernel.body;
      EXPECT_EQ(kernel.groups_x, s.batch * s.rows);
      const WgslOptions least;  // the limits that all devices have
      EXPECT_LE(write_wgsl(launch, least).workgroup_bytes, least.max_workgroup_bytes);
      ++found;
    }
    EXPECT_EQ(found, 1);
    builder.check(Where::kWebGpu, 1e-4);
  }

  webgpu::WebGpuDevice* device_ = nullptr;
};

TEST_F(WebGpuAttentionOfFewQueries, of_whole_blocks) {
  check({2, 1, 64, 16, 16}, attend_all);
  check({3, 4, 1024, 64, 64}, attend_all);
  check({2, 2, 128, 32, 128}, attend_all);
  check({1, 1, 1024, 128, 128}, attend_all);  // the widest heads
  check({140, 1, 512, 8, 8}, attend_all);     // more workgroups than cores
}

// If cores have no other workgroup, one has more threads, as far as workgroup memory suffices.
TEST_F(WebGpuAttentionOfFewQueries, has_more_threads_if_workgroups_fit_the_cores) {
  const auto threads = [](std::int64_t batch, std::int64_t bytes) {
    GraphBuilder builder;
    const AttentionSize s{batch, 1, 1024, 64, 64};
    const Tensor q = builder.input({s.batch, s.rows, s.depth}, -2, 2);
    const Tensor k = builder.input({s.batch, s.columns, s.depth}, -1, 1);
    builder.output("o", scaled_dot_product_attention(q, k, k));
    const Compiled plan = compile_for_test(builder.graph(), 8);
    EXPECT_EQ(plan.program.launches.size(), 1U);
    return write_wgsl(plan.program.launches[0],
                      {.max_threads = 1024, .max_workgroup_bytes = bytes, .gpu = {.cores = 16}})
        .threads;
  };
  EXPECT_EQ(threads(16, 32 << 10), 512);
  EXPECT_EQ(threads(16, 16 << 10), 256);
  EXPECT_EQ(threads(17, 32 << 10), 256);
}

TEST_F(WebGpuAttentionOfFewQueries, of_blocks_that_hang_over) {
  check({2, 1, 65, 4, 8}, attend_all);
  check({2, 3, 700, 20, 24}, attend_all);
  check({1, 1, 1501, 64, 40}, attend_all);
  check({1, 2, 600, 16, 120}, attend_all);  // threads without a line of v
}

TEST_F(WebGpuAttentionOfFewQueries, with_masks_and_biases) {
  check({2, 1, 100, 16, 20}, attend_masked);
  check({2, 4, 1600, 8, 12}, attend_masked);
  check({2, 3, 300, 16, 16}, attend_biased);
  check({2, 4, 70, 16, 16}, attend_causally);
  check({2, 4, 70, 16, 16}, attend_dropping);
}

// Whole blocks are masked. A row without keys is zero.
TEST_F(WebGpuAttentionOfFewQueries, of_rows_without_keys) {
  check({2, 2, 1600, 16, 16}, [](GraphBuilder&, const AttentionSize& s) {
    const Tensor column = iota({s.rows, s.columns}, 1, i32),
                 row = iota({s.rows, s.columns}, 0, i32);
    return AttentionOptions{.mask = column >= 1200 && column < 1300 && row == 0};
  });
}

}  // namespace
}  // namespace tensorgrad::testing
