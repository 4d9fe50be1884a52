// SPDX-License-Identifier: MIT
// Scan and sort launches on the CPU, compared with the oracle, including long lines in chunks.
#include <gtest/gtest.h>

#include "scan_launches.h"

namespace tensorgrad::testing {
namespace {

TEST(CpuScan, of_every_kind_and_shape) {
  for (const ScanOp op : kScanOps) {
    for (const Lines& s : kLines) {
      for (const bool reverse : {false, true}) {
        expect_as_oracle(make_scan(op, s, reverse), oracle_scalars(), {1e-4, 1e-5});
      }
    }
  }
}

TEST(CpuScan, of_few_long_lines_in_chunks) {
  for (const ScanOp op : kScanOps) {
    for (const Lines& s : kLong) {
      for (const bool reverse : {false, true}) {
        expect_as_oracle(make_scan(op, s, reverse), oracle_scalars(), {1e-4, 1e-5});
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

}  // namespace
}  // namespace tensorgrad::testing
