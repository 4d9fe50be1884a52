// SPDX-License-Identifier: MIT
// einsum() and ops based on it. Each step multiplies two operands as one batched matmul. An axis is
// identified by its label: a letter, or -1, -2, .. for the axes of "...", from last to first.
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Labels = std::vector<int>;

struct Labelled {
  Tensor tensor;
  Labels labels;
};

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Formula {
  std::vector<Labels> operands;
  Labels result;
};

class Parser {
 public:
  Parser(std::string_view formula, const std::vector<Tensor>& operands, Loc loc)
      : text_(formula), operands_(operands), loc_(loc) {}

  Formula parse() {
    std::string bare;
    for (const char c : text_) {
      if (c != ' ') bare += c;
    }
    const std::size_t arrow = bare.find("->");
    std::string left = bare.substr(0, arrow);
    Formula formula;
    for (std::size_t from = 0; from <= left.size();) {
      const std::size_t comma = std::min(left.find(',', from), left.size());
      if (formula.operands.size() == operands_.size()) refuse("has more operands than were passed");
      const int rank = operands_[formula.operands.size()].rank();
      formula.operands.push_back(labels(left.substr(from, comma - from), rank));
      from = comma + 1;
    }
    if (formula.operands.size() != operands_.size()) refuse("has fewer operands than were passed");
    formula.result =
        arrow == std::string::npos ? implied(formula.operands) : labels(bare.substr(arrow + 2), -1);
    for (const int label : formula.result) {
      if (std::count(formula.result.begin(), formula.result.end(), label) > 1)
        refuse("repeats a letter in its result");
      const bool known = std::any_of(formula.operands.begin(), formula.operands.end(),
                                     [&](const Labels& each) { return has(each, label); });
      if (!known) refuse("has a letter in its result that no operand has");
    }
    return formula;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ShapeError("einsum: the formula '" + std::string(text_) + "' " + what, loc_);
  }

  // Returns the labels of one term. Rank -1 denotes the result, in which "..." stands for the axes
  // of all operands.
  Labels labels(const std::string& term, int rank) {
    Labels found;
    const std::size_t dots = term.find("...");
    const auto letters = static_cast<int>(term.size()) - (dots == std::string::npos ? 0 : 3);
    const int extra = rank == -1 ? widest_ : rank - letters;
    if (rank != -1 && (extra < 0 || (extra > 0 && dots == std::string::npos)))
      refuse("does not match an operand with " + std::to_string(rank) + " axes");
    widest_ = std::max(widest_, extra);
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        for (int d = extra; d > 0; --d) found.push_back(-d);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        found.push_back(term[i]);
      } else {
        refuse(std::string("contains the invalid character '") + term[i] + "'");
      }
    }
    return found;
  }

  [[nodiscard]] Labels implied(const std::vector<Labels>& operands) const {
    std::map<int, int> times;
    for (const Labels& each : operands) {
      for (const int label : each) ++times[label];
    }
    Labels result;
    for (const auto& [label, count] : times) {
      if (label < 0 || count == 1) result.push_back(label);
    }
    return result;  // -n .. -1, then letters in alphabetical order
  }

  std::string_view text_;
  const std::vector<Tensor>& operands_;
  Loc loc_;
  int widest_ = 0;
};

// Replaces axes with a repeated label by their diagonal.
Labelled without_repeats(Labelled x, Loc loc) {
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    const auto twin = std::find(x.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                x.labels.end(), x.labels[i]);
    if (twin == x.labels.end()) continue;
    const auto first = static_cast<int>(i), second = static_cast<int>(twin - x.labels.begin());
    if (x.tensor.size(first) != x.tensor.size(second)) {
      throw ShapeError("einsum: a repeated letter has axes of different sizes in operand " +
                           to_string(x.tensor.shape()),
                       loc);
    }
    const int label = x.labels[i];
    x.tensor = diagonal(x.tensor, 0, first, second, loc);
    x.labels.erase(twin);
    x.labels.erase(x.labels.begin() + first);
    x.labels.push_back(label);
    return without_repeats(x, loc);
  }
  return x;
}

using Sizes = std::map<int, std::int64_t>;

