// SPDX-License-Identifier: MIT
// --ui=tui: what the terminal shows, its keys, and that the tool restores it however it ends.
#include <csignal>

#include <algorithm>
#include <chrono>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal.h"
#include "cli/tool.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Arguments of a run on images that continues until it is stopped.
std::vector<std::string> endless_classifier() {
  return {"train",    "--ui=tui", "--data",   "images",  "--out",    "run",
          "--device", "cpu",      "--epochs", "1000000", "--hidden", "8",
          "--batch",  "8",        "--lr",     "0.001",   "--seed",   "5"};
}

std::vector<std::string> small_language(const std::string& steps) {
  return {"lm",       "train",    "text.txt",     "--ui=tui", "--out",
          "run",      "--device", "cpu",          "--arch",   "gpt",
          "--layers", "1",        "--width",      "16",       "--heads",
          "2",        "--length", "16",           "--batch",  "4",
          "--steps",  steps,      "--eval-every", "20",       "--sample-tokens",
          "12"};
}

void write_language(const TestFolder& folder, const std::string& ending = "") {
  std::string text;
  for (int i = 0; i < 600; ++i) text += i % 7 == 0 ? "ab\n" : i % 3 == 0 ? "ca " : "bca";
  write_text(folder / "text.txt", text + ending);
}

// A folder with images, for endless_classifier().
class TuiFolder : public TestFolder {
 public:
  TuiFolder() { write_image_folder(path() / "images"); }
};

// Returns the number after a name in the table of numbers; -1 if there is none.
std::int64_t number_of(const TerminalRun& run, const std::string& name) {
  const std::string text = run.text();
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(name + R"( +(?:step )?([0-9,]+))"))) return -1;
  std::string digits = match[1];
  std::erase(digits, ',');
  return std::stoll(digits);
}

bool has_step(TerminalRun& run, std::int64_t step) {
  return run.wait_until([&](const ScreenEmulator&) { return number_of(run, "Step") >= step; });
}

void expect_clean(const TerminalRun& run) {
  EXPECT_THAT(run.screen().unknown(), IsEmpty());
  EXPECT_TRUE(run.is_restored());
}

TEST(TgTui, shows_a_classifier_and_q_stops_it_as_ctrl_c_does) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path());
  ASSERT_TRUE(run.wait_for("Predictions")) << run.main_text();
  ASSERT_TRUE(has_step(run, 300));
  EXPECT_FALSE(run.screen().shows_cursor());
  EXPECT_FALSE(run.is_restored());
  const std::vector<std::string> rows = run.screen().alternate();
  const std::string text = run.text();
  ASSERT_EQ(rows.size(), 30U) << text;
  EXPECT_THAT(rows[0], StartsWith("tg train  run ")) << text;
  EXPECT_TRUE(rows[0].ends_with("training") || rows[0].ends_with("testing")) << text;
  EXPECT_TRUE(std::regex_search(rows[1], std::regex("^(\u2500)+  +0 %$"))) << text;
  EXPECT_THAT(rows[2], StartsWith("device  cpu")) << text;
  EXPECT_THAT(rows[3], StartsWith("model   ")) << text;
  EXPECT_THAT(rows[4], HasSubstr("images: 60 images for training, 25 for testing")) << text;
  // Dots become a line if there are many.
  EXPECT_THAT(rows[6], AnyOf(StartsWith("Loss  \u2501 training  \u25cf test"),
                             StartsWith("Loss  \u2501 training  \u2501 test")))
      << text;
  EXPECT_TRUE(
      std::regex_search(rows[29], std::regex("^ p  pause +s  save +q  stop +t  time launches")))
      << text;
  for (const char* const line :
       {R"(Step +[\d,]+ of 7,000,000\n)", R"(Epoch +[\d,]+ of 1,000,000\n)",
        R"(Training loss +[\d.]+\n)", R"(Test loss +[\d.]+ at step [\d,]+\n)",
        R"(Test accuracy +[\d.]+ %\n)", R"(Images/s +[\d.]+k? \([\d.]+k? steps/s\)\n)",
        R"(Time left +[\d:-]+\n)", R"(Trained +\d+:\d\d\n)", R"(Learning rate +0\.001\n)",
        R"(Saved +step [\d,]+\n)", R"(Memory +[\d.]+ kB, by the plan\n)",
        R"(Launches +\d+ a step\n)", R"(\d+ of 25 test images are right)"})
    EXPECT_TRUE(std::regex_search(text, std::regex(line))) << line << "\n" << text;
  // The curves: dots of braille, and axes.
  EXPECT_TRUE(std::regex_search(text, std::regex("\u2502\xe2[\xa0-\xa3]"))) << text;
  EXPECT_THAT(text, HasSubstr("\u2524"));

  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
  const std::string printed = run.main_text();
  EXPECT_THAT(printed, StartsWith("device  cpu"));
  EXPECT_THAT(printed, HasSubstr("/1000000  loss "));
  EXPECT_TRUE(std::regex_search(
      printed, std::regex(R"(\nstopped after step \d+ of 7000000; saved; resume with: )"
                          R"(tg train\s+--resume run\n)")))
      << printed;
  const ToolResult resumed =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"});
  EXPECT_EQ(resumed.code, 130) << resumed.err;
}

