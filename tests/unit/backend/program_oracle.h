// SPDX-License-Identifier: MIT
// The semantics of a Program in the plainest form: every value is a double, elements are computed
// one after the other, and every index is computed by offset_at(). Backend tests compare with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/program.h"

namespace tensorgrad::testing {

// Buffer contents as 32-bit words: words[i] belongs to program.buffers[i].
using OracleBuffers = std::vector<std::vector<std::uint32_t>>;

// Evaluates a pointwise op on one element; types[k] is the type of operand k.
using OracleOp = std::function<double(const PointwiseCode& code, const DType* types, DType result,
                                      const double* args)>;

// Computes in double if the operands are f32 and the op is known here by name (add, mul, exp,
// where, ...). Otherwise calls the block function of the op, in its precision.
double oracle_op(const PointwiseCode& code, const DType* types, DType result, const double* args);

// Returns buffers of the declared sizes, filled with zeros or with the constant data of the
// program.
OracleBuffers oracle_buffers(const Program& program);

// Runs one step. All loads of a launch see the buffers as they were before the launch. Throws
// std::out_of_range if a load or store is outside its binding.
void run_oracle(const Program& program, OracleBuffers& buffers,
                const RuntimeScalars& runtime_scalars, const OracleOp& op = oracle_op);

// Runs one launch.
void run_oracle(const Launch& launch, OracleBuffers& buffers, const RuntimeScalars& runtime_scalars,
                const OracleOp& op = oracle_op);

// Returns a RuntimeScalars with +inf and NaN in their words and zero elsewhere.
RuntimeScalars oracle_scalars();

// Convert between values and bit patterns.
double oracle_decode(std::uint32_t bits, DType dtype);
std::uint32_t oracle_encode(double value, DType dtype);

}  // namespace tensorgrad::testing
