// SPDX-License-Identifier: MIT
// Ops that create, view, place and index tensors, composed of the ops in views.cpp.
#include "tensorgrad/ops/indexing.h"
#include "tensorgrad/functional/activations.h"
#include "tensorgrad/ops/creation.h"
#include "tensorgrad/ops/manipulation.h"
#include "tensorgrad/ops/reduction.h"
#include "tensorgrad/ops/views.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

int resolved_axis(const char* op, int axis, Tensor x, Loc loc) {
  return static_cast<int>(resolve_axis(axis, x.shape(), op, loc));
}

void check_count(const char* op, const char* what, std::int64_t count, std::int64_t least,
                 Loc loc) {
  if (count >= least) return;
  throw ShapeError(std::string(op) + ": expected " + what + " of at least " +
                       std::to_string(least) + ", got " + std::to_string(count),
                   loc);
}

void check_vector(const char* op, Tensor x, Loc loc) {
  if (x.rank() == 1) return;
  throw ShapeError(std::string(op) + ": expected a vector, got " + to_string(x.shape()), loc);
}

}  // namespace

// ---- creation ----------------------------------------------------------------------------------

Tensor full_like(Tensor x, double value, Loc loc) {
  const Composite composite("full_like", loc);
  return full(x.shape(), value, x.dtype(), loc);
}

Tensor zeros_like(Tensor x, Loc loc) {
  const Composite composite("zeros_like", loc);
  return full(x.shape(), 0, x.dtype(), loc);
}

Tensor ones_like(Tensor x, Loc loc) {
  const Composite composite("ones_like", loc);
  return full(x.shape(), 1, x.dtype(), loc);
}

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, Loc loc) {
  const Composite composite("eye", loc);
  const Shape shape = {rows, columns == -1 ? rows : columns};
  return cast(eq(iota(shape, 0, i32, loc), iota(shape, 1, i32, loc)), dtype);
}

// Computes elements from both ends, so that first and last are exact.
Tensor linspace(double first, double last, std::int64_t n, Loc loc) {
  const Composite composite("linspace", loc);
  const Tensor i = arange(n, f32, loc);
  if (n == 1) return i + first;
  const double step = (last - first) / static_cast<double>(n - 1);
  const Tensor left = static_cast<double>(n - 1) - i;
  return where(lt(i, left), first + step * i, last - step * left);
}

Tensor one_hot(Tensor index, std::int64_t classes, DType dtype, Loc loc) {
  const Composite composite("one_hot", loc);
  if (index.dtype() != DType::kI32 && index.dtype() != DType::kU32) {
    throw DtypeError(
        "one_hot: expected an i32 or u32 index, got " + std::string(to_string(index.dtype())), loc);
  }
  check_count("one_hot", "a number of classes", classes, 1, loc);
  return cast(eq(unsqueeze(index, -1, loc), arange(classes, index.dtype(), loc)), dtype);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, Loc loc) {
  const Composite composite("meshgrid", loc);
  Shape shape;
  for (const Tensor& vector : vectors) {
    check_vector("meshgrid", vector, loc);
    shape.push_back(vector.size(0));
  }
  std::vector<Tensor> grids;
  for (std::size_t d = 0; d < vectors.size(); ++d) {
    Shape own(shape.size(), 1);
    own[d] = shape[d];
    grids.push_back(broadcast_to(reshape(vectors[d], own, loc), shape, loc));
  }
  return grids;
}

// ---- views -------------------------------------------------------------------------------------

Tensor swapaxes(Tensor x, int a, int b, Loc loc) {
  const Composite composite("swapaxes", loc);
  return transpose(x, a, b, loc);
}

Tensor movedim(Tensor x, const std::vector<int>& from, const std::vector<int>& to, Loc loc) {
  const Composite composite("movedim", loc);
  if (from.size() != to.size()) {
    throw ShapeError("movedim: " + std::to_string(from.size()) + " source axes but " +
                         std::to_string(to.size()) + " destinations",
                     loc);
  }
  const Shape shape = x.shape();
  std::vector<int> axes(shape.size(), -1);
  std::vector<bool> moved(shape.size(), false);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const int source = resolved_axis("movedim", from[i], x, loc),
              place = resolved_axis("movedim", to[i], x, loc);
    if (moved[static_cast<size_t>(source)] || axes[static_cast<size_t>(place)] != -1)
      throw ShapeError("movedim: an axis is repeated", loc);
    axes[static_cast<size_t>(place)] = source;
    moved[static_cast<size_t>(source)] = true;
  }
  int next = 0;
  for (int& axis : axes) {
    if (axis != -1) continue;
    while (moved[static_cast<size_t>(next)]) ++next;
    axis = next++;
  }
  return permute(x, axes, loc);
}

