// SPDX-License-Identifier: MIT
// Conversion between tokenizers of llama.cpp and tokenizer.json. "gpt2" is byte-level BPE with the
// name of a rule that splits text. "llama" is SentencePiece's BPE, which has scores instead of
// merges: of all neighbors that form a token, it merges those whose token has the highest score.
#include "lm/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "base/token_type.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

using TokenJson = nlohmann::json;
using Pair = std::pair<std::string, std::string>;

constexpr const char* kTokenizerPrefix = "tokenizer.ggml.";
constexpr const char* kSpaceMark = "\xE2\x96\x81";  // U+2581, which stands for a space
constexpr std::size_t kMaxMergedToken = 512;        // in bytes, of tokens made by merges

struct PreTokenizer {
  std::string_view name;  // in GGUF
  PreTokenization rule;
  bool ignore_merges;  // a piece that is a token becomes this token
  bool adds_bos;       // default of add_bos_token
};
// If several match a tokenizer, the first is written.
constexpr std::array<PreTokenizer, 12> kPreTokenizers = {{
    {"gpt-2", PreTokenization::kGpt2, false, false},
    {"phi-2", PreTokenization::kGpt2, false, false},
    {"mpt", PreTokenization::kGpt2, false, false},
    {"olmo", PreTokenization::kGpt2, false, false},
    {"modern-bert", PreTokenization::kGpt2, false, false},
    {"llama-bpe", PreTokenization::kCl100k, true, true},
    {"llama3", PreTokenization::kCl100k, true, true},
    {"llama-v3", PreTokenization::kCl100k, true, true},
    {"dbrx", PreTokenization::kCl100k, false, false},
    {"qwen2", PreTokenization::kQwen2, false, false},
    {"gpt-4o", PreTokenization::kO200k, false, false},
    {"llama4", PreTokenization::kO200k, false, false},
}};

// Returns a tokenizer.json of byte-level BPE with this rule, as a source of its parts.
TokenJson model_of_rule(PreTokenization rule) {
  constexpr std::string_view kNothing;
  return TokenJson::parse(
      Tokenizer::train(std::span(&kNothing, 1), {.vocab_size = 256, .pre_tokenization = rule})
          .to_json());
}

// Returns the normalizer that marks spaces as in SentencePiece's BPE. If `prefix`, it also adds a
// space at the beginning of a text.
TokenJson space_normalizer(bool prefix) {
  TokenJson replace = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}};
  if (!prefix) return replace;
  return {{"type", "Sequence"},
          {"normalizers", {{{"type", "Prepend"}, {"prepend", kSpaceMark}}, replace}}};
}

TokenJson space_decoder(bool prefix) {
  TokenJson steps = {{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
                     {{"type", "ByteFallback"}},
                     {{"type", "Fuse"}}};
  if (prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

// --- merges of SentencePiece's BPE ---

// Returns true if a byte begins a character. The text may be invalid UTF-8.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

// Returns all ways to split a token into two tokens, as merges. Merges of the same token are
// consecutive; tokens are in the order of their scores, the highest first.
std::vector<Pair> merges_of_scores(const std::vector<std::string>& tokens,
                                   const std::vector<float>& scores,
                                   const std::vector<bool>& mergeable) {
  std::unordered_map<std::string_view, std::size_t> ids;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!mergeable[i]) continue;
    ids.emplace(tokens[i], i);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<Pair> merges;
  for (const std::size_t i : order) {
    const std::string_view token = tokens[i];
    std::vector<std::array<std::size_t, 2>> ways;
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if (!begins_character(token[cut])) continue;
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right != ids.end()) ways.push_back({left->second, right->second});
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [left, right] : ways) merges.emplace_back(tokens[left], tokens[right]);
  }
  return merges;
}

// --- reading ---

class GgufTokenizerReader {
 public:
  GgufTokenizerReader(const GgufMetadata& metadata, const std::string& file)
      : file_(file), in_(metadata, file, kTokenizerPrefix) {}

  std::optional<Tokenizer> read() {
    if (!in_.has("model")) return std::nullopt;
    const std::string& model = in_.text("model");
    if (model == "none" || model == "no_vocab") return std::nullopt;
    if (model != "gpt2" && model != "llama") {
      in_.fail("model", "expected gpt2 or llama, got \"" + model.substr(0, 40) +
                            "\"; import the model without its tokenizer");
    }
    read_tokens();
    const bool bytes = model == "gpt2";
    const bool adds_bos = bytes ? read_byte_level() : read_pieces();
    read_marks(adds_bos, !bytes);
    return made();
  }

