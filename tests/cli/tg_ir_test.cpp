// SPDX-License-Identifier: MIT
// tg env, opt, run and bisect, and dumps of a model.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "cli/tool.h"
#include "support/graph_builder.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/train/debug.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ScopedEnv;
using ::testing::StartsWith;

constexpr const char* kGraph = R"(%0 = input() {dtype=0, name="x", shape=[2,3]} : f32[2,3]
%1 = exp(%0) : f32[2,3] @ "net.cpp":4
%2 = exp(%0) : f32[2,3] @ "net.cpp":5
%3 = mul(%1, %2) : f32[2,3] @ "net.cpp":6
output y = %3
)";

struct TgIr : ::testing::Test {
  TgIr() { write_text(folder / "x.ir", kGraph); }

  void fails(const std::vector<std::string>& arguments, int code, const std::string& message) {
    const ToolResult result = folder.tg(arguments);
    EXPECT_EQ(result.code, code) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }

  TestFolder folder;
};

TEST_F(TgIr, env_lists_every_switch_with_its_value) {
  const ScopedEnv threads("TENSORGRAD_THREADS", "3");
  const ToolResult result = folder.tg({"env"});
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_GT(environment().size(), 6U);
  for (const EnvironmentSwitch& each : environment()) {
    EXPECT_THAT(result.out, HasSubstr(each.name));
    EXPECT_THAT(result.out, HasSubstr(each.meaning));
  }
  EXPECT_THAT(result.out, ::testing::ContainsRegex("TENSORGRAD_THREADS +3\n"));
}

TEST_F(TgIr, output_of_opt_is_valid_input) {
  const ToolResult once = folder.tg({"opt", "--passes", "cse,dce", "x.ir"});
  ASSERT_EQ(once.code, 0) << once.err;
  EXPECT_THAT(once.out, HasSubstr("%2 = mul(%1, %1)"));
  ASSERT_EQ(folder.tg({"opt", "--passes", "cse,dce", "x.ir", "--out", "y.ir"}).code, 0);
  EXPECT_EQ(read_text(folder / "y.ir"), once.out);
  const ToolResult again = folder.tg({"opt", "--passes", "cse", "y.ir"});
  EXPECT_EQ(again.out, once.out);
  EXPECT_THAT(folder.tg({"opt", "x.ir"}).out, HasSubstr("// group 0"));
}

TEST_F(TgIr, run_takes_inputs_and_writes_outputs) {
  StoredFile inputs;
  const std::vector<float> x = {0, 1, 0, 0, 0, 0};
  const auto bytes = std::as_bytes(std::span(x));
  inputs.tensors["x"] = {"F32", {2, 3}, {bytes.begin(), bytes.end()}};
  write_safetensors(folder / "in.safetensors", inputs);
  const ToolResult result = folder.tg(
      {"run", "x.ir", "--device", "cpu", "--inputs", "in.safetensors", "--out", "out.safetensors"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("y  f32[2,3]  min 1  max 7.38906  mean 2.06484"));
  EXPECT_THAT(result.out, HasSubstr("    1 7.38906 1 1 1 1\n"));
  const StoredFile out = read_safetensors(folder / "out.safetensors");
  EXPECT_EQ(out.tensors.at("y").shape, (Shape{2, 3}));
  const ToolResult made_up = folder.tg({"run", "x.ir", "--device", "reference", "--seed", "4"});
  EXPECT_THAT(made_up.out, StartsWith("device  reference\ny  f32[2,3]  min "));
}

StoredTensor stored_floats(const Shape& shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {"F32", shape, {bytes.begin(), bytes.end()}};
}

TEST_F(TgIr, inputs_have_the_names_of_a_checkpoint) {
  write_text(folder / "x.ir", R"(%0 = parameter() {dtype=0, name="w", offset=0, shape=[2]} : f32[2]
%1 = parameter() {dtype=0, name="b", offset=2, shape=[1]} : f32[1]
%2 = state() {dtype=0, init=f:0x1p+0, name="optim.m", shape=[4]} : f32[4]
%3 = state() {dtype=0, init=f:0x1p+0, name="count", shape=[1]} : f32[1]
%4 = neg(%0) : f32[2]
%5 = neg(%1) : f32[1]
%6 = neg(%2) : f32[4]
%7 = neg(%3) : f32[1]
output w = %4
output b = %5
output m = %6
output count = %7
)");
  StoredFile file;
  file.tensors = {{"w", stored_floats({2}, {5, 6})},
                  {"b", stored_floats({1}, {7})},
                  {"other", stored_floats({1}, {7})},
                  {"state/count", stored_floats({1}, {8})},
                  {"state/optim.m/w", stored_floats({2}, {2, 3})},
                  {"state/optim.m/b", stored_floats({1}, {4})},
                  {"state/optim.v/b", stored_floats({1}, {4})}};
  write_safetensors(folder / "model.safetensors", file);
  const std::vector<std::string> run = {"run",      "x.ir",     "--inputs", "model.safetensors",
                                        "--device", "reference"};
  const ToolResult result = folder.tg(run);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "model.safetensors: ignored, not in the graph: other, state/optim.v/b\n");
  for (const char* values : {"\n    -5 -6\n", "\n    -7\n", "\n    -2 -3 -4 -1\n", "\n    -8\n"}) {
    EXPECT_THAT(result.out, HasSubstr(values));
  }
  EXPECT_THAT(folder.tg({"bisect", "x.ir", "--inputs", "model.safetensors"}).err,
              HasSubstr("ignored, not in the graph: other, state/optim.v/b\n"));
  file.tensors["state/optim.m/w"] = stored_floats({1}, {2});
  write_safetensors(folder / "model.safetensors", file);
  fails(run, 1, "leaf 'state/optim.m/w': expected f32[2], got f32[1]");
  write_safetensors(folder / "model.safetensors", {{{"other", stored_floats({1}, {7})}}, {}});
  fails(run, 1, "unknown leaf 'other'; available: w, b, optim.m, count");
}

