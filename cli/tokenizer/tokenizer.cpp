// SPDX-License-Identifier: MIT
// tg tokenizer train, import, encode, decode and show.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run/progress.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/text.h"
#include "tensorgrad/data/token_data.h"
#include "tensorgrad/data/tokenizer.h"
#include "tensorgrad/error.h"
#include "text.h"
#include "tokenizer/commands.h"

namespace tensorgrad::cli {
namespace {

constexpr std::uint64_t kMaxText = std::uint64_t{4} << 30;  // bytes

using TokenizerJsonLine = nlohmann::ordered_json;

// Shows a progress bar for each phase of training.
class TrainingProgress {
 public:
  void update(const BpeProgress& now) {
    if (now.phase != phase_) {
      bar_.reset();
      phase_ = now.phase;
      const char* const unit = phase_ == "counting words"   ? "bytes counted"
                               : phase_ == "counting pairs" ? "words"
                                                            : "tokens";
      ProgressOptions options;
      options.unit = unit;
      bar_ = std::make_unique<Progress>(now.total, 0, options);
    }
    bar_->update(0, now.done, std::nullopt);
  }
  void finish() { bar_.reset(); }

 private:
  std::string phase_;
  std::unique_ptr<Progress> bar_;
};

Tokenizer tokenizer_at(const std::string& path) {
  return path == "bytes" ? Tokenizer::bytes() : Tokenizer::from_file(path);
}

std::string standard_input() {
  std::string all;
  char block[1 << 16];
  while (const std::size_t n = std::fread(block, 1, sizeof block, stdin)) {
    if (all.size() + n > kMaxText) throw IoError("standard input: larger than 4 GiB");
    all.append(block, n);
  }
  if (std::ferror(stdin) != 0) throw IoError("standard input: cannot be read");
  return all;
}

std::vector<std::string> texts_of(const TokenizerEncodeArguments& arguments) {
  if (arguments.text_given) return {arguments.text};
  if (arguments.files.empty()) return {standard_input()};
  std::vector<std::string> texts;
  for (const std::string& file : arguments.files)
    texts.push_back(file == "-" ? standard_input() : read_text_file(file, kMaxText));
  return texts;
}

EncodeOptions encode_options(const Tokenizer& tokenizer,
                             const TokenizerEncodeArguments& arguments) {
  const bool documents = arguments.files.size() > 1 && !arguments.json && tokenizer.eos_id();
  return {.add_special_tokens = !arguments.plain,
          .add_eos = documents || !arguments.eos.empty(),
          .parse_special = !arguments.plain};
}

void print_ids(const std::vector<std::int32_t>& ids) {
  std::string line;
  for (const std::int32_t id : ids) {
    if (!line.empty()) line += ' ';
    line += std::to_string(id);
  }
  fmt::print("{}\n", line);
}

// Encodes each line of `lines`, a JSON string. Throws UserError if a line is not one.
void encode_lines(const Tokenizer& tokenizer, std::string_view lines,
                  const TokenizerEncodeArguments& arguments) {
  const EncodeOptions options = encode_options(tokenizer, arguments);
  for (std::int64_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const auto text = TokenizerJsonLine::parse(line, nullptr, false);
    if (!text.is_string()) {
      throw UserError(fmt::format("line {}: expected a JSON string", number));
    }
    const std::string& string = text.get_ref<const std::string&>();
    const TokenizerJsonLine made = arguments.pre_tokens
                                       ? TokenizerJsonLine(tokenizer.pre_tokenize(string))
                                       : TokenizerJsonLine(tokenizer.encode(string, options));
    fmt::print("{}\n", made.dump(-1, ' ', false, TokenizerJsonLine::error_handler_t::replace));
  }
}

std::string marks_of(const AddedToken& token) {
  std::string marks = token.special ? "special" : "added";
  if (token.single_word) marks += ", single word";
  if (token.lstrip) marks += ", strips left";
  if (token.rstrip) marks += ", strips right";
  if (token.normalized) marks += ", normalized";
  return marks;
}

// Returns the special token in `text`: "<s>", or "<s>=5" for the id 5.
AddedToken special_of(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  AddedToken token{.content = text};
  if (equals == std::string::npos || equals == 0) return token;
  const char* const end = text.data() + text.size();
  std::int32_t id = 0;
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, id);
  if (error != std::errc() || stop != end || id < 0) return token;
  token.content.resize(equals);
  token.id = id;
  return token;
}

void say_what_was_made(const Tokenizer& tokenizer, const std::string& out) {
  fmt::print("{}: {}, {} tokens, {} merges\n", printable(out), tokenizer.kind(),
             tokenizer.vocab_size(), tokenizer.merges().size());
}

std::string id_text(const std::optional<std::int32_t>& id, const Tokenizer& tokenizer) {
  return id ? fmt::format("{} {}", *id, printable(*tokenizer.id_to_token(*id))) : "";
}

}  // namespace

