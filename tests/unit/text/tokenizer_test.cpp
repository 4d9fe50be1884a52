// SPDX-License-Identifier: MIT
// The public interface of tokenizers: round trips of any bytes, options, added tokens and batches.
#include "tensorgrad/data/tokenizer.h"

#include <gmock/gmock.h>

#include <array>
#include <thread>
#include <tuple>

#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/text.h"
#include "tensorgrad/error.h"
#include "unit/io/io_test_util.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string random_bytes(TestRandom& random, std::size_t size) {
  static constexpr std::string_view kParts[] = {"the ",
                                                "a",
                                                " ",
                                                "\n",
                                                "1",
                                                "'s",
                                                "\u00e9",
                                                "\u4e2d",
                                                "\U0001f600",
                                                "\xff",
                                                "\xc3",
                                                "<|im_end|>",
                                                std::string_view("\0", 1)};
  std::string text;
  while (text.size() < size) {
    if (random.below(2) == 0) {
      text += static_cast<char>(random.next());
    } else {
      text += kParts[random.below(std::size(kParts))];
    }
  }
  return text;
}

TEST(Tokenizer, round_trips_any_bytes) {
  TestRandom random(21);
  std::vector<Tokenizer> all = {Tokenizer::bytes({"<|im_end|>"})};
  for (const char* kind : {"gpt2", "cl100k", "o200k"}) {
    all.push_back(Tokenizer::from_file(fixture_path(std::string(kind) + ".json")));
  }
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_bytes(random, random.below(round % 10 == 0 ? 20'000 : 100));
    for (const Tokenizer& tokenizer : all) {
      for (const bool special : {true, false}) {
        const Ids ids = tokenizer.encode(text, {.parse_special = special});
        EXPECT_EQ(tokenizer.decode_bytes(ids), text);
        DecodeStream stream(tokenizer);
        std::string streamed;
        for (const std::int32_t id : ids) streamed += stream.step(id);
        EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
      }
    }
  }
}

// A long text uses a cache of pieces, a short one does not.
TEST(Tokenizer, ids_of_a_long_text_are_those_of_its_parts) {
  const Tokenizer tokenizer = Tokenizer::from_file(fixture_path("cl100k.json"));
  const std::string corpus = fixture_text("corpus.txt");
  Ids parts;
  std::string whole;
  for (int i = 0; i < 3; ++i) {
    for (const std::string& piece : tokenizer.pre_tokenize(corpus)) {
      const Ids ids = tokenizer.encode(piece);
      parts.insert(parts.end(), ids.begin(), ids.end());
    }
    whole += corpus;
  }
  EXPECT_EQ(tokenizer.encode(whole), parts);
  EXPECT_EQ(tokenizer.decode(parts), whole);
}

TEST(Tokenizer, serves_several_threads_at_once) {
  const Tokenizer tokenizer = Tokenizer::from_file(fixture_path("qwen2.json"));
  const std::string corpus = fixture_text("corpus.txt");
  const Ids expected = tokenizer.encode(corpus);
  std::array<bool, 4> right{};
  std::vector<std::thread> threads;
  for (bool& mine : right) {
    threads.emplace_back([&] { mine = tokenizer.encode(corpus) == expected; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(true));
}

TEST(Tokenizer, of_bytes_has_their_values_as_ids) {
  const Tokenizer bytes = Tokenizer::bytes({"<s>", "</s>"});
  EXPECT_EQ(bytes.kind(), "bytes");
  EXPECT_EQ(bytes.vocab_size(), 258);
  EXPECT_THAT(bytes.encode("\xff"
                           "A<s>"),
              ElementsAre(255, 65, 256));
  EXPECT_THAT(bytes.encode("<s>", {.parse_special = false}), ElementsAre('<', 's', '>'));
  EXPECT_EQ(bytes.decode(Ids{255, 65, 257}),
            "\ufffd"
            "A</s>");
  EXPECT_EQ(bytes.decode(Ids{65, 257}, {.skip_special_tokens = true}), "A");
  EXPECT_EQ(bytes.decode_bytes(Ids{255}), "\xff");
  const Tokenizer again = Tokenizer::from_json(bytes.to_json());
  EXPECT_EQ(again.kind(), "bytes");
  EXPECT_THAT(again.encode("\xff"
                           "A<s>"),
              ElementsAre(255, 65, 256));
}

TEST(Tokenizer, of_characters_is_the_vocabulary_of_the_text) {
  const std::string text = "b\u00e9a\nab\U0001F600";
  const CharVocabulary vocabulary = CharVocabulary::of(text);
  const Tokenizer characters = Tokenizer::characters(vocabulary.symbols(), {"<s>"});
  EXPECT_EQ(characters.kind(), "characters");
  EXPECT_EQ(characters.encode(text), vocabulary.encode(text));
  EXPECT_EQ(characters.decode(vocabulary.encode(text)), text);
  EXPECT_EQ(characters.encode("a<s>").back(), vocabulary.size());
  const Tokenizer again = Tokenizer::from_json(characters.to_json());
  EXPECT_EQ(again.kind(), "characters");
  EXPECT_EQ(again.encode(text), vocabulary.encode(text));
  EXPECT_THAT([&] { std::ignore = characters.encode("ax"); },
              ThrowsMessage<UserError>(HasSubstr("neither a token for character \"x\"")));
  EXPECT_THAT([&] { std::ignore = characters.encode("a\xff"); },
              ThrowsMessage<UserError>(HasSubstr("neither a token for character \"\\xff\"")));
  EXPECT_THAT([] { Tokenizer::characters({"a", "bc"}); },
              ThrowsMessage<IoError>(HasSubstr("\"bc\" is not a single UTF-8 character")));
  EXPECT_THAT([] { Tokenizer::characters({"a", ""}); },
              ThrowsMessage<IoError>(HasSubstr("\"\" is not a single UTF-8 character")));
  EXPECT_THAT([] { Tokenizer::characters({"a", "\u00e9", "\u00e9"}); },
              ThrowsMessage<IoError>(HasSubstr("occurs twice")));
}

TEST(Tokenizer, adds_bos_and_eos_once) {
  Tokenizer bytes = Tokenizer::bytes({"<s>", "</s>"});
  bytes.set_bos("<s>");
  bytes.set_eos("</s>");
  EXPECT_EQ(bytes.bos_id(), 256);
  EXPECT_EQ(bytes.eos_id(), 257);
  EXPECT_EQ(bytes.pad_id(), std::nullopt);
  EXPECT_THAT(bytes.encode("A", {.add_bos = true, .add_eos = true}), ElementsAre(256, 65, 257));
  EXPECT_THAT(bytes.encode("<s>A", {.add_bos = true}), ElementsAre(256, 65));
  EXPECT_THAT(bytes.encode("", {.add_bos = true}), ElementsAre(256));
  EXPECT_THAT(bytes.encode("A</s>", {.add_eos = true}), ElementsAre(65, 257));
  // The template of the file adds the token already.
  auto json = nlohmann::json::parse(bytes.to_json());
  json["post_processor"] = nlohmann::json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}})");
  Tokenizer with = Tokenizer::from_json(json.dump());
  with.set_bos("<s>");
  with.set_eos("</s>");
  EXPECT_THAT(with.encode("A"), ElementsAre(256, 65));
  EXPECT_THAT(with.encode("A", {.add_special_tokens = false}), ElementsAre(65));
  EXPECT_THAT(with.encode("A", {.add_bos = true, .add_eos = true}), ElementsAre(256, 65, 257));
  EXPECT_THAT(Tokenizer::from_json(with.to_json()).encode("A"), ElementsAre(256, 65));
  EXPECT_THAT([&] { with.set_pad("<none>"); },
              ThrowsMessage<UserError>(HasSubstr("unknown token \"<none>\"")));
  EXPECT_THAT([] { std::ignore = Tokenizer::bytes().encode("", {.add_eos = true}); },
              ThrowsMessage<UserError>(HasSubstr("no eos token is set; call set_eos()")));
}

