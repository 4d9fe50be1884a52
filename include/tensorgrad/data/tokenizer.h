// SPDX-License-Identifier: MIT
// Text as tokens and back: byte-level BPE as in Hugging Face's tokenizer.json, in pairs of
// vocab.json and merges.txt and in tiktoken's files; training of it; bytes and characters as
// tokens. Errors about files are IoErrors that name the file and the place in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// How text is cut into pieces before merges are looked for, which cross no piece: the regular
// expressions of GPT-2, of GPT-4 (Llama 3 has it too), of Qwen2 (single digits) and of GPT-4o.
// kTiktokenCl100k is GPT-4's in the spelling of tiktoken 0.8 and later, whose white space at the
// end of a text is one piece.
enum class PreTokenization : std::uint8_t {
  kNone,
  kGpt2,
  kCl100k,
  kTiktokenCl100k,
  kQwen2,
  kO200k
};

// "none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2", "o200k".
std::string_view to_string(PreTokenization pattern);
// The other way; nothing where there is no such name.
std::optional<PreTokenization> parse_pre_tokenization(std::string_view name);

// A token that text is searched for before anything else.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;      // -1: what the vocabulary has it as, else the next one
  bool special = true;       // a mark, no text: DecodeOptions::skip_special_tokens leaves it out
  bool single_word = false;  // not inside of a word
  bool lstrip = false, rstrip = false;  // takes the white space before it, behind it, along
  bool normalized = false;              // looked for after the text was normalised

  bool operator==(const AddedToken&) const = default;
};

struct EncodeOptions {
  // What the file's post-processor puts before and behind a text.
  bool add_special_tokens = true;
  // The tokens of set_bos() and set_eos(), where the ids do not begin or end with them.
  bool add_bos = false, add_eos = false;
  // Special tokens that are written in the text become their ids. For text of strangers: false,
  // and "<|endoftext|>" in it is text like any other.
  bool parse_special = true;
  std::int64_t max_length = 0;  // of the ids, with all that was added; 0: no limit
  bool truncate_left = false;   // what is too long loses its beginning, not its end
};

struct DecodeOptions {
  bool skip_special_tokens = false;
};

// Rows of equal length.
struct TokenBatch {
  std::int64_t rows = 0, length = 0;
  std::vector<std::int32_t> ids;      // [rows, length]
  std::vector<float> mask;            // [rows, length]: 1 a token, 0 padding
  std::vector<std::int32_t> lengths;  // [rows]: tokens that are no padding
};

struct PadOptions {
  std::int64_t length = 0;       // of every row, which are cut to it; 0: that of the longest
  std::int64_t multiple_of = 1;  // the longest's length is rounded up to a multiple of it
  bool left = false;             // padding goes before the tokens
  bool truncate_left = false;
  std::optional<std::int32_t> id = std::nullopt;  // default: pad_id(), or 0 if there is none
};

// Rows of `ids` cut or padded to one length. UserError: no rows, or options out of range.
TokenBatch pad_tokens(const std::vector<std::vector<std::int32_t>>& ids,
                      const PadOptions& options = {});

// Beyond what the files of a vocabulary say.
struct BpeOptions {
  PreTokenization pre_tokenization = PreTokenization::kGpt2;
  bool add_prefix_space = false;  // a text that does not begin with a space gets one
  bool nfc = false;               // text is brought into NFC, as Qwen2's is
  std::vector<AddedToken> added_tokens = {};
};

struct BpeProgress {
  std::string_view phase;            // "counting words", "counting pairs", "merging"
  std::int64_t done = 0, total = 0;  // bytes, words, tokens
};

struct BpeTrainOptions {
  std::int64_t vocab_size = 32'000;  // tokens in all: special ones, the 256 bytes, merges
  std::int64_t min_frequency = 2;    // of a pair that is merged
  PreTokenization pre_tokenization = PreTokenization::kGpt2;
  bool add_prefix_space = false;
  bool nfc = false;
  std::vector<std::string> special_tokens = {};  // ids 0, 1, ...
  // Called now and then; what it throws ends the training.
  std::function<void(const BpeProgress&)> on_progress = nullptr;
};

namespace detail {
class TokenizerImpl;
}

