// SPDX-License-Identifier: MIT
// Products on the CPU whose batches share the left operand. If each tile would have to pack its
// rows, they are packed once for all batches and threads.
#include <gtest/gtest.h>

#include "backend/cpu/matmul/contraction.h"
#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

struct BatchedProduct {
  std::int64_t batch, m, n, k;
};

// Storage of the left operand: contiguous columns or rows, windows of 4 columns of an image, or
// computed. All are shared by the batches, except kOfEachBatch.
enum class LeftOperand { kColumns, kRows, kWindows, kComputed, kOfEachBatch };

LaunchBuilder batched_product(const BatchedProduct& s, LeftOperand left) {
  LaunchBuilder built(ContractionLaunch{.batch = s.batch, .m = s.m, .n = s.n, .k = s.k},
                      std::to_string(s.batch) + "*" + std::to_string(s.m) + "x" +
                          std::to_string(s.n) + "x" + std::to_string(s.k));
  Launch& l = built.launch();
  auto& product = l.as<ContractionLaunch>();
  const bool windows = left == LeftOperand::kWindows, each = left == LeftOperand::kOfEachBatch;
  const std::int64_t line = 2 * s.m + 4, steps = s.k / 4;  // of the image
  const int a = built.input(windows ? line * steps : s.m * s.k * (each ? s.batch : 1));
  const int b = built.input(s.batch * s.k * s.n), bias = built.input(s.n),
            out = built.output(s.batch * s.m * s.n);
  View view{{s.batch, s.m, s.k}, {each ? s.m * s.k : 0, 1, s.m}, 0, {}, {}};
  if (left == LeftOperand::kRows) view.strides = {0, s.k, 1};
  if (windows) view = {{s.batch, s.m, steps, 4}, {0, 2, line, 1}, 0, {}, {}};
  Scalar of_a(product.a), body(l.body);
  const int value = of_a.load(a, {{view}});
  if (left == LeftOperand::kComputed) of_a.op(op_max(), {value, of_a.constant(0)});
  Scalar(product.b).load(b, IndexMap::identity({s.batch, s.k, s.n}));
  const Shape results = {s.batch, s.m, s.n};
  const int along = body.load(bias, {{View{results, {0, 0, 1}, 0, {}, {}}}});
  l.stores = {store_to(out, IndexMap::identity(results), body.op(op_add(), {body.acc(), along}))};
  return built;
}

// Returns the number of rows that are packed once and shared by `threads` threads.
std::int64_t rows_packed_once(LaunchBuilder& built, int threads) {
  cpu::ConstPool constants;
  cpu::Prepare prepare{built.launch(), constants, {}, threads};
  for (std::vector<std::uint32_t>& each : built.contents) prepare.data.push_back(each.data());
  const auto& product = built.launch().as<ContractionLaunch>();
  const std::size_t bytes = cpu::make_runner(prepare, product)->shared_bytes;
  return static_cast<std::int64_t>(bytes / sizeof(float)) / product.k;
}

// Batches that are finished together, rows in several tiles of which the last is shorter, and
// columns in several blocks of which the first is computed during packing.
constexpr BatchedProduct kBatchedProducts[] = {
    {7, 41, 90, 52}, {3, 250, 500, 60}, {4, 31, 500, 700}, {2, 19, 700, 24}};

void expect_packed_once(LeftOperand left, bool expected) {
  for (const BatchedProduct& s : kBatchedProducts) {
    LaunchBuilder built = batched_product(s, left);
    SCOPED_TRACE(built.launch().name);
    const std::int64_t panel = cpu::gemm_kernels().mr;
    const std::int64_t rows = expected ? (s.m + panel - 1) / panel * panel : 0;
    for (const int threads : {1, 2, 4})
      EXPECT_EQ(rows_packed_once(built, threads), rows) << threads;
    expect_as_oracle(built, oracle_scalars(), {3e-6 * static_cast<double>(s.k), 1e-5}, {2, 3, 4});
  }
}

TEST(CpuBatchedContraction, packs_columns_that_all_batches_have_once) {
  expect_packed_once(LeftOperand::kColumns, true);
}

TEST(CpuBatchedContraction, packs_windows_that_all_batches_have_once) {
  expect_packed_once(LeftOperand::kWindows, true);
}

// Narrow micro-kernels read rows in place.
TEST(CpuBatchedContraction, packs_rows_that_all_batches_have_once_where_kernels_are_tall) {
  expect_packed_once(LeftOperand::kRows, cpu::gemm_kernels().mr > 6);
}

TEST(CpuBatchedContraction, packs_computed_and_per_batch_operands_by_tile) {
  expect_packed_once(LeftOperand::kComputed, false);
  expect_packed_once(LeftOperand::kOfEachBatch, false);
}

}  // namespace
}  // namespace tensorgrad::testing
