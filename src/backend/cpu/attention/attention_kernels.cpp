// SPDX-License-Identifier: MIT
#include "backend/cpu/attention/attention_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/attention_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernel/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {
namespace {

using Floats = Tag<float>;

HWY_INLINE F get(const float* x) { return {hn::LoadU(Floats(), x)}; }
HWY_INLINE void put(F v, float* x) { hn::StoreU(v.v, Floats(), x); }
HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(Floats())); }

float scores(float* s, std::int64_t n, float scale, const float* added,
             const std::uint32_t* allowed, float top) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const F factor = set(scale), nothing = set(-kInfinity);
  F most = set(top);
  for (std::int64_t i = 0; i < n; i += lanes()) {
    F x = get(s + i) * factor;
    if (added != nullptr) x = x + get(added + i);
    if (allowed != nullptr) {
      const auto refused = hn::Eq(hn::LoadU(du, allowed + i), hn::Zero(du));
      x = {hn::IfThenElse(hn::RebindMask(d, refused), nothing.v, x.v)};
    }
    if (n - i < lanes()) {
      x = {hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(n - i)), x.v, nothing.v)};
    }
    most = {hn::Max(most.v, x.v)};
    put(x, s + i);
  }
  return hn::GetLane(hn::MaxOfLanes(d, most.v));
}

float weights(float* s, std::int64_t n, float shift) {
  const Floats d;
  const F by = set(shift);
  F sum = set(0.0F);
  for (std::int64_t i = 0; i < n; i += lanes()) {
    const F p = exp(get(s + i) - by);
    sum = sum + p;
    put(p, s + i);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum.v));
}

void gradient(const float* p, float* dp, const float* keep, std::int64_t n, float delta) {
  const F less = set(delta);
  for (std::int64_t i = 0; i < n; i += lanes()) {
    F x = get(dp + i);
    if (keep != nullptr) x = x * get(keep + i);
    put(get(p + i) * (x - less), dp + i);
  }
}

void multiply(float* x, const float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes()) put(get(x + i) * get(y + i), x + i);
}

void scale(float* x, float factor, std::int64_t n) {
  const F by = set(factor);
  for (std::int64_t i = 0; i < n; i += lanes()) put(get(x + i) * by, x + i);
}

void add(const float* x, float factor, std::int64_t n, float* sum) {
  const F by = set(factor);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) put(get(sum + i) + get(x + i) * by, sum + i);
  for (; i < n; ++i) sum[i] += x[i] * factor;
}

cpu::AttentionKernels make_attention_kernels() {
  return {scores, weights, gradient, multiply, scale, add};
}

}  // namespace
}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {
namespace {

HWY_EXPORT(make_attention_kernels);

}  // namespace

const AttentionKernels& attention_kernels() {
  static const AttentionKernels chosen = HWY_DYNAMIC_DISPATCH(make_attention_kernels)();
  return chosen;
}

}  // namespace tensorgrad::cpu
#endif
