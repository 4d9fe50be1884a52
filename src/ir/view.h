// SPDX-License-Identifier: MIT
// How an element of a value is found in a buffer: strided windows, stacked where one is not enough.
// Reshape, permute, broadcast, slice, pad and flip are Views; they never move data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// One strided window: the index (i0, i1, ...) over `shape` lies at offset + sum(strides[d] * i[d]).
// It is valid only where lo[d] <= i[d] < hi[d]; with `lo` and `hi` empty every index is valid.
// A load through an invalid index gives zero, and touches no memory.
struct View {
  Shape shape;
  std::vector<std::int64_t> strides;  // in elements; 0 = broadcast; negative = flipped
  std::int64_t offset = 0;
  std::vector<std::int64_t> lo, hi;

  // Row-major over the whole shape.
  static View contiguous(const Shape& shape);

  [[nodiscard]] bool masked() const { return !lo.empty(); }
  // True where the row-major linear index over `shape` is the offset itself, and all is valid.
  [[nodiscard]] bool is_identity() const;
  // Without size-1 axes; neighbouring axes that step as one are one; a mask that holds everywhere
  // is gone. Means the same.
  [[nodiscard]] View simplified() const;

  bool operator==(const View&) const = default;
};

// From a row-major linear index over numel(domain) elements to an element offset in a buffer.
// views[0] splits the linear index over its own shape (which has as many elements as the domain,
// but may be cut differently); each further view takes the offset that the one before gives as its
// linear index. Valid where every view is. Never empty.
struct IndexMap {
  std::vector<View> views;

  static IndexMap identity(const Shape& shape) { return {{View::contiguous(shape)}}; }

  [[nodiscard]] bool is_identity() const { return views.size() == 1 && views[0].is_identity(); }
  [[nodiscard]] bool masked() const;
  // numel(views[0].shape)
  [[nodiscard]] std::int64_t domain_size() const { return numel(views.front().shape); }

  bool operator==(const IndexMap&) const = default;
};

// `outer` gives linear indices over inner.shape: the map that goes through both. Merges into one
// view where the two can be merged.
IndexMap compose(const IndexMap& outer, const View& inner);
IndexMap compose(const IndexMap& outer, const IndexMap& inner);

// Writes the view over a finer cut of its shape: `cut` has the same number of elements, and each of
// the view's axes is a product of neighbouring axes of `cut`. Returns false, and leaves `out`
// alone, where that is not so (or a masked axis would be cut).
bool recut(const View& view, const Shape& cut, View& out);

// The coarsest shape over which every one of `views` can be written with recut(), or an empty
// optional where there is none. All have the same number of elements.
bool common_cut(const std::vector<const View*>& views, Shape& out);

// The element offset for a linear index, or -1 where
// it is not valid. Slow; for tests and reference.
std::int64_t offset_at(const IndexMap& map, std::int64_t linear);

// The offsets that the linear indices [first, first + count) give lie in [low, high], where they
// are valid at all (low > high: nowhere). May be wider than it must be, but never than the whole
// map's.
struct OffsetSpan {
  std::int64_t low = 0, high = -1;
};
OffsetSpan offset_span(const IndexMap& map, std::int64_t first, std::int64_t count);

// The map's domain, and the `range` elements that it leads to, are each cut into so many equal
// blocks. Does each block lead to the block of the same number alone? False also where they cannot
// be cut so. May be false where it would hold, never the other way around.
bool stays_in_blocks(const IndexMap& map, std::int64_t range, std::int64_t blocks);

// "[256,64]:(64,1)+0", with masks as "{lo..hi}".
std::string to_string(const View& view);
std::string to_string(const IndexMap& map);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
