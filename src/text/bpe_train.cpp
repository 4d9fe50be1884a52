// SPDX-License-Identifier: MIT
// Training of a byte-pair encoding. Makes the same steps as Hugging Face's BpeTrainer.
#include "text/bpe_train.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "text/unicode.h"

namespace tensorgrad::text {
namespace {

constexpr std::int64_t kMergesBetweenReports = 64;

using Pair = std::uint64_t;

Pair joined(Id left, Id right) {
  return static_cast<Pair>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}
Id left_of(Pair pair) { return static_cast<Id>(pair >> 32); }
Id right_of(Pair pair) { return static_cast<Id>(pair & 0xffffffff); }

struct PairHash {
  std::size_t operator()(Pair pair) const {
    const std::uint64_t mixed = pair * 0x9e3779b97f4a7c15ULL;
    return mixed ^ mixed >> 32;
  }
};

// The count of a pair, and the words in which it has occurred since it was last queued.
struct PairState {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;
};

// A queued pair with words that contain it. A pair may have several entries with words found at
// different times; each entry is merged separately.
struct Waiting {
  std::int64_t count = 0;
  Pair pair = 0;
  std::vector<std::uint32_t> words;
  bool operator<(const Waiting& other) const {  // orders the heap by the largest count
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class BpeTraining {
 public:
  BpeTraining(const std::vector<std::string>& specials, const BpeTrainOptions& options)
      : options_(options) {
    for (const std::string& special : specials) {
      std::string bytes;
      const bool literal = !bytes_of_symbols(special, bytes);
      trained_.tokens.push_back({literal ? special : bytes, next_id(), literal});
      if (!literal) ids_.emplace(bytes, next_id());
      bytes_by_id_.push_back(bytes);
    }
    // Assign ids in the order of the characters that represent the bytes.
    std::vector<unsigned char> bytes(256);
    for (int i = 0; i < 256; ++i)
      bytes[static_cast<std::size_t>(i)] = static_cast<unsigned char>(i);
    std::sort(bytes.begin(), bytes.end(),
              [](unsigned char a, unsigned char b) { return byte_symbol(a) < byte_symbol(b); });
    for (const unsigned char byte : bytes) {
      byte_ids_[byte] = add_token(std::string(1, static_cast<char>(byte)));
    }
  }

  TrainedBpe run(const PieceCounts& pieces) {
    take(pieces);
    count_pairs();
    const auto wanted = static_cast<std::size_t>(options_.vocab_size);
    std::int64_t merges = 0;
    while (bytes_by_id_.size() < wanted && !queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      Waiting top = std::move(queue_.back());
      queue_.pop_back();
      const std::int64_t now = pairs_[top.pair].count;
      if (top.count != now) {
        top.count = now;
        push(std::move(top));
        continue;
      }
      if (now < 1 || now < options_.min_frequency) break;
      merge(top);
      if (++merges % kMergesBetweenReports == 0) {
        report("merging", static_cast<std::int64_t>(bytes_by_id_.size()), options_.vocab_size);
      }
    }
    report("merging", options_.vocab_size, options_.vocab_size);
    finish();
    return std::move(trained_);
  }

 private:
  [[nodiscard]] Id next_id() const { return static_cast<Id>(bytes_by_id_.size()); }
  Id add_token(const std::string& bytes) {
    const auto [at, fresh] = ids_.emplace(bytes, next_id());
    if (fresh) {
      trained_.tokens.push_back({bytes, next_id(), false});
      bytes_by_id_.push_back(bytes);
    }
    return at->second;
  }
  void report(std::string_view phase, std::int64_t done, std::int64_t total) const {
    if (options_.on_progress) options_.on_progress({phase, done, total});
  }

  // Sorts the words by bytes, so that the result does not depend on the order of a hash table.
  void take(const PieceCounts& pieces) {
    std::vector<std::pair<std::string_view, std::int64_t>> sorted(pieces.begin(), pieces.end());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [bytes, count] : sorted) {
      std::vector<Id> word;
      word.reserve(bytes.size());
      for (const char c : bytes) word.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      words_.push_back(std::move(word));
      counts_.push_back(count);
    }
  }

  void count_pairs() {
    const auto total = static_cast<std::int64_t>(words_.size());
    for (std::uint32_t w = 0; w < words_.size(); ++w) {
      const std::vector<Id>& word = words_[w];
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        came_up(joined(word[i], word[i + 1]), w, counts_[w]);
      }
      if (w % 65536 == 0) report("counting pairs", w, total);
    }
    queue_changed();
  }

  void came_up(Pair pair, std::uint32_t word, std::int64_t count) {
    PairState& state = pairs_[pair];
    state.count += count;
    if (state.words.empty()) changed_.push_back(pair);
    if (state.words.empty() || state.words.back() != word) state.words.push_back(word);
  }

  void push(Waiting one) {
    queue_.push_back(std::move(one));
    std::push_heap(queue_.begin(), queue_.end());
  }

  void queue_changed() {
    for (const Pair pair : changed_) {
      PairState& state = pairs_[pair];
      std::vector<std::uint32_t> words = std::exchange(state.words, {});
      if (state.count > 0) push({state.count, pair, std::move(words)});
    }
    changed_.clear();
  }

  void merge(const Waiting& top) {
    const Id left = left_of(top.pair), right = right_of(top.pair);
    // The token may exist already, as the result of another pair.
    const Id result = add_token(bytes_by_id_[static_cast<std::size_t>(left)] +
                                bytes_by_id_[static_cast<std::size_t>(right)]);
    ranked_.push_back({left, right, 0, result});
    for (const std::uint32_t w : top.words) merge_in(w, left, right, result);
    queue_changed();
  }

  void merge_in(std::uint32_t w, Id left, Id right, Id result) {
    std::vector<Id>& word = words_[w];
    const std::int64_t count = counts_[w];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < word.size();) {
      if (i + 1 == word.size() || word[i] != left || word[i + 1] != right) {
        word[kept++] = word[i++];
        continue;
      }
      if (kept > 0) {
        pairs_[joined(word[kept - 1], left)].count -= count;
        came_up(joined(word[kept - 1], result), w, count);
      }
      if (i + 2 < word.size()) {
        pairs_[joined(right, word[i + 2])].count -= count;
        came_up(joined(result, word[i + 2]), w, count);
      }
      word[kept++] = result;
      i += 2;
    }
    word.resize(kept);
  }

  // A pair that was merged repeatedly gets the rank of its last merge.
  void finish() {
    std::unordered_map<Pair, std::size_t, PairHash> last;
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      last[joined(ranked_[i].left, ranked_[i].right)] = i;
    }
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      Merge one = ranked_[i];
      if (last.at(joined(one.left, one.right)) != i) continue;
      one.rank = static_cast<std::uint32_t>(trained_.merges.size());
      trained_.merges.push_back(one);
    }
  }

  const BpeTrainOptions& options_;
  TrainedBpe trained_;
  std::vector<std::string> bytes_by_id_;  // empty for special tokens
  std::unordered_map<std::string, Id> ids_;
  std::array<Id, 256> byte_ids_{};
  std::vector<std::vector<Id>> words_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<Pair, PairState, PairHash> pairs_;
  std::vector<Pair> changed_;
  std::vector<Waiting> queue_;  // a heap
  std::vector<Merge> ranked_;
};

}  // namespace

TrainedBpe train_bpe(const PieceCounts& pieces, const std::vector<std::string>& specials,
                     const BpeTrainOptions& options) {
  return BpeTraining(specials, options).run(pieces);
}

}  // namespace tensorgrad::text
