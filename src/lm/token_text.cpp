// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/token_text.h"

#include <algorithm>
#include <random>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

TokenText::TokenText(std::vector<std::int32_t> tokens)
    : tokens_(std::make_shared<const std::vector<std::int32_t>>(std::move(tokens))),
      end_(static_cast<std::int64_t>(tokens_->size())) {}

TokenText::TokenText(TokenFile file) : file_(std::move(file)), end_(file_->size()) {}

void TokenText::read(std::int64_t begin, std::span<std::int32_t> out) const {
  if (size() == 0 || begin < 0) {
    throw UserError("TokenText: token " + std::to_string(begin) +
                    " is out of range; the text has " + std::to_string(size()) + " tokens");
  }
  std::int64_t at = begin % size();
  while (!out.empty()) {
    const auto part = std::min<std::size_t>(out.size(), static_cast<std::size_t>(size() - at));
    if (file_) {
      file_->read(begin_ + at, out.first(part));
    } else {
      std::copy_n(tokens_->begin() + begin_ + at, part, out.begin());
    }
    out = out.subspan(part);
    at = 0;
  }
}

std::vector<std::int32_t> TokenText::read_all() const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(size()));
  if (!tokens.empty()) read(0, tokens);
  return tokens;
}

std::pair<TokenText, TokenText> TokenText::split(double last) const {
  if (!(last >= 0 && last < 1)) {
    throw UserError("TokenText: split: expected a fraction in [0, 1), got " + std::to_string(last));
  }
  std::pair<TokenText, TokenText> parts(*this, *this);
  const std::int64_t edge = end_ - static_cast<std::int64_t>(static_cast<double>(size()) * last);
  parts.first.end_ = parts.second.begin_ = edge;
  return parts;
}

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
  return {TokenText(std::move(train)), TokenText(std::move(validation))};
}

TextWindows::TextWindows(TokenText text, std::int64_t length, std::uint32_t seed,
                         std::int64_t batch)
    : text_(std::move(text)), length_(length), seed_(seed) {
  if (length_ < 1 || batch < 1 || text_.size() < length_) {
    throw UserError("TextWindows: expected a text of at least one window of " +
                    std::to_string(length_) + " tokens and a batch of at least 1, got " +
                    std::to_string(text_.size()) + " tokens and a batch of " +
                    std::to_string(batch));
  }
  const std::int64_t tokens = length_ * batch;
  count_ = (text_.size() + tokens - 1) / tokens * batch;
}

std::vector<std::int32_t> TextWindows::at(std::int64_t index, std::int64_t epoch) const {
  std::seed_seq mixed{seed_, static_cast<std::uint32_t>(epoch)};
  std::uint32_t first = 0;
  mixed.generate(&first, &first + 1);
  // The distance between windows is size / count, or one more after the first size % count windows.
  // It is at most length_.
  const std::int64_t apart = text_.size() / count_, more = text_.size() % count_;
  const std::int64_t begin = index * apart + std::min(index, more);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(length_) + 1);
  text_.read(static_cast<std::int64_t>(first) % text_.size() + begin, tokens);
  return tokens;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
