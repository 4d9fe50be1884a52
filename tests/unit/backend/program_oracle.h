// SPDX-License-Identifier: MIT
// What a Program means, said as plainly as can be: every value as a double, one element after the
// other, every index through offset_at(). Tests of backends compare with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/program.h"

namespace tensorgrad::testing {

// Buffer contents as 32-bit words: words[i] stands for program.buffers[i].
using OracleBuffers = std::vector<std::vector<std::uint32_t>>;

// The meaning of a pointwise op on one element; types[k] is the type of operand k.
using OracleOp = std::function<double(const PointwiseCode& code, const DType* types, DType result,
                                      const double* args)>;

// In double where the op takes f32 and its name is known here (add, mul, exp, where, ...); else by
// one call of its block function, in the precision of that.
double oracle_op(const PointwiseCode& code, const DType* types, DType result, const double* args);

// Buffers of the sizes that the program declares, zero or with its constant data.
OracleBuffers oracle_buffers(const Program& program);

// One step. All loads of a launch see the buffers as they were before it. Throws std::out_of_range
// where a load or store leaves its binding.
void run_oracle(const Program& program, OracleBuffers& buffers, const HyperRow& hyper,
                const OracleOp& op = oracle_op);

// One launch of it.
void run_oracle(const Launch& launch, OracleBuffers& buffers, const HyperRow& hyper,
                const OracleOp& op = oracle_op);

// A hyper row with +inf and NaN in their places and zero elsewhere.
HyperRow oracle_hyper();

// Patterns and back.
double oracle_decode(std::uint32_t bits, DType dtype);
std::uint32_t oracle_encode(double value, DType dtype);

}  // namespace tensorgrad::testing
