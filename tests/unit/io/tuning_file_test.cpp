// SPDX-License-Identifier: MIT
// The file of the tuning cache: what is read back, errors, and concurrent writers.
#include "io/tuning_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "io_test_util.h"

namespace tensorgrad {
namespace {

using io::TuningFile;
using test::get_file;
using test::io_error_of;
using test::put_file;
using test::TempDir;

const std::string kTuningHead = "tensorgrad tuning 1\n";

TEST(TuningFileTest, keeps_added_entries) {
  const TempDir dir;
  {
    TuningFile file(dir / "t");
    EXPECT_EQ(file.find("gpu", "driver 1, x", "1x2x3x4 a"), nullptr);
    file.add({"gpu", "driver 1, x", "1x2x3x4 a", "tile 64", "default 2.00, tile 64 1.00"});
    file.save();
  }
  EXPECT_EQ(get_file(dir / "t"),
            kTuningHead +
                "# device\tdriver\tcontraction\tchoice\tmicroseconds of each candidate\n"
                "gpu\tdriver 1, x\t1x2x3x4 a\ttile 64\tdefault 2.00, tile 64 1.00\n");
  const TuningFile again(dir / "t");
  ASSERT_NE(again.find("gpu", "driver 1, x", "1x2x3x4 a"), nullptr);
  EXPECT_EQ(*again.find("gpu", "driver 1, x", "1x2x3x4 a"), "tile 64");
  EXPECT_EQ(again.find("gpu", "driver 2", "1x2x3x4 a"), nullptr);
  EXPECT_EQ(dir.files(), std::vector<std::string>{"t"});
}

TEST(TuningFileTest, writes_nothing_without_new_entries) {
  const TempDir dir;
  TuningFile file(dir / "t");
  file.save();
  EXPECT_TRUE(dir.files().empty());
}

TEST(TuningFileTest, keeps_and_prefers_entries_of_others) {
  const TempDir dir;
  const std::string theirs = kTuningHead + "# a note\n\nother\td\tk\ttile 8\t\n";
  put_file(dir / "t", theirs);
  TuningFile mine(dir / "t");
  mine.add({"gpu", "d", "k", "tile 64", "mine"});
  mine.add({"gpu", "d", "l", "default", "mine"});
  put_file(dir / "t", theirs + "gpu\td\tk\ttile 16\tfirst\n");
  mine.save();
  EXPECT_EQ(get_file(dir / "t"),
            theirs + "gpu\td\tk\ttile 16\tfirst\n" + "gpu\td\tl\tdefault\tmine\n");
  EXPECT_EQ(*mine.find("gpu", "d", "k"), "tile 16");
}

TEST(TuningFileTest, reload_merges_entries_of_others) {
  const TempDir dir;
  TuningFile mine(dir / "t");
  mine.add({"gpu", "d", "k", "tile 64", ""});
  put_file(dir / "t", kTuningHead + "gpu\td\tl\ttile 16\t\n");
  mine.reload();
  EXPECT_EQ(*mine.find("gpu", "d", "k"), "tile 64");
  EXPECT_EQ(*mine.find("gpu", "d", "l"), "tile 16");
}

// A tab or newline in a name must not make the file unreadable.
TEST(TuningFileTest, takes_names_of_any_text) {
  const TempDir dir;
  TuningFile file(dir / "t");
  file.add({"a\tb\nc", "d", "k", "tile 64", ""});
  file.save();
  EXPECT_EQ(*TuningFile(dir / "t").find("a\tb\nc", "d", "k"), "tile 64");
}

TEST(TuningFileTest, error_names_the_damaged_line) {
  const TempDir dir;
  const std::string path = dir / "t";
  const auto error_of = [&](const std::string& text) {
    put_file(path, text);
    return io_error_of([&] { const TuningFile file(path); });
  };
  EXPECT_EQ(error_of("tensorgrad tuning 2\n"),
            path + ": line 1: expected \"tensorgrad tuning 1\", got \"tensorgrad tuning 2\"");
  EXPECT_EQ(error_of(kTuningHead + "gpu\td\tk\ttile 64\t\ngpu\td\n"),
            path + ": line 3: expected 5 tab-separated fields, got 2");
  EXPECT_EQ(error_of(kTuningHead + "gpu\td\tk\ttile 64\t"),
            path + ": line 2: the line is truncated");
  EXPECT_EQ(error_of(kTuningHead + "gpu\td\tk\t\t\n"), path + ": line 2: the choice is missing");
  EXPECT_EQ(io_error_of([&] { const TuningFile file(dir / "no/t"); }),
            (dir / "no/t") + ": cannot be written: no such folder: " + (dir / "no"));
}

TEST(TuningFileTest, concurrent_writers_lose_nothing) {
  const TempDir dir;
  constexpr int kWriters = 8, kEach = 12;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      TuningFile file(dir / "t");
      for (int i = 0; i < kEach; ++i) {
        file.add({"gpu", "d", std::to_string(w) + " " + std::to_string(i), "tile 8", ""});
        file.save();
      }
    });
  }
  for (std::thread& each : writers) each.join();
  const TuningFile file(dir / "t");
  for (int w = 0; w < kWriters; ++w) {
    for (int i = 0; i < kEach; ++i)
      EXPECT_NE(file.find("gpu", "d", std::to_string(w) + " " + std::to_string(i)), nullptr);
  }
  const std::string text = get_file(dir / "t");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + kWriters * kEach);
  EXPECT_EQ(dir.files(), std::vector<std::string>{"t"});
}

}  // namespace
}  // namespace tensorgrad
