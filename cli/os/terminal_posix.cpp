// SPDX-License-Identifier: MIT
// The state of the terminal is global, since signal handlers restore it.
#include "os/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

namespace tensorgrad::cli::os {
namespace {

using TerminalClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFrameTime{100};
constexpr milliseconds kLongestStop{1000};  // until a Ctrl-Z counts as ignored
// Alternate screen, no cursor, no wrapping of lines.
constexpr std::string_view kShowScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kHideScreen = "\x1b[?2026l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kClear = "\x1b[0m\x1b[H\x1b[2J";
// Synchronized output: a terminal that supports it shows a frame only when it is complete. Others
// ignore it.
constexpr std::string_view kBeginFrame = "\x1b[?2026h";
constexpr std::string_view kEndFrame = "\x1b[?2026l";

constexpr std::array kEndRequests = {SIGINT, SIGTERM, SIGHUP};
constexpr std::array kFatal = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// Messages to the thread, sent through the pipe.
constexpr char kStopThread = 'q', kSuspend = 'z', kContinued = 'c';

// Modes of the terminal before start(), and while it shows the screen.
termios mode_before, mode_of_screen;
std::atomic<bool> shown = false;    // the terminal shows the screen
std::atomic<bool> writes = false;   // the thread shows the screen or writes a frame
std::atomic<int> restores = 0;      // threads in restore_terminal()
std::atomic<bool> is_over = false;  // the process ends: no more frames
int wake[2] = {-1, -1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A signal whose handler start() replaced.
struct Replaced {
  bool is = false;
  std::atomic<bool> came = false;
  struct sigaction before = {};
};
std::array<Replaced, 65> replaced;

// The following functions are called by signal handlers too.

// Writes to the terminal. Drops the rest if the terminal accepts nothing for a second.
void put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (errno != EAGAIN || ::poll(&out, 1, 1000) != 1) return;
  }
}

// There is no foreground group if this is not the controlling terminal.
bool in_foreground() {
  const pid_t group = ::tcgetpgrp(STDIN_FILENO);
  return group < 0 || group == ::getpgrp();
}

void show_screen() {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_of_screen);
  put(kShowScreen);
  shown = true;
}

// Called with all signals blocked, so that a handler never waits for the thread it interrupts.
void restore_terminal() {
  ++restores;
  if (shown.exchange(false)) {
    put(kHideScreen);
    // In the background, the shell has set the mode.
    if (in_foreground()) ::tcsetattr(STDIN_FILENO, TCSANOW, &mode_before);
  }
  --restores;
}

void tell_thread(char what) { (void)!::write(wake[1], &what, 1); }

// Waits until no other thread writes, but at most for about 200 ms.
void wait_for_writers() {
  const timespec moment = {.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; i < 200 && (writes || restores > 0); ++i) ::nanosleep(&moment, nullptr);
}

void end_process(int number) {
  is_over = true;
  wait_for_writers();
  restore_terminal();
  wait_for_writers();  // another thread may have begun to restore the terminal
  std::signal(number, SIG_DFL);
  ::raise(number);  // delivered when the handler returns
}

extern "C" {
static void on_end_signal(int number) {
  const int error = errno;
  Replaced& signal = replaced[static_cast<std::size_t>(number)];
  if (signal.before.sa_handler != SIG_DFL && !signal.came.exchange(true)) {
    signal.before.sa_handler(number);
  } else {
    end_process(number);
  }
  errno = error;
}

static void on_fatal_signal(int number) { end_process(number); }

static void on_job_signal(int number) {
  const int error = errno;
  tell_thread(number == SIGTSTP ? kSuspend : kContinued);
  errno = error;
}
}

// Ignored signals remain ignored, as under nohup.
void replace_handler(int number, void (*handler)(int), bool only_default) {
  Replaced& signal = replaced[static_cast<std::size_t>(number)];
  if (::sigaction(number, nullptr, &signal.before) != 0) return;
  if ((signal.before.sa_flags & SA_SIGINFO) != 0 || signal.before.sa_handler == SIG_IGN) return;
  if (only_default && signal.before.sa_handler != SIG_DFL) return;
  signal.came = false;
  struct sigaction action = {};
  action.sa_handler = handler;
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  signal.is = ::sigaction(number, &action, nullptr) == 0;
}

// Blocks signals on this thread. A background process can still be stopped for using the terminal.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t blocked;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGTTIN);
    sigdelset(&blocked, SIGTTOU);
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_;
};

// Restores the terminal and the handlers.
void finish() {
  const SignalBlock block;
  restore_terminal();
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    Replaced& signal = replaced[i];
    if (!std::exchange(signal.is, false)) continue;
    struct sigaction action = signal.before;
    // As SA_RESETHAND would have done.
    if (signal.came) action.sa_handler = SIG_DFL;
    ::sigaction(static_cast<int>(i), &action, nullptr);
  }
  for (const int file : wake) ::close(file);
}

}  // namespace

