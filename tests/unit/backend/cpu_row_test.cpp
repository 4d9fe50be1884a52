// SPDX-License-Identifier: MIT
// Row launches on the CPU, compared with the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "backend/cpu/simd.h"
#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

using RowSize = RowLaunch;

// Rows processed as a whole, streamed rows, and few long rows.
const std::vector<RowSize> kRowSizes = {{1, 1},     {5, 1},     {128, 10},   {33, 64},   {7, 1000},
                                        {300, 300}, {5, 30000}, {1, 70'001}, {2, 70'000}};

IndexMap over(std::vector<std::int64_t> strides, const RowSize& s, std::int64_t offset = 0) {
  return {{View{{s.rows, s.cols}, std::move(strides), offset, {}, {}}}};
}

TEST(CpuRow, softmax_and_its_statistics) {
  for (const RowSize size : kRowSizes) {
    for (const bool transposed : {false, true}) {
      LaunchBuilder b(size, "softmax " + std::to_string(size.rows) + "x" +
                                std::to_string(size.cols) + (transposed ? " t" : ""));
      const std::int64_t n = size.rows * size.cols;
      const int x = b.input(n), out = b.output(n), tops = b.output(size.rows),
                sums = b.output(size.rows);
      const IndexMap map = transposed ? over({1, size.rows}, size) : over({size.cols, 1}, size);
      Scalar s(b.launch().body);
      const int v = s.load(x, map);
      const int top = s.reduce(ReduceOp::kMax, v);
      const int e = s.op(op_exp(), {s.op(op_add(), {v, s.op(op_mul(), {top, s.constant(-1)})})});
      const int sum = s.reduce(ReduceOp::kSum, e);
      const int scaled = s.op(op_mul(), {sum, s.constant(0.5f)});
      b.launch().stores = {
          store_to(out, map, s.op(op_mul(), {e, scaled})),
          store_to(tops, IndexMap::identity({size.rows}), top, DType::kF32, Level::kRow),
          store_to(sums, IndexMap::identity({size.rows}), scaled, DType::kF32, Level::kRow)};
      expect_as_oracle(b, oracle_scalars(), {1e-6, 2e-5});
    }
  }
}

// Blocks that begin anywhere in a repeated stretch.
TEST(CpuRow, rereads_repeated_blocks) {
  for (const std::int64_t period : {16, 32, 64, 128}) {
    for (const std::int64_t offset : {0, 5}) {
      const RowSize size{2000, 48};
      LaunchBuilder b(size, std::to_string(period) + " from " + std::to_string(offset));
      const std::int64_t n = size.rows * size.cols;
      const int x = b.input(n), again = b.input(period + 64), out = b.output(n);
      const IndexMap repeated{{View{{n / period, period}, {0, 1}, offset, {}, {}}}};
      Scalar s(b.launch().body);
      const int product = s.op(op_mul(), {s.load(x, over({48, 1}, size)), s.load(again, repeated)});
      const int sum = s.reduce(ReduceOp::kSum, product);
      b.launch().stores = {store_to(out, over({48, 1}, size), s.op(op_add(), {product, sum}))};
      expect_as_oracle(b, oracle_scalars(), {1e-5, 2e-5});
    }
  }
}

TEST(CpuRow, sums_of_a_million_stay_accurate) {
  for (const RowSize size : {RowSize{1, 1 << 20}, RowSize{3, 1 << 16}, RowSize{16, 1 << 13}}) {
    for (const bool transposed : {false, true}) {
      if (transposed && size.rows == 1) continue;  // the same
      LaunchBuilder b(size, transposed ? "column sums" : "row sums");
      const int x = b.input(size.rows * size.cols), out = b.output(size.rows);
      Scalar s(b.launch().body);
      const int v = s.load(x, transposed ? over({1, size.rows}, size) : over({size.cols, 1}, size));
      const int positive = s.op(op_add(), {v, s.constant(2.5f)});
      const int sum = s.reduce(ReduceOp::kSum, positive);
      b.launch().stores = {
          store_to(out, IndexMap::identity({size.rows}), sum, DType::kF32, Level::kRow)};
      expect_as_oracle(b, oracle_scalars(), {0, 3e-7});
    }
  }
}

