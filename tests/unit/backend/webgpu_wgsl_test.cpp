// SPDX-License-Identifier: MIT
// The text of shaders, without a device: simplified index arithmetic, and equal text of equal
// kernels.
#include "codegen/wgsl/writer.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

// Returns a map launch that copies through the view.
Launch copy_through(const IndexMap& map) {
  Launch launch;
  launch.kind = MapLaunch{map.domain_size()};
  launch.name = "copy";
  launch.bindings.resize(2);
  launch.bindings[1].mode = BindMode::kWrite;
  ProgramMaker make;
  const int value = make.load(0, map);
  launch.body = make.program;
  TestProgram::store(launch, 1, value, whole({map.domain_size()}));
  return launch;
}

bool reads(const IndexMap& map, const std::string& expression) {
  const std::string text = emit_wgsl(copy_through(map));
  const bool found = text.find(expression) != std::string::npos;
  EXPECT_TRUE(found) << to_string(map) << "\n" << text;
  return found;
}

bool divides(const std::string& text) {
  return text.find(" / ") != std::string::npos || text.find(" % ") != std::string::npos;
}

TEST(WgslText, views_use_minimal_arithmetic) {
  EXPECT_TRUE(reads(whole({4, 5}), "b0[row]"));
  EXPECT_TRUE(reads(strided({4, 5}, {0, 0}), "b0[0u]"));
  EXPECT_TRUE(reads(strided({20}, {1}, 7), "b0[row + 7u]"));
  EXPECT_TRUE(reads(strided({20}, {-1}, 19), "b0[19u - row]"));
  EXPECT_TRUE(reads(strided({4, 5}, {0, 1}), "row % 5u"));
  EXPECT_TRUE(reads(strided({4, 5}, {1, 0}), "row / 5u"));
  EXPECT_TRUE(reads(strided({4, 8}, {1, 0}), "row >> 3u"));
  EXPECT_TRUE(reads(strided({4, 8}, {0, 1}), "row & 7u"));
  EXPECT_FALSE(divides(emit_wgsl(copy_through(strided({16, 8}, {1, 16})))));
  EXPECT_FALSE(divides(emit_wgsl(copy_through(whole({3, 5, 7})))));
}

TEST(WgslText, invalid_reads_go_to_the_first_element) {
  EXPECT_TRUE(reads(masked({9}, {1}, -2, {2}, {7}), "row - 2u < 5u"));
  EXPECT_TRUE(reads(masked({9}, {1}, -2, {2}, {9}), "row >= 2u"));
  EXPECT_TRUE(reads(masked({9}, {1}, 0, {0}, {7}), "row < 7u"));
  EXPECT_TRUE(reads(masked({9}, {1}, 0, {0}, {7}), "b0[select(0u, row, in0)]"));
}

TEST(WgslText, rows_and_columns_are_used_as_they_are) {
  Launch launch;
  launch.kind = RowLaunch{12, 35};
  launch.name = "sum";
  launch.bindings.resize(2);
  launch.bindings[1].mode = BindMode::kWrite;
  ProgramMaker make;
  const int value = make.load(0, strided({12, 35}, {1, 12}));
  const int sum = make.reduce(ReduceOp::kSum, value);
  launch.body = make.program;
  TestProgram::store(launch, 1, sum, whole({12}), DType::kF32, Level::kRow);
  WgslOptions options;
  options.lanes = 1;
  const std::string text = emit_wgsl(launch, options);
  EXPECT_NE(text.find("b0[row + col * 12u]"), std::string::npos) << text;
  EXPECT_FALSE(divides(text)) << text;
}

TEST(WgslText, header_names_ops_and_lines_and_is_no_part_of_the_kernel) {
  Launch launch = copy_through(whole({20}));
  launch.ops = {"copy f32[20]"};
  launch.locations = {SourceLocation("mlp.cpp", 41), SourceLocation("mlp.cpp", 42)};
  const WgslKernel kernel = write_wgsl(launch);
  EXPECT_EQ(kernel.header, "// copy: copy f32[20]\n// at mlp.cpp:41, mlp.cpp:42\n");
  launch.name = "another\nname";
  launch.locations.clear();
  EXPECT_EQ(write_wgsl(launch).body, kernel.body);
  EXPECT_EQ(write_wgsl(launch).header, "// another name: copy f32[20]\n");
}

TEST(WgslText, grids_fold_beyond_65535_groups) {
  WgslOptions options;
  options.map_width = 1;
  const WgslKernel small = write_wgsl(copy_through(whole({65535})), options);
  EXPECT_EQ(small.groups_y, 1u);
  const std::int64_t elements = std::int64_t{1} << 27;
  const WgslKernel large = write_wgsl(copy_through(whole({elements})), options);
  EXPECT_GT(large.groups_y, 1u);
  EXPECT_LE(large.groups_x, 65535u);
  EXPECT_GE(std::int64_t{large.groups_x} * large.groups_y * large.threads, elements);
}

TEST(WgslText, never_more_than_the_device_allows) {
  Launch launch;
  auto& product =
      launch.kind.emplace<ContractionLaunch>(ContractionLaunch{.m = 512, .n = 512, .k = 512});
  launch.name = "product";
  launch.bindings.resize(3);
  launch.bindings[2].mode = BindMode::kWrite;
  ProgramMaker a, b, body;
  a.load(0, whole({1, 512, 512}));
  b.load(1, whole({1, 512, 512}));
  const int acc = body.acc();
  product.a = a.program;
  product.b = b.program;
  launch.body = body.program;
  TestProgram::store(launch, 2, acc, whole({512 * 512}));
  for (const int threads : {64, 128, 256, 1024}) {
    for (const MatmulTile tile : {MatmulTile::kAuto, MatmulTile::kNone, MatmulTile::k16x16,
                                  MatmulTile::k32x32, MatmulTile::k64x64, MatmulTile::k128x128}) {
      WgslOptions options;
      options.max_threads = threads;
      options.matmul_tile = tile;
      const WgslKernel kernel = write_wgsl(launch, options);
      EXPECT_LE(kernel.threads, threads);
      EXPECT_LE(kernel.workgroup_bytes, 16 << 10);
    }
  }
}

}  // namespace
}  // namespace tensorgrad::testing
