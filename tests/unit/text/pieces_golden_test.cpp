// SPDX-License-Identifier: MIT
// tokenizer.model and vocab.txt: ids match sentencepiece and transformers
// (make_piece_fixtures.py).
#include <gmock/gmock.h>

#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

constexpr EncodeOptions kAsText = {.add_special_tokens = false, .parse_special = false};

const nlohmann::json& piece_cases() {
  static const auto all = nlohmann::json::parse(fixture_text("piece_cases.json"));
  return all;
}

std::vector<std::string> piece_texts() { return piece_cases().at("texts"); }

std::string shown_piece(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string piece_model(const std::string& name) {
  return fixture_text("piece_" + name + ".model");
}

class PieceModels : public ::testing::TestWithParam<const char*> {
 protected:
  static Tokenizer tokenizer() {
    return Tokenizer::from_file(fixture_path("piece_" + std::string(GetParam()) + ".model"));
  }
  static void expect_cases(const Tokenizer& tokenizer) {
    const nlohmann::json& expected = piece_cases().at("models").at(GetParam());
    const std::vector<std::string> texts = piece_texts();
    ASSERT_EQ(expected["ids"].size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = expected["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer.encode(texts[i], kAsText), ids) << shown_piece(texts[i]);
      const std::string text = expected["text"][i];
      EXPECT_EQ(shown_piece(tokenizer.decode(ids)), shown_piece(text));
      DecodeStream stream(tokenizer);
      std::string streamed;
      for (const std::int32_t id : ids) streamed += stream.step(id);
      EXPECT_EQ(shown_piece(streamed + stream.finish()), shown_piece(text));
    }
  }
};

TEST_P(PieceModels, HaveIdsOfSentencepiece) { expect_cases(tokenizer()); }

TEST_P(PieceModels, AreTheSameAfterTheyWereWrittenAsJson) {
  const Tokenizer first = tokenizer();
  const Tokenizer second = Tokenizer::from_json(first.to_json());
  expect_cases(second);
  EXPECT_EQ(second.to_json(), first.to_json());
  EXPECT_EQ(second.bos_id(), first.bos_id());
  EXPECT_EQ(second.eos_id(), first.eos_id());
  EXPECT_EQ(second.added_tokens(), first.added_tokens());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PieceModels,
                         ::testing::Values("llama", "gemma", "bpe", "t5", "bytes", "plain"),
                         [](const auto& one) { return std::string(one.param); });

// The expected text of decode() is that of transformers.
TEST(PieceModel, KeepsCharactersBeforeAnInvalidByteInAStream) {
  const Tokenizer llama = Tokenizer::from_file(fixture_path("piece_llama.model"));
  Ids ids;
  for (const char* byte : {"<0xC3>", "<0xA9>", "<0xFF>"}) {
    ids.push_back(llama.token_to_id(byte).value());
  }
  EXPECT_EQ(llama.decode(ids), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(llama.decode_bytes(ids), "\xc3\xa9\xff");
  DecodeStream stream(llama);
  EXPECT_EQ(stream.step(ids[0]), "");
  EXPECT_EQ(stream.step(ids[1]), "\u00e9");
  EXPECT_EQ(stream.step(ids[2]), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  for (const std::int32_t id : ids) stream.step(id);
  const Ids word = llama.encode("a", kAsText);
  std::string rest;
  for (const std::int32_t id : word) rest += stream.step(id);
  EXPECT_EQ(rest + stream.finish(), "\ufffd a");
}

TEST(PieceModel, HasItsControlTokens) {
  const Tokenizer llama = Tokenizer::from_file(fixture_path("piece_llama.model"));
  EXPECT_EQ(llama.kind(), "character BPE");
  EXPECT_EQ(llama.vocab_size(), 600);
  EXPECT_EQ(llama.unk_id(), 0);
  EXPECT_EQ(llama.bos_id(), 1);
  EXPECT_EQ(llama.eos_id(), 2);
  EXPECT_EQ(llama.pad_id(), std::nullopt);
  EXPECT_EQ(llama.encode("<s></s>"), (Ids{1, 2}));
  const Ids text = llama.encode("<s></s>", kAsText);
  EXPECT_GT(text.size(), 2U);
  EXPECT_EQ(llama.decode(text), "<s></s>");
  const Tokenizer t5 = Tokenizer::from_sentencepiece(FileSource::text(piece_model("t5"), "x"));
  EXPECT_EQ(t5.kind(), "unigram");
  EXPECT_EQ(t5.pad_id(), 0);
  EXPECT_EQ(t5.eos_id(), 1);
  EXPECT_EQ(t5.bos_id(), std::nullopt);
  EXPECT_EQ(t5.encode("</s>"), Ids{1});
  EXPECT_THAT(t5.encode("</s>", kAsText), ::testing::Not(::testing::Contains(1)));
}

TEST(PieceModel, KeepsBytesThatAreNoText) {
  const Tokenizer llama = Tokenizer::from_file(fixture_path("piece_llama.model"));
  const std::string bytes = "a\xff\x80 b";
  EXPECT_EQ(llama.decode_bytes(llama.encode(bytes)), bytes);
}

TEST(PieceFolder, HasIdsOfTransformers) {
  for (const auto& [name, folder] : piece_cases().at("folders").items()) {
    const std::string model = piece_model(folder["model"]), config = folder["config"].dump();
    const Tokenizer tokenizer =
        Tokenizer::from_folder({{"tokenizer.model", FileSource::text(model)},
                                {"tokenizer_config.json", FileSource::text(config)}});
    const Tokenizer again = Tokenizer::from_json(tokenizer.to_json());
    const std::vector<std::string> texts = folder["texts"];
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = folder["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer.encode(texts[i]), ids) << name << ": " << shown_piece(texts[i]);
      EXPECT_EQ(again.encode(texts[i]), ids) << name << ": " << shown_piece(texts[i]);
    }
  }
}

TEST(PieceFolder, TakesTokensOfItsConfiguration) {
  const std::string model = piece_model("llama");
  const Tokenizer tokenizer = Tokenizer::from_folder(
      {{"tokenizer.model", FileSource::text(model)},
       {"added_tokens.json", FileSource::text(R"({"<tool>": 600, "</s>": 2})")},
       {"tokenizer_config.json", FileSource::text(R"({"eos_token": "<|im_start|>"})")}});
  EXPECT_EQ(tokenizer.token_to_id("<tool>"), 600);
  EXPECT_EQ(tokenizer.encode("<tool></s>"), (Ids{600, 2}));
  EXPECT_EQ(tokenizer.encode("<tool>", kAsText), Ids{600});  // not special
  EXPECT_EQ(tokenizer.eos_id(), tokenizer.token_to_id("<|im_start|>"));
}

TEST(PieceFolder, PrefersTokenizerJson) {
  const std::string model = piece_model("llama");
  const std::string json = Tokenizer::characters({"a", "b"}).to_json();
  const Tokenizer tokenizer = Tokenizer::from_folder(
      {{"tokenizer.model", FileSource::text(model)}, {"tokenizer.json", FileSource::text(json)}});
  EXPECT_EQ(tokenizer.kind(), "characters");
}

class BertVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(BertVocabulary, HasIdsOfTransformers) {
  const nlohmann::json& expected = piece_cases().at("berts").at(GetParam());
  const std::string vocab = fixture_text("bert_vocab.txt"), config = expected["config"].dump();
  const Tokenizer tokenizer =
      Tokenizer::from_folder({{"vocab.txt", FileSource::text(vocab)},
                              {"tokenizer_config.json", FileSource::text(config)}});
  const Tokenizer again = Tokenizer::from_json(tokenizer.to_json());
  std::vector<std::string> texts = piece_texts();
  texts.emplace_back("a [MASK]b[SEP]");
  ASSERT_EQ(expected["ids"].size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Ids ids = expected["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.encode(texts[i]), ids) << shown_piece(texts[i]);
    EXPECT_EQ(again.encode(texts[i]), ids) << shown_piece(texts[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, BertVocabulary, ::testing::Values("uncased", "cased", "accents"),
                         [](const auto& one) { return std::string(one.param); });

TEST(WordPieceFile, IsReadLineByLine) {
  const Tokenizer tokenizer = Tokenizer::from_wordpiece(
      FileSource::text("[UNK]\r\n[CLS]\r\n\r\na\r\n##b\r\na\r\nA\r\n[SEP]", "vocab.txt"));
  EXPECT_EQ(tokenizer.kind(), "WordPiece");
  EXPECT_EQ(tokenizer.encode("ab A x"), (Ids{1, 5, 4, 5, 0, 7}));  // the last of equal tokens
  EXPECT_EQ(tokenizer.token_to_id("[PAD]"), 8);                    // follows the vocabulary
  EXPECT_EQ(tokenizer.token_to_id("[MASK]"), 9);
  EXPECT_EQ(tokenizer.pad_id(), 8);
  const Tokenizer cased = Tokenizer::from_wordpiece(
      FileSource::text("[UNK]\n[CLS]\na\nA\n[SEP]\n", "vocab.txt"), false);
  EXPECT_EQ(cased.encode("a A"), (Ids{1, 2, 3, 4}));
}

}  // namespace
}  // namespace tensorgrad::test
