// SPDX-License-Identifier: MIT
// Token files, sequences and datasets.
#include "tensorgrad/data/token_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "base/divide.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/safetensors.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::string_view kTensorName = "tokens";
constexpr std::int64_t kMaxOfU16 = 65'536;
constexpr std::size_t kTokenBlock = 1 << 16;  // number of tokens converted at a time

template <class Word>
void append_words(std::span<const std::int32_t> tokens, std::vector<std::byte>& bytes) {
  bytes.resize(tokens.size() * sizeof(Word));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto word = static_cast<Word>(tokens[i]);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
}

std::int64_t vocab_size_of(const io::SafetensorsHeader& header, const std::string& path) {
  const auto found = header.metadata.find("vocab_size");
  if (found == header.metadata.end()) return 0;
  const std::string& text = found->second;
  std::int64_t size = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || stop != text.data() + text.size() || size < 1) {
    throw IoError(path + ": metadata: vocab_size must be a number above 0, got " +
                  io::in_quotes(text));
  }
  return size;
}

}  // namespace

void write_tokens(const FileSink& sink, std::span<const std::int32_t> tokens,
                  std::int64_t vocab_size) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    throw IoError(sink.name() + ": token " + std::to_string(i) + " is " +
                  std::to_string(tokens[i]) + "; expected 0 to " + std::to_string(vocab_size - 1));
  }
  const bool small = vocab_size <= kMaxOfU16;
  const std::uint64_t bytes = tokens.size() * (small ? 2 : 4);
  std::string header = "{\"__metadata__\":{\"vocab_size\":\"" + std::to_string(vocab_size) +
                       "\"},\"tokens\":{\"dtype\":\"" + (small ? "U16" : "U32") + "\",\"shape\":[" +
                       std::to_string(tokens.size()) + "],\"data_offsets\":[0," +
                       std::to_string(bytes) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  io::OutputFile file(sink, sizeof length + length + bytes);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header.data(), header.size())));
  std::vector<std::byte> block;
  for (std::size_t at = 0; at < tokens.size(); at += kTokenBlock) {
    const auto part = tokens.subspan(at, std::min(kTokenBlock, tokens.size() - at));
    if (small) {
      append_words<std::uint16_t>(part, block);
    } else {
      append_words<std::uint32_t>(part, block);
    }
    file.write(block);
  }
  file.commit();
}

TokenFile::TokenFile(const FileSource& source)
    : file_(std::make_shared<const io::InputFile>(source)) {
  const std::string& path = source.name();
  std::array<char, io::kLengthBytes> first{};
  const std::size_t there = std::min<std::uint64_t>(file_->size(), first.size());
  file_->read_at(0, std::as_writable_bytes(std::span(first.data(), there)));
  const std::uint64_t length =
      io::checked_header_length({first.data(), there}, file_->size(), path);
  std::string json(length, '\0');
  file_->read_at(io::kLengthBytes, std::as_writable_bytes(std::span(json.data(), json.size())));
  const io::SafetensorsHeader header = io::parse_safetensors_header(json, file_->size(), path);
  for (const io::SafetensorsEntry& entry : header.entries) {
    if (entry.name != kTensorName) continue;
    width_ = entry.dtype == "U16" ? 2 : entry.dtype == "U32" || entry.dtype == "I32" ? 4 : 0;
    if (width_ == 0 || entry.shape.size() != 1) {
      throw IoError(path + ": tensor \"tokens\" is " + entry.dtype + " " + to_string(entry.shape) +
                    "; expected U16, U32 or I32 with one axis");
    }
    size_ = entry.shape[0];
    begin_ = header.data_start + entry.begin;
  }
  if (width_ == 0) {
    throw IoError(path +
                  ": has no tensor \"tokens\" (to read raw numbers without a header, specify "
                  "their type)");
  }
  vocab_size_ = vocab_size_of(header, path);
}

