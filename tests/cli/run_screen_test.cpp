// SPDX-License-Identifier: MIT
// Keys of the full-screen view, and when it is not available.
#include "ui/run_screen.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "run/ranks.h"
#include "tensorgrad/distributed/communicator.h"
#include "tensorgrad/error.h"
#include "ui/view.h"

namespace tensorgrad::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(KeyReader, drops_sequences_of_special_keys) {
  KeyReader reader;
  EXPECT_EQ(reader.take("ps"), "ps");
  EXPECT_EQ(reader.take("\x1b[A\x1b[15~q"), "q");
  EXPECT_EQ(reader.take("\x1bOp\x1bqs"), "s");
  EXPECT_EQ(reader.take("a\x1b[1;"), "a");  // the rest comes later
  EXPECT_EQ(reader.take("5Cb"), "b");
  EXPECT_EQ(reader.take("\x1b"), "");  // the Escape key
  EXPECT_EQ(reader.take("q"), "q");
}

TEST(OpenView, refuses_the_screen_to_several_ranks) {
  const std::vector<std::shared_ptr<Communicator>> members = make_thread_group(2, {});
  const Ranks ranks(members[0]);
  EXPECT_EQ(open_view({}, ranks), nullptr);
  EXPECT_THAT(
      [&] { open_view({.view = UiOptions::View::kScreen}, ranks); },
      ThrowsMessage<UserError>(HasSubstr("--ui=tui: not supported with several processes")));
}

}  // namespace
}  // namespace tensorgrad::cli
