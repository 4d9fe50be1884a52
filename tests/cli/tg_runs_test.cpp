// SPDX-License-Identifier: MIT
// tg runs: tables of runs, comparisons and metrics, held against the files in the run folders.
#include <csignal>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "cli/xml_check.h"
#include "runs/table.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using RunsLine = nlohmann::ordered_json;

std::vector<RunsLine> json_lines(const std::string& text) {
  std::vector<RunsLine> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(RunsLine::parse(line));
  return lines;
}

std::vector<RunsLine> of_kind(const fs::path& run, const std::string& kind) {
  std::vector<RunsLine> lines = json_lines(read_text(run / "metrics.jsonl"));
  std::erase_if(lines, [&](const RunsLine& line) { return line["kind"] != kind; });
  return lines;
}

std::vector<std::string> classifier_words(const std::string& out, std::vector<std::string> more) {
  std::vector<std::string> words = {"train",    "--data", "images",  "--out", out,
                                    "--device", "cpu",    "--batch", "8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> lm_words(const std::string& out, std::vector<std::string> more) {
  std::vector<std::string> words = {
      "lm",  "train",    "text.txt", "--out",   out,  "--device",     "cpu", "--arch",
      "gpt", "--layers", "1",        "--width", "16", "--heads",      "2",   "--length",
      "16",  "--batch",  "4",        "--steps", "6",  "--eval-every", "2",   "--no-samples"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void write_words(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += i % 7 == 0 ? "ab\n" : i % 3 == 0 ? "ca " : "bca";
  write_text(folder / "text.txt", text);
}

// Folder runs/ with two classifiers, one finished, and two language models.
void train_all(const TestFolder& folder) {
  write_image_folder(folder.path() / "images");
  write_words(folder);
  ASSERT_EQ(folder.tg(classifier_words("runs/a", {"--hidden", "4", "--epochs", "3"})).code, 0);
  ASSERT_EQ(folder
                .tg(classifier_words("runs/b", {"--hidden", "8,4", "--epochs", "3", "--lr", "0.01",
                                                "--stop-after", "16"}))
                .code,
            130);
  ASSERT_EQ(folder.tg(lm_words("runs/c", {})).code, 0);
  ASSERT_EQ(folder.tg(lm_words("runs/d", {"--holdout", "0", "--seed", "3"})).code, 0);
}

TEST(TgRuns, lists_progress_and_results_of_runs) {
  const TestFolder folder;
  ASSERT_NO_FATAL_FAILURE(train_all(folder));
  const ToolResult result = folder.tg({"runs", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<RunsLine> rows = json_lines(result.out);
  ASSERT_EQ(rows.size(), 4U) << result.out;

  const std::vector<RunsLine> epochs = of_kind(folder.path() / "runs/a", "epoch");
  ASSERT_EQ(epochs.size(), 3U);
  double best = 1e9;
  for (const RunsLine& line : epochs) best = std::min(best, line["test_loss"].get<double>());
  EXPECT_EQ(rows[0]["name"], "a");
  EXPECT_EQ(rows[0]["kind"], "classifier");
  EXPECT_EQ(rows[0]["model"], "25-4-3");
  EXPECT_TRUE(rows[0]["device"].get<std::string>().starts_with("cpu (")) << rows[0];
  EXPECT_TRUE(rows[0]["device"].get<std::string>().ends_with(')')) << rows[0];
  EXPECT_EQ(rows[0]["steps"], 21);  // 60 / 8 = 7 whole batches per epoch
  EXPECT_EQ(rows[0]["total_steps"], 21);
  EXPECT_EQ(rows[0]["train_loss"], epochs[2]["train_loss"]);
  EXPECT_EQ(rows[0]["last_loss"], epochs[2]["test_loss"]);
  EXPECT_EQ(rows[0]["best_loss"], best);
  EXPECT_EQ(rows[0]["accuracy"], epochs[2]["test_accuracy"]);
  EXPECT_EQ(rows[0]["seconds"], epochs[2]["seconds"]);
  EXPECT_FALSE(rows[0].contains("perplexity"));
  EXPECT_EQ(rows[0]["state"], "finished");

  EXPECT_EQ(rows[1]["state"], "stopped");
  EXPECT_EQ(rows[1]["steps"], 16);
  EXPECT_EQ(rows[1]["last_loss"], of_kind(folder.path() / "runs/b", "epoch")[1]["test_loss"]);

  const std::vector<RunsLine> validations = of_kind(folder.path() / "runs/c", "validation");
  ASSERT_EQ(validations.size(), 3U);
  best = 1e9;
  for (const RunsLine& line : validations) best = std::min(best, line["loss"].get<double>());
  EXPECT_EQ(rows[2]["kind"], "lm");
  EXPECT_EQ(rows[2]["model"], "gpt, 2 layers of 16");
  EXPECT_EQ(rows[2]["last_loss"], validations[2]["loss"]);
  EXPECT_EQ(rows[2]["best_loss"], best);
  EXPECT_NEAR(rows[2]["perplexity"].get<double>(), std::exp(best), 1e-9);
  EXPECT_FALSE(rows[2].contains("accuracy"));
  EXPECT_EQ(rows[2]["state"], "finished");
  EXPECT_FALSE(rows[3].contains("last_loss")) << "there is no validation text";
  EXPECT_EQ(rows[3]["state"], "finished");

  const ToolResult text = folder.tg({"runs", "runs"});
  ASSERT_EQ(text.code, 0) << text.err;
  std::istringstream lines(text.out);
  std::string head, first;
  std::getline(lines, head);
  std::getline(lines, first);
  EXPECT_TRUE(head.starts_with("name  kind        model")) << text.out;
  EXPECT_EQ(first.find("21/21"), head.find("steps")) << text.out;
  EXPECT_TRUE(first.ends_with("finished")) << text.out;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 5);

  const ToolResult csv = folder.tg({"runs", "runs/c", "--csv"});
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with(
      "name,kind,model,device,steps,total_steps,train_loss,last_loss,best_loss,accuracy,"
      "perplexity,seconds,state\nc,lm,\"gpt, 2 layers of 16\","))
      << csv.out;
}

TEST(TgRuns, a_run_is_running_while_a_process_trains_it) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ToolProcess process(classifier_words("runs/a", {"--hidden", "4", "--epochs", "1000000"}),
                      folder.path());
  const auto state = [&] { return json_lines(folder.tg({"runs", "--json"}).out)[0]["state"]; };
  for (int i = 0; i < 6000 && !fs::exists(folder.path() / "runs/a/.lock"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(state(), "running");
  process.signal(SIGKILL);
  (void)process.wait();
  EXPECT_TRUE(fs::exists(folder.path() / "runs/a/.lock"));
  EXPECT_EQ(state(), "stopped");
}

TEST(TgRuns, a_replacement_that_was_killed_is_completed_and_listed) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  ASSERT_EQ(folder.tg(classifier_words("a", {"--hidden", "4", "--epochs", "1"})).code, 0);
  fs::create_directories(folder.path() / "runs/b");
  fs::rename(folder.path() / "a", folder.path() / "runs/b/.replacement");
  const ToolResult result = folder.tg({"runs", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<RunsLine> rows = json_lines(result.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["name"], "b");
  EXPECT_EQ(rows[0]["state"], "finished");
  EXPECT_TRUE(fs::exists(folder.path() / "runs/b/run.json"));
}

TEST(TgRuns, compares_options_results_and_curves) {
  const TestFolder folder;
  ASSERT_NO_FATAL_FAILURE(train_all(folder));
  const ToolResult result =
      folder.tg({"runs", "compare", "runs/a", "runs/b", "--json", "--svg", "compared.svg"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::map<std::string, RunsLine> rows;
  for (const RunsLine& row : json_lines(result.out)) rows[row["option"]] = row;
  EXPECT_EQ(rows.at("lr")["a"], 0.001);
  EXPECT_EQ(rows.at("lr")["b"], 0.01);
  EXPECT_EQ(rows.at("hidden")["b"], (std::vector<int>{8, 4}));
  for (const char* const equal : {"epochs", "data", "batch", "task.train_count", "checksum"})
    EXPECT_FALSE(rows.contains(equal)) << equal;
  EXPECT_EQ(rows.at("state")["a"], "finished");
  EXPECT_EQ(rows.at("state")["b"], "stopped");
  EXPECT_EQ(rows.at("accuracy")["a"],
            of_kind(folder.path() / "runs/a", "epoch")[2]["test_accuracy"]);
  int curves = 0;
  std::string texts;
  for (const XmlElement& element : XmlReader(read_text(folder / "compared.svg")).read()) {
    if (element.name == "polyline") ++curves;
    if (element.name == "text") texts += element.text + "\n";
  }
  EXPECT_EQ(curves, 6) << "two runs in three panels";
  for (const char* const text :
       {"training loss", "test loss", "test accuracy", "a, last ", "b, last ", "a, b", "epoch"}) {
    EXPECT_NE(texts.find(text), std::string::npos) << text;
  }

  const ToolResult models = folder.tg({"runs", "compare", "runs/c", "runs/d"});
  ASSERT_EQ(models.code, 0) << models.err;
  EXPECT_TRUE(models.out.starts_with("option")) << models.out;
  EXPECT_NE(models.out.find("\nseed "), std::string::npos) << models.out;
  EXPECT_NE(models.out.find("\nholdout "), std::string::npos) << models.out;
  EXPECT_NE(models.out.find("\nperplexity "), std::string::npos) << models.out;
  EXPECT_EQ(models.out.find("\nlength "), std::string::npos) << models.out;

  // Runs whose folders have the same name are told apart by their paths.
  fs::create_directories(folder.path() / "more");
  fs::copy(folder.path() / "runs/a", folder.path() / "more/a");
  const ToolResult same = folder.tg({"runs", "compare", "runs/a", "more/a", "--csv"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_TRUE(same.out.starts_with("option,runs/a,more/a\nstate,finished,finished\n")) << same.out;

  const ToolResult mixed = folder.tg({"runs", "compare", "runs/a", "runs/c"});
  EXPECT_EQ(mixed.code, 1);
  EXPECT_EQ(mixed.err,
            "error: runs/a is a run of tg train, runs/c of tg lm train; expected runs of one "
            "kind\n");
}

TEST(TgRuns, prints_all_metrics_of_a_run) {
  const TestFolder folder;
  ASSERT_NO_FATAL_FAILURE(train_all(folder));
  for (const std::string run : {"runs/a", "runs/b", "runs/c"}) {
    std::vector<RunsLine> wanted = json_lines(read_text(folder.path() / run / "metrics.jsonl"));
    std::erase_if(wanted, [](const RunsLine& line) { return line["kind"] == "pause"; });
    for (RunsLine& line : wanted) line.erase("checksum");
    const ToolResult result = folder.tg({"runs", "metrics", run, "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    const std::vector<RunsLine> got = json_lines(result.out);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(nlohmann::json(got[i]), nlohmann::json(wanted[i])) << run;
  }
  const RunsLine epoch = of_kind(folder.path() / "runs/a", "epoch").at(0);
  const ToolResult csv = folder.tg({"runs", "metrics", "runs/a", "--csv"});
  ASSERT_EQ(csv.code, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with(
      "kind,step,epoch,loss,lr,train_loss,test_loss,test_accuracy,images_per_second,seconds\n"
      "step,1,1,"))
      << csv.out;
  EXPECT_NE(csv.out.find("\nepoch,7,1,,," + epoch["train_loss"].dump() + "," +
                         epoch["test_loss"].dump() + "," + epoch["test_accuracy"].dump() + "," +
                         epoch["images_per_second"].dump() + "," + epoch["seconds"].dump() + "\n"),
            std::string::npos)
      << csv.out;
}

TEST(TgRuns, errors_name_the_folder_or_the_line) {
  const TestFolder folder;
  const auto error = [&](const std::vector<std::string>& words) {
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 1) << result.out;
    return result.err;
  };
  EXPECT_EQ(error({"runs"}), "error: runs: not a folder\n");
  fs::create_directories(folder.path() / "runs/empty");
  EXPECT_EQ(error({"runs"}), "error: runs: no runs: expected folders that contain a run.json\n");
  EXPECT_EQ(error({"runs", "metrics", "nothing"}), "error: nothing: not a run folder\n");
  EXPECT_EQ(error({"runs", "compare", "runs/empty", "runs"}),
            "error: runs/empty: not a run folder: it has no run.json\n");
  write_image_folder(folder.path() / "images");
  for (const char* const out : {"runs/a", "runs/b"})
    ASSERT_EQ(folder.tg(classifier_words(out, {"--hidden", "4", "--epochs", "1"})).code, 0);

  // A damaged run does not hide the others.
  std::string metrics = read_text(folder / "runs/a/metrics.jsonl");
  metrics.insert(metrics.find("\"step\":1") + 8, "0");
  write_text(folder / "runs/a/metrics.jsonl", metrics);
  const ToolResult listed = folder.tg({"runs", "--json"});
  EXPECT_EQ(listed.code, 1);
  EXPECT_TRUE(listed.err.starts_with("error: runs/a/metrics.jsonl: line 1: differs from its "))
      << listed.err;
  const std::vector<RunsLine> rows = json_lines(listed.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].dump(), R"({"name":"a","state":"damaged"})");
  EXPECT_EQ(rows[1]["state"], "finished");
  EXPECT_TRUE(error({"runs", "metrics", "runs/a"}).starts_with("error: runs/a/metrics.jsonl: "));
  fs::remove(folder.path() / "runs/a/metrics.jsonl");
  EXPECT_TRUE(error({"runs", "metrics", "runs/a"}).starts_with("error: runs/a/metrics.jsonl: "));
  write_text(folder / "runs/b/run.json", R"({"format": "other"})");
  EXPECT_EQ(error({"runs", "metrics", "runs/b"}),
            "error: runs/b/run.json: format: expected \"tensorgrad run\", got \"other\": not a run "
            "of tg train\n");

  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"runs", "compare", "runs/a"},
        std::vector<std::string>{"runs", "--csv", "metrics", "runs/a"},
        std::vector<std::string>{"runs", "runs", "metrics", "runs/a"},
        std::vector<std::string>{"runs", "--csv", "--json"}}) {
    EXPECT_EQ(folder.tg(words).code, 2) << words[1];
  }
}

TEST(Table, csv_quotes_fields_and_text_aligns_them) {
  const cli::Table table{{"a_name", "value", "nothing"},
                         {{{"x,\"y\""}, {0.1 + 0.2}, {}},
                          {{"\xc3\xa4"}, {nullptr}, {nullptr}},
                          {{"two\nlines"}, {1234567}, {}}}};
  EXPECT_EQ(cli::formatted(table, cli::TableFormat::kCsv),
            "a_name,value,nothing\n\"x,\"\"y\"\"\",0.30000000000000004,\n\xc3\xa4,,\n"
            "\"two\nlines\",1234567,\n");
  EXPECT_EQ(cli::formatted(table, cli::TableFormat::kText),
            "a name       value\nx,\"y\"          0.3\n\xc3\xa4                -\n"
            "two?lines  1234567\n");
  EXPECT_EQ(cli::formatted(table, cli::TableFormat::kJson),
            "{\"a_name\":\"x,\\\"y\\\"\",\"value\":0.30000000000000004}\n{\"a_name\":\"\xc3\xa4\"}"
            "\n{\"a_name\":\"two\\nlines\",\"value\":1234567}\n");
}

}  // namespace
}  // namespace tensorgrad::test
