// SPDX-License-Identifier: MIT
// Event files: checksums of published examples, records byte by byte, and what TensorBoard reads.
#include <gtest/gtest.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>

#include "io/protobuf.h"
#include "io/tensorboard.h"
#include "io_test_util.h"
#include "support/message_of.h"
#include "support/tensorboard.h"
#include "tensorgrad/data/tensorboard.h"

namespace tensorgrad::test {
namespace {

using testing::EventScalar;
using testing::read_events;

// RFC 3720, B.4, and the check value of CRC-32C in the catalogue of parametrised CRC algorithms.
TEST(Crc32c, is_that_of_published_examples) {
  EXPECT_EQ(io::crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(io::crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(io::crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(io::crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(io::crc32c(""), 0U);
}

// A number is its tag and its bits, lowest byte first: 1.5 is 0x3ff8000000000000 and 0x3fc00000.
TEST(Protobuf, floating_point_numbers_take_eight_or_four_bytes) {
  io::ProtoMessage message;
  message.real(1, 1.5);
  message.real32(2, -1.5F);
  EXPECT_EQ(message.bytes(), std::string("\x09\0\0\0\0\0\0\xf8\x3f\x15\0\0\xc0\xbf", 14));
}

bool has_scalars(const std::vector<EventScalar>& got, const std::vector<EventScalar>& wanted) {
  return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(),
                    [](const EventScalar& a, const EventScalar& b) {
                      const bool same =
                          a.value == b.value || (std::isnan(a.value) && std::isnan(b.value));
                      return a.step == b.step && same && a.seconds == b.seconds;
                    });
}

TEST(TensorBoardWriter, tensorboard_reads_what_was_added) {
  const TempDir dir;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::int64_t late = std::int64_t{1} << 40;
  {
    TensorBoardWriter writer(dir / "a/b");
    writer.add_scalar("train/loss", 0.1, 1, 1700000000.25);
    writer.add_scalar("train/loss", -3, 2, 1700000001.5);
    TensorBoardWriter moved = std::move(writer);
    moved.add_scalar("\xc3\xa4, of two words", std::nan(""), 0, 1.0);
    moved.add_scalar("train/loss", kInf, late, 1700000002.0);
    writer = std::move(moved);
    writer.add_scalar("train/loss", 1e-30, late + 1, 1700000003.0);
    EXPECT_TRUE(std::filesystem::path(writer.path())
                    .filename()
                    .string()
                    .starts_with("events.out.tfevents."));
  }
  const auto scalars = read_events(dir / "a/b");
  ASSERT_EQ(scalars.size(), 2U);
  EXPECT_TRUE(has_scalars(scalars.at("train/loss"), {{1, 0.1F, 1700000000.25},
                                                     {2, -3, 1700000001.5},
                                                     {late, kInf, 1700000002},
                                                     {late + 1, 1e-30F, 1700000003}}));
  EXPECT_TRUE(has_scalars(scalars.at("\xc3\xa4, of two words"), {{0, std::nan(""), 1}}));
}

TEST(TensorBoardWriter, times_are_those_of_the_clock_by_default) {
  const TempDir dir;
  TensorBoardWriter writer(dir.str());
  const auto before = static_cast<double>(::time(nullptr));
  writer.add_scalar("x", 1, 1);
  const double seconds = read_events(dir.str()).at("x").at(0).seconds;
  EXPECT_GE(seconds, before);
  EXPECT_LE(seconds, static_cast<double>(::time(nullptr)) + 1);
}

TEST(TensorBoardWriter, a_resumed_run_replaces_later_steps) {
  const TempDir dir;
  TensorBoardWriter first(dir.str());
  for (int step = 1; step <= 6; ++step) first.add_scalar("loss", step, step, step);
  first.add_scalar("test", 6, 6, 6);
  TensorBoardWriter second(dir.str(), 4);
  second.add_scalar("loss", 40, 4, 7);
  TensorBoardWriter third(dir.str(), 5);
  third.add_scalar("loss", 50, 5, 8);
  EXPECT_LT(first.path(), second.path()) << "TensorBoard reads them in this order";
  EXPECT_LT(second.path(), third.path());
  const auto scalars = read_events(dir.str());
  EXPECT_TRUE(
      has_scalars(scalars.at("loss"), {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 40, 7}, {5, 50, 8}}));
  EXPECT_TRUE(scalars.contains("test") ? scalars.at("test").empty() : true);
}

TEST(TensorBoardWriter, a_file_follows_those_of_clocks_that_were_ahead) {
  const TempDir dir;
  put_file(dir / "events.out.tfevents.9000000000.host.1", "");
  put_file(dir / "events.out.tfevents.x", "");
  put_file(dir / "events.out.tfevents.99999999999999999999.host.1", "");
  const TensorBoardWriter writer(dir.str());
  EXPECT_TRUE(writer.path().starts_with(dir / "events.out.tfevents.9000000001.")) << writer.path();
}

#ifndef _WIN32
// A process that is killed within a write leaves part of a record at the end of its file.
TEST(TensorBoardWriter, scalars_before_an_incomplete_one_are_read) {
  const TempDir dir;
  const pid_t pid = ::fork();
  if (pid == 0) {
    TensorBoardWriter writer(dir.str());
    writer.add_scalar("loss", 1, 1, 1);
    writer.add_scalar("loss", 2, 2, 2);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(dir.files().size(), 1U);
  const std::string path = dir / dir.files()[0];
  const std::vector<EventScalar> both = {{1, 1, 1}, {2, 2, 2}};
  EXPECT_TRUE(has_scalars(read_events(dir.str()).at("loss"), both));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  TensorBoardWriter resumed(dir.str(), 2);
  resumed.add_scalar("loss", 3, 2, 3);
  EXPECT_TRUE(has_scalars(read_events(dir.str()).at("loss"), {{1, 1, 1}, {2, 3, 3}}));
}
#endif

TEST(TensorBoardWriter, errors_name_the_argument_or_the_path) {
  const TempDir dir;
  TensorBoardWriter writer(dir.str());
  EXPECT_EQ(test::message_of([&] { writer.add_scalar("", 1, 1); }),
            "TensorBoardWriter::add_scalar: tag: expected UTF-8 text, got \"\"");
  EXPECT_EQ(test::message_of([&] { writer.add_scalar("\xff", 1, 1); }),
            "TensorBoardWriter::add_scalar: tag: expected UTF-8 text, got \"\\xff\"");
  EXPECT_EQ(test::message_of([&] { writer.add_scalar("x", 1, -1); }),
            "TensorBoardWriter::add_scalar: step must not be negative, got -1");
  EXPECT_EQ(test::message_of([&] { TensorBoardWriter(dir.str(), -2); }),
            "TensorBoardWriter: first_step must not be negative, got -2");
  put_file(dir / "file", "");
  EXPECT_EQ(io_error_of([&] { TensorBoardWriter(dir / "file/runs"); }),
            (dir / "file/runs") + ": cannot be created: not a directory");
  EXPECT_EQ(io_error_of([&] { TensorBoardWriter(dir / "file"); }).find(dir / "file"), 0U);
}

}  // namespace
}  // namespace tensorgrad::test
