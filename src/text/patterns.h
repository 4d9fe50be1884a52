// SPDX-License-Identifier: MIT
// Pre-tokenization into pieces that merges do not cross. The regular expressions of well-known
// tokenizers are implemented as functions, with the results of a regex engine with Unicode classes.
// Files cannot bring their own expressions, so none can run forever.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::text {

// Returns the expression of a pattern as in tokenizer.json; empty for kNone.
std::string_view expression_of(PreTokenization pattern);
// Returns the pattern of an expression, in any spelling that occurs in files.
std::optional<PreTokenization> pattern_of(std::string_view expression);
// Returns the names of the known expressions for messages: "gpt2, cl100k, ...".
std::string_view known_patterns();

inline constexpr std::size_t kLongestLiteral = 512;  // in bytes
// Returns a regular expression that matches one of several strings, the first that fits.
std::string expression_of_literals(const std::vector<std::string>& literals);
// Inverse of expression_of_literals(). Returns nullopt unless the expression is a list of strings
// of 1 to 512 bytes separated by `|`, with special characters escaped.
std::optional<std::vector<std::string>> literals_of(std::string_view expression);

// Returns the end of the piece that begins at byte `at` < text.size(). Pieces cover the text. A
// byte that is not UTF-8 counts as a character that is neither a letter nor a number nor a space.
std::size_t piece_end(PreTokenization pattern, std::string_view text, std::size_t at);

}  // namespace tensorgrad::text
