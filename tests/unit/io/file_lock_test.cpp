// SPDX-License-Identifier: MIT
// File locks, and files left by killed processes.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/os/process.h"
#include "holder.h"
#include "io_test_util.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad {
namespace {

using test::get_file;
using test::Holder;
using test::io_error_of;
using test::put_file;
using test::TempDir;

TEST(Temporary, of_a_killed_process_is_removed_by_the_next_writer) {
  const TempDir dir;
  Holder writer(Holder::Kind::kAtomicFile, dir / "a");
  write_file_atomically(dir / "a", "new");
  EXPECT_EQ(dir.files().size(), 2U) << "a file in use is kept";
  writer.kill();
  write_file_atomically(dir / "a", "newer");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
  EXPECT_EQ(get_file(dir / "a"), "newer");
}

TEST(Temporary, all_of_several_killed_processes_are_removed) {
  const TempDir dir;
  {
    const Holder first(Holder::Kind::kAtomicFile, dir / "a");
    const Holder second(Holder::Kind::kAtomicFile, dir / "a");
    const Holder third(Holder::Kind::kAtomicFile, dir / "a");
    EXPECT_EQ(dir.files().size(), 3U);
  }
  write_file_atomically(dir / "a", "new");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
}

TEST(Temporary, folders_of_killed_processes_are_removed_with_their_files) {
  const TempDir dir;
  Holder writer(Holder::Kind::kTemporaryFolder, dir / "run");
  TemporaryFolder other(dir / "run");
  EXPECT_EQ(other.path(), dir / "run.tmp.1");
  writer.kill();
  put_file(other.path() + "/model", "whole");
  other.rename(dir / "run");
  EXPECT_EQ(get_file(dir / "run/model"), "whole");
  put_file(dir / "run/notes.tmp.0", "of someone else");
  put_file(dir / "run/model.tmp.0", "left");
  std::filesystem::create_directory(dir / "run/.tmp.3");
  remove_stale_temporaries(dir / "run",
                           [](const std::string& name) { return name == "model" || name.empty(); });
  remove_stale_temporaries(dir.str(), [](const std::string& name) { return name == "run"; });
  EXPECT_EQ(dir.files(), std::vector<std::string>{"run"});
  EXPECT_FALSE(std::filesystem::exists(dir / "run/model.tmp.0"));
  EXPECT_FALSE(std::filesystem::exists(dir / "run/.tmp.3"));
  EXPECT_TRUE(std::filesystem::exists(dir / "run/notes.tmp.0"));
}

TEST(Temporary, of_a_missing_folder_is_an_error) {
  const TempDir dir;
  EXPECT_EQ(io_error_of([&] { TemporaryFolder(dir / "no/run"); }),
            (dir / "no/run") + ": cannot be created: no such file or directory");
  const TemporaryFolder folder(dir / "run");
  std::filesystem::create_directories(dir / "there/file");
  TemporaryFolder second(dir / "run");
  EXPECT_NE(io_error_of([&] { second.rename(dir / "there"); }), "no error");
}

TEST(FileLock, names_the_process_that_holds_it) {
  const TempDir dir;
  Holder owner(Holder::Kind::kLock, dir / "lock");
  EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock", "run"); }),
            "run: in use by process " + std::to_string(owner.pid()));
  EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock"); }),
            (dir / "lock") + ": in use by process " + std::to_string(owner.pid()));
  owner.kill();
  {
    FileLock mine(dir / "lock");
    const FileLock moved = std::move(mine);
    EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock", "run"); }),
              "run: in use by process " + std::to_string(os::process_id()));
  }
  EXPECT_TRUE(dir.files().empty());
  EXPECT_EQ(io_error_of([&] { FileLock(dir / "no/lock"); }),
            (dir / "no/lock") + ": cannot be written: no such file or directory");
}

TEST(LineLog, syncs) {
  const TempDir dir;
  LineLog log(dir / "m", LineLog::Open::kCreate);
  log.write("1");
  log.sync();
  EXPECT_EQ(get_file(dir / "m"), "1\n");
}

}  // namespace
}  // namespace tensorgrad
