// SPDX-License-Identifier: MIT
// Helpers of the io module: quoting for messages, UTF-8 validation, sizes with overflow checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Returns `text` in double quotes for a message. Escapes unprintable bytes as \xNN, and truncates
// with "..." after `max_bytes`.
std::string in_quotes(std::string_view text, std::size_t max_bytes = 60);

// Like in_quotes(), without quotes and truncation.
std::string printable(std::string_view text);

// Returns the length of the UTF-8 sequence at the start of a non-empty `text`, or 0 if it is
// malformed.
std::size_t utf8_length(std::string_view text);

// True if `text` is UTF-8: no surrogates, nothing overlong.
bool is_utf8(std::string_view text);

// True if `text` is UTF-8 without control characters.
bool is_plain_utf8(std::string_view text);

// Returns the product of the sizes and `element_bytes`, or nullopt if a size is negative or the
// result exceeds 63 bits.
std::optional<std::uint64_t> checked_bytes(const Shape& shape, std::uint64_t element_bytes);

// Returns the system's text for an errno value, in lower case.
std::string system_error_text(int code);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
