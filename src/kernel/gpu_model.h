// SPDX-License-Identifier: MIT
// The numbers of a GPU by which passes, planner and kernels choose.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

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

  // Products in tiles of 128 x 128 (split_k). A core computes two tiles at a time, or a single tile
  // with twice the threads, which is slower per tile. Seconds per step of k and tile of a core, and
  // the number of steps that take as long as prologue and epilogue together; fitted.
  double seconds_per_step = 0.085e-6, start_steps = 20;
  double seconds_per_step_single = 0.096e-6, start_steps_single = 8;
  std::int64_t spread_tiles = 112;  // up to this many, each has a core in either case; measured
  std::int64_t wanted_tiles = 768;  // tiles to create from few; the fastest number
  // Multiplications below which a product takes less time than its split costs: if its tiles leave
  // half of the cores idle, the same for f16, and if they do not; limits.
  std::int64_t min_split_products = std::int64_t{1} << 29;
  std::int64_t min_split_products_f16 = std::int64_t{1} << 28;
  std::int64_t min_split_products_half_busy = std::int64_t{1} << 31;
  std::int64_t min_subgroup_matrix_products = 1 << 22;  // with fewer, others are as fast; limit

  // Rows of a reduction that fill the GPU with 256 threads each, and parts of rows to create from
  // fewer (split_reduce); limits.
  std::int64_t full_rows = 256, wanted_rows = 1024;
  // The same for strided rows (columns), which are best read by few threads each; limits.
  std::int64_t full_columns = 16384, wanted_columns = 1 << 17;
  // Addends of a scatter from which a split saves more than its launch costs, and sums that keep
  // the GPU busy (split_scatter); limits.
  std::int64_t many_addends = 1 << 20, wanted_sums = 1 << 20;

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
  // elements of its second operand, and otherwise per 256 elements; fitted. A core runs two blocks
  // at a time.
  double block_microseconds = 0.6, block_piece_microseconds = 0.6;
  double block_elements_microseconds = 0.3;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