Tensor expand(Tensor x, const Shape& shape, Loc loc) {
  const Composite composite("expand", loc);
  const Shape from = x.shape();
  Shape to = shape;
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    std::int64_t& size = to[to.size() - 1 - i];
    if (size == -1) size = from[from.size() - 1 - i];
  }
  return broadcast_to(x, to, loc);
}

std::vector<Tensor> split(Tensor x, const std::vector<std::int64_t>& sizes, int axis, Loc loc) {
  const Composite composite("split", loc);
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (total != x.size(axis)) {
    throw ShapeError("split: sizes summing to " + std::to_string(total) + " do not match axis " +
                         std::to_string(axis) + " of " + to_string(x.shape()),
                     loc);
  }
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(narrow(x, axis, start, size, loc));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(Tensor x, std::int64_t size, int axis, Loc loc) {
  const Composite composite("split", loc);
  check_count("split", "a size", size, 1, loc);
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = x.size(axis); left > 0; left -= size)
    sizes.push_back(std::min(left, size));
  return split(x, sizes, axis, loc);
}

std::vector<Tensor> chunk(Tensor x, std::int64_t count, int axis, Loc loc) {
  const Composite composite("chunk", loc);
  check_count("chunk", "a number of chunks", count, 1, loc);
  return split(x, (x.size(axis) + count - 1) / count, axis, loc);
}

std::vector<Tensor> unbind(Tensor x, int axis, Loc loc) {
  const Composite composite("unbind", loc);
  std::vector<Tensor> parts;
  parts.reserve(static_cast<std::size_t>(x.size(axis)));
  for (std::int64_t i = 0; i < x.size(axis); ++i)
    parts.push_back(squeeze(narrow(x, axis, i, 1, loc), axis, loc));
  return parts;
}

// In [.., n, n] read as rows of n + 1 elements, the diagonal is the first column.
Tensor diagonal(Tensor x, std::int64_t offset, int axis1, int axis2, Loc loc) {
  const Composite composite("diagonal", loc);
  const int rows = resolved_axis("diagonal", axis1, x, loc),
            columns = resolved_axis("diagonal", axis2, x, loc);
  if (rows == columns) throw ShapeError("diagonal: an axis is repeated", loc);
  const std::int64_t below = std::max<std::int64_t>(-offset, 0),
                     right = std::max<std::int64_t>(offset, 0);
  const std::int64_t n = std::min(x.size(rows) - below, x.size(columns) - right);
  if (n < 1) {
    throw ShapeError(
        "diagonal: " + to_string(x.shape()) + " has no diagonal " + std::to_string(offset), loc);
  }
  const Tensor square = narrow(narrow(x, rows, below, n, loc), columns, right, n, loc);
  const Tensor last = movedim(square, {rows, columns}, {-2, -1}, loc);
  Shape shape = last.shape();
  shape.resize(shape.size() - 2);
  Shape flat = shape, sheared = shape;
  flat.push_back(n * n);
  sheared.insert(sheared.end(), {n, n + 1});
  const Tensor padded = pad(reshape(last, flat, loc), {0, n}, 0, loc);
  return squeeze(narrow(reshape(padded, sheared, loc), -1, 0, 1, loc), -1, loc);
}

// ---- placement ---------------------------------------------------------------------------------

namespace {

// Returns the column index minus the row index, for the last two axes.
Tensor distance_from_diagonal(const char* op, Tensor x, Loc loc) {
  if (x.rank() < 2) {
    throw ShapeError(std::string(op) + ": expected at least two axes, got " + to_string(x.shape()),
                     loc);
  }
  const Shape shape = {x.size(-2), x.size(-1)};
  return iota(shape, 1, i32, loc) - iota(shape, 0, i32, loc);
}

}  // namespace

Tensor tril(Tensor x, std::int64_t k, Loc loc) {
  const Composite composite("tril", loc);
  return where(le(distance_from_diagonal("tril", x, loc), k), x, 0);
}

Tensor triu(Tensor x, std::int64_t k, Loc loc) {
  const Composite composite("triu", loc);
  return where(ge(distance_from_diagonal("triu", x, loc), k), x, 0);
}

