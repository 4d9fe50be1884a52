// SPDX-License-Identifier: MIT
// Random training graphs, a thousand on the CPU and a few hundred on WebGPU, with all passes and
// without each of them. Also runs all graphs that once failed. ./dev fuzz graphs continues with
// more seeds.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "debug/wrong_device.h"
#include "ops/registry.h"
#include "passes/decompose.h"
#include "passes/fuse/fuse.h"
#include "passes/rematerialize.h"
#include "support/graph_fuzz.h"
#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

const std::filesystem::path kCorpus = test::source_path("tests/fuzz/corpus/graphs");

constexpr std::uint64_t kParts = 8, kGraphs = 1000, kGraphsOnWebGpu = 250;

std::vector<Way> cpu_ways(std::uint64_t seed) {
  static const std::shared_ptr<Device> one_thread = make_cpu_device({.threads = 1});
  return ways_on_cpu(one_thread, seed);
}

std::vector<Way> webgpu_ways(std::uint64_t seed) { return {way_on_webgpu(seed)}; }

Verdict expect_none(std::uint64_t seed, const std::vector<Way>& ways) {
  Verdict verdict = fuzz(seed, ways);
  if (verdict.finding)
    ADD_FAILURE() << verdict.finding->what << "\n" << shrunken(seed, ways, *verdict.finding);
  return verdict;
}

class FuzzedGraphs : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  // Tests every kParts-th graph; `seed_of` maps the number of a graph to its seed.
  static void expect_no_findings(std::uint64_t graphs,
                                 std::vector<Way> (*ways_of)(std::uint64_t seed),
                                 std::uint64_t (*seed_of)(std::uint64_t number)) {
    std::int64_t elements = 0, sharp = 0;
    for (std::uint64_t i = 0; i < how_many(graphs / kParts); ++i) {
      const std::uint64_t seed = seed_of(GetParam() + i * kParts);
      const Verdict verdict = expect_none(seed, ways_of(seed));
      if (HasFailure()) return;
      elements += verdict.elements;
      sharp += verdict.sharp;
    }
    EXPECT_GT(static_cast<double>(sharp), 0.8 * static_cast<double>(elements))
        << "too little of what was compared has a sharp bound";
  }
};

std::uint64_t any_graph(std::uint64_t number) { return number; }
// Seven of fourteen seeds make graphs of three to nine steps. On a software GPU, a longer graph
// takes as long to compile as all of these.
std::uint64_t short_graph(std::uint64_t number) { return number / 7 * 14 + number % 7; }

TEST_P(FuzzedGraphs, agree_with_every_pass_on_and_each_off) {
  expect_no_findings(kGraphs, cpu_ways, any_graph);
}

TEST_P(FuzzedGraphs, agree_on_webgpu) {
  expect_no_findings(kGraphsOnWebGpu, webgpu_ways, short_graph);
}

INSTANTIATE_TEST_SUITE_P(Part, FuzzedGraphs, ::testing::Range<std::uint64_t>(0, kParts));

std::vector<Way> everywhere_on_webgpu(std::uint64_t seed) {
  std::vector<Way> ways = cpu_ways(seed);
  ways.push_back({"webgpu", device_at(Where::kWebGpu)});
  ways.push_back(forced(ways.back()));
  return ways;
}

TEST(FuzzedGraph, those_that_once_failed_agree_on_webgpu) {
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    if (entry.path().extension() != ".ir") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(text.starts_with("// seed ")) << entry.path();
    const Graph graph = parse(text, entry.path().string(), find_op);
    const auto seed = static_cast<std::uint32_t>(std::stoull(text.substr(8)));
    const auto finding = compare(graph, seed, everywhere_on_webgpu(seed)).finding;
    EXPECT_FALSE(finding) << entry.path() << " on " << finding->way << ": " << finding->what;
  }
}

