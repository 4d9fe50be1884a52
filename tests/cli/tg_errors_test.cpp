// SPDX-License-Identifier: MIT
// Error messages of the tool for bad input, which must leave no files behind. Also tests help,
// devices, explain and dump.
#include <unistd.h>
#include <zlib.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "run/metrics.h"
#include "tensorgrad/error.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> plus(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Images, a table, and a run that was stopped after one step.
struct TgErrors : ::testing::Test {
  void SetUp() override {
    write_image_folder(folder.path() / "images");
    write_text(folder / "things.csv", table_text());
    ASSERT_EQ(folder
                  .tg({"train", "--data", "images", "--out", "run", "--device", "cpu", "--batch",
                       "8", "--hidden", "4", "--stop-after", "1"})
                  .code,
              130);
    before = names();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      all.push_back(entry.path().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  // Expects exit code 1, one error that contains `text`, and no new or removed file.
  void fails(const std::vector<std::string>& arguments, const std::string& text) const {
    const ToolResult result = folder.tg(arguments);
    EXPECT_EQ(result.code, 1) << result.out;
    EXPECT_THAT(result.err, StartsWith("error: "));
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_THAT(result.err, Not(HasSubstr("\n  at "))) << "lines of the tool itself";
    EXPECT_EQ(names(), before);
  }

  void train_fails(const std::vector<std::string>& arguments, const std::string& text) const {
    fails(plus({"train", "--device", "cpu", "--out", "new"}, arguments), text);
  }

  // Expects exit code 2, `text` in the error output, and no new or removed file.
  void misused(const std::vector<std::string>& arguments, const std::string& text = "") const {
    const ToolResult result = folder.tg(arguments);
    EXPECT_EQ(result.code, 2) << result.out << result.err;
    EXPECT_THAT(result.err, arguments.empty() ? StartsWith("Train") : StartsWith("error: "));
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_EQ(names(), before);
  }

  void write(const std::string& name, const std::string& text) {
    write_text(folder / name, text);
    before = names();
  }

  TestFolder folder;
  std::vector<std::string> before;
};

TEST_F(TgErrors, wrong_usage_is_code_2) {
  misused({"train"});
  misused({"train", "--data", "images", "--epochs", "0"});
  misused({"train", "--data", "images", "--epochs", "many"});
  misused({"train", "--data", "images", "--lr", "-1"});
  misused({"train", "--data", "images", "--lr", "nan"});
  misused({"train", "--data", "images", "--matmul-precision", "tf32"},
          "--matmul-precision: unknown value 'tf32'; available: highest, f16x3\n");
  misused({"train", "--data", "images", "--optimizer", "magic"});
  misused({"train", "--data", "images", "--device", "tpu"});
  misused({"train", "--data", "things.csv", "--holdout", "1"});
  misused({"train", "--data", "images", "--device", "null"});
  misused({"train", "--data", "images", "--threads", "-1"});
  misused({"eval"});
  misused({"predict", "--run", "run"});
  misused({"explain"});
  misused({"profile"});
  misused({"profile", "--run", "run", "--steps", "0"});
  misused({"profile", "--run", "run", "--batch", "4"});
  misused({"profile", "--run", "run", "--device", "null"});
  misused({"dump"});
}

TEST_F(TgErrors, unknown_options_name_the_nearest) {
  const auto unknown = [&](const std::vector<std::string>& arguments, const std::string& text) {
    misused(arguments, "error: unknown option " + text + "\n");
  };
  unknown({"train", "--data", "images", "--epoch", "3"}, "'--epoch'; did you mean '--epochs'?");
  unknown({"train", "--data", "images", "--epoch=3"}, "'--epoch'; did you mean '--epochs'?");
  unknown({"train", "--dtaa", "images"}, "'--dtaa'; did you mean '--data'?");
  unknown({"train", "--max", "3"}, "'--max'; did you mean '--max-expansion'?");
  unknown({"train", "--data", "images", "--frobnicate"}, "'--frobnicate'; see `tg train --help`");
  unknown({"train", "--data", "images", "-x"}, "'-x'; see `tg train --help`");
  unknown({"lm", "train", "things.csv", "--stpes", "3"}, "'--stpes'; did you mean '--steps'?");
  unknown({"--versio"}, "'--versio'; did you mean '--version'?");
}

TEST_F(TgErrors, wrong_values_say_what_is_expected) {
  misused({"train", "--data", "images", "--epochs", "0"},
          "error: --epochs: expected an integer from 1 to 1000000, got '0'\n");
  misused({"train", "--data", "images", "--epochs", "1.5"}, "from 1 to 1000000, got '1.5'\n");
  misused({"train", "--data", "images", "--epochs"}, "error: --epochs: expects a value\n");
  misused({"train", "--data", "images", "--epochs", "1", "--epochs", "2"},
          "error: --epochs: given more than once\n");
  misused({"train", "--data", "images", "--seed", "x"},
          "error: --seed: expected an integer, got 'x'\n");
  misused({"train", "--data", "images", "--weight-decay", "inf"},
          "error: --weight-decay: expected a number of at least 0, got inf\n");
  misused({"train", "--data", "images", "--optimizer", "magic"},
          "error: --optimizer: unknown value 'magic'; available: adamw, adam, sgd\n");
  misused({"train", "images"}, "error: unexpected argument 'images'; see `tg train --help`\n");
  misused({"train"}, "error: --data or --resume is required\n");
  misused({"explain", "--run", "run", "--data", "images"},
          "error: --run: cannot be used with --data\n");
  misused({"tokenizer", "import", "--vocab", "v.json", "--out", "t.json"},
          "error: --vocab: requires --merges\n");
}

TEST_F(TgErrors, without_a_command_the_commands_are_listed) {
  misused({}, "Usage: tg [OPTIONS]");
  misused({}, "bisect");
  misused({"fly"}, "error: unknown command 'fly'; available: train, eval, predict,");
  misused({"lm", "fly"}, "unknown command 'fly'; available: train, generate, eval,");
  misused({"fly", "--data", "images"}, "unknown command 'fly'");
  misused({"--fly"}, "--fly");
  misused({"env", "opt"}, "");
}

TEST_F(TgErrors, sizes_of_layers_are_numbers_between_single_commas) {
  for (const char* sizes : {"3,,4", "3,", ",3", "", "3 4", "8,x", "-1", "1.5", "99999999999"}) {
    misused({"train", "--data", "images", "--hidden", sizes},
            "--hidden: expected sizes up to 1048576, separated by single commas, got '");
  }
}

TEST_F(TgErrors, an_adapter_without_its_device_is_refused) {
  const std::string text = "--adapter: requires the device webgpu";
  misused({"train", "--data", "images", "--adapter", "5", "--device", "cpu"}, text);
  misused({"train", "--data", "images", "--adapter", "5"}, text);
  misused({"bisect", "x.ir", "--adapter", "5"}, text);
}

TEST_F(TgErrors, states_are_sharded_among_several_processes_only) {
  const std::string text = "--shard-optimizer: divides the optimizer's states among the processes";
  train_fails({"--data", "images", "--shard-optimizer"}, text);
  fails({"train", "--resume", "run", "--device", "cpu", "--shard-optimizer"}, text);
  fails({"lm", "train", "things.csv", "--out", "new", "--device", "cpu", "--shard-optimizer"},
        text);
  train_fails({"--data", "images", "--shard-optimizer", "--distributed", "off"},
              "--shard-optimizer: not supported with --distributed off");
  train_fails({"--data", "images", "--shard-parameters", "--distributed", "off"},
              "--shard-parameters: not supported with --distributed off");
  fails({"lm", "train", "things.csv", "--out", "new", "--device", "cpu", "--shard-parameters"},
        "--shard-parameters: divides the parameters among the processes");
}

TEST_F(TgErrors, a_run_that_goes_on_keeps_its_settings) {
  misused({"train", "--resume", "run", "--epochs", "3"},
          "--epochs: cannot be used with --resume: a run keeps its settings (its length is part of "
          "its schedule); start a new run to change them");
  misused({"train", "--resume", "run", "--hidden", "3"}, "--hidden: cannot be used with --resume");
  misused({"train", "--resume", "run", "--force"}, "--force: cannot be used with --resume");
}

TEST_F(TgErrors, batches_larger_than_the_training_set) {
  train_fails({"--data", "images", "--batch", "61"}, "--batch 61: the training set has 60 images");
  train_fails({"--data", "things.csv", "--batch", "65"},
              "--batch 65: the training set has 64 rows");
  fails({"explain", "--data", "images", "--device", "cpu", "--batch", "61"}, "has 60 images");
}

TEST_F(TgErrors, missing_and_broken_images) {
  train_fails({"--data", "nowhere"}, "nowhere: no such file or directory");
  fs::create_directory(folder.path() / "empty");
  before = names();
  train_fails({"--data", "empty"}, "no file train-images");
  const std::string labels = read_text(folder / "images/train-labels-idx1-ubyte");
  write("images/train-labels-idx1-ubyte", labels.substr(0, 30));
  train_fails({"--data", "images"}, "train-labels-idx1-ubyte: shape [60] at byte 4");
  write("images/train-labels-idx1-ubyte", "");
  train_fails({"--data", "images"}, "train-labels-idx1-ubyte");
  write_idx(folder / "images/train-labels-idx1-ubyte", {2}, {0, 1});
  train_fails({"--data", "images"}, "contains 2 labels; expected 60, one per image");
}

TEST_F(TgErrors, broken_folders_of_pictures) {
  write_class_folder(folder.path() / "lines");
  before = names();
  const std::string picture = read_text(folder / "lines/rows/3.png");
  write("lines/rows/3.png", picture.substr(0, 60));
  train_fails({"--data", "lines"}, "lines/rows/3.png: PNG truncated at byte 60: expected ");
  write("lines/rows/3.png", picture);
  fails({"eval", "--run", "run", "--device", "cpu", "--data", "lines"},
        "lines/columns: is not one of the 3 known classes, \"0\" to \"2\"");
  fs::remove_all(folder.path() / "lines/columns");
  before = names();
  train_fails({"--data", "lines"}, "lines: contains only one class, \"rows\"");
}

TEST_F(TgErrors, sizes_of_pictures_are_two_numbers) {
  for (const char* size : {"28", "28x", "x28", "0x3", "3x0", "-1x3", "3x3x3", "3x65536", "3 x 3"}) {
    misused({"train", "--data", "images", "--size", size},
            "--size: expected HEIGHTxWIDTH up to 65535");
  }
  misused({"train", "--data", "images", "--channels", "2"}, "--channels");
  misused({"train", "--resume", "run", "--size", "5x5"}, "--size: cannot be used with --resume");
  train_fails({"--data", "images", "--size", "4x4"},
              "images are [5,5]; expected [4,4] (IDX images are not resized or converted)");
}

TEST_F(TgErrors, threads_beyond_what_the_library_takes) {
  train_fails({"--data", "images", "--threads", "1000"},
              "expected 1 to 256 threads, or 0 for one per core, got 1000");
}

TEST_F(TgErrors, broken_tables) {
  train_fails({"--data", "things.csv", "--label", "colour"},
              "is \"width\", \"height\", \"kind\"; --label NAME selects another column");
  write("empty.csv", "");
  train_fails({"--data", "empty.csv"}, "empty.csv");
  write("words.csv", "a,b\n1,x\ntwo,y\n");
  train_fails({"--data", "words.csv"},
              "\"two\" is not a finite number; --label NAME selects the label column");
  write("fractions.csv", "kind,size\n1,0.5\n2,1.5\n");
  train_fails({"--data", "fractions.csv"}, "; --label NAME selects the label column");
  write("one.csv", "a,b\n1,x\n");
  train_fails({"--data", "one.csv"}, "one.csv");
}

TEST_F(TgErrors, run_folders_that_cannot_be_written) {
  write("file", "text");
  fails({"train", "--data", "images", "--device", "cpu", "--out", "file"}, "file: not a directory");
  fails({"train", "--data", "images", "--device", "cpu", "--out", "file/run"}, "file");
  fails({"train", "--data", "images", "--device", "cpu", "--out", "images"},
        "images: the folder is not empty; use --force");
  fails({"train", "--data", "images", "--device", "cpu", "--out", "/proc/run"}, "/proc");
  if (::geteuid() == 0) return;  // root can write everywhere
  fs::create_directory(folder.path() / "closed");
  fs::permissions(folder.path() / "closed", fs::perms::owner_read | fs::perms::owner_exec);
  before = names();
  fails({"train", "--data", "images", "--device", "cpu", "--out", "closed/run"}, "closed");
}

TEST_F(TgErrors, damaged_run_json) {
  const std::string good = read_text(folder / "run/run.json");
  const std::vector<std::string> eval = {"eval", "--run", "run", "--device", "cpu"};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write("run/run.json", text.replace(at, from.size(), to));
  };
  write("run/run.json", good.substr(0, 100));
  fails(eval, "run.json: invalid JSON at byte");
  fails({"train", "--resume", "run", "--device", "cpu"}, "run.json");
  write("run/run.json", "[]");
  fails(eval, "run.json: top level: expected an object");
  write("run/run.json", "{}");
  fails(eval, "run.json: format: missing");
  with("\"tensorgrad run\"", "\"tensorgrad lm run\"");
  fails(eval, "got \"tensorgrad lm run\": not a run of tg train");
  with("\"epochs\": 10", "\"epochs\": -1");
  fails(eval, "settings.epochs: expected an integer from 1 to");
  with("\"batch\": 8", "\"batch\": 1e99");
  fails(eval, "settings.batch: expected an integer");
  with("\"batch\": 8", "\"batch\": 61");
  fails(eval, "settings.batch: expected at most");
  with("\"version\": 1", "\"version\": 2");
  fails(eval, "version: expected 1");
  with("\"class_names\": [", "\"class_names\": [1,");
  fails(eval, "task.class_names: expected a string");
  fs::remove(folder.path() / "run/run.json");
  before = names();
  fails(eval, "run.json");
  fails({"eval", "--run", "nowhere"}, "nowhere: not a run folder");
}

TEST_F(TgErrors, models_that_do_not_fit) {
  const std::string model = read_text(folder / "run/model.safetensors");
  const std::vector<std::string> eval = {"eval", "--run", "run", "--device", "cpu"};
  const std::vector<std::string> resume = {"train", "--resume", "run", "--device", "cpu"};
  write("run/model.safetensors", model.substr(0, model.size() - 5));
  fails(eval, "model.safetensors");
  fails(resume, "model.safetensors");
  write("run/model.safetensors", "");
  fails(eval, "model.safetensors");
  ASSERT_EQ(folder
                .tg({"train", "--data", "images", "--out", "wide", "--device", "cpu", "--hidden",
                     "5", "--stop-after", "1"})
                .code,
            130);
  write("run/model.safetensors", read_text(folder / "wide/model.safetensors"));
  fails(eval, "model.safetensors");
  fails(resume, "model.safetensors");
}

TEST_F(TgErrors, data_that_does_not_fit_the_model) {
  const std::vector<std::string> on_cpu = {"--run", "run", "--device", "cpu"};
  write_idx(folder / "large", {2, 6, 6}, std::vector<std::uint8_t>(72));
  before = names();
  fails(plus(plus({"predict"}, on_cpu), {"large"}), "expected u8 images of [5,5]");
  fails(plus(plus({"predict"}, on_cpu), {"things.csv"}),
        "things.csv: begins with \"width,height\"; expected a PNG or JPEG image");
  fails(plus(plus({"predict"}, on_cpu), {"images/test-images-idx3-ubyte", "gone"}), "gone");
  fails(plus(plus({"eval"}, on_cpu), {"--data", "things.csv"}), "things.csv");
  // Resuming fails if the training data differs from that of the run.
  std::string images = read_text(folder / "images/train-images-idx3-ubyte");
  images[100] = static_cast<char>(images[100] ^ 1);
  write("images/train-images-idx3-ubyte", images);
  fails({"train", "--resume", "run", "--device", "cpu"},
        "the training data differs from that of the run");
}

TEST_F(TgErrors, damaged_metrics_stop_a_resume) {
  write("run/metrics.jsonl", "{\"kind\":\"step\",\"step\":1}\nnonsense\n");
  fails({"train", "--resume", "run", "--device", "cpu"}, "metrics.jsonl: line 2");
}

TEST_F(TgErrors, flipped_bits_of_metrics_stop_a_resume) {
  const std::vector<std::string> resume = {"train", "--resume", "run", "--device", "cpu"};
  const std::string whole = read_text(folder / "run/metrics.jsonl");
  const std::size_t first = whole.find('\n') + 1;
  ASSERT_EQ(std::count(whole.begin(), whole.end(), '\n'), 2) << whole;  // a step and a pause
  // A bit of each byte of the second line. Most of these lines are JSON with another number or key.
  // A process for each would take long.
  int judged_by_checksum = 0;
  const std::string path = folder / "run/metrics.jsonl";
  for (std::size_t at = first; at + 1 < whole.size(); ++at) {
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 1 << at % 8);
    write_text(path, text);
    std::string error;
    try {
      cli::rewind_metrics(path, 1);
    } catch (const IoError& caught) {
      error = caught.what();
    }
    EXPECT_THAT(error, HasSubstr("metrics.jsonl: line ")) << text;
    EXPECT_EQ(read_text(path), text);
    judged_by_checksum += error.find("checksum") != std::string::npos ? 1 : 0;
    if (at % 16 == 0) fails(resume, "metrics.jsonl: line ");
  }
  EXPECT_GT(judged_by_checksum, 50);
  const auto without = [](const std::string& line) {
    return line.substr(0, line.rfind(",\"check")) + "}\n";
  };
  const std::string step = whole.substr(0, first), pause = whole.substr(first);
  write("run/metrics.jsonl", step + without(pause));
  fails(resume, "metrics.jsonl: line 2: has no checksum; the line is damaged");
  // Versions that wrote no checksums.
  write("run/metrics.jsonl", without(step) + without(pause));
  EXPECT_EQ(folder.tg(plus(resume, {"--stop-after", "2"})).code, 130);
  EXPECT_EQ(folder.tg(resume).code, 0);
}

