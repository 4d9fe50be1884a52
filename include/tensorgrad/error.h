// SPDX-License-Identifier: MIT
// What the library throws: a small family under Error. A message is one lower-case sentence that
// names the op or file, what was given and what was expected; the user's line follows on its own.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensorgrad {

// A place in the user's program. `file` lives as long as the process (a literal, or interned).
struct Site {
  const char* file = "";
  unsigned line = 0;

  constexpr Site() = default;
  constexpr Site(const char* file_name, unsigned line_number)
      : file(file_name), line(line_number) {}
  constexpr Site(const std::source_location& loc)  // NOLINT(google-explicit-constructor)
      : file(loc.file_name()), line(loc.line()) {}

  [[nodiscard]] constexpr bool known() const { return line != 0; }
};

// "mlp.cpp:41", or "(unknown line)".
std::string to_string(const Site& site);

// Everything the library throws derives from Error. what() is the message, then "\n  at FILE:LINE"
// where a user's line is known, then one "\n  - while ..." for each context added on the way out.
class Error : public std::runtime_error {
 public:
  explicit Error(std::string message, Site site = {});

  [[nodiscard]] const char* what() const noexcept override { return full_.c_str(); }
  // The message alone: no site, no context.
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const Site& site() const { return site_; }

  // Gives the error the user's line, unless it has one already.
  void set_site(const Site& site);
  // Adds "- while ..." (innermost first).
  void add_context(const std::string& context);

 private:
  void rebuild();

  std::string message_;
  Site site_;
  std::string contexts_;
  std::string full_;
};

// The caller did something wrong.
class UserError : public Error {
 public:
  using Error::Error;
};

// Shapes do not fit.
class ShapeError : public UserError {
 public:
  using UserError::UserError;
};

// Element types do not fit.
class DtypeError : public UserError {
 public:
  using UserError::UserError;
};

// A file or stream is missing, truncated, malformed or cannot be written; names the file and, where
// it is known, the byte.
class IoError : public UserError {
 public:
  using UserError::UserError;
};

// No adapter, out of memory, a kernel the driver refuses, a device that went away.
class DeviceError : public UserError {
 public:
  using UserError::UserError;
};

// The device went away while it was in use.
class DeviceLostError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// abort() of the trainer or the function was called while the call waited or ran.
class AbortedError : public Error {
 public:
  using Error::Error;
};

// A bug of the library's own: a broken invariant.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace tensorgrad
