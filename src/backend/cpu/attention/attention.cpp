// SPDX-License-Identifier: MIT
// Attention launches. A task computes a block of rows (for dk and dv: of columns) of one batch and
// loops over blocks of the other side. The micro-kernels of the matrix product compute a tile of
// scores, which becomes weights in place and is an operand of the next product. In the forward
// pass, previous results are rescaled when a larger score occurs (Milakov and Gimelshein 2018).
// Blocks depend only on the shape, and the order of all sums is fixed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "backend/cpu/attention/attention_kernels.h"
#include "backend/cpu/block_size.h"
#include "backend/cpu/opaque.h"
#include "backend/cpu/operand.h"
#include "base/check.h"
#include "kernel/attention.h"

namespace tensorgrad::cpu {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;
// Number of rows of a product up to which its right side is not packed.
constexpr std::int64_t kRowsInPlace = 4;
// Columns of a tile of scores. The forward pass has one tile, the backward pass two.
constexpr std::int64_t kColumnsForward = 256, kColumnsBackward = 128;
constexpr std::int64_t kVector = 16;
constexpr double kProductsPerNs = 25, kWeightNs = 0.4;

// A part of the T x S scores of a batch.
struct Tile {
  std::int64_t batch = 0, row = 0, rows = 0, column = 0, columns = 0;
};

class AttentionRunner final : public LaunchRunner {
 public:
  explicit AttentionRunner(const Prepare& prepare)
      : l_(prepare.launch),
        s_(kernel_of<AttentionKernel>(l_).sizes),
        pass_(kernel_of<AttentionKernel>(l_).pass),
        scale_(static_cast<float>(s_.scale)),
        kernels_(gemm_kernels()),
        rows_(attention_kernels()) {
    const std::int64_t sizes[kAttentionInputs][2] = {
        {s_.rows, s_.depth}, {s_.columns, s_.depth}, {s_.columns, s_.width}, {s_.rows, s_.width},
        {s_.rows, 1},        {s_.rows, 1},           {s_.rows, s_.columns},  {s_.rows, s_.columns}};
    const auto& opaque = prepare.launch.as<OpaqueLaunch>();
    for (std::size_t i = 0; i < kAttentionInputs; ++i) {
      const ScalarProgram& program = opaque.inputs[i];
      if (program.instrs.empty()) continue;
      inputs_[i].emplace(prepare, program, s_.batch, sizes[i][0], sizes[i][1], false);
    }
    for (const Store& store : l_.stores) {
      CHECK(store.map.is_identity() || store.map.views[0].simplified().shape.size() <= 1, l_.name);
      auto* const start =
          reinterpret_cast<std::byte*>(prepare.data[static_cast<std::size_t>(store.binding)]);
      const auto bytes = static_cast<std::int64_t>(element_bytes(store.dtype));
      results_[store.value] = {start + store.map.views[0].offset * bytes,
                               store.dtype == DType::kF16};
    }
    truth_mask_ = has(AttentionInput::kMask) &&
                  opaque.input(AttentionInput::kMask).instrs.back().dtype == DType::kBool;
    lay_out();
  }

  void run(const RunContext& context) override {
    for (std::optional<Operand>& input : inputs_) {
      if (input) input->start(context.runtime_scalars);
    }
    const std::int64_t blocks = pass_ == AttentionPass::kBackward
                                    ? s_.dq_parts
                                    : ceil_div(over_rows() ? s_.rows : s_.columns, block_);
    const std::int64_t units = s_.batch * blocks;
    const std::int64_t tasks = task_count(ns_of_unit_ * static_cast<double>(units), units);
    const std::int64_t each = ceil_div(units, tasks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      const Scratch scratch(context.scratch(worker), at_);
      for (std::int64_t u = task * each; u < std::min(units, (task + 1) * each); ++u) {
        // The last rows of a causal mask have the most columns, so they come first.
        run_block(scratch, u / blocks, blocks - 1 - u % blocks);
      }
    });
  }

 private:
  // Parts of a worker's scratch memory. From kOperands on: memory for computed operands.
  enum Place { kScores, kDp, kRight, kOut, kOut2, kSums, kLine, kOperands };
  static constexpr int kEnd = kOperands + static_cast<int>(kAttentionInputs);

