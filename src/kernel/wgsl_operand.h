// SPDX-License-Identifier: MIT
// How an operand of a tiled contraction comes from memory, through its program, into workgroup
// memory. Private to kernel/wgsl_contraction.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernel/wgsl_fours.h"

namespace tensorgrad::wgsl {

struct TileShape {
  int side_m, side_n;  // BM, BN
  int depth;           // BK
  int per_m, per_n;    // TM, TN
  int slices;          // of k
  // As measured on an H100 and an H200: workgroups that a processor works on at a time, relative
  // speed with so many, and what it takes beside the products, in steps of k.
  int at_once;
  double rate, start;

  [[nodiscard]] constexpr int threads_m() const { return side_m / per_m; }
  [[nodiscard]] constexpr int threads_n() const { return side_n / per_n; }
  [[nodiscard]] constexpr int slice_threads() const { return threads_m() * threads_n(); }
  [[nodiscard]] constexpr int threads() const { return slice_threads() * slices; }
  // Registers are vectors of so many results, and so are the entries of workgroup memory.
  [[nodiscard]] int width_m() const { return std::min(4, per_m); }
  [[nodiscard]] int width_n() const { return std::min(4, per_n); }
};

std::string vector_type(int width);
// ".y": component i of a vector of that width.
std::string component(int i, int width);

// The domain of its program is (z, m, k) for a, (z, k, n) for b.
class TileOperand {
 public:
  TileOperand(Module& module, const Launch& launch, const WgslOptions& options, bool is_a);

  // Do neighbours along k, not along m or n, lie side by side?
  [[nodiscard]] bool along_k() const { return along_k_; }

  // The function `a_at` or `b_at` of the coordinates, which gives one element, and where `guard`
  // (if any) holds `otherwise`.
  void write_function(const std::string& guard, const std::string& otherwise);
  // The same for tiles, with zero for otherwise; it gives four where fours() was chosen.
  void write_tile_function(const std::string& guard, const std::set<int>& vectors);
  [[nodiscard]] InFours& fours() { return fours_; }
  [[nodiscard]] const InFours& fours() const { return fours_; }

  // Vectors from one step of k to the next in workgroup memory, and of the whole tile.
  [[nodiscard]] int pitch(const TileShape& tile) const;
  [[nodiscard]] int vectors(const TileShape& tile) const { return pitch(tile) * tile.depth; }
  [[nodiscard]] int width(const TileShape& tile) const {
    return is_a_ ? tile.width_m() : tile.width_n();
  }

  [[nodiscard]] int side(const TileShape& tile) const { return is_a_ ? tile.side_m : tile.side_n; }

  // Which elements of a tile a thread takes, and registers for them.
  void write_places(Scope& scope, const TileShape& tile) const;
  // From memory, at step k0, into the registers; and from there into workgroup memory, whose part
  // begins at `from` (an expression, or empty).
  void write_fetch(Scope& scope, const TileShape& tile, const std::string& k0) const;
  void write_keep(Scope& scope, const TileShape& tile, const std::string& from) const;

  // The same for tiles whose lines run as memory does, in vectors of four: the element with
  // coordinate i along m or n at step k lies in line i at k where along_k(), else in line k at i.
  // `array` has vectors; the tile begins at vector `start`.
  [[nodiscard]] int line_pitch(const TileShape& tile) const;
  [[nodiscard]] int line_vectors(const TileShape& tile) const;
  void write_keep_lines(Scope& scope, const TileShape& tile, const std::string& array,
                        int start) const;

  // Are all its elements numbers that f16 has?
  [[nodiscard]] bool is_half() const;
  // The same for tiles of f16 in vectors of eight (vec4<u32>), whose lines run as memory does: the
  // element with coordinate i along m or n at step k lies at i * half_pitch() + k where along_k(),
  // else at k * half_pitch() + i. From here on write_places() and write_fetch() take eight at a
  // time, by the function `a_eight` or `b_eight`; of operands that lie so in memory, as they are.
  void write_eights(const std::string& guard, const std::set<int>& vectors);
  [[nodiscard]] bool fits_in_eights(const TileShape& tile) const;
  [[nodiscard]] int half_pitch(const TileShape& tile) const;
  [[nodiscard]] int half_vectors(const TileShape& tile) const;
  void write_keep_eights(Scope& scope, const TileShape& tile, const std::string& array,
                         int start) const;

 private:
  struct Share;
  [[nodiscard]] Share share(const TileShape& tile) const;
  [[nodiscard]] bool may_come_in_fours(const Launch& launch) const;
  [[nodiscard]] int count() const {  // elements a call
    return eights_ ? 8 : fours_.chosen ? 4 : 1;
  }
  [[nodiscard]] bool lies_in_eights() const;
  void write_text(const std::string& function, const Scope& body, const std::string& type);

  Module& module_;
  const Launch& launch_;
  const WgslOptions& options_;
  bool is_a_;
  std::string name_;
  const ScalarProgram& program_;
  Domain domain_;
  bool packed_, along_k_;  // packed: several steps of k to a word
  InFours fours_;
  bool eights_ = false;
};

}  // namespace tensorgrad::wgsl
