// SPDX-License-Identifier: MIT
// Reducer: f32 sums accumulate in double; across columns, in f32 for a few columns at a time.
#include "backend/cpu/reduction/reducer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tensorgrad::cpu {
namespace {

// Number of columns that are summed in f32 before the result is added to the doubles.
constexpr std::int64_t kFloatColumns = 64;

}  // namespace

void Reducer::clear() {
  std::memset(memory_, 0, static_cast<std::size_t>(reducer_bytes(rows_)));
  if (reduce_.op != ReduceOp::kSum) std::fill_n(bests(), rows_, Best{});
  unsettled() = 0;
}

void Reducer::take_row(const Word* x, std::int64_t count, std::int64_t first) {
  if (float_sum()) {
    doubles()[0] += simd().sum(reinterpret_cast<const float*>(x), count);
  } else if (reduce_.op == ReduceOp::kSum) {
    words()[0] += simd().sum_words(x, count);
  } else {
    take_best(reduce_.op, reduce_.dtype, x, count, first, bests()[0]);
  }
}

template <class T>
void Reducer::take_bests(const Word* x, std::int64_t count, std::int64_t first) {
  const bool larger = reduce_.op == ReduceOp::kMax || reduce_.op == ReduceOp::kArgMax;
  for (std::int64_t c = 0; c < count; ++c) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      Best& best = bests()[r];
      const T v = std::bit_cast<T>(x[c * rows_ + r]), value = std::bit_cast<T>(best.bits);
      const bool beats = (larger ? v > value : v < value) || (v != v && value == value);
      if (beats || best.index < 0) best = {x[c * rows_ + r], first + c};
    }
  }
}

void Reducer::take_columns(const Word* x, std::int64_t count, std::int64_t first) {
  if (float_sum()) {
    for (std::int64_t c = 0; c < count;) {
      const std::int64_t n = std::min(count - c, kFloatColumns - unsettled());
      simd().add_rows(floats(), reinterpret_cast<const float*>(x) + c * rows_, n, rows_, rows_);
      unsettled() += n;
      c += n;
      if (unsettled() == kFloatColumns) settle();
    }
  } else if (reduce_.op == ReduceOp::kSum) {
    for (std::int64_t c = 0; c < count; ++c) {
      for (std::int64_t r = 0; r < rows_; ++r) words()[r] += x[c * rows_ + r];
    }
  } else if (reduce_.dtype == DType::kF32) {
    take_bests<float>(x, count, first);
  } else if (reduce_.dtype == DType::kI32) {
    take_bests<std::int32_t>(x, count, first);
  } else {
    take_bests<std::uint32_t>(x, count, first);
  }
}

void Reducer::settle() {
  if (unsettled() > 0) simd().flush(doubles(), floats(), rows_);
  unsettled() = 0;
}

void Reducer::join(const Reducer& other) {
  for (std::int64_t r = 0; r < rows_; ++r) {
    if (float_sum()) {
      doubles()[r] += other.doubles()[r];
    } else if (reduce_.op == ReduceOp::kSum) {
      words()[r] += other.words()[r];
    } else {
      join_best(reduce_.op, reduce_.dtype, other.bests()[r], bests()[r]);
    }
  }
}

void Reducer::finish(Word* out) const {
  for (std::int64_t r = 0; r < rows_; ++r) {
    if (float_sum()) {
      out[r] = std::bit_cast<Word>(static_cast<float>(doubles()[r]));
    } else if (reduce_.op == ReduceOp::kSum) {
      out[r] = words()[r];
    } else {
      const bool value = reduce_.op == ReduceOp::kMax || reduce_.op == ReduceOp::kMin;
      out[r] = value ? bests()[r].bits : static_cast<Word>(bests()[r].index);
    }
  }
}

}  // namespace tensorgrad::cpu
