// SPDX-License-Identifier: MIT
// tg train, eval, predict and resuming after a stop, as a user calls them.
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

#include <csignal>

#include <algorithm>
#include <chrono>
#include <regex>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "support/pictures.h"
#include "support/source_path.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> train_images(const std::string& out) {
  return {"train",    "--data", "images",  "--out", out,    "--device", "cpu",    "--epochs", "6",
          "--hidden", "16,8",   "--batch", "8",     "--lr", "0.02",     "--seed", "5"};
}

std::vector<json> metrics_of(const std::string& run) {
  std::vector<json> lines;
  std::istringstream in(read_text(fs::path(run) / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

// Removes the values that depend on the clock.
std::vector<json> timeless(std::vector<json> lines) {
  for (json& line : lines) {
    line.erase("seconds");
    line.erase("images_per_second");
    line.erase("checksum");
  }
  return lines;
}

TEST(TgTrain, makes_a_run_folder_from_images) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  const ToolResult result = folder.tg(train_images("run"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("cpu"), std::string::npos);
  EXPECT_NE(result.out.find("25-16-8-3"), std::string::npos);
  EXPECT_NE(result.out.find("predictions.png"), std::string::npos);
  for (const char* name : {"model.safetensors", "metrics.jsonl", "run.json", "curves.svg",
                           "confusion.svg", "predictions.png"}) {
    EXPECT_GT(fs::file_size(folder.path() / "run" / name), 0U) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2)
      << "something is left over";
  const std::vector<json> lines = metrics_of(folder / "run");
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](auto& l) { return l["kind"] == "epoch"; }),
            6);
  EXPECT_EQ(lines.back()["step"], 42);  // 60 / 8 = 7 whole batches per epoch
  EXPECT_GT(lines.back()["test_accuracy"].get<double>(), 0.6);
}

TEST(TgTrain, eval_and_predict_agree_with_the_training) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_images("run")).code, 0);
  const double trained = metrics_of(folder / "run").back()["test_accuracy"];
  const ToolResult eval = folder.tg({"eval", "--run", "run", "--device", "cpu", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["accuracy"], trained);
  EXPECT_EQ(json::parse(eval.out)["confusion"].size(), 9U);
  const ToolResult table =
      folder.tg({"eval", "--run", "run", "--device", "cpu", "--data", "images"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("precision"), std::string::npos);

  const ToolResult predict = folder.tg(
      {"predict", "--run", "run", "--device", "cpu", "--json", "images/test-images-idx3-ubyte"});
  ASSERT_EQ(predict.code, 0) << predict.err;
  const std::string labels = read_text(folder.path() / "images/test-labels-idx1-ubyte").substr(8);
  std::istringstream in(predict.out);
  std::size_t count = 0;
  std::size_t right = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const json each = json::parse(line);
    EXPECT_EQ(each["index"], count);
    EXPECT_EQ(each["class"], std::to_string(each["class_index"].get<int>()));
    EXPECT_NEAR(each["probabilities"][0].get<double>() + each["probabilities"][1].get<double>() +
                    each["probabilities"][2].get<double>(),
                1, 1e-5);
    right += each["class_index"] == static_cast<int>(labels[count]) ? 1 : 0;
  }
  ASSERT_EQ(count, 25U);
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 25, trained);
}

