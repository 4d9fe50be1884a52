// SPDX-License-Identifier: MIT
// Products of few rows that compute their first operand, and concats that compute theirs: fewer
// launches, and the values of the reference.
#include <algorithm>
#include <functional>

#include "codegen/wgsl/writer.h"
#include "ops/expr.h"
#include "ops/registry.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

std::vector<Launch> launches_of(GraphBuilder& s, std::int64_t most_bytes = 0, int join = 0) {
  return compile_for_test(s.graph(), 8, most_bytes, true, join, kMaxRowColumns).program.launches;
}

bool computes_operand(const Launch& launch) {
  const auto* product = launch.find<ContractionLaunch>();
  return product != nullptr && product->a_by_rows;
}

void expect_one_product(GraphBuilder& s) {
  const std::vector<Launch> launches = launches_of(s);
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_TRUE(computes_operand(launches[0]));
}

Tensor normed(GraphBuilder& s, const Tensor& x) {
  const std::int64_t cols = x.shape().back();
  return layer_norm(x, s.input({cols}), s.input({cols}));
}

// Depths below and above those of vectors, one that is no multiple of four, and one that exceeds a
// workgroup. The weight's lines run along k, as in a linear layer, or along n.
TEST(RowOperand, is_right_at_every_size_on_webgpu) {
  for (const bool along_k : {true, false}) {
    for (const std::int64_t rows : {1, 2, 3, 4}) {
      for (const std::int64_t depth : {8, 64, 131, 768}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(depth) +
                     (along_k ? " along k" : " along n"));
        GraphBuilder s;
        const Tensor x = s.input({rows, depth});
        const Tensor w = along_k ? transpose(s.input({37, depth})) : s.input({depth, 37});
        s.output("y", matmul(normed(s, x), w) + s.input({37}));
        expect_one_product(s);
        s.check(Where::kWebGpu);
      }
    }
  }
}

TEST(RowOperand, may_be_any_map_or_rows_on_webgpu) {
  const std::vector<std::function<Tensor(GraphBuilder&, const Tensor&)>> operands = {
      [](GraphBuilder&, const Tensor& x) { return softmax(x); },
      [](GraphBuilder&, const Tensor& x) { return rms_norm(x); },
      [](GraphBuilder& s, const Tensor& x) { return sin(exp(x) * s.input({2, 96}) + 0.5); },
      [](GraphBuilder& s, const Tensor& x) {
        const Tensor halves = concat({exp(narrow(x, 1, 3, 48)), s.input({2, 48})}, 1);
        return sin(exp(halves * -1.0) * s.input({96}));
      }};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    SCOPED_TRACE(i);
    GraphBuilder s;
    const Tensor x = s.input({2, 96});
    s.output("y", relu(matmul(operands[i](s, x), transpose(s.input({40, 96})))));
    expect_one_product(s);
    s.check(Where::kWebGpu);
  }
}

// Operands of f16 that matrix units would take, and the largest operand: its kernel is also dumped.
TEST(RowOperand, may_be_of_f16_or_as_large_as_workgroup_memory_allows_on_webgpu) {
  for (const bool half : {true, false}) {
    GraphBuilder s;
    const Tensor x = softmax(s.input({4, half ? 64 : 1536}, -1, 1));
    const Tensor w = s.input({x.shape()[1], 16}, -1, 1, half ? DType::kF16 : f32);
    s.output("y", matmul(half ? round_to_f16(x) : x, cast(w, f32)));
    expect_one_product(s);
    const Launch launch = launches_of(s)[0];
    EXPECT_NE(emit_wgsl(launch).find("rows_of_a"), std::string::npos);
    WgslOptions matrices;
    matrices.subgroup_matrix = {16, 16, 16, 32};
    matrices.gpu.min_subgroup_matrix_products = 0;
    EXPECT_EQ(emit_wgsl(launch, matrices), emit_wgsl(launch));
    s.check(Where::kWebGpu, half ? 1e-3 : 3e-5);
  }
}

// Parameters of the norm and of the product are in one buffer, which the product reads as vectors.
TEST(RowOperand, reads_parameters_beside_those_of_the_product_on_webgpu) {
  GraphBuilder s;
  const auto parameter = [&](const std::string& name, const Shape& shape, std::int64_t offset) {
    return s.leaf(ops::parameter, name, shape, f32, s.draw.values(f32, numel(shape), -1, 1),
                  offset);
  };
  const Tensor scale = parameter("scale", {128}, 0), w = parameter("w", {48, 128}, 128);
  s.output("y", matmul(rms_norm(s.input({1, 128}), scale), transpose(w)));
  expect_one_product(s);
  s.check(Where::kWebGpu);
}

