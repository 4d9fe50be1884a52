// SPDX-License-Identifier: MIT
// host_work KIND COUNT: does one kind of work of the host COUNT times, after a first time that is
// not counted. host_counts.py counts its instructions. The kinds are:
// - `compile` traces and compiles the addition transformer on the null device.
// - `step` feeds a batch and waits for the loss, on the null device.
// - `run` queues 50 steps over data on the device and waits for them, on the null device.
// - `encode` is `run` on WebGPU, with the library that TENSORGRAD_WEBGPU_LIB names.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "models.h"

// callgrind counts the instructions inside this function.
extern "C" void counted_work(const std::function<void()>& once, int count);
extern "C" __attribute__((noinline)) void counted_work(const std::function<void()>& once,
                                                       int count) {
  for (int i = 0; i < count; ++i) once();
}

namespace {

using tensorgrad::bench::Feeding;
using tensorgrad::bench::make_workload;
using tensorgrad::bench::Workload;

constexpr const char* kWorkload = "addition";

int work(const std::string& kind, int count) {
  const tensorgrad::DeviceOptions device = {.kind = kind == "encode" ? "webgpu" : "null"};
  const bool steps = kind == "run" || kind == "encode";
  Workload workload = make_workload(kWorkload, steps ? Feeding::kDevice : Feeding::kHost, device);
  std::function<void()> once = [&] { workload.go(); };
  if (kind == "compile") {
    once = [&] { make_workload(kWorkload, Feeding::kHost, device); };
  } else if (kind == "step" || steps) {
    once();
  } else {
    return 2;
  }
  counted_work(once, count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: host_work compile|step|run|encode COUNT\n");
    return 2;
  }
  try {
    return work(argv[1], static_cast<int>(std::strtol(argv[2], nullptr, 10)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
