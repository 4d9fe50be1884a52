// SPDX-License-Identifier: MIT
// The names that a message about an unknown option suggests.
#include "usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensorgrad::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NearestNames, are_within_one_edit_per_three_characters) {
  EXPECT_THAT(nearest_names("--epoch", {"--data", "--epochs"}), ElementsAre("--epochs"));
  EXPECT_THAT(nearest_names("--hiden", {"--hidden"}), ElementsAre("--hidden"));  // inserted
  EXPECT_THAT(nearest_names("--seeed", {"--seed"}), ElementsAre("--seed"));      // removed
  EXPECT_THAT(nearest_names("--sead", {"--seed"}), ElementsAre("--seed"));       // replaced
  EXPECT_THAT(nearest_names("-ab", {"-ba"}), ElementsAre("-ba"));                // swapped
  EXPECT_THAT(nearest_names("--optimiser", {"--optimizer"}), ElementsAre("--optimizer"));
  EXPECT_THAT(nearest_names("--sxxx", {"--seed", "--size"}), IsEmpty());
  EXPECT_THAT(nearest_names("", {"--seed"}), IsEmpty());
}

TEST(NearestNames, come_first_if_nearer_and_are_at_most_three) {
  EXPECT_THAT(nearest_names("--max", {"--max-tokens", "--max-expansion", "--top"}),
              ElementsAre("--max-expansion", "--max-tokens"));
  EXPECT_THAT(nearest_names("--tokens", {"--token", "--tokxen", "--tokxxs"}),
              ElementsAre("--token", "--tokxen", "--tokxxs"));
  EXPECT_THAT(nearest_names("--aaaa", {"--aaab", "--aaac", "--aaad", "--aaae"}),
              ElementsAre("--aaab", "--aaac", "--aaad"));
}

}  // namespace
}  // namespace tensorgrad::cli
