// SPDX-License-Identifier: MIT
// The null device: checks programs and buffer sizes against limits. Stores and computes nothing.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "backend/backend.h"
#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

class NullExecutable final : public Executable {
 public:
  explicit NullExecutable(std::size_t count) : launches(count) {}
  std::size_t launches;
};

std::string over(const std::string& what, std::int64_t given, const std::string& unit,
                 std::int64_t limit) {
  return "null: " + what + " needs " + std::to_string(given) + " " + unit + ", the limit is " +
         std::to_string(limit);
}

class NullDevice final : public Device {
 public:
  explicit NullDevice(const DeviceLimits& limits) {
    info_.backend = "null";
    info_.name = "no device";
    info_.computes = false;
    info_.limits = limits;
    info_.joins_launches = true;
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    const std::lock_guard lock(mutex_);
    if (bytes < 0 || bytes > info_.limits.max_buffer_bytes) {
      throw DeviceError(over("buffer " + label, bytes, "bytes", info_.limits.max_buffer_bytes));
    }
    sizes_[next_] = bytes;
    return next_++;
  }

  void free(BufferHandle buffer) override {
    const std::lock_guard lock(mutex_);
    CHECK(sizes_.erase(buffer) == 1, "no such buffer");
  }

  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    const std::lock_guard lock(mutex_);
    check_range(buffer, offset, data.size());
  }

  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    const std::lock_guard lock(mutex_);
    check_range(buffer, offset, out.size());
    if (!out.empty()) std::memset(out.data(), 0, out.size());
    return 0;
  }

  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    const std::lock_guard lock(mutex_);
    CHECK(buffers.size() == program.buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const auto found = sizes_.find(buffers[i]);
      CHECK(found != sizes_.end() && found->second >= program.buffers[i].bytes,
            program.buffers[i].name);
    }
    for (const Launch& launch : program.launches) check_launch(launch);
    return std::make_unique<NullExecutable>(program.launches.size());
  }

  void rebind(Executable&, std::span<const BufferHandle> buffers, int changed) override {
    const std::lock_guard lock(mutex_);
    CHECK(sizes_.contains(buffers[static_cast<std::size_t>(changed)]), "no such buffer");
  }

  Ticket run(Executable& executable, std::span<const RuntimeScalars>) override {
    (void)dynamic_cast<NullExecutable&>(executable);
    return 0;
  }

  [[nodiscard]] bool done(Ticket) override { return true; }
  void wait(Ticket) override {}

  std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars&) override {
    return std::vector<LaunchTiming>(dynamic_cast<NullExecutable&>(executable).launches);
  }

 private:
  void check_range(BufferHandle buffer, std::int64_t offset, std::size_t bytes) const {
    const auto found = sizes_.find(buffer);
    CHECK(found != sizes_.end(), "no such buffer");
    CHECK(offset >= 0 && offset <= found->second &&
              static_cast<std::int64_t>(bytes) <= found->second - offset,
          "a copy leaves its buffer");
  }

  void check_launch(const Launch& launch) const {
    const DeviceLimits& limits = info_.limits;
    const auto bound = static_cast<std::int64_t>(launch.bindings.size());
    if (bound > limits.max_storage_bindings) {
      throw DeviceError(over(launch.name, bound, "bindings", limits.max_storage_bindings));
    }
    if (limits.max_buffer_bytes == kAnySize) return;
    for (const Binding& binding : launch.bindings) {
      if (binding.bytes > limits.max_binding_bytes) {
        throw DeviceError(
            over("a binding of " + launch.name, binding.bytes, "bytes", limits.max_binding_bytes));
      }
    }
  }

  std::mutex mutex_;
  DeviceInfo info_;
  std::map<BufferHandle, std::int64_t> sizes_;
  BufferHandle next_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_null_device(const DeviceLimits& limits) {
  return std::make_unique<NullDevice>(limits);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
