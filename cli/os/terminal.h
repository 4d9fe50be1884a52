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

// Returns the size of a terminal, or 0x0 if the stream is none.
TerminalSize terminal_size(std::FILE* stream);

struct TerminalInput {
  std::string keys;  // bytes that were typed since the last frame
  TerminalSize size;
  bool blank = false;  // the screen is empty: everything is to be drawn
};

// Shows the alternate screen from start() to stop(), while the process is in the foreground. The
// terminal is as before after stop(), after a signal that ends the process, and while the process
// is stopped by Ctrl-Z. One object may be started at a time.
class Terminal {
 public:
  // Returns the bytes that bring the screen up to date.
  using Draw = std::function<std::string(const TerminalInput&)>;

  // Throws UserError if the system is not supported.
  Terminal();
  ~Terminal();  // calls stop()
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Calls `draw` ten times a second, in a thread of its own that gets no signals. Signal handlers
  // that end requests are called once; the same signal then ends the process.
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
