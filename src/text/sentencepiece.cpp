// SPDX-License-Identifier: MIT
// SentencePiece's tokenizer.model: a ModelProto with pieces, their scores, and the normalization of
// text (github.com/google/sentencepiece, src/sentencepiece_model.proto). Ids are those of
// SentencePieceProcessor::Encode(). All parts have an equivalent in tokenizer.json.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/token_type.h"
#include "io/protobuf_reader.h"
#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/base64.h"
#include "text/definition.h"
#include "text/json_reader.h"
#include "text/patterns.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"

namespace tensorgrad::text {
namespace {

constexpr const char* kPieceSpace = "\u2581";           // stands for a space
constexpr std::size_t kLongestMergedPiece = 512;        // in bytes; bounds the time to find merges
constexpr std::int32_t kUnigramType = 1, kBpeType = 2;  // TrainerSpec.model_type

struct Piece {
  std::string text;
  float score = 0;
  std::int32_t type = kNormalToken;
};

// What is read of a ModelProto, with the defaults of the schema.
struct PieceModel {
  std::vector<Piece> pieces;
  Id unk = kNoId;
  bool has_trainer = false, has_normalizer = false;
  // trainer_spec
  std::int32_t type = kUnigramType;
  bool byte_fallback = false;
  std::string bos = "<s>", eos = "</s>", pad = "<pad>";
  // normalizer_spec
  std::string_view character_map = {};
  bool adds_prefix = true, removes_extra_spaces = true;
};

// A tokenizer_config.json.
struct PieceConfig {
  std::vector<AddedToken> added;
  bool add_bos = false, add_eos = false;
  bool prefix_everywhere = true;  // a space is added to each text between added tokens
};

Piece read_piece(io::ProtoReader in, std::size_t id) {
  Piece piece;
  while (in.next()) {
    switch (in.number()) {
      case 1: piece.text = in.text("piece"); break;
      case 2: piece.score = in.real32("score"); break;
      case 3: piece.type = in.integer("type"); break;
      default: break;
    }
  }
  const std::string name = "piece " + std::to_string(id) + ": ";
  if (piece.text.empty()) in.fail(name + "is empty");
  for (std::size_t at = 0; at < piece.text.size();) {
    const std::size_t size = io::utf8_length(std::string_view(piece.text).substr(at));
    if (size == 0) in.fail(name + io::in_quotes(piece.text) + " is not UTF-8");
    at += size;
  }
  if (!std::isfinite(piece.score)) in.fail(name + "the score is not finite");
  if (piece.type == kUnusedToken) in.fail(name + "the type UNUSED is not supported");
  if (piece.type < kNormalToken || piece.type > kByteToken)
    in.fail(name + "expected a type of 1 to 6, got " + std::to_string(piece.type));
  return piece;
}

void read_trainer(io::ProtoReader in, PieceModel& model) {
  model.has_trainer = true;
  while (in.next()) {
    switch (in.number()) {
      case 3: {
        model.type = in.integer("model_type");
        const char* const name = model.type == 3 ? " (WORD)" : model.type == 4 ? " (CHAR)" : "";
        if (model.type != kUnigramType && model.type != kBpeType) {
          in.fail("model_type: " + std::to_string(model.type) + name +
                  " is not supported; expected 1 (UNIGRAM) or 2 (BPE)");
        }
        break;
      }
      case 24:
        if (in.boolean("treat_whitespace_as_suffix"))
          in.fail("treat_whitespace_as_suffix: only false is supported");
        break;
      case 35: model.byte_fallback = in.boolean("byte_fallback"); break;
      case 46: model.bos = in.text("bos_piece"); break;
      case 47: model.eos = in.text("eos_piece"); break;
      case 48: model.pad = in.text("pad_piece"); break;
      default: break;
    }
  }
}

void read_normalizer(io::ProtoReader in, PieceModel& model) {
  model.has_normalizer = true;
  while (in.next()) {
    switch (in.number()) {
      case 2: model.character_map = in.text("precompiled_charsmap"); break;
      case 3: model.adds_prefix = in.boolean("add_dummy_prefix"); break;
      case 4: model.removes_extra_spaces = in.boolean("remove_extra_whitespaces"); break;
      case 5:
        if (!in.boolean("escape_whitespaces"))
          in.fail("escape_whitespaces: only true is supported");
        break;
      default: break;
    }
  }
}

// The map of a denormalizer would change decoded text.
void check_denormalizer(io::ProtoReader in) {
  while (in.next()) {
    if (in.number() == 2 && !in.text("precompiled_charsmap").empty())
      in.fail("denormalizer_spec: a character map is not supported");
  }
}

bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const std::size_t space = std::min(line.find(' '), line.size());
  std::string token;
  return space + 1 < line.size() && decode_base64(line.substr(0, space), token) &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

PieceModel read_pieces(std::string_view bytes, const std::string& file) {
  if (is_tiktoken(bytes)) {
    throw IoError(file +
                  ": is a file of tiktoken; expected a SentencePiece model. Read it with "
                  "Tokenizer::from_tiktoken() or `tg tokenizer import --tiktoken`");
  }
  PieceModel model;
  io::ProtoReader in(bytes, file);
  while (in.next()) {
    switch (in.number()) {
      case 1: model.pieces.push_back(read_piece(in.message("pieces"), model.pieces.size())); break;
      case 2: read_trainer(in.message("trainer_spec"), model); break;
      case 3: read_normalizer(in.message("normalizer_spec"), model); break;
      case 5: check_denormalizer(in.message("denormalizer_spec")); break;
      default: break;
    }
  }
  if (model.pieces.empty()) throw IoError(file + ": has no pieces; expected a SentencePiece model");
  // All models have both. They are at the end of the file.
  if (!model.has_trainer || !model.has_normalizer) {
    throw IoError(file + ": has no " + (model.has_trainer ? "normalizer_spec" : "trainer_spec") +
                  "; the file may be truncated");
  }
  return model;
}

// Checks what SentencePiece checks, and finds the unknown piece.
void check_pieces(PieceModel& model, const std::string& file) {
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    const auto fail = [&](const std::string& what) {
      throw IoError(file + ": piece " + std::to_string(id) + ": " + io::in_quotes(piece.text) +
                    what);
    };
    if (piece.type == kUnknownToken) {
      if (model.unk != kNoId) fail(" is a second piece of type UNKNOWN");
      model.unk = static_cast<Id>(id);
    }
    if (piece.type == kByteToken) {
      ++bytes;
      if (!is_byte_token(piece.text)) fail(" has the type BYTE; expected <0x00> to <0xFF>");
      if (!model.byte_fallback) fail(" has the type BYTE, but byte_fallback is false");
    }
    const bool literal = piece.type == kUserDefinedToken;
    const bool merged = model.type == kBpeType && piece.type == kNormalToken;
    const std::size_t longest = literal ? kLongestLiteral : kLongestMergedPiece;
    if ((literal || merged) && piece.text.size() > longest) {
      fail(" has " + std::to_string(piece.text.size()) + " bytes; expected at most " +
           std::to_string(longest));
    }
  }
  if (model.unk == kNoId) throw IoError(file + ": has no piece of type UNKNOWN");
  if (model.byte_fallback && bytes != 256) {
    throw IoError(file + ": byte_fallback needs 256 pieces of type BYTE, got " +
                  std::to_string(bytes));
  }
}

// The classes of transformers whose ids and text are those of the file.
void check_class(const Part& kind) {
  if (kind.is_null()) return;
  std::string name = kind.string();
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  for (const char* const known :
       {"LlamaTokenizer", "GemmaTokenizer", "PreTrainedTokenizer", "TokenizersBackend"}) {
    if (name == known) return;
  }
  kind.fail(io::in_quotes(name) +
            " is not supported with a tokenizer.model, because it may change ids or text; expected "
            "LlamaTokenizer, GemmaTokenizer, PreTrainedTokenizer or TokenizersBackend. "
            "Tokenizer::from_sentencepiece() reads the file without its configuration");
}

PieceConfig read_piece_config(const Part& root) {
  check_class(root["tokenizer_class"]);
  PieceConfig config;
  config.added = added_by_id(root["added_tokens_decoder"]);
  config.add_bos = root["add_bos_token"].boolean(false);
  config.add_eos = root["add_eos_token"].boolean(false);
  config.prefix_everywhere = root["legacy"].boolean(true);
  return config;
}

// Names pieces as added tokens of the same id, as transformers does: models reserve pieces for
// tokens that are named later. Does not duplicate the name of another piece.
void rename_pieces(PieceModel& model, const std::vector<AddedToken>& added) {
  std::set<Id> renamed;
  for (const AddedToken& token : added) renamed.insert(token.id);
  std::set<std::string_view> kept;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (!renamed.contains(static_cast<Id>(id))) kept.insert(model.pieces[id].text);
  }
  for (const AddedToken& token : added) {
    const auto id = static_cast<std::size_t>(token.id);
    if (id < model.pieces.size() && !token.content.empty() && !kept.contains(token.content))
      model.pieces[id].text = token.content;
  }
}

