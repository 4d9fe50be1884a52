// SPDX-License-Identifier: MIT
// What the threads of a subgroup do together. Which matrices they multiply: Dawn's properties of an
// adapter have them under numbers that change from version to version, so kernels are tried
// instead. Which threads they are: WebGPU does not promise that they are neighbours, so that is
// tried as well.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"

namespace tensorgrad::webgpu {
namespace {

constexpr std::array<MatrixUnits, 2> kKnownUnits = {{{16, 16, 16, 0}, {8, 8, 8, 0}}};

// One product, through workgroup memory, whose arrays are of vectors.
std::string trial_kernel(const MatrixUnits& units) {
  const auto array = [](const char* name, int count) {
    return "var<workgroup> " + std::string(name) + ": array<vec4<u32>, " + std::to_string(count) +
           ">;\n";
  };
  return std::string("enable f16;\n") + kUnitDirectives +
         "@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;\n" +
         array("a", units.m * units.k / 8) + array("b", units.k * units.n / 8) +
         array("c", units.m * units.n / 4) + "@compute @workgroup_size(" +
         std::to_string(units.subgroup) +
         ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
         "  var sum: " +
         result_type(units) +
         ";\n  let x = " + load_units(units, UnitSide::kLeft, "a", "0u", false, units.k) +
         ";\n  let y = " + load_units(units, UnitSide::kRight, "b", "0u", true, units.k) +
         ";\n  sum = subgroupMatrixMultiplyAccumulate(x, y, sum);\n  " +
         store_units("c", "0u", "sum", units.n) +
         "\n  workgroupBarrier();\n  out[local] = c[local];\n}\n";
}

// Of each thread: how many of its exchanges gave it what the thread has whose number differs in
// that bit.
std::string exchange_kernel(int threads, int size, const std::string& enable) {
  std::string text = enable +
                     "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
                     "@compute @workgroup_size(" +
                     std::to_string(threads) +
                     ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
                     "  var given = 0u;\n";
  for (int mask = 1; mask < size; mask *= 2) {
    const std::string number = std::to_string(mask) + "u";
    text += "  given += select(0u, 1u, subgroupShuffleXor(local, " + number + ") == (local ^ " +
            number + "));\n";
  }
  return text + "  out[local] = given;\n}\n";
}

}  // namespace

Subgroups WebGpuDevice::find_subgroups() {
  constexpr int kThreads = 256;
  const int size = adapter_.least_subgroup;
  const bool offered =
      api_.DeviceHasFeature(device_.get(),
                            api_.vendor->number_of(api_, WGPUFeatureName_Subgroups)) != 0U;
  if (!offered || size < 2 || kThreads % size != 0 ||
      info_.limits.max_workgroup_invocations < kThreads)
    return {};
  for (const bool enabled : {true, false}) {  // wgpu-native knows no such word
    Kernel kernel;
    kernel.name = "subgroups";
    kernel.dispatch.bindings = {{.bytes = kThreads * 4, .mode = BindMode::kReadWrite}};
    Step step;
    step.name = kernel.name;
    step.pipeline = with_layouts(kernel);
    begin_scope();
    const Handle<WGPUShaderModule> module =
        make_module(kernel, exchange_kernel(kThreads, size, enabled ? "enable subgroups;\n" : ""));
    if (!end_scope().empty()) continue;
    begin_scope();
    make_pipeline(kernel, module.get(), *step.pipeline);
    if (!end_scope().empty()) continue;
    const std::array<BufferHandle, 1> buffers = {alloc(kThreads * 4, kernel.name)};
    step.bindings = kernel.dispatch.bindings;
    step.group = bind(step, buffers);
    const Handle<WGPUCommandEncoder> encoder = encode({&step, 1}, false, 0, 1);
    watch(finish_and_submit(encoder.get(), false));
    std::array<std::uint32_t, kThreads> given = {};
    wait(download(buffers[0], 0, std::as_writable_bytes(std::span(given))));
    free(buffers[0]);
    const auto rounds = static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned>(size)));
    if (std::all_of(given.begin(), given.end(), [&](std::uint32_t n) { return n == rounds; }))
      return {.size = size, .enabled = enabled};
  }
  return {};
}

MatrixUnits WebGpuDevice::find_units() {
  const std::vector<WGPUFeatureName> names = api_.vendor->matrix_features();
  const bool offered = std::any_of(names.begin(), names.end(), [&](WGPUFeatureName name) {
    return api_.DeviceHasFeature(device_.get(), name) != 0U;
  });
  if (!offered || !info_.stores_f16 || adapter_.subgroup == 0) return {};
  for (MatrixUnits units : kKnownUnits) {
    units.subgroup = adapter_.subgroup;
    Kernel kernel;
    kernel.name = "matrix units";
    kernel.dispatch.bindings = {{.mode = BindMode::kReadWrite}};
    const std::shared_ptr<Pipeline> made = with_layouts(kernel);
    begin_scope();
    const Handle<WGPUShaderModule> module = make_module(kernel, trial_kernel(units));
    if (!end_scope().empty()) continue;
    begin_scope();
    make_pipeline(kernel, module.get(), *made);
    if (end_scope().empty()) return units;
  }
  return {};
}

}  // namespace tensorgrad::webgpu
