// SPDX-License-Identifier: MIT
// Text for language models: text files, folders or a token file, with a tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lm/settings.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/lm.h"

namespace tensorgrad::cli {

// End-of-text token of the tokenizers that are trained here.
inline constexpr const char* kEndOfText = "<|endoftext|>";

struct TextCorpus {
  Tokenizer tokenizer;
  lm::TokenSplit split;
  std::string fingerprint;     // of the tokens
  std::int64_t documents = 0;  // 0 for a token file
};

// Returns the files among `paths`, and of each folder its .txt files, sorted. Throws IoError if a
// folder cannot be read or has no .txt files, and UserError if a path is empty.
std::vector<std::string> text_files(const std::vector<std::string>& paths);
// Returns the contents of the files, which may be gzipped, without byte order marks. Throws
// UserError if a file contains tokens. Throws IoError if a file cannot be read, or if its text has
// more than 64 MiB and is more than `max_expansion` times as long as the gzipped file.
std::vector<std::string> read_documents(const std::vector<std::string>& files,
                                        double max_expansion = kMaxExpansion);

// What text is read for. kTrain: eos ends each document, and the tokenizer's template is not used.
// kScore: documents are encoded with the template, without other eos tokens.
enum class TextUse : std::uint8_t { kTrain, kScore };

struct CorpusOptions {
  double holdout = 0;
  double max_expansion = kMaxExpansion;  // as in read_documents()
  TextUse use = TextUse::kTrain;
};
// Returns how the text of a run is read.
CorpusOptions text_options(const LmSettings& settings);

// Returns the tokens of the text, split for training and validation. A single path may be a token
// file, whose tokens are not changed. `wanted` is "characters", "bytes" or "bpe:N", which are
// trained on the text, or a tokenizer file; it is ignored if `given` is set. Throws UserError if
// `wanted` is invalid, or if a token file does not match the tokenizer.
TextCorpus read_corpus(const std::vector<std::string>& paths, const std::string& wanted,
                       const std::optional<Tokenizer>& given, const CorpusOptions& options);

}  // namespace tensorgrad::cli