TerminalSize terminal_size(std::FILE* stream) {
  winsize size = {};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

Terminal::Terminal() = default;

Terminal::~Terminal() { stop(); }

void Terminal::start(Draw draw) {
  draw_ = std::move(draw);
  if (::tcgetattr(STDIN_FILENO, &mode_before) != 0 || ::pipe(wake) != 0)
    throw std::system_error(errno, std::generic_category(), "terminal");
  for (const int file : wake) {
    ::fcntl(file, F_SETFD, FD_CLOEXEC);
    ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
  }
  // Keys come at once and are not echoed. Ctrl-C and Ctrl-Z remain signals; Ctrl-S is a key.
  mode_of_screen = mode_before;
  mode_of_screen.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode_of_screen.c_iflag &= ~static_cast<tcflag_t>(IXON);
  mode_of_screen.c_cc[VMIN] = 1;
  mode_of_screen.c_cc[VTIME] = 0;
  is_over = false;
  for (const int number : kEndRequests) replace_handler(number, on_end_signal, false);
  for (const int number : kFatal) replace_handler(number, on_fatal_signal, true);
  for (const int number : {SIGTSTP, SIGCONT}) replace_handler(number, on_job_signal, true);
  std::fflush(stdout);
  const SignalBlock block;  // the thread inherits it
  // On this thread: a background process is stopped here until it is in the foreground.
  show_screen();
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (...) {
    finish();
    throw;
  }
}

void Terminal::stop() {
  if (!thread_.joinable()) return;
  tell_thread(kStopThread);
  thread_.join();
  finish();
}

// Queries the size for each frame, so SIGWINCH needs no handler.
void Terminal::serve() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  TerminalInput input{.keys = "", .size = terminal_size(stdout), .blank = true};
  for (TerminalClock::time_point next = TerminalClock::now();; next += kFrameTime) {
    next = std::max(next, TerminalClock::now());  // if a frame took longer
    bool reads = true;
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(next - TerminalClock::now());
      std::array<pollfd, 2> polled = {
          {{.fd = wake[0], .events = POLLIN, .revents = 0},
           {.fd = reads && shown ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}}};
      const int ready = ::poll(polled.data(), polled.size(),
                               static_cast<int>(std::max<milliseconds::rep>(left.count(), 0)));
      if (ready <= 0) break;
      char bytes[256];
      if (polled[0].revents != 0) {
        const ssize_t count = ::read(wake[0], bytes, sizeof bytes);
        const std::string_view told(bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (told.find(kStopThread) != std::string_view::npos) return;
        if (told.find(kSuspend) != std::string_view::npos) suspend();
        // Another program may have changed the mode of the terminal meanwhile.
        if (told.find(kContinued) != std::string_view::npos) restore_terminal();
      }
      if (polled[1].revents != 0) {
        const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
        reads = count > 0;  // else the terminal is gone
        if (reads) input.keys.append(bytes, static_cast<std::size_t>(count));
      }
    }
    if (!in_foreground()) {
      restore_terminal();
      continue;
    }
    const TerminalSize size = terminal_size(stdout);
    if (size != input.size || !shown) input.blank = true;
    input.size = size;
    std::string frame = draw_(input);
    if (input.blank) frame.insert(0, kClear);
    input.keys.clear();
    input.blank = false;
    if (frame.empty()) continue;
    frame.insert(0, kBeginFrame).append(kEndFrame);
    writes = true;
    if (!is_over) {  // end_process() has restored the terminal, or waits
      if (!shown) show_screen();
      put(frame);
    }
    writes = false;
  }
}

// Stops the process as Ctrl-Z does without a handler, and returns when it continues.
void Terminal::suspend() {
  restore_terminal();
  Replaced& signal = replaced[SIGTSTP];
  struct sigaction ours = {};
  ::sigaction(SIGTSTP, &signal.before, &ours);
  ::kill(::getpid(), SIGTSTP);
  // The signal may be delivered to another thread. Without job control, the process does not stop.
  pollfd polled = {.fd = wake[0], .events = POLLIN, .revents = 0};
  ::poll(&polled, 1, static_cast<int>(kLongestStop.count()));
  ::sigaction(SIGTSTP, &ours, nullptr);
}

}  // namespace tensorgrad::cli::os
