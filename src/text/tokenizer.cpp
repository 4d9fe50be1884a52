// SPDX-License-Identifier: MIT
// Tokenizer: converts text to ids and back, and describes its vocabulary.
#include "tensorgrad/data/tokenizer.h"
#include "base/path.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "io/gzip.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/bpe_train.h"
#include "text/definition.h"
#include "text/pipeline.h"
#include "text/unicode.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 30;  // of a tokenizer file
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kSentencePieceFile = "tokenizer.model";
constexpr const char* kWordPieceFile = "vocab.txt";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kAddedTokensFile = "added_tokens.json";
constexpr std::array<std::string_view, 6> kPatternNames = {
    "none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2", "o200k"};

using Impl = std::shared_ptr<const detail::TokenizerImpl>;

Impl tokenizer_of(text::Definition definition) {
  auto bpe = std::make_shared<const text::Bpe>(std::move(definition.model));
  definition.model = {};
  return std::make_shared<const detail::TokenizerImpl>(std::move(definition), std::move(bpe));
}

// Returns a tokenizer with the same tokens and merges; all else is taken from `definition`.
Impl changed(const Impl& impl, text::Definition definition) {
  definition.model = {};
  return std::make_shared<const detail::TokenizerImpl>(std::move(definition), impl->bpe());
}

std::vector<AddedToken> special_tokens(const std::vector<std::string>& contents) {
  std::vector<AddedToken> tokens;
  for (const std::string& content : contents) tokens.push_back({.content = content});
  return tokens;
}

text::Id known_id(const detail::TokenizerImpl& impl, std::string_view token) {
  for (const AddedToken& added : impl.definition().added) {
    if (added.content == token) return added.id;
  }
  return text::find_token(impl.model(), token);
}

std::optional<std::int32_t> optional_id(text::Id id) {
  return id == text::kNoId ? std::nullopt : std::optional(id);
}

io::Content read_whole(const FileSource& source) { return io::Content(source, kLargestFile); }

text::Definition definition_of_pairs(const FileSource& vocab, const FileSource& merges,
                                     const BpeOptions& options) {
  return text::definition_of_pairs(read_whole(vocab).text(), vocab.name(),
                                   read_whole(merges).text(), merges.name(), options);
}

FileSource config_in(const FolderSource& folder) {
  return folder.has_file(kConfigFile) ? folder.file(kConfigFile)
                                      : FileSource::text("{}", kConfigFile);
}

// Reads a folder that transformers wrote for one of its slow tokenizers.
text::Definition definition_of_pairs_in(const FolderSource& folder) {
  text::Definition definition =
      definition_of_pairs(folder.file("vocab.json"), folder.file("merges.txt"), {});
  if (folder.has_file(kAddedTokensFile)) {
    const FileSource added = folder.file(kAddedTokensFile);
    text::take_added_ids(definition, read_whole(added).text(), added.name());
  }
  const FileSource config = config_in(folder);
  text::take_pairs_config(definition, read_whole(config).text(), config.name());
  return definition;
}

text::Definition sentencepiece_definition(const FileSource& file, const FileSource& config) {
  return text::definition_of_sentencepiece(read_whole(file).text(), file.name(),
                                           read_whole(config).text(), config.name());
}

text::Definition wordpiece_definition(const FileSource& file, const FileSource& config) {
  return text::definition_of_wordpiece(read_whole(file).text(), file.name(),
                                       read_whole(config).text(), config.name());
}

text::Definition sentencepiece_definition_in(const FolderSource& folder) {
  text::Definition definition =
      sentencepiece_definition(folder.file(kSentencePieceFile), config_in(folder));
  if (folder.has_file(kAddedTokensFile)) {
    const FileSource added = folder.file(kAddedTokensFile);
    text::take_added_ids(definition, read_whole(added).text(), added.name(), false);
  }
  return definition;
}

// Reads a tokenizer.json and the special tokens in the folder's configuration.
text::Definition definition_with_config(const FileSource& file, const FolderSource& folder) {
  text::Definition definition = text::definition_of_json(read_whole(file).text(), file.name());
  if (folder.has_file(kConfigFile)) {
    const FileSource config = folder.file(kConfigFile);
    text::take_config(definition, read_whole(config).text(), config.name());
  }
  return definition;
}