// The shrunken graph contains the wrong op and little else.
TEST(FuzzedGraph, shrinks_to_the_faulty_part) {
  const Way wrong = {"wrong", std::make_shared<WrongDevice>(ops::tanh, ops::sigmoid)};
  int found = 0, minimal = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto finding = fuzz(seed, {wrong}).finding;
    if (!finding) continue;
    ++found;
    const std::string text = shrunken(seed, {wrong}, *finding);
    EXPECT_TRUE(text.starts_with("// seed " + std::to_string(seed) + ": wrong: ")) << text;
    const Graph small = parse(text, "shrunken", find_op);
    EXPECT_LE(small.size(), 10) << text;
    EXPECT_NE(text.find(" = tanh(%"), std::string::npos) << text;
    EXPECT_TRUE(compare(small, static_cast<std::uint32_t>(seed), {wrong}).finding) << text;
    EXPECT_FALSE(compare(small, static_cast<std::uint32_t>(seed), cpu_ways(seed)).finding) << text;
    EXPECT_EQ(small.outputs.size() + small.updates.size(), 1U) << text;
    std::int64_t largest = 0;
    for (const Node& node : small.nodes) largest = std::max(largest, numel(node.type.shape));
    EXPECT_LE(largest, 32) << text;
    minimal += small.size() <= 6 && largest <= 16 ? 1 : 0;
  }
  EXPECT_GE(found, 4);
  EXPECT_GE(minimal, found - 2) << "shrinking stops early";
}

// The graphs exercise rematerialization.
TEST(FuzzedGraph, has_values_that_late_readers_compute_again) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400 && found < 20; ++seed) {
    const Graph graph = expand(fuzzed_graph(seed));
    found +=
        rematerialize(graph, {.least_bytes = 64, .much_else = 0}).size() > graph.size() ? 1 : 0;
  }
  EXPECT_GE(found, 20);
}

// The graphs exercise sinking, which by default ignores values of a few thousand elements.
TEST(FuzzedGraph, has_cheap_values_that_sink_to_their_readers) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400 && found < 20; ++seed) {
    const Graph graph = expand(fuzzed_graph(seed));
    found += print(fuse(graph, {.cached_elements = 1})) != print(fuse(graph, {})) ? 1 : 0;
  }
  EXPECT_GE(found, 20);
}

// The graphs exercise the splitting of products, scatters and reductions, although none is large.
TEST(FuzzedGraph, has_inputs_for_each_split) {
  std::map<std::string, int> found;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Graph graph = expand(fuzzed_graph(seed));
    for (const GraphPass& pass : late_passes(1 << 27, true, {}, true)) {
      if (pass.name.starts_with("split_"))
        found[pass.name] += pass.run(graph).size() > graph.size() ? 1 : 0;
    }
  }
  EXPECT_EQ(found.size(), 4U);
  for (const auto& [pass, count] : found) EXPECT_GE(count, 20) << pass;
}

// The seeds of both tests skip each pass in some graphs, including forced ones.
TEST(FuzzedGraph, leaves_each_pass_out_on_cpu_and_webgpu) {
  std::map<std::string, int> found;
  for (std::uint64_t number = 0; number < kGraphs; ++number) {
    for (const Way& way : cpu_ways(any_graph(number))) ++found[way.name];
    if (number < kGraphsOnWebGpu) ++found[way_on_webgpu(short_graph(number)).name];
  }
  for (const std::string& name : skippable_names()) {
    EXPECT_GT(found["cpu with all forced without " + name], 0) << name;
    EXPECT_GT(found["webgpu without " + name], 0) << name;
    EXPECT_GT(found["webgpu with all forced without " + name], 0) << name;
  }
  EXPECT_GT(found["cpu with all forced"], 0);
  EXPECT_GT(found["webgpu with all forced"], 0);
}

TEST(FuzzedGraph, has_ops_of_all_families) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    for (const Node& node : fuzzed_graph(seed).nodes) seen.insert(node.op->name);
  }
  for (const OpDef* op : all_ops()) {
    const bool apart = op == &ops::custom || op == &ops::data || op == &ops::literal ||
                       op == &ops::barrier || op == &ops::reduce_scatter ||  // of several ranks
                       op == &ops::topk_indices ||                           // of more than 8
                       op == &ops::sample_tokens ||                          // rounds sums
                       op == &ops::attention_backward ||                     // of many heads
                       op == &ops::selective_scan_adjoint;  // needs more than 256 steps
    if (!apart) {
      EXPECT_TRUE(seen.contains(op->name)) << op->name;
    }
  }
}

}  // namespace
}  // namespace tensorgrad::testing
