// SPDX-License-Identifier: MIT
// The kernel of a user-defined op. Element i of the result is row i.
#pragma once

#include <memory>

#include "ir/custom.h"
#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct UserKernel final : OpaqueKernel {
  explicit UserKernel(std::shared_ptr<const CustomKernel> user);

  std::shared_ptr<const CustomKernel> op;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
