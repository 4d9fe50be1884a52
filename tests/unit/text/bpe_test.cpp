// SPDX-License-Identifier: MIT
// BPE merges of short, long and cached pieces, compared with the plain definition.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>

#include "text/bpe_train.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::text {
namespace {

// Returns a model of the letters "abcd" as 0 to 3 and merges of random tokens. Each merge makes a
// new or an existing token.
BpeModel random_model(test::TestRandom& random, int merges) {
  std::vector<std::string> tokens = {"a", "b", "c", "d"};
  std::map<std::string, Id> ids = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}};
  BpeModel model;
  std::map<std::pair<Id, Id>, bool> seen;
  for (int i = 0; i < merges; ++i) {
    const auto left = static_cast<Id>(random.below(tokens.size()));
    const auto right = static_cast<Id>(random.below(tokens.size()));
    const std::string both =
        tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    if (both.size() > 12 || seen.contains({left, right})) continue;
    seen[{left, right}] = true;
    const auto [found, fresh] = ids.emplace(both, static_cast<Id>(tokens.size()));
    if (fresh) tokens.push_back(both);
    // Some ranks occur twice.
    model.merges.push_back({left, right, static_cast<std::uint32_t>(i / 2), found->second});
  }
  std::vector<TokenEntry> entries;
  for (const auto& [bytes, id] : ids) entries.push_back({bytes, id, false});
  model.tokens = TokenTable(entries);
  return model;
}

// Merges the leftmost pair of the lowest rank until there is none.
std::vector<Id> merged_plainly(const BpeModel& model, std::string_view piece) {
  std::map<std::pair<Id, Id>, Merge> pairs;
  for (const Merge& merge : model.merges) pairs[{merge.left, merge.right}] = merge;
  std::vector<Id> ids;
  for (const char c : piece) ids.push_back(c - 'a');
  for (;;) {
    std::size_t best = ids.size();
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = pairs.find({ids[i], ids[i + 1]});
      if (found == pairs.end() || (best != ids.size() && found->second.rank >= rank)) continue;
      best = i;
      rank = found->second.rank;
    }
    if (best == ids.size()) return ids;
    ids[best] = pairs.at({ids[best], ids[best + 1]}).result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string random_letters(test::TestRandom& random, std::size_t size) {
  std::string text;
  for (; size > 0; --size) text += static_cast<char>('a' + random.below(4));
  return text;
}

TEST(Bpe, merges_short_and_long_pieces_as_the_definition_says) {
  test::TestRandom random(11);
  for (int round = 0; round < 60; ++round) {
    const BpeModel model = random_model(random, 80);
    const Bpe bpe(model);
    for (const std::size_t size : {1U, 2U, 3U, 5U, 9U, 20U, 47U, 48U, 49U, 50U, 130U}) {
      const std::string piece = random_letters(random, size);
      std::vector<Id> ids;
      bpe.merge(piece, ids);
      EXPECT_EQ(ids, merged_plainly(model, piece)) << piece;
      std::vector<Id> whole;
      bpe.encode(piece, whole);
      EXPECT_EQ(whole, ids) << piece;
    }
    const std::string same(200, 'a');
    std::vector<Id> ids;
    bpe.merge(same, ids);
    EXPECT_EQ(ids, merged_plainly(model, same));
  }
}

TEST(Bpe, cached_pieces_have_the_ids_of_uncached_ones) {
  test::TestRandom random(12);
  const BpeModel model = random_model(random, 60);
  const Bpe bpe(model);
  std::vector<std::string> pieces;
  for (int i = 0; i < 6000; ++i) pieces.push_back(random_letters(random, 1 + random.below(60)));
  for (int i = 0; i < 20'000; ++i) pieces.push_back(pieces[random.below(6000)]);
  std::vector<Id> remembered, plain;
  PieceEncoder with(bpe, remembered, std::size_t{1} << 20);
  PieceEncoder without(bpe, plain, 0);
  for (const std::string& piece : pieces) {
    with.add(piece);
    without.add(piece);
  }
  EXPECT_EQ(remembered, plain);
}

TEST(Bpe, piece_that_is_a_token_still_needs_its_merges) {
  BpeModel model;
  model.tokens = TokenTable({{"a", 0, false}, {"b", 1, false}, {"ab", 2, false}, {"ba", 3, false}});
  model.merges = {{0, 1, 0, 2}};
  const auto encoded = [&](std::string_view piece) {
    std::vector<Id> ids;
    Bpe(model).encode(piece, ids);
    return ids;
  };
  EXPECT_EQ(encoded("ab"), (std::vector<Id>{2}));
  EXPECT_EQ(encoded("ba"), (std::vector<Id>{1, 0}));
  model.ignore_merges = true;
  EXPECT_EQ(encoded("ba"), (std::vector<Id>{3}));
  EXPECT_EQ(encoded("aba"), (std::vector<Id>{2, 0}));
}

TEST(Bpe, unknown_text_maps_to_the_unknown_token_or_throws) {
  BpeModel model;
  model.tokens = TokenTable({{"a", 0, false}, {"<unk>", 7, true}});
  EXPECT_THROW(
      {
        std::vector<Id> ids;
        Bpe(model).encode("ab", ids);
      },
      UserError);
  model.unk = 7;
  std::vector<Id> ids;
  Bpe(model).encode("abba", ids);
  EXPECT_EQ(ids, (std::vector<Id>{0, 7, 7, 0}));
  model.fuse_unk = true;
  ids.clear();
  const std::string many = "a" + std::string(100, 'b') + "a";
  Bpe(model).encode("abba", ids);
  Bpe(model).encode(many, ids);
  EXPECT_EQ(ids, (std::vector<Id>{0, 7, 0, 0, 7, 0}));
}

TEST(TokenTable, finds_tokens_among_ids_with_gaps) {
  std::vector<TokenEntry> entries;
  for (Id i = 0; i < 1000; ++i) entries.push_back({"t" + std::to_string(i), i * 3, false});
  entries.push_back({"a name", 5, true});
  const TokenTable table(entries);
  EXPECT_EQ(table.count(), 1001U);
  EXPECT_EQ(table.largest(), 2997);
  for (Id i = 0; i < 1000; ++i) {
    EXPECT_EQ(table.find("t" + std::to_string(i)), i * 3);
    EXPECT_EQ(table.bytes_of(i * 3), "t" + std::to_string(i));
    EXPECT_FALSE(table.has(i * 3 + 1));
  }
  EXPECT_EQ(table.find("a name"), kNoId);
  EXPECT_EQ(table.find_literal("a name"), 5);
  EXPECT_TRUE(table.literal(5));
  EXPECT_EQ(table.find("t1000"), kNoId);
  EXPECT_FALSE(table.has(-1));
  EXPECT_FALSE(table.has(2998));
  EXPECT_EQ(TokenTable().find("x"), kNoId);
}

// Trains by counting all pairs again for every merge.
std::vector<std::pair<std::string, std::string>> trained_plainly(const PieceCounts& pieces,
                                                                 std::size_t merges,
                                                                 std::int64_t min_frequency) {
  std::vector<std::pair<std::vector<std::string>, std::int64_t>> words;
  for (const auto& [piece, count] : pieces) {
    std::vector<std::string> word;
    for (const char c : piece) word.emplace_back(1, c);
    words.emplace_back(word, count);
  }
  std::map<std::string, std::size_t> order;  // starts with the single bytes, here ASCII letters
  for (char c = 'a'; c <= 'z'; ++c) order.emplace(std::string(1, c), order.size());
  std::vector<std::pair<std::string, std::string>> made;
  while (made.size() < merges) {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> counts;
    std::map<std::size_t, std::string> names;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        counts[{order.at(word[i]), order.at(word[i + 1])}] += count;
      }
    }
    for (const auto& [name, id] : order) names[id] = name;
    std::pair<std::size_t, std::size_t> best;
    std::int64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (count > most) {
        best = pair;
        most = count;
      }
    }
    if (most < std::max<std::int64_t>(1, min_frequency)) break;
    const std::string left = names[best.first], right = names[best.second];
    order.emplace(left + right, order.size());
    made.emplace_back(left, right);
    for (auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != left || word[i + 1] != right) continue;
        word[i] += right;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return made;
}

