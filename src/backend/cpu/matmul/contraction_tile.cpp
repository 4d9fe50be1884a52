// SPDX-License-Identifier: MIT
// Computes one tile of a product. Prepares the operands and orders the micro-tiles such that a
// panel of B stays in the L1 cache and a block of A in L2. Runs the epilogue while the result is in
// cache.
#include <algorithm>
#include <cstring>

#include "backend/cpu/block_size.h"
#include "backend/cpu/matmul/contraction.h"
#include "base/check.h"

namespace tensorgrad::cpu {
namespace {

// Steps of k per micro-tile: a panel of B of this depth fits into the L1 cache.
constexpr std::int64_t kDepth = 384;
// B is read in place if it takes a small part of the L2 cache.
constexpr std::int64_t kDirectWords = 16 * 1024;
// Number of rows of A up to which columns of B are multiplied without packing, and steps of k from
// which a dot product is worth its sum of lanes.
constexpr std::int64_t kMaxDotRows = 64, kMinDotDepth = 64;
// Steps of k packed at a time.
constexpr std::int64_t kPackDepth = 64;

// Returns the depth of the chunks of k. All have the same size, to avoid a short last one.
std::int64_t chunk_depth(std::int64_t k) {
  const std::int64_t chunks = std::max<std::int64_t>(1, (k + kDepth / 2) / kDepth);
  return round_up(ceil_div(k, chunks), 4);
}

float* floats_at(std::byte* scratch, std::size_t offset) {
  return reinterpret_cast<float*>(scratch + offset);
}

}  // namespace

BiasGradStore::BiasGradStore(const Prepare& prepare, const ContractionLaunch& product) {
  const Launch& launch = prepare.launch;
  const Store& ones = product.bias_grad_store;
  CHECK(ones.map.views.size() == 1 &&
            ones.map.domain_size() == (product.bias_grad_row ? product.n : product.m),
        launch.name);
  const Binding& bound = launch.bindings[static_cast<std::size_t>(ones.binding)];
  const OffsetRange range = offset_range(ones.map.views.back());
  CHECK(range.low >= 0 && range.high < bound.bytes / 4, launch.name);
  walker_ = Walker(ones.map);
  data_ = target_ = prepare.data[static_cast<std::size_t>(ones.binding)];
  ring_ = ones.ring_word;
}

TileEngine::TileEngine(const Prepare& prepare, const ContractionLaunch& product)
    : kernels_(gemm_kernels()),
      shape_(product),
      a_(prepare, product.a, product.batch, product.m, product.k),
      b_(prepare, product.b, product.batch, product.k, product.n),
      epilogue_(prepare, epilogue_spec(prepare.launch, product.batch * product.m * product.n)) {
  epilogue_.lay_out(block_elements(epilogue_.element_registers()), 0);
  const VectorStore* store = epilogue_.plain_store();
  if (store != nullptr && store->ring_word < 0 && store->walker->view() != nullptr) {
    std::int64_t cs = 0;
    const bool split = split_strides(*store->walker->view(), product.batch, product.m, product.n,
                                     direct_.rs, cs, direct_.offsets);
    if (split && cs == 1) direct_.data = reinterpret_cast<float*>(store->data);
  }
  if (product.has_bias_grad()) bias_grad_ = BiasGradStore(prepare, product);
}

void TileEngine::lay_out(const ResultTile& largest) {
  const auto take = [&](std::size_t& offset, std::size_t bytes) {
    offset = worker_bytes_;
    worker_bytes_ += (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  };
  const auto floats = [](std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); };
  const std::int64_t rows = round_up(largest.rows, kernels_.mr);
  // Rows of a tile start at multiples of 16, regardless of the panel width.
  const std::int64_t columns = round_up(largest.columns, std::max(kernels_.nr, 16));
  take(a_packed_, packs_a(largest.columns) ? floats(rows * shape_.k + kMaxTileColumns) : 0);
  take(a_block_, a_.scratch_bytes(largest.rows, shape_.k));
  const bool packs = shape_.batch > 1 && !direct_b(shape_.m);
  take(b_packed_, packs ? floats(packed_words(largest.columns)) : 0);
  take(b_block_, b_.scratch_bytes(shape_.k, kernels_.nr));
  take(c_, direct_.data == nullptr ? floats(largest.batches * rows * columns) : 0);
  take(edge_, floats(kMaxTileRows * kMaxTileColumns));
  take(sums_, shape_.bias_grad_row ? floats(columns) : shape_.bias_grad_column ? floats(rows) : 0);
  take(frame_, epilogue_.scratch_bytes());
}

void TileEngine::start(const RuntimeScalars& runtime_scalars) {
  a_.start(runtime_scalars);
  b_.start(runtime_scalars);
  epilogue_.start(runtime_scalars);
  bias_grad_.start(runtime_scalars);
}

bool TileEngine::by_dots() const {
  return shape_.batch == 1 && shape_.m <= kMaxDotRows && shape_.k >= kMinDotDepth &&
         !shape_.has_bias_grad() && a_.plain() && a_.rows_are_contiguous() && b_.plain() &&
         b_.columns_are_contiguous();
}

bool TileEngine::direct_b(std::int64_t rows) const {
  if (by_dots()) return true;
  if (!b_.plain() || !(b_.rows_are_contiguous() || shape_.n == 1)) return false;
  return rows <= 2 * kernels_.mr ||
         (b_.row_stride() * shape_.k <= kDirectWords && rows <= 64 * kernels_.mr);
}

// Contiguous rows of A are read in place if there are enough base registers (mr <= 6). Otherwise A
// is packed if each block is read more than twice. With bias_grad_column, this must not depend on
// the tile width, because packed rows are summed in a different order.
bool TileEngine::packs_a(std::int64_t columns) const {
  if (a_.windowed()) return true;
  if (by_dots()) return false;
  if (a_.rows_are_contiguous() && kernels_.mr <= 6) return false;
  return (shape_.bias_grad_column ? shape_.n : columns) > 2 * kernels_.nr;
}

void TileEngine::pack_b(std::int64_t batch, std::int64_t begin, std::int64_t end,
                        std::byte* scratch, float* out) const {
  const std::int64_t nr = kernels_.nr;
  if (b_.windowed()) {
    for (std::int64_t j = begin; j < end; j += nr) {
      b_.pack_columns(batch, j, std::min(nr, end - j), nr, out + (j - begin) * shape_.k);
    }
    return;
  }
  // Operands in a buffer are packed a few rows at a time across all panels. Computed operands are
  // packed panel by panel.
  const std::int64_t step = b_.plain() ? kPackDepth : shape_.k;
  for (std::int64_t k = 0; k < shape_.k; k += step) {
    const std::int64_t depth = std::min(step, shape_.k - k);
    for (std::int64_t j = begin; j < end; j += nr) {
      const std::int64_t columns = std::min(nr, end - j);
      const Matrix b = b_.block(batch, k, depth, j, columns, scratch + b_block_);
      kernels_.pack_b(b.data, b.rs, b.cs, depth, columns, out + (j - begin) * shape_.k + k * nr);
    }
  }
}

void TileEngine::pack_a(std::int64_t batch, std::int64_t begin, std::int64_t end,
                        std::byte* scratch, float* out) const {
  if (a_.windowed()) {
    const std::int64_t mr = kernels_.mr;
    for (std::int64_t i = begin; i < end; i += mr) {
      a_.pack_rows(batch, i, std::min(mr, end - i), mr, out + (i - begin) * shape_.k);
    }
    return;
  }
  const Matrix a = a_.block(batch, begin, end - begin, 0, shape_.k, scratch + a_block_);
  // If columns are contiguous, neighboring panels read the same cache lines, so they are packed
  // soon after each other.
  for (std::int64_t k = 0; k < shape_.k; k += kPackDepth) {
    const std::int64_t depth = std::min(kPackDepth, shape_.k - k);
    for (std::int64_t i = 0; i < end - begin; i += kernels_.mr) {
      const Matrix part = a.at(i, k);
      kernels_.pack_a(part.data, part.rs, part.cs, depth,
                      std::min<std::int64_t>(kernels_.mr, end - begin - i),
                      out + i * shape_.k + k * kernels_.mr);
    }
  }
}

TileEngine::Side TileEngine::prepare_a(const ResultTile& tile, std::int64_t batch,
                                       const float* packed, std::byte* scratch) const {
  Side a;
  a.packed = packed;
  if (packed != nullptr) return a;
  if (packs_a(tile.columns)) {
    float* out = floats_at(scratch, a_packed_);
    pack_a(batch, tile.row, tile.row + tile.rows, scratch, out);
    a.packed = out;
  } else {
    a.matrix = a_.block(batch, tile.row, tile.rows, 0, shape_.k, scratch + a_block_);
  }
  return a;
}

TileEngine::Side TileEngine::prepare_b(const ResultTile& tile, std::int64_t batch,
                                       const float* packed, std::byte* scratch) const {
  Side b;
  b.packed = packed;
  if (packed != nullptr) return b;
  if (direct_b(shape_.m)) {
    b.matrix = b_.block(batch, 0, shape_.k, tile.column, tile.columns, nullptr);
    return b;
  }
  float* out = floats_at(scratch, b_packed_);
  pack_b(batch, tile.column, tile.column + tile.columns, scratch, out);
  b.packed = out;
  return b;
}

// Multiplies all rows with one panel of B, for steps [k, k + depth).
void TileEngine::multiply_panel(const Side& a, const Side& b, std::int64_t k, std::int64_t depth,
                                std::int64_t rows, std::int64_t columns, float* c, std::int64_t ldc,
                                float* edge) const {
  const int half = columns <= kernels_.nr / 2 ? 1 : 0;
  const std::int64_t width = half != 0 ? kernels_.nr / 2 : kernels_.nr;
  const float* right = b.packed != nullptr ? b.packed + k * kernels_.nr : b.matrix.at(k, 0).data;
  const std::int64_t b_k = b.packed != nullptr ? kernels_.nr : b.matrix.rs;
  for (std::int64_t i = 0; i < rows; i += kernels_.mr) {
    const std::int64_t height = std::min<std::int64_t>(kernels_.mr, rows - i);
    const float* left = nullptr;
    GemmKernels::Tile tile = nullptr;
    if (a.packed != nullptr) {
      left = a.packed + i * shape_.k + k * kernels_.mr;
      tile = kernels_.packed[height][half];
    } else {
      left = a.matrix.at(i, k).data;
      tile = kernels_.strided[height][half];
    }
    if (columns == width) {
      tile(depth, left, a.matrix.rs, a.matrix.cs, right, b_k, c + i * ldc, ldc, k > 0);
      continue;
    }
    // The panel is wider than the result, so its excess columns must not be written.
    tile(depth, left, a.matrix.rs, a.matrix.cs, right, b_k, edge, width, false);
    for (std::int64_t r = 0; r < height; ++r) {
      float* to = c + (i + r) * ldc;
      for (std::int64_t j = 0; j < columns; ++j) {
        to[j] = k > 0 ? to[j] + edge[r * width + j] : edge[r * width + j];
      }
    }
  }
}

void TileEngine::multiply(const Side& a, const Side& b, std::int64_t rows, std::int64_t columns,
                          float* c, std::int64_t ldc, float* edge) const {
  if (by_dots()) {
    return kernels_.dot_products(shape_.k, rows, columns, a.matrix.data, a.matrix.rs, b.matrix.data,
                                 b.matrix.cs, c, ldc);
  }
  const std::int64_t step = chunk_depth(shape_.k);
  for (std::int64_t k = 0; k < shape_.k; k += step) {
    const std::int64_t depth = std::min(step, shape_.k - k);
    Side panel = b;
    for (std::int64_t j = 0; j < columns; j += kernels_.nr) {
      multiply_panel(a, panel, k, depth, rows, std::min<std::int64_t>(kernels_.nr, columns - j),
                     c + j, ldc, edge);
      if (b.packed != nullptr) {
        panel.packed += kernels_.nr * shape_.k;
      } else {
        panel.matrix.data += kernels_.nr;
      }
    }
  }
}

// sums[j] = sum_k b[k, j], the product with a row of ones.
void TileEngine::sum_columns(const ResultTile& tile, const Side& b, float* sums) const {
  std::memset(sums, 0,
              static_cast<std::size_t>(round_up(tile.columns, kernels_.nr)) * sizeof(float));
  for (std::int64_t j = 0; j < tile.columns; j += kernels_.nr) {
    const std::int64_t columns = std::min<std::int64_t>(kernels_.nr, tile.columns - j);
    if (b.packed != nullptr) {
      simd().add_rows(sums + j, b.packed + j * shape_.k, shape_.k, kernels_.nr, columns);
    } else {
      simd().add_rows(sums + j, b.matrix.data + j, shape_.k, b.matrix.rs, columns);
    }
  }
  bias_grad_.store(sums, tile.column, tile.columns);
}

// sums[i] = sum_k a[i, k], the product with a column of ones.
void TileEngine::sum_rows(const ResultTile& tile, const Side& a, float* sums) const {
  std::memset(sums, 0, static_cast<std::size_t>(round_up(tile.rows, kernels_.mr)) * sizeof(float));
  if (a.packed != nullptr) {
    for (std::int64_t i = 0; i < tile.rows; i += kernels_.mr) {
      simd().add_rows(sums + i, a.packed + i * shape_.k, shape_.k, kernels_.mr,
                      std::min<std::int64_t>(kernels_.mr, tile.rows - i));
    }
  } else if (a.matrix.rs == 1) {
    simd().add_rows(sums, a.matrix.data, shape_.k, a.matrix.cs, tile.rows);
  } else {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float* row = a.matrix.data + r * a.matrix.rs;
      double sum = 0;
      for (std::int64_t k = 0; k < shape_.k; ++k) sum += row[k * a.matrix.cs];
      sums[r] = static_cast<float>(sum);
    }
  }
  bias_grad_.store(sums, tile.row, tile.rows);
}

