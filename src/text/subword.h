// SPDX-License-Identifier: MIT
// Tokenizers whose tokens are text: BPE of characters, unigram models of SentencePiece, and
// WordPiece. The parts that they share with byte-level BPE are in definition.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/bpe.h"

namespace tensorgrad::text {

// One decoding step, as in Hugging Face's tokenizers.
struct DecodeStep {
  enum class What : std::uint8_t {
    kMetaspace,     // replace `from` by a space; in the first token, remove it unless `keeps_first`
    kByteFallback,  // decode runs of <0xNN> to their bytes
    kFuse,          // concatenate all tokens
    kStrip,     // strip up to `start` and `stop` occurrences of `from` from the ends of each token
    kReplace,   // replace `from` by `to`
    kWordPiece  // prepend a space to tokens without the prefix `from`; see `cleanup`
  };
  What what = What::kFuse;
  std::string from = {}, to = {};
  std::size_t start = 0, stop = 0;
  bool keeps_first = false;
  bool cleanup = false;  // remove spaces before punctuation and in English contractions
};

// Returns the text of tokens. If bytes of <0xNN> are not UTF-8, they are kept if `raw` is set,
// otherwise each becomes U+FFFD.
std::string decoded_text(std::vector<std::string> tokens, const std::vector<DecodeStep>& steps,
                         bool raw);

struct Subword {
  enum class Kind : std::uint8_t { kBpe, kUnigram, kWordPiece };
  Kind kind = Kind::kBpe;
  std::vector<double> scores;  // for unigram: by id
  std::string prefix = "##";   // for WordPiece: marks tokens that do not begin a word
  std::size_t longest = 100;   // for WordPiece: longer words, in characters, are unknown
  std::vector<DecodeStep> decoder;
  // JSON of parts of the file, to be written again.
  std::string pre_tokenizer = {}, decoder_json = {};
};

// True for the names <0x00> to <0xFF>.
bool is_byte_token(std::string_view token);
// Returns the id of the token <0xNN> of a byte, or kNoId.
Id byte_token(const TokenTable& tokens, unsigned char byte);

// Encodes pieces with a unigram model or WordPiece. `subword` and `model` must outlive it.
class SubwordEncoder {
 public:
  // A unigram model does not match the tokens of `reserved`.
  SubwordEncoder(const Subword& subword, const BpeModel& model, std::set<Id> reserved);

  // Appends the ids of a non-empty piece. Throws UserError if a character has no token and there is
  // no unknown token.
  void encode(std::string_view piece, std::vector<Id>& ids) const;

 private:
  void encode_unigram(std::string_view piece, std::vector<Id>& ids) const;
  void encode_words(std::string_view piece, std::vector<Id>& ids) const;
  [[nodiscard]] Id unknown(std::string_view symbol) const;
  // Calls `take` for each token that is a prefix of `text`, shortest first.
  template <class Take>
  void prefixes(std::string_view text, const Take& take) const;

  const Subword& subword_;
  const BpeModel& model_;
  std::set<Id> reserved_;
  std::vector<std::pair<std::string_view, Id>> sorted_;  // tokens by their bytes
  double unknown_score_ = 0;
};

}  // namespace tensorgrad::text
