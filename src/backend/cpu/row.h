// SPDX-License-Identifier: MIT
// Shared by the ways of running row launches.
#pragma once

#include <memory>

#include "backend/cpu/tape.h"

namespace tensorgrad::cpu {

// The body of a row launch as a tape: rows in blocks, columns along rows.
TapeSpec row_spec(const Launch& launch);

// Rows streamed pass by pass; `swapped`: blocks of many rows and few columns.
std::unique_ptr<Step> make_row_stream(const Prepare& prepare, bool swapped);

}  // namespace tensorgrad::cpu
