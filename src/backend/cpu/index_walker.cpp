// SPDX-License-Identifier: MIT
// Walker: an odometer over the outer axes of a view and a loop along the innermost axis. In a stack
// of views, a unit-stride segment of one view is a range of indices of the next view.
#include "backend/cpu/index_walker.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/simd.h"
#include "base/check.h"
#include "base/half.h"

namespace tensorgrad::cpu {
namespace {

// Rows of at most this many elements are processed together with the next outer axis.
constexpr std::int64_t kShortRun = 256;
// A table is used for strided short rows, and for short rows of equal elements below this length.
constexpr std::int64_t kMinFill = 16;
constexpr std::int64_t kTableEntries = 1024;

inline Word as_word(Word element) { return element; }
inline void put(Word value, Word& element) { element = value; }
inline void put(Word value, Half& element) { element = to_half(std::bit_cast<float>(value)); }
inline Word as_word(Half element) { return std::bit_cast<Word>(from_half(element)); }

// Copies words without a function call if there are few.
inline void copy_words(const Word* from, std::int64_t count, Word* to) {
  if (count >= 32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Word));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}
inline void copy_words(const Half* from, std::int64_t count, Word* to) {
  simd().from_halves(from, count, reinterpret_cast<float*>(to));
}
inline void copy_words(const Word* from, std::int64_t count, Half* to) {
  simd().to_halves(reinterpret_cast<const float*>(from), count, to);
}

// The two innermost axes of a view, from the start of a row. The elements [from, to) of each row
// are valid.
struct Rows {
  std::int64_t offset, pitch, count;      // of the rows
  std::int64_t stride, length, from, to;  // within a row
  [[nodiscard]] bool whole() const { return from == 0 && to == length; }
};

// Fills short rows that are completely valid: out[i * n + j] = value(i, j).
template <class Value>
inline void fill_rows(Word* out, std::int64_t rows, std::int64_t n, const Value& value) {
  const auto fill = [&](auto width) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < width; ++j) out[i * width + j] = value(i, j);
    }
  };
  switch (n) {  // a constant width is unrolled
    case 2: fill(std::integral_constant<std::int64_t, 2>()); break;
    case 3: fill(std::integral_constant<std::int64_t, 3>()); break;
    case 4: fill(std::integral_constant<std::int64_t, 4>()); break;
    case 8: fill(std::integral_constant<std::int64_t, 8>()); break;
    case 16: fill(std::integral_constant<std::int64_t, 16>()); break;
    case 32: fill(std::integral_constant<std::int64_t, 32>()); break;
    case 64: fill(std::integral_constant<std::int64_t, 64>()); break;
    default: fill(n);
  }
}

// Fills short rows that are only partly valid.
template <class Value>
inline void fill_rows(Word* out, const Rows& r, Word invalid, const Value& value) {
  if (r.whole()) return fill_rows(out, r.count, r.length, value);
  for (std::int64_t i = 0; i < r.count; ++i, out += r.length) {
    for (std::int64_t j = 0; j < r.from; ++j) out[j] = invalid;
    for (std::int64_t j = r.from; j < r.to; ++j) out[j] = value(i, j);
    for (std::int64_t j = r.to; j < r.length; ++j) out[j] = invalid;
  }
}

// Sinks define what to do with a segment of offsets (offset + i * stride, i < count) at position
// `at` of the range, with several short rows, and with offsets from a table.
template <class Element>
struct LoadSink {
  const Element* data;
  Word* out;
  void rows(const Rows& r, std::int64_t at) const {
    if (std::is_same_v<Element, Half> && r.stride == 1 && r.length >= kMinFill) {
      for (std::int64_t i = 0; i < r.count; ++i, at += r.length) {  // one conversion per row
        invalid(at, r.from);
        valid(r.offset + i * r.pitch + r.from, 1, at + r.from, r.to - r.from);
        invalid(at + r.to, r.length - r.to);
      }
      return;
    }
    const Element* from = data + r.offset;
    if (r.stride == 1) {  // a separate loop, which is vectorized as a copy
      fill_rows(out + at, r, 0,
                [&](std::int64_t i, std::int64_t j) { return as_word(from[i * r.pitch + j]); });
      return;
    }
    fill_rows(out + at, r, 0, [&](std::int64_t i, std::int64_t j) {
      return as_word(from[i * r.pitch + j * r.stride]);
    });
  }
  void table(std::int64_t offset, const std::int32_t* offsets, std::int64_t at,
             std::int64_t count) const {
    const Element* from = data + offset;
    Word* to = out + at;
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {  // four at a time, as `to` might alias `from`
      const Element a = from[offsets[i]], b = from[offsets[i + 1]];
      const Element c = from[offsets[i + 2]], d = from[offsets[i + 3]];
      to[i] = as_word(a), to[i + 1] = as_word(b), to[i + 2] = as_word(c), to[i + 3] = as_word(d);
    }
    for (; i < count; ++i) to[i] = as_word(from[offsets[i]]);
  }
  void valid(std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t count) const {
    const Element* from = data + offset;
    Word* to = out + at;
    if (stride == 1) {
      copy_words(from, count, to);
    } else if (stride == 0) {
      std::fill_n(to, count, as_word(*from));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = as_word(from[i * stride]);
    }
  }
  void invalid(std::int64_t at, std::int64_t count) const { std::fill_n(out + at, count, 0u); }
  void repeat(std::int64_t at, std::int64_t count) const {
    std::fill_n(out + at + 1, count - 1, out[at]);
  }
};

