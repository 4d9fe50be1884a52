// SPDX-License-Identifier: MIT
// topk() by selection: the same places as the start of a whole sort, in every case of ties, zeros
// of both signs and NaN.
#include <algorithm>
#include <limits>

#include "kernel/topk.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

struct Lines {
  Shape shape;
  int axis;
  std::int64_t k;
};
// k <= 8 is selected only for integers. 1,024 is the largest k that is selected.
const Lines kLines[] = {{{1, 10}, 1, 9},      {{3, 255}, 1, 16},   {{2, 256, 3}, 1, 255},
                        {{2, 257, 3}, 1, 33}, {{40, 7}, 0, 17},    {{70, 700}, 1, 50},
                        {{1, 4100}, 1, 1024}, {{2, 66000}, 1, 20}, {{1, 100000}, 1, 1000}};
const Lines kShortLines[] = {{{5, 2}, 1, 1}, {{3, 9}, 1, 8}, {{2, 70000}, 1, 1}};

std::int64_t count_selections(const Graph& graph) {
  const Program program = compile_for_test(graph, 8).program;
  return std::count_if(program.launches.begin(), program.launches.end(),
                       [](const Launch& l) { return find_kernel<TopkKernel>(l) != nullptr; });
}

// Sorting long lines takes minutes on a software adapter, so only the CPU runs both.
void check_selection(const Lines& lines, DType dtype, const Values& values, Where where) {
  SCOPED_TRACE(tensorgrad::to_string(Type{dtype, lines.shape}) + ", k " + std::to_string(lines.k));
  GraphBuilder s;
  const Tensor x = s.input(lines.shape, dtype, values);
  for (const bool largest : {true, false}) {
    const std::string name = largest ? "largest" : "smallest";
    const ValuesAndIndices top = topk(x, lines.k, lines.axis, largest);
    s.output(name, top.indices);
    s.output(name + " values", top.values);
    if (where != Where::kCpu) continue;
    const Tensor order = argsort(x, lines.axis, largest);
    s.output(name + " of sort", narrow(order, lines.axis, 0, lines.k));
  }
  EXPECT_EQ(count_selections(s.graph()), 2);
  const ValueMap got = run_graph(s.graph(), s.leaves, where);
  if (where == Where::kCpu) {
    for (const char* name : {"largest", "smallest"})
      EXPECT_EQ(got.at(name), got.at(name + std::string(" of sort"))) << name;
  }
  expect_close(s.graph(), got, interpret_graph(s.graph(), s.leaves), 0, "as a stable sort");
}

Values drawn_from(const Values& choices, std::int64_t count) {
  Draw draw(7);
  Values values;
  const auto last = static_cast<std::int64_t>(choices.size()) - 1;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(choices[static_cast<std::size_t>(draw.whole(0, last))]);
  return values;
}

void check_all(Where where) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Lines& lines : kLines) {
    const std::int64_t count = numel(lines.shape);
    check_selection(lines, f32, drawn_from({0.0, -0.0, 1, -1, inf, -inf, nan}, count), where);
    check_selection(lines, i32, Draw(2).values(i32, count, -40, 40), where);
    if (where != Where::kCpu) continue;  // which takes minutes with a software adapter
    check_selection(lines, f32, Draw(1).values(f32, count, -3, 3), where);
    check_selection(lines, f32, Values(static_cast<std::size_t>(count), 2.5), where);
    check_selection(lines, i32, drawn_from({-2147483648.0, 2147483647, -1, 0}, count), where);
    check_selection(lines, u32, drawn_from({4294967295, 2147483648, 7, 0}, count), where);
  }
  for (const Lines& lines : kShortLines) {
    const std::int64_t count = numel(lines.shape);
    check_selection(lines, u32, drawn_from({4294967295, 3, 3000000000, 0}, count), where);
    if (where != Where::kCpu) continue;
    check_selection(lines, i32, Draw(3).values(i32, count, -1000000, 1000000), where);
  }
}

TEST(Topk, selects_the_start_of_a_sort_on_cpu) { check_all(Where::kCpu); }
TEST(Topk, selects_the_start_of_a_sort_on_webgpu) { check_all(Where::kWebGpu); }

// Rising and falling lines: every element, or none after the first, is better than all before.
TEST(Topk, of_lines_in_order_is_right_on_cpu) {
  Values values;
  for (int i = 0; i < 20000; ++i) values.push_back(i);
  for (int i = 0; i < 20000; ++i) values.push_back(-i);
  check_selection({{2, 20000}, 1, 100}, f32, values, Where::kCpu);
  check_selection({{2, 20000}, 1, 1000}, i32, values, Where::kCpu);
}

// Splits between rows, as the operand exceeds the binding limit.
TEST(Topk, is_split_by_rows_on_webgpu) {
  GraphBuilder s;
  const Tensor x = s.input({12, 300});
  s.output("top", topk(x * 2.0, 20).indices);
  const std::int64_t most = 4096;  // of 14,400 bytes
  const Compiled cut = compile_for_test(s.graph(), 8, most);
  EXPECT_GT(std::count_if(cut.program.launches.begin(), cut.program.launches.end(),
                          [](const Launch& l) { return find_kernel<TopkKernel>(l) != nullptr; }),
            3);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 0, most),
               interpret_graph(s.graph(), s.leaves), 0, "in parts");
}

}  // namespace
}  // namespace tensorgrad::testing
