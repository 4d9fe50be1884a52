// SPDX-License-Identifier: MIT
// Reads a tokenizer.json part by part. Rejects, by name, parts that are not implemented exactly.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <set>
#include <unordered_map>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/definition.h"
#include "text/json_part.h"
#include "text/json_reader.h"
#include "text/patterns.h"
#include "text/subword_json.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

namespace tensorgrad::text {
namespace {

Behaviour read_behaviour(const Part& part) {
  return part.one_of<Behaviour>({{"Removed", Behaviour::kRemoved},
                                 {"Isolated", Behaviour::kIsolated},
                                 {"MergedWithPrevious", Behaviour::kMergedWithPrevious},
                                 {"MergedWithNext", Behaviour::kMergedWithNext},
                                 {"Contiguous", Behaviour::kContiguous}});
}

Stage split_stage(const Part& part) {
  Stage stage;
  stage.behaviour = read_behaviour(part["behavior"]);
  stage.invert = part["invert"].boolean(false);
  const Part pattern = part["pattern"];
  if (!pattern["String"].is_null()) {
    stage.what = Stage::What::kLiteral;
    stage.literal = pattern["String"].string();
    if (stage.literal.empty()) pattern.fail("empty string");
    return stage;
  }
  const Part regex = pattern["Regex"];
  const std::optional<PreTokenization> known = pattern_of(regex.string());
  if (!known) {
    if (std::optional<std::vector<std::string>> literals = literals_of(regex.string())) {
      Stage isolated = literals_stage(std::move(*literals));
      isolated.behaviour = stage.behaviour;
      isolated.invert = stage.invert;
      return isolated;
    }
    regex.fail("the expression " + io::in_quotes(regex.string(), 200) +
               " is not supported; expected that of " + std::string(known_patterns()));
  }
  stage.pattern = *known;
  return stage;
}

Stage metaspace_stage(const Part& part) {
  Stage stage;
  stage.what = Stage::What::kMetaspace;
  stage.literal = part["replacement"].string();
  if (stage.literal.empty()) part["replacement"].fail("empty string");
  stage.behaviour = Behaviour::kMergedWithNext;
  stage.split = part["split"].boolean(true);
  stage.prefix = prepend_scheme(part);
  return stage;
}

// Returns true if it contained a ByteLevel stage.
bool take_pre_tokenizer(const Part& part, Definition& definition, bool byte_level_before) {
  enum class Kind {
    kByteLevel,
    kSplit,
    kDigits,
    kPunctuation,
    kMetaspace,
    kWhitespaceSplit,
    kWhitespace,
    kBert,
    kSequence
  };
  const auto kind = part["type"].one_of<Kind>({{"ByteLevel", Kind::kByteLevel},
                                               {"Split", Kind::kSplit},
                                               {"Digits", Kind::kDigits},
                                               {"Punctuation", Kind::kPunctuation},
                                               {"Metaspace", Kind::kMetaspace},
                                               {"WhitespaceSplit", Kind::kWhitespaceSplit},
                                               {"Whitespace", Kind::kWhitespace},
                                               {"BertPreTokenizer", Kind::kBert},
                                               {"Sequence", Kind::kSequence}});
  if (kind == Kind::kSequence) {
    for (const Part& one : part["pretokenizers"].list()) {
      byte_level_before = take_pre_tokenizer(one, definition, byte_level_before);
    }
    return byte_level_before;
  }
  if (byte_level_before) part.fail("comes after ByteLevel, which must be the last");
  Stage stage;
  switch (kind) {
    case Kind::kByteLevel:
      definition.add_prefix_space = part["add_prefix_space"].boolean(true);
      definition.byte_level_pattern = part["use_regex"].boolean(true);
      return true;
    case Kind::kSplit: stage = split_stage(part); break;
    case Kind::kDigits:
      stage.what = Stage::What::kDigits;
      stage.behaviour =
          part["individual_digits"].boolean(false) ? Behaviour::kIsolated : Behaviour::kContiguous;
      break;
    case Kind::kPunctuation:
      stage.what = Stage::What::kPunctuation;
      if (!part["behavior"].is_null()) stage.behaviour = read_behaviour(part["behavior"]);
      break;
    case Kind::kMetaspace: stage = metaspace_stage(part); break;
    case Kind::kWhitespaceSplit:
    case Kind::kBert:
      stage.what = Stage::What::kSpaces;
      stage.behaviour = Behaviour::kRemoved;
      if (kind == Kind::kWhitespaceSplit) break;
      definition.stages.push_back(stage);
      stage = {};
      stage.what = Stage::What::kPunctuation;
      break;
    case Kind::kWhitespace:
      stage.what = Stage::What::kWords;
      stage.behaviour = Behaviour::kRemoved;
      break;
    case Kind::kSequence: break;
  }
  definition.stages.push_back(stage);
  return false;
}

void take_decoder(const Part& part, Definition& definition) {
  if (definition.subword) {
    take_subword_decoder(part, *definition.subword);
  } else if (!part.is_null()) {
    static_cast<void>(
        part["type"].one_of<int>({{definition.model.byte_level ? "ByteLevel" : "Fuse", 0}}));
  }
}

// Adds ids that a part of the post-processor puts around a text.
void take_around(Definition& definition, std::vector<Id> before, const std::vector<Id>& behind) {
  before.insert(before.end(), definition.before.begin(), definition.before.end());
  definition.before = std::move(before);
  definition.behind.insert(definition.behind.end(), behind.begin(), behind.end());
}

void take_template(const Part& part, Definition& definition) {
  std::vector<Id> before, behind;
  bool text_seen = false;
  for (const Part& item : part["single"].list()) {
    if (!item["Sequence"].is_null()) {
      if (text_seen || item["Sequence"]["id"].string() != "A")
        item.fail("expected the sequence A once");
      text_seen = true;
      continue;
    }
    const Part name = item["SpecialToken"]["id"];
    for (const Part& id : part["special_tokens"][name.string()]["ids"].list()) {
      (text_seen ? behind : before).push_back(id.id());
    }
  }
  if (!text_seen) part["single"].fail("expected the sequence A once");
  take_around(definition, before, behind);
}

void take_post_processor(const Part& part, Definition& definition) {
  if (part.is_null()) return;
  enum class Kind { kByteLevel, kTemplate, kAround, kSequence };
  const auto kind = part["type"].one_of<Kind>({{"ByteLevel", Kind::kByteLevel},
                                               {"TemplateProcessing", Kind::kTemplate},
                                               {"RobertaProcessing", Kind::kAround},
                                               {"BertProcessing", Kind::kAround},
                                               {"Sequence", Kind::kSequence}});
  if (kind == Kind::kSequence) {
    for (const Part& one : part["processors"].list()) take_post_processor(one, definition);
  } else if (kind == Kind::kTemplate) {
    take_template(part, definition);
  } else if (kind == Kind::kAround) {
    const auto id_of = [&](const char* name) {
      const std::vector<Part> pair = part[name].list();
      if (pair.size() != 2) part[name].fail("expected a token and its id");
      return pair[1].id();
    };
    take_around(definition, {id_of("cls")}, {id_of("sep")});
  }
}

void take_whole_post_processor(const Part& part, Definition& definition) {
  take_post_processor(part, definition);
  if (!part.is_null()) definition.post_processor = part.json().dump();
}

// Assigns ranks to the merges and finds their tokens.
std::vector<Merge> merges_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                             const BpeModel& model, const std::string& where) {
  const TokenTable& tokens = model.tokens;
  std::vector<Merge> merges;
  merges.reserve(pairs.size());
  std::string left, right;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto fail = [&](const std::string& token) {
      throw IoError(where + "[" + std::to_string(i) + "]: " + io::in_quotes(token) +
                    " is not in the vocabulary");
    };
    const auto id_of = [&](const std::string& token, std::string& bytes) {
      const bool good = !model.byte_level || bytes_of_symbols(token, bytes);
      if (!model.byte_level) bytes = token;
      const Id id = good ? tokens.find(bytes) : kNoId;
      if (id == kNoId) fail(token);
      return id;
    };
    Merge merge;
    merge.left = id_of(pairs[i].first, left);
    merge.right = id_of(pairs[i].second, right);
    merge.rank = static_cast<std::uint32_t>(i);
    merge.result = tokens.find(left + right);
    if (merge.result == kNoId) fail(pairs[i].first + pairs[i].second);
    merges.push_back(merge);
  }
  return merges;
}

