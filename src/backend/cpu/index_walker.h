// SPDX-License-Identifier: MIT
// Walks an IndexMap over a range of consecutive linear indices: loads, masks, offsets and strided
// stores. Works by rows of the innermost axis, several at a time if they are short, and divides
// only at the start of a run. If that would yield only a few elements at a time, uses a table of
// the offsets of the innermost axes.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/view.h"

namespace tensorgrad::cpu {

// A 32-bit word of any element type except f16.
using Word = std::uint32_t;
// An f16 element, which is loaded as f32.
using Half = std::uint16_t;

inline constexpr int kMaxRank = 16;

// The minimum and maximum offset of a view; low > high if no index is valid.
struct OffsetRange {
  std::int64_t low = 0, high = 0;
};
OffsetRange offset_range(const View& view);

class Walker {
 public:
  Walker() = default;
  // `for_offsets` optimizes for offsets() instead of loads and stores.
  explicit Walker(const IndexMap& map, bool for_offsets = false);

  // Returns a walker of the same map with the last two factors of the domain swapped: the walker's
  // index (b, c, r) is the map's index (b, r, c).
  static Walker swapped(const IndexMap& map, std::int64_t rows, std::int64_t cols,
                        bool for_offsets = false);

  // True if the offset of every index is base() + index, and all are valid.
  [[nodiscard]] bool contiguous() const { return contiguous_; }
  // True if the offset of every index is base(), and all are valid.
  [[nodiscard]] bool uniform() const { return uniform_; }
  [[nodiscard]] std::int64_t base() const { return levels_.front().offset; }
  // Returns the stride of the innermost axis if the map is a single view, otherwise 0.
  [[nodiscard]] std::int64_t inner_stride() const;
  // Returns the view if the map is a single view, otherwise null.
  [[nodiscard]] const View* view() const { return maps_.size() == 1 ? &maps_.front() : nullptr; }

  // out[i] = data[offset(first + i)], or 0 if the offset is not valid.
  void load(const Word* data, std::int64_t first, std::int64_t count, Word* out) const;
  void load(const Half* data, std::int64_t first, std::int64_t count, Word* out) const;
  // out[i] = offset(first + i), or `invalid` if it is not valid.
  void offsets(std::int64_t first, std::int64_t count, Word invalid, Word* out) const;
  // out[i] = 1 if offset(first + i) is valid, otherwise 0.
  void valid(std::int64_t first, std::int64_t count, Word* out) const;
  // data[offset(first + i)] = in[i]. The map must be a single view without a mask.
  void store(const Word* in, std::int64_t first, std::int64_t count, Word* data) const;
  void store(const Word* in, std::int64_t first, std::int64_t count, Half* data) const;

 private:
  struct Level {
    int rank = 0;
    bool masked = false;
    std::int64_t offset = 0;
    std::int64_t size[kMaxRank], stride[kMaxRank], lo[kMaxRank], hi[kMaxRank];
  };

  static bool is_inside(const Level& v, const std::int64_t* index, int axes);
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
  // Offsets of some steps of axis `table_axis_`, each of `table_step_` elements, starting at index
  // 0. May be empty.
  std::vector<std::int32_t> table_;
  int table_axis_ = 0;
  std::int64_t table_step_ = 1;
};

}  // namespace tensorgrad::cpu
