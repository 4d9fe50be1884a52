// SPDX-License-Identifier: MIT
// The tg tokenizer subcommands: train, import, encode, decode and show.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace tensorgrad::cli {

struct TokenizerTrainArguments {
  std::vector<std::string> data;
  std::string out;
  std::string kind = "bpe";  // or bytes, characters
  std::string pattern = "gpt2";
  std::int64_t vocab_size = 32'000;
  std::int64_t min_frequency = 2;
  bool nfc = false;
  std::vector<std::string> specials;
};
int train_tokenizer(const TokenizerTrainArguments& arguments);

struct TokenizerImportArguments {
  // One of these is set, and `merges` with `vocab`.
  std::string vocab, merges;
  std::string tiktoken;
  std::string sentencepiece;
  std::string wordpiece;
  bool cased = false;  // with `wordpiece`: keep upper case and accents
  std::string out;
  std::string pattern = "gpt2";
  bool nfc = false;
  std::vector<std::string> specials;  // optionally with =ID at the end
};
int import_tokenizer(const TokenizerImportArguments& arguments);

struct TokenizerEncodeArguments {
  std::string tokenizer;           // file, folder or "bytes"
  std::vector<std::string> files;  // "-" or no files: standard input
  std::string text;
  bool text_given = false;
  std::string eos;    // appended to each text; if empty, the tokenizer's, and only to several files
  std::string out;    // token file to write; if empty, tokens are printed
  bool json = false;  // reads JSON strings, prints arrays, one per line
  bool show = false;  // prints each id with its token, one per line
  bool pre_tokens = false;  // with `json`: prints pre-tokens instead of ids
  bool plain = false;       // text has no special tokens, and only eos is added
};
int encode_text(const TokenizerEncodeArguments& arguments);

struct TokenizerDecodeArguments {
  std::string tokenizer;
  std::vector<std::int32_t> ids;
  std::string file;  // token file
  bool skip_special = false;
};
int decode_tokens(const TokenizerDecodeArguments& arguments);

int show_tokenizer(const std::string& tokenizer, bool json);

// Adds the tokenizer command and its subcommands. Parsing sets `action` to the selected one.
void add_tokenizer(CLI::App& app, std::function<int()>& action);

}  // namespace tensorgrad::cli
