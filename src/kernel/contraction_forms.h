// SPDX-License-Identifier: MIT
// The kernels that one contraction may have: the one that the cost model chooses, and those of
// other tiles, for a device to time.
#pragma once

#include <string>
#include <vector>

#include "kernel/wgsl_writer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ContractionForm {
  std::string name;  // "default", "tile 64", "units 2"
  WgslKernel kernel;
};

// What decides how fast each form is, beside the device: the sizes, how the operands lie, and a
// hash of the default's text, with everything at the start of its buffer. So layers that are alike
// have one key: "1x512x1024x256 kn 09af...", where a lies along k (else m) and b along n (else k).
std::string contraction_key(const Launch& launch, const WgslOptions& options);

// The form of this name, written; an empty name where there is none for this launch.
ContractionForm contraction_form(const Launch& launch, const WgslOptions& options,
                                 const std::string& name);

// All that differ, the default first. Forms that would take very long are left out.
std::vector<ContractionForm> contraction_forms(const Launch& launch, const WgslOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
