// SPDX-License-Identifier: MIT
// tg_bench: times training steps on each device, and matrix products against OpenBLAS and Eigen.
// One JSON line per measurement; asserts nothing.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include <CLI/CLI.hpp>

#include "measure.h"
#include "workloads.h"

int main(int argc, char** argv) {
  CLI::App app{"Times tensorgrad. One JSON line per measurement: medians, microseconds."};
  std::vector<std::string> only;
  tensorgrad::bench::Options options;
  app.add_option(
         "--only", only,
         "names to run: mlp-sin, fashion-mlp, fashion-cnn, addition, char-gpt, gemm (default: all)")
      ->delimiter(',');
  app.add_option("--device", options.devices,
                 "cpu, webgpu (default: cpu, and webgpu where there is a GPU)")
      ->delimiter(',');
  app.add_option("--threads", options.threads, "threads of the cpu device; 0 for all cores");
  app.add_flag("--allow-software", options.allow_software, "let webgpu take a software rasteriser");
  app.add_option("--seconds", options.seconds, "time for each measurement");
  app.add_flag("--profile", options.profile, "a line per launch of a step, too");
  app.add_flag("--stored-attention", options.stored_attention,
               "attention by products with its weights in memory, to compare");
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  try {
    if (options.devices.empty()) options.devices = tensorgrad::bench::default_devices();
    for (const std::string& device : options.devices) {
      if (wanted("mlp-sin")) tensorgrad::bench::mlp_sin(options, device);
      if (wanted("fashion-mlp")) tensorgrad::bench::fashion_mlp(options, device);
      if (wanted("fashion-cnn")) tensorgrad::bench::fashion_cnn(options, device);
      if (wanted("addition")) tensorgrad::bench::addition(options, device);
      if (wanted("char-gpt")) tensorgrad::bench::char_gpt(options, device);
    }
    const bool cpu = std::count(options.devices.begin(), options.devices.end(), "cpu") > 0;
    if (wanted("gemm") && cpu) tensorgrad::bench::gemm(options);
    const bool gpu = std::count(options.devices.begin(), options.devices.end(), "webgpu") > 0;
    if (wanted("gemm") && gpu) tensorgrad::bench::gemm_on_gpu(options);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
