// SPDX-License-Identifier: MIT
// Matrix products in tiles of the result, and their execution for one tile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cpu/launch_runner.h"
#include "backend/cpu/matmul/gemm.h"
#include "backend/cpu/operand.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {

// A part of the result: batches [batch, batch + batches), rows [row, row + rows), and likewise
// columns.
struct ResultTile {
  std::int64_t batch = 0, batches = 1, row = 0, rows = 0, column = 0, columns = 0;
};

// The destination of the result if the epilogue is only a strided store.
struct DirectStore {
  float* data = nullptr;  // null: use the epilogue
  std::int64_t rs = 0;
  std::vector<std::int64_t> offsets;  // per batch
};

// The store of the sums that bias_grad_row or bias_grad_column requests.
class BiasGradStore {
 public:
  BiasGradStore() = default;
  BiasGradStore(const Prepare& prepare, const ContractionLaunch& product);

  void start(const RuntimeScalars& runtime_scalars) {
    if (ring_ >= 0) target_ = data_ + runtime_scalars.words[ring_];
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

// Computes tiles. run() is const, so all workers share one object.
class TileEngine {
 public:
  TileEngine(const Prepare& prepare, const ContractionLaunch& product);
  // Sets the maximum rows, columns and batches of a tile. Must be called before any run.
  void lay_out(const ResultTile& largest);

  [[nodiscard]] std::size_t worker_bytes() const { return worker_bytes_; }
  [[nodiscard]] const ContractionLaunch& shape() const { return shape_; }
  [[nodiscard]] const Operand& left() const { return a_; }
  [[nodiscard]] const Operand& right() const { return b_; }
  // True if the epilogue only stores the sum.
  [[nodiscard]] bool stores_in_place() const { return direct_.data != nullptr; }
  // Returns the nanoseconds that the epilogue takes per result.
  [[nodiscard]] double result_ns() const {
    return stores_in_place() ? 0 : epilogue_.element_cost();
  }
  // Returns the fixed nanoseconds of a call of the epilogue.
  [[nodiscard]] double epilogue_ns() const {
    return stores_in_place() ? 0 : 8.0 * static_cast<double>(epilogue_.ops.size());
  }

  // True if elements are dot products of contiguous rows of A and columns of B, both read in place.
  // Packing B would take longer than it saves, because there are few rows of A.
  [[nodiscard]] bool by_dots() const;
  // True if B is read in place: it is small, or not read often enough to be worth packing.
  [[nodiscard]] bool direct_b(std::int64_t rows) const;
  [[nodiscard]] std::int64_t panel_count(std::int64_t columns) const {
    return ceil_div(columns, kernels_.nr);
  }
  // Returns the words of packed columns.
  [[nodiscard]] std::int64_t packed_words(std::int64_t columns) const {
    return panel_count(columns) * kernels_.nr * shape_.k;
  }
  // True if tiles with this number of columns pack or compute A.
  [[nodiscard]] bool packs_a(std::int64_t columns) const;
  // Packs rows [begin, end) of a batch into panels, the first at `out`. `begin` must start a panel.
  void pack_a(std::int64_t batch, std::int64_t begin, std::int64_t end, std::byte* scratch,
              float* out) const;
  // Packs columns [begin, end) of a batch into panels, the first at `out`. `begin` must start a
  // panel.
  void pack_b(std::int64_t batch, std::int64_t begin, std::int64_t end, std::byte* scratch,
              float* out) const;

  void start(const RuntimeScalars& runtime_scalars);
  // Computes a tile. The packed panels begin at the tile's first row and column. If null, the
  // operand is packed here or read in place.
  void run(const ResultTile& tile, const float* packed_a, const float* packed_b,
           std::byte* scratch) const;

 private:
  struct Side {     // an operand of one batch, ready for the kernels
    Matrix matrix;  // used if `packed` is null
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
  const ContractionLaunch& shape_;
  Operand a_, b_;
  VectorProgram epilogue_;
  DirectStore direct_;
  BiasGradStore bias_grad_;
  // Offsets in a worker's scratch memory.
  std::size_t a_packed_ = 0, a_block_ = 0, b_packed_ = 0, b_block_ = 0, c_ = 0, edge_ = 0,
              sums_ = 0, frame_ = 0, worker_bytes_ = 0;
};

// Creates a runner for a vector-matrix or matrix-vector product if the matrix can be read in
// place. Returns null for other launches.
std::unique_ptr<LaunchRunner> make_row_product(const Prepare& prepare, const ContractionLaunch& l);

}  // namespace tensorgrad::cpu
