// SPDX-License-Identifier: MIT
// tg_bench: times training steps on each device, and matrix products against OpenBLAS, oneDNN and
// Eigen. Prints one JSON line per measurement and asserts nothing.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "measure.h"
#include "workloads.h"

int main(int argc, char** argv) {
  CLI::App app{"Times tensorgrad. Prints one JSON line per measurement: medians in microseconds."};
  std::vector<std::string> only;
  tensorgrad::bench::Options options;
  bool scaling = false, compile = false;
  std::string probe;
  app.add_option(
         "--only", only,
         "what to run: mlp-sin, fashion-mlp, fashion-cnn, mnist-cnn, addition, char-gpt "
         "(char-gpt-small on the CPU), mamba1, on a GPU also mamba-130m, gpt2, gpt2-50k and "
         "gpt-long, gemm, memory, packed, serve, decode, with --models generation, and on the CPU "
         "latency (default: all but the last two)")
      ->delimiter(',');
  app.add_option("--device", options.devices,
                 "cpu, webgpu (default: cpu, and webgpu if there is a GPU)")
      ->delimiter(',');
  app.add_option("--threads", options.threads, "threads of the cpu device; 0 for all cores");
  app.add_flag("--allow-software", options.allow_software, "let webgpu use a software rasterizer");
  app.add_option(
      "--tuning-cache", options.tuning_cache,
      "file with the fastest tiles of matrix products on webgpu; products that it lacks are "
      "timed first and added");
  app.add_option("--seconds", options.seconds, "time for each measurement");
  app.add_option("--modes", options.modes,
                 "step, run, stream (default: all; on the CPU step and run)")
      ->delimiter(',');
  app.add_flag("--profile", options.profile, "also print a line per launch of a step");
  app.add_flag("--scans", options.scans,
               "also print a line per scan of a step, with bytes per second");
  app.add_flag("--stored-attention", options.stored_attention,
               "for comparison: attention by products that store the weights");
  app.add_flag("--joint-projection", options.joint_projection,
               "for comparison: queries, keys and values by one product");
  app.add_flag("--whole-logits", options.whole_logits,
               "for comparison: Mamba's loss computes all logits at once");
  app.add_option("--snapshot-steps", options.snapshot_steps,
                 "steps between snapshots for a lost device; 0 for none");
  app.add_flag("--mixed-precision", options.mixed, "training steps in mixed precision");
  app.add_flag("--f16x3", options.f16x3,
               "webgpu: products of f32 as three products of f16 on matrix units");
  app.add_flag(
      "--scaling", scaling,
      "instead: a decoder with several batches, depths and lengths, Mamba with several lengths");
  app.add_flag("--compile", compile, "instead: the time to compile, twice in this process");
  app.add_option(
      "--probe", probe,
      "instead: the first step of this workload, and the memory of the process after some more");
  app.add_option("--ranks", options.ranks,
                 "instead: training on this many ranks, each on a GPU of its own if there are "
                 "enough, over one rank")
      ->check(CLI::Range(2, 64));
  app.add_option("--bucket-bytes", options.bucket_bytes,
                 "of --ranks: maximum bytes of a bucket of gradients")
      ->check(CLI::PositiveNumber);
  app.add_option("--shard", options.shard,
                 "of --ranks: what the ranks divide, optimizer (states) or parameters")
      ->check(CLI::IsMember({"optimizer", "parameters"}));
  app.add_option("--batch", options.batch, "of --probe and --ranks: batch size of a rank");
  app.add_option("--length", options.length, "of --probe and --ranks: length of the texts");
  app.add_option("--weights", options.weights, "of generation: f16, int8, int4 (default: all)")
      ->check(CLI::IsMember({"f16", "int8", "int4"}))
      ->delimiter(',');
  app.add_option("--models", options.models, "of generation: the folder of --write-models");
  std::string models;
  app.add_option("--write-models", models,
                 "instead: writes the models of generation and latency to this folder");
  CLI11_PARSE(app, argc, argv);
  const auto wanted = [&](const std::string& name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  const auto wanted_workload = [&](const std::string& name) {
    return wanted(name) || (name == "char-gpt-small" && wanted("char-gpt"));
  };
  const auto requested = [&](const std::string& name) { return !only.empty() && wanted(name); };
  try {
    if (!models.empty()) {
      options.models = models;
      tensorgrad::bench::write_models(options);
      return 0;
    }
    if (requested("generation") && options.models.empty())
      throw std::invalid_argument("generation needs --models, a folder of --write-models");
    if (options.devices.empty()) options.devices = tensorgrad::bench::default_devices();
    for (const std::string& device : options.devices) {
      if (!probe.empty()) {
        tensorgrad::bench::probe(options, device, probe);
      } else if (scaling) {
        for (const char* name : {"char-gpt-small", "mamba1"}) {
          if (wanted_workload(name)) tensorgrad::bench::scaling(options, device, name);
        }
      } else {
        for (const std::string& name : tensorgrad::bench::measured_workloads(device)) {
          if (!wanted_workload(name)) continue;
          if (options.ranks > 0) {
            tensorgrad::bench::distributed(options, device, name);
          } else if (compile) {
            tensorgrad::bench::compiling(options, device, name);
          } else {
            tensorgrad::bench::steps(options, device, name);
          }
        }
      }
    }
    if (scaling || compile || options.ranks > 0 || !probe.empty()) return 0;
    const bool cpu = std::count(options.devices.begin(), options.devices.end(), "cpu") > 0;
    if (requested("latency") && cpu) tensorgrad::bench::latency(options);
    if (wanted("gemm") && cpu) tensorgrad::bench::gemm(options);
    const bool gpu = std::count(options.devices.begin(), options.devices.end(), "webgpu") > 0;
    if (wanted("gemm") && gpu) tensorgrad::bench::gemm_on_gpu(options);
    for (const std::string& device : options.devices) {
      if (wanted("memory")) tensorgrad::bench::memory(options, device);
      if (wanted("packed")) tensorgrad::bench::packed(options, device);
      if (wanted("serve")) tensorgrad::bench::serve(options, device);
      if (wanted("decode")) tensorgrad::bench::decode(options, device);
      if (requested("generation")) tensorgrad::bench::generation(options, device);
    }
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
