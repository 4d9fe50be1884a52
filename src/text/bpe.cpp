// SPDX-License-Identifier: MIT
// Byte-pair encoding of a piece of text, and its tables.
#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <queue>
#include <utility>

#include "base/check.h"
#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/subword.h"
#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

// Up to this number of symbols, the best pair is found by linear search.
constexpr std::size_t kShortPiece = 48;
constexpr std::uint32_t kNeverMerged = 0xffffffff;
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
// Longer texts use a cache of pieces with kKnownPieces entries.
constexpr std::size_t kLongText = 8192;
constexpr std::size_t kKnownPieces = 4096;

__extension__ using Wide = unsigned __int128;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Word>
std::uint64_t load(const char* from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

std::uint64_t pair_of(Id left, Id right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// Returns a power of two at which the table is at most half full.
std::size_t places_for(std::size_t count) { return std::bit_ceil(count * 2 + 1); }

std::string name_of_byte(unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

}  // namespace

std::uint64_t hash_of(std::string_view bytes) {
  const char* at = bytes.data();
  std::size_t size = bytes.size();
  std::uint64_t hash = kGolden ^ size;
  for (; size > 16; size -= 16, at += 16) {
    hash = mixed(load<std::uint64_t>(at) ^ hash, load<std::uint64_t>(at + 8) ^ kGolden);
  }
  std::uint64_t a = 0, b = 0;
  if (size >= 8) {
    a = load<std::uint64_t>(at);
    b = load<std::uint64_t>(at + size - 8);
  } else if (size >= 4) {
    a = load<std::uint32_t>(at);
    b = load<std::uint32_t>(at + size - 4);
  } else if (size > 0) {
    a = load<std::uint8_t>(at) << 16 | load<std::uint8_t>(at + size / 2) << 8 |
        load<std::uint8_t>(at + size - 1);
  }
  return mixed(a ^ 0xa0761d6478bd642fULL ^ hash, b ^ 0xe7037ed1a0b428dbULL);
}

TokenTable::TokenTable(std::vector<TokenEntry> tokens) {
  std::sort(tokens.begin(), tokens.end(),
            [](const TokenEntry& a, const TokenEntry& b) { return a.id < b.id; });
  std::size_t bytes = 0;
  for (const TokenEntry& token : tokens) bytes += token.bytes.size();
  all_.reserve(bytes);
  slots_.resize(places_for(tokens.size()));
  const std::size_t mask = slots_.size() - 1;
  for (const TokenEntry& token : tokens) {
    starts_.push_back(all_.size());
    all_ += token.bytes;
    ids_.push_back(token.id);
    if (token.literal) {
      literals_.emplace(token.bytes, token.id);
      literal_ids_.insert(token.id);
      continue;
    }
    const std::uint64_t hash = hash_of(token.bytes);
    std::size_t at = hash & mask;
    while (slots_[at].index != 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(ids_.size())};
  }
  starts_.push_back(all_.size());
}

std::size_t TokenTable::index_of(Id id) const {
  const auto guess = static_cast<std::size_t>(id);
  if (id < 0) return ids_.size();
  if (guess < ids_.size() && ids_[guess] == id) return guess;
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? static_cast<std::size_t>(found - ids_.begin())
                                             : ids_.size();
}

std::string_view TokenTable::bytes_of(Id id) const {
  const std::size_t index = index_of(id);
  CHECK(index < ids_.size());
  return bytes_at(index);
}

std::size_t TokenTable::index_of(std::string_view bytes, std::uint64_t hash) const {
  if (slots_.empty()) return 0;
  const std::size_t mask = slots_.size() - 1;
  const auto high = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask; slots_[at].index != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == high && bytes_at(slots_[at].index - 1) == bytes) {
      return slots_[at].index - 1;
    }
  }
  return ids_.size();
}

Id TokenTable::find_literal(std::string_view name) const {
  const auto found = literals_.find(name);
  return found == literals_.end() ? kNoId : found->second;
}

PairTable::PairTable(const std::vector<Merge>& merges) : entries_(places_for(merges.size())) {
  shift_ = 64 - std::countr_zero(entries_.size());
  const std::size_t mask = entries_.size() - 1;
  for (const Merge& merge : merges) {
    const std::uint64_t pair = pair_of(merge.left, merge.right);
    std::size_t at = shift_ == 64 ? 0 : pair * kGolden >> shift_;
    while (entries_[at].pair != kNone && entries_[at].pair != pair) at = (at + 1) & mask;
    entries_[at] = {pair, merge.rank, merge.result};
  }
}

