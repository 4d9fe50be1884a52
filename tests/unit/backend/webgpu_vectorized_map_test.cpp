// SPDX-License-Identifier: MIT
// Vectorized maps on a WebGPU device, in which a thread computes four adjacent elements, regardless
// of the choice by size. The results match those of scalar maps and of the interpreter.
#include <functional>

#include "codegen/wgsl/writer.h"
#include "ops/registry.h"
#include "support/graph_builder.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

enum class Taken { kVectorized, kElements };

// Returns whether the launch of the graph is vectorized.
Taken taken(const Graph& graph, int width) {
  WgslOptions options;
  options.map_width = width;
  int vectors = 0, maps = 0;
  for (const Launch& launch : compile_for_test(graph, 8).program.launches) {
    if (!launch.is<MapLaunch>()) continue;
    ++maps;
    if (write_wgsl(launch, options).body.find("array<vec4<f32>>") != std::string::npos) ++vectors;
  }
  EXPECT_EQ(maps, 1);
  return vectors > 0 ? Taken::kVectorized : Taken::kElements;
}

void check(const std::function<void(GraphBuilder&)>& write, Taken expected) {
  TENSORGRAD_GRAPH_DEVICE_OR_RETURN(device);
  for (const int width : {4, 1}) {
    SCOPED_TRACE(width);
    GraphBuilder builder;
    write(builder);
    EXPECT_EQ(taken(builder.graph(), width), width == 4 ? expected : Taken::kElements);
    WgslOptions options;
    options.map_width = width;
    device->force_kernels(options);
    builder.check(Where::kWebGpu, 1e-6);
    device->force_kernels({});
  }
}

TEST(WebGpuVectorizedMap, takes_vectors_of_contiguous_elements) {
  for (const std::int64_t count : {4, 252, 1024}) {
    SCOPED_TRACE(count);
    check(
        [&](GraphBuilder& s) {
          const Tensor x = s.input({count}), y = s.input({count});
          s.output("y", where(x > y, sigmoid(x) * y, square(y)));
        },
        Taken::kVectorized);
  }
}

TEST(WebGpuVectorizedMap, takes_vectors_of_rows_of_columns_and_of_one_element_for_all) {
  check(
      [](GraphBuilder& s) {
        const Tensor x = s.input({6, 5, 8}), row = s.input({8}), column = s.input({6, 5, 1}),
                     one = s.input({1});
        s.output("y", x * row + column - one);
      },
      Taken::kVectorized);
}

TEST(WebGpuVectorizedMap, takes_vectors_from_any_offset) {
  check(
      [](GraphBuilder& s) {
        const Tensor x = s.input({12, 20}), wide = s.input({12, 43}), middle = s.input({12, 10});
        // Begins at an offset that is not a multiple of four, and is padded with zeros.
        const Tensor inner = pad(middle, {4, 6});
        s.output("y", x + narrow(wide, 1, 21, 20) + inner);
      },
      Taken::kVectorized);
}

TEST(WebGpuVectorizedMap, takes_vectors_of_numbers_that_are_drawn_and_counted) {
  check(
      [](GraphBuilder& s) {
        const Tensor x = s.input({7, 16});
        const Tensor count = cast(iota({7, 16}, 1, i32), f32);
        s.output("y", dropout(x, 0.4) + count);
      },
      Taken::kVectorized);
}

TEST(WebGpuVectorizedMap, takes_vectors_of_a_state_that_it_updates) {
  check(
      [](GraphBuilder& s) {
        const Tensor x = s.input({3, 12});
        const Tensor state =
            s.leaf(ops::state, "velocity", {3, 12}, f32, s.draw.values(f32, 36, -1, 1));
        const Tensor next = state * 0.9 + x;
        s.output("y", next - x * 2.0);
        s.graph().updates.push_back({state.id(), next.id()});
      },
      Taken::kVectorized);
}

