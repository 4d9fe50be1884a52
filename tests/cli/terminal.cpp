// SPDX-License-Identifier: MIT
#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "cli/tool.h"

namespace tensorgrad::test {

namespace {

using TestClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{300};  // with sanitizers, on a busy machine

int to_int(const char* text) { return static_cast<int>(std::strtol(text, nullptr, 10)); }

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

void ScreenEmulator::take(std::string_view bytes) {
  rest_ += bytes;
  std::size_t at = 0;
  while (at < rest_.size()) {
    const auto first = static_cast<unsigned char>(rest_[at]);
    if (first == 0x1b) {
      if (at + 1 >= rest_.size()) break;
      if (rest_[at + 1] != '[') {
        unknown_.push_back(rest_.substr(at, 2));
        at += 2;
        continue;
      }
      std::size_t end = at + 2;
      while (end < rest_.size() && (rest_[end] < '@' || rest_[end] > '~')) ++end;
      if (end == rest_.size()) break;
      control(rest_.substr(at + 2, end - at - 2), rest_[end]);
      at = end + 1;
    } else if (first == '\r') {
      x_ = 0;
      ++at;
    } else if (first == '\n') {
      ++y_;
      ++at;
    } else if (first < 0x20 || first == 0x7f) {
      unknown_.push_back(rest_.substr(at++, 1));
    } else {
      const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
      if (at + size > rest_.size()) break;
      const std::string character = rest_.substr(at, size);
      const bool control_character = size == 2 && first == 0xc2 && rest_[at + 1] < '\xa0';
      if (first >= 0x80 && (first < 0xc2 || control_character)) unknown_.push_back(character);
      put(character);
      at += size;
    }
  }
  rest_.erase(0, at);
}

std::vector<std::string>& ScreenEmulator::line() {
  Screen& screen = shows_alternate_ ? alternate_ : main_;
  const auto y = static_cast<std::size_t>(shows_alternate_ ? std::min(y_, rows_ - 1) : y_);
  if (screen.size() <= y) screen.resize(y + 1);
  return screen[y];
}

void ScreenEmulator::put(const std::string& character) {
  if (x_ >= columns_) {
    if (wraps_) {
      x_ = 0;
      ++y_;
    } else {
      x_ = columns_ - 1;
    }
  }
  std::vector<std::string>& now = line();
  const auto x = static_cast<std::size_t>(x_);
  if (now.size() <= x) now.resize(x + 1, " ");
  now[x] = character;
  ++x_;
}

void ScreenEmulator::control(const std::string& parameters, char what) {
  const std::string sequence = parameters + what;
  if (what == 'm') {
    styles_.insert(parameters);
  } else if (sequence == "?1049h" && !shows_alternate_) {
    main_x_ = std::exchange(x_, 0);
    main_y_ = std::exchange(y_, 0);
    shows_alternate_ = true;
    alternate_.assign(static_cast<std::size_t>(rows_), {});
  } else if (sequence == "?1049l" && shows_alternate_) {
    x_ = main_x_;
    y_ = main_y_;
    shows_alternate_ = false;
  } else if (sequence == "?25h" || sequence == "?25l") {
    shows_cursor_ = what == 'h';
  } else if (sequence == "?7h" || sequence == "?7l") {
    wraps_ = what == 'h';
  } else if (sequence == "?2026h" || sequence == "?2026l") {
    is_drawing_ = what == 'h';
  } else if (what == 'H') {
    const std::size_t between = parameters.find(';');
    y_ = std::max(to_int(parameters.c_str()), 1) - 1;
    x_ = between == std::string::npos ? 0 : to_int(parameters.c_str() + between + 1) - 1;
  } else if (what == 'G') {
    x_ = to_int(parameters.c_str()) - 1;
  } else if (sequence == "K") {
    std::vector<std::string>& now = line();
    now.resize(std::min(now.size(), static_cast<std::size_t>(std::min(x_, columns_ - 1))));
  } else if (sequence == "2J" && shows_alternate_) {
    alternate_.assign(static_cast<std::size_t>(rows_), {});
  } else {
    unknown_.push_back("\x1b[" + sequence);
  }
}

void ScreenEmulator::resize(int columns, int rows) {
  columns_ = columns;
  rows_ = rows;
  alternate_.assign(static_cast<std::size_t>(rows),
                    std::vector<std::string>(static_cast<std::size_t>(columns), "#"));
}

std::vector<std::string> ScreenEmulator::lines(const Screen& screen) {
  std::vector<std::string> found;
  for (const std::vector<std::string>& line : screen) {
    std::string text;
    for (const std::string& character : line) text += character;
    text.erase(text.find_last_not_of(' ') + 1);
    found.push_back(std::move(text));
  }
  return found;
}

TerminalRun::TerminalRun(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder, const TerminalSetup& setup)
    : screen_(setup.columns, setup.rows) {
  std::vector<std::string> words = tool_words(arguments);
  if (!setup.script.empty())
    words.insert(words.begin(), {"/bin/sh", "-m", "-c", setup.script, "sh"});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork_on_terminal(setup.columns, setup.rows, terminal_);
  if (pid_ == 0) {
    for (const auto& [name, value] : setup.environment) {
      if (value.empty())
        ::unsetenv(name.c_str());
      else
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::signal(SIGHUP, SIG_DFL);
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  ::tcgetattr(terminal_, &mode_);
}

TerminalRun::~TerminalRun() {
  hang_up();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool TerminalRun::pump(std::chrono::milliseconds patience) {
  if (terminal_ < 0) return false;
  pollfd polled = {.fd = terminal_, .events = POLLIN, .revents = 0};
  if (::poll(&polled, 1, static_cast<int>(patience.count())) <= 0) return true;
  char bytes[4096];
  const ssize_t count = ::read(terminal_, bytes, sizeof bytes);
  if (count <= 0) return false;
  screen_.take({bytes, static_cast<std::size_t>(count)});
  return true;
}

bool TerminalRun::wait_until(const std::function<bool(const ScreenEmulator&)>& is) {
  const TestClock::time_point end = TestClock::now() + kPatience;
  while (TestClock::now() < end) {
    if (!screen_.is_drawing() && is(screen_)) return true;
    if (!pump(std::chrono::milliseconds(50))) return is(screen_);
  }
  return false;
}

bool TerminalRun::wait_for(const std::string& wanted) {
  return wait_until([&](const ScreenEmulator& screen) {
    return screen.shows_alternate() && text().find(wanted) != std::string::npos;
  });
}

int TerminalRun::watch(std::chrono::milliseconds time) {
  const TestClock::time_point end = TestClock::now() + time;
  int bursts = 0;
  while (TestClock::now() < end) {
    pollfd polled = {.fd = terminal_, .events = POLLIN, .revents = 0};
    const bool paused = ::poll(&polled, 1, 20) == 0;
    const TestClock::time_point began = TestClock::now();
    if (!pump(std::chrono::milliseconds(50))) break;
    const bool wrote = TestClock::now() - began < std::chrono::milliseconds(49);
    bursts += paused && wrote ? 1 : 0;
  }
  wait_until([](const ScreenEmulator&) { return true; });
  return bursts;
}

void TerminalRun::type(const std::string& keys) const {
  (void)!::write(terminal_, keys.data(), keys.size());
}

void TerminalRun::resize(int columns, int rows) {
  pump(std::chrono::milliseconds(0));
  screen_.resize(columns, rows);
  winsize size = {};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  ::ioctl(terminal_, TIOCSWINSZ, &size);
}

void TerminalRun::signal(int number) const { ::kill(pid_, number); }

void TerminalRun::hang_up() {
  if (terminal_ >= 0) ::close(terminal_);
  terminal_ = -1;
}

int TerminalRun::wait() {
  const TestClock::time_point end = TestClock::now() + kPatience;
  while (pump(std::chrono::milliseconds(50)) && TestClock::now() < end) {
  }
  int status = 0;
  if (TestClock::now() >= end) ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string TerminalRun::text() const { return joined_lines(screen_.alternate()); }

std::string TerminalRun::main_text() const { return joined_lines(screen_.main()); }

bool TerminalRun::is_restored() const {
  termios mode = {};
  ::tcgetattr(terminal_, &mode);
  return !screen_.shows_alternate() && screen_.shows_cursor() && screen_.wraps() &&
         mode.c_lflag == mode_.c_lflag && mode.c_iflag == mode_.c_iflag;
}

}  // namespace tensorgrad::test
