// SPDX-License-Identifier: MIT
// Interrupt signals, such as Ctrl-C, as a flag that the training loop polls.
#pragma once

namespace tensorgrad::cli {

// Installs the signal handlers. The first SIGINT or SIGTERM sets the flag; a second one of the same
// kind ends the process.
void catch_interrupts();
// Returns the number of the last caught signal, or 0 if there was none.
int interrupted();

}  // namespace tensorgrad::cli