// Each row loads one value before its reduction and one after it. Several threads share a long row.
TEST(CpuRow, long_rows_have_values_of_their_own) {
  for (const RowSize size :
       {RowSize{1, 1 << 17}, RowSize{2, 70'000}, RowSize{16, 1 << 13}, RowSize{300, 300}}) {
    for (const bool transposed : {false, true}) {
      LaunchBuilder b(size, transposed ? "columns" : "rows");
      const int x = b.input(size.rows * size.cols), before = b.input(size.rows),
                after = b.input(size.rows), out = b.output(size.rows);
      const IndexMap id = IndexMap::identity({size.rows});
      Scalar s(b.launch().body);
      const int v = s.load(x, transposed ? over({1, size.rows}, size) : over({size.cols, 1}, size));
      const int scale = s.load(before, id, DType::kF32, Level::kRow);
      const int largest = s.reduce(ReduceOp::kMax, s.op(op_mul(), {v, scale}));
      const int shift = s.load(after, id, DType::kF32, Level::kRow);
      Scalar row(b.launch().body);
      const int sum = row.op(op_add(), {largest, shift});
      b.launch().body.instrs.back().level = Level::kRow;
      b.launch().stores = {store_to(out, id, sum, DType::kF32, Level::kRow)};
      expect_as_oracle(b);
    }
  }
}

TEST(CpuRow, every_reduction_of_every_type) {
  for (const RowSize size :
       {RowSize{40, 9}, RowSize{6, 700}, RowSize{2, 100'000}, RowSize{500, 70}}) {
    for (const DType type : {DType::kF32, DType::kI32, DType::kU32}) {
      for (const bool transposed : {false, true}) {
        LaunchBuilder b(size, "reductions");
        const int x = b.input(size.rows * size.cols, type, 1000);
        const IndexMap id = IndexMap::identity({size.rows});
        Scalar s(b.launch().body);
        const int v =
            s.load(x, transposed ? over({1, size.rows}, size) : over({size.cols, 1}, size), type);
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kArgMax,
                                  ReduceOp::kArgMin}) {
          const int r = s.reduce(op, v);
          const DType result = b.launch().body.instrs.back().dtype;
          b.launch().stores.push_back(store_to(b.output(size.rows), id, r, result, Level::kRow));
        }
        expect_as_oracle(b);
      }
    }
  }
}

TEST(CpuRow, nan_wins_and_the_first_of_equals) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t cols : {5, 40, 70000}) {
    for (const bool transposed : {false, true}) {
      const RowSize size{4, cols};
      LaunchBuilder b(size, "nan " + std::to_string(cols));
      const int x = b.input(size.rows * cols);
      std::vector<float> values(static_cast<std::size_t>(size.rows * cols), 1.0f);
      const auto at = [&](std::int64_t r, std::int64_t c) -> float& {
        return values[static_cast<std::size_t>(transposed ? c * size.rows + r : r * cols + c)];
      };
      at(0, 2) = nan;
      at(0, cols - 1) = nan;
      at(0, 1) = inf;
      at(1, 3) = at(1, cols - 1) = 2;
      at(1, 1) = at(1, cols - 2) = -2;
      for (std::int64_t c = 0; c < cols; ++c) at(2, c) = -inf;
      at(3, cols - 1) = nan;
      b.set(x, values);
      Scalar s(b.launch().body);
      const int v = s.load(x, transposed ? over({1, size.rows}, size) : over({cols, 1}, size));
      const IndexMap id = IndexMap::identity({size.rows});
      for (const ReduceOp op :
           {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kArgMax, ReduceOp::kArgMin}) {
        const int r = s.reduce(op, v);
        const DType result = b.launch().body.instrs.back().dtype;
        b.launch().stores.push_back(store_to(b.output(size.rows), id, r, result, Level::kRow));
      }
      expect_as_oracle(b);
    }
  }
}

