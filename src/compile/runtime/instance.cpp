// SPDX-License-Identifier: MIT
// Buffers and kernels of a program on a device.
#include "compile/runtime/instance.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/env.h"
#include "compile/debug/dump.h"
#include "compile/debug/profile.h"
#include "compile/debug/shadow.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::uint32_t kInfBits = 0x7f800000U;
constexpr std::uint32_t kNanBits = 0x7fc00000U;
constexpr int kTableLevel = 2;                   // of TENSORGRAD_DEBUG
constexpr int kTimedRun = 3;                     // caches are warm by then
constexpr std::int64_t kMaxSetBytes = 16 << 20;  // of all sets of buffers after the first

bool may_share(BufferKind kind, Share share) {
  if (kind == BufferKind::kParams || kind == BufferKind::kState) return true;
  return share == Share::kProgram && kind != BufferKind::kSlot && kind != BufferKind::kConstant;
}

}  // namespace

Instance::Instance(std::shared_ptr<Device> device, Program program, SharedMemory shared)
    : device_(std::move(device)), program_(std::move(program)), memory_(std::move(shared)) {
  memory_.resize(program_.buffers.size());
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const BufferDecl& decl = program_.buffers[i];
    by_name_.emplace(decl.name, i);
    owned_.push_back(!memory_[i]);
    if (owned_[i]) memory_[i] = std::make_shared<Memory>(device_, decl.bytes, decl.name);
    buffers_.push_back(memory_[i]->handle());
    if (!decl.data.empty()) device_->upload(buffers_[i], 0, std::as_bytes(std::span(decl.data)));
  }
  const auto start = std::chrono::steady_clock::now();
  executable_ = device_->prepare(program_, buffers_);
  prepare_time_ = std::chrono::steady_clock::now() - start;
}

Instance::~Instance() {  // must precede the buffers that they use
  shadow_.reset();
  executable_.reset();
}

void Instance::share_with(const Program& program, Share share, SharedMemory& shared) const {
  shared.resize(program.buffers.size());
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const BufferDecl& decl = program.buffers[i];
    if (shared[i] || !may_share(decl.kind, share) || !has_buffer(decl.name)) continue;
    if (buffer_bytes(decl.name) == decl.bytes) shared[i] = memory_[index_of(decl.name)];
  }
}

std::size_t Instance::index_of(const std::string& buffer) const {
  const auto at = by_name_.find(buffer);
  CHECK(at != by_name_.end(), "no buffer '" + buffer + "'");
  return at->second;
}

bool Instance::has_buffer(const std::string& name) const { return by_name_.contains(name); }

bool Instance::shares(const std::string& buffer) const { return !owned_[index_of(buffer)]; }

std::int64_t Instance::buffer_bytes(const std::string& name) const {
  return program_.buffers[index_of(name)].bytes;
}

const std::shared_ptr<Memory>& Instance::memory(const std::string& buffer) const {
  return memory_[index_of(buffer)];
}

void Instance::bind(const std::string& buffer, std::shared_ptr<Memory> memory) {
  const std::size_t i = index_of(buffer);
  if (memory == memory_[i]) return;
  const BufferHandle before = std::exchange(buffers_[i], memory->handle());
  try {
    device_->rebind(*executable_, buffers_, static_cast<int>(i));
  } catch (...) {
    buffers_[i] = before;
    throw;
  }
  memory_[i] = std::move(memory);
  sets_.clear();
  if (shadow_) shadow_->rebind(buffers_, static_cast<int>(i));
}

std::size_t Instance::make_sets(std::span<const std::string> buffers, std::size_t most) {
  if (!device_->info().asynchronous || shadow_ || runs_until_timed_ > 0) return 1;
  std::int64_t bytes = 0;
  for (const std::string& buffer : buffers) bytes += buffer_bytes(buffer);
  if (bytes == 0) return 1;
  most = std::min(most, static_cast<std::size_t>(kMaxSetBytes / bytes) + 1);
  while (sets_.size() + 1 < most) {
    std::map<std::size_t, std::shared_ptr<Memory>> set;
    std::vector<BufferHandle> handles = buffers_;
    for (const std::string& buffer : buffers) {
      const std::size_t i = index_of(buffer);
      set[i] = std::make_shared<Memory>(device_, buffer_bytes(buffer), buffer);
      handles[i] = set[i]->handle();
    }
    device_->add_set(*executable_, handles);
    sets_.push_back(std::move(set));
  }
  return std::min(most, sets_.size() + 1);
}

