// SPDX-License-Identifier: MIT
#include "text/json_reader.h"

#include <algorithm>

#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::text {
namespace {

using SaxJson = nlohmann::json;

constexpr std::size_t kMaxJsonDepth = 32;

class JsonReader : public nlohmann::json_sax<SaxJson> {
 public:
  JsonReader(std::string_view json, std::string_view file, JsonFile kind)
      : json_(json), file_(file), kind_(kind) {}

  TokenizerJson read() {
    SaxJson::sax_parse(json_.begin(), json_.end(), this);
    return std::move(result_);
  }

  bool null() override { return value(nullptr, "null"); }
  bool boolean(bool given) override { return value(given, "a boolean"); }
  bool number_integer(std::int64_t given) override { return value(given, "a negative number"); }
  bool number_float(double given, const std::string&) override {
    return value(given, "a fractional number");
  }
  bool number_unsigned(std::uint64_t given) override {
    if (mode_ != Mode::kVocab) return value(given, "a number");
    result_.vocab.emplace_back(std::move(key_), given);
    return true;
  }
  bool string(std::string& given) override {
    if (mode_ == Mode::kMerges) {
      const std::size_t space = given.find(' ');
      if (space == std::string::npos || given.find(' ', space + 1) != std::string::npos) {
        fail(where() + ": expected two tokens separated by a space, got " + io::in_quotes(given));
      }
      result_.merges.emplace_back(given.substr(0, space), given.substr(space + 1));
      return true;
    }
    if (mode_ == Mode::kMerge) {
      if (halves_ == 2) fail(where() + ": expected two strings, got a third");
      (halves_++ == 0 ? result_.merges.back().first : result_.merges.back().second) = given;
      return true;
    }
    return value(std::move(given), "a string");
  }
  bool binary(binary_t&) override { return value(nullptr, "binary data"); }

  bool start_object(std::size_t) override {
    if (mode_ == Mode::kTree && at_vocab()) {
      result_.has_vocab = true;
      mode_ = Mode::kVocab;
      return true;
    }
    return open(SaxJson::object(), "an object");
  }
  bool key(std::string& name) override {
    if (mode_ == Mode::kTree && open_.back()->contains(name)) {
      fail("duplicate key " + io::in_quotes(name) + " in one object");
    }
    key_ = std::move(name);
    // Marks the key as present, to detect a second vocabulary.
    if (mode_ == Mode::kTree) (*open_.back())[key_] = nullptr;
    return true;
  }
  bool end_object() override {
    if (mode_ == Mode::kVocab) {
      mode_ = Mode::kTree;
    } else {
      open_.pop_back();
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (mode_ == Mode::kMerges) {
      result_.merges.emplace_back();
      halves_ = 0;
      mode_ = Mode::kMerge;
      return true;
    }
    if (mode_ == Mode::kTree && in_model() && key_ == "merges") {
      result_.has_merges = true;
      mode_ = Mode::kMerges;
      return true;
    }
    return open(SaxJson::array(), "an array");
  }
  bool end_array() override {
    if (mode_ == Mode::kMerge) {
      if (halves_ != 2) fail(where() + ": expected two strings, got " + std::to_string(halves_));
      mode_ = Mode::kMerges;
    } else if (mode_ == Mode::kMerges) {
      mode_ = Mode::kTree;
    } else {
      open_.pop_back();
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    const std::size_t at = std::min(position > 0 ? position - 1 : 0, json_.size());
    fail("is not JSON at byte " + std::to_string(at) + ": " +
         (at == json_.size() ? "unexpected end"
                             : "unexpected " + io::in_quotes(json_.substr(at, 1))));
  }

 private:
  enum class Mode { kTree, kVocab, kMerges, kMerge };

  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(std::string(file_) + ": " + what);
  }
  [[nodiscard]] bool in_model() const {
    return kind_ == JsonFile::kTokenizer && open_.size() == 2 && path_ == "model";
  }
  [[nodiscard]] bool at_vocab() const {
    return kind_ == JsonFile::kVocab ? open_.empty() : in_model() && key_ == "vocab";
  }
  [[nodiscard]] std::string where() const {
    return "model.merges[" +
           std::to_string(result_.merges.size() - (mode_ == Mode::kMerge ? 1 : 0)) + "]";
  }

  // Adds a value to the tree.
  SaxJson* place(SaxJson given) {
    if (open_.empty()) {
      *result_.tree = std::move(given);
      return &*result_.tree;
    }
    SaxJson& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(given));
      return &parent.back();
    }
    SaxJson& member = parent[key_];
    member = std::move(given);
    return &member;
  }
  bool value(SaxJson given, const char* what) {
    unexpected(what);
    place(std::move(given));
    return true;
  }
  bool open(SaxJson given, const char* what) {
    unexpected(what);
    if (open_.size() == kMaxJsonDepth) {
      fail("nested more than " + std::to_string(kMaxJsonDepth) + " levels deep");
    }
    if (open_.size() == 1) path_ = key_;
    open_.push_back(place(std::move(given)));
    return true;
  }
  // Reports a wrong type in a vocabulary or in merges.
  void unexpected(const char* what) const {
    if (mode_ == Mode::kVocab) {
      fail("vocabulary: expected an integer for " + io::in_quotes(key_) + ", got " + what);
    }
    if (mode_ == Mode::kMerges || mode_ == Mode::kMerge) {
      fail(where() + ": expected two strings or one with a space, got " + what);
    }
    if (kind_ == JsonFile::kVocab) fail(std::string("expected an object, got ") + what);
  }

  std::string_view json_, file_;
  JsonFile kind_;
  Mode mode_ = Mode::kTree;
  std::vector<SaxJson*> open_;  // from the root to the innermost; none moves while it is open
  std::string path_;            // key of the second level
  std::string key_;
  int halves_ = 0;
  TokenizerJson result_;
};

}  // namespace

TokenizerJson read_json(std::string_view json, std::string_view file, JsonFile kind) {
  // The lexer treats a zero byte as the end of its input and would ignore the rest.
  if (const std::size_t zero = json.find('\0'); zero != std::string_view::npos) {
    throw IoError(std::string(file) + ": is not JSON at byte " + std::to_string(zero) +
                  ": unexpected zero byte");
  }
  return JsonReader(json, file, kind).read();
}

}  // namespace tensorgrad::text