Tensor diag(Tensor x, std::int64_t k, Loc loc) {
  const Composite composite("diag", loc);
  if (x.rank() == 2) return diagonal(x, k, 0, 1, loc);
  check_vector("diag", x, loc);
  const std::int64_t away = std::abs(k), n = x.size(0) + away;
  // Row i has element i, or element i - |k| if k < 0.
  const Tensor rows = k >= 0 ? pad(x, {0, away}, 0, loc) : pad(x, {away, 0}, 0, loc);
  const Tensor all = broadcast_to(unsqueeze(rows, 1, loc), {n, n}, loc);
  return where(eq(distance_from_diagonal("diag", all, loc), k), all, 0);
}

Tensor roll(Tensor x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes,
            Loc loc) {
  const Composite composite("roll", loc);
  if (shifts.size() != axes.size()) {
    throw ShapeError("roll: " + std::to_string(shifts.size()) + " shifts for " +
                         std::to_string(axes.size()) + " axes",
                     loc);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t size = x.size(axes[i]), shift = (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    x = concat(
        {narrow(x, axes[i], size - shift, shift, loc), narrow(x, axes[i], 0, size - shift, loc)},
        axes[i], loc);
  }
  return x;
}

namespace {

// `counts` must have at least one entry for each axis.
Tensor tiled(const char* op, Tensor x, std::vector<std::int64_t> counts, Loc loc) {
  Shape own = x.shape();
  own.insert(own.begin(), counts.size() - own.size(), 1);
  Shape apart, wide, joined;
  for (std::size_t d = 0; d < own.size(); ++d) {
    check_count(op, "a count", counts[d], 1, loc);
    apart.insert(apart.end(), {1, own[d]});
    wide.insert(wide.end(), {counts[d], own[d]});
    joined.push_back(counts[d] * own[d]);
  }
  return reshape(broadcast_to(reshape(x, apart, loc), wide, loc), joined, loc);
}

}  // namespace

Tensor tile(Tensor x, const std::vector<std::int64_t>& counts, Loc loc) {
  const Composite composite("tile", loc);
  std::vector<std::int64_t> all = counts;
  const auto rank = static_cast<size_t>(x.rank());
  if (all.size() < rank) all.insert(all.begin(), rank - all.size(), 1);
  return tiled("tile", x, all, loc);
}

Tensor repeat(Tensor x, const std::vector<std::int64_t>& counts, Loc loc) {
  const Composite composite("repeat", loc);
  if (counts.size() < static_cast<size_t>(x.rank())) {
    throw ShapeError("repeat: expected one count per axis of " + to_string(x.shape()) + ", got " +
                         std::to_string(counts.size()),
                     loc);
  }
  return tiled("repeat", x, counts, loc);
}

Tensor repeat_interleave(Tensor x, std::int64_t count, int axis, Loc loc) {
  const Composite composite("repeat_interleave", loc);
  check_count("repeat_interleave", "a count", count, 1, loc);
  const int d = resolved_axis("repeat_interleave", axis, x, loc);
  const Tensor apart = unsqueeze(x, d + 1, loc);
  Shape wide = apart.shape(), joined = x.shape();
  wide[static_cast<size_t>(d) + 1] = count;
  joined[static_cast<size_t>(d)] *= count;
  return reshape(broadcast_to(apart, wide, loc), joined, loc);
}

namespace {

// Returns the `count` padding elements before (or after) the elements of an axis.
Tensor margin(Tensor x, int axis, std::int64_t count, bool before, PadMode mode, Loc loc) {
  const std::int64_t size = x.size(axis);
  const std::int64_t available = mode == PadMode::kReflect    ? size - 1
                                 : mode == PadMode::kCircular ? size
                                                              : count;
  if (count > available) {
    throw ShapeError("pad: axis " + std::to_string(axis) + " of " + to_string(x.shape()) + " has " +
                         std::to_string(available) + " elements to pad with, got " +
                         std::to_string(count),
                     loc);
  }
  switch (mode) {
    case PadMode::kReflect:
      return flip(narrow(x, axis, before ? 1 : size - 1 - count, count, loc), axis, loc);
    case PadMode::kCircular: return narrow(x, axis, before ? size - count : 0, count, loc);
    case PadMode::kReplicate: break;
  }
  Shape wide = x.shape();
  wide[static_cast<size_t>(axis)] = count;
  return broadcast_to(narrow(x, axis, before ? 0 : size - 1, 1, loc), wide, loc);
}

}  // namespace

Tensor pad(Tensor x, const std::vector<std::int64_t>& amounts, PadMode mode, Loc loc) {
  const Composite composite("pad", loc);
  const int rank = x.rank();
  if (amounts.size() % 2 != 0 || amounts.size() / 2 > static_cast<size_t>(rank)) {
    throw ShapeError("pad: expected pairs of amounts for the last axes of " + to_string(x.shape()) +
                         ", got " + std::to_string(amounts.size()) + " numbers",
                     loc);
  }
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    const int axis = rank - 1 - static_cast<int>(i);
    const std::int64_t before = amounts[2 * i], after = amounts[2 * i + 1];
    check_count("pad", "an amount", std::min(before, after), 0, loc);
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(margin(x, axis, before, true, mode, loc));
    parts.push_back(x);
    if (after > 0) parts.push_back(margin(x, axis, after, false, mode, loc));
    x = concat(parts, axis, loc);
  }
  return x;
}

