// SPDX-License-Identifier: MIT
// Programs built by hand, run on a device and by the oracle, compared element by element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "program_oracle.h"

namespace tensorgrad::testing {

// Small pointwise ops in plain loops, so that backends can be tested without the room of ops.
const PointwiseCode& op_add();    // f32, i32, u32
const PointwiseCode& op_mul();    // f32, i32, u32
const PointwiseCode& op_max();    // f32, i32
const PointwiseCode& op_exp();    // f32
const PointwiseCode& op_less();   // f32, i32, u32 -> bool
const PointwiseCode& op_where();  // (bool, t, t) -> t
const PointwiseCode& op_cast();   // any -> any

// A program with one launch, put together a piece at a time. Every buffer is one binding.
class LaunchBuilder {
 public:
  explicit LaunchBuilder(LaunchKind kind, const std::string& name = "test");

  // A buffer of so many elements; f32 contents in [-2, 2) by `seed`, integers in [0, limit).
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

// Adds instructions to a scalar program; every call gives the new value's number.
class Scalar {
 public:
  explicit Scalar(ScalarProgram& program) : program_(program) {}

  int constant(float value);
  int constant_u32(std::uint32_t value, DType dtype = DType::kU32);
  int hyper(int word, DType dtype = DType::kF32);
  int index(Level level = Level::kElement);
  int coord(std::int64_t divisor, std::int64_t modulus, Level level = Level::kElement);
  int load(int binding, const IndexMap& map, DType dtype = DType::kF32,
           Level level = Level::kElement);
  int load_at(int binding, const IndexMap& map, int index, std::int64_t stride, std::int64_t size,
              DType dtype = DType::kF32);
  int in_bounds(const IndexMap& map, int binding = 0);
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

// Runs the program once on the device: the buffers afterwards.
OracleBuffers run_on(Device& device, const LaunchBuilder& built,
                     const HyperRow& hyper = oracle_hyper());
// Runs it on a CPU device of 1 and of each of `threads` threads: all must give the same bits, and
// the oracle's values within the tolerance (integers: exactly). Fails the test where not.
void expect_as_oracle(const LaunchBuilder& built, const HyperRow& hyper = oracle_hyper(),
                      Tolerance tolerance = {}, std::initializer_list<int> threads = {4});
// Every written buffer of `given` against `wanted`, by the dtypes of the stores.
void expect_close(const LaunchBuilder& built, const OracleBuffers& given,
                  const OracleBuffers& wanted, Tolerance tolerance);

}  // namespace tensorgrad::testing