TEST(TgTui, pauses_saves_and_resumes_by_keys) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path());
  ASSERT_TRUE(has_step(run, 30)) << run.main_text();
  run.type("p");
  ASSERT_TRUE(run.wait_for(" paused\n")) << run.text();
  EXPECT_THAT(run.text(), HasSubstr(" p  resume"));
  run.watch(milliseconds(300));
  const std::int64_t step = number_of(run, "Step");
  run.watch(milliseconds(300));
  EXPECT_EQ(number_of(run, "Step"), step);
  run.type("s");
  EXPECT_TRUE(run.wait_until([&](auto&) { return number_of(run, "Saved") == step; })) << run.text();
  EXPECT_THAT(run.text(), HasSubstr(" paused\n"));
  run.type("\x1b[A\x1bq\x1bOp");  // an arrow, Alt-Q and a key of the keypad: none has a meaning
  run.watch(milliseconds(300));
  EXPECT_THAT(run.text(), HasSubstr(" paused\n"));
  run.type("p");
  ASSERT_TRUE(has_step(run, step + 1)) << run.text();
  // Ctrl-C ends a paused run too.
  run.type("p");
  ASSERT_TRUE(run.wait_for(" paused\n")) << run.text();
  run.type("\x03");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
  EXPECT_THAT(run.main_text(), HasSubstr("\npaused by a key\nresumed by a key\n"));
  EXPECT_THAT(run.main_text(), HasSubstr("saved; resume with: tg train"));
}

TEST(TgTui, shows_samples_of_a_language_model_and_ends_with_it) {
  const TestFolder folder;
  write_language(folder);
  TerminalRun run(small_language("1500"), folder.path());
  ASSERT_TRUE(run.wait_for("Samples")) << run.main_text();
  EXPECT_TRUE(run.wait_for("Validation loss")) << run.text();
  EXPECT_THAT(run.text(), HasSubstr("tg lm train  run"));
  EXPECT_THAT(run.text(), HasSubstr("nats per token"));
  EXPECT_THAT(run.text(), AnyOf(HasSubstr("\u25cf validation"), HasSubstr("\u2501 validation")));
  EXPECT_TRUE(std::regex_search(run.text(), std::regex(R"(\nstep \d+  +[abc ]+\n)"))) << run.text();
  EXPECT_EQ(run.wait(), 0);
  expect_clean(run);
  const std::string printed = run.main_text();
  EXPECT_THAT(printed, HasSubstr("\nstep 1500/1500  loss "));
  EXPECT_TRUE(std::regex_search(printed, std::regex(R"(\nbest validation loss [\d.]+ at step)")))
      << printed;
  EXPECT_THAT(printed, HasSubstr("\nrun: model.safetensors, checkpoint.safetensors"));
}

TEST(TgTui, times_launches_and_changes_panels_and_scale) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path());
  ASSERT_TRUE(run.wait_for("Predictions")) << run.main_text();
  run.type("t");
  ASSERT_TRUE(run.wait_for("the slowest first")) << run.text();
  EXPECT_TRUE(std::regex_search(run.text(), std::regex(R"(\n +[\d.]+ us +[\d.]+ % +\w+)")))
      << run.text();
  EXPECT_THAT(run.text(), HasSubstr("Predictions   Launches of a step   Output\n"));
  run.type("\t");
  EXPECT_TRUE(run.wait_for("\nepoch ")) << run.text();
  run.type("\t");
  EXPECT_TRUE(run.wait_for("test images are right")) << run.text();
  EXPECT_THAT(run.text(), Not(HasSubstr("the slowest first")));
  EXPECT_FALSE(std::regex_search(run.text(), std::regex("(\u25cf|\u2501) test +logarithmic ")));
  run.type("l");
  EXPECT_TRUE(run.wait_for(" l  linear")) << run.text();
  EXPECT_TRUE(std::regex_search(run.text(), std::regex("(\u25cf|\u2501) test +logarithmic ")))
      << run.text();
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
}

