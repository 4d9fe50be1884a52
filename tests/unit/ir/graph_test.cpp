// SPDX-License-Identifier: MIT
// Graphs: errors of add() and verify(), what hash() distinguishes, and attributes.
#include "ir/graph.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kF32 = 0;

ValueId add_input(Graph& graph, const std::string& name, const Shape& shape) {
  return graph.add(ops::input, {}, {{"name", name}, {"dtype", kF32}, {"shape", shape}});
}

// Returns the graph of exp(x + x) for x f32[2,3].
Graph small() {
  Graph graph;
  const ValueId x = add_input(graph, "x", {2, 3});
  const ValueId sum = graph.add(ops::add, {x, x}, {}, SourceLocation("model.cpp", 3), "twice");
  graph.outputs.push_back({"y", graph.add(ops::exp, {sum})});
  return graph;
}

TEST(Graph, add_infers_the_type_and_keeps_location_and_origin) {
  const Graph graph = small();
  EXPECT_EQ(graph[2].type, (Type{f32, {2, 3}}));
  EXPECT_EQ(graph[1].location.line, 3U);
  EXPECT_EQ(graph[1].origin, "twice");
  EXPECT_EQ(users_of(graph)[0], (std::vector<ValueId>{1, 1}));
  EXPECT_EQ(graph.find_leaf(ops::input, "x"), 0);
  EXPECT_EQ(graph.find_leaf(ops::input, "z"), kNoValue);
}

TEST(Graph, add_error_names_the_op_or_the_composite) {
  Graph graph;
  const ValueId a = add_input(graph, "a", {2}), b = add_input(graph, "b", {3});
  const auto message = [&](std::string_view name) -> std::string {
    try {
      graph.add(ops::add, {a, b}, {}, SourceLocation("model.cpp", 9), {}, name);
    } catch (const ShapeError& error) {
      EXPECT_EQ(error.location().line, 9U);
      return error.message();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message({}).rfind("add: ", 0), 0U) << message({});
  EXPECT_EQ(message("gelu").rfind("gelu: ", 0), 0U) << message("gelu");
  EXPECT_EQ(graph.size(), 2) << "what is refused is not added";
}

TEST(Graph, verify_finds_broken_graphs) {
  verify(small());
  const auto broken = [](const std::function<void(Graph&)>& spoil) {
    Graph graph = small();
    spoil(graph);
    EXPECT_THROW(verify(graph), InternalError);
  };
  broken([](Graph& g) { g[1].inputs = {0}; });
  broken([](Graph& g) { g[1].inputs = {0, 2}; });
  broken([](Graph& g) { g[1].inputs = {0, -1}; });
  broken([](Graph& g) { g[2].type.shape = {3, 2}; });
  broken([](Graph& g) { g[2].op = nullptr; });
  broken([](Graph& g) { g.outputs[0].value = 3; });
  broken([](Graph& g) { g.updates.push_back({1, 2}); });
  broken([](Graph& g) { g.updates.push_back({0, 5}); });
}

TEST(Graph, hash_ignores_lines_and_origins) {
  const std::uint64_t want = hash(small());
  Graph same = small();
  same[1].location = SourceLocation("other.cpp", 7);
  same[1].origin = "other";
  EXPECT_EQ(hash(same), want);
  const auto differs = [&](const std::function<void(Graph&)>& change) {
    Graph graph = small();
    change(graph);
    EXPECT_NE(hash(graph), want);
  };
  differs([](Graph& g) { g[2].op = &ops::log; });
  differs([](Graph& g) { g[2].inputs = {0}; });
  differs([](Graph& g) { g[0].attrs.set("name", "z"); });
  differs([](Graph& g) { g[0].type.shape = {6}; });
  differs([](Graph& g) { g.outputs[0].name = "z"; });
  differs([](Graph& g) { g.outputs[0].value = 1; });
  differs([](Graph& g) { g.updates.push_back({0, 1}); });
}

TEST(Graph, rewrite_renumbers_inputs_outputs_and_updates) {
  Graph graph = small();
  graph.updates.push_back({0, 2});
  const Graph out = rewrite_graph(graph, [](Graph& to, const Node& node) {
    return node.op == &ops::add ? to.add(ops::square, {node.inputs[0]}) : kNoValue;
  });
  verify(out);
  EXPECT_EQ(out[1].op, &ops::square);
  EXPECT_EQ(out[2].inputs, std::vector<ValueId>{1});
  EXPECT_EQ(out.outputs[0].value, 2);
  EXPECT_EQ(out.updates[0].value, 2);
}

TEST(Attrs, are_sorted_and_typed) {
  Attrs attrs = {{"b", std::int64_t{1}}, {"a", std::string("text")}};
  attrs.set("b", std::int64_t{2});
  attrs.set("c", 0.5);
  EXPECT_EQ(attrs.items()[0].first, "a");
  EXPECT_EQ(attrs.integer("b"), 2);
  EXPECT_EQ(attrs.number("c"), 0.5);
  EXPECT_THROW(static_cast<void>(attrs.integer("a")), InternalError);
  EXPECT_THROW(static_cast<void>(attrs.list("missing")), InternalError);
}

TEST(Shape, count_does_not_overflow) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({1LL << 40, 1LL << 40}), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace tensorgrad::testing
