// SPDX-License-Identifier: MIT
// The live view of a run that --ui selects.
#pragma once

#include <memory>

namespace tensorgrad::cli {

class LiveRun;
class Ranks;

struct UiOptions {
  enum class View { kNone, kPage, kScreen };

  View view = View::kNone;
  int port = 0;  // of the page; 0: a free one
};

// Returns the view, or null if none is requested. Called before the run begins. Throws UserError as
// RunPage() and RunScreen() do, or if a screen is requested with several ranks.
std::unique_ptr<LiveRun> open_view(const UiOptions& options, const Ranks& ranks);

}  // namespace tensorgrad::cli
