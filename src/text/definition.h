// SPDX-License-Identifier: MIT
// The contents of a tokenizer file as plain data, shared by the readers and the writer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/data/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/subword.h"

namespace tensorgrad::text {

// How a stage treats its matches, as SplitDelimiterBehavior of Hugging Face's tokenizers.
enum class Behaviour : std::uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

// One pre-tokenization stage.
struct Stage {
  // What a stage searches for:
  // - kLiterals: the first of `literals` that matches.
  // - kSpaces: white space.
  // - kWords: white space; also separates words from other characters.
  // - kMetaspace: replaces spaces by `literal`, and prepends it to a text depending on `prefix`.
  enum class What : std::uint8_t {
    kPattern,
    kLiteral,
    kLiterals,
    kDigits,
    kPunctuation,
    kSpaces,
    kWords,
    kMetaspace
  };
  enum class Prefix : std::uint8_t { kAlways, kFirst, kNever };
  What what = What::kPattern;
  PreTokenization pattern = PreTokenization::kNone;   // for kPattern
  std::string literal;                                // for kLiteral and kMetaspace
  std::vector<std::string> literals = {};             // for kLiterals
  std::shared_ptr<const AddedTokenSet> matcher = {};  // finds them
  Prefix prefix = Prefix::kAlways;                    // for kMetaspace
  bool split = true;                                  // for kMetaspace: split before each `literal`
  Behaviour behaviour = Behaviour::kIsolated;
  bool invert = false;
};

struct Definition {
  BpeModel model;
  std::optional<Subword> subword;  // set if tokens are neither bytes nor characters
  std::vector<NormalStep> normal;
  std::string normalizer;  // its JSON; empty if all steps are normal forms
  std::vector<Stage> stages;
  // Options of the last stage, ByteLevel.
  bool add_prefix_space = false;
  bool byte_level_pattern = false;  // split like GPT-2
  std::vector<AddedToken> added;    // with their ids
  std::vector<Id> before, behind;   // ids to add around a text
  std::string post_processor;       // its JSON, to be written again; empty: none
  std::optional<Id> bos, eos, pad;
};

// Returns the id of a token in file notation: a special token, or symbols of bytes. Returns kNoId
// if there is none.
Id find_token(const BpeModel& model, std::string_view token);
// Inverse of find_token(). The id must exist.
std::string token_text(const BpeModel& model, Id id);
// Returns the entry of a token in file notation. Without `byte_level`, tokens are characters, and
// their bytes are the notation itself.
TokenEntry entry_of(std::string token, Id id, bool byte_level);

// Throws IoError, beginning with `where`, unless ids and tokens are unique and ids are less than
// 2^31 - 1 and not negative.
void check_entries(const std::vector<TokenEntry>& entries, const std::string& where);

// Adds tokens to `definition` and assigns ids to those without one. Throws UserError, beginning
// with `where`, if an id is taken or differs from that of the vocabulary.
void add_tokens(Definition& definition, const std::vector<AddedToken>& tokens,
                const std::string& where);
// Returns a stage that isolates strings. Of several that match, it takes the first.
Stage literals_stage(std::vector<std::string> literals);
// Sets the stages, byte_level_pattern and normal form for these options.
void set_pre_tokenization(Definition& definition, PreTokenization pattern, bool add_prefix_space,
                          bool nfc);

// Readers. They throw IoError; `file` names the file in messages.
Definition definition_of_json(std::string_view json, std::string_view file);
Definition definition_of_pairs(std::string_view vocab_json, std::string_view vocab_file,
                               std::string_view merges, std::string_view merges_file,
                               const BpeOptions& options);
Definition definition_of_tiktoken(std::string_view ranks, std::string_view file,
                                  const BpeOptions& options);
// Reads a tokenizer.model of SentencePiece. `config` is its tokenizer_config.json, or "{}".
Definition definition_of_sentencepiece(std::string_view bytes, std::string_view file,
                                       std::string_view config, std::string_view config_file);
// Reads a vocab.txt of BERT: a token of WordPiece on each line, whose number is its id. `config` is
// its tokenizer_config.json, or "{}".
Definition definition_of_wordpiece(std::string_view vocab, std::string_view file,
                                   std::string_view config, std::string_view config_file);
// Reads bos, eos and pad from a tokenizer_config.json. Ignores names without a token.
void take_config(Definition& definition, std::string_view json, std::string_view file);
// Reads an added_tokens.json, which maps tokens to ids. These tokens are not special. Ignores those
// that are already added.
void take_added_ids(Definition& definition, std::string_view json, std::string_view file,
                    bool normalized = true);
// Reads the tokenizer_config.json of a vocab.json and merges.txt without a tokenizer.json. It has
// the class, which determines the pre-tokenization (default: GPT-2), added tokens, and special
// tokens, whose defaults are those of the class. `json` is an object, empty if there is no such
// file.
void take_pairs_config(Definition& definition, std::string_view json, std::string_view file);
// Returns the contents of a tokenizer.json.
std::string to_tokenizer_json(const Definition& definition);

}  // namespace tensorgrad::text