// Returns the size of each label. An axis of size 1 matches any size.
Sizes sizes_of(const std::vector<Labelled>& operands, Loc loc) {
  Sizes sizes;
  for (const Labelled& x : operands) {
    for (std::size_t d = 0; d < x.labels.size(); ++d) {
      const std::int64_t size = x.tensor.size(static_cast<int>(d));
      std::int64_t& known = sizes.emplace(x.labels[d], size).first->second;
      if (known == 1) known = size;
      if (size == known || size == 1) continue;
      const std::string label = x.labels[d] < 0
                                    ? "an axis of '...'"
                                    : std::string("'") + static_cast<char>(x.labels[d]) + "'";
      throw ShapeError("einsum: " + label + " has sizes " + std::to_string(known) + " and " +
                           std::to_string(size),
                       loc);
    }
  }
  return sizes;
}

// Sums over the labels that are not in `wanted`.
Labelled summed(Labelled x, const Labels& wanted, Loc loc) {
  Axes axes;
  Labels left;
  for (std::size_t d = 0; d < x.labels.size(); ++d) {
    if (has(wanted, x.labels[d])) {
      left.push_back(x.labels[d]);
    } else {
      axes.list.push_back(static_cast<int>(d));
    }
  }
  if (axes.list.empty()) return x;
  upcast({&x.tensor});  // round a product of this sum, not the sum
  return {sum(x.tensor, axes, false, loc), left};
}

// Returns x with its axes in this order. Missing axes get size 1.
Tensor ordered(const Labelled& x, const Labels& order, Loc loc) {
  std::vector<int> axes;
  Shape shape;
  for (const int label : order) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), label);
    if (at != x.labels.end()) axes.push_back(static_cast<int>(at - x.labels.begin()));
    shape.push_back(at == x.labels.end() ? 1 : x.tensor.size(axes.back()));
  }
  return reshape(permute(x.tensor, axes, loc), shape, loc);
}

Shape shape_of(const Labels& labels, const Sizes& sizes) {
  Shape shape;
  for (const int label : labels) shape.push_back(sizes.at(label));
  return shape;
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Returns a times b, summed over their common labels that are not in `wanted`. Sizes must match.
Labelled multiplied(Labelled a, Labelled b, const Labels& wanted, const Sizes& sizes, Loc loc) {
  a = summed(a, joined(wanted, b.labels), loc);
  b = summed(b, joined(wanted, a.labels), loc);
  Labels batch, inner, rows, columns;
  for (const int label : a.labels) {
    if (!has(b.labels, label)) {
      rows.push_back(label);
    } else {
      (has(wanted, label) ? batch : inner).push_back(label);
    }
  }
  for (const int label : b.labels) {
    if (!has(a.labels, label)) columns.push_back(label);
  }
  const Labels labels = joined(joined(batch, rows), columns);
  if (inner.empty()) return {ordered(a, labels, loc) * ordered(b, labels, loc), labels};
  const auto count = [&](const Labels& each) { return numel(shape_of(each, sizes)); };
  const Shape left = {count(batch), count(rows), count(inner)};
  const Shape right = {count(batch), count(inner), count(columns)};
  const Tensor product =
      matmul(reshape(ordered(a, joined(joined(batch, rows), inner), loc), left, loc),
             reshape(ordered(b, joined(joined(batch, inner), columns), loc), right, loc), loc);
  return {reshape(product, shape_of(labels, sizes), loc), labels};
}

// Broadcasts all axes to their full size.
Labelled widened(const Labelled& x, const Sizes& sizes, Loc loc) {
  return {broadcast_to(x.tensor, shape_of(x.labels, sizes), loc), x.labels};
}

}  // namespace

Tensor einsum(std::string_view formula, const std::vector<Tensor>& operands, Loc loc) {
  const Composite composite("einsum", loc);
  const Formula parsed = Parser(formula, operands, loc).parse();
  const auto is = [](DType dtype) {
    return [dtype](const Tensor& operand) { return operand.dtype() == dtype; };
  };
  const bool half = std::any_of(operands.begin(), operands.end(), is(DType::kF16)) &&
                    std::none_of(operands.begin(), operands.end(), is(DType::kF32));
  std::vector<Labelled> terms;
  terms.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    terms.push_back(without_repeats({operands[i], parsed.operands[i]}, loc));
  // Intermediate products are not rounded to f16.
  if (terms.size() > 2) {
    for (Labelled& term : terms) upcast({&term.tensor});
  }
  const Sizes sizes = sizes_of(terms, loc);
  Labelled all = widened(terms.at(0), sizes, loc);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Labels wanted = parsed.result;
    for (std::size_t later = i + 1; later < terms.size(); ++later)
      wanted = joined(wanted, terms[later].labels);
    all = multiplied(all, widened(terms[i], sizes, loc), wanted, sizes, loc);
  }
  const Tensor result = ordered(summed(all, parsed.result, loc), parsed.result, loc);
  return half && result.dtype() == DType::kF32 ? cast(result, DType::kF16) : result;
}

