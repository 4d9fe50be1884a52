// SPDX-License-Identifier: MIT
// Weights of another library's file as a model takes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/engine.h"
#include "tensorgrad/data/weights.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ImportedModel {
  std::vector<float> params;                 // the whole arena
  std::map<std::string, HostTensor> states;  // those of the model's buffers that the file has
};

// Reads the file for the parameters and buffers of `table`. Where the options are `partial`,
// `params` is the arena as it is, which keeps what the file does not have. Throws as
// read_weights(), and UserError, naming the file: a parameter or buffer that it lacks, a tensor
// that the model has no place for, or that is of another type than its place.
ImportedModel import_model(const FileSource& source, const ImportOptions& options,
                           const ParameterTable& table, const std::vector<StateEntry>& states,
                           std::vector<float> params);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
