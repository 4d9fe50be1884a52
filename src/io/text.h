// SPDX-License-Identifier: MIT
// Small helpers of the io room: quoting for messages, UTF-8 checking, sizes that cannot overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// `text` in double quotes for a message: unprintable bytes become \xNN, and what exceeds
// `max_bytes` is cut with "...".
std::string in_quotes(std::string_view text, std::size_t max_bytes = 60);

// The same escapes without quotes and without a cut.
std::string printable(std::string_view text);

// Length of the UTF-8 sequence at the head of `text`, which is not empty; 0 if it is malformed.
std::size_t utf8_length(std::string_view text);

// Whether `text` is UTF-8 (no surrogates, nothing overlong) without control characters.
bool is_plain_utf8(std::string_view text);

// Product of the sizes times `element_bytes`; nothing if a size is negative or it exceeds 63 bits.
std::optional<std::uint64_t> checked_bytes(const Shape& shape, std::uint64_t element_bytes);

// The system's text for an errno value, in lower case.
std::string system_error_text(int code);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
