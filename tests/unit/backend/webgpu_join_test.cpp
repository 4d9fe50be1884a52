// SPDX-License-Identifier: MIT
// Launches that run as one kernel on a WebGPU device, compared with the oracle: kinds of launches,
// types of a buffer, shared workgroup memory, the gradient arena, and launches that cannot be
// joined.
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

// Adds a launch that computes
//   out[m,n] = sum_k a[m,k] * b[k,n]
// and stores it from element `at` of `out` on. If `half`, a and b are rounded to f16.
void add_product(TestProgram& test, const std::string& name, int a, int b, int out, std::int64_t m,
                 std::int64_t n, std::int64_t k, std::int64_t at, bool half = false) {
  Launch& launch = test.launch(ContractionLaunch{.m = m, .n = n, .k = k}, name);
  test.bind(launch, a, BindMode::kRead);
  test.bind(launch, b, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make_a, make_b, make;
  const int x = make_a.load(0, whole({1, m, k})), y = make_b.load(1, whole({1, k, n}));
  if (half) make_a.op("round_to_f16", {x});
  if (half) make_b.op("round_to_f16", {y});
  const int acc = make.acc();
  launch.as<ContractionLaunch>().a = make_a.program;
  launch.as<ContractionLaunch>().b = make_b.program;
  launch.body = make.program;
  TestProgram::store(launch, 2, acc, strided({m * n}, {1}, at));
}

// Adds a launch that computes
//   out[at + r] = sum of row r of x
// If `columns`, a row of x is a column in memory.
void add_sums(TestProgram& test, const std::string& name, int x, int out, std::int64_t rows,
              std::int64_t cols, std::int64_t at, bool columns) {
  Launch& launch = test.launch(RowLaunch{rows, cols}, name);
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const int value = make.load(0, columns ? strided({rows, cols}, {1, rows}) : whole({rows, cols}));
  const int sum = make.reduce(ReduceOp::kSum, value);
  launch.body = make.program;
  TestProgram::store(launch, 1, sum, strided({rows}, {1}, at), DType::kF32, Level::kRow);
}

// Products by tiles and by lanes, sums over both axes, a scatter and a map with a runtime scalar.
// All launches are concurrent, and most of their results are in one arena.
TestProgram many_kinds() {
  TestProgram test;
  const int a = test.buffer(DType::kF32, 64 * 64), b = test.buffer(DType::kF32, 64 * 64);
  const int arena = test.buffer(DType::kF32, 3 * 4096 + 256 + 64);
  test.program.buffers[static_cast<std::size_t>(arena)].kind = BufferKind::kGrads;
  const int mapped = test.buffer(DType::kF32, 300), index = test.buffer(DType::kI32, 64, -2, 9);
  const int table = test.buffer(DType::kF32, 8 * 64);
  add_product(test, "tiles", a, b, arena, 64, 64, 64, 0);
  add_product(test, "more_tiles", b, a, arena, 64, 64, 64, 4096);
  add_product(test, "lanes", a, b, arena, 4, 64, 16, 2 * 4096);
  add_sums(test, "rows", a, arena, 64, 64, 3 * 4096, false);
  add_sums(test, "columns", b, arena, 64, 64, 3 * 4096 + 64, true);
  {
    Launch& launch = test.launch(ScatterLaunch{1, 64, 64, 8}, "scatter");
    test.bind(launch, index, BindMode::kRead);
    test.bind(launch, a, BindMode::kRead);
    test.bind(launch, table, BindMode::kWrite);
    ProgramMaker make_index, make_source, make;
    make_index.load(0, strided({1, 64, 64}, {0, 1, 0}), DType::kI32);
    make_source.load(1, whole({1, 64, 64}));
    const int acc = make.acc();
    launch.as<ScatterLaunch>().index = make_index.program;
    launch.as<ScatterLaunch>().source = make_source.program;
    launch.body = make.program;
    TestProgram::store(launch, 2, acc, whole({8 * 64}));
  }
  {
    Launch& launch = test.launch(MapLaunch{300}, "map");
    test.bind(launch, a, BindMode::kRead);
    test.bind(launch, mapped, BindMode::kWrite);
    ProgramMaker make;
    const int value = make.op("mul", {make.load(0, whole({300})), make.runtime_scalars(2)});
    launch.body = make.program;
    TestProgram::store(launch, 1, value, whole({300}));
  }
  for (std::size_t i = 1; i < test.program.launches.size(); ++i) {
    test.program.launches[i].concurrent = true;
  }
  return test;
}

RuntimeScalars with_factor() {
  RuntimeScalars row = oracle_scalars();
  row.words[2] = oracle_encode(1.5, DType::kF32);
  return row;
}

std::size_t dispatches(webgpu::WebGpuDevice& device, const TestProgram& test) {
  return write_dispatches(test.program, device.kernel_options(),
                          device.info().limits.max_storage_bindings)
      .size();
}

TEST(WebGpuJoin, all_kinds_as_one_kernel) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = many_kinds();
  ASSERT_EQ(dispatches(*device, test), 1U);
  test.check(*device, {with_factor(), with_factor()});
}

