// SPDX-License-Identifier: MIT
// What tg_bench measures (docs/benchmarks.md says what each is). A JSON line for each measurement.
#pragma once

#include <tensorgrad/train/profile.h>

#include "measure.h"

namespace tensorgrad::bench {

// What a line says of a device, given its text: that, and of a GPU the driver and the library that
// speaks WebGPU.
Fields described_device(const std::string& device);
// cpu, and webgpu where `auto` would take a GPU.
std::vector<std::string> default_devices();
// Those whose steps are measured there: of the two sizes of char-gpt, the small one on the CPU.
std::vector<std::string> measured_workloads(const std::string& device);

// Of the steps that --profile looks at; and a line for each of their launches, or of their scans.
inline const ProfileOptions kProfiling = {.steps = 9, .roofline = true};
void print_launches(const std::string& workload, const std::string& mode, const Profile& profile);
void print_scans(const Options& options, const std::string& workload, const Profile& profile);
// The time of a step in each mode, and of its launches if that is asked for.
void steps(const Options& options, const std::string& device, const std::string& workload);
// The time of a step and the peak bytes of a workload: char-gpt-small twice and four times as large
// in batch, in layers and in length, mamba1 in several lengths.
void scaling(const Options& options, const std::string& device, const std::string& workload);
// Milliseconds of tracing, passes and kernels, in a process that has compiled nothing before, and
// again. Opening the device is a part of it.
void compiling(const Options& options, const std::string& device, const std::string& workload);
// One step, and when it was done; a few more, and the most memory that the process had.
void probe(const Options& options, const std::string& device, const std::string& workload);

void gemm(const Options& options);
void gemm_on_gpu(const Options& options);
// Launches that memory bounds: bytes a second of each, and of a copy.
void memory(const Options& options, const std::string& device);
// One row, and 64, times a square matrix kept in each format of weights.
void packed(const Options& options, const std::string& device);
// Calls a second of 1 to 8 clients, each with a replica of one classifier, one picture a call.
void serve(const Options& options, const std::string& device);
// A Mamba-1 that writes on: the small one on the CPU, that of 130 million parameters on a GPU.
void decode(const Options& options, const std::string& device);

}  // namespace tensorgrad::bench
