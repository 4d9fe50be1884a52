// SPDX-License-Identifier: MIT
// Passes, planner and kernels choose by the numbers of the device's GpuModel.
#include <algorithm>

#include "codegen/wgsl/join.h"
#include "compile/compile.h"
#include "plan/networks.h"

namespace tensorgrad::testing {
namespace {

DeviceInfo device_with(const GpuModel& gpu) {
  DeviceInfo info;
  info.joins_launches = true;
  info.limits.max_storage_bindings = kChainBindings;
  info.limits.max_binding_bytes = info.limits.max_buffer_bytes = std::int64_t{1} << 30;
  info.limits.max_workgroup_bytes = 48 << 10;
  info.gpu = gpu;
  return info;
}

Program program_for(const GpuModel& gpu, const Graph& graph) {
  CompileRequest request;
  request.name = "test";
  request.graph = graph;
  compile_for(device_with(gpu), request);
  return compile_graph(std::move(request)).program;
}

std::int64_t row_launches(const Program& program) {
  return std::count_if(program.launches.begin(), program.launches.end(),
                       [](const Launch& launch) { return launch.is<RowLaunch>(); });
}

// One tile of 128 x 128 leaves half of 132 cores idle, but not half of two.
TEST(GpuModel, of_few_cores_keeps_a_product_whole) {
  GraphBuilder s;
  s.output("y", matmul(s.input({96, 1 << 16}), s.input({1 << 16, 96})));
  const auto parts = [&](const GpuModel& gpu) {
    return program_for(gpu, s.graph()).launches.front().as<ContractionLaunch>().parts;
  };
  EXPECT_GT(parts({}), 1);
  EXPECT_EQ(parts({.cores = 2}), 1);
}

TEST(GpuModel, of_few_threads_keeps_long_rows_whole) {
  GraphBuilder s;
  s.output("y", sum(s.input({4, 1 << 18}), {1}));
  const auto launches = [&](const GpuModel& gpu) {
    return row_launches(program_for(gpu, s.graph()));
  };
  EXPECT_EQ(launches({}), 2);
  EXPECT_EQ(launches({.full_rows = 4}), 1);
}

TEST(GpuModel, of_costly_launches_splits_no_scatter) {
  GraphBuilder s;
  const Tensor table = s.input({8, 256}), index = s.input({4096}, 0, 7, i32);
  s.output("y", grad(sum(embedding(index, table) * s.input({4096, 256})), {table})[0]);
  const auto launches = [&](const GpuModel& gpu) {
    return program_for(gpu, s.graph()).launches.size();
  };
  EXPECT_EQ(launches({}), 2U);
  EXPECT_EQ(launches({.many_addends = (1 << 20) + 1}), 1U);
}

// A sequence saves launches and takes longer in itself. If launches cost nothing, it never pays.
TEST(GpuModel, of_free_launches_has_no_fused_sequences) {
  GraphBuilder s;
  network(s, 256, {1, 64, 64, 1});
  const auto fused = [&](const GpuModel& gpu) {
    const Program program = program_for(gpu, s.graph());
    return std::any_of(program.launches.begin(), program.launches.end(),
                       [](const Launch& launch) { return launch.blocks > 0; });
  };
  EXPECT_TRUE(fused({}));
  EXPECT_FALSE(fused({.launch_microseconds = 0}));
}

TEST(GpuModel, that_any_work_fills_runs_launches_one_by_one) {
  GraphBuilder s;
  three_layers(s);
  const auto alone = [&](const GpuModel& gpu) {
    const Program program = program_for(gpu, s.graph());
    return count_dispatches(program) == static_cast<std::int64_t>(program.launches.size());
  };
  EXPECT_FALSE(alone({}));
  EXPECT_TRUE(alone({.small_bytes = 0}));
}

TEST(GpuModel, of_no_cache_lets_readers_compute_small_values) {
  CompileRequest usual, without;
  compile_for(device_with({}), usual);
  compile_for(device_with({.cached_bytes = 0}), without);
  EXPECT_EQ(usual.fusing.cached_elements, 1 << 20);
  EXPECT_EQ(without.fusing.cached_elements, 0);
}

// Eight columns of 4096 elements: 256 threads share one, or each has one if eight fill the GPU.
TEST(GpuModel, of_few_threads_shares_no_rows_among_them) {
  GraphBuilder s;
  s.output("y", sum(s.input({4096, 8}), {0}));
  const Program program = program_for({}, s.graph());
  const auto groups = [&](const GpuModel& gpu) {
    WgslOptions options;
    options.gpu = gpu;
    return write_dispatches(program, options, kChainBindings).front().kernel.groups_x;
  };
  EXPECT_EQ(groups({}), 8U);
  EXPECT_EQ(groups({.full_threads = 8}), 1U);
}

// The smallest tile is chosen if all others are slow, and none if lanes are fast.
TEST(GpuModel, of_other_tile_speeds_chooses_another_tile) {
  GraphBuilder s;
  s.output("y", matmul(s.input({256, 256}), s.input({256, 256})));
  const Program program = program_for({}, s.graph());
  const auto kernel = [&](const GpuModel& gpu) {
    WgslOptions options;
    options.gpu = gpu;
    return write_wgsl(program.launches.front(), options);
  };
  GpuModel slow;
  for (TileSpeed& speed : slow.matmul_tiles) speed.rate = 1e-3;
  slow.matmul_tiles.back().rate = 1;
  EXPECT_EQ(kernel(slow).groups_x, 32U * 32U);
  EXPECT_LT(kernel({}).groups_x, 32U * 32U);
  EXPECT_GT(kernel({}).workgroup_bytes, 0);
  EXPECT_EQ(kernel({.max_lane_products = std::int64_t{1} << 30}).workgroup_bytes, 0);
}

TEST(GpuModel, of_fast_f32_uses_no_subgroup_matrices_for_it) {
  GraphBuilder s;
  s.output("y", matmul(s.input({512, 512}), s.input({512, 512})));
  const Program program = program_for({}, s.graph());
  const auto uses_matrices = [&](const GpuModel& gpu) {
    WgslOptions options;
    options.max_workgroup_bytes = 48 << 10;
    options.subgroup_matrix = {16, 16, 16, 32};
    options.f16x3 = true;
    options.gpu = gpu;
    return write_wgsl(program.launches.front(), options).body.find("subgroup_matrix") !=
           std::string::npos;
  };
  EXPECT_TRUE(uses_matrices({}));
  EXPECT_FALSE(uses_matrices({.min_f16x3_products = (1 << 27) + 1}));
}

}  // namespace
}  // namespace tensorgrad::testing
