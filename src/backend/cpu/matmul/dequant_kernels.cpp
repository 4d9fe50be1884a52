// SPDX-License-Identifier: MIT
#include "backend/cpu/matmul/dequant_kernels.h"

#include <bit>

#include "base/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul/dequant_kernels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));

// Returns element i at `data`.
float packed_element(PackedKind kind, const std::byte* data, std::int64_t i) {
  const auto byte = [&](std::int64_t at) { return std::to_integer<std::uint32_t>(data[at]); };
  switch (kind) {
    case PackedKind::kHalf:
      return from_half(static_cast<std::uint16_t>(byte(2 * i) | byte(2 * i + 1) << 8));
    case PackedKind::kBrain: return std::bit_cast<float>(byte(2 * i) << 16 | byte(2 * i + 1) << 24);
    case PackedKind::kInt8: return static_cast<float>(static_cast<std::int8_t>(byte(i)));
    case PackedKind::kInt4: break;
  }
  const std::uint32_t top = i % 2 == 0 ? byte(i / 2) << 28 : byte(i / 2) << 24;
  return static_cast<float>(static_cast<std::int32_t>(top) >> 28);
}

#if HWY_TARGET != HWY_SCALAR
using Integers = hn::Rebind<std::int32_t, D>;

// Loads kLanes elements from element i on as f32. For kInt4, `data` are the bytes that
// spread_nibbles() wrote.
template <PackedKind kKind>
HWY_INLINE V widen(const std::byte* data, std::int64_t i) {
  const D d;
  if constexpr (kKind == PackedKind::kHalf) {
    const hn::Rebind<hwy::float16_t, D> halves;
    return hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(data) + i));
  } else if constexpr (kKind == PackedKind::kBrain) {
    const hn::Rebind<std::uint16_t, D> brains;
    const hn::Rebind<std::uint32_t, D> words;
    const auto* from = reinterpret_cast<const std::uint16_t*>(data) + i;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(brains, from))));
  } else {
    const hn::Rebind<std::int8_t, D> bytes;
    const auto* from = reinterpret_cast<const std::int8_t*>(data) + i;
    return hn::ConvertTo(d, hn::PromoteTo(Integers(), hn::LoadU(bytes, from)));
  }
}

// Expands a group of signed 4-bit fields to bytes.
HWY_INLINE void spread_nibbles(const std::byte* data, std::byte* HWY_RESTRICT out) {
  const hn::FixedTag<std::int8_t, 16> bytes;
  const hn::FixedTag<std::int16_t, 8> pairs;
  auto* const to = reinterpret_cast<std::int8_t*>(out);
  const auto both = hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(data));
  // There are no byte shifts, so 16-bit lanes are shifted and masked.
  const auto low = hn::And(both, hn::Set(bytes, 0x0f));
  const auto high = hn::And(hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(pairs, both))),
                            hn::Set(bytes, 0x0f));
  const auto sign_extend = [&](auto field) HWY_ATTR {  // sign extension of a field in [0, 15]
    return hn::Sub(hn::Xor(field, hn::Set(bytes, 8)), hn::Set(bytes, 8));
  };
  const auto even = sign_extend(low), odd = sign_extend(high);
  hn::Store(hn::InterleaveLower(bytes, even, odd), bytes, to);
  hn::Store(hn::InterleaveUpper(bytes, even, odd), bytes, to + 16);
}

// Unpacks whole vectors. Returns the number of elements.
template <PackedKind kKind>
HWY_INLINE std::int64_t unpack_vectors(const std::byte* data, std::int64_t first,
                                       std::int64_t count, const float* scales, float* out) {
  const D d;
  std::int64_t i = 0;
  if constexpr (kKind == PackedKind::kInt4) {
    if (first % 2 != 0) return 0;
    alignas(16) std::byte each[kPackedGroup];
    for (; i + kPackedGroup <= count; i += kPackedGroup) {
      spread_nibbles(data + (first + i) / 2, each);
      const V scale = hn::Set(d, scales != nullptr ? scales[i / kPackedGroup] : 1.0F);
      for (int j = 0; j < kPackedGroup; j += kLanes)
        hn::StoreU(hn::Mul(widen<kKind>(each, j), scale), d, out + i + j);
    }
  } else if (scales == nullptr) {
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(widen<kKind>(data, first + i), d, out + i);
  }
  return i;
}