TEST(TgTrain, learns_from_a_folder_of_pictures) {
  const TestFolder folder;
  write_class_folder(folder.path() / "lines");
  write_text(folder / "lines/rows/notes.txt", "not a picture");
  std::vector<std::string> arguments = train_images("run");
  arguments[2] = "lines";
  arguments.insert(arguments.end(), {"--holdout", "0.25", "--stop-after", "9"});
  const ToolResult stopped = folder.tg(arguments);
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.out.find("30 images for training, 10 for testing, 2 classes; skipped 1 file "
                             "that is not an image\n"),
            std::string::npos)
      << stopped.out;
  const ToolResult resumed = folder.tg({"train", "--resume", "run", "--device", "cpu"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const double trained = metrics_of(folder / "run").back()["test_accuracy"];
  EXPECT_GE(trained, 0.8);
  EXPECT_TRUE(fs::exists(folder / "run/predictions.png"));
  const ToolResult eval = folder.tg({"eval", "--run", "run", "--device", "cpu", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["accuracy"], trained);
  EXPECT_EQ(json::parse(eval.out)["count"], 10);
  EXPECT_EQ(json::parse(eval.out)["class_names"], (std::vector<std::string>{"columns", "rows"}));

  // Evaluates all images of another folder, which may have fewer classes.
  fs::create_directories(folder.path() / "others");
  fs::copy(folder.path() / "lines/rows", folder.path() / "others/rows");
  const ToolResult rows =
      folder.tg({"eval", "--run", "run", "--device", "cpu", "--data", "others", "--json"});
  ASSERT_EQ(rows.code, 0) << rows.err;
  EXPECT_EQ(json::parse(rows.out)["count"], 20);
  EXPECT_EQ(json::parse(rows.out)["confusion"][0], 0);
  EXPECT_GE(json::parse(rows.out)["right"], 16);
}

TEST(TgTrain, predicts_pictures_of_any_size) {
  const TestFolder folder;
  write_class_folder(folder.path() / "lines");
  std::vector<std::string> arguments = train_images("run");
  arguments[2] = "lines";
  *std::find(arguments.begin(), arguments.end(), "6") = "60";  // epochs
  ASSERT_EQ(folder.tg(arguments).code, 0);
  // An image with a bright third row of six, in color, at three times the size.
  std::string pixels;
  for (int y = 0; y < 18; ++y) pixels += std::string(18 * 3, y / 3 == 2 ? 'f' : '\n');
  write_text(folder / "large.png", testing::png_of_pixels(18, 18, 3, pixels));
  const ToolResult both = folder.tg(
      {"predict", "--run", "run", "--device", "cpu", "lines/columns/3.png", "large.png", "--json"});
  ASSERT_EQ(both.code, 0) << both.err;
  std::istringstream lines(both.out);
  for (const char* const wanted : {"columns", "rows"}) {
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(json::parse(line)["class"], wanted) << line;
    EXPECT_EQ(json::parse(line)["index"], 0);
  }
  const std::string picture = source_path("tests/unit/io/fixtures/progressive.jpg");
  const ToolResult jpeg = folder.tg({"predict", "--run", "run", "--device", "cpu", picture});
  EXPECT_EQ(jpeg.code, 0) << jpeg.err;
  // A model trained on IDX images also accepts image files.
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_images("idx")).code, 0);
  const ToolResult idx = folder.tg({"predict", "--run", "idx", "--device", "cpu", "large.png"});
  ASSERT_EQ(idx.code, 0) << idx.err;
  EXPECT_EQ(idx.out.substr(0, 4), "0\t0\t") << "a bright row";
}

TEST(TgTrain, resizes_pictures_on_request) {
  const TestFolder folder;
  write_class_folder(folder.path() / "lines");
  write_text(folder / "lines/rows/30.png", testing::plain_png(7, 9, 3));
  std::vector<std::string> arguments = train_images("run");
  arguments[2] = "lines";
  const ToolResult refused = folder.tg(arguments);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("rows/30.png: is an image of [9,7,3]; expected [6,6,1], as in "),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("columns/0.png; --size HEIGHTxWIDTH resizes all"), std::string::npos)
      << refused.err;
  arguments.insert(arguments.end(), {"--size", "4x5", "--channels", "3"});
  const ToolResult result = folder.tg(arguments);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("60-16-8-2"), std::string::npos) << result.out;
  const json run = json::parse(read_text(folder.path() / "run/run.json"));
  EXPECT_EQ(run["task"]["image_shape"], (std::vector<int>{4, 5, 3}));
  const ToolResult eval = folder.tg({"eval", "--run", "run", "--device", "cpu", "--json"});
  EXPECT_EQ(eval.code, 0) << eval.err;
}