int train_tokenizer(const TokenizerTrainArguments& arguments) {
  TrainingProgress progress;
  const auto trained = [&] {
    if (arguments.kind == "bytes") return Tokenizer::bytes(arguments.specials);
    if (arguments.kind == "characters") {
      std::string all;
      for (const std::string& path : arguments.data) all += read_text_file(path, kMaxText);
      return Tokenizer::characters(CharVocabulary::of(all).symbols(), arguments.specials);
    }
    return Tokenizer::train_from_files(
        std::vector<FileSource>(arguments.data.begin(), arguments.data.end()),
        {.vocab_size = arguments.vocab_size,
         .min_frequency = arguments.min_frequency,
         .pre_tokenization = *parse_pre_tokenization(arguments.pattern),
         .nfc = arguments.nfc,
         .special_tokens = arguments.specials,
         .on_progress = [&](const BpeProgress& now) { progress.update(now); }},
        kMaxText);
  };
  const Tokenizer tokenizer = trained();
  progress.finish();
  tokenizer.save(arguments.out);
  say_what_was_made(tokenizer, arguments.out);
  if (arguments.kind == "bpe" && tokenizer.vocab_size() < arguments.vocab_size) {
    fmt::print("no remaining pair occurs {} times: {} tokens fewer than requested\n",
               std::max<std::int64_t>(1, arguments.min_frequency),
               arguments.vocab_size - tokenizer.vocab_size());
  }
  return 0;
}

int import_tokenizer(const TokenizerImportArguments& arguments) {
  BpeOptions options;
  options.pre_tokenization = *parse_pre_tokenization(arguments.pattern);
  options.nfc = arguments.nfc;
  for (const std::string& special : arguments.specials) {
    options.added_tokens.push_back(special_of(special));
  }
  const auto read = [&] {
    if (!arguments.tiktoken.empty()) return Tokenizer::from_tiktoken(arguments.tiktoken, options);
    if (!arguments.sentencepiece.empty())
      return Tokenizer::from_sentencepiece(arguments.sentencepiece);
    if (!arguments.wordpiece.empty())
      return Tokenizer::from_wordpiece(arguments.wordpiece, !arguments.cased);
    return Tokenizer::from_vocab_and_merges(arguments.vocab, arguments.merges, options);
  };
  Tokenizer tokenizer = read();
  const bool own_rules = !arguments.sentencepiece.empty() || !arguments.wordpiece.empty();
  if (own_rules) tokenizer.add_tokens(options.added_tokens);
  tokenizer.save(arguments.out);
  say_what_was_made(tokenizer, arguments.out);
  return 0;
}

