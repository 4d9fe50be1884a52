// SPDX-License-Identifier: MIT
// What tokenizers do to text before they cut it: the normalizers of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace tensorgrad::text {

// The character map of a SentencePiece model: a double array of prefixes with their replacements.
class CharacterMap {
 public:
  // Of its bytes; IoError, beginning with `where`, if the sizes in them do not fit.
  CharacterMap(std::string bytes, const std::string& where);

  // What grapheme clusters and characters of the text become.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  // Appends what stands for the shortest prefix of `part` that is in the map; false if none is.
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
    kPrepend,        // `to`, before text that is not empty
    kReplace,        // `from` by `to`
    kReplaceSpaces,  // each run of at least `least` spaces (of white space, if 1) by `to`
    kStrip,
    kBert,
    kCharacterMap
  };
  What what = What::kForm;
  NormalForm form = NormalForm::kNfc;
  std::string from = {}, to = {};
  std::size_t least = 1;
  bool left = true, right = true;                                      // kStrip
  bool clean = true, ideographs = true, accents = true, lower = true;  // kBert; accents are removed
  std::shared_ptr<const CharacterMap> map = nullptr;
};

// The text after all steps. Bytes that are no UTF-8 stay as they are.
std::string normalized(std::string_view text, const std::vector<NormalStep>& steps);

}  // namespace tensorgrad::text
