// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace tensorgrad::text {

// Appends the bytes of base64; false where `text` is none, or is empty or not padded.
bool decode_base64(std::string_view text, std::string& bytes);

}  // namespace tensorgrad::text
