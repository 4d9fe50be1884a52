// SPDX-License-Identifier: MIT
// Scans that vectorize over neighboring lines or, for sums, along a single line. Running sums and
// products of f32 are f64, as in PyTorch; prefix sums inside a vector are f32.
#include "backend/cpu/scan/scan_kernels.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/scan/scan_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Word = std::uint32_t;

// Calls step(offset, t) for each step of a column of lines, in the order of the scan.
template <class Step>
HWY_INLINE void each_step(std::int64_t steps, std::int64_t width, bool reverse, const Step& step) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = reverse ? steps - 1 - i : i;
    step(t * width, t);
  }
}

// Sums a single line: prefix sums within each vector, plus the total of the previous vectors.
void sum_along(const float* x, std::int64_t n, bool reverse, double* carry, float* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto place = hn::Iota(di, 0);
  double total = *carry;
  const auto piece = [&](std::int64_t at, std::int64_t count) HWY_ATTR {
    const auto mine = hn::FirstN(d, static_cast<std::size_t>(count));
    auto v = hn::IfThenElseZero(mine, hn::LoadU(d, x + at));
    if (reverse) v = hn::Reverse(d, v);
    for (std::int64_t s = 1; s < lanes; s *= 2) {
      const auto by = hn::Set(di, static_cast<std::int32_t>(s));
      const auto from = hn::IndicesFromVec(d, hn::Max(hn::Sub(place, by), hn::Zero(di)));
      const auto there = hn::RebindMask(d, hn::Not(hn::Lt(place, by)));
      v = hn::Add(v, hn::IfThenElseZero(there, hn::TableLookupLanes(v, from)));
    }
    const double sum = static_cast<double>(hn::ExtractLane(v, static_cast<std::size_t>(lanes - 1)));
    v = hn::Add(v, hn::Set(d, static_cast<float>(total)));
    if (reverse) v = hn::Reverse(d, v);
    hn::BlendedStore(v, mine, d, out + at);
    total += sum;
  };
  const std::int64_t rest = n % lanes;
  if (!reverse) {
    for (std::int64_t i = 0; i < n - rest; i += lanes) piece(i, lanes);
    if (rest > 0) piece(n - rest, rest);
  } else {
    for (std::int64_t i = n - lanes; i >= 0; i -= lanes) piece(i, lanes);
    if (rest > 0) piece(0, rest);
  }
  *carry = total;
}

// Scans a single line sequentially. next(h, offset) returns the new state.
template <class State, class Result, class Next>
HWY_INLINE void one_line(std::int64_t n, bool reverse, State* carry, Result* out,
                         const Next& next) {
  State h = *carry;
  each_step(n, 1, reverse, [&](std::int64_t at, std::int64_t) HWY_ATTR {
    h = next(h, at);
    out[at] = static_cast<Result>(h);
  });
  *carry = h;
}

// h = h + x or h * x, in f64.
template <bool kProduct>
void fold_floats(const Word* a, const Word* b, std::int64_t, std::int64_t steps, std::int64_t width,
                 bool reverse, std::byte* carry, Word* out) {
  const auto* x = reinterpret_cast<const float*>(kProduct ? a : b);
  auto* values = reinterpret_cast<double*>(carry);
  auto* result = reinterpret_cast<float*>(out);
  if (!kProduct && width == 1) return sum_along(x, steps, reverse, values, result);
  if (width == 1) {
    return one_line(steps, reverse, values, result, [&](double h, std::int64_t at) HWY_ATTR {
      return h * static_cast<double>(x[at]);
    });
  }
#if HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(dd));
  for (std::int64_t q = 0; q < width; q += lanes) {
    const auto mine = hn::FirstN(d, static_cast<std::size_t>(width - q));
    auto h = hn::LoadU(dd, values + q);
    each_step(steps, width, reverse, [&](std::int64_t at, std::int64_t) HWY_ATTR {
      const auto v = hn::PromoteTo(dd, hn::LoadU(d, x + at + q));
      h = kProduct ? hn::Mul(h, v) : hn::Add(h, v);
      hn::BlendedStore(hn::DemoteTo(d, h), mine, d, result + at + q);
    });
    hn::StoreU(h, dd, values + q);
  }
#else
  each_step(steps, width, reverse, [&](std::int64_t at, std::int64_t) {
    for (std::int64_t q = 0; q < width; ++q) {
      const double v = static_cast<double>(x[at + q]);
      values[q] = kProduct ? values[q] * v : values[q] + v;
      result[at + q] = static_cast<float>(values[q]);
    }
  });
#endif
}

