// SPDX-License-Identifier: MIT
// The event loop of a page, a worker or node, for programs compiled by emscripten.
//
// emscripten's stack in linear memory has room for one suspended call. So functions that are posted
// run one after another, and only while no call is suspended (SuspendedCall).
#pragma once

#ifdef __EMSCRIPTEN__

#include <functional>

namespace tensorgrad {

// Runs `work`, which does not throw but may be suspended, in a turn of its own.
void post_to_event_loop(std::function<void()> work);

// Runs the first function that was posted in the caller's turn. False if there is none, or if a
// call is suspended.
bool run_posted();

// A call of this program is suspended as long as this lives.
class SuspendedCall {
 public:
  SuspendedCall();
  SuspendedCall(const SuspendedCall&) = delete;
  SuspendedCall& operator=(const SuspendedCall&) = delete;
  ~SuspendedCall();
};

}  // namespace tensorgrad

#endif