TEST(WebGpuJoin, forced_variants_and_none) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const MatmulTile tile : {MatmulTile::kNone, MatmulTile::k8x8, MatmulTile::k16x16,
                                MatmulTile::k32x32, MatmulTile::k32x32InSlices}) {
    for (const bool separate : {false, true}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(tile)) + (separate ? " separate" : ""));
      TestProgram test = many_kinds();
      WgslOptions options;
      options.matmul_tile = tile;
      options.scatter_variant =
          tile == MatmulTile::kNone ? ScatterVariant::kLanes : ScatterVariant::kBlocks;
      options.map_width = 1;
      options.separate = separate;
      device->force_kernels(options);
      EXPECT_EQ(dispatches(*device, test) == 1, !separate);
      test.check(*device, {with_factor()});
    }
  }
}

// Checks the text for a subgroup matrix as on an H100, and the results if the device has one.
TEST(WebGpuJoin, products_by_subgroup_matrix) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int a = test.buffer(DType::kF32, 256 * 256), b = test.buffer(DType::kF32, 256 * 256),
            c = test.buffer(DType::kF32, 256 * 256), d = test.buffer(DType::kF32, 256 * 256);
  add_product(test, "one", a, b, c, 256, 256, 256, 0, true);
  add_product(test, "other", b, a, d, 200, 120, 256, 0, true);
  test.program.launches.back().concurrent = true;
  const auto by_units = [&](const WgslOptions& options) {
    const std::vector<Dispatch> made = write_dispatches(test.program, options, 8);
    const std::string text = made.front().kernel.text();
    const std::string word = " = subgroupMatrixMultiplyAccumulate";
    const std::size_t second = text.find("fn part1(");
    return made.size() == 1 && text.find(word) < second &&
           text.find(word, second) != std::string::npos;
  };
  WgslOptions options;
  options.subgroup_matrix = {16, 16, 16, 32};
  options.max_workgroup_bytes = 48 << 10;
  EXPECT_TRUE(by_units(options));
  options.subgroup_matrix_tile = -1;
  EXPECT_FALSE(by_units(options));
  test.check(*device, {oracle_scalars()}, 1e-3);
}