  struct Scratch {
    Scratch(std::byte* start, const std::size_t* offsets) : base(start), at(offsets) {}
    [[nodiscard]] float* floats(int place) const {
      return reinterpret_cast<float*>(base + at[place]);
    }
    std::byte* base;
    const std::size_t* at;
  };

  [[nodiscard]] bool has(AttentionInput which) const {
    return inputs_[static_cast<std::size_t>(which)].has_value();
  }
  [[nodiscard]] bool over_rows() const {
    return pass_ == AttentionPass::kForward || pass_ == AttentionPass::kQueries;
  }

  void lay_out() {
    const std::int64_t most = over_rows() ? s_.rows : s_.columns;
    const std::int64_t step = kernels_.mr;
    block_ = over_rows() ? std::min(most, kRowsAtOnce / step * step)
                         : std::min(most, round_up(kRowsAtOnce, kernels_.nr));
    const bool forward = pass_ == AttentionPass::kForward;
    tile_rows_ = over_rows() ? block_ : std::min(s_.rows, kRowsAtOnce / step * step);
    tile_columns_ =
        over_rows() ? std::min(s_.columns, forward ? kColumnsForward : kColumnsBackward) : block_;
    pitch_ = round_up(tile_columns_, std::max<std::int64_t>(kernels_.nr, kVector));
    depth_pitch_ = round_up(s_.depth, std::max<std::int64_t>(kernels_.nr, kVector));
    width_pitch_ = round_up(s_.width, std::max<std::int64_t>(kernels_.nr, kVector));
    const std::int64_t pairs = tile_rows_ * tile_columns_;
    std::size_t end = 0;
    const auto take = [&](int place, std::int64_t floats) {
      at_[place] = end;
      end += static_cast<std::size_t>(round_up(floats, kVector)) * sizeof(float);
    };
    // A panel of a packed operand is `nr` columns wide. Has room for the right side of any product.
    const std::int64_t lanes = std::max(tile_columns_, tile_rows_);
    const std::int64_t widest = std::max(depth_pitch_, width_pitch_);
    const std::int64_t right = widest * round_up(lanes, kernels_.nr);
    take(kScores, tile_rows_ * pitch_);
    take(kDp, forward ? 0 : tile_rows_ * pitch_);
    take(kRight, right);
    take(kOut, block_ * std::max(depth_pitch_, width_pitch_));
    take(kOut2, block_ * width_pitch_);
    take(kSums, pass_ == AttentionPass::kBackward ? tile_rows_ * depth_pitch_ : 0);
    take(kLine, 3 * pitch_);
    const auto operand = [&](AttentionInput which, std::int64_t r, std::int64_t c) {
      const auto i = static_cast<std::size_t>(which);
      at_[kOperands + static_cast<int>(i)] = end;
      if (inputs_[i]) {
        end += static_cast<std::size_t>(
            round_up(static_cast<std::int64_t>(inputs_[i]->scratch_bytes(r, c)), 64));
      }
    };
    operand(AttentionInput::kQ, tile_rows_, s_.depth);
    operand(AttentionInput::kK, tile_columns_, s_.depth);
    operand(AttentionInput::kV, tile_columns_, s_.width);
    operand(AttentionInput::kDy, tile_rows_, s_.width);
    operand(AttentionInput::kLse, tile_rows_, 1);
    operand(AttentionInput::kDelta, tile_rows_, 1);
    operand(AttentionInput::kMask, tile_rows_, tile_columns_);
    operand(AttentionInput::kKeep, tile_rows_, tile_columns_);
    worker_bytes = end;
    const double products =
        static_cast<double>(pairs) *
        static_cast<double>(forward ? s_.depth + s_.width : 2 * (s_.depth + s_.width));
    const double tiles = static_cast<double>(over_rows() ? ceil_div(s_.columns, tile_columns_)
                                                         : ceil_div(s_.rows, tile_rows_));
    ns_of_unit_ = tiles * (products / kProductsPerNs + static_cast<double>(pairs) * kWeightNs);
  }