void take_vocab(std::vector<std::pair<std::string, std::uint64_t>>& vocab, BpeModel& model,
                const std::string& where, bool subword = false) {
  std::vector<TokenEntry> entries;
  entries.reserve(vocab.size());
  for (auto& [token, id] : vocab) {
    if (id >= std::uint64_t{std::numeric_limits<Id>::max()}) {
      throw IoError(where + ": " + io::in_quotes(token) + " has an id outside 0 to 2147483646");
    }
    if (subword) {
      const bool empty = token.empty();
      entries.push_back({std::move(token), static_cast<Id>(id), empty});
    } else {
      entries.push_back(entry_of(std::move(token), static_cast<Id>(id), model.byte_level));
    }
  }
  if (entries.empty()) throw IoError(where + ": is empty");
  check_entries(entries, where);
  model.tokens = TokenTable(std::move(entries));
}

// Determines the kind of the model, and whether it is byte-level.
void take_kind(const Part& root, const TokenizerJson& file, Definition& definition) {
  const Part part = root["model"], type = part["type"];
  if (type.is_null() && !(file.has_vocab && file.has_merges))
    part.fail("is of type ?; expected BPE, Unigram or WordPiece");
  enum class Kind { kBpe, kUnigram, kWordPiece };
  const Kind kind = type.is_null() ? Kind::kBpe
                                   : type.one_of<Kind>({{"BPE", Kind::kBpe},
                                                        {"Unigram", Kind::kUnigram},
                                                        {"WordPiece", Kind::kWordPiece}});
  const Part pre = root["pre_tokenizer"];
  const bool byte_level = !pre.is_null() && take_pre_tokenizer(pre, definition, false);
  definition.model.byte_level = byte_level;
  for (const Stage& stage : definition.stages) {
    if (byte_level && stage.what == Stage::What::kMetaspace)
      pre.fail("Metaspace is not supported together with ByteLevel");
  }
  if (kind == Kind::kBpe) {
    // Without merges and pre-tokenization, tokens are characters.
    const bool characters =
        pre.is_null() && file.merges.empty() && !part["byte_fallback"].boolean(false);
    if (byte_level || characters) return;
  } else if (byte_level) {
    pre.fail("ByteLevel is only supported for BPE");
  }
  definition.subword.emplace();
  definition.subword->kind = kind == Kind::kBpe       ? Subword::Kind::kBpe
                             : kind == Kind::kUnigram ? Subword::Kind::kUnigram
                                                      : Subword::Kind::kWordPiece;
  if (!pre.is_null()) definition.subword->pre_tokenizer = pre.json().dump();
}

