// SPDX-License-Identifier: MIT
// Which live view of a run is wanted: --ui.
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

// Returns the view, before anything of the run is done; null if none is wanted. Throws UserError if
// it cannot be opened: as RunPage() and RunScreen(), or if there are several ranks and a screen is
// wanted.
std::unique_ptr<LiveRun> open_view(const UiOptions& options, const Ranks& ranks);

}  // namespace tensorgrad::cli
