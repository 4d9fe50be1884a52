// SPDX-License-Identifier: MIT
// Micro-kernels. The accumulators of a tile fill the vector registers: 6 x 2 vectors of 16
// registers, 14 x 2 of 32. Each step loads a row of b, broadcasts mr elements of a, and multiplies.
#include "backend/cpu/matmul/gemm.h"

#include <algorithm>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#if defined(__clang__)
#define TG_UNROLL _Pragma("unroll")
#else
#define TG_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace tensorgrad::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3 && defined(__x86_64__)
constexpr int kRows = 14;
#elif defined(__aarch64__)
constexpr int kRows = 12;
#elif HWY_TARGET == HWY_WASM
constexpr int kRows = 4;
#else
constexpr int kRows = 6;
#endif

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kColumns = 2 * kLanes;
static_assert(kRows <= kMaxTileRows && kColumns <= kMaxTileColumns);

template <int R, int N, bool kPacked>
void tile(std::int64_t depth, const float* HWY_RESTRICT a, std::int64_t a_row, std::int64_t a_k,
          const float* HWY_RESTRICT b, std::int64_t b_k, float* HWY_RESTRICT c, std::int64_t ldc,
          bool add) {
  const D d;
  V sum[R][N];
  TG_UNROLL for (int i = 0; i < R; ++i) {
    TG_UNROLL for (int j = 0; j < N; ++j) sum[i][j] = hn::Zero(d);
  }
  const float* row[R];
  TG_UNROLL for (int i = 0; i < R; ++i) row[i] = kPacked ? a + i : a + i * a_row;
  const auto step = [&](std::int64_t at) HWY_ATTR {
    V right[N];
    TG_UNROLL for (int j = 0; j < N; ++j) right[j] = hn::LoadU(d, b + j * kLanes);
    TG_UNROLL for (int i = 0; i < R; ++i) {
      const V left = hn::Set(d, row[i][at]);
      TG_UNROLL for (int j = 0; j < N; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
    b += b_k;
  };
  // Called in one place only, so that it is inlined: otherwise the sums would be in memory.
  for (std::int64_t k = 0, at = 0; k < depth; ++k, at += kPacked ? kRows : a_k) step(at);
  TG_UNROLL for (int i = 0; i < R; ++i) {
    TG_UNROLL for (int j = 0; j < N; ++j) {
      float* out = c + i * ldc + j * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, out), sum[i][j]) : sum[i][j], d, out);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes four columns of four rows: out[k * out_k + j] = bj[k].
HWY_INLINE void transpose_4x4(const float* b0, const float* b1, const float* b2, const float* b3,
                              float* HWY_RESTRICT out, std::int64_t out_k) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, b0), r1 = hn::LoadU(d, b1);
  const auto r2 = hn::LoadU(d, b2), r3 = hn::LoadU(d, b3);
  const auto t0 = hn::InterleaveLower(d, r0, r1), t1 = hn::InterleaveLower(d, r2, r3);
  const auto t2 = hn::InterleaveUpper(d, r0, r1), t3 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, t1, t0), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, t1, t0), d, out + out_k);
  hn::StoreU(hn::ConcatLowerLower(d, t3, t2), d, out + 2 * out_k);
  hn::StoreU(hn::ConcatUpperUpper(d, t3, t2), d, out + 3 * out_k);
}
HWY_INLINE void transpose_4x4(const float* b, std::int64_t cs, float* HWY_RESTRICT out,
                              std::int64_t out_k) {
  transpose_4x4(b, b + cs, b + 2 * cs, b + 3 * cs, out, out_k);
}
#endif

void pack_b(const float* HWY_RESTRICT b, std::int64_t rs, std::int64_t cs, std::int64_t depth,
            std::int64_t columns, float* HWY_RESTRICT out) {
  const D d;
  std::int64_t done = 0;  // columns
  if (cs == 1) {
    for (; done + kLanes <= columns; done += kLanes) {
      for (std::int64_t k = 0; k < depth; ++k) {
        hn::StoreU(hn::LoadU(d, b + k * rs + done), d, out + k * kColumns + done);
      }
    }
  }
#if HWY_TARGET != HWY_SCALAR
  if (rs == 1) {
    const std::int64_t whole = depth / 4 * 4;
    for (; done + 4 <= columns; done += 4) {
      const float* from = b + done * cs;
      for (std::int64_t k = 0; k < whole; k += 4) {
        transpose_4x4(from + k, cs, out + k * kColumns + done, kColumns);
      }
      for (std::int64_t k = whole; k < depth; ++k) {
        for (int j = 0; j < 4; ++j) out[k * kColumns + done + j] = from[k + j * cs];
      }
    }
  }
#endif
  for (std::int64_t k = 0; k < depth && done < columns; ++k) {
    for (std::int64_t j = done; j < columns; ++j) out[k * kColumns + j] = b[k * rs + j * cs];
  }
}

