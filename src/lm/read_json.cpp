// SPDX-License-Identifier: MIT
#include "lm/read_json.h"

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

nlohmann::json read_json(std::string_view json, const std::string& what) {
  constexpr int kMaxDepth = 8;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth <= kMaxDepth) return true;
    throw IoError(what + " is nested too deeply");
  };
  try {
    return nlohmann::json::parse(json, shallow);
  } catch (const nlohmann::json::parse_error& error) {
    throw IoError(what + " is not JSON at byte " +
                  std::to_string(error.byte > 0 ? error.byte - 1 : 0));
  } catch (const nlohmann::json::out_of_range&) {
    throw IoError(what + " has a number that is too large");
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
