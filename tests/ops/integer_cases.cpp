// SPDX-License-Identifier: MIT
// Integer and boolean arguments for ops that are mostly tested with floats: wrapping and counting.
#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

// Values whose products and sums overflow the type.
Argument whole(const Shape& shape) { return {shape, -2e9, 2e9, i32}; }
Argument words(const Shape& shape) { return {shape, 0, 4e9, u32}; }
Argument booleans(const Shape& shape) { return {shape, 0, 1, boolean}; }
Argument places(const Shape& shape, double last) { return {shape, -1, last, i32}; }

void add_both(std::vector<OpCase>& to, const std::string& name, const std::vector<Shape>& shapes,
              const std::function<Tensor(T)>& apply) {
  std::vector<Argument> of_i32, of_u32;
  for (const Shape& shape : shapes) {
    of_i32.push_back(whole(shape));
    of_u32.push_back(words(shape));
  }
  to.push_back({name + "_whole_i32", of_i32, apply, false});
  to.push_back({name + "_whole_u32", of_u32, apply, false});
}

void add_bools(std::vector<OpCase>& to, const std::string& name, const std::vector<Shape>& shapes,
               const std::function<Tensor(T)>& apply) {
  std::vector<Argument> args;
  for (const Shape& shape : shapes) args.push_back(booleans(shape));
  to.push_back({name + "_of_booleans", args, apply, false});
}

void add_products(std::vector<OpCase>& to) {
  const auto product = [](T t) { return matmul(t[0], t[1]); };
  add_both(to, "matmul", {{5, 7}, {7, 3}}, product);
  add_both(to, "matmul_batch", {{2, 1, 4, 5}, {3, 5, 2}}, product);
  add_both(to, "matmul_rows", {{2, 3, 5}, {5, 4}}, product);
  add_both(to, "matmul_vector", {{7}, {7, 3}}, product);
  add_both(to, "matmul_one", {{4, 1}, {1, 1}}, product);
  add_both(to, "matmul_deep", {{2, 3000}, {3000, 3}}, product);
  add_both(to, "matmul_wide", {{65, 33}, {33, 70}}, product);
  add_both(to, "matmul_of_views", {{7, 5}, {3, 9}}, [](T t) {
    return matmul(transpose(flip(t[0], 0)), transpose(narrow(t[1], 1, 2, 7)) * 3) - 1;
  });
  add_both(to, "linear", {{2, 3, 4}, {5, 4}, {5}}, [](T t) { return linear(t[0], t[1], t[2]); });
  add_both(to, "einsum", {{2, 3, 4}, {4, 5}, {2, 3}},
           [](T t) { return einsum("bij,jk,bi->bk", {t[0], t[1], t[2]}); });
  add_both(to, "tensordot", {{2, 3, 4}, {3, 4, 2}}, [](T t) { return tensordot(t[0], t[1], 2); });
  add_both(to, "outer", {{3}, {5}}, [](T t) { return outer(t[0], t[1]); });
  add_both(to, "dot", {{600}, {600}}, [](T t) { return dot(t[0], t[1]); });
}

