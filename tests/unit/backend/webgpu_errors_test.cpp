// SPDX-License-Identifier: MIT
// Failures of a WebGPU device, and their error messages.
#include <cstdlib>
#include <fstream>

#include "support/message_of.h"
#include "tensorgrad/train/device.h"
#include "webgpu_test_util.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace tensorgrad::testing {
namespace {

// out = a + 1 over 64 elements.
TestProgram one_kernel() {
  TestProgram test;
  const int a = test.buffer(DType::kF32, 64), out = test.buffer(DType::kF32, 64);
  test.add_one("add_one", a, out, 64);
  return test;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WebGpuErrors, missing_library_is_an_error) {
  WebGpuOptions options;
  options.library = "/nowhere/libwgpu.so";
  std::string reason;
  EXPECT_TRUE(list_webgpu_adapters(options, reason).empty());
  EXPECT_TRUE(has(reason, "/nowhere/libwgpu.so")) << reason;
  EXPECT_TRUE(has(reason, "TENSORGRAD_WEBGPU_LIB")) << reason;
  const std::string text = test::what_of<DeviceError>([&] { make_webgpu_device(options); });
  EXPECT_TRUE(has(text, "/nowhere/libwgpu.so")) << text;
}

TEST(WebGpuErrors, unknown_library_is_an_error) {
  WebGpuOptions options;
  options.library = "libz.so.1";
  std::string reason;
  EXPECT_TRUE(list_webgpu_adapters(options, reason).empty());
  EXPECT_TRUE(has(reason, "wgpu")) << reason;
}

TEST(WebGpuErrors, software_adapters_are_used_only_on_request) {
  TENSORGRAD_SKIP_WITHOUT_GPU_TESTS();
  WebGpuOptions options;
  std::string reason;
  const std::vector<AdapterInfo> adapters = list_webgpu_adapters(options, reason);
  ASSERT_FALSE(adapters.empty()) << reason;
  for (const AdapterInfo& adapter : adapters) {
    EXPECT_FALSE(adapter.device.name.empty());
    EXPECT_FALSE(adapter.reason.empty());
    EXPECT_GE(adapter.device.limits.max_storage_bindings, 8);
    EXPECT_GE(adapter.device.limits.max_binding_bytes, 128 << 20);
    EXPECT_FALSE(adapter.device.software && adapter.usable) << adapter.device.name;
  }
  const std::vector<DeviceDescription> described = devices({}, reason),
                                       requested = devices({.allow_software = true}, reason);
  ASSERT_EQ(described.size(), adapters.size() + 1);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    EXPECT_EQ(described[i + 1].usable, adapters[i].usable);
    EXPECT_TRUE(requested[i + 1].usable || !adapters[i].device.software);
  }
  EXPECT_TRUE(described[0].usable) << "the CPU";
  options.adapter = 99;
  const std::string text = test::what_of<DeviceError>([&] { make_webgpu_device(options); });
  EXPECT_TRUE(has(text, "99") && has(text, adapters[0].device.name)) << text;
  bool all_software = true;
  for (const AdapterInfo& adapter : adapters) all_software &= adapter.device.software;
  options.adapter = -1;
  if (all_software) {
    EXPECT_THROW(make_webgpu_device(options), DeviceError);
  }
}

TEST(WebGpuErrors, default_limits_are_the_defaults) {
  TENSORGRAD_DEVICE_OR_RETURN(device, true);
  const DeviceLimits& limits = device->info().limits;
  EXPECT_EQ(limits.max_storage_bindings, 8);
  EXPECT_EQ(limits.max_binding_bytes, 128 << 20);
  EXPECT_EQ(limits.max_workgroup_invocations, 256);
  EXPECT_EQ(limits.max_workgroup_bytes, 16 << 10);
}

TEST(WebGpuErrors, a_checked_device_computes_the_same) {
  TENSORGRAD_DEVICE_OR_RETURN(device, false, true);
  one_kernel().check(*device);
}

TEST(WebGpuErrors, rejected_kernel_is_named_with_its_line) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  const std::vector<BufferHandle> handles = test.upload(*device);
  device->replace_next_kernel("@compute @workgroup_size(1)\nfn main() {\n  let x = nonsense;\n}\n");
  const std::string text =
      test::what_of<DeviceError>([&] { device->prepare(test.program, handles); });
  EXPECT_TRUE(has(text, "add_one")) << text;
  EXPECT_TRUE(has(text, "nonsense")) << text;
  EXPECT_TRUE(has(text, "3:")) << text;               // the line in the shader
  EXPECT_TRUE(has(text, "at model.cpp:10")) << text;  // the line in the user's code
  test.check(*device);                                // the device still works
}

TEST(WebGpuErrors, a_kernel_that_does_not_fit_its_layout) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  const std::vector<BufferHandle> handles = test.upload(*device);
  device->replace_next_kernel(
      "@group(0) @binding(7) var<storage, read_write> b: array<f32>;\n"
      "@compute @workgroup_size(1)\nfn main() {\n  b[0] = 1.0;\n}\n");
  const std::string text =
      test::what_of<DeviceError>([&] { device->prepare(test.program, handles); });
  EXPECT_TRUE(has(text, "add_one")) << text;
  EXPECT_TRUE(has(text, "at model.cpp:10")) << text;
}