text::Definition definition_in(const FolderSource& folder) {
  const auto has = [&](const char* name) { return folder.has_file(name); };
  if (has(kTokenizerFile)) return definition_with_config(folder.file(kTokenizerFile), folder);
  const bool vocab = has("vocab.json");
  if (vocab && has("merges.txt")) return definition_of_pairs_in(folder);
  if (has(kSentencePieceFile)) return sentencepiece_definition_in(folder);
  if (has(kWordPieceFile))
    return wordpiece_definition(folder.file(kWordPieceFile), config_in(folder));
  return vocab ? definition_of_pairs_in(folder)
               : definition_with_config(folder.file(kTokenizerFile), folder);
}

void check_train_options(const BpeTrainOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw UserError("tokenizer training: " + what);
  };
  for (std::size_t i = 0; i < options.special_tokens.size(); ++i) {
    const std::string& token = options.special_tokens[i];
    const auto end = options.special_tokens.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(options.special_tokens.begin(), end, token) != end) {
      refuse("duplicate special token " + io::in_quotes(token));
    }
    std::string bytes;
    if (token.empty() || (text::bytes_of_symbols(token, bytes) && bytes.size() == 1)) {
      refuse("special token " + io::in_quotes(token) + " must have more than one character");
    }
  }
  const auto least = static_cast<std::int64_t>(options.special_tokens.size()) + 256;
  constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;
  if (options.vocab_size < least || options.vocab_size > kMaxVocabulary) {
    refuse("vocab_size must be from " + std::to_string(least) +
           " (all bytes and special tokens) to " + std::to_string(kMaxVocabulary) + ", got " +
           std::to_string(options.vocab_size));
  }
  if (options.min_frequency < 0) {
    refuse("min_frequency must be at least 0, got " + std::to_string(options.min_frequency));
  }
}

void check_ids(const detail::TokenizerImpl& impl, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    if (impl.added(id) != nullptr || impl.model().tokens.has(id)) continue;
    throw UserError("tokenizer: no token has the id " + std::to_string(id) + "; ids are below " +
                    std::to_string(impl.vocab_size()));
  }
}

// Truncates ids to `length`, on the left or on the right.
void cut_to(std::vector<std::int32_t>& ids, std::size_t length, bool left) {
  if (ids.size() <= length) return;
  if (left) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(length));
  ids.resize(length);
}

}  // namespace

std::string_view to_string(PreTokenization pattern) {
  return kPatternNames[static_cast<std::size_t>(pattern)];
}

std::optional<PreTokenization> parse_pre_tokenization(std::string_view name) {
  const auto found = std::find(kPatternNames.begin(), kPatternNames.end(), name);
  if (found == kPatternNames.end()) return std::nullopt;
  return static_cast<PreTokenization>(found - kPatternNames.begin());
}

Tokenizer::Tokenizer(Impl impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::from_file(const FileSource& source) {
  if (!source.in_memory()) {
    const std::filesystem::path path = utf8_path(source.name());
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) return from_folder(source.name());
    if (path.filename() == kTokenizerFile)
      return Tokenizer(tokenizer_of(definition_with_config(source, utf8_text(path.parent_path()))));
  }
  if (source.name().ends_with(".model")) return from_sentencepiece(source);
  if (source.name().ends_with(kWordPieceFile)) return from_wordpiece(source);
  return from_json(read_whole(source).text(), source.name());
}

Tokenizer Tokenizer::from_folder(const FolderSource& folder) {
  return Tokenizer(tokenizer_of(definition_in(folder)));
}

Tokenizer Tokenizer::from_sentencepiece(const FileSource& source) {
  return Tokenizer(
      tokenizer_of(sentencepiece_definition(source, FileSource::text("{}", kConfigFile))));
}

Tokenizer Tokenizer::from_wordpiece(const FileSource& source, bool lowercase) {
  const FileSource config = FileSource::text(
      lowercase ? R"({"do_lower_case": true})" : R"({"do_lower_case": false})", kConfigFile);
  return Tokenizer(tokenizer_of(wordpiece_definition(source, config)));
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view name) {
  return Tokenizer(tokenizer_of(text::definition_of_json(json, name)));
}

Tokenizer Tokenizer::from_vocab_and_merges(const FileSource& vocab, const FileSource& merges,
                                           const BpeOptions& options) {
  return Tokenizer(tokenizer_of(definition_of_pairs(vocab, merges, options)));
}

Tokenizer Tokenizer::from_tiktoken(const FileSource& source, const BpeOptions& options) {
  return Tokenizer(tokenizer_of(
      text::definition_of_tiktoken(read_whole(source).text(), source.name(), options)));
}