TEST(Tokenizer, truncation_keeps_bos_and_eos) {
  Tokenizer bytes = Tokenizer::bytes({"<s>", "</s>"});
  bytes.set_bos("<s>");
  bytes.set_eos("</s>");
  const auto cut = [&](std::int64_t length, bool left) {
    return bytes.encode(
        "ABCD", {.add_bos = true, .add_eos = true, .max_length = length, .truncate_left = left});
  };
  EXPECT_THAT(cut(4, false), ElementsAre(256, 'A', 'B', 257));
  EXPECT_THAT(cut(4, true), ElementsAre(256, 'C', 'D', 257));
  EXPECT_THAT(cut(2, false), ElementsAre(256, 257));
  EXPECT_THAT(cut(6, false), ElementsAre(256, 'A', 'B', 'C', 'D', 257));
  for (const std::int64_t length : {1, -1}) {
    EXPECT_THAT([&] { cut(length, false); },
                ThrowsMessage<UserError>(HasSubstr("is too small for the 2 special tokens")));
  }
}

TEST(Tokenizer, pads_batches) {
  Tokenizer bytes = Tokenizer::bytes({"<pad>"});
  bytes.set_pad("<pad>");
  const std::vector<std::string> texts = {"AB", "", "ABCD"};
  const TokenBatch batch = bytes.encode_padded(texts);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(batch.length, 4);
  EXPECT_THAT(batch.ids, ElementsAre(65, 66, 256, 256, 256, 256, 256, 256, 65, 66, 67, 68));
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(batch.lengths, ElementsAre(2, 0, 4));
  const TokenBatch left = bytes.encode_padded(texts, {}, {.length = 3, .left = true, .id = 7});
  EXPECT_THAT(left.ids, ElementsAre(7, 65, 66, 7, 7, 7, 65, 66, 67));
  EXPECT_THAT(left.mask, ElementsAre(0, 1, 1, 0, 0, 0, 1, 1, 1));
  const TokenBatch cut = pad_tokens({{1, 2, 3}}, {.length = 2, .truncate_left = true});
  EXPECT_THAT(cut.ids, ElementsAre(2, 3));
  EXPECT_EQ(pad_tokens({{1, 2, 3}}, {.multiple_of = 8}).length, 8);
  EXPECT_THAT([] { pad_tokens({}); }, ThrowsMessage<UserError>(HasSubstr("no sequences")));
  EXPECT_THAT([] { pad_tokens({{1}}, {.multiple_of = 0}); },
              ThrowsMessage<UserError>(HasSubstr("multiple_of at least 1, got 0 and 0")));
}

