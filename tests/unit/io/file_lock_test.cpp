// SPDX-License-Identifier: MIT
// File locks, and files left by killed processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <algorithm>

#include "io/atomic_file.h"
#include "io/temporary.h"
#include "io_test_util.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::get_file;
using test::io_error_of;
using test::put_file;
using test::TempDir;

// A process that calls `action` and then waits to be killed. The constructor returns after the
// call.
class Child {
 public:
  template <typename Action>
  explicit Child(const Action& action) {
    int ready[2] = {};
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      action([&] {
        (void)!::write(ready[1], "x", 1);
        for (;;) ::pause();
      });
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(Temporary, of_a_killed_process_is_removed_by_the_next_writer) {
  const TempDir dir;
  Child writer([&](const auto& wait) {
    io::AtomicFile file(dir / "a");
    file.write(as_bytes("half"));
    wait();
  });
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
    const auto wait_in_file = [&](const auto& wait) {
      io::AtomicFile file(dir / "a");
      wait();
    };
    Child first(wait_in_file), second(wait_in_file), third(wait_in_file);
    EXPECT_EQ(dir.files().size(), 3U);
  }
  write_file_atomically(dir / "a", "new");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
}

TEST(Temporary, folders_of_killed_processes_are_removed_with_their_files) {
  const TempDir dir;
  Child writer([&](const auto& wait) {
    const TemporaryFolder folder(dir / "run");
    put_file(folder.path() + "/model", "half");
    wait();
  });
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
  Child owner([&](const auto& wait) {
    const FileLock lock(dir / "lock");
    wait();
  });
  EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock", "run"); }),
            "run: in use by process " + std::to_string(owner.pid()));
  EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock"); }),
            (dir / "lock") + ": in use by process " + std::to_string(owner.pid()));
  owner.kill();
  {
    FileLock mine(dir / "lock");
    const FileLock moved = std::move(mine);
    EXPECT_EQ(io_error_of([&] { FileLock(dir / "lock", "run"); }),
              "run: in use by process " + std::to_string(::getpid()));
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
