// SPDX-License-Identifier: MIT
// The real vocabularies of GPT-2, GPT-4, GPT-4o and Qwen3, which CMake downloads. The ids match
// Hugging Face's tokenizers and OpenAI's tiktoken (real.json, by make_real_fixtures.py), and the
// merges match the files. If the files are missing, the tests are skipped; in CI they fail.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "unit/io/io_test_util.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kReplacement = "\ufffd";

std::string vocabulary_path(const std::string& name) {
  return std::string(TENSORGRAD_VOCABULARIES) + "/" + name;
}

const nlohmann::ordered_json& real() {
  static const auto all = nlohmann::ordered_json::parse(fixture_text("real.json"));
  return all;
}

// Returns the texts of cases.json, followed by those of real.json.
const std::vector<std::string>& real_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> made = golden_cases().texts;
    for (const auto& text : real().at("texts")) made.push_back(text);
    return made;
  }();
  return texts;
}

std::string of_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// FNV-1a hash (64 bits) of the ids of texts. Each text contributes its count and its ids, each as 4
// bytes in little-endian order.
class IdsHash {
 public:
  void add(const Ids& ids) {
    number(static_cast<std::uint32_t>(ids.size()));
    for (const std::int32_t id : ids) number(static_cast<std::uint32_t>(id));
  }
  [[nodiscard]] std::string hex() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[value_ >> shift & 15];
    return digits;
  }

 private:
  void number(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
      value_ = (value_ ^ (value >> shift & 0xff)) * 0x100000001b3U;
    }
  }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

// Returns ids as in the fixture: a list, or for a long text the count and the hash.
nlohmann::ordered_json short_form(const Ids& ids) {
  if (ids.size() <= real().at("longest").get<std::size_t>()) return ids;
  IdsHash hash;
  hash.add(ids);
  return std::to_string(ids.size()) + " " + hash.hex();
}

std::string printable(std::string_view text) {
  return nlohmann::json(text.substr(0, 200))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void expect_ids(const Tokenizer& tokenizer, const nlohmann::ordered_json& expected,
                const std::vector<std::string>& texts) {
  ASSERT_EQ(expected.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Ids ids = tokenizer.encode(texts[i]);
    EXPECT_EQ(short_form(ids), expected[i]) << printable(texts[i]) << ::testing::PrintToString(ids);
  }
}

// Returns the tokenizer of the files of `name`. If `whole`, only the merges are used, on text that
// is not cut into pieces.
Tokenizer tokenizer_of(const std::string& name, bool whole = false) {
  BpeOptions options;
  if (whole) options.pre_tokenization = PreTokenization::kNone;
  if (name == "qwen3") {
    return whole ? Tokenizer::from_vocab_and_merges(vocabulary_path("qwen3/vocab.json"),
                                                    vocabulary_path("qwen3/merges.txt"), options)
                 : Tokenizer::from_file(vocabulary_path("qwen3"));
  }
  const std::string folder = name == "tiktoken_cl100k" ? "cl100k" : name;
  if (!whole) {
    options.pre_tokenization = parse_pre_tokenization(name).value();
    for (const auto& [content, id] : real()["vocabularies"][folder]["specials"].items()) {
      options.added_tokens.push_back({.content = content, .id = id.get<std::int32_t>()});
    }
  }
  if (name == "gpt2") {
    return Tokenizer::from_vocab_and_merges(vocabulary_path("gpt2/encoder.json"),
                                            vocabulary_path("gpt2/vocab.bpe"), options);
  }
  return Tokenizer::from_tiktoken(vocabulary_path(folder + "/" + folder + "_base.tiktoken"),
                                  options);
}

class RealVocabulary : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::filesystem::exists(vocabulary_path("complete.txt"))) return;
    const std::string reason = std::string("the real vocabularies are not in ") +
                               TENSORGRAD_VOCABULARIES +
                               ": run cmake again where pip can fetch them";
    if (std::getenv("CI") != nullptr) FAIL() << reason;
    GTEST_SKIP() << reason;
  }
  static std::string name() { return GetParam(); }
  static const nlohmann::ordered_json& expected() { return real()["vocabularies"][name()]; }
};

