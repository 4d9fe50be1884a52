// SPDX-License-Identifier: MIT
#include "run/interrupt.h"

#include <atomic>

#include "os/process.h"

namespace tensorgrad::cli {
namespace {

std::atomic<int> signal_seen = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // so that a signal handler may set it

extern "C" {
static void note_signal(int number) { signal_seen = number; }
}

}  // namespace

void catch_interrupts() { os::on_end_request(note_signal); }

void interrupt() { signal_seen = os::kInterrupt; }

void interrupt_by(int signal) { signal_seen = signal; }

int interrupted() { return signal_seen; }

int interrupted_status() { return 128 + (interrupted() != 0 ? interrupted() : os::kInterrupt); }

void check_interrupted() {
  if (interrupted() != 0) throw Interrupted();  // NOLINT(bugprone-std-exception-baseclass)
}

}  // namespace tensorgrad::cli