TEST(WebGpuVectorizedMap, takes_elements_where_vectors_do_not_fit) {
  check([](GraphBuilder& s) { s.output("y", exp(s.input({7, 9}))); }, Taken::kElements);
  check([](GraphBuilder& s) { s.output("y", s.input({8, 4}) > s.input({8, 4})); },
        Taken::kElements);
  check([](GraphBuilder& s) { s.output("y", s.input({8, 12}) + transpose(s.input({12, 8}))); },
        Taken::kElements);
  check([](GraphBuilder& s) { s.output("y", s.input({8}, -9, 9, i32) + s.input({8}, -9, 9, i32)); },
        Taken::kElements);
  check(
      [](GraphBuilder& s) {
        const Tensor rows = s.input({5}, 0, 6, i32);
        s.output("y", embedding(rows, s.input({7, 8})) * s.input({5, 8}));
      },
      Taken::kElements);
}

// The launches into which a map is split if its buffers exceed a binding.
struct MapParts {
  int all = 0, later = 0;  // later: those that do not begin with the first element
  int in_fours = 0;
};

MapParts parts_of(const Graph& graph, std::int64_t most_bytes, const WgslOptions& options) {
  MapParts parts;
  for (const Launch& launch : compile_for_test(graph, 8, most_bytes).program.launches) {
    EXPECT_TRUE(launch.is<MapLaunch>());
    ++parts.all;
    parts.later += launch.first_row > 0 ? 1 : 0;
    const std::string body = write_wgsl(launch, options).body;
    parts.in_fours += body.find("array<vec4<f32>>") != std::string::npos ? 1 : 0;
  }
  return parts;
}

// Reads rows and adjacent elements, and generates random numbers and counters for each position of
// the whole. The parts of 36,000 elements are vectorized; those of 32,748 are not.
TEST(WebGpuVectorizedMap, split_for_bindings_keeps_the_bits) {
  TENSORGRAD_GRAPH_DEVICE_OR_RETURN(device);
  constexpr std::int64_t kMaxBytes = 48 << 10, kColumns = 12;
  for (const std::int64_t rows : {3000, 2729}) {
    SCOPED_TRACE(rows);
    GraphBuilder s;
    const Tensor x = s.input({rows, kColumns}), wide = s.input({rows, kColumns + 13}),
                 row = s.input({kColumns}), column = s.input({rows, 1}),
                 middle = s.input({rows, kColumns - 9});
    const Tensor before = narrow(wide, 1, 7, kColumns), inner = pad(middle, {4, 5});
    const Tensor count = cast(iota(x.shape(), 0, i32), f32);
    s.output("y", dropout(sigmoid(x) * row + column, 0.4) + before * inner + count);
    WgslOptions options;
    options.map_width = 4;
    device->force_kernels(options);
    const MapParts uncut = parts_of(s.graph(), 0, device->kernel_options()),
                   cut = parts_of(s.graph(), kMaxBytes, device->kernel_options());
    const ValueMap wanted = run_graph(s.graph(), s.leaves, Where::kWebGpu, 8),
                   given = run_graph(s.graph(), s.leaves, Where::kWebGpu, 8, kMaxBytes);
    device->force_kernels({});
    EXPECT_EQ(uncut.all, 1);
    EXPECT_EQ(uncut.in_fours, 1);
    EXPECT_GE(cut.later, 3);
    EXPECT_EQ(cut.in_fours, rows == 3000 ? cut.all : 0);
    EXPECT_EQ(given, wanted);
    expect_close(s.graph(), wanted, interpret_graph(s.graph(), s.leaves), 1e-5, "in one launch");
  }
}

// Uses the default choice by size.
TEST(WebGpuVectorizedMap, takes_vectors_of_many_elements) {
  TENSORGRAD_GRAPH_DEVICE_OR_RETURN(device);
  const std::int64_t rows = 1 << 10, columns = (1 << 10) + 4;
  GraphBuilder builder;
  const Tensor x = builder.input({rows, columns}), row = builder.input({columns});
  builder.output("y", relu(x) * row);
  for (const Launch& launch : compile_for_test(builder.graph(), 8).program.launches) {
    EXPECT_NE(write_wgsl(launch, device->kernel_options()).body.find("array<vec4<f32>>"),
              std::string::npos);
  }
  builder.check(Where::kWebGpu, 1e-6);
}

}  // namespace
}  // namespace tensorgrad::testing