Tokenizer Tokenizer::train(std::span<const std::string_view> texts,
                           const BpeTrainOptions& options) {
  check_train_options(options);
  text::Definition definition;
  text::set_pre_tokenization(definition, options.pre_tokenization, options.add_prefix_space,
                             options.nfc);
  text::PieceCounts counts;
  std::int64_t done = 0, total = 0, reported = 0;
  for (const std::string_view one : texts) total += static_cast<std::int64_t>(one.size());
  const auto report = [&] {
    if (options.on_progress) options.on_progress({"counting words", done, total});
  };
  const auto take = [&](std::string_view piece) {
    const auto known = counts.find(piece);
    if (known != counts.end()) {
      ++known->second;
    } else {
      counts.emplace(piece, 1);
    }
    done += static_cast<std::int64_t>(piece.size());
    if (done - reported < (1 << 20)) return;
    reported = done;
    report();
  };
  const Impl cutter = tokenizer_of(definition);
  for (const std::string_view one : texts) cutter->pieces(one, take);
  report();
  text::TrainedBpe trained = text::train_bpe(counts, options.special_tokens, options);
  definition.model.tokens = text::TokenTable(std::move(trained.tokens));
  definition.model.merges = std::move(trained.merges);
  text::add_tokens(definition, special_tokens(options.special_tokens), "special tokens");
  return Tokenizer(tokenizer_of(std::move(definition)));
}

Tokenizer Tokenizer::train_from_files(const std::vector<FileSource>& sources,
                                      const BpeTrainOptions& options, std::uint64_t max_bytes) {
  check_train_options(options);
  std::vector<io::Content> contents;
  std::vector<std::string_view> texts;
  for (const FileSource& source : sources) {
    contents.push_back(io::read_inflated(source, max_bytes));
    std::string_view text = contents.back().text();
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    if (text.empty()) throw IoError(source.name() + ": is empty; expected text");
    texts.push_back(text);
  }
  return train(texts, options);
}

Tokenizer Tokenizer::bytes(const std::vector<std::string>& specials) {
  text::Definition definition;
  std::vector<text::TokenEntry> entries;
  for (int byte = 0; byte < 256; ++byte) {
    entries.push_back({std::string(1, static_cast<char>(byte)), byte, false});
  }
  definition.model.tokens = text::TokenTable(std::move(entries));
  text::add_tokens(definition, special_tokens(specials), "special tokens");
  return Tokenizer(tokenizer_of(std::move(definition)));
}

Tokenizer Tokenizer::characters(const std::vector<std::string>& symbols,
                                const std::vector<std::string>& specials) {
  text::Definition definition;
  definition.model.byte_level = false;
  std::vector<text::TokenEntry> entries;
  for (const std::string& symbol : symbols) {
    const auto id = static_cast<text::Id>(entries.size());
    entries.push_back(text::entry_of(symbol, id, false));
    if (!entries.back().literal) continue;
    throw IoError("characters: " + io::in_quotes(symbol) + " is not a single UTF-8 character");
  }
  text::check_entries(entries, "characters");
  definition.model.tokens = text::TokenTable(std::move(entries));
  text::add_tokens(definition, special_tokens(specials), "special tokens");
  return Tokenizer(tokenizer_of(std::move(definition)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text,
                                            const EncodeOptions& options) const {
  const text::Definition& definition = impl_->definition();
  std::vector<std::int32_t> before, behind, ids;
  if (options.add_special_tokens) {
    before = definition.before;
    behind = definition.behind;
  }
  const auto asked = [](const std::optional<text::Id>& id, const char* what) {
    if (!id)
      throw UserError("tokenizer: no " + std::string(what) + " token is set; call set_" + what +
                      "()");
    return *id;
  };
  impl_->encode(text, options.parse_special, ids);
  if (options.add_bos) {
    const text::Id bos = asked(definition.bos, "bos");
    const bool there = before.empty() ? !ids.empty() && ids.front() == bos : before.front() == bos;
    if (!there) before.insert(before.begin(), bos);
  }
  if (options.add_eos) {
    const text::Id eos = asked(definition.eos, "eos");
    const bool there = behind.empty() ? !ids.empty() && ids.back() == eos : behind.back() == eos;
    if (!there) behind.push_back(eos);
  }
  if (options.max_length != 0) {
    const auto around = static_cast<std::int64_t>(before.size() + behind.size());
    if (options.max_length < around || options.max_length < 0) {
      throw UserError("tokenizer: max_length " + std::to_string(options.max_length) +
                      " is too small for the " + std::to_string(around) +
                      " special tokens around a text");
    }
    cut_to(ids, static_cast<std::size_t>(options.max_length - around), options.truncate_left);
  }
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), behind.begin(), behind.end());
  return ids;
}