// Returns all ways to split a piece into two, as merges. SentencePiece merges the neighbors whose
// concatenation has the highest score.
std::vector<Merge> merges_of_pieces(const PieceModel& model, const TokenTable& tokens) {
  const auto normal = [&](std::string_view text) {
    const Id id = tokens.find(text);
    const bool found =
        id != kNoId && model.pieces[static_cast<std::size_t>(id)].type == kNormalToken;
    return found ? id : kNoId;
  };
  std::vector<Id> order;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    // Text has no spaces anymore, and merges of a tokenizer.json cannot contain them.
    const Piece& piece = model.pieces[id];
    if (piece.type == kNormalToken && piece.text.find(' ') == std::string::npos)
      order.push_back(static_cast<Id>(id));
  }
  std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) {
    return model.pieces[static_cast<std::size_t>(a)].score >
           model.pieces[static_cast<std::size_t>(b)].score;
  });
  std::vector<Merge> merges;
  for (const Id id : order) {
    const std::string_view text = model.pieces[static_cast<std::size_t>(id)].text;
    for (std::size_t cut = io::utf8_length(text); cut < text.size();
         cut += io::utf8_length(text.substr(cut))) {
      const Id left = normal(text.substr(0, cut));
      const Id right = left == kNoId ? kNoId : normal(text.substr(cut));
      if (right == kNoId) continue;
      merges.push_back({left, right, static_cast<std::uint32_t>(merges.size()), id});
    }
  }
  return merges;
}

