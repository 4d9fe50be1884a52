// SPDX-License-Identifier: MIT
// Exceptions thrown by the library. A message is one lower-case sentence that names the op or file,
// what was expected and what was received.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Source line in the user's program.
struct SourceLocation {
  const char* file = "";  ///< File name. The string lives as long as the process.
  unsigned line = 0;      ///< Line number, from 1; 0 if unknown.

  constexpr SourceLocation() = default;

  /// Returns the line of the call. As a default argument, returns the line of the call of the
  /// function that has it. Bindings of other languages pass a location of their own instead.
  static constexpr SourceLocation current(const char* file_name = __builtin_FILE(),
                                          unsigned line_number = __builtin_LINE()) {
    return {file_name, line_number};
  }

  /// Creates a location from a file name and a line number, or from a `std::source_location`.
  constexpr SourceLocation(const char* file_name, unsigned line_number)
      : file(file_name), line(line_number) {}
  constexpr SourceLocation(const std::source_location& loc)  // NOLINT(google-explicit-constructor)
      : file(loc.file_name()), line(loc.line()) {}

  /// Returns true if the line is known.
  [[nodiscard]] constexpr bool known() const { return line != 0; }
};

/// Returns a location as text, for example "mlp.cpp:41", or "(unknown line)".
std::string to_string(const SourceLocation& location);

/// Base class of the library's exceptions. The text of what() has up to three parts:
/// ```text
/// the message
///   at FILE:LINE        if the user's line is known
///   - while ...         for each context, innermost first
/// ```
class Error : public std::runtime_error {
 public:
  /// Creates an error. A location in a header of the standard library counts as unknown, because
  /// such a call (`std::make_unique()`, for example) hides the user's line.
  explicit Error(std::string message, SourceLocation location = {});

  [[nodiscard]] const char* what() const noexcept override { return full_.c_str(); }

  /// Returns the message only, without location and contexts.
  [[nodiscard]] const std::string& message() const { return message_; }

  /// Returns the line of the user's program that caused the error. It can be unknown.
  [[nodiscard]] const SourceLocation& location() const { return location_; }

  /// Sets the location if it is unknown. Otherwise does nothing.
  void set_location(const SourceLocation& location);

  /// Appends a context such as "while compiling loss". Each caller on the way up can add one.
  void add_context(const std::string& context);

 private:
  void rebuild();

  std::string message_;
  SourceLocation location_;
  std::string contexts_;
  std::string full_;
};

/// Thrown for errors of the caller or the environment, such as a wrong argument, a missing file or
/// a failed device.
class UserError : public Error {
 public:
  using Error::Error;
};

/// Thrown if shapes, axes or sizes are invalid or do not match.
class ShapeError : public UserError {
 public:
  using UserError::UserError;
};

/// Thrown if element types are invalid or do not match.
class DtypeError : public UserError {
 public:
  using UserError::UserError;
};

/// Thrown if a file or stream is missing, truncated, malformed or not writable. The message names
/// the file and, if known, the byte offset.
class IoError : public UserError {
 public:
  using UserError::UserError;
};

/// Thrown if a device fails: no adapter, out of memory, a kernel rejected by the driver, or a lost
/// device.
class DeviceError : public UserError {
 public:
  using UserError::UserError;
};

/// Thrown if a device is lost while it is in use.
class DeviceLostError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Thrown by a call that was stopped while it waited or ran: by `abort()` of its trainer or
/// function, or while compiling by CompileOptions::progress.
class AbortedError : public Error {
 public:
  using Error::Error;
};

/// Thrown if an invariant of the library is broken, which is a bug in the library.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
