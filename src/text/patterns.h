// SPDX-License-Identifier: MIT
// How text is cut into the pieces that merges do not cross: the regular expressions of well-known
// tokenizers, each as a function. What comes out is what a regular-expression engine with Unicode
// classes finds; no such engine is needed, and no file can bring an expression that never ends.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::text {

// The expression of a pattern as tokenizer.json has it; empty for kNone.
std::string_view expression_of(PreTokenization pattern);
// The pattern of an expression, in any of the spellings that files have it in.
std::optional<PreTokenization> pattern_of(std::string_view expression);
// The expressions that pattern_of() knows, by name, for messages: "gpt2, cl100k, ...".
std::string_view known_patterns();

// Where the piece ends that begins at byte `at` of `text`; `at` < text.size(). Pieces cover the
// text. A byte that is no UTF-8 counts as a character that is neither letter nor number nor space.
std::size_t piece_end(PreTokenization pattern, std::string_view text, std::size_t at);

}  // namespace tensorgrad::text