class RealTokenizer : public RealVocabulary {};

TEST_P(RealTokenizer, ids_match_the_library_and_text_round_trips) {
  const Tokenizer tokenizer = tokenizer_of(name());
  expect_ids(tokenizer, expected()["ids"], real_texts());
  const std::string corpus = fixture_text("corpus.txt");
  std::vector<std::string> parts;
  for (std::size_t at = 0, end = 0; at < corpus.size(); at = end) {
    end = std::min(at + real()["part"].get<std::size_t>(), corpus.size());
    while (end < corpus.size() && (corpus[end] & 0xc0) == 0x80) ++end;  // inside a character
    parts.push_back(corpus.substr(at, end - at));
  }
  parts.push_back(corpus);
  expect_ids(tokenizer, expected()["parts"], parts);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(corpus)), corpus);
  for (std::size_t i = 0; i < real_texts().size(); ++i) {
    // Qwen3 normalizes to NFC.
    const std::string text = expected()
                                 .value("decoded", nlohmann::ordered_json::object())
                                 .value(std::to_string(i), real_texts()[i]);
    const Ids ids = tokenizer.encode(real_texts()[i]);
    EXPECT_EQ(tokenizer.decode(ids), text) << printable(text);
    DecodeStream stream(tokenizer);
    std::string streamed;
    for (const std::int32_t id : ids) streamed += stream.step(id);
    EXPECT_EQ(streamed + stream.finish(), text) << printable(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, RealTokenizer,
                         ::testing::Values("gpt2", "cl100k", "tiktoken_cl100k", "o200k", "qwen3"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(RealVocabulary, has_the_tokens_of_the_file_and_those_that_were_added) {
  const Tokenizer tokenizer = tokenizer_of(name());
  const auto tokens = expected()["tokens"].get<std::int64_t>();
  std::int64_t largest = tokens - 1;
  const std::vector<AddedToken> added = tokenizer.added_tokens();
  EXPECT_EQ(added.size(), expected()["specials"].size());
  for (const AddedToken& token : added) {
    EXPECT_EQ(token.id, expected()["specials"].value(token.content, -1)) << token.content;
    EXPECT_EQ(tokenizer.token_to_id(token.content), token.id);
    EXPECT_EQ(tokenizer.encode(token.content), Ids{token.id});
    EXPECT_EQ(tokenizer.decode(Ids{token.id}), token.content);
    if (token.special) {
      EXPECT_GT(tokenizer.encode(token.content, {.parse_special = false}).size(), 1U);
      EXPECT_EQ(tokenizer.decode(Ids{token.id}, {.skip_special_tokens = true}), "");
    }
    largest = std::max<std::int64_t>(largest, token.id);
  }
  EXPECT_EQ(tokenizer.vocab_size(), largest + 1);
  EXPECT_EQ(tokenizer.token_count(), tokens + static_cast<std::int64_t>(added.size()));
}

// Encodes each token together with the next one. This covers every token and nearly every merge.
TEST_P(RealVocabulary, ids_of_token_pairs_match_the_library) {
  const Tokenizer tokenizer = tokenizer_of(name());
  const Tokenizer whole = tokenizer_of(name(), true);
  const std::int32_t tokens = expected()["tokens"], block = real()["block"];
  for (std::int32_t begin = 0; begin < tokens; begin += block) {
    IdsHash text_hash, bytes_hash;
    for (std::int32_t id = begin; id < std::min(begin + block, tokens); ++id) {
      const std::string both = whole.decode_bytes(Ids{id, (id + 1) % tokens});
      bytes_hash.add(whole.encode(both));
      if (whole.decode(Ids{id, (id + 1) % tokens}).find(kReplacement) == std::string::npos) {
        text_hash.add(tokenizer.encode(both));
      }
    }
    const auto i = static_cast<std::size_t>(begin / block);
    EXPECT_EQ(text_hash.hex(), expected()["neighbours"]["text"][i].get<std::string>())
        << "from token " << begin;
    EXPECT_EQ(bytes_hash.hex(), expected()["neighbours"]["bytes"][i].get<std::string>())
        << "from token " << begin;
  }
}

TEST_P(RealVocabulary, round_trips_any_bytes) {
  const Tokenizer whole = tokenizer_of(name(), true);
  std::vector<std::string> strings;
  for (const auto& digits : real()["bytes"]) strings.push_back(of_hex(digits));
  expect_ids(whole, expected()["bytes"], strings);
  const Tokenizer tokenizer = tokenizer_of(name());
  TestRandom random(26);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    while (text.size() < static_cast<std::size_t>(i)) text += static_cast<char>(random.next());
    strings.push_back(text);
  }
  for (const std::string& text : strings) {
    EXPECT_EQ(whole.decode_bytes(whole.encode(text)), text) << printable(text);
    // Text in NFC is decoded unchanged.
    const std::string again = tokenizer.decode_bytes(tokenizer.encode(text));
    EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(again)), again) << printable(text);
    if (name() != "qwen3") {
      EXPECT_EQ(again, text) << printable(text);
    }
  }
}