 private:
  void read_tokens() {
    tokens_ = in_.list<std::string>("tokens");
    types_.assign(tokens_.size(), kNormalToken);
    if (in_.has("token_type")) types_ = in_.list<std::int32_t>("token_type");
    if (types_.size() != tokens_.size()) in_.fail("token_type", "expected a type for each token");
    if (tokens_.empty()) in_.fail("tokens", "expected at least one token");
    TokenJson added = TokenJson::array();
    TokenJson vocab = TokenJson::object();
    std::set<std::string_view> seen;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (types_[id] == kUnusedToken) continue;
      if (!seen.insert(tokens_[id]).second)
        in_.fail("tokens", "token " + std::to_string(id) + " is there twice");
      const bool is_added = types_[id] == kControlToken || types_[id] == kUserDefinedToken ||
                            types_[id] == kUnknownToken;
      if (is_added) {
        added.push_back({{"id", id},
                         {"content", tokens_[id]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", types_[id] != kUserDefinedToken}});
      }
      if (types_[id] == kNormalToken || types_[id] == kByteToken || types_[id] == kUnknownToken)
        vocab.push_back({tokens_[id], id});
    }
    root_ = {{"version", "1.0"},          {"truncation", nullptr},
             {"padding", nullptr},        {"added_tokens", std::move(added)},
             {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
             {"post_processor", nullptr}, {"decoder", nullptr}};
    root_["model"] = {{"type", "BPE"}, {"unk_token", nullptr}, {"vocab", std::move(vocab)}};
  }

  // Both return the default of add_bos_token.
  bool read_byte_level() {
    const PreTokenizer* found = nullptr;
    const std::string& pre = in_.text("pre");
    for (const PreTokenizer& each : kPreTokenizers) {
      if (each.name == pre) found = &each;
    }
    if (found == nullptr) {
      in_.fail("pre", "the rule \"" + pre.substr(0, 40) +
                          "\" is not supported; import the model without its tokenizer");
    }
    const TokenJson rule = model_of_rule(found->rule);
    root_["pre_tokenizer"] = rule["pre_tokenizer"];
    root_["decoder"] = rule["decoder"];
    root_["model"]["ignore_merges"] = found->ignore_merges;
    TokenJson merges = TokenJson::array();
    for (const std::string& merge : in_.list<std::string>("merges")) {
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string::npos)
        in_.fail("merges", "expected two tokens, got \"" + merge.substr(0, 40) + "\"");
      merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
    }
    root_["model"]["merges"] = std::move(merges);
    return found->adds_bos;
  }

  bool read_pieces() {
    const std::vector<float>& scores = in_.list<float>("scores");
    if (scores.size() != tokens_.size()) in_.fail("scores", "expected a score for each token");
    std::vector<bool> mergeable;
    std::size_t bytes = 0;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      mergeable.push_back(types_[id] == kNormalToken);
      bytes += types_[id] == kByteToken ? 1U : 0U;
      if (types_[id] == kNormalToken && tokens_[id].size() > kMaxMergedToken) {
        in_.fail("tokens", "token " + std::to_string(id) + " has " +
                               std::to_string(tokens_[id].size()) + " bytes, expected at most " +
                               std::to_string(kMaxMergedToken));
      }
      if (scores[id] != scores[id]) in_.fail("scores", "a score is NaN");
    }
    const bool prefix = in_.boolean_or("add_space_prefix", true);
    root_["normalizer"] = space_normalizer(prefix);
    root_["decoder"] = space_decoder(prefix);
    TokenJson& model = root_["model"];
    const auto unknown = std::find(types_.begin(), types_.end(), kUnknownToken);
    if (unknown != types_.end())
      model["unk_token"] = tokens_[static_cast<std::size_t>(unknown - types_.begin())];
    model["fuse_unk"] = true;
    model["byte_fallback"] = bytes == 256;
    TokenJson merges = TokenJson::array();
    for (const auto& [left, right] : merges_of_scores(tokens_, scores, mergeable))
      merges.push_back({left, right});
    if (merges.empty() && bytes != 256) mark_spaces_of_characters(prefix);
    model["merges"] = std::move(merges);
    return true;
  }

  // Handles marked spaces if there are no merges. Each token is then a character, and
  // tokenizer.json has no decoder that replaces the marks.
  void mark_spaces_of_characters(bool prefix) {
    root_["normalizer"] = nullptr;
    if (prefix) {
      root_["pre_tokenizer"] = {{"type", "Metaspace"},
                                {"replacement", kSpaceMark},
                                {"prepend_scheme", "always"},
                                {"split", false}};
      return;
    }
    root_["decoder"] = {{"type", "Fuse"}};
    TokenJson& vocab = root_["model"]["vocab"];
    const auto mark = vocab.find(kSpaceMark);
    if (mark == vocab.end()) return;
    if (vocab.contains(" ")) in_.fail("tokens", "both U+2581 and the space are tokens");
    tokens_[mark->get<std::size_t>()] = " ";
    vocab[" "] = *mark;
    vocab.erase(kSpaceMark);
  }

  // Returns the token whose id is the value of `key` or, if that is missing, `usual`.
  std::optional<std::string> mark(const char* key, std::optional<std::size_t> usual) const {
    std::optional<std::size_t> id = usual;
    if (in_.has(key))
      id = static_cast<std::size_t>(in_.integer(key, 0, std::numeric_limits<std::uint32_t>::max()));
    // llama.cpp ignores ids that are not in the vocabulary.
    if (!id || *id >= tokens_.size() || types_[*id] == kUnusedToken) return std::nullopt;
    return tokens_[*id];
  }

  void read_marks(bool usual_bos, bool pieces) {
    const auto usual = [&](std::size_t id) {
      return pieces && id < types_.size() && types_[id] == kControlToken ? std::optional(id)
                                                                         : std::nullopt;
    };
    bos_ = mark("bos_token_id", usual(1));
    eos_ = mark("eos_token_id", usual(2));
    pad_ = mark("padding_token_id", std::nullopt);
    TokenJson around = TokenJson::array();
    TokenJson specials = TokenJson::object();
    const auto special = [&](const std::optional<std::string>& token) {
      if (!token) return;
      const auto id = std::find(tokens_.begin(), tokens_.end(), *token) - tokens_.begin();
      around.push_back({{"SpecialToken", {{"id", *token}, {"type_id", 0}}}});
      specials[*token] = {
          {"id", *token}, {"ids", TokenJson::array({id})}, {"tokens", TokenJson::array({*token})}};
    };
    const auto sequence = [](const char* name, int type) -> TokenJson {
      return {{"Sequence", {{"id", name}, {"type_id", type}}}};
    };
    if (in_.boolean_or("add_bos_token", usual_bos)) special(bos_);
    around.push_back(sequence("A", 0));
    if (in_.boolean_or("add_eos_token", false)) special(eos_);
    if (specials.empty()) return;
    root_["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single", around},
                               {"pair", {sequence("A", 0), sequence("B", 1)}},
                               {"special_tokens", specials}};
  }

