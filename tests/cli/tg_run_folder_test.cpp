// SPDX-License-Identifier: MIT
// Contents of a run folder after kills, with two processes, or without standard streams.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "support/sanitized.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> train_run(const std::string& out, const std::string& hidden,
                                   std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"train", "--data",   "images", "--out",   out, "--device",
                                    "cpu",   "--hidden", hidden,   "--batch", "8"};
  if (std::find(more.begin(), more.end(), "--epochs") == more.end())
    words.insert(words.end(), {"--epochs", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

void wait_until(const std::function<bool()>& done) {
  for (int i = 0; i < 6000 && !done(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// A replacement moves the files of the new run one by one. After a kill at any of these points, the
// next command completes it.
TEST(TgRunFolder, replacement_that_was_killed_is_completed) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_run("old", "4")).code, 0);
  ASSERT_EQ(folder.tg(train_run("new", "8,4", {"--stop-after", "1"})).code, 130);
  write_text(folder / "old/notes.txt", "mine");
  const std::vector<std::string> moves = {"metrics.jsonl", "model.safetensors", "run.json"};
  const std::vector<std::string> removals = {"predictions.png", "confusion.svg",     "curves.svg",
                                             "metrics.jsonl",   "model.safetensors", "run.json"};
  for (std::size_t kill = 0; kill <= removals.size() + moves.size(); ++kill) {
    fs::remove_all(folder.path() / "run");
    fs::copy(folder.path() / "old", folder.path() / "run");
    fs::copy(folder.path() / "new", folder.path() / "run/.replacement");
    for (std::size_t i = 0; i < std::min(kill, removals.size()); ++i)
      ASSERT_TRUE(fs::remove(folder.path() / "run" / removals[i])) << removals[i];
    for (std::size_t i = removals.size(); i < kill; ++i) {
      const std::string& name = moves[i - removals.size()];
      fs::rename(folder.path() / "run/.replacement" / name, folder.path() / "run" / name);
    }
    const bool evaluates = kill % 2 == 0;
    const ToolResult result =
        evaluates ? folder.tg({"eval", "--run", "run", "--device", "cpu"})
                  : folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"});
    EXPECT_EQ(result.code, evaluates ? 0 : 130) << kill << result.err;
    for (const std::string& name : moves) {
      EXPECT_EQ(read_text(folder.path() / "run" / name), read_text(folder.path() / "new" / name))
          << kill << ' ' << name;
    }
    EXPECT_EQ(
        names_in(folder.path() / "run"),
        (std::set<std::string>{"metrics.jsonl", "model.safetensors", "notes.txt", "run.json"}))
        << kill;
  }
}

TEST(TgRunFolder, killed_run_leaves_nothing_that_a_resume_keeps) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_run("run", "4", {"--stop-after", "1"})).code, 130);
  // Leftovers of a process that was killed while writing.
  write_text(folder / "run/model.safetensors.tmp.0", "half");
  write_text(folder / "run/metrics.jsonl.tmp.1", "half");
  fs::create_directories(folder.path() / "run/.tmp.0");
  write_text(folder / "run/.tmp.0/run.json", "half");
  write_text(folder / "run/.lock", "1\n");
  write_text(folder / "run/notes.tmp.0", "mine");
  ASSERT_EQ(folder.tg({"train", "--resume", "run", "--device", "cpu"}).code, 0);
  EXPECT_EQ(
      names_in(folder.path() / "run"),
      (std::set<std::string>{"confusion.svg", "curves.svg", "metrics.jsonl", "model.safetensors",
                             "notes.tmp.0", "predictions.png", "run.json"}));
  // Leftovers of a run whose folder did not exist yet.
  fs::create_directories(folder.path() / "other.tmp.0");
  ASSERT_EQ(folder.tg(train_run("other", "4", {"--stop-after", "1"})).code, 130);
  EXPECT_FALSE(fs::exists(folder.path() / "other.tmp.0"));
}

TEST(TgRunFolder, second_process_is_rejected_by_its_number) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ToolProcess first(train_run("run", "4", {"--epochs", "1000000"}), folder.path());
  wait_until([&] { return fs::exists(folder.path() / "run/.lock"); });
  const std::string pid = read_text(folder / "run/.lock");
  const std::string wanted = "error: run: in use by process " + pid;
  EXPECT_GT(pid.size(), 1U);
  const ToolResult resumed = folder.tg({"train", "--resume", "run", "--device", "cpu"});
  EXPECT_EQ(resumed.code, 1);
  EXPECT_EQ(resumed.err, wanted);
  const ToolResult forced = folder.tg(train_run("run", "8", {"--force"}));
  EXPECT_EQ(forced.code, 1);
  EXPECT_EQ(forced.err, wanted);
  EXPECT_EQ(folder.tg({"eval", "--run", "run", "--device", "cpu"}).code, 0) << "reading is allowed";
  first.signal(SIGKILL);
  (void)first.wait();
  const ToolResult again =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"});
  EXPECT_EQ(again.code, 130) << again.err;
}

TEST(TgRunFolder, trains_without_standard_streams) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_run("open", "4")).code, 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::chdir(folder.path().c_str()) != 0) ::_exit(126);
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    std::vector<std::string> words = train_run("closed", "4");
    words.insert(words.begin(), TENSORGRAD_TG);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(TENSORGRAD_TG, argv.data());
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text(folder / "closed/model.safetensors"),
            read_text(folder / "open/model.safetensors"));
  const std::string metrics = read_text(folder / "closed/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 16);
  EXPECT_EQ(metrics.find("epoch 1/2"), std::string::npos) << metrics;
}