void add_scatters(std::vector<OpCase>& to) {
  const auto scattered = [](T t) { return scatter_add(t[0], 0, t[1], t[2]); };
  const auto added = [](T t) { return index_add(t[0], 1, t[1], t[2]); };
  // Few and many sources for each position, and widths that select each kernel variant.
  for (const std::int64_t count : {4, 3000}) {
    for (const std::int64_t width : {2, 70}) {
      const std::string name = std::to_string(count) + "x" + std::to_string(width);
      const Shape x = {9, width}, source = {count, width};
      to.push_back({"scatter_add_i32_" + name,
                    {whole(x), places(source, 9), whole(source)},
                    scattered,
                    false});
      to.push_back({"scatter_add_u32_" + name,
                    {words(x), places(source, 9), words(source)},
                    scattered,
                    false});
      to.push_back({"index_add_i32_" + name,
                    {whole({width, 9}), places({count}, 8), whole({width, count})},
                    added,
                    false});
    }
  }
  to.push_back(
      {"index_add_u32", {words({3, 4, 2}), places({5}, 3), words({3, 5, 2})}, added, false});
  to.push_back({"scatter_add_i32_between",
                {whole({5}), places({6}, 4), whole({6})},
                [](T t) { return scatter_add(t[0], 0, t[1], t[2] * 7) / 3; },
                false});
  for (const bool largest : {true, false}) {
    const auto apply = [largest](T t) {
      return largest ? scatter_max(t[0], 0, t[1], t[2]) : scatter_min(t[0], 0, t[1], t[2]);
    };
    const std::string name = largest ? "scatter_max" : "scatter_min";
    to.push_back({name + "_i32", {whole({4, 2}), places({7, 2}, 4), whole({7, 2})}, apply, false});
    to.push_back({name + "_u32", {words({4, 2}), places({7, 2}, 4), words({7, 2})}, apply, false});
  }
  const auto updated = [](T t) { return index_update(t[0], 1, t[1], t[2]); };
  to.push_back(
      {"index_update_i32", {whole({3, 5}), places({3, 1}, 4), whole({3, 2})}, updated, false});
  to.push_back(
      {"index_update_u32_of_u32", {words({3, 5}), words({3, 1}), words({3, 2})}, updated, false});
  to.push_back({"index_update_of_booleans",
                {booleans({3, 5}), places({3, 1}, 4), booleans({3, 2})},
                updated,
                false});
  to.push_back({"scatter_of_booleans",
                {booleans({5, 2}), places({3, 2}, 4), booleans({3, 2})},
                [](T t) { return scatter(t[0], 0, t[1], t[2]); },
                false});
}

void add_lines(std::vector<OpCase>& to) {
  for (const int axis : {0, 1, 2}) {
    const std::string name = std::to_string(axis);
    const std::vector<Shape> shape = {{3, 4, 5}};
    add_both(to, "cumsum_" + name, shape, [axis](T t) { return cumsum(t[0], axis); });
    add_both(to, "cumprod_" + name, shape, [axis](T t) { return cumprod(t[0], axis); });
    add_both(to, "prod_" + name, shape, [axis](T t) { return prod(t[0], axis); });
    add_bools(to, "cumsum_" + name, shape, [axis](T t) { return cumsum(t[0], axis); });
    add_bools(to, "cummax_" + name, shape, [axis](T t) { return cummax(t[0], axis).values; });
    add_bools(to, "cummin_" + name, shape, [axis](T t) { return cummin(t[0], axis).indices; });
    add_bools(to, "argmin_" + name, shape, [axis](T t) { return argmin(t[0], axis, true); });
    add_bools(to, "sort_" + name, shape, [axis](T t) { return sort(t[0], axis).values; });
  }
  add_both(to, "prod_of_all", {{3, 4, 5}}, [](T t) { return prod(t[0], {}, true); });
  // Long enough for chunks and many lanes. Factors are odd, so that no product becomes 0.
  for (const Shape& shape : {Shape{1, 100000}, {70000, 2}}) {
    const int axis = shape[0] > shape[1] ? 0 : 1;
    const std::string name = "cumprod_long_" + std::to_string(shape[0]);
    add_both(to, name, {shape}, [axis](T t) { return cumprod(bitwise_or(t[0], 1), axis); });
    add_both(to, name + "_sum", {shape}, [axis](T t) { return cumsum(t[0], axis); });
  }
  add_bools(to, "cumprod", {{3, 5}}, [](T t) { return cumprod(t[0] || !t[0], 1); });
  add_bools(to, "prod", {{3, 5}}, [](T t) { return prod(t[0], 0); });
  add_bools(to, "argsort", {{3, 9}}, [](T t) { return argsort(t[0], 1, true); });
  add_bools(to, "topk", {{3, 9}}, [](T t) { return topk(t[0], 4, 1).indices; });
}

