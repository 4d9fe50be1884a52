// SPDX-License-Identifier: MIT
// Index maps from the elements of a value to a buffer: strided windows, stacked if one is not
// enough. Reshape, permute, broadcast, slice, pad and flip are Views; they never move data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A strided window. Index (i0, i1, ...) over `shape` is at offset + sum(strides[d] * i[d]). It is
// valid if lo[d] <= i[d] < hi[d] for all d; if `lo` and `hi` are empty, every index is valid. A
// load at an invalid index returns zero and accesses no memory.
struct View {
  Shape shape;
  std::vector<std::int64_t> strides;  // in elements; 0: broadcast; negative: flipped
  std::int64_t offset = 0;
  std::vector<std::int64_t> lo, hi;

  // Returns the row-major view of the whole shape.
  static View contiguous(const Shape& shape);

  [[nodiscard]] bool masked() const { return !lo.empty(); }
  // True if the offset equals the row-major linear index over `shape` and all indices are valid.
  [[nodiscard]] bool is_identity() const;
  // Returns an equivalent view without size-1 axes and masks that always hold. Adjacent axes that
  // form a single stride are merged.
  [[nodiscard]] View simplified() const;

  bool operator==(const View&) const = default;
};

// Maps a row-major linear index over numel(domain) elements to an element offset in a buffer.
// views[0] splits the linear index over its own shape, which has as many elements as the domain but
// may have other axes. Each further view takes the previous offset as its linear index. An index is
// valid if it is valid in every view. There is always at least one view.
struct IndexMap {
  std::vector<View> views;

  static IndexMap identity(const Shape& shape) { return {{View::contiguous(shape)}}; }

  [[nodiscard]] bool is_identity() const { return views.size() == 1 && views[0].is_identity(); }
  [[nodiscard]] bool masked() const;
  // Returns numel(views[0].shape).
  [[nodiscard]] std::int64_t domain_size() const { return numel(views.front().shape); }

  bool operator==(const IndexMap&) const = default;
};

// Returns the map through `outer`, whose offsets are linear indices over inner.shape, and then
// `inner`. Merges the two into one view if possible.
IndexMap compose(const IndexMap& outer, const View& inner);
IndexMap compose(const IndexMap& outer, const IndexMap& inner);

// Rewrites the view over `cut`, a finer shape with the same number of elements. Each axis of the
// view must be a product of adjacent axes of `cut`. Otherwise, or if a masked axis would be split,
// returns false and leaves `out` unchanged.
bool recut(const View& view, const Shape& cut, View& out);

// Computes the coarsest shape over which recut() can write each of `views`, which must have the
// same number of elements. Returns false if there is none.
bool common_cut(const std::vector<const View*>& views, Shape& out);

// Returns the element offset of a linear index, or -1 if it is invalid. Slow; for tests and the
// reference.
std::int64_t offset_at(const IndexMap& map, std::int64_t linear);

// A range of offsets; empty if low > high. offset_span() returns a range that contains all valid
// offsets of the linear indices [first, first + count). It may be wider than necessary, but never
// wider than that of the whole map.
struct OffsetSpan {
  std::int64_t low = 0, high = -1;
};
OffsetSpan offset_span(const IndexMap& map, std::int64_t first, std::int64_t count);

// Splits the domain of the map and the `range` elements that it addresses into `blocks` equal
// blocks. Returns true if each block of the domain only addresses the block of the same number.
// Conservative: may return false although this holds. Returns false if the sizes are not divisible.
bool stays_in_blocks(const IndexMap& map, std::int64_t range, std::int64_t blocks);

// Returns "[256,64]:(64,1)+0", with masks as "{lo..hi}".
std::string to_string(const View& view);
std::string to_string(const IndexMap& map);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
