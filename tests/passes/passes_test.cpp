// SPDX-License-Identifier: MIT
// Each tests/passes/<pass>/*.ir holds a graph, a line `----`, and the graph after the pass. With
// TENSORGRAD_UPDATE=1, the second half is rewritten. Also tests the parser of IR text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/env.h"
#include "ops/registry.h"
#include "passes/autodiff.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/limit_concat.h"
#include "passes/fuse/limit_views.h"
#include "passes/fuse/materialize.h"
#include "passes/rematerialize.h"
#include "passes/simplify.h"
#include "passes/split_k.h"
#include "passes/split_k_to_binding_limit.h"
#include "passes/split_reduce.h"
#include "passes/split_scatter.h"
#include "support/random_graph.h"
#include "support/source_path.h"
#include "tensorgrad/error.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLine = "----\n";

// Returns the graph with the gradient of the output `loss` for every parameter x, as an output dx.
Graph differentiated(Graph graph) {
  std::vector<ValueId> wrt;
  for (ValueId id = 0; id < graph.size(); ++id) {
    if (graph[id].op == &ops::parameter) wrt.push_back(id);
  }
  const std::vector<ValueId> grads = autodiff(graph, graph.outputs.at(0).value, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    graph.outputs.push_back({"d" + graph[wrt[i]].attrs.text("name"), grads[i]});
  }
  return graph;
}

Graph run_pass(const std::string& pass, const Graph& graph) {
  if (pass == "fold") return fold(graph);
  if (pass == "simplify") return simplify(graph);
  if (pass == "cse") return cse(graph);
  if (pass == "dce") return dce(graph);
  if (pass == "split_k_to_binding_limit") return split_k_to_binding_limit(graph, 4096);
  if (pass == "split_k") return split_k(graph);
  if (pass == "split_reduce") return split_reduce(graph);
  if (pass == "split_scatter") return split_scatter(graph);
  if (pass == "rematerialize") return rematerialize(graph, {.least_bytes = 64});
  if (pass == "fuse") return fuse(graph, {});
  if (pass == "autodiff") return differentiated(graph);
  if (pass == "materialize") return materialize(graph);
  if (pass == "limit_concat") return limit_concat(graph, 3);
  if (pass == "limit_views") return limit_views(graph);
  throw std::logic_error("there is no pass " + pass);
}

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(test::source_path("tests/passes"))) {
    if (entry.path().extension() == ".ir") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Pass : public ::testing::TestWithParam<fs::path> {};

TEST_P(Pass, rewrites_the_graph_as_in_the_file) {
  std::ostringstream whole;
  whole << std::ifstream(GetParam()).rdbuf();
  const std::string text = whole.str(), name = GetParam().string();
  const std::size_t line = text.find(kLine);
  ASSERT_NE(line, std::string::npos) << name;
  const Graph before = parse(std::string_view(text).substr(0, line), name, find_op);
  const Graph after = run_pass(GetParam().parent_path().filename(), before);
  verify(after);
  if (!env("TENSORGRAD_UPDATE").empty()) {
    std::ofstream(GetParam()) << text.substr(0, line) << kLine << print(after);
    return;
  }
  EXPECT_EQ(print(after), text.substr(line + 5)) << name;
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& info) {
  return info.param.parent_path().filename().string() + "_" + info.param.stem().string();
}
INSTANTIATE_TEST_SUITE_P(Ir, Pass, ::testing::ValuesIn(files()), name_of);

void expect_refused(const std::string& text, const std::string& message) {
  try {
    static_cast<void>(parse(text, "x.ir", find_op));
    ADD_FAILURE() << "accepted: " << text;
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), message);
  }
}

TEST(IrText, errors_name_the_line_and_the_expectation) {
  const std::string x = "%0 = input() {dtype=0, name=\"x\", shape=[2]} : f32[2]\n";
  expect_refused("%1 = input()", "x.ir:1: expected %0");
  expect_refused(x + "%1 = wave(%0) : f32[2]", "x.ir:2: expected the name of an op, got 'wave'");
  expect_refused(x + "%1 = exp(%7) : f32[2]", "x.ir:2: expected the number of an earlier value");
  expect_refused(x + "%1 = exp(%0, %0) : f32[2]", "x.ir:2: expected 1 inputs of exp");
  expect_refused(x + "%1 = exp(%0) : f32[3]", "x.ir:2: expected type f32[2]");
  expect_refused(x + "%1 = exp(%0) : f8[2]", "x.ir:2: expected an element type");
  expect_refused(x + "\n%1 = exp(%0", "x.ir:3: expected ')'");
  expect_refused(x + "output y = %3", "x.ir:2: expected the number of an earlier value");
}

}  // namespace
}  // namespace tensorgrad::testing
