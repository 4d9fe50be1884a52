// SPDX-License-Identifier: MIT
// WGSL code generation: prints a launch as a compute shader. Shapes and strides are constants in
// the text. Every index is in bounds by construction or, if it depends on data or runtime scalars,
// guarded. The shader may therefore run without the driver's bounds checks. Needs no device.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "kernel/gpu_model.h"
#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Shape of a subgroup matrix product: m x k by k x n elements of f16, accumulated in f32 (Dawn's
// chromium_experimental_subgroup_matrix).
struct SubgroupMatrix {
  int m = 0, n = 0, k = 0;  // 0: not supported by the device
  int subgroup = 0;         // threads, contiguous by local_invocation_index

// Browsers do not support them, and the code that generates such kernels takes 90 KB.
#ifdef __EMSCRIPTEN__
  [[nodiscard]] static constexpr bool present() { return false; }
#else
  [[nodiscard]] bool present() const { return m > 0; }
#endif
};

// Directives at the start of a kernel with subgroup matrices, besides f16. The uniformity check is
// off because the subgroup of a thread follows from its index, which the compiler cannot see.
inline constexpr const char* kSubgroupMatrixDirectives =
    "enable chromium_experimental_subgroup_matrix;\n"
    "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";

enum class MatrixSide : std::uint8_t { kLeft, kRight };
// Return the expression that loads an f16 operand, and the statement that stores an f32 result.
// `array` consists of vec4<u32> in workgroup memory. `at` (an expression) is the index of the first
// element, `pitch` the distance of two lines in elements. Both are multiples of a vector's length,
// eight or four.
std::string load_matrix(const SubgroupMatrix& shape, MatrixSide side, const std::string& array,
                        const std::string& at, bool column_major, std::int64_t pitch);
std::string store_matrix(const std::string& array, const std::string& at, const std::string& value,
                         std::int64_t pitch);
std::string result_type(const SubgroupMatrix& shape);

// Exchange of values between threads without workgroup memory.
struct Subgroups {
  // Number of threads that can exchange values, contiguous by local_invocation_index. A subgroup
  // may be a multiple of it. 0: unknown; 1: none, for comparison.
  int size = 0;
  bool enabled = true;     // shaders need "enable subgroups;"
  bool in_memory = false;  // uses workgroup memory nevertheless, for tests
};

// Tiles of results that a workgroup of a contraction computes, rows x columns.
enum class MatmulTile {
  kAuto,
  kNone,  // lanes share each result
  k8x8,
  k16x16,
  k32x32,
  k32x32InSlices,  // of k, one per half of the threads
  k64x64,
  k128x64,
  k128x128,
  k128x128MoreThreads,  // twice as many
};

enum class ScatterVariant {
  kAuto,
  kLanes,   // lanes share each result
  kBlocks,  // a workgroup computes a block of results
};

// Limits of the device, and overrides for tests and tuning (0: chosen by size).
struct WgslOptions {
  int max_threads = 256;  // per workgroup
  std::int64_t max_workgroup_bytes = 16 << 10;
  // Threads that share one result, or one line of a scan; a power of two. Unused for maps and
  // sorts.
  int lanes = 0;
  MatmulTile matmul_tile = MatmulTile::kAuto;  // contractions
  ScatterVariant scatter_variant = ScatterVariant::kAuto;
  // Maximum columns of the score tile of attention: 4 (of 8 rows), or 8, 16 or 32 (of as many
  // rows). Uses the largest that fits workgroup memory.
  int attention_columns = 0;
  std::int64_t sort_tile = 0;  // elements sorted at a time, at least 2
  int map_width = 0;           // elements per thread of a map, 4 or 1
  // One thread per result, line of a scan or 4 x 4 results of a product, and no tiles. For adapters
  // on which a barrier costs more than the arithmetic it saves. Overrides the variants above,
  // except for sorts and for OpaqueWriter::needs_barriers.
  bool barrier_free = false;
  bool separate = false;  // do not merge launches into one kernel, for comparison
  // Use a common number of threads, so that launches can be merged into one kernel.
  bool joined = false;
  // Launch::blocks if a fused sequence is one kernel. The workgroups of a block are contiguous.
  std::int64_t blocks = 0;
  // Contraction: number of results of all concurrent products with the same k, divided by its own.
  double concurrent_work_ratio = 1;
  SubgroupMatrix subgroup_matrix = {};  // for contractions whose operands are f16
  // Contraction: uses subgroup matrices for f32 operands too, each as the sum of two f16 numbers.
  bool f16x3 = false;
  // Contraction: -1: no subgroup matrices; > 0: number of a subgroup matrix tile, of those for the
  // type of its operands.
  int subgroup_matrix_tile = 0;
  Subgroups subgroups = {};
  std::set<int> scalar_buffers = {};  // buffers that must not be accessed as vectors
  std::set<int> paired_states = {};   // buffers in which selective scans store states in pairs
  GpuModel gpu = {};                  // what is faster

  // Returns true if an option replaces the choice of tiles by size.
  [[nodiscard]] bool forces_tiles() const {
    return matmul_tile != MatmulTile::kAuto || scatter_variant != ScatterVariant::kAuto ||
           attention_columns != 0 || sort_tile != 0 || map_width != 0;
  }
};

struct WgslKernel {
  std::string header;  // comment lines: name, ops with shapes, user locations
  std::string body;    // kernels with equal bodies are identical
  std::uint32_t groups_x = 1, groups_y = 1;
  int threads = 1;  // per workgroup
  std::int64_t workgroup_bytes = 0;
  bool uses_scalars = false;  // group 1, binding 0 are the runtime scalars

  [[nodiscard]] std::string text() const { return header + body; }
};

// Generates the kernel of a launch. Group 0, binding i is launch.bindings[i]; the entry point is
// "main".
WgslKernel write_wgsl(const Launch& launch, const WgslOptions& options = {});

// Returns only the text of the kernel.
std::string emit_wgsl(const Launch& launch, const WgslOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
