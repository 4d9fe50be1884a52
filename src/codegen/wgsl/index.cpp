// SPDX-License-Identifier: MIT
// Index arithmetic: views over the coordinates of a domain become u32 expressions. Uses coordinates
// directly instead of dividing if possible. Coordinates used by several accesses are named once.
#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kUnknownStep = 1 << 30;

// A digit of a domain axis, (name / divisor) % modulus, with the stride and mask of a view.
struct Piece {
  std::size_t axis = 0;
  std::int64_t divisor = 1, modulus = 1;
  std::int64_t stride = 0;
  std::int64_t lo = 0, hi = 0;  // valid range; 0 and modulus if unrestricted

  [[nodiscard]] bool masked() const { return lo > 0 || hi < modulus; }
};

bool is_pow2(std::int64_t value) { return (value & (value - 1)) == 0; }

int log2_of(std::int64_t value) {
  int bits = 0;
  while ((value >> bits) > 1) ++bits;
  return bits;
}

// Returns (axis / divisor) % modulus as an expression or name.
std::string digit(Scope& scope, const Axis& axis, std::int64_t divisor, std::int64_t modulus) {
  if (modulus == 1) return "0u";
  if (divisor == 1 && modulus >= axis.size) return axis.name;
  std::string text = axis.name;
  if (divisor > 1) {
    text += is_pow2(divisor) ? " >> " + std::to_string(log2_of(divisor)) + "u"
                             : " / " + u32_literal(divisor);
  }
  if (divisor * modulus < axis.size) {
    if (divisor > 1) text = "(" + text + ")";
    text += is_pow2(modulus) ? " & " + u32_literal(modulus - 1) : " % " + u32_literal(modulus);
  }
  return scope.let("c", text, {axis.name});
}

// Merges neighboring digits of one axis that have a common stride.
void merge_pieces(std::vector<Piece>& pieces) {
  std::vector<Piece> merged;  // innermost first
  for (const Piece& piece : pieces) {
    if (!merged.empty()) {
      Piece& inner = merged.back();
      if (inner.axis == piece.axis && !inner.masked() && !piece.masked() &&
          piece.divisor == inner.divisor * inner.modulus &&
          piece.stride == inner.stride * inner.modulus) {
        inner.modulus *= piece.modulus;
        inner.hi = inner.modulus;
        continue;
      }
    }
    merged.push_back(piece);
  }
  pieces = std::move(merged);
}

// Expresses the view in digits of the domain's axes, innermost first. Returns false if an axis of
// the view straddles two axes of the domain.
bool split_view(const View& view, const Domain& domain, std::vector<Piece>& pieces) {
  // Equal strides prevent simplified() from merging the domain's axes.
  View axes;
  std::vector<std::size_t> numbers;
  for (std::size_t d = 0; d < domain.size(); ++d) {
    if (domain[d].size == 1) continue;
    axes.shape.push_back(domain[d].size);
    axes.strides.push_back(1);
    numbers.push_back(d);
  }
  pieces.clear();
  if (axes.shape.empty()) return true;
  Shape cut;
  View fine;
  if (!common_cut({&axes, &view}, cut) || !recut(view, cut, fine)) return false;
  std::size_t d = numbers.size() - 1;
  std::int64_t covered = 1;
  for (std::size_t p = fine.shape.size(); p-- > 0;) {
    if (fine.shape[p] == 1) continue;
    if (covered == axes.shape[d]) {
      covered = 1;
      --d;
    }
    Piece piece{numbers[d], covered, fine.shape[p], fine.strides[p], 0, fine.shape[p]};
    if (fine.masked()) {
      piece.lo = fine.lo[p];
      piece.hi = fine.hi[p];
    }
    pieces.push_back(piece);
    covered *= piece.modulus;
  }
  merge_pieces(pieces);
  return true;
}

