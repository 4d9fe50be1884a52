// SPDX-License-Identifier: MIT
// Views: simplification, composition and recutting.
#include "ir/view.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/check.h"
#include "base/visits.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// One axis of a view, including its mask.
struct Axis {
  std::int64_t size = 1, stride = 0, lo = 0, hi = 1;
  [[nodiscard]] bool full() const { return lo <= 0 && hi >= size; }
};

std::vector<Axis> axes_of(const View& view) {
  std::vector<Axis> axes;
  axes.reserve(view.shape.size());
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    Axis axis{view.shape[d], view.strides[d], 0, view.shape[d]};
    if (view.masked()) {
      axis.lo = view.lo[d];
      axis.hi = view.hi[d];
    }
    axes.push_back(axis);
  }
  return axes;
}

View view_of(const std::vector<Axis>& axes, std::int64_t offset) {
  View view;
  view.offset = offset;
  bool masked = false;
  for (const Axis& axis : axes) {
    view.shape.push_back(axis.size);
    view.strides.push_back(axis.stride);
    masked |= !axis.full();
  }
  if (masked) {
    for (const Axis& axis : axes) {
      view.lo.push_back(std::max<std::int64_t>(axis.lo, 0));
      view.hi.push_back(std::min(axis.hi, axis.size));
    }
  }
  return view;
}

// Returns the row-major strides of a shape.
std::vector<std::int64_t> row_major(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Splits the axes of `outer` so that none crosses an axis boundary of `inner_shape`, if possible.
// An axis (n, s) that extends past the inner axis below it becomes (n/q, s*q), (q, s).
std::vector<Axis> split_at_boundaries(const std::vector<Axis>& outer, const Shape& inner_shape) {
  const std::vector<std::int64_t> pitch = row_major(inner_shape);
  std::vector<Axis> result;
  for (Axis axis : outer) {
    std::vector<Axis> low;  // split-off parts, innermost first
    if (axis.full() && axis.stride > 0) {
      for (std::size_t d = inner_shape.size(); d-- > 0;) {
        const std::int64_t boundary = pitch[d] * inner_shape[d];  // pitch of the next outer axis
        if (d == 0 || axis.stride >= boundary || boundary % axis.stride != 0) continue;
        const std::int64_t q = boundary / axis.stride;
        if (q >= axis.size || axis.size % q != 0) continue;
        low.push_back({q, axis.stride, 0, q});
        axis = {axis.size / q, axis.stride * q, 0, axis.size / q};
      }
    }
    result.push_back(axis);
    result.insert(result.end(), low.rbegin(), low.rend());
  }
  return result;
}

// Returns the digits of a linear step over row-major `pitch`: step = sum(digits[d] * pitch[d]).
std::vector<std::int64_t> digits_of(std::int64_t step, const Shape& shape,
                                    const std::vector<std::int64_t>& pitch) {
  std::vector<std::int64_t> digits(shape.size(), 0);
  const std::int64_t sign = step < 0 ? -1 : 1;
  std::int64_t rest = std::abs(step);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    digits[d] = sign * (rest / pitch[d]);
    rest %= pitch[d];
  }
  return digits;
}