TEST(CpuRow, row_values_are_loaded_gathered_and_broadcast) {
  for (const RowSize size : {RowSize{60, 12}, RowSize{9, 3000}, RowSize{3, 90000}}) {
    LaunchBuilder b(size, "cross entropy");
    const int x = b.input(size.rows * size.cols), label = b.input(size.rows, DType::kI32, 12);
    const int bias = b.input(size.cols), weight = b.input(size.rows);
    const int out = b.output(size.rows * size.cols), picked = b.output(size.rows);
    const IndexMap rows = IndexMap::identity({size.rows});
    Scalar s(b.launch().body);
    const int shifted =
        s.op(op_add(), {s.load(x, over({size.cols, 1}, size)), s.load(bias, over({0, 1}, size))});
    const int l = s.load(label, rows, DType::kI32, Level::kRow);
    const int own =
        s.load(x, {{View{{size.rows}, {size.cols}, 0, {}, {}}}}, DType::kF32, Level::kRow);
    b.launch().body.instrs.back().kind = InstrKind::kLoadAt;
    b.launch().body.instrs.back().operands = {l};
    b.launch().body.accesses.back().at_stride = 1;
    b.launch().body.accesses.back().at_size = std::min<std::int64_t>(size.cols, 10);
    const int w = s.op(op_mul(), {s.load(weight, rows, DType::kF32, Level::kRow), own});
    const int sum = s.reduce(ReduceOp::kSum, s.op(op_mul(), {shifted, w}));
    const int number = s.op(op_cast(), {s.index(Level::kRow)}, DType::kF32);
    const int total = s.op(op_add(), {sum, number});
    const int hit =
        s.op(op_less(), {s.coord(1, size.cols), s.op(op_cast(), {l}, DType::kU32)}, DType::kBool);
    b.launch().stores = {
        store_to(out, over({size.cols, 1}, size), s.op(op_where(), {hit, total, shifted})),
        store_to(picked, rows, total, DType::kF32, Level::kRow)};
    expect_as_oracle(b, oracle_scalars(), {2e-3, 2e-5});
  }
}

