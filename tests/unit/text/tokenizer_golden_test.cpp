// SPDX-License-Identifier: MIT
// Ids of hostile strings, compared with Hugging Face's tokenizers and OpenAI's tiktoken.
#include <gmock/gmock.h>

#include <array>

#include "text/patterns.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

std::string shown(std::string_view text) { return nlohmann::json(text).dump(-1, ' ', true); }

void expect_ids(const Tokenizer& tokenizer, const std::string& kind) {
  const GoldenCases& cases = golden_cases();
  ASSERT_GT(cases.texts.size(), 400U);
  for (std::size_t i = 0; i < cases.texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(cases.texts[i]), cases.ids(kind, i)) << shown(cases.texts[i]);
  }
}

void expect_decoded(const Tokenizer& tokenizer, const std::string& kind) {
  const GoldenCases& cases = golden_cases();
  for (std::size_t i = 0; i < cases.texts.size(); ++i) {
    const Ids ids = cases.ids(kind, i);
    const std::string decoded = tokenizer.decode(ids, {.skip_special_tokens = true});
    EXPECT_EQ(decoded, cases.decoded(kind, i).value_or(decoded)) << shown(cases.texts[i]);
    DecodeStream stream(tokenizer, {.skip_special_tokens = true});
    std::string streamed;
    for (const std::int32_t id : ids) streamed += stream.step(id);
    EXPECT_EQ(streamed + stream.finish(), decoded) << shown(cases.texts[i]);
  }
}

class TokenizerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, ids_match_hugging_face) {
  const std::string kind = GetParam();
  const Tokenizer tokenizer = Tokenizer::from_file(fixture_path(kind + ".json"));
  expect_ids(tokenizer, kind);
  expect_decoded(tokenizer, kind);
}

TEST_P(TokenizerGolden, round_trips_through_a_file) {
  const std::string kind = GetParam();
  const Tokenizer first = Tokenizer::from_file(fixture_path(kind + ".json"));
  const Tokenizer second = Tokenizer::from_json(first.to_json());
  expect_ids(second, kind);
  EXPECT_EQ(second.to_json(), first.to_json());
  EXPECT_EQ(second.added_tokens(), first.added_tokens());
  EXPECT_EQ(second.merges(), first.merges());
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerGolden,
                         ::testing::Values("gpt2", "cl100k", "qwen2", "o200k", "added"),
                         [](const auto& one) { return std::string(one.param); });

TEST(TokenizerPieces, match_the_regular_expressions) {
  const GoldenCases& cases = golden_cases();
  const std::map<std::string, PreTokenization> patterns = {{"gpt2", PreTokenization::kGpt2},
                                                           {"cl100k", PreTokenization::kCl100k},
                                                           {"o200k", PreTokenization::kO200k}};
  for (const auto& [kind, pattern] : patterns) {
    for (std::size_t i = 0; i < cases.texts.size(); ++i) {
      const std::string& text = cases.texts[i];
      // The fixture counts characters that stand for bytes, so its sizes are in bytes.
      std::vector<std::size_t> sizes;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text::piece_end(pattern, text, at);
        sizes.push_back(end - at);
        at = end;
      }
      EXPECT_EQ(sizes, cases.all["kinds"][kind]["pieces"][i].get<std::vector<std::size_t>>())
          << kind << " " << shown(text);
    }
  }
}

TEST(TokenizerPairs, keep_merges_that_begin_with_a_number_sign) {
  const Tokenizer tokenizer = Tokenizer::from_vocab_and_merges(
      fixture_path("vocab.json"), fixture_path("merges.txt"),
      {.added_tokens = {
           {.content = "<|endoftext|>"}, {.content = "<|im_start|>"}, {.content = "<|im_end|>"}}});
  expect_ids(tokenizer, "gpt2");
  const auto merges = tokenizer.merges();
  EXPECT_THAT(merges, ::testing::Contains(std::pair<std::string, std::string>("#", "#")));
  EXPECT_EQ(merges, Tokenizer::from_file(fixture_path("gpt2.json")).merges());
  EXPECT_EQ(tokenizer.encode("##").size(), 1U);
}

TEST(TokenizerTiktoken, ids_match_tiktoken) {
  const std::vector<AddedToken> specials = {{.content = "<|endoftext|>", .id = 0},
                                            {.content = "<|im_start|>", .id = 1},
                                            {.content = "<|im_end|>", .id = 2}};
  const std::string path = fixture_path("small.tiktoken");
  const auto with = [&](PreTokenization pattern) {
    return Tokenizer::from_tiktoken(path, {.pre_tokenization = pattern, .added_tokens = specials});
  };
  expect_ids(with(PreTokenization::kCl100k), "tiktoken");
  expect_ids(with(PreTokenization::kTiktokenCl100k), "tiktoken_own");
  // Also as a tokenizer.json.
  const Tokenizer again = Tokenizer::from_json(with(PreTokenization::kTiktokenCl100k).to_json());
  expect_ids(again, "tiktoken_own");
}

// {1,3}+ is possessive in tiktoken, but repeats one to three digits in Hugging Face's engine.
TEST(TokenizerTiktoken, written_file_is_read_by_hugging_face) {
  std::string json = Tokenizer::from_tiktoken(
                         fixture_path("small.tiktoken"),
                         {.pre_tokenization = PreTokenization::kTiktokenCl100k, .added_tokens = {}})
                         .to_json();
  EXPECT_THAT(json, ::testing::Not(::testing::HasSubstr("{1,3}+")));
  const std::size_t at = json.find("{1,3}");
  ASSERT_NE(at, std::string::npos);
  json.insert(at + 5, "+");
  EXPECT_THAT(Tokenizer::from_json(json).pre_tokenize("12345"),
              ::testing::ElementsAre("123", "45"));
}

TEST(TokenizerTraining, merges_match_hugging_face) {
  const std::string corpus = fixture_text("corpus.txt");
  struct Kind {
    const char* name;
    PreTokenization pattern;
    std::int64_t size;
    bool nfc;
  };
  for (const Kind& kind : {Kind{"gpt2", PreTokenization::kGpt2, 2000, false},
                           Kind{"cl100k", PreTokenization::kCl100k, 700, false},
                           Kind{"qwen2", PreTokenization::kQwen2, 700, true},
                           Kind{"o200k", PreTokenization::kO200k, 700, false}}) {
    const std::array<std::string_view, 1> texts = {corpus};
    const Tokenizer ours = Tokenizer::train(
        texts, {.vocab_size = kind.size,
                .min_frequency = 2,
                .pre_tokenization = kind.pattern,
                .nfc = kind.nfc,
                .special_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}});
    const Tokenizer theirs = Tokenizer::from_file(fixture_path(std::string(kind.name) + ".json"));
    EXPECT_EQ(ours.merges(), theirs.merges()) << kind.name;
    EXPECT_EQ(ours.vocab_size(), kind.size);
    expect_ids(ours, kind.name);
  }
}

}  // namespace
}  // namespace tensorgrad::test
