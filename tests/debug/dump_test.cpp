// SPDX-License-Identifier: MIT
// The dump folder, the timing table and the log of rewrites.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/xml_check.h"
#include "compile/compile.h"
#include "compile/debug/dump.h"
#include "compile/debug/graph_run.h"
#include "compile/debug/memory_map.h"
#include "ops/registry.h"
#include "support/random_graph.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tg_dump_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Returns the files of the only dump in the folder by relative path.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& dump : fs::directory_iterator(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(dump.path())) {
      if (!entry.is_regular_file()) continue;
      files[fs::relative(entry.path(), dump.path()).string()] = read(entry.path());
    }
  }
  return files;
}

struct Net {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
  Tensor operator()(Tensor x) const { return second(gelu(first(x))); }
};

Trainer<Net> trainer() {
  return compile(Net{}, [](const Net& net, const Inputs& in) { return mean(net(in["x"])); },
                 {.inputs = {{"x", {4, 3}}},
                  .optimizer = optim::Adam{.lr = 1e-2},
                  .device = {.kind = "cpu", .threads = 1}});
}

const std::vector<float> kInput(12, 0.5F);

std::map<std::string, std::string> dumped(bool profiled = false) {
  const Folder folder;
  const ScopedEnv dump("TENSORGRAD_DUMP", folder.path.string());
  auto made = trainer();
  if (profiled) made.profile({{"x", kInput}});
  return files_of(folder.path);
}

TEST(DumpToMemory, holds_the_files_of_the_folder) {
  const auto compiled = [] {
    return compile_function([](const Inputs& in) { return exp(in["x"]) * 3.4028235e+38F; },
                            {.inputs = {{"x", {4}}}, .device = {.kind = "cpu", .threads = 1}});
  };
  const Folder folder;
  ::setenv("TENSORGRAD_DUMP", folder.path.c_str(), 1);
  auto want = (compiled(), files_of(folder.path));
  DumpedFiles got;
  {
    const DumpToMemory dump;
    compiled();
    got = dump.files();
  }
  ::unsetenv("TENSORGRAD_DUMP");
  EXPECT_GT(want.erase("timeline.json"), 0U);  // contains times
  EXPECT_GT(got.erase("timeline.json"), 0U);
  EXPECT_EQ(got, want);
  EXPECT_THAT(got.at("graph.html"), HasSubstr("3.4028234663852886e+38f"));
  compiled();  // not dumped
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), {}), 1);
}

TEST(Dump, two_dumps_of_a_model_differ_only_in_times) {
  std::map<std::string, std::string> first = dumped(), second = dumped(true);
  EXPECT_EQ(first.erase("timeline.json"), 1U);
  EXPECT_EQ(second.erase("timeline.json"), 1U);
  EXPECT_EQ(first, second);
  for (const char* name :
       {"00_trace.ir", "01_autodiff.ir", "99_plan.txt", "graph.dot", "graph.html", "memory.svg"}) {
    EXPECT_TRUE(first.contains(name)) << name;
  }
}

TEST(Dump, the_graph_after_each_pass_parses_back) {
  std::set<int> numbers;
  for (const auto& [name, text] : dumped()) {
    if (!name.ends_with(".ir")) continue;
    numbers.insert(std::stoi(name));
    const Graph graph = parse(text, name, find_op);
    // Groups are printed as comments, which are not parsed.
    std::string plain = text;
    for (auto at = plain.find("  // group"); at != std::string::npos;
         at = plain.find("  // group")) {
      plain.erase(at, plain.find('\n', at) - at);
    }
    EXPECT_EQ(print(graph), plain) << name;
  }
  // Trace, autodiff, the passes of every device, and fuse. A device may need more passes.
  EXPECT_GE(numbers.size(), 3 + graph_passes().size());
  EXPECT_EQ(*numbers.rbegin(), static_cast<int>(numbers.size()) - 1) << "numbered without a gap";
}

TEST(Dump, every_compile_gets_a_folder_of_its_own) {
  const Folder folder;
  const ScopedEnv dump("TENSORGRAD_DUMP", folder.path.string());
  fs::create_directory(folder.path / "41_train");
  std::ofstream(folder.path / "notes.txt") << "mine";
  const auto made = trainer();
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names, (std::set<std::string>{"41_train", "42_train", "notes.txt"}));
  EXPECT_TRUE(fs::is_empty(folder.path / "41_train"));
}

TEST(Dump, origins_need_not_be_file_names) {
  const Folder folder;
  const ScopedEnv dump("TENSORGRAD_DUMP", folder.path.string());
  GraphBuilder builder;
  builder.output("y", exp(builder.input({2})));
  Graph graph = builder.graph();
  for (Node& node : graph.nodes) node.origin = "../my model/exp.1";
  compile_for_test(graph, 8);
  EXPECT_TRUE(files_of(folder.path).contains("kernels/000____my_model_exp_1.wgsl"));
}

