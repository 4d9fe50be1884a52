// SPDX-License-Identifier: MIT
#include "text/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <string_view>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/json_reader.h"

namespace tensorgrad::text {

AddedToken read_added_token(const Part& item) {
  constexpr std::size_t kMaxAddedToken = 4096;
  AddedToken token;
  token.content = item["content"].string();
  if (token.content.size() > kMaxAddedToken) {
    item["content"].fail("has " + std::to_string(token.content.size()) +
                         " bytes; expected at most " + std::to_string(kMaxAddedToken));
  }
  token.special = item["special"].boolean(false);
  token.single_word = item["single_word"].boolean(false);
  token.lstrip = item["lstrip"].boolean(false);
  token.rstrip = item["rstrip"].boolean(false);
  token.normalized = item["normalized"].boolean(!token.special);
  return token;
}

std::vector<AddedToken> added_by_id(const Part& decoder) {
  std::vector<AddedToken> added;
  if (decoder.is_null()) return added;
  for (const auto& [id, token] : decoder.object()) {
    added.push_back(read_added_token(token));
    const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), added.back().id);
    if (error != std::errc() || stop != id.data() + id.size() || added.back().id < 0)
      decoder.fail("expected an id, got " + io::in_quotes(id));
  }
  return added;
}

void add_tokens_of_file(Definition& definition, const std::vector<AddedToken>& tokens,
                        const std::string& where) {
  try {
    add_tokens(definition, tokens, where);
  } catch (const IoError&) {
    throw;
  } catch (const UserError& error) {
    throw IoError(error.message());
  }
}

std::optional<std::string> read_special_token(const Part& part) {
  if (part.is_null()) return std::nullopt;
  return part.json().is_object() ? part["content"].string() : part.string();
}

void take_marks(const Part& root, Definition& definition) {
  const auto id_of = [&](const char* name) -> std::optional<Id> {
    const std::optional<std::string> token = read_special_token(root[name]);
    if (!token) return std::nullopt;
    for (const AddedToken& added : definition.added) {
      if (added.content == *token) return added.id;
    }
    const Id id = find_token(definition.model, *token);
    return id == kNoId ? std::nullopt : std::optional(id);
  };
  const auto take = [&](const char* name, std::optional<Id>& mark) {
    if (root.json().contains(name)) mark = id_of(name);
  };
  take("bos_token", definition.bos);
  take("eos_token", definition.eos);
  take("pad_token", definition.pad);
}

Json template_part(const Definition& definition, std::optional<Id> before,
                   std::optional<Id> behind) {
  if (!before && !behind) return nullptr;
  Json specials = Json::object();
  const auto sequence = [](const char* name, int type) -> Json {
    return {{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const auto add = [&](Json& list, const std::optional<Id>& id, int type) {
    if (!id) return;
    const auto added = std::find_if(definition.added.begin(), definition.added.end(),
                                    [&](const AddedToken& token) { return token.id == *id; });
    const std::string name =
        added != definition.added.end() ? added->content : token_text(definition.model, *id);
    list.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
    specials[name] = {{"id", name},
                      {"ids", Json::array({static_cast<std::uint32_t>(*id)})},
                      {"tokens", Json::array({name})}};
  };
  Json single = Json::array();
  add(single, before, 0);
  single.push_back(sequence("A", 0));
  add(single, behind, 0);
  Json pair = single;
  pair.push_back(sequence("B", 1));
  add(pair, behind, 1);
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(specials)}};
}

void take_config(Definition& definition, std::string_view json, std::string_view file) {
  const TokenizerJson read = read_json(json, file, JsonFile::kOther);
  take_marks(Part(*read.tree, std::string(file) + ": "), definition);
}

void take_added_ids(Definition& definition, std::string_view json, std::string_view file,
                    bool normalized) {
  const TokenizerJson read = read_json(json, file, JsonFile::kOther);
  const std::string where = std::string(file) + ": ";
  std::vector<AddedToken> added;
  std::set<std::string_view> known;
  for (const AddedToken& token : definition.added) known.insert(token.content);
  for (const auto& [content, id] : Part(*read.tree, where).object()) {
    if (known.contains(content)) continue;
    added.push_back(
        {.content = content, .id = id.id(), .special = false, .normalized = normalized});
  }
  add_tokens_of_file(definition, added, where);
}

void take_pairs_config(Definition& definition, std::string_view json, std::string_view file) {
  TokenizerJson read = read_json(json, file, JsonFile::kOther);
  const std::string where = std::string(file) + ": ";
  const Part root(*read.tree, where);
  const Part kind = root["tokenizer_class"];
  std::string name = kind.is_null() ? "GPT2Tokenizer" : kind.string();
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const bool qwen = name == "Qwen2Tokenizer";
  if (!qwen && name != "GPT2Tokenizer" && name != "GPTNeoXTokenizer") {
    kind.fail(io::in_quotes(name) +
              " is not supported without a tokenizer.json; expected GPT2Tokenizer, "
              "GPTNeoXTokenizer or Qwen2Tokenizer (from_vocab_and_merges() takes a "
              "pre-tokenization)");
  }
  for (const char* flag : {"add_bos_token", "add_eos_token"}) {
    if (root[flag].boolean(false))
      root[flag].fail("only false is supported without a tokenizer.json");
  }
  set_pre_tokenization(definition, qwen ? PreTokenization::kQwen2 : PreTokenization::kGpt2,
                       root["add_prefix_space"].boolean(false), qwen);
  // Defaults of these classes.
  for (const char* mark : {"bos_token", "eos_token", "unk_token"}) {
    const bool none = qwen && std::string_view(mark) == "bos_token";
    if (!none && !(*read.tree).contains(mark)) (*read.tree)[mark] = "<|endoftext|>";
  }
  std::vector<AddedToken> added = added_by_id(root["added_tokens_decoder"]);
  for (const char* mark : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const std::optional<std::string> content = read_special_token(root[mark]);
    const auto in = [&](const std::vector<AddedToken>& tokens) {
      return std::any_of(tokens.begin(), tokens.end(),
                         [&](const AddedToken& token) { return token.content == content; });
    };
    if (!content || in(added)) continue;
    if (in(definition.added) || find_token(definition.model, *content) != kNoId)
      added.push_back({.content = *content});
  }
  add_tokens_of_file(definition, added, where + "added_tokens_decoder");
  take_marks(root, definition);
}

}  // namespace tensorgrad::text
