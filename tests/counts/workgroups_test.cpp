// SPDX-License-Identifier: MIT
// Clipping and AdamW of an embedding of 151,936 x 128, planned for a large GPU and for the minimum
// limits of WebGPU. With one thread per element, it needs more workgroups than a dispatch has in
// one dimension.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "codegen/wgsl/writer.h"
#include "debug/wrapped_device.h"
#include "large_gpu.h"
#include "many_words.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

constexpr std::uint32_t kMaxGroups = 65'535;  // in a dimension of a dispatch

// Returns the number that the pattern captures, or -1 if it does not match.
std::int64_t number_in(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? std::stoll(found[1]) : -1;
}

// Returns the number of adjacent elements that a thread of the map computes. Fails unless the
// threads of all workgroups together compute each element exactly once.
std::int64_t neighbours_of(const WgslKernel& kernel, std::int64_t elements) {
  const std::int64_t four = number_in(kernel.body, "let row = four \\* (\\d+)u;");
  const std::int64_t each = four < 0 ? 1 : four;
  const std::string place = four < 0 ? "row" : "four";
  const std::int64_t pitch =
      number_in(kernel.body, "let group = group_id\\.y \\* (\\d+)u \\+ group_id\\.x;");
  const std::int64_t threads =
      number_in(kernel.body, "let " + place + " = group \\* (\\d+)u \\+ local;");
  const std::int64_t end =
      number_in(kernel.body, "if \\(" + place + " >= (\\d+)u\\) \\{ return; \\}");
  EXPECT_TRUE(pitch > 0 || kernel.body.find("let group = group_id.x;") != std::string::npos);
  EXPECT_EQ(threads, kernel.threads);
  std::vector<int> times(static_cast<std::size_t>(kernel.groups_x) * kernel.groups_y, 0);
  for (std::int64_t y = 0; y < kernel.groups_y; ++y) {
    for (std::int64_t x = 0; x < kernel.groups_x; ++x)
      ++times.at(static_cast<std::size_t>(pitch > 0 ? y * pitch + x : x));
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), std::int64_t(times.size()));
  const std::int64_t places = end < 0 ? std::int64_t(times.size()) * threads : end;
  EXPECT_LE(places, std::int64_t(times.size()) * threads);
  EXPECT_EQ(places * each, elements) << kernel.body;
  return each;
}

void expect_dispatches_that_fit(const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<RecordingDevice>(plain);
  trainer_of_many(device, [](const ManyWords& net, const Inputs& in) {
    return mean(square(net.words(in["tokens"])));
  });
  const Program& program = device->programs.at(0);
  WgslOptions by_size, by_element;
  by_size.max_threads = device->info().limits.max_workgroup_invocations;
  by_size.max_workgroup_bytes = device->info().limits.max_workgroup_bytes;
  by_element = by_size;
  by_element.map_width = 1;
  by_element.matmul_tile = MatmulTile::kNone;
  by_element.scatter_variant = ScatterVariant::kLanes;
  int maps = 0, sums = 0;
  for (const Launch& launch : program.launches) {
    for (const WgslOptions& options : {by_size, by_element}) {
      const WgslKernel kernel = write_wgsl(launch, options);
      EXPECT_LE(kernel.groups_x, kMaxGroups) << launch.name;
      EXPECT_LE(kernel.groups_y, kMaxGroups) << launch.name;
      const auto* row = launch.find<RowLaunch>();
      if (row != nullptr && launch.name == "grad_norm" && row->rows > 1) {
        ++sums;
        EXPECT_EQ(row->rows * row->cols, kElements);
        EXPECT_EQ(std::int64_t{kernel.groups_x} * kernel.groups_y, row->rows);
      }
      const auto* map = launch.find<MapLaunch>();
      if (map == nullptr) continue;
      ++maps;
      EXPECT_EQ(map->rows, kElements);
      if (neighbours_of(kernel, kElements) > 1) continue;
      EXPECT_GT(std::int64_t{kernel.groups_x} * kernel.groups_y, kMaxGroups)
          << "so few that nothing is folded";
    }
  }
  EXPECT_EQ(maps, 2) << "AdamW is one launch";
  EXPECT_EQ(sums, 2) << "the norm begins with one";
}

TEST(Workgroups, of_clipping_and_adamw_of_many_words_fit_a_dispatch_of_a_large_gpu) {
  expect_dispatches_that_fit(large_gpu().opened);
}
TEST(Workgroups, of_clipping_and_adamw_of_many_words_fit_a_dispatch_with_the_least_limits) {
  expect_dispatches_that_fit(make_null_device({}));
}

}  // namespace
}  // namespace tensorgrad::testing
