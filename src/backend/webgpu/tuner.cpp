// SPDX-License-Identifier: MIT
#include "backend/webgpu/tuner.h"

#include <algorithm>
#include <utility>

#include "base/numbers.h"

namespace tensorgrad::webgpu {

// A variant to be timed.
struct Candidate {
  BoundDispatch dispatch;  // named after the variant
  int runs = 1;            // per sample
  std::vector<double> times;

  [[nodiscard]] double median() const {
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

namespace {

constexpr double kClearly = 0.97;  // of the default's time; a smaller gain may be noise
constexpr int kRounds = 5;
constexpr double kSampleMicroseconds = 2000;  // duration of the runs in one pass
constexpr double kMaxRunsOfSample = 64;
constexpr double kHopeless = 2;  // multiple of the fastest variant's first run

bool has_variants(const Program& program, const Dispatch& dispatch) {
  const Launch& launch = program.launches[dispatch.first];
  const auto* product = launch.find<ContractionLaunch>();
  return dispatch.count == 1 && product != nullptr && !product->by_rows && !product->a_by_rows;
}

Kernel kernel_of_variant(const Launch& launch, const ContractionVariant& variant) {
  Kernel kernel{
      variant.name, launch.locations.empty() ? SourceLocation() : launch.locations.front(), {}};
  kernel.dispatch.bindings = launch.bindings;
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    kernel.dispatch.bindings[i].buffer = static_cast<int>(i);
    kernel.dispatch.bindings[i].offset = 0;
  }
  kernel.dispatch.kernel = variant.kernel;
  return kernel;
}

RuntimeScalars trial_row() {
  RuntimeScalars row = {};
  row.words[kScalarInf] = 0x7f800000U;
  row.words[kScalarNan] = 0x7fc00000U;
  return row;
}

std::string times_of(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& each : candidates) {
    text += (text.empty() ? "" : ", ") + each.dispatch.name + format_text(" %.2f", each.median());
  }
  return text;
}

// Returns the fastest candidate if it is clearly faster than the default, which comes first.
// Otherwise returns the default.
const Candidate& choose(const std::vector<Candidate>& candidates) {
  const Candidate& best = *std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.median() < b.median(); });
  const Candidate& usual = candidates.front();
  return best.median() < kClearly * usual.median() ? best : usual;
}

}  // namespace

Tuner::Tuner(SubmitQueue& queue, PipelineCache& pipelines, LaunchProfiler& profiler,
             const DeviceInfo& info, const std::string& path)
    : queue_(queue), pipelines_(pipelines), profiler_(profiler), info_(info) {
  if (!path.empty()) tuning_ = std::make_unique<io::TuningFile>(path);
}

// Creates the variants that the driver accepts and times one run of each. Throws if the default is
// rejected.
std::vector<Candidate> Tuner::make_candidates(const std::vector<Kernel>& kernels,
                                              std::span<const Buffer* const> buffers,
                                              std::uint32_t row) {
  std::vector<Candidate> candidates;
  const auto compiled = pipelines_.compile_together(kernels);
  for (const Kernel& kernel : kernels) {
    try {
      pipelines_.check(kernel);
      Candidate each{pipelines_.make_dispatch(kernel), 1, {}};
      const BoundDispatch* const made = &each.dispatch;
      each.dispatch.group.handle = std::move(pipelines_.bind({&made, 1}, buffers).front());
      profiler_.time_runs(each.dispatch, row, 1);  // warm-up
      each.times = {profiler_.time_runs(each.dispatch, row, 1)};
      candidates.push_back(std::move(each));
    } catch (const DeviceLostError&) {
      throw;
    } catch (const DeviceError&) {
      if (candidates.empty()) throw;
    }
  }
  return candidates;
}

// Times the candidates again whose first run was not hopeless. Alternates between them, so that
// changing clocks affect all equally.
void Tuner::race(std::vector<Candidate>& candidates, std::uint32_t row) {
  double fastest = candidates.front().times.front();
  for (const Candidate& each : candidates) fastest = std::min(fastest, each.times.front());
  std::vector<Candidate*> racing;
  for (Candidate& each : candidates) {
    if (&each != &candidates.front() && each.times.front() > kHopeless * fastest) continue;
    each.runs = static_cast<int>(
        std::clamp(kSampleMicroseconds / each.times.front(), 1.0, kMaxRunsOfSample));
    each.times.clear();
    racing.push_back(&each);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Candidate* const each : racing)
      each->times.push_back(profiler_.time_runs(each->dispatch, row, each->runs));
  }
}

// Throws DeviceError if there is not enough memory for the trial.
io::TuningEntry Tuner::time_variants(const Launch& launch,
                                     const std::vector<ContractionVariant>& variants,
                                     std::vector<std::shared_ptr<Pipeline>>& kept) {
  queue_.wait_for_all();
  std::vector<Kernel> kernels;
  for (const ContractionVariant& variant : variants)
    kernels.push_back(kernel_of_variant(launch, variant));
  std::vector<Buffer> scratch;
  for (const Binding& binding : kernels.front().dispatch.bindings)
    scratch.push_back(queue_.create_storage(binding.bytes, "tuning trial"));
  std::vector<const Buffer*> bound;
  for (const Buffer& each : scratch) bound.push_back(&each);
  const RuntimeScalars values = trial_row();
  const std::uint32_t row = queue_.write_rows({&values, 1});
  std::vector<Candidate> candidates = make_candidates(kernels, bound, row);
  race(candidates, row);
  const Candidate& chosen = choose(candidates);
  kept.push_back(chosen.dispatch.pipeline);
  ++timed_contractions_;
  return {info_.name, info_.driver, "", chosen.dispatch.name, times_of(candidates)};
}

std::vector<std::shared_ptr<Pipeline>> Tuner::tune(const Program& program,
                                                   const WgslOptions& options,
                                                   std::vector<Dispatch>& dispatches) {
  std::vector<std::shared_ptr<Pipeline>> kept;
  const bool forced = options.matmul_tile != MatmulTile::kAuto ||
                      options.subgroup_matrix_tile != 0 || pipelines_.replaces_next();
  if (tuning_ == nullptr || options.barrier_free || forced) return kept;
  bool fresh = false;
  for (Dispatch& dispatch : dispatches) {
    if (!has_variants(program, dispatch)) continue;
    const Launch& launch = program.launches[dispatch.first];
    const std::string key = contraction_key(launch, options);
    const auto choice = [&] { return tuning_->find(info_.name, info_.driver, key); };
    if (choice() == nullptr && !std::exchange(fresh, true)) tuning_->reload();
    if (choice() == nullptr) {
      try {
        io::TuningEntry entry = time_variants(launch, contraction_variants(launch, options), kept);
        entry.kernel = key;
        tuning_->add(entry);
      } catch (const DeviceLostError&) {
        throw;
      } catch (const DeviceError&) {  // not enough memory for a trial: as without a cache
        continue;
      }
    }
    ContractionVariant variant = contraction_variant(launch, options, *choice());
    if (variant.name.empty()) tuning_->refuse(info_.name, info_.driver, key);
    dispatch.kernel = std::move(variant.kernel);
  }
  tuning_->save();
  return kept;
}

}  // namespace tensorgrad::webgpu