// Reads the pieces and scores of a unigram model.
void take_unigram(const Part& part, Subword& subword, BpeModel& model, const std::string& where) {
  std::vector<std::pair<std::string, std::uint64_t>> vocab;
  for (const Part& entry : part["vocab"].list()) {
    const std::vector<Part> pair = entry.list();
    if (pair.size() != 2 || !pair[1].json().is_number())
      entry.fail("expected a piece and its score");
    vocab.emplace_back(pair[0].string(), vocab.size());
    subword.scores.push_back(pair[1].json().get<double>());
  }
  take_vocab(vocab, model, where + "model.vocab", true);
  const Part unk = part["unk_id"];
  if (unk.is_null()) return;
  if (!model.tokens.has(unk.id())) unk.fail("no token has this id");
  model.unk = unk.id();
}

void take_model(const Part& part, TokenizerJson& file, Definition& definition,
                const std::string& where) {
  BpeModel& model = definition.model;
  Subword* const subword = definition.subword ? &*definition.subword : nullptr;
  model.byte_fallback = part["byte_fallback"].boolean(false);
  if (subword != nullptr && subword->kind == Subword::Kind::kUnigram)
    return take_unigram(part, *subword, model, where);
  const bool words = subword != nullptr && subword->kind == Subword::Kind::kWordPiece;
  if (words) {
    if (!part["continuing_subword_prefix"].is_null())
      subword->prefix = part["continuing_subword_prefix"].string();
    if (!part["max_input_chars_per_word"].is_null())
      subword->longest = static_cast<std::size_t>(part["max_input_chars_per_word"].id());
  } else {
    for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (part[name].is_null() || part[name].string().empty()) continue;
      part[name].fail(io::in_quotes(part[name].string()) + " is not supported for BPE");
    }
    const Json& dropout = part["dropout"].json();
    if (!dropout.is_null() && dropout != 0) {
      part["dropout"].fail("merge dropout is not supported");
    }
    if (model.byte_fallback && subword == nullptr) {
      part["byte_fallback"].fail("byte tokens such as <0x00> are not supported with ByteLevel");
    }
    if (!file.has_merges) part["merges"].fail("expected an array");
  }
  if (!file.has_vocab) part["vocab"].fail("expected an object");
  take_vocab(file.vocab, model, where + "model.vocab", subword != nullptr);
  if (!words) model.merges = merges_of(file.merges, model, where + "model.merges");
  model.ignore_merges = part["ignore_merges"].boolean(false);
  model.fuse_unk = part["fuse_unk"].boolean(false);
  if (const Part unk = part["unk_token"]; !unk.is_null()) {
    const Id id = find_token(model, unk.string());
    // Ignored if the vocabulary has no such token.
    if (id != kNoId) model.unk = id;
  }
}