TokenFile::TokenFile(const FileSource& source, RawTokens type)
    : file_(std::make_shared<const io::InputFile>(source)),
      width_(type == RawTokens::kU16 ? 2 : 4) {
  if (file_->size() % static_cast<std::uint64_t>(width_) != 0) {
    throw IoError(source.name() + ": has " + std::to_string(file_->size()) +
                  " bytes; expected a multiple of " + std::to_string(width_));
  }
  size_ = static_cast<std::int64_t>(file_->size() / static_cast<std::uint64_t>(width_));
}

void TokenFile::read(std::int64_t begin, std::span<std::int32_t> out, SourceLocation loc) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (begin < 0 || begin > size_ || count > size_ - begin) {
    throw UserError(file_->name() + ": tokens " + std::to_string(begin) + " to " +
                        std::to_string(begin + count - 1) + " are out of range; the file has " +
                        std::to_string(size_) + " tokens",
                    loc);
  }
  const std::uint64_t most =
      vocab_size_ > 0 ? static_cast<std::uint64_t>(vocab_size_) : std::uint64_t{1} << 31;
  std::vector<std::byte> block;
  for (std::size_t at = 0; at < out.size(); at += kTokenBlock) {
    const auto part = out.subspan(at, std::min(kTokenBlock, out.size() - at));
    const auto width = static_cast<std::size_t>(width_);
    const std::uint64_t first = static_cast<std::uint64_t>(begin) + at;
    block.resize(part.size() * width);
    file_->read_at(begin_ + first * width, block);
    for (std::size_t i = 0; i < part.size(); ++i) {
      std::uint32_t word = 0;  // files and supported machines are little-endian
      std::memcpy(&word, block.data() + i * width, width);
      if (word >= most || word > std::numeric_limits<std::int32_t>::max()) {
        throw IoError(file_->name() + ": token " + std::to_string(first + i) + " is " +
                      std::to_string(word) + "; expected less than " + std::to_string(most));
      }
      part[i] = static_cast<std::int32_t>(word);
    }
  }
}

std::vector<std::int32_t> TokenFile::read_all() const {
  std::vector<std::int32_t> all(static_cast<std::size_t>(size_));
  read(0, all);
  return all;
}

TokenSequence::TokenSequence(std::vector<std::int32_t> tokens)
    : tokens_(std::make_shared<const std::vector<std::int32_t>>(std::move(tokens))),
      end_(static_cast<std::int64_t>(tokens_->size())) {}

TokenSequence::TokenSequence(TokenFile file)
    : file_(std::make_shared<const TokenFile>(std::move(file))), end_(file_->size()) {}

void TokenSequence::read(std::int64_t begin, std::span<std::int32_t> out,
                         SourceLocation loc) const {
  if (size() == 0 || begin < 0) {
    throw UserError("TokenSequence: token " + std::to_string(begin) +
                        " is out of range; the sequence has " + std::to_string(size()) + " tokens",
                    loc);
  }
  std::int64_t at = begin % size();
  while (!out.empty()) {
    const auto part = std::min<std::size_t>(out.size(), static_cast<std::size_t>(size() - at));
    if (file_) {
      file_->read(begin_ + at, out.first(part), loc);
    } else {
      std::copy_n(tokens_->begin() + begin_ + at, part, out.begin());
    }
    out = out.subspan(part);
    at = 0;
  }
}

std::vector<std::int32_t> TokenSequence::read_all() const {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(size()));
  if (!tokens.empty()) read(0, tokens);
  return tokens;
}

std::pair<TokenSequence, TokenSequence> TokenSequence::split(double last,
                                                             SourceLocation loc) const {
  if (!(last >= 0 && last < 1)) {
    throw UserError(
        "TokenSequence: split: expected a fraction in [0, 1), got " + std::to_string(last), loc);
  }
  std::pair<TokenSequence, TokenSequence> parts(*this, *this);
  const std::int64_t edge = end_ - static_cast<std::int64_t>(static_cast<double>(size()) * last);
  parts.first.end_ = parts.second.begin_ = edge;
  return parts;
}

