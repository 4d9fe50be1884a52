// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "os/process.h"

namespace tensorgrad::cli::os {

char** arguments(int& /*count*/, char** given) { return given; }

void set_if_unset(const char* variable, const char* value) { ::setenv(variable, value, 0); }

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

int terminal_columns(std::FILE* stream) {
  winsize size = {};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

const int kInterrupt = SIGINT;

void on_end_request(void (*handle)(int)) {
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before = {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

void* open_library(const std::string& path, std::string& error) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const text = ::dlerror();
    error = text == nullptr ? path + ": cannot be loaded" : text;
  }
  return library;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

std::string host_name() {
  char name[256] = {};  // the end stays 0
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string allowed_cores() {
#ifdef __linux__
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    std::string cores(CPU_SETSIZE, '0');
    for (std::size_t i = 0; i < cores.size(); ++i) {
      if (CPU_ISSET(i, &allowed)) cores[i] = '1';
    }
    return cores.substr(0, cores.find_last_of('1') + 1);
  }
#endif
  return std::string(std::max(1U, std::thread::hardware_concurrency()), '1');
}

bool is_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

}  // namespace tensorgrad::cli::os
