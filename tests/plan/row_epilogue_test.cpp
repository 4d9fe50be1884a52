// SPDX-License-Identifier: MIT
// Row reductions in the epilogue of the product that they read: fewer launches, and the values of
// the reference.
#include "codegen/wgsl/writer.h"
#include "ops/expr.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

constexpr int kColumns = 64;

// The end of a residual block with the following norm, and its gradients.
void normed(GraphBuilder& s, std::int64_t rows, std::int64_t cols, std::int64_t depth) {
  const Tensor x = s.input({rows, depth}), w = s.input({depth, cols}), r = s.input({rows, cols});
  const Tensor scale = s.input({cols}), shift = s.input({cols}), v = s.input({cols, cols});
  const Tensor y = matmul(x, w) + r;
  const Tensor h = layer_norm(y, scale, shift);
  const Tensor out = softmax(matmul(h, v));
  s.output("y", y);
  s.output("out", out);
  s.output("best", argmax(matmul(h, v), 1));
  const std::vector<Tensor> grads = grad(sum(square(out)), {x, w, scale, shift, v});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
}

std::size_t launches_of(const Graph& graph, int row_columns) {
  return compile_for_test(graph, 16, 0, true, 0, row_columns).program.launches.size();
}

bool is_by_rows(const Launch& launch) {
  const auto* product = launch.find<ContractionLaunch>();
  return product != nullptr && product->by_rows;
}

std::size_t by_rows(const Graph& graph) {
  const Program program = compile_for_test(graph, 16, 0, true, 0, kColumns).program;
  return static_cast<std::size_t>(
      std::count_if(program.launches.begin(), program.launches.end(), is_by_rows));
}

// Whole and ragged tiles; one row, few columns, and depths below and above a step of k.
TEST(RowEpilogue, is_right_at_every_size_on_webgpu) {
  const std::vector<std::vector<std::int64_t>> sizes = {{64, 64, 64}, {40, 64, 24},   {1, 7, 130},
                                                        {33, 2, 5},   {100, 33, 200}, {16, 16, 1}};
  for (const std::vector<std::int64_t>& size : sizes) {
    SCOPED_TRACE(tensorgrad::to_string(size));
    GraphBuilder s;
    normed(s, size[0], size[1], size[2]);
    EXPECT_GE(by_rows(s.graph()), 1U);
    s.check(Where::kWebGpu);
  }
}

// From 4096 rows on, a workgroup computes 16 of them. The last workgroup may have fewer.
TEST(RowEpilogue, is_right_for_many_rows_on_webgpu) {
  const std::vector<std::vector<std::int64_t>> sizes = {
      {4095, 8, 12}, {4096, 64, 70}, {4101, 7, 130}, {4111, 33, 5}};
  for (const std::vector<std::int64_t>& size : sizes) {
    SCOPED_TRACE(tensorgrad::to_string(size));
    GraphBuilder s;
    const bool across = size[1] % 2 == 1;  // k is the outer axis of both operands
    const Tensor x = across ? transpose(s.input({size[2], size[0]})) : s.input({size[0], size[2]}),
                 w = across ? s.input({size[2], size[1]}) : transpose(s.input({size[1], size[2]}));
    const Tensor y = matmul(x, w) * 0.1 + s.input({size[1]});
    s.output("y", y);
    s.output("h", layer_norm(y, s.input({size[1]}), s.input({size[1]})));
    s.output("best", argmax(y, 1));
    const Program program = compile_for_test(s.graph(), 8, 0, true, 0, kColumns).program;
    ASSERT_EQ(program.launches.size(), 1U);
    EXPECT_TRUE(is_by_rows(program.launches[0]));
    const bool high = emit_wgsl(program.launches[0]).find("tile * 16u") != std::string::npos;
    EXPECT_EQ(high, size[0] >= 4096);
    s.check(Where::kWebGpu);
  }
}

