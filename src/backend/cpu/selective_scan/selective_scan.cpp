// SPDX-License-Identifier: MIT
// Selective scans. A task processes a block of channels of one batch (in the backward pass: of one
// segment) in chunks of steps. The inputs of a chunk are copied into contiguous rows, padded with
// zeros, so that the inner loops stay in first-level cache. The division of work and the order of
// additions depend only on the shape.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "backend/cpu/opaque.h"
#include "backend/cpu/operand.h"
#include "backend/cpu/selective_scan/selective_kernels.h"
#include "base/check.h"
#include "kernel/selective.h"

namespace tensorgrad::cpu {
namespace {

constexpr std::int64_t kVector = 16;
constexpr std::int64_t kChunk = SelectiveSizes::kChunk;
// Per state and step.
constexpr double kForwardNs = 0.3, kBackwardNs = 0.8;

// The work of a task: steps [first, first + steps) of channels [channel, channel + width).
struct SelectivePiece {
  std::int64_t batch = 0, segment = 0, channel = 0, width = 0, first = 0, steps = 0;
};

class SelectiveScanRunner final : public LaunchRunner {
 public:
  explicit SelectiveScanRunner(const Prepare& prepare)
      : l_(prepare.launch),
        scan_(kernel_of<SelectiveKernel>(l_).scan),
        sizes_(scan_.sizes),
        kernels_(selective_kernels()) {
    const SelectiveSizes& s = sizes_;
    const std::int64_t shapes[kSelectiveInputs][3] = {
        {s.batch, s.length, s.channels}, {s.batch, s.length, s.channels},
        {1, s.rates(), s.channels},      {s.batch, s.length, 2 * s.states},
        {s.batch, s.states, s.channels}, {s.batch * s.chunks(), s.states, s.channels},
        {s.batch, s.length, s.channels}, {s.batch * s.segments(), s.states, s.channels},
        {s.batch, s.length, s.channels}, {s.batch, s.length, s.channels}};
    const auto& opaque = prepare.launch.as<OpaqueLaunch>();
    for (std::size_t i = 0; i < kSelectiveInputs; ++i) {
      const ScalarProgram& program = opaque.inputs[i];
      if (program.instrs.empty()) continue;
      inputs_[i].emplace(prepare, program, shapes[i][0], shapes[i][1], shapes[i][2], false);
    }
    for (const Store& store : l_.stores) {
      CHECK(store.map.is_identity() || store.map.views[0].simplified().shape.size() <= 1, l_.name);
      results_.push_back(reinterpret_cast<float*>(
          prepare.data[static_cast<std::size_t>(store.binding)] + store.map.views[0].offset));
    }
    block_ = backward() ? s.block() : std::min(SelectiveSizes::kMaxBlock, s.channels);
    pitch_ = round_up(block_, kVector);
    lay_out();
  }

  void run(const RunContext& context) override {
    for (std::optional<Operand>& input : inputs_) {
      if (input) input->start(context.runtime_scalars);
    }
    const std::int64_t blocks = ceil_div(sizes_.channels, block_);
    const std::int64_t segments = backward() ? sizes_.segments() : 1;
    const std::int64_t units = sizes_.batch * segments * blocks;
    const double ns = static_cast<double>(sizes_.steps() * sizes_.states) *
                      (backward() ? kBackwardNs : kForwardNs);
    const std::int64_t tasks = task_count(ns, units), each = ceil_div(units, tasks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      std::byte* scratch = context.scratch(worker);
      for (std::int64_t i = task * each; i < std::min(units, (task + 1) * each); ++i) {
        SelectivePiece piece;
        piece.batch = i / (segments * blocks);
        piece.segment = i / blocks % segments;
        piece.channel = i % blocks * block_;
        piece.width = std::min(block_, sizes_.channels - piece.channel);
        piece.first = backward() ? piece.segment * sizes_.segment() : 0;
        piece.steps = sizes_.length - piece.first;
        if (backward()) piece.steps = std::min(piece.steps, sizes_.segment());
        run_piece(piece, scratch);
      }
    });
  }

 private:
  // Parts of a worker's scratch memory. Parts from kOperands on are used to compute operands.
  enum Place {
    kRates,
    kU,
    kDelta,
    kSigns,
    kDy,
    kZ,
    kUngated,
    kBC,
    kCarry,
    kBefore,
    kOut,
    kOut2,
    kOut3,
    kOut4,
    kDRates,
    kSums,
    kOperands
  };
  static constexpr int kEnd = kOperands + static_cast<int>(kSelectiveInputs);

  [[nodiscard]] bool backward() const { return scan_.pass == SelectivePass::kBackward; }
  [[nodiscard]] const std::optional<Operand>& input(SelectiveInput which) const {
    return inputs_[static_cast<std::size_t>(which)];
  }