// Returns "c0 * 64u + c1 + 3u". Negative terms come last, so that literals do not wrap unless the
// sum does.
std::string sum_text(const std::vector<std::pair<std::string, std::int64_t>>& terms,
                     std::int64_t constant) {
  std::string plus, minus;
  for (const auto& [name, stride] : terms) {
    const std::int64_t size = std::abs(stride);
    const std::string text = size == 1 ? name : name + " * " + u32_literal(size);
    if (stride > 0) plus += (plus.empty() ? "" : " + ") + text;
    if (stride < 0) minus += " - " + text;
  }
  if (constant > 0) plus += (plus.empty() ? "" : " + ") + u32_literal(constant);
  if (constant < 0) minus += " - " + u32_literal(-constant);
  if (plus.empty()) plus = "0u";
  return plus + minus;
}

std::string range_test(const std::string& name, const Piece& piece) {
  if (piece.lo <= 0) return name + " < " + u32_literal(piece.hi);
  if (piece.hi >= piece.modulus) return name + " >= " + u32_literal(piece.lo);
  // Uses one comparison: values below `lo` wrap to a large number.
  return name + " - " + u32_literal(piece.lo) + " < " + u32_literal(piece.hi - piece.lo);
}

// Adds the offset (as place.index) and the conditions of one view.
void add_view(Scope& scope, const Domain& domain, const View& view,
              const std::vector<Piece>& pieces, ElementRef& place,
              std::vector<std::string>& tests) {
  std::vector<std::pair<std::string, std::int64_t>> terms;
  place.parts.clear();
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (piece->stride == 0 && !piece->masked()) continue;
    const std::string name = digit(scope, domain[piece->axis], piece->divisor, piece->modulus);
    if (piece->stride != 0) {
      terms.emplace_back(name, piece->stride);
      place.parts.push_back(name);
    }
    if (piece->masked()) {
      const bool empty = piece->hi <= piece->lo;
      tests.push_back(empty ? "false" : scope.let("in", range_test(name, *piece), {name}));
    }
  }
  place.index = sum_text(terms, view.offset);
}

// Returns true if the mask excludes every index. Masked axes of size 1, which splitting drops, are
// always or never valid.
bool valid_nowhere(const View& view) {
  for (std::size_t d = 0; view.masked() && d < view.shape.size(); ++d) {
    if (view.hi[d] <= view.lo[d] || view.lo[d] >= view.shape[d]) return true;
  }
  return false;
}

bool is_whole(const Domain& domain, const IndexMap& map) {
  return map.is_identity() && map.domain_size() == size_of(domain);
}

}  // namespace

std::int64_t size_of(const Domain& domain) {
  std::int64_t size = 1;
  for (const Axis& axis : domain) size *= axis.size;
  return size;
}

std::string linear_index(Scope& scope, const Domain& domain) {
  std::vector<std::pair<std::string, std::int64_t>> terms;
  std::vector<std::string> parts;
  std::int64_t stride = size_of(domain);
  for (const Axis& axis : domain) {
    stride /= axis.size;
    if (axis.size == 1) continue;
    terms.emplace_back(axis.name, stride);
    parts.push_back(axis.name);
  }
  if (terms.size() == 1 && terms[0].second == 1) return terms[0].first;
  if (terms.empty()) return "0u";
  return scope.let("i", sum_text(terms, 0), parts);
}

std::string coordinate(Scope& scope, const Domain& domain, std::int64_t divisor,
                       std::int64_t modulus) {
  std::int64_t pitch = size_of(domain);
  for (const Axis& axis : domain) {
    pitch /= axis.size;
    if (divisor % pitch != 0 || axis.size == 1) continue;
    const std::int64_t within = divisor / pitch;
    if (axis.size % within != 0 || within >= axis.size) continue;
    // Number of values of the coordinate within this axis.
    const std::int64_t digits = axis.size / within;
    const bool outermost = pitch * axis.size == size_of(domain);
    if (digits % modulus == 0 || (outermost && modulus >= digits)) {
      return digit(scope, axis, within, std::min(modulus, digits));
    }
  }
  if (divisor >= size_of(domain)) return "0u";
  const Axis flat{linear_index(scope, domain), size_of(domain)};
  return digit(scope, flat, divisor, std::min(modulus, ceil_div(flat.size, divisor)));
}

