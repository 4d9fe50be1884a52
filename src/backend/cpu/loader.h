// SPDX-License-Identifier: MIT
// Walking an IndexMap over a run of neighbouring linear indices: copies, masks, offsets and strided
// stores. By rows of the innermost axis, several at a time where they are short, with a division
// only where a run starts; or, where even that would be a few elements at a time, by a table of the
// innermost axes' offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/view.h"

namespace tensorgrad::cpu {

// A 32-bit word of any element type but f16.
using Word = std::uint32_t;
// An element of f16, which is loaded as an f32.
using Half = std::uint16_t;

inline constexpr int kMaxRank = 16;

// The lowest and the highest offset that a view gives; low > high where it is valid nowhere.
struct OffsetRange {
  std::int64_t low = 0, high = 0;
};
OffsetRange offset_range(const View& view);

class Walker {
 public:
  Walker() = default;
  // `for_offsets`: not to load or store with, but for offsets(), most of all.
  explicit Walker(const IndexMap& map, bool for_offsets = false);

  // The same map over a domain whose last two factors have been swapped: index (b, c, r) of the
  // walker stands for index (b, r, c) of the map.
  static Walker swapped(const IndexMap& map, std::int64_t rows, std::int64_t cols,
                        bool for_offsets = false);

  // Offset of every index is base() + index, and all are valid.
  [[nodiscard]] bool contiguous() const { return contiguous_; }
  // Offset of every index is base(), and all are valid.
  [[nodiscard]] bool uniform() const { return uniform_; }
  [[nodiscard]] std::int64_t base() const { return levels_.front().offset; }
  // Stride of the innermost axis where there is one view; 0 in other cases.
  [[nodiscard]] std::int64_t inner_stride() const;
  // All there is of the map, if it is one view.
  [[nodiscard]] const View* view() const { return maps_.size() == 1 ? &maps_.front() : nullptr; }

  // out[i] = data[offset(first + i)], or 0 where that is not valid.
  void load(const Word* data, std::int64_t first, std::int64_t count, Word* out) const;
  void load(const Half* data, std::int64_t first, std::int64_t count, Word* out) const;
  // out[i] = offset(first + i), or `invalid`.
  void offsets(std::int64_t first, std::int64_t count, Word invalid, Word* out) const;
  // out[i] = 1 where offset(first + i) is valid, else 0.
  void valid(std::int64_t first, std::int64_t count, Word* out) const;
  // data[offset(first + i)] = in[i]; the map has one view and no mask.
  void store(const Word* in, std::int64_t first, std::int64_t count, Word* data) const;
  void store(const Word* in, std::int64_t first, std::int64_t count, Half* data) const;

 private:
  struct Level {
    int rank = 0;
    bool masked = false;
    std::int64_t offset = 0;
    std::int64_t size[kMaxRank], stride[kMaxRank], lo[kMaxRank], hi[kMaxRank];
  };

  static bool inside_of(const Level& v, const std::int64_t* index, int axes);
  static void advance(const Level& v, std::int64_t* index, std::int64_t& offset);
  void make_table(bool for_offsets);
  template <class Sink>
  void go(std::int64_t first, std::int64_t count, const Sink& sink) const;
  template <class Sink>
  void walk(std::size_t level, std::int64_t first, std::int64_t count, const Sink& sink) const;
  template <class Sink>
  void walk_table(std::int64_t first, std::int64_t count, const Sink& sink) const;
  template <class Sink>
  void segment(std::size_t level, std::int64_t offset, std::int64_t stride, std::int64_t at,
               std::int64_t count, const Sink& sink) const;

  std::vector<View> maps_;  // simplified
  std::vector<Level> levels_;
  bool contiguous_ = false, uniform_ = false;
  // Offsets of some steps of axis `table_axis_`, each of `table_step_` elements, from its index 0
  // on; or empty.
  std::vector<std::int32_t> table_;
  int table_axis_ = 0;
  std::int64_t table_step_ = 1;
};

}  // namespace tensorgrad::cpu
