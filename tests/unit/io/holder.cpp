// SPDX-License-Identifier: MIT
#include "holder.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "io_test_util.h"
#include "support/graph_builder.h"
#include "tensorgrad/data/files.h"

#ifdef _WIN32
#define NOMINMAX 1
#include <process.h>
#include <windows.h>
#else
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#endif

namespace tensorgrad::test {
namespace {

// Calls `ready` while it holds the file.
void hold(Holder::Kind kind, const std::string& path, const std::function<void()>& ready) {
  if (kind == Holder::Kind::kAtomicFile) {
    io::AtomicFile file(path);
    file.write(as_bytes("half"));
    ready();
  } else if (kind == Holder::Kind::kTemporaryFolder) {
    const TemporaryFolder folder(path);
    put_file(folder.path() + "/model", "half");
    ready();
  } else {
    const FileLock lock(path);
    ready();
  }
}

}  // namespace

#ifdef _WIN32

namespace {

constexpr const char* kKind = "TEST_HOLDER_KIND";
constexpr const char* kPath = "TEST_HOLDER_PATH";
constexpr const char* kReady = "TEST_HOLDER_READY";

void wait_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

// What the other process, which is this program, runs.
TEST(Holder, DISABLED_waits_to_be_killed) {
  const char* const kind = std::getenv(kKind);
  if (kind == nullptr) GTEST_SKIP() << "only for other tests";
  hold(static_cast<Holder::Kind>(std::atoi(kind)), std::getenv(kPath), [] {
    put_file(std::getenv(kReady), "");
    for (;;) wait_briefly();
  });
}

}  // namespace

Holder::Holder(Kind kind, const std::string& path) {
  const TempDir folder;
  const std::string ready = folder / "ready";
  const tensorgrad::testing::ScopedEnv kind_is(kKind, std::to_string(static_cast<int>(kind)));
  const tensorgrad::testing::ScopedEnv path_is(kPath, path);
  const tensorgrad::testing::ScopedEnv ready_is(kReady, ready);
  handle_ = ::_spawnl(_P_NOWAIT, _pgmptr, "holder", "--gtest_also_run_disabled_tests",
                      "--gtest_filter=Holder.DISABLED_waits_to_be_killed", nullptr);
  EXPECT_NE(handle_, -1);
  pid_ = static_cast<int>(::GetProcessId(reinterpret_cast<HANDLE>(handle_)));
  for (int tried = 0; tried < 3000 && !std::filesystem::exists(ready); ++tried) wait_briefly();
  EXPECT_TRUE(std::filesystem::exists(ready)) << "the other process holds nothing";
}

void Holder::kill() {
  if (handle_ == -1) return;
  const auto process = reinterpret_cast<HANDLE>(handle_);
  ::TerminateProcess(process, 1);
  ::WaitForSingleObject(process, INFINITE);
  ::CloseHandle(process);
  handle_ = -1;
}

#else

Holder::Holder(Kind kind, const std::string& path) {
  int ready[2] = {};
  EXPECT_EQ(::pipe(ready), 0);
  pid_ = ::fork();
  if (pid_ == 0) {
    hold(kind, path, [&] {
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

void Holder::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

#endif

}  // namespace tensorgrad::test
