// SPDX-License-Identifier: MIT
// tg tokenizer: makes tokenizers, and turns text into tokens and back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the name that others gave
class App;
}

namespace tensorgrad::cli {

struct TokenizerTrainArguments {
  std::vector<std::string> data;
  std::string out;
  std::string kind = "bpe";  // bytes, characters
  std::string pattern = "gpt2";
  std::int64_t vocab_size = 32'000;
  std::int64_t min_frequency = 2;
  bool nfc = false;
  std::vector<std::string> specials;
};
int train_tokenizer(const TokenizerTrainArguments& arguments);

struct TokenizerImportArguments {
  std::string vocab, merges;  // or
  std::string tiktoken;
  std::string out;
  std::string pattern = "gpt2";
  bool nfc = false;
  std::vector<std::string> specials;  // with =ID at the end, or without
};
int import_tokenizer(const TokenizerImportArguments& arguments);

struct TokenizerEncodeArguments {
  std::string tokenizer;           // a file, a folder, or "bytes"
  std::vector<std::string> files;  // "-": standard input, as is none
  std::string text;
  bool text_given = false;
  std::string eos;    // put behind each text; empty: the tokenizer's, behind each of several files
  std::string out;    // a file of tokens; empty: they are printed
  bool json = false;  // strings of JSON in, arrays out, one a line
  bool show = false;  // each with its token, one a line
  bool pre_tokens = false;  // with json: what merges do not cross instead of tokens
  bool plain = false;       // nothing is a special token, and none but eos is added
};
int encode_text(const TokenizerEncodeArguments& arguments);

struct TokenizerDecodeArguments {
  std::string tokenizer;
  std::vector<std::int32_t> ids;
  std::string file;  // a file of tokens
  bool skip_special = false;
};
int decode_tokens(const TokenizerDecodeArguments& arguments);

int show_tokenizer(const std::string& tokenizer, bool json);

// Adds the command with these five; `action` becomes the one that was chosen.
void add_tokenizer(CLI::App& app, std::function<int()>& action);

}  // namespace tensorgrad::cli
