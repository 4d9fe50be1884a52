// SPDX-License-Identifier: MIT
// Names are those of ops/selective_scan.cpp. States are the outer loop: the steps of a tile for one
// state fit in first-level cache, and only the recurrence itself is a dependency chain.
#include "backend/cpu/selective_scan/selective_kernels.h"

#include "kernel/selective.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/selective_scan/selective_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernel/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {
namespace {

using Channels = Tag<float>;
using cpu::SelectiveTile;

constexpr std::int64_t kMaxSteps = SelectiveSizes::kChunk;

HWY_INLINE F take(const float* x) { return {hn::LoadU(Channels(), x)}; }
HWY_INLINE void give(F v, float* x) { hn::StoreU(v.v, Channels(), x); }
HWY_INLINE std::int64_t width() { return static_cast<std::int64_t>(hn::Lanes(Channels())); }

// Clamps x to [-127, 128] and preserves NaN. If operands are unordered, x86 returns the second and
// ARM the number.
HWY_INLINE F within_exponents(F x) {
  const F least = set(-127.0F), most = set(128.0F);
#if HWY_ARCH_X86
  return {hn::Min(most.v, hn::Max(least.v, x.v))};
#else
  return where(x < least, least, where(x > most, most, x));
#endif
}

// 2^x: 0 below 2^-126, and infinity from 2^128 on.
HWY_INLINE F decay(F x) {
  const F inside = within_exponents(x);
  const NearestInteger n = nearest_integer(inside);
  const F r = inside - n.number;
  const F p = polynomial(r, 1.0F, 0.693147203F, 0.240226479F, 0.0555033247F, 0.00961843736F,
                         0.00133988744F, 0.000153533619F);
  return p * power_of_two(n.integer);
}

// (e^z - 1) / z, and its derivative.
HWY_INLINE F hold_factor(F z) {
  const Mask small = abs(z) < set(static_cast<float>(SelectiveSizes::kSeriesBelow));
  const F near = polynomial(z, 1.0F, 0.5F, 1.0F / 6, 1.0F / 24, 1.0F / 120, 1.0F / 720);
  return where(small, near, expm1(z) / where(small, set(1.0F), z));
}
HWY_INLINE F hold_slope(F z) {
  const Mask small = abs(z) < set(static_cast<float>(SelectiveSizes::kSeriesBelow));
  const F near = polynomial(z, 0.5F, 1.0F / 3, 0.125F, 1.0F / 30, 1.0F / 144, 1.0F / 840);
  const F far = where(small, set(1.0F), z);
  return where(small, near, (far * exp(far) - expm1(far)) / (far * far));
}

template <bool kHold>
HWY_INLINE F weight(F delta, F rate) {
  if constexpr (kHold) return delta * hold_factor(delta * rate);
  return delta;
}

// Returns the state before the step at `at`, or the gradient that flows back into it; 0 if the step
// has a reset.
template <bool kResets>
HWY_INLINE F unless_reset(const SelectiveTile& t, std::int64_t at, F state) {
  if constexpr (kResets) return where(take(t.signs + at) < set(0.0F), set(0.0F), state);
  return state;
}

// Calls make(at, v) for each vector of a tile: its offset in the tile and in a row.
template <class Make>
HWY_INLINE void each_number(const SelectiveTile& t, const Make& make) {
  for (std::int64_t i = 0; i < t.steps; ++i) {
    for (std::int64_t v = 0; v < t.pitch; v += width()) make(i * t.pitch + v, v);
  }
}

// Finishes the sums over states: adds D u, then multiplies by silu(z).
void finish_forward(const SelectiveTile& t) {
  if (t.skip == nullptr && t.z == nullptr) return;
  each_number(t, [&](std::int64_t at, std::int64_t v) {
    F y = take(t.y + at);
    if (t.skip != nullptr) y = mul_add(take(t.skip + v), take(t.u + at), y);
    if (t.z != nullptr) {
      give(y, t.ungated_out + at);
      const F z = take(t.z + at);
      y = y * (z * sigmoid(z));
    }
    give(y, t.y + at);
  });
}

// Computes the gradients of o and z.
void pass_gate(const SelectiveTile& t) {
  if (t.z == nullptr) return;
  each_number(t, [&](std::int64_t at, std::int64_t) {
    const F z = take(t.z + at), s = sigmoid(z), y = z * s, dy = take(t.dy + at);
    give(dy * take(t.ungated + at) * (s + y * (set(1.0F) - s)), t.dz + at);
    give(dy * y, t.dungated + at);
  });
}

void finish_backward(const SelectiveTile& t, const float* dungated) {
  if (t.skip == nullptr) return;
  each_number(t, [&](std::int64_t at, std::int64_t v) {
    const F dy = take(dungated + at);
    give(mul_add(take(t.skip + v), dy, take(t.du + at)), t.du + at);
    give(mul_add(dy, take(t.u + at), take(t.dskip + v)), t.dskip + v);
  });
}

template <bool kHold, bool kResets>
void forward_tile(const SelectiveTile& t) {
  const F log2e = set(kLog2e);
  for (std::int64_t v = 0; v < t.pitch; v += width()) {
    float sums[kMaxSteps * 16];
    for (std::int64_t i = 0; i < t.steps; ++i) give(set(0.0F), sums + i * 16);
    for (std::int64_t n = 0; n < t.states; ++n) {
      const F rate = take(t.rates + n * t.pitch + v), base = rate * log2e;
      F h = take(t.carry + n * t.pitch + v);
      for (std::int64_t i = 0; i < t.steps; ++i) {
        const F delta = take(t.delta + i * t.pitch + v), u = take(t.u + i * t.pitch + v);
        const float* bc = t.bc + i * 2 * t.states + n;
        const F in = weight<kHold>(delta, rate) * u * set(bc[0]);
        h = mul_add(decay(delta * base), unless_reset<kResets>(t, i * t.pitch + v, h), in);
        give(mul_add(h, set(bc[t.states]), take(sums + i * 16)), sums + i * 16);
      }
      give(h, t.carry + n * t.pitch + v);
    }
    for (std::int64_t i = 0; i < t.steps; ++i) give(take(sums + i * 16), t.y + i * t.pitch + v);
  }
  finish_forward(t);
}

template <bool kResets>
void adjoint_tile(const SelectiveTile& t) {
  const F log2e = set(kLog2e);
  for (std::int64_t v = 0; v < t.pitch; v += width()) {
    for (std::int64_t n = 0; n < t.states; ++n) {
      const F base = take(t.rates + n * t.pitch + v) * log2e;
      F e = take(t.carry + n * t.pitch + v);
      for (std::int64_t i = t.steps; i-- > 0;) {
        const F g = mul_add(set(t.bc[(i * 2 + 1) * t.states + n]), take(t.dy + i * t.pitch + v), e);
        e = decay(take(t.delta + i * t.pitch + v) * base) * g;
        e = unless_reset<kResets>(t, i * t.pitch + v, e);
      }
      give(e, t.carry + n * t.pitch + v);
    }
  }
}

// The backward pass of one state and one vector of channels. Recomputes the states forwards and
// keeps them for the backward loop.
template <bool kHold, bool kResets>
struct Backwards {
  const SelectiveTile& t;
  const float* dungated;
  float* du;      // sums over states of g B (Euler) or g w B (hold); [steps] vectors
  float* ddelta;  // of A e h[t-1], with the hold plus g B u a
  float* db;      // sums over vectors of channels; [steps] vectors
  float* dc;

