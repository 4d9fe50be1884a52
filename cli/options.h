// SPDX-License-Identifier: MIT
// Options that several commands have.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tensorgrad/train/device.h"

namespace tensorgrad::cli {

extern const CLI::Validator kPositive;  // a number above 0
extern const CLI::Validator kShare;     // between 0 and 1

void add_adapter_options(CLI::App& command, DeviceOptions& device);
// `more`: kinds that not every command takes.
void add_device_options(CLI::App& command, DeviceOptions& device,
                        const std::vector<std::string>& more = {});
// Of the commands that were given, and of those within them: without WebGPU an adapter would be
// ignored. CLI::ValidationError.
void check_adapter(const CLI::App& app);

}  // namespace tensorgrad::cli
