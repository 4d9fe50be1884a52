// SPDX-License-Identifier: MIT
// Vectorized reductions. Sums have four vectors of partial sums, so their order depends only on the
// instruction set.
#include "backend/cpu/simd.h"

#include "base/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Partial sums in f32 are short: the error of a block is at most about 30 roundings.
constexpr std::int64_t kSumBlock = 1024;

float sum_block(const float* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, hn::LoadU(d, x + i));
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) total += x[i];
  return total;
}

double sum(const float* x, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += kSumBlock) {
    total += static_cast<double>(sum_block(x + i, n - i < kSumBlock ? n - i : kSumBlock));
  }
  return total;
}

// Computes the sum, maximum or minimum of each row in vectors; the last one is masked.
enum class Fold { kSum, kMax, kMin };

template <Fold kFold>
void fold_rows(const float* HWY_RESTRICT x, std::int64_t rows, std::int64_t cols,
               float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = (cols - 1) / lanes * lanes;
  const auto tail = hn::FirstN(d, static_cast<std::size_t>(cols - whole));
  const auto nothing = hn::Set(d, kFold == Fold::kSum   ? 0.0f
                                  : kFold == Fold::kMax ? -__builtin_inff()
                                                        : __builtin_inff());
  const auto fold = [](auto a, auto b) HWY_ATTR {
    if constexpr (kFold == Fold::kSum) return hn::Add(a, b);
    if constexpr (kFold == Fold::kMax) return hn::Max(a, b);
    if constexpr (kFold == Fold::kMin) return hn::Min(a, b);
  };
  for (std::int64_t r = 0; r < rows; ++r, x += cols) {
    auto total = hn::IfThenElse(tail, hn::LoadU(d, x + whole), nothing);
    auto ordered = hn::Eq(total, total);
    for (std::int64_t c = 0; c < whole; c += lanes) {
      const auto v = hn::LoadU(d, x + c);
      if constexpr (kFold != Fold::kSum) ordered = hn::And(ordered, hn::Eq(v, v));
      total = fold(v, total);
    }
    if constexpr (kFold == Fold::kSum) {
      out[r] = hn::GetLane(hn::SumOfLanes(d, total));
      continue;
    }
    const auto best = kFold == Fold::kMax ? hn::MaxOfLanes(d, total) : hn::MinOfLanes(d, total);
    out[r] = hn::AllTrue(d, ordered) ? hn::GetLane(best) : __builtin_nanf("");
  }
}

void spread_rows(const std::uint32_t* HWY_RESTRICT x, std::int64_t rows, std::int64_t cols,
                 std::uint32_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // The last vector of a row may overwrite the next rows, which are written later. The last rows
  // are written exactly.
  const std::int64_t safe = rows - (lanes + cols - 1) / cols;
  std::int64_t r = 0;
  for (; r < safe; ++r) {
    const auto v = hn::Set(d, x[r]);
    for (std::int64_t c = 0; c < cols; c += lanes) hn::StoreU(v, d, out + r * cols + c);
  }
  for (; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) out[r * cols + c] = x[r];
  }
}

void gather(const std::uint32_t* HWY_RESTRICT data, std::uint32_t stride, std::uint32_t size,
            const std::uint32_t* HWY_RESTRICT index, std::int64_t n,
            std::uint32_t* HWY_RESTRICT at) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto none = hn::Set(d, ~std::uint32_t{0});
  const auto step = hn::Set(d, stride), end = hn::Set(d, size);
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto v = hn::LoadU(d, index + i), offset = hn::LoadU(d, at + i);
    // Elements past the end are arbitrary.
    const auto there = hn::FirstN(d, static_cast<std::size_t>(n - i));
    const auto inside = hn::And(there, hn::And(hn::Lt(v, end), hn::Ne(offset, none)));
    const auto from = hn::IfThenElseZero(inside, hn::Add(offset, hn::Mul(v, step)));
    // Invalid lanes read element 0, which every binding has.
    const auto found = hn::GatherIndex(d, data, hn::BitCast(di, from));
    hn::StoreU(hn::IfThenElseZero(inside, found), d, at + i);
  }
}

std::uint32_t sum_words(const std::uint32_t* HWY_RESTRICT x, std::int64_t n) {
  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

void flush(double* HWY_RESTRICT acc, float* HWY_RESTRICT x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    acc[i] += static_cast<double>(x[i]);
    x[i] = 0;
  }
}

// Sums one vector of columns, read by `load`. Uses four partial sums, to hide the latency of
// additions.
template <class V, class Load>
HWY_INLINE V sum_down(V first, const float* from, std::int64_t count, std::int64_t stride,
                      const Load& load) {
  V s0 = first, s1 = hn::Zero(hn::DFromV<V>()), s2 = s1, s3 = s1;
  std::int64_t c = 0;
  for (; c + 4 <= count; c += 4, from += 4 * stride) {
    s0 = hn::Add(s0, load(from));
    s1 = hn::Add(s1, load(from + stride));
    s2 = hn::Add(s2, load(from + 2 * stride));
    s3 = hn::Add(s3, load(from + 3 * stride));
  }
  for (; c < count; ++c, from += stride) s0 = hn::Add(s0, load(from));
  return hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
}

