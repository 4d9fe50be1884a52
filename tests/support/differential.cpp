// SPDX-License-Identifier: MIT
#include "support/differential.h"

#include <algorithm>
#include <cmath>

#include "base/visits.h"
#include "compile/runtime/element_codec.h"

namespace tensorgrad::testing {
namespace {

constexpr double kSharp = 1e-2;
constexpr double kFewNodes = 20;  // added to the size of a graph for the fixed cost of a compile

// Returns a hash of the seed.
std::uint64_t mixed(std::uint64_t seed) { return (seed * 0x9E3779B97F4A7C15U) >> 32; }

using Words = std::vector<std::vector<std::uint32_t>>;

std::vector<double> decoded(const std::vector<std::uint32_t>& words, DType dtype) {
  std::vector<double> values;
  values.reserve(words.size());
  for (const std::uint32_t word : words) values.push_back(decode_element(word, dtype));
  return values;
}

void count_sharp(const WithErrorBound& want, Verdict& verdict) {
  for (std::size_t i = 0; i < want.value.data.size(); ++i) {
    ++verdict.elements;
    verdict.sharp += want.error_at(i) <= kSharp * (1 + std::abs(want.value.data[i])) ? 1 : 0;
  }
}

std::string different_bits(const Graph& graph, const Words& got, const Words& want) {
  const std::vector<ResultInfo> infos = results_of(graph);
  for (std::size_t r = 0; r < infos.size(); ++r) {
    for (std::size_t i = 0; i < got[r].size(); ++i) {
      if (got[r][i] == want[r][i]) continue;
      const DType dtype = graph[infos[r].value].type.dtype;
      return infos[r].name + ": element " + std::to_string(i) +
             " has other bits: " + std::to_string(decode_element(got[r][i], dtype)) + ", " +
             std::to_string(decode_element(want[r][i], dtype));
    }
  }
  return {};
}

std::string beyond_bounds(const Graph& graph, const Words& got,
                          const std::vector<WithErrorBound>& want) {
  const std::vector<ResultInfo> infos = results_of(graph);
  for (std::size_t r = 0; r < infos.size(); ++r) {
    const Type& type = graph[infos[r].value].type;
    const auto difference = first_difference(want[r], decoded(got[r], type.dtype));
    if (difference) return infos[r].name + ": " + to_string(*difference, type.shape);
  }
  return {};
}

}  // namespace

Way forced(Way way) {
  way.name += " with all forced";
  way.rematerializing = {.least_bytes = 64, .much_else = 0};
  way.split_all = true;
  way.cached_elements = 1;
  return way;
}

Way one_left_out(Way way, std::uint64_t seed) {
  const std::vector<std::string> names = skippable_names();
  const std::uint64_t dropped = mixed(seed) / 3 % (names.size() + 1);
  if (dropped == names.size()) return way;
  way.name += " without " + names[dropped];
  way.skip.push_back(names[dropped]);
  return way;
}

std::vector<Way> ways_on_cpu(const std::shared_ptr<Device>& device, std::uint64_t seed) {
  const Way plain = {"cpu", device};
  std::vector<Way> ways = {plain};
  for (const std::string pass : {"fuse", "simplify", "fold", "cse", "dce"})
    ways.push_back({"cpu without " + pass, device, {pass}});
  ways.push_back({"cpu with little kept", device, {}, {.least_bytes = 64, .much_else = 0}});
  ways.push_back({.name = "cpu with all sunk", .device = device, .cached_elements = 1});
  ways.push_back(one_left_out(forced(plain), seed));
  const int unfused = 1;
  for (const std::string pass : {"cse", "dce"}) {
    ways.push_back({.name = "cpu without fuse and " + pass,
                    .device = device,
                    .skip = {"fuse", pass},
                    .same_bits_as = unfused});
  }
  ways.push_back({"cpu without passes", device, skippable_names()});
  return ways;
}

Way way_on_webgpu(std::uint64_t seed) {
  const Way plain = {"webgpu", device_at(Where::kWebGpu)};
  const std::uint64_t kind = mixed(seed) % 3;
  return kind == 0 ? plain : one_left_out(kind == 1 ? plain : forced(plain), seed);
}

Verdict compare(const Graph& graph, std::uint32_t seed, const std::vector<Way>& ways) {
  Verdict verdict;
  const LeafWords leaves = fill_leaves(graph, {}, seed);
  const std::vector<WithErrorBound> want = run_on_reference(graph, leaves);
  for (const WithErrorBound& each : want) count_sharp(each, verdict);
  std::vector<Words> all;
  for (const Way& way : ways) {
    std::string what;
    bool thrown = false;
    const std::int64_t visited = Visits::count();
    try {
      all.push_back(run_on_device(graph, leaves, way.device,
                                  {.skip = way.skip,
                                   .rematerializing = way.rematerializing,
                                   .split_all = way.split_all,
                                   .cached_elements = way.cached_elements}));
      const auto visits = static_cast<double>(Visits::count() - visited);
      const double cost = visits / (kFewNodes + static_cast<double>(graph.size()));
      verdict.cost = std::max(verdict.cost, cost);
      what = beyond_bounds(graph, all.back(), want);
      if (what.empty() && cost > kMaxCost) {
        what = "the compile visited " + std::to_string(std::llround(cost)) +
               " nodes, views and groups per node of the graph";
      }
      if (what.empty() && way.same_bits_as >= 0) {
        what =
            different_bits(graph, all.back(), all.at(static_cast<std::size_t>(way.same_bits_as)));
      }
    } catch (const std::exception& error) {
      thrown = true;
      what = error.what();
    }
    if (what.empty()) continue;
    verdict.finding = {way.name, thrown, what};
    break;
  }
  return verdict;
}

void expect_within_bounds(const Graph& graph, const ValueMap& leaves, const ValueMap& got,
                          const std::string& note) {
  ErrorBoundOptions options;
  options.leaf = [&](const Node& leaf) { return leaves.at(leaf.attrs.text("name")); };
  const std::vector<WithErrorBound> want = interpret_with_error_bound(graph, options);
  const std::vector<ResultInfo> infos = results_of(graph);
  for (std::size_t r = 0; r < infos.size(); ++r) {
    const auto difference = first_difference(want[r], got.at(infos[r].name));
    EXPECT_FALSE(difference) << infos[r].name << ": "
                             << to_string(*difference, graph[infos[r].value].type.shape) << "\n"
                             << note;
  }
}

}  // namespace tensorgrad::testing
