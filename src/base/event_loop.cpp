// SPDX-License-Identifier: MIT
#include "base/event_loop.h"

#ifdef __EMSCRIPTEN__

#include <emscripten/em_js.h>
#include <emscripten/emscripten.h>

#include <deque>
#include <utility>

// Calls tg_run_posted() as a separate task. If the engine has JSPI, the call can be suspended. Uses
// its export: a pointer would need the function table, which V8's heap queries cannot read.
EM_JS(void, tg_js_next_task, (), {
  const run = wasmExports["tg_run_posted"];
  const call = WebAssembly.promising ? WebAssembly.promising(run) : run;
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
  bool asked = false;    // a task is scheduled
  bool running = false;  // a posted function runs as a task
  int suspended = 0;     // number of suspended calls; their end schedules a task
};

// Never destroyed: functions may be posted during the destruction of static objects.
Loop& loop() {
  static Loop& only = *new Loop;
  return only;
}

void ask_for_task() {
  Loop& all = loop();
  if (all.queue.empty() || all.asked || all.running || all.suspended > 0) return;
  all.asked = true;
  tg_js_next_task();
}

}  // namespace

void post_to_event_loop(std::function<void()> work) {
  loop().queue.push_back(std::move(work));
  ask_for_task();
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
  ask_for_task();
}

}  // namespace tensorgrad

extern "C" {
void tg_run_posted();
EMSCRIPTEN_KEEPALIVE void tg_run_posted() {
  tensorgrad::Loop& all = tensorgrad::loop();
  all.asked = false;
  all.running = true;
  tensorgrad::run_posted();
  all.running = false;
  tensorgrad::ask_for_task();
}
}

#endif
