// SPDX-License-Identifier: MIT
// Normalizers of Hugging Face's tokenizers, applied to text before pre-tokenization.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace tensorgrad::text {

// The character map of a SentencePiece model: a double-array trie of prefixes and their
// replacements.
class CharacterMap {
 public:
  // How prefixes of the text are looked up.
  enum class Match : std::uint8_t {
    kClusters,  // grapheme clusters and characters, as in Hugging Face's tokenizers
    kLongest    // the longest match at each position, as in SentencePiece
  };
  // Parses the map. Throws IoError, beginning with `where`, if its sizes are inconsistent.
  CharacterMap(std::string bytes, const std::string& where, Match match = Match::kClusters);

  // Returns the text with all matches replaced.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  // Appends the replacement of a prefix of `part` in the map: the longest one for kLongest, else
  // the shortest one. Returns its size, or 0 if there is none.
  std::size_t replace(std::string_view part, std::string& out) const;
  [[nodiscard]] std::string with_clusters_replaced(std::string_view text) const;
  [[nodiscard]] std::uint32_t unit(std::size_t at) const;

  std::string bytes_;
  std::size_t units_ = 0;  // of the double array, which follows its size
  std::string_view replacements_;
  Match match_ = Match::kClusters;
};

struct NormalStep {
  enum class What : std::uint8_t {
    kForm,
    kLowercase,
    kStripAccents,
    kPrepend,        // prepend `to` to non-empty text
    kReplace,        // replace `from` by `to`
    kReplaceSpaces,  // replace runs of at least `least` spaces (white space if 1) by `to`
    kReplaceEnds,    // replace runs of `from` at the ends by `to`, each as a whole
    kStrip,
    kBert,
    kCharacterMap
  };
  What what = What::kForm;
  NormalForm form = NormalForm::kNfc;
  std::string from = {}, to = {};
  std::size_t least = 1;
  bool left = true, right = true;  // for kStrip and kReplaceEnds
  // For kBert. `accents` removes accents.
  bool clean = true, ideographs = true, accents = true, lower = true;
  std::shared_ptr<const CharacterMap> map = nullptr;
};

// Applies all steps to a text. Keeps bytes that are not UTF-8.
std::string normalized(std::string_view text, const std::vector<NormalStep>& steps);

}  // namespace tensorgrad::text