// If buffers exceed a binding, the rows are split among launches. The second launch begins within
// the 8 rows of a workgroup of the whole, and its last workgroup has fewer rows.
TEST(RowEpilogue, split_for_bindings_keeps_the_bits_on_webgpu) {
  CompileRequest usual;
  compile_for(device_at(Where::kWebGpu)->info(), usual);
  ASSERT_EQ(usual.fusing.row_epilogue_columns, kColumns);
  for (const bool across : {false, true}) {  // k is the outer axis of both operands
    SCOPED_TRACE(across);
    const std::int64_t rows = 246, cols = across ? 36 : 64, depth = 20;
    const std::int64_t most_bytes = across ? 22 << 10 : 40 << 10;
    GraphBuilder s;
    const Tensor x = across ? transpose(s.input({depth, rows})) : s.input({rows, depth}),
                 w = across ? s.input({depth, cols}) : transpose(s.input({cols, depth}));
    const Tensor y = matmul(x, w) * 0.1 + s.input({rows, cols});
    s.output("y", y);
    s.output("h", layer_norm(y, s.input({cols}), s.input({cols})));
    s.output("best", argmax(y, 1));
    const auto launches = [&](std::int64_t most) {
      return compile_for_test(s.graph(), 8, most, true, 0, kColumns).program.launches;
    };
    EXPECT_EQ(launches(0).size(), 1U);
    const std::vector<Launch> parts = launches(most_bytes);
    ASSERT_EQ(parts.size(), 2U);
    for (const Launch& part : parts) EXPECT_TRUE(is_by_rows(part));
    EXPECT_EQ(parts[1].first_row, 123);
    const ValueMap whole = run_graph(s.graph(), s.leaves, Where::kWebGpu, 8);
    EXPECT_EQ(run_graph(s.graph(), s.leaves, Where::kWebGpu, 8, most_bytes), whole);
    expect_close(s.graph(), whole, interpret_graph(s.graph(), s.leaves), 1e-4, "in one launch");
  }
}

TEST(RowEpilogue, saves_launches) {
  GraphBuilder s;
  normed(s, 64, 64, 64);
  EXPECT_LT(launches_of(s.graph(), kColumns), launches_of(s.graph(), 0));
}

// Two sums of each row, and values computed from both. The only row launch left is the norm itself.
TEST(RowEpilogue, fuses_the_whole_gradient_of_a_norm_on_webgpu) {
  GraphBuilder s;
  const Tensor y = s.input({48, 64}), scale = s.input({64}), v = s.input({64, 64});
  const Tensor out = matmul(layer_norm(y, scale, s.input({64})), v);
  s.output("dy", grad(mean(out * s.input({48, 64})), {y})[0]);
  const Program program = compile_for_test(s.graph(), 16, 0, true, 0, kColumns).program;
  EXPECT_EQ(std::count_if(program.launches.begin(), program.launches.end(),
                          [](const Launch& launch) { return launch.is<RowLaunch>(); }),
            1);
  s.check(Where::kWebGpu);
}

TEST(RowEpilogue, is_not_applied_if_it_does_not_fit) {
  const auto count = [](const auto& make) {
    GraphBuilder s;
    make(s);
    return by_rows(s.graph());
  };
  EXPECT_EQ(count([](GraphBuilder& s) {
              s.output("y", softmax(matmul(s.input({8, 16}), s.input({16, 64}))));
            }),
            1U);
  EXPECT_EQ(count([](GraphBuilder& s) {  // too many columns
              s.output("y", softmax(matmul(s.input({8, 16}), s.input({16, 65}))));
            }),
            0U);
  EXPECT_EQ(count([](GraphBuilder& s) {  // rows that are not those of the product
              s.output("y",
                       sum(reshape(matmul(s.input({8, 16}), s.input({16, 16})), {16, 8}), {1}));
            }),
            0U);
  EXPECT_EQ(count([](GraphBuilder& s) {  // several products
              s.output("y", softmax(matmul(s.input({3, 8, 16}), s.input({3, 16, 16}))));
            }),
            0U);
  EXPECT_EQ(count([](GraphBuilder& s) {  // the rows also need a product of the result
              const Tensor p = matmul(s.input({16, 16}), s.input({16, 16}));
              s.output("y", softmax(p + matmul(p, s.input({16, 16}))));
            }),
            1U);
}

}  // namespace
}  // namespace tensorgrad::testing
