// SPDX-License-Identifier: MIT
// Splits CSV text into rows of fields.
#include "io/csv_tokens.h"

#include <algorithm>

#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

CsvTokens::CsvTokens(std::string_view text, char delimiter, std::string_view file)
    : text_(text), delimiter_(delimiter), file_(file) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
}

// True at LF, CRLF, the end of the text, or a CR right before the end.
bool CsvTokens::at_line_end() const {
  if (at_ == text_.size() || text_[at_] == '\n') return true;
  return text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n');
}

void CsvTokens::skip_line_end() {
  if (at_ == text_.size()) return;
  at_ = std::min(at_ + (text_[at_] == '\n' ? 1 : 2), text_.size());
  ++line_;
}

bool CsvTokens::next() {
  fields_.clear();
  unescaped_.clear();
  while (at_ < text_.size() && at_line_end()) skip_line_end();
  if (at_ == text_.size()) return false;
  row_line_ = line_;
  do {
    if (fields_.size() == kMaxCsvColumns) {
      fail(row_line_, "more than " + std::to_string(kMaxCsvColumns) + " columns");
    }
    const bool quote = at_ < text_.size() && text_[at_] == '"';
    fields_.push_back(quote ? quoted_field() : plain_field());
  } while (end_field());
  return true;
}

std::string_view CsvTokens::plain_field() {
  const std::size_t start = at_;
  while (!at_line_end() && text_[at_] != delimiter_) ++at_;
  return text_.substr(start, at_ - start);
}

std::string_view CsvTokens::quoted_field() {
  const std::uint64_t opened = line_;
  const std::size_t start = ++at_;
  bool doubled = false;
  for (;; ++at_) {
    if (at_ == text_.size()) {
      fail(opened, "column " + std::to_string(fields_.size() + 1) + ": the quote is never closed");
    }
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') continue;
    if (text_.substr(at_, 2) != "\"\"") break;
    doubled = true;
    ++at_;
  }
  const std::string_view raw = text_.substr(start, at_ - start);
  ++at_;
  if (!at_line_end() && text_[at_] != delimiter_) {
    fail(line_, "column " + std::to_string(fields_.size() + 1) + ": text after the closing quote");
  }
  if (!doubled) return raw;
  std::string& out = unescaped_.emplace_back();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    out += raw[i];
    if (raw[i] == '"') ++i;  // quotes come in pairs here
  }
  return out;
}

bool CsvTokens::end_field() {
  if (at_ < text_.size() && text_[at_] == delimiter_) {
    ++at_;
    return true;
  }
  skip_line_end();
  return false;
}

void CsvTokens::fail(std::uint64_t line, const std::string& what) const {
  throw IoError(std::string(file_) + ": line " + std::to_string(line) + ": " + what);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
