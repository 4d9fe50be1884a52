// SPDX-License-Identifier: MIT
// A matrix product in tiles of the result: what the step plans, and what a tile needs to be
// computed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/gemm.h"
#include "backend/cpu/operand.h"
#include "backend/cpu/step.h"
#include "backend/cpu/tape.h"

namespace tensorgrad::cpu {

// Part of the result: batches [batch, batch + batches), rows [row, row + rows), columns likewise.
struct ResultTile {
  std::int64_t batch = 0, batches = 1, row = 0, rows = 0, column = 0, columns = 0;
};

// Shapes are declared once: out[b, m, n] = body(sum_k a[b, m, k] * b[b, k, n]).
struct ProductShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
};

// Where the result goes when nothing but a strided store is to be done with it.
struct DirectStore {
  float* data = nullptr;  // null: go through the epilogue
  std::int64_t rs = 0;
  std::vector<std::int64_t> offsets;  // per batch
};

// Where sums go of what Launch::ones_row and ones_column add up.
class OnesStore {
 public:
  OnesStore() = default;
  explicit OnesStore(const Prepare& prepare);

  void start(const HyperRow& hyper) {
    if (ring_ >= 0) target_ = data_ + hyper.words[ring_];
  }
  void store(const float* sums, std::int64_t first, std::int64_t count) const {
    walker_.store(reinterpret_cast<const Word*>(sums), first, count, target_);
  }

 private:
  Walker walker_;
  Word* data_ = nullptr;
  Word* target_ = nullptr;
  int ring_ = -1;
};

// Computes tiles. Everything is fixed when it is made; one object serves all workers.
class TileEngine {
 public:
  TileEngine(const Prepare& prepare, const ProductShape& shape);
  // Tiles have up to as many rows and columns of as many batches as this one. Before any run.
  void lay_out(const ResultTile& largest);

  [[nodiscard]] std::size_t worker_bytes() const { return worker_bytes_; }
  [[nodiscard]] const ProductShape& shape() const { return shape_; }
  [[nodiscard]] const Operand& left() const { return a_; }
  [[nodiscard]] const Operand& right() const { return b_; }
  // All that is left to do with a sum is to store it.
  [[nodiscard]] bool stores_in_place() const { return direct_.data != nullptr; }
  // Nanoseconds that the epilogue takes for a result.
  [[nodiscard]] double result_ns() const {
    return stores_in_place() ? 0 : epilogue_.element_cost();
  }
  // Nanoseconds that the epilogue takes to be called, however little it has to do.
  [[nodiscard]] double epilogue_ns() const {
    return stores_in_place() ? 0 : 8.0 * static_cast<double>(epilogue_.ops.size());
  }

  // B is read where it lies: it is small, or read too few times to be worth packing.
  [[nodiscard]] bool direct_b(std::int64_t rows) const;
  [[nodiscard]] std::int64_t panel_count(std::int64_t columns) const {
    return ceil_div(columns, kernels_.nr);
  }
  // Words of packed columns.
  [[nodiscard]] std::int64_t packed_words(std::int64_t columns) const {
    return panel_count(columns) * kernels_.nr * shape_.k;
  }
  // Tiles of so many columns have A packed, or computed.
  [[nodiscard]] bool packs_a(std::int64_t columns) const;
  // Packs rows [begin, end) of a batch into panels, the first at `out`; `begin` starts a panel.
  void pack_a(std::int64_t batch, std::int64_t begin, std::int64_t end, std::byte* scratch,
              float* out) const;
  // Packs columns [begin, end) of a batch into panels, the first at `out`; `begin` starts a panel.
  void pack_b(std::int64_t batch, std::int64_t begin, std::int64_t end, std::byte* scratch,
              float* out) const;

  void start(const HyperRow& hyper);
  // Panels from the tile's first row and column on; null: packed here, or read where it lies.
  void run(const ResultTile& tile, const float* packed_a, const float* packed_b,
           std::byte* scratch) const;

 private:
  struct Side {     // an operand of one batch, ready for the kernels
    Matrix matrix;  // strided
    const float* packed = nullptr;
  };

  void multiply(const Side& a, const Side& b, std::int64_t rows, std::int64_t columns, float* c,
                std::int64_t ldc, float* edge) const;
  void multiply_panel(const Side& a, const Side& b, std::int64_t k, std::int64_t depth,
                      std::int64_t rows, std::int64_t columns, float* c, std::int64_t ldc,
                      float* edge) const;
  Side prepare_a(const ResultTile& tile, std::int64_t batch, const float* packed,
                 std::byte* scratch) const;
  Side prepare_b(const ResultTile& tile, std::int64_t batch, const float* packed,
                 std::byte* scratch) const;
  void sum_columns(const ResultTile& tile, const Side& b, float* sums) const;
  void sum_rows(const ResultTile& tile, const Side& a, float* sums) const;
  void finish(std::int64_t first, std::int64_t count, const float* acc, Frame& frame) const;
  void finish_tile(const ResultTile& tile, const float* c, std::int64_t ldc,
                   std::byte* scratch) const;

  const GemmKernels& kernels_;
  ProductShape shape_;
  Operand a_, b_;
  Tape epilogue_;
  DirectStore direct_;
  bool ones_row_ = false, ones_column_ = false;
  OnesStore ones_;
  // Offsets in a worker's scratch.
  std::size_t a_packed_ = 0, a_block_ = 0, b_packed_ = 0, b_block_ = 0, c_ = 0, edge_ = 0,
              sums_ = 0, frame_ = 0, worker_bytes_ = 0;
};

// Vector times matrix, or matrix times vector, of operands that can be read as they lie; null where
// the launch is not one.
std::unique_ptr<Step> make_row_product(const Prepare& prepare);

}  // namespace tensorgrad::cpu
