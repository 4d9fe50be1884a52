// SPDX-License-Identifier: MIT
// Checkpoints: what a Trainer saves, as a safetensors file (docs/formats.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/parameters.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Checkpoint {
  std::map<std::string, HostTensor> params;
  std::map<std::string, HostTensor>
      states;  // optimizer moments (by "moment/parameter") and user states
  std::map<std::string, std::string> fields;  // step, epoch, seed, schedule ...
};

// The field with the names of the objectives, where they have some: "d g".
inline constexpr const char* kObjectivesField = "objectives";

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
// Throws IoError, naming the file, where it is not one.
Checkpoint read_checkpoint(const std::string& path);
// Throws UserError where there is none of this type.
const HostTensor& find_state(const Checkpoint& checkpoint, const std::string& name,
                             const Type& type, const std::string& path);
// The parameters alone, of any safetensors file that
// has only f32 tensors beside a checkpoint's states.
std::map<std::string, HostTensor> read_parameters(const std::string& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
