// SPDX-License-Identifier: MIT
// Files are never opened on the descriptors of the standard streams.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/os/files.h"
#include "support/source_path.h"

namespace tensorgrad {
namespace {

const std::string kFile = test::source_path("LICENSE");

// Runs `action` in a child process without standard streams. Returns its result.
int without_streams(const std::function<int()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ::_exit(action());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(OpenFile, leaves_the_descriptors_of_closed_streams_to_them) {
  EXPECT_GT(without_streams([] { return os::open_file(kFile, os::Open::kRead); }), 2);
  EXPECT_EQ(without_streams([] {
              (void)os::open_file(kFile, os::Open::kRead);
              char byte = 'x';
              return ::write(1, &byte, 1) == 1 && ::read(0, &byte, 1) == 0 ? 7 : 8;
            }),
            7);
}

TEST(OpenFile, leaves_open_streams_as_they_are) {
  EXPECT_EQ(without_streams([] {
              int pipe[2] = {};
              if (::pipe(pipe) != 0 || pipe[1] != 1) return 9;
              const int fd = os::open_file(kFile, os::Open::kRead);
              char byte = 'x';
              const bool piped = ::write(1, &byte, 1) == 1 && ::read(0, &byte, 1) == 1;
              return piped && fd > 2 ? 7 : 8;
            }),
            7);
}

TEST(OpenFile, is_closed_in_other_programs_and_reports_errors) {
  const int fd = os::open_file(kFile, os::Open::kRead);
  ASSERT_GT(fd, 2);
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  ::close(fd);
  EXPECT_EQ(os::open_file("/no/such/file", os::Open::kRead), -1);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace tensorgrad