  Tokenizer made() {
    std::string json;
    try {
      json = root_.dump();
    } catch (const nlohmann::json::exception&) {
      in_.fail("tokens", "a token or merge is not UTF-8");
    }
    Tokenizer tokenizer = Tokenizer::from_json(json, file_ + ": the tokenizer");
    if (bos_) tokenizer.set_bos(*bos_);
    if (eos_) tokenizer.set_eos(*eos_);
    if (pad_) tokenizer.set_pad(*pad_);
    return tokenizer;
  }

  const std::string& file_;
  GgufFields in_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
  std::optional<std::string> bos_, eos_, pad_;
  TokenJson root_;
};

// --- writing ---

[[noreturn]] void refuse_tokenizer(const std::string& what) {
  throw UserError("gguf_file: the tokenizer " + what +
                  "; llama.cpp has no such tokenizer (remove it from the model to write ids only)");
}

class GgufTokenizerWriter {
 public:
  GgufTokenizerWriter(const SavedModel& model, GgufMetadata& out)
      : tokenizer_(*model.tokenizer),
        size_(static_cast<std::size_t>(model.config.vocab_size)),
        root_(TokenJson::parse(tokenizer_.to_json())),
        out_(out) {}

  void write() {
    const std::string kind(tokenizer_.kind());
    if (kind != "byte-level BPE" && kind != "bytes" && kind != "character BPE" &&
        kind != "characters") {
      refuse_tokenizer("is of the kind " + kind);
    }
    if (size_ < static_cast<std::size_t>(tokenizer_.vocab_size()))
      refuse_tokenizer("has more tokens than the model");
    collect_tokens();
    if (kind == "byte-level BPE" || kind == "bytes") {
      write_byte_level(kind == "bytes");
    } else {
      write_pieces(kind == "characters");
    }
    put("tokens", GgufArray(tokens_));
    put("token_type", GgufArray(types_));
    write_marks();
  }

