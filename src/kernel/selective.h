// SPDX-License-Identifier: MIT
// Sizes of a selective scan. For each batch and channel, with N states:
//   h[t] = exp(delta[t] A) h[t-1] + w[t] B[t] u[t]
//   o[t] = C[t] h[t] + D u[t]
//   y[t] = o[t], or o[t] silu(z[t]) with a gate
// The sizes depend only on the shape, so all backends add up in the same pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "kernel/gpu_model.h"
#include "kernel/opaque_kernel.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The pass that a launch computes. Shapes of inputs and results:
// - u, delta, z, o, y, dy and their gradients: [batch, length, channels]
// - A: [rates, channels]; with a skip, D is its last row
// - bc: [batch, length, 2 states], B before C
// - `initial`, `last`: [batch, states, channels]
// - states: [batch, chunks, states, channels], the state before each chunk
// - ends: [batch, segments, states, channels]
enum class SelectivePass : std::uint8_t {
  kForward,   // y and last; for the backward pass also o (with a gate) and states
  kAdjoint,   // ends: the gradient that flows into the last step of each segment from later
              // segments. `initial` is the gradient of the last state, and dy that of o.
  kBackward,  // gradients of u, delta, B and C, A, `initial` and, with a gate, z. Those of B and C
              // are sums over each block of channels, [batch, blocks, length, 2 states]; that of A
              // is [batch, segments, rates, channels].
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
  kZ,       // with a gate
  kUngated  // o, for the backward pass with a gate
};
inline constexpr std::size_t kSelectiveInputs = 10;

struct SelectiveSizes {
  // kChunk: steps between saved states; the states in between are recomputed. kSegment, a multiple
  // of it: steps per segment if the batch and channels are too few to fill a GPU. Segments run
  // backwards concurrently.
  static constexpr std::int64_t kChunk = 16, kSegment = 256;
  // Scans with more states are split into several, whose results are added.
  static constexpr std::int64_t kMaxStates = 64;
  // Threads for a block of channels, each with four states of a channel, and the maximum block
  // size.
  static constexpr std::int64_t kBlockThreads = 128, kMaxBlock = 32;

  // For |z| below this, expressions that divide by z use a series.
  static constexpr double kSeriesBelow = 0.25;

  std::int64_t batch = 1, length = 1, channels = 1, states = 1;
  bool skip = false, gate = false;

  [[nodiscard]] std::int64_t rates() const { return states + (skip ? 1 : 0); }
  [[nodiscard]] std::int64_t chunks() const { return (length + kChunk - 1) / kChunk; }
  [[nodiscard]] bool fills_gpu() const {
    return batch * channels * threads_per_channel() >= kReferenceGpu.full_scan_threads;
  }
  [[nodiscard]] std::int64_t segment() const { return fills_gpu() ? chunks() * kChunk : kSegment; }
  [[nodiscard]] std::int64_t segments() const { return (length + segment() - 1) / segment(); }
  // Threads per channel, each with four states; a power of two.
  [[nodiscard]] std::int64_t threads_per_channel() const { return power_of_two((states + 3) / 4); }
  // Channels per block; a power of two.
  [[nodiscard]] std::int64_t block() const {
    return std::min({kMaxBlock, kBlockThreads / threads_per_channel(), power_of_two(channels)});
  }
  [[nodiscard]] std::int64_t blocks() const { return (channels + block() - 1) / block(); }
  // Number of elements of tensors with these axes.
  [[nodiscard]] std::int64_t steps() const { return batch * length * channels; }
  [[nodiscard]] std::int64_t state() const { return batch * states * channels; }

  // Returns the sizes of the results. `keeps_states` applies to the forward pass.
  [[nodiscard]] std::vector<std::int64_t> results(SelectivePass pass, bool keeps_states) const {
    switch (pass) {
      case SelectivePass::kForward:
        if (!keeps_states) return {steps(), state()};
        if (!gate) return {steps(), state(), state() * chunks()};
        return {steps(), state(), steps(), state() * chunks()};
      case SelectivePass::kAdjoint: return {state() * segments()};
      case SelectivePass::kBackward: break;
    }
    std::vector<std::int64_t> sizes = {steps(), steps(), batch * blocks() * length * 2 * states,
                                       batch * segments() * rates() * channels, state()};
    if (gate) sizes.push_back(steps());
    return sizes;
  }
  // Returns the offset of a result. All results are parts of one flat tensor.
  [[nodiscard]] std::int64_t start(SelectivePass pass, bool keeps_states, std::size_t which) const {
    const std::vector<std::int64_t> sizes = results(pass, keeps_states);
    return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(which),
                           std::int64_t{0});
  }
  // Numbers of results of a forward pass with saved states: o (with a gate), and the states.
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

// A selective scan, or a part of its gradient.
struct SelectiveParams {
  SelectivePass pass = SelectivePass::kForward;
  SelectiveSizes sizes;
  // zero_order_hold: w = (e^(delta A) - 1) / A instead of delta. resets: |delta| is the step, and
  // states before a negative one count as zero.
  bool zero_order_hold = false, resets = false;
  bool keeps_states = false;  // a forward pass that stores states for the backward pass

  [[nodiscard]] std::vector<std::int64_t> results() const {
    return sizes.results(pass, keeps_states);
  }
};

struct SelectiveKernel final : OpaqueKernel {
  // `operands`: numbers of the op's operands by SelectiveInput; -1: absent.
  SelectiveKernel(const SelectiveParams& of, std::span<const int> operands);

  SelectiveParams scan;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
