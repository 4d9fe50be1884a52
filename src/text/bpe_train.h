// SPDX-License-Identifier: MIT
// Trains the merges of a byte-pair encoding. Merges the most frequent pair first; in a tie, the one
// with the lowest ids. Updates counts incrementally.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensorgrad/data/tokenizer.h"
#include "text/bpe.h"

namespace tensorgrad::text {

struct PieceHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view piece) const { return hash_of(piece); }
};
// Number of occurrences of each piece.
using PieceCounts = std::unordered_map<std::string, std::int64_t, PieceHash, std::equal_to<>>;

struct TrainedBpe {
  std::vector<TokenEntry> tokens;  // ids from 0: special tokens, bytes, merged tokens
  std::vector<Merge> merges;       // by rank
};

// `specials` must be unique and must not be single bytes.
TrainedBpe train_bpe(const PieceCounts& pieces, const std::vector<std::string>& specials,
                     const BpeTrainOptions& options);

}  // namespace tensorgrad::text
