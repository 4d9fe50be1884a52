// SPDX-License-Identifier: MIT
// Weights that another library has written: safetensors files of any common element type, with
// names and layouts that are not ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What tensors of a file are called in the model, and how their axes lie there.
struct NameRule {
  std::string pattern;      // of names in the file, as match_pattern() takes it
  std::string replacement;  // its i-th wildcard stands for what that of `pattern` met
  // permute() of the axes: {1, 0} where a library stores [in, out], {3, 2, 0, 1} for convolutions
  // stored as [kH, kW, in, out]. Empty: as they are.
  std::vector<int> permute = {};
};

struct ImportOptions {
  std::vector<NameRule> names = {};      // the first that matches; no rule: the name stays
  std::vector<std::string> ignore = {};  // patterns of names in the file that are left out
  // What the file lacks stays as it is, and a rule may match nothing.
  bool partial = false;
};

// The tensors of a safetensors file by their new names. F64 (rounded to the nearest), F32, F16 and
// BF16 become f32; I8, I16, I32, I64, U8, U16 and U64 become i32; U32 is u32, BOOL is bool. Throws
// IoError, naming the file and the tensor: another element type, a value that its new type does not
// hold, axes that are not the rule's; two tensors of one new name; a rule that matches nothing.
// Throws UserError on a rule that says nothing sensible.
std::map<std::string, HostTensor> read_weights(const std::string& path,
                                               const ImportOptions& options = {},
                                               Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
