// SPDX-License-Identifier: MIT
// Files of tiktoken: each line has a token in base64 and its rank. Two adjacent tokens merge if
// their concatenation is a token, whose rank is the rank of the merge.
#include <algorithm>
#include <charconv>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/base64.h"
#include "text/definition.h"

namespace tensorgrad::text {
namespace {

constexpr std::size_t kMaxEntry = 4096;

}  // namespace

Definition definition_of_tiktoken(std::string_view ranks, std::string_view file,
                                  const BpeOptions& options) {
  std::vector<TokenEntry> entries;
  std::size_t number = 0;
  while (!ranks.empty()) {
    const std::size_t end = std::min(ranks.find('\n'), ranks.size());
    std::string_view line = ranks.substr(0, end);
    ranks.remove_prefix(std::min(end + 1, ranks.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.empty()) continue;
    TokenEntry entry;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view digits = line.substr(std::min(space + 1, line.size()));
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), entry.id);
    const bool good = decode_base64(line.substr(0, space), entry.bytes) && error == std::errc() &&
                      stop == digits.data() + digits.size();
    if (!good || entry.bytes.size() > kMaxEntry) {
      throw IoError(std::string(file) + ": line " + std::to_string(number) +
                    ": expected a base64 token and its rank, got " + io::in_quotes(line));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) throw IoError(std::string(file) + ": is empty");
  check_entries(entries, std::string(file));
  Definition definition;
  BpeModel& model = definition.model;
  model.tokens = TokenTable(entries);
  for (const Id id : model.tokens.ids()) {
    const std::string_view bytes = model.tokens.bytes_of(id);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const Id left = model.tokens.find(bytes.substr(0, cut));
      const Id right = left == kNoId ? kNoId : model.tokens.find(bytes.substr(cut));
      if (right == kNoId) continue;
      model.merges.push_back({left, right, static_cast<std::uint32_t>(id), id});
    }
  }
  model.ignore_merges = true;
  set_pre_tokenization(definition, options.pre_tokenization, options.add_prefix_space, options.nfc);
  add_tokens(definition, options.added_tokens, "added_tokens");
  return definition;
}

}  // namespace tensorgrad::text
