// SPDX-License-Identifier: MIT
// Applies the tuning cache: a contraction that is a kernel of its own uses the variant in the
// cache. If the cache has none, all variants are timed on scratch buffers and the fastest is
// recorded.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "backend/webgpu/device.h"
#include "backend/webgpu/vendor.h"
#include "base/numbers.h"

namespace tensorgrad::webgpu {

// A variant to be timed.
struct Candidate {
  Step step;     // named after the variant
  int runs = 1;  // per sample
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

// Scratch buffers of the launch's binding sizes, freed by the destructor.
class Scratch {
 public:
  Scratch(Device& device, const std::vector<Binding>& bindings) : device_(device) {
    try {
      for (const Binding& binding : bindings)
        buffers_.push_back(device_.alloc(binding.bytes, "tuning trial"));
    } catch (...) {
      release();
      throw;
    }
  }
  ~Scratch() { release(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::span<const BufferHandle> buffers() const { return buffers_; }

 private:
  void release() {
    for (const BufferHandle buffer : buffers_) device_.free(buffer);
    buffers_.clear();
  }

  Device& device_;
  std::vector<BufferHandle> buffers_;
};

bool has_forms(const Program& program, const Dispatch& dispatch) {
  const Launch& launch = program.launches[dispatch.first];
  return dispatch.count == 1 && launch.kind == LaunchKind::kContraction && !launch.by_rows;
}

Kernel kernel_of_form(const Launch& launch, const ContractionForm& form) {
  Kernel kernel{
      form.name, launch.locations.empty() ? SourceLocation() : launch.locations.front(), {}};
  kernel.dispatch.bindings = launch.bindings;
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    kernel.dispatch.bindings[i].buffer = static_cast<int>(i);
    kernel.dispatch.bindings[i].offset = 0;
  }
  kernel.dispatch.kernel = form.kernel;
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
    text += (text.empty() ? "" : ", ") + each.step.name + format_text(" %.2f", each.median());
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

// Returns the microseconds per run of `count` runs in one pass.
double WebGpuDevice::time_runs(const Step& step, std::uint32_t row, int count) {
  using Clock = std::chrono::steady_clock;
  const Handle<WGPUQuerySet> queries = timestamps_ ? make_queries(2) : Handle<WGPUQuerySet>();
  std::array<std::uint64_t, 2> ticks = {};
  Handle<WGPUBuffer> resolved;
  WGPUPassTimestampWrites writes = {};
  if (queries) {
    resolved = create_buffer(sizeof ticks, WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc,
                             "timestamps");
    writes.querySet = queries.get();
    writes.endOfPassWriteIndex = 1;
  }
  begin_scope();
  const Handle<WGPUCommandEncoder> encoder(api_,
                                           api_.DeviceCreateCommandEncoder(device_.get(), nullptr));
  encode_alone(encoder.get(), step, row, queries ? &writes : nullptr, count);
  if (queries)
    api_.CommandEncoderResolveQuerySet(encoder.get(), queries.get(), 0, 2, resolved.get(), 0);
  const Handle<WGPUCommandBuffer> commands(api_, api_.CommandEncoderFinish(encoder.get(), nullptr));
  const std::string error = end_scope();
  if (!error.empty()) throw DeviceError("webgpu: " + step.name + " was rejected: " + error);
  const Clock::time_point start = Clock::now();
  auto* const buffer = commands.get();
  watch(submit({&buffer, 1}, true));
  wait_for(last_ticket_);
  const double by_clock = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  if (queries) read_back(resolved.get(), std::as_writable_bytes(std::span(ticks)));
  if (ticks[1] <= ticks[0]) return by_clock / count;
  return static_cast<double>(ticks[1] - ticks[0]) * api_.vendor->timestamp_period(queue_.get()) /
         1000.0 / count;
}

// Creates the variants that the driver accepts and times one run of each. Throws if the default is
// rejected.
std::vector<Candidate> WebGpuDevice::make_candidates(const std::vector<Kernel>& kernels,
                                                     std::span<const BufferHandle> buffers,
                                                     std::uint32_t row) {
  std::vector<Candidate> candidates;
  const auto compiled = compile_together(kernels);
  for (const Kernel& kernel : kernels) {
    try {
      check_kernel(kernel);
      Candidate each{make_step(kernel, buffers), 1, {}};
      time_runs(each.step, row, 1);  // warm-up
      each.times = {time_runs(each.step, row, 1)};
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
void WebGpuDevice::race(std::vector<Candidate>& candidates, std::uint32_t row) {
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
      each->times.push_back(time_runs(each->step, row, each->runs));
  }
}

// Throws DeviceError if there is not enough memory for the trial.
io::TuningEntry WebGpuDevice::time_forms(const Launch& launch,
                                         const std::vector<ContractionForm>& forms,
                                         std::vector<std::shared_ptr<Pipeline>>& kept) {
  wait_for(last_ticket_);
  std::vector<Kernel> kernels;
  for (const ContractionForm& form : forms) kernels.push_back(kernel_of_form(launch, form));
  const Scratch scratch(*this, kernels.front().dispatch.bindings);
  const RuntimeScalars values = trial_row();
  const std::uint32_t row = write_rows({&values, 1});
  std::vector<Candidate> candidates = make_candidates(kernels, scratch.buffers(), row);
  race(candidates, row);
  const Candidate& chosen = choose(candidates);
  kept.push_back(chosen.step.pipeline);
  ++timed_contractions_;
  return {info_.name, info_.driver, "", chosen.step.name, times_of(candidates)};
}

// Returns the compiled pipelines that will be needed, to be kept until they are in use.
std::vector<std::shared_ptr<Pipeline>> WebGpuDevice::tune(const Program& program,
                                                          std::vector<Dispatch>& dispatches) {
  std::vector<std::shared_ptr<Pipeline>> kept;
  const WgslOptions options = kernel_options();
  const bool forced =
      forced_.tile != 0 || forced_.subgroup_matrix_tile != 0 || !replacement_.empty();
  if (tuning_ == nullptr || options.barrier_free || forced) return kept;
  bool fresh = false;
  for (Dispatch& dispatch : dispatches) {
    if (!has_forms(program, dispatch)) continue;
    const Launch& launch = program.launches[dispatch.first];
    const std::string key = contraction_key(launch, options);
    const auto choice = [&] { return tuning_->find(info_.name, info_.driver, key); };
    if (choice() == nullptr && !std::exchange(fresh, true)) tuning_->reload();
    if (choice() == nullptr) {
      try {
        io::TuningEntry entry = time_forms(launch, contraction_forms(launch, options), kept);
        entry.kernel = key;
        tuning_->add(entry);
      } catch (const DeviceLostError&) {
        throw;
      } catch (const DeviceError&) {  // not enough memory for a trial: as without a cache
        continue;
      }
    }
    ContractionForm form = contraction_form(launch, options, *choice());
    if (form.name.empty()) tuning_->refuse(info_.name, info_.driver, key);
    dispatch.kernel = std::move(form.kernel);
  }
  tuning_->save();
  return kept;
}

}  // namespace tensorgrad::webgpu