// Reads the pairs of a merges.txt.
Merges merges_of_file(const std::string& name) {
  std::ifstream in(vocabulary_path(name), std::ios::binary);
  Merges merges;
  std::string line;
  std::getline(in, line);
  EXPECT_TRUE(line.starts_with("#version")) << line;
  while (std::getline(in, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const std::size_t space = line.find(' ');
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

TEST_P(RealVocabulary, loses_no_merge) {
  const Tokenizer tokenizer = tokenizer_of(name(), true);
  const Merges merges = tokenizer.merges();
  EXPECT_EQ(merges.size(), expected()["merges"].get<std::size_t>());
  if (name() == "gpt2") {
    EXPECT_EQ(merges, merges_of_file("gpt2/vocab.bpe"));
  } else if (name() == "qwen3") {
    EXPECT_EQ(merges, merges_of_file("qwen3/merges.txt"));
  }
  // The tokenizer from tokenizer.json, and the one that is written and read again.
  const Tokenizer first = tokenizer_of(name());
  EXPECT_EQ(first.merges(), merges);
  const Tokenizer second = Tokenizer::from_json(first.to_json());
  EXPECT_EQ(second.merges(), merges);
  expect_ids(second, expected()["ids"], real_texts());
}

// Without tokenizer.json, a folder is read as transformers reads it. Without tokenizer_config.json,
// it is read as GPT-2.
class RealFolder : public RealVocabulary {};

TEST_P(RealFolder, with_only_vocab_and_merges_has_the_ids_of_the_library) {
  const std::map<std::string, std::string> files =
      name() == "gpt2"
          ? std::map<std::string, std::string>{{"encoder.json", "vocab.json"},
                                               {"vocab.bpe", "merges.txt"}}
          : std::map<std::string, std::string>{{"vocab.json", "vocab.json"},
                                               {"merges.txt", "merges.txt"},
                                               {"tokenizer_config.json", "tokenizer_config.json"}};
  const TempDir folder;
  for (const auto& [from, to] : files) {
    std::filesystem::copy_file(vocabulary_path(name() + "/" + from), folder / to);
  }
  const Tokenizer tokenizer = Tokenizer::from_file(folder.str());
  expect_ids(tokenizer, expected()["ids"], real_texts());
  EXPECT_EQ(tokenizer.eos_id(), name() == "gpt2" ? 50256 : 151645);
  if (name() == "qwen3") {
    EXPECT_EQ(tokenizer.pad_id(), 151643);
    EXPECT_EQ(tokenizer.added_tokens(), tokenizer_of("qwen3").added_tokens());
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, RealFolder, ::testing::Values("gpt2", "qwen3"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Vocabularies, RealVocabulary,
                         ::testing::Values("gpt2", "cl100k", "o200k", "qwen3"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tensorgrad::test