struct OffsetSink {
  Word none;
  Word* out;
  void rows(const Rows& r, std::int64_t at) const {
    fill_rows(out + at, r, none, [&](std::int64_t i, std::int64_t j) {
      return static_cast<Word>(r.offset + i * r.pitch + j * r.stride);
    });
  }
  void table(std::int64_t offset, const std::int32_t* offsets, std::int64_t at,
             std::int64_t count) const {
    const auto base = static_cast<Word>(offset);
    for (std::int64_t i = 0; i < count; ++i) out[at + i] = base + static_cast<Word>(offsets[i]);
  }
  void valid(std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t count) const {
    const auto base = static_cast<Word>(offset), step = static_cast<Word>(stride);
    for (std::int64_t i = 0; i < count; ++i) out[at + i] = base + static_cast<Word>(i) * step;
  }
  void invalid(std::int64_t at, std::int64_t count) const { std::fill_n(out + at, count, none); }
  void repeat(std::int64_t at, std::int64_t count) const {
    std::fill_n(out + at + 1, count - 1, out[at]);
  }
};

struct ValidSink {
  Word* out;
  void rows(const Rows& r, std::int64_t at) const {
    fill_rows(out + at, r, 0, [](std::int64_t, std::int64_t) { return Word{1}; });
  }
  void table(std::int64_t, const std::int32_t*, std::int64_t at, std::int64_t count) const {
    std::fill_n(out + at, count, 1u);
  }
  void valid(std::int64_t, std::int64_t, std::int64_t at, std::int64_t count) const {
    std::fill_n(out + at, count, 1u);
  }
  void invalid(std::int64_t at, std::int64_t count) const { std::fill_n(out + at, count, 0u); }
  void repeat(std::int64_t at, std::int64_t count) const {
    std::fill_n(out + at + 1, count - 1, out[at]);
  }
};

template <class Element>
struct StoreSink {
  const Word* in;
  Element* data;
  void rows(const Rows& r, std::int64_t at) const {
    for (std::int64_t i = 0; i < r.count; ++i) {
      valid(r.offset + i * r.pitch, r.stride, at + i * r.length, r.length);
    }
  }
  void table(std::int64_t offset, const std::int32_t* offsets, std::int64_t at,
             std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) put(in[at + i], data[offset + offsets[i]]);
  }
  void valid(std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t count) const {
    Element* to = data + offset;
    if (stride == 1) {
      copy_words(in + at, count, to);
    } else {
      for (std::int64_t i = 0; i < count; ++i) put(in[at + i], to[i * stride]);
    }
  }
  void invalid(std::int64_t, std::int64_t) const {}
  void repeat(std::int64_t, std::int64_t) const {}
};

}  // namespace

OffsetRange offset_range(const View& view) {
  OffsetRange range{view.offset, view.offset};
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    const std::int64_t from = view.masked() ? view.lo[d] : 0;
    const std::int64_t to = view.masked() ? view.hi[d] : view.shape[d];
    if (to <= from) return {0, -1};
    const std::int64_t a = view.strides[d] * from, b = view.strides[d] * (to - 1);
    range.low += std::min(a, b);
    range.high += std::max(a, b);
  }
  return range;
}

