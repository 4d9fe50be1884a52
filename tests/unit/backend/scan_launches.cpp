// SPDX-License-Identifier: MIT
// Scan and sort launches with ties and unordered numbers.
#include "scan_launches.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace tensorgrad::testing {
namespace {

std::string text_of(const Lines& s) {
  return std::to_string(s.pre) + "x" + std::to_string(s.count) + "x" + std::to_string(s.post);
}

}  // namespace

// The factors of a product are close to 1, so that long products stay in range. The epilogue adds
// another load.
LaunchBuilder make_scan(ScanOp op, const Lines& s, bool reverse) {
  LaunchBuilder b(
      ScanLaunch{.pre = s.pre, .count = s.count, .post = s.post, .op = op, .reverse = reverse},
      "scan " + std::to_string(static_cast<int>(op)) + " " + text_of(s));
  const std::int64_t n = s.pre * s.count * s.post;
  const IndexMap id = IndexMap::identity({n});
  const int x = b.input(n), y = b.input(n), out = b.output(n);
  Launch& l = b.launch();
  auto& scan = l.as<ScanLaunch>();
  const bool arg = op == ScanOp::kArgMax || op == ScanOp::kArgMin;
  if (op == ScanOp::kProduct || op == ScanOp::kLinear) {
    Scalar a(scan.a);
    const float spread = op == ScanOp::kProduct ? 0.3F / static_cast<float>(s.count) : 0.02F;
    const int scaled = a.op(op_mul(), {a.load(x, id), a.constant(spread)});
    a.op(op_add(), {scaled, a.constant(op == ScanOp::kProduct ? 1.0F : 0.9F)});
  }
  // A reversed view. For argmax and argmin, it has ties, of which the order decides.
  if (op != ScanOp::kProduct) {
    Scalar e(scan.b);
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
  LaunchBuilder b(
      SortLaunch{.pre = s.pre, .count = s.count, .post = s.post, .descending = descending},
      "sort " + text_of(s));
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
  Scalar(l.as<SortLaunch>().keys).load(x, IndexMap::identity({n}), dtype);
  Scalar body(l.body);
  const int acc = body.acc();
  l.body.instrs.back().dtype = DType::kI32;
  l.stores = {store_to(out, IndexMap::identity({n}), acc, DType::kI32)};
  return b;
}

}  // namespace tensorgrad::testing
