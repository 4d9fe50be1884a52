// SPDX-License-Identifier: MIT
// The event loop of a page, a worker or node, for programs compiled by emscripten.
//
// emscripten's stack in linear memory has room for one suspended call. So posted functions run one
// after another, and only while no call is suspended (SuspendedCall).
#pragma once

#ifdef __EMSCRIPTEN__

#include <functional>

namespace tensorgrad {

// Runs `work` later as a separate task. It must not throw, and may be suspended.
void post_to_event_loop(std::function<void()> work);

// Runs the first posted function within the caller's task. Returns false if there is none, or if a
// call is suspended.
bool run_posted();

// RAII guard: a call of this program counts as suspended during its lifetime.
class SuspendedCall {
 public:
  SuspendedCall();
  SuspendedCall(const SuspendedCall&) = delete;
  SuspendedCall& operator=(const SuspendedCall&) = delete;
  ~SuspendedCall();
};

}  // namespace tensorgrad

#endif
