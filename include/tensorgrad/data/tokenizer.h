// SPDX-License-Identifier: MIT
// Tokenizers: byte-level BPE as in Hugging Face's tokenizer.json, in vocab.json and merges.txt, and
// in tiktoken's files; SentencePiece's BPE and unigram models, as in tokenizer.json and in
// tokenizer.model; WordPiece, as in tokenizer.json and in BERT's vocab.txt; BPE training; bytes and
// characters as tokens. Errors about files are IoErrors that name the file and the position in it.
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

#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Rule that splits text into pre-tokens. BPE merges do not cross them.
enum class PreTokenization : std::uint8_t {
  kNone,            ///< The whole text is one pre-token.
  kGpt2,            ///< GPT-2.
  kCl100k,          ///< GPT-4 and Llama 3.
  kTiktokenCl100k,  ///< Like kCl100k, but trailing white space is one pre-token (tiktoken >= 0.8).
  kQwen2,           ///< Qwen2: like kCl100k, but each digit is a pre-token.
  kO200k            ///< GPT-4o.
};

/// Returns the name of a rule: "none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2" or "o200k".
std::string_view to_string(PreTokenization pattern);

/// Returns the rule with a name returned by to_string(), or nullopt if the name is unknown.
std::optional<PreTokenization> parse_pre_tokenization(std::string_view name);

/// Token that is searched for in the text before pre-tokenization.
struct AddedToken {
  std::string content;       ///< Text of the token, not empty.
  std::int32_t id = -1;      ///< -1: its id in the vocabulary, or the next free one.
  bool special = true;       ///< Control token, see `parse_special` and `skip_special_tokens`.
  bool single_word = false;  ///< Not matched inside a word.
  bool lstrip = false;       ///< Includes the white space before it.
  bool rstrip = false;       ///< Includes the white space after it.
  bool normalized = false;   ///< Searched for after normalization of the text.

  bool operator==(const AddedToken&) const = default;
};

/// Options of Tokenizer::encode().
struct EncodeOptions {
  bool add_special_tokens = true;  ///< Adds the tokens of the file's post-processor.
  bool add_bos = false;            ///< Adds bos unless the ids begin with it.
  bool add_eos = false;            ///< Adds eos unless the ids end with it.

  /// Encodes special tokens in the text as their ids. If false, "<|endoftext|>" is text like any
  /// other, as required for untrusted text.
  bool parse_special = true;

  std::int64_t max_length = 0;  ///< Limit on the number of ids, with all added ones; 0: none.
  bool truncate_left = false;   ///< Truncates the beginning of the text instead of its end.
};

/// Options of Tokenizer::decode().
struct DecodeOptions {
  bool skip_special_tokens = false;  ///< Leaves out special tokens.
};

/// Token sequences of equal length.
struct TokenBatch {
  std::int64_t rows = 0;              ///< Number of sequences.
  std::int64_t length = 0;            ///< Number of tokens per sequence, with padding.
  std::vector<std::int32_t> ids;      ///< [rows, length]
  std::vector<float> mask;            ///< [rows, length]: 1 for tokens, 0 for padding.
  std::vector<std::int32_t> lengths;  ///< [rows]: number of tokens without padding.
};

/// Options of pad_tokens().
struct PadOptions {
  std::int64_t length = 0;       ///< Length of all rows; 0: that of the longest row, at least 1.
  std::int64_t multiple_of = 1;  ///< Rounds the length up to a multiple of it, if `length` is 0.
  bool left = false;             ///< Pads at the beginning.
  bool truncate_left = false;    ///< Truncates long rows at the beginning.
  std::optional<std::int32_t> id = std::nullopt;  ///< Default: 0, or pad_id() in encode_padded().
};

/// Returns the sequences truncated or padded to one length. The default padding is 0. Throws
/// UserError if there are no sequences, `length` is negative or `multiple_of` is less than 1.
TokenBatch pad_tokens(const std::vector<std::vector<std::int32_t>>& ids,
                      const PadOptions& options = {});

/// Settings of a BPE tokenizer that vocabulary files do not contain.
struct BpeOptions {
  PreTokenization pre_tokenization = PreTokenization::kGpt2;  ///< Rule that splits text before BPE.
  bool add_prefix_space = false;  ///< Adds a space to a text that does not begin with one.
  bool nfc = false;               ///< Normalizes text to NFC, as Qwen2 does.
  std::vector<AddedToken> added_tokens = {};  ///< Tokens to add, as by Tokenizer::add_tokens().
};

/// Progress of BPE training.
struct BpeProgress {
  std::string_view phase;  ///< "counting words", "counting pairs" or "merging".
  std::int64_t done = 0;   ///< Bytes, different words or tokens processed, by phase.
  std::int64_t total = 0;  ///< Number of them in the whole phase.
};

