// SPDX-License-Identifier: MIT
// Applies the tuning cache: a contraction that is a kernel of its own uses the variant in the
// cache. If the cache has none, all variants are timed on scratch buffers and the fastest is
// recorded.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/webgpu/launch_profiler.h"
#include "backend/webgpu/pipeline_cache.h"
#include "backend/webgpu/submit_queue.h"
#include "codegen/wgsl/matmul/variants.h"
#include "io/tuning_file.h"

namespace tensorgrad::webgpu {

struct Candidate;

// Lock: callers hold the mutex of the WebGpuDevice. Other processes may write the file meanwhile.
class Tuner {
 public:
  // `path` is the file of the cache; empty: none. `info` must outlive the Tuner.
  Tuner(SubmitQueue& queue, PipelineCache& pipelines, LaunchProfiler& profiler,
        const DeviceInfo& info, const std::string& path);

  // Replaces the kernels of `dispatches` for which the cache has another variant. Returns the
  // compiled pipelines that will be needed, to be kept until they are in use.
  std::vector<std::shared_ptr<Pipeline>> tune(const Program& program, const WgslOptions& options,
                                              std::vector<Dispatch>& dispatches);
  // Returns how many contractions were timed.
  [[nodiscard]] int timed_contractions() const { return timed_contractions_; }

 private:
  std::vector<Candidate> make_candidates(const std::vector<Kernel>& kernels,
                                         std::span<const Buffer* const> buffers, std::uint32_t row);
  void race(std::vector<Candidate>& candidates, std::uint32_t row);
  io::TuningEntry time_variants(const Launch& launch,
                                const std::vector<ContractionVariant>& variants,
                                std::vector<std::shared_ptr<Pipeline>>& kept);

  SubmitQueue& queue_;
  PipelineCache& pipelines_;
  LaunchProfiler& profiler_;
  const DeviceInfo& info_;
  std::unique_ptr<io::TuningFile> tuning_;  // null: none
  int timed_contractions_ = 0;
};

}  // namespace tensorgrad::webgpu