Tensor masked_fill(Tensor x, Tensor mask, Operand value, Loc loc) {
  const Composite composite("masked_fill", loc);
  return where(mask, value, x);
}

// ---- indexing ----------------------------------------------------------------------------------

namespace {

// Broadcasts a vector along an axis to the other axes of `shape`.
Tensor along_axis(const char* op, Tensor index, Shape shape, int axis, Loc loc) {
  check_vector(op, index, loc);
  Shape own(shape.size(), 1);
  own[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)] = index.size(0);
  return broadcast_to(reshape(index, own, loc), shape, loc);
}

}  // namespace

Tensor index_select(Tensor x, int axis, Tensor index, Loc loc) {
  const Composite composite("index_select", loc);
  const int d = resolved_axis("index_select", axis, x, loc);
  return gather(x, d, along_axis("index_select", index, x.shape(), d, loc), loc);
}

Tensor take_along_dim(Tensor x, Tensor index, int axis, Loc loc) {
  const Composite composite("take_along_dim", loc);
  if (x.rank() != index.rank()) {
    throw ShapeError("take_along_dim: x " + to_string(x.shape()) + " and index " +
                         to_string(index.shape()) + " differ in the number of axes",
                     loc);
  }
  const auto d = static_cast<size_t>(resolved_axis("take_along_dim", axis, x, loc));
  Shape of_x = x.shape(), of_index = index.shape();
  const std::int64_t size = of_x[d], count = of_index[d];
  of_x[d] = of_index[d] = 1;
  Shape common = broadcast_shapes(of_x, of_index, "take_along_dim", loc);
  common[d] = size;
  const Tensor wide = broadcast_to(x, common, loc);
  common[d] = count;
  return gather(wide, static_cast<int>(d), broadcast_to(index, common, loc), loc);
}

namespace {

// Checks the operands and returns the axis from the front.
int check_scatter(const char* op, const Tensor& x, int axis, const Tensor& index,
                  const Tensor& source, Loc loc) {
  const int d = resolved_axis(op, axis, x, loc);
  if (index.dtype() != DType::kI32 && index.dtype() != DType::kU32) {
    throw DtypeError(std::string(op) + ": expected an i32 or u32 index, got " +
                         std::string(to_string(index.dtype())),
                     loc);
  }
  Shape expected = x.shape();
  if (index.rank() == x.rank()) expected[static_cast<size_t>(d)] = index.size(d);
  if (index.shape() == expected && source.shape() == expected) return d;
  throw ShapeError(std::string(op) + ": index and source must match x " + to_string(x.shape()) +
                       " except on axis " + std::to_string(axis) + ", got " +
                       to_string(index.shape()) + " and " + to_string(source.shape()),
                   loc);
}

// Up to this size of the axis or of the index, all pairs are compared; beyond, the index is sorted.
constexpr std::int64_t kFewPlaces = 64;

// For each of `size` positions along axis d, returns 1 plus the last position of `index` that holds
// it, or 0 if none does. Compares all pairs.
Tensor last_of_pairs(Tensor index, int d, std::int64_t size, Loc loc) {
  Shape pairs = index.shape();  // [.., place, position, ..]
  pairs.insert(pairs.begin() + d, size);
  const Tensor hits = eq(unsqueeze(index, d, loc), iota(pairs, d, index.dtype(), loc));
  return max(where(hits, iota(pairs, d + 1, i32, loc) + 1, 0), d + 1, false, loc);
}

// Like last_of_pairs(), but with a stable sort. For each position, a binary search finds the last
// sorted entry that is not larger.
Tensor last_of_sorted(Tensor index, int d, std::int64_t size, Loc loc) {
  const std::int64_t count = index.size(d);
  const Tensor order = argsort(index, d, false, loc), sorted = gather(index, d, order, loc);
  Shape places = index.shape();
  places[static_cast<size_t>(d)] = size;
  const Tensor place = iota(places, d, index.dtype(), loc);
  Tensor found = full(places, 0, i32, loc);  // number of entries that are not larger
  std::int64_t step = 1;
  while (step * 2 <= count) step *= 2;
  for (; step > 0; step /= 2) {
    const Tensor next = found + step;
    const Tensor least = gather(sorted, d, minimum(next, count) - 1, loc);
    found = where(le(next, count) && le(least, place), next, found);
  }
  const Tensor last = maximum(found, 1) - 1;
  const Tensor hit = gt(found, 0) && eq(gather(sorted, d, last, loc), place);
  return where(hit, gather(order, d, last, loc) + 1, 0);
}

}  // namespace

