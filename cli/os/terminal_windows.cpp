// SPDX-License-Identifier: MIT
#include "os/terminal.h"

#include "tensorgrad/error.h"

namespace tensorgrad::cli::os {

TerminalSize terminal_size(std::FILE* /*stream*/) { return {}; }

Terminal::Terminal() { throw UserError("--ui=tui: not supported on Windows yet"); }
Terminal::~Terminal() = default;
void Terminal::start(Draw) {}
void Terminal::stop() {}

}  // namespace tensorgrad::cli::os
