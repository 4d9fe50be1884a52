// SPDX-License-Identifier: MIT
// Buffers larger than a binding: launches bind ranges, split their rows, and cut products along k.
// The limit is small so that ordinary graphs exceed it.
#include <gmock/gmock.h>

#include <algorithm>

#include "ops/registry.h"
#include "support/differential.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kLimit = 64 << 10;

struct Cut {
  int ranges = 0, parts = 0;  // bindings of a part of a buffer; launches of a part of the rows
};

Cut check_program(const Program& program, std::int64_t limit, const std::string& note) {
  verify(program);
  Cut cut;
  for (const Launch& launch : program.launches) {
    cut.parts += launch.row_count > 0 ? 1 : 0;
    for (const Binding& binding : launch.bindings) {
      EXPECT_LE(binding.bytes, limit) << launch.name << "\n" << note;
      const BufferDecl& buffer = program.buffers[static_cast<std::size_t>(binding.buffer)];
      cut.ranges += binding.bytes < buffer.bytes ? 1 : 0;
    }
  }
  return cut;
}

// Compares the graph on WebGPU under the limit with the interpreter. Expects at least `parts`
// launches that compute a part of the rows of a larger launch.
void check(GraphBuilder& s, int parts, double tolerance = 1e-4) {
  const Program program = compile_for_test(s.graph(), 8, kLimit).program;
  const Cut cut = check_program(program, kLimit, print(program));
  EXPECT_GE(cut.parts, parts) << print(program);
  EXPECT_GT(cut.ranges, 0) << print(program);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 8, kLimit),
               interpret_graph(s.graph(), s.leaves), tolerance, print(program));
}

TEST(FitBindings, maps_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({50001}), y = s.input({50001});
  s.output("y", x * y + iota({50001}, 0, f32));
  s.output("turned", flip(x, 0));
  s.output("padded", pad(x, {700, 300}));
  check(s, 4);
}

TEST(FitBindings, rows_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({300, 257});
  s.output("softmax", softmax(x));
  s.output("top", argmax(x, 1));
  s.output("batches", transpose(softmax(s.input({40, 30, 50}), 1), 1, 2) * 0.5);
  check(s, 6);
}

TEST(FitBindings, long_reductions_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({40009, 3});
  s.output("sum", sum(x));
  s.output("columns", sum(x, 0));
  s.output("max", max(x, 0));
  check(s, 4);
}

TEST(FitBindings, scans_and_sorts_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({60, 300, 2}), y = s.input({20, 2500});
  s.output("recurrence", linear_recurrence(sigmoid(x), x, 1, std::nullopt, true) * 0.5);
  s.output("places", cummax(y, 1).indices);
  s.output("sorted", argsort(x, 1));
  s.output("long", argsort(y, 1, true));
  check(s, 8);
}

// Lines that span a whole buffer cannot be cut.
TEST(FitBindings, lines_across_a_large_buffer_are_rejected) {
  GraphBuilder s;
  s.output("y", cumsum(s.input({300, 257}), 0));
  try {
    static_cast<void>(compile_for_test(s.graph(), 8, kLimit));
    FAIL() << "compiled";
  } catch (const UserError& error) {
    EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr("are needed at once"));
  }
}

TEST(FitBindings, products_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({1000, 70}), w = s.input({50, 70}), b = s.input({50});
  s.output("layer", relu(linear(x, w, b)));
  const Tensor a = s.input({9, 60, 50}), c = s.input({9, 50, 40});
  s.output("batches", matmul(a, c));
  s.output("one", matmul(s.input({2, 300, 80}), s.input({2, 80, 20})));
  check(s, 8);
}

// b has 80,000 bytes in all, so k = 1000 is cut into two stretches.
void check_cut_along_k(Where where) {
  GraphBuilder s;
  s.output("y", relu(matmul(s.input({12, 1000}), s.input({1000, 20})) + s.input({20})));
  const Program program = compile_for_test(s.graph(), 8, kLimit).program;
  check_program(program, kLimit, print(program));
  std::vector<std::int64_t> depths;
  for (const Launch& launch : program.launches) {
    if (const auto* p = launch.find<ContractionLaunch>()) depths.push_back(p->k);
  }
  EXPECT_THAT(depths, ::testing::ElementsAre(500, 500)) << print(program);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where, 8, kLimit),
               interpret_graph(s.graph(), s.leaves), 1e-4, print(program));
}
TEST(FitBindings, products_are_cut_along_k_on_cpu) { check_cut_along_k(Where::kCpu); }
TEST(FitBindings, products_are_cut_along_k_on_webgpu) { check_cut_along_k(Where::kWebGpu); }

