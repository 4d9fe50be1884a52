// SPDX-License-Identifier: MIT
// --tensorboard: what the package tensorboard reads is what metrics.jsonl has, also after stops,
// kills and replacements.
#include <csignal>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "support/tensorboard.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using testing::EventScalar;
using EventLine = nlohmann::json;
using EventCurves = std::map<std::string, std::vector<std::pair<std::int64_t, double>>>;

std::vector<std::string> event_words(std::vector<std::string> more) {
  std::vector<std::string> words = {"train", "--data",  "images", "--out",    "run", "--device",
                                    "cpu",   "--batch", "8",      "--hidden", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> lm_event_words(std::vector<std::string> more) {
  std::vector<std::string> words = {
      "lm",  "train",    "text.txt", "--out",   "run", "--device",     "cpu", "--arch",
      "gpt", "--layers", "1",        "--width", "16",  "--heads",      "2",   "--length",
      "16",  "--batch",  "4",        "--steps", "6",   "--eval-every", "2",   "--no-samples"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void write_event_text(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += i % 7 == 0 ? "ab\n" : i % 3 == 0 ? "ca " : "bca";
  write_text(folder / "text.txt", text);
}

// Returns what a run's metrics.jsonl has, in f32, by the tags of the event files.
EventCurves logged(const fs::path& run, bool validates = true) {
  EventCurves curves;
  std::istringstream in(read_text(run / "metrics.jsonl"));
  for (std::string text; std::getline(in, text);) {
    const EventLine line = EventLine::parse(text);
    const auto add = [&](const std::string& tag, double value) {
      curves[tag].emplace_back(line["step"].get<std::int64_t>(), static_cast<float>(value));
    };
    if (line["kind"] == "step") {
      add("train/loss", line["loss"]);
      add("train/learning_rate", line["lr"]);
    } else if (line["kind"] == "epoch") {
      add("train/mean_loss", line["train_loss"]);
      add("test/loss", line["test_loss"]);
      add("test/accuracy", line["test_accuracy"]);
    } else if (line["kind"] == "validation") {
      add("train/mean_loss", line["train_loss"]);
      if (!validates) continue;
      add("validation/loss", line["loss"]);
      add("validation/perplexity", std::exp(line["loss"].get<double>()));
    }
  }
  return curves;
}

// Returns what tensorboard reads, without speeds, which metrics.jsonl rounds.
EventCurves shown(const fs::path& run) {
  EventCurves curves;
  for (const auto& [tag, scalars] : testing::read_events(run.string())) {
    if (tag.starts_with("speed/")) continue;
    for (const EventScalar& scalar : scalars) curves[tag].emplace_back(scalar.step, scalar.value);
  }
  return curves;
}

int event_files_in(const fs::path& run) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(run))
    count += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  return count;
}

TEST(TgTensorBoard, shows_the_metrics_of_a_classifier_that_stopped_and_resumed) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(folder.tg(event_words({"--epochs", "3", "--tensorboard", "--stop-after", "10"})).code,
            130);
  EXPECT_EQ(shown(run), logged(run));
  EXPECT_EQ(shown(run).at("train/loss").size(), 10U);
  // A resumed run continues them without the option.
  ASSERT_EQ(folder.tg({"train", "--resume", "run", "--device", "cpu"}).code, 0);
  EXPECT_EQ(event_files_in(run), 2);
  EXPECT_EQ(shown(run), logged(run));
  EXPECT_EQ(shown(run).at("test/accuracy").size(), 3U);
  const auto speeds = testing::read_events(run.string()).at("speed/images_per_second");
  ASSERT_EQ(speeds.size(), 3U);
  EXPECT_GT(speeds[0].value, 0);
  // A run that replaces it does not keep its curves.
  ASSERT_EQ(folder.tg(event_words({"--epochs", "1", "--force"})).code, 0);
  EXPECT_EQ(event_files_in(run), 0);
}

// The steps after the last checkpoint are done again; the new values replace the old ones.
TEST(TgTensorBoard, steps_after_the_checkpoint_of_a_killed_run_are_replaced) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  const fs::path run = folder.path() / "run";
  ToolProcess process(event_words({"--epochs", "200000", "--tensorboard"}), folder.path());
  for (int i = 0; i < 6000 && read_text(run / "metrics.jsonl").size() < 5000; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.signal(SIGKILL);
  (void)process.wait();
  // As if the checkpoint were older: steps 8 and later are not yet done.
  ASSERT_EQ(folder
                .tg({"train", "--data", "images", "--out", "early", "--device", "cpu", "--batch",
                     "8", "--hidden", "4", "--epochs", "200000", "--stop-after", "7"})
                .code,
            130);
  fs::copy_file(folder.path() / "early/model.safetensors", run / "model.safetensors",
                fs::copy_options::overwrite_existing);
  ASSERT_EQ(folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "12"}).code,
            130);
  EXPECT_EQ(event_files_in(run), 2);
  EXPECT_EQ(shown(run), logged(run));
  EXPECT_EQ(shown(run).at("train/loss").back().first, 12);
}

TEST(TgTensorBoard, an_option_of_a_resumed_run_adds_what_came_before) {
  const TestFolder folder;
  write_event_text(folder);
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(folder.tg(lm_event_words({"--stop-after", "3"})).code, 130);
  EXPECT_EQ(event_files_in(run), 0);
  ASSERT_EQ(folder.tg({"lm", "train", "--resume", "run", "--device", "cpu", "--tensorboard"}).code,
            0);
  EXPECT_EQ(event_files_in(run), 1);
  EXPECT_EQ(shown(run), logged(run));
  EXPECT_EQ(shown(run).at("train/loss").size(), 6U);
  EXPECT_EQ(shown(run).at("validation/perplexity").size(), 3U);
  double last = 0;
  const auto events = testing::read_events(run.string());
  for (const EventScalar& scalar : events.at("train/loss")) {
    EXPECT_GE(scalar.seconds, last) << "the time at which it would have been";
    last = scalar.seconds;
  }
}

TEST(TgTensorBoard, without_a_validation_text_there_is_no_validation_loss) {
  const TestFolder folder;
  write_event_text(folder);
  const fs::path run = folder.path() / "run";
  ASSERT_EQ(folder.tg(lm_event_words({"--holdout", "0", "--tensorboard"})).code, 0);
  EXPECT_EQ(shown(run), logged(run, false));
  EXPECT_FALSE(shown(run).contains("validation/loss"));
}

}  // namespace
}  // namespace tensorgrad::test
