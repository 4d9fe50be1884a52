// SPDX-License-Identifier: MIT
// Which matrices a subgroup multiplies: Dawn's properties of an adapter have them under numbers
// that change from version to version, so kernels are tried instead.
#include <algorithm>
#include <array>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"

namespace tensorgrad::webgpu {
namespace {

constexpr std::array<MatrixUnits, 4> kKnownUnits = {
    {{16, 16, 16, 0}, {8, 8, 8, 0}, {16, 16, 16, 0, true}, {8, 8, 8, 0, true}}};

// One product, through workgroup memory.
std::string trial_kernel(const MatrixUnits& units) {
  const std::string m = std::to_string(units.m), n = std::to_string(units.n),
                    k = std::to_string(units.k);
  const auto array = [](const char* name, const char* type, int count) {
    return "var<workgroup> " + std::string(name) + ": array<" + type + ", " +
           std::to_string(count) + ">;\n";
  };
  return std::string("enable f16;\n") + kUnitDirectives +
         "@group(0) @binding(0) var<storage, read_write> out: array<f32>;\n" +
         array("a", "f16", units.m * units.k) + array("b", "f16", units.k * units.n) +
         array("c", "f32", units.m * units.n) + "@compute @workgroup_size(" +
         std::to_string(units.subgroup) +
         ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
         "  var sum: subgroup_matrix_result<f32, " +
         n + ", " + m + ">;\n  let x = " +
         load_units(units, "subgroup_matrix_left<f16, " + k + ", " + m + ">", "a", "0u", false,
                    k + "u") +
         ";\n  let y = " +
         load_units(units, "subgroup_matrix_right<f16, " + n + ", " + k + ">", "b", "0u", true,
                    k + "u") +
         ";\n  sum = subgroupMatrixMultiplyAccumulate(x, y, sum);\n  " +
         store_units(units, "c", "0u", "sum", n + "u") +
         "\n  workgroupBarrier();\n  out[local] = c[local];\n}\n";
}

}  // namespace

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