void pack_a(const float* HWY_RESTRICT a, std::int64_t rs, std::int64_t cs, std::int64_t depth,
            std::int64_t rows, float* HWY_RESTRICT out) {
  const D d;
  std::int64_t k = 0;
  if (rs == 1 && rows == kRows) {
    // Stores whole vectors. The next step overwrites excess lanes; the last step is exact.
    constexpr int kVectors = (kRows + kLanes - 1) / kLanes;
    for (; k + 1 < depth; ++k) {
      TG_UNROLL for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::LoadU(d, a + k * cs + v * kLanes), d, out + k * kRows + v * kLanes);
      }
    }
  }
#if HWY_TARGET != HWY_SCALAR
  if (cs == 1 && rows == kRows) {
    for (; k + 4 <= depth; k += 4) {
      int i = 0;
      for (; i + 4 <= kRows; i += 4) transpose_4x4(a + k + i * rs, rs, out + k * kRows + i, kRows);
      for (; i < kRows; ++i) {
        for (int s = 0; s < 4; ++s) out[(k + s) * kRows + i] = a[i * rs + k + s];
      }
    }
  }
#endif
  for (; k < depth; ++k) {
    for (std::int64_t i = 0; i < rows; ++i) out[k * kRows + i] = a[i * rs + k * cs];
  }
}

// A run of contiguous lanes, at most one vector.
struct Piece {
  std::int64_t from, lane, count;
};

#if HWY_MEM_OPS_MIGHT_FAULT
// Copies `count` <= kVector words with two vectors that may overlap, of the largest size that fits.
template <int kVector>
HWY_INLINE void copy_few(const float* HWY_RESTRICT from, std::int64_t count,
                         float* HWY_RESTRICT to) {
  if constexpr (kVector > 1) {
    if (count < kVector) return copy_few<kVector / 2>(from, count, to);
  }
  const hn::FixedTag<float, kVector> d;
  const auto first = hn::LoadU(d, from), last = hn::LoadU(d, from + count - kVector);
  hn::StoreU(first, d, to);
  hn::StoreU(last, d, to + count - kVector);
}
#endif

// Packs lanes that are contiguous in memory, row by row of the panel.
HWY_INLINE void pack_pieces(const float* HWY_RESTRICT data, const std::int32_t* HWY_RESTRICT along,
                            std::int64_t depth, const Piece* pieces, int count, std::int64_t width,
                            float* HWY_RESTRICT out) {
#if HWY_MEM_OPS_MIGHT_FAULT
  for (; depth > 0; --depth, ++along, out += width) {
    for (int p = 0; p < count; ++p) {
      copy_few<kLanes>(data + *along + pieces[p].from, pieces[p].count, out + pieces[p].lane);
    }
  }
#else
  // Excess lanes of a store are overwritten by later stores, except in the last rows.
  const D d;
  using M = hn::Mask<D>;
  M masks[2 * kMaxTileColumns];
  for (int p = 0; p < count; ++p) {
    masks[p] = hn::FirstN(d, static_cast<std::size_t>(pieces[p].count));
  }
  for (; depth > 2; --depth, ++along, out += width) {
    for (int p = 0; p < count; ++p) {
      hn::StoreU(hn::MaskedLoad(masks[p], d, data + *along + pieces[p].from), d,
                 out + pieces[p].lane);
    }
  }
  for (; depth > 0; --depth, ++along, out += width) {
    for (int p = 0; p < count; ++p) {
      for (std::int64_t i = 0; i < pieces[p].count; ++i) {
        out[pieces[p].lane + i] = data[*along + pieces[p].from + i];
      }
    }
  }
#endif
}

