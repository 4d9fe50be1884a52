// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace tensorgrad::text {

// Appends the decoded bytes of base64. Returns false if `text` is empty, unpadded or not base64.
bool decode_base64(std::string_view text, std::string& bytes);
// Returns bytes as base64, padded.
std::string encode_base64(std::string_view bytes);

}  // namespace tensorgrad::text
