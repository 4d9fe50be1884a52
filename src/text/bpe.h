// SPDX-License-Identifier: MIT
// Byte-pair encoding of one piece of text: which tokens there are and which pairs are merged, in
// tables that do not change, so that any number of threads may use them at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tensorgrad::text {

using Id = std::int32_t;
inline constexpr Id kNoId = -1;

// Of short byte strings.
std::uint64_t hash_of(std::string_view bytes);

// A token as it stands in text. `literal`: a name with characters that stand for no byte, which is
// never the result of a merge; `bytes` is that name.
struct TokenEntry {
  std::string bytes;
  Id id = kNoId;
  bool literal = false;
};

// Tokens by id and by bytes.
class TokenTable {
 public:
  TokenTable() = default;
  // Sorted by id here; ids are unique and not negative, and so are bytes among those that are
  // literal, and among those that are not.
  explicit TokenTable(std::vector<TokenEntry> tokens);

  [[nodiscard]] std::size_t count() const { return ids_.size(); }
  [[nodiscard]] Id largest() const { return ids_.empty() ? kNoId : ids_.back(); }
  [[nodiscard]] const std::vector<Id>& ids() const { return ids_; }
  [[nodiscard]] bool has(Id id) const { return index_of(id) < ids_.size(); }
  // Of an id that is there.
  [[nodiscard]] std::string_view bytes_of(Id id) const;
  [[nodiscard]] bool literal(Id id) const { return literal_ids_.contains(id); }
  // kNoId where there is none.
  [[nodiscard]] Id find(std::string_view bytes) const {
    const std::size_t index = index_of(bytes, hash_of(bytes));
    return index < ids_.size() ? ids_[index] : kNoId;
  }
  // Its place in ids(), count() where there is none; with hash_of(bytes).
  [[nodiscard]] std::size_t index_of(std::string_view bytes, std::uint64_t hash) const;
  [[nodiscard]] Id find_literal(std::string_view name) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index = 0;  // into ids_, and one; 0: empty
  };
  [[nodiscard]] std::size_t index_of(Id id) const;
  [[nodiscard]] std::string_view bytes_at(std::size_t index) const {
    return std::string_view(all_).substr(starts_[index], starts_[index + 1] - starts_[index]);
  }

  std::string all_;
  std::vector<std::size_t> starts_;  // one more than ids
  std::vector<Id> ids_;              // rising
  std::vector<Slot> slots_;
  std::map<std::string, Id, std::less<>> literals_;
  std::set<Id> literal_ids_;
};

struct Merge {
  Id left = kNoId, right = kNoId;
  std::uint32_t rank = 0;  // the lowest goes first; among equals the leftmost
  Id result = kNoId;
};

// Merges by their pair.
class PairTable {
 public:
  struct Entry {
    std::uint64_t pair = kNone;
    std::uint32_t rank = 0;
    Id result = kNoId;
  };
  PairTable() = default;
  // Of several with one pair the last counts.
  explicit PairTable(const std::vector<Merge>& merges);
  // Null where there is none.
  [[nodiscard]] const Entry* find(Id left, Id right) const;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  int shift_ = 64;
};

struct BpeModel {
  TokenTable tokens;
  std::vector<Merge> merges;   // in the order of the file
  bool byte_level = true;      // else tokens are made of characters
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  std::optional<Id> unk;       // for bytes (characters) that no token stands for
  bool fuse_unk = false;       // one for several such side by side
  bool byte_fallback =
      false;  // characters that no token stands for are tokens <0xNN> of their bytes
};

// What encodes pieces. Refers to nothing outside.
class Bpe {
 public:
  explicit Bpe(BpeModel model);

  [[nodiscard]] const BpeModel& model() const { return model_; }
  // Appends the ids of a piece that is not empty. UserError: no token for a byte, and no unk.
  void encode(std::string_view piece, std::vector<Id>& ids) const;
  // The id of a piece that merges to one token, kNoId for others; with hash_of(piece).
  [[nodiscard]] Id whole(std::string_view piece, std::uint64_t hash) const {
    const std::size_t index = model_.tokens.index_of(piece, hash);
    return merges_to_itself_[index] ? model_.tokens.ids()[index] : kNoId;
  }
  // As encode(), without looking for the piece as a whole.
  void merge(std::string_view piece, std::vector<Id>& ids) const;

 private:
  void encode_characters(std::string_view piece, std::vector<Id>& ids) const;
  bool append_bytes(std::string_view symbol, std::vector<Id>& ids) const;
  [[nodiscard]] std::vector<Id> start_of_long(std::string_view piece) const;
  void merge_long(std::vector<Id> symbols, std::vector<Id>& ids) const;
  [[nodiscard]] Id id_of(std::string_view symbol, std::string_view piece) const;

  BpeModel model_;
  PairTable pairs_;
  std::array<Id, 256> byte_ids_{};
  std::vector<bool> merges_to_itself_;  // by index; false behind the last
};

// Encodes the pieces of one text: remembers those that it has merged.
class PieceEncoder {
 public:
  // `expected_bytes` of text are to come.
  PieceEncoder(const Bpe& bpe, std::vector<Id>& ids, std::size_t expected_bytes);
  void add(std::string_view piece);
  void add_id(Id id) { ids_.push_back(id); }

 private:
  static constexpr std::size_t kLongest = 40;  // bytes of a piece that is remembered
  struct Known {
    std::uint8_t size = 0;
    std::uint8_t count = 0;
    std::array<char, kLongest> bytes{};
    std::size_t at = 0;  // of its ids in ids_
  };

  const Bpe& bpe_;
  std::vector<Id>& ids_;
  std::vector<Known> known_;  // by hash; empty for short texts
};

}  // namespace tensorgrad::text