// Writes `text` and `line_breaks` line breaks, gzipped.
void write_gzipped(const std::string& path, const std::string& text, std::size_t line_breaks) {
  gzFile file = gzopen(path.c_str(), "wb1");
  ASSERT_NE(file, nullptr);
  const std::string part(1 << 20, '\n');
  ASSERT_GT(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), 0);
  for (std::size_t left = line_breaks; left > 0; left -= std::min(left, part.size())) {
    const auto size = static_cast<unsigned>(std::min(left, part.size()));
    ASSERT_GT(gzwrite(file, part.data(), size), 0);
  }
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST_F(TgErrors, files_that_expand_more_than_the_option_says) {
  write_gzipped(folder / "long.csv.gz", table_text(), (64 << 20) + 1);
  write_gzipped(folder / "long.txt.gz", "to be or not to be", (64 << 20) + 1);
  before = names();
  train_fails({"--data", "long.csv.gz"}, "(limit: max_expansion)");
  const std::vector<std::string> lm = {
      "lm",          "train",   "long.txt.gz", "--out",    "new",     "--device",    "cpu",
      "--tokenizer", "bytes",   "--layers",    "1",        "--width", "8",           "--steps",
      "1",           "--batch", "1",           "--length", "8",       "--no-samples"};
  fails(lm, "(limit: max_expansion)");
  fails(plus(lm, {"--max-expansion", "100.5"}), "(limit: max_expansion)");
  EXPECT_EQ(folder
                .tg({"train", "--data", "long.csv.gz", "--device", "cpu", "--out", "new",
                     "--stop-after", "1", "--max-expansion", "1100"})
                .code,
            130);
}

