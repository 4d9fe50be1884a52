// SPDX-License-Identifier: MIT
#include "webgpu_test_util.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <fstream>

#include "base/env.h"
#include "codegen/wgsl/writer.h"
#include "ops/pointwise.h"

namespace tensorgrad::testing {
namespace {

const PointwiseCode* code_of(const std::string& name) {
  for (const OpDef* op : pointwise_ops()) {
    if (name == op->name) return op->code;
  }
  throw std::logic_error("no pointwise op " + name);
}

// Writes the kernels of all tests to a folder, for inspection or for other compilers.
void dump_kernels(const Program& program, const WgslOptions& options) {
  const std::string folder = env("TENSORGRAD_TEST_WGSL_DIR");
  if (folder.empty()) return;
  static int number = 0;
  for (const Launch& launch : program.launches) {
    std::ofstream(folder + "/" + std::to_string(getpid()) + "_" + std::to_string(number++) + "_" +
                  launch.name + ".wgsl")
        << emit_wgsl(launch, options);
  }
}

}  // namespace

bool gpu_tests_are_off() { return env("TENSORGRAD_NO_GPU_TESTS") == "1"; }

std::unique_ptr<webgpu::WebGpuDevice> test_device(bool default_limits, bool checked) {
  WebGpuOptions options;
  options.allow_software = true;
  options.default_limits = default_limits;
  options.checked = checked;
  try {
    std::unique_ptr<Device> device = make_webgpu_device(options);
    return std::unique_ptr<webgpu::WebGpuDevice>(
        dynamic_cast<webgpu::WebGpuDevice*>(device.release()));
  } catch (const DeviceError& error) {
    ADD_FAILURE() << error.what();
    return nullptr;
  }
}

int ProgramMaker::op(const char* name, const std::vector<int>& operands) {
  return Scalar::op(*code_of(name), operands);
}

int ProgramMaker::op_to(const char* name, const std::vector<int>& operands, DType result) {
  return Scalar::op(*code_of(name), operands, result);
}

int TestProgram::buffer(DType dtype, std::int64_t elements, double lo, double hi) {
  BufferDecl decl;
  decl.name = "buffer" + std::to_string(program.buffers.size());
  decl.bytes = (elements * 4 + 255) / 256 * 256;
  program.buffers.push_back(decl);
  types_.push_back(dtype);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(decl.bytes / 4));
  std::uniform_real_distribution<double> draw(lo, hi);
  for (std::uint32_t& word : words) {
    double value = draw(random_);
    if (dtype == DType::kBool) value = value > (lo + hi) / 2 ? 1 : 0;
    if (dtype == DType::kI32 || dtype == DType::kU32) value = std::floor(value);
    word = oracle_encode(value, dtype);
  }
  contents.push_back(std::move(words));
  return static_cast<int>(program.buffers.size()) - 1;
}

void TestProgram::fill(int buffer, const std::vector<std::uint32_t>& words) {
  std::copy(words.begin(), words.end(), contents.at(static_cast<std::size_t>(buffer)).begin());
}

void TestProgram::fill(int buffer, const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  fill(buffer, words);
}

Launch& TestProgram::launch(LaunchKind kind, const std::string& name) {
  Launch made;
  made.kind = std::move(kind);
  made.name = name;
  made.ops = {name};
  made.locations = {
      SourceLocation("model.cpp", static_cast<unsigned>(program.launches.size()) + 10)};
  program.launches.push_back(std::move(made));
  return program.launches.back();
}

void TestProgram::add_one(const std::string& name, int in, int out, std::int64_t elements) {
  Launch& made = launch(MapLaunch{elements}, name);
  bind(made, in, BindMode::kRead);
  bind(made, out, BindMode::kWrite);
  ProgramMaker make;
  const int value = make.op("add", {make.load(0, whole({elements})), make.constant(1)});
  made.body = make.program;
  store(made, 1, value, whole({elements}));
}

int TestProgram::bind(Launch& launch, int buffer, BindMode mode) {
  Binding binding;
  binding.buffer = buffer;
  binding.bytes = program.buffers.at(static_cast<std::size_t>(buffer)).bytes;
  binding.mode = mode;
  launch.bindings.push_back(binding);
  return static_cast<int>(launch.bindings.size()) - 1;
}

void TestProgram::store(Launch& launch, int binding, int value, IndexMap map, DType dtype,
                        Level level, int ring_word) {
  Store made;
  made.binding = binding;
  made.dtype = dtype;
  made.level = level;
  made.map = std::move(map);
  made.value = value;
  made.ring_word = ring_word;
  launch.stores.push_back(made);
}

std::vector<BufferHandle> TestProgram::upload(Device& device) const {
  std::vector<BufferHandle> handles;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    handles.push_back(device.alloc(program.buffers[i].bytes, program.buffers[i].name));
    device.upload(handles.back(), 0, std::as_bytes(std::span(contents[i])));
  }
  return handles;
}

std::vector<std::uint32_t> TestProgram::download(Device& device, BufferHandle handle,
                                                 int buffer) const {
  std::vector<std::uint32_t> words(contents.at(static_cast<std::size_t>(buffer)).size());
  device.wait(device.download(handle, 0, std::as_writable_bytes(std::span(words))));
  return words;
}

void TestProgram::compare(int buffer, const std::vector<std::uint32_t>& got,
                          const std::vector<std::uint32_t>& want, double tolerance) const {
  const DType dtype = types_.at(static_cast<std::size_t>(buffer));
  int shown = 0;
  for (std::size_t i = 0; i < want.size() && shown < 5; ++i) {
    const double a = oracle_decode(got[i], dtype), b = oracle_decode(want[i], dtype);
    const bool both_nan = std::isnan(a) && std::isnan(b);
    if (got[i] == want[i] || both_nan) continue;
    if (dtype == DType::kF32 && std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
    ++shown;
    ADD_FAILURE() << program.launches.front().name << ": buffer " << buffer << " element " << i
                  << " is " << a << ", should be " << b;
  }
  if (shown > 0) ADD_FAILURE() << emit_wgsl(program.launches.front());
}

void TestProgram::check(webgpu::WebGpuDevice& device, const std::vector<RuntimeScalars>& rows,
                        double tolerance) {
  verify(program);
  dump_kernels(program, device.kernel_options());
  const std::vector<BufferHandle> handles = upload(device);
  const auto executable = device.prepare(program, handles);
  device.wait(device.run(*executable, rows));
  OracleBuffers want = contents;
  for (const RuntimeScalars& row : rows) run_oracle(program, want, row);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const int number = static_cast<int>(i);
    compare(number, download(device, handles[i], number), want[i], tolerance);
  }
  for (const BufferHandle handle : handles) device.free(handle);
}

IndexMap whole(const Shape& shape) { return IndexMap::identity(shape); }

IndexMap strided(const Shape& shape, const std::vector<std::int64_t>& strides,
                 std::int64_t offset) {
  return {{View{shape, strides, offset, {}, {}}}};
}

IndexMap masked(const Shape& shape, const std::vector<std::int64_t>& strides, std::int64_t offset,
                const std::vector<std::int64_t>& lo, const std::vector<std::int64_t>& hi) {
  return {{View{shape, strides, offset, lo, hi}}};
}

}  // namespace tensorgrad::testing
