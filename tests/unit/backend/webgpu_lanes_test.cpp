// SPDX-License-Identifier: MIT
// The values of the lanes of a row are combined within subgroups and through workgroup memory.
// Tests every reduction of every type, with the subgroups of the device, with larger ones, and with
// none.
#include <limits>

#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

constexpr Subgroups kNoSubgroups = {.size = 1};

// No subgroups, those of the device, and subgroups of other sizes that exchange through workgroup
// memory.
std::vector<Subgroups> ways() {
  return {kNoSubgroups, {}, {.size = 8, .in_memory = true}, {.size = 32, .in_memory = true}};
}

std::string text_of(const Subgroups& way) {
  return "subgroups of " + std::to_string(way.size) + (way.in_memory ? " in memory" : "");
}

struct Reductions {
  std::int64_t rows, cols;
  bool across = false;  // rows are columns in memory
};

// Adds all reductions of values of one type, and a second pass of reductions of their results.
// Floats include NaN, ties and infinities.
void add_reductions(TestProgram& test, const Reductions& of, DType dtype) {
  const auto [rows, cols, across] = of;
  const bool floats = dtype == DType::kF32, flags = dtype == DType::kBool;
  const int x =
      test.buffer(dtype, rows * cols, flags || dtype == DType::kU32 ? 0 : -9, flags ? 1 : 9);
  if (floats) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < rows * cols; ++i)
      values.push_back(static_cast<float>(i * 37 % 19) - 9);
    for (std::int64_t i = 5; i < rows * cols; i += 3 * cols + 7)
      values[static_cast<std::size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t i = 8; i < rows * cols; i += 2 * cols + 11)
      values[static_cast<std::size_t>(i)] = -std::numeric_limits<float>::infinity();
    test.fill(x, values);
  }
  const int out = test.buffer(dtype, rows * 4), places = test.buffer(DType::kI32, rows * 2);
  Launch& launch = test.launch(RowLaunch{rows, cols}, "reductions");
  test.bind(launch, x, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  test.bind(launch, places, BindMode::kWrite);
  ProgramMaker make;
  const int value =
      make.load(0, across ? strided({rows, cols}, {1, rows}) : whole({rows, cols}), dtype);
  std::vector<int> results = {make.reduce(ReduceOp::kMax, value),
                              make.reduce(ReduceOp::kMin, value)};
  if (!flags) {
    results.push_back(make.reduce(ReduceOp::kSum, value));
    results.push_back(make.reduce(ReduceOp::kMax, make.op("sub", {value, results[1]})));
  }
  const std::vector<int> at = {make.reduce(ReduceOp::kArgMax, value),
                               make.reduce(ReduceOp::kArgMin, value)};
  launch.body = make.program;
  for (std::size_t i = 0; i < results.size(); ++i)
    TestProgram::store(launch, 1, results[i], strided({rows}, {4}, static_cast<std::int64_t>(i)),
                       dtype, Level::kRow);
  for (std::size_t i = 0; i < at.size(); ++i)
    TestProgram::store(launch, 2, at[i], strided({rows}, {2}, static_cast<std::int64_t>(i)),
                       DType::kI32, Level::kRow);
}

TEST(WebGpuLanes, match_the_oracle_with_and_without_subgroups) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const Subgroups& way : ways()) {
    for (const int lanes : {2, 16, 64, 256}) {
      WgslOptions options;
      options.lanes = lanes;
      options.subgroups = way;
      device->force_kernels(options);
      SCOPED_TRACE(text_of(way) + ", " + std::to_string(lanes) + " lanes");
      const DType dtype = lanes == 16   ? DType::kI32
                          : lanes == 64 ? DType::kBool
                          : lanes == 2  ? DType::kU32
                                        : DType::kF32;
      for (const bool across : {false, true}) {
        for (const DType type : {DType::kF32, dtype}) {
          TestProgram test;
          add_reductions(test, {13, 300, across}, type);
          test.check(*device);
        }
      }
    }
  }
}

// If lanes can exchange values within a subgroup of size s, a shader takes log2(s) rounds. It needs
// one barrier if a row has several subgroups, and none if it has one.
TEST(WebGpuLanes, need_fewer_barriers_with_subgroups) {
  TestProgram test;
  Launch& launch = test.launch(RowLaunch{4096, 64}, "sum");
  test.bind(launch, test.buffer(DType::kF32, 4096 * 64), BindMode::kRead);
  test.bind(launch, test.buffer(DType::kF32, 4096), BindMode::kWrite);
  ProgramMaker make;
  const int sum = make.reduce(ReduceOp::kSum, make.load(0, whole({4096, 64})));
  launch.body = make.program;
  TestProgram::store(launch, 1, sum, whole({4096}), DType::kF32, Level::kRow);
  const auto counted = [&](const Subgroups& subgroups, int lanes, const std::string& word) {
    WgslOptions options;
    options.subgroups = subgroups;
    options.lanes = lanes;
    const std::string text = emit_wgsl(launch, options);
    int count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++count;
    return count;
  };
  const Subgroups of_32 = {.size = 32, .enabled = false};
  EXPECT_EQ(counted(of_32, 32, "(local, r"), 5);
  EXPECT_EQ(counted(of_32, 32, "workgroupBarrier()"), 0);
  EXPECT_EQ(counted(of_32, 64, "(local, r"), 5);
  EXPECT_EQ(counted(of_32, 64, "workgroupBarrier()"), 1);
  EXPECT_EQ(counted(of_32, 16, "(local, r"), 4);
  EXPECT_EQ(counted(of_32, 16, "enable subgroups"), 0);
  EXPECT_EQ(counted({.size = 32}, 16, "enable subgroups"), 1);
  for (const Subgroups& none : {kNoSubgroups, Subgroups{}}) {
    EXPECT_EQ(counted(none, 64, "subgroup"), 0);
    EXPECT_GE(counted(none, 64, "workgroupBarrier()"), 2);
  }
  EXPECT_EQ(counted({.size = 4}, 256, "subgroup"), 0);  // too many partial results would remain
}

}  // namespace
}  // namespace tensorgrad::testing
