// SPDX-License-Identifier: MIT
// Fused sequences: launches that follow each other by blocks of rows are one kernel and return the
// values of the reference. A launch that would read rows of another block is in no sequence.
#include <algorithm>
#include <numeric>

#include "ops/expr.h"
#include "plan/networks.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

std::int64_t links(const Program& program) {
  return std::count_if(program.launches.begin(), program.launches.end(),
                       [](const Launch& launch) { return launch.fused_sequence; });
}

// A transformer block without attention: norm, two layers, a residual, another norm.
void block(GraphBuilder& s, std::int64_t rows, std::int64_t width, std::int64_t inner) {
  const Tensor x = s.input({rows, width}), up = s.input({width, inner}, -0.3, 0.3);
  const Tensor down = s.input({inner, width}, -0.3, 0.3), out = s.input({width, width}, -0.3, 0.3);
  const Tensor scale = s.input({width}), shift = s.input({width});
  const Tensor h = layer_norm(matmul(x, out) + x, scale, shift);
  const Tensor y = matmul(gelu(matmul(h, up)), down) + h;
  const Tensor z = matmul(layer_norm(y, scale, shift), out);
  s.output("z", z);
  const std::vector<Tensor> grads = grad(mean(square(z)), {x, up, down, out, scale, shift});
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
}

TEST(FusedSequence, has_all_layers_of_a_small_network_forward_and_backward) {
  GraphBuilder s;
  network(s, 256, {1, 64, 64, 1});
  const Program program = fused_sequence(s.graph()).program;
  // Five products, then the weight gradients and the loss as concurrent launches.
  EXPECT_EQ(links(program), 4) << print(program);
  EXPECT_LE(count_dispatches(program), 3) << print(program);
  const Program plain =
      compile_for_test(s.graph(), kChainBindings, 0, true, kChainBindings).program;
  EXPECT_EQ(links(plain), 0);
  EXPECT_GE(count_dispatches(plain), count_dispatches(program) + 4);
}

// Checks every element that a launch of a fused sequence reads from the results of the sequence.
void expect_own_blocks(const Program& program, const std::string& note) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (!launch.fused_sequence) first = i;
    for (const ScalarProgram* scalar : programs_of(launch)) {
      for (const Access& access : scalar->accesses) {
        const Binding& read = launch.bindings[static_cast<std::size_t>(access.binding)];
        for (std::size_t j = first; j < i; ++j) {
          for (const Store& store : program.launches[j].stores) {
            const Binding& made =
                program.launches[j].bindings[static_cast<std::size_t>(store.binding)];
            if (made.buffer != read.buffer) continue;
            ASSERT_EQ(made.offset, read.offset) << note;
            const std::int64_t size = store.map.domain_size(), start = store.map.views[0].offset;
            const std::int64_t domain = access.map.domain_size();
            for (std::int64_t e = 0; e < domain; ++e) {
              const std::int64_t at = offset_at(access.map, e);
              if (at < start || at >= start + size) continue;  // another value of the buffer
              ASSERT_EQ((at - start) * launch.blocks / size, e * launch.blocks / domain)
                  << launch.name << " reads " << program.launches[j].name << "\n"
                  << note;
            }
          }
        }
      }
    }
  }
}

TEST(FusedSequence, reads_only_the_same_block_of_its_own_results) {
  for (const bool norms : {false, true}) {
    GraphBuilder s;
    if (norms) {
      block(s, 64, 32, 64);
    } else {
      network(s, 64, {3, 24, 40, 2});
    }
    const Program program = fused_sequence(s.graph()).program;
    EXPECT_GT(links(program), 2);
    expect_own_blocks(program, print(program));
  }
  std::int64_t found = 0;
  for (std::uint64_t seed = 900; seed < 900 + how_many(60); ++seed) {
    const Program program = fused_sequence(random_graph(seed).graph).program;
    found += links(program);
    expect_own_blocks(program, "seed " + std::to_string(seed) + "\n" + print(program));
  }
  RecordProperty("links of random graphs", std::to_string(found));
}

