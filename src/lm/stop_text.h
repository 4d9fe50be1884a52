// SPDX-License-Identifier: MIT
// Text that ends before one of some strings, which may come in pieces.
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

  // The text that is certain with `more`: what may begin one of the strings waits for the rest.
  // Where one is found, what is before it; nothing from then on.
  std::string take(std::string_view more);
  // What still waits: it began none.
  std::string finish();
  [[nodiscard]] bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string waiting_;
  bool found_ = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
