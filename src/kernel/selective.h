// SPDX-License-Identifier: MIT
// Sizes of a selective scan, h[t] = exp(delta[t] A) h[t-1] + w[t] B[t] u[t], o[t] = C[t] h[t] +
// D u[t] for each batch and each channel, with N states; y is o, or with a gate o silu(z). They
// depend on the shape alone, so that every backend adds up in the same pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What a launch of a selective scan computes. Words of its inputs and results:
//   u, delta, z, o, y, dy and their gradients [batch, length, channels]; A [rates, channels], with
//   D as one more row where there is a skip; bc [batch, length, 2 states], B before C; `initial`
//   and `last` [batch, states, channels]; states [batch, chunks, states, channels], that before
//   each chunk; ends [batch, segments, states, channels].
enum class SelectivePart : std::uint8_t {
  kForward,   // y, last; and for the backward pass, with a gate, o; and states
  kAdjoint,   // ends: what flows back into the last step of each segment from behind it; `initial`
              // is what flows into the last step of all, dy that of o
  kBackward,  // du; ddelta; of B and C [batch, blocks, length, 2 states], a sum over each block of
              // channels; of A [batch, segments, rates, channels]; of initial; with a gate dz
};
enum class SelectiveInput : std::uint8_t {
  kU,
  kDelta,
  kA,
  kBC,
  kInitial,
  kStates,
  kDy,
  kEnds,
  kZ,       // where there is a gate
  kUngated  // o, backward where there is a gate
};
inline constexpr std::size_t kSelectiveInputs = 10;

struct SelectiveSizes {
  // Steps whose states are computed anew from the one that is kept before them; steps that are gone
  // over backwards one after another, a multiple of these, where there are too few lines of steps
  // to keep a GPU busy.
  static constexpr std::int64_t kChunk = 16, kSegment = 256;
  // Threads, each with four states of a channel, that do.
  static constexpr std::int64_t kManyThreads = 1 << 14;
  // More states are several scans whose results are added up.
  static constexpr std::int64_t kMaxStates = 64;
  // A block of channels times its states, which go in fours, is the work of this many threads.
  static constexpr std::int64_t kBlockThreads = 128, kMaxBlock = 32;

  // Below this |z| what divides by z is a series.
  static constexpr double kSeriesBelow = 0.25;

  std::int64_t batch = 1, length = 1, channels = 1, states = 1;
  bool skip = false, gate = false;

  [[nodiscard]] std::int64_t rates() const { return states + (skip ? 1 : 0); }
  [[nodiscard]] std::int64_t chunks() const { return (length + kChunk - 1) / kChunk; }
  [[nodiscard]] bool fills_gpu() const { return batch * channels * fours() >= kManyThreads; }
  [[nodiscard]] std::int64_t segment() const { return fills_gpu() ? chunks() * kChunk : kSegment; }
  [[nodiscard]] std::int64_t segments() const { return (length + segment() - 1) / segment(); }
  // Threads that have four states each of a channel, a power of two.
  [[nodiscard]] std::int64_t fours() const { return power_of_two((states + 3) / 4); }
  // Channels of a block, a power of two.
  [[nodiscard]] std::int64_t block() const {
    return std::min({kMaxBlock, kBlockThreads / fours(), power_of_two(channels)});
  }
  [[nodiscard]] std::int64_t blocks() const { return (channels + block() - 1) / block(); }
  // Elements of a tensor with these axes.
  [[nodiscard]] std::int64_t steps() const { return batch * length * channels; }
  [[nodiscard]] std::int64_t state() const { return batch * states * channels; }

  // `keeps_states`: of the forward pass.
  [[nodiscard]] std::vector<std::int64_t> results(SelectivePart part, bool keeps_states) const {
    switch (part) {
      case SelectivePart::kForward:
        if (!keeps_states) return {steps(), state()};
        if (!gate) return {steps(), state(), state() * chunks()};
        return {steps(), state(), steps(), state() * chunks()};
      case SelectivePart::kAdjoint: return {state() * segments()};
      case SelectivePart::kBackward: break;
    }
    std::vector<std::int64_t> sizes = {steps(), steps(), batch * blocks() * length * 2 * states,
                                       batch * segments() * rates() * channels, state()};
    if (gate) sizes.push_back(steps());
    return sizes;
  }
  // Where result number `which` begins: they lie one behind the other.
  [[nodiscard]] std::int64_t start(SelectivePart part, bool keeps_states, std::size_t which) const {
    const std::vector<std::int64_t> sizes = results(part, keeps_states);
    return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(which),
                           std::int64_t{0});
  }
  // Which results of a forward pass that keeps them are o, with a gate, and the states.
  static constexpr std::size_t kUngatedResult = 2;
  [[nodiscard]] std::size_t states_result() const { return gate ? 3 : 2; }
  [[nodiscard]] std::int64_t input(SelectiveInput which) const {
    switch (which) {
      case SelectiveInput::kU:
      case SelectiveInput::kDelta:
      case SelectiveInput::kDy:
      case SelectiveInput::kZ:
      case SelectiveInput::kUngated: return steps();
      case SelectiveInput::kA: return rates() * channels;
      case SelectiveInput::kBC: return batch * length * 2 * states;
      case SelectiveInput::kInitial: return state();
      case SelectiveInput::kStates: return state() * chunks();
      case SelectiveInput::kEnds: break;
    }
    return state() * segments();
  }

 private:
  static std::int64_t power_of_two(std::int64_t least) {
    std::int64_t n = 1;
    while (n < least) n *= 2;
    return n;
  }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