  Matrix block(AttentionInput which, const Scratch& scratch, std::int64_t batch, std::int64_t row,
               std::int64_t rows, std::int64_t column, std::int64_t columns) const {
    const auto i = static_cast<std::size_t>(which);
    return inputs_[i]->block(batch, row, rows, column, columns,
                             scratch.base + at_[kOperands + static_cast<int>(i)]);
  }
  // Returns rows [row, row + rows) of an operand.
  Matrix lines(AttentionInput which, const Scratch& scratch, std::int64_t batch, std::int64_t row,
               std::int64_t rows) const {
    const bool deep = which == AttentionInput::kQ || which == AttentionInput::kK;
    const bool flat = which == AttentionInput::kLse || which == AttentionInput::kDelta;
    return block(which, scratch, batch, row, rows, 0, flat ? 1 : deep ? s_.depth : s_.width);
  }

  // c (+)= a b. The rows of c must have room for whole panels. Packs b, unless there are so few
  // rows that reading it in place is faster.
  void multiply(const Matrix& a, std::int64_t rows, std::int64_t depth, const Matrix& b,
                std::int64_t columns, float* packed, float* c, std::int64_t ldc, bool add) const {
    const std::int64_t nr = kernels_.nr, mr = kernels_.mr;
    const bool few = rows <= kRowsInPlace;
    if (few && !add && a.cs == 1 && b.rs == 1)
      return kernels_.dot_products(depth, rows, columns, a.data, a.rs, b.data, b.cs, c, ldc);
    for (std::int64_t j = 0; j < columns; j += nr) {
      const std::int64_t count = std::min(nr, columns - j);
      const int half = count <= nr / 2 ? 1 : 0;
      const float* panel = b.data + j;
      std::int64_t pitch = b.rs;
      if (!few || b.cs != 1 || count != (half != 0 ? nr / 2 : nr)) {
        float* const to = packed + j * depth;
        kernels_.pack_b(b.data + j * b.cs, b.rs, b.cs, depth, count, to);
        panel = to;
        pitch = nr;
      }
      for (std::int64_t i = 0; i < rows; i += mr) {
        const std::int64_t tall = std::min(mr, rows - i);
        kernels_.strided[tall][half](depth, a.data + i * a.rs, a.rs, a.cs, panel, pitch,
                                     c + i * ldc + j, ldc, add);
      }
    }
  }

  // Copies row r of a mask or of the dropout factors, with room for whole vectors.
  static const float* padded_row(const Matrix& m, std::int64_t r, std::int64_t n, float* copy) {
    const float* from = m.data + r * m.rs;
    if (m.cs == 1) {
      std::memcpy(copy, from, static_cast<std::size_t>(n) * sizeof(float));
    } else {
      for (std::int64_t j = 0; j < n; ++j) copy[j] = from[j * m.cs];
    }
    return copy;
  }

  // Returns how many columns of the tile its row r can attend to.
  [[nodiscard]] std::int64_t seen(const Tile& t, std::int64_t r) const {
    if (!s_.causal) return t.columns;
    return std::clamp<std::int64_t>(t.row + r + 1 - t.column, 0, t.columns);
  }