TEST(Dump, programs_are_shown_instruction_by_instruction) {
  const Folder folder;
  const ScopedEnv dump("TENSORGRAD_DUMP", folder.path.string());
  GraphBuilder builder;
  const Tensor x = builder.input({4, 3});
  builder.output("y", exp(x) / sum(exp(x), {1}, true));
  compile_for_test(builder.graph(), 8);
  std::string found;
  for (const auto& [name, text] : files_of(folder.path)) {
    if (name.starts_with("programs/000_")) found = text;
  }
  EXPECT_THAT(found, HasSubstr("row "));
  EXPECT_THAT(found, HasSubstr("v0 = load b0 at [12]:(1)+0 : f32\n"));
  EXPECT_THAT(found, HasSubstr("v2 = sum(v1) over the columns : f32, once per row\n"));
  EXPECT_THAT(found, HasSubstr("b1 at [12]:(1)+0 = v3\n"));
}

TEST(Dump, output_names_of_any_text_parse_back) {
  GraphBuilder builder;
  builder.output("class \"b\" of 2", exp(builder.input({2})));
  const std::string text = print(builder.graph());
  EXPECT_EQ(print(parse(text, "x.ir", find_op)), text);
}

TEST(Dump, the_page_shows_every_launch_with_its_kernel_and_lines) {
  const auto files = dumped();
  const std::string& page = files.at("graph.html");
  std::size_t boxes = 0;
  for (auto at = page.find("<details"); at != std::string::npos; at = page.find("<details", at + 1))
    ++boxes;
  std::size_t kernels = 0;
  for (const auto& [name, text] : files) {
    if (!name.starts_with("kernels/")) continue;
    ++kernels;
    EXPECT_THAT(page, HasSubstr(xml_text(text)));
  }
  EXPECT_GT(kernels, 2U);
  EXPECT_EQ(boxes, kernels);
  EXPECT_THAT(page, HasSubstr("dump_test.cpp:"));
  EXPECT_THAT(page, HasSubstr("matmul f32[4,8]"));
  EXPECT_THAT(page, HasSubstr("reads input x, "));
  EXPECT_THAT(page, Not(HasSubstr("http")));  // no external resources
}

TEST(Dump, the_page_names_the_ranges_that_are_bound) {
  GraphBuilder builder;
  builder.output("y", builder.input({20000}) * 2);
  const Program program = compile_for_test(builder.graph(), 8, 64 << 10).program;
  ASSERT_GT(program.launches.size(), 1U);
  const std::vector<std::string> kernels(program.launches.size());
  EXPECT_THAT(graph_html(program, kernels), HasSubstr("reads input in0 bytes 0 to "));
}

TEST(Dump, the_timeline_holds_the_passes_and_once_profiled_the_launches) {
  const auto count = [](const std::string& text, int thread) {
    const auto json = nlohmann::json::parse(text);
    int events = 0;
    for (const auto& event : json.at("traceEvents")) {
      if (event.at("ph") != "X" || event.at("tid") != thread) continue;
      EXPECT_GE(event.at("ts").get<double>(), 0);
      EXPECT_GE(event.at("dur").get<double>(), 0);
      ++events;
    }
    return events;
  };
  const std::string compiled = dumped().at("timeline.json");
  EXPECT_GE(count(compiled, 1), 10);
  EXPECT_EQ(count(compiled, 2), 0);
  const std::string profiled = dumped(true).at("timeline.json");
  EXPECT_EQ(count(profiled, 2), trainer().report().launches);
}

// Boxes of values that share memory do not overlap in time.
TEST(Dump, values_that_share_a_slot_are_drawn_side_by_side) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    RandomGraph random = random_graph(seed, {.ops = 30});
    const LeafWords leaves = fill_leaves(random.graph, {}, 1);
    CompileRequest request;
    request.graph = random.graph;
    request.plan.params_elements = static_cast<std::int64_t>(leaves.params.size());
    const PlanOptions plan = request.plan;
    const Compiled compiled = compile_graph(std::move(request));
    const std::string svg = memory_svg(
        compiled.fused, memory_map(compiled.fused, plan, compiled.program), compiled.program);
    struct Box {
      double left, top, right, bottom;
    };
    std::vector<Box> boxes;
    for (const test::XmlElement& each : test::XmlReader(svg).read()) {
      if (each.name != "rect" || each.attributes.at("fill") != "#69db7c") continue;
      const auto number = [&](const char* name) { return std::stod(each.attributes.at(name)); };
      const double x = number("x"), y = number("y");
      const Box box{x, y, x + number("width"), y + number("height")};
      for (const Box& other : boxes) {
        const bool apart = box.right <= other.left || other.right <= box.left ||
                           box.bottom <= other.top + 1 || other.bottom <= box.top + 1;
        EXPECT_TRUE(apart) << "seed " << seed;
      }
      boxes.push_back(box);
    }
    EXPECT_FALSE(boxes.empty()) << "seed " << seed;
  }
}