void Instance::upload(const std::string& buffer, std::int64_t offset,
                      std::span<const std::byte> data, std::size_t set) {
  const std::size_t i = index_of(buffer);
  device_->upload(set == 0 ? buffers_[i] : sets_[set - 1].at(i)->handle(), offset, data);
}

void Instance::download(const std::string& buffer, std::int64_t offset, std::span<std::byte> out) {
  device_->wait(device_->download(buffers_[index_of(buffer)], offset, out));
}

RuntimeScalars make_runtime_scalars(const Program& program, const ScalarValues& values) {
  RuntimeScalars row{};
  row.words[kScalarInf] = kInfBits;
  row.words[kScalarNan] = kNanBits;
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    const auto at = values.find(program.scalars[i]);
    if (at != values.end()) row.words[i + 2] = at->second;
  }
  return row;
}

Ticket Instance::run(std::span<const ScalarValues> rows) {
  rows_.clear();
  for (const ScalarValues& values : rows) rows_.push_back(make_runtime_scalars(program_, values));
  if (shadow_ || runs_until_timed_ > 0) return run_inspected(rows_);
  return device_->run(*executable_, rows_);
}

std::size_t Instance::run_some(const ScalarValues& row, std::size_t first,
                               std::chrono::duration<double> budget) {
  if (shadow_ || runs_until_timed_ > 0) {  // these need whole runs
    wait(run({&row, 1}));
    return 0;
  }
  return device_->run_some(*executable_, make_runtime_scalars(program_, row), first,
                           program_.launches.size(), budget);
}

void Instance::check_whole_runs() const {
  if (shadow_) throw UserError("TENSORGRAD_SHADOW: not supported in distributed training");
}

Ticket Instance::run_part(const ScalarValues& row, std::size_t first, std::size_t end) {
  check_whole_runs();
  return device_->run_part(*executable_, make_runtime_scalars(program_, row), first, end);
}

Ticket Instance::run_replacing(const ScalarValues& row, const std::string& buffer,
                               std::span<const HostRange> ranges, std::size_t resume,
                               const HostReplace& replace) {
  check_whole_runs();
  return device_->run_replacing(*executable_, make_runtime_scalars(program_, row),
                                buffers_[index_of(buffer)], ranges, resume, replace);
}

std::size_t Instance::first_lasting_launch() const {
  const auto lasts = [&](const Binding& binding) {
    const BufferKind kind = program_.buffers[static_cast<std::size_t>(binding.buffer)].kind;
    return binding.mode != BindMode::kRead &&
           (kind == BufferKind::kParams || kind == BufferKind::kState);
  };
  const auto& launches = program_.launches;
  const auto at = std::find_if(launches.begin(), launches.end(), [&](const Launch& launch) {
    return std::any_of(launch.bindings.begin(), launch.bindings.end(), lasts);
  });
  return static_cast<std::size_t>(at - launches.begin());
}

std::vector<LaunchTiming> Instance::profile(const ScalarValues& row) {
  return device_->profile(*executable_, make_runtime_scalars(program_, row));
}

Profile Instance::profile_of_runs(const std::vector<std::vector<LaunchTiming>>& runs) const {
  Profile profile = make_profile(device_->info(), program_, passes_, runs);
  if (dump_) dump_->timings(profile);
  return profile;
}

void Instance::inspect(const Compiled& compiled, const PlanOptions& options) {
  dump_ = compiled.dump;
  passes_ = compiled.passes;
  passes_.push_back({"kernels", compiled.milliseconds, prepare_time_.count()});
  if (!device_->info().computes) return;
  if (env_flag("TENSORGRAD_SHADOW")) {
    shadow(compiled, options);
  } else if (debug_level() >= kTableLevel) {
    runs_until_timed_ = kTimedRun;
  }
}

void Instance::shadow(const Compiled& compiled, const PlanOptions& options) {
  shadow_ = std::make_unique<Shadow>(*device_, program_, buffers_, compiled.fused, options);
}

// Runs the rows one by one, until a run has been timed.
Ticket Instance::run_inspected(const std::vector<RuntimeScalars>& rows) {
  Ticket last = 0;
  for (const RuntimeScalars& row : rows) {
    const bool timed = runs_until_timed_ == 1;
    if (runs_until_timed_ > 0) --runs_until_timed_;
    if (shadow_) {
      shadow_->run(row);
    } else if (timed) {
      const auto wanted = [](const std::string& name) { return debug_level(name) >= kTableLevel; };
      debug_print(
          launch_table(profile_of_runs({device_->profile(*executable_, row)}), false, wanted));
    } else {
      last = device_->run(*executable_, {&row, 1});
    }
  }
  return last;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
