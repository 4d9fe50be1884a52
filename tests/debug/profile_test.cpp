// SPDX-License-Identifier: MIT
// profile(): its measurements and counts, its table, HTML page and trace events.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "cli/xml_check.h"
#include "compile/debug/profile.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct ProfiledNet {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
  Tensor operator()(Tensor x) const { return second(gelu(first(x))); }
};

const std::vector<float> kProfiledInput(12, 0.5F);

Trainer<ProfiledNet> profiled_trainer(const DeviceOptions& device) {
  return compile(
      ProfiledNet{}, [](const ProfiledNet& net, const Inputs& in) { return mean(net(in["x"])); },
      {.inputs = {{"x", {4, 3}}}, .optimizer = optim::Adam{.lr = 1e-2}, .device = device});
}

// Returns a profile with made-up times on a device of 100 GB/s and 1000 GFLOP/s.
Profile made_up_profile() {
  Profile profile;
  profile.device = "a device";
  profile.clock = "host clock";
  profile.steps = 3;
  profile.peak_bytes = 4096;
  profile.launches = {
      {"moves<much>", "map", "1000", {"add f32[1000]"}, {{"folder/net.cpp", 7}}, 1'000'000, 0, 20},
      {"counts_much",
       "contraction",
       "8x8x8",
       {"matmul f32[8,8]", "relu f32[8,8]"},
       {{"folder/net.cpp", 8}, {"folder/net.cpp", 9}},
       1000,
       30'000'000,
       40}};
  profile.passes = {{"autodiff", 0, 1.5}, {"fuse", 1.5, 0.25}};
  profile.peaks = {100e9, 1000e9, "a copy & a product"};
  return profile;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end,
                    std::size_t from = 0) {
  const std::size_t at = text.find(begin, from);
  return text.substr(at, text.find(end, at) + end.size() - at);
}

struct DrawnBar {
  double x = 0, width = 0, height = 0;
  std::string tip;
};

// Returns the bars of the timeline below the heading `head`.
std::vector<DrawnBar> drawn_bars(const std::string& page, const std::string& head) {
  std::vector<DrawnBar> bars;
  const std::string svg = between(page, "<svg viewBox", "</svg>", page.find(head));
  for (const auto& each : test::XmlReader(svg).read()) {
    const auto number = [&](const char* name) { return std::stod(each.attributes.at(name)); };
    if (each.name == "rect") bars.push_back({number("x"), number("width"), number("height"), ""});
    if (each.name == "title") bars.back().tip = each.text;
  }
  return bars;
}

