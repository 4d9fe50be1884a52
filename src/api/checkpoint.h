// SPDX-License-Identifier: MIT
// Checkpoints: what a Trainer saves, as a safetensors file (docs/formats.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/parameters.h"
#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Checkpoint {
  std::map<std::string, HostTensor> params;
  std::map<std::string, HostTensor>
      states;  // optimizer moments (by "moment/parameter") and user states
  std::map<std::string, std::string> fields;  // step, epoch, seed, schedule ...
};

// The field with the names of the objectives, where they have some: "d g".
inline constexpr const char* kObjectivesField = "objectives";

void write_checkpoint(const FileSink& sink, Checkpoint checkpoint);
// Throws IoError, naming the file, where it is not one.
Checkpoint read_checkpoint(const FileSource& source);
// Throws UserError where there is none of this type.
const HostTensor& find_state(const Checkpoint& checkpoint, const std::string& name,
                             const Type& type, const std::string& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
