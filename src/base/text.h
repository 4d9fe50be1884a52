// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Builds text from words and numbers, formatted as by std::ostringstream in the locale "C". That
// class would need the C++ library's locales, which a page would have to download.
class TextBuilder {
 public:
  TextBuilder& operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  TextBuilder& operator<<(char c) {
    text_ += c;
    return *this;
  }
  TextBuilder& operator<<(std::integral auto number) {
    text_ += std::to_string(number);
    return *this;
  }
  TextBuilder& operator<<(double number) {
    text_ += format_text("%g", number);
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// Returns the words of `text`, separated by whitespace.
inline std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  std::vector<std::string> words;
  while (true) {
    const std::size_t start = std::min(text.find_first_not_of(kBlank), text.size());
    text.remove_prefix(start);
    if (text.empty()) return words;
    words.emplace_back(text.substr(0, text.find_first_of(kBlank)));
    text.remove_prefix(words.back().size());
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