 private:
  void put(const char* key, GgufValue value) {
    out_[std::string(kTokenizerPrefix) + key] = std::move(value);
  }

  void collect_tokens() {
    tokens_.resize(size_);
    types_.assign(size_, kUnusedToken);
    for (const auto& [token, id] : root_["model"]["vocab"].items()) {
      tokens_[id.get<std::size_t>()] = token;
      types_[id.get<std::size_t>()] = kNormalToken;
    }
    for (const AddedToken& token : tokenizer_.added_tokens()) {
      if (token.lstrip || token.rstrip || token.single_word) {
        refuse_tokenizer("has the added token \"" + token.content +
                         "\", which takes the space beside it or is not found within words");
      }
      const auto id = static_cast<std::size_t>(token.id);
      tokens_[id] = token.content;
      types_[id] = token.special ? kControlToken : kUserDefinedToken;
    }
    for (std::size_t id = 0; id < size_; ++id) {
      if (types_[id] == kUnusedToken) tokens_[id] = "[PAD" + std::to_string(id) + "]";
    }
    const std::set<std::string_view> distinct(tokens_.begin(), tokens_.end());
    if (distinct.size() != tokens_.size()) refuse_tokenizer("has two tokens of one text");
  }

  void write_byte_level(bool no_merges) {
    const TokenJson& normalizer = root_["normalizer"];
    if (!normalizer.is_null() && normalizer["type"] != "NFC") refuse_tokenizer("normalizes text");
    const bool ignore_merges = root_["model"].value("ignore_merges", false);
    const PreTokenizer* found = no_merges ? &kPreTokenizers[0] : nullptr;
    for (const PreTokenizer& each : kPreTokenizers) {
      if (found == nullptr && each.ignore_merges == ignore_merges &&
          model_of_rule(each.rule)["pre_tokenizer"] == root_["pre_tokenizer"]) {
        found = &each;
      }
    }
    if (found == nullptr) refuse_tokenizer("cuts text into pieces by another rule");
    std::vector<std::string> merges;
    for (const auto& [left, right] : tokenizer_.merges()) merges.push_back(left + " " + right);
    put("model", "gpt2");
    put("pre", std::string(found->name));
    put("merges", GgufArray(std::move(merges)));
  }

  // Returns whether a space is added at the beginning of a text, or nullopt if spaces are not
  // marked as in SentencePiece.
  std::optional<bool> marks_spaces() const {
    const TokenJson& pre = root_["pre_tokenizer"];
    const TokenJson& normalizer = root_["normalizer"];
    if (pre.is_null()) {
      for (const bool prefix : {false, true}) {
        if (normalizer == space_normalizer(prefix)) return prefix;
      }
      return std::nullopt;
    }
    if (!normalizer.is_null() || pre["type"] != "Metaspace" || pre["replacement"] != kSpaceMark ||
        pre.value("split", true)) {
      return std::nullopt;
    }
    return pre.value("prepend_scheme", "always") != "never";
  }

  // Marks the space in a vocabulary of single characters.
  void mark_characters() {
    for (std::size_t id = 0; id < size_; ++id) {
      if (types_[id] != kNormalToken) continue;
      if (tokens_[id] == kSpaceMark) refuse_tokenizer("has U+2581, which stands for a space");
      if (tokens_[id] == " ") tokens_[id] = kSpaceMark;
    }
  }

  void write_pieces(bool characters) {
    bool prefix = false;
    if (characters) {
      mark_characters();
    } else {
      const std::optional<bool> found = marks_spaces();
      if (!found) refuse_tokenizer("normalizes text or cuts it into pieces");
      prefix = *found;
    }
    if (const auto unknown = tokenizer_.unk_id()) {
      types_[static_cast<std::size_t>(*unknown)] = kUnknownToken;
      put("unknown_token_id", static_cast<std::uint32_t>(*unknown));
    }
    if (root_["model"].value("byte_fallback", false)) {
      for (int byte = 0; byte < 256; ++byte) {
        constexpr std::string_view kDigits = "0123456789ABCDEF";
        const std::string name = std::string("<0x") + kDigits[static_cast<std::size_t>(byte / 16)] +
                                 kDigits[static_cast<std::size_t>(byte % 16)] + ">";
        const auto id = tokenizer_.token_to_id(name);
        if (!id) refuse_tokenizer("has no token " + name);
        types_[static_cast<std::size_t>(*id)] = kByteToken;
      }
    }
    put("model", "llama");
    put("pre", "default");
    put("scores", GgufArray(scores()));
    put("add_space_prefix", prefix);
  }

