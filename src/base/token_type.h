// SPDX-License-Identifier: MIT
// Types of the tokens of a vocabulary, as SentencePiece (ModelProto.SentencePiece.Type) and
// llama.cpp (tokenizer.ggml.token_type of GGUF) number them.
#pragma once

#include <cstdint>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Unscoped, to compare with the integers in files.
enum TokenType : std::int32_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5,
  kByteToken = 6
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
