// SPDX-License-Identifier: MIT
// Options shared by several subcommands.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "run/mpi.h"
#include "tensorgrad/train/device.h"
#include "ui/view.h"

namespace tensorgrad::cli {

extern const CLI::Validator kPositive;  // accepts numbers above 0
extern const CLI::Validator kFromZero;  // accepts numbers of at least 0
extern const CLI::Validator kShare;     // accepts numbers between 0 and 1, exclusive

// Adds the options of devices except --device.
void add_adapter_options(CLI::App& command, DeviceOptions& device);
// Adds --device and the adapter options. `more` are kinds of devices besides auto, cpu and webgpu.
void add_device_options(CLI::App& command, DeviceOptions& device,
                        const std::vector<std::string>& more = {});
// Adds --max-expansion, the limit on the expansion of `what`, and returns it.
CLI::Option* add_max_expansion(CLI::App& command, double& limit, const std::string& what);
// Adds --checkpoint-every, a time such as 30s, 5m or 2h, or "never".
void add_checkpoint_every(CLI::App& command, double& seconds);
// Adds --distributed, --distributed-timeout, --shard-optimizer and --shard-parameters.
void add_rank_options(CLI::App& command, RankOptions& ranks);
// Adds --ui, the live view of the run.
void add_ui(CLI::App& command, UiOptions& ui);
// Adds --tensorboard.
void add_tensorboard(CLI::App& command, bool& wanted);
// Checks the parsed commands and their subcommands. Throws CLI::ValidationError if --adapter is
// used without the device webgpu.
void check_adapter(const CLI::App& app);

}  // namespace tensorgrad::cli
