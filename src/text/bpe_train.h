// SPDX-License-Identifier: MIT
// Finds the merges of a new byte-pair encoding: the commonest pair goes first, among equals the one
// with the lowest ids. Counts are kept up to date, never taken anew.
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
// How often each piece occurs.
using PieceCounts = std::unordered_map<std::string, std::int64_t, PieceHash, std::equal_to<>>;

struct TrainedBpe {
  std::vector<TokenEntry> tokens;  // ids from 0 on: special tokens, bytes, what was merged
  std::vector<Merge> merges;       // by rank
};

// `specials` are not among the bytes and unlike each other.
TrainedBpe train_bpe(const PieceCounts& pieces, const std::vector<std::string>& specials,
                     const BpeTrainOptions& options);

}  // namespace tensorgrad::text
