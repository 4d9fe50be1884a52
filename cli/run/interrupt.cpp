// SPDX-License-Identifier: MIT
#include "run/interrupt.h"

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
  struct sigaction before = {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

int interrupted() { return signal_seen; }

void check_interrupted() {
  if (interrupted() != 0) throw Interrupted();  // NOLINT(bugprone-std-exception-baseclass)
}

}  // namespace tensorgrad::cli
