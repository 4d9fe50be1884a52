// SPDX-License-Identifier: MIT
// Common parts of the implementations of row launches.
#pragma once

#include <memory>

#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// Returns the vector program spec of a row launch's body: rows in blocks, columns along rows.
VectorProgramSpec row_spec(const Launch& launch, const RowLaunch& row);

// Creates a runner that streams rows pass by pass. If `swapped`, blocks have many rows and few
// columns.
std::unique_ptr<LaunchRunner> make_row_stream(const Prepare& prepare, const RowLaunch& row,
                                              bool swapped);

}  // namespace tensorgrad::cpu