TEST_F(TgErrors, a_loss_that_is_not_finite_keeps_the_last_good_model) {
  const ToolResult result =
      folder.tg({"train", "--data", "images", "--out", "wild", "--device", "cpu", "--optimizer",
                 "sgd", "--lr", "1e30", "--batch", "8", "--hidden", "8"});
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_THAT(result.err, StartsWith("error: "));
  EXPECT_THAT(result.err, HasSubstr("holds the last good model, of step "));
  EXPECT_EQ(folder.tg({"eval", "--run", "wild", "--device", "cpu"}).code, 0);
}

TEST_F(TgErrors, an_adapter_that_is_not_there_webgpu) {
  fails({"train", "--data", "images", "--out", "new", "--device", "webgpu", "--adapter", "999"},
        "unknown adapter 999; found:\n    0: ");
}

TEST_F(TgErrors, a_software_rasteriser_trains_only_when_allowed_webgpu) {
  const std::vector<std::string> train = {"train", "--data",       "images", "--out",
                                          "gpu",   "--device",     "webgpu", "--batch",
                                          "8",     "--stop-after", "3"};
  const ToolResult refused = folder.tg(train);
  if (refused.code == 130) return;  // a real GPU exists
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("used only if allow_software is set"));
  EXPECT_EQ(names(), before);
  const ToolResult allowed = folder.tg(plus(train, {"--allow-software"}));
  EXPECT_EQ(allowed.code, 130) << allowed.err;
}

