// SPDX-License-Identifier: MIT
// BPE and unigram models of SentencePiece, and WordPiece: ids and text of hostile strings match
// Hugging Face's tokenizers (make_subword_fixtures.py).
#include <gmock/gmock.h>

#include "support/message_of.h"
#include "tensorgrad/error.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const nlohmann::json& subword_cases() {
  static const auto all = nlohmann::json::parse(fixture_text("subword_cases.json"));
  return all;
}

std::string in_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class SubwordTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  static Tokenizer tokenizer() {
    return Tokenizer::from_file(fixture_path("subword_" + std::string(GetParam()) + ".json"));
  }
  static void expect_cases(const Tokenizer& tokenizer) {
    const std::vector<std::string>& texts = golden_cases().texts;
    const nlohmann::json& expected = subword_cases().at(GetParam());
    ASSERT_EQ(expected["ids"].size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = expected["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer.encode(texts[i]), ids) << in_json(texts[i]);
      for (const bool skip : {true, false}) {
        const std::string text = expected[skip ? "text" : "whole"][i];
        EXPECT_EQ(in_json(tokenizer.decode(ids, {.skip_special_tokens = skip})), in_json(text));
        DecodeStream stream(tokenizer, {.skip_special_tokens = skip});
        std::string streamed;
        for (const std::int32_t id : ids) streamed += stream.step(id);
        EXPECT_EQ(in_json(streamed + stream.finish()), in_json(text)) << in_json(texts[i]);
      }
    }
  }
};

TEST_P(SubwordTokenizer, HasIdsAndTextOfTokenizers) { expect_cases(tokenizer()); }

TEST_P(SubwordTokenizer, IsTheSameAfterItWasWrittenAndRead) {
  const Tokenizer first = tokenizer();
  const Tokenizer second = Tokenizer::from_json(first.to_json());
  expect_cases(second);
  EXPECT_EQ(second.to_json(), first.to_json());
  // Everything that tokenizers reads is written again.
  const auto file =
      nlohmann::json::parse(fixture_text("subword_" + std::string(GetParam()) + ".json"));
  auto written = nlohmann::json::parse(first.to_json());
  for (const char* part : {"normalizer", "pre_tokenizer", "decoder", "post_processor"})
    EXPECT_EQ(written[part], file[part]) << part;
  for (const auto& [key, value] : file["model"].items()) {
    if (key == "merges") continue;
    EXPECT_EQ(written["model"][key], value) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SubwordTokenizer,
                         ::testing::Values("llama", "mistral", "gemma", "words", "t5", "xlmr",
                                           "albert", "bert", "bert_cased"),
                         [](const auto& one) { return std::string(one.param); });

TEST(SubwordTokenizer, KeepsBytesThatAreNoText) {
  const Tokenizer tokenizer = Tokenizer::from_file(fixture_path("subword_llama.json"));
  const std::string bytes = "a\xff\x80 b";
  const Ids ids = tokenizer.encode(bytes, {.add_special_tokens = false});
  EXPECT_EQ(tokenizer.decode_bytes(ids), bytes);
  EXPECT_EQ(tokenizer.decode(ids), "a\ufffd\ufffd b");
  EXPECT_EQ(tokenizer.kind(), "character BPE");
  EXPECT_EQ(tokenizer.unk_id(), 0);
}

TEST(SubwordTokenizer, NamesWhatIsWrong) {
  const auto failure = [](const char* kind, const auto& change) {
    auto json = nlohmann::json::parse(fixture_text("subword_" + std::string(kind) + ".json"));
    change(json);
    return test::message_of<IoError>([&] { return Tokenizer::from_json(json.dump(), "t.json"); });
  };
  using J = nlohmann::json;
  EXPECT_THAT(failure("t5", [](J& j) { j["model"]["vocab"][3] = {"a"}; }),
              HasSubstr("t.json: model.vocab[3]: expected a piece and its score"));
  EXPECT_THAT(failure("t5", [](J& j) { j["model"]["unk_id"] = 100000; }),
              HasSubstr("model.unk_id: no token has this id"));
  EXPECT_THAT(
      failure("t5",
              [](J& j) { j["normalizer"]["normalizers"][0]["precompiled_charsmap"] = "////////"; }),
      HasSubstr("precompiled_charsmap: expected the size of a double array"));
  EXPECT_THAT(
      failure("t5", [](J& j) { j["normalizer"]["normalizers"][2]["pattern"]["Regex"] = "(a+)+$"; }),
      HasSubstr(R"(pattern.Regex: "(a+)+$" is not supported; expected  {2,}, \s+)"));
  EXPECT_THAT(failure("bert", [](J& j) { j["decoder"]["type"] = "CTC"; }),
              HasSubstr("decoder.type: \"CTC\" is not supported; expected Metaspace, "));
  EXPECT_THAT(failure("llama", [](J& j) { j["model"]["merges"][0] = {"x", "zzz"}; }),
              HasSubstr("model.merges[0]: \"zzz\" is not in the vocabulary"));
  EXPECT_THAT(failure("llama", [](J& j) { j["model"]["type"] = "WordLevel"; }),
              HasSubstr("model.type: \"WordLevel\" is not supported; expected BPE, Unigram"));
  EXPECT_THAT(failure("t5",
                      [](J& j) {
                        j["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
                      }),
              HasSubstr("pre_tokenizer: ByteLevel is only supported for BPE"));
  // A character without a token.
  auto json = J::parse(fixture_text("subword_words.json"));
  json["model"]["unk_token"] = nullptr;
  const Tokenizer tokenizer = Tokenizer::from_json(json.dump());
  EXPECT_THAT([&] { (void)tokenizer.encode("\U00010A00"); },
              ThrowsMessage<UserError>(HasSubstr("neither a token for character")));
}

}  // namespace
}  // namespace tensorgrad::test
