// SPDX-License-Identifier: MIT
// Records of TFRecord files, which event files of TensorBoard consist of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Returns the CRC-32C (Castagnoli, RFC 3720 B.4) of some bytes.
std::uint32_t crc32c(std::string_view bytes);

// Returns a record: the number of bytes, its masked checksum, the bytes and their masked checksum.
std::string tf_record(std::string_view bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
