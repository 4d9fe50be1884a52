// SPDX-License-Identifier: MIT
// Interrupt signals, such as Ctrl-C, as a flag that the training loop polls.
#pragma once

namespace tensorgrad::cli {

// Thrown by check_interrupted(). No std::exception, so that handlers of errors let it pass.
struct Interrupted {};

// Installs the signal handlers. The first SIGINT, SIGTERM or SIGHUP (the terminal was closed) sets
// the flag; a second one of the same kind ends the process.
void catch_interrupts();
// Sets the flag as SIGINT does. May be called by any thread.
void interrupt();
// Sets the flag as a signal of this number does.
void interrupt_by(int signal);
// Returns the number of the last caught signal, or 0 if there was none.
int interrupted();
// Returns the exit status of a program that such a signal stopped; of SIGINT if there was none.
int interrupted_status();
// Throws Interrupted if a signal was caught.
void check_interrupted();

}  // namespace tensorgrad::cli
