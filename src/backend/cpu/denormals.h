// SPDX-License-Identifier: MIT
// RAII guard that makes its thread treat denormal floats as zeros, as GPUs do. An operation on a
// denormal can take a hundred times as long, and vanishing gradients are full of them. The
// destructor restores the previous setting.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace tensorgrad::cpu {

class DenormalsAreZeros {
 public:
  DenormalsAreZeros() : before_(control()) { set_control(before_ | kFlush); }
  ~DenormalsAreZeros() { set_control(before_); }
  DenormalsAreZeros(const DenormalsAreZeros&) = delete;
  DenormalsAreZeros& operator=(const DenormalsAreZeros&) = delete;

 private:
#if defined(__x86_64__) || defined(__i386__)
  static constexpr std::uint64_t kFlush = 0x8040;  // flush results, treat operands as zero
  static std::uint64_t control() { return _mm_getcsr(); }
  static void set_control(std::uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = 1U << 24;
  static std::uint64_t control() {
    std::uint64_t word = 0;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set_control(std::uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  static constexpr std::uint64_t kFlush = 0;
  static std::uint64_t control() { return 0; }
  static void set_control(std::uint64_t) {}
#endif

  std::uint64_t before_;
};

}  // namespace tensorgrad::cpu
