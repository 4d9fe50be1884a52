// SPDX-License-Identifier: MIT
// Dividing the launch that writes exchanged gradients: order of the launches, ranges of the
// buckets, and programs that are left as they are.
#include "plan/exchange.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;

enum BufferNumber : int { kGradients, kSum, kScale, kResult };

// A map over `count` elements that stores them from element `to` of a buffer on. Reads the same
// elements of another buffer and, if `scaled`, an element of kScale.
Launch map_of(const std::string& name, std::int64_t count, int from, int to_buffer,
              std::int64_t from_offset, std::int64_t to, bool scaled = false) {
  Launch launch;
  launch.name = name;
  launch.kind = MapLaunch{.rows = count};
  const auto binding = [&](int buffer, BindMode mode) {
    launch.bindings.push_back({buffer, 0, 64 << 20, mode});
    return static_cast<int>(launch.bindings.size()) - 1;
  };
  const auto load = [&](int buffer, std::int64_t stride, std::int64_t offset) {
    View view = View::contiguous({count});
    view.strides = {stride};
    view.offset = offset;
    const int at = binding(buffer, BindMode::kRead);
    launch.body.accesses.push_back({at, DType::kF32, Level::kElement, {{view}}, 0, 0});
    Instr instr;
    instr.kind = InstrKind::kLoad;
    instr.index = static_cast<int>(launch.body.accesses.size()) - 1;
    launch.body.instrs.push_back(instr);
  };
  load(from, 1, from_offset);
  if (scaled) load(kScale, 0, 3);
  View view = View::contiguous({count});
  view.offset = to;
  Store store;
  store.binding = binding(to_buffer, BindMode::kWrite);
  store.map = {{view}};
  launch.stores.push_back(store);
  launch.bytes_moved = 8 * count;
  return launch;
}

// Gradients of two layers, of `first` and `second` elements: the backward pass computes the second
// first. Then their sum, which the last launch reads.
Program two_layers(std::int64_t first, std::int64_t second, bool scaled = false) {
  const std::int64_t count = first + second;
  Program program;
  for (const auto& [name, kind] :
       {std::pair("grads", BufferKind::kGrads), std::pair("output e", BufferKind::kOutput),
        std::pair("state scale", BufferKind::kState), std::pair("params", BufferKind::kParams)}) {
    program.buffers.push_back({name, kind, 64 << 20, {}});
  }
  program.outputs.push_back({"e", DType::kF32, {count}, kSum, 0});
  program.launches = {map_of("second", second, kResult, kGradients, 0, first),
                      map_of("between", 64, kResult, kResult, 0, 4096),
                      map_of("first", first, kResult, kGradients, 0, 0),
                      map_of("sum", count, kGradients, kSum, 0, 0, scaled),
                      map_of("update", count, kSum, kResult, 0, 0)};
  return program;
}

std::vector<std::string> names(const Program& program) {
  std::vector<std::string> names;
  for (const Launch& each : program.launches) names.push_back(each.name);
  return names;
}

TEST(SplitExchange, runs_each_bucket_after_the_gradients_that_it_reads) {
  Program program = two_layers(128, 256);
  split_exchange(program, "e", 1);
  EXPECT_THAT(names(program), ElementsAre("second", "sum", "between", "first", "sum", "update"));
  const Launch& early = program.launches[1];
  EXPECT_EQ(early.as<MapLaunch>().rows, 256);
  EXPECT_EQ(early.body.accesses[0].map.views[0].offset, 128);
  EXPECT_EQ(early.stores[0].map.views[0].offset, 128);
  EXPECT_EQ(early.bytes_moved, 8 * 256);
  const std::vector<ElementRange> ranges = exchange_ranges(program, "e");
  EXPECT_THAT(ranges, ElementsAre(ElementRange{128, 256}, ElementRange{0, 128}));
  const ExchangeStops stops = exchange_stops(program, "e", ranges);
  EXPECT_THAT(stops.ready, ElementsAre(2, 5));
  EXPECT_EQ(stops.resume, 5);
}

TEST(SplitExchange, keeps_an_element_that_all_buckets_read) {
  Program program = two_layers(128, 256, true);
  split_exchange(program, "e", 1);
  EXPECT_THAT(names(program), ElementsAre("second", "sum", "between", "first", "sum", "update"));
  for (const std::size_t part : {1U, 4U})
    EXPECT_EQ(program.launches[part].body.accesses[1].map.views[0].offset, 3);
}

TEST(SplitExchange, waits_for_what_all_buckets_read) {
  Program program = two_layers(128, 256, true);
  program.launches[1] = map_of("between", 64, kResult, kScale, 0, 0);
  split_exchange(program, "e", 1);
  EXPECT_THAT(names(program), ElementsAre("second", "between", "sum", "first", "sum", "update"));
}

TEST(SplitExchange, joins_small_gradients_to_one_bucket) {
  Program program = two_layers(128, 256);
  split_exchange(program, "e", 384 * 4);
  EXPECT_THAT(names(program), ElementsAre("second", "between", "first", "sum", "update"));
  EXPECT_THAT(exchange_ranges(program, "e"), ElementsAre(ElementRange{0, 384}));
}

TEST(SplitExchange, cuts_a_large_gradient) {
  constexpr std::int64_t kMiB = 256 << 10;  // elements
  Program program = two_layers(128, 3 * kMiB);
  split_exchange(program, "e", 1000);
  EXPECT_THAT(names(program),
              ElementsAre("second", "sum", "sum", "sum", "between", "first", "sum", "update"));
  EXPECT_THAT(exchange_ranges(program, "e"),
              ElementsAre(ElementRange{128 + 2 * kMiB, kMiB}, ElementRange{128 + kMiB, kMiB},
                          ElementRange{128, kMiB}, ElementRange{0, 128}));
}

TEST(SplitExchange, does_not_divide_concurrent_launches) {
  Program program = two_layers(128, 256);
  program.launches[1].concurrent = true;  // with the launch before it
  program.launches[4].concurrent = true;  // with the map that is divided
  split_exchange(program, "e", 1);
  EXPECT_THAT(names(program), ElementsAre("second", "between", "sum", "first", "sum", "update"));
  EXPECT_TRUE(program.launches[1].concurrent);
  EXPECT_FALSE(program.launches[5].concurrent);
}

TEST(SplitExchange, leaves_a_map_that_uses_indices) {
  Program program = two_layers(128, 256);
  program.launches[3].body.instrs.emplace_back();
  program.launches[3].body.instrs.back().kind = InstrKind::kIndex;
  split_exchange(program, "e", 1);
  EXPECT_THAT(names(program), ElementsAre("second", "between", "first", "sum", "update"));
}

TEST(ExchangeStops, follow_the_ranges_of_other_ranks) {
  Program program = two_layers(128, 256);
  split_exchange(program, "e", 1);
  const ExchangeStops whole = exchange_stops(program, "e", {{0, 384}});
  EXPECT_THAT(whole.ready, ElementsAre(5));
  const ExchangeStops reversed = exchange_stops(program, "e", {{0, 128}, {128, 256}});
  EXPECT_THAT(reversed.ready, ElementsAre(5, 5));
}

}  // namespace
}  // namespace tensorgrad::testing