// Four words of eight 4-bit fields form a group. dots() multiplies kLanes fields at a time, from
// the top of the words to the bottom: those in lanes 4 q to 4 q + 3 are 4 q bits lower than those
// in the first four.
constexpr int kWordsInGroup = 4, kFieldsInWord = 8;
// Fields stay at the top of their words, so they count 2^28 times.
constexpr float kFieldScale = 0x1p-28F;

// Loads a group such that the first kLanes fields are at the top of the lanes.
HWY_INLINE hn::Vec<Integers> load_fields(const std::byte* data) {
  const Integers integers;
  const auto words = hn::LoadDup128(integers, reinterpret_cast<const std::int32_t*>(data));
  if constexpr (kLanes == kWordsInGroup) {
    return words;
  } else {
    const auto block = hn::ShiftRight<2>(hn::Iota(integers, 0));
    return hn::Shl(words, hn::ShiftLeft<2>(block));
  }
}

// Brings groups of v into the order of the fields that load_fields() returns.
HWY_INLINE void arrange_groups(std::int64_t depth, float* HWY_RESTRICT v) {
  for (std::int64_t k = 0; k + kPackedGroup <= depth; k += kPackedGroup) {
    float out[kPackedGroup];
    for (int i = 0; i < kPackedGroup; ++i) {
      const int word = i % kWordsInGroup, below = i / kWordsInGroup;
      out[i] = v[k + kFieldsInWord * word + kFieldsInWord - 1 - below] * kFieldScale;
    }
    for (int i = 0; i < kPackedGroup; ++i) v[k + i] = out[i];
  }
}

// Prefetches element k of the lines that follow, at the first element of a cache line. Lines are
// short, so the processor's own prefetching begins too late.
template <PackedKind kKind, int kLines>
HWY_INLINE void prefetch_following(const PackedLine* lines, std::int64_t k) {
  constexpr std::int64_t kCacheLine = 64;
  constexpr std::int64_t kElements = kKind == PackedKind::kInt4   ? 2 * kCacheLine
                                     : kKind == PackedKind::kInt8 ? kCacheLine
                                                                  : kCacheLine / 2;
  if constexpr (kLines > 1) {
    if (k % kElements != 0) return;
    const std::ptrdiff_t following = kLines * (lines[1].data - lines[0].data);
    for (int r = 0; r < kLines; ++r)
      hwy::Prefetch(lines[r].data + following + k * kCacheLine / kElements);
  }
}

// Computes the sums over whole groups and returns their length. Each group is processed for all
// lines, so that v is read once.
template <PackedKind kKind, int kLines>
HWY_INLINE std::int64_t dot_groups(std::int64_t depth, const float* HWY_RESTRICT v,
                                   const PackedLine* lines, float* HWY_RESTRICT sums) {
  const D d;
  const Integers integers;
  V sum[kLines];
  for (int r = 0; r < kLines; ++r) sum[r] = hn::Zero(d);
  std::int64_t k = 0;
  for (; k + kPackedGroup <= depth; k += kPackedGroup) {
    prefetch_following<kKind, kLines>(lines, k);
    V group[kLines];
    hn::Vec<Integers> fields[kLines];
    for (int r = 0; r < kLines; ++r) {
      group[r] = hn::Zero(d);
      if constexpr (kKind == PackedKind::kInt4) fields[r] = load_fields(lines[r].data + k / 2);
    }
    for (int j = 0; j < kPackedGroup; j += kLanes) {
      const V right = hn::LoadU(d, v + k + j);
      for (int r = 0; r < kLines; ++r) {
        if constexpr (kKind == PackedKind::kInt4) {
          const auto top =
              hn::And(fields[r], hn::Set(integers, static_cast<std::int32_t>(0xf0000000U)));
          group[r] = hn::MulAdd(hn::ConvertTo(d, top), right, group[r]);
          fields[r] = hn::ShiftLeft<kLanes>(fields[r]);  // kLanes / kWordsInGroup fields
        } else {
          group[r] = hn::MulAdd(widen<kKind>(lines[r].data, k + j), right, group[r]);
        }
      }
    }
    for (int r = 0; r < kLines; ++r) {
      const float* scales = lines[r].scales;
      const V scale = hn::Set(d, scales != nullptr ? scales[k / kPackedGroup] : 1.0F);
      sum[r] = hn::MulAdd(group[r], scale, sum[r]);
    }
  }
  for (int r = 0; r < kLines; ++r) sums[r] = hn::GetLane(hn::SumOfLanes(d, sum[r]));
  return k;
}
#endif