// h = h + x or h * x, modulo 2^32.
template <bool kProduct>
void fold_words(const Word* a, const Word* b, std::int64_t, std::int64_t steps, std::int64_t width,
                bool reverse, std::byte* carry, Word* out) {
  const hn::ScalableTag<Word> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Word* x = kProduct ? a : b;
  auto* values = reinterpret_cast<Word*>(carry);
  for (std::int64_t q = 0; q < width; q += lanes) {
    const auto mine = hn::FirstN(d, static_cast<std::size_t>(width - q));
    auto h = hn::LoadU(d, values + q);
    each_step(steps, width, reverse, [&](std::int64_t at, std::int64_t) HWY_ATTR {
      const auto v = hn::LoadU(d, x + at + q);
      h = kProduct ? hn::Mul(h, v) : hn::Add(h, v);
      hn::BlendedStore(h, mine, d, out + at + q);
    });
    hn::StoreU(h, d, values + q);
  }
}

// h = a * h + b
void linear(const Word* a, const Word* b, std::int64_t, std::int64_t steps, std::int64_t width,
            bool reverse, std::byte* carry, Word* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* as = reinterpret_cast<const float*>(a);
  const auto* bs = reinterpret_cast<const float*>(b);
  auto* values = reinterpret_cast<float*>(carry);
  auto* result = reinterpret_cast<float*>(out);
  if (width == 1) {
    return one_line(steps, reverse, values, result,
                    [&](float h, std::int64_t at) HWY_ATTR { return as[at] * h + bs[at]; });
  }
  for (std::int64_t q = 0; q < width; q += lanes) {
    const auto mine = hn::FirstN(d, static_cast<std::size_t>(width - q));
    auto h = hn::LoadU(d, values + q);
    each_step(steps, width, reverse, [&](std::int64_t at, std::int64_t) HWY_ATTR {
      h = hn::MulAdd(hn::LoadU(d, as + at + q), h, hn::LoadU(d, bs + at + q));
      hn::BlendedStore(h, mine, d, result + at + q);
    });
    hn::StoreU(h, d, values + q);
  }
}

// Index of the extreme value so far. Of equal values, and of NaNs, the last wins.
template <class T, bool kMax>
void arg_extreme(const Word*, const Word* b, std::int64_t first, std::int64_t steps,
                 std::int64_t width, bool reverse, std::byte* carry, Word* out) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<Word, decltype(d)> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* x = reinterpret_cast<const T*>(b);
  auto* values = reinterpret_cast<T*>(carry);
  Word* places = carry_indices(carry, width);
  if (width == 1) {
    T best = *values;
    return one_line(steps, reverse, places, out, [&](Word where, std::int64_t at) HWY_ATTR {
      const T v = x[at];
      // A comparison with a NaN in `best` is false, so only another NaN replaces it.
      const bool take = (kMax ? v >= best : v <= best) || v != v;
      if (!take) return where;
      best = *values = v;
      return static_cast<Word>(first + at);
    });
  }
  for (std::int64_t q = 0; q < width; q += lanes) {
    const auto mine = hn::FirstN(du, static_cast<std::size_t>(width - q));
    auto best = hn::LoadU(d, values + q);
    auto where = hn::LoadU(du, places + q);
    each_step(steps, width, reverse, [&](std::int64_t at, std::int64_t t) HWY_ATTR {
      const auto v = hn::LoadU(d, x + at + q);
      auto take = kMax ? hn::Lt(v, best) : hn::Lt(best, v);
      if constexpr (std::is_same_v<T, float>) {
        // A comparison with a NaN in `best` is false, so only another NaN replaces it.
        take = hn::Or(kMax ? hn::Ge(v, best) : hn::Le(v, best), hn::Not(hn::Eq(v, v)));
      } else {
        take = hn::Not(take);
      }
      best = hn::IfThenElse(take, v, best);
      const auto here = hn::Set(du, static_cast<Word>(first + t));
      where = hn::IfThenElse(hn::RebindMask(du, take), here, where);
      hn::BlendedStore(where, mine, du, out + at + q);
    });
    hn::StoreU(best, d, values + q);
    hn::StoreU(where, du, places + q);
  }
}

template <bool kMax>
ScanFn arg_kernel(DType dtype) {
  if (dtype == DType::kF32) return arg_extreme<float, kMax>;
  if (dtype == DType::kI32) return arg_extreme<std::int32_t, kMax>;
  return arg_extreme<std::uint32_t, kMax>;
}

ScanFn pick(ScanOp op, DType dtype) {
  switch (op) {
    case ScanOp::kSum: return dtype == DType::kF32 ? fold_floats<false> : fold_words<false>;
    case ScanOp::kProduct: return dtype == DType::kF32 ? fold_floats<true> : fold_words<true>;
    case ScanOp::kLinear: return linear;
    case ScanOp::kArgMax: return arg_kernel<true>(dtype);
    case ScanOp::kArgMin: return arg_kernel<false>(dtype);
  }
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensorgrad::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {

HWY_EXPORT(pick);

ScanFn scan_kernel(ScanOp op, DType dtype) { return HWY_DYNAMIC_DISPATCH(pick)(op, dtype); }

}  // namespace tensorgrad::cpu
#endif