Json sequence_of(const char* parts, Json steps) {
  return {{"type", "Sequence"}, {parts, std::move(steps)}};
}

Json replace_part(Json pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}

Json normalizer_part(const PieceModel& model, const PieceConfig& config) {
  Json steps = Json::array();
  if (!model.character_map.empty()) {
    // SentencePiece replaces the longest match at each position. Hugging Face's tokenizers, which
    // ignore the flag, replace grapheme clusters.
    steps.push_back({{"type", "Precompiled"},
                     {"precompiled_charsmap", encode_base64(model.character_map)},
                     {"longest_match", true}});
  }
  if (model.removes_extra_spaces) {
    steps.push_back(replace_part({{"Regex", "\\A +| +\\z"}}, ""));
    steps.push_back(replace_part({{"Regex", " {2,}"}}, " "));
  }
  if (model.adds_prefix && config.prefix_everywhere)
    steps.push_back({{"type", "Prepend"}, {"prepend", kPieceSpace}});
  steps.push_back(replace_part({{"String", " "}}, kPieceSpace));
  // Also what was not a space. Leaves nothing of a text of spaces.
  if (model.removes_extra_spaces) steps.push_back(replace_part({{"Regex", "\u2581+\\z"}}, ""));
  return steps.size() == 1 ? steps[0] : sequence_of("normalizers", std::move(steps));
}

