// SPDX-License-Identifier: MIT
// Tokenizer files that are broken or have unsupported contents, each with its error message, and
// mutated files.
#include <gmock/gmock.h>

#include <functional>
#include <tuple>

#include "tensorgrad/error.h"
#include "unit/io/io_test_util.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using FileJson = nlohmann::ordered_json;

std::string refusal(const std::string& json) {
  return io_error_of([&] { Tokenizer::from_json(json, "t.json"); });
}

struct BrokenTokenizer {
  const char* name;
  std::function<void(FileJson&)> change;
  const char* message;  // after "t.json: "
};

std::vector<BrokenTokenizer> broken_models() {
  return {
      {"no_model", [](FileJson& j) { j.erase("model"); },
       "model: is missing; expected a tokenizer.json"},
      {"word_piece", [](FileJson& j) { j["model"]["type"] = "WordPiece"; },
       "pre_tokenizer: ByteLevel is only supported for BPE"},
      {"word_level", [](FileJson& j) { j["model"]["type"] = "WordLevel"; },
       "model.type: \"WordLevel\" is not supported; expected BPE, Unigram, WordPiece"},
      {"unigram",
       [](FileJson& j) {
         j["model"] = {{"type", "Unigram"}, {"vocab", FileJson::parse(R"([["a", 0.5]])")}};
       },
       "pre_tokenizer: ByteLevel is only supported for BPE"},
      {"no_vocab", [](FileJson& j) { j["model"].erase("vocab"); },
       "model.vocab: expected an object"},
      {"empty_vocab", [](FileJson& j) { j["model"]["vocab"] = FileJson::object(); },
       "model.vocab: is empty"},
      {"no_merges", [](FileJson& j) { j["model"].erase("merges"); },
       "model.merges: expected an array"},
      {"id_twice", [](FileJson& j) { j["model"]["vocab"]["c"] = 3; },
       "model.vocab: \"c\" has the id of another token, 3"},
      {"id_negative", [](FileJson& j) { j["model"]["vocab"]["c"] = -3; },
       "vocabulary: expected an integer for \"c\", got a negative number"},
      {"id_fraction", [](FileJson& j) { j["model"]["vocab"]["c"] = 1.5; },
       "vocabulary: expected an integer for \"c\", got a fractional number"},
      {"id_too_large", [](FileJson& j) { j["model"]["vocab"]["c"] = 2147483647; },
       "model.vocab: \"c\" has an id outside 0 to 2147483646"},
      {"id_text", [](FileJson& j) { j["model"]["vocab"]["c"] = "1"; },
       "vocabulary: expected an integer for \"c\", got a string"},
      {"id_object", [](FileJson& j) { j["model"]["vocab"]["c"] = FileJson::object(); },
       "vocabulary: expected an integer for \"c\", got an object"},
      {"merge_of_three", [](FileJson& j) { j["model"]["merges"][1] = "a b c"; },
       "model.merges[1]: expected two tokens separated by a space, got \"a b c\""},
      {"merge_of_one", [](FileJson& j) { j["model"]["merges"][1] = "ab"; },
       "model.merges[1]: expected two tokens separated by a space, got \"ab\""},
      {"merge_of_three_strings",
       [](FileJson& j) { j["model"]["merges"][1] = FileJson::parse(R"(["a", "b", "c"])"); },
       "model.merges[1]: expected two strings, got a third"},
      {"merge_of_one_string",
       [](FileJson& j) { j["model"]["merges"][1] = FileJson::parse(R"(["a"])"); },
       "model.merges[1]: expected two strings, got 1"},
      {"merge_number", [](FileJson& j) { j["model"]["merges"][1] = 5; },
       "model.merges[1]: expected two strings or one with a space, got a number"},
      {"merge_of_unknown", [](FileJson& j) { j["model"]["merges"][1] = "a z"; },
       "model.merges[1]: \"z\" is not in the vocabulary"},
      {"merge_to_unknown", [](FileJson& j) { j["model"]["merges"][1] = "b b"; },
       "model.merges[1]: \"bb\" is not in the vocabulary"},
      {"dropout", [](FileJson& j) { j["model"]["dropout"] = 0.1; },
       "model.dropout: merge dropout is not supported"},
      {"suffix", [](FileJson& j) { j["model"]["end_of_word_suffix"] = "</w>"; },
       "model.end_of_word_suffix: \"</w>\" is not supported for BPE"},
      {"byte_fallback", [](FileJson& j) { j["model"]["byte_fallback"] = true; },
       "model.byte_fallback: byte tokens such as <0x00> are not supported with ByteLevel"},
      {"flag_of_text", [](FileJson& j) { j["model"]["ignore_merges"] = "yes"; },
       "model.ignore_merges: expected true or false, got string"},
  };
}

