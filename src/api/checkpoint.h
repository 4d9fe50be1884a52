// SPDX-License-Identifier: MIT
// Checkpoints: what a Trainer saves, as a safetensors file (docs/formats.md).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/parameters.h"
#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/safetensors.h"

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
// Throws IoError naming the file if it is not one. `buffers` are names that write_weights() gave to
// states.
Checkpoint read_checkpoint(const FileSource& source, const std::set<std::string>& buffers = {});
// Drops what only a checkpoint has, and names the states of a model as the model does. Files of
// other kinds stay as they are.
void keep_model(StoredFile& file);
// Replaces the parameters by their averages. Throws UserError if the file has none.
void take_averages(Checkpoint& checkpoint, const std::string& path);
// Writes the tensors by their names, as a state dict of PyTorch.
void write_weights(const FileSink& sink, std::map<std::string, HostTensor> tensors);
// Throws UserError where there is none of this type.
const HostTensor& find_state(const Checkpoint& checkpoint, const std::string& name,
                             const Type& type, const std::string& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