  HWY_INLINE void run(std::int64_t n, std::int64_t v) const {
    float as[kMaxSteps * 16], held[kMaxSteps * 16];
    const std::int64_t pitch = t.pitch;
    const F rate = take(t.rates + n * pitch + v), base = rate * set(kLog2e);
    F h = take(t.before + n * pitch + v);
    for (std::int64_t i = 0; i < t.steps; ++i) {
      const std::int64_t at = i * pitch + v;
      const F delta = take(t.delta + at), u = take(t.u + at);
      const F a = decay(delta * base);
      h = unless_reset<kResets>(t, at, h);
      give(a, as + i * 16);
      give(h, held + i * 16);
      h = mul_add(a, h, weight<kHold>(delta, rate) * u * set(t.bc[i * 2 * t.states + n]));
      give(mul_add(take(dungated + at), h, take(dc + i * 16)), dc + i * 16);
    }
    F e = take(t.carry + n * pitch + v), drate = take(t.drates + n * pitch + v);
    for (std::int64_t i = t.steps; i-- > 0;) {
      const std::int64_t at = i * pitch + v;
      const float* bc = t.bc + i * 2 * t.states + n;
      const F delta = take(t.delta + at), u = take(t.u + at), in = set(bc[0]);
      const F a = take(as + i * 16);
      const F g = mul_add(set(bc[t.states]), take(dungated + at), e);
      e = a * g;
      const F through = e * take(held + i * 16);
      e = unless_reset<kResets>(t, at, e);
      drate = mul_add(delta, through, drate);
      const F gw = g * weight<kHold>(delta, rate);
      give(mul_add(gw, u, take(db + i * 16)), db + i * 16);
      F slope = rate * through;
      if constexpr (kHold) {
        const F gbu = g * in * u;
        slope = mul_add(gbu, a, slope);
        drate = mul_add(gbu * delta * delta, hold_slope(delta * rate), drate);
      }
      give(mul_add(kHold ? gw : g, in, take(du + at)), du + at);
      give(take(ddelta + at) + slope, ddelta + at);
    }
    give(e, t.carry + n * pitch + v);
    give(drate, t.drates + n * pitch + v);
  }
};

template <bool kHold, bool kResets>
void backward_tile(const SelectiveTile& t) {
  const Channels d;
  float* db = t.scratch;
  float* dc = db + kMaxSteps * 16;
  for (std::int64_t i = 0; i < t.steps * t.pitch; i += width()) {
    give(set(0.0F), t.du + i);
    give(set(0.0F), t.ddelta + i);
  }
  pass_gate(t);
  const float* dungated = t.z != nullptr ? t.dungated : t.dy;
  const Backwards<kHold, kResets> backwards{t, dungated, t.du, t.ddelta, db, dc};
  for (std::int64_t n = 0; n < t.states; ++n) {
    for (std::int64_t i = 0; i < t.steps; ++i) {
      give(set(0.0F), db + i * 16);
      give(set(0.0F), dc + i * 16);
    }
    for (std::int64_t v = 0; v < t.pitch; v += width()) backwards.run(n, v);
    for (std::int64_t i = 0; i < t.steps; ++i) {
      t.dbc[i * 2 * t.states + n] = hn::GetLane(hn::SumOfLanes(d, take(db + i * 16).v));
      t.dbc[(i * 2 + 1) * t.states + n] = hn::GetLane(hn::SumOfLanes(d, take(dc + i * 16).v));
    }
  }
  if constexpr (!kHold) {
    for (std::int64_t i = 0; i < t.steps * t.pitch; i += width()) {
      const F gb = take(t.du + i);
      give(mul_add(gb, take(t.u + i), take(t.ddelta + i)), t.ddelta + i);
      give(gb * take(t.delta + i), t.du + i);
    }
  }
  finish_backward(t, dungated);
}

void dispatch_forward(const SelectiveTile& t) {
  if (t.signs != nullptr)
    return t.zero_order_hold ? forward_tile<true, true>(t) : forward_tile<false, true>(t);
  t.zero_order_hold ? forward_tile<true, false>(t) : forward_tile<false, false>(t);
}
void dispatch_adjoint(const SelectiveTile& t) {
  t.signs != nullptr ? adjoint_tile<true>(t) : adjoint_tile<false>(t);
}
void dispatch_backward(const SelectiveTile& t) {
  if (t.signs != nullptr)
    return t.zero_order_hold ? backward_tile<true, true>(t) : backward_tile<false, true>(t);
  t.zero_order_hold ? backward_tile<true, false>(t) : backward_tile<false, false>(t);
}

cpu::SelectiveKernels make_selective_kernels() {
  return {dispatch_forward, dispatch_adjoint, dispatch_backward};
}

}  // namespace
}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {
namespace {

HWY_EXPORT(make_selective_kernels);

}  // namespace

const SelectiveKernels& selective_kernels() {
  static const SelectiveKernels chosen = HWY_DYNAMIC_DISPATCH(make_selective_kernels)();
  return chosen;
}

std::int64_t selective_scratch() { return 2 * SelectiveSizes::kChunk * 16; }

}  // namespace tensorgrad::cpu
#endif