std::vector<nlohmann::json> lines_of(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
    for (const char* key : {"seconds", "tokens_per_second", "images_per_second", "checksum"})
      lines.back().erase(key);
  }
  return lines;
}

// A validation that takes a second stops at once, and the resumed run repeats it.
TEST(TgRunFolder, signal_in_a_validation_is_obeyed_at_once) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < (testing::kSanitized ? 4'000 : 40'000); ++i)
    text += i % 7 == 0 ? "ab\n" : i % 3 == 0 ? "ca " : "bca";
  write_text(folder / "text.txt", text);
  const auto words = [](const std::string& out) {
    return std::vector<std::string>{
        "lm",  "train",        "text.txt", "--out",          out,  "--device",
        "cpu", "--arch",       "gpt",      "--layers",       "1",  "--width",
        "16",  "--heads",      "2",        "--context",      "16", "--steps",
        "4",   "--eval-every", "2",        "--batch",        "4",  "--length",
        "16",  "--holdout",    "0.9",      "--eval-windows", "0",  "--sample-tokens",
        "4"};
  };
  ASSERT_EQ(folder.tg(words("whole")).code, 0);
  ToolProcess tool(words("parts"), folder.path());
  const fs::path metrics = folder.path() / "parts/metrics.jsonl";
  wait_until([&] { return read_text(metrics).find("\"step\":2") != std::string::npos; });
  const auto began = std::chrono::steady_clock::now();
  tool.signal(SIGTERM);
  const ToolResult result = tool.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_EQ(result.code, 143) << result.err;
  EXPECT_NE(result.out.find("stopped after step 2 of 4; saved"), std::string::npos) << result.out;
  EXPECT_EQ(lines_of(folder.path() / "parts").back()["kind"], "pause");
  ASSERT_EQ(folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"}).code, 0);
  EXPECT_EQ(lines_of(folder.path() / "parts"), lines_of(folder.path() / "whole"));
  for (const char* name : {"model.safetensors", "checkpoint.safetensors"}) {
    EXPECT_EQ(read_text(folder.path() / "parts" / name), read_text(folder.path() / "whole" / name))
        << name;
  }
}

TEST(TgRunFolder, checkpoints_by_time_survive_a_kill) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_run("whole", "4", {"--epochs", "60"})).code, 0);
  ToolProcess tool(train_run("run", "4", {"--epochs", "60", "--checkpoint-every", "0.000001s"}),
                   folder.path());
  const auto pauses = [&] {
    return read_text(folder.path() / "run/metrics.jsonl").find("\"pause\"") != std::string::npos;
  };
  wait_until(pauses);
  tool.signal(SIGKILL);
  (void)tool.wait();
  EXPECT_TRUE(pauses());
  const ToolResult resumed =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--checkpoint-every", "never"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(lines_of(folder.path() / "run"), lines_of(folder.path() / "whole"));
  EXPECT_EQ(read_text(folder.path() / "run/model.safetensors"),
            read_text(folder.path() / "whole/model.safetensors"));
  const ToolResult wrong = folder.tg({"train", "--resume", "run", "--checkpoint-every", "5"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("expected a time such as 30s, 5m or 2h, or never, got 5"),
            std::string::npos)
      << wrong.err;
}

TEST(TgRunFolder, named_pipe_as_text_is_rejected) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"lm", "train", "pipe"},
           {"tokenizer", "train", "--data", "pipe", "--out", "t.json"},
           {"train", "--data", "pipe"}}) {
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.err.find("pipe: is not a regular file"), std::string::npos) << result.err;
  }
}

TEST(TgRunFolder, changed_bytes_are_named) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_run("run", "4", {"--stop-after", "1"})).code, 130);
  const auto error = [&] {
    return folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"}).err;
  };
  EXPECT_EQ(error(), "");
  const std::string model = read_text(folder / "run/model.safetensors");
  std::string changed = model;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  write_text(folder / "run/model.safetensors", changed);
  EXPECT_NE(error().find("run/model.safetensors: tensor \""), std::string::npos) << error();
  EXPECT_NE(error().find("differs from its checksum"), std::string::npos) << error();
  write_text(folder / "run/model.safetensors", model);
  std::string settings = read_text(folder / "run/run.json");
  settings.replace(settings.find("\"epochs\": 2"), 11, "\"epochs\": 3");
  write_text(folder / "run/run.json", settings);
  EXPECT_NE(error().find("run/run.json: differs from its checksum"), std::string::npos) << error();
  const std::size_t at = settings.find("\"checksum\": \"") + 13;
  settings.replace(at, 16, "none");
  write_text(folder / "run/run.json", settings);
  EXPECT_EQ(error(), "");
}

TEST(TgRunFolder, names_of_any_bytes_are_shown_and_resumed) {
  const TestFolder folder;
  const std::string name = "im\x1b[31mages\xff\xc2\x9b";
  write_image_folder(folder.path() / name);
  std::vector<std::string> words = train_run("r\x1bn", "4", {"--stop-after", "1"});
  words[2] = name;
  const ToolResult result = folder.tg(words);
  ASSERT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("\xc2\x9b"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("tg train --resume $'r\\x1bn'"), std::string::npos) << result.out;
  const ToolResult resumed = folder.tg({"train", "--resume", "r\x1bn", "--device", "cpu"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"train", "--data", "no\x1b[31m"}, {"eval", "\x1b[31m"}, {"dump", "\x1b[31m"}}) {
    EXPECT_EQ(folder.tg(wrong).err.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace tensorgrad::test