Tensor scatter(Tensor x, int axis, Tensor index, Tensor source, Loc loc) {
  const Composite composite("scatter", loc);
  const int d = check_scatter("scatter", x, axis, index, source, loc);
  const bool few = std::min(x.size(d), index.size(d)) <= kFewPlaces;
  const Tensor last =
      few ? last_of_pairs(index, d, x.size(d), loc) : last_of_sorted(index, d, x.size(d), loc);
  return where(gt(last, 0), gather(source, d, last - 1, loc), x);
}

namespace {

// Among elements with the same target, scatter() takes the last one. After sorting, this is the
// largest (or smallest).
Tensor scatter_largest(Tensor x, int d, Tensor index, Tensor source, bool largest, Loc loc) {
  const Tensor order = argsort(source, d, !largest, loc);
  const Tensor best =
      scatter(x, d, gather(index, d, order, loc), gather(source, d, order, loc), loc);
  return largest ? maximum({x, loc}, {best, loc}) : minimum({x, loc}, {best, loc});
}

Tensor scatter_extreme(const char* op, Tensor x, int axis, Tensor index, Tensor source,
                       bool largest, Loc loc) {
  const Composite composite(op, loc);
  const int d = check_scatter(op, x, axis, index, source, loc);
  const Upcast downcast(std::vector<Tensor*>{&x, &source});
  const DType dtype = x.dtype();
  if ((dtype != f32 && dtype != i32 && dtype != u32) || source.dtype() != dtype) {
    throw DtypeError(std::string(op) + ": expected f32, f16, i32 or u32 for x and source, got " +
                         std::string(to_string(dtype)) + " and " +
                         std::string(to_string(source.dtype())),
                     loc);
  }
  // argsort() orders NaN as the largest, so a maximum returns it. A minimum does too if it is
  // computed by negation.
  const bool negated = !largest && dtype == f32;
  return downcast(negated ? -scatter_largest(-x, d, index, -source, true, loc)
                          : scatter_largest(x, d, index, source, largest, loc));
}

}  // namespace

Tensor scatter_max(Tensor x, int axis, Tensor index, Tensor source, Loc loc) {
  return scatter_extreme("scatter_max", x, axis, index, source, true, loc);
}
Tensor scatter_min(Tensor x, int axis, Tensor index, Tensor source, Loc loc) {
  return scatter_extreme("scatter_min", x, axis, index, source, false, loc);
}

Tensor segment_softmax(Tensor x, Tensor segments, std::int64_t count, int axis, Loc loc) {
  const Composite composite("segment_softmax", loc);
  const Upcast downcast(x);
  const int d = resolved_axis("segment_softmax", axis, x, loc);
  const Tensor index = along_axis("segment_softmax", segments, x.shape(), d, loc);
  if (segments.size(0) != x.size(d)) {
    throw ShapeError("segment_softmax: expected a segment for each of the " +
                         std::to_string(x.size(d)) + " elements of axis " + std::to_string(axis) +
                         " of " + to_string(x.shape()) + ", got " +
                         std::to_string(segments.size(0)),
                     loc);
  }
  if (count < 1) {
    throw ShapeError(
        "segment_softmax: expected a count of at least 1, got " + std::to_string(count), loc);
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(d)] = count;
  constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
  const Tensor most =
      gather(scatter_max(full(shape, kMinusInfinity, f32, loc), d, index, detach({x, loc}), loc), d,
             index, loc);
  const Tensor powers = exp(x - where(eq(most, kMinusInfinity), 0.0, most));
  const Tensor sums = scatter_add(zeros(shape, f32, loc), d, index, powers, loc);
  const Tensor known = index.dtype() == u32 ? lt(index, count) : ge(index, 0) && lt(index, count);
  return downcast(where(known, powers / where(known, gather(sums, d, index, loc), 1.0), 0.0));
}

Tensor index_add(Tensor x, int axis, Tensor index, Tensor source, Loc loc) {
  const Composite composite("index_add", loc);
  const int d = resolved_axis("index_add", axis, x, loc);
  return scatter_add(x, d, along_axis("index_add", index, x.shape(), d, loc), source, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