std::vector<std::vector<std::int32_t>> Tokenizer::encode_batch(std::span<const std::string> texts,
                                                               const EncodeOptions& options) const {
  std::vector<std::vector<std::int32_t>> all;
  all.reserve(texts.size());
  for (const std::string& one : texts) all.push_back(encode(one, options));
  return all;
}

TokenBatch Tokenizer::encode_padded(std::span<const std::string> texts,
                                    const EncodeOptions& options, const PadOptions& pad) const {
  PadOptions with_id = pad;
  if (!with_id.id) with_id.id = pad_id();
  return pad_tokens(encode_batch(texts, options), with_id);
}

TokenBatch pad_tokens(const std::vector<std::vector<std::int32_t>>& ids,
                      const PadOptions& options) {
  if (ids.empty()) throw UserError("pad_tokens: no sequences");
  if (options.length < 0 || options.multiple_of < 1) {
    throw UserError("pad_tokens: length must be at least 0 and multiple_of at least 1, got " +
                    std::to_string(options.length) + " and " + std::to_string(options.multiple_of));
  }
  std::size_t length = 1;
  for (const auto& row : ids) length = std::max(length, row.size());
  const auto multiple = static_cast<std::size_t>(options.multiple_of);
  length = (length + multiple - 1) / multiple * multiple;
  if (options.length > 0) length = static_cast<std::size_t>(options.length);
  TokenBatch batch;
  batch.rows = static_cast<std::int64_t>(ids.size());
  batch.length = static_cast<std::int64_t>(length);
  batch.ids.assign(ids.size() * length, options.id.value_or(0));
  batch.mask.assign(ids.size() * length, 0);
  for (std::size_t r = 0; r < ids.size(); ++r) {
    std::vector<std::int32_t> row = ids[r];
    cut_to(row, length, options.truncate_left);
    const std::size_t begin = r * length + (options.left ? length - row.size() : 0);
    std::copy(row.begin(), row.end(), batch.ids.begin() + static_cast<std::ptrdiff_t>(begin));
    std::fill_n(batch.mask.begin() + static_cast<std::ptrdiff_t>(begin), row.size(), 1.0F);
    batch.lengths.push_back(static_cast<std::int32_t>(row.size()));
  }
  return batch;
}

std::vector<std::string> Tokenizer::pre_tokenize(std::string_view text) const {
  std::vector<std::string> all;
  impl_->pieces(text, [&](std::string_view piece) { all.emplace_back(piece); });
  return all;
}

std::string Tokenizer::decode_bytes(std::span<const std::int32_t> ids,
                                    const DecodeOptions& options) const {
  std::string out;
  if (impl_->decodes_together()) {
    check_ids(*impl_, ids);
    return impl_->decoded(ids, options.skip_special_tokens, true);
  }
  for (const std::int32_t id : ids) {
    if (const AddedToken* const added = impl_->added(id)) {
      if (!added->special || !options.skip_special_tokens) out += impl_->text_of(*added);
    } else if (impl_->model().tokens.has(id)) {
      out += impl_->model().tokens.bytes_of(id);
    } else {
      check_ids(*impl_, {&id, 1});
    }
  }
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids,
                              const DecodeOptions& options) const {
  if (!impl_->decodes_together()) return text::as_utf8(decode_bytes(ids, options));
  check_ids(*impl_, ids);
  return text::as_utf8(impl_->decoded(ids, options.skip_special_tokens, false));
}

std::int64_t Tokenizer::vocab_size() const { return impl_->vocab_size(); }

std::int64_t Tokenizer::token_count() const {
  const auto& tokens = impl_->model().tokens;
  auto count = static_cast<std::int64_t>(tokens.count());
  for (const AddedToken& added : impl_->definition().added) count += tokens.has(added.id) ? 0 : 1;
  return count;
}

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return optional_id(known_id(*impl_, token));
}

std::optional<std::string> Tokenizer::id_to_token(std::int32_t id) const {
  if (const AddedToken* const added = impl_->added(id)) return added->content;
  if (!impl_->model().tokens.has(id)) return std::nullopt;
  return text::token_text(impl_->model(), id);
}

