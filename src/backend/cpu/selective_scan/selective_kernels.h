// SPDX-License-Identifier: MIT
// The inner loops of a selective scan over a tile: a chunk of steps and a block of channels. They
// process a vector of channels at a time, with the best instruction set of the machine.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// A tile. Rows have `pitch` channels, a multiple of 16. Channels past the last are zero in inputs
// and undefined in results. There are at most SelectiveSizes::kChunk steps.
struct SelectiveTile {
  std::int64_t steps = 0, states = 0, pitch = 0;
  bool zero_order_hold = false;
  const float* rates = nullptr;  // A [states, pitch], then D if there is a skip
  const float* u = nullptr;      // [steps, pitch] each
  const float* delta = nullptr;
  const float* signs = nullptr;  // with resets: negative if the state before a step is zero
  const float* dy = nullptr;
  const float* skip = nullptr;     // D [pitch], if there is a skip
  const float* z = nullptr;        // with a gate
  const float* ungated = nullptr;  // o, backward with a gate
  const float* bc = nullptr;       // B and C of each step: [steps, 2 states]
  float* carry = nullptr;          // [states, pitch]: h or, backward, e; updated by the tile
  // Results. Forward: y and, with a gate, o. Backward: du and ddelta; with a gate dz and the
  // gradient of o; sums over channels of dB and dC, [steps, 2 states]. The gradients of A and D are
  // added to `drates` [states, pitch] and `dskip` [pitch].
  float* y = nullptr;
  float* ungated_out = nullptr;
  float* dz = nullptr;
  float* dungated = nullptr;
  float* dskip = nullptr;
  float* du = nullptr;
  float* ddelta = nullptr;
  float* dbc = nullptr;
  float* drates = nullptr;
  const float* before = nullptr;  // backward: h before the tile, [states, pitch]
  float* scratch = nullptr;       // selective_scratch() floats
};

// Number of scratch floats that a tile needs.
std::int64_t selective_scratch();

struct SelectiveKernels {
  void (*forward)(const SelectiveTile& tile);
  void (*adjoint)(const SelectiveTile& tile);  // reads delta, rates, bc, dy; updates the carry
  void (*backward)(const SelectiveTile& tile);
};

const SelectiveKernels& selective_kernels();

}  // namespace tensorgrad::cpu
