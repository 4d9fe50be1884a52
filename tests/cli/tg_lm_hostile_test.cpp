// SPDX-License-Identifier: MIT
// A run.json of tg lm train that is corrupt or invalid. It is rejected with a message, or read as a
// run that can be written again. The tool resumes such a run or says why it cannot.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "lm/settings.h"
#include "support/sanitized.h"
#include "unit/lm/hostile_file.h"
#include "unit/lm/hostile_json.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using testing::kSanitized;

cli::LmRun run_of_all_kinds() {
  cli::LmRun run;
  run.data = {"/somewhere/plays", "/elsewhere/book.txt"};
  run.settings.prompt = "the";
  run.settings.training.warmup = 5;
  run.config = cli::lm_config({.arch = "zamba", .layers = 6, .width = 16, .context = 32});
  run.config.layers[0] = nn::MixerKind::kMamba1;
  run.config.layers[2] = nn::MixerKind::kMamba2;
  run.config.vocab_size = 23;
  run.settings.eval_every = 7;
  run.train_tokens = 1000;
  run.fingerprint = "0123456789abcdef";
  return run;
}

// Removes the checksum, as if a user edited the file. Otherwise the checksum would be the only
// error.
std::string without_checksum(const std::string& run_json) {
  nlohmann::ordered_json run = nlohmann::ordered_json::parse(run_json);
  run["checksum"] = "none";
  return run.dump(2) + "\n";
}

TEST(TgLmHostile, run_json_is_rejected_or_read) {
  const TestFolder folder;
  const std::string path = folder / "run.json";
  const std::string good = cli::lm_run_json(run_of_all_kinds());
  write_text(path, good);
  ASSERT_EQ(cli::lm_run_json(cli::read_lm_run(folder.path().string())), good);
  const std::string edited = without_checksum(good);
  TestRandom random(21);
  int taken = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t kind = random.below(8);
    const std::string bad = kind == 0   ? damaged(edited, random)
                            : kind == 1 ? with_a_huge_number(edited, random)
                            : kind == 2 ? mutated(edited, random)
                                        : with_another_value(edited, random);
    write_anew(path, bad);
    try {
      const std::string written = cli::lm_run_json(cli::read_lm_run(folder.path().string()));
      write_anew(path, written);
      EXPECT_EQ(cli::lm_run_json(cli::read_lm_run(folder.path().string())), written) << bad;
      ++taken;
    } catch (const UserError& error) {
      EXPECT_EQ(error.message().rfind(path, 0), 0U) << error.message();
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << bad << ": " << error.what();
    }
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 1000);
}

class HostileRun {
 public:
  HostileRun() {
    std::string story;
    for (int i = 0; i < 60; ++i) story += i % 3 == 0 ? "the cat sat here.\n" : "a dog ran.\n";
    write_text(folder_ / "story.txt", story);
    const ToolResult made = folder_.tg({"lm",
                                        "train",
                                        "story.txt",
                                        "--out",
                                        "good",
                                        "--device",
                                        "cpu",
                                        "--arch",
                                        "hybrid",
                                        "--layers",
                                        "2",
                                        "--width",
                                        "16",
                                        "--heads",
                                        "2",
                                        "--steps",
                                        "8",
                                        "--batch",
                                        "2",
                                        "--length",
                                        "16",
                                        "--eval-every",
                                        "4",
                                        "--seed",
                                        "3",
                                        "--context",
                                        "32",
                                        "--no-samples",
                                        "--stop-after",
                                        "3"});
    EXPECT_EQ(made.code, 130) << made.err;
    good_ = without_checksum(read_text(folder_.path() / "good/run.json"));
  }

  [[nodiscard]] const std::string& good() const { return good_; }

  // Resumes from this run.json. The tool must exit by itself, and with a message if it fails.
  ToolResult go_on(const std::string& run_json) {
    const fs::path run = folder_.path() / "run";
    fs::remove_all(run);
    fs::copy(folder_.path() / "good", run);
    write_anew((run / "run.json").string(), run_json);
    const ToolResult result =
        folder_.tg({"lm", "train", "--resume", "run", "--device", "cpu", "--stop-after", "6"});
    EXPECT_TRUE(result.code == 0 || result.code == 130 || result.code == 1)
        << result.code << ' ' << result.err << '\n'
        << run_json;
    if (result.code == 1) {
      EXPECT_EQ(result.err.rfind("error: ", 0), 0U) << result.err << '\n' << run_json;
      EXPECT_GT(result.err.size(), 20U) << run_json;
      EXPECT_EQ(result.err.find("out of memory"), std::string::npos) << run_json;
    }
    return result;
  }

 private:
  TestFolder folder_;
  std::string good_;
};

TEST(TgLmHostile, runs_resume_or_report_an_error) {
  HostileRun run;
  TestRandom random(22);
  int went_on = 0, refused = 0;
  for (int round = 0; round < (kSanitized ? 40 : 80); ++round) {
    const int code = run.go_on(with_another_value(run.good(), random)).code;
    (code == 1 ? refused : went_on) += 1;
  }
  EXPECT_GE(went_on, kSanitized ? 1 : 3);
  EXPECT_GE(refused, kSanitized ? 5 : 20);
}

// Models that need minutes or all memory to build are compared with the checkpoint first.
TEST(TgLmHostile, runs_of_another_model_are_rejected_before_compiling) {
  HostileRun run;
  const auto refusal = [&](const std::string& member, const nlohmann::json& value) {
    nlohmann::json bad = nlohmann::json::parse(run.good());
    bad[nlohmann::json::json_pointer(member)] = value;
    const ToolResult result = run.go_on(bad.dump());
    EXPECT_EQ(result.code, 1) << member;
    return result.err;
  };
  const auto names = [&](const std::string& member, const nlohmann::json& value,
                         const std::string& what) {
    const std::string text = refusal(member, value);
    EXPECT_NE(text.find(what), std::string::npos) << member << ": " << text;
  };
  names("/data", nlohmann::json::array(), "run/run.json: data: expected at least one path");
  names("/config/mamba1/d_conv", 65536, "conv1d.weight: expected f32[32,1,65536], got f32[32,1,4]");
  names("/config/mamba1/d_state", 1 << 30, "has more parameters than the");
  names("/config/mamba1/expand", 1 << 30, "has more parameters than the");
  names("/config/d_model", 1 << 30, "has more parameters than the");
  names("/config/vocab_size", 1 << 30, "has more parameters than the");
  names("/config/mlp/width", 1 << 30, "has more parameters than the");
  std::vector<std::string> layers = {"mamba1", "attention"};
  layers.resize(65536, "mlp");
  names("/config/layers", layers, "has more parameters than the");
}

}  // namespace
}  // namespace tensorgrad::test
