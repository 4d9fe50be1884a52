// SPDX-License-Identifier: MIT
// The CPU device: buffers are host memory, and runs are synchronous.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/denormals.h"
#include "backend/cpu/launch_runner.h"
#include "backend/cpu/opaque.h"
#include "backend/cpu/parallel_tuner.h"
#include "backend/cpu/simd.h"
#include "base/check.h"
#include "base/os/process.h"
#include "base/parallel.h"

namespace tensorgrad::cpu {
namespace {

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const OpaqueLaunch& opaque) {
  for (const OpaqueRunner& each : kOpaqueRunners) {
    if (each.name == opaque.kernel->name) return each.make(prepare);
  }
  UNREACHABLE();
}

// Runners contain resolved pointers, so a launch needs another one if a buffer is replaced. The
// most recent runners are kept, because results that circulate among functions use few buffers.
class CpuExecutable final : public Executable {
 public:
  // The program must outlive the executable.
  CpuExecutable(const Program& program, const std::vector<std::byte*>& buffers, int threads)
      : program_(program),
        made_(program.launches.size()),
        workers_(static_cast<std::size_t>(threads)) {
    std::size_t worker_bytes = 0, shared_bytes = 0;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Launch& launch = program.launches[i];
      CHECK(launch.row_count == 0, launch.name + ": a cpu launch is never one of several");
      made_[i].push_back(make(launch, buffers));
      worker_bytes = std::max(worker_bytes, made_[i].back().runner->worker_bytes);
      shared_bytes = std::max(shared_bytes, made_[i].back().runner->shared_bytes);
      tries_ = tries_ || (threads > 1 && made_[i].back().runner->small);
    }
    for (AlignedBytes& scratch : workers_) scratch = AlignedBytes(worker_bytes);
    shared_ = AlignedBytes(shared_bytes);
  }

  std::mutex mutex;  // held during a run, which writes scratch memory and buffers

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] std::size_t size() const { return made_.size(); }

  void rebind(const std::vector<std::byte*>& buffers, int changed) {
    std::vector<std::list<Made>> fresh(made_.size());  // one per affected launch
    std::vector<std::pair<std::size_t, std::list<Made>::iterator>> kept;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Launch& launch = program_.launches[i];
      const auto binds = [&](const Binding& each) { return each.buffer == changed; };
      if (std::none_of(launch.bindings.begin(), launch.bindings.end(), binds)) continue;
      const std::vector<Word*> data = pointers(launch, buffers);
      const auto same = [&](const Made& each) { return each.data == data; };
      const auto found = std::find_if(made_[i].begin(), made_[i].end(), same);
      if (found == made_[i].end()) {
        fresh[i].push_back(make(launch, buffers));
      } else {
        kept.emplace_back(i, found);
      }
    }
    for (const auto& [i, found] : kept) made_[i].splice(made_[i].end(), made_[i], found);
    for (std::size_t i = 0; i < made_.size(); ++i) {
      made_[i].splice(made_[i].end(), fresh[i]);
      if (made_[i].size() > kKeptRunners) made_[i].pop_front();  // the least recently used one
    }
  }

  // Runs all launches. `single` is a pool of one thread.
  void run(ThreadPool& pool, ThreadPool& single, const RuntimeScalars& runtime_scalars) {
    const bool tries = tries_ && &pool != &single;
    const bool shared = tries && sharing_.begin();
    for (std::size_t i = 0; i < size(); ++i)
      run_one(i, shared ? pool : single, pool, runtime_scalars);
    if (tries) sharing_.end();
  }
  // Runs some launches starting at `first`; see Device::run_some().
  std::size_t run_some(ThreadPool& pool, ThreadPool& single, const RuntimeScalars& runtime_scalars,
                       std::size_t first, std::size_t end, std::chrono::duration<double> budget) {
    using Clock = std::chrono::steady_clock;
    took_.resize(size());
    const Clock::time_point start = Clock::now();
    end = std::min(end, size());
    for (std::size_t i = first; i < end; ++i) {
      const Clock::time_point begin = Clock::now();
      if (i > first && begin - start + took_[i] > budget) return i;
      run(i, pool, single, runtime_scalars);
      took_[i] = Clock::now() - begin;
    }
    return end == size() ? 0 : end;
  }
  // Runs one launch, with the current choice of pool for small launches.
  void run(std::size_t launch, ThreadPool& pool, ThreadPool& single,
           const RuntimeScalars& runtime_scalars) {
    run_one(launch, sharing_.shared() ? pool : single, pool, runtime_scalars);
  }

 private:
  // A launch prepared for buffers at these addresses.
  struct Made {
    std::vector<Word*> data;
    std::unique_ptr<LaunchRunner> runner;
  };
  static constexpr std::size_t kKeptRunners = 8;

  // Runs a launch on one of two pools, depending on LaunchRunner::small.
  void run_one(std::size_t launch, ThreadPool& of_small, ThreadPool& pool,
               const RuntimeScalars& runtime_scalars) {
    LaunchRunner& runner = *made_[launch].back().runner;
    runner.run({runner.small ? of_small : pool, runtime_scalars, workers_, shared_.data()});
  }

  static std::vector<Word*> pointers(const Launch& launch, const std::vector<std::byte*>& buffers) {
    std::vector<Word*> data;
    data.reserve(launch.bindings.size());
    for (const Binding& binding : launch.bindings) {
      std::byte* start = buffers[static_cast<std::size_t>(binding.buffer)] + binding.offset;
      data.push_back(reinterpret_cast<Word*>(start));
    }
    return data;
  }

  Made make(const Launch& launch, const std::vector<std::byte*>& buffers) {
    const Prepare prepare{launch, constants_, pointers(launch, buffers),
                          static_cast<int>(workers_.size())};
    try {
      const auto make = [&](const auto& kind) { return make_runner(prepare, kind); };
      return {prepare.data, std::visit(make, launch.kind)};
    } catch (Error& error) {
      error.add_context("while preparing launch " + launch.name);
      throw;
    }
  }

  const Program& program_;
  ConstPool constants_;
  std::vector<std::list<Made>> made_;  // per launch; the last one is in use
  std::vector<AlignedBytes> workers_;
  AlignedBytes shared_;
  std::vector<std::chrono::duration<double>> took_;  // per launch, in the last run_some()
  bool tries_ = false;                               // there are small launches and several threads
  ParallelTuner sharing_;
};

