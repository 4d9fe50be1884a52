// SPDX-License-Identifier: MIT
// Models of SentencePiece and vocabularies of BERT that are broken or have unsupported contents,
// each with its error message, and mutated files.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "io/protobuf.h"
#include "unit/io/io_test_util.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using io::ProtoMessage;
using ::testing::HasSubstr;

constexpr int kNormalType = 1, kUnknownType = 2, kUserType = 4, kUnusedType = 5, kByteType = 6;
constexpr int kBpe = 2;

ProtoMessage piece(std::string_view text, float score = 0, int type = kNormalType) {
  ProtoMessage made;
  made.text(1, text);
  made.real32(2, score);
  made.integer(3, type);
  return made;
}

// A model with an unknown piece and those given.
class PieceFile {
 public:
  explicit PieceFile(int model_type = kBpe) {
    add(piece("<unk>", 0, kUnknownType));
    trainer_.integer(3, model_type);
  }
  PieceFile& add(const ProtoMessage& piece) {
    model_.message(1, piece);
    return *this;
  }
  PieceFile& trainer(int field, int value) {
    trainer_.integer(field, value);
    return *this;
  }
  PieceFile& normalizer(int field, std::string_view bytes) {
    normalizer_.text(field, bytes);
    return *this;
  }
  PieceFile& normalizer(int field, int value) {
    normalizer_.integer(field, value);
    return *this;
  }
  [[nodiscard]] std::string bytes() const {
    ProtoMessage model;
    model.message(2, trainer_);
    model.message(3, normalizer_);
    return model_.bytes() + model.bytes();
  }

 private:
  ProtoMessage model_, trainer_, normalizer_;
};

std::string refusal_of(std::string_view bytes) {
  return io_error_of(
      [&] { Tokenizer::from_sentencepiece(FileSource::text(bytes, "tokenizer.model")); });
}
std::string refusal_of(const PieceFile& file) { return refusal_of(file.bytes()); }

TEST(PieceModelHostile, UnsupportedOptionsAreNamed) {
  EXPECT_THAT(refusal_of(PieceFile(3)),
              HasSubstr("model_type: 3 (WORD) is not supported; expected 1 (UNIGRAM) or 2 (BPE)"));
  EXPECT_THAT(refusal_of(PieceFile(4)), HasSubstr("model_type: 4 (CHAR) is not supported"));
  EXPECT_THAT(refusal_of(PieceFile().trainer(24, 1)),
              HasSubstr("treat_whitespace_as_suffix: only false is supported"));
  EXPECT_THAT(refusal_of(PieceFile().normalizer(5, 0)),
              HasSubstr("escape_whitespaces: only true is supported"));
  EXPECT_THAT(refusal_of(PieceFile().add(piece("a", 0, kUnusedType))),
              HasSubstr("piece 1: the type UNUSED is not supported"));
  ProtoMessage denormalizer, model;
  denormalizer.text(2, "map");
  model.message(5, denormalizer);
  EXPECT_THAT(refusal_of(PieceFile().bytes() + model.bytes()),
              HasSubstr("denormalizer_spec: a character map is not supported"));
}

TEST(PieceModelHostile, BrokenPiecesAreNamed) {
  EXPECT_EQ(refusal_of(""), "tokenizer.model: has no pieces; expected a SentencePiece model");
  EXPECT_THAT(refusal_of(PieceFile().add(piece(""))), HasSubstr("piece 1: is empty"));
  EXPECT_THAT(refusal_of(PieceFile().add(piece("a\xff"))),
              HasSubstr(R"(piece 1: "a\xff" is not UTF-8)"));
  EXPECT_THAT(refusal_of(PieceFile().add(piece("a", NAN))),
              HasSubstr("piece 1: the score is not finite"));
  EXPECT_THAT(refusal_of(PieceFile().add(piece("a", 0, 7))),
              HasSubstr("piece 1: expected a type of 1 to 6, got 7"));
  EXPECT_EQ(refusal_of(PieceFile().add(piece("a")).add(piece("a"))),
            "tokenizer.model: pieces: \"a\" occurs twice");
  EXPECT_EQ(refusal_of(PieceFile().add(piece("a", 0, kUnknownType))),
            "tokenizer.model: piece 1: \"a\" is a second piece of type UNKNOWN");
  EXPECT_EQ(refusal_of(PieceFile().add(piece("<0x0a>", 0, kByteType)).trainer(35, 1)),
            "tokenizer.model: piece 1: \"<0x0a>\" has the type BYTE; expected <0x00> to <0xFF>");
  EXPECT_EQ(refusal_of(PieceFile().add(piece("<0x0A>", 0, kByteType))),
            "tokenizer.model: piece 1: \"<0x0A>\" has the type BYTE, but byte_fallback is false");
  EXPECT_EQ(refusal_of(PieceFile().add(piece("<0x0A>", 0, kByteType)).trainer(35, 1)),
            "tokenizer.model: byte_fallback needs 256 pieces of type BYTE, got 1");
  EXPECT_THAT(refusal_of(PieceFile().add(piece(std::string(513, 'a')))),
              HasSubstr("has 513 bytes; expected at most 512"));
  EXPECT_THAT(refusal_of(PieceFile(1).add(piece(std::string(513, 'a'), 0, kUserType))),
              HasSubstr("has 513 bytes; expected at most 512"));
  EXPECT_EQ(refusal_of(PieceFile(1).add(piece(std::string(513, 'a')))), "no error");
  ProtoMessage model;
  model.message(1, piece("a"));
  EXPECT_EQ(refusal_of(model.bytes()),
            "tokenizer.model: has no trainer_spec; the file may be truncated");
  model.message(2, ProtoMessage());
  EXPECT_EQ(refusal_of(model.bytes()),
            "tokenizer.model: has no normalizer_spec; the file may be truncated");
  model.message(3, ProtoMessage());
  EXPECT_EQ(refusal_of(model.bytes()), "tokenizer.model: has no piece of type UNKNOWN");
  EXPECT_THAT(refusal_of(PieceFile().normalizer(2, "abcdefgh")),
              HasSubstr("precompiled_charsmap: expected the size of a double array"));
}

