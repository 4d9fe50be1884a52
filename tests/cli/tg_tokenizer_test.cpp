// SPDX-License-Identifier: MIT
// tg tokenizer: trains a tokenizer, encodes and decodes text, and reports errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "support/source_path.h"
#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"

namespace tensorgrad::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string some_text() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "the cat sat on the mat; the dog did not, it's " + std::to_string(i) + ".\n";
  return text;
}

struct TgTokenizer : ::testing::Test {
  void SetUp() override { write_text(folder / "text.txt", some_text()); }

  // Expects success and returns the output.
  std::string good(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "tokenizer");
    const ToolResult result = folder.tg(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  void bad(int code, std::vector<std::string> arguments, const std::string& text) const {
    arguments.insert(arguments.begin(), "tokenizer");
    const ToolResult result = folder.tg(arguments);
    EXPECT_EQ(result.code, code) << result.out;
    EXPECT_THAT(result.err, HasSubstr(text));
  }
  void train() const {
    EXPECT_THAT(good({"train", "--data", "text.txt", "--vocab-size", "280", "--special-token",
                      "<|end|>", "--out", "t.json"}),
                HasSubstr("t.json: byte-level BPE, 280 tokens, 23 merges"));
  }

  TestFolder folder;
};

TEST_F(TgTokenizer, trains_encodes_and_decodes) {
  train();
  const Tokenizer tokenizer = Tokenizer::from_file(folder / "t.json");
  EXPECT_EQ(tokenizer.token_to_id("<|end|>"), 0);
  const std::string text = "the cat<|end|> sat";
  std::string numbers;
  for (const std::int32_t id : tokenizer.encode(text)) {
    numbers += (numbers.empty() ? "" : " ") + std::to_string(id);
  }
  EXPECT_EQ(good({"encode", "--tokenizer", "t.json", "--text", text}), numbers + "\n");
  EXPECT_THAT(good({"encode", "--tokenizer", "t.json", "--text", text, "--plain"}),
              ::testing::Not(StartsWith(numbers)));
  EXPECT_THAT(good({"encode", "--tokenizer", "t.json", "text.txt", "--out", "tokens.safetensors"}),
              StartsWith("tokens.safetensors: "));
  const TokenFile file(folder / "tokens.safetensors");
  EXPECT_EQ(file.vocab_size(), 280);
  EXPECT_EQ(tokenizer.decode(file.read_all()), some_text());
  EXPECT_EQ(good({"decode", "--tokenizer", "t.json", "--file", "tokens.safetensors"}), some_text());
  EXPECT_EQ(good({"decode", "--tokenizer", "bytes", "72", "105"}), "Hi");
  EXPECT_EQ(good({"encode", "--tokenizer", "bytes", "--text", "A b", "--show"}),
            "65\tA\n32\t\u0120\n98\tb\n");
  const std::string id = std::to_string(tokenizer.encode("the").at(0));
  EXPECT_EQ(good({"decode", "--tokenizer", "t.json", "--skip-special", "0", id}), "the");
}

TEST_F(TgTokenizer, marks_where_each_of_several_files_ends) {
  write_text(folder / "a.txt", "ab");
  write_text(folder / "b.txt", "c");
  good({"train", "--data", "a.txt", "b.txt", "--kind", "characters", "--special-token", "<end>",
        "--out", "tokenizer.json"});
  const auto encoded = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"encode", "--tokenizer", "tokenizer.json"});
    return good(more);
  };
  EXPECT_EQ(encoded({"a.txt", "b.txt"}), "0 1 2\n") << "nobody said which token is eos";
  EXPECT_EQ(encoded({"a.txt", "b.txt", "--eos", "<end>"}), "0 1 3 2 3\n");
  EXPECT_EQ(encoded({"a.txt", "--eos", "<end>", "--plain"}), "0 1 3\n");
  write_text(folder / "tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_EQ(encoded({"a.txt", "b.txt", "--plain"}), "0 1 3 2 3\n");
  EXPECT_EQ(encoded({"a.txt"}), "0 1\n");
  EXPECT_THAT(encoded({"a.txt", "b.txt", "--out", "t.safetensors"}),
              StartsWith("t.safetensors: 5 tokens from 3 bytes"));
  EXPECT_EQ(TokenFile(folder / "t.safetensors").read_all(),
            (std::vector<std::int32_t>{0, 1, 3, 2, 3}));
  bad(1, {"encode", "--tokenizer", "tokenizer.json", "a.txt", "--eos", "<none>"}, "<none>");
}

TEST_F(TgTokenizer, takes_lines_of_json) {
  write_text(folder / "lines", "\"a\\nb\"\n\"\"\n\"\\u00e9 x\"\n");
  EXPECT_EQ(good({"encode", "--tokenizer", "bytes", "--json", "lines"}),
            "[97,10,98]\n[]\n[195,169,32,120]\n");
  EXPECT_EQ(good({"encode", "--tokenizer", "bytes", "--json", "--pre-tokens", "lines"}),
            "[\"a\\nb\"]\n[]\n[\"\u00e9 x\"]\n");
  write_text(folder / "lines", "\"a\"\n5\n");
  bad(1, {"encode", "--tokenizer", "bytes", "--json", "lines"}, "line 2: expected a JSON string");
}