void add_reductions(std::vector<OpCase>& to) {
  add_bools(to, "sum", {{3, 4, 5}}, [](T t) { return sum(t[0], {0, 2}); });
  add_bools(to, "sum_of_all", {{70, 90}}, [](T t) { return sum(t[0]); });
  add_bools(to, "max", {{9, 2}}, [](T t) { return max(t[0], 1); });
  add_bools(to, "min_kept", {{2, 9}}, [](T t) { return min(t[0], 0, true); });
  add_bools(to, "argmax", {{4, 5}}, [](T t) { return argmax(t[0], 1); });
  add_bools(to, "argmax_of_all", {{4, 5}}, [](T t) { return argmax(t[0] && !t[0]); });
  add_bools(to, "any", {{9, 2}}, [](T t) { return any(t[0], 1); });
  add_bools(to, "all", {{9, 2}}, [](T t) { return all(t[0], 1); });
  add_bools(to, "count_nonzero", {{9, 2}}, [](T t) { return count_nonzero(t[0], 0); });
  add_both(to, "mean_by_hand", {{4, 6}}, [](T t) { return sum(t[0] / 64, 1) / 6; });
}

void add_elementwise(std::vector<OpCase>& to) {
  add_both(to, "clamp", {{3, 5}}, [](T t) { return clamp(t[0], 7, 1e9); });
  add_both(to, "clamp_below", {{3, 5}}, [](T t) { return clamp(t[0], -kInf, 1000); });
  add_both(to, "clamp_above", {{3, 5}}, [](T t) { return clamp(t[0], 1000, kInf); });
  add_both(to, "clamp_not", {{3, 5}}, [](T t) { return clamp(t[0], -1e300, 1e300); });
  add_both(to, "clamp_between", {{3, 5}, {5}, {3, 1}},
           [](T t) { return clamp(t[0], minimum(t[1], t[2]), maximum(t[1], t[2])); });
  add_both(to, "nan_to_num", {{3, 5}}, [](T t) { return nan_to_num(t[0]) + 1; });
  add_both(to, "isinf", {{3, 5}}, [](T t) { return isinf(t[0]); });
  add_both(to, "cube", {{3, 5}}, [](T t) { return pow(t[0], 3); });
  add_both(to, "powers_of_three", {{3, 5}}, [](T t) { return pow(3, t[0]); });
  add_both(to, "logic", {{3, 5}, {5}},
           [](T t) { return logical_or(t[0] / 1000000000, !(t[1] / 1000000000)); });
  to.push_back({"logic_of_floats",
                {{{3, 5}}, {{3, 5}}},
                [](T t) { return logical_xor(floor(t[0]), logical_and(ceil(t[1]), true)); },
                false});
  add_bools(to, "bitwise", {{3, 5}, {5}, {3, 1}}, [](T t) {
    return bitwise_xor(bitwise_and(t[0], t[1]), bitwise_or(bitwise_not(t[2]), t[1]));
  });
  add_bools(to, "extremes", {{3, 5}, {5}, {3, 1}},
            [](T t) { return maximum(minimum(t[0], t[1]), t[2] && t[1]); });
}

void add_placed(std::vector<OpCase>& to) {
  add_both(to, "tril", {{4, 5}}, [](T t) { return tril(t[0]) + triu(t[0], 1); });
  add_both(to, "diag", {{4}}, [](T t) { return diag(t[0], 1); });
  add_both(to, "roll", {{4, 5}}, [](T t) { return roll(t[0], {1, -2}, {0, 1}); });
  add_both(to, "pads", {{4, 5}}, [](T t) {
    return pad(pad(pad(t[0], {1, 2}, PadMode::kReflect), {1, 1}, PadMode::kCircular), {2, 0}, 9);
  });
  add_both(to, "repeated", {{2, 3}}, [](T t) { return repeat_interleave(tile(t[0], {2}), 2, 0); });
  add_both(to, "windows", {{9}}, [](T t) { return sum(unfold(t[0], 0, 3, 2), 1); });
  add_bools(to, "placed", {{4, 4}}, [](T t) {
    return concat({tril(t[0]), diag(diagonal(t[0])), roll(flip(t[0], 1), {1}, {0})}, 1);
  });
  add_bools(to, "picked", {{4, 4}},
            [](T t) { return index_select(masked_fill(t[0], !t[0], true), 1, arange(3)); });
}

}  // namespace

std::vector<OpCase> integer_cases() {
  std::vector<OpCase> cases;
  add_products(cases);
  add_scatters(cases);
  add_lines(cases);
  add_reductions(cases);
  add_elementwise(cases);
  add_placed(cases);
  return cases;
}

}  // namespace tensorgrad::testing
