// SPDX-License-Identifier: MIT
// Tokenizers whose tokens are text: BPE of characters and unigram models of SentencePiece, and
// WordPiece. What they share with byte-level BPE is in definition.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/bpe.h"

namespace tensorgrad::text {

// One step from tokens to text, as in Hugging Face's tokenizers.
struct DecodeStep {
  enum class What : std::uint8_t {
    kMetaspace,     // `from` becomes a space; in the first token nothing, unless `keeps_first`
    kByteFallback,  // runs of <0xNN> become their bytes
    kFuse,          // all tokens become one
    kStrip,         // up to `start` and `stop` of `from` at the ends of each token
    kReplace,       // `from` by `to`
    kWordPiece      // a token without the prefix `from` gets a space; see `cleanup`
  };
  What what = What::kFuse;
  std::string from = {}, to = {};
  std::size_t start = 0, stop = 0;
  bool keeps_first = false;
  bool cleanup = false;  // of spaces before punctuation and English contractions
};

// The text of tokens. Bytes of <0xNN> that are no UTF-8 stay if `raw`, else each becomes U+FFFD.
std::string decoded_text(std::vector<std::string> tokens, const std::vector<DecodeStep>& steps,
                         bool raw);

struct Subword {
  enum class Kind : std::uint8_t { kBpe, kUnigram, kWordPiece };
  Kind kind = Kind::kBpe;
  std::vector<double> scores;  // unigram: by id
  std::string prefix = "##";   // WordPiece: of what does not begin a word
  std::size_t longest = 100;   // WordPiece: characters of a word that is not unknown
  std::vector<DecodeStep> decoder;
  // JSON of parts of the file, to be written again.
  std::string pre_tokenizer = {}, decoder_json = {};
};

// The id of the token <0xNN> of a byte; kNoId if there is none.
Id byte_token(const TokenTable& tokens, unsigned char byte);

// Encodes pieces by a unigram model or WordPiece. Refers to `model`, which must outlive it.
class SubwordEncoder {
 public:
  SubwordEncoder(const Subword& subword, const BpeModel& model);

  // Appends the ids of a piece that is not empty. UserError: nothing stands for a character, and
  // there is no unknown token.
  void encode(std::string_view piece, std::vector<Id>& ids) const;

 private:
  void encode_unigram(std::string_view piece, std::vector<Id>& ids) const;
  void encode_words(std::string_view piece, std::vector<Id>& ids) const;
  [[nodiscard]] Id unknown(std::string_view symbol) const;
  // Tokens that `text` begins with, the shortest first.
  template <class Take>
  void prefixes(std::string_view text, const Take& take) const;

  const Subword& subword_;
  const BpeModel& model_;
  std::vector<std::pair<std::string_view, Id>> sorted_;  // tokens
  double unknown_score_ = 0;
};

}  // namespace tensorgrad::text
