// SPDX-License-Identifier: MIT
// Buffers and kernels of a program on a device.
#include "compile/instance.h"

#include "base/check.h"

namespace tensorgrad {
namespace {

constexpr std::uint32_t kInfBits = 0x7f800000U;
constexpr std::uint32_t kNanBits = 0x7fc00000U;

}  // namespace

Instance::Instance(std::shared_ptr<Device> device, Program program,
                   const std::shared_ptr<Instance>& owner)
    : device_(std::move(device)), owner_(owner), program_(std::move(program)) {
  try {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const BufferDecl& decl = program_.buffers[i];
      by_name_.emplace(decl.name, i);
      const bool shared =
          owner_ && decl.kind == BufferKind::kParams && owner_->has_buffer(decl.name);
      buffers_.push_back(shared ? owner_->buffers_[owner_->index_of(decl.name)]
                                : device_->alloc(decl.bytes, decl.name));
      owned_.push_back(!shared);
      if (!decl.data.empty())
        device_->upload(buffers_.back(), 0, std::as_bytes(std::span(decl.data)));
    }
    executable_ = device_->prepare(program_, buffers_);
  } catch (...) {
    for (std::size_t i = 0; i < owned_.size(); ++i) {
      if (owned_[i]) device_->free(buffers_[i]);
    }
    throw;
  }
}

Instance::~Instance() {
  executable_.reset();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (owned_[i]) device_->free(buffers_[i]);
  }
}

std::size_t Instance::index_of(const std::string& buffer) const {
  const auto at = by_name_.find(buffer);
  CHECK(at != by_name_.end(), "no buffer '" + buffer + "'");
  return at->second;
}

bool Instance::has_buffer(const std::string& name) const { return by_name_.contains(name); }

std::int64_t Instance::buffer_bytes(const std::string& name) const {
  return program_.buffers[index_of(name)].bytes;
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
  return device_->run(*executable_, words);
}

std::vector<LaunchTiming> Instance::profile(const HyperValues& row) {
  return device_->profile(*executable_, row_of(row));
}

}  // namespace tensorgrad
