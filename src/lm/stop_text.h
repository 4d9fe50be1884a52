// SPDX-License-Identifier: MIT
// Search for stop strings in generated text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

class StopText {
 public:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Appends `more` and returns the text that can be output. Holds back text that can be the
  // beginning of a stop string. If a stop string is found, returns the text before it. Later calls
  // return nothing.
  std::string take(std::string_view more);
  // Returns the text that is held back, at the end of a text.
  std::string finish();
  [[nodiscard]] bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string waiting_;
  bool found_ = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
