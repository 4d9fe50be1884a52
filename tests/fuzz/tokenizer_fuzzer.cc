// SPDX-License-Identifier: MIT
// libFuzzer: reads the input as a tokenizer file in every supported format, and as a text to
// encode.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/error.h"
#include "text/definition.h"
#include "text/pipeline.h"
#include "text/unicode.h"

namespace {

using tensorgrad::Tokenizer;

constexpr std::string_view kText = "ab abab## <s> a\xc3\xa9 e\xcc\x81\xff <both>  left 12\r\n  x";

template <class Action>
void quietly(const Action& action) {
  try {
    action();
  } catch (const tensorgrad::UserError&) {  // malformed input
  }
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  quietly([&] {
    const auto ids = tokenizer.encode(text);
    tensorgrad::DecodeStream stream(tokenizer);
    std::string streamed;
    for (const auto id : ids) streamed += stream.step(id);
    streamed += stream.finish();
    const std::string decoded = tokenizer.decode(ids);
    if (tensorgrad::text::as_utf8(streamed) != streamed) std::abort();
    // The text of byte tokens that are not UTF-8 may differ.
    const bool replaced = decoded.find("\ufffd") != std::string::npos;
    if (streamed != decoded && !replaced) std::abort();
  });
}

void use_and_write(const Tokenizer& tokenizer, std::string_view bytes) {
  use(tokenizer, kText);
  use(tokenizer, bytes.substr(0, 512));
  const std::string json = tokenizer.to_json();
  if (Tokenizer::from_json(json).to_json() != json) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = tensorgrad::FileSource::text(bytes, "fuzz");
  quietly([&] { use_and_write(Tokenizer::from_json(bytes, "fuzz"), bytes); });
  quietly([&] { use_and_write(Tokenizer::from_sentencepiece(file), bytes); });
  quietly([&] { use_and_write(Tokenizer::from_wordpiece(file), bytes); });
  quietly([&] { tensorgrad::text::definition_of_tiktoken(bytes, "fuzz", {}); });
  const std::size_t half = bytes.find('\n');
  if (half != std::string_view::npos) {
    quietly([&] {
      tensorgrad::text::definition_of_pairs(bytes.substr(0, half), "fuzz", bytes.substr(half + 1),
                                            "fuzz", {});
    });
  }
  static const Tokenizer kBytes = Tokenizer::bytes({"<s>"});
  const auto ids = kBytes.encode(bytes);
  if (kBytes.decode_bytes(ids) != bytes) std::abort();
  // Pieces of every pattern must cover any text.
  for (const auto pattern :
       {tensorgrad::PreTokenization::kGpt2, tensorgrad::PreTokenization::kTiktokenCl100k,
        tensorgrad::PreTokenization::kQwen2, tensorgrad::PreTokenization::kO200k}) {
    tensorgrad::text::Definition definition;
    tensorgrad::text::set_pre_tokenization(definition, pattern, false, false);
    const tensorgrad::detail::TokenizerImpl cutter(
        definition, std::make_shared<const tensorgrad::text::Bpe>(tensorgrad::text::BpeModel{}));
    std::string all;
    cutter.pieces(bytes, [&](std::string_view piece) {
      if (piece.empty()) std::abort();
      all += piece;
    });
    if (all != bytes) std::abort();
  }
  return 0;
}
