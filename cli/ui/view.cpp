// SPDX-License-Identifier: MIT
#include "ui/view.h"

#include "run/ranks.h"
#include "tensorgrad/error.h"
#include "ui/live_run.h"
#include "ui/run_page.h"
#include "ui/run_screen.h"

namespace tensorgrad::cli {

std::unique_ptr<LiveRun> open_view(const UiOptions& options, const Ranks& ranks) {
  if (options.view == UiOptions::View::kNone) return nullptr;
  if (options.view == UiOptions::View::kPage) return std::make_unique<RunPage>(options.port);
  if (ranks.several()) {
    throw UserError(
        "--ui=tui: not supported with several processes, which have no terminal of their own; "
        "expected one process, or --ui=web");
  }
  return std::make_unique<RunScreen>();
}

}  // namespace tensorgrad::cli
