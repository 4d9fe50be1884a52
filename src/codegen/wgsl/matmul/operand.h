// SPDX-License-Identifier: MIT
// Loads an operand of a tiled contraction from memory, through its program, into workgroup memory.
// Private to contraction.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/wgsl/vectorize.h"

namespace tensorgrad::wgsl {

struct TileShape {
  int side_m, side_n;  // BM, BN
  int depth;           // BK
  int per_m, per_n;    // TM, TN
  int slices;          // split of k within the workgroup

  [[nodiscard]] constexpr int threads_m() const { return side_m / per_m; }
  [[nodiscard]] constexpr int threads_n() const { return side_n / per_n; }
  [[nodiscard]] constexpr int slice_threads() const { return threads_m() * threads_n(); }
  [[nodiscard]] constexpr int threads() const { return slice_threads() * slices; }
  // Length of vectors of results in registers, and of entries in workgroup memory.
  [[nodiscard]] int width_m() const { return std::min(4, per_m); }
  [[nodiscard]] int width_n() const { return std::min(4, per_n); }
};

// The inverse of the scale of lo in TileOperand::split(), 2048.
inline constexpr const char* kSplitFactor = "0.00048828125f";

std::string vector_type(int width);
// Returns the access to component i of a vector of that width, such as ".y".
std::string component(int i, int width);

// An operand. The domain of its program is (z, m, k) for a, (z, k, n) for b.
class TileOperand {
 public:
  TileOperand(Module& module, const Launch& launch, const WgslOptions& options, bool is_a);

  // Returns true if the operand is contiguous along k rather than along m or n.
  [[nodiscard]] bool along_k() const { return along_k_; }

  // Writes the function `a_at` or `b_at`, which returns the element at its coordinates, or
  // `otherwise` if `guard` (optional) holds.
  void write_function(const std::string& guard, const std::string& otherwise);
  // Writes the same function for tiles, with zero for `otherwise`. It returns four elements if
  // vectorized() was chosen.
  void write_tile_function(const std::string& guard, const std::set<int>& vectors);
  [[nodiscard]] Vectorized& vectorized() { return vectorized_; }
  [[nodiscard]] const Vectorized& vectorized() const { return vectorized_; }

  // Distance in vectors of consecutive steps of k in workgroup memory, and size of the tile.
  [[nodiscard]] int pitch(const TileShape& tile) const;
  [[nodiscard]] int vectors(const TileShape& tile) const { return pitch(tile) * tile.depth; }
  [[nodiscard]] int width(const TileShape& tile) const {
    return is_a_ ? tile.width_m() : tile.width_n();
  }

  [[nodiscard]] int side(const TileShape& tile) const { return is_a_ ? tile.side_m : tile.side_n; }

  // Declares the position of a thread's elements in a tile, and registers for them.
  void write_places(Scope& scope, const TileShape& tile) const;
  // Loads the elements at step k0 into registers, and stores these to workgroup memory, beginning
  // at `from` (an expression, or empty).
  void write_fetch(Scope& scope, const TileShape& tile, const std::string& k0) const;
  void write_keep(Scope& scope, const TileShape& tile, const std::string& from) const;

  // The same for tiles in the layout of memory, in vectors of four. The element with coordinate i
  // along m or n at step k is in line i at k if along_k(), else in line k at i. `array` consists of
  // vectors; the tile begins at vector `start`.
  [[nodiscard]] int line_pitch(const TileShape& tile) const;
  [[nodiscard]] int line_vectors(const TileShape& tile) const;
  void write_keep_lines(Scope& scope, const TileShape& tile, const std::string& array,
                        int start) const;

  // Returns true if all elements are representable in f16.
  [[nodiscard]] bool is_half() const;
  // The same for tiles of f16 in the layout of memory, in vectors of eight (vec4<u32>). The index
  // of the element with coordinate i along m or n at step k is
  //   i * half_pitch() + k  if along_k(), else  k * half_pitch() + i
  // After write_vec8(), write_places() and write_fetch() handle eight elements at a time, by the
  // function `a_eight` or `b_eight`. Operands with that layout in memory are copied unchanged.
  void write_vec8(const std::string& guard, const std::set<int>& vectors);
  // Selects tiles of f32 elements x = hi + lo * kSplitFactor, where hi and lo are f16. A tile of hi
  // is followed by one of lo, and half_vectors() is the size of both. Call it first.
  void split() { split_ = true; }
  // Returns the distance of the tiles of hi and lo in elements.
  [[nodiscard]] int low_part(const TileShape& tile) const { return half_pitch(tile) * lines(tile); }
  [[nodiscard]] bool fits_vec8(const TileShape& tile) const;
  [[nodiscard]] int half_pitch(const TileShape& tile) const;
  [[nodiscard]] int half_vectors(const TileShape& tile) const;
  void write_keep_vec8(Scope& scope, const TileShape& tile, const std::string& array,
                       int start) const;

 private:
  struct Share;
  [[nodiscard]] Share share(const TileShape& tile) const;
  // Calls write(to, j, i, k) for each piece of the thread, number j, with the indices of its first
  // element. `to` is `scope`, or a block of it for the threads that have a piece.
  template <class Write>
  void each_piece(Scope& scope, const TileShape& tile, const Write& write) const;
  [[nodiscard]] bool may_be_vectorized(const Launch& launch) const;
  [[nodiscard]] int count() const {  // elements per call
    return vec8_ ? 8 : vectorized_.chosen ? 4 : 1;
  }
  [[nodiscard]] bool is_vec8_in_memory() const;
  [[nodiscard]] int lines(const TileShape& tile) const {
    return along_k_ ? side(tile) : tile.depth;
  }
  [[nodiscard]] std::string call_at(const char* function, int more) const;
  void write_four(const std::string& guard, const std::set<int>& vectors);
  void write_text(const std::string& function, const Scope& body, const std::string& type);

  Module& module_;
  const Launch& launch_;
  const ContractionLaunch& product_;
  const WgslOptions& options_;
  bool is_a_;
  std::string name_;
  const ScalarProgram& program_;
  Domain domain_;
  bool computed_;          // by rows, before the product
  bool packed_, along_k_;  // packed: several steps of k per word
  Vectorized vectorized_;
  bool vec8_ = false, split_ = false;
};

}  // namespace tensorgrad::wgsl