// The plain count does not handle two pairs that make the same token. Random words of few letters
// contain such pairs, so each comparison ends at the first of them.
TEST(BpeTraining, incremental_counts_match_recounting) {
  test::TestRandom random(13);
  std::size_t compared = 0;
  for (int round = 0; round < 40; ++round) {
    PieceCounts pieces;
    for (int i = 0; i < 60; ++i) {
      pieces[random_letters(random, 1 + random.below(14))] +=
          1 + static_cast<std::int64_t>(random.below(5));
    }
    const auto expected = trained_plainly(pieces, 40, 2);
    const TrainedBpe trained = train_bpe(pieces, {}, {.vocab_size = 256 + 40, .min_frequency = 2});
    std::map<Id, std::string> bytes;
    for (const TokenEntry& token : trained.tokens) bytes[token.id] = token.bytes;
    std::map<std::string, int> made;
    for (const auto& [left, right] : expected) ++made[left + right];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (made[expected[i].first + expected[i].second] > 1) break;
      ASSERT_LT(i, trained.merges.size());
      EXPECT_EQ(bytes[trained.merges[i].left], expected[i].first);
      EXPECT_EQ(bytes[trained.merges[i].right], expected[i].second);
      ++compared;
    }
  }
  EXPECT_GT(compared, 600U);
}

TEST(BpeTraining, stops_when_no_pair_is_frequent_enough) {
  PieceCounts pieces = {{"abab", 3}, {"cd", 1}};
  const auto merges = [&](std::int64_t least) {
    return train_bpe(pieces, {}, {.vocab_size = 300, .min_frequency = least}).merges.size();
  };
  EXPECT_EQ(merges(7), 0U);
  EXPECT_EQ(merges(6), 1U);  // ab
  EXPECT_EQ(merges(3), 2U);  // abab
  EXPECT_EQ(merges(2), 2U);
  EXPECT_EQ(merges(1), 3U);  // cd
  EXPECT_EQ(merges(0), 3U);
  EXPECT_TRUE(train_bpe({}, {}, {.vocab_size = 300}).merges.empty());
}

}  // namespace
}  // namespace tensorgrad::text
