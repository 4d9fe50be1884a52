// SPDX-License-Identifier: MIT
// The view of a run that fills a terminal.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "os/terminal.h"
#include "ui/live_run.h"
#include "ui/screen_layout.h"

namespace tensorgrad::cli {

// Extracts the keys from the input of a terminal. Drops the escape sequences of arrows, function
// keys and Alt, even if they arrive in parts.
class KeyReader {
 public:
  // Returns the keys in the next bytes.
  std::string take(std::string_view bytes);

 private:
  enum class State { kKeys, kEscape, kSequence, kOneMore };
  State state_ = State::kKeys;
};

class RunScreen final : public LiveRun {
 public:
  // Throws UserError if the standard streams are not a terminal that is large enough.
  RunScreen();
  // Restores the terminal, and prints the lines that were collected meanwhile.
  ~RunScreen() override;
  RunScreen(const RunScreen&) = delete;
  RunScreen& operator=(const RunScreen&) = delete;

  [[nodiscard]] std::function<void(std::string_view)> line_taker() override;

 private:
  void show() override;
  void show_end() override;
  void close();
  // Returns the bytes of the next frame. Called in the thread of the terminal.
  std::string frame(const os::TerminalInput& input);
  std::string changes(const os::TerminalInput& input);
  void press(char key);

  bool unicode_ = false, color_ = false;
  std::mutex printed_mutex_;  // guards the following
  bool is_closed_ = false;
  std::vector<std::string> printed_;
  std::size_t dropped_ = 0;  // number of lines before those
  // Used only by the terminal's thread.
  RunFigures figures_;
  ScreenOptions options_;
  KeyReader keys_;
  std::vector<std::string> rows_;  // as the terminal shows them
  os::Terminal terminal_;          // last: its thread uses the others
};

}  // namespace tensorgrad::cli
