// SPDX-License-Identifier: MIT
// BERT's vocab.txt with its tokenizer_config.json, as BertTokenizer of transformers reads them.
#include <algorithm>
#include <map>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/definition.h"
#include "text/json_reader.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

namespace tensorgrad::text {
namespace {

constexpr std::size_t kLongestWordPiece = 4096;  // in bytes

// Returns the ids of the tokens, one per line. The last of equal tokens counts; earlier ids remain
// without a token.
std::map<std::string, Id> read_word_pieces(std::string_view vocab, const std::string& file) {
  std::map<std::string, Id> ids;
  Id id = 0;
  while (!vocab.empty()) {
    const std::size_t end = std::min(vocab.find('\n'), vocab.size());
    std::string_view line = vocab.substr(0, end);
    vocab.remove_prefix(std::min(end + 1, vocab.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto fail = [&](const std::string& what) {
      throw IoError(file + ": line " + std::to_string(std::int64_t{id} + 1) + ": " + what);
    };
    if (line.size() > kLongestWordPiece) {
      fail("has " + std::to_string(line.size()) + " bytes; expected a token of at most " +
           std::to_string(kLongestWordPiece));
    }
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t size = io::utf8_length(line.substr(at));
      if (size == 0) fail("expected UTF-8, got " + io::in_quotes(line));
      at += size;
    }
    ids.insert_or_assign(std::string(line), id++);
  }
  if (ids.empty()) throw IoError(file + ": is empty");
  return ids;
}

void check_word_class(const Part& root) {
  if (!root["do_basic_tokenize"].boolean(true))
    root["do_basic_tokenize"].fail("only true is supported");
  const Part kind = root["tokenizer_class"];
  if (kind.is_null()) return;
  std::string name = kind.string();
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  for (const char* const known : {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
                                  "MobileBertTokenizer", "ConvBertTokenizer"}) {
    if (name == known) return;
  }
  kind.fail(io::in_quotes(name) +
            " is not supported with a vocab.txt; expected BertTokenizer, DistilBertTokenizer, "
            "ElectraTokenizer, MobileBertTokenizer or ConvBertTokenizer. "
            "Tokenizer::from_wordpiece() reads the file without its configuration");
}

}  // namespace

Definition definition_of_wordpiece(std::string_view vocab, std::string_view file,
                                   std::string_view config, std::string_view config_file) {
  const std::string name(file);
  const TokenizerJson read = read_json(config, config_file, JsonFile::kOther);
  const Part root(*read.tree, std::string(config_file) + ": ");
  check_word_class(root);
  Definition definition;
  BpeModel& model = definition.model;
  model.byte_level = false;
  definition.subword.emplace();
  definition.subword->kind = Subword::Kind::kWordPiece;
  std::vector<TokenEntry> entries;
  for (const auto& [token, id] : read_word_pieces(vocab, name))
    entries.push_back({token, id, token.empty()});
  model.tokens = TokenTable(std::move(entries));

  // The special tokens. Those that the vocabulary lacks follow it, in this order.
  std::vector<AddedToken> added = added_by_id(root["added_tokens_decoder"]);
  std::map<std::string_view, std::string> marks = {{"unk_token", "[UNK]"},
                                                   {"sep_token", "[SEP]"},
                                                   {"pad_token", "[PAD]"},
                                                   {"cls_token", "[CLS]"},
                                                   {"mask_token", "[MASK]"}};
  for (const char* const mark :
       {"unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    if (const auto given = read_special_token(root[mark])) marks[mark] = *given;
    const auto same = [&](const AddedToken& token) { return token.content == marks[mark]; };
    if (std::none_of(added.begin(), added.end(), same)) added.push_back({.content = marks[mark]});
  }
  add_tokens_of_file(definition, added, root.where() + "added_tokens_decoder");
  const auto id_of = [&](const char* mark) {
    return std::find_if(definition.added.begin(), definition.added.end(),
                        [&](const auto& token) { return token.content == marks[mark]; })
        ->id;
  };
  model.unk = find_token(model, marks["unk_token"]);
  if (*model.unk == kNoId)
    throw IoError(name + ": expected the unknown token " + io::in_quotes(marks["unk_token"]));
  definition.pad = id_of("pad_token");
  take_marks(root, definition);
  const bool lower = root["do_lower_case"].boolean(true);
  take_pipeline(
      {{"normalizer",
        {{"type", "BertNormalizer"},
         {"clean_text", true},
         {"handle_chinese_chars", root["tokenize_chinese_chars"].boolean(true)},
         {"strip_accents", root["strip_accents"].boolean(lower)},
         {"lowercase", lower}}},
       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
       {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
       {"post_processor", template_part(definition, id_of("cls_token"), id_of("sep_token"))}},
      name, definition);
  return definition;
}

}  // namespace tensorgrad::text
