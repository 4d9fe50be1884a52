// SPDX-License-Identifier: MIT
// Patterns of parameter names.
#include "tensorgrad/optim/param_groups.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Each '*' first matches as little as possible. On a mismatch, the last '*' is extended.
std::optional<std::vector<std::string>> match_pattern(const std::string& pattern,
                                                      const std::string& text) {
  struct Met {
    std::size_t begin, end;
  };
  std::vector<Met> met, met_at_star;
  std::size_t p = 0, t = 0, star = std::string::npos;
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      met.push_back({t, t});
      met_at_star = met;
    } else if (p < pattern.size() && t < text.size() &&
               (pattern[p] == '?' || pattern[p] == text[t])) {
      if (pattern[p] == '?') met.push_back({t, t + 1});
      ++p;
      ++t;
    } else if (star != std::string::npos && met_at_star.back().end < text.size()) {
      t = ++met_at_star.back().end;
      met = met_at_star;
      p = star + 1;
    } else {
      return std::nullopt;
    }
  }
  std::vector<std::string> parts;
  parts.reserve(met.size());
  for (const Met& each : met) parts.push_back(text.substr(each.begin, each.end - each.begin));
  return parts;
}

ParamFilter::ParamFilter(std::string pattern)
    : text_(std::move(pattern)), pick_([text = text_](const std::string& name, const Shape&) {
        return match_pattern(text, name).has_value();
      }) {}

ParamGroup no_weight_decay() {
  return {.params = [](const std::string&, const Shape& shape) { return shape.size() < 2; },
          .name = "no_weight_decay",
          .weight_decay = 0};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