// Widths above, at and below a tile of 64, ragged widths, one column, one step of k, and products
// that are computed by lanes.
TEST(FusedSequence, matches_the_reference_on_webgpu) {
  const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> sizes = {
      {256, {1, 64, 64, 1}},
      {16, {64, 64, 64}},
      {64, {24, 130, 36, 5}},
      {40, {8, 16, 200, 16}},
      {512, {2, 20, 12, 3}}};
  for (const auto& [rows, widths] : sizes) {
    SCOPED_TRACE(tensorgrad::to_string(Shape(widths)) + " " + std::to_string(rows));
    GraphBuilder s;
    network(s, rows, widths);
    EXPECT_GT(links(fused_sequence(s.graph()).program), 0);
    s.check(Where::kWebGpu);
  }
}

TEST(FusedSequence, includes_norms_and_residuals_on_webgpu) {
  GraphBuilder s;
  block(s, 48, 32, 64);
  EXPECT_GT(links(fused_sequence(s.graph()).program), 4);
  s.check(Where::kWebGpu, 1e-4);
}

// Runs the same graph with fused sequences and launch by launch.
TEST(FusedSequence, matches_separate_launches_on_webgpu) {
  GraphBuilder s;
  network(s, 128, {6, 48, 64, 4});
  const ValueMap chain = run_graph(s.graph(), s.leaves, Where::kWebGpu);
  const ValueMap alone = run_graph(s.graph(), s.leaves, Where::kWebGpu, 0, 0, false);
  expect_close(s.graph(), chain, alone, 1e-5, "");
}

// Each of these additions to two layers reads rows of other blocks, or overwrites rows that other
// blocks read.
TEST(FusedSequence, ends_before_rows_of_another_block_are_read) {
  const auto count = [](const auto& make) {
    GraphBuilder s;
    const Tensor x = s.input({64, 16}), w = s.input({16, 16}), v = s.input({16, 16});
    const Tensor h = matmul(tanh(matmul(x, w)), v);
    s.output("h", h);
    make(s, h, v);
    return links(fused_sequence(s.graph()).program);
  };
  const auto nothing = [](GraphBuilder&, const Tensor&, const Tensor&) {};
  ASSERT_EQ(count(nothing), 1);
  EXPECT_EQ(count([](GraphBuilder& s, const Tensor& h, const Tensor& v) {
              s.output("y", matmul(tanh(h), v));
            }),
            2);
  EXPECT_EQ(count([](GraphBuilder& s, const Tensor& h, const Tensor&) {  // as the second operand
              s.output("y", matmul(s.input({64, 64}), h));
            }),
            1);
  EXPECT_EQ(count([](GraphBuilder& s, const Tensor& h, const Tensor&) {  // transposed
              s.output("y", matmul(transpose(tanh(h)), s.input({64, 8})));
            }),
            1);
  EXPECT_EQ(count([](GraphBuilder& s, const Tensor& h, const Tensor& v) {  // the next row
              const Tensor next = pad(narrow(h, 0, 1, 63), {0, 0, 0, 1});
              s.output("y", matmul(next, v));
            }),
            1);
  EXPECT_EQ(count([](GraphBuilder& s, const Tensor& h, const Tensor& v) {  // any row
              const Tensor rows = s.input({64}, i32, Values(64, 5));
              s.output("y", matmul(index_select(h, 0, rows), v));
            }),
            1);
  const auto of_network = [](std::int64_t rows, std::int64_t width) {
    GraphBuilder s;
    network(s, rows, {4, width, width, 4});
    return links(fused_sequence(s.graph()).program);
  };
  EXPECT_GT(of_network(64, 16), 0);
  EXPECT_EQ(of_network(60, 16), 0);   // no block size divides the rows
  EXPECT_EQ(of_network(64, 512), 0);  // a workgroup with all columns would take too long
}

TEST(FusedSequence, can_be_disabled) {
  GraphBuilder s;
  network(s, 64, {4, 16, 16, 1});
  EXPECT_GT(links(fused_sequence(s.graph()).program), 0);
  const ScopedEnv env("TENSORGRAD_SKIP", "fused_sequences");
  EXPECT_EQ(links(fused_sequence(s.graph()).program), 0);
}

}  // namespace
}  // namespace tensorgrad::testing
