// SPDX-License-Identifier: MIT
// Row launches on a WebGPU device, compared with the oracle: few and many rows and columns, each
// way of splitting a row among threads, sequences of reductions, ties and NaN.
#include <bit>
#include <limits>

#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

struct LaneSize {
  std::int64_t rows, cols;
};

Launch& row_launch(TestProgram& test, const std::string& name, LaneSize size) {
  Launch& launch = test.launch(RowLaunch{size.rows, size.cols}, name);
  return launch;
}

// Adds the softmax over the columns, the maximum of each row, its position, and an in-place update
// of a value of each row by its sum.
Launch& add_softmax(TestProgram& test, LaneSize size, bool rows_contiguous) {
  const std::int64_t elements = size.rows * size.cols;
  const int x = test.buffer(DType::kF32, elements), y = test.buffer(DType::kF32, elements);
  const int top = test.buffer(DType::kF32, size.rows), where = test.buffer(DType::kI32, size.rows);
  const int mean = test.buffer(DType::kF32, size.rows);
  Launch& launch = row_launch(test, "softmax", size);
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, y, BindMode::kWrite);
  test.bind(launch, top, BindMode::kWrite);
  test.bind(launch, where, BindMode::kWrite);
  test.bind(launch, mean, BindMode::kReadWrite);
  const IndexMap map = rows_contiguous ? strided({size.rows, size.cols}, {1, size.rows})
                                       : whole({size.rows, size.cols});
  ProgramMaker make;
  const int value = make.load(0, map);
  const int max = make.reduce(ReduceOp::kMax, value);
  const int at = make.reduce(ReduceOp::kArgMax, value);
  const int power = make.op("exp", {make.op("sub", {value, max})});
  const int sum = make.reduce(ReduceOp::kSum, power);
  const int old = make.load(4, whole({size.rows}), DType::kF32, Level::kRow);
  const int total = make.op("add", {old, make.op("mul", {sum, make.constant(0.5f)})});
  const int soft = make.op("div", {power, sum});
  launch.body = make.program;
  TestProgram::store(launch, 1, soft, map);
  TestProgram::store(launch, 2, max, whole({size.rows}), DType::kF32, Level::kRow);
  TestProgram::store(launch, 3, at, whole({size.rows}), DType::kI32, Level::kRow);
  TestProgram::store(launch, 4, total, whole({size.rows}), DType::kF32, Level::kRow);
  return launch;
}

void check_softmax(webgpu::WebGpuDevice& device, LaneSize size, bool rows_contiguous) {
  TestProgram test;
  add_softmax(test, size, rows_contiguous);
  SCOPED_TRACE(std::to_string(size.rows) + "x" + std::to_string(size.cols));
  test.check(device);
}

// Layer norm in place with gathered row-level reads, some out of range: three passes.
void check_norm(webgpu::WebGpuDevice& device, LaneSize size, bool rows_contiguous = false) {
  TestProgram test;
  const auto [rows, cols] = size;
  const int x = test.buffer(DType::kF32, rows * cols), scale = test.buffer(DType::kF32, cols);
  const int keys = test.buffer(DType::kI32, rows, -1, 5), table = test.buffer(DType::kF32, 4);
  Launch& launch = row_launch(test, "layer_norm", {rows, cols});
  test.bind(launch, x, BindMode::kReadWrite);
  test.bind(launch, scale, BindMode::kRead);
  test.bind(launch, keys, BindMode::kRead);
  test.bind(launch, table, BindMode::kRead);
  const IndexMap map = rows_contiguous ? strided({rows, cols}, {1, rows}) : whole({rows, cols});
  ProgramMaker make;
  const int value = make.load(0, map);
  const int inverse = make.constant(1.0f / static_cast<float>(cols));
  const int mean = make.op("mul", {make.reduce(ReduceOp::kSum, value), inverse});
  const int centred = make.op("sub", {value, mean});
  const int square = make.reduce(ReduceOp::kSum, make.op("square", {centred}));
  const int variance = make.op("add", {make.op("mul", {square, inverse}), make.constant(1e-5f)});
  const int key = make.load(2, whole({rows}), DType::kI32, Level::kRow);
  const int shift = make.load_at(3, strided({rows}, {0}), key, 1, 4, DType::kF32, Level::kRow);
  const int normed = make.op("mul", {centred, make.op("rsqrt", {variance})});
  const int scaled = make.op("mul", {normed, make.load(1, strided({rows, cols}, {0, 1}))});
  const int out = make.op("add", {scaled, shift});
  launch.body = make.program;
  TestProgram::store(launch, 0, out, map);
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols));
  test.check(device);
}

TEST(WebGpuRow, softmax_of_every_size) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const LaneSize size : {LaneSize{1, 1},
                              {3, 5},
                              {130, 7},
                              {65, 12},
                              {9, 64},
                              {5, 100},
                              {7, 256},
                              {2, 1000},
                              {33, 257},
                              {1, 5000}}) {
    check_softmax(*device, size, false);
    check_softmax(*device, size, true);
  }
}