TEST(TgTrain, learns_a_table) {
  const TestFolder folder;
  write_text(folder / "things.csv", table_text());
  const ToolResult result = folder.tg(
      {"train",    "--data", "things.csv", "--label",     "kind",     "--out",     "run",
       "--device", "cpu",    "--hidden",   "0",           "--epochs", "10",        "--batch",
       "16",       "--lr",   "0.1",        "--optimizer", "sgd",      "--holdout", "0.25"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("2 classes in column 'kind'\n"), std::string::npos) << result.out;
  EXPECT_EQ(metrics_of(folder / "run").back()["test_accuracy"], 1.0);
  EXPECT_FALSE(fs::exists(folder / "run/predictions.png"));
  const ToolResult eval =
      folder.tg({"eval", "--run", "run", "--device", "cpu", "--data", "things.csv", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["count"], 80);
  write_text(folder / "plain.csv", table_text(false));
  const ToolResult plain = folder.tg({"predict", "--run", "run", "--device", "cpu", "plain.csv"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out.substr(0, 8), "0\tlarge\t");
  const ToolResult labelled =
      folder.tg({"predict", "--run", "run", "--device", "cpu", "--label", "kind", "things.csv"});
  EXPECT_EQ(labelled.out, plain.out) << labelled.err;
}

// f32 has a 24-bit significand, so these times would be equal in f32.
TEST(TgTrain, learns_from_times_that_differ_little) {
  const TestFolder folder;
  std::string text = "time,kind\n";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(1'700'000'000 + i % 60) + (i % 60 < 30 ? ",early\n" : ",late\n");
  }
  write_text(folder / "times.csv", text);
  const ToolResult result =
      folder.tg({"train", "--data", "times.csv", "--out", "run", "--device", "cpu", "--hidden", "8",
                 "--epochs", "40", "--batch", "16", "--lr", "0.05"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("\nheader  line 1\n"), std::string::npos) << result.out;
  EXPECT_GE(metrics_of(folder / "run").back()["test_accuracy"], 0.95);
}

TEST(TgTrain, treats_line_1_as_the_option_says) {
  const TestFolder folder;
  write_text(folder / "things.csv", "3,1,bird\n1,2,cat\n2,3,dog\n3,4,cat\n4,5,dog\n5,6,bird\n");
  const auto says = [&](const char* header) {
    return folder
        .tg({"train", "--data", "things.csv", "--out", "run", "--force", "--device", "cpu",
             "--epochs", "1", "--header", header})
        .out;
  };
  EXPECT_NE(says("auto").find("\nheader  none, line 1 is data\n"), std::string::npos);
  EXPECT_NE(says("no").find("\nheader  none, line 1 is data\n"), std::string::npos);
  EXPECT_NE(says("yes").find("\nheader  line 1\n"), std::string::npos);
  EXPECT_EQ(folder.tg({"eval", "--run", "run", "--device", "cpu"}).code, 0);
}

TEST(TgTrain, a_label_column_that_was_not_named_is_hinted_at) {
  const TestFolder folder;
  const std::string words = table_text();
  std::string numbers = words;
  for (const auto& [name, number] : {std::pair("small", "1"), std::pair("large", "2")}) {
    for (auto at = numbers.find(name); at != std::string::npos; at = numbers.find(name)) {
      numbers.replace(at, 5, number);
    }
  }
  for (const std::string& text : {words, numbers, numbers.substr(numbers.find('\n') + 1)}) {
    const bool header = text[0] == 'w';
    write_text(folder / "things.csv", text);
    const ToolResult trained = folder.tg({"train", "--data", "things.csv", "--out", "run",
                                          "--device", "cpu", "--epochs", "1", "--force"});
    ASSERT_EQ(trained.code, 0) << trained.err;
    const std::string column = header ? "'kind'" : "'column 2'";
    EXPECT_NE(
        trained.out.find("in column " + column + ", the last one (--label selects another)\n"),
        std::string::npos)
        << trained.out;
    std::vector<std::string> arguments = {"predict",  "--run", "run",
                                          "--device", "cpu",   "things.csv"};
    const ToolResult refused = folder.tg(arguments);
    EXPECT_EQ(refused.code, 1);
    const std::string label = header ? "kind" : "-1";
    EXPECT_NE(refused.err.find("; --label " + label + " ignores the label column\n"),
              std::string::npos)
        << refused.err;
    arguments.insert(arguments.end(), {"--label", label});
    EXPECT_EQ(folder.tg(arguments).code, 0);
  }
  write_text(folder / "wrong.csv", "a,b,c,d\n1,2,3,4\n");
  const ToolResult wrong = folder.tg({"predict", "--run", "run", "--device", "cpu", "wrong.csv"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.err.find("--label"), std::string::npos) << wrong.err;
}

TEST(TgTrain, resumed_run_writes_the_same_bytes) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_images("whole")).code, 0);
  std::vector<std::string> first = train_images("parts");
  first.insert(first.end(), {"--stop-after", "10"});  // inside epoch 2
  const ToolResult stopped = folder.tg(first);
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.out.find("tg train --resume parts"), std::string::npos) << stopped.out;
  // Stops at the end of an epoch, within one, before the first step, and after one more step.
  for (const char* step : {"14", "17", "17", "18"}) {
    const ToolResult more =
        folder.tg({"train", "--resume", "parts", "--device", "cpu", "--stop-after", step});
    EXPECT_EQ(more.code, 130) << more.err;
  }
  const ToolResult last = folder.tg({"train", "--resume", "parts", "--device", "cpu"});
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(read_text(folder / "whole/model.safetensors"),
            read_text(folder / "parts/model.safetensors"));
  EXPECT_EQ(read_text(folder / "whole/confusion.svg"), read_text(folder / "parts/confusion.svg"));
  EXPECT_EQ(timeless(metrics_of(folder / "whole")), timeless(metrics_of(folder / "parts")));
  // Resuming a complete run changes nothing.
  EXPECT_EQ(folder.tg({"train", "--resume", "parts", "--device", "cpu"}).code, 0);
  EXPECT_EQ(read_text(folder / "whole/model.safetensors"),
            read_text(folder / "parts/model.safetensors"));
}

TEST(TgTrain, steps_after_the_last_model_of_a_killed_run_are_repeated) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_images("whole")).code, 0);
  std::vector<std::string> first = train_images("parts");
  first.insert(first.end(), {"--stop-after", "14"});
  ASSERT_EQ(folder.tg(first).code, 130);
  const std::string metrics = folder / "parts/metrics.jsonl";
  // Without checksums, as older versions wrote it.
  const std::regex checksum(R"(,"checksum":"[0-9a-f]{16}")");
  write_text(metrics, std::regex_replace(read_text(metrics), checksum, "") +
                          R"({"kind":"step","step":15,"epoch":3,"loss":9})" + "\n" +
                          R"({"kind":"st)");
  const ToolResult resumed = folder.tg({"train", "--resume", "parts", "--device", "cpu"});
  ASSERT_EQ(resumed.code, 0);
  EXPECT_NE(
      resumed.out.find("\ndropped 1 line of metrics.jsonl after step 14, and the last line of "
                       "metrics.jsonl, which was incomplete\n"),
      std::string::npos)
      << resumed.out;
  EXPECT_EQ(timeless(metrics_of(folder / "whole")), timeless(metrics_of(folder / "parts")));
}

