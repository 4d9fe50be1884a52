// SPDX-License-Identifier: MIT
// Preloaded into a process (LD_PRELOAD), counts its calls on files in a folder and fails one of
// them: the call returns an error, the process is killed, or the power fails. A power failure drops
// what was written to a file since its last fsync, as in RocksDB's FaultInjectionTestFS. Changes of
// folders are a journal, as in ext4 and XFS: they survive in order, at least up to the last fsync
// of a folder.
//
//   FAULTS_ROOT    the folder, absolute
//   FAULTS_BACKUP  a folder next to it, for data that may have to be restored
//   FAULTS_LOG     file that gets a line "NUMBER CALL PATH" per call
//   FAULTS_AT      number of the call that fails; 0: none
//   FAULTS_KIND    kill: the process ends, all that it wrote is kept
//                  power: written data that was not synced is lost
//                  undo: changes of folders since the last fsync of one are lost, too
//                  short: half of a read or write is done
//                  a number: the call fails with this errno
//   FAULTS_IGNORE_SYNC  1: fsync makes nothing durable, to test the test
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

// Returns the function of this name in the C library.
template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(name) static const auto real_##name = next(&::name, #name)

struct Unsynced {
  int fd;              // opened here
  std::string synced;  // content at the last fsync
};

struct State {
  std::recursive_mutex mutex;
  std::string root = text(std::getenv("FAULTS_ROOT")), backup = text(std::getenv("FAULTS_BACKUP")),
              kind = text(std::getenv("FAULTS_KIND"));
  int at = number("FAULTS_AT", text(std::getenv("FAULTS_AT"))), calls = 0, backups = 0;
  int log = -1;
  std::map<int, std::string> open;
  std::map<std::pair<dev_t, ino_t>, Unsynced> unsynced;
  std::vector<std::function<void()>> undo;  // undo changes of folders since the last fsync of one
  bool inside = false;                      // these functions call each other

  static std::string text(const char* value) { return value == nullptr ? "" : value; }
  // Returns 0 for an empty text.
  static int number(const char* name, const std::string& text) {
    int value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || (error == std::errc() && stop == end)) return value;
    std::fprintf(stderr, "%s: expected a number, got \"%s\"\n", name, text.c_str());
    std::abort();
  }
};

// Never destroyed, because files may be closed late.
State& state() {
  static State& made = *new State;
  return made;
}

// Marks a call as nested, because these functions do not count their own calls.
class Call {
 public:
  Call() : lock_(state().mutex), outer_(!std::exchange(state().inside, true)) {}
  ~Call() {
    const int code = errno;
    if (outer_) state().inside = false;
    errno = code;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  [[nodiscard]] bool counts() const { return outer_ && !state().root.empty(); }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  bool outer_;
};

std::string path_of_fd(int fd) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link, path, sizeof path);
  return n < 0 ? "" : std::string(path, static_cast<std::size_t>(n));
}

std::string absolute(int folder, const char* path) {
  std::string whole = path;
  if (whole.empty() || whole[0] != '/') {
    char working[4096];
    const std::string from = folder != AT_FDCWD                             ? path_of_fd(folder)
                             : ::getcwd(working, sizeof working) == nullptr ? ""
                                                                            : working;
    whole = from + "/" + whole;
  }
  std::string clean;
  for (std::size_t i = 0; i < whole.size();) {
    const std::size_t end = std::min(whole.find('/', i), whole.size());
    const std::string part = whole.substr(i, end - i);
    i = end + 1;
    if (part == "..") {
      clean.resize(std::min(clean.rfind('/'), clean.size()));
    } else if (!part.empty() && part != ".") {
      clean += "/" + part;
    }
  }
  return clean;
}

bool below_root(const std::string& path) {
  const std::string& root = state().root;
  return path == root || path.compare(0, root.size() + 1, root + "/") == 0;
}

std::string content_of(int fd) {
  std::string all;
  char block[65536];
  for (;;) {
    const ssize_t n = ::pread(fd, block, sizeof block, static_cast<off_t>(all.size()));
    if (n <= 0) return all;
    all.append(block, static_cast<std::size_t>(n));
  }
}

// Keeps the content of a file, if nothing was written to it since its last fsync.
void before_write(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const auto key = std::make_pair(info.st_dev, info.st_ino);
  if (state().unsynced.count(key) != 0) return;
  const int low = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int fd = ::fcntl(low, F_DUPFD_CLOEXEC, 500);  // keeps low numbers free
  ::close(low);
  if (fd >= 0) state().unsynced[key] = {fd, content_of(fd)};
}

std::string fd_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

void synced(int fd) {
  if (State::text(std::getenv("FAULTS_IGNORE_SYNC")) == "1") return;
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return;
  if (S_ISDIR(info.st_mode)) {
    state().undo.clear();
    return;
  }
  const auto found = state().unsynced.find({info.st_dev, info.st_ino});
  if (found == state().unsynced.end()) return;
  ::close(found->second.fd);
  state().unsynced.erase(found);
}

