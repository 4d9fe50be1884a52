// SPDX-License-Identifier: MIT
#include "interrupt.h"

#include <csignal>

namespace tensorgrad::cli {
namespace {

volatile std::sig_atomic_t signal_seen = 0;

extern "C" {
static void note_signal(int number) { signal_seen = number; }
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupted() { return signal_seen; }

}  // namespace tensorgrad::cli