// Copies share what does not change (moving copies); several threads may use one at once.
class Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  ~Tokenizer() = default;
  // A tokenizer.json of byte-level BPE (or one that to_json() made), or a folder with such a file
  // or with vocab.json and merges.txt; tokenizer_config.json beside it says which tokens are bos,
  // eos and pad, and for the two files how text is cut: as GPT2Tokenizer does where there is none.
  // IoError: it is none, or holds what is not read (see docs/text.md).
  static Tokenizer from_file(const std::string& path);
  // `json` is the file; `name` stands for it in messages.
  static Tokenizer from_json(std::string_view json, std::string_view name = "tokenizer.json");
  // vocab.json and merges.txt (or vocab.bpe). No merge is lost: the first line is left out where it
  // begins with "#version", and no other.
  static Tokenizer from_vocab_and_merges(const std::string& vocab_path,
                                         const std::string& merges_path,
                                         const BpeOptions& options = {});
  // A file of tiktoken: a token in base64 and its rank, which is its id, on each line.
  static Tokenizer from_tiktoken(const std::string& path, const BpeOptions& options);
  // A new BPE from `texts`, which merges do not cross. The same merges and ids as those of
  // Hugging Face's BpeTrainer with the alphabet of all bytes. Memory: some 100 bytes for each piece
  // of text that is unlike all others. UserError: options out of range.
  static Tokenizer train(std::span<const std::string_view> texts, const BpeTrainOptions& options);
  // The same from files, gzipped or not, each one text; a byte order mark is skipped.
  static Tokenizer train_from_files(const std::vector<std::string>& paths,
                                    const BpeTrainOptions& options,
                                    std::uint64_t max_bytes = std::uint64_t{1} << 30);
  // The id of a byte is its value; special tokens come behind, from 256 on.
  static Tokenizer bytes(const std::vector<std::string>& special_tokens = {});
  // The i-th character is token i; special tokens come behind. A character is a code point.
  // IoError: what is not one character in UTF-8, or is there twice.
  static Tokenizer characters(const std::vector<std::string>& symbols,
                              const std::vector<std::string>& special_tokens = {});

  // The ids of `text`, any bytes. Throws UserError where the vocabulary has no token for a byte or
  // a character and no unk token, naming both.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 const EncodeOptions& options = {}) const;
  [[nodiscard]] std::vector<std::vector<std::int32_t>> encode_batch(
      std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  // encode_batch() and pad_tokens().
  [[nodiscard]] TokenBatch encode_padded(std::span<const std::string> texts,
                                         const EncodeOptions& options = {},
                                         const PadOptions& pad = {}) const;

  // The pieces of `text` that merges do not cross, normalised; added tokens are not looked for.
  [[nodiscard]] std::vector<std::string> pre_tokenize(std::string_view text) const;

  // The bytes of the tokens: what was encoded, but for normal forms, white space that added tokens
  // took and a space that was put before. UserError: an id that no token has.
  [[nodiscard]] std::string decode_bytes(std::span<const std::int32_t> ids,
                                         const DecodeOptions& options = {}) const;
  // The same as UTF-8: what is none becomes U+FFFD.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   const DecodeOptions& options = {}) const;

  // The largest id and one: the rows that an embedding needs.
  [[nodiscard]] std::int64_t vocab_size() const;
  // How many ids have a token; less than vocab_size() where ids were left out.
  [[nodiscard]] std::int64_t token_count() const;
  // A token as the files write it: of bytes, those that are not printable as other characters (a
  // space is U+0120).
  [[nodiscard]] std::optional<std::int32_t> token_to_id(std::string_view token) const;
  [[nodiscard]] std::optional<std::string> id_to_token(std::int32_t id) const;
  // In the order of their ids.
  [[nodiscard]] std::vector<AddedToken> added_tokens() const;
  // The pairs that are merged, in order, as token_to_id() takes them.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> merges() const;
  // "byte-level BPE", "bytes", "characters".
  [[nodiscard]] std::string_view kind() const;

  // Adds tokens; one that the vocabulary has keeps its id. UserError: an id that another token has.
  void add_tokens(const std::vector<AddedToken>& tokens);
  void add_special_tokens(const std::vector<std::string>& contents);

  // Which tokens are what; nothing where nobody said so. The setters throw UserError where there is
  // no such token.
  [[nodiscard]] std::optional<std::int32_t> bos_id() const;
  [[nodiscard]] std::optional<std::int32_t> eos_id() const;
  [[nodiscard]] std::optional<std::int32_t> pad_id() const;
  [[nodiscard]] std::optional<std::int32_t> unk_id() const;
  void set_bos(std::string_view token);
  void set_eos(std::string_view token);
  void set_pad(std::string_view token);

  // A tokenizer.json, which from_json() and Hugging Face's `tokenizers` read as this tokenizer.
  [[nodiscard]] std::string to_json() const;
  void save(const std::string& path) const;

 private:
  friend class DecodeStream;
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerImpl> impl);
  std::shared_ptr<const detail::TokenizerImpl> impl_;
};

// Text while it is generated: what step() gives, put together, is decode() of all the ids.
class DecodeStream {
 public:
  explicit DecodeStream(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  // The text that is certain with this id: bytes that may begin a character wait for the rest.
  std::string step(std::int32_t id);
  // What still waits, as U+FFFD.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string waiting_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