std::vector<AddedToken> read_added_tokens(const Part& part) {
  std::vector<AddedToken> tokens;
  if (part.is_null()) return tokens;
  for (const Part& item : part.list()) {
    tokens.push_back(read_added_token(item));
    tokens.back().id = item["id"].id();
  }
  return tokens;
}

// Removes special added tokens from a vocabulary with ignore_merges, because their text must not be
// encoded as a token. to_tokenizer_json() writes them into the vocabulary again.
void drop_added(Definition& definition) {
  BpeModel& model = definition.model;
  if (!model.ignore_merges) return;
  std::set<Id> kept;
  if (model.unk) kept.insert(*model.unk);
  for (const Merge& merge : model.merges) kept.insert({merge.left, merge.right, merge.result});
  std::set<Id> dropped;
  for (const AddedToken& token : definition.added) {
    if (token.special && model.tokens.has(token.id) && !kept.contains(token.id) &&
        model.tokens.bytes_of(token.id).size() > 1) {
      dropped.insert(token.id);
    }
  }
  if (dropped.empty()) return;
  std::vector<TokenEntry> entries;
  for (const Id id : model.tokens.ids()) {
    if (dropped.contains(id)) continue;
    entries.push_back({std::string(model.tokens.bytes_of(id)), id, model.tokens.literal(id)});
  }
  model.tokens = TokenTable(std::move(entries));
}

}  // namespace

Definition definition_of_json(std::string_view json, std::string_view file) {
  TokenizerJson read = read_json(json, file, JsonFile::kTokenizer);
  const std::string where = std::string(file) + ": ";
  const Part root(*read.tree, where);
  Definition definition;
  const Part model = root["model"];
  if (model.is_null()) model.fail("is missing; expected a tokenizer.json");
  take_kind(root, read, definition);
  take_model(model, read, definition, where);
  take_normalizer(root["normalizer"], definition);
  take_decoder(root["decoder"], definition);
  take_whole_post_processor(root["post_processor"], definition);
  add_tokens_of_file(definition, read_added_tokens(root["added_tokens"]), where + "added_tokens");
  take_marks(model, definition);
  drop_added(definition);
  for (const std::vector<Id>* const ids : {&definition.before, &definition.behind}) {
    for (const Id id : *ids) {
      const bool added = std::any_of(definition.added.begin(), definition.added.end(),
                                     [&](const AddedToken& token) { return token.id == id; });
      if (added || definition.model.tokens.has(id)) continue;
      root["post_processor"].fail("no token has the id " + std::to_string(id));
    }
  }
  return definition;
}

void take_pipeline(const Json& json, const std::string& file, Definition& definition) {
  const Part root(json, file + ": ");
  const Part pre = root["pre_tokenizer"];
  if (!pre.is_null()) {
    static_cast<void>(take_pre_tokenizer(pre, definition, false));
    definition.subword->pre_tokenizer = pre.json().dump();
  }
  take_normalizer(root["normalizer"], definition);
  take_decoder(root["decoder"], definition);
  take_whole_post_processor(root["post_processor"], definition);
  drop_added(definition);
}

Definition definition_of_pairs(std::string_view vocab_json, std::string_view vocab_file,
                               std::string_view merges, std::string_view merges_file,
                               const BpeOptions& options) {
  TokenizerJson read = read_json(vocab_json, vocab_file, JsonFile::kVocab);
  Definition definition;
  take_vocab(read.vocab, definition.model, std::string(vocab_file));
  std::vector<std::pair<std::string, std::string>> pairs;
  // Line numbers; `blank` is that of the first empty line at the end.
  std::size_t number = 0, blank = 0;
  while (!merges.empty()) {
    const std::size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    // Only the first line is a comment: a merge can also begin with #.
    if (number == 1 && line.starts_with("#version")) continue;
    if (line.empty()) {
      blank = blank == 0 ? number : blank;
      continue;
    }
    const std::size_t space = line.find(' ');
    const bool two = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                     line.find(' ', space + 1) == std::string_view::npos;
    if (!two || blank != 0) {
      throw IoError(std::string(merges_file) + ": line " + std::to_string(two ? blank : number) +
                    ": expected two tokens separated by a space, got " +
                    (two ? std::string("an empty line") : io::in_quotes(line)));
    }
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  definition.model.merges =
      merges_of(pairs, definition.model, std::string(merges_file) + ": merge ");
  set_pre_tokenization(definition, options.pre_tokenization, options.add_prefix_space, options.nfc);
  add_tokens(definition, options.added_tokens, "added_tokens");
  return definition;
}

}  // namespace tensorgrad::text
