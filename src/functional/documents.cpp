// SPDX-License-Identifier: MIT
#include "functional/documents.h"

#include "tensorgrad/functional/state_space.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void demand_numbers(const char* op, const Tensor& documents, Loc loc) {
  if (documents.dtype() == i32) return;
  throw DtypeError(std::string(op) + ": expected i32 documents, got " +
                       std::string(to_string(documents.dtype())),
                   loc);
}

Tensor checked_documents(const char* op, Tensor documents, const Shape& steps, Loc loc) {
  demand_numbers(op, documents, loc);
  demand_shape(op, "documents", documents, steps, loc);
  return documents;
}

Tensor starts_of(Tensor documents, Loc loc) {
  const std::int64_t length = documents.size(1);
  if (length == 1) return full(documents.shape(), 0, boolean, loc);
  const Tensor before =
      concat({narrow(documents, 1, 0, 1, loc), narrow(documents, 1, 0, length - 1, loc)}, 1, loc);
  return ne(documents, before);
}

// Steps since the last start; those of the first document count from step `first_start`.
Tensor steps_behind(Tensor starts, std::int64_t first_start, Loc loc) {
  const Tensor step = iota(starts.shape(), 1, i32, loc);
  const Tensor first = where(starts, step, static_cast<double>(first_start));
  return step - cummax(first, 1, loc).values;
}

}  // namespace

Tensor document_positions(Tensor documents, Loc loc) {
  constexpr const char* kOpName = "document_positions";
  const Composite composite(kOpName, loc);
  demand_numbers(kOpName, documents, loc);
  if (documents.rank() != 2) {
    throw ShapeError(
        std::string(kOpName) + ": expected documents [B, L], got " + to_string(documents.shape()),
        loc);
  }
  return steps_behind(starts_of(documents, loc), 0, loc);
}

DocumentSteps::DocumentSteps(const char* op, Tensor documents, std::int64_t batch,
                             std::int64_t length, Loc loc)
    : starts(starts_of(checked_documents(op, documents, {batch, length}, loc), loc)),
      behind(steps_behind(starts, -kFar, loc)) {}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