TokenDataset::TokenDataset(TokenSequence tokens, const TokenDatasetOptions& options,
                           SourceLocation loc)
    : tokens_(std::move(tokens)), options_(options) {
  const bool wraps = options.tail == TokenTail::kWrap;
  const auto check = [&](bool fits, const std::string& name, std::int64_t value,
                         const std::string& expected) {
    if (fits) return;
    throw UserError(
        "TokenDataset: " + name + " must be " + expected + ", got " + std::to_string(value), loc);
  };
  check(options.length >= 1, "length", options.length, "at least 1");
  check(options.batch >= 1, "batch", options.batch, "at least 1");
  check(options.stride >= 0 && (!wraps || options.stride == 0), "stride", options.stride,
        wraps ? "0 if the tail wraps" : "at least 0");
  if (options_.stride == 0) options_.stride = options.length;
  if (options.tail == TokenTail::kMask) {
    check(options_.stride <= options.length, "stride", options.stride,
          "at most the length, " + std::to_string(options.length) + ", if the tail is masked");
  }
  const std::int64_t least =
      options.tail == TokenTail::kMask ? 2 : options.length + (wraps ? 0 : 1);
  if (tokens_.size() < least) {
    throw UserError("TokenDataset: expected at least " + std::to_string(least) +
                        " tokens for examples of length " + std::to_string(options.length) +
                        ", got " + std::to_string(tokens_.size()),
                    loc);
  }
  if (wraps) {
    count_ = ceil_div(tokens_.size(), options.length * options.batch) * options.batch;
  } else {
    const std::int64_t more = std::max<std::int64_t>(tokens_.size() - 1 - options.length, 0);
    count_ = 1 + (options.tail == TokenTail::kMask ? ceil_div(more, options_.stride)
                                                   : more / options_.stride);
  }
}

std::int64_t TokenDataset::wrapped_begin(std::int64_t index, std::int64_t epoch) const {
  std::seed_seq mixed{options_.seed, static_cast<std::uint32_t>(epoch)};
  std::uint32_t first = 0;
  mixed.generate(&first, &first + 1);
  // The first `more` distances are one token longer. None exceeds `length`.
  const std::int64_t distance = tokens_.size() / count_, more = tokens_.size() % count_;
  return static_cast<std::int64_t>(first) % tokens_.size() + index * distance +
         std::min(index, more);
}

TokenExample TokenDataset::at(std::int64_t index, std::int64_t epoch, SourceLocation loc) const {
  if (index < 0 || index >= count_) {
    throw UserError("TokenDataset: example " + std::to_string(index) +
                        " is out of range; expected 0 to " + std::to_string(count_ - 1),
                    loc);
  }
  const std::int64_t length = options_.length;
  std::int64_t begin = index * options_.stride, used = length, repeated = 0;
  if (options_.tail == TokenTail::kWrap) {
    begin = wrapped_begin(index, epoch);
  } else if (options_.tail == TokenTail::kMask) {
    const std::int64_t pairs = tokens_.size() - 1;  // of a token and the next
    begin = std::max<std::int64_t>(0, std::min(begin, pairs - length));
    used = std::min(length, pairs);
    if (index > 0) repeated = (index - 1) * options_.stride + length - begin;
  }
  std::vector<std::int32_t> part(static_cast<std::size_t>(used) + 1);
  tokens_.read(begin, part, loc);
  TokenExample example;
  example.inputs.assign(part.begin(), part.end() - 1);
  example.targets.assign(part.begin() + 1, part.end());
  std::fill_n(example.targets.begin(), repeated, kIgnoreIndex);
  example.counted = used - repeated;
  example.inputs.resize(static_cast<std::size_t>(length), 0);
  example.targets.resize(static_cast<std::size_t>(length), kIgnoreIndex);
  return example;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
