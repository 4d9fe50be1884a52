// SPDX-License-Identifier: MIT
// Mistakes with tokenizers and tokens.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(TokenizerErrors, file_not_json) {
  const std::string path = temporary("no_tokenizer.json");
  write_file_atomically(path, "vocabulary");
  EXPECT_ERROR_WITHOUT_LINE(Tokenizer::from_file(path), IoError,
                            path + ": is not JSON at byte 0: unexpected \"v\"");
}

TEST(TokenizerErrors, model_type_unknown) {
  const std::string json = R"({"model": {"type": "WordLevel", "vocab": {"a": 0}},
                               "pre_tokenizer": {"type": "BertPreTokenizer"}})";
  EXPECT_ERROR_WITHOUT_LINE(Tokenizer::from_json(json), IoError,
                            "tokenizer.json: model.type: \"WordLevel\" is not supported; expected "
                            "BPE, Unigram, WordPiece");
}

TEST(TokenizerErrors, pattern_unknown) {
  const std::string json = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "[a-z]+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "use_regex": false}]}})";
  EXPECT_ERROR_WITHOUT_LINE(
      Tokenizer::from_json(json), IoError,
      "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex: the expression \"[a-z]+\" is "
      "not supported; expected that of GPT-2, cl100k (GPT-4, Llama 3), Qwen2 or o200k");
}

TEST(TokenizerErrors, byte_without_token) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})");
  EXPECT_ERROR_WITHOUT_LINE(tokenizer.encode("ab"), UserError,
                            "tokenizer: the vocabulary has neither a token for byte 0x62 nor an "
                            "unknown token, in \"ab\"");
}

TEST(TokenizerErrors, vocab_size_too_small) {
  const std::string_view text = "some text";
  EXPECT_ERROR_WITHOUT_LINE(Tokenizer::train({&text, 1}, {.vocab_size = 100}), UserError,
                            "tokenizer training: vocab_size must be from 256 (all bytes and "
                            "special tokens) to 16777216, got 100");
}

TEST(TokenizerErrors, id_unknown) {
  const std::vector<std::int32_t> tokens = {65, 256};
  EXPECT_ERROR_WITHOUT_LINE(Tokenizer::bytes().decode(tokens), UserError,
                            "tokenizer: no token has the id 256; ids are below 256");
}

TEST(TokenizerErrors, eos_not_set) {
  EXPECT_ERROR_WITHOUT_LINE(Tokenizer::bytes().encode("a", {.add_eos = true}), UserError,
                            "tokenizer: no eos token is set; call set_eos()");
}

TEST(TokenDataErrors, tokens_missing_in_file) {
  const std::string path = temporary("weights.safetensors");
  write_safetensors(path, {});
  EXPECT_ERROR_WITHOUT_LINE(
      TokenFile(path), IoError,
      path +
          ": has no tensor \"tokens\" (to read raw numbers without a header, specify their type)");
}

TEST(TokenDatasetErrors, too_few_tokens) {
  const TokenSequence five(std::vector<std::int32_t>(5)), one(std::vector<std::int32_t>(1));
  EXPECT_ERROR(TokenDataset(five, {.length = 5}), UserError,
               "TokenDataset: expected at least 6 tokens for examples of length 5, got 5");
  EXPECT_ERROR(TokenDataset(one, {.length = 4, .tail = TokenTail::kMask}), UserError,
               "TokenDataset: expected at least 2 tokens for examples of length 4, got 1");
  EXPECT_ERROR(TokenDataset(one, {.length = 4, .tail = TokenTail::kWrap}), UserError,
               "TokenDataset: expected at least 4 tokens for examples of length 4, got 1");
}

TEST(TokenDatasetErrors, options_out_of_range) {
  const TokenSequence tokens(std::vector<std::int32_t>(9));
  EXPECT_ERROR(TokenDataset(tokens, {}), UserError,
               "TokenDataset: length must be at least 1, got 0");
  EXPECT_ERROR(TokenDataset(tokens, {.length = 2, .tail = TokenTail::kWrap, .batch = 0}), UserError,
               "TokenDataset: batch must be at least 1, got 0");
  EXPECT_ERROR(TokenDataset(tokens, {.length = 2, .stride = -1}), UserError,
               "TokenDataset: stride must be at least 0, got -1");
  EXPECT_ERROR(TokenDataset(tokens, {.length = 2, .stride = 2, .tail = TokenTail::kWrap}),
               UserError, "TokenDataset: stride must be 0 if the tail wraps, got 2");
  EXPECT_ERROR(TokenDataset(tokens, {.length = 4, .stride = 5, .tail = TokenTail::kMask}),
               UserError,
               "TokenDataset: stride must be at most the length, 4, if the tail is masked, got 5");
}

TEST(TokenDatasetErrors, example_out_of_range) {
  const TokenSequence tokens(std::vector<std::int32_t>(9));
  const TokenDataset data(tokens, {.length = 4, .tail = TokenTail::kMask});
  EXPECT_ERROR(data.at(2), UserError, "TokenDataset: example 2 is out of range; expected 0 to 1");
  EXPECT_ERROR(data.at(-1), UserError, "TokenDataset: example -1 is out of range; expected 0 to 1");
}

}  // namespace tensorgrad::testing