std::vector<AddedToken> Tokenizer::added_tokens() const { return impl_->definition().added; }

std::vector<std::pair<std::string, std::string>> Tokenizer::merges() const {
  const text::BpeModel& model = impl_->model();
  std::vector<std::pair<std::string, std::string>> all;
  all.reserve(model.merges.size());
  for (const text::Merge& merge : model.merges) {
    all.emplace_back(text::token_text(model, merge.left), text::token_text(model, merge.right));
  }
  return all;
}

std::string_view Tokenizer::kind() const {
  if (impl_->definition().subword) {
    switch (impl_->definition().subword->kind) {
      case text::Subword::Kind::kBpe: return "character BPE";
      case text::Subword::Kind::kUnigram: return "unigram";
      case text::Subword::Kind::kWordPiece: return "WordPiece";
    }
  }
  if (!impl_->model().byte_level) return "characters";
  return impl_->model().merges.empty() ? "bytes" : "byte-level BPE";
}

void Tokenizer::add_tokens(const std::vector<AddedToken>& tokens) {
  text::Definition definition = impl_->whole_definition();
  text::add_tokens(definition, tokens, "add_tokens");
  impl_ = changed(impl_, std::move(definition));
}

void Tokenizer::add_special_tokens(const std::vector<std::string>& contents) {
  add_tokens(special_tokens(contents));
}

std::optional<std::int32_t> Tokenizer::bos_id() const { return impl_->definition().bos; }
std::optional<std::int32_t> Tokenizer::eos_id() const { return impl_->definition().eos; }
std::optional<std::int32_t> Tokenizer::pad_id() const { return impl_->definition().pad; }
std::optional<std::int32_t> Tokenizer::unk_id() const { return impl_->model().unk; }

namespace {

Impl with_mark(const Impl& impl, std::optional<text::Id> text::Definition::* mark,
               std::string_view token) {
  const text::Id id = known_id(*impl, token);
  if (id == text::kNoId) throw UserError("tokenizer: unknown token " + io::in_quotes(token));
  text::Definition definition = impl->definition();
  definition.*mark = id;
  return changed(impl, std::move(definition));
}

}  // namespace

void Tokenizer::set_bos(std::string_view token) {
  impl_ = with_mark(impl_, &text::Definition::bos, token);
}
void Tokenizer::set_eos(std::string_view token) {
  impl_ = with_mark(impl_, &text::Definition::eos, token);
}
void Tokenizer::set_pad(std::string_view token) {
  impl_ = with_mark(impl_, &text::Definition::pad, token);
}

std::string Tokenizer::to_json() const {
  return text::to_tokenizer_json(impl_->whole_definition());
}

void Tokenizer::save(const FileSink& sink) const {
  const std::string json = to_json();
  io::OutputFile file(sink, json.size());
  file.write(std::as_bytes(std::span(json)));
  file.commit();
}

DecodeStream::DecodeStream(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(tokenizer), options_(options) {}

// Returns what follows the last output in `text`, the text of the window. Byte tokens may become
// invalid with the tokens after them; then the tokens held back are decoded by themselves.
std::string DecodeStream::unseen(const std::string& text) const {
  if (text.starts_with(shown_)) return text.substr(shown_.size());
  return tokenizer_.decode(std::span(window_).subspan(old_), options_);
}

// Keeps the ids of the last output in the window, because the text of a token depends on previous
// ones.
std::string DecodeStream::step_together(std::int32_t id) {
  window_.push_back(id);
  std::string text = tokenizer_.decode(window_, options_);
  if (text.size() <= shown_.size() || text.ends_with("\ufffd")) return {};
  std::string out = unseen(text);
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(old_));
  old_ = window_.size();
  shown_ = tokenizer_.decode(window_, options_);
  return out;
}

std::string DecodeStream::step(std::int32_t id) {
  if (tokenizer_.impl_->decodes_together()) return step_together(id);
  waiting_ += tokenizer_.decode_bytes({&id, 1}, options_);
  const std::size_t certain = waiting_.size() - text::unfinished_bytes(waiting_);
  std::string out = text::as_utf8(std::string_view(waiting_).substr(0, certain));
  waiting_.erase(0, certain);
  return out;
}

std::string DecodeStream::finish() {
  if (!tokenizer_.impl_->decodes_together()) return text::as_utf8(std::exchange(waiting_, {}));
  std::string out = unseen(tokenizer_.decode(window_, options_));
  window_.clear();
  old_ = 0;
  shown_.clear();
  return out;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