Tensor tensordot(Tensor a, Tensor b, const std::vector<int>& a_axes, const std::vector<int>& b_axes,
                 Loc loc) {
  const Composite composite("tensordot", loc);
  const Shape left = a.shape(), right = b.shape();
  if (a_axes.size() != b_axes.size()) {
    throw ShapeError("tensordot: " + std::to_string(a_axes.size()) + " axes of a but " +
                         std::to_string(b_axes.size()) + " of b",
                     loc);
  }
  Labelled x{a, Labels(left.size())}, y{b, Labels(right.size())};
  std::iota(x.labels.begin(), x.labels.end(), 0);
  std::iota(y.labels.begin(), y.labels.end(), static_cast<int>(left.size()));
  Labels result = joined(x.labels, y.labels);
  for (std::size_t i = 0; i < a_axes.size(); ++i) {
    const auto i_a = resolve_axis(a_axes[i], left, "tensordot", loc);
    const auto i_b = resolve_axis(b_axes[i], right, "tensordot", loc);
    int& label = y.labels[static_cast<size_t>(i_b)];
    if (label < static_cast<int>(left.size()) || !has(result, static_cast<int>(i_a)))
      throw ShapeError("tensordot: an axis is repeated", loc);
    if (left[static_cast<size_t>(i_a)] != right[static_cast<size_t>(i_b)]) {
      throw ShapeError("tensordot: axis " + std::to_string(a_axes[i]) + " of a " + to_string(left) +
                           " and axis " + std::to_string(b_axes[i]) + " of b " + to_string(right) +
                           " differ in size",
                       loc);
    }
    std::erase_if(result, [&](int each) { return each == label || each == static_cast<int>(i_a); });
    label = static_cast<int>(i_a);
  }
  const Labelled product = multiplied(x, y, result, sizes_of({x, y}, loc), loc);
  return ordered(product, result, loc);
}

Tensor tensordot(Tensor a, Tensor b, int count, Loc loc) {
  const Composite composite("tensordot", loc);
  if (count < 0 || count > std::min(a.rank(), b.rank())) {
    throw ShapeError("tensordot: cannot contract " + std::to_string(count) + " axes of a " +
                         to_string(a.shape()) + " and b " + to_string(b.shape()),
                     loc);
  }
  std::vector<int> last(static_cast<size_t>(count)), first(static_cast<size_t>(count));
  std::iota(last.begin(), last.end(), a.rank() - count);
  std::iota(first.begin(), first.end(), 0);
  return tensordot(a, b, last, first, loc);
}

namespace {

void check_vectors(const char* op, Tensor a, Tensor b, Loc loc) {
  if (a.rank() == 1 && b.rank() == 1) return;
  throw ShapeError(std::string(op) + ": expected two vectors, got a " + to_string(a.shape()) +
                       ", b " + to_string(b.shape()),
                   loc);
}

}  // namespace

Tensor outer(Tensor a, Tensor b, Loc loc) {
  const Composite composite("outer", loc);
  check_vectors("outer", a, b, loc);
  return unsqueeze(a, 1, loc) * unsqueeze(b, 0, loc);
}

Tensor dot(Tensor a, Tensor b, Loc loc) {
  const Composite composite("dot", loc);
  check_vectors("dot", a, b, loc);
  if (a.shape() != b.shape()) {
    throw ShapeError("dot: sizes differ: a " + to_string(a.shape()) + ", b " + to_string(b.shape()),
                     loc);
  }
  const Upcast downcast(std::vector<Tensor*>{&a, &b});
  return downcast(sum(a * b, {}, false, loc));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