const PairTable::Entry* PairTable::find(Id left, Id right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = entries_.size() - 1;
  for (std::size_t at = shift_ == 64 ? 0 : pair * kGolden >> shift_; entries_[at].pair != kNone;
       at = (at + 1) & mask) {
    if (entries_[at].pair == pair) return &entries_[at];
  }
  return nullptr;
}

Bpe::Bpe(BpeModel model) : model_(std::move(model)), pairs_(model_.merges) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[static_cast<std::size_t>(byte)] = model_.tokens.find({&c, 1});
  }
  merges_to_itself_.assign(model_.tokens.count() + 1, false);
  if (!model_.byte_level) return;
  std::vector<Id> ids;
  for (std::size_t i = 0; i < model_.tokens.count(); ++i) {
    const Id id = model_.tokens.ids()[i];
    const std::string_view bytes = model_.tokens.bytes_of(id);
    if (bytes.empty() || model_.tokens.literal(id)) continue;
    bool itself = model_.ignore_merges;
    const bool known = std::all_of(bytes.begin(), bytes.end(), [&](char c) {
      return byte_ids_[static_cast<unsigned char>(c)] != kNoId;
    });
    if (!itself && known) {
      ids.clear();
      merge(bytes, ids);
      itself = ids.size() == 1 && ids[0] == id;
    }
    merges_to_itself_[i] = itself;
  }
}

void Bpe::encode(std::string_view piece, std::vector<Id>& ids) const {
  const Id id = model_.byte_level ? whole(piece, hash_of(piece)) : kNoId;
  if (id != kNoId) {
    ids.push_back(id);
  } else {
    merge(piece, ids);
  }
}

Id Bpe::id_of(std::string_view symbol, std::string_view piece) const {
  const Id id = model_.byte_level ? byte_ids_[static_cast<unsigned char>(symbol[0])]
                                  : model_.tokens.find(symbol);
  if (id != kNoId) return id;
  if (model_.unk) return *model_.unk;
  throw UserError("tokenizer: the vocabulary has neither a token for " +
                  (model_.byte_level ? "byte " + name_of_byte(static_cast<unsigned char>(symbol[0]))
                                     : "character " + io::in_quotes(symbol)) +
                  " nor an unknown token, in " + io::in_quotes(piece));
}

// Appends the tokens <0xNN> for the bytes of a character. Returns false if one is missing.
bool Bpe::append_bytes(std::string_view symbol, std::vector<Id>& ids) const {
  std::array<Id, 4> bytes{};
  for (std::size_t i = 0; i < symbol.size(); ++i) {
    bytes[i] = byte_token(model_.tokens, static_cast<unsigned char>(symbol[i]));
    if (bytes[i] == kNoId) return false;
  }
  ids.insert(ids.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(symbol.size()));
  return true;
}

