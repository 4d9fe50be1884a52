// SPDX-License-Identifier: MIT
// Measurements of tg_bench (described in docs/benchmarks.md). Each prints JSON lines.
#pragma once

#include <tensorgrad/train/profile.h>

#include "measure.h"

namespace tensorgrad::bench {

// Returns the fields that describe a device: its text and, for a GPU, the driver and the WebGPU
// library.
Fields described_device(const std::string& device);
// Returns cpu, and webgpu if `auto` would select a GPU.
std::vector<std::string> default_devices();
// Returns the workloads measured on a device. Of the two sizes of char-gpt, the CPU runs the small
// one.
std::vector<std::string> measured_workloads(const std::string& device);

// Options of the steps that --profile measures.
inline const ProfileOptions kProfiling = {.steps = 9, .roofline = true};
void print_launches(const std::string& workload, const std::string& mode, const Profile& profile);
void print_scans(const Options& options, const std::string& workload, const Profile& profile);
// Prints the time of a step in each mode, and the times of its launches if requested.
void steps(const Options& options, const std::string& device, const std::string& workload);
// Prints the time of a step and the peak bytes of scaled workloads: char-gpt-small with two and
// four times the batch, layers or length, and mamba1 with several lengths.
void scaling(const Options& options, const std::string& device, const std::string& workload);
// Prints the time of a step on several ranks, each with the whole batch, and that of one rank: the
// throughput over one rank, and the time and bytes of the exchange.
void distributed(const Options& options, const std::string& device, const std::string& workload);
// Prints milliseconds of tracing, passes and kernels, in a process that has compiled nothing
// before, and again. They include opening the device.
void compiling(const Options& options, const std::string& device, const std::string& workload);
// Prints when one step was done, and the peak memory of the process after a few more.
void probe(const Options& options, const std::string& device, const std::string& workload);

void gemm(const Options& options);
void gemm_on_gpu(const Options& options);
// Prints bytes per second of memory-bound launches, and of a copy.
void memory(const Options& options, const std::string& device);
// Times products of 1 and of 64 rows with a square matrix in each weight format.
void packed(const Options& options, const std::string& device);
// Prints calls per second of 1 to 8 clients, each with a replica of one classifier and one image
// per call.
void serve(const Options& options, const std::string& device);
// Times generation by a Mamba-1: the small one on the CPU, the one with 130 million parameters on a
// GPU.
void decode(const Options& options, const std::string& device);

// Writes models for generation() and latency(), and for the peers, to the folder `options.models`:
// GPT-2 in each weight format as a safetensors and a GGUF file, and classifiers as ONNX files. A
// .npz file next to each has inputs and our outputs.
void write_models(const Options& options);
// Times GPT-2 in each weight format: a prompt, and new tokens after it. On a GPU, also of 64 texts.
void generation(const Options& options, const std::string& device);
// Times calls of two classifiers on the CPU with 1, 8 and 64 rows, and calls of one addition.
void latency(const Options& options);

}  // namespace tensorgrad::bench