TEST(WebGpuErrors, too_many_bindings) {
  TENSORGRAD_DEVICE_OR_RETURN(device, true);
  TestProgram test;
  Launch& launch = test.launch(MapLaunch{}, "greedy");
  ProgramMaker make;
  for (int i = 0; i < 9; ++i) {
    test.bind(launch, test.buffer(DType::kF32, 4), i < 8 ? BindMode::kRead : BindMode::kWrite);
  }
  TestProgram::store(launch, 8, make.constant(1), whole({1}));
  launch.body = make.program;
  const std::vector<BufferHandle> handles = test.upload(*device);
  const std::string text =
      test::what_of<DeviceError>([&] { device->prepare(test.program, handles); });
  EXPECT_TRUE(has(text, "greedy") && has(text, "9 buffers") && has(text, "allows 8")) << text;
  EXPECT_TRUE(has(text, "at model.cpp:10")) << text;
}

TEST(WebGpuErrors, a_buffer_beyond_the_limits) {
  TENSORGRAD_DEVICE_OR_RETURN(device, true);
  const std::string text =
      test::what_of<DeviceError>([&] { device->alloc(300 << 20, "activations"); });
  EXPECT_TRUE(has(text, "activations") && has(text, "314572800")) << text;
}

TEST(WebGpuErrors, usage_error_is_found_at_run_time) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  // More workgroups than a dispatch can have.
  dynamic_cast<webgpu::WebGpuExecutable&>(*executable).dispatches[0].groups_x = 1 << 20;
  const std::vector<RuntimeScalars> rows = {oracle_scalars()};
  const std::string text = test::what_of<DeviceError>([&] { device->run(*executable, rows); });
  EXPECT_TRUE(has(text, "at run time")) << text;
  one_kernel().check(*device);
}

TEST(WebGpuErrors, a_buffer_bound_twice) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  test.program.launches[0].bindings[1].buffer = 0;
  const std::vector<BufferHandle> handles = test.upload(*device);
  const std::string text =
      test::what_of<DeviceError>([&] { device->prepare(test.program, handles); });
  EXPECT_TRUE(has(text, "add_one") && has(text, "twice")) << text;
}

TEST(WebGpuErrors, one_of_several_kernels_is_rejected) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  Launch broken = test.program.launches[0];
  broken.name = "broken";
  broken.locations = {SourceLocation("model.cpp", 77)};
  static const PointwiseCode nonsense = {"nonsense", 1, {"{0} +* 1", "", "", ""}, nullptr, {}};
  broken.body.instrs[2].code = &nonsense;
  broken.body.instrs[2].operands = {0};
  test.program.launches.push_back(broken);
  const std::vector<BufferHandle> handles = test.upload(*device);
  const std::string text =
      test::what_of<DeviceError>([&] { device->prepare(test.program, handles); });
  EXPECT_TRUE(has(text, "kernel broken")) << text;
  EXPECT_TRUE(has(text, "at model.cpp:77")) << text;
}

#if defined(__linux__) && !defined(TENSORGRAD_SANITIZED)
// Limits the address space of this process to slightly more than it uses now.
class LittleMemory {
 public:
  LittleMemory() {
    getrlimit(RLIMIT_AS, &before_);
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (std::size_t{1} << 30);
    setrlimit(RLIMIT_AS, &limit);
  }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_ = {};
};

TEST(WebGpuErrors, memory_runs_out) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  if (!device->info().software) GTEST_SKIP() << "a real GPU has memory of its own";
  std::vector<BufferHandle> handles;
  std::string text;
  {
    const LittleMemory ceiling;
    for (int i = 0; i < 100 && text.empty(); ++i) {
      try {
        handles.push_back(device->alloc(100 << 20, "hoard"));
      } catch (const DeviceError& error) {
        text = error.what();
      }
    }
  }
  EXPECT_TRUE(has(text, "\"hoard\"") && has(text, "104857600 bytes")) << text;
  for (const BufferHandle handle : handles) device->free(handle);
  one_kernel().check(*device);
}
#endif

TEST(WebGpuErrors, the_device_is_lost_while_idle) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  device->lose();
  const std::vector<RuntimeScalars> rows = {oracle_scalars()};
  EXPECT_THROW(device->wait(device->run(*executable, rows)), DeviceLostError);
  EXPECT_THROW(device->run(*executable, rows), DeviceLostError);
  EXPECT_THROW(device->prepare(test.program, handles), DeviceLostError);
  EXPECT_THROW(device->alloc(256, "late"), DeviceLostError);
  EXPECT_THROW(device->profile(*executable, rows[0]), DeviceLostError);
  std::vector<float> out(64);
  EXPECT_THROW(
      device->wait(device->download(handles[0], 0, std::as_writable_bytes(std::span(out)))),
      DeviceLostError);
}

TEST(WebGpuErrors, the_device_is_lost_in_the_middle_of_a_run) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test = one_kernel();
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  const std::vector<RuntimeScalars> rows(200, oracle_scalars());
  device->wait(device->run(*executable, rows));
  std::vector<float> out(64);
  device->run(*executable, rows);
  const Ticket ticket = device->download(handles[1], 0, std::as_writable_bytes(std::span(out)));
  device->lose();
  const std::string text = test::what_of<DeviceLostError>([&] { device->wait(ticket); });
  EXPECT_TRUE(has(text, "lost")) << text;
  EXPECT_THROW(device->run(*executable, rows), DeviceLostError);
  const auto fresh = test_device();  // a new device can be created
  one_kernel().check(*fresh);
}

}  // namespace
}  // namespace tensorgrad::testing