// Each kind of tile needs its own workgroup memory. If there is too little, all products use one
// kind, and if that needs too much, a smaller one.
TEST(WebGpuJoin, uses_tiles_of_one_kind_if_several_do_not_fit) {
  TestProgram test;
  const int x = test.buffer(DType::kF32, 1024 * 1024), out = test.buffer(DType::kF32, 2 << 20);
  test.program.buffers[static_cast<std::size_t>(out)].kind = BufferKind::kGrads;
  add_product(test, "large", x, x, out, 1024, 1024, 1024, 0);
  add_product(test, "small", x, x, out, 64, 64, 512, 1 << 20);
  add_product(test, "long", x, x, out, 16, 16, 4096, (1 << 20) + 4096);
  for (std::size_t i = 1; i < 3; ++i) test.program.launches[i].concurrent = true;
  const auto joined = [&](std::int64_t most) {
    WgslOptions options;
    options.max_workgroup_bytes = most;
    return write_dispatches(test.program, options, 8);
  };
  const auto bytes = [](const std::vector<Dispatch>& all) {
    return all.front().kernel.workgroup_bytes;
  };
  const auto own = joined(48 << 10), of_slices = joined(32 << 10), small = joined(24 << 10);
  for (const auto& all : {own, of_slices, small}) ASSERT_EQ(all.size(), 1U);
  EXPECT_GT(bytes(own), 32 << 10);
  EXPECT_GT(bytes(of_slices), 24 << 10);
  EXPECT_LE(bytes(of_slices), 32 << 10);
  EXPECT_LE(bytes(small), 24 << 10);
  EXPECT_GT(joined(12 << 10).size(), 1U) << "no kind fits";
}

// With eight bindings, as many launches are joined as fit.
TEST(WebGpuJoin, as_many_as_the_device_binds) {
  TENSORGRAD_DEVICE_OR_RETURN(device, true);
  TestProgram test = many_kinds();
  EXPECT_EQ(dispatches(*device, test), 1U);
  for (int i = 0; i < 9; ++i) {
    const int x = test.buffer(DType::kF32, 128), sums = test.buffer(DType::kF32, 8);
    add_sums(test, "more" + std::to_string(i), x, sums, 8, 16, 0, false);
    test.program.launches.back().concurrent = true;
  }
  EXPECT_GT(dispatches(*device, test), 2U);
  EXPECT_LT(dispatches(*device, test), test.program.launches.size());
  test.check(*device, {with_factor()});
}

// One launch reads the buffer as integers, the other as floats, so it is bound twice.
TEST(WebGpuJoin, of_one_buffer_under_two_types) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int x = test.buffer(DType::kF32, 64);
  for (const DType dtype : {DType::kF32, DType::kU32}) {
    const int out = test.buffer(dtype, 64);
    Launch& launch = test.launch(MapLaunch{64}, "copy");
    test.bind(launch, x, BindMode::kRead);
    test.bind(launch, out, BindMode::kWrite);
    ProgramMaker make;
    const int value = make.load(0, whole({64}), dtype);
    launch.body = make.program;
    TestProgram::store(launch, 1, value, whole({64}), dtype);
    launch.concurrent = dtype == DType::kU32;
  }
  const auto made = write_dispatches(test.program, device->kernel_options(), 8);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].bindings.size(), 4U);
  test.check(*device);
}

TEST(WebGpuJoin, launches_that_share_written_buffers_are_rejected) {
  TestProgram test;
  const int x = test.buffer(DType::kF32, 64), y = test.buffer(DType::kF32, 64);
  add_sums(test, "first", x, y, 8, 8, 0, false);
  add_sums(test, "second", y, x, 8, 8, 0, false);
  verify(test.program);
  test.program.launches[1].concurrent = true;
  EXPECT_THROW(verify(test.program), InternalError);
}

TEST(WebGpuJoin, times_the_kernel_once) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const TestProgram test = many_kinds();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const auto timings = device->profile(*executable, with_factor());
  ASSERT_EQ(timings.size(), test.program.launches.size());
  EXPECT_GT(timings[0].microseconds, 0);
  EXPECT_FALSE(timings[0].concurrent);
  for (std::size_t i = 1; i < timings.size(); ++i) EXPECT_TRUE(timings[i].concurrent);
  for (const BufferHandle handle : handles) device->free(handle);
}

}  // namespace
}  // namespace tensorgrad::testing
