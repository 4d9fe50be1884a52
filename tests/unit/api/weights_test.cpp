// SPDX-License-Identifier: MIT
// Importing weights: patterns of names, and permuted axes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using Parts = std::vector<std::string>;

TEST(MatchPattern, returns_the_text_of_each_wildcard) {
  EXPECT_EQ(match_pattern("h.*.w", "h.11.w"), Parts{"11"});
  EXPECT_EQ(match_pattern("*.*.w", "a.b.c.w"), (Parts{"a", "b.c"}));
  EXPECT_EQ(match_pattern("h?.*", "h1.w"), (Parts{"1", "w"}));
  EXPECT_EQ(match_pattern("*", ""), Parts{""});
  EXPECT_EQ(match_pattern("**b", "aab"), (Parts{"", "aa"}));
  EXPECT_EQ(match_pattern("a", "a"), Parts{});
  EXPECT_EQ(match_pattern("*ab*ab", "abxabab"), (Parts{"", "xab"}));
  EXPECT_EQ(match_pattern("h.*.w", "h.11.wx"), std::nullopt);
  EXPECT_EQ(match_pattern("?", ""), std::nullopt);
  EXPECT_EQ(match_pattern("", "a"), std::nullopt);
  EXPECT_EQ(match_pattern("*a?", "aa"), Parts({"", "a"}));
}

StoredTensor floats(const Shape& shape) {
  StoredTensor tensor{"F32", shape, {}};
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    const auto value = static_cast<float>(i);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    tensor.data.insert(tensor.data.end(), bytes, bytes + sizeof value);
  }
  return tensor;
}

TEST(ReadWeights, permutes_the_axes_of_a_rule) {
  const std::string path =
      (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_axes.safetensors"))
          .string();
  write_safetensors(path, {{{"k", floats({2, 3, 4, 5})}, {"m", floats({1, 3})}}, {}});
  const auto read =
      read_weights(path, {.names = {{"k", "conv.weight", {3, 2, 0, 1}}, {"m", "column", {1, 0}}}});
  std::filesystem::remove(path);
  const HostTensor& kernel = read.at("conv.weight");
  ASSERT_EQ(kernel.shape, (Shape{5, 4, 2, 3}));
  const std::vector<float> values = kernel.floats();
  for (int o = 0, at = 0; o < 5; ++o) {
    for (int i = 0; i < 4; ++i) {
      for (int y = 0; y < 2; ++y) {
        for (int x = 0; x < 3; ++x, ++at)
          EXPECT_EQ(values[static_cast<std::size_t>(at)], ((y * 3 + x) * 4 + i) * 5 + o);
      }
    }
  }
  EXPECT_EQ(read.at("column").shape, (Shape{3, 1}));
  EXPECT_EQ(read.at("column").floats(), (std::vector<float>{0, 1, 2}));
}

}  // namespace
}  // namespace tensorgrad::testing