#if HWY_MEM_OPS_MIGHT_FAULT
// Sums fewer columns than fill a vector, n < 2 kColumns, with vectors of half the size, and so on.
// Adds in the same order as for whole vectors, as the division of work decides which columns share
// a vector.
template <std::size_t kColumns>
void add_columns(float* HWY_RESTRICT acc, const float* HWY_RESTRICT x, std::int64_t count,
                 std::int64_t stride, std::int64_t n) {
  if constexpr (kColumns > 0) {
    const hn::FixedTag<float, kColumns> d;
    if (n >= static_cast<std::int64_t>(kColumns)) {
      const auto load = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
      hn::StoreU(sum_down(load(acc), x, count, stride, load), d, acc);
      acc += kColumns, x += kColumns, n -= kColumns;
    }
    add_columns<kColumns / 2>(acc, x, count, stride, n);
  }
}
#endif

void add_rows(float* HWY_RESTRICT acc, const float* HWY_RESTRICT x, std::int64_t count,
              std::int64_t stride, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto whole = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(sum_down(hn::LoadU(d, acc + i), x + i, count, stride, whole), d, acc + i);
  }
  if (i == n) return;
#if !HWY_MEM_OPS_MIGHT_FAULT
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(n - i));
  const auto part = [&](const float* from) HWY_ATTR { return hn::MaskedLoad(mask, d, from); };
  hn::BlendedStore(sum_down(part(acc + i), x + i, count, stride, part), mask, d, acc + i);
#else
  add_columns<HWY_MAX_BYTES / sizeof(float) / 2>(acc + i, x + i, count, stride, n - i);
#endif
}

// Returns the maximum or minimum of x, or NaN if there is one.
float extreme(const float* HWY_RESTRICT x, std::int64_t n, bool smallest) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  float best = x[0];
  bool nan = best != best;
  std::int64_t i = 0;
  if (n >= lanes) {
    auto m = hn::LoadU(d, x);
    auto ordered = hn::Eq(m, m);
    for (i = lanes; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, x + i);
      ordered = hn::And(ordered, hn::Eq(v, v));
      m = smallest ? hn::Min(v, m) : hn::Max(v, m);
    }
    nan = !hn::AllTrue(d, ordered);
    best = hn::GetLane(smallest ? hn::MinOfLanes(d, m) : hn::MaxOfLanes(d, m));
  }
  for (; i < n; ++i) {
    nan = nan || x[i] != x[i];
    best = (smallest ? x[i] < best : x[i] > best) ? x[i] : best;
  }
  return nan ? __builtin_nanf("") : best;
}

float max(const float* x, std::int64_t n) { return extreme(x, n, false); }
float min(const float* x, std::int64_t n) { return extreme(x, n, true); }

using Words = hn::ScalableTag<std::uint32_t>;
using Ints = hn::RebindToSigned<Words>;
using Floats = hn::RebindToFloat<Words>;
using Halves = hn::Rebind<std::uint16_t, Words>;

// Calls vector(i) for each whole vector, then one(i) for each remaining element.
template <class Vector, class One>
void in_vectors(std::int64_t n, const Vector& vector, const One& one) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Words()));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vector(i);
  for (; i < n; ++i) one(i);
}

void from_halves(const std::uint16_t* HWY_RESTRICT x, std::int64_t n, float* HWY_RESTRICT out) {
  const Words d;
  const Ints di;
  const Floats df;
  const auto vector = [&](std::int64_t i) HWY_ATTR {
    const auto half = hn::PromoteTo(d, hn::LoadU(Halves(), x + i));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000U)));
    const auto rest = hn::And(half, hn::Set(d, 0x7FFFU)), shifted = hn::ShiftLeft<13>(rest);
    const auto small =
        hn::BitCast(d, hn::Mul(hn::ConvertTo(df, hn::BitCast(di, rest)), hn::Set(df, 0x1p-24F)));
    const auto normal = hn::Add(shifted, hn::Set(d, (127U - 15U) << 23));
    const auto special = hn::Or(shifted, hn::Set(d, 0x7F800000U));
    const auto finite = hn::IfThenElse(hn::Lt(rest, hn::Set(d, 0x0400U)), small, normal);
    const auto size = hn::IfThenElse(hn::Gt(rest, hn::Set(d, 0x7BFFU)), special, finite);
    hn::StoreU(hn::BitCast(df, hn::Or(size, sign)), df, out + i);
  };
  in_vectors(n, vector, [&](std::int64_t i) { out[i] = from_half(x[i]); });
}

