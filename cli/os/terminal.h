// SPDX-License-Identifier: MIT
// The terminal of the standard streams as a full screen: keys come from standard input, frames go
// to standard output. Not on Windows yet.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <thread>

namespace tensorgrad::cli::os {

struct TerminalSize {
  int columns = 0, rows = 0;

  bool operator==(const TerminalSize&) const = default;
};

// Returns the size of a terminal, or 0x0 if the stream is not a terminal.
TerminalSize terminal_size(std::FILE* stream);

struct TerminalInput {
  std::string keys;  // bytes that were typed since the last frame
  TerminalSize size;
  bool blank = false;  // the screen is empty: everything is to be drawn
};

// Shows the alternate screen from start() to stop(), while the process is in the foreground.
// stop(), fatal signals and Ctrl-Z restore the terminal. Only one object may be started at a time.
class Terminal {
 public:
  // Returns the bytes that bring the screen up to date.
  using Draw = std::function<std::string(const TerminalInput&)>;

  // Throws UserError if the system is not supported.
  Terminal();
  ~Terminal();  // calls stop()
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Calls `draw` ten times a second, on a thread that blocks all signals. The first SIGINT, SIGTERM
  // or SIGHUP of each kind calls the previous handler; the second ends the process.
  void start(Draw draw);
  // Restores the terminal. May be called more than once.
  void stop();

 private:
  void serve();
  void suspend();

  Draw draw_;
  std::thread thread_;
};

}  // namespace tensorgrad::cli::os
