// SPDX-License-Identifier: MIT
// Files are replaced as a whole or not at all, and the line log survives crashes.
#include "io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/os/files.h"
#include "base/path.h"
#include "io_test_util.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::get_file;
using test::io_error_of;
using test::put_file;
using test::TempDir;

TEST(AtomicFile, replaces_a_file_and_leaves_no_temporary) {
  const TempDir dir;
  put_file(dir / "a", "old and longer");
  write_file_atomically(dir / "a", "new");
  EXPECT_EQ(get_file(dir / "a"), "new");
  write_file_atomically(dir / "a", "");
  EXPECT_EQ(get_file(dir / "a"), "");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, keeps_the_old_file_until_commit) {
  const TempDir dir;
  put_file(dir / "a", "old");
  {
    io::AtomicFile file(dir / "a");
    file.write(as_bytes("half"));
    EXPECT_EQ(get_file(dir / "a"), "old");
    EXPECT_EQ(dir.files().size(), 2U);
  }
  EXPECT_EQ(get_file(dir / "a"), "old");
  EXPECT_EQ(dir.files().size(), 1U);
}

TEST(AtomicFile, follows_a_symbolic_link) {
  const TempDir dir;
  put_file(dir / "real", "old");
#ifdef _WIN32
  GTEST_SKIP() << "making symbolic links needs a right, and Wine cannot";
#endif
  std::filesystem::create_symlink("real", dir / "link");
  write_file_atomically(dir / "link", "new");
  EXPECT_EQ(get_file(dir / "real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
}

TEST(AtomicFile, folders_devices_and_missing_folders_are_rejected) {
  const TempDir dir;
  EXPECT_EQ(io_error_of([&] { write_file_atomically(dir.str(), "x"); }),
            dir.str() + ": cannot be written: it exists and is not a regular file");
#ifndef _WIN32
  EXPECT_EQ(io_error_of([&] { write_file_atomically("/dev/null", "x"); }),
            "/dev/null: cannot be written: it exists and is not a regular file");
#endif
  const std::string path = dir / "no/such/file";
  EXPECT_EQ(io_error_of([&] { write_file_atomically(path, "x"); }),
            path + ": cannot be written: no such file or directory");
}

TEST(AtomicFile, a_full_disk_leaves_the_old_file) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_NE(os::write_all(-1, as_bytes("x")), 0);
  const std::string message = io_error_of([] { LineLog("/dev/full", LineLog::Open::kAppend); });
  EXPECT_EQ(message, "/dev/full: cannot be written: it exists and is not a regular file");
}

TEST(AtomicFile, two_writers_never_mix) {
  const TempDir dir;
  const std::string a(100'000, 'a');
  const std::string b(100'000, 'b');
  const auto write_often = [&](const std::string& text) {
    for (int i = 0; i < 20; ++i) write_file_atomically(dir / "f", text);
  };
  std::thread other([&] { write_often(a); });
  write_often(b);
  other.join();
  const std::string text = get_file(dir / "f");
  EXPECT_TRUE(text == a || text == b);
  EXPECT_EQ(dir.files().size(), 1U);
}

TEST(ReadFile, is_bounded) {
  const TempDir dir;
  put_file(dir / "f", "12345");
  EXPECT_EQ(read_file(dir / "f").size(), 5U);
  EXPECT_EQ(read_file(dir / "f", 5).size(), 5U);
  EXPECT_EQ(io_error_of([&] { read_file(dir / "f", 4); }),
            (dir / "f") + ": has 5 bytes; at most 4 allowed");
}

#ifndef _WIN32
TEST(ReadFile, does_not_wait_for_the_writer_of_a_pipe) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(io_error_of([&] { read_file(dir / "pipe"); }),
            (dir / "pipe") + ": is not a regular file");
}
#endif

TEST(AtomicFile, paths_are_utf8) {
  const TempDir dir;
  const std::string folder = dir / "Gr\xc3\xb6\xc3\x9f\x65";
  const std::string name = "\xe2\x88\x91 \xf0\x9f\x98\x80.txt";
  std::filesystem::create_directory(utf8_path(folder));
  write_file_atomically(folder + "/" + name, "one");
  write_file_atomically(folder + "/" + name, "other");
  EXPECT_EQ(read_file(folder + "/" + name).size(), 5U);
  EXPECT_TRUE(
      std::filesystem::exists(utf8_path(folder) / std::u8string(u8"\u2211 \U0001f600.txt")));
  EXPECT_EQ(FolderSource(folder).entries(), std::vector<std::string>{name});
}

TEST(LineLog, each_line_is_written_at_once) {
  const TempDir dir;
  LineLog log(dir / "metrics.jsonl", LineLog::Open::kCreate);
  EXPECT_EQ(get_file(dir / "metrics.jsonl"), "");
  log.write("{\"step\":1}");
  EXPECT_EQ(get_file(dir / "metrics.jsonl"), "{\"step\":1}\n");
  LineLog moved = std::move(log);
  moved.write("{}");
  EXPECT_EQ(get_file(dir / "metrics.jsonl"), "{\"step\":1}\n{}\n");
  EXPECT_EQ(dir.files().size(), 1U);
  EXPECT_EQ(io_error_of([&] { moved.write("a\nb"); }),
            (dir / "metrics.jsonl") + ": a record must be one line: \"a\\x0ab\"");
}

TEST(LineLog, create_truncates_and_append_continues) {
  const TempDir dir;
  put_file(dir / "m", "1\n2\n");
  LineLog(dir / "m", LineLog::Open::kAppend).write("3");
  EXPECT_EQ(get_file(dir / "m"), "1\n2\n3\n");
  LineLog(dir / "m", LineLog::Open::kCreate).write("4");
  EXPECT_EQ(get_file(dir / "m"), "4\n");
  LineLog(dir / "new", LineLog::Open::kAppend).write("5");
  EXPECT_EQ(get_file(dir / "new"), "5\n");
}

TEST(LineLog, append_drops_a_line_that_was_cut_short) {
  const TempDir dir;
  put_file(dir / "m", "1\n{\"step\":");
  LineLog(dir / "m", LineLog::Open::kAppend).write("2");
  EXPECT_EQ(get_file(dir / "m"), "1\n2\n");
  put_file(dir / "m", "1\n" + std::string(10'000, 'x'));
  LineLog(dir / "m", LineLog::Open::kAppend).write("2");
  EXPECT_EQ(get_file(dir / "m"), "1\n2\n");
  put_file(dir / "m", "never ended");
  LineLog(dir / "m", LineLog::Open::kAppend).write("2");
  EXPECT_EQ(get_file(dir / "m"), "2\n");
}

}  // namespace
}  // namespace tensorgrad
