// SPDX-License-Identifier: MIT
#include "usage.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace tensorgrad::cli {
namespace {

// Returns the number of edits that turn `a` into `b` (optimal string alignment distance).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        best[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = best[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      best[i][j] = std::min({best[i - 1][j] + 1, best[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
    }
  }
  return best[a.size()][b.size()];
}

// Returns the command that was parsed last, such as that of `tg lm train`.
const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

// Returns the words that call a command, such as "tg lm train".
std::string words_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent == nullptr ? "" : words_of(*parent) + ' ') + command.get_name();
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_option(const CLI::App& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::string text = fmt::format("unknown option '{}'; ", name);
  const std::vector<std::string> near = nearest_names(name, names_of_options(command));
  if (near.empty()) return text + fmt::format("see `{} --help`", words_of(command));
  text += "did you mean ";
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    text += "'" + near[i] + "'";
  }
  return text + "?";
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

// Returns the parts of `text` before and after `separator`, if it occurs.
bool split(const std::string& text, const std::string& separator, std::string& before,
           std::string& after) {
  const std::size_t at = text.find(separator);
  if (at == std::string::npos) return false;
  before = text.substr(0, at);
  after = text.substr(at + separator.size());
  return true;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> names) {
  return CLI::Validator(
      [names = std::move(names)](std::string& text) {
        if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
        return fmt::format("unknown value '{}'; available: {}", text, fmt::join(names, ", "));
      },
      "");
}

std::vector<std::string> nearest_names(const std::string& word, std::vector<std::string> names) {
  const std::size_t most = std::max<std::size_t>(1, word.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (std::string& name : names) {
    const bool begins = word.size() > 3 && name.starts_with(word);
    const std::size_t distance = begins ? 1 : edits(word, name);
    if (distance <= most) near.emplace_back(distance, std::move(name));
  }
  std::sort(near.begin(), near.end());
  names.clear();
  for (auto& [distance, name] : near) {
    if (names.size() < 3 && distance <= near.front().first + 1) names.push_back(std::move(name));
  }
  return names;
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed_command(app);
  const std::vector<std::string> rest = app.remaining(true);
  const std::vector<std::string> commands = names_of_commands(command);
  // Options after an unknown command are its own.
  if (!commands.empty() && !rest.empty() && !is_option(rest.front())) {
    return fmt::format("unknown command '{}'; available: {}", rest.front(),
                       fmt::join(commands, ", "));
  }
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option != rest.end()) return unknown_option(command, *option);
  if (!rest.empty()) {
    return fmt::format("unexpected argument '{}'; see `{} --help`", rest.front(),
                       words_of(command));
  }
  std::string text = error.what(), before, after;
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr &&
      split(text, " excludes ", before, after)) {
    return before + ": cannot be used with " + after;
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr &&
      split(text, " requires ", before, after)) {
    return before + ": requires " + after;
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr &&
      split(text, "Could not convert: ", before, after) && split(after, " = ", before, after)) {
    const CLI::Option* const of = command.get_option_no_throw(before);
    const bool integer = of != nullptr && of->get_type_name().find("INT") != std::string::npos;
    return fmt::format("{}: expected {}, got '{}'", before, integer ? "an integer" : "a number",
                       after);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr &&
      split(text, ": ", before, after)) {
    return before + (after.starts_with("At Most") ? ": given more than once" : ": expects a value");
  }
  return text;
}

}  // namespace tensorgrad::cli
