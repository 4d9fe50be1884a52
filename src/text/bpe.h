// SPDX-License-Identifier: MIT
// Byte-pair encoding of a piece of text: tokens and merges. The tables are immutable, so any number
// of threads can use them.
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

// Hashes a short byte string.
std::uint64_t hash_of(std::string_view bytes);

// A token as it occurs in text. If `literal`, `bytes` is a name with characters that do not
// represent bytes. Such a token is never the result of a merge.
struct TokenEntry {
  std::string bytes;
  Id id = kNoId;
  bool literal = false;
};

// Tokens by id and by bytes.
class TokenTable {
 public:
  TokenTable() = default;
  // Sorts the tokens by id. Ids must be unique and not negative. Bytes must be unique among literal
  // tokens, and among the others.
  explicit TokenTable(std::vector<TokenEntry> tokens);

  [[nodiscard]] std::size_t count() const { return ids_.size(); }
  [[nodiscard]] Id largest() const { return ids_.empty() ? kNoId : ids_.back(); }
  [[nodiscard]] const std::vector<Id>& ids() const { return ids_; }
  [[nodiscard]] bool has(Id id) const { return index_of(id) < ids_.size(); }
  // Returns the bytes of an id, which must exist.
  [[nodiscard]] std::string_view bytes_of(Id id) const;
  [[nodiscard]] bool literal(Id id) const { return literal_ids_.contains(id); }
  // Returns the id of a token, or kNoId.
  [[nodiscard]] Id find(std::string_view bytes) const {
    const std::size_t index = index_of(bytes, hash_of(bytes));
    return index < ids_.size() ? ids_[index] : kNoId;
  }
  // Returns the index in ids(), or count() if there is no such token. `hash` must be
  // hash_of(bytes).
  [[nodiscard]] std::size_t index_of(std::string_view bytes, std::uint64_t hash) const;
  [[nodiscard]] Id find_literal(std::string_view name) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index = 0;  // index into ids_ plus 1; 0: empty
  };
  [[nodiscard]] std::size_t index_of(Id id) const;
  [[nodiscard]] std::string_view bytes_at(std::size_t index) const {
    return std::string_view(all_).substr(starts_[index], starts_[index + 1] - starts_[index]);
  }

  std::string all_;
  std::vector<std::size_t> starts_;  // has one more element than ids_
  std::vector<Id> ids_;              // ascending
  std::vector<Slot> slots_;
  std::map<std::string, Id, std::less<>> literals_;
  std::set<Id> literal_ids_;
};

struct Merge {
  Id left = kNoId, right = kNoId;
  std::uint32_t rank = 0;  // lowest first; among equal ranks, leftmost first
  Id result = kNoId;
};

// Maps pairs to their merges.
class PairTable {
 public:
  struct Entry {
    std::uint64_t pair = kNone;
    std::uint32_t rank = 0;
    Id result = kNoId;
  };
  PairTable() = default;
  // If several merges have the same pair, the last one wins.
  explicit PairTable(const std::vector<Merge>& merges);
  // Returns the entry of a pair, or null.
  [[nodiscard]] const Entry* find(Id left, Id right) const;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  int shift_ = 64;
};

struct BpeModel {
  TokenTable tokens;
  std::vector<Merge> merges;   // in file order
  bool byte_level = true;      // otherwise tokens consist of characters
  bool ignore_merges = false;  // encode a piece that is a token as such, without merging
  std::optional<Id> unk;       // for bytes (characters) without a token
  bool fuse_unk = false;       // replace consecutive unknown symbols by a single `unk`
  // Encode characters without a token as tokens <0xNN> of their bytes.
  bool byte_fallback = false;
};

// Encodes pieces. Owns all its data.
class Bpe {
 public:
  explicit Bpe(BpeModel model);

  [[nodiscard]] const BpeModel& model() const { return model_; }
  // Appends the ids of a non-empty piece. Throws UserError if a byte has no token and there is no
  // unk.
  void encode(std::string_view piece, std::vector<Id>& ids) const;
  // Returns the id of a piece that merges to a single token, or kNoId. `hash` must be
  // hash_of(piece).
  [[nodiscard]] Id whole(std::string_view piece, std::uint64_t hash) const {
    const std::size_t index = model_.tokens.index_of(piece, hash);
    return merges_to_itself_[index] ? model_.tokens.ids()[index] : kNoId;
  }
  // Like encode(), but does not look up the whole piece first.
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
  std::vector<bool> merges_to_itself_;  // by index; the entry after the last token is false
};

// Encodes the pieces of one text and caches the results.
class PieceEncoder {
 public:
  // `expected_bytes` is the size of the text.
  PieceEncoder(const Bpe& bpe, std::vector<Id>& ids, std::size_t expected_bytes);
  void add(std::string_view piece);
  void add_id(Id id) { ids_.push_back(id); }

 private:
  static constexpr std::size_t kMaxCachedPiece = 40;  // maximum size in bytes of a cached piece
  struct Known {
    std::uint8_t size = 0;
    std::uint8_t count = 0;
    std::array<char, kMaxCachedPiece> bytes{};
    std::size_t at = 0;  // position of its ids in ids_
  };

  const Bpe& bpe_;
  std::vector<Id>& ids_;
  std::vector<Known> known_;  // by hash; empty for short texts
};

}  // namespace tensorgrad::text