TEST(TgTui, follows_the_size_of_the_terminal) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path(), {.columns = 80, .rows = 20});
  ASSERT_TRUE(run.wait_for("Predictions")) << run.main_text();
  EXPECT_THAT(run.screen().alternate()[19], StartsWith(" p  pause"));
  for (const auto& [columns, rows] : {std::pair(140, 45), std::pair(80, 20), std::pair(97, 23)}) {
    run.resize(columns, rows);
    EXPECT_TRUE(run.wait_until([&, last = static_cast<std::size_t>(rows - 1)](
                                   const ScreenEmulator& screen) {
      const std::vector<std::string> lines = screen.alternate();
      return lines.size() > last && lines[last].starts_with(" p  pause") &&
             lines[0].starts_with("tg train  run ");
    })) << run.text();
    run.watch(milliseconds(150));
    EXPECT_THAT(run.text(), Not(HasSubstr("#")));
    // The state ends in the last column.
    EXPECT_EQ(run.screen().alternate()[0].size(), static_cast<std::size_t>(columns)) << run.text();
  }
  run.resize(60, 15);
  ASSERT_TRUE(run.wait_for("The terminal is 60x15.\nMake it at least 80x20.\nThe run continues: "))
      << run.text();
  EXPECT_THAT(run.text(), Not(HasSubstr("#")));
  run.resize(100, 30);
  EXPECT_TRUE(run.wait_for("Test accuracy")) << run.text();
  run.resize(1, 1);
  run.watch(milliseconds(300));
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
}

TEST(TgTui, draws_at_most_ten_times_a_second) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path());
  ASSERT_TRUE(run.wait_for("Predictions")) << run.main_text();
  for (int i = 0; i < 40; ++i) run.type("l");
  const int frames = run.watch(milliseconds(2000));
  EXPECT_LE(frames, 21);
  EXPECT_GE(frames, 2);
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
}

TEST(TgTui, is_ascii_without_a_locale_of_utf_8) {
  const TuiFolder folder;
  TerminalSetup setup;
  setup.environment["LANG"] = "C";
  setup.environment["NO_COLOR"] = "1";
  TerminalRun run(endless_classifier(), folder.path(), setup);
  ASSERT_TRUE(run.wait_for("Predictions")) << run.main_text();
  const std::string text = run.text();
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x7f;
  })) << text;
  EXPECT_THAT(text,
              AnyOf(HasSubstr("Loss  - training  o test"), HasSubstr("Loss  - training  - test")));
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(\|['|.o-])"))) << text;
  for (const std::string& style : run.screen().styles()) EXPECT_THAT(style, Not(HasSubstr("38;")));
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
}

TEST(TgTui, restores_the_terminal_after_signals) {
  const TuiFolder folder;
  for (const auto& [number, code] :
       {std::pair(SIGTERM, 143), std::pair(SIGINT, 130), std::pair(SIGQUIT, 131),
        std::pair(SIGABRT, 134), std::pair(SIGHUP, 129)}) {
    std::vector<std::string> words = endless_classifier();
    words[5] = "run" + std::to_string(number);
    TerminalRun run(words, folder.path());
    ASSERT_TRUE(has_step(run, 30)) << run.main_text();
    run.signal(number);
    EXPECT_EQ(run.wait(), code) << number;
    expect_clean(run);
    const bool ends_run = number == SIGTERM || number == SIGINT || number == SIGHUP;
    EXPECT_EQ(run.main_text().find("saved; resume with") != std::string::npos, ends_run) << number;
  }
}

// The second signal of a kind ends the process at once, if it comes before the run has ended.
TEST(TgTui, restores_the_terminal_after_a_second_signal) {
  const TuiFolder folder;
  for (const int pause : {0, 1, 3, 10}) {
    std::vector<std::string> words = endless_classifier();
    words[5] = "run" + std::to_string(pause);
    TerminalRun run(words, folder.path());
    ASSERT_TRUE(has_step(run, 30)) << run.main_text();
    for (int i = 0; i < 3; ++i) {
      run.signal(SIGINT);
      std::this_thread::sleep_for(milliseconds(pause));
    }
    EXPECT_EQ(run.wait(), 130);
    expect_clean(run);
  }
}

TEST(TgTui, saves_the_run_if_the_terminal_is_closed) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path());
  ASSERT_TRUE(has_step(run, 30)) << run.main_text();
  run.hang_up();
  EXPECT_EQ(run.wait(), 129);
  const ToolResult resumed =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"});
  EXPECT_EQ(resumed.code, 130) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("resuming after step "));
}

