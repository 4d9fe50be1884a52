// SPDX-License-Identifier: MIT
// Starts programs with mpirun.
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace tensorgrad::testing {

struct Finished {
  int status = 0;
  std::string text;  // of stdout and stderr
  double seconds = 0;
};

// Exit codes of timeout: it stopped the program, or had to kill it.
constexpr int kStopped = 124, kKilled = 137;

// Returns true if mpirun did not end. After all ranks have ended, mpirun of Open MPI 4.1 sometimes
// hangs in PMIx_server_finalize. A test whose ranks hang fails the second time, too.
inline bool mpirun_hung(const Finished& result) {
  return result.status == kStopped || result.status == kKilled;
}

// Runs a command of the shell in a folder. `programs` are the arguments of mpirun, such as
// "-n 2 program argument".
inline Finished mpirun_once(const std::string& programs, const std::string& folder = ".") {
  const std::string command =
      "cd '" + folder +
      "' && OMPI_MCA_rmaps_base_oversubscribe=1 timeout -k 10 60 " TENSORGRAD_MPIRUN
      " --allow-run-as-root --oversubscribe " +
      programs + " 2>&1 < /dev/null";
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

}  // namespace tensorgrad::testing