std::vector<BrokenTokenizer> broken_parts() {
  return {
      {"normalizer", [](FileJson& j) { j["normalizer"] = {{"type", "Nmt"}}; },
       "normalizer.type: \"Nmt\" is not supported; expected NFC, NFD, NFKC, NFKD, Lowercase, "
       "StripAccents, Prepend, Replace, Strip, BertNormalizer, Precompiled, Sequence"},
      {"normalizer_in_sequence",
       [](FileJson& j) {
         j["normalizer"] = FileJson::parse(
             R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]})");
       },
       "normalizer.normalizers[1].type: \"Nmt\" is not supported; expected NFC, NFD, NFKC, "
       "NFKD, Lowercase, StripAccents, Prepend, Replace, Strip, BertNormalizer, Precompiled, "
       "Sequence"},
      {"normalizer_text", [](FileJson& j) { j["normalizer"] = "NFC"; },
       "normalizer: expected an object, got string"},
      {"pre_tokenizer", [](FileJson& j) { j["pre_tokenizer"]["type"] = "UnicodeScripts"; },
       "pre_tokenizer.type: \"UnicodeScripts\" is not supported; expected ByteLevel, Split, "
       "Digits, Punctuation, Metaspace, WhitespaceSplit, Whitespace, BertPreTokenizer, Sequence"},
      {"metaspace_and_byte_level",
       [](FileJson& j) {
         j["pre_tokenizer"] = FileJson::parse(
             R"({"type": "Sequence", "pretokenizers": [{"type": "Metaspace", "replacement": "_"}, {"type": "ByteLevel"}]})");
       },
       "pre_tokenizer: Metaspace is not supported together with ByteLevel"},
      {"no_byte_level",
       [](FileJson& j) { j["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}}; },
       "decoder.type: \"ByteLevel\" is not supported; expected Metaspace, ByteFallback, Fuse, "
       "Strip, "
       "Replace, WordPiece, Sequence"},
      {"behind_byte_level",
       [](FileJson& j) {
         j["pre_tokenizer"] = FileJson::parse(
             R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})");
       },
       "pre_tokenizer.pretokenizers[1]: comes after ByteLevel, which must be the last"},
      {"regex",
       [](FileJson& j) {
         j["pre_tokenizer"] = FileJson::parse(
             R"({"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false})");
       },
       "pre_tokenizer.pattern.Regex: the expression \"(a+)+$\" is not supported; expected that of "
       "GPT-2, cl100k (GPT-4, Llama 3), Qwen2 or o200k"},
      {"behaviour",
       [](FileJson& j) {
         j["pre_tokenizer"] = FileJson::parse(
             R"({"type": "Split", "pattern": {"String": "x"}, "behavior": "Gone"})");
       },
       "pre_tokenizer.behavior: \"Gone\" is not supported; expected Removed, Isolated, "
       "MergedWithPrevious, MergedWithNext, Contiguous"},
      {"split_at_nothing",
       [](FileJson& j) {
         j["pre_tokenizer"] = FileJson::parse(
             R"({"type": "Split", "pattern": {"String": ""}, "behavior": "Removed"})");
       },
       "pre_tokenizer.pattern: empty string"},
      {"decoder", [](FileJson& j) { j["decoder"]["type"] = "WordPiece"; },
       "decoder.type: \"WordPiece\" is not supported; expected ByteLevel"},
      {"merges_of_characters", [](FileJson& j) { j["pre_tokenizer"] = nullptr; },
       "decoder.type: \"ByteLevel\" is not supported; expected Metaspace, ByteFallback, Fuse, "
       "Strip, "
       "Replace, WordPiece, Sequence"},
      {"post_processor", [](FileJson& j) { j["post_processor"] = {{"type", "Magic"}}; },
       "post_processor.type: \"Magic\" is not supported; expected ByteLevel, "
       "TemplateProcessing, RobertaProcessing, BertProcessing, Sequence"},
      {"template_without_text",
       [](FileJson& j) {
         j["post_processor"] = FileJson::parse(R"({"type": "TemplateProcessing", "single": []})");
       },
       "post_processor.single: expected the sequence A once"},
      {"template_of_nobody",
       [](FileJson& j) {
         j["post_processor"] = FileJson::parse(R"({"type": "TemplateProcessing",
           "single": [{"SpecialToken": {"id": "<x>"}}, {"Sequence": {"id": "A"}}],
           "special_tokens": {"<x>": {"ids": [77]}}})");
       },
       "post_processor: no token has the id 77"},
      {"added_id_taken", [](FileJson& j) { j["added_tokens"][0]["id"] = 3; },
       "added_tokens: \"<s>\" has the id of another token, 3"},
      {"added_id_other",
       [](FileJson& j) {
         j["added_tokens"][0]["content"] = "ab";
         j["added_tokens"][0]["id"] = 9;
       },
       "added_tokens: \"ab\" has the id 9, but its id in the vocabulary is 3"},
      {"added_empty", [](FileJson& j) { j["added_tokens"][0]["content"] = ""; },
       "added_tokens: \"\" is empty"},
      {"added_without_id", [](FileJson& j) { j["added_tokens"][0].erase("id"); },
       "added_tokens[0].id: is missing; expected an id of 0 to 2147483646"},
      {"added_long", [](FileJson& j) { j["added_tokens"][0]["content"] = std::string(5000, 'x'); },
       "added_tokens[0].content: has 5000 bytes; expected at most 4096"},
      {"added_no_list", [](FileJson& j) { j["added_tokens"] = 5; },
       "added_tokens: expected an array, got number"},
  };
}

