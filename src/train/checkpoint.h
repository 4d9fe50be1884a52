// SPDX-License-Identifier: MIT
// Checkpoints of a Trainer, stored as safetensors files (docs/formats.md).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/train/options.h"
#include "train/parameters.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Checkpoint {
  std::map<std::string, HostTensor> params;
  // Optimizer moments (named "moment/parameter") and user states.
  std::map<std::string, HostTensor> states;
  std::map<std::string, std::string> fields;  // step, epoch, seed, schedule, ...
};

// The field with the names of the objectives, e.g. "d g". Absent if the only objective has no name.
inline constexpr const char* kObjectivesField = "objectives";

// Returns the metadata. Throws UserError if a key is reserved, occurs twice or is not UTF-8, or a
// value is not UTF-8.
std::map<std::string, std::string> checked_metadata(const SaveOptions& options);
// Writes a checkpoint with the user's metadata, which has been checked.
void write_checkpoint(const FileSink& sink, Checkpoint checkpoint,
                      std::map<std::string, std::string> metadata);
// Throws IoError naming the file if it is not a checkpoint. `buffers` has the names of states in
// files of write_weights().
Checkpoint read_checkpoint(const FileSource& source, const std::set<std::string>& buffers = {});
// Removes everything but the model, and renames its states as in the model. Files of other kinds do
// not change.
void keep_model(StoredFile& file);
// Replaces the parameters by their averages. Throws UserError if the file has no averages.
void take_averages(Checkpoint& checkpoint, const std::string& path);
// Writes the tensors under their names, like a state dict of PyTorch.
void write_weights(const FileSink& sink, std::map<std::string, HostTensor> tensors);
// Returns a state of a checkpoint. Throws UserError if it is missing or has another type.
const HostTensor& find_state(const Checkpoint& checkpoint, const std::string& name,
                             const Type& type, const std::string& path);
// Returns a field. Throws IoError if it is missing.
const std::string& text_field(const Checkpoint& checkpoint, const std::string& name,
                              const std::string& path);
// Throws IoError. `what`: what is wrong with the field.
[[noreturn]] void refuse_field(const std::string& path, const std::string& name,
                               const std::string& what);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