  // The masks of a tile. `closed`: no row attends to any column.
  struct Masks {
    Matrix mask, keep;
    bool closed = false;
  };
  Masks masks_of(const Tile& t, const Scratch& scratch) const {
    Masks masks;
    if (has(AttentionInput::kMask)) {
      masks.mask =
          block(AttentionInput::kMask, scratch, t.batch, t.row, t.rows, t.column, t.columns);
      masks.closed = truth_mask_ && all_zero(masks.mask, t);
    }
    if (has(AttentionInput::kKeep) && !masks.closed) {
      masks.keep =
          block(AttentionInput::kKeep, scratch, t.batch, t.row, t.rows, t.column, t.columns);
    }
    return masks;
  }
  static bool all_zero(const Matrix& m, const Tile& t) {
    const auto* words = reinterpret_cast<const Word*>(m.data);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      Word some = 0;
      for (std::int64_t j = 0; j < t.columns; ++j) some |= words[r * m.rs + j * m.cs];
      if (some != 0) return false;
    }
    return true;
  }

  // Calls visit(r, visible columns, additive mask, boolean mask, keep factors) for each row. Absent
  // masks are null.
  template <class Visit>
  void each_row(const Tile& t, const Scratch& scratch, const Masks& masks,
                const Visit& visit) const {
    float* lines = scratch.floats(kLine);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const std::int64_t n = seen(t, r);
      const float* line =
          masks.mask.data == nullptr ? nullptr : padded_row(masks.mask, r, n, lines);
      const float* kept =
          masks.keep.data == nullptr ? nullptr : padded_row(masks.keep, r, n, lines + pitch_);
      visit(r, n, truth_mask_ ? nullptr : line,
            truth_mask_ ? reinterpret_cast<const Word*>(line) : nullptr, kept);
    }
  }

  static void clear(float* line, std::int64_t from, std::int64_t to) {
    if (from < to) std::memset(line + from, 0, static_cast<std::size_t>(to - from) * sizeof(float));
  }

  void run_block(const Scratch& scratch, std::int64_t batch, std::int64_t block) const {
    switch (pass_) {
      case AttentionPass::kForward: forward(scratch, batch, block * block_); break;
      case AttentionPass::kQueries: queries(scratch, batch, block * block_); break;
      case AttentionPass::kKeys:
        keys(scratch, batch, block * block_, std::min(block_, s_.columns - block * block_),
             nullptr);
        break;
      case AttentionPass::kBackward: backward(scratch, batch, block); break;
    }
  }

  // Computes dk and dv of the keys of a part of dq, and that part.
  void backward(const Scratch& scratch, std::int64_t batch, std::int64_t part) const {
    float* const dq =
        results_[2].floats() == nullptr
            ? nullptr
            : results_[2].floats() + (batch * s_.dq_parts + part) * s_.rows * s_.depth;
    if (dq != nullptr) clear(dq, 0, s_.rows * s_.depth);
    for (std::int64_t round = 0; round < s_.rounds(); ++round) {
      const std::int64_t start = s_.chunk(part, round) * kKeysOfPart;
      const std::int64_t end = std::min(start + kKeysOfPart, s_.columns);
      for (std::int64_t column = start; column < end; column += block_)
        keys(scratch, batch, column, std::min(block_, end - column), dq);
    }
  }

  // Returns how many columns are visible to any row before `end`.
  [[nodiscard]] std::int64_t columns_seen(std::int64_t end) const {
    return s_.causal ? std::min(s_.columns, end) : s_.columns;
  }

  void forward(const Scratch& scratch, std::int64_t batch, std::int64_t row) const {
    float tops[kRowsAtOnce];
    double sums[kRowsAtOnce];
    Tile t{batch, row, std::min(block_, s_.rows - row), 0, 0};
    std::fill_n(tops, t.rows, std::numeric_limits<float>::lowest());
    std::fill_n(sums, t.rows, 0.0);
    const Matrix q = lines(AttentionInput::kQ, scratch, batch, row, t.rows);
    float* s = scratch.floats(kScores);
    float* out = scratch.floats(kOut);
    const std::int64_t end = columns_seen(row + t.rows);
    bool first = true;
    for (t.column = 0; t.column < end; t.column += tile_columns_) {
      t.columns = std::min(tile_columns_, end - t.column);
      const Masks masks = masks_of(t, scratch);
      if (masks.closed) continue;
      const Matrix k = lines(AttentionInput::kK, scratch, batch, t.column, t.columns);
      multiply(q, t.rows, s_.depth, k.transposed(), t.columns, scratch.floats(kRight), s, pitch_,
               false);
      each_row(t, scratch, masks,
               [&](std::int64_t r, std::int64_t n, const float* added, const Word* allowed,
                   const float* keep) {
                 float* line = s + r * pitch_;
                 if (n > 0) {
                   const float top = rows_.scores(line, n, scale_, added, allowed, tops[r]);
                   const double sum = static_cast<double>(rows_.weights(line, n, top));
                   if (first) {
                     sums[r] = sum;
                   } else {
                     const double shrink =
                         std::exp(static_cast<double>(tops[r]) - static_cast<double>(top));
                     sums[r] = sums[r] * shrink + sum;
                     if (top != tops[r]) {
                       rows_.scale(out + r * width_pitch_, static_cast<float>(shrink), s_.width);
                     }
                   }
                   tops[r] = top;
                   if (keep != nullptr) rows_.multiply(line, keep, n);
                 }
                 clear(line, n, t.columns);
               });
      const Matrix v = lines(AttentionInput::kV, scratch, batch, t.column, t.columns);
      multiply({s, pitch_, 1}, t.rows, t.columns, v, s_.width, scratch.floats(kRight), out,
               width_pitch_, !first);
      first = false;
    }
    if (first) clear(out, 0, t.rows * width_pitch_);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const bool nothing = sums[r] == 0;
      float* line = out + r * width_pitch_;
      rows_.scale(line, nothing ? 0.0F : static_cast<float>(1 / sums[r]), s_.width);
      const std::int64_t at = batch * s_.rows + row + r;
      results_[0].put(at * s_.width, line, s_.width);
      const float lse =
          nothing ? 0.0F : static_cast<float>(static_cast<double>(tops[r]) + std::log(sums[r]));
      results_[1].put(at, &lse, 1);
    }
  }

  // Operands of the backward passes for the rows of a tile, evaluated.
  struct BackwardRows {
    Matrix q, dy, lse, delta;
  };
  BackwardRows rows_of(const Scratch& scratch, std::int64_t batch, std::int64_t row,
                       std::int64_t rows) const {
    return {lines(AttentionInput::kQ, scratch, batch, row, rows),
            lines(AttentionInput::kDy, scratch, batch, row, rows),
            lines(AttentionInput::kLse, scratch, batch, row, rows),
            lines(AttentionInput::kDelta, scratch, batch, row, rows)};
  }

  // Writes keep * p to kScores and ds to kDp.
  void backward_tile(const Tile& t, const Scratch& scratch, const Masks& masks,
                     const BackwardRows& left, const Matrix& k, const Matrix& v) const {
    float* s = scratch.floats(kScores);
    float* dp = scratch.floats(kDp);
    multiply(left.q, t.rows, s_.depth, k.transposed(), t.columns, scratch.floats(kRight), s, pitch_,
             false);
    multiply(left.dy, t.rows, s_.width, v.transposed(), t.columns, scratch.floats(kRight), dp,
             pitch_, false);
    each_row(t, scratch, masks,
             [&](std::int64_t r, std::int64_t n, const float* added, const Word* allowed,
                 const float* keep) {
               float* line = s + r * pitch_;
               float* dline = dp + r * pitch_;
               if (n > 0) {
                 rows_.scores(line, n, scale_, added, allowed, 0);
                 rows_.weights(line, n, left.lse.data[r * left.lse.rs]);
                 rows_.gradient(line, dline, keep, n, left.delta.data[r * left.delta.rs]);
                 if (keep != nullptr) rows_.multiply(line, keep, n);
               }
               clear(line, n, t.columns);
               clear(dline, n, t.columns);
             });
  }

  // The destination of a result, if it is needed.
  struct Result {
    std::byte* data = nullptr;
    bool half = false;

    [[nodiscard]] float* floats() const {
      CHECK(!half, "attention");
      return reinterpret_cast<float*>(data);
    }
    void put(std::int64_t at, const float* from, std::int64_t count) const {
      if (data == nullptr) return;
      if (half) return simd().to_halves(from, count, reinterpret_cast<std::uint16_t*>(data) + at);
      std::memcpy(reinterpret_cast<float*>(data) + at, from,
                  static_cast<std::size_t>(count) * sizeof(float));
    }
  };

  // Scales rows of a result by `factor`, `pitch` apart in scratch memory, and writes them from
  // element `at` on.
  void finish(float* from, std::int64_t pitch, std::int64_t rows, std::int64_t width, float factor,
              const Result& to, std::int64_t at) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      if (factor != 1) rows_.scale(from + r * pitch, factor, width);
      to.put(at + r * width, from + r * pitch, width);
    }
  }

  void queries(const Scratch& scratch, std::int64_t batch, std::int64_t row) const {
    Tile t{batch, row, std::min(block_, s_.rows - row), 0, 0};
    const BackwardRows left = rows_of(scratch, batch, row, t.rows);
    float* dq = scratch.floats(kOut);
    const std::int64_t end = columns_seen(row + t.rows);
    bool first = true;
    for (t.column = 0; t.column < end; t.column += tile_columns_) {
      t.columns = std::min(tile_columns_, end - t.column);
      const Masks masks = masks_of(t, scratch);
      if (masks.closed) continue;
      const Matrix k = lines(AttentionInput::kK, scratch, batch, t.column, t.columns);
      const Matrix v = lines(AttentionInput::kV, scratch, batch, t.column, t.columns);
      backward_tile(t, scratch, masks, left, k, v);
      multiply({scratch.floats(kDp), pitch_, 1}, t.rows, t.columns, k, s_.depth,
               scratch.floats(kRight), dq, depth_pitch_, !first);
      first = false;
    }
    if (first) clear(dq, 0, t.rows * depth_pitch_);
    finish(dq, depth_pitch_, t.rows, s_.depth, scale_, results_[0],
           (batch * s_.rows + row) * s_.depth);
  }

  // Computes dk and dv of some keys. Adds to dq of a head, unless it is null.
  void keys(const Scratch& scratch, std::int64_t batch, std::int64_t column, std::int64_t columns,
            float* dq) const {
    Tile t{batch, 0, 0, column, columns};
    const Matrix k = lines(AttentionInput::kK, scratch, batch, column, t.columns);
    const Matrix v = lines(AttentionInput::kV, scratch, batch, column, t.columns);
    float* dk = scratch.floats(kOut);
    float* dv = scratch.floats(kOut2);
    bool first = true;
    // With a causal mask, rows before the first column see none of these columns.
    for (t.row = s_.causal ? column / tile_rows_ * tile_rows_ : 0; t.row < s_.rows;
         t.row += tile_rows_) {
      t.rows = std::min(tile_rows_, s_.rows - t.row);
      const Masks masks = masks_of(t, scratch);
      if (masks.closed) continue;
      const BackwardRows left = rows_of(scratch, batch, t.row, t.rows);
      backward_tile(t, scratch, masks, left, k, v);
      multiply({scratch.floats(kScores), 1, pitch_}, t.columns, t.rows, left.dy, s_.width,
               scratch.floats(kRight), dv, width_pitch_, !first);
      multiply({scratch.floats(kDp), 1, pitch_}, t.columns, t.rows, left.q, s_.depth,
               scratch.floats(kRight), dk, depth_pitch_, !first);
      if (dq != nullptr) {
        float* sums = scratch.floats(kSums);
        multiply({scratch.floats(kDp), pitch_, 1}, t.rows, t.columns, k, s_.depth,
                 scratch.floats(kRight), sums, depth_pitch_, false);
        for (std::int64_t r = 0; r < t.rows; ++r)
          rows_.add(sums + r * depth_pitch_, scale_, s_.depth, dq + (t.row + r) * s_.depth);
      }
      first = false;
    }
    if (first) {
      clear(dk, 0, t.columns * depth_pitch_);
      clear(dv, 0, t.columns * width_pitch_);
    }
    const std::int64_t at = batch * s_.columns + column;
    finish(dk, depth_pitch_, t.columns, s_.depth, scale_, results_[0], at * s_.depth);
    finish(dv, width_pitch_, t.columns, s_.width, 1, results_[1], at * s_.width);
  }

  const Launch& l_;
  const AttentionSizes& s_;
  AttentionPass pass_;
  float scale_;
  const GemmKernels& kernels_;
  const AttentionKernels& rows_;
  std::optional<Operand> inputs_[kAttentionInputs];
  Result results_[3];
  bool truth_mask_ = false;
  // Rows (for dk and dv: columns) of a task's block; size and row pitch of the tile of scores.
  std::int64_t block_ = 1, tile_rows_ = 1, tile_columns_ = 1, pitch_ = 1;
  std::int64_t depth_pitch_ = 1, width_pitch_ = 1;
  double ns_of_unit_ = 0;
  std::size_t at_[kEnd] = {};
};

}  // namespace

std::unique_ptr<LaunchRunner> make_attention(const Prepare& prepare) {
  return std::make_unique<AttentionRunner>(prepare);
}

}  // namespace tensorgrad::cpu