ElementRef place_of(Scope& scope, const Domain& domain, const IndexMap& map) {
  CHECK(size_of(domain) < (std::int64_t{1} << 32) - (1 << 24), "index does not fit 32 bits");
  ElementRef place;
  if (is_whole(domain, map)) {
    place.index = linear_index(scope, domain);
    for (const Axis& axis : domain) place.parts.push_back(axis.name);
    place.parts.push_back(place.index);
    return place;
  }
  std::vector<std::string> tests;
  Domain from = domain;
  for (std::size_t k = 0; k < map.views.size(); ++k) {
    const View view = map.views[k].simplified();
    if (valid_nowhere(view)) tests.emplace_back("false");
    if (k > 0) from = {{scope.let("o", place.index, place.parts), numel(view.shape)}};
    std::vector<Piece> pieces;
    if (!split_view(view, from, pieces)) {
      from = {{linear_index(scope, from), size_of(from)}};
      const bool split = split_view(view, from, pieces);
      CHECK(split, to_string(view));
    }
    add_view(scope, from, view, pieces, place, tests);
  }
  std::sort(tests.begin(), tests.end());
  tests.erase(std::unique(tests.begin(), tests.end()), tests.end());
  std::string all;
  for (const std::string& test : tests) all += (all.empty() ? "" : " && ") + test;
  place.valid = tests.size() > 1 ? scope.let("in", all, tests) : all;
  return place;
}

std::int64_t inner_step(const Domain& domain, const IndexMap& map, std::size_t axis) {
  std::vector<Piece> pieces;
  if (map.views.size() != 1 || !split_view(map.views[0].simplified(), domain, pieces)) {
    return kUnknownStep;
  }
  for (const Piece& piece : pieces) {  // innermost first
    if (piece.axis == axis) return std::abs(piece.stride);
  }
  return 0;
}

std::optional<std::int64_t> even_step(const Domain& domain, const IndexMap& map, std::size_t axis) {
  std::vector<Piece> pieces;
  if (map.views.size() != 1) return std::nullopt;
  const View view = map.views[0].simplified();
  if (view.masked() || !split_view(view, domain, pieces)) return std::nullopt;
  std::int64_t step = 0;
  for (const Piece& piece : pieces) {
    if (piece.axis != axis) continue;
    if (step != 0 || piece.divisor != 1 || piece.modulus < domain[axis].size) return std::nullopt;
    step = piece.stride;
  }
  return step;
}

VecAccess vec_access(const Domain& domain, const IndexMap& map, std::size_t axis,
                     std::int64_t count) {
  std::vector<Piece> pieces;
  if (map.views.size() != 1) return VecAccess::kOther;
  const View view = map.views[0].simplified();
  if (view.masked() || !split_view(view, domain, pieces)) return VecAccess::kOther;
  bool touching = false, aligned = view.offset % count == 0;
  for (const Piece& piece : pieces) {
    if (piece.axis == axis && piece.divisor == 1) {
      if (piece.modulus % count != 0 || piece.stride < 0 || piece.stride > 1)
        return VecAccess::kOther;
      touching = piece.stride == 1;
    } else {
      aligned &= piece.stride % count == 0;
    }
  }
  if (!touching) return VecAccess::kConstant;
  return aligned ? VecAccess::kTouching : VecAccess::kOther;
}

bool runs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis,
                std::size_t other) {
  int votes = 0;
  for (const Access& access : program.accesses) {
    if (access.level != Level::kElement) continue;
    if (inner_step(domain, access.map, axis) == 1) ++votes;
    if (inner_step(domain, access.map, other) == 1) --votes;
  }
  return votes > 0;
}

bool packs_along(const ScalarProgram& program, const Domain& domain, std::size_t axis) {
  return std::any_of(program.accesses.begin(), program.accesses.end(), [&](const Access& access) {
    std::vector<Piece> pieces;
    if (access.dtype != DType::kU32 || access.map.views.size() != 1 ||
        !split_view(access.map.views[0].simplified(), domain, pieces)) {
      return false;
    }
    const auto moves = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) {
      return piece.axis == axis && piece.stride != 0;
    });
    return moves != pieces.end() && moves->divisor > 1 && moves->stride == 1;
  });
}

}  // namespace tensorgrad::wgsl