TEST(Profile, of_a_function_measures_its_program) {
  auto forward = compile_function(
      ProfiledNet{}, [](const ProfiledNet& net, const Inputs& in) { return net(in["x"]); },
      {.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu", .threads = 1}});
  const HostTensor before = forward({{"x", kProfiledInput}});
  const Profile profile = forward.profile({{"x", kProfiledInput}}, {.steps = 3});
  EXPECT_EQ(profile.steps, 3);
  ASSERT_FALSE(profile.launches.empty());
  EXPECT_THAT(profile.launches[0].domain, HasSubstr("4x8x3"));
  for (const LaunchProfile& launch : profile.launches) EXPECT_GT(launch.microseconds, 0);
  EXPECT_EQ(forward({{"x", kProfiledInput}}).bytes, before.bytes);
  EXPECT_THROW(forward.profile({{"x", kProfiledInput}}, {.steps = 0}), UserError);
}

TEST(Profile, has_every_launch_in_order_with_the_counts_of_the_plan) {
  auto trainer = profiled_trainer({.kind = "cpu", .threads = 1});
  const Profile profile = trainer.profile({{"x", kProfiledInput}}, {.steps = 3});
  const CompileReport report = trainer.report();
  ASSERT_EQ(static_cast<int>(profile.launches.size()), report.launches);
  EXPECT_EQ(profile.peak_bytes, report.peak_bytes);
  EXPECT_EQ(profile.steps, 3);
  EXPECT_EQ(profile.clock, "host clock");
  const std::string explained = trainer.explain();
  std::size_t at = 0;
  for (const LaunchProfile& launch : profile.launches) {
    at = explained.find("  " + launch.name + "  moves ", at);
    ASSERT_NE(at, std::string::npos) << launch.name;
    EXPECT_GT(launch.microseconds, 0) << launch.name;
    EXPECT_GT(launch.bytes, 0) << launch.name;
    EXPECT_FALSE(launch.ops.empty()) << launch.name;
  }
  EXPECT_GE(profile.launches.front().flops, 4 * 3 * 8 * 2);
  // The passes of the report, and the generation of the kernels.
  ASSERT_EQ(profile.passes.size(), report.passes.size() + 1);
  EXPECT_EQ(profile.passes.back().name, "kernels");
  EXPECT_EQ(profile.peaks.bytes_per_second, 0);
  EXPECT_THAT(profile.table(), Not(HasSubstr("roofline")));
}

TEST(Profile, steps_update_the_parameters) {
  auto stepped = profiled_trainer({.kind = "cpu", .threads = 1});
  auto profiled = profiled_trainer({.kind = "cpu", .threads = 1});
  for (int i = 0; i < 4; ++i) stepped.step({{"x", kProfiledInput}});
  profiled.profile({{"x", kProfiledInput}}, {.steps = 4});
  EXPECT_EQ(profiled.steps(), 4);
  const auto a = stepped.download_params(), b = profiled.download_params();
  for (const auto& [name, values] : a) EXPECT_EQ(values.bytes, b.at(name).bytes) << name;
}

TEST(Profile, needs_a_step_and_the_inputs) {
  auto trainer = profiled_trainer({.kind = "cpu", .threads = 1});
  EXPECT_THROW(trainer.profile({{"x", kProfiledInput}}, {.steps = 0}), UserError);
  EXPECT_THROW(trainer.profile({}), UserError);
  EXPECT_EQ(trainer.steps(), 0);
}

TEST(Profile, without_times_has_no_shares) {
  auto trainer = profiled_trainer({.kind = "null"});
  const Profile profile = trainer.profile({{"x", kProfiledInput}}, {.roofline = true});
  EXPECT_EQ(profile.peaks.bytes_per_second, 0);
  EXPECT_EQ(profile.microseconds(), 0);
  for (const LaunchProfile& launch : profile.launches) EXPECT_EQ(profile.roofline_share(launch), 0);
  EXPECT_THAT(profile.html(), HasSubstr("reports no times"));
  for (const std::string& text : {profile.table(), profile.html()}) {
    EXPECT_THAT(text, Not(HasSubstr("nan")));
    EXPECT_THAT(text, Not(HasSubstr("inf")));
  }
}

TEST(Profile, a_gpu_times_by_its_own_clock_webgpu) {
  auto trainer = profiled_trainer({.kind = "webgpu", .allow_software = true});
  const Profile profile = trainer.profile({{"x", kProfiledInput}}, {.steps = 2});
  EXPECT_EQ(profile.clock, "GPU timestamps");
  EXPECT_EQ(static_cast<int>(profile.launches.size()), trainer.report().launches);
  for (const LaunchProfile& launch : profile.launches) EXPECT_GT(launch.microseconds, 0);
}

TEST(Profile, launches_of_one_kernel_are_one) {
  Program program;
  program.launches.resize(4);
  const SourceLocation first{"net.cpp", 3}, second{"net.cpp", 4};
  for (int i = 0; i < 4; ++i) {
    Launch& launch = program.launches[static_cast<std::size_t>(i)];
    launch.name = std::string(1, static_cast<char>('a' + i));
    launch.kind = MapLaunch{5 + i};
    if (i == 2) launch.kind = RowLaunch{5 + i, 5 + i};
    launch.ops = {"op" + std::to_string(i)};
    launch.locations = {i == 2 ? second : first};
    launch.bytes_moved = 10 << i;
    launch.flops = 1 << i;
  }
  const LaunchTiming concurrent{.concurrent = true};
  const Profile profile =
      make_profile(DeviceInfo(), program, {},
                   {{{7}, concurrent, concurrent, {9}}, {{5}, concurrent, concurrent, {9}}});
  ASSERT_EQ(profile.launches.size(), 2U);
  const LaunchProfile& joined = profile.launches[0];
  EXPECT_EQ(joined.name, "a | b | c");
  EXPECT_EQ(joined.kind, "map | row");
  EXPECT_EQ(joined.domain, "5 | 6 | 7x7");
  EXPECT_THAT(joined.ops, ::testing::ElementsAre("op0", "op1", "op2"));
  ASSERT_EQ(joined.locations.size(), 2U);
  EXPECT_EQ(to_string(joined.locations[1]), to_string(second));
  EXPECT_EQ(joined.bytes, 70);
  EXPECT_EQ(joined.flops, 7);
  EXPECT_EQ(profile.launches[1].name, "d");
  EXPECT_EQ(profile.launches[1].microseconds, 9);
}

TEST(Profile, takes_the_median_of_each_launch) {
  Program program;
  program.launches.resize(2);
  const Profile profile =
      make_profile(DeviceInfo(), program, {}, {{{5}, {30}}, {{1}, {10}}, {{3}, {20}}});
  EXPECT_EQ(profile.launches[0].microseconds, 3);
  EXPECT_EQ(profile.launches[1].microseconds, 20);
  EXPECT_EQ(profile.microseconds(), 23);
}

TEST(Profile, the_share_of_the_roofline_is_the_larger_of_the_two_least_times) {
  const Profile profile = made_up_profile();
  // 1 MB at 100 GB/s takes 10 us of 20. 30 Mflop at 1000 GFLOP/s take 30 us of 40.
  EXPECT_DOUBLE_EQ(profile.roofline_share(profile.launches[0]), 0.5);
  EXPECT_FALSE(profile.compute_bound(profile.launches[0]));
  EXPECT_DOUBLE_EQ(profile.roofline_share(profile.launches[1]), 0.75);
  EXPECT_TRUE(profile.compute_bound(profile.launches[1]));
  const std::string table = profile.table();
  EXPECT_THAT(table, HasSubstr("  50% bytes moves<much>\n"));
  EXPECT_THAT(table, HasSubstr("  75% flops counts_much\n"));
  EXPECT_THAT(table,
              HasSubstr("contraction 8x8x8: matmul f32[8,8]; relu f32[8,8]  at net.cpp:8 +1"));
  EXPECT_THAT(table,
              HasSubstr("100.0 GB/s, 1000.0 GFLOP/s, measured just now: a copy & a product"));
  EXPECT_THAT(table, HasSubstr("1.500 ms  autodiff"));
}

TEST(Profile, the_page_draws_each_launch_and_needs_nothing_else) {
  const Profile profile = made_up_profile();
  const std::string page = profile.html("a <b> page");
  EXPECT_THAT(page, HasSubstr("<title>a &lt;b&gt; page</title>"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_LT(page.size(), 16U << 10);
  // The timeline: boxes in order, with widths proportional to their times.
  const std::vector<DrawnBar> boxes = drawn_bars(page, "<h2>One step");
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_NEAR(boxes[1].x, boxes[0].width, 0.01);
  EXPECT_NEAR(boxes[1].width, 2 * boxes[0].width, 0.01);
  // The roofline: the launch with counted operations is below the line.
  const std::size_t roofline = page.find("<h2>Roofline");
  ASSERT_NE(roofline, std::string::npos);
  double point = 0;
  std::string line;
  for (const auto& each : test::XmlReader(between(page, "<svg", "</svg>", roofline)).read()) {
    if (each.name == "circle") point = std::stod(each.attributes.at("cy"));
    if (each.name == "polyline") line = each.attributes.at("points");
  }
  const double roof = std::stod(line.substr(line.rfind(',') + 1));
  EXPECT_GT(point, roof);
  // The table: a row for each launch, and the passes.
  for (const char* text : {"moves&lt;much&gt;", "counts_much", "net.cpp:7", "50.0 % of bytes",
                           "75.0 % of flops", "<td class=\"t\" data-v=\"fuse\">"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(Profile, the_page_draws_each_pass_where_it_began_and_as_wide_as_its_time) {
  Profile profile = made_up_profile();
  // The passes span 20 ms with a gap of 2 ms. One pass takes no time, and so does the last one at
  // the very end.
  profile.passes = {
      {"trace<it>", 0, 8}, {"cse", 8, 0}, {"fuse", 10, 4}, {"plan", 14, 6}, {"verify", 20, 0}};
  const std::vector<DrawnBar> bars = drawn_bars(profile.html(), "<h2>Compile: 18.00 ms");
  ASSERT_EQ(bars.size(), profile.passes.size());
  const double scale = bars[3].x / 14;
  EXPECT_NEAR(bars[3].x + bars[3].width, 1000, 0.01);  // the axis ends with the last pass
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const PassProfile& pass = profile.passes[i];
    EXPECT_THAT(bars[i].tip, HasSubstr(pass.name + "\n"));
    if (pass.milliseconds > 0) {
      EXPECT_NEAR(bars[i].x, scale * pass.begin, 0.01) << pass.name;
      EXPECT_NEAR(bars[i].width, scale * pass.milliseconds, 0.01) << pass.name;
    } else {  // a thin line, taller than the boxes, within the image
      EXPECT_NEAR(bars[i].x, scale * pass.begin, 1.01) << pass.name;
      EXPECT_NEAR(bars[i].width, 1, 0.5) << pass.name;
      EXPECT_GT(bars[i].height, bars[0].height) << pass.name;
      EXPECT_LE(bars[i].x + bars[i].width, 1000) << pass.name;
    }
  }
  EXPECT_THAT(bars[2].tip, HasSubstr("4.000 ms"));
  profile.passes.clear();
  EXPECT_THAT(profile.html(), HasSubstr("<h2>Compile: 0.00 ms in passes</h2>\n<table>"));
}

TEST(Profile, trace_events_hold_the_counts_and_the_share) {
  const auto json = nlohmann::json::parse(made_up_profile().trace_events());
  int found = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") != "counts_much") continue;
    ++found;
    EXPECT_EQ(event.at("dur"), 40);
    EXPECT_EQ(event.at("ts"), 1750 + 20);  // after the passes and the previous launch
    EXPECT_EQ(event.at("args").at("flops"), 30'000'000);
    EXPECT_EQ(event.at("args").at("share of roofline"), 0.75);
  }
  EXPECT_EQ(found, 1);
}

// The range is three orders of magnitude wider on both sides than the rates of any machine.
TEST(Profile, the_peak_rates_of_the_cpu_are_measured) {
  const DevicePeaks peaks = measure_peaks(make_cpu_device({.threads = 1}));
  EXPECT_GT(peaks.bytes_per_second, 1e8);
  EXPECT_LT(peaks.bytes_per_second, 1e13);
  EXPECT_GT(peaks.flops_per_second, 1e8);
  EXPECT_LT(peaks.flops_per_second, 1e14);
  EXPECT_THAT(peaks.method, HasSubstr("MiB"));
}

}  // namespace
}  // namespace tensorgrad::testing
