// SPDX-License-Identifier: MIT
// Scan and sort launches against the oracle, on the CPU and on a WebGPU device: lines side by side
// and one behind the other, short, long and in chunks, each way of sharing a line among threads.
#include <bit>
#include <limits>

#include "program_harness.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

struct Lines {
  std::int64_t pre, count, post;
};

const Lines kLines[] = {{1, 1, 1},  {3, 5, 1},   {200, 17, 1}, {2, 1500, 1}, {4, 9, 3},
                        {2, 70, 8}, {1, 40, 90}, {3, 33, 20},  {1, 6, 2000}};
const Lines kLong[] = {{1, 80000, 1}, {2, 40000, 3}, {1, 9000, 20}};
const ScanOp kOps[] = {ScanOp::kSum, ScanOp::kProduct, ScanOp::kLinear, ScanOp::kArgMax,
                       ScanOp::kArgMin};

std::string text_of(const Lines& s) {
  return std::to_string(s.pre) + "x" + std::to_string(s.count) + "x" + std::to_string(s.post);
}

LaunchBuilder lines_of(LaunchKind kind, const Lines& s, const std::string& name) {
  LaunchBuilder b(kind, name + " " + text_of(s));
  Launch& l = b.launch();
  l.pre = s.pre, l.count = s.count, l.post = s.post;
  return b;
}

// Elements near 1 in size, so that long products stay in range; the epilogue scales and adds.
LaunchBuilder make_scan(ScanOp op, const Lines& s, bool reverse) {
  LaunchBuilder b = lines_of(LaunchKind::kScan, s, "scan " + std::to_string(static_cast<int>(op)));
  const std::int64_t n = s.pre * s.count * s.post;
  const IndexMap id = IndexMap::identity({n});
  const int x = b.input(n), y = b.input(n), out = b.output(n);
  Launch& l = b.launch();
  l.scan = op;
  l.reverse = reverse;
  const bool arg = op == ScanOp::kArgMax || op == ScanOp::kArgMin;
  if (op == ScanOp::kProduct || op == ScanOp::kLinear) {
    Scalar a(l.a);
    const float spread = op == ScanOp::kProduct ? 0.3F / static_cast<float>(s.count) : 0.02F;
    const int scaled = a.op(op_mul(), {a.load(x, id), a.constant(spread)});
    a.op(op_add(), {scaled, a.constant(op == ScanOp::kProduct ? 1.0F : 0.9F)});
  }
  // A view: the second half first. With ties where the order tells.
  if (op != ScanOp::kProduct) {
    Scalar e(l.b);
    const IndexMap turned{{View{{n}, {-1}, n - 1, {}, {}}}};
    const int loaded = e.load(y, turned);
    if (arg) e.op(op_cast(), {loaded}, DType::kI32);
  }
  Scalar body(l.body);
  const int acc = body.acc();
  l.body.instrs.back().dtype = arg ? DType::kI32 : DType::kF32;
  const int value = arg ? acc : body.op(op_add(), {acc, body.load(x, id)});
  l.stores = {store_to(out, id, value, arg ? DType::kI32 : DType::kF32)};
  return b;
}

LaunchBuilder make_sort(const Lines& s, DType dtype, bool descending) {
  LaunchBuilder b = lines_of(LaunchKind::kSort, s, "sort");
  const std::int64_t n = s.pre * s.count * s.post;
  const int x = b.input(n, dtype, 40), out = b.output(n);
  if (dtype == DType::kF32) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> odd = {std::numeric_limits<float>::quiet_NaN(), -0.0F, 0.0F, inf, -inf,
                                    std::numeric_limits<float>::quiet_NaN()};
    b.set(x, {odd.begin(), odd.begin() + std::min<std::int64_t>(n, 6)});
  }
  if (dtype == DType::kI32) b.set_words(x, {static_cast<std::uint32_t>(-3)});
  Launch& l = b.launch();
  l.descending = descending;
  Scalar(l.b).load(x, IndexMap::identity({n}), dtype);
  Scalar body(l.body);
  const int acc = body.acc();
  l.body.instrs.back().dtype = DType::kI32;
  l.stores = {store_to(out, IndexMap::identity({n}), acc, DType::kI32)};
  return b;
}

void expect_on_device(webgpu::WebGpuDevice& device, const LaunchBuilder& built) {
  SCOPED_TRACE(built.program.launches[0].name);
  verify(built.program);
  OracleBuffers wanted = built.contents;
  run_oracle(built.program, wanted, oracle_hyper());
  expect_close(built, run_on(device, built), wanted, {2e-4, 2e-5});
}

TEST(CpuScan, of_every_kind_and_shape) {
  for (const ScanOp op : kOps) {
    for (const Lines& s : kLines) {
      for (const bool reverse : {false, true}) {
        expect_as_oracle(make_scan(op, s, reverse), oracle_hyper(), {1e-4, 1e-5});
      }
    }
  }
}

TEST(CpuScan, of_few_long_lines_in_chunks) {
  for (const ScanOp op : kOps) {
    for (const Lines& s : kLong) {
      for (const bool reverse : {false, true}) {
        expect_as_oracle(make_scan(op, s, reverse), oracle_hyper(), {1e-4, 1e-5});
      }
    }
  }
}

TEST(CpuSort, of_every_type_and_shape) {
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kU32}) {
    for (const bool descending : {false, true}) {
      for (const Lines& s : kLines) expect_as_oracle(make_sort(s, dtype, descending));
      expect_as_oracle(make_sort(kLong[1], dtype, descending));
    }
  }
}

TEST(WebGpuScan, of_every_kind_and_shape) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const ScanOp op : kOps) {
    for (const Lines& s : kLines) expect_on_device(*device, make_scan(op, s, s.post % 2 == 0));
    // f32 does not keep a product of so many numbers near 1 to five digits.
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
    for (const ScanOp op : kOps) {
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

// Lines that workgroup memory does not hold, with tiles from 2 up.
TEST(WebGpuSort, of_lines_that_are_sorted_in_the_buffer) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int tile : {2, 16, 128}) {
    WgslOptions options;
    options.tile = tile;
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

// Two launches share the work of one, as where a buffer is larger than a binding may be.
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