template <PackedKind kKind>
void unpack_kind(const std::byte* data, std::int64_t first, std::int64_t count, const float* scales,
                 float* out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  i = unpack_vectors<kKind>(data, first, count, scales, out);
#endif
  for (; i < count; ++i) {
    const float value = packed_element(kKind, data, first + i);
    out[i] = scales != nullptr ? value * scales[i / kPackedGroup] : value;
  }
}

template <PackedKind kKind, int kLines>
void dot_lines(std::int64_t depth, const float* v, const PackedLine* lines, float* sums) {
  std::int64_t whole = 0;
  for (int r = 0; r < kLines; ++r) sums[r] = 0;
#if HWY_TARGET != HWY_SCALAR
  whole = dot_groups<kKind, kLines>(depth, v, lines, sums);
#endif
  for (int r = 0; r < kLines; ++r) {
    for (std::int64_t k = whole; k < depth; ++k) {
      const float scale = lines[r].scales != nullptr ? lines[r].scales[k / kPackedGroup] : 1.0F;
      sums[r] += packed_element(kKind, lines[r].data, k) * scale * v[k];
    }
  }
}

template <PackedKind kKind>
void dots_kind(std::int64_t depth, const float* v, const PackedLine* lines, int count,
               float* sums) {
  if (count == kMaxPackedLines) {
    return dot_lines<kKind, kMaxPackedLines>(depth, v, lines, sums);
  }
  for (int r = 0; r < count; ++r) dot_lines<kKind, 1>(depth, v, lines + r, sums + r);
}

// Calls f with the kind as a template argument.
template <class F>
void with_kind(PackedKind kind, const F& f) {
  switch (kind) {
    case PackedKind::kHalf: return f.template operator()<PackedKind::kHalf>();
    case PackedKind::kBrain: return f.template operator()<PackedKind::kBrain>();
    case PackedKind::kInt8: return f.template operator()<PackedKind::kInt8>();
    case PackedKind::kInt4: return f.template operator()<PackedKind::kInt4>();
  }
}

void unpack(PackedKind kind, const std::byte* data, std::int64_t first, std::int64_t count,
            const float* scales, float* out) {
  with_kind(kind, [&]<PackedKind kKind>() { unpack_kind<kKind>(data, first, count, scales, out); });
}

void dots(PackedKind kind, std::int64_t depth, const float* v, const PackedLine* lines, int count,
          float* sums) {
  with_kind(kind, [&]<PackedKind kKind>() { dots_kind<kKind>(depth, v, lines, count, sums); });
}

void arrange([[maybe_unused]] PackedKind kind, [[maybe_unused]] std::int64_t depth,
             [[maybe_unused]] float* v) {
#if HWY_TARGET != HWY_SCALAR
  if (kind == PackedKind::kInt4) arrange_groups(depth, v);
#endif
}

DequantKernels make_kernels() { return {unpack, arrange, dots}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensorgrad::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {
namespace {

HWY_EXPORT(make_kernels);

}  // namespace

const DequantKernels& dequant_kernels() {
  static const DequantKernels chosen = HWY_DYNAMIC_DISPATCH(make_kernels)();
  return chosen;
}

}  // namespace tensorgrad::cpu
#endif
