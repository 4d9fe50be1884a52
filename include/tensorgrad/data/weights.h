// SPDX-License-Identifier: MIT
// Import of weights that other libraries wrote: safetensors files with other dtypes, tensor names
// and layouts.
#pragma once

#include <map>
#include <string>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/options.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the tensors of a safetensors file by their new names. Of a checkpoint, these are the
/// parameters and the states of the model under their names in the model. F64 (rounded to nearest),
/// F32, F16 and BF16 become f32. I8, I16, I32, I64, U8, U16 and U64 become i32. U32 becomes u32,
/// and BOOL becomes bool.
///
/// Throws IoError naming the file and the tensor if a tensor has another dtype, a value that does
/// not fit its new type, or another number of axes than its rule. Also throws IoError if two
/// tensors have the same new name, or if a rule applies to no tensor. Throws UserError if a
/// replacement has more wildcards than its pattern, or if `permute` is not a permutation.
std::map<std::string, HostTensor> read_weights(const FileSource& source,
                                               const ImportOptions& options = {},
                                               Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
