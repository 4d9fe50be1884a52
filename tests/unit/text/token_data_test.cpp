// SPDX-License-Identifier: MIT
// Token files, and chunks that contain each pair of adjacent tokens exactly once.
#include "tensorgrad/data/token_data.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <tuple>

#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int32_t> counted_up(std::int64_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(TokenFile, holds_small_vocabularies_in_two_bytes_and_large_ones_in_four) {
  const TempDir folder;
  const std::vector<std::int32_t> tokens = {0, 1, 65'535, 7};
  write_tokens(folder / "small", tokens, 65'536);
  write_tokens(folder / "large", tokens, 65'537);
  for (const char* name : {"small", "large"}) {
    const TokenFile file(folder / name);
    EXPECT_EQ(file.size(), 4);
    EXPECT_EQ(file.read_all(), tokens);
    std::vector<std::int32_t> part(2);
    file.read(1, part);
    EXPECT_THAT(part, ElementsAre(1, 65'535));
    file.read(4, std::span<std::int32_t>());
    EXPECT_THAT([&] { file.read(3, part); },
                ThrowsMessage<UserError>(
                    HasSubstr("tokens 3 to 4 are out of range; the file has 4 tokens")));
    EXPECT_THAT([&] { file.read(-1, part); }, ThrowsMessage<UserError>(HasSubstr("has 4 tokens")));
  }
  // The file is readable by any reader of safetensors.
  const StoredFile small = read_safetensors(folder / "small");
  EXPECT_EQ(small.tensors.at("tokens").dtype, "U16");
  EXPECT_EQ(small.metadata.at("vocab_size"), "65536");
  EXPECT_EQ(read_safetensors(folder / "large").tensors.at("tokens").dtype, "U32");
  write_tokens(folder / "none", {}, 5);
  EXPECT_EQ(TokenFile(folder / "none").size(), 0);
  EXPECT_TRUE(TokenFile(folder / "none").read_all().empty());
}

TEST(TokenFile, is_read_in_blocks) {
  const TempDir folder;
  const std::vector<std::int32_t> tokens = counted_up(200'001);
  write_tokens(folder / "many", tokens, 200'001);
  EXPECT_EQ(TokenFile(folder / "many").read_all(), tokens);
}

TEST(TokenFile, reads_plain_numbers) {
  const TempDir folder;
  put_file(folder / "raw", std::string("\x01\x00\x02\x01\xff\xff\x00\x00", 8));
  EXPECT_THAT(TokenFile(folder / "raw", RawTokens::kU16).read_all(),
              ElementsAre(1, 258, 65'535, 0));
  EXPECT_THAT(TokenFile(folder / "raw", RawTokens::kU32).read_all(),
              ElementsAre(0x01020001, 65'535));
  EXPECT_EQ(TokenFile(folder / "raw", RawTokens::kU16).vocab_size(), 0);
  put_file(folder / "odd", "abc");
  EXPECT_THAT([&] { TokenFile(folder / "odd", RawTokens::kU16); },
              ThrowsMessage<IoError>(HasSubstr("has 3 bytes; expected a multiple of 2")));
  put_file(folder / "high", "\xff\xff\xff\xff");
  EXPECT_THAT([&] { std::ignore = TokenFile(folder / "high", RawTokens::kU32).read_all(); },
              ThrowsMessage<IoError>(HasSubstr("token 0 is 4294967295")));
}

TEST(TokenFile, refuses_what_it_cannot_be) {
  const TempDir folder;
  const auto refused = [&](const StoredFile& stored) {
    write_safetensors(folder / "f", stored);
    return io_error_of([&] { std::ignore = TokenFile(folder / "f").read_all(); });
  };
  const auto bytes = [](std::size_t n) { return std::vector<std::byte>(n); };
  EXPECT_THAT(refused({{{"other", {"U16", {2}, bytes(4)}}}, {}}),
              HasSubstr("has no tensor \"tokens\""));
  EXPECT_THAT(refused({{{"tokens", {"F32", {2}, bytes(8)}}}, {}}),
              HasSubstr("tensor \"tokens\" is F32 [2]; expected U16, U32 or I32 with one axis"));
  EXPECT_THAT(refused({{{"tokens", {"U16", {1, 2}, bytes(4)}}}, {}}),
              HasSubstr("expected U16, U32 or I32 with one axis"));
  EXPECT_THAT(refused({{{"tokens", {"U16", {2}, bytes(4)}}}, {{"vocab_size", "many"}}}),
              HasSubstr("vocab_size must be a number above 0, got \"many\""));
  std::vector<std::byte> five = bytes(4);
  five[2] = std::byte{5};
  EXPECT_THAT(refused({{{"tokens", {"U16", {2}, five}}}, {{"vocab_size", "5"}}}),
              HasSubstr("token 1 is 5; expected less than 5"));
  EXPECT_EQ(refused({{{"tokens", {"I32", {1}, bytes(4)}}}, {}}), "no error");
  put_file(folder / "short", "abc");
  EXPECT_THAT([&] { TokenFile(folder / "short"); },
              ThrowsMessage<IoError>(HasSubstr("truncated at byte 3")));
  EXPECT_THAT([&] { TokenFile(folder / "missing"); },
              ThrowsMessage<IoError>(HasSubstr("cannot be opened")));
  const std::vector<std::int32_t> tokens = {0, 3};
  EXPECT_THAT([&] { write_tokens(folder / "x", tokens, 3); },
              ThrowsMessage<IoError>(HasSubstr("token 1 is 3; expected 0 to 2")));
  const std::vector<std::int32_t> negative = {-1};
  EXPECT_THAT([&] { write_tokens(folder / "x", negative, 3); },
              ThrowsMessage<IoError>(HasSubstr("token 0 is -1")));
}

TEST(TokenChunks, hold_each_pair_once_whatever_the_lengths) {
  const TempDir folder;
  for (std::int64_t count = 2; count <= 40; ++count) {
    const std::vector<std::int32_t> tokens = counted_up(count);
    write_tokens(folder / "t", tokens, 100);
    for (std::int64_t length = 1; length <= 42; ++length) {
      const TokenChunks chunks(tokens, length);
      const TokenChunks from_file(TokenFile(folder / "t"), length);
      EXPECT_EQ(chunks.pairs(), count - 1);
      EXPECT_EQ(chunks.size(), (count - 2) / length + 1);
      std::map<std::int32_t, int> seen;
      for (std::int64_t c = 0; c < chunks.size(); ++c) {
        const TokenChunks::Chunk chunk = chunks.at(c);
        ASSERT_EQ(chunk.inputs.size(), static_cast<std::size_t>(length));
        ASSERT_EQ(chunk.targets.size(), static_cast<std::size_t>(length));
        std::int64_t counted = 0;
        for (std::size_t i = 0; i < chunk.inputs.size(); ++i) {
          if (chunk.targets[i] == kIgnoreIndex) continue;
          EXPECT_EQ(chunk.targets[i], chunk.inputs[i] + 1);
          ++seen[chunk.inputs[i]];
          ++counted;
        }
        EXPECT_EQ(chunk.counted, counted);
        const TokenChunks::Chunk again = from_file.at(c);
        EXPECT_EQ(again.inputs, chunk.inputs);
        EXPECT_EQ(again.targets, chunk.targets);
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(count - 1));
      for (const auto& [token, times] : seen) EXPECT_EQ(times, 1) << token;
    }
  }
}

TEST(TokenChunks, of_a_text_that_fills_them_lose_nothing) {
  // Eight tokens in chunks of four: the second chunk has the last pair and three tokens of the
  // first chunk. The repeated target is ignored.
  const std::vector<std::int32_t> tokens = counted_up(8);
  const TokenChunks chunks(tokens, 4);
  EXPECT_EQ(chunks.size(), 2);
  EXPECT_THAT(chunks.at(1).inputs, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(chunks.at(1).targets, ElementsAre(kIgnoreIndex, 5, 6, 7));
  // As many tokens as the length of a chunk are enough.
  const TokenChunks one(tokens, 8);
  EXPECT_EQ(one.size(), 1);
  EXPECT_EQ(one.at(0).counted, 7);
  EXPECT_THAT(one.at(0).inputs, ElementsAre(0, 1, 2, 3, 4, 5, 6, 0));
  EXPECT_EQ(one.at(0).targets.back(), kIgnoreIndex);
}

}  // namespace
}  // namespace tensorgrad::test
