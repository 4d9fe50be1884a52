// SPDX-License-Identifier: MIT
#include "lm/text_corpus.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "classify/fingerprint.h"
#include "os/process.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{4} << 30;
constexpr std::int64_t kFingerprintTokens = 1 << 16;

// Returns N of "bpe:N", or nullopt if `wanted` has another form. Throws UserError if N is invalid.
std::optional<std::int64_t> bpe_size(const std::string& wanted) {
  if (!wanted.starts_with("bpe:")) return std::nullopt;
  std::int64_t size = 0;
  const char* const end = wanted.data() + wanted.size();
  const auto [stop, error] = std::from_chars(wanted.data() + 4, end, size);
  if (error == std::errc() && stop == end && size >= 257 && size <= 1 << 24) return size;
  throw UserError(
      fmt::format("--tokenizer {}: expected bpe:N with N from 257 to {}", wanted, 1 << 24));
}

Tokenizer with_end(Tokenizer tokenizer) {
  tokenizer.set_eos(kEndOfText);
  return tokenizer;
}

// Returns a tokenizer trained on `documents`, the contents of `files`, or read from a file.
Tokenizer make_tokenizer(const std::string& wanted, const std::vector<std::string>& documents,
                         const std::vector<std::string>& files) {
  if (wanted == "bytes") return with_end(Tokenizer::bytes({kEndOfText}));
  if (wanted == "characters") {
    std::set<std::string> all;
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const CharVocabulary here = CharVocabulary::of(documents[i], files[i]);
      all.insert(here.symbols().begin(), here.symbols().end());
    }
    return with_end(Tokenizer::characters({all.begin(), all.end()}, {kEndOfText}));
  }
  if (const auto size = bpe_size(wanted)) {
    const std::vector<std::string_view> texts(documents.begin(), documents.end());
    return with_end(Tokenizer::train(texts, {.vocab_size = *size, .special_tokens = {kEndOfText}}));
  }
  if (wanted == "bpe") return make_tokenizer("bpe:", documents, files);  // throws: no N
  return Tokenizer::from_file(wanted);
}

// Returns true if the file is a token file. Other extensions than .safetensors are recognized by
// the first bytes: the size of the header, then the header.
bool holds_tokens(const std::string& path) {
  if (path.ends_with(".safetensors")) return true;
  std::error_code ignored;
  const fs::path name = os::utf8_path(path);
  if (!fs::is_regular_file(name, ignored)) return false;  // opening a pipe waits for its writer
  std::ifstream file(name, std::ios::binary);
  unsigned char start[9] = {};
  file.read(reinterpret_cast<char*>(start), sizeof start);
  return file.gcount() == sizeof start && start[6] == 0 && start[7] == 0 && start[8] == '{';
}

// Adds the size and evenly spaced ranges of the tokens.
void add_tokens(Fingerprint& print, const TokenSequence& text) {
  const std::int64_t size = text.size();
  print.add(&size, sizeof size);
  constexpr std::int64_t kStretches = 16;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < kStretches && size > 0; ++i) {
    const std::int64_t begin = i * size / kStretches;
    const std::int64_t end = (i + 1) * size / kStretches;
    tokens.resize(static_cast<std::size_t>(std::min(end - begin, kFingerprintTokens)));
    if (!tokens.empty()) text.read(begin, tokens);
    print.add(tokens.data(), tokens.size() * sizeof(std::int32_t));
  }
}

}  // namespace

std::vector<std::string> text_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (path.empty()) throw UserError("the path of a text file is empty");
    std::error_code error;
    if (!fs::is_directory(os::utf8_path(path), error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(os::utf8_path(path), error)) {
      if (entry.path().extension() == ".txt") found.push_back(os::utf8_text(entry.path()));
    }
    if (error) throw IoError(path + ": cannot be read: " + error.message());
    if (found.empty()) throw IoError(path + ": the folder has no .txt files");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

std::vector<std::string> read_documents(const std::vector<std::string>& files,
                                        double max_expansion) {
  std::vector<std::string> documents;
  for (const std::string& file : files) {
    if (holds_tokens(file)) {
      throw UserError(file +
                      ": not a text file; a token file must be the only input, and a model is "
                      "passed with --from");
    }
    documents.push_back(read_text_file(file, kMaxTextBytes, max_expansion));
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (documents.back().starts_with(kByteOrderMark)) documents.back().erase(0, 3);
  }
  return documents;
}

CorpusOptions text_options(const LmSettings& settings) {
  return {.holdout = settings.holdout, .max_expansion = settings.max_expansion};
}

TextCorpus read_corpus(const std::vector<std::string>& paths, const std::string& wanted,
                       const std::optional<Tokenizer>& given, const CorpusOptions& options) {
  Fingerprint print;
  const auto finished = [&](TextCorpus text) {
    add_tokens(print, text.split.train);
    add_tokens(print, text.split.validation);
    text.fingerprint = print.text();
    return text;
  };
  if (paths.size() == 1 && holds_tokens(paths[0])) {
    const bool made_of_text = wanted == "characters" || bpe_size(wanted);
    if (!given && made_of_text) {
      throw UserError(fmt::format(
          "{}: contains tokens; set --tokenizer to the file of the tokenizer that encoded them",
          paths[0]));
    }
    TextCorpus text{given ? *given : make_tokenizer(wanted, {}, {}), {}, "", 0};
    const TokenFile file(paths[0]);
    if (file.vocab_size() > text.tokenizer.vocab_size()) {
      throw UserError(fmt::format("{}: encoded with a tokenizer of {} tokens; this one has {}",
                                  paths[0], file.vocab_size(), text.tokenizer.vocab_size()));
    }
    std::tie(text.split.train, text.split.validation) = TokenSequence(file).split(options.holdout);
    return finished(std::move(text));
  }
  const std::vector<std::string> files = text_files(paths);
  const std::vector<std::string> documents = read_documents(files, options.max_expansion);
  TextCorpus text{given ? *given : make_tokenizer(wanted, documents, files),
                  {},
                  "",
                  static_cast<std::int64_t>(documents.size())};
  text.split = lm::pack_documents(documents, text.tokenizer,
                                  {.holdout = options.holdout,
                                   .encode = {.add_special_tokens = options.use == TextUse::kScore},
                                   .add_eos = options.use == TextUse::kTrain});
  return finished(std::move(text));
}

}  // namespace tensorgrad::cli