void to_halves(const float* HWY_RESTRICT x, std::int64_t n, std::uint16_t* HWY_RESTRICT out) {
  const Words d;
  const Ints di;
  const Floats df;
  const Halves dh;
  const auto vector = [&](std::int64_t i) HWY_ATTR {
    const auto bits = hn::BitCast(d, hn::LoadU(df, x + i));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U));
    const auto size = hn::And(bits, hn::Set(d, 0x7FFFFFFFU));
    const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(d, 1U));
    const auto based = hn::Sub(size, hn::Set(d, (127U - 15U) << 23));
    const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(based, hn::Set(d, 0x0FFFU)), odd));
    const auto raised = hn::Add(hn::BitCast(df, size), hn::Set(df, 0.5F));
    const auto small = hn::Sub(hn::BitCast(d, raised), hn::Set(d, 0x3F000000U));
    const auto nan =
        hn::Or(hn::And(hn::ShiftRight<13>(size), hn::Set(d, 0x03FFU)), hn::Set(d, 0x7E00U));
    auto rest = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x38800000U)), small, normal);
    rest = hn::IfThenElse(hn::Gt(size, hn::Set(d, 0x477FEFFFU)), hn::Set(d, 0x7C00U), rest);
    rest = hn::IfThenElse(hn::Gt(size, hn::Set(d, 0x7F800000U)), nan, rest);
    // Signed, because narrowing saturates; all values are in [0, 65535].
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, hn::Or(rest, sign))), dh, out + i);
  };
  in_vectors(n, vector, [&](std::int64_t i) { out[i] = to_half(x[i]); });
}

const SimdTable* table() {
  static const SimdTable kTable = {hwy::TargetName(HWY_TARGET),
                                   sum,
                                   fold_rows<Fold::kSum>,
                                   fold_rows<Fold::kMax>,
                                   fold_rows<Fold::kMin>,
                                   spread_rows,
                                   gather,
                                   sum_words,
                                   flush,
                                   add_rows,
                                   max,
                                   min,
                                   from_halves,
                                   to_halves};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensorgrad::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/env.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cpu {
namespace {

HWY_EXPORT(table);

// Updates `best` with each element that beats all previous ones; stops at a NaN.
template <class T>
void scan(const std::uint32_t* x, std::int64_t n, std::int64_t first, bool larger, Best& best) {
  T value = std::bit_cast<T>(best.bits);
  for (std::int64_t i = 0; i < n; ++i) {
    if (best.index >= 0 && value != value) return;
    const T v = std::bit_cast<T>(x[i]);
    if (best.index >= 0 && !(larger ? v > value : v < value) && v == v) continue;
    value = v;
    best = {x[i], first + i};
  }
}

}  // namespace

const SimdTable& simd() {
  static const SimdTable& chosen = *HWY_DYNAMIC_DISPATCH(table)();
  return chosen;
}

// Highway's targets are bits; a lower bit is a better target.
void limit_targets() {
  const std::string wanted = env("TENSORGRAD_CPU_TARGET");
  if (wanted.empty()) return;
  std::string known;
  for (std::int64_t target = 1; target > 0 && target <= HWY_TARGETS; target <<= 1) {
    if ((HWY_TARGETS & target) == 0) continue;
    if (wanted == hwy::TargetName(target)) return hwy::DisableTargets(target - 1);
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw UserError("TENSORGRAD_CPU_TARGET: unsupported instruction set '" + wanted +
                  "'; available: " + known);
}

void take_best(ReduceOp op, DType dtype, const std::uint32_t* x, std::int64_t n, std::int64_t first,
               Best& best) {
  const bool larger = op == ReduceOp::kMax || op == ReduceOp::kArgMax;
  if (dtype == DType::kI32) return scan<std::int32_t>(x, n, first, larger, best);
  if (dtype != DType::kF32) return scan<std::uint32_t>(x, n, first, larger, best);
  if (n < 16) return scan<float>(x, n, first, larger, best);
  const float value = (larger ? simd().max : simd().min)(reinterpret_cast<const float*>(x), n);
  if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
    join_best(op, dtype, {std::bit_cast<std::uint32_t>(value), first}, best);
    return;
  }
  const bool nan = std::isnan(value);
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = std::bit_cast<float>(x[i]);
    if (!(nan ? std::isnan(v) : v == value)) continue;
    join_best(op, dtype, {x[i], first + i}, best);
    return;
  }
}

void join_best(ReduceOp op, DType dtype, const Best& other, Best& best) {
  if (other.index < 0) return;
  const bool larger = op == ReduceOp::kMax || op == ReduceOp::kArgMax;
  const auto join = [&]<class T>(T) { scan<T>(&other.bits, 1, other.index, larger, best); };
  if (dtype == DType::kF32) return join(float{});
  if (dtype == DType::kI32) return join(std::int32_t{});
  join(std::uint32_t{});
}

}  // namespace tensorgrad::cpu
#endif
