// SPDX-License-Identifier: MIT
#include "support/graph_fuzz.h"

#include <algorithm>

#include "support/shrink.h"

namespace tensorgrad::testing {
namespace {

constexpr const char* kMaking = "making";

// Returns a one-line comment.
std::string headed(std::uint64_t seed, const Finding& finding) {
  std::string text = "// seed " + std::to_string(seed) + ": " + finding.way + ": " + finding.what;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "\n";
}

// Returns the way with the finding and the way that it is compared with, if any.
std::vector<Way> only(const std::vector<Way>& ways, const std::string& name) {
  for (const Way& way : ways) {
    if (way.name != name) continue;
    if (way.same_bits_as < 0) return {way};
    Way second = way;
    second.same_bits_as = 0;
    return {ways[static_cast<std::size_t>(way.same_bits_as)], second};
  }
  return ways;
}

}  // namespace

Graph fuzzed_graph(std::uint64_t seed) {
  return random_graph(seed,
                      {.ops = 3 + static_cast<int>(seed % 14), .size = seed % 9 == 0 ? 17 : 5})
      .graph;
}

Verdict fuzz(std::uint64_t seed, const std::vector<Way>& ways) {
  try {
    return compare(fuzzed_graph(seed), static_cast<std::uint32_t>(seed), ways);
  } catch (const std::exception& error) {  // from tracing, differentiation or the reference
    Verdict verdict;
    verdict.finding = {kMaking, true, error.what()};
    return verdict;
  }
}

std::string shrunken(const Graph& graph, std::uint64_t seed, const std::vector<Way>& ways,
                     const Finding& finding) {
  const std::vector<Way> same = only(ways, finding.way);
  Finding last = finding;
  const Graph small = shrink(graph, [&](const Graph& smaller) {
    const auto found = compare(smaller, static_cast<std::uint32_t>(seed), same).finding;
    if (!found || found->thrown != finding.thrown) return false;
    last = *found;
    return true;
  });
  return headed(seed, last) + print(small);
}

std::string shrunken(std::uint64_t seed, const std::vector<Way>& ways, const Finding& finding) {
  if (finding.way == kMaking) return headed(seed, finding);
  return shrunken(fuzzed_graph(seed), seed, ways, finding);
}

}  // namespace tensorgrad::testing
