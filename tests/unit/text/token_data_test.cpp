// SPDX-License-Identifier: MIT
// Token files, sequences and datasets.
#include "tensorgrad/data/token_data.h"

#include <gmock/gmock.h>

#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int32_t> counted_up(std::int64_t count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(TokenFile, uses_two_bytes_for_small_vocabularies_and_four_for_large) {
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

TEST(TokenFile, invalid_files_are_rejected) {
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

TEST(TokenSequence, reads_from_memory_and_from_files_and_wraps_around) {
  const std::vector<std::int32_t> tokens = counted_up(23);
  const TempDir folder;
  write_tokens(folder / "t", tokens, 100);
  for (const TokenSequence& text :
       {TokenSequence(tokens), TokenSequence(TokenFile(folder / "t"))}) {
    EXPECT_EQ(text.size(), 23);
    EXPECT_EQ(text.read_all(), tokens);
    const auto [first, last] = text.split(0.2);
    EXPECT_EQ(first.size(), 19);
    EXPECT_EQ(last.read_all(), std::vector<std::int32_t>(tokens.begin() + 19, tokens.end()));
    std::vector<std::int32_t> wrapped(9);
    last.read(2, wrapped);
    for (std::size_t i = 0; i < wrapped.size(); ++i)
      EXPECT_EQ(wrapped[i], tokens[19 + (2 + i) % 4]);
  }
  std::vector<std::int32_t> one(1);
  EXPECT_THROW(TokenSequence().read(0, one), UserError);
  EXPECT_THROW((void)TokenSequence(tokens).split(1), UserError);
}

TEST(TokenDataset, drops_what_does_not_fill_an_example) {
  const auto inputs = [](std::int64_t count, std::int64_t length, std::int64_t stride) {
    const TokenDataset data(TokenSequence(counted_up(count)), {.length = length, .stride = stride});
    std::vector<std::vector<std::int32_t>> found;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const TokenExample example = data.at(i);
      EXPECT_EQ(example.counted, length);
      for (std::size_t k = 0; k < example.inputs.size(); ++k)
        EXPECT_EQ(example.targets[k], example.inputs[k] + 1);
      found.push_back(example.inputs);
    }
    return found;
  };
  using All = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(inputs(7, 2, 2), (All{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(inputs(7, 2, 0), inputs(7, 2, 2));
  EXPECT_EQ(inputs(7, 2, 3), (All{{0, 1}, {3, 4}}));
  EXPECT_EQ(inputs(7, 5, 1), (All{{0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}}));
  EXPECT_EQ(inputs(7, 6, 9), (All{{0, 1, 2, 3, 4, 5}}));
}

TEST(TokenDataset, counts_each_pair_once_if_the_tail_is_masked) {
  const TempDir folder;
  for (std::int64_t count = 2; count <= 30; ++count) {
    const std::vector<std::int32_t> tokens = counted_up(count);
    write_tokens(folder / "t", tokens, 100);
    for (std::int64_t length = 1; length <= 32; ++length) {
      for (const std::int64_t stride : {std::int64_t{1}, (length + 1) / 2, length}) {
        SCOPED_TRACE(std::to_string(count) + " tokens, length " + std::to_string(length) +
                     ", stride " + std::to_string(stride));
        const TokenDatasetOptions options{
            .length = length, .stride = stride, .tail = TokenTail::kMask};
        const TokenDataset data(TokenSequence(tokens), options);
        const TokenDataset from_file(TokenSequence(TokenFile(folder / "t")), options);
        std::map<std::int32_t, int> seen;
        for (std::int64_t e = 0; e < data.size(); ++e) {
          const TokenExample example = data.at(e);
          ASSERT_EQ(example.inputs.size(), static_cast<std::size_t>(length));
          ASSERT_EQ(example.targets.size(), static_cast<std::size_t>(length));
          std::int64_t counted = 0;
          for (std::size_t i = 0; i < example.inputs.size(); ++i) {
            if (example.targets[i] == kIgnoreIndex) continue;
            EXPECT_EQ(example.targets[i], example.inputs[i] + 1);
            ++seen[example.inputs[i]];
            ++counted;
          }
          EXPECT_EQ(example.counted, counted);
          EXPECT_GE(counted, 1);
          const TokenExample again = from_file.at(e);
          EXPECT_EQ(again.inputs, example.inputs);
          EXPECT_EQ(again.targets, example.targets);
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(count - 1));
        for (const auto& [token, times] : seen) EXPECT_EQ(times, 1) << token;
      }
    }
  }
}

TEST(TokenDataset, begins_the_last_masked_example_earlier) {
  // Eight tokens in examples of four: the second one has the last pair and three tokens of the
  // first one. The repeated target is ignored.
  const TokenSequence tokens(counted_up(8));
  const TokenDataset data(tokens, {.length = 4, .tail = TokenTail::kMask});
  EXPECT_EQ(data.size(), 2);
  EXPECT_THAT(data.at(1).inputs, ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(data.at(1).targets, ElementsAre(kIgnoreIndex, 5, 6, 7));
  // With a stride of 2, each example has two new targets and two inputs of context.
  const TokenDataset sliding(tokens, {.length = 4, .stride = 2, .tail = TokenTail::kMask});
  EXPECT_EQ(sliding.size(), 3);
  EXPECT_THAT(sliding.at(1).targets, ElementsAre(kIgnoreIndex, kIgnoreIndex, 5, 6));
  EXPECT_THAT(sliding.at(2).targets, ElementsAre(kIgnoreIndex, kIgnoreIndex, kIgnoreIndex, 7));
  // Fewer tokens than an example needs are padded.
  const TokenDataset one(tokens, {.length = 8, .tail = TokenTail::kMask});
  EXPECT_EQ(one.size(), 1);
  EXPECT_EQ(one.at(0).counted, 7);
  EXPECT_THAT(one.at(0).inputs, ElementsAre(0, 1, 2, 3, 4, 5, 6, 0));
  EXPECT_EQ(one.at(0).targets.back(), kIgnoreIndex);
}

// Returns how often each token is a target in an epoch. Each token of the text is its own position.
std::vector<int> times_as_target(const TokenDataset& data, std::int64_t size, std::int64_t epoch) {
  std::vector<int> times(static_cast<std::size_t>(size), 0);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const TokenExample example = data.at(i, epoch);
    for (std::size_t k = 0; k < example.inputs.size(); ++k) {
      EXPECT_EQ(example.targets[k], (example.inputs[k] + 1) % size);
      ++times[static_cast<std::size_t>(example.targets[k])];
    }
  }
  return times;
}

TEST(TokenDataset, wraps_from_another_token_in_each_epoch) {
  const TokenSequence tokens(counted_up(35));
  const TokenDatasetOptions options{.length = 5, .tail = TokenTail::kWrap, .seed = 9};
  const TokenDataset data(tokens, options);
  ASSERT_EQ(data.size(), 7);
  std::set<std::int32_t> begins;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(times_as_target(data, 35, epoch), std::vector<int>(35, 1));
    begins.insert(data.at(0, epoch).inputs[0]);
    EXPECT_EQ(data.at(3, epoch).inputs, TokenDataset(tokens, options).at(3, epoch).inputs);
  }
  EXPECT_GT(begins.size(), 1U);
}

TEST(TokenDataset, leaves_out_no_token_in_any_epoch_if_it_wraps) {
  for (const std::int64_t batch : {1, 3, 8}) {
    for (std::int64_t size = 5; size < 60; ++size) {
      const TokenDataset data(TokenSequence(counted_up(size)),
                              {.length = 5, .tail = TokenTail::kWrap, .batch = batch, .seed = 9});
      EXPECT_EQ(data.size() % batch, 0);
      EXPECT_LT(data.size() * 5 - size, batch * 5) << "less than a batch is repeated";
      for (std::int64_t epoch = 0; epoch < 2; ++epoch)
        EXPECT_THAT(times_as_target(data, size, epoch), Each(Ge(1)))
            << size << " tokens, batches of " << batch;
    }
  }
}

}  // namespace
}  // namespace tensorgrad::test