Walker::Walker(const IndexMap& map, bool for_offsets) {
  for (const View& view : map.views) maps_.push_back(view.simplified());
  for (const View& view : maps_) {
    Level level;
    CHECK(view.shape.size() <= static_cast<std::size_t>(kMaxRank), "a view of too many axes");
    level.rank = static_cast<int>(view.shape.size());
    level.offset = view.offset;
    level.masked = view.masked();
    for (int d = 0; d < level.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      level.size[d] = view.shape[at];
      level.stride[d] = view.strides[at];
      level.lo[d] = level.masked ? view.lo[at] : 0;
      level.hi[d] = level.masked ? view.hi[at] : view.shape[at];
    }
    if (level.rank == 0) {
      level.rank = 1;
      level.size[0] = level.hi[0] = 1;
      level.stride[0] = level.lo[0] = 0;
    }
    levels_.push_back(level);
  }
  const Level& top = levels_.front();
  if (levels_.size() > 1 || top.masked) return;
  contiguous_ = top.rank == 1 && (top.stride[0] == 1 || top.size[0] == 1);
  uniform_ = std::all_of(top.stride, top.stride + top.rank, [](std::int64_t s) { return s == 0; });
  if (!contiguous_ && !uniform_) make_table(for_offsets);
}

// Requires a single view without a mask. Loads whose rows are copies, or fills of some length, need
// no table.
void Walker::make_table(bool for_offsets) {
  const Level& v = levels_.front();
  const int inner = v.rank - 1;
  const std::int64_t row = v.size[inner], stride = v.stride[inner];
  const bool copies = stride == 1 || (stride == 0 && row >= kMinFill);
  if (row > kShortRun || (copies && !for_offsets)) return;
  const OffsetRange range = offset_range(maps_.front());
  if (range.high - range.low > std::numeric_limits<std::int32_t>::max()) return;
  table_axis_ = inner;
  while (table_axis_ > 0 && table_step_ * v.size[table_axis_] < kTableEntries) {
    table_step_ *= v.size[table_axis_--];
  }
  const std::int64_t steps =
      std::min(v.size[table_axis_], std::max<std::int64_t>(1, kTableEntries / table_step_));
  table_.resize(static_cast<std::size_t>(steps * table_step_));
  std::int64_t index[kMaxRank] = {};
  for (std::int32_t& entry : table_) {
    std::int64_t offset = 0;
    for (int d = table_axis_; d <= inner; ++d) offset += index[d] * v.stride[d];
    entry = static_cast<std::int32_t>(offset);
    for (int d = inner; d >= table_axis_ && ++index[d] == v.size[d] && d > table_axis_; --d) {
      index[d] = 0;
    }
  }
}

Walker Walker::swapped(const IndexMap& map, std::int64_t rows, std::int64_t cols,
                       bool for_offsets) {
  const std::int64_t batch = map.domain_size() / (rows * cols);
  IndexMap result{{View{{batch, cols, rows}, {rows * cols, 1, cols}, 0, {}, {}}}};
  for (const View& view : map.views) result = compose(result, view);
  return Walker(result, for_offsets);
}

std::int64_t Walker::inner_stride() const {
  return levels_.size() == 1 ? levels_[0].stride[levels_[0].rank - 1] : 0;
}

template <class Sink>
void Walker::segment(std::size_t level, std::int64_t offset, std::int64_t stride, std::int64_t at,
                     std::int64_t count, const Sink& sink) const {
  if (level + 1 == levels_.size()) {
    sink.valid(offset, stride, at, count);
    return;
  }
  const auto shifted = [&](std::int64_t first, std::int64_t begin, std::int64_t length) {
    Sink moved = sink;
    if constexpr (requires { moved.out; }) moved.out += begin;
    if constexpr (requires { moved.in; }) moved.in += begin;
    walk(level + 1, first, length, moved);
  };
  if (stride == 1) {
    shifted(offset, at, count);
  } else if (stride == 0) {
    shifted(offset, at, 1);
    sink.repeat(at, count);
  } else {
    for (std::int64_t i = 0; i < count; ++i) shifted(offset + i * stride, at + i, 1);
  }
}

// Moves to the start of the next row.
inline void Walker::advance(const Level& v, std::int64_t* index, std::int64_t& offset) {
  index[v.rank - 1] = 0;
  for (int d = v.rank - 2; d >= 0; --d) {
    offset += v.stride[d];
    if (++index[d] < v.size[d]) return;
    offset -= v.size[d] * v.stride[d];
    index[d] = 0;
  }
}

// True if the indices of the first `axes` axes are valid.
inline bool Walker::is_inside(const Level& v, const std::int64_t* index, int axes) {
  bool inside = true;
  for (int d = 0; v.masked && d < axes; ++d) {
    inside = inside && index[d] >= v.lo[d] && index[d] < v.hi[d];
  }
  return inside;
}

