// SPDX-License-Identifier: MIT
// Splits CSV text into rows of fields according to RFC 4180: quotes, doubled quotes, line breaks
// within quotes, LF or CRLF. Does not interpret headers, numbers or labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

inline constexpr std::size_t kMaxCsvColumns = 1'000'000;

class CsvTokens {
 public:
  // `text` and `file` (for messages) must outlive the object. Skips a byte order mark.
  CsvTokens(std::string_view text, char delimiter, std::string_view file);

  // Reads the next row that is not an empty line. Returns false at the end. Fields are valid until
  // the next call. Throws IoError if a quote is not closed, text follows a closing quote, or there
  // are too many columns.
  bool next();
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  // Returns the line of the row's first character, from 1.
  [[nodiscard]] std::uint64_t line() const { return row_line_; }

 private:
  std::string_view quoted_field();
  std::string_view plain_field();
  // Skips the end of a field. Returns true if another field of the row follows.
  bool end_field();
  [[nodiscard]] bool at_line_end() const;
  void skip_line_end();
  [[noreturn]] void fail(std::uint64_t line, const std::string& what) const;

  std::string_view text_;
  std::size_t at_ = 0;
  char delimiter_;
  std::string_view file_;
  std::uint64_t line_ = 1;
  std::uint64_t row_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // fields with doubled quotes
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
