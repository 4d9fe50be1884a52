// SPDX-License-Identifier: MIT
// The progress bar: its text at every width, on a terminal and in a file, with a mock clock.
#include "run/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace tensorgrad::cli {
namespace {

constexpr ProgressState kState{.epoch = 2,
                               .epochs = 5,
                               .done = 90'000,
                               .total = 300'000,
                               .loss = 0.3124,
                               .rate = 48'200,
                               .seconds_left = 72};

TEST(ProgressLine, shows_everything_if_there_is_room) {
  EXPECT_EQ(
      progress_line(kState, "images", {.width = 100}),
      "epoch 2/5  ===========>............................   30%  loss 0.3124  48.2k images/s  "
      "1:12 left");
  EXPECT_EQ(progress_line(kState, "images", {.width = 100, .bar = false}),
            "epoch 2/5   30%  loss 0.3124  48.2k images/s  1:12 left");
}

TEST(ProgressLine, drops_the_least_important_parts) {
  EXPECT_EQ(progress_line(kState, "images", {.width = 64}),
            "epoch 2/5   30%  loss 0.3124  48.2k images/s  1:12 left");
  EXPECT_EQ(progress_line(kState, "images", {.width = 50}),
            "epoch 2/5  =>.......   30%  loss 0.3124  1:12 left");
  EXPECT_EQ(progress_line(kState, "images", {.width = 30}), "epoch 2/5   30%  loss 0.3124");
  EXPECT_EQ(progress_line(kState, "images", {.width = 12}), "loss 0.3124");
  EXPECT_EQ(progress_line(kState, "images", {.width = 5}), "loss ");
  EXPECT_EQ(progress_line(kState, "images", {.width = -1}), "");
  for (int width = 0; width < 130; ++width) {
    EXPECT_LE(progress_line(kState, "images", {.width = width}).size(),
              static_cast<std::size_t>(width));
  }
}

TEST(ProgressLine, colour_and_unicode_do_not_change_its_width) {
  const auto columns = [](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\x1b')
        i = text.find('m', i);
      else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
        ++n;
    }
    return n;
  };
  const std::string plain = progress_line(kState, "images", {.width = 90});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  for (const LineStyle& style :
       {LineStyle{.width = 90, .color = true}, LineStyle{.width = 90, .unicode = true},
        LineStyle{.width = 90, .color = true, .unicode = true}}) {
    EXPECT_EQ(columns(progress_line(kState, "images", style)), plain.size());
  }
}

TEST(ProgressLine, odd_values_are_fine) {
  ProgressState state{};
  EXPECT_EQ(progress_line(state, "rows", {.width = 30, .bar = false}), "  0%  loss 0.0000");
  state = {.done = 10, .total = 5, .loss = std::nan(""), .seconds_left = 1e300};
  EXPECT_EQ(progress_line(state, "rows", {.width = 60, .bar = false}), "100%  loss nan  -:-- left");
  state.loss = 1e-7;
  EXPECT_NE(progress_line(state, "rows", {}).find("loss 1.000e-07"), std::string::npos);
}

TEST(ShownLoss, starts_with_the_first_loss_after_a_resume) {
  ShownLoss fresh, resumed;
  for (const double loss : {8.0, 4.0}) fresh.take(1, loss);
  EXPECT_DOUBLE_EQ(fresh.value(), 4);
  resumed.take(1000, 2);
  EXPECT_DOUBLE_EQ(resumed.value(), 2);
  resumed.take(1001, 4);
  EXPECT_DOUBLE_EQ(resumed.value(), 2.1);
}

TEST(ProgressLine, numbers_are_short) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(999.4), "999");
  EXPECT_EQ(short_count(999.6), "1.00k");
  EXPECT_EQ(short_count(48'200), "48.2k");
  EXPECT_EQ(short_count(999'600), "1.00M");
  EXPECT_EQ(short_count(2.5e9), "2.50G");
  EXPECT_EQ(clock_time(6.6), "0:07");
  EXPECT_EQ(clock_time(750), "12:30");
  EXPECT_EQ(clock_time(7384), "2:03:04");
  EXPECT_EQ(clock_time(-1), "-:--");
}

// A progress bar that writes to a file, with a clock that the test advances.
struct ProgressTest : ::testing::Test {
  ProgressTest() = default;
  ProgressTest(const ProgressTest&) = delete;
  ProgressTest& operator=(const ProgressTest&) = delete;
  ~ProgressTest() override {
    progress.reset();
    if (options.stream != nullptr) std::fclose(options.stream);
  }
  void start(bool terminal) {
    options.stream = std::tmpfile();
    ASSERT_NE(options.stream, nullptr);
    options.terminal = terminal;
    options.width = 80;
    options.unicode = false;
    options.color = false;
    options.clock = [this] { return now; };
    progress = std::make_unique<Progress>(1000, 2, options);
  }
  [[nodiscard]] std::string written() const {
    std::string out(static_cast<std::size_t>(std::ftell(options.stream)), '\0');
    std::fseek(options.stream, 0, SEEK_SET);
    out.resize(std::fread(out.data(), 1, out.size(), options.stream));
    return out;
  }

  double now = 100;
  ProgressOptions options;
  std::unique_ptr<Progress> progress;
};

TEST_F(ProgressTest, a_file_gets_plain_lines_now_and_then) {
  start(false);
  for (int i = 0; i < 100; ++i) {
    progress->update(1, i * 5, 0.5);
    now += 0.1;
  }
  progress->print("epoch 1: accuracy 88%");
  progress->update(2, 500, 0.5);
  progress->finish();
  progress->update(2, 1000, 0.5);
  EXPECT_EQ(written(),
            "epoch 1/2   25%  loss 0.5000  50 images/s  0:15 left\nepoch 1: accuracy 88%\n");
}

TEST_F(ProgressTest, a_terminal_line_is_redrawn_and_erased) {
  start(true);
  progress->update(1, 10, 0.5);
  now += 0.01;
  progress->update(1, 20, 0.5);  // too early for an update
  now += 0.99;
  progress->update(1, 110, 0.5);
  progress->print("epoch 1");
  progress->update(2, 110, 0.5);
  progress->finish();
  const std::string text = written();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("100 images/s  0:09 left\x1b[K\r\x1b[Kepoch 1\n\r"), std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST_F(ProgressTest, pauses_do_not_count_into_the_rate) {
  start(false);
  progress->update(1, 0, 0.5);
  now += 1;
  progress->update(1, 100, 0.5);
  progress->pause();
  now += 50;
  progress->resume();
  now += 1;
  progress->update(1, 200, 0.5);
  EXPECT_NE(written().find("100 images/s  0:08 left"), std::string::npos) << written();
}

TEST_F(ProgressTest, the_rate_follows_the_last_seconds) {
  start(false);
  std::int64_t done = 0;
  for (int i = 0; i < 20; ++i, now += 1) progress->update(1, done += 1, 0.5);
  for (int i = 0; i < 20; ++i, now += 1) progress->update(1, done += 40, 0.5);
  const std::string text = written();
  EXPECT_NE(text.rfind("40 images/s"), std::string::npos) << text;
}

}  // namespace
}  // namespace tensorgrad::cli