TEST(TgTui, leaves_the_terminal_to_the_shell_after_ctrl_z) {
  const TuiFolder folder;
  TerminalSetup setup;
  setup.script = "\"$@\"; echo at the shell; bg; read line; echo got $line; fg; exit $?";
  TerminalRun run(endless_classifier(), folder.path(), setup);
  ASSERT_TRUE(has_step(run, 30)) << run.main_text();
  run.type("\x1a");
  ASSERT_TRUE(run.wait_until([&](const ScreenEmulator&) {
    return run.main_text().find("at the shell\n") != std::string::npos;
  })) << run.text();
  run.watch(milliseconds(600));  // it trains in the background
  EXPECT_TRUE(run.is_restored()) << run.text();
  run.type("qqq\n");
  ASSERT_TRUE(run.wait_until([](const ScreenEmulator& screen) { return screen.shows_alternate(); }))
      << run.main_text();
  ASSERT_TRUE(run.wait_for("Test accuracy")) << run.text();
  const std::int64_t step = number_of(run, "Step");
  ASSERT_TRUE(has_step(run, step + 1));
  EXPECT_THAT(run.main_text(), HasSubstr("got qqq\n"));
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
}

TEST(TgTui, keeps_control_characters_of_data_from_the_terminal) {
  const TestFolder folder;
  const std::string hostile = "\x1b]0;t\x07\x1b[2J\xc2\x9b\x33\x31m\xe2\x80\xae";
  write_language(folder, hostile);
  fs::rename(folder.path() / "text.txt", folder.path() / "te\x1b[7mxt");
  std::vector<std::string> words = small_language("1000000");
  words[2] = "te\x1b[7mxt";
  words[5] = "ru\x1b[31mn\x9b";
  words.insert(words.end(), {"--prompt", hostile});
  TerminalRun run(words, folder.path(), {.columns = 120, .rows = 40});
  ASSERT_TRUE(run.wait_for("Samples")) << run.main_text();
  EXPECT_TRUE(run.wait_for("?]0;t??[2J?31m?")) << run.text();
  EXPECT_THAT(run.screen().alternate()[0], StartsWith("tg lm train  ru?[31mn? ")) << run.text();
  EXPECT_THAT(run.text(), HasSubstr("te?[7mxt: "));
  run.type("\t");
  EXPECT_TRUE(run.wait_for("/1000000  loss ")) << run.text();
  run.type("q");
  EXPECT_EQ(run.wait(), 130);
  expect_clean(run);
  EXPECT_EQ(run.screen().styles().count("31"), 0U);
  EXPECT_EQ(run.screen().styles().count("7"), 0U);
}

TEST(TgTui, restores_the_terminal_before_it_says_why_a_run_failed) {
  const TuiFolder folder;
  TerminalRun run(endless_classifier(), folder.path(), {.columns = 200, .rows = 30});
  ASSERT_TRUE(has_step(run, 30)) << run.main_text();
  run.type("p");
  ASSERT_TRUE(run.wait_for(" paused\n")) << run.text();
  fs::rename(folder.path() / "run", folder.path() / "moved");
  write_text(folder / "run", "no folder");
  run.type("p");  // the end of the next epoch is to be saved
  EXPECT_EQ(run.wait(), 1);
  expect_clean(run);
  EXPECT_THAT(run.main_text(), HasSubstr("\nerror: run/"));
}

TEST(TgTui, says_what_it_expects_of_the_terminal_before_it_trains) {
  const TuiFolder folder;
  write_language(folder);
  for (const std::vector<std::string>& words : {endless_classifier(), small_language("40")}) {
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err,
              "error: --ui=tui: standard output is not a terminal; expected a terminal of at least "
              "80x20 (columns x rows)\n");
  }
  const auto message = [&](const TerminalSetup& setup) {
    TerminalRun run(endless_classifier(), folder.path(), setup);
    EXPECT_EQ(run.wait(), 1);
    EXPECT_THAT(run.screen().unknown(), IsEmpty());
    std::string text;
    for (const std::string& line : run.screen().main()) text += line;  // long ones are wrapped
    return text;
  };
  for (const auto& [columns, rows] : {std::pair(79, 20), std::pair(80, 19)}) {
    EXPECT_EQ(message({.columns = columns, .rows = rows}),
              "error: --ui=tui: the terminal is " + std::to_string(columns) + "x" +
                  std::to_string(rows) +
                  "; expected a terminal of at least 80x20 (columns x rows)");
  }
  // A terminal that does not know its size.
  EXPECT_THAT(message({.columns = 0, .rows = 0}), HasSubstr("theterminalis0x0"));
  TerminalSetup setup;
  setup.environment["TERM"] = "dumb";
  EXPECT_EQ(message(setup),
            "error: --ui=tui: TERM is 'dumb'; expected a terminal that understands ANSI escape"
            " sequences");
  setup = {};
  setup.script = "\"$@\" < /dev/null";
  EXPECT_EQ(message(setup),
            "error: --ui=tui: standard input is not a terminal; expected one, from which keys are"
            " read");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

}  // namespace
}  // namespace tensorgrad::test