TEST(WebGpuRow, softmax_by_any_number_of_lanes) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int lanes : {1, 2, 16, 64, 256}) {
    WgslOptions options;
    options.lanes = lanes;
    device->force_kernels(options);
    SCOPED_TRACE(lanes);
    check_softmax(*device, {13, 77}, false);
    check_softmax(*device, {13, 77}, true);
  }
}

TEST(WebGpuRow, nan_wins_and_the_first_of_equals) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const int lanes : {1, 8}) {
    WgslOptions options;
    options.lanes = lanes;
    device->force_kernels(options);
    TestProgram test;
    const std::int64_t rows = 5, cols = 20;
    const int x = test.buffer(DType::kF32, rows * cols);
    std::vector<float> values(static_cast<std::size_t>(rows * cols), 1.0f);
    values[9] = 4, values[3] = 4, values[17] = 4;  // the first maximum
    values[20 + 7] = nan, values[20 + 5] = nan;    // the first NaN
    values[20 + 6] = 9;
    for (std::size_t i = 40; i < 60; ++i) values[i] = -inf;  // all elements are the identity of max
    for (std::size_t i = 60; i < 80; ++i) values[i] = inf;
    values[80 + 19] = -5;
    test.fill(x, values);
    const int extremes = test.buffer(DType::kF32, rows * 2);
    const int places = test.buffer(DType::kI32, rows * 2);
    Launch& launch = row_launch(test, "extremes", {rows, cols});
    test.bind(launch, x, BindMode::kRead);
    test.bind(launch, extremes, BindMode::kWrite);
    test.bind(launch, places, BindMode::kWrite);
    ProgramMaker make;
    const int value = make.load(0, whole({rows, cols}));
    const std::vector<int> results = {
        make.reduce(ReduceOp::kMax, value), make.reduce(ReduceOp::kMin, value),
        make.reduce(ReduceOp::kArgMax, value), make.reduce(ReduceOp::kArgMin, value)};
    launch.body = make.program;
    for (int i = 0; i < 4; ++i) {
      TestProgram::store(launch, 1 + i / 2, results[static_cast<std::size_t>(i)],
                         strided({rows}, {2}, i % 2), i < 2 ? DType::kF32 : DType::kI32,
                         Level::kRow);
    }
    test.check(*device);
  }
}

TEST(WebGpuRow, reduces_integers_and_booleans) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const DType dtype : {DType::kI32, DType::kU32, DType::kBool}) {
    TestProgram test;
    const std::int64_t rows = 6, cols = 70;
    const bool flags = dtype == DType::kBool;
    const int x = test.buffer(dtype, rows * cols, dtype == DType::kU32 || flags ? 0 : -1000,
                              flags ? 1 : 1000);
    const int out = test.buffer(dtype, rows * 3);
    const int places = test.buffer(DType::kI32, rows);
    Launch& launch = row_launch(test, "integers", {rows, cols});
    test.bind(launch, x, BindMode::kRead);
    test.bind(launch, out, BindMode::kWrite);
    test.bind(launch, places, BindMode::kWrite);
    ProgramMaker make;
    const int value = make.load(0, whole({rows, cols}), dtype);
    std::vector<int> results = {make.reduce(ReduceOp::kMax, value),
                                make.reduce(ReduceOp::kMin, value)};
    if (!flags) results.push_back(make.reduce(ReduceOp::kSum, value));
    const int at = make.reduce(ReduceOp::kArgMin, value);
    launch.body = make.program;
    for (std::size_t i = 0; i < results.size(); ++i) {
      TestProgram::store(launch, 1, results[i], strided({rows}, {3}, static_cast<std::int64_t>(i)),
                         dtype, Level::kRow);
    }
    TestProgram::store(launch, 2, at, whole({rows}), DType::kI32, Level::kRow);
    test.check(*device);
  }
}

TEST(WebGpuRow, many_reductions_share_little_workgroup_memory) {
  TENSORGRAD_DEVICE_OR_RETURN(device, true);
  TestProgram test;
  const std::int64_t rows = 3, cols = 2000;
  const int x = test.buffer(DType::kF32, rows * cols), out = test.buffer(DType::kF32, rows * 20);
  Launch& launch = row_launch(test, "many", {rows, cols});
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const int value = make.load(0, whole({rows, cols}));
  std::vector<int> results;
  for (int i = 0; i < 20; ++i) {
    const int scaled = make.op("mul", {value, make.constant(static_cast<float>(i - 10))});
    results.push_back(make.reduce(i % 2 == 0 ? ReduceOp::kMax : ReduceOp::kMin, scaled));
  }
  launch.body = make.program;
  for (int i = 0; i < 20; ++i) {
    TestProgram::store(launch, 1, results[static_cast<std::size_t>(i)], strided({rows}, {20}, i),
                       DType::kF32, Level::kRow);
  }
  test.check(*device);
}

TEST(WebGpuRow, chains_reductions_in_place) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const LaneSize size : {LaneSize{40, 6}, {11, 130}, {4, 700}}) check_norm(*device, size);
}