// Packs steps of k that are contiguous in memory: transposes four lanes at a time.
HWY_INLINE void pack_turned(const float* HWY_RESTRICT data, const LineOffsets& along,
                            std::int64_t depth, const std::int32_t* HWY_RESTRICT across,
                            std::int64_t lanes, std::int64_t width, float* HWY_RESTRICT out) {
  for (std::int64_t k = 0; k < depth;) {
    const float* from = data + along.at[static_cast<std::size_t>(k)];
    const std::int64_t run =
        std::min<std::int64_t>(along.run_end[static_cast<std::size_t>(k)], depth) - k;
    std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; i + 4 <= lanes; i += 4) {
      const float *b0 = from + across[i], *b1 = from + across[i + 1];
      const float *b2 = from + across[i + 2], *b3 = from + across[i + 3];
      float* to = out + k * width + i;
      std::int64_t s = 0;
      for (; s + 4 <= run; s += 4) {
        transpose_4x4(b0 + s, b1 + s, b2 + s, b3 + s, to + s * width, width);
      }
      for (; s < run; ++s) {
        to[s * width] = b0[s];
        to[s * width + 1] = b1[s];
        to[s * width + 2] = b2[s];
        to[s * width + 3] = b3[s];
      }
    }
#endif
    for (; i < lanes; ++i) {
      for (std::int64_t s = 0; s < run; ++s) out[(k + s) * width + i] = from[across[i] + s];
    }
    k += run;
  }
}

void pack_windows(const float* data, const LineOffsets& along, std::int64_t depth,
                  const LineOffsets& across, std::int64_t first, std::int64_t lanes,
                  std::int64_t width, float* out) {
  Piece pieces[2 * kMaxTileColumns];
  int count = 0;
  for (std::int64_t i = 0; i < lanes;) {
    const auto at = static_cast<std::size_t>(first + i);
    const std::int64_t run =
        std::min({std::int64_t{across.run_end[at]} - first - i, lanes - i, std::int64_t{kLanes}});
    pieces[count++] = {across.at[at], i, run};
    i += run;
  }
  // A vector store can start at any lane, so it reaches at most two rows further.
  const bool room = lanes + kLanes <= 3 * width;
  if (count * 4 <= lanes && room) {
    pack_pieces(data, along.at.data(), depth, pieces, count, width, out);
  } else {
    pack_turned(data, along, depth, across.at.data() + first, lanes, width, out);
  }
}

void row_times_rows(std::int64_t depth, std::int64_t n, const float* HWY_RESTRICT a,
                    const float* HWY_RESTRICT b, std::int64_t b_k, float* HWY_RESTRICT c) {
  const D d;
  std::memset(c, 0, static_cast<std::size_t>(n) * sizeof(float));
  std::int64_t k = 0;
  for (; k + 4 <= depth; k += 4, b += 4 * b_k) {
    const V a0 = hn::Set(d, a[k]), a1 = hn::Set(d, a[k + 1]);
    const V a2 = hn::Set(d, a[k + 2]), a3 = hn::Set(d, a[k + 3]);
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
      V sum = hn::MulAdd(a0, hn::LoadU(d, b + j), hn::LoadU(d, c + j));
      sum = hn::MulAdd(a1, hn::LoadU(d, b + b_k + j), sum);
      sum = hn::MulAdd(a2, hn::LoadU(d, b + 2 * b_k + j), sum);
      hn::StoreU(hn::MulAdd(a3, hn::LoadU(d, b + 3 * b_k + j), sum), d, c + j);
    }
    for (; j < n; ++j) {
      c[j] += a[k] * b[j] + a[k + 1] * b[b_k + j];
      c[j] += a[k + 2] * b[2 * b_k + j] + a[k + 3] * b[3 * b_k + j];
    }
  }
  for (; k < depth; ++k, b += b_k) {
    for (std::int64_t j = 0; j < n; ++j) c[j] += a[k] * b[j];
  }
}

// Computes R dot products at a time.
template <int R>
HWY_INLINE void dots(std::int64_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                     std::int64_t b_j, float* HWY_RESTRICT c) {
  const D d;
  V sum[R][2];
  TG_UNROLL for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  std::int64_t k = 0;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
    const V a0 = hn::LoadU(d, a + k), a1 = hn::LoadU(d, a + k + kLanes);
    TG_UNROLL for (int r = 0; r < R; ++r) {
      sum[r][0] = hn::MulAdd(a0, hn::LoadU(d, b + r * b_j + k), sum[r][0]);
      sum[r][1] = hn::MulAdd(a1, hn::LoadU(d, b + r * b_j + k + kLanes), sum[r][1]);
    }
  }
  TG_UNROLL for (int r = 0; r < R; ++r) {
    float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[r][0], sum[r][1])));
    for (std::int64_t i = k; i < depth; ++i) total += a[i] * b[r * b_j + i];
    c[r] = total;
  }
}