template <class Sink>
void Walker::walk_table(std::int64_t first, std::int64_t count, const Sink& sink) const {
  const Level& v = levels_.front();
  const auto entries = static_cast<std::int64_t>(table_.size());
  for (std::int64_t at = 0; at < count;) {
    std::int64_t row = (first + at) / table_step_, offset = v.offset;
    const std::int64_t begin = (first + at) % table_step_;
    const std::int64_t steps = v.size[table_axis_] - row % v.size[table_axis_];
    for (int d = table_axis_; d > 0; --d) {
      offset += row % v.size[d] * v.stride[d];
      row /= v.size[d];
    }
    offset += row * v.stride[0];
    const std::int64_t length =
        std::min({entries - begin, steps * table_step_ - begin, count - at});
    sink.table(offset, table_.data() + begin, at, length);
    at += length;
  }
}

template <class Sink>
void Walker::go(std::int64_t first, std::int64_t count, const Sink& sink) const {
  if (table_.empty()) return walk(0, first, count, sink);
  walk_table(first, count, sink);
}

template <class Sink>
void Walker::walk(std::size_t level, std::int64_t first, std::int64_t count,
                  const Sink& sink) const {
  const Level& v = levels_[level];
  const int inner = v.rank - 1;
  const bool short_rows = level + 1 == levels_.size() && inner > 0 && v.size[inner] <= kShortRun;
  std::int64_t index[kMaxRank];
  std::int64_t offset = v.offset;  // of the row, without the innermost axis
  for (int d = inner; d >= 0; --d) {
    index[d] = d > 0 ? first % v.size[d] : first;
    first /= v.size[d];
    if (d < inner) offset += index[d] * v.stride[d];
  }
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t begin = index[inner];
    if (short_rows && begin == 0 && count - at >= v.size[inner]) {
      const int outer = inner - 1;
      const std::int64_t row = index[outer];
      std::int64_t rows = std::min(v.size[outer] - row, (count - at) / v.size[inner]);
      if (!is_inside(v, index, outer) || row >= v.hi[outer]) {
        sink.invalid(at, rows * v.size[inner]);
      } else if (row < v.lo[outer]) {
        rows = std::min(rows, v.lo[outer] - row);
        sink.invalid(at, rows * v.size[inner]);
      } else {
        rows = std::min(rows, v.hi[outer] - row);
        const std::int64_t from = std::min(v.lo[inner], v.size[inner]);
        const std::int64_t to = std::clamp(v.hi[inner], from, v.size[inner]);
        sink.rows({offset, v.stride[outer], rows, v.stride[inner], v.size[inner], from, to}, at);
      }
      at += rows * v.size[inner];
      // Advances as if all but the last of these rows had been processed.
      offset += (rows - 1) * v.stride[outer];
      index[outer] += rows - 1;
      advance(v, index, offset);
      continue;
    }
    const std::int64_t length = std::min(v.size[inner] - begin, count - at);
    const bool inside = is_inside(v, index, inner);
    // The valid part of the row is [from, to).
    const std::int64_t from = inside ? std::clamp(v.lo[inner], begin, begin + length) : begin;
    const std::int64_t to = inside ? std::clamp(v.hi[inner], from, begin + length) : begin;
    if (from > begin) sink.invalid(at, from - begin);
    if (to > from) {
      segment(level, offset + from * v.stride[inner], v.stride[inner], at + from - begin, to - from,
              sink);
    }
    if (to < begin + length) sink.invalid(at + to - begin, begin + length - to);
    at += length;
    advance(v, index, offset);
  }
}

void Walker::load(const Word* data, std::int64_t first, std::int64_t count, Word* out) const {
  go(first, count, LoadSink<Word>{data, out});
}
void Walker::load(const Half* data, std::int64_t first, std::int64_t count, Word* out) const {
  go(first, count, LoadSink<Half>{data, out});
}

void Walker::offsets(std::int64_t first, std::int64_t count, Word invalid, Word* out) const {
  go(first, count, OffsetSink{invalid, out});
}

void Walker::valid(std::int64_t first, std::int64_t count, Word* out) const {
  go(first, count, ValidSink{out});
}

void Walker::store(const Word* in, std::int64_t first, std::int64_t count, Word* data) const {
  go(first, count, StoreSink<Word>{in, data});
}
void Walker::store(const Word* in, std::int64_t first, std::int64_t count, Half* data) const {
  go(first, count, StoreSink<Half>{in, data});
}

}  // namespace tensorgrad::cpu