int encode_text(const TokenizerEncodeArguments& arguments) {
  Tokenizer tokenizer = tokenizer_at(arguments.tokenizer);
  if (!arguments.eos.empty()) tokenizer.set_eos(arguments.eos);
  const EncodeOptions options = encode_options(tokenizer, arguments);
  const std::vector<std::string> texts = texts_of(arguments);
  if (arguments.json) {
    for (const std::string& text : texts) encode_lines(tokenizer, text, arguments);
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::int32_t> ids;
  std::size_t read = 0;  // bytes
  for (const std::string& text : texts) {
    const std::vector<std::int32_t> more = tokenizer.encode(text, options);
    ids.insert(ids.end(), more.begin(), more.end());
    read += text.size();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!arguments.out.empty()) {
    write_tokens(arguments.out, ids, tokenizer.vocab_size());
    const auto bytes = static_cast<double>(read);
    fmt::print("{}: {} tokens from {} bytes, {:.3f} bytes per token, in {:.3f} s ({:.1f} MB/s)\n",
               printable(arguments.out), ids.size(), read,
               ids.empty() ? 0 : bytes / static_cast<double>(ids.size()), seconds,
               bytes / 1e6 / std::max(seconds, 1e-9));
    if (texts.size() > 1 && !tokenizer.eos_id()) {
      fmt::print(
          "the tokenizer has no end-of-text token: texts are not separated; use --eos to set "
          "one\n");
    }
  } else if (arguments.show) {
    for (const std::int32_t id : ids) {
      fmt::print("{}\t{}\n", id, printable(*tokenizer.id_to_token(id)));
    }
  } else {
    print_ids(ids);
  }
  return 0;
}

int decode_tokens(const TokenizerDecodeArguments& arguments) {
  const Tokenizer tokenizer = tokenizer_at(arguments.tokenizer);
  std::vector<std::int32_t> ids = arguments.ids;
  if (!arguments.file.empty()) {
    ids = TokenFile(arguments.file).read_all();
  } else if (ids.empty()) {
    const std::string words = standard_input();
    const char* at = words.data();
    const char* const end = at + words.size();
    const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    while ((at = std::find_if_not(at, end, is_space)) != end) {
      std::int32_t id = 0;
      const auto [stop, error] = std::from_chars(at, end, id);
      if (error != std::errc() || (stop != end && !is_space(*stop))) {
        const std::string word(at, std::find_if(at, end, is_space));
        throw UserError(fmt::format("standard input: expected token ids, got '{}'",
                                    printable(word.substr(0, 40))));
      }
      ids.push_back(id);
      at = stop;
    }
  }
  const std::string bytes =
      tokenizer.decode_bytes(ids, {.skip_special_tokens = arguments.skip_special});
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    throw IoError("standard output: cannot be written");
  }
  return 0;
}

int show_tokenizer(const std::string& path, bool json) {
  const Tokenizer tokenizer = tokenizer_at(path);
  const std::vector<AddedToken> added = tokenizer.added_tokens();
  const std::pair<const char*, std::optional<std::int32_t>> marks[] = {{"bos", tokenizer.bos_id()},
                                                                       {"eos", tokenizer.eos_id()},
                                                                       {"pad", tokenizer.pad_id()},
                                                                       {"unk", tokenizer.unk_id()}};
  if (json) {
    TokenizerJsonLine line = {{"kind", tokenizer.kind()},
                              {"vocab_size", tokenizer.vocab_size()},
                              {"tokens", tokenizer.token_count()},
                              {"merges", tokenizer.merges().size()}};
    for (const auto& [name, id] : marks) {
      line[name] = id ? TokenizerJsonLine(*id) : TokenizerJsonLine();
    }
    line["added"] = TokenizerJsonLine::array();
    for (const AddedToken& token : added) {
      line["added"].push_back(
          {{"id", token.id}, {"content", token.content}, {"special", token.special}});
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, TokenizerJsonLine::error_handler_t::replace));
    return 0;
  }
  fmt::print("kind        {}\nvocabulary  {} (rows of the embedding), {} tokens\nmerges      {}\n",
             tokenizer.kind(), tokenizer.vocab_size(), tokenizer.token_count(),
             tokenizer.merges().size());
  for (const auto& [name, id] : marks) {
    if (id) fmt::print("{:<12}{}\n", name, id_text(id, tokenizer));
  }
  for (const AddedToken& token : added) {
    fmt::print("{:>10}  {}  ({})\n", token.id, printable(token.content), marks_of(token));
  }
  return 0;
}

}  // namespace tensorgrad::cli