  void lay_out() {
    std::size_t end = 0;
    const auto take = [&](int place, std::int64_t floats) {
      at_[place] = end;
      end += static_cast<std::size_t>(round_up(floats, kVector)) * sizeof(float);
    };
    const std::int64_t rates = sizes_.rates() * pitch_, of_steps = kChunk * pitch_;
    for (const Place place : {kRates, kCarry, kBefore, kDRates}) take(place, rates);
    for (const Place place : {kU, kDelta, kDy, kOut, kOut2}) take(place, of_steps);
    take(kSigns, scan_.resets ? of_steps : 0);
    for (const Place place : {kZ, kUngated, kOut3, kOut4}) take(place, sizes_.gate ? of_steps : 0);
    take(kBC, kChunk * 2 * sizes_.states);
    take(kSums, selective_scratch());
    for (std::size_t i = 0; i < kSelectiveInputs; ++i) {
      at_[kOperands + i] = end;
      if (!inputs_[i]) continue;
      const auto which = static_cast<SelectiveInput>(i);
      const bool of_states = which == SelectiveInput::kA || which == SelectiveInput::kInitial ||
                             which == SelectiveInput::kStates || which == SelectiveInput::kEnds;
      const std::int64_t columns = which == SelectiveInput::kBC ? 2 * sizes_.states : block_;
      const std::size_t bytes =
          inputs_[i]->scratch_bytes(of_states ? sizes_.rates() : kChunk, columns);
      end += static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), 64));
    }
    worker_bytes = end;
  }

  [[nodiscard]] float* floats(std::byte* scratch, int place) const {
    return reinterpret_cast<float*>(scratch + at_[place]);
  }

  // Copies rows [row, row + rows), columns [column, column + columns) of a batch of an operand to
  // `out`, whose rows have stride `pitch` and are padded with zeros. Writes zeros if the operand is
  // absent.
  void copy_in(SelectiveInput which, std::byte* scratch, std::int64_t batch, std::int64_t row,
               std::int64_t rows, std::int64_t column, std::int64_t columns, std::int64_t pitch,
               float* out) const {
    if (!input(which)) {
      std::fill_n(out, rows * pitch, 0.0F);
      return;
    }
    const Matrix m = input(which)->block(batch, row, rows, column, columns,
                                         scratch + at_[kOperands + static_cast<int>(which)]);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = m.data + r * m.rs;
      float* to = out + r * pitch;
      if (m.cs == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(float));
      } else {
        for (std::int64_t c = 0; c < columns; ++c) to[c] = from[c * m.cs];
      }
      std::fill_n(to + columns, pitch - columns, 0.0F);
    }
  }
  void copy_states(SelectiveInput which, const SelectivePiece& p, std::byte* scratch,
                   std::int64_t batch, float* out) const {
    const std::int64_t rows = which == SelectiveInput::kA ? sizes_.rates() : sizes_.states;
    copy_in(which, scratch, batch, 0, rows, p.channel, p.width, pitch_, out);
  }
  // Copies rows of the task's channels to a result that has rows of all channels.
  void copy_out(const float* from, std::int64_t rows, const SelectivePiece& p, float* to) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(to + r * sizes_.channels + p.channel, from + r * pitch_,
                  static_cast<std::size_t>(p.width) * sizeof(float));
    }
  }
  // Returns the start of a batch's state in result `which`, or of state i of `count` per batch.
  [[nodiscard]] float* state(std::size_t which, const SelectivePiece& p, std::int64_t count,
                             std::int64_t i) const {
    return results_[which] + (p.batch * count + i) * sizes_.states * sizes_.channels;
  }
  // Returns the start of step t of a batch in result `which`.
  [[nodiscard]] float* step(std::size_t which, const SelectivePiece& p, std::int64_t t) const {
    return results_[which] + (p.batch * sizes_.length + t) * sizes_.channels;
  }

  // Returns the tile of steps [t, t + steps). Copies its inputs.
  SelectiveTile tile_at(const SelectivePiece& p, std::byte* scratch, std::int64_t t,
                        std::int64_t steps) const {
    SelectiveTile tile;
    tile.steps = steps;
    tile.states = sizes_.states;
    tile.pitch = pitch_;
    tile.zero_order_hold = scan_.zero_order_hold;
    const auto of_steps = [&](SelectiveInput which, int place) -> const float* {
      if (!input(which)) return nullptr;
      float* to = floats(scratch, place);
      copy_in(which, scratch, p.batch, t, steps, p.channel, p.width, pitch_, to);
      return to;
    };
    tile.u = of_steps(SelectiveInput::kU, kU);
    tile.delta = of_steps(SelectiveInput::kDelta, kDelta);
    if (scan_.resets) {
      float *delta = floats(scratch, kDelta), *signs = floats(scratch, kSigns);
      bool any = false;
      for (std::int64_t i = 0; i < steps * pitch_; ++i) {
        any |= delta[i] < 0;
        signs[i] = delta[i];
        delta[i] = std::abs(delta[i]);
      }
      if (any) tile.signs = signs;
    }
    tile.dy = of_steps(SelectiveInput::kDy, kDy);
    tile.z = of_steps(SelectiveInput::kZ, kZ);
    tile.ungated = of_steps(SelectiveInput::kUngated, kUngated);
    float* bc = floats(scratch, kBC);
    copy_in(SelectiveInput::kBC, scratch, p.batch, t, steps, 0, 2 * sizes_.states,
            2 * sizes_.states, bc);
    tile.bc = bc;
    tile.rates = floats(scratch, kRates);
    tile.carry = floats(scratch, kCarry);
    tile.before = floats(scratch, kBefore);
    tile.y = tile.du = floats(scratch, kOut);
    tile.ddelta = floats(scratch, kOut2);
    tile.ungated_out = tile.dungated = floats(scratch, kOut3);
    tile.dz = floats(scratch, kOut4);
    tile.drates = floats(scratch, kDRates);
    if (sizes_.skip) {
      tile.skip = floats(scratch, kRates) + sizes_.states * pitch_;
      tile.dskip = floats(scratch, kDRates) + sizes_.states * pitch_;
    }
    tile.scratch = floats(scratch, kSums);
    return tile;
  }

  void run_piece(const SelectivePiece& p, std::byte* scratch) const {
    copy_states(SelectiveInput::kA, p, scratch, 0, floats(scratch, kRates));
    switch (scan_.pass) {
      case SelectivePass::kForward: forward(p, scratch); break;
      case SelectivePass::kAdjoint: adjoint(p, scratch); break;
      case SelectivePass::kBackward: backward(p, scratch); break;
    }
  }

  void forward(const SelectivePiece& p, std::byte* scratch) const {
    float* carry = floats(scratch, kCarry);
    copy_states(SelectiveInput::kInitial, p, scratch, p.batch, carry);
    for (std::int64_t t = 0; t < p.steps; t += kChunk) {
      const std::int64_t steps = std::min(kChunk, p.steps - t);
      if (scan_.keeps_states) {
        copy_out(carry, sizes_.states, p,
                 state(sizes_.states_result(), p, sizes_.chunks(), t / kChunk));
      }
      const SelectiveTile tile = tile_at(p, scratch, t, steps);
      kernels_.forward(tile);
      copy_out(tile.y, steps, p, step(0, p, t));
      if (sizes_.gate && scan_.keeps_states)
        copy_out(tile.ungated_out, steps, p, step(SelectiveSizes::kUngatedResult, p, t));
    }
    copy_out(carry, sizes_.states, p, state(1, p, 1, 0));
  }

  void adjoint(const SelectivePiece& p, std::byte* scratch) const {
    float* carry = floats(scratch, kCarry);
    copy_states(SelectiveInput::kInitial, p, scratch, p.batch, carry);
    const std::int64_t segments = sizes_.segments();
    copy_out(carry, sizes_.states, p, state(0, p, segments, segments - 1));
    for (std::int64_t c = sizes_.chunks(); c-- > 0;) {
      const std::int64_t t = c * kChunk;
      kernels_.adjoint(tile_at(p, scratch, t, std::min(kChunk, p.steps - t)));
      if (t == 0 || t % sizes_.segment() != 0) continue;
      copy_out(carry, sizes_.states, p, state(0, p, segments, t / sizes_.segment() - 1));
    }
  }

  void backward(const SelectivePiece& p, std::byte* scratch) const {
    const SelectiveSizes& s = sizes_;
    float* carry = floats(scratch, kCarry);
    float* before = floats(scratch, kBefore);
    float* drates = floats(scratch, kDRates);
    copy_states(SelectiveInput::kEnds, p, scratch, p.batch * s.segments() + p.segment, carry);
    std::fill_n(drates, s.rates() * pitch_, 0.0F);
    for (std::int64_t c = ceil_div(p.steps, kChunk); c-- > 0;) {
      const std::int64_t t = p.first + c * kChunk;
      const std::int64_t steps = std::min(kChunk, p.steps - c * kChunk);
      copy_states(SelectiveInput::kStates, p, scratch, p.batch * s.chunks() + t / kChunk, before);
      SelectiveTile tile = tile_at(p, scratch, t, steps);
      tile.dbc =
          results_[2] + ((p.batch * s.blocks() + p.channel / block_) * s.length + t) * 2 * s.states;
      kernels_.backward(tile);
      copy_out(tile.du, steps, p, step(0, p, t));
      copy_out(tile.ddelta, steps, p, step(1, p, t));
      if (s.gate) copy_out(tile.dz, steps, p, step(5, p, t));
    }
    copy_out(drates, s.rates(), p,
             results_[3] + (p.batch * s.segments() + p.segment) * s.rates() * s.channels);
    if (p.segment == 0) copy_out(carry, s.states, p, state(4, p, 1, 0));
  }

  const Launch& l_;
  const SelectiveParams& scan_;
  const SelectiveSizes& sizes_;
  const SelectiveKernels& kernels_;
  std::optional<Operand> inputs_[kSelectiveInputs];
  std::vector<float*> results_;
  std::int64_t block_ = 1, pitch_ = 1;  // channels per task, and rounded up to whole vectors
  std::size_t at_[kEnd] = {};
};

}  // namespace

std::unique_ptr<LaunchRunner> make_selective_scan(const Prepare& prepare) {
  return std::make_unique<SelectiveScanRunner>(prepare);
}

}  // namespace tensorgrad::cpu
