// SPDX-License-Identifier: MIT
// Measures the roofline of a device with the library's own copy and matrix product.
#include <algorithm>
#include <cstdio>

#include "compile/compile.h"
#include "compile/debug/profile.h"
#include "compile/runtime/instance.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr int kTimes = 5;  // the best of this many runs counts, after one warm-up

// Returns f32 values in [-1, 1). On zeros, a GPU takes less power and so runs faster.
std::vector<float> noise(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t bits = 1;
  for (float& value : values) {
    bits = bits * 1664525U + 1013904223U;
    value = static_cast<float>(bits >> 8) / static_cast<float>(1U << 23) - 1;
  }
  return values;
}

// Returns the minimum time in microseconds of all launches of a graph in text form with the inputs
// x and, optionally, w.
double least_microseconds(const std::shared_ptr<Device>& device, const std::string& text) {
  CompileRequest request;
  request.name = "roofline";
  request.graph = parse(text, "roofline", find_op);
  compile_for(device->info(), request);
  const Compiled compiled = compile_graph(std::move(request));
  Instance instance(device, compiled.program);
  for (const char* name : {"x", "w"}) {
    const std::string buffer = input_buffer(name);
    if (!instance.has_buffer(buffer)) continue;
    const std::vector<float> values =
        noise(instance.buffer_bytes(buffer) / static_cast<std::int64_t>(sizeof(float)));
    instance.upload(buffer, 0, std::as_bytes(std::span(values)));
  }
  double least = 0;
  for (int i = -1; i < kTimes; ++i) {
    double sum = 0;
    for (const LaunchTiming& launch : instance.profile({})) sum += launch.microseconds;
    if (i >= 0) least = least > 0 ? std::min(least, sum) : sum;
  }
  return least;
}

double copy_microseconds(const std::shared_ptr<Device>& device, std::int64_t elements) {
  const std::string n = std::to_string(elements);
  return least_microseconds(device, "%0 = input() {dtype=0, name=\"x\", shape=[" + n + "]} : f32[" +
                                        n + "]\n%1 = neg(%0) : f32[" + n + "]\noutput y = %1\n");
}

double product_microseconds(const std::shared_ptr<Device>& device, std::int64_t size) {
  const std::string n = std::to_string(size) + "," + std::to_string(size);
  const auto leaf = [&](const std::string& value, const std::string& name) {
    return value + " = input() {dtype=0, name=\"" + name + "\", shape=[" + n + "]} : f32[" + n +
           "]\n";
  };
  return least_microseconds(device, leaf("%0", "x") + leaf("%1", "w") +
                                        "%2 = matmul(%0, %1) : f32[" + n + "]\noutput y = %2\n");
}

}  // namespace

DevicePeaks measure_peaks(const std::shared_ptr<Device>& device) {
  DevicePeaks peaks;
  if (!device->info().computes) return peaks;
  constexpr double kCopyLongEnough = 500, kProductLongEnough = 20'000;  // microseconds
  // Larger than caches. Limits of bindings and buffers apply.
  constexpr std::int64_t kFirstBytes = 64LL << 20, kMaxBytes = 256LL << 20, kMaxSize = 4096;
  const DeviceLimits& limits = device->info().limits;
  const std::int64_t most =
      std::min({kMaxBytes, limits.max_binding_bytes, limits.max_buffer_bytes});
  double us = 0;
  std::int64_t bytes = std::min(kFirstBytes, most);
  for (; us < kCopyLongEnough && bytes <= most; bytes *= 2) {
    us = copy_microseconds(device, bytes / static_cast<std::int64_t>(sizeof(float)));
    if (us <= 0) return {};
    peaks.bytes_per_second =
        std::max(peaks.bytes_per_second, 2 * static_cast<double>(bytes) / us * 1e6);
  }
  us = 0;
  std::int64_t size = 512;
  for (; us < kProductLongEnough && size <= kMaxSize; size *= 2) {
    us = product_microseconds(device, size);
    if (us <= 0) return {};
    const auto n = static_cast<double>(size);
    peaks.flops_per_second = std::max(peaks.flops_per_second, 2 * n * n * n / us * 1e6);
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "copies of up to %lld MiB of f32, and f32 products of up to %lld x %lld",
                static_cast<long long>(bytes >> 21), static_cast<long long>(size / 2),
                static_cast<long long>(size / 2));
  peaks.method = text;
  return peaks;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