TEST(Tokenizer, takes_new_tokens) {
  const Tokenizer first = Tokenizer::from_file(fixture_path("gpt2.json"));
  Tokenizer tokenizer = first;
  const auto size = static_cast<std::int32_t>(first.vocab_size());
  tokenizer.add_special_tokens({"<user>", "<|endoftext|>"});
  tokenizer.add_tokens({{.content = "Hamlet", .special = false},
                        {.content = "far", .id = size + 10, .special = false}});
  EXPECT_EQ(tokenizer.token_to_id("<user>"), size);
  EXPECT_EQ(tokenizer.token_to_id("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.token_to_id("Hamlet"), size + 1);
  EXPECT_EQ(tokenizer.vocab_size(), size + 11);
  EXPECT_EQ(tokenizer.token_count(), size + 3);
  EXPECT_EQ(tokenizer.id_to_token(size + 5), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(size + 10), "far");
  EXPECT_THAT(tokenizer.encode("<user>Hamlet"), ElementsAre(size, size + 1));
  EXPECT_EQ(first.encode("<user>Hamlet").size(),
            first.encode("<user>").size() + first.encode("Hamlet").size());
  EXPECT_EQ(tokenizer.decode(Ids{size, size + 1}, {.skip_special_tokens = true}), "Hamlet");
  EXPECT_EQ(Tokenizer::from_json(tokenizer.to_json()).encode("<user>Hamlet"),
            tokenizer.encode("<user>Hamlet"));
  EXPECT_THAT([&] { tokenizer.add_tokens({{.content = "x1", .id = 3}}); },
              ThrowsMessage<UserError>(HasSubstr("\"x1\" has the id of another token, 3")));
  EXPECT_THAT([&] { tokenizer.add_tokens({{.content = "<user>", .id = 3}}); },
              ThrowsMessage<UserError>(HasSubstr("but its id in the vocabulary is")));
  EXPECT_THAT([&] { tokenizer.add_tokens({{.content = ""}}); },
              ThrowsMessage<UserError>(HasSubstr("\"\" is empty")));
  EXPECT_THAT(
      [&] { std::ignore = tokenizer.decode(Ids{size + 5}); },
      ThrowsMessage<UserError>(HasSubstr("no token has the id " + std::to_string(size + 5))));
  EXPECT_THAT([&] { std::ignore = tokenizer.decode(Ids{-1}); },
              ThrowsMessage<UserError>(HasSubstr("no token has the id -1")));
}

TEST(Tokenizer, token_names_are_those_of_the_file) {
  const Tokenizer tokenizer = Tokenizer::from_file(fixture_path("gpt2.json"));
  const std::int32_t id = tokenizer.token_to_id("\u0120the").value();
  EXPECT_THAT(tokenizer.encode(" the"), ElementsAre(id));
  EXPECT_EQ(tokenizer.id_to_token(id), "\u0120the");
  EXPECT_EQ(tokenizer.token_to_id(" the"), std::nullopt);
  EXPECT_EQ(tokenizer.token_to_id(""), std::nullopt);
  for (std::int32_t i = 0; i < tokenizer.vocab_size(); ++i) {
    EXPECT_EQ(tokenizer.token_to_id(tokenizer.id_to_token(i).value()), i);
  }
}

TEST(Tokenizer, folder_provides_bos_and_eos) {
  const TempDir folder;
  put_file(folder / "tokenizer.json", fixture_text("gpt2.json"));
  put_file(folder / "tokenizer_config.json",
           R"({"bos_token": null, "eos_token": "<|endoftext|>", "unk_token": "<none>",
               "pad_token": {"content": "<|im_end|>", "special": true}})");
  for (const std::string& path : {folder.str(), folder / "tokenizer.json"}) {
    const Tokenizer tokenizer = Tokenizer::from_file(path);
    EXPECT_EQ(tokenizer.bos_id(), std::nullopt);
    EXPECT_EQ(tokenizer.eos_id(), 0);
    EXPECT_EQ(tokenizer.pad_id(), 2);
  }
  put_file(folder / "tokenizer_config.json", R"({"eos_token": 3})");
  EXPECT_THAT([&] { Tokenizer::from_file(folder.str()); },
              ThrowsMessage<IoError>(
                  HasSubstr("tokenizer_config.json: eos_token: expected a string, got number")));
}

TEST(Tokenizer, KeepsItsMarksInFiles) {
  const TempDir folder;
  Tokenizer tokenizer = Tokenizer::bytes({"<s>", "</s>", "<pad>"});
  const auto marks = [](const Tokenizer& of) {
    return std::vector{of.bos_id(), of.eos_id(), of.pad_id()};
  };
  tokenizer.set_eos("</s>");
  EXPECT_EQ(marks(Tokenizer::from_json(tokenizer.to_json())), marks(tokenizer));
  tokenizer.set_bos("<s>");
  tokenizer.set_pad("<pad>");
  tokenizer.save(folder / "tokenizer.json");
  EXPECT_EQ(marks(Tokenizer::from_file(folder.str())), marks(tokenizer));
  // tokenizer_config.json takes precedence. If it has null, there is no such token.
  put_file(folder / "tokenizer_config.json", R"({"eos_token": "<pad>", "pad_token": null})");
  using Marks = std::vector<std::optional<std::int32_t>>;
  EXPECT_EQ(marks(Tokenizer::from_file(folder.str())), (Marks{256, 258, std::nullopt}));
}

// Hugging Face's tokenizers numbers added tokens from the size of the vocabulary on, unless they
// are part of it. Here it would read id 7 as 5.
TEST(Tokenizer, WritesAddedTokensBeyondAGapIntoTheVocabulary) {
  const std::string ranks = "YQ== 0\nYg== 1\nYWI= 2\nPA== 3\nPg== 4\n";  // a, b, ab, <, >
  const Tokenizer tokenizer = Tokenizer::from_tiktoken(
      FileSource::text(ranks),
      {.pre_tokenization = PreTokenization::kNone, .added_tokens = {{.content = "<a>", .id = 7}}});
  const auto json = nlohmann::json::parse(tokenizer.to_json());
  EXPECT_EQ(json["model"]["vocab"]["<a>"], 7);
  const Tokenizer again = Tokenizer::from_json(tokenizer.to_json());
  for (const Tokenizer& each : {tokenizer, again}) {
    EXPECT_EQ(each.encode("ab<a>b"), (Ids{2, 7, 1}));
    // If special tokens are not parsed, the content is plain text, although it is a whole piece.
    EXPECT_EQ(each.encode("<a>", {.parse_special = false}), (Ids{3, 0, 4}));
    EXPECT_EQ(each.token_count(), 6);
  }
  EXPECT_EQ(again.to_json(), tokenizer.to_json());
  const Tokenizer next = Tokenizer::from_tiktoken(FileSource::text(ranks),
                                                  {.added_tokens = {{.content = "<a>", .id = 5}}});
  EXPECT_FALSE(nlohmann::json::parse(next.to_json())["model"]["vocab"].contains("<a>"));
}

// Same ids as Hugging Face's tokenizers 0.23: the whole run is one token, and nothing is added
// twice.
TEST(Tokenizer, added_white_space_that_strips_both_sides_is_one_token) {
  nlohmann::ordered_json json = small_tokenizer_json();
  const auto encoded = [&](const char* content, const char* text) {
    nlohmann::ordered_json token = json["added_tokens"][0];
    token["id"] = 7;
    token["content"] = content;
    token["lstrip"] = token["rstrip"] = true;
    nlohmann::ordered_json with = json;
    with["added_tokens"].push_back(token);
    return Tokenizer::from_json(with.dump()).encode(text);
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(encoded(" ", "a   b"), (Ids{0, 7, 1}));
  EXPECT_EQ(encoded("  ", "  a   b     a"), (Ids{7, 0, 7, 1, 7, 0}));
  EXPECT_EQ(encoded(" ", "   "), Ids{7});
  EXPECT_EQ(encoded("<b>", " <b>  <b> "), (Ids{7, 7}));
}

TEST(Tokenizer, is_read_from_a_folder_with_vocab_and_merges) {
  const TempDir folder;
  put_file(folder / "vocab.json", fixture_text("vocab.json"));
  EXPECT_THAT([&] { Tokenizer::from_file(folder.str()); },
              ThrowsMessage<IoError>(HasSubstr("merges.txt")));
  put_file(folder / "merges.txt", fixture_text("merges.txt"));
  const std::string text = "Don't   count: 12345 <|endoftext|><|im_end|> e\u0301\n\n  x";
  const auto expect_as = [&](const BpeOptions& options) {
    const Tokenizer got = Tokenizer::from_file(folder.str());
    const Tokenizer want =
        Tokenizer::from_vocab_and_merges(folder / "vocab.json", folder / "merges.txt", options);
    EXPECT_EQ(got.encode(text), want.encode(text));
    EXPECT_EQ(got.pre_tokenize(text), want.pre_tokenize(text));
    EXPECT_EQ(got.added_tokens(), want.added_tokens());
  };
  expect_as({.added_tokens = {{.content = "<|endoftext|>"}}});
  const Tokenizer plain = Tokenizer::from_file(folder.str());
  EXPECT_EQ(plain.eos_id(), 0);
  EXPECT_EQ(plain.bos_id(), 0);
  EXPECT_EQ(plain.pad_id(), std::nullopt);
  const std::string config = folder / "tokenizer_config.json";
  put_file(config, R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": true,
                       "bos_token": null, "pad_token": {"content": "<|im_end|>"},
                       "added_tokens_decoder": {"9000": {"content": "<new>", "special": true}}})");
  expect_as({.add_prefix_space = true,
             .added_tokens = {{.content = "<|endoftext|>"},
                              {.content = "<|im_end|>"},
                              {.content = "<new>", .id = 9000}}});
  EXPECT_EQ(Tokenizer::from_file(folder.str()).bos_id(), std::nullopt);
  EXPECT_EQ(Tokenizer::from_file(folder.str()).pad_id(), 2);
  put_file(config, R"({"tokenizer_class": "Qwen2Tokenizer"})");
  expect_as({.pre_tokenization = PreTokenization::kQwen2,
             .nfc = true,
             .added_tokens = {{.content = "<|endoftext|>"}}});
  EXPECT_EQ(Tokenizer::from_file(folder.str()).bos_id(), std::nullopt);
  put_file(folder / "added_tokens.json", R"({"<new>": 9000, "<end>": 9001})");
  put_file(config, R"({"eos_token": "<end>", "bos_token": null, "unk_token": null})");
  expect_as(
      {.added_tokens = {{.content = "<new>", .id = 9000, .special = false, .normalized = true},
                        {.content = "<end>", .id = 9001}}});
  EXPECT_EQ(Tokenizer::from_file(folder.str()).eos_id(), 9001);
  const auto refused = [&](const char* json, const char* message) {
    put_file(config, json);
    EXPECT_THAT([&] { Tokenizer::from_file(folder.str()); },
                ThrowsMessage<IoError>(HasSubstr(message)));
  };
  refused(R"({"tokenizer_class": "RobertaTokenizer"})",
          "tokenizer_config.json: tokenizer_class: \"RobertaTokenizer\" is not supported without a "
          "tokenizer.json; expected GPT2Tokenizer");
  refused(R"({"add_bos_token": true})", "add_bos_token: only false");
  refused(R"({"added_tokens_decoder": {"0": {"content": "<other>"}}})",
          "has the id of another token");
  refused(R"({"added_tokens_decoder": {"x": {"content": "<new>"}}})", "expected an id, got \"x\"");
  refused("[]", "expected an object");
}

TEST(Tokenizer, training_on_files_reports_progress) {
  const TempDir folder;
  put_file(folder / "a.txt", "\xef\xbb\xbf" + fixture_text("corpus.txt"));
  put_file(folder / "b.txt.gz", gzipped(fixture_text("corpus.txt")));
  std::vector<std::string> phases;
  std::int64_t last = 0;
  const auto watch = [&](const BpeProgress& now) {
    if (phases.empty() || phases.back() != now.phase) {
      phases.emplace_back(now.phase);
      last = 0;
    }
    EXPECT_LE(last, now.done);
    EXPECT_LE(now.done, now.total);
    last = now.done;
  };
  const Tokenizer both = Tokenizer::train_from_files(
      {folder / "a.txt", folder / "b.txt.gz"},
      {.vocab_size = 500, .special_tokens = {"<s>"}, .on_progress = watch});
  EXPECT_THAT(phases, ElementsAre("counting words", "counting pairs", "merging"));
  EXPECT_EQ(both.vocab_size(), 500);
  EXPECT_EQ(both.token_to_id("<s>"), 0);
  EXPECT_THAT(both.encode("a<s>").back(), 0);
  // Twice the text has the same merges if their counts exceed the minimum.
  const std::string corpus = fixture_text("corpus.txt");
  const std::array<std::string_view, 1> once = {corpus};
  EXPECT_EQ(Tokenizer::train(once, {.vocab_size = 500, .special_tokens = {"<s>"}}).merges(),
            both.merges());
  const Tokenizer saved = Tokenizer::from_json(both.to_json());
  EXPECT_EQ(saved.encode(corpus), both.encode(corpus));
  // Aborted by the callback.
  EXPECT_THROW(
      Tokenizer::train(once, {.vocab_size = 500,
                              .on_progress = [](const BpeProgress&) { throw AbortedError("x"); }}),
      AbortedError);
}

TEST(Tokenizer, training_options_out_of_range_are_rejected) {
  const std::array<std::string_view, 1> text = {"some text"};
  const auto refused = [&](const BpeTrainOptions& options, const char* message) {
    EXPECT_THAT([&] { Tokenizer::train(text, options); },
                ThrowsMessage<UserError>(HasSubstr(message)));
  };
  refused({.vocab_size = 255},
          "vocab_size must be from 256 (all bytes and special tokens) to 16777216");
  refused({.vocab_size = 256, .special_tokens = {"<s>"}}, "vocab_size must be from 257");
  refused({.vocab_size = 1 << 25}, "to 16777216, got 33554432");
  refused({.vocab_size = 300, .min_frequency = -1}, "min_frequency must be at least 0, got -1");
  refused({.vocab_size = 300, .special_tokens = {"<s>", "<s>"}}, "duplicate special token \"<s>\"");
  refused({.vocab_size = 300, .special_tokens = {"a"}}, "must have more than one character");
  refused({.vocab_size = 300, .special_tokens = {""}}, "must have more than one character");
  const TempDir folder;
  put_file(folder / "empty", "");
  EXPECT_THAT([&] { Tokenizer::train_from_files({folder / "empty"}, {.vocab_size = 300}); },
              ThrowsMessage<IoError>(HasSubstr("empty: is empty; expected text")));
  // The 256 tokens are the bytes.
  EXPECT_EQ(Tokenizer::train(text, {.vocab_size = 256}).kind(), "bytes");
  EXPECT_EQ(Tokenizer::train({}, {.vocab_size = 300}).vocab_size(), 256);
}

TEST(Tokenizer, trains_on_unsplit_text) {
  const std::string text = fixture_text("corpus.txt").substr(0, 20'000);
  const std::array<std::string_view, 1> texts = {text};
  const Tokenizer whole =
      Tokenizer::train(texts, {.vocab_size = 600, .pre_tokenization = PreTokenization::kNone});
  const Tokenizer cut = Tokenizer::train(texts, {.vocab_size = 600});
  EXPECT_LT(whole.encode(text).size(), cut.encode(text).size());
  EXPECT_EQ(whole.decode(whole.encode(text)), text);
  EXPECT_THAT(whole.pre_tokenize("a b"), ElementsAre("a b"));
  EXPECT_THAT(cut.pre_tokenize("a b"), ElementsAre("a", " b"));
  const Tokenizer prefixed = Tokenizer::train(texts, {.vocab_size = 600, .add_prefix_space = true});
  EXPECT_EQ(prefixed.encode("the"), prefixed.encode(" the"));
}

TEST(PreTokenization, has_names) {
  for (const char* name : {"none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2", "o200k"}) {
    EXPECT_EQ(to_string(parse_pre_tokenization(name).value()), name);
  }
  EXPECT_EQ(parse_pre_tokenization("GPT2"), std::nullopt);
}

}  // namespace
}  // namespace tensorgrad::test
