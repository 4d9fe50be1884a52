// SPDX-License-Identifier: MIT
// The CPU column of pointwise.def as vectorized loops, compiled once per instruction set. Each
// instruction set has a table of block functions. Only the look-up dispatches; the loops do not.
#include "ops/pointwise_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pointwise_simd.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include "kernel/simd_math-inl.h"
#include "kernel/simd_trig-inl.h"

#ifndef TENSORGRAD_OPS_BLOCK_TABLE
#define TENSORGRAD_OPS_BLOCK_TABLE
namespace tensorgrad::pointwise {
inline constexpr int kDTypes = 4;
// fn[row][type of the last operand][type of the result]
struct BlockTable {
  CpuBlockFn fn[kRows][kDTypes][kDTypes];
};
}  // namespace tensorgrad::pointwise
#endif

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::HWY_NAMESPACE {
namespace {

// The CPU column as functors named `exp_row` and so on. (A struct named `exp` would hide the
// function.)
namespace rows {
#define POINTWISE1(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    HWY_INLINE auto operator()(A a) const {      \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE2(name, takes, gives, cpu, ...) \
  struct name##_row {                            \
    template <class A>                           \
    HWY_INLINE auto operator()(A a, A b) const { \
      return cpu;                                \
    }                                            \
  };
#define POINTWISE3(name, takes, gives, cpu, ...)         \
  struct name##_row {                                    \
    template <class A>                                   \
    HWY_INLINE auto operator()(Mask a, A b, A c) const { \
      return cpu;                                        \
    }                                                    \
  };
#define POINTWISE4(name, takes, gives, cpu, ...)           \
  struct name##_row {                                      \
    template <class A>                                     \
    HWY_INLINE auto operator()(A a, A b, A c, A d) const { \
      return cpu;                                          \
    }                                                      \
  };
#define POINTWISE_TO(name, takes, cpu, ...)       \
  struct name##_row {                             \
    template <class A, class T>                   \
    HWY_INLINE auto operator()(A a, T to) const { \
      return cpu;                                 \
    }                                             \
  };
#include "ops/pointwise.def"
}  // namespace rows

// Loads a vector of an element type.
template <DType kType>
HWY_INLINE auto fetch(const void* from, std::size_t i) {
  if constexpr (kType == DType::kF32) {
    return load(static_cast<const float*>(from) + i);
  } else if constexpr (kType == DType::kI32) {
    return load(static_cast<const std::int32_t*>(from) + i);
  } else if constexpr (kType == DType::kU32) {
    return load(static_cast<const std::uint32_t*>(from) + i);
  } else {
    return load_mask(static_cast<const std::uint32_t*>(from) + i);
  }
}
template <DType kType>
using VecOf = decltype(fetch<kType>(nullptr, 0));

HWY_INLINE void put(F v, void* to, std::size_t i) { store(v, static_cast<float*>(to) + i); }
HWY_INLINE void put(I v, void* to, std::size_t i) { store(v, static_cast<std::int32_t*>(to) + i); }
HWY_INLINE void put(U v, void* to, std::size_t i) { store(v, static_cast<std::uint32_t*>(to) + i); }
HWY_INLINE void put(Mask v, void* to, std::size_t i) {
  store(v, static_cast<std::uint32_t*>(to) + i);
}

// kArity 0 denotes a cast.
template <class Row, int kArity, DType kFrom, DType kTo>
void block(const CpuOperands& operands, void* out, std::size_t n) {
  const Row row{};
  const CpuOperands in = operands;  // local copy: `out` cannot alias it
  const auto from = [&](int k, std::size_t i)
                        HWY_ATTR { return fetch<kFrom>(in.data[k], i & in.mask[k]); };
  for (std::size_t i = 0; i < n; i += hn::Lanes(Tag<float>())) {
    if constexpr (kArity == 0) {
      put(row(from(0, i), To<VecOf<kTo>>()), out, i);
    } else if constexpr (kArity == 1) {
      put(row(from(0, i)), out, i);
    } else if constexpr (kArity == 2) {
      put(row(from(0, i), from(1, i)), out, i);
    } else if constexpr (kArity == 3) {
      const Mask which = fetch<DType::kBool>(in.data[0], i & in.mask[0]);
      put(row(which, from(1, i), from(2, i)), out, i);
    } else {
      put(row(from(0, i), from(1, i), from(2, i), from(3, i)), out, i);
    }
  }
}

template <class Row, int kArity, pointwise::Takes kTakes, pointwise::Gives kGives, int kPair = 0>
constexpr void fill(CpuBlockFn (&fn)[pointwise::kDTypes][pointwise::kDTypes]) {
  constexpr auto kFrom = static_cast<DType>(kPair / pointwise::kDTypes);
  constexpr auto kTo = static_cast<DType>(kPair % pointwise::kDTypes);
  if constexpr (pointwise::maps(kTakes, kGives, kFrom, kTo)) {
    fn[kPair / pointwise::kDTypes][kPair % pointwise::kDTypes] = &block<Row, kArity, kFrom, kTo>;
  }
  if constexpr (kPair + 1 < pointwise::kDTypes * pointwise::kDTypes) {
    fill<Row, kArity, kTakes, kGives, kPair + 1>(fn);
  }
}

constexpr pointwise::BlockTable make_table() {
  using namespace pointwise;  // NOLINT(google-build-using-namespace): the words of the columns
  BlockTable table{};
#define POINTWISE1(name, takes, gives, ...) \
  fill<rows::name##_row, 1, takes, gives>(table.fn[kRow_##name]);
#define POINTWISE2(name, takes, gives, ...) \
  fill<rows::name##_row, 2, takes, gives>(table.fn[kRow_##name]);
#define POINTWISE3(name, takes, gives, ...) \
  fill<rows::name##_row, 3, takes, gives>(table.fn[kRow_##name]);
#define POINTWISE4(name, takes, gives, ...) \
  fill<rows::name##_row, 4, takes, gives>(table.fn[kRow_##name]);
#define POINTWISE_TO(name, takes, ...) \
  fill<rows::name##_row, 0, takes, Asked>(table.fn[kRow_##name]);
#include "ops/pointwise.def"
  return table;
}

constexpr pointwise::BlockTable kTable = make_table();

const pointwise::BlockTable* block_table() { return &kTable; }

}  // namespace
}  // namespace tensorgrad::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::pointwise {
HWY_EXPORT(block_table);

CpuBlockFn block(Row row, DType from, DType to) {
  const BlockTable* table = HWY_DYNAMIC_DISPATCH(block_table)();
  return table->fn[row][static_cast<int>(from)][static_cast<int>(to)];
}
}  // namespace tensorgrad::pointwise
#endif
