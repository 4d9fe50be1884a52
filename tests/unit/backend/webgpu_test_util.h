// SPDX-License-Identifier: MIT
// Hand-written programs for the tests of the WebGPU backend, and their comparison with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/device.h"
#include "program_harness.h"
#include "program_oracle.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {

// Returns true if TENSORGRAD_NO_GPU_TESTS=1 is set, for machines without a device.
bool gpu_tests_are_off();

// Returns a device on any adapter. If there is none, fails the test and returns null.
std::unique_ptr<webgpu::WebGpuDevice> test_device(bool default_limits = false,
                                                  bool checked = false);

// Skips a test if GPU tests are off (docs/debugging.md).
#define TENSORGRAD_SKIP_WITHOUT_GPU_TESTS() \
  if (gpu_tests_are_off()) GTEST_SKIP() << "TENSORGRAD_NO_GPU_TESTS=1"

// Skips a test if GPU tests are off. Otherwise binds `name` to a device.
#define TENSORGRAD_DEVICE_OR_RETURN(name, ...) \
  TENSORGRAD_SKIP_WITHOUT_GPU_TESTS();         \
  const auto name = test_device(__VA_ARGS__);  \
  ASSERT_NE(name, nullptr)

// Skips a test if GPU tests are off. Otherwise binds `name` to the device of GraphBuilder::check(),
// so that kernels can be forced on it.
#define TENSORGRAD_GRAPH_DEVICE_OR_RETURN(name)                                            \
  TENSORGRAD_SKIP_WITHOUT_GPU_TESTS();                                                     \
  auto* const name = dynamic_cast<webgpu::WebGpuDevice*>(device_at(Where::kWebGpu).get()); \
  ASSERT_NE(name, nullptr)

struct OwnProgram {
  ScalarProgram program;
};

// Builds a scalar program of its own, of ops by name.
class ProgramMaker : public OwnProgram, public Scalar {
 public:
  ProgramMaker() : Scalar(program) {}
  ProgramMaker(const ProgramMaker&) = delete;
  ProgramMaker& operator=(const ProgramMaker&) = delete;

  int op(const char* name, const std::vector<int>& operands);
  int op_to(const char* name, const std::vector<int>& operands, DType result);
};

// A program under construction. Buffers have random contents of their type.
class TestProgram {
 public:
  explicit TestProgram(unsigned seed = 1) : random_(seed) {}

  int buffer(DType dtype, std::int64_t elements, double lo = -2, double hi = 2);
  // Sets the first words of a buffer.
  void fill(int buffer, const std::vector<std::uint32_t>& words);
  void fill(int buffer, const std::vector<float>& values);
  Launch& launch(LaunchKind kind, const std::string& name);
  // Adds a launch of out = in + 1 over `elements` elements.
  void add_one(const std::string& name, int in, int out, std::int64_t elements);
  // Binds a whole buffer to the launch and returns the number of the binding.
  int bind(Launch& launch, int buffer, BindMode mode);
  static void store(Launch& launch, int binding, int value, IndexMap map, DType dtype = DType::kF32,
                    Level level = Level::kElement, int ring_word = -1);

  // Runs on the device and in the oracle, once for each row, and compares all buffers.
  void check(webgpu::WebGpuDevice& device,
             const std::vector<RuntimeScalars>& rows = {oracle_scalars()}, double tolerance = 3e-5);
  // Uploads the contents and returns the handles.
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
