// SPDX-License-Identifier: MIT
// Parts of tokenizer definitions that do not depend on the file format.
#include "text/definition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::text {

Id find_token(const BpeModel& model, std::string_view token) {
  if (!model.byte_level) {
    const Id literal = model.tokens.find_literal(token);
    return literal != kNoId ? literal : model.tokens.find(token);
  }
  std::string bytes;
  return bytes_of_symbols(token, bytes) && !bytes.empty() ? model.tokens.find(bytes)
                                                          : model.tokens.find_literal(token);
}

std::string token_text(const BpeModel& model, Id id) {
  const std::string_view bytes = model.tokens.bytes_of(id);
  return model.byte_level && !model.tokens.literal(id) ? symbols_of_bytes(bytes)
                                                       : std::string(bytes);
}

TokenEntry entry_of(std::string token, Id id, bool byte_level) {
  TokenEntry entry{"", id, true};
  if (byte_level) {
    entry.literal = token.empty() || !bytes_of_symbols(token, entry.bytes);
  } else {
    entry.literal = token.empty() || io::utf8_length(token) != token.size();
  }
  if (!byte_level || entry.literal) entry.bytes = std::move(token);
  return entry;
}

void check_entries(const std::vector<TokenEntry>& entries, const std::string& where) {
  std::vector<const TokenEntry*> sorted;
  sorted.reserve(entries.size());
  for (const TokenEntry& entry : entries) sorted.push_back(&entry);
  const auto fail = [&](const TokenEntry& entry, const std::string& what) {
    const std::string token = entry.literal ? entry.bytes : symbols_of_bytes(entry.bytes);
    throw IoError(where + ": " + io::in_quotes(token) + what);
  };
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->id < b->id; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i]->id < 0 || sorted[i]->id == std::numeric_limits<Id>::max()) {
      fail(*sorted[i], " has an id outside 0 to 2147483646");
    }
    if (i > 0 && sorted[i]->id == sorted[i - 1]->id) {
      fail(*sorted[i], " has the id of another token, " + std::to_string(sorted[i]->id));
    }
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->literal != b->literal ? a->literal : a->bytes < b->bytes;
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->literal == sorted[i - 1]->literal && sorted[i]->bytes == sorted[i - 1]->bytes) {
      fail(*sorted[i], " occurs twice");
    }
  }
}

void add_tokens(Definition& definition, const std::vector<AddedToken>& tokens,
                const std::string& where) {
  std::map<std::string, std::size_t> by_content;
  std::map<Id, std::size_t> by_id;
  Id largest = definition.model.tokens.largest();
  for (std::size_t i = 0; i < definition.added.size(); ++i) {
    by_content.emplace(definition.added[i].content, i);
    by_id.emplace(definition.added[i].id, i);
    largest = std::max(largest, definition.added[i].id);
  }
  for (const AddedToken& given : tokens) {
    AddedToken token = given;
    const auto fail = [&](const std::string& what) {
      throw UserError(where + ": " + io::in_quotes(given.content) + what);
    };
    if (token.content.empty()) fail(" is empty");
    const auto before = by_content.find(token.content);
    const Id known = before != by_content.end() ? definition.added[before->second].id
                                                : find_token(definition.model, token.content);
    if (token.id < 0) token.id = known != kNoId ? known : largest + 1;
    if (token.id == std::numeric_limits<Id>::max()) fail(" has an id above 2147483646");
    if (known != kNoId && token.id != known) {
      fail(" has the id " + std::to_string(token.id) + ", but its id in the vocabulary is " +
           std::to_string(known));
    }
    if (known == kNoId && (definition.model.tokens.has(token.id) || by_id.contains(token.id))) {
      fail(" has the id of another token, " + std::to_string(token.id));
    }
    largest = std::max(largest, token.id);
    if (before != by_content.end()) {
      definition.added[before->second] = token;
      continue;
    }
    by_content.emplace(token.content, definition.added.size());
    by_id.emplace(token.id, definition.added.size());
    definition.added.push_back(token);
  }
  std::stable_sort(definition.added.begin(), definition.added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

Stage literals_stage(std::vector<std::string> literals) {
  // Without those that an earlier one hides, the first that matches is the longest.
  std::vector<AddedToken> tokens;
  std::unordered_set<std::string_view> known;
  for (const std::string_view literal : literals) {
    bool hidden = false;
    for (std::size_t size = 1; size <= literal.size() && !hidden; ++size)
      hidden = known.contains(literal.substr(0, size));
    if (hidden) continue;
    known.insert(literal);
    tokens.push_back(
        {.content = std::string(literal), .id = static_cast<Id>(tokens.size()), .special = false});
  }
  Stage stage;
  stage.what = Stage::What::kLiterals;
  stage.matcher = std::make_shared<const AddedTokenSet>(std::move(tokens));
  stage.literals = std::move(literals);
  return stage;
}

void set_pre_tokenization(Definition& definition, PreTokenization pattern, bool add_prefix_space,
                          bool nfc) {
  definition.stages.clear();
  definition.byte_level_pattern = pattern == PreTokenization::kGpt2;
  if (pattern != PreTokenization::kGpt2 && pattern != PreTokenization::kNone) {
    Stage stage;
    stage.pattern = pattern;
    definition.stages.push_back(stage);
  }
  definition.add_prefix_space = add_prefix_space;
  definition.normal.clear();
  if (nfc) definition.normal.push_back({.form = NormalForm::kNfc});
}

}  // namespace tensorgrad::text