// A launch for two of four rows computes no others.
TEST(RowOperand, may_be_split_for_bindings_on_webgpu) {
  GraphBuilder s;
  s.output("y", matmul(softmax(s.input({4, 1024})), s.input({1024, 1})));
  const std::vector<Launch> parts = launches_of(s, 8 << 10);
  ASSERT_EQ(parts.size(), 2U);
  for (const Launch& part : parts) EXPECT_TRUE(computes_operand(part));
  EXPECT_EQ(parts[1].first_row, 2);
  const ValueMap want = interpret_graph(s.graph(), s.leaves);
  for (const std::int64_t most : {0, 8 << 10}) {
    const ValueMap got = run_graph(s.graph(), s.leaves, Where::kWebGpu, 8, most);
    expect_close(s.graph(), got, want, 1e-5, std::to_string(most) + " bytes");
  }
}

TEST(RowOperand, is_computed_in_concurrent_products_on_webgpu) {
  GraphBuilder s;
  for (const char* name : {"q", "k"})
    s.output(name, matmul(rms_norm(s.input({1, 96})), transpose(s.input({32, 96}))));
  const std::vector<Launch> launches = launches_of(s, 0, 16);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_TRUE(std::all_of(launches.begin(), launches.end(), computes_operand));
  EXPECT_TRUE(launches[1].concurrent);
  s.check(Where::kWebGpu);
}

TEST(RowOperand, is_stored_if_others_need_it_or_there_are_many) {
  const auto count = [](const auto& make) {
    GraphBuilder s;
    make(s);
    const std::vector<Launch> launches = launches_of(s);
    return std::count_if(launches.begin(), launches.end(), computes_operand);
  };
  const auto product_of = [](std::int64_t rows, std::int64_t depth) {
    return [rows, depth](GraphBuilder& s) {
      s.output("y", matmul(softmax(s.input({rows, depth})), s.input({depth, 8})));
    };
  };
  EXPECT_EQ(count(product_of(4, 1536)), 1);
  EXPECT_EQ(count(product_of(5, 64)), 0);
  EXPECT_EQ(count(product_of(4, 1537)), 0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // many columns
              s.output("y", matmul(softmax(s.input({1, 8})), s.input({8, (1 << 14) + 1})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // many weights, which would be read for each row
              s.output("y", matmul(softmax(s.input({2, 512})), s.input({512, 513})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // several products
              s.output("y", matmul(softmax(s.input({3, 2, 64})), s.input({3, 64, 8})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // an output
              const Tensor p = softmax(s.input({2, 64}));
              s.output("p", p);
              s.output("y", matmul(p, s.input({64, 8})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // read by the epilogue
              const Tensor p = softmax(s.input({2, 64}));
              s.output("y", matmul(p, s.input({64, 64})) + p);
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // both operands
              const Tensor p = softmax(s.input({4, 64}));
              s.output("y", matmul(p, transpose(p)));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // transposed
              s.output("y", matmul(transpose(softmax(s.input({64, 2}))), s.input({64, 8})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // too much workgroup memory
              const Tensor x = s.input({2, 64}), best = cast(argmax(x, 1, true), DType::kF32);
              s.output("y", matmul(sin(exp(x) * best + 0.5), s.input({64, 8})));
            }),
            0);
  EXPECT_EQ(count([](GraphBuilder& s) {  // one value per row
              const Tensor x = mean(s.input({2, 64}), {1}, true);
              s.output("y", matmul(x, s.input({1, 8})));
            }),
            0);
}

// A rotary embedding: halves of each head are rotated and joined again.
TEST(ConcatOperands, are_computed_by_the_concat_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({2, 3, 5, 8}), cosine = s.input({5, 4}), sine = s.input({5, 4});
  const Tensor a = narrow(x, 3, 0, 4), b = narrow(x, 3, 4, 4);
  s.output("y", concat({a * cosine - b * sine, a * sine + b * cosine}, 3));
  EXPECT_EQ(launches_of(s).size(), 1U);
  s.check(Where::kWebGpu);
  CompileRequest cpu;
  compile_for(device_at(Where::kCpu)->info(), cpu);
  EXPECT_FALSE(cpu.fusing.concat_operands);
}

}  // namespace
}  // namespace tensorgrad::testing
