// SPDX-License-Identifier: MIT
// What a tokenizer is, as its file says it: plain data. Readers make one, the writer takes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/data/tokenizer.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/subword.h"

namespace tensorgrad::text {

// What becomes of what a stage finds, as in Hugging Face's SplitDelimiterBehavior.
enum class Behaviour : std::uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

// One way to cut text before its bytes are looked at.
struct Stage {
  // kSpaces: white space; kWords: white space, with words and what is between them apart;
  // kMetaspace: spaces become `literal`, which begins a text as `prefix` says.
  enum class What : std::uint8_t {
    kPattern,
    kLiteral,
    kDigits,
    kPunctuation,
    kSpaces,
    kWords,
    kMetaspace
  };
  enum class Prefix : std::uint8_t { kAlways, kFirst, kNever };
  What what = What::kPattern;
  PreTokenization pattern = PreTokenization::kNone;  // kPattern
  std::string literal;                               // kLiteral, kMetaspace
  Prefix prefix = Prefix::kAlways;                   // kMetaspace
  bool split = true;                                 // kMetaspace: before each `literal`
  Behaviour behaviour = Behaviour::kIsolated;
  bool invert = false;
};

struct Definition {
  BpeModel model;
  std::optional<Subword> subword;  // where tokens are neither bytes nor characters
  std::vector<NormalStep> normal;
  std::string normalizer;  // its JSON, unless all steps are normal forms
  std::vector<Stage> stages;
  // Of the last stage, ByteLevel.
  bool add_prefix_space = false;
  bool byte_level_pattern = false;  // cut as GPT-2 does
  std::vector<AddedToken> added;    // with their ids
  std::vector<Id> before, behind;   // ids around a text
  std::string post_processor;       // its JSON, to be written again; empty: none
  std::optional<Id> bos, eos, pad;
};

// The id of a token as files write it: a special one, or symbols of bytes. kNoId: there is none.
Id find_token(const BpeModel& model, std::string_view token);
// The other way, for an id that is there.
std::string token_text(const BpeModel& model, Id id);
// An entry of a vocabulary: `token` as files write it. Of tokens that are characters (not
// `byte_level`) the bytes are the token.
TokenEntry entry_of(std::string token, Id id, bool byte_level);

// Throws IoError, beginning with `where`, unless ids and tokens are each there once, and ids are in
// [0, 2^31 - 1).
void check_entries(const std::vector<TokenEntry>& entries, const std::string& where);

// Gives the tokens that have none an id and adds them to `definition`. Throws UserError with
// `where` if an id is taken, or not that of the vocabulary.
void add_tokens(Definition& definition, const std::vector<AddedToken>& tokens,
                const std::string& where);
// The stages, byte_level_pattern and normal form that such options stand for.
void set_pre_tokenization(Definition& definition, PreTokenization pattern, bool add_prefix_space,
                          bool nfc);

// Readers; `file` stands for the file in messages, which are IoErrors.
Definition definition_of_json(std::string_view json, std::string_view file);
Definition definition_of_pairs(std::string_view vocab_json, std::string_view vocab_file,
                               std::string_view merges, std::string_view merges_file,
                               const BpeOptions& options);
Definition definition_of_tiktoken(std::string_view ranks, std::string_view file,
                                  const BpeOptions& options);
// bos, eos and pad of a tokenizer_config.json; names that no token has are left out.
void take_config(Definition& definition, std::string_view json, std::string_view file);
// An added_tokens.json: ids by tokens, which are no marks.
void take_added_ids(Definition& definition, std::string_view json, std::string_view file);
// Beside a vocab.json and merges.txt without a tokenizer.json: how the class that it names cuts
// text (GPT-2's where it names none), tokens that are added, and marks, which are those of the
// class where it does not say. `json` is an object, empty where there is no such file.
void take_pairs_config(Definition& definition, std::string_view json, std::string_view file);
// A tokenizer.json.
std::string json_of(const Definition& definition);

}  // namespace tensorgrad::text
