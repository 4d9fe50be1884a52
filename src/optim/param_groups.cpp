// SPDX-License-Identifier: MIT
// Patterns of parameter names.
#include "tensorgrad/param_groups.h"

namespace tensorgrad {
namespace {

// Greedy, going back to the last '*' where the text does not fit.
bool matches(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0, star = std::string::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

}  // namespace

ParamFilter::ParamFilter(std::string pattern)
    : text_(std::move(pattern)),
      pick_([text = text_](const std::string& name, const Shape&) { return matches(text, name); }) {
}

ParamGroup no_weight_decay() {
  return {.params = [](const std::string&, const Shape& shape) { return shape.size() < 2; },
          .name = "no_weight_decay",
          .weight_decay = 0};
}

}  // namespace tensorgrad
