// SPDX-License-Identifier: MIT
// Buffers and kernels of a program on a device.
#include "compile/instance.h"

#include "base/check.h"
#include "base/env.h"
#include "compile/dump.h"
#include "compile/shadow.h"
#include "compile/timing.h"

namespace tensorgrad {
namespace {

constexpr std::uint32_t kInfBits = 0x7f800000U;
constexpr std::uint32_t kNanBits = 0x7fc00000U;
constexpr int kTimedRun = 3;  // by then caches are warm

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
  executable_ = device_->prepare(program_, buffers_);
}

Instance::~Instance() {  // before the buffers that they use
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

void Instance::bind(const std::string& buffer, std::shared_ptr<Memory> memory) {
  const std::size_t i = index_of(buffer);
  const BufferHandle before = std::exchange(buffers_[i], memory->handle());
  try {
    device_->rebind(*executable_, buffers_, static_cast<int>(i));
  } catch (...) {
    buffers_[i] = before;
    throw;
  }
  memory_[i] = std::move(memory);
  if (shadow_) shadow_->rebind(buffers_, static_cast<int>(i));
}

void Instance::upload(const std::string& buffer, std::int64_t offset,
                      std::span<const std::byte> data) {
  device_->upload(buffers_[index_of(buffer)], offset, data);
}

void Instance::download(const std::string& buffer, std::int64_t offset, std::span<std::byte> out) {
  device_->wait(device_->download(buffers_[index_of(buffer)], offset, out));
}

HyperRow Instance::row_of(const HyperValues& values) const {
  HyperRow row{};
  row.words[kHyperInf] = kInfBits;
  row.words[kHyperNan] = kNanBits;
  for (std::size_t i = 0; i < program_.hypers.size(); ++i) {
    const auto at = values.find(program_.hypers[i]);
    if (at != values.end()) row.words[i + 2] = at->second;
  }
  return row;
}

Ticket Instance::run(const std::vector<HyperValues>& rows) {
  std::vector<HyperRow> words;
  words.reserve(rows.size());
  for (const HyperValues& values : rows) words.push_back(row_of(values));
  if (shadow_ || runs_until_timed_ > 0) return run_inspected(words);
  return device_->run(*executable_, words);
}

std::vector<LaunchTiming> Instance::profile(const HyperValues& row) {
  return profile_row(row_of(row));
}

void Instance::inspect(const Compiled& compiled, const PlanOptions& options) {
  dump_ = compiled.dump;
  if (device_->info().backend == "null") return;  // it computes nothing
  if (env_flag("TENSORGRAD_SHADOW")) {
    shadow(compiled, options);
  } else if (debug_level() >= 2) {
    runs_until_timed_ = kTimedRun;
  }
}

void Instance::shadow(const Compiled& compiled, const PlanOptions& options) {
  shadow_ = std::make_unique<Shadow>(*device_, program_, buffers_, compiled.fused, options);
}

// One by one, until the run has been timed.
Ticket Instance::run_inspected(const std::vector<HyperRow>& rows) {
  Ticket last = 0;
  for (const HyperRow& row : rows) {
    const bool timed = runs_until_timed_ == 1;
    if (runs_until_timed_ > 0) --runs_until_timed_;
    if (shadow_) {
      shadow_->run(row);
    } else if (timed) {
      debug_print(timing_table(program_, profile_row(row)));
    } else {
      last = device_->run(*executable_, {&row, 1});
    }
  }
  return last;
}

std::vector<LaunchTiming> Instance::profile_row(const HyperRow& row) {
  std::vector<LaunchTiming> timings = device_->profile(*executable_, row);
  if (dump_) dump_->timings(program_, timings);
  return timings;
}

}  // namespace tensorgrad
