// SPDX-License-Identifier: MIT
// Writes a tokenizer.json for Hugging Face's tokenizers. Merges are written as "left right", which
// all of their versions read.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "text/definition.h"
#include "text/patterns.h"

namespace tensorgrad::text {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string truth(bool value) { return value ? "true" : "false"; }

// Returns a JSON list.
std::string list_of(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return "[" + out + "]";
}

std::string normalizer_text(const Definition& definition) {
  constexpr std::array kNames = {"NFC", "NFD", "NFKC", "NFKD"};
  std::vector<std::string> all;
  if (!definition.normalizer.empty()) return definition.normalizer;
  for (const NormalStep& step : definition.normal) {
    all.push_back("{\"type\": " + json_string(kNames[static_cast<std::size_t>(step.form)]) + "}");
  }
  if (all.empty()) return "null";
  if (all.size() == 1) return all[0];
  return R"({"type": "Sequence", "normalizers": )" + list_of(all) + "}";
}

std::string stage_text(const Stage& stage) {
  constexpr std::array kBehaviours = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};
  const std::string behaviour = json_string(kBehaviours[static_cast<std::size_t>(stage.behaviour)]);
  if (stage.what == Stage::What::kDigits) {
    return R"({"type": "Digits", "individual_digits": )" +
           truth(stage.behaviour == Behaviour::kIsolated) + "}";
  }
  if (stage.what == Stage::What::kPunctuation) {
    return R"({"type": "Punctuation", "behavior": )" + behaviour + "}";
  }
  if (stage.what == Stage::What::kSpaces) return R"({"type": "WhitespaceSplit"})";
  if (stage.what == Stage::What::kWords) return R"({"type": "Whitespace"})";
  std::string pattern;
  if (stage.what == Stage::What::kLiteral) {
    pattern = R"({"String": )" + json_string(stage.literal);
  } else {
    pattern = R"({"Regex": )" + json_string(stage.what == Stage::What::kLiterals
                                                ? expression_of_literals(stage.literals)
                                                : std::string(expression_of(stage.pattern)));
  }
  return R"({"type": "Split", "pattern": )" + pattern + R"(}, "behavior": )" + behaviour +
         R"(, "invert": )" + truth(stage.invert) + "}";
}

std::string byte_level_text(bool add_prefix_space, bool pattern) {
  return R"({"type": "ByteLevel", "add_prefix_space": )" + truth(add_prefix_space) +
         R"(, "trim_offsets": true, "use_regex": )" + truth(pattern) + "}";
}

std::string pre_tokenizer_text(const Definition& definition) {
  if (definition.subword && !definition.subword->pre_tokenizer.empty())
    return definition.subword->pre_tokenizer;
  if (!definition.model.byte_level) return "null";
  std::string last = byte_level_text(definition.add_prefix_space, definition.byte_level_pattern);
  if (definition.stages.empty()) return last;
  std::vector<std::string> all;
  for (const Stage& stage : definition.stages) all.push_back(stage_text(stage));
  all.push_back(last);
  return R"({"type": "Sequence", "pretokenizers": )" + list_of(all) + "}";
}

std::string decoder_text(const Definition& definition) {
  if (definition.subword) {
    const std::string& json = definition.subword->decoder_json;
    return json.empty() ? "null" : json;
  }
  return definition.model.byte_level ? byte_level_text(true, true) : R"({"type": "Fuse"})";
}

std::string added_tokens_text(const Definition& definition) {
  std::vector<std::string> all;
  for (const AddedToken& token : definition.added) {
    all.push_back("\n    {\"id\": " + std::to_string(token.id) + ", \"content\": " +
                  json_string(token.content) + ", \"single_word\": " + truth(token.single_word) +
                  ", \"lstrip\": " + truth(token.lstrip) + ", \"rstrip\": " + truth(token.rstrip) +
                  ", \"normalized\": " + truth(token.normalized) +
                  ", \"special\": " + truth(token.special) + "}");
  }
  return list_of(all);
}

