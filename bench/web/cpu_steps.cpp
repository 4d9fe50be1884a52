// SPDX-License-Identifier: MIT
// Steps of tg_bench's workloads on the CPU, for WebAssembly in node, as `tg_bench --device cpu
// --modes step` measures them natively: cpu_steps THREADS SECONDS PROFILE WORKLOAD...
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "measure.h"
#include "workloads.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: cpu_steps THREADS SECONDS PROFILE(0 or 1) WORKLOAD...\n";
    return 2;
  }
  tensorgrad::bench::Options options;
  options.threads = std::atoi(argv[1]);
  options.seconds = std::atof(argv[2]);
  options.profile = std::atoi(argv[3]) != 0;
  options.modes = {"step"};
  try {
    for (int i = 4; i < argc; ++i) tensorgrad::bench::steps(options, "cpu", argv[i]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
