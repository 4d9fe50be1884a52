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

using OrderedJson = nlohmann::ordered_json;

std::string quoted(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

OrderedJson normalizer_of(const Definition& definition) {
  constexpr std::array kNames = {"NFC", "NFD", "NFKC", "NFKD"};
  OrderedJson all = OrderedJson::array();
  for (const NormalForm form : definition.normal_forms) {
    all.push_back({{"type", kNames[static_cast<std::size_t>(form)]}});
  }
  if (all.empty()) return nullptr;
  if (all.size() == 1) return all[0];
  return {{"type", "Sequence"}, {"normalizers", all}};
}

OrderedJson stage_of(const Stage& stage) {
  constexpr std::array kBehaviours = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};
  const char* const behaviour = kBehaviours[static_cast<std::size_t>(stage.behaviour)];
  switch (stage.what) {
    case Stage::What::kDigits:
      return {{"type", "Digits"}, {"individual_digits", stage.behaviour == Behaviour::kIsolated}};
    case Stage::What::kPunctuation: return {{"type", "Punctuation"}, {"behavior", behaviour}};
    case Stage::What::kLiteral:
    case Stage::What::kPattern: break;
  }
  OrderedJson pattern = OrderedJson::object();
  if (stage.what == Stage::What::kLiteral) {
    pattern["String"] = stage.literal;
  } else {
    pattern["Regex"] = expression_of(stage.pattern);
  }
  return {
      {"type", "Split"}, {"pattern", pattern}, {"behavior", behaviour}, {"invert", stage.invert}};
}

OrderedJson byte_level_of(bool add_prefix_space, bool pattern) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", pattern}};
}

OrderedJson pre_tokenizer_of(const Definition& definition) {
  if (!definition.model.byte_level) return nullptr;
  const OrderedJson last =
      byte_level_of(definition.add_prefix_space, definition.byte_level_pattern);
  if (definition.stages.empty()) return last;
  OrderedJson all = OrderedJson::array();
  for (const Stage& stage : definition.stages) all.push_back(stage_of(stage));
  all.push_back(last);
  return {{"type", "Sequence"}, {"pretokenizers", all}};
}

OrderedJson added_of_definition(const Definition& definition) {
  OrderedJson all = OrderedJson::array();
  for (const AddedToken& token : definition.added) {
    all.push_back({{"id", token.id},
                   {"content", token.content},
                   {"single_word", token.single_word},
                   {"lstrip", token.lstrip},
                   {"rstrip", token.rstrip},
                   {"normalized", token.normalized},
                   {"special", token.special}});
  }
  return all;
}

void append_member(std::string& out, const char* name, const OrderedJson& json) {
  out += std::string("  \"") + name +
         "\": " + json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + ",\n";
}

}  // namespace

std::string json_of(const Definition& definition) {
  const BpeModel& model = definition.model;
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  append_member(out, "added_tokens", added_of_definition(definition));
  append_member(out, "normalizer", normalizer_of(definition));
  append_member(out, "pre_tokenizer", pre_tokenizer_of(definition));
  append_member(out, "post_processor",
                definition.post_processor.empty() ? OrderedJson()
                                                  : OrderedJson::parse(definition.post_processor));
  append_member(out, "decoder",
                model.byte_level ? byte_level_of(true, true) : OrderedJson{{"type", "Fuse"}});
  out += "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": ";
  out += model.unk ? quoted(token_text(model, *model.unk)) : "null";
  out += ",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n";
  out += std::string("    \"fuse_unk\": ") + (model.fuse_unk ? "true" : "false");
  out += ",\n    \"byte_fallback\": false,\n";
  out += std::string("    \"ignore_merges\": ") + (model.ignore_merges ? "true" : "false");
  out += ",\n    \"vocab\": {";
  const char* between = "\n";
  for (const Id id : model.tokens.ids()) {
    out += between + ("      " + quoted(token_text(model, id))) + ": " + std::to_string(id);
    between = ",\n";
  }
  out += "\n    },\n    \"merges\": [";
  std::vector<Merge> merges = model.merges;
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
  between = "\n";
  for (const Merge& merge : merges) {
    out += between + ("      " +
                      quoted(token_text(model, merge.left) + " " + token_text(model, merge.right)));
    between = ",\n";
  }
  return out + (merges.empty() ? "]\n  }\n}\n" : "\n    ]\n  }\n}\n");
}

}  // namespace tensorgrad::text