// Maximum bytes of a buffer. With 32-bit addresses: half of them, minus the overhead of
// AlignedBytes.
constexpr std::int64_t kMaxBytes =
    sizeof(void*) > 4 ? std::int64_t{1} << 33 : (std::int64_t{1} << 31) - 4096;

int thread_count(const CpuOptions& options) {
  CHECK(options.threads >= 0 && options.threads <= kMaxCpuThreads);
  return options.threads > 0 ? options.threads : std::clamp(usable_cores(), 1, kMaxCpuThreads);
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options) : pool_(thread_count(options)) {
    limit_targets();
    const int threads = pool_.threads();
    info_.backend = "cpu";
    info_.cuts_rows = true;
    info_.name = os::processor_name() + ", " + std::to_string(threads) +
                 (threads == 1 ? " thread, " : " threads, ") + simd().target;
    info_.limits.max_storage_bindings = 1 << 20;
    info_.limits.max_binding_bytes = info_.limits.max_buffer_bytes = kMaxBytes;
    info_.features = {simd().target};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    const std::lock_guard lock(mutex_);
    const auto refuse = [&] {
      return DeviceError("cpu: cannot allocate " + std::to_string(bytes) + " bytes (" + label +
                         ")");
    };
    if (bytes < 0 || bytes > info_.limits.max_buffer_bytes) throw refuse();
    const auto unused = std::find(used_.begin(), used_.end(), false);
    const auto slot = static_cast<std::size_t>(unused - used_.begin());
    try {
      AlignedBytes memory(static_cast<std::size_t>(bytes));
      if (unused == used_.end()) {
        used_.push_back(false);
        buffers_.emplace_back();
      }
      buffers_[slot] = std::move(memory);
      used_[slot] = true;
    } catch (const std::bad_alloc&) {
      throw refuse();
    }
    return static_cast<BufferHandle>(slot);
  }

  void free(BufferHandle buffer) override {
    const std::lock_guard lock(mutex_);
    find(buffer) = {};
    used_[buffer] = false;
  }

  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    const std::lock_guard lock(mutex_);
    if (data.empty()) return;
    std::memcpy(range(buffer, offset, data.size()), data.data(), data.size());
  }

  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    if (!out.empty()) std::memcpy(out.data(), range(buffer, offset, out.size()), out.size());
    return 0;
  }

  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    const std::lock_guard lock(mutex_);
    return std::make_unique<CpuExecutable>(program, starts(program, buffers), pool_.threads());
  }

  void rebind(Executable& executable, std::span<const BufferHandle> buffers, int changed) override {
    auto& exe = dynamic_cast<CpuExecutable&>(executable);
    const std::scoped_lock locks(mutex_, exe.mutex);
    exe.rebind(starts(exe.program(), buffers), changed);
  }

  // Executables can run concurrently. If the pool is busy, they run on the caller's thread.
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override {
    auto& exe = dynamic_cast<CpuExecutable&>(executable);
    const std::lock_guard one_at_a_time(exe.mutex);
    const DenormalsAreZeros flushing;
    for (const RuntimeScalars& row : rows) {
      const std::unique_lock threads(pool_mutex_, std::try_to_lock);
      exe.run(threads ? pool_ : single_, single_, row);
    }
    return 0;
  }

  std::size_t run_some(Executable& executable, const RuntimeScalars& row, std::size_t first,
                       std::size_t end, std::chrono::duration<double> budget) override {
    auto& exe = dynamic_cast<CpuExecutable&>(executable);
    const std::lock_guard one_at_a_time(exe.mutex);
    const std::unique_lock threads(pool_mutex_, std::try_to_lock);
    const DenormalsAreZeros flushing;
    return exe.run_some(threads ? pool_ : single_, single_, row, first, end, budget);
  }

  std::span<std::byte> host_memory(BufferHandle buffer) override {
    const std::lock_guard lock(mutex_);
    AlignedBytes& bytes = find(buffer);
    return {bytes.data(), bytes.size()};
  }

  [[nodiscard]] bool done(Ticket) override { return true; }
  void wait(Ticket) override {}

  std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars& row) override {
    auto& exe = dynamic_cast<CpuExecutable&>(executable);
    const std::scoped_lock locks(exe.mutex, pool_mutex_);
    const DenormalsAreZeros flushing;
    std::vector<LaunchTiming> timings;
    timings.reserve(exe.size());
    for (std::size_t i = 0; i < exe.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      exe.run(i, pool_, single_, row);
      const std::chrono::duration<double, std::micro> spent =
          std::chrono::steady_clock::now() - start;
      timings.push_back({spent.count()});
    }
    return timings;
  }

 private:
  AlignedBytes& find(BufferHandle buffer) {
    CHECK(buffer < used_.size() && used_[buffer], "no such buffer");
    return buffers_[buffer];
  }

  std::vector<std::byte*> starts(const Program& program, std::span<const BufferHandle> buffers) {
    CHECK(buffers.size() == program.buffers.size());
    std::vector<std::byte*> places;
    places.reserve(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const AlignedBytes& memory = find(buffers[i]);
      CHECK(static_cast<std::int64_t>(memory.size()) >= program.buffers[i].bytes,
            "buffer " + program.buffers[i].name + " is too small");
      places.push_back(memory.data());
    }
    return places;
  }

  std::byte* range(BufferHandle buffer, std::int64_t offset, std::size_t bytes) {
    const AlignedBytes& memory = find(buffer);
    CHECK(offset >= 0 && static_cast<std::size_t>(offset) <= memory.size() &&
              bytes <= memory.size() - static_cast<std::size_t>(offset),
          "a copy leaves its buffer");
    return memory.data() + offset;
  }

  std::mutex mutex_;  // guards the buffers
  DeviceInfo info_;
  std::mutex pool_mutex_;  // guards pool_; a pool of one thread has no state
  ThreadPool pool_, single_{1};
  std::vector<AlignedBytes> buffers_;
  std::vector<bool> used_;
};

}  // namespace
}  // namespace tensorgrad::cpu

namespace tensorgrad::inline TENSORGRAD_ABI {

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<cpu::CpuDevice>(options);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