// The weight gradient is cut along the batch. Its row of ones, which sums the bias gradient, is cut
// with it.
TEST(FitBindings, gradients_of_a_large_batch_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({2000, 33}, -1, 1), t = s.input({2000, 20}, -1, 1);
  const Tensor w = s.input({20, 33}, -0.3, 0.3), b = s.input({20}, -0.3, 0.3);
  const Tensor loss = mse(tanh(linear(x, w, b)), t);
  const std::vector<Tensor> grads = grad(loss, {w, b, x});
  s.output("loss", loss);
  s.output("dw", grads[0]);
  s.output("db", grads[1]);
  s.output("dx", grads[2]);
  check(s, 4);
}

// Both gradients are in one buffer. A range of it with rows of both is large.
TEST(FitBindings, gradients_that_are_larger_than_the_limit_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({20, 100}, -1, 1), t = s.input({20, 400}, -1, 1);
  const Tensor w =
      s.leaf(ops::parameter, "w", {100, 400}, f32, s.draw.values(f32, 40000, -1, 1), 0);
  const Tensor b = s.leaf(ops::parameter, "b", {400}, f32, s.draw.values(f32, 400, -1, 1), 40000);
  const std::vector<Tensor> grads = grad(mse(tanh(matmul(x, w) + b), t), {w, b});
  s.output("grads", concat({reshape(grads[0], {40000}), grads[1]}));
  check(s, 2);
}

TEST(FitBindings, gather_and_scatter_on_webgpu) {
  GraphBuilder s;
  const Tensor table = s.input({500, 30}), index = s.input({900}, 0, 499, i32);
  const Tensor rows = embedding(index, table);
  s.output("rows", rows);
  s.output("sums", scatter_add(zeros({2000, 16}), 0, broadcast_to(unsqueeze(index, 1), {900, 16}),
                               s.input({900, 16})));
  check(s, 3);
}

// Each parameter has a range of the arena. The update covers the whole arena in place.
TEST(FitBindings, an_arena_larger_than_the_limit_on_webgpu) {
  GraphBuilder s;
  const std::int64_t n = 3 * 12800;
  std::vector<Tensor> parameters;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < 3; ++i) {
    parameters.push_back(s.leaf(ops::parameter, "p" + std::to_string(i), {100, 128}, f32,
                                s.draw.values(f32, 12800, -1, 1), i * 12800));
    parts.push_back(reshape(parameters.back(), {12800}) * 0.5);
  }
  s.output("y", matmul(s.input({20, 100}), parameters[1]));
  s.output("picked", embedding(s.input({40}, 0, 99, i32), parameters[2]));
  const Tensor state = s.leaf(ops::state, "v", {n}, f32, s.draw.values(f32, n, -1, 1));
  s.graph().updates = {{state.id(), (state * 0.9 + concat(parts) * 0.1).id()}};
  check(s, 3);
}

// The parts have unequal sizes, and the bytes that the product moves are not a multiple of the 1003
// rows. The totals must match anyway.
TEST(FitBindings, parts_count_as_much_work_as_the_whole) {
  GraphBuilder s;
  s.output("y", matmul(s.input({1003, 70}), s.input({70, 50})) * 2);
  const auto work = [&](std::int64_t limit) {
    std::int64_t bytes = 0, flops = 0;
    for (const Launch& launch : compile_for_test(s.graph(), 8, limit).program.launches) {
      bytes += launch.bytes_moved;
      flops += launch.flops;
    }
    return std::pair(bytes, flops);
  };
  EXPECT_GT(compile_for_test(s.graph(), 8, kLimit).program.launches.size(), 1U);
  EXPECT_EQ(work(kLimit), work(0));
}

