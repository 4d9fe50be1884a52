// SPDX-License-Identifier: MIT
// Scan and sort launches for the tests of each backend: contiguous and strided lines, short and
// long.
#pragma once

#include <cstdint>

#include "program_harness.h"

namespace tensorgrad::testing {

struct Lines {
  std::int64_t pre, count, post;
};

inline constexpr Lines kLines[] = {{1, 1, 1},  {3, 5, 1},   {200, 17, 1}, {2, 1500, 1}, {4, 9, 3},
                                   {2, 70, 8}, {1, 40, 90}, {3, 33, 20},  {1, 6, 2000}};
inline constexpr Lines kLong[] = {{1, 80000, 1}, {2, 40000, 3}, {1, 9000, 20}};
inline constexpr ScanOp kScanOps[] = {ScanOp::kSum, ScanOp::kProduct, ScanOp::kLinear,
                                      ScanOp::kArgMax, ScanOp::kArgMin};

LaunchBuilder make_scan(ScanOp op, const Lines& s, bool reverse);
LaunchBuilder make_sort(const Lines& s, DType dtype, bool descending);

}  // namespace tensorgrad::testing
