// SPDX-License-Identifier: MIT
// Documents as one text of tokens, for training language models.
#pragma once

#include <span>
#include <string>

#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

/// Texts for training and validation.
struct TokenSplit {
  TokenSequence train;       ///< The beginnings of all documents.
  TokenSequence validation;  ///< Their ends; empty if PackOptions::holdout is 0.
};

/// Options of pack_documents().
struct PackOptions {
  double holdout = 0.1;       ///< Fraction at the end of each document for validation, in [0, 1).
  EncodeOptions encode = {};  ///< Options of encoding each document.
  bool add_eos = true;  ///< Ends each document with the tokenizer's eos token, if there is one.
};

/// Returns the tokens of all documents, concatenated into one text for training and one for
/// validation. With `add_eos`, each document or part of one ends with the eos token. This includes
/// training parts of documents that continue in the validation text. Throws UserError if `holdout`
/// is out of range, and the errors of Tokenizer::encode().
TokenSplit pack_documents(std::span<const std::string> documents, const Tokenizer& tokenizer,
                          const PackOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