Json pre_tokenizer_part(const PieceModel& model, const PieceConfig& config, bool has_merges) {
  Json steps = Json::array();
  const bool first = model.adds_prefix && !config.prefix_everywhere;
  const bool unigram = model.type == kUnigramType;
  // Without merges, a BPE in a tokenizer.json needs some pre_tokenizer to be read as such.
  if (first || (!has_merges && !unigram)) {
    steps.push_back({{"type", "Metaspace"},
                     {"replacement", kPieceSpace},
                     {"prepend_scheme", first ? "first" : "never"},
                     {"split", false}});
  }
  std::vector<std::string> literals;
  for (const Piece& piece : model.pieces) {
    if (piece.type == kUserDefinedToken) literals.push_back(piece.text);
  }
  if (!literals.empty()) {
    std::stable_sort(literals.begin(), literals.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", expression_of_literals(literals)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  if (steps.empty()) return nullptr;
  return steps.size() == 1 ? steps[0] : sequence_of("pretokenizers", std::move(steps));
}

Json decoder_part(const PieceModel& model) {
  Json steps = Json::array();
  steps.push_back(replace_part({{"String", kPieceSpace}}, " "));
  if (model.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (model.adds_prefix)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}});
  return sequence_of("decoders", std::move(steps));
}

// Adds the control tokens and the unknown token, those of the configuration, and bos, eos and pad.
void add_piece_tokens(const PieceModel& model, const PieceConfig& config, const Part& root,
                      Definition& definition) {
  std::vector<AddedToken> controls;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    if (piece.type != kControlToken && piece.type != kUnknownToken) continue;
    controls.push_back({.content = piece.text, .id = static_cast<Id>(id)});
    if (piece.type == kUnknownToken) continue;
    if (piece.text == model.bos) definition.bos = static_cast<Id>(id);
    if (piece.text == model.eos) definition.eos = static_cast<Id>(id);
    if (piece.text == model.pad) definition.pad = static_cast<Id>(id);
  }
  add_tokens_of_file(definition, controls, root.where() + "pieces");
  std::vector<AddedToken> more = config.added;
  for (AddedToken& token : more) token.normalized = token.normalized && !model.adds_prefix;
  add_tokens_of_file(definition, more, root.where() + "added_tokens_decoder");
  take_marks(root, definition);
}

}  // namespace

Definition definition_of_sentencepiece(std::string_view bytes, std::string_view file,
                                       std::string_view config_json, std::string_view config_file) {
  const std::string name(file);
  PieceModel model = read_pieces(bytes, name);
  const TokenizerJson read = read_json(config_json, config_file, JsonFile::kOther);
  const Part root(*read.tree, std::string(config_file) + ": ");
  const PieceConfig config = read_piece_config(root);
  rename_pieces(model, config.added);
  check_pieces(model, name);
  Definition definition;
  BpeModel& made = definition.model;
  made.byte_level = false;
  made.byte_fallback = model.byte_fallback;
  made.fuse_unk = model.type == kBpeType;
  made.unk = model.unk;
  definition.subword.emplace();
  Subword& subword = *definition.subword;
  subword.kind = model.type == kBpeType ? Subword::Kind::kBpe : Subword::Kind::kUnigram;
  std::vector<TokenEntry> entries;
  for (const Piece& piece : model.pieces) {
    entries.push_back({piece.text, static_cast<Id>(entries.size()), false});
    if (model.type == kUnigramType) subword.scores.push_back(double{piece.score});
    // The pre-tokenizer isolates user-defined pieces, which become tokens without merging.
    made.ignore_merges =
        made.ignore_merges || (model.type == kBpeType && piece.type == kUserDefinedToken);
  }
  check_entries(entries, name + ": pieces");
  made.tokens = TokenTable(std::move(entries));
  if (model.type == kBpeType) made.merges = merges_of_pieces(model, made.tokens);
  add_piece_tokens(model, config, root, definition);
  take_pipeline(
      {{"normalizer", normalizer_part(model, config)},
       {"pre_tokenizer", pre_tokenizer_part(model, config, !made.merges.empty())},
       {"decoder", decoder_part(model)},
       {"post_processor", template_part(definition, config.add_bos ? definition.bos : std::nullopt,
                                        config.add_eos ? definition.eos : std::nullopt)}},
      name, definition);
  return definition;
}

}  // namespace tensorgrad::text