TEST_F(TgErrors, help_version_devices_explain_and_dump_work) {
  for (const char* command :
       {"train", "eval", "predict", "devices", "explain", "profile", "dump"}) {
    const ToolResult help = folder.tg({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example")) << command;
  }
  EXPECT_THAT(folder.tg({"--version"}).out, StartsWith("tg "));
  const ToolResult explained = folder.tg({"explain", "--run", "run", "--device", "cpu"});
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("matmul"));
  const ToolResult dumped = folder.tg({"dump", "run/model.safetensors"});
  EXPECT_EQ(dumped.code, 0) << dumped.err;
  EXPECT_THAT(dumped.out, HasSubstr("0.weight"));
  fails({"dump", "things.csv"}, "things.csv");
}

TEST_F(TgErrors, profile_times_a_run_and_data_and_writes_what_it_is_asked_for) {
  fails({"profile", "--run", "run", "--device", "cpu", "--steps", "1", "--no-roofline", "--html",
         "nowhere/p.html"},
        "nowhere/p.html");
  const ToolResult table = folder.tg({"profile", "--data", "things.csv", "--hidden", "4",
                                      "--device", "cpu", "--steps", "1", "--no-roofline"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out.find("roofline"), std::string::npos) << table.out;
  EXPECT_EQ(names(), before);
  const ToolResult run = folder.tg({"profile", "--run", "run", "--device", "cpu", "--steps", "2",
                                    "--html", "p.html", "--trace", "p.json"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* text : {"matmul", "of roofline", "GFLOP/s, measured just now", "host clock",
                           "kernels", "wrote     p.html"}) {
    EXPECT_THAT(run.out, HasSubstr(text));
  }
  EXPECT_TRUE(fs::exists(folder / "p.html"));
  EXPECT_TRUE(fs::exists(folder / "p.json"));
}

TEST_F(TgErrors, devices_are_listed_webgpu) {
  const ToolResult listed = folder.tg({"devices", "--json"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  const auto json = nlohmann::json::parse(listed.out);
  ASSERT_FALSE(json["devices"].empty());
  EXPECT_EQ(json["devices"][0]["kind"], "cpu");
  int chosen = 0;
  for (const auto& device : json["devices"]) chosen += device["auto"].get<bool>() ? 1 : 0;
  EXPECT_EQ(chosen, 1);
}

}  // namespace
}  // namespace tensorgrad::test