  // Returns scores with which llama.cpp merges in the order of the merges. Tokens without a merge
  // have lower scores.
  [[nodiscard]] std::vector<float> scores() const {
    const std::vector<Pair> merges = tokenizer_.merges();
    std::map<std::string, std::size_t> ranks;
    std::string last;
    for (const auto& [left, right] : merges) {
      const std::string result = left + right;
      if (!ranks.emplace(result, ranks.size()).second && result != last)
        refuse_tokenizer("has merges of one token that do not follow each other");
      last = result;
    }
    std::vector<float> scores;
    std::vector<bool> mergeable;
    std::size_t others = ranks.size();
    for (std::size_t id = 0; id < size_; ++id) {
      mergeable.push_back(types_[id] == kNormalToken);
      const auto found = ranks.find(tokens_[id]);
      scores.push_back(-static_cast<float>(found == ranks.end() ? others++ : found->second));
    }
    std::vector<Pair> given = merges;
    std::vector<Pair> implied = merges_of_scores(tokens_, scores, mergeable);
    std::sort(given.begin(), given.end());
    std::sort(implied.begin(), implied.end());
    if (given != implied) refuse_tokenizer("does not merge all neighbors whose text is a token");
    return scores;
  }

  // Returns the ids that the post-processor adds before and after a text.
  [[nodiscard]] std::array<std::vector<std::int32_t>, 2> around_text() const {
    for (std::size_t id = 0; id < size_; ++id) {
      if (types_[id] != kNormalToken) continue;
      const std::string text = tokenizer_.decode_bytes(std::array{static_cast<std::int32_t>(id)});
      const auto plain =
          tokenizer_.encode(text, {.add_special_tokens = false, .parse_special = false});
      if (plain.empty()) continue;
      const auto all = tokenizer_.encode(text, {.parse_special = false});
      const auto middle = std::search(all.begin(), all.end(), plain.begin(), plain.end());
      return {std::vector(all.begin(), middle),
              std::vector(middle + static_cast<std::ptrdiff_t>(plain.size()), all.end())};
    }
    return {};
  }

  void write_marks() {
    const auto id_of = [&](const char* key, std::optional<std::int32_t> id) {
      if (id) put(key, static_cast<std::uint32_t>(*id));
    };
    std::optional<std::int32_t> bos = tokenizer_.bos_id(), eos = tokenizer_.eos_id();
    const auto [before, behind] = around_text();
    const auto one = [&](const std::vector<std::int32_t>& ids, std::optional<std::int32_t>& mark) {
      if (ids.empty()) return false;
      if (ids.size() > 1 || (mark && *mark != ids[0]))
        refuse_tokenizer("puts tokens other than bos and eos around a text");
      mark = ids[0];
      return true;
    };
    const bool adds_bos = one(before, bos);
    const bool adds_eos = one(behind, eos);
    id_of("bos_token_id", bos);
    id_of("eos_token_id", eos);
    id_of("padding_token_id", tokenizer_.pad_id());
    put("add_bos_token", adds_bos);
    put("add_eos_token", adds_eos);
  }

  const Tokenizer& tokenizer_;
  std::size_t size_;
  TokenJson root_;
  GgufMetadata& out_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> types_;
};

}  // namespace

std::optional<Tokenizer> gguf_tokenizer(const GgufMetadata& metadata, const std::string& file) {
  return GgufTokenizerReader(metadata, file).read();
}

void add_gguf_tokenizer(const SavedModel& model, GgufMetadata& metadata) {
  const std::string prefix = kTokenizerPrefix;
  if (model.tokenizer) {
    GgufTokenizerWriter(model, metadata).write();
  } else {
    metadata[prefix + "model"] = "none";
  }
  constexpr std::array kEnds = {"eos_token_id", "eot_token_id", "eom_token_id"};
  if (model.eos_ids.size() > kEnds.size()) {
    throw UserError("gguf_file: llama.cpp has at most 3 ids that end a text, got " +
                    std::to_string(model.eos_ids.size()));
  }
  for (std::size_t i = 0; i < model.eos_ids.size(); ++i)
    metadata[prefix + kEnds[i]] = static_cast<std::uint32_t>(model.eos_ids[i]);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
