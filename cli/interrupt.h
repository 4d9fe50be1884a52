// SPDX-License-Identifier: MIT
// Ctrl-C and the like as a flag that the training loop looks at.
#pragma once

namespace tensorgrad::cli {

// From here on the first SIGINT or SIGTERM only sets the flag; the second ends the process.
void catch_interrupts();
// The signal that came, or 0.
int interrupted();

}  // namespace tensorgrad::cli
