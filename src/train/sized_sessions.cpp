// SPDX-License-Identifier: MIT
#include "train/sized_sessions.h"

#include <algorithm>

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

SizedSessions::SizedSessions(const std::vector<InputSpec>& inputs, std::int64_t dynamic_size,
                             int max_cached_sizes, const std::string& options,
                             const SourceLocation& location)
    : inputs_(inputs),
      location_(location),
      dynamic_(check_open(inputs, location)),
      max_cached_(static_cast<std::size_t>(std::max(max_cached_sizes, 1))) {
  if (dynamic_ && (dynamic_size < 1 || max_cached_sizes < 1)) {
    throw UserError(options + ": dynamic_size and max_cached_sizes must be at least 1, got " +
                        std::to_string(dynamic_size) + " and " + std::to_string(max_cached_sizes),
                    location);
  }
  first_.size = dynamic_size;
}

void SizedSessions::check_state(const std::string& name, const Type& type,
                                std::int64_t size) const {
  const std::vector<StateEntry>& states = first_.session->states();
  const auto same = [&](const StateEntry& other) {
    return other.name == name && other.type == type;
  };
  if (std::any_of(states.begin(), states.end(), same)) return;
  throw UserError("state '" + name + "' is " + to_string(type) + " for a dynamic size of " +
                      std::to_string(size) + ", but not for one of " + std::to_string(first_.size) +
                      "; the type of a state cannot depend on it",
                  location_);
}

SizedSession& SizedSessions::of_size(std::int64_t size, const Build& build) {
  if (size == first_.size) return first_;
  const auto found = std::find_if(others_.begin(), others_.end(),
                                  [&](const SizedSession& each) { return each.size == size; });
  if (found != others_.end()) {
    others_.splice(others_.begin(), others_, found);
    return others_.front();
  }
  auto session = build(size);
  for (const StateEntry& state : session->states()) check_state(state.name, state.type, size);
  if (others_.size() == max_cached_) others_.pop_back();
  others_.push_front({size, std::move(session), nullptr, {}});
  return others_.front();
}

void SizedSessions::check(const FeedView& inputs) const {
  if (!dynamic_) return first_.session->check(inputs);
  const std::int64_t size = dynamic_size(inputs_, inputs, first_.size);
  if (size == first_.size) return first_.session->check(inputs);
  first_.session->check_devices(inputs);
  check_feed(closed(inputs_, size), inputs, {});
}

SizedSession& SizedSessions::of_checked(const FeedView& inputs, const Build& build) {
  if (!dynamic_) return first_;
  SizedSession& sized = of_size(dynamic_size(inputs_, inputs, first_.size), build);
  sized.session->check(inputs);  // also checks the index bounds
  return sized;
}

std::vector<std::int64_t> SizedSessions::sizes() const {
  std::vector<std::int64_t> sizes;
  if (dynamic_) sizes.push_back(first_.size);
  for (const SizedSession& each : others_) sizes.push_back(each.size);
  return sizes;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