TEST(FitBindings, the_table_names_the_ranges_that_are_bound) {
  GraphBuilder s;
  s.output("y", s.input({20000}) * 2);
  const std::string whole = print(compile_for_test(s.graph(), 8).program);
  EXPECT_NE(whole.find("read input in0\n"), std::string::npos) << whole;
  const std::string cut = print(compile_for_test(s.graph(), 8, kLimit).program);
  EXPECT_NE(cut.find("read input in0 bytes 0 to "), std::string::npos) << cut;
  EXPECT_EQ(cut.find("read input in0\n"), std::string::npos) << cut;
}

TEST(FitBindings, table_that_cannot_be_split_is_rejected) {
  GraphBuilder s;
  const Tensor table = s.input({700, 30});
  s.output("rows", gather(table, 0, s.input({9, 30}, 0, 699, i32)));
  try {
    static_cast<void>(compile_for_test(s.graph(), 8, kLimit));
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(error.message().find(
                  "bytes of input in0 are needed at once, the device can bind at most 65536 "
                  "(in gather f32[9,30])"),
              std::string::npos)
        << error.message();
    EXPECT_TRUE(error.location().known());
  }
}

TEST(FitBindings, transposing_copy_of_thousands_of_launches_is_rejected) {
  GraphBuilder s;
  s.output("y", transpose(s.input({400, 1000})) * 2);
  EXPECT_THROW(static_cast<void>(compile_for_test(s.graph(), 8, kLimit)), UserError);
}

// Expects this error if a buffer has at most 1 MiB.
void expect_refused(const Graph& graph, std::int64_t params_elements, const std::string& message) {
  CompileRequest request;
  request.graph = graph;
  request.plan.params_elements = params_elements;
  request.plan.max_buffer_bytes = 1 << 20;
  try {
    static_cast<void>(compile_graph(std::move(request)));
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), message);
  }
}

TEST(FitBindings, input_that_is_too_large_is_rejected) {
  GraphBuilder s;
  s.output("y", sum(s.input({1 << 20})));
  expect_refused(s.graph(), 0,
                 "input in0: f32[1048576] needs 4194304 bytes in one buffer, the device allows at "
                 "most 1048576");
}

TEST(FitBindings, intermediate_value_that_is_too_large_is_rejected) {
  GraphBuilder s;
  const Tensor square = matmul(s.input({1024, 2}), s.input({2, 1024}));
  s.output("y", matmul(square, s.input({1024, 1})));
  expect_refused(s.graph(), 0,
                 "matmul: f32[1024,1024] needs 4194304 bytes in one buffer, the device allows at "
                 "most 1048576");
}

TEST(FitBindings, parameters_that_are_too_large_are_counted) {
  GraphBuilder s;
  s.output("y", sum(s.leaf(ops::parameter, "w", {1 << 20}, f32, {})));
  expect_refused(s.graph(), 1 << 20,
                 "compile: the model has 1048576 parameters, the device allows at most 262144; use "
                 "a smaller model or another device");
}

// If a graph cannot be cut for such a small limit, the error says so. Most graphs are cut.
TEST(FitBindings, random_graphs_under_a_tiny_limit_on_webgpu) {
  constexpr std::int64_t kTiny = 1024;
  int ran = 0, parts = 0;
  for (std::uint64_t seed = 3000; seed < 3016 && !::testing::Test::HasFailure(); ++seed) {
    const RandomGraph made = random_graph(seed, {.size = 12});
    const std::string note = "seed " + std::to_string(seed) + "\n" + print(made.graph);
    try {
      const Program program = compile_for_test(made.graph, 8, kTiny).program;
      parts += check_program(program, kTiny, note).parts;
    } catch (const UserError& error) {
      EXPECT_NE(error.message().find("are needed at once"), std::string::npos) << error.what();
      continue;
    }
    ++ran;
    expect_within_bounds(made.graph, made.leaves,
                         run_graph(made.graph, made.leaves, Where::kWebGpu, 8, kTiny), note);
  }
  EXPECT_GE(ran, 4);
  EXPECT_GE(parts, 10);
}

}  // namespace
}  // namespace tensorgrad::testing