/// Options of Tokenizer::train().
struct BpeTrainOptions {
  std::int64_t vocab_size = 32'000;  ///< Special tokens, 256 bytes and merges; at most 2^24.
  std::int64_t min_frequency = 2;    ///< Minimum number of occurrences of a merged pair.
  PreTokenization pre_tokenization = PreTokenization::kGpt2;  ///< Rule that splits text into words.
  bool add_prefix_space = false;                              ///< See BpeOptions::add_prefix_space.
  bool nfc = false;                                           ///< See BpeOptions::nfc.
  std::vector<std::string> special_tokens = {};               ///< Ids 0, 1, ...

  /// Called from time to time. Exceptions that it throws end the training.
  std::function<void(const BpeProgress&)> on_progress = nullptr;
};

namespace detail {
class TokenizerImpl;
}

/// Tokenizer of byte-level BPE, SentencePiece, WordPiece, bytes or characters. Copies are cheap and
/// independent of each other. Several threads can use one at once, unless one of them changes it.
class Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  ~Tokenizer() = default;

  /// Reads a tokenizer.json of byte-level BPE, SentencePiece or WordPiece, or a folder. In a
  /// folder, the first of these is read: tokenizer.json, vocab.json with merges.txt,
  /// tokenizer.model of SentencePiece, vocab.txt of BERT. A tokenizer_config.json in the folder
  /// sets the bos, eos and pad tokens that it names, and for other files than tokenizer.json also
  /// what they lack, such as added tokens. A file named *.model or *vocab.txt is read as
  /// from_sentencepiece() and from_wordpiece() do. Throws IoError if the files are malformed or use
  /// an unsupported feature (docs/text.md lists them).
  static Tokenizer from_file(const FileSource& source);

  /// Reads the tokenizer of a folder, like from_file().
  static Tokenizer from_folder(const FolderSource& folder);

  /// Parses the content of a tokenizer.json. `name` stands for the file in errors.
  static Tokenizer from_json(std::string_view json, std::string_view name = "tokenizer.json");

  /// Reads vocab.json and merges.txt (or vocab.bpe). The first line of the merges is skipped if it
  /// begins with "#version".
  static Tokenizer from_vocab_and_merges(const FileSource& vocab, const FileSource& merges,
                                         const BpeOptions& options = {});

  /// Reads a file of tiktoken, with a base64 token and its rank on each line. The rank is the id.
  static Tokenizer from_tiktoken(const FileSource& source, const BpeOptions& options);

  /// Reads a model of SentencePiece (tokenizer.model), BPE or unigram. The ids of a text are those
  /// of `SentencePieceProcessor.encode()`. Control tokens in a text are special tokens, see
  /// EncodeOptions::parse_special. Throws IoError if the file is malformed or uses an unsupported
  /// feature, such as models of words or characters.
  static Tokenizer from_sentencepiece(const FileSource& source);

  /// Reads a vocab.txt of BERT, with a token of WordPiece on each line. The id is the number of the
  /// line. Texts get the ids of `BertTokenizer(vocab, do_lower_case=lowercase)` of `transformers`.
  /// Throws IoError if the file is empty, not UTF-8 or has no token [UNK].
  static Tokenizer from_wordpiece(const FileSource& source, bool lowercase = true);

  /// Trains a byte-level BPE. Merges do not cross texts. Merges and ids are those of Hugging Face's
  /// `BpeTrainer` with the alphabet of all bytes. Needs about 100 bytes of memory for each distinct
  /// piece of text. Throws UserError if an option is out of range, or if special tokens are equal
  /// or have only one character.
  static Tokenizer train(std::span<const std::string_view> texts, const BpeTrainOptions& options);

  /// Like train(), with one text per file, plain or gzipped, without its byte order mark. Throws
  /// IoError if a file cannot be read, is empty or has more than `max_bytes` bytes after
  /// decompression.
  static Tokenizer train_from_files(const std::vector<FileSource>& sources,
                                    const BpeTrainOptions& options,
                                    std::uint64_t max_bytes = std::uint64_t{1} << 30);

  /// Returns a tokenizer of bytes. The id of a byte is its value; special tokens follow from 256.
  static Tokenizer bytes(const std::vector<std::string>& special_tokens = {});

  /// Returns a tokenizer of characters. Symbol i is token i; special tokens follow. A character is
  /// a code point in UTF-8. Throws IoError if a symbol is not a single character or occurs twice.
  static Tokenizer characters(const std::vector<std::string>& symbols,
                              const std::vector<std::string>& special_tokens = {});

  /// Returns the ids of a text, or of several. A text can contain any bytes. Throws UserError if
  /// the vocabulary has neither a token for a byte or character nor an unk token, if `add_bos` or
  /// `add_eos` is set without such a token, or if `max_length` is too small for the added tokens.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 const EncodeOptions& options = {}) const;
  [[nodiscard]] std::vector<std::vector<std::int32_t>> encode_batch(
      std::span<const std::string> texts, const EncodeOptions& options = {}) const;

  /// Returns the padded ids of several texts: encode_batch(), then pad_tokens() with pad_id().
  [[nodiscard]] TokenBatch encode_padded(std::span<const std::string> texts,
                                         const EncodeOptions& options = {},
                                         const PadOptions& pad = {}) const;

  /// Returns the pre-tokens of a text, after normalization. Added tokens are not searched for.
  [[nodiscard]] std::vector<std::string> pre_tokenize(std::string_view text) const;

  /// Returns the bytes of tokens. In byte-level BPE, they equal the encoded text, except for
  /// normalization, white space that added tokens matched, and an added prefix space. In other
  /// tokenizers, the file's decoder makes the text. Throws UserError if an id has no token.
  [[nodiscard]] std::string decode_bytes(std::span<const std::int32_t> ids,
                                         const DecodeOptions& options = {}) const;

  /// Like decode_bytes(), but replaces invalid UTF-8 by U+FFFD. Tokens of single bytes (<0x0A>)
  /// side by side are replaced each if they are not UTF-8 together, as in `tokenizers`.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   const DecodeOptions& options = {}) const;

  /// Returns the largest id plus 1, which is the number of rows of an embedding.
  [[nodiscard]] std::int64_t vocab_size() const;

  /// Returns the number of tokens. It is less than vocab_size() if some ids are not used.
  [[nodiscard]] std::int64_t token_count() const;

  /// Returns the id of a token, or the token of an id; nullopt if there is none. Tokens are written
  /// as in files: in byte-level BPE, other characters stand for unprintable bytes (U+0120 for a
  /// space).
  [[nodiscard]] std::optional<std::int32_t> token_to_id(std::string_view token) const;
  [[nodiscard]] std::optional<std::string> id_to_token(std::int32_t id) const;

  /// Returns the added tokens in the order of their ids.
  [[nodiscard]] std::vector<AddedToken> added_tokens() const;

  /// Returns the pairs that are merged, in order of rank, written as for token_to_id().
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> merges() const;

  /// Returns "byte-level BPE", "bytes", "characters", "character BPE", "unigram" or "WordPiece".
  [[nodiscard]] std::string_view kind() const;

  /// Adds tokens. A token in the vocabulary keeps its id. Throws UserError if a token is empty, or
  /// if its id differs from that in the vocabulary or belongs to another token.
  void add_tokens(const std::vector<AddedToken>& tokens);

  /// Adds special tokens by their contents. Throws the errors of add_tokens().
  void add_special_tokens(const std::vector<std::string>& contents);

  /// Returns the id of the bos, eos, pad or unk token, or nullopt if it is not set.
  [[nodiscard]] std::optional<std::int32_t> bos_id() const;
  [[nodiscard]] std::optional<std::int32_t> eos_id() const;
  [[nodiscard]] std::optional<std::int32_t> pad_id() const;
  [[nodiscard]] std::optional<std::int32_t> unk_id() const;

  /// Sets the bos, eos or pad token. Throws UserError if the token is unknown.
  void set_bos(std::string_view token);
  void set_eos(std::string_view token);
  void set_pad(std::string_view token);

  /// Returns the text of a tokenizer.json for from_json() and Hugging Face's `tokenizers`, which
  /// ignores its bos, eos and pad tokens (see lm::tokenizer_config_json()).
  [[nodiscard]] std::string to_json() const;

  /// Writes to_json() to a file, atomically. Throws IoError if it cannot be written.
  void save(const FileSink& sink) const;

 private:
  friend class DecodeStream;
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerImpl> impl);
  std::shared_ptr<const detail::TokenizerImpl> impl_;
};

/// Decodes tokens one by one, for text that is being generated. The texts of all step() calls and
/// finish() together equal Tokenizer::decode() of all ids, unless adjacent byte tokens such as
/// <0xFF> are not UTF-8. Then decode() replaces each byte by U+FFFD, as Hugging Face tokenizers do;
/// the stream keeps the characters before the invalid byte, which it has already returned.
class DecodeStream {
 public:
  /// Starts a text.
  explicit DecodeStream(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  /// Returns the text that is complete with this id. Bytes of an incomplete character are held
  /// back. Throws UserError if the id has no token.
  std::string step(std::int32_t id);

  /// Returns the bytes still held back, as U+FFFD.
  std::string finish();

 private:
  std::string step_together(std::int32_t id);
  std::string unseen(const std::string& text) const;

  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::string waiting_;
  std::vector<std::int32_t> window_;  // the tokens of the last text, and those held back
  std::size_t old_ = 0;               // of these the former
  std::string shown_;                 // their text
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
