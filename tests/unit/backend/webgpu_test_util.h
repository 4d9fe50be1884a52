// SPDX-License-Identifier: MIT
// Hand-made programs for the tests of the WebGPU backend, and their comparison with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/device.h"
#include "program_oracle.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

// True where TENSORGRAD_NO_GPU_TESTS=1 says that there is nothing to test on.
bool gpu_tests_are_off();

// A device on any adapter; fails the test (and gives null) where there is none.
std::unique_ptr<webgpu::WebGpuDevice> test_device(bool default_limits = false,
                                                  bool checked = false);

// Skips a test where they were switched off (docs/debugging.md).
#define TENSORGRAD_SKIP_WITHOUT_GPU_TESTS() \
  if (gpu_tests_are_off()) GTEST_SKIP() << "TENSORGRAD_NO_GPU_TESTS=1"

// Skips only there; else binds `name` to a device.
#define TENSORGRAD_DEVICE_OR_RETURN(name, ...) \
  TENSORGRAD_SKIP_WITHOUT_GPU_TESTS();         \
  const auto name = test_device(__VA_ARGS__);  \
  ASSERT_NE(name, nullptr)

// Likewise to the device that Sketch::check() runs on, so that kernels can be forced there.
#define TENSORGRAD_SKETCH_DEVICE_OR_RETURN(name)                                           \
  TENSORGRAD_SKIP_WITHOUT_GPU_TESTS();                                                     \
  auto* const name = dynamic_cast<webgpu::WebGpuDevice*>(device_at(Where::kWebGpu).get()); \
  ASSERT_NE(name, nullptr)

// Writes scalar programs line by line; every call gives the number of the new instruction.
class ProgramMaker {
 public:
  ScalarProgram program;

  int constant(float value);
  int constant_bits(std::uint32_t bits, DType dtype);
  int hyper(int word, DType dtype = DType::kF32);
  int index(Level level = Level::kElement);
  int coord(std::int64_t divisor, std::int64_t modulus, Level level = Level::kElement);
  int load(int binding, IndexMap map, DType dtype = DType::kF32, Level level = Level::kElement);
  int load_at(int binding, IndexMap map, int key, std::int64_t stride, std::int64_t size,
              Level level = Level::kElement);
  int in_bounds(int binding, IndexMap map);
  // By the op's name; the level is row where all operands are row-level.
  int op(const char* name, std::vector<int> operands);
  int op_to(const char* name, std::vector<int> operands, DType result);
  int reduce(ReduceOp op, int operand);
  int acc();

 private:
  int add(Instr instr);
};

// A program under construction. Buffers have random contents by their type.
class TestProgram {
 public:
  explicit TestProgram(unsigned seed = 1) : random_(seed) {}

  int buffer(DType dtype, std::int64_t elements, double lo = -2, double hi = 2);
  // Sets the contents of a buffer's first words.
  void fill(int buffer, const std::vector<std::uint32_t>& words);
  void fill(int buffer, const std::vector<float>& values);
  Launch& launch(LaunchKind kind, const std::string& name);
  // A launch of out = in + 1 over all of both buffers' `elements`.
  void add_one(const std::string& name, int in, int out, std::int64_t elements);
  // Binds the whole of a buffer to the launch; gives the binding's number.
  int bind(Launch& launch, int buffer, BindMode mode);
  static void store(Launch& launch, int binding, int value, IndexMap map, DType dtype = DType::kF32,
                    Level level = Level::kElement, int ring_word = -1);

  // Runs on the device and in the oracle, once per row, and compares all buffers.
  void check(webgpu::WebGpuDevice& device, const std::vector<HyperRow>& rows = {oracle_hyper()},
             double tolerance = 3e-5);
  // Uploads, and gives the handles.
  std::vector<BufferHandle> upload(Device& device) const;
  [[nodiscard]] std::vector<std::uint32_t> download(Device& device, BufferHandle handle,
                                                    int buffer) const;

  Program program;
  OracleBuffers contents;

 private:
  void compare(int buffer, const std::vector<std::uint32_t>& got,
               const std::vector<std::uint32_t>& want, double tolerance) const;

  std::vector<DType> types_;
  std::mt19937 random_;
};

IndexMap whole(const Shape& shape);
IndexMap strided(const Shape& shape, const std::vector<std::int64_t>& strides,
                 std::int64_t offset = 0);
IndexMap masked(const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t offset,
                const std::vector<std::int64_t>& lo, const std::vector<std::int64_t>& hi);

}  // namespace tensorgrad::testing