// Returns `outer` followed by `inner` as a single view, or nullopt if that is impossible.
std::optional<View> merge(const View& outer, const View& inner) {
  const std::size_t rank = inner.shape.size();
  const std::vector<std::int64_t> pitch = row_major(inner.shape);
  std::vector<Axis> axes = split_at_boundaries(axes_of(outer.simplified()), inner.shape);
  // Starts at the first valid element: the offset of a padded `outer` may be out of bounds.
  std::int64_t start = outer.offset;
  for (const Axis& axis : axes) {
    if (axis.hi <= axis.lo) return std::nullopt;  // valid nowhere
  }
  for (const Axis& axis : axes) start += axis.stride * std::max<std::int64_t>(axis.lo, 0);
  if (start < 0 || start >= numel(inner.shape)) return std::nullopt;
  const std::vector<std::int64_t> origin = digits_of(start, inner.shape, pitch);

  std::vector<std::int64_t> low = origin, high = origin, users(rank, 0);
  std::vector<std::vector<std::int64_t>> steps;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    steps.push_back(digits_of(axes[a].stride, inner.shape, pitch));
    const std::int64_t reach =
        std::min(axes[a].hi, axes[a].size) - 1 - std::max<std::int64_t>(axes[a].lo, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t step = steps[a][d];
      if (step == 0 || axes[a].size == 1) continue;
      ++users[d];
      (step > 0 ? high : low)[d] += step * reach;
    }
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (low[d] < 0 || high[d] >= inner.shape[d]) return std::nullopt;  // it would carry
  }
  std::vector<Axis> merged = axes;
  std::int64_t offset = inner.offset;
  for (std::size_t d = 0; d < rank; ++d) offset += origin[d] * inner.strides[d];
  for (std::size_t a = 0; a < axes.size(); ++a) {
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < rank; ++d) stride += steps[a][d] * inner.strides[d];
    merged[a].stride = stride;
    offset -= stride * std::max<std::int64_t>(axes[a].lo, 0);
  }
  for (std::size_t d = 0; inner.masked() && d < rank; ++d) {
    if (inner.lo[d] <= low[d] && high[d] < inner.hi[d]) continue;
    if (users[d] != 1) return std::nullopt;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::int64_t step = steps[a][d];
      if (step == 0 || axes[a].size == 1) continue;
      if (step != 1 && step != -1) return std::nullopt;
      // digit = origin + step * (i - first), which must be in [lo, hi)
      const std::int64_t first = std::max<std::int64_t>(axes[a].lo, 0);
      const std::int64_t from =
          step > 0 ? inner.lo[d] - origin[d] + first : origin[d] - (inner.hi[d] - 1) + first;
      const std::int64_t to = from + (inner.hi[d] - inner.lo[d]);
      merged[a].lo = std::max(merged[a].lo, from);
      merged[a].hi = std::max(merged[a].lo, std::min(merged[a].hi, to));
    }
  }
  return view_of(merged, offset).simplified();
}

}  // namespace

View View::contiguous(const Shape& shape) { return {shape, row_major(shape), 0, {}, {}}; }

bool View::is_identity() const {
  if (offset != 0) return false;
  const View flat = simplified();
  return !flat.masked() && (flat.shape.empty() || (flat.shape.size() == 1 && flat.strides[0] == 1));
}

View View::simplified() const {
  std::vector<Axis> axes;
  std::int64_t start = offset;
  for (const Axis& axis : axes_of(*this)) {
    if (axis.size == 1 && axis.full()) continue;
    if (!axes.empty()) {
      Axis& outer = axes.back();
      if (outer.full() && axis.full() && outer.stride == axis.stride * axis.size) {
        outer = {outer.size * axis.size, axis.stride, 0, outer.size * axis.size};
        continue;
      }
    }
    axes.push_back(axis);
  }
  return view_of(axes, start);
}

bool IndexMap::masked() const {
  return std::any_of(views.begin(), views.end(), [](const View& v) { return v.masked(); });
}

IndexMap compose(const IndexMap& outer, const View& inner) {
  visit(static_cast<std::int64_t>(outer.views.size()));
  IndexMap result = outer;
  View& last = result.views.back();
  if (inner.is_identity()) return result;
  // A slice of the leading elements is also an identity, but has fewer elements.
  const bool same_size = numel(last.shape) == numel(inner.shape);
  if (last.is_identity() && same_size && result.views.size() == 1) {
    last = inner.simplified();
    return result;
  }
  if (const std::optional<View> merged = merge(last, inner)) {
    last = *merged;
  } else {
    result.views.push_back(inner);
  }
  return result;
}

IndexMap compose(const IndexMap& outer, const IndexMap& inner) {
  IndexMap result = outer;
  for (const View& view : inner.views) result = compose(result, view);
  return result;
}

bool recut(const View& view, const Shape& cut, View& out) {
  const std::vector<Axis> axes = axes_of(view.simplified());
  std::vector<Axis> result;
  std::size_t d = cut.size();
  for (std::size_t a = axes.size(); a-- > 0;) {
    std::int64_t covered = 1;
    std::vector<Axis> parts;  // innermost first
    while (covered < axes[a].size) {
      if (d == 0) return false;
      const std::int64_t size = cut[--d];
      if (size == 1) {
        parts.push_back({1, 0, 0, 1});
        continue;
      }
      if (axes[a].size % (covered * size) != 0) return false;
      parts.push_back({size, axes[a].stride * covered, 0, size});
      covered *= size;
    }
    if (!axes[a].full()) {
      if (std::count_if(parts.begin(), parts.end(), [](const Axis& p) { return p.size > 1; }) > 1) {
        return false;
      }
      for (Axis& part : parts) {
        if (part.size > 1) part = axes[a];
      }
    }
    result.insert(result.end(), parts.begin(), parts.end());
  }
  while (d > 0) {
    if (cut[--d] != 1) return false;
    result.push_back({1, 0, 0, 1});
  }
  std::reverse(result.begin(), result.end());
  out = view_of(result, view.offset);
  return true;
}

