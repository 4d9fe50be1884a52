// SPDX-License-Identifier: MIT
// Memory for buffers and scratch: zeroed, aligned for vectors and cache lines, with padding so that
// vector loops may run past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/divide.h"

namespace tensorgrad::cpu {

inline constexpr std::size_t kAlignment = 64;
// Covers the largest read past the end: 31 floats, the width of a packed panel minus one element.
inline constexpr std::size_t kSlack = 256;

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Throws std::bad_alloc.
  explicit AlignedBytes(std::size_t bytes) : size_(bytes) {
    // calloc does not touch fresh pages, which are already zero.
    block_.reset(std::calloc(1, bytes + kSlack + kAlignment));
    if (block_ == nullptr) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(block_.get());
    data_ =
        static_cast<std::byte*>(block_.get()) + (kAlignment - address % kAlignment) % kAlignment;
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> block_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

inline std::int64_t round_up(std::int64_t n, std::int64_t step) { return ceil_div(n, step) * step; }

inline bool is_aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0;
}

}  // namespace tensorgrad::cpu
