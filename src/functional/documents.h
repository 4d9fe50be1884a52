// SPDX-License-Identifier: MIT
// Documents that lie one behind the other in a row of steps.
#pragma once

#include <cstdint>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What scans and convolutions over [B, L] steps need to know of `documents`.
struct DocumentSteps {
  // Steps counted before the first document of a row, which continues a state.
  static constexpr std::int64_t kFar = std::int64_t{1} << 24;

  // Throws DtypeError or ShapeError, which name `op`, unless documents are i32 [batch, length].
  DocumentSteps(const char* op, Tensor documents, std::int64_t batch, std::int64_t length, Loc loc);

  Tensor starts;  // bool [B, L]: the first step of a document, but the first of a row
  Tensor behind;  // i32 [B, L]: how many steps of its document are before a step
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
