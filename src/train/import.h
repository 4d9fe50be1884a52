// SPDX-License-Identifier: MIT
// Loads weights from a file of another library into a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensorgrad/data/weights.h"
#include "train/program_session.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ImportedModel {
  std::vector<float> params;                 // the whole arena
  std::map<std::string, HostTensor> states;  // states of the model's buffers that the file has
};

// Reads the parameters and buffers of `table` from the file. If the options are `partial`, `params`
// must be the current arena; parameters that the file lacks keep its values.
//
// Throws as read_weights(). Also throws UserError, naming the file, if a parameter or buffer is
// missing, a tensor is unknown to the model, or its type does not match.
ImportedModel import_model(const FileSource& source, const ImportOptions& options,
                           const ParameterTable& table, const std::vector<StateEntry>& states,
                           std::vector<float> params);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
