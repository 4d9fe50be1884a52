// SPDX-License-Identifier: MIT
// Runs the tool in a terminal emulator whose screen tests can read.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::test {

// Supports only the control sequences that tg writes. Each character takes one column.
class ScreenEmulator {
 public:
  ScreenEmulator(int columns, int rows) : columns_(columns), rows_(rows) {}

  void take(std::string_view bytes);
  // Fills the alternate screen with "#", so that a test sees what is not drawn again.
  void resize(int columns, int rows);

  // Returns the rows of the alternate screen, without trailing blanks.
  [[nodiscard]] std::vector<std::string> alternate() const { return lines(alternate_); }
  // Returns all lines of the main screen, including those that scrolled off.
  [[nodiscard]] std::vector<std::string> main() const { return lines(main_); }
  [[nodiscard]] bool shows_alternate() const { return shows_alternate_; }
  [[nodiscard]] bool shows_cursor() const { return shows_cursor_; }
  [[nodiscard]] bool wraps() const { return wraps_; }
  // Returns true if the frame is incomplete: its end has not been processed.
  [[nodiscard]] bool is_drawing() const { return is_drawing_; }
  // Control characters and sequences that are not understood.
  [[nodiscard]] const std::vector<std::string>& unknown() const { return unknown_; }
  // Parameters of the styles so far, such as "0;1".
  [[nodiscard]] const std::set<std::string>& styles() const { return styles_; }

 private:
  using Screen = std::vector<std::vector<std::string>>;  // a text per character

  static std::vector<std::string> lines(const Screen& screen);
  void put(const std::string& character);
  void control(const std::string& parameters, char what);
  std::vector<std::string>& line();

  int columns_, rows_;
  int x_ = 0, y_ = 0, main_x_ = 0, main_y_ = 0;
  bool shows_alternate_ = false, shows_cursor_ = true, wraps_ = true, is_drawing_ = false;
  Screen main_, alternate_;
  std::string rest_;  // the start of a character or sequence
  std::vector<std::string> unknown_;
  std::set<std::string> styles_;
};

struct TerminalSetup {
  int columns = 100, rows = 30;
  // Of the tool; an empty text removes a variable.
  std::map<std::string, std::string> environment = {{"TERM", "xterm-256color"},
                                                    {"LANG", "C.UTF-8"},
                                                    {"LC_ALL", ""},
                                                    {"LC_CTYPE", ""},
                                                    {"NO_COLOR", ""}};
  // If not empty, a script for a shell with job control; "$@" is the command of the tool.
  std::string script = {};
};

// The tool in a terminal.
class TerminalRun {
 public:
  TerminalRun(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
              const TerminalSetup& setup = {});
  ~TerminalRun();
  TerminalRun(const TerminalRun&) = delete;
  TerminalRun& operator=(const TerminalRun&) = delete;

  // Processes output until `is` returns true for a complete frame. Returns false after kPatience.
  bool wait_until(const std::function<bool(const ScreenEmulator&)>& is);
  // Waits until the alternate screen has the text. Returns false after kPatience.
  bool wait_for(const std::string& text);
  // Processes output for a time, then to the end of the frame. Returns the number of writes that
  // followed a pause.
  int watch(std::chrono::milliseconds time);
  void type(const std::string& keys) const;
  void resize(int columns, int rows);
  void signal(int number) const;
  // Closes the terminal.
  void hang_up();
  // Waits for the end, and returns the exit code: 128 + n if killed by signal n.
  int wait();

  [[nodiscard]] const ScreenEmulator& screen() const { return screen_; }
  // Returns the rows of the alternate screen as one text.
  [[nodiscard]] std::string text() const;
  // Returns the lines of the main screen as one text.
  [[nodiscard]] std::string main_text() const;
  // Returns true if the terminal is as it was: main screen, cursor, echo.
  [[nodiscard]] bool is_restored() const;

 private:
  // Reads the available output, after waiting at most `patience`. Returns false at end of file.
  bool pump(std::chrono::milliseconds patience);

  ScreenEmulator screen_;
  int terminal_ = -1;
  pid_t pid_ = -1;
  termios mode_ = {};  // of the terminal at first
};

}  // namespace tensorgrad::test
