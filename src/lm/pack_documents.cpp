// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/pack_documents.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

TokenSplit pack_documents(std::span<const std::string> documents, const Tokenizer& tokenizer,
                          const PackOptions& options) {
  if (!(options.holdout >= 0 && options.holdout < 1)) {
    throw UserError("pack_documents: holdout must be in [0, 1), got " +
                    std::to_string(options.holdout));
  }
  std::vector<std::int32_t> train, validation;
  const std::optional<std::int32_t> eos = options.add_eos ? tokenizer.eos_id() : std::nullopt;
  const auto append = [eos](std::vector<std::int32_t>& text, auto piece) {
    text.insert(text.end(), piece.begin(), piece.end());
    if (eos && !text.empty() && text.back() != *eos) text.push_back(*eos);
  };
  for (const std::string& document : documents) {
    const std::vector<std::int32_t> tokens = tokenizer.encode(document, options.encode);
    const auto held =
        static_cast<std::size_t>(static_cast<double>(tokens.size()) * options.holdout);
    const std::span<const std::int32_t> all(tokens);
    append(train, all.first(all.size() - held));
    append(validation, all.last(held));
  }
  return {TokenSequence(std::move(train)), TokenSequence(std::move(validation))};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
