// SPDX-License-Identifier: MIT
#include "base/open_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tensorgrad::inline TENSORGRAD_ABI {

void occupy_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // Stays open, because another thread may open a file at any time.
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) ::close(fd);  // another thread was faster
  }
}

int open_file(const char* path, int flags, mode_t mode) {
  occupy_standard_streams();
  int fd = -1;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  // Needed if there is no /dev/null, as in some chroots.
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int code = errno;
  ::close(fd);
  errno = code;
  return above;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