TEST(CpuRow, variance_takes_two_passes_and_works_in_place) {
  for (const RowSize size : {RowSize{50, 16}, RowSize{4, 5000}, RowSize{2, 200'000}}) {
    LaunchBuilder b(size, "normalise");
    const int x = b.in_place(size.rows * size.cols), out = b.output(size.rows);
    const IndexMap map = over({size.cols, 1}, size);
    Scalar s(b.launch().body);
    const int v = s.load(x, map);
    const int share = s.constant(-1.0f / static_cast<float>(size.cols));
    const int mean = s.op(op_mul(), {s.reduce(ReduceOp::kSum, v), share});
    const int centred = s.op(op_add(), {v, mean});
    const int square = s.reduce(ReduceOp::kSum, s.op(op_mul(), {centred, centred}));
    const int spread = s.op(op_mul(), {square, share});
    b.launch().stores = {
        store_to(x, map, s.op(op_mul(), {centred, spread})),
        store_to(out, IndexMap::identity({size.rows}), spread, DType::kF32, Level::kRow)};
    expect_as_oracle(b, oracle_scalars(), {1e-5, 1e-5});
  }
}

TEST(CpuRow, reduces_constants_and_indices) {
  for (const RowSize size : {RowSize{5, 30}, RowSize{1, 80000}}) {
    LaunchBuilder b(size, "counts");
    const IndexMap rows = IndexMap::identity({size.rows});
    Scalar s(b.launch().body);
    b.launch().body.instrs.reserve(8);
    const int one = s.constant(1);
    b.launch().body.instrs.back().level = Level::kElement;
    const int count = s.reduce(ReduceOp::kSum, one);
    const int last = s.reduce(ReduceOp::kMax, s.coord(1, size.cols));
    b.launch().stores = {store_to(b.output(size.rows), rows, count, DType::kF32, Level::kRow),
                         store_to(b.output(size.rows), rows, last, DType::kU32, Level::kRow)};
    expect_as_oracle(b);
  }
}

TEST(CpuRow, random_programs_agree_with_the_oracle) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const RowSize sizes[] = {{16, 12}, {64, 300}, {3, 4000}, {2, 23000}, {300, 20}};
    const RowSize size = sizes[pick(5)];
    LaunchBuilder b(size, "seed " + std::to_string(seed));
    const std::int64_t n = size.rows * size.cols;
    const int in[] = {b.input(n), b.input(n)};
    const int row_in = b.input(size.rows);
    const IndexMap rows = IndexMap::identity({size.rows});
    Scalar s(b.launch().body);
    std::vector<int> values = {s.constant(0.5f), s.load(row_in, rows, DType::kF32, Level::kRow)};
    const bool swapped = pick(3) == 0;
    for (int i = 0; i < 3; ++i) {
      const IndexMap maps[] = {swapped ? over({1, size.rows}, size) : over({size.cols, 1}, size),
                               over({0, 1}, size), over({1, 0}, size),
                               over({-size.cols, -1}, size, n - 1)};
      values.push_back(s.load(in[pick(2)], maps[pick(swapped ? 3 : 4)]));
    }
    int sums = 0;
    for (int i = 0; i < 12; ++i) {
      const int x = values[pick(values.size())], y = values[pick(values.size())];
      const Level level = b.launch().body.instrs[static_cast<std::size_t>(x)].level;
      const auto kind = pick(5);
      if (kind == 4 && level == Level::kElement && sums < 3) {
        const ReduceOp ops[] = {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kMax};
        values.push_back(s.reduce(ops[pick(3)], x));
        ++sums;
      } else {
        values.push_back(s.op(kind == 0 ? op_add() : kind == 1 ? op_max() : op_mul(), {x, y}));
      }
    }
    const IndexMap map = over({size.cols, 1}, size);
    const auto level_of = [&](int v) {
      return b.launch().body.instrs[static_cast<std::size_t>(v)].level;
    };
    b.launch().stores = {store_to(b.output(n), map, values[values.size() - 2])};
    const int last = values.back();
    const bool row = level_of(last) == Level::kRow;
    b.launch().stores.push_back(store_to(b.output(row ? size.rows : n), row ? rows : map, last,
                                         DType::kF32, row ? Level::kRow : Level::kElement));
    expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-3});
  }
}

// The number of columns of a call depends on how the work is split. With AVX2 or less, columns that
// do not fill a vector are computed by other code.
TEST(CpuRows, a_column_has_the_same_sum_among_any_others) {
  constexpr std::int64_t kColumns = 37;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (const std::int64_t count : {0, 1, 3, 4, 7, 256, 261}) {
    std::vector<float> x(static_cast<std::size_t>(count * kColumns)), start(kColumns);
    for (std::vector<float>* each : {&x, &start}) {
      for (float& value : *each) value = draw(random);
    }
    std::vector<float> together = start;
    cpu::simd().add_rows(together.data(), x.data(), count, kColumns, kColumns);
    for (std::int64_t width = 1; width < kColumns; ++width) {
      std::vector<float> apart = start;
      for (std::int64_t i = 0; i < kColumns; i += width) {
        cpu::simd().add_rows(apart.data() + i, x.data() + i, count, kColumns,
                             std::min(width, kColumns - i));
      }
      EXPECT_EQ(apart, together) << count << " rows, " << width << " columns at a time";
    }
  }
}

}  // namespace
}  // namespace tensorgrad::testing
