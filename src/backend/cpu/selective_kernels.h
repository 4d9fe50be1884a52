// SPDX-License-Identifier: MIT
// The inner loops of a selective scan over a tile of steps and a block of channels, a vector of
// channels at a time, chosen once for the best instruction set of the machine.
#pragma once

#include <cstdint>

namespace tensorgrad::cpu {

// Rows of `pitch` channels, a multiple of 16: what is behind the last channel is zero, or, in what
// is written, of no use. At most SelectiveSizes::kChunk steps.
struct SelectiveTile {
  std::int64_t steps = 0, states = 0, pitch = 0;
  bool zero_order_hold = false;
  const float* rates = nullptr;  // A [states, pitch], and behind it D, where there is a skip
  const float* u = nullptr;      // [steps, pitch] each
  const float* delta = nullptr;
  const float* signs = nullptr;  // with resets: negative where the state before a step is zero
  const float* dy = nullptr;
  const float* skip = nullptr;     // there: D [pitch]
  const float* z = nullptr;        // of the gate, where there is one
  const float* ungated = nullptr;  // backward, with a gate: o
  const float* bc = nullptr;       // B and C of each step: [steps, 2 states]
  float* carry = nullptr;          // [states, pitch]: h before the tile, then after it; e likewise
  // What comes out of it: forward y and, with a gate, o; backward du, ddelta, with a gate dz and
  // what flows back into o, and the sums over channels of dB and dC, [steps, 2 states]; what goes
  // into dA is added to `drates` [states, pitch], into dD to `dskip` [pitch].
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

// Floats that a tile needs beside its own.
std::int64_t selective_scratch();

struct SelectiveKernels {
  void (*forward)(const SelectiveTile& tile);
  void (*adjoint)(const SelectiveTile& tile);  // of delta, rates, bc, dy: the carry alone
  void (*backward)(const SelectiveTile& tile);
};

const SelectiveKernels& selective_kernels();

}  // namespace tensorgrad::cpu