TEST(PieceModelHostile, OtherFilesAreNamed) {
  EXPECT_THAT(refusal_of("IQ== 0\nIg== 1\n"),
              HasSubstr("tokenizer.model: is a file of tiktoken; expected a SentencePiece model"));
  EXPECT_THAT(refusal_of("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("tokenizer.model: byte 0: the wire type 6 is not supported"));
}

TEST(PieceModelHostile, ClassesThatChangeIdsAreRefused) {
  const std::string model = PieceFile().bytes();
  EXPECT_THAT(
      io_error_of([&] {
        Tokenizer::from_folder(
            {{"tokenizer.model", FileSource::text(model)},
             {"tokenizer_config.json",
              FileSource::text(R"({"tokenizer_class": "XLMRobertaTokenizer"})")}});
      }),
      HasSubstr("tokenizer_config.json: tokenizer_class: \"XLMRobertaTokenizer\" is not supported "
                "with a tokenizer.model"));
}

// A truncated file must be refused. One with other bytes can be valid.
TEST(PieceModelHostile, TruncatedAndMutatedFilesAreReadOrRefused) {
  std::mt19937 draw(5);
  for (const char* const name : {"piece_llama.model", "piece_bytes.model"}) {
    const std::string whole = fixture_text(name);
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 16)
      EXPECT_NE(refusal_of(std::string_view(whole).substr(0, size)), "no error") << size;
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
      std::string bytes = whole;
      for (int n = 0; n < 3; ++n) bytes[draw() % bytes.size()] = static_cast<char>(draw());
      try {
        const Tokenizer tokenizer =
            Tokenizer::from_sentencepiece(FileSource::text(bytes, "tokenizer.model"));
        (void)tokenizer.decode(tokenizer.encode("Good sir, \u00e9 <both>"));
      } catch (const UserError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 0);
  }
}

TEST(WordPieceHostile, FaultsAreNamed) {
  const auto refused = [](std::string_view text, std::string_view config = "{}") {
    return io_error_of([&] {
      Tokenizer::from_folder({{"vocab.txt", FileSource::text(text)},
                              {"tokenizer_config.json", FileSource::text(config)}});
    });
  };
  EXPECT_EQ(refused("[UNK]\na\n"), "no error");
  EXPECT_EQ(refused(""), "<memory>/vocab.txt: is empty");
  EXPECT_EQ(refused("a\nb\xff\n"), R"(<memory>/vocab.txt: line 2: expected UTF-8, got "b\xff")");
  EXPECT_EQ(refused("a\nb\n"), "<memory>/vocab.txt: expected the unknown token \"[UNK]\"");
  EXPECT_EQ(refused("a\n" + std::string(5000, 'b')),
            "<memory>/vocab.txt: line 2: has 5000 bytes; expected a token of at most 4096");
  EXPECT_EQ(refused("[UNK]\n", R"({"do_basic_tokenize": false})"),
            "<memory>/tokenizer_config.json: do_basic_tokenize: only true is supported");
  EXPECT_THAT(refused("[UNK]\n", R"({"tokenizer_class": "EsmTokenizer"})"),
              HasSubstr("tokenizer_class: \"EsmTokenizer\" is not supported with a vocab.txt"));
}

}  // namespace
}  // namespace tensorgrad::test
