// SPDX-License-Identifier: MIT
// Scan and sort launches on a WebGPU device, compared with the oracle, with each way of splitting a
// line among threads.
#include "scan_launches.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

void expect_on_device(webgpu::WebGpuDevice& device, const LaunchBuilder& built) {
  SCOPED_TRACE(built.program.launches[0].name);
  verify(built.program);
  OracleBuffers wanted = built.contents;
  run_oracle(built.program, wanted, oracle_scalars());
  expect_close(built, run_on(device, built), wanted, {2e-4, 2e-5});
}

TEST(WebGpuScan, of_every_kind_and_shape) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const ScanOp op : kScanOps) {
    for (const Lines& s : kLines) expect_on_device(*device, make_scan(op, s, s.post % 2 == 0));
    // f32 does not keep five digits of a long product of factors close to 1.
    if (op != ScanOp::kProduct) expect_on_device(*device, make_scan(op, kLong[0], true));
  }
}

TEST(WebGpuScan, by_any_number_of_lanes) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int lanes : {1, 2, 16, 128, 256}) {
    WgslOptions options;
    options.lanes = lanes;
    device->force_kernels(options);
    SCOPED_TRACE(lanes);
    for (const ScanOp op : kScanOps) {
      for (const Lines& s : {Lines{5, 77, 1}, {2, 130, 11}}) {
        expect_on_device(*device, make_scan(op, s, false));
        expect_on_device(*device, make_scan(op, s, true));
      }
    }
  }
}

TEST(WebGpuSort, of_every_type_and_shape) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kU32}) {
    for (const Lines& s : kLines) expect_on_device(*device, make_sort(s, dtype, s.post > 1));
  }
  expect_on_device(*device, make_sort({2, 2048, 1}, DType::kF32, true));
}

// Lines that do not fit in workgroup memory, with tiles from 2 up.
TEST(WebGpuSort, of_lines_that_are_sorted_in_the_buffer) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int tile : {2, 16, 128}) {
    WgslOptions options;
    options.sort_tile = tile;
    device->force_kernels(options);
    SCOPED_TRACE(tile);
    for (const Lines& s : {Lines{3, 3, 1}, {2, 64, 1}, {1, 200, 3}, {4, 517, 1}}) {
      expect_on_device(*device, make_sort(s, DType::kF32, s.post > 1));
      expect_on_device(*device, make_sort(s, DType::kU32, s.pre > 1));
    }
  }
  device->force_kernels({});
  expect_on_device(*device, make_sort({1, 9001, 1}, DType::kF32, false));
}

// Two launches share the work of one, as if a buffer exceeds a binding.
TEST(WebGpuScan, of_a_part_of_the_lines) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (LaunchBuilder b :
       {make_scan(ScanOp::kLinear, {5, 33, 2}, false),
        make_scan(ScanOp::kArgMax, {5, 300, 1}, true), make_sort({5, 33, 2}, DType::kF32, true)}) {
    Launch back = b.launch();
    b.launch().row_count = 2;
    back.first_row = 2;
    back.row_count = 3;
    b.program.launches.push_back(back);
    expect_on_device(*device, b);
  }
}

}  // namespace
}  // namespace tensorgrad::testing
