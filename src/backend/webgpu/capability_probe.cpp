// SPDX-License-Identifier: MIT
// Capabilities that are determined by trial kernels:
// - the subgroup matrix shapes: Dawn reports them in adapter properties whose numbers change
//   between versions
// - whether subgroups are consecutive threads: WebGPU does not guarantee it
// - how f16 stores round: WGSL leaves it open
#include "backend/webgpu/capability_probe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "backend/webgpu/runner.h"
#include "backend/webgpu/vendor.h"
#include "base/half.h"

namespace tensorgrad::webgpu {
namespace {

constexpr int kTrialThreads = 256;
constexpr std::array<SubgroupMatrix, 2> kKnownShapes = {{{16, 16, 16, 0}, {8, 8, 8, 0}}};

// Returns a kernel for one product. Its operands are in workgroup memory, in arrays of vectors.
std::string trial_kernel(const SubgroupMatrix& shape) {
  const auto array = [](const char* name, int count) {
    return "var<workgroup> " + std::string(name) + ": array<vec4<u32>, " + std::to_string(count) +
           ">;\n";
  };
  return std::string("enable f16;\n") + kSubgroupMatrixDirectives +
         "@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;\n" +
         array("a", shape.m * shape.k / 8) + array("b", shape.k * shape.n / 8) +
         array("c", shape.m * shape.n / 4) + "@compute @workgroup_size(" +
         std::to_string(shape.subgroup) +
         ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
         "  var sum: " +
         result_type(shape) +
         ";\n  let x = " + load_matrix(shape, MatrixSide::kLeft, "a", "0u", false, shape.k) +
         ";\n  let y = " + load_matrix(shape, MatrixSide::kRight, "b", "0u", true, shape.k) +
         ";\n  sum = subgroupMatrixMultiplyAccumulate(x, y, sum);\n  " +
         store_matrix("c", "0u", "sum", shape.n) +
         "\n  workgroupBarrier();\n  out[local] = c[local];\n}\n";
}

// Returns a kernel that writes, for each thread, how many shuffles returned the value of the thread
// whose index differs in exactly that bit.
std::string exchange_kernel(int size, const std::string& enable) {
  std::string text = enable +
                     "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n"
                     "@compute @workgroup_size(" +
                     std::to_string(kTrialThreads) +
                     ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
                     "  var given = 0u;\n";
  for (int mask = 1; mask < size; mask *= 2) {
    const std::string number = std::to_string(mask) + "u";
    text += "  given += select(0u, 1u, subgroupShuffleXor(local, " + number + ") == (local ^ " +
            number + "));\n";
  }
  return text + "  out[local] = given;\n}\n";
}

// Returns a number from 2^-14 up to 2^17, beyond the range of f16. Every fourth is halfway between
// two f16 numbers. rounding_kernel() computes the same in WGSL.
float number_to_round(std::uint32_t thread) {
  const std::uint32_t random = (thread * 2654435761U + 12345U) * 1664525U + 1013904223U;
  const std::uint32_t bits = (random & 0x807fffffU) | ((113U + (random >> 8U) % 31U) << 23U);
  return std::bit_cast<float>(thread % 4 == 0 ? (bits & 0xffffe000U) | 0x1000U : bits);
}

std::string rounding_kernel() {
  return "enable f16;\n"
         "@group(0) @binding(0) var<storage, read_write> out: array<f16>;\n"
         "@compute @workgroup_size(" +
         std::to_string(kTrialThreads) +
         ")\nfn main(@builtin(local_invocation_index) local: u32) {\n"
         "  let random = (local * 2654435761u + 12345u) * 1664525u + 1013904223u;\n"
         "  let bits = (random & 0x807fffffu) | ((113u + (random >> 8u) % 31u) << 23u);\n"
         "  let halfway = (bits & 0xffffe000u) | 0x1000u;\n"
         "  out[local] = f16(bitcast<f32>(select(bits, halfway, local % 4u == 0u)));\n}\n";
}

}  // namespace

CapabilityProbe::CapabilityProbe(SubmitQueue& queue, PipelineCache& pipelines,
                                 const Adapter& adapter, bool f16x3)
    : queue_(queue),
      pipelines_(pipelines),
      f16x3_(f16x3),
      info_(adapter.info.device),
      least_subgroup_(adapter.least_subgroup) {
  info_.limits = queue_.limits();
  info_.joins_launches = true;
  if (info_.stores_f16) info_.stores_f16 = rounds_as_f16();
  subgroup_matrix_ = find_subgroup_matrix(adapter.subgroup);
  if (subgroup_matrix_.present()) {
    info_.features.push_back("subgroup-matrix " + std::to_string(subgroup_matrix_.m) + "x" +
                             std::to_string(subgroup_matrix_.n) + "x" +
                             std::to_string(subgroup_matrix_.k));
  }
}

void CapabilityProbe::try_subgroups() {
  if (!subgroups_) subgroups_ = find_subgroups();
}

WgslOptions CapabilityProbe::kernel_options(const WgslOptions& forced) const {
  WgslOptions options = forced;
  options.max_threads = info_.limits.max_workgroup_invocations;
  options.max_workgroup_bytes = info_.limits.max_workgroup_bytes;
  options.subgroup_matrix = subgroup_matrix_;
  options.f16x3 |= f16x3_;
  options.gpu = info_.gpu;
  const bool selected = forced.forces_tiles() || forced.lanes != 0 ||
                        forced.subgroup_matrix_tile != 0 || forced.subgroups.size != 0;
  options.barrier_free |= info_.slow_barriers && !selected;
  if (options.subgroups.size == 0) options.subgroups = subgroups_.value_or(Subgroups{});
  return options;
}

// Runs a kernel on a buffer of `bytes` bytes. Returns its contents, or nothing if the kernel is
// rejected.
std::vector<std::byte> CapabilityProbe::try_kernel(const std::string& name, const std::string& text,
                                                   std::size_t bytes) {
  Kernel kernel;
  kernel.name = name;
  kernel.dispatch.bindings = {
      {.bytes = static_cast<std::int64_t>(bytes), .mode = BindMode::kReadWrite}};
  std::string error;
  BoundDispatch dispatch;
  dispatch.name = kernel.name;
  dispatch.pipeline = pipelines_.compile(kernel, text, error);
  if (dispatch.pipeline == nullptr) return {};
  const Buffer buffer = queue_.create_storage(static_cast<std::int64_t>(bytes), kernel.name);
  const Buffer* const bound = &buffer;
  dispatch.bindings = kernel.dispatch.bindings;
  const BoundDispatch* const made = &dispatch;
  dispatch.group.handle = std::move(pipelines_.bind({&made, 1}, {&bound, 1}).front());
  queue_.finish_and_submit(encode_dispatches(queue_, {&dispatch, 1}, {}).get(), false);
  std::vector<std::byte> given(bytes);
  queue_.read_back(buffer.handle.get(), given);
  queue_.throw_faults();
  return given;
}

// Returns the subgroup size if a trial shows that threads with consecutive indices form a subgroup.
Subgroups CapabilityProbe::find_subgroups() {
  const int size = least_subgroup_;
  const Api& api = queue_.api();
  const bool offered =
      api.DeviceHasFeature(queue_.device(),
                           api.vendor->feature_number(api, WGPUFeatureName_Subgroups)) != 0U;
  if (!offered || size < 2 || kTrialThreads % size != 0 ||
      info_.limits.max_workgroup_invocations < kTrialThreads)
    return {};
  const auto exchanges = static_cast<std::uint32_t>(std::countr_zero(static_cast<unsigned>(size)));
  const std::vector<std::uint32_t> right(kTrialThreads, exchanges);
  for (const bool enabled : {true, false}) {  // wgpu-native rejects the directive
    const std::vector<std::byte> given =
        try_kernel("subgroups", exchange_kernel(size, enabled ? "enable subgroups;\n" : ""),
                   kTrialThreads * sizeof(std::uint32_t));
    if (!given.empty() && std::memcmp(given.data(), right.data(), given.size()) == 0)
      return {.size = size, .enabled = enabled};
  }
  return {};
}

// True if f16 stores round to nearest, ties to even, and overflow to infinity.
bool CapabilityProbe::rounds_as_f16() {
  if (info_.limits.max_workgroup_invocations < kTrialThreads) return false;
  std::array<std::uint16_t, kTrialThreads> right = {};
  for (std::uint32_t i = 0; i < kTrialThreads; ++i) right[i] = to_half(number_to_round(i));
  const std::vector<std::byte> given = try_kernel("rounding", rounding_kernel(), sizeof(right));
  return !given.empty() && std::memcmp(given.data(), right.data(), given.size()) == 0;
}

// Returns the first subgroup matrix shape that the driver accepts a kernel for. `subgroup` is the
// size of subgroups; 0: not constant.
SubgroupMatrix CapabilityProbe::find_subgroup_matrix(int subgroup) {
  const std::vector<WGPUFeatureName> names = queue_.api().vendor->matrix_features();
  const bool offered = std::any_of(names.begin(), names.end(), [&](WGPUFeatureName name) {
    return queue_.api().DeviceHasFeature(queue_.device(), name) != 0U;
  });
  if (!offered || !info_.stores_f16 || subgroup == 0) return {};
  for (SubgroupMatrix shape : kKnownShapes) {
    shape.subgroup = subgroup;
    Kernel kernel;
    kernel.name = "subgroup matrix";
    kernel.dispatch.bindings = {{.mode = BindMode::kReadWrite}};
    std::string error;
    if (pipelines_.compile(kernel, trial_kernel(shape), error) != nullptr) return shape;
  }
  return {};
}

}  // namespace tensorgrad::webgpu