void row_times_columns(std::int64_t depth, std::int64_t n, const float* a, const float* b,
                       std::int64_t b_j, float* c) {
  std::int64_t j = 0;
  for (; j + 4 <= n; j += 4) dots<4>(depth, a, b + j * b_j, b_j, c + j);
  for (; j < n; ++j) dots<1>(depth, a, b + j * b_j, b_j, c + j);
}

// Computes R x C dot products. Each has one vector of sums, so twelve of them hide the latency of
// additions and leave registers for the operands.
constexpr int kDotRows = 4, kDotColumns = 3;
template <int R, int C>
void dot_tile(std::int64_t depth, const float* HWY_RESTRICT a, std::int64_t a_row,
              const float* HWY_RESTRICT b, std::int64_t b_j, float* HWY_RESTRICT c,
              std::int64_t ldc) {
  const D d;
  V sum[R][C];
  TG_UNROLL for (int i = 0; i < R; ++i) {
    TG_UNROLL for (int j = 0; j < C; ++j) sum[i][j] = hn::Zero(d);
  }
  std::int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    V right[C];
    TG_UNROLL for (int j = 0; j < C; ++j) right[j] = hn::LoadU(d, b + j * b_j + k);
    TG_UNROLL for (int i = 0; i < R; ++i) {
      const V left = hn::LoadU(d, a + i * a_row + k);
      TG_UNROLL for (int j = 0; j < C; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  TG_UNROLL for (int i = 0; i < R; ++i) {
    TG_UNROLL for (int j = 0; j < C; ++j) {
      float total = hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
      for (std::int64_t s = k; s < depth; ++s) total += a[i * a_row + s] * b[j * b_j + s];
      c[i * ldc + j] = total;
    }
  }
}

template <int C>
void dot_columns(std::int64_t depth, std::int64_t rows, const float* a, std::int64_t a_row,
                 const float* b, std::int64_t b_j, float* c, std::int64_t ldc) {
  static_assert(kDotRows == 4);
  std::int64_t i = 0;
  for (; i + kDotRows <= rows; i += kDotRows)
    dot_tile<kDotRows, C>(depth, a + i * a_row, a_row, b, b_j, c + i * ldc, ldc);
  a += i * a_row;
  c += i * ldc;
  switch (rows - i) {
    case 3: return dot_tile<3, C>(depth, a, a_row, b, b_j, c, ldc);
    case 2: return dot_tile<2, C>(depth, a, a_row, b, b_j, c, ldc);
    case 1: return dot_tile<1, C>(depth, a, a_row, b, b_j, c, ldc);
    default: return;
  }
}

void dot_products(std::int64_t depth, std::int64_t rows, std::int64_t columns, const float* a,
                  std::int64_t a_row, const float* b, std::int64_t b_j, float* c,
                  std::int64_t ldc) {
  static_assert(kDotColumns == 3);
  std::int64_t j = 0;
  for (; j + kDotColumns <= columns; j += kDotColumns)
    dot_columns<kDotColumns>(depth, rows, a, a_row, b + j * b_j, b_j, c + j, ldc);
  if (columns - j == 2) dot_columns<2>(depth, rows, a, a_row, b + j * b_j, b_j, c + j, ldc);
  if (columns - j == 1) dot_columns<1>(depth, rows, a, a_row, b + j * b_j, b_j, c + j, ldc);
}

template <int... I>
void fill_tiles(GemmKernels& kernels, std::integer_sequence<int, I...>) {
  ((kernels.packed[I + 1][0] = tile<I + 1, 2, true>,
    kernels.packed[I + 1][1] = tile<I + 1, 1, true>,
    kernels.strided[I + 1][0] = tile<I + 1, 2, false>,
    kernels.strided[I + 1][1] = tile<I + 1, 1, false>),
   ...);
}

GemmKernels make_kernels() {
  GemmKernels kernels{};
  kernels.target = hwy::TargetName(HWY_TARGET);
  kernels.mr = kRows;
  kernels.nr = kColumns;
  fill_tiles(kernels, std::make_integer_sequence<int, kRows>());
  kernels.pack_b = pack_b;
  kernels.pack_a = pack_a;
  kernels.pack_windows = pack_windows;
  kernels.row_times_rows = row_times_rows;
  kernels.row_times_columns = row_times_columns;
  kernels.dot_products = dot_products;
  return kernels;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensorgrad::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensorgrad::cpu {
namespace {

HWY_EXPORT(make_kernels);

}  // namespace

const GemmKernels& gemm_kernels() {
  static const GemmKernels chosen = HWY_DYNAMIC_DISPATCH(make_kernels)();
  return chosen;
}

}  // namespace tensorgrad::cpu
#endif