TEST(TgTrain, interrupted_run_is_saved_and_resumes) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  std::vector<std::string> arguments = train_images("run");
  arguments[8] = "1000000";
  for (const auto& [number, code] :
       {std::pair(SIGINT, 130), std::pair(SIGTERM, 143), std::pair(SIGHUP, 129)}) {
    ToolProcess tool(arguments, folder.path());
    const auto before = read_text(folder / "run/metrics.jsonl").size();
    for (int i = 0; i < 1000 && read_text(folder / "run/metrics.jsonl").size() <= before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    tool.signal(number);
    const ToolResult result = tool.wait();
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_NE(result.out.find("resume with: tg train --resume run"), std::string::npos)
        << result.out;
    const StoredFile model = read_safetensors(folder / "run/model.safetensors");
    EXPECT_EQ(std::to_string(metrics_of(folder / "run").back()["step"].get<int>()),
              model.metadata.at("tensorgrad.step"));
    arguments = {"train", "--resume", "run", "--device", "cpu"};
  }
}

TEST(TgTrain, force_replaces_a_run_and_keeps_other_files) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(train_images("run")).code, 0);
  write_text(folder / "run/notes.txt", "mine");
  const std::string model = read_text(folder / "run/model.safetensors");
  const ToolResult refused = folder.tg(train_images("run"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(read_text(folder / "run/model.safetensors"), model);
  std::vector<std::string> forced = train_images("run");
  forced.insert(forced.end(), {"--force", "--stop-after", "1"});
  EXPECT_EQ(folder.tg(forced).code, 130);
  EXPECT_NE(read_text(folder / "run/model.safetensors"), model);
  EXPECT_EQ(read_text(folder / "run/notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(folder / "run/curves.svg")) << "of the run that was replaced";
}

TEST(TgTrain, failed_force_keeps_the_old_run) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  std::vector<std::string> arguments = train_images("run");
  arguments.insert(arguments.end(), {"--force", "--stop-after", "1"});
  ASSERT_EQ(folder.tg(arguments).code, 130);
  const std::string model = read_text(folder / "run/model.safetensors");
  const std::string settings = read_text(folder / "run/run.json");
  fs::remove(folder.path() / "run/metrics.jsonl");
  fs::create_directories(folder.path() / "run/metrics.jsonl/in_the_way");
  std::replace(arguments.begin(), arguments.end(), std::string("16,8"), std::string("4"));
  const ToolResult result = folder.tg(arguments);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("run/metrics.jsonl: cannot be replaced"), std::string::npos)
      << result.err;
  EXPECT_EQ(read_text(folder / "run/model.safetensors"), model);
  EXPECT_EQ(read_text(folder / "run/run.json"), settings);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
  }
}