void Bpe::encode_characters(std::string_view piece, std::vector<Id>& ids) const {
  if (model_.ignore_merges) {
    const Id whole = model_.tokens.find(piece);
    // Text cannot name the unknown token or that of a byte.
    const bool reserved = whole == model_.unk || (model_.byte_fallback && is_byte_token(piece));
    if (whole != kNoId && !reserved) return ids.push_back(whole);
  }
  std::vector<Id> symbols;
  bool unknown_before = false;
  for (std::size_t at = 0; at < piece.size();) {
    const std::string_view symbol = piece.substr(at, character_at(piece, at).size);
    at += symbol.size();
    const bool unknown = model_.tokens.find(symbol) == kNoId;
    if (unknown && model_.byte_fallback && append_bytes(symbol, symbols)) continue;
    const Id id = id_of(symbol, piece);
    if (!(unknown && unknown_before && model_.fuse_unk)) symbols.push_back(id);
    unknown_before = unknown;
  }
  if (!model_.merges.empty()) return merge_long(std::move(symbols), ids);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// Returns the ids of the bytes of a piece.
std::vector<Id> Bpe::start_of_long(std::string_view piece) const {
  std::vector<Id> symbols;
  symbols.reserve(piece.size());
  bool unknown_before = false;
  for (std::size_t at = 0; at < piece.size(); ++at) {
    const bool unknown = byte_ids_[static_cast<unsigned char>(piece[at])] == kNoId;
    const Id id = id_of(piece.substr(at, 1), piece);
    if (!(unknown && unknown_before && model_.fuse_unk)) symbols.push_back(id);
    unknown_before = unknown;
  }
  return symbols;
}

void Bpe::merge(std::string_view piece, std::vector<Id>& ids) const {
  if (!model_.byte_level) return encode_characters(piece, ids);
  if (piece.size() > kShortPiece) return merge_long(start_of_long(piece), ids);
  std::array<Id, kShortPiece> id, result;
  std::array<std::uint32_t, kShortPiece> rank;  // of the pair that begins here
  std::size_t count = 0;
  for (const char c : piece) {
    const Id next = byte_ids_[static_cast<unsigned char>(c)];
    if (next == kNoId) return merge_long(start_of_long(piece), ids);
    id[count++] = next;
  }
  const auto look = [&](std::size_t i) {
    const PairTable::Entry* const found = i + 1 < count ? pairs_.find(id[i], id[i + 1]) : nullptr;
    rank[i] = found != nullptr ? found->rank : kNeverMerged;
    result[i] = found != nullptr ? found->result : kNoId;
  };
  for (std::size_t i = 0; i < count; ++i) look(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (rank[i] < rank[best]) best = i;
    }
    if (rank[best] == kNeverMerged) break;
    id[best] = result[best];
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      id[i] = id[i + 1];
      rank[i] = rank[i + 1];
      result[i] = result[i + 1];
    }
    look(best);
    if (best > 0) look(best - 1);
  }
  ids.insert(ids.end(), id.begin(), id.begin() + static_cast<std::ptrdiff_t>(count));
}

// Merges with a linked list of symbols and a heap of candidate pairs, in O(n log n).
void Bpe::merge_long(std::vector<Id> symbols, std::vector<Id>& ids) const {
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;
    Id left, right, result;
    bool operator<(const Candidate& other) const {  // orders the heap by the best candidate
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const std::size_t count = symbols.size();
  std::vector<std::size_t> next(count), before(count);
  for (std::size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    before[i] = i - 1;  // of the first symbol: wraps to a number that is out of range
  }
  std::priority_queue<Candidate> queue;
  const auto look = [&](std::size_t at) {
    if (at >= count || next[at] >= count) return;
    const Id left = symbols[at], right = symbols[next[at]];
    if (const PairTable::Entry* const found = pairs_.find(left, right)) {
      queue.push({found->rank, at, left, right, found->result});
    }
  };
  for (std::size_t i = 0; i < count; ++i) look(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::size_t right = next[best.at];
    // Symbols that have been merged since have kNoId.
    if (symbols[best.at] != best.left || right >= count || symbols[right] != best.right) continue;
    symbols[best.at] = best.result;
    symbols[right] = kNoId;
    next[best.at] = next[right];
    if (next[right] < count) before[next[right]] = best.at;
    look(best.at);
    look(before[best.at]);
  }
  for (const Id id : symbols) {
    if (id != kNoId) ids.push_back(id);
  }
}

PieceEncoder::PieceEncoder(const Bpe& bpe, std::vector<Id>& ids, std::size_t expected_bytes)
    : bpe_(bpe), ids_(ids), known_(expected_bytes < kLongText ? 0 : kKnownPieces) {}

void PieceEncoder::add(std::string_view piece) {
  if (!bpe_.model().byte_level) return bpe_.merge(piece, ids_);
  const std::uint64_t hash = hash_of(piece);
  if (const Id id = bpe_.whole(piece, hash); id != kNoId) {
    ids_.push_back(id);
    return;
  }
  if (known_.empty() || piece.size() > kMaxCachedPiece) return bpe_.merge(piece, ids_);
  Known& known = known_[hash % kKnownPieces];
  if (std::string_view(known.bytes.data(), known.size) == piece) {
    for (std::size_t i = 0; i < known.count; ++i) ids_.push_back(ids_[known.at + i]);
    return;
  }
  const std::size_t at = ids_.size();
  bpe_.merge(piece, ids_);
  known.size = static_cast<std::uint8_t>(piece.size());
  known.count = static_cast<std::uint8_t>(ids_.size() - at);
  known.at = at;
  std::copy(piece.begin(), piece.end(), known.bytes.begin());
}

}  // namespace tensorgrad::text
