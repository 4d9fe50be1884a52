// SPDX-License-Identifier: MIT
// The numbers of a GPU by which passes, planner and kernels choose.
#pragma once

#include <array>
#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Speed of a matrix product in tiles of one shape.
struct TileSpeed {
  std::int64_t at_once;  // workgroups that run concurrently on a core
  double rate;           // relative speed at that number
  double start = 0;      // overhead per tile, in steps of k
};

// Time of a matrix product in tiles of 128 x 128 (split_k): seconds per step of k and tile of a
// core, and the number of steps that take as long as prologue and epilogue together. A core
// computes two tiles at a time, or a single one, which takes longer per tile. Fitted.
struct ProductSpeed {
  double seconds_per_step, start_steps;
  double seconds_per_step_single, start_steps_single;
};

// The numbers decide what is faster, never what is valid. The defaults are those of an H100 or
// H200: from its data sheet; times, fitted to profiles of launches on it; or limits from which one
// of two ways was faster on it. "Assumed" numbers were not measured. WebGPU reports no cores,
// caches or bandwidth, so every WebGPU device has the defaults.
struct GpuModel {
  std::int64_t cores = 132;  // SMs, which run workgroups; data sheet
  // Threads that keep all cores busy, a quarter of those that they hold; assumed. With fewer
  // results than this, several threads share one.
  std::int64_t full_threads = 1 << 16;
  std::int64_t cached_bytes = 4 << 20;     // largest value that stays in the cache; limit
  double launch_microseconds = 2.2;        // overhead of a launch; fitted
  double seconds_per_byte = 1 / 3.5e12;    // memory traffic; fitted
  double seconds_per_parts_launch = 5e-6;  // the launch that sums the parts of a product; fitted

  // Products in tiles of 128 x 128, in f32 and with f16 operands.
  ProductSpeed product_speed = {0.085e-6, 20, 0.096e-6, 8};
  ProductSpeed f16_product_speed = {0.0128e-6, 60, 0.017e-6, 60};
  std::int64_t spread_tiles = 112;  // up to this many, each has a core in either case; measured
  std::int64_t wanted_tiles = 768;  // tiles to create from few; the fastest number
  // Multiplications below which a product takes less time than its split costs: if its tiles leave
  // half of the cores idle, the same for f16, and if they do not; limits.
  std::int64_t min_split_products = std::int64_t{1} << 29;
  std::int64_t min_split_products_f16 = std::int64_t{1} << 28;
  std::int64_t min_split_products_half_busy = std::int64_t{1} << 31;
  // The same if the product has at most `few_rows` rows or columns, as when several texts are
  // generated; limits.
  std::int64_t few_rows = 64, min_split_products_few_rows = std::int64_t{1} << 26;
  // Multiplications below which other variants are as fast as subgroup matrices: for f16 operands,
  // and for f32 operands split into two f16 numbers; limits.
  std::int64_t min_subgroup_matrix_products = 1 << 22, min_f16x3_products = 1 << 27;
  std::int64_t max_lane_products = 1 << 19;  // up to this many, lanes are as fast as tiles; limit
  // By tile, in the order of the tables in codegen/wgsl/matmul/contraction.cpp and
  // subgroup_matrix.cpp; measured.
  std::array<TileSpeed, 8> matmul_tiles = {{{2, 1.5, 20},
                                            {1, 1.33, 8},
                                            {3, 1.3, 4},
                                            {4, 1, 4},
                                            {4, 0.56, 10},
                                            {4, 0.68, 10},
                                            {4, 0.38, 20},
                                            {4, 0.17, 20}}};
  std::array<TileSpeed, 4> subgroup_matrix_tiles = {{{2, 1.1}, {3, 0.9}, {4, 0.8}, {8, 0.7}}};
  std::array<TileSpeed, 2> f16x3_tiles = {{{1, 1}, {4, 0.8}}};

  // Rows of a reduction that fill the GPU with 256 threads each, and parts of rows to create from
  // fewer (split_reduce); limits.
  std::int64_t full_rows = 256, wanted_rows = 1024;
  // The same for strided rows (columns), which are best read by few threads each; limits.
  std::int64_t full_columns = 16384, wanted_columns = 1 << 17;
  // Elements of a row per thread from which a split saves more than its launch costs: 0.1 us per
  // element (0.7 us if its address must be loaded first), against a few us per launch. The same if
  // the row could be fused with other work on its elements (a softmax), because the split then also
  // costs memory traffic; limits.
  std::int64_t long_walk = 32, long_walk_of_group = 1024;
  // Columns of at least this many elements, and this many in total, are worth another launch;
  // limits.
  std::int64_t long_column = 4096, many_column_elements = 1 << 20;
  // Addends of a scatter from which a split saves more than its launch costs, and sums that keep
  // the GPU busy (split_scatter); limits.
  std::int64_t many_addends = 1 << 20, wanted_sums = 1 << 20;
  // Addends of a part that are worth a workgroup, and addends per stored sum; limits.
  std::int64_t min_part_addends = 256, addends_per_sum = 8;

  // Workgroups that fill the GPU: of a scatter in blocks, and of attention in blocks of 32 rows;
  // limits.
  std::int64_t full_scatter_groups = 512, full_attention_groups = 128;
  // Rows of a product from which blocks of 16 rows fill the GPU, with all columns each; limit.
  std::int64_t full_row_block_rows = 1 << 12;
  // Elements of a map from which a quarter as many threads fill the GPU; limit.
  std::int64_t full_map_elements = 1 << 20;

  // A launch of at most this much memory and arithmetic does not fill the GPU, or takes less time
  // than a launch costs. Other launches can run concurrently; limits.
  std::int64_t small_bytes = 4 << 20;
  double small_flops = 1 << 27;
  // Microseconds of such a launch without its overhead, by kind; of a product also per step of k.
  // Fitted, but rough: they only have to tell which launches take about the same time.
  double map_microseconds = 0.5, reduce_microseconds = 1.5, scatter_microseconds = 3;
  double attention_microseconds = 3, product_microseconds = 0.7;
  double microseconds_per_product_step = 1.0 / 130;
  // Microseconds of a step of a fused sequence per block: for every step, for a product per 64 x 64
  // elements of its second operand, and otherwise per 256 elements; fitted.
  double block_microseconds = 0.6, block_piece_microseconds = 0.6;
  double block_elements_microseconds = 0.3;
  std::int64_t blocks_per_core = 2;  // that run at a time; measured

  // Threads with four states of a channel each that fill the GPU, and workgroups of attention's
  // backward pass that run at a time. See kReferenceGpu.
  std::int64_t full_scan_threads = 1 << 14, attention_groups_at_once = 264;
};

// The GPU assumed by decisions that shapes depend on, which are made before the device is known.
// They are the same on all devices, so all backends add in the same order.
inline constexpr GpuModel kReferenceGpu = {};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
