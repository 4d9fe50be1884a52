// SPDX-License-Identifier: MIT
#include "lm/stop_text.h"

#include <algorithm>
#include <utility>

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

std::string StopText::take(std::string_view more) {
  if (found_) return "";
  waiting_ += more;
  std::size_t certain = waiting_.size(), end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = waiting_.find(stop);
    if (at == std::string::npos) continue;
    // Takes the stop string that ends first, so that the result does not depend on how the text is
    // split. If several end there, takes the longest.
    const std::size_t whole = at + stop.size();
    if (whole < end || (whole == end && at < certain)) {
      end = whole;
      certain = at;
    }
    found_ = true;
  }
  for (std::size_t at = 0; at < certain && !found_; ++at) {
    const std::string_view rest = std::string_view(waiting_).substr(at);
    if (std::any_of(stops_.begin(), stops_.end(),
                    [&](const std::string& stop) { return stop.starts_with(rest); })) {
      certain = at;
    }
  }
  std::string text = waiting_.substr(0, certain);
  waiting_.erase(0, certain);
  if (found_) waiting_.clear();
  return text;
}

std::string StopText::finish() { return std::exchange(waiting_, {}); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