TEST(TokenizerHostile, errors_name_the_broken_part) {
  ASSERT_EQ(refusal(small_tokenizer_json().dump()), "no error");
  for (const auto& all : {broken_models(), broken_parts()}) {
    for (const BrokenTokenizer& broken : all) {
      FileJson json = small_tokenizer_json();
      broken.change(json);
      EXPECT_EQ(refusal(json.dump()), std::string("t.json: ") + broken.message) << broken.name;
    }
  }
}

TEST(TokenizerHostile, errors_name_the_byte_of_invalid_json) {
  EXPECT_EQ(refusal(""), "t.json: is not JSON at byte 0: unexpected end");
  EXPECT_EQ(refusal("{\"model\": {\"vocab\": {\"a\": 1"),
            "t.json: is not JSON at byte 27: unexpected end");
  EXPECT_EQ(refusal("{x}"), "t.json: is not JSON at byte 1: unexpected \"x\"");
  EXPECT_EQ(refusal(std::string("{}\0{", 4)),
            "t.json: is not JSON at byte 2: unexpected zero byte");
  EXPECT_EQ(refusal("[]"), "t.json: expected an object, got array");
  EXPECT_EQ(refusal("3"), "t.json: expected an object, got number");
  EXPECT_EQ(refusal("{}"), "t.json: model: is missing; expected a tokenizer.json");
  EXPECT_EQ(refusal(R"({"model": {"vocab": {}, "vocab": {}}})"),
            "t.json: duplicate key \"vocab\" in one object");
  EXPECT_EQ(refusal(R"({"a": 1, "a": 2})"), "t.json: duplicate key \"a\" in one object");
  EXPECT_EQ(refusal(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []},
                        "pre_tokenizer": {"type": "ByteLevel"}})"),
            "t.json: model.vocab: \"a\" occurs twice");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += '[';
  EXPECT_EQ(refusal("{\"normalizer\":" + deep), "t.json: nested more than 32 levels deep");
}

