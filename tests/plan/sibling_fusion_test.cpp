// SPDX-License-Identifier: MIT
// Reductions of the same rows or columns as one launch (sibling fusion): fewer launches, and the
// values of the reference.
#include <algorithm>
#include <functional>

#include "support/differential.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kMerged = 1024, kApart = std::int64_t{1} << 40;  // cached elements

std::int64_t reductions(const Graph& graph, Where where, std::int64_t cached_elements) {
  CompileRequest request;
  request.name = "test";
  request.graph = graph;
  compile_for(device_at(where)->info(), request);
  request.fusing.cached_elements = cached_elements;
  const Program program = compile_graph(std::move(request)).program;
  return std::count_if(program.launches.begin(), program.launches.end(),
                       [](const Launch& launch) { return launch.is<RowLaunch>(); });
}

// Tests sizes that are multiples of the blocks of rows and columns, and sizes that are not.
void check(Where where, const std::function<void(GraphBuilder&, std::int64_t, std::int64_t)>& make,
           std::int64_t apart, std::int64_t merged) {
  constexpr std::int64_t kSizes[][2] = {{64, 128}, {70, 130}, {33, 1000}, {1000, 33}};
  for (const auto& [rows, cols] : kSizes) {
    SCOPED_TRACE(to_string(where) + " " + std::to_string(rows) + " x " + std::to_string(cols));
    GraphBuilder s;
    make(s, rows, cols);
    EXPECT_EQ(reductions(s.graph(), where, kApart), apart);
    EXPECT_EQ(reductions(s.graph(), where, kMerged), merged);
    const Verdict verdict =
        compare(s.graph(), 5,
                {{.name = "merged", .device = device_at(where), .cached_elements = kMerged},
                 {.name = "apart", .device = device_at(where), .cached_elements = kApart}});
    EXPECT_FALSE(verdict.finding) << verdict.finding->way << ": " << verdict.finding->what;
    EXPECT_GT(verdict.sharp, verdict.elements * 9 / 10);
  }
}

// The gradient of a layer norm with given statistics: the column sums of its weight and bias, and
// the row sums that the gradient of its input needs.
void norm_gradient(GraphBuilder& s, std::int64_t rows, std::int64_t cols) {
  const Tensor dy = s.input({rows, cols}), normed = s.input({rows, cols}), w = s.input({cols});
  const Tensor dx = dy * w;
  s.output("dshift", sum(dy, {0}));
  s.output("dscale", sum(dy * normed, {0}));
  s.output("mean", sum(dx, {1}));
  s.output("slope", sum(dx * normed, {1}));
}

// Reductions of different kinds, one of which returns integers.
void kinds(GraphBuilder& s, std::int64_t rows, std::int64_t cols) {
  const Tensor x = s.input({rows, cols});
  for (const int axis : {0, 1}) {
    const std::string name = axis == 0 ? "columns" : "rows";
    s.output(name + " sum", sum(square(x), {axis}));
    s.output(name + " max", max(abs(x), {axis}));
    s.output(name + " min", min(x + 1.0, {axis}));
  }
  s.output("best", argmax(x, 1));
}

// Reductions of two values that are computed by one launch.
void made_together(GraphBuilder& s, std::int64_t rows, std::int64_t cols) {
  const Tensor x = s.input({rows, cols}), p = exp(x), q = sin(p);
  s.output("p", p);
  s.output("q", q);
  s.output("sum", sum(p, {0}));
  s.output("max", max(q, {0}));
}

void check_all(Where where) {
  check(where, norm_gradient, 3, 2);
  check(where, kinds, 7, 2);
  check(where, made_together, 2, 1);
}

TEST(Siblings, share_one_launch_and_match_the_reference_on_cpu) { check_all(Where::kCpu); }
TEST(Siblings, share_one_launch_and_match_the_reference_on_webgpu) { check_all(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
