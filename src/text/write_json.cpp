// SPDX-License-Identifier: MIT
// Writes a tokenizer.json that Hugging Face's tokenizers read, with merges as "left right", which
// all of their versions do.
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

// [a, b], of JSON.
std::string list_of(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return "[" + out + "]";
}

std::string normalizer_text(const Definition& definition) {
  constexpr std::array kNames = {"NFC", "NFD", "NFKC", "NFKD"};
  std::vector<std::string> all;
  for (const NormalForm form : definition.normal_forms) {
    all.push_back("{\"type\": " + json_string(kNames[static_cast<std::size_t>(form)]) + "}");
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
  const std::string pattern = stage.what == Stage::What::kLiteral
                                  ? R"({"String": )" + json_string(stage.literal)
                                  : R"({"Regex": )" + json_string(expression_of(stage.pattern));
  return R"({"type": "Split", "pattern": )" + pattern + R"(}, "behavior": )" + behaviour +
         R"(, "invert": )" + truth(stage.invert) + "}";
}

std::string byte_level_text(bool add_prefix_space, bool pattern) {
  return R"({"type": "ByteLevel", "add_prefix_space": )" + truth(add_prefix_space) +
         R"(, "trim_offsets": true, "use_regex": )" + truth(pattern) + "}";
}

std::string pre_tokenizer_text(const Definition& definition) {
  if (!definition.model.byte_level) return "null";
  std::string last = byte_level_text(definition.add_prefix_space, definition.byte_level_pattern);
  if (definition.stages.empty()) return last;
  std::vector<std::string> all;
  for (const Stage& stage : definition.stages) all.push_back(stage_text(stage));
  all.push_back(last);
  return R"({"type": "Sequence", "pretokenizers": )" + list_of(all) + "}";
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

}  // namespace

std::string json_of(const Definition& definition) {
  const BpeModel& model = definition.model;
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  const auto member = [&](const char* name, const std::string& json) {
    out += std::string("  \"") + name + "\": " + json + ",\n";
  };
  member("added_tokens", added_tokens_text(definition));
  member("normalizer", normalizer_text(definition));
  member("pre_tokenizer", pre_tokenizer_text(definition));
  member("post_processor", definition.post_processor.empty() ? "null" : definition.post_processor);
  member("decoder", model.byte_level ? byte_level_text(true, true) : R"({"type": "Fuse"})");
  out += "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": ";
  out += model.unk ? json_string(token_text(model, *model.unk)) : "null";
  out += ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n";
  out += "    \"fuse_unk\": " + truth(model.fuse_unk);
  out += ",\n    \"byte_fallback\": false,\n";
  out += "    \"ignore_merges\": " + truth(model.ignore_merges);
  out += ",\n    \"vocab\": {";
  const char* between = "\n";
  for (const Id id : model.tokens.ids()) {
    out += between + ("      " + json_string(token_text(model, id))) + ": " + std::to_string(id);
    between = ",\n";
  }
  out += "\n    },\n    \"merges\": [";
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
