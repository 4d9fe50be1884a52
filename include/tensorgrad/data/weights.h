// SPDX-License-Identifier: MIT
// Import of weights that other libraries wrote: safetensors files with other dtypes, tensor names
// and layouts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Rule that renames tensors of a file and permutes their axes.
struct NameRule {
  std::string pattern;      ///< Pattern of names in the file, see match_pattern().
  std::string replacement;  ///< New name; its i-th wildcard stands for the i-th one of `pattern`.

  /// Axes of the permutation, as for permute(). Use {1, 0} for matrices stored as [in, out], and
  /// {3, 2, 0, 1} for convolutions stored as [kH, kW, in, out]. Empty: unchanged.
  std::vector<int> permute = {};
};

/// Options of read_weights(), CompiledFunction::import_weights() and TrainerBase::import_weights().
struct ImportOptions {
  std::vector<NameRule> names = {};      ///< The first rule that matches applies; else no change.
  std::vector<std::string> ignore = {};  ///< Patterns of names in the file to skip.

  /// Keeps parameters and buffers that are not in the file, and allows rules that match nothing.
  bool partial = false;
};

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
