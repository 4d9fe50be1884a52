// SPDX-License-Identifier: MIT
// The measured workloads (docs/benchmarks.md says what each is).
#pragma once

#include "measure.h"

namespace tensorgrad::bench {

// cpu, and webgpu where `auto` would take a GPU.
std::vector<std::string> default_devices();

void mlp_sin(const Options& options, const std::string& device);
void fashion_mlp(const Options& options, const std::string& device);
void fashion_cnn(const Options& options, const std::string& device);
void addition(const Options& options, const std::string& device);
// The small one on the CPU.
void char_gpt(const Options& options, const std::string& device);
void gemm(const Options& options);
void gemm_on_gpu(const Options& options);

}  // namespace tensorgrad::bench
