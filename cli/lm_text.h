// SPDX-License-Identifier: MIT
// The text of a language model: files, folders or a file of tokens, and a tokenizer for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/lm.h"

namespace tensorgrad::cli {

// Where a text ends, for tokenizers that are made here.
inline constexpr const char* kEndOfText = "<|endoftext|>";

struct LmText {
  Tokenizer tokenizer;
  lm::TokenSplit split;
  std::string fingerprint;     // of the tokens
  std::int64_t documents = 0;  // 0: a file of tokens
};

// Files, gzipped or not, each a document; of folders those whose names end in .txt, sorted.
// IoError: there is none.
std::vector<std::string> text_files(const std::vector<std::string>& paths);
std::vector<std::string> read_documents(const std::vector<std::string>& files);

// `wanted`: "characters", "bytes", "bpe:N", which are made of the text, or a file; it does not
// count where a tokenizer is given. A single path that ends in .safetensors is a file of tokens.
LmText read_lm_text(const std::vector<std::string>& paths, const std::string& wanted,
                    const std::optional<Tokenizer>& given, double holdout);

}  // namespace tensorgrad::cli