void TileEngine::finish(std::int64_t first, std::int64_t count, const float* acc,
                        Frame& frame) const {
  for (std::int64_t done = 0; done < count; done += frame.count) {
    frame.first = first + done;
    frame.count = std::min(epilogue_.capacity(), count - done);
    frame.acc = reinterpret_cast<const Word*>(acc) + done;
    epilogue_.run(epilogue_.ops, frame);
  }
}

void TileEngine::finish_tile(const ResultTile& tile, const float* c, std::int64_t ldc,
                             std::byte* scratch) const {
  Frame frame = epilogue_.frame(scratch + frame_);
  const std::int64_t first = (tile.batch * shape_.m + tile.row) * shape_.n + tile.column;
  if (ldc == shape_.n) {  // whole rows, contiguous
    finish(first, tile.batches * tile.rows * ldc, c, frame);
    return;
  }
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    finish(first + i * shape_.n, tile.columns, c + i * ldc, frame);
  }
}

void TileEngine::run(const ResultTile& tile, const float* packed_a, const float* packed_b,
                     std::byte* scratch) const {
  const bool whole = tile.columns == shape_.n;
  // Rows of the tile are padded for alignment, unless the tile has whole rows of the result.
  std::int64_t ldc = whole ? shape_.n : round_up(tile.columns, 16);
  float* c = floats_at(scratch, c_);
  float* edge = floats_at(scratch, edge_);
  for (std::int64_t i = 0; i < tile.batches; ++i) {
    const std::int64_t batch = tile.batch + i;
    const Side a = prepare_a(tile, batch, packed_a, scratch);
    const Side b = prepare_b(tile, batch, packed_b, scratch);
    if (shape_.bias_grad_row && tile.row == 0) sum_columns(tile, b, floats_at(scratch, sums_));
    if (shape_.bias_grad_column && tile.column == 0) sum_rows(tile, a, floats_at(scratch, sums_));
    if (direct_.data != nullptr) {
      ldc = direct_.rs;
      c = direct_.data + direct_.offsets[static_cast<std::size_t>(batch)] + tile.row * ldc +
          tile.column;
    } else if (i > 0) {
      c += tile.rows * ldc;
    }
    multiply(a, b, tile.rows, tile.columns, c, ldc, edge);
  }
  if (direct_.data == nullptr) finish_tile(tile, floats_at(scratch, c_), ldc, scratch);
}

}  // namespace tensorgrad::cpu