TEST_F(TgIr, a_checkpoint_of_a_run_fits_its_dumped_graph) {
  write_text(folder / "things.csv", table_text());
  const ScopedEnv dump("TENSORGRAD_DUMP", folder / "dump");
  const ToolResult trained = folder.tg({"train", "--data", "things.csv", "--hidden", "4", "--out",
                                        "run", "--device", "cpu", "--epochs", "2"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto run = [&](const std::string& graph) {
    return folder.tg({"run", graph, "--inputs", "run/model.safetensors", "--device", "cpu"});
  };
  const ToolResult step = run("dump/0_train/01_autodiff.ir");
  EXPECT_EQ(step.code, 0) << step.err;
  EXPECT_EQ(step.err, "");
  const ToolResult forward = run("dump/1_forward/00_trace.ir");
  EXPECT_EQ(forward.code, 0) << forward.err;
  EXPECT_THAT(forward.err, StartsWith("run/model.safetensors: ignored, not in the graph: "
                                      "state/optim.exp_avg/0.bias, "));
}

TEST_F(TgIr, bisect_reports_each_stage) {
  const ToolResult result = folder.tg({"bisect", "x.ir", "--b", "cpu"});
  ASSERT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("a  reference\nb  cpu ("));
  EXPECT_THAT(result.out, HasSubstr("as given: the same\n"));
  EXPECT_THAT(result.out, HasSubstr("simplify: unchanged\n"));
  EXPECT_THAT(result.out, HasSubstr("cse: the same\n"));
  EXPECT_THAT(result.out, HasSubstr("fuse: the same\nno difference\n"));
}

// f32 cannot meet this tolerance, so bisect must find a difference and exit with code 1.
TEST_F(TgIr, bisect_finds_a_difference_where_rounding_is_not_allowed) {
  write_text(folder / "x.ir", R"(%0 = input() {dtype=0, name="x", shape=[64,96]} : f32[64,96]
%1 = input() {dtype=0, name="w", shape=[96,8]} : f32[96,8]
%2 = matmul(%0, %1) : f32[64,8] @ "net.cpp":4
output y = %2
)");
  const ToolResult result = folder.tg({"bisect", "x.ir", "--tolerance", "1e-10"});
  EXPECT_EQ(result.code, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nfirst difference: as given\n%2 = matmul(%0, %1) : f32"));
  EXPECT_THAT(result.out, HasSubstr(": on cpu, element "));
  EXPECT_THAT(result.out, HasSubstr("\n  at net.cpp:4\n"));
}

TEST_F(TgIr, names_the_error) {
  write_text(folder / "bad.ir", "%0 = input() {dtype=0, name=\"x\", shape=[2]} : f32[3]\n");
  fails({"run", "bad.ir"}, 1, "bad.ir:1: expected type f32[2]");
  fails({"run", "none.ir"}, 1, "none.ir");
  fails({"opt", "x.ir", "--passes", "tidy"}, 1, "unknown pass 'tidy'");
  fails({"bisect", "x.ir", "--b", "reference"}, 2, "--b");
  write_safetensors(folder / "half.safetensors",
                    {{{"x", {"F16", {1}, std::vector<std::byte>(2)}}}, {}});
  fails({"run", "x.ir", "--inputs", "half.safetensors"}, 1,
        "half.safetensors: tensor 'x' is F16; expected F32, I32 or U32");
  for (const char* command : {"env", "opt", "run", "bisect"}) {
    EXPECT_THAT(folder.tg({command, "--help"}).out, HasSubstr("Example")) << command;
  }
}

std::map<std::string, std::string> tree(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).string()] = read_text(entry.path());
  }
  return files;
}

TEST_F(TgIr, dumps_stay_when_others_are_added) {
  const ScopedEnv dump("TENSORGRAD_DUMP", folder / "dump");
  fs::create_directory(folder.path() / "dump");
  write_text(folder / "dump/7_notes", "mine");
  for (int i = 0; i < 2; ++i) {
    const ToolResult result = folder.tg({"run", "x.ir", "--device", "cpu"});
    ASSERT_EQ(result.code, 0) << result.err;
    write_text(folder / ("dump/" + std::to_string(8 + i) + "_ir/00_trace.ir"), "old");
  }
  EXPECT_EQ(read_text(folder / "dump/8_ir/00_trace.ir"), "old");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder / "dump")) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names, (std::set<std::string>{"7_notes", "8_ir", "9_ir"}));
}

TEST_F(TgIr, dumps_of_two_processes_are_the_same_and_their_graphs_run) {
  write_text(folder / "things.csv", table_text());
  std::map<std::string, std::string> dumps[2];
  for (int i = 0; i < 2; ++i) {
    const ScopedEnv dump("TENSORGRAD_DUMP", folder / ("dump" + std::to_string(i)));
    const ToolResult result =
        folder.tg({"explain", "--data", "things.csv", "--hidden", "4", "--device", "cpu"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, ::testing::ContainsRegex("operations \\([0-9.]+ per byte\\)"));
    dumps[i] = tree(folder / ("dump" + std::to_string(i)));
    EXPECT_EQ(dumps[i].erase("0_train/timeline.json"), 1U);
  }
  EXPECT_EQ(dumps[0], dumps[1]);
  ASSERT_TRUE(dumps[0].contains("0_train/01_autodiff.ir"));
  const ToolResult run = folder.tg({"bisect", "dump0/0_train/01_autodiff.ir", "--b", "cpu"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("no difference"));
}

}  // namespace
}  // namespace tensorgrad::test
