// SPDX-License-Identifier: MIT
// Checks of the values of options, and messages about wrong usage.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace tensorgrad::cli {

// Accepts the names in `names`.
CLI::Validator one_of(std::vector<std::string> names);

// Accepts the names that are keys of a map.
template <typename Map>
CLI::Validator one_of_keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return one_of(std::move(names));
}

// Accepts numbers from `low` to `high`.
template <typename T>
CLI::Validator in_range(T low, T high) {
  return CLI::Validator(
      [=](std::string& text) {
        T value{};
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
          return std::string();
        const char* const kind = std::is_integral_v<T> ? "an integer" : "a number";
        return fmt::format("expected {} from {} to {}, got '{}'", kind, low, high, text);
      },
      "");
}

// Returns those of `names` that a user who wrote `word` may have meant, at most three, nearest
// first: names that begin with it, and those within one edit per three characters of it. An edit
// inserts, removes or replaces a character, or swaps two neighbors.
std::vector<std::string> nearest_names(const std::string& word, std::vector<std::string> names);

// Returns the message of an error in the arguments that `app` has parsed. An unknown option comes
// before all other errors, which may follow from it.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tensorgrad::cli
