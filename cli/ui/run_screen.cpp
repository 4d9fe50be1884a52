// SPDX-License-Identifier: MIT
#include "ui/run_screen.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "os/process.h"
#include "run/progress.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kKeptLines = 200;
constexpr char kTab = '\t', kCtrlL = '\f';

// Ignores a closed terminal, as Progress does.
void print_quietly(const std::string& text) {
  (void)!std::fwrite(text.data(), 1, text.size(), stdout);
}

void check_terminal(const TerminalTraits& traits) {
  const std::string expected =
      fmt::format("expected a terminal of at least {}x{} (columns x rows)", kMinColumns, kMinRows);
  if (!os::is_terminal(stdout))
    throw UserError("--ui=tui: standard output is not a terminal; " + expected);
  if (!os::is_terminal(stdin)) {
    throw UserError(
        "--ui=tui: standard input is not a terminal; expected one, from which keys are read");
  }
  if (traits.name.empty() || traits.name == "dumb") {
    throw UserError(fmt::format(
        "--ui=tui: TERM is '{}'; expected a terminal that understands ANSI escape sequences",
        printable(traits.name)));
  }
  const os::TerminalSize size = os::terminal_size(stdout);
  if (size.columns < kMinColumns || size.rows < kMinRows) {
    throw UserError(
        fmt::format("--ui=tui: the terminal is {}x{}; {}", size.columns, size.rows, expected));
  }
}

}  // namespace

std::string KeyReader::take(std::string_view bytes) {
  std::string keys;
  for (const char byte : bytes) {
    switch (state_) {
      case State::kKeys:
        if (byte == '\x1b')
          state_ = State::kEscape;
        else
          keys += byte;
        break;
      case State::kEscape:
        state_ = byte == '['      ? State::kSequence
                 : byte == 'O'    ? State::kOneMore
                 : byte == '\x1b' ? State::kEscape
                                  : State::kKeys;
        break;
      case State::kSequence:
        if (byte >= '@' && byte <= '~') state_ = State::kKeys;
        break;
      case State::kOneMore: state_ = State::kKeys; break;
    }
  }
  // An escape that ends the input is the Escape key.
  if (state_ == State::kEscape) state_ = State::kKeys;
  return keys;
}

RunScreen::RunScreen() : LiveRun("a key") {
  const TerminalTraits traits = terminal_traits();
  check_terminal(traits);
  unicode_ = traits.unicode;
  color_ = traits.color;
}

RunScreen::~RunScreen() {
  try {
    close();
  } catch (...) {  // the terminal is restored by the destructor of terminal_
  }
}

void RunScreen::show() {
  terminal_.start([this](const os::TerminalInput& input) { return frame(input); });
}

void RunScreen::show_end() { close(); }

void RunScreen::close() {
  terminal_.stop();
  const std::lock_guard lock(printed_mutex_);
  if (std::exchange(is_closed_, true)) return;
  if (dropped_ > 0) print_quietly(fmt::format("... {} earlier lines\n", dropped_));
  for (const std::string& line : printed_) print_quietly(line + "\n");
  std::fflush(stdout);
}

std::function<void(std::string_view)> RunScreen::line_taker() {
  return [this](std::string_view line) {
    const std::lock_guard lock(printed_mutex_);
    if (is_closed_) {
      print_quietly(std::string(line) + "\n");
      return;
    }
    printed_.emplace_back(line);
    if (printed_.size() <= kKeptLines) return;
    printed_.erase(printed_.begin());
    ++dropped_;
  };
}

void RunScreen::press(char key) {
  switch (key) {
    case 'p':
      request(figures_.shot.now.pausing ? RunRequest::kResume : RunRequest::kPause);
      // For the next key, which may come before the next snapshot.
      figures_.shot.now.pausing = !figures_.shot.now.pausing;
      break;
    case 's': request(RunRequest::kSave); break;
    case 'q': request(RunRequest::kStop); break;
    case 't':
      request(RunRequest::kProfile);
      if (figures_.shot.head->profiles) options_.panel = ScreenPanel::kLaunches;
      break;
    case 'l': options_.logarithmic = !options_.logarithmic; break;
    case kTab: {
      const std::vector<ScreenPanel> panels = panels_of(figures_);
      const auto now = std::find(panels.begin(), panels.end(), options_.panel);
      const auto next = now == panels.end() ? now : now + 1;
      options_.panel = next == panels.end() ? panels.front() : *next;
      break;
    }
    case kCtrlL: rows_.clear(); break;
    default: break;
  }
}

std::string RunScreen::frame(const os::TerminalInput& input) {
  try {
    return changes(input);
  } catch (const std::exception& error) {  // the run must not end because of its view
    rows_.clear();
    return fmt::format("\x1b[0m\x1b[H\x1b[2Jcannot draw: {}", printable(error.what()));
  }
}

std::string RunScreen::changes(const os::TerminalInput& input) {
  if (input.blank) rows_.clear();
  figures_.take(snapshot(figures_.shot.version, figures_.shot.next));
  for (const char key : keys_.take(input.keys)) press(key);
  {
    const std::lock_guard lock(printed_mutex_);
    figures_.printed = printed_;
  }
  Canvas canvas(input.size.columns, input.size.rows, unicode_);
  draw_run(canvas, figures_, options_);
  const bool all = rows_.size() != static_cast<std::size_t>(canvas.rows());
  if (all) rows_.assign(static_cast<std::size_t>(canvas.rows()), "\n");  // equals no row
  std::string out;
  for (std::size_t y = 0; y < rows_.size(); ++y) {
    std::string row = canvas.row(static_cast<int>(y), color_);
    if (row == rows_[y]) continue;
    out += fmt::format("\x1b[{};1H\x1b[K{}", y + 1, row);
    rows_[y] = std::move(row);
  }
  return out;
}

}  // namespace tensorgrad::cli