// Returns added tokens that must be in the vocabulary to keep their ids: Hugging Face's tokenizers
// number the others from the size of the vocabulary.
std::vector<const AddedToken*> numbered_otherwise(const Definition& definition) {
  if (definition.subword && definition.subword->kind == Subword::Kind::kUnigram) return {};
  const TokenTable& tokens = definition.model.tokens;
  std::vector<const AddedToken*> missing;
  for (const AddedToken& token : definition.added) {
    if (!tokens.has(token.id)) missing.push_back(&token);
  }
  // Tokens at the end can be left out if their ids are consecutive up to the last.
  const std::size_t count = tokens.count() + missing.size();
  while (!missing.empty() &&
         missing.back()->id == static_cast<Id>(tokens.count() + missing.size() - 1) &&
         definition.added.back().id == static_cast<Id>(count - 1)) {
    missing.pop_back();
  }
  return missing;
}

}  // namespace

std::string to_tokenizer_json(const Definition& definition) {
  const BpeModel& model = definition.model;
  const auto content_of = [&](Id id) {
    for (const AddedToken& token : definition.added) {
      if (token.id == id) return token.content;
    }
    return token_text(model, id);
  };
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  const auto member = [&](const char* name, const std::string& json) {
    out += std::string("  \"") + name + "\": " + json + ",\n";
  };
  member("added_tokens", added_tokens_text(definition));
  member("normalizer", normalizer_text(definition));
  member("pre_tokenizer", pre_tokenizer_text(definition));
  member("post_processor", definition.post_processor.empty() ? "null" : definition.post_processor);
  member("decoder", decoder_text(definition));
  const std::optional<Subword>& subword = definition.subword;
  const bool unigram = subword && subword->kind == Subword::Kind::kUnigram;
  const bool words = subword && subword->kind == Subword::Kind::kWordPiece;
  const char* const type = unigram ? "Unigram" : words ? "WordPiece" : "BPE";
  out += "  \"model\": {\n    \"type\": \"" + std::string(type) + "\",\n";
  if (unigram) {
    out += "    \"unk_id\": " + (model.unk ? std::to_string(*model.unk) : "null");
  } else {
    out += "    \"unk_token\": ";
    out += model.unk ? json_string(token_text(model, *model.unk)) : "null";
  }
  // Written next to unk_token: tokenizers rejects unknown fields at the top level, but ignores them
  // in parts.
  const auto mark = [&](const char* name, const std::optional<Id>& id) {
    if (id) out += ",\n    \"" + std::string(name) + "\": " + json_string(content_of(*id));
  };
  mark("bos_token", definition.bos);
  mark("eos_token", definition.eos);
  mark("pad_token", definition.pad);
  if (words) {
    out += ",\n    \"continuing_subword_prefix\": " + json_string(subword->prefix);
    out += ",\n    \"max_input_chars_per_word\": " + std::to_string(subword->longest);
  } else if (!unigram) {
    out += ",\n    \"dropout\": null,\n    \"continuing_subword_prefix\": null";
    out += ",\n    \"end_of_word_suffix\": null";
    out += ",\n    \"fuse_unk\": " + truth(model.fuse_unk);
    out += ",\n    \"ignore_merges\": " + truth(model.ignore_merges);
  }
  if (!words) out += ",\n    \"byte_fallback\": " + truth(model.byte_fallback);
  out += ",\n    \"vocab\": " + std::string(unigram ? "[" : "{");
  const char* between = "\n";
  const auto entry = [&](const std::string& token, Id id) {
    const std::string name = json_string(token);
    if (unigram) {
      const double score = subword->scores[static_cast<std::size_t>(id)];
      out += between + ("      [" + name) + ", " + nlohmann::json(score).dump() + "]";
    } else {
      out += between + ("      " + name) + ": " + std::to_string(id);
    }
    between = ",\n";
  };
  const std::vector<const AddedToken*> added = numbered_otherwise(definition);
  auto next = added.begin();
  for (const Id id : model.tokens.ids()) {
    for (; next != added.end() && (*next)->id < id; ++next) entry((*next)->content, (*next)->id);
    entry(token_text(model, id), id);
  }
  for (; next != added.end(); ++next) entry((*next)->content, (*next)->id);
  out += unigram ? "\n    ]" : "\n    }";
  if (unigram || words) return out + "\n  }\n}\n";
  out += ",\n    \"merges\": [";
  std::vector<Merge> merges = model.merges;
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
  between = "\n";
  for (const Merge& merge : merges) {
    out += between + ("      " + json_string(token_text(model, merge.left) + " " +
                                             token_text(model, merge.right)));
    between = ",\n";
  }
  return out + (merges.empty() ? "]\n  }\n}\n" : "\n    ]\n  }\n}\n");
}

}  // namespace tensorgrad::text
