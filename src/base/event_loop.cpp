// SPDX-License-Identifier: MIT
#include "base/event_loop.h"

#ifdef __EMSCRIPTEN__

#include <emscripten/em_js.h>

#include <deque>
#include <utility>

// Calls `run` in a turn of its own. Where the engine has JSPI, `run` can be suspended.
using TgTurn = void (*)();
EM_JS_DEPS(tensorgrad_next_turn, "$getWasmTableEntry");
EM_JS(void, tg_js_next_turn, (TgTurn run), {
  const entry = getWasmTableEntry(run);
  const call = WebAssembly.promising ? WebAssembly.promising(entry) : entry;
  // Timers are clamped to 4 ms.
  const {port1, port2} = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    call();
  };
  port2.postMessage(0);
});

namespace tensorgrad {
namespace {

struct Loop {
  std::deque<std::function<void()>> queue;
  bool asked = false;    // for a turn
  bool running = false;  // in a turn of its own
  int suspended = 0;     // calls that are; their end asks for a turn
};

// Never destroyed: functions may be posted when static objects go.
Loop& loop() {
  static Loop& only = *new Loop;
  return only;
}

void take_turn();

void ask_for_turn() {
  Loop& all = loop();
  if (all.queue.empty() || all.asked || all.running || all.suspended > 0) return;
  all.asked = true;
  tg_js_next_turn(take_turn);
}

void take_turn() {
  Loop& all = loop();
  all.asked = false;
  all.running = true;
  run_posted();
  all.running = false;
  ask_for_turn();
}

}  // namespace

void post_to_event_loop(std::function<void()> work) {
  loop().queue.push_back(std::move(work));
  ask_for_turn();
}

bool run_posted() {
  Loop& all = loop();
  if (all.queue.empty() || all.suspended > 0) return false;
  const std::function<void()> next = std::move(all.queue.front());
  all.queue.pop_front();
  next();
  return true;
}

SuspendedCall::SuspendedCall() { ++loop().suspended; }
SuspendedCall::~SuspendedCall() {
  --loop().suspended;
  ask_for_turn();
}

}  // namespace tensorgrad

#endif