bool common_cut(const std::vector<const View*>& views, Shape& out) {
  std::vector<std::int64_t> cuts;  // sizes of the suffixes at which a view has a boundary
  std::int64_t total = 1;
  for (const View* view : views) {
    const View flat = view->simplified();
    std::int64_t suffix = 1;
    for (std::size_t d = flat.shape.size(); d-- > 0;) {
      suffix *= flat.shape[d];
      cuts.push_back(suffix);
    }
    total = std::max(total, suffix);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  Shape shape;
  std::int64_t previous = 1;
  for (const std::int64_t cut : cuts) {
    if (cut % previous != 0) return false;
    if (cut != previous) shape.insert(shape.begin(), cut / previous);
    previous = cut;
  }
  if (shape.empty()) shape.push_back(total);
  View ignored;
  for (const View* view : views) {
    if (!recut(*view, shape, ignored)) return false;
  }
  out = shape;
  return true;
}

std::int64_t offset_at(const IndexMap& map, std::int64_t linear) {
  for (const View& view : map.views) {
    std::int64_t rest = linear, offset = view.offset;
    for (std::size_t d = view.shape.size(); d-- > 0;) {
      const std::int64_t index = rest % view.shape[d];
      rest /= view.shape[d];
      if (view.masked() && (index < view.lo[d] || index >= view.hi[d])) return -1;
      offset += index * view.strides[d];
    }
    linear = offset;
  }
  return linear;
}

namespace {

// Returns the offsets of the linear indices from low to high.
OffsetSpan span_of(const View& view, OffsetSpan linear) {
  OffsetSpan span{view.offset, view.offset};
  std::int64_t pitch = numel(view.shape);
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    pitch /= view.shape[d];
    std::int64_t from = linear.low / pitch, to = linear.high / pitch;
    // Below the first axis whose index varies, all indices occur.
    linear =
        from == to ? OffsetSpan{linear.low % pitch, linear.high % pitch} : OffsetSpan{0, pitch - 1};
    if (view.masked()) {
      from = std::max(from, view.lo[d]);
      to = std::min(to, view.hi[d] - 1);
      if (from > to) return {};
    }
    span.low += std::min(from * view.strides[d], to * view.strides[d]);
    span.high += std::max(from * view.strides[d], to * view.strides[d]);
  }
  return span;
}

}  // namespace

OffsetSpan offset_span(const IndexMap& map, std::int64_t first, std::int64_t count) {
  OffsetSpan span{first, first + count - 1};
  for (const View& view : map.views) {
    // Indices outside are masked by the previous view, whose span may be overestimated.
    span = {std::max<std::int64_t>(span.low, 0), std::min(span.high, numel(view.shape) - 1)};
    if (span.low > span.high) return {};
    span = span_of(view, span);
    if (span.low > span.high) return {};
  }
  return span;
}

bool stays_in_blocks(const IndexMap& map, std::int64_t range, std::int64_t blocks) {
  const std::int64_t domain = map.domain_size();
  if (domain % blocks != 0 || range % blocks != 0) return false;
  const std::int64_t from = domain / blocks, to = range / blocks;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const OffsetSpan span = offset_span(map, i * from, from);
    if (span.low <= span.high && (span.low < i * to || span.high >= (i + 1) * to)) return false;
  }
  return true;
}

std::string to_string(const View& view) {
  std::string text = to_string(view.shape) + ":(";
  for (std::size_t d = 0; d < view.strides.size(); ++d) {
    text += (d > 0 ? "," : "") + std::to_string(view.strides[d]);
    if (view.masked() && (view.lo[d] != 0 || view.hi[d] != view.shape[d])) {
      text += "{" + std::to_string(view.lo[d]) + ".." + std::to_string(view.hi[d]) + "}";
    }
  }
  return text + ")+" + std::to_string(view.offset);
}

std::string to_string(const IndexMap& map) {
  std::string text;
  for (const View& view : map.views) text += (text.empty() ? "" : " > ") + to_string(view);
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
