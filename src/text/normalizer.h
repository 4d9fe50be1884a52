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
  // Parses the map. Throws IoError, beginning with `where`, if its sizes are inconsistent.
  CharacterMap(std::string bytes, const std::string& where);

  // Returns the text with grapheme clusters and characters replaced.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  // Appends the replacement of the shortest prefix of `part` in the map. Returns false if there is
  // none.
  bool replace(std::string_view part, std::string& out) const;
  [[nodiscard]] std::uint32_t unit(std::size_t at) const;

  std::string bytes_;
  std::size_t units_ = 0;  // of the double array, which follows its size
  std::string_view replacements_;
};

struct NormalStep {
  enum class What : std::uint8_t {
    kForm,
    kLowercase,
    kStripAccents,
    kPrepend,        // prepend `to` to non-empty text
    kReplace,        // replace `from` by `to`
    kReplaceSpaces,  // replace runs of at least `least` spaces (white space if 1) by `to`
    kStrip,
    kBert,
    kCharacterMap
  };
  What what = What::kForm;
  NormalForm form = NormalForm::kNfc;
  std::string from = {}, to = {};
  std::size_t least = 1;
  bool left = true, right = true;  // for kStrip
  // For kBert. `accents` removes accents.
  bool clean = true, ideographs = true, accents = true, lower = true;
  std::shared_ptr<const CharacterMap> map = nullptr;
};

// Applies all steps to a text. Keeps bytes that are not UTF-8.
std::string normalized(std::string_view text, const std::vector<NormalStep>& steps);

}  // namespace tensorgrad::text