TEST(TgTrain, force_among_other_files_keeps_pictures_that_are_no_runs) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  fs::create_directory(folder.path() / "run");
  write_text(folder / "run/curves.svg", "mine");
  std::vector<std::string> arguments = train_images("run");
  arguments.insert(arguments.end(), {"--force", "--stop-after", "1"});
  EXPECT_EQ(folder.tg(arguments).code, 130);
  EXPECT_EQ(read_text(folder / "run/curves.svg"), "mine");
}

#ifdef __linux__
TEST(TgTrain, a_mount_point_takes_a_run) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  fs::create_directory(folder.path() / "run");
  const std::string target = folder / "run";
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", target.c_str(), "tmpfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "it takes a right to mount";
  }
  std::vector<std::string> arguments = train_images("run");
  arguments.insert(arguments.end(), {"--stop-after", "1"});
  const ToolResult first = folder.tg(arguments);
  EXPECT_EQ(first.code, 130) << first.err;
  arguments.insert(arguments.end(), {"--force"});
  const ToolResult second = folder.tg(arguments);
  EXPECT_EQ(second.code, 130) << second.err;
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(target)) files += entry.is_regular_file() ? 1 : 9;
  EXPECT_EQ(files, 3U);
  EXPECT_EQ(::umount2(target.c_str(), MNT_DETACH), 0);
}
#endif

TEST(TgTrain, without_out_each_run_gets_a_folder) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  for (const char* name : {"runs/images", "runs/images-2"}) {
    EXPECT_EQ(
        folder.tg({"train", "--data", "images/", "--device", "cpu", "--stop-after", "1"}).code,
        130);
    EXPECT_TRUE(fs::exists(folder.path() / name / "run.json")) << name;
  }
}

}  // namespace
}  // namespace tensorgrad::test