TEST_F(TgTokenizer, makes_bytes_and_characters) {
  EXPECT_THAT(good({"train", "--data", "text.txt", "--kind", "characters", "--out", "c.json"}),
              HasSubstr("c.json: characters, "));
  EXPECT_EQ(Tokenizer::from_file(folder / "c.json")
                .decode(Tokenizer::from_file(folder / "c.json").encode(some_text())),
            some_text());
  bad(1, {"encode", "--tokenizer", "c.json", "--text", "QQ"},
      "error: tokenizer: the vocabulary has neither a token for character \"Q\"");
  EXPECT_THAT(good({"train", "--data", "text.txt", "--kind", "bytes", "--special-token", "<s>",
                    "--out", "b.json"}),
              HasSubstr("b.json: bytes, 257 tokens, 0 merges"));
}

TEST_F(TgTokenizer, imports_pairs_and_ranks) {
  write_text(folder / "v.json", R"({"a": 0, "b": 1, "#": 2, "ab": 3, "##": 4})");
  write_text(folder / "m.txt", "#version: 0.2\na b\n# #\n");
  EXPECT_THAT(good({"import", "--vocab", "v.json", "--merges", "m.txt", "--special-token", "<s>=7",
                    "--special-token", "</s>", "--out", "t.json"}),
              HasSubstr("t.json: byte-level BPE, 9 tokens, 2 merges"));
  EXPECT_EQ(good({"encode", "--tokenizer", "t.json", "--text", "ab##<s></s>"}), "3 4 7 8\n");
  write_text(folder / "r", "YQ== 0\nYg== 1\nYWI= 2\n");
  good({"import", "--tiktoken", "r", "--pattern", "cl100k", "--out", "r.json"});
  EXPECT_EQ(good({"encode", "--tokenizer", "r.json", "--text", "aba"}), "2 0\n");
  bad(2, {"import", "--out", "x.json"}, "--vocab, --tiktoken, --sentencepiece or --wordpiece");
  bad(2, {"import", "--vocab", "v.json", "--out", "x.json"}, "--merges");
}

TEST_F(TgTokenizer, imports_sentencepiece_and_wordpiece) {
  const std::string fixtures = source_path("tests/unit/text/fixtures/");
  EXPECT_THAT(
      good({"import", "--sentencepiece", fixtures + "piece_llama.model", "--out", "s.json"}),
      HasSubstr("s.json: character BPE, 600 tokens, "));
  const std::string ids = good({"encode", "--tokenizer", "s.json", "--text", "Good sir"});
  EXPECT_EQ(good({"encode", "--tokenizer", fixtures + "piece_llama.model", "--text", "Good sir"}),
            ids);
  const std::string vocab = fixtures + "bert_vocab.txt";
  good({"import", "--wordpiece", vocab, "--out", "u.json"});
  good({"import", "--wordpiece", vocab, "--cased", "--out", "c.json"});
  EXPECT_EQ(good({"encode", "--tokenizer", "u.json", "--text", "Hello"}),
            good({"encode", "--tokenizer", "u.json", "--text", "hello"}));
  EXPECT_NE(good({"encode", "--tokenizer", "c.json", "--text", "Hello"}),
            good({"encode", "--tokenizer", "c.json", "--text", "hello"}));
  bad(2, {"import", "--sentencepiece", "x", "--nfc", "--out", "x.json"}, "--nfc");
  bad(2, {"import", "--tiktoken", "x", "--wordpiece", "y", "--out", "x.json"}, "--wordpiece");
}

TEST_F(TgTokenizer, describes_a_tokenizer) {
  train();
  EXPECT_THAT(good({"show", "--tokenizer", "t.json"}),
              ::testing::AllOf(HasSubstr("byte-level BPE"), HasSubstr("0  <|end|>  (special)")));
  const auto json = nlohmann::json::parse(good({"show", "t.json", "--json"}));
  EXPECT_EQ(json["vocab_size"], 280);
  EXPECT_EQ(json["merges"], 23);
  EXPECT_EQ(json["added"][0]["content"], "<|end|>");
  EXPECT_TRUE(json["eos"].is_null());
}

TEST_F(TgTokenizer, reports_progress_and_missed_vocabulary_size) {
  const ToolResult result = folder.tg(
      {"tokenizer", "train", "--data", "text.txt", "--vocab-size", "5000", "--out", "t.json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("no remaining pair occurs 2 times: "));
}

TEST_F(TgTokenizer, names_the_error) {
  bad(2, {}, "train, import, encode, decode or show is required");
  bad(2, {"train", "--data", "text.txt"}, "--out");
  bad(2, {"train", "--data", "text.txt", "--out", "x", "--vocab-size", "10"}, "--vocab-size");
  bad(2, {"train", "--data", "text.txt", "--out", "x", "--pattern", "none of these"}, "--pattern");
  bad(2, {"encode", "--tokenizer", "bytes", "text.txt", "--text", "a"}, "--text");
  bad(1, {"train", "--data", "missing.txt", "--out", "x"}, "error: missing.txt: cannot be opened");
  bad(1,
      {"train", "--data", "text.txt", "--vocab-size", "256", "--special-token", "<s>", "--out",
       "x"},
      "vocab_size must be from 257");
  bad(1, {"encode", "--tokenizer", "text.txt", "--text", "a"},
      "error: text.txt: is not JSON at byte");
  bad(1, {"decode", "--tokenizer", "bytes", "300"}, "error: tokenizer: no token has the id 300");
  bad(1, {"decode", "--tokenizer", "bytes", "--file", "text.txt"},
      "error: text.txt: header length");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x"));
}

}  // namespace
}  // namespace tensorgrad::test
