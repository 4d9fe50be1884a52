// SPDX-License-Identifier: MIT
// Starts programs with mpirun.
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include "support/source_path.h"

namespace tensorgrad::testing {

struct Finished {
  int status = 0;
  std::string text;  // of stdout and stderr
  double seconds = 0;
};

constexpr int kMaxTries = 4;

// Returns true if mpirun had to be killed (mpirun.sh). If the ranks themselves hang, so does each
// repetition, and the test fails.
inline bool mpirun_hung(const Finished& result) { return result.status == 128 + SIGKILL; }

// Runs a command of the shell in a folder. `programs` are the arguments of mpirun, such as
// "-n 2 program argument".
inline Finished mpirun_once(const std::string& programs, const std::string& folder = ".") {
  const std::string command =
      "'" + test::source_path("tests/distributed/mpirun.sh") + "' '" + folder +
      "' " TENSORGRAD_MPIRUN " --allow-run-as-root --oversubscribe " + programs + " 2>&1";
  const auto start = std::chrono::steady_clock::now();
  std::FILE* pipe = popen(command.c_str(), "r");
  Finished result;
  std::array<char, 4096> some{};
  for (std::size_t count = 0; (count = std::fread(some.data(), 1, some.size(), pipe)) > 0;)
    result.text.append(some.data(), count);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// As mpirun_once(). Repeats it if mpirun hung, and calls `reset` before each repetition.
inline Finished mpirun_retried(
    const std::string& programs, const std::string& folder = ".",
    const std::function<void()>& reset = [] {}) {
  Finished result = mpirun_once(programs, folder);
  for (int more = 1; more < kMaxTries && mpirun_hung(result); ++more) {
    reset();
    result = mpirun_once(programs, folder);
  }
  return result;
}

}  // namespace tensorgrad::testing