// Creates another name for a file that is about to lose this one. Returns it; empty if there is no
// file.
std::string keep(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return "";
  std::string kept = state().backup + "/" + std::to_string(++state().backups);
  return ::link(path.c_str(), kept.c_str()) == 0 ? kept : "";
}

[[noreturn]] void end_process() {
  State& all = state();
  if (all.kind != "kill") {
    for (const auto& [key, file] : all.unsynced) {
      (void)!::ftruncate(file.fd, 0);
      (void)!::pwrite(file.fd, file.synced.data(), file.synced.size(), 0);
    }
  }
  if (all.kind == "undo")
    for (auto step = all.undo.rbegin(); step != all.undo.rend(); ++step) (*step)();
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

enum class Verdict { kDo, kHalf, kFail };

// Counts a call. Sets errno if it is to fail.
Verdict count(const char* call, const std::string& path) {
  State& all = state();
  const std::string line = std::to_string(++all.calls) + " " + call + " " + path + "\n";
  if (all.log < 0) {
    const int low = ::open(all.text(std::getenv("FAULTS_LOG")).c_str(),
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    all.log = ::fcntl(low, F_DUPFD_CLOEXEC, 500);
    ::close(low);
  }
  (void)!::write(all.log, line.data(), line.size());
  if (all.calls != all.at) return Verdict::kDo;
  if (all.kind == "short") return Verdict::kHalf;
  if (all.kind.empty() || all.kind[0] < '0' || all.kind[0] > '9') end_process();
  errno = State::number("FAULTS_KIND", all.kind);
  return Verdict::kFail;
}

// Returns true if a call on an open file is to fail.
bool fails(const char* call, int fd) {
  const auto found = state().open.find(fd);
  return found != state().open.end() && count(call, found->second) == Verdict::kFail;
}

using Open = int(int, const char*, int, ...);

int open_at(Open* real, int folder, const char* path, int flags, mode_t mode) {
  Call call;
  const std::string whole = call.counts() ? absolute(folder, path) : "";
  if (!call.counts() || !below_root(whole)) return real(folder, path, flags, mode);
  struct stat info = {};
  const bool is_new = (flags & O_CREAT) != 0 && ::lstat(whole.c_str(), &info) != 0;
  if (count((flags & O_CREAT) != 0 ? "create" : "open", whole) == Verdict::kFail) return -1;
  if ((flags & O_TRUNC) != 0 && !is_new) before_write(whole);
  const int fd = real(folder, path, flags, mode);
  if (fd < 0) return fd;
  state().open[fd] = whole;
  if (is_new) state().undo.push_back([whole] { ::unlink(whole.c_str()); });
  return fd;
}

template <class Transfer>
ssize_t transfer(const char* name, int fd, std::size_t size, const Transfer& real, bool writes) {
  Call call;
  const auto found = state().open.find(fd);
  if (!call.counts() || found == state().open.end()) return real(size);
  const Verdict verdict = count(name, found->second);
  if (verdict == Verdict::kFail) return -1;
  if (writes) before_write(fd_path(fd));
  return real(verdict == Verdict::kHalf && size > 1 ? size / 2 : size);
}

int remove_at(int folder, const char* path, int flags) {
  Call call;
  static const auto real = next(&::unlinkat, "unlinkat");
  const std::string whole = call.counts() ? absolute(folder, path) : "";
  if (!call.counts() || !below_root(whole)) return real(folder, path, flags);
  struct stat info = {};
  const bool is_folder = ::lstat(whole.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (count(is_folder ? "rmdir" : "unlink", whole) == Verdict::kFail) return -1;
  const std::string kept = keep(whole);
  const int result = real(folder, path, flags);
  if (result != 0) return result;
  state().undo.push_back([whole, kept, mode = info.st_mode] {
    if (kept.empty()) {
      ::mkdir(whole.c_str(), mode);
    } else {
      ::rename(kept.c_str(), whole.c_str());
    }
  });
  return result;
}

}  // namespace

extern "C" {

#define OPEN_AT(name, real_name)                                           \
  int name(int folder, const char* path, int flags, ...) {                 \
    std::va_list more;                                                     \
    va_start(more, flags);                                                 \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                          \
    NEXT(openat);                                                          \
    return open_at(real_openat, folder, path, flags, mode);                \
  }
#define OPEN(name)                                                         \
  int name(const char* path, int flags, ...) {                             \
    std::va_list more;                                                     \
    va_start(more, flags);                                                 \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                          \
    NEXT(openat);                                                          \
    return open_at(real_openat, AT_FDCWD, path, flags, mode);              \
  }
OPEN_AT(openat, openat)
OPEN_AT(openat64, openat)
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                                        \
  FILE* name(const char* path, const char* how) {                                          \
    Call call;                                                                             \
    NEXT(fopen);                                                                           \
    const std::string whole = call.counts() ? absolute(AT_FDCWD, path) : "";               \
    if (!call.counts() || !below_root(whole)) return real_fopen(path, how);                \
    if (count(how[0] == 'r' ? "open" : "create", whole) == Verdict::kFail) return nullptr; \
    if (how[0] == 'w') before_write(whole);                                                \
    FILE* const file = real_fopen(path, how);                                              \
    if (file != nullptr) state().open[::fileno(file)] = whole;                             \
    return file;                                                                           \
  }
FOPEN(fopen)
FOPEN(fopen64)

int close(int fd) {
  Call call;
  NEXT(close);
  if (!call.counts()) return real_close(fd);
  const bool failed = fails("close", fd);
  const int code = errno;
  state().open.erase(fd);
  const int result = real_close(fd);  // also if it fails, as on Linux
  if (!failed) return result;
  errno = code;
  return -1;
}

ssize_t read(int fd, void* to, size_t size) {
  NEXT(read);
  return transfer("read", fd, size, [&](size_t n) { return real_read(fd, to, n); }, false);
}
ssize_t write(int fd, const void* from, size_t size) {
  NEXT(write);
  return transfer("write", fd, size, [&](size_t n) { return real_write(fd, from, n); }, true);
}
#define PREAD(name)                                                                     \
  ssize_t name(int fd, void* to, size_t size, off_t at) {                               \
    NEXT(pread);                                                                        \
    return transfer(                                                                    \
        "pread", fd, size, [&](size_t n) { return real_pread(fd, to, n, at); }, false); \
  }
PREAD(pread)
PREAD(pread64)
#define PWRITE(name)                                                                       \
  ssize_t name(int fd, const void* from, size_t size, off_t at) {                          \
    NEXT(pwrite);                                                                          \
    return transfer(                                                                       \
        "pwrite", fd, size, [&](size_t n) { return real_pwrite(fd, from, n, at); }, true); \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                           \
  int name(int fd, off_t size) noexcept {                         \
    Call call;                                                    \
    NEXT(ftruncate);                                              \
    if (call.counts()) {                                          \
      if (fails("ftruncate", fd)) return -1;                      \
      if (state().open.count(fd) != 0) before_write(fd_path(fd)); \
    }                                                             \
    return real_ftruncate(fd, size);                              \
  }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define SYNC(name)                                    \
  int name(int fd) {                                  \
    Call call;                                        \
    NEXT(name);                                       \
    if (call.counts() && fails(#name, fd)) return -1; \
    const int result = real_##name(fd);               \
    if (result == 0 && call.counts()) synced(fd);     \
    return result;                                    \
  }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char* from, const char* to) noexcept {
  Call call;
  NEXT(rename);
  const std::string whole = call.counts() ? absolute(AT_FDCWD, to) : "";
  if (!call.counts() || !below_root(whole)) return real_rename(from, to);
  if (count("rename", whole) == Verdict::kFail) return -1;
  const std::string before = absolute(AT_FDCWD, from), kept = keep(whole);
  const int result = real_rename(from, to);
  if (result != 0) return result;
  for (auto& [fd, path] : state().open) {
    if (path.compare(0, before.size(), before) == 0 &&
        (path.size() == before.size() || path[before.size()] == '/'))
      path = whole + path.substr(before.size());
  }
  state().undo.push_back([before, whole, kept] {
    ::rename(whole.c_str(), before.c_str());
    if (!kept.empty()) ::rename(kept.c_str(), whole.c_str());
  });
  return result;
}

int link(const char* from, const char* to) noexcept {
  Call call;
  NEXT(link);
  const std::string whole = call.counts() ? absolute(AT_FDCWD, to) : "";
  if (!call.counts() || !below_root(whole)) return real_link(from, to);
  if (count("link", whole) == Verdict::kFail) return -1;
  const int result = real_link(from, to);
  if (result == 0) state().undo.push_back([whole] { ::unlink(whole.c_str()); });
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  Call call;
  NEXT(mkdir);
  const std::string whole = call.counts() ? absolute(AT_FDCWD, path) : "";
  if (!call.counts() || !below_root(whole)) return real_mkdir(path, mode);
  if (count("mkdir", whole) == Verdict::kFail) return -1;
  const int result = real_mkdir(path, mode);
  if (result == 0) state().undo.push_back([whole] { ::rmdir(whole.c_str()); });
  return result;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  return remove_at(folder, path, flags);
}
int unlink(const char* path) noexcept { return remove_at(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return remove_at(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  struct stat info = {};
  const bool is_folder = ::lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
  return remove_at(AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}

}  // extern "C"
