// SPDX-License-Identifier: MIT
// JSON with inconsistent values.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "unit/io/io_test_util.h"

namespace tensorgrad::test {

// Returns the JSON with one value replaced, removed, or put twice into a list.
inline std::string with_another_value(const std::string& text, TestRandom& random) {
  using nlohmann::json;
  static const std::vector<json> kValues = {0,
                                            -1,
                                            1.5,
                                            1e300,
                                            -1e300,
                                            INT64_MAX,
                                            UINT64_MAX,
                                            1 << 30,
                                            65536,
                                            true,
                                            "",
                                            "1",
                                            json::object(),
                                            json::array(),
                                            json(nullptr),
                                            "Infinity",
                                            {1},
                                            {1, 2},
                                            {1, 1e300},
                                            {nullptr, 1},
                                            {{"__float__", "Infinity"}},
                                            "mamba2",
                                            "auto"};
  json whole = json::parse(text);
  const json flat = whole.flatten();
  auto leaf = flat.begin();
  std::advance(leaf, static_cast<std::ptrdiff_t>(random.below(flat.size())));
  const json::json_pointer at(leaf.key());
  const std::size_t choice = random.below(kValues.size() + 2);
  if (choice < kValues.size()) {
    whole[at] = kValues[choice];
  } else if (choice == kValues.size() && whole[at.parent_pointer()].is_object()) {
    whole[at.parent_pointer()].erase(at.back());
  } else {
    whole[at] = json::array({whole[at], whole[at]});
  }
  return whole.dump();
}

}  // namespace tensorgrad::test
