// SPDX-License-Identifier: MIT
// Tokenizers and tokens in memory, compared with files.
#include <gmock/gmock.h>

#include <filesystem>

#include "support/file_pairs.h"
#include "tensorgrad/data/token_data.h"
#include "unit/io/io_test_util.h"
#include "unit/text/tokenizer_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

FileSource fixture(const std::string& name) { return read_file(fixture_path(name)); }

TEST(TokenizersInMemory, are_read_as_from_files) {
  const auto json = [](const FileSource& source) { return Tokenizer::from_file(source).to_json(); };
  expect_reads_bytes_as_files(as_bytes(fixture_text("gpt2.json")), json);
  expect_reads_bytes_as_files(as_bytes(fixture_text("vocab.json")), [](const FileSource& vocab) {
    return Tokenizer::from_vocab_and_merges(vocab, fixture("merges.txt")).to_json();
  });
  expect_reads_bytes_as_files(as_bytes("YQ== 0\nYg== 1\nYWI= 2\n"), [](const FileSource& ranks) {
    return Tokenizer::from_tiktoken(ranks, {}).to_json();
  });
  EXPECT_EQ(
      Tokenizer::from_vocab_and_merges(fixture("vocab.json"), fixture("merges.txt")).to_json(),
      Tokenizer::from_vocab_and_merges(fixture_path("vocab.json"), fixture_path("merges.txt"))
          .to_json());
}

TEST(TokenizersInMemory, are_written_as_to_files) {
  const Tokenizer tokenizer = Tokenizer::from_file(fixture("gpt2.json"));
  const auto bytes = bytes_written_by([&](const FileSink& sink) { tokenizer.save(sink); });
  EXPECT_EQ(Tokenizer::from_file(bytes).to_json(), tokenizer.to_json());
}

TEST(TokenizersInMemory, are_trained_as_on_files) {
  const TempDir folder;
  const std::string corpus = fixture_text("corpus.txt");
  put_file(folder / "a", "\xef\xbb\xbf" + corpus);
  put_file(folder / "b", gzipped(corpus));
  const std::vector<std::byte> a = read_file(folder / "a"), b = read_file(folder / "b");
  const BpeTrainOptions options{.vocab_size = 400};
  EXPECT_EQ(Tokenizer::train_from_files({a, b}, options).to_json(),
            Tokenizer::train_from_files({folder / "a", folder / "b"}, options).to_json());
  EXPECT_THAT([&] { Tokenizer::train_from_files({a, FileSource::text("", "none")}, options); },
              ThrowsMessage<IoError>(HasSubstr("none: is empty; expected text")));
}

// The special tokens come from the other files of the folder.
TEST(TokenizersInMemory, are_read_from_folders) {
  const std::string config = R"({"eos_token": "<|endoftext|>", "pad_token": "<|im_end|>"})";
  const FolderSource whole = {{"tokenizer.json", fixture("gpt2.json")},
                              {"tokenizer_config.json", FileSource::text(config)}};
  const FolderSource pairs = {{"vocab.json", fixture("vocab.json")},
                              {"merges.txt", fixture("merges.txt")},
                              {"added_tokens.json", FileSource::text(R"({"<new>": 9000})")}};
  const TempDir disk;
  for (const FolderSource& folder : {whole, pairs}) {
    const std::string path = disk / std::to_string(folder.entries().size());
    std::filesystem::create_directories(path);
    for (const std::string& name : folder.entries())
      write_file_atomically(path + "/" + name, folder.file(name).bytes());
    const Tokenizer in_memory = Tokenizer::from_folder(folder);
    const Tokenizer on_disk = Tokenizer::from_folder(path);
    EXPECT_EQ(in_memory.to_json(), on_disk.to_json());
    EXPECT_EQ(in_memory.eos_id(), on_disk.eos_id());
    EXPECT_EQ(in_memory.pad_id(), on_disk.pad_id());
    EXPECT_EQ(Tokenizer::from_file(path).to_json(), on_disk.to_json());
  }
  EXPECT_EQ(Tokenizer::from_folder(whole).pad_id(), 2);
  EXPECT_EQ(Tokenizer::from_folder(pairs).token_to_id("<new>"), 9000);
  // If a single file is given, no other file of the folder is read.
  EXPECT_EQ(Tokenizer::from_file({fixture("gpt2.json").bytes(), "tokenizer.json"}).eos_id(),
            std::nullopt);
  const FolderSource empty = {{"a", FileSource::text("")}};
  EXPECT_THAT([&] { (void)Tokenizer::from_folder(empty); },
              ThrowsMessage<IoError>(HasSubstr("<memory>/tokenizer.json: cannot be opened")));
}

TEST(TokensInMemory, are_written_and_read_as_files) {
  const std::vector<std::int32_t> tokens = {0, 1, 65'535, 7, 7};
  const auto all = [](const FileSource& source) {
    const TokenFile file(source);
    return std::to_string(file.vocab_size()) + bits_of_range(file.read_all());
  };
  for (const std::int64_t vocab_size : {65'536, 65'537}) {
    const auto bytes =
        bytes_written_by([&](const FileSink& sink) { write_tokens(sink, tokens, vocab_size); });
    expect_reads_bytes_as_files(bytes, all);
  }
  const std::vector<std::uint16_t> raw = {3, 2, 1};
  expect_reads_bytes_as_files(std::as_bytes(std::span(raw)), [](const FileSource& source) {
    return bits_of_range(TokenFile(source, RawTokens::kU16).read_all());
  });
}

// Copies share the bytes, which nothing else owns.
TEST(TokensInMemory, keep_the_bytes_that_are_moved_in) {
  std::vector<std::byte> bytes;
  write_tokens(bytes, std::vector<std::int32_t>{5, 6, 7, 8}, 9);
  TokenFile kept(std::move(bytes));
  const TokenFile copy = kept;
  std::vector<std::byte> other;
  write_tokens(other, std::vector<std::int32_t>{1}, 9);
  kept = TokenFile(other);
  std::vector<std::int32_t> part(2);
  copy.read(1, part);
  EXPECT_THAT(part, ElementsAre(6, 7));
  EXPECT_THAT(kept.read_all(), ElementsAre(1));
  EXPECT_THAT([&] { copy.read(3, part); },
              ThrowsMessage<UserError>(HasSubstr("<memory>: tokens 3 to 4 are out of range")));
}

}  // namespace
}  // namespace tensorgrad::test
