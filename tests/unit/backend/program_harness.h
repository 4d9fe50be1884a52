// SPDX-License-Identifier: MIT
// Builds programs by hand, runs them on a device and in the oracle, and compares all elements.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "program_oracle.h"

namespace tensorgrad::testing {

// Small pointwise ops as plain loops, so that backend tests do not depend on ops/.
const PointwiseCode& op_add();    // f32, i32, u32
const PointwiseCode& op_mul();    // f32, i32, u32
const PointwiseCode& op_max();    // f32, i32
const PointwiseCode& op_exp();    // f32
const PointwiseCode& op_less();   // f32, i32, u32 -> bool
const PointwiseCode& op_where();  // (bool, t, t) -> t
const PointwiseCode& op_cast();   // any -> any

// Builds a program with one launch. Every buffer is one binding.
class LaunchBuilder {
 public:
  explicit LaunchBuilder(LaunchKind kind, const std::string& name = "test");

  // Adds a buffer of `elements` elements. f32 contents are in [-2, 2), derived from a fixed seed;
  // integers are in [0, limit).
  int input(std::int64_t elements, DType dtype = DType::kF32, std::uint32_t limit = 8);
  int output(std::int64_t elements);
  int in_place(std::int64_t elements);  // read and written; f32
  void set(int binding, const std::vector<float>& values);
  void set_words(int binding, const std::vector<std::uint32_t>& values);

  Program program;
  OracleBuffers contents;
  Launch& launch() { return program.launches[0]; }

 private:
  int add(std::int64_t elements, BindMode mode);
  std::uint32_t state_ = 12345;
};

// Adds instructions to a scalar program. Every call returns the number of the new value.
class Scalar {
 public:
  explicit Scalar(ScalarProgram& program) : program_(program) {}

  int constant(float value);
  int constant_u32(std::uint32_t value, DType dtype = DType::kU32);
  int runtime_scalars(int word, DType dtype = DType::kF32);
  int index(Level level = Level::kElement);
  int coord(std::int64_t divisor, std::int64_t modulus, Level level = Level::kElement);
  int load(int binding, const IndexMap& map, DType dtype = DType::kF32,
           Level level = Level::kElement);
  int load_at(int binding, const IndexMap& map, int index, std::int64_t stride, std::int64_t size,
              DType dtype = DType::kF32, Level level = Level::kElement);
  int in_bounds(const IndexMap& map, int binding = 0);
  // The level is row if all operands are row-level.
  int op(const PointwiseCode& code, const std::vector<int>& operands, DType result);
  int op(const PointwiseCode& code, const std::vector<int>& operands) {
    return op(code, operands, type(operands.back()));
  }
  int reduce(ReduceOp reduce, int operand);
  int acc();

 private:
  DType type(int value) const { return program_.instrs[static_cast<std::size_t>(value)].dtype; }
  int push(Instr instr);
  ScalarProgram& program_;
};

Store store_to(int binding, const IndexMap& map, int value, DType dtype = DType::kF32,
               Level level = Level::kElement);

struct Tolerance {
  double absolute = 1e-5, relative = 1e-5;
};

// Runs the program once on the device and returns the buffers.
OracleBuffers run_on(Device& device, const LaunchBuilder& built,
                     const RuntimeScalars& runtime_scalars = oracle_scalars());
// Runs the program on CPU devices with 1 thread and with each number of `threads`. Fails the test
// unless all return the same bits, and the values of the oracle within the tolerance. Integers must
// be equal.
void expect_as_oracle(const LaunchBuilder& built,
                      const RuntimeScalars& runtime_scalars = oracle_scalars(),
                      Tolerance tolerance = {}, std::initializer_list<int> threads = {4});
// Compares every buffer that a store writes, by the dtype of the store.
void expect_close(const LaunchBuilder& built, const OracleBuffers& given,
                  const OracleBuffers& wanted, Tolerance tolerance);

}  // namespace tensorgrad::testing
