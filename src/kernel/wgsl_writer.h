// SPDX-License-Identifier: MIT
// A launch printed as a WGSL compute shader. Shapes and strides are constants in the text; every
// index is in bounds by construction, and those that come from data or from the hyper row are
// guarded, so that the shader may run without the driver's bounds checks. Needs no device.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "kernel/program.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What a subgroup multiplies at once: m x k by k x n elements of f16, added up in f32 (Dawn's
// chromium_experimental_subgroup_matrix).
struct MatrixUnits {
  int m = 0, n = 0, k = 0;  // 0: the device has none
  int subgroup = 0;         // threads, which are neighbours by local_invocation_index

#ifdef __EMSCRIPTEN__  // browsers have none, and what writes kernels for them takes 90 KB
  [[nodiscard]] static constexpr bool present() { return false; }
#else
  [[nodiscard]] bool present() const { return m > 0; }
#endif
};

// What a kernel that uses them begins with, beside f16. Which subgroup a thread belongs to follows
// from its number, which the compiler does not see.
inline constexpr const char* kUnitDirectives =
    "enable chromium_experimental_subgroup_matrix;\n"
    "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";

enum class UnitSide : std::uint8_t { kLeft, kRight };
// The expression that reads an operand, of f16, and the statement that writes a result, of f32.
// `array` holds vec4<u32> in workgroup memory; `at`, an expression, and `pitch` count elements: the
// first, and from line to line. Both are multiples of what a vector holds, eight or four.
std::string load_units(const MatrixUnits& units, UnitSide side, const std::string& array,
                       const std::string& at, bool column_major, std::int64_t pitch);
std::string store_units(const std::string& array, const std::string& at, const std::string& value,
                        std::int64_t pitch);
std::string result_type(const MatrixUnits& units);

// Threads that can give each other values without workgroup memory.
struct Subgroups {
  // So many, neighbours by local_invocation_index; a subgroup may have a multiple of it. 0: not
  // known of; 1: none, for comparison.
  int size = 0;
  bool enabled = true;     // shaders must say "enable subgroups;"
  bool in_memory = false;  // by way of workgroup memory after all, for tests
};

// What the device allows, and overrides for tests and tuning (0: chosen by size).
struct WgslOptions {
  int max_threads = 256;  // per workgroup
  std::int64_t max_workgroup_bytes = 16 << 10;
  int lanes =
      0;  // threads that share one result, kScan: one line (a power of two); not kMap, kSort
  // kContraction: 8, 16, 32, 33 (k in slices), 64, 96 (128 x 64), 128 or 129 (of 128 x 128, with
  // twice the threads); kScatter: 2 for blocks of results; both: 1 for every result by its own
  // lanes; kSort: elements sorted at a time, at least 2; kAttention: columns of the tile of scores,
  // 4 (of 8 rows), or 8, 16 or 32 (of as many): the largest up to there that the device's
  // workgroups have room for; kMap: 4 or 1 neighbours a thread.
  int tile = 0;
  // One thread for each result, line of a scan or 4 x 4 results of a product, and no tiles: for
  // adapters on which a barrier costs more than the arithmetic that it saves. Replaces `tile` and
  // `lanes`, but for kSort and kAttention, whose kernels need barriers.
  bool barrier_free = false;
  bool separate = false;  // launches that could be one kernel are none, for comparison
  bool joined = false;    // as many threads as others have, so that launches can be one kernel
  // Launch::blocks, where a chain is one kernel: the workgroups of a block follow each other.
  std::int64_t blocks = 0;
  double crowd = 1;        // kContraction: results of products beside it with its k, over its own
  MatrixUnits units = {};  // for contractions whose operands are f16
  int unit_tile = 0;       // kContraction: -1: none by matrix units; more: by a tile of that number
  Subgroups subgroups = {};
  std::set<int> scalar_buffers = {};  // not to be read or written as vectors
  std::set<int> paired_states = {};   // whose selective scan keeps its states by pairs
};

struct WgslKernel {
  std::string header;  // comment lines: name, ops with their shapes, the user's lines
  std::string body;    // equal bodies are equal kernels
  std::uint32_t groups_x = 1, groups_y = 1;
  int threads = 1;  // per workgroup
  std::int64_t workgroup_bytes = 0;
  bool uses_hyper = false;  // group 1, binding 0 is the hyper row

  [[nodiscard]] std::string text() const { return header + body; }
};

// Group 0, binding i is launch.bindings[i]; the entry point is "main".
WgslKernel write_wgsl(const Launch& launch, const WgslOptions& options = {});

// The text alone.
std::string emit_wgsl(const Launch& launch, const WgslOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