// A long name, a buffer of many values next to one of few, and a program with only one launch.
TEST(Dump, labels_of_memory_do_not_overlap_or_leave_the_picture) {
  for (const std::int64_t rows : {2, 20000}) {
    GraphBuilder builder;
    const Tensor x = builder.input({rows, 8});
    builder.output("an_output_of_quite_a_long_name", sum(exp(matmul(x, builder.input({8, 1})))));
    builder.output("y", sum(exp(matmul(builder.input({2, 8}), builder.input({8, 1})))));
    CompileRequest request;
    request.graph = builder.graph();
    const PlanOptions plan = request.plan;
    const Compiled compiled = compile_graph(std::move(request));
    const std::string svg = memory_svg(
        compiled.fused, memory_map(compiled.fused, plan, compiled.program), compiled.program);
    constexpr double kCharacter = 6;  // approximate width in a font of 10 pixels
    double width = 0, last = -100;
    for (const test::XmlElement& each : test::XmlReader(svg).read()) {
      if (each.name == "svg") width = std::stod(each.attributes.at("width"));
      if (each.name != "text") continue;
      const double x_at = std::stod(each.attributes.at("x")),
                   y = std::stod(each.attributes.at("y"));
      const double wide = kCharacter * static_cast<double>(each.text.size());
      if (!each.attributes.contains("text-anchor")) {
        EXPECT_LE(x_at + wide, width) << each.text;
      } else if (each.attributes.at("text-anchor") == "end") {
        EXPECT_GE(x_at - wide, 0) << each.text;
        EXPECT_GE(y - last, 12) << each.text;
        last = y;
      }
    }
    EXPECT_GT(last, 0);
  }
}

// Returns the output of `work` on standard error with TENSORGRAD_DEBUG set to `level`.
template <class Work>
std::string debug_output(const std::string& level, Work work) {
  const ScopedEnv debug("TENSORGRAD_DEBUG", level);
  ::testing::internal::CaptureStderr();
  work();
  return ::testing::internal::GetCapturedStderr();
}

TEST(DebugLevels, two_times_the_launches_of_the_third_run_and_changes_nothing) {
  const auto three_steps = [](int steps) {
    auto made = trainer();
    float loss = 0;
    for (int i = 0; i < steps; ++i) loss = made.step({{"x", kInput}}).loss;
    return loss;
  };
  EXPECT_THAT(debug_output("2", [&] { three_steps(2); }), Not(HasSubstr("GFLOP/s")));
  float timed = 0;
  const std::string text = debug_output("2", [&] { timed = three_steps(4); });
  EXPECT_EQ(timed, three_steps(4));
  const std::string head =
      "launch         us  share      bytes      GB/s   GFLOP/s   flop/B  name\n";
  ASSERT_THAT(text, HasSubstr(head));
  const std::string table = text.substr(text.find(head) + head.size());
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), trainer().report().launches + 2)
      << table;  // a line for each launch, the sum, and the newline of the print
  EXPECT_EQ(text.find(head), text.rfind(head));  // once
  const std::string some = debug_output("2,linear", [&] { three_steps(3); });
  const std::string rest = some.substr(some.find(head) + head.size());
  EXPECT_THAT(rest, HasSubstr("linear"));
  EXPECT_LT(std::count(rest.begin(), rest.end(), '\n'), trainer().report().launches + 2);
}

TEST(DebugLevels, five_names_the_rule_of_each_rewrite) {
  GraphBuilder builder;
  const Tensor x = builder.input({4});
  builder.output("y", -(-x) * 1.0 + exp(x) * exp(x));
  const auto compiled = [&] { compile_for_test(builder.graph(), 8); };
  const std::string all = debug_output("5", compiled);
  EXPECT_THAT(all, HasSubstr("simplify neg_neg: neg(%"));
  EXPECT_THAT(all, HasSubstr("simplify mul_one: mul(%"));
  EXPECT_THAT(all, HasSubstr("cse equal: exp(%0) : f32[4]"));
  EXPECT_THAT(all, HasSubstr("dce unused: %"));
  EXPECT_THAT(all, HasSubstr("  -> %0 = input() {"));
  const std::string some = debug_output("5,simplify", compiled);
  EXPECT_THAT(some, HasSubstr("simplify mul_one"));
  EXPECT_THAT(some, Not(HasSubstr("cse equal")));
}

}  // namespace
}  // namespace tensorgrad::testing
