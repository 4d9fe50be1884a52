// SPDX-License-Identifier: MIT
// The test graphs of passes that skip small values by default (siblings, sink, rematerialize). If
// the passes are forced, the results match the reference.
#include <fstream>
#include <sstream>

#include "ops/registry.h"
#include "passes/fuse/fuse.h"
#include "support/differential.h"
#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

Graph graph_of(const std::string& name) {
  const std::string path = test::source_path("tests/passes/" + name);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string whole = text.str();
  return parse(std::string_view(whole).substr(0, whole.find("----\n")), path, find_op);
}

void expect_same_values(Where where) {
  constexpr std::int64_t kNothingSunk = std::int64_t{1} << 40;
  for (const std::string name :
       {"fuse/siblings.ir", "fuse/sunk_product.ir", "fuse/sunk_with_difference.ir"}) {
    SCOPED_TRACE(name);
    const Graph graph = graph_of(name);
    EXPECT_NE(print(fuse(graph, {.cached_elements = 1})),
              print(fuse(graph, {.cached_elements = kNothingSunk})));
    const auto finding =
        compare(graph, 3,
                {{.name = "forced", .device = device_at(where), .cached_elements = 1},
                 {.name = "not", .device = device_at(where), .cached_elements = kNothingSunk}})
            .finding;
    EXPECT_FALSE(finding) << finding->way << ": " << finding->what;
  }
  const Graph graph = graph_of("rematerialize/late_readers_get_a_copy.ir");
  const RematerializeOptions often = {.least_bytes = 64, .much_else = 0};
  EXPECT_GT(rematerialize(graph, often).size(), graph.size());
  const auto finding =
      compare(graph, 3,
              {{.name = "forced", .device = device_at(where), .rematerializing = often},
               forced({to_string(where), device_at(where)})})
          .finding;
  EXPECT_FALSE(finding) << finding->way << ": " << finding->what;
}

TEST(ForcedPasses, match_the_reference_on_cpu) { expect_same_values(Where::kCpu); }
TEST(ForcedPasses, match_the_reference_on_webgpu) { expect_same_values(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
