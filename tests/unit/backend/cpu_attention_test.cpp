// SPDX-License-Identifier: MIT
// Attention on the CPU over more columns than a tile of scores holds. Previous results are scaled
// down if larger scores follow, and gradients are added tile by tile. The results match the
// reference in double, and have the same bits for any number of threads.
#include <functional>

#include "backend/backend.h"
#include "compile/debug/graph_run.h"
#include "compile/runtime/element_codec.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

// The forward pass has tiles of 256 columns.
struct LongAttention {
  std::int64_t batch, rows, columns, depth, width;
};

using Attending = std::function<AttentionOptions(const LongAttention&)>;

// The largest score of a row is in any tile, so previous results are scaled down or kept.
AttentionOptions attend_open(const LongAttention&) { return {.scale = 3}; }
AttentionOptions attend_before(const LongAttention&) { return {.causal = true, .scale = 3}; }

void expect_as_reference(const LongAttention& s, const Attending& attending) {
  SCOPED_TRACE(tensorgrad::to_string(Shape{s.batch, s.rows, s.columns, s.depth, s.width}));
  GraphBuilder builder;
  const Tensor q = builder.input({s.batch, s.rows, s.depth}),
               k = builder.input({s.batch, s.columns, s.depth}),
               v = builder.input({s.batch, s.columns, s.width});
  const Tensor o = scaled_dot_product_attention(q, k, v, attending(s));
  const std::vector<Tensor> d = grad(sum(square(o)), {q, k, v});
  builder.output("o", o);
  for (std::size_t i = 0; i < d.size(); ++i) builder.output("d" + std::to_string(i), d[i]);
  const Graph& graph = builder.graph();
  const LeafWords leaves = fill_leaves(graph, {}, 9);
  const auto by_threads = [&](int threads) {
    return run_on_device(graph, leaves, make_cpu_device({.threads = threads}));
  };
  const std::vector<std::vector<std::uint32_t>> words = by_threads(1);
  for (const int threads : {2, 4}) EXPECT_EQ(by_threads(threads), words) << threads;
  ValueMap given, values;
  const std::vector<ResultInfo> infos = results_of(graph);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    for (const std::uint32_t word : words[i])
      given[infos[i].name].push_back(decode_element(word, f32));
  }
  for (const Node& node : graph.nodes) {
    if (node.op->kind != OpKind::kLeaf || node.op->eval != nullptr) continue;
    values[node.attrs.text("name")] = leaf_values(node, leaves);
  }
  expect_close(graph, given, interpret_graph(graph, values), 2e-5, "on the cpu");
}

// Widths that are not multiples of a vector, and widths that are. The last tile is shorter.
TEST(CpuAttention, of_several_tiles) {
  expect_as_reference({2, 40, 600, 5, 3}, attend_open);
  expect_as_reference({1, 70, 700, 16, 32}, attend_open);
  expect_as_reference({1, 1, 513, 7, 1}, attend_open);
}

// Up to four queries: keys and values are read in place. Values are whole vectors, half a panel, or
// a panel and a half.
TEST(CpuAttention, of_few_queries) {
  const auto plain = [](const LongAttention&) { return AttentionOptions{}; };
  expect_as_reference({2, 1, 600, 64, 64}, plain);
  expect_as_reference({3, 4, 300, 20, 24}, plain);
  expect_as_reference({2, 3, 520, 33, 8},
                      [](const LongAttention&) { return AttentionOptions{.causal = true}; });
  expect_as_reference({2, 2, 600, 16, 16}, [](const LongAttention& s) {
    const Shape scores = {s.rows, s.columns};
    return AttentionOptions{.mask = iota(scores, 1, i32) <= iota(scores, 0, i32) + 400};
  });
}

// Among the rows that are processed together, some attend to nothing in the last tile.
TEST(CpuAttention, of_several_tiles_that_is_causal) {
  expect_as_reference({1, 300, 300, 7, 9}, attend_before);
  expect_as_reference({2, 270, 600, 4, 1}, attend_before);
}

// With many heads, one launch computes all gradients: dq in one part, in two parts and two rounds,
// and in four parts.
TEST(CpuAttention, backward_in_one_launch) {
  expect_as_reference({180, 40, 30, 7, 9}, attend_open);
  expect_as_reference({130, 3, 250, 5, 4}, attend_open);
  expect_as_reference({66, 70, 250, 4, 3}, attend_before);
}

// Rows that attend to nothing in the first tile while others do, and a row that attends to nothing
// at all. A first tile to which no row attends. A bias that increases the scores from tile to tile.
TEST(CpuAttention, of_several_tiles_under_masks) {
  const auto seen_from = [](const LongAttention& s, std::int64_t first, std::int64_t step) {
    const Shape scores = {s.rows, s.columns};
    return iota(scores, 1, i32) >= iota(scores, 0, i32) * step + first;
  };
  expect_as_reference({1, 41, 600, 5, 3}, [&](const LongAttention& s) {
    return AttentionOptions{.mask = seen_from(s, 0, 15), .scale = 3};
  });
  expect_as_reference({1, 20, 900, 5, 3}, [&](const LongAttention& s) {
    return AttentionOptions{.mask = seen_from(s, 300, 1), .scale = 3};
  });
  expect_as_reference({1, 20, 600, 6, 10}, [](const LongAttention& s) {
    const Tensor column = iota({s.rows, s.columns}, 1, f32);
    return AttentionOptions{.mask = column * 0.01, .scale = 1, .dropout = 0.3};
  });
}

}  // namespace
}  // namespace tensorgrad::testing