TEST(TokenizerHostile, errors_name_the_line_of_broken_pairs) {
  const TempDir folder;
  put_file(folder / "v.json", R"({"a": 0, "b": 1, "#": 2, "ab": 3, "##": 4, "#a": 5})");
  const auto refused = [&](const std::string& merges) {
    put_file(folder / "m.txt", merges);
    const std::string message =
        io_error_of([&] { Tokenizer::from_vocab_and_merges(folder / "v.json", folder / "m.txt"); });
    const std::size_t at = message.find("m.txt: ");
    return at == std::string::npos ? message : message.substr(at + 7);
  };
  EXPECT_EQ(refused("#version: 0.2\na b\n# #\n"), "no error");
  EXPECT_EQ(refused("# #\r\na b\r\n\r\n\n"), "no error");
  EXPECT_EQ(refused(""), "no error");
  EXPECT_EQ(refused("a b\n# #\n# a"), "no error");
  EXPECT_EQ(refused("a b\n#version: 0.2\n"), "merge [1]: \"#version:\" is not in the vocabulary");
  EXPECT_EQ(refused("a b\nab\n"), "line 2: expected two tokens separated by a space, got \"ab\"");
  EXPECT_EQ(refused("a b\na b \n"),
            "line 2: expected two tokens separated by a space, got \"a b \"");
  EXPECT_EQ(refused(" a\n"), "line 1: expected two tokens separated by a space, got \" a\"");
  EXPECT_EQ(refused("a b\n\n\n# #\n"),
            "line 2: expected two tokens separated by a space, got an empty line");
  EXPECT_EQ(refused("a b\nb b\n"), "merge [1]: \"bb\" is not in the vocabulary");
  put_file(folder / "v.json", R"([1, 2])");
  EXPECT_THAT(refused("a b\n"), ::testing::HasSubstr("v.json: expected an object, got an array"));
  // Only the first line is a header. Merges of number signs are kept.
  put_file(folder / "v.json", R"({"a": 0, "b": 1, "#": 2, "ab": 3, "##": 4, "#a": 5})");
  put_file(folder / "m.txt", "# #\n# a\na b\n");
  const Tokenizer tokenizer = Tokenizer::from_vocab_and_merges(folder / "v.json", folder / "m.txt");
  EXPECT_EQ(tokenizer.merges().size(), 3U);
  EXPECT_EQ(tokenizer.encode("##"), (Ids{4}));
}

TEST(TokenizerHostile, errors_name_the_line_of_broken_ranks) {
  const TempDir folder;
  const auto refused = [&](const std::string& ranks) {
    put_file(folder / "r", ranks);
    const std::string message = io_error_of([&] { Tokenizer::from_tiktoken(folder / "r", {}); });
    const std::size_t at = message.rfind("/r: ");
    return at == std::string::npos ? message : message.substr(at + 4);
  };
  EXPECT_EQ(refused("YQ== 0\nYg== 1\nYWI= 2\n"), "no error");
  EXPECT_EQ(refused(""), "is empty");
  for (const char* line :
       {"YQ==", "YQ 0", "Y*== 0", "YQ== x", "YQ== 1 ", "YQ== 99999999999", " 0", "=Q== 0"}) {
    EXPECT_EQ(refused(std::string("Yg== 1\n") + line),
              "line 2: expected a base64 token and its rank, got \"" + std::string(line) + "\"");
  }
  EXPECT_EQ(refused("YQ== -1\n"), "\"a\" has an id outside 0 to 2147483646");
  EXPECT_EQ(refused("YQ== 1\nYg== 1\n"), "\"b\" has the id of another token, 1");
  EXPECT_EQ(refused("YQ== 1\nYQ== 2\n"), "\"a\" occurs twice");
}

TEST(TokenizerHostile, a_sparse_vocabulary_takes_no_more_memory_than_a_dense_one) {
  FileJson json = small_tokenizer_json();
  json["model"]["vocab"]["c"] = 2147483646;
  const Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  EXPECT_EQ(tokenizer.vocab_size(), 2147483647);
  EXPECT_EQ(tokenizer.token_count(), 8);
  EXPECT_EQ(tokenizer.encode("abac"), (Ids{5, 2147483646}));
  EXPECT_EQ(tokenizer.decode(Ids{2147483646}), "c");
}

// Reading a mutated file either throws UserError or returns a tokenizer that encodes and decodes.
TEST(TokenizerHostile, mutated_files_are_rejected_or_work) {
  TestRandom random(31);
  const std::string text = "abab## ab <s> a\u00e9 <both> left  1\n";
  int worked = 0, refused = 0;
  for (const std::string& good :
       {small_tokenizer_json().dump(),
        fixture_text("added.json").substr(0, 1800) + fixture_text("added.json").substr(46'000)}) {
    for (int round = 0; round < 3000; ++round) {
      const std::string bad = mutated(good, random);
      try {
        const Tokenizer tokenizer = Tokenizer::from_json(bad);
        ++worked;
        std::ignore = tokenizer.decode(tokenizer.encode(text));
        EXPECT_EQ(Tokenizer::from_json(tokenizer.to_json()).to_json(), tokenizer.to_json());
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(worked, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tensorgrad::test