// Returns the kernel of a softmax with `lanes` lanes for each row; 0 chooses by size.
std::string softmax_kernel(LaneSize size, int lanes, bool rows_contiguous) {
  TestProgram test;
  WgslOptions options;
  options.lanes = lanes;
  return emit_wgsl(add_softmax(test, size, rows_contiguous), options);
}

bool is_written_out(LaneSize size, int lanes, bool rows_contiguous = false) {
  return softmax_kernel(size, lanes, rows_contiguous).find("for (var col") == std::string::npos;
}

// If there are many rows and a lane has few enough elements to unroll, each row is read only once.
TEST(WebGpuRow, large_rows_stay_in_registers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const LaneSize size : {LaneSize{2049, 520}, {4100, 256}, {2500, 450}, {70000, 17}}) {
    EXPECT_TRUE(is_written_out(size, 0));
    EXPECT_EQ(is_written_out(size, 8), size.cols <= 16 * 8);
    for (const int lanes : {0, 8}) {
      SCOPED_TRACE(lanes);
      WgslOptions options;
      options.lanes = lanes;
      device->force_kernels(options);
      check_softmax(*device, size, false);
      check_norm(*device, size);
    }
  }
  // NaN wins there, too.
  constexpr std::int64_t kRows = 2049, kCols = 520;
  TestProgram with_nan;
  Launch& launch = add_softmax(with_nan, {kRows, kCols}, false);
  std::vector<float> values(kRows * kCols, 0.25f);
  values[7 * kCols + 300] = values[9 * kCols] = std::numeric_limits<float>::quiet_NaN();
  values[9 * kCols + 1] = std::numeric_limits<float>::infinity();
  with_nan.fill(launch.bindings[0].buffer, values);
  with_nan.check(*device);
  EXPECT_FALSE(is_written_out({4096, 255}, 0)) << "these stay in a cache";
  EXPECT_FALSE(is_written_out({2048, 5000}, 0)) << "a lane has twenty elements";
}

// Rows that are too few to fill the GPU with a few lanes each.
TEST(WebGpuRow, few_large_rows_stay_in_registers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  EXPECT_FALSE(is_written_out({100, 12000}, 0)) << "a lane has 47 elements";
  EXPECT_TRUE(is_written_out({1100, 1000}, 0));
  constexpr LaneSize kSize = {300, 3500};
  EXPECT_TRUE(is_written_out(kSize, 0));
  check_softmax(*device, kSize, false);
}

// Rows are columns in memory, so neighbouring threads process neighbouring rows, as the text
// `place` shows.
void expect_across(LaneSize size, int lanes, const std::string& place) {
  EXPECT_TRUE(is_written_out(size, lanes, true));
  EXPECT_NE(softmax_kernel(size, lanes, true).find(place), std::string::npos);
}

TEST(WebGpuRow, large_transposed_rows_stay_in_registers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  constexpr LaneSize kSize = {70000, 15};
  expect_across(kSize, 0, "let row = group * 64u + local;");
  check_softmax(*device, kSize, true);
  EXPECT_FALSE(is_written_out({32768, 33}, 0, true)) << "a lane has 17 elements";
  EXPECT_FALSE(is_written_out({32768, 31}, 0, true)) << "these stay in a cache";
}

TEST(WebGpuRow, large_transposed_rows_stay_in_registers_of_several_lanes) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  constexpr LaneSize kSize = {32768, 32};
  expect_across(kSize, 0, "let lane = local / 128u;");
  check_softmax(*device, kSize, true);
}

// In place; neither rows nor columns are multiples of a tile.
TEST(WebGpuRow, norm_of_large_transposed_rows_stays_in_registers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  constexpr LaneSize kSize = {70001, 17};
  WgslOptions options;
  options.lanes = 8;
  expect_across(kSize, options.lanes, "let place = group * 32u + local % 32u;");
  device->force_kernels(options);
  check_norm(*device, kSize, true);
}

// The loss of a batch: one row, which reads a matrix column by column.
TEST(WebGpuRow, reduces_everything_to_a_ring) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int x = test.buffer(DType::kF32, 600), losses = test.buffer(DType::kF32, 64);
  Launch& launch = test.launch(RowLaunch{1, 600}, "loss");
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, losses, BindMode::kReadWrite);
  ProgramMaker make;
  const int weight = make.runtime_scalars(3);
  const int value = make.op("mul", {make.load(0, strided({20, 30}, {1, 20})), weight});
  const int sum = make.reduce(ReduceOp::kSum, value);
  launch.body = make.program;
  TestProgram::store(launch, 1, sum, whole({1}), DType::kF32, Level::kRow, 2);
  std::vector<RuntimeScalars> rows(9, oracle_scalars());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].words[2] = static_cast<std::uint32_t>(7 * i % 64);
    rows[i].words[3] = std::bit_cast<std::uint32_t>(static_cast<float>(i));
  }
  test.check(*device, rows);
}

}  // namespace
}  // namespace tensorgrad::testing
