// SPDX-License-Identifier: MIT
// Contractions: out[z,m,n] = epilogue(sum_k a[z,m,k] * b[z,k,n]). Variants:
// - tiled: a workgroup of ny x nx threads computes BM x BN results, each thread TM x TN of them in
//   registers. Per step of BK, both operands are staged in workgroup memory; their programs are
//   evaluated during the load. Reads per result: K/BN of a and K/BM of b. If there are few tiles,
//   slices of threads share a tile, each over its own k, and are summed at the end in a fixed
//   order.
// - by lanes: several threads share one result, each over its own k, combined by a tree. For few
//   results or short K, if tiles would leave the GPU idle.
// - by blocks: a thread computes 4 x 4 results by itself. For devices with slow barriers.
// - by vectors: by lanes, for few rows if both operands are contiguous along k, four steps at a
//   time.
//
// Two more variants are in row_block.cpp and subgroup_matrix.cpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "codegen/wgsl/matmul/contraction.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

// Every side and every depth divides the number of threads or is a multiple of it. The speeds are
// GpuModel::matmul_tiles.
struct NamedTile {
  MatmulTile tile;
  TileShape shape;
};
constexpr std::array<NamedTile, 8> kMatmulTiles = {
    {{MatmulTile::k128x128, {128, 128, 8, 16, 8, 1}},
     {MatmulTile::k128x128MoreThreads, {128, 128, 8, 8, 8, 1}},
     {MatmulTile::k128x64, {128, 64, 8, 8, 8, 1}},
     {MatmulTile::k64x64, {64, 64, 16, 4, 4, 1}},
     {MatmulTile::k32x32, {32, 32, 32, 2, 2, 1}},
     {MatmulTile::k32x32InSlices, {32, 32, 64, 4, 2, 2}},
     {MatmulTile::k16x16, {16, 16, 64, 2, 2, 4}},
     {MatmulTile::k8x8, {8, 8, 128, 2, 2, 16}}}};
static_assert(kMatmulTiles.size() == GpuModel{}.matmul_tiles.size());

// Number of floats in which slices store their sums.
std::int64_t sums_of(const TileShape& tile) {
  return tile.slices == 1 ? 0 : std::int64_t{tile.slices} * tile.side_m * (tile.side_n + 1);
}

// Returns the offset of a thread's i-th result along a side from its first. Vectors of the threads
// are interleaved, so that neighboring threads read adjacent entries.
int place_of_result(int i, int width, int threads) {
  return (i / width) * threads * width + i % width;
}

constexpr std::int64_t kMaxVectorRows = 4, kMinVectorDepth = 64;
// Maximum number of vectors of b that a thread loads before the rows of A are computed.
constexpr std::int64_t kMaxEarlyVectors = 8;

// Below these sizes, a launch of a fused sequence is computed by lanes.
constexpr std::int64_t kMinBlockColumns = 16, kMinBlockDepth = 16, kMaxBlockResults = 512;

class Contraction : private ContractionParts {
 public:
  using ContractionParts::ContractionParts;

  Shader write();

 private:
  [[nodiscard]] Tile pick_lanes() const;
  [[nodiscard]] int wanted_threads(int lanes) const;
  [[nodiscard]] Tile pick_fused_lanes() const;
  [[nodiscard]] double time_of(const TileShape& shape, const TileSpeed& speed,
                               std::int64_t groups) const;
  [[nodiscard]] const TileShape* pick_tile() const;
  [[nodiscard]] std::int64_t bytes_of(const TileShape& tile) const;
  void write_row_operand(Scope& scope, const Tile& tile, int width);
  Shader write_by_lanes(const Tile& tile);
  Shader write_by_blocks();
  [[nodiscard]] bool takes_vectors() const;
  Shader write_by_vectors();
  Shader write_tiled(const TileShape& tile);
  void write_steps(Scope& scope, const TileShape& tile);
  void write_products(Scope& scope, const TileShape& tile, const std::string& half) const;
  void write_results(Scope& scope, const TileShape& tile);
  void write_bias_grad_results(Scope& scope, const TileShape& tile);
  void write_sliced_results(Scope& scope, const TileShape& tile);
  void write_places(Scope& scope, const TileShape& tile, std::int64_t tiles_m,
                    std::int64_t tiles_n) const;
};

// Chooses the threads per result: enough to fill the GPU, but each with a few products.
Tile Contraction::pick_lanes() const {
  const std::int64_t results = window_.outer_count * rows() * columns();
  const int most = std::min(256, floor_pow2(options_.max_threads));
  Tile tile;
  tile.lanes_first = b_.along_k();
  tile.lanes = std::min(ceil_pow2(ceil_div(depth(), 4)),
                        floor_pow2(std::max<std::int64_t>(1, options_.gpu.full_threads / results)));
  if (options_.lanes > 0) tile.lanes = options_.lanes;
  // Threads with a result each may return early, but those that compute rows wait for each other.
  tile.lanes = std::clamp(tile.lanes, product_.a_by_rows ? 2 : 1, most);
  tile.rows = std::max(1, group_threads(wanted_threads(tile.lanes), options_) / tile.lanes);
  return tile;
}

// Returns the workgroup size for results with that many lanes. A workgroup that computes rows of A
// is larger, so that more columns share them.
int Contraction::wanted_threads(int lanes) const {
  return std::max(lanes, product_.a_by_rows ? 256 : 64);
}

// The same for a launch of a fused sequence: the fewest lanes for which a workgroup has results of
// one block only.
Tile Contraction::pick_fused_lanes() const {
  const std::int64_t results = product_.m / options_.blocks * product_.n;
  const int threads = group_threads(64, options_);
  Tile tile;
  tile.lanes_first = b_.along_k();
  tile.lanes = 1;
  while (tile.lanes < threads && results % (threads / tile.lanes) != 0) tile.lanes *= 2;
  tile.rows = threads / tile.lanes;
  return tile;
}

// Estimates the time in units of one product. SMs run whole tiles. If there are more tiles than run
// at a time, they run in rounds, and the last round takes as long as any other.
double Contraction::time_of(const TileShape& shape, const TileSpeed& speed,
                            std::int64_t groups) const {
  std::int64_t each = ceil_div(groups, options_.gpu.cores);
  if (each > speed.at_once)
    each = ceil_div(groups, options_.gpu.cores * speed.at_once) * speed.at_once;
  return static_cast<double>(each * shape.side_m * shape.side_n) *
         (static_cast<double>(depth()) + speed.start) / speed.rate;
}

// Returns the tile with the least estimated time, or null if lanes are faster.
const TileShape* Contraction::pick_tile() const {
  if (options_.matmul_tile == MatmulTile::kNone) return nullptr;
  const TileShape* best = nullptr;
  double best_time = 0;
  for (std::size_t i = 0; i < kMatmulTiles.size(); ++i) {
    const auto& [tile, shape] = kMatmulTiles[i];
    if (shape.threads() > options_.max_threads) continue;
    if (options_.joined && shape.threads() != group_threads(shape.threads(), options_)) continue;
    if (bytes_of(shape) > options_.max_workgroup_bytes) continue;
    if (options_.matmul_tile == tile) return &shape;
    if (cuts_parts(shape.depth)) continue;
    if (shape.slices > 4 && depth() < 2 * shape.depth) continue;
    // Without concurrent launches, smaller tiles are as fast and more numerous.
    const bool large_slices = shape.slices > 1 && shape.side_m == 32;
    if (large_slices && (options_.concurrent_work_ratio <= 1 || depth() < 2 * shape.depth))
      continue;
    const std::int64_t groups = window_.outer_count * ceil_div(window_.count, shape.side_m) *
                                ceil_div(product_.n, shape.side_n);
    const double time =
        time_of(shape, options_.gpu.matmul_tiles[i],
                std::llround(static_cast<double>(groups) * options_.concurrent_work_ratio));
    if (best == nullptr || time < best_time) {
      best = &shape;
      best_time = time;
    }
  }
  const std::int64_t results = window_.outer_count * rows() * columns();
  const bool small = results * depth() <= options_.gpu.max_lane_products;
  // few tiles, each with a long loop
  const bool long_k = (results <= 512 && depth() >= 512) || (results <= 8192 && depth() >= 4096);
  if (options_.matmul_tile == MatmulTile::kAuto && (small || long_k || depth() <= 4))
    return nullptr;
  return best;
}

// Returns the bytes of workgroup memory with one buffer per operand tile.
std::int64_t Contraction::bytes_of(const TileShape& tile) const {
  const std::int64_t tiles = std::int64_t{a_.vectors(tile)} * tile.width_m() +
                             std::int64_t{b_.vectors(tile)} * tile.width_n();
  return 4 * (tiles + sums_of(tile));
}

Shader Contraction::write() {
  if (product_.has_bias_grad()) write_bias_grad();
  if (product_.by_rows) return write_row_block(launch_, options_);
  if (options_.blocks > 0) {
    const std::int64_t results = product_.m / options_.blocks * product_.n;
    const bool narrow = product_.n < kMinBlockColumns ||
                        (product_.k < kMinBlockDepth && results <= kMaxBlockResults);
    return narrow ? write_by_lanes(pick_fused_lanes()) : write_row_block(launch_, options_);
  }
  if (takes_vectors()) return write_by_vectors();
  if (product_.a_by_rows) return write_by_lanes(pick_lanes());
  if (options_.barrier_free && rows() * columns() > 1) return write_by_blocks();
  const TileShape* tile = pick_tile();
  return tile == nullptr ? write_by_lanes(pick_lanes()) : write_tiled(*tile);
}

// Computes the rows of A into workgroup memory, if the launch does, and writes the function a_at,
// which returns `width` elements of a row.
void Contraction::write_row_operand(Scope& scope, const Tile& tile, int width) {
  if (!product_.a_by_rows) return;
  const std::int64_t k = product_.k;
  const std::string first = window_.first > 0 ? " - " + u32_literal(window_.first) : "";
  module_.shared("rows_of_a", "f32", window_.count * k, 4);
  std::string elements;
  for (int c = 0; c < width; ++c)
    elements += (c > 0 ? ", " : "") + ("rows_of_a[at + " + u32_literal(c) + "]");
  module_.function("a_at", "fn a_at(z: u32, m: u32, k: u32) -> " + vector_type(width) +
                               " {\n  let at = (m" + first + ") * " + u32_literal(k) +
                               " + k;\n  return " + vector_type(width) + "(" + elements +
                               ");\n}\n");
  Launch launch;
  launch.name = launch_.name;
  launch.kind = RowLaunch{product_.m, k};
  launch.bindings = launch_.bindings;
  launch.body = product_.a;
  launch.stores.emplace_back().value = static_cast<int>(product_.a.instrs.size()) - 1;
  Tile by_rows{ceil_pow2(window_.count), 1, true};
  by_rows.lanes = tile.threads() / by_rows.rows;
  Scope rows(&scope);
  const RowDomain domain{.rows = product_.m,
                         .cols = k,
                         .live = place_rows(rows, by_rows.lanes, u32_literal(window_.first),
                                            by_rows.rows == window_.count),
                         .kept = product_.a.instrs.size() <= kMaxKeptInstrs,
                         .array = "rows_of_a",
                         .array_row = "(row" + first + ")"};
  write_row_passes(rows, module_, launch, domain, by_rows, options_);
  scope.block("", rows);
  scope.line("workgroupBarrier();");
}

Shader Contraction::write_by_lanes(const Tile& tile) {
  const std::string m = u32_literal(product_.m);
  if (!product_.a_by_rows) a_.write_function(product_.bias_grad_row ? "m == " + m : "", "1.0f");
  b_.write_function(product_.bias_grad_column ? "n == " + u32_literal(product_.n) : "", "1.0f");
  write_finish(false, product_.has_bias_grad());
  const std::int64_t results = window_.outer_count * rows() * columns();
  const Domain domain = {{"result", results}};
  Scope scope;
  const std::string live = open_rows(scope, tile, results, "result");
  scope.line("let n = " + coordinate(scope, domain, 1, columns()) + ";");
  std::string row = coordinate(scope, domain, columns(), rows());
  if (window_.first > 0) row += " + " + u32_literal(window_.first);
  // The row of ones follows all others.
  if (product_.bias_grad_row && window_.end() < product_.m) {
    scope.line("let at = " + row + ";");
    row = "select(at, " + m + ", at == " + u32_literal(window_.end()) + ")";
  }
  scope.line("let m = " + row + ";");
  scope.line("let z = " +
             batch_of(coordinate(scope, domain, columns() * rows(), window_.outer_count)) + ";");
  write_row_operand(scope, tile, 1);
  const Partial sum{"acc", DType::kF32, ReduceOp::kSum};
  declare_partial(scope, module_, sum);
  write_part(scope);
  const std::string batch = product_.parts > 1 ? "0u" : "z";
  const std::string first = product_.parts > 1 ? first_k() + " + " : "";
  Scope loop(&scope);
  loop.line("acc += a_at(" + batch + ", m, k) * b_at(" + batch + ", k, n);");
  scope.block("for (var k = " + first + (tile.lanes == 1 ? "0u" : "lane") + "; k < " + end_k() +
                  "; k += " + u32_literal(tile.lanes) + ")",
              loop);
  combine_lanes(scope, module_, tile, {sum}, options_);
  if (tile.lanes == 1) {
    scope.line("finish(z, m, n, acc);");
  } else {
    scope.line("if (lane == 0u" + (live.empty() ? "" : " && " + live) +
               ") { finish(z, m, n, acc); }");
  }
  return make_shader(module_, scope, tile.threads(), ceil_div(results, tile.rows));
}

// Up to 4 x 4 results per thread: operands are read a quarter as often as with one. Threads out of
// range recompute the last row and column and drop the results.
Shader Contraction::write_by_blocks() {
  const std::string m = u32_literal(product_.m);
  a_.write_function(product_.bias_grad_row ? "m == " + m : "", "1.0f");
  b_.write_function(product_.bias_grad_column ? "n == " + u32_literal(product_.n) : "", "1.0f");
  write_finish(false, product_.has_bias_grad());
  const auto per_m = static_cast<int>(std::min<std::int64_t>(4, rows()));
  const auto per_n = static_cast<int>(std::min<std::int64_t>(4, columns()));
  const std::int64_t down = ceil_div(rows(), per_m), across = ceil_div(columns(), per_n);
  const std::int64_t blocks = window_.outer_count * down * across;
  Tile tile;
  tile.rows = group_threads(64, options_);
  const Domain domain = {{"block", blocks}};
  Scope scope;
  open_rows(scope, tile, blocks, "block");
  scope.line("let column = " + coordinate(scope, domain, 1, across) + " * " + u32_literal(per_n) +
             ";");
  scope.line("let row = " + coordinate(scope, domain, across, down) + " * " + u32_literal(per_m) +
             ";");
  scope.line("let z = " + batch_of(coordinate(scope, domain, across * down, window_.outer_count)) +
             ";");
  const auto name = [](const char* what, int i) { return what + std::to_string(i); };
  // The row of ones follows all others.
  for (int i = 0; i < per_m; ++i) {
    scope.line("let " + name("at", i) + " = min(row + " + u32_literal(i) + ", " +
               u32_literal(rows() - 1) + ")" +
               (window_.first > 0 ? " + " + u32_literal(window_.first) : "") + ";");
    const bool apart = product_.bias_grad_row && window_.end() < product_.m;
    scope.line("let " + name("m", i) + " = " +
               (apart ? "select(" + name("at", i) + ", " + m + ", " + name("at", i) +
                            " == " + u32_literal(window_.end()) + ")"
                      : name("at", i)) +
               ";");
  }
  for (int j = 0; j < per_n; ++j) {
    scope.line("let " + name("n", j) + " = min(column + " + u32_literal(j) + ", " +
               u32_literal(columns() - 1) + ");");
  }
  write_part(scope);
  const std::string batch = product_.parts > 1 ? "0u" : "z";
  const auto sum = [](int i, int j) { return "acc" + std::to_string(i) + "_" + std::to_string(j); };
  std::string sums;
  for (int i = 0; i < per_m; ++i) {
    for (int j = 0; j < per_n; ++j) {
      scope.line("var " + sum(i, j) + " = 0.0f;");
      sums += (sums.empty() ? "" : ", ") + sum(i, j);
    }
  }
  Scope loop(&scope);
  for (int i = 0; i < per_m; ++i) {
    loop.line("let " + name("a", i) + " = a_at(" + batch + ", " + name("m", i) + ", k);");
  }
  for (int j = 0; j < per_n; ++j) {
    loop.line("let " + name("b", j) + " = b_at(" + batch + ", k, " + name("n", j) + ");");
  }
  for (int i = 0; i < per_m; ++i) {
    for (int j = 0; j < per_n; ++j)
      loop.line(sum(i, j) + " += " + name("a", i) + " * " + name("b", j) + ";");
  }
  scope.block("for (var k = " + first_k() + "; k < " + end_k() + "; k++)", loop);
  // A loop, so that the epilogue is compiled once.
  const auto list = [](const char* what, int count) {
    std::string text = "array<u32, " + std::to_string(count) + ">(";
    for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + (what + std::to_string(i));
    return text + ")";
  };
  scope.line("var sums = array<f32, " + std::to_string(per_m * per_n) + ">(" + sums + ");");
  scope.line("var rows = " + list("m", per_m) + ";");
  scope.line("var columns = " + list("n", per_n) + ";");
  Scope each(&scope);
  each.line("let i = r / " + u32_literal(per_n) + ";");
  each.line("let j = r % " + u32_literal(per_n) + ";");
  each.line("if (row + i < " + u32_literal(rows()) + " && column + j < " + u32_literal(columns()) +
            ") { finish(z, rows[i], columns[j], sums[r]); }");
  scope.block("for (var r = 0u; r < " + u32_literal(per_m * per_n) + "; r++)", each);
  return make_shader(module_, scope, tile.rows, ceil_div(blocks, tile.rows));
}

// Returns true for few rows if both operands are contiguous along k. Nothing is read twice, so
// staging in workgroup memory has no benefit, and the reads of b determine the time.
bool Contraction::takes_vectors() const {
  if (options_.matmul_tile != MatmulTile::kAuto || product_.has_bias_grad() || product_.parts > 1 ||
      product_.m > kMaxVectorRows || window_.count != product_.m || product_.k < kMinVectorDepth ||
      !a_.along_k() || !b_.along_k()) {
    return false;
  }
  Vectorized a = a_.vectorized(), b = b_.vectorized();
  Vectorized finish = {&launch_.body, out_domain_, 2, false, false, launch_.stores};
  std::vector<Vectorized*> parts = {&b, &finish};
  if (!product_.a_by_rows) parts.push_back(&a);
  choose_vectorized(launch_, parts, options_);
  return b.chosen && (a.chosen || product_.a_by_rows);
}

// Lanes read interleaved vectors of four of a column of b, and multiply them with each row.
Shader Contraction::write_by_vectors() {
  write_functions(1, 1, 4, false);
  const std::int64_t columns = window_.outer_count * product_.n, k = product_.k;
  Tile tile;
  tile.lanes = 32;
  while (columns * tile.lanes < 2 * options_.gpu.full_threads && 16 * tile.lanes <= k)
    tile.lanes *= 2;
  tile.lanes = std::min(tile.lanes, std::min(256, floor_pow2(options_.max_threads)));
  tile.rows = std::max(1, group_threads(wanted_threads(tile.lanes), options_) / tile.lanes);
  const Domain domain = {{"column", columns}};
  Scope scope;
  const std::string live = open_rows(scope, tile, columns, "column");
  scope.line("let n = " + coordinate(scope, domain, 1, product_.n) + ";");
  scope.line("let z = " + batch_of(coordinate(scope, domain, product_.n, window_.outer_count)) +
             ";");
  std::vector<Partial> sums;
  for (std::int64_t m = 0; m < product_.m; ++m) {
    sums.push_back({"acc" + std::to_string(m), DType::kF32, ReduceOp::kSum});
    declare_partial(scope, module_, sums.back());
  }
  const std::int64_t step = std::int64_t{4} * tile.lanes, steps = ceil_div(k, step);
  // While the rows of A are computed, vectors of b are on their way.
  const bool early = product_.a_by_rows && steps <= kMaxEarlyVectors;
  if (early) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::string at = "lane * 4u + " + u32_literal(i * step), w = "w" + std::to_string(i);
      const bool ragged = (i + 1) * step > k;
      scope.line("var " + w + " = vec4<f32>();");
      scope.line((ragged ? "if (" + at + " < " + u32_literal(k) + ") { " : "") + w + " = b_at(z, " +
                 at + ", n);" + (ragged ? " }" : ""));
    }
  }
  write_row_operand(scope, tile, 4);
  const auto multiply = [&](Scope& at, const std::string& w) {
    at.line("let w = " + w + ";");
    for (std::size_t m = 0; m < sums.size(); ++m) {
      at.line(sums[m].name + " += dot(a_at(z, " + u32_literal(static_cast<std::int64_t>(m)) +
              ", k), w);");
    }
  };
  if (steps <= kMaxWrittenOut) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::string at = "lane * 4u + " + u32_literal(i * step);
      Scope one(&scope);
      one.line("let k = " + at + ";");
      multiply(one, early ? "w" + std::to_string(i) : "b_at(z, k, n)");
      scope.block((i + 1) * step > k ? "if (" + at + " < " + u32_literal(k) + ")" : "", one);
    }
  } else {
    Scope loop(&scope);
    multiply(loop, "b_at(z, k, n)");
    scope.block(
        "for (var k = lane * 4u; k < " + u32_literal(k) + "; k += " + u32_literal(step) + ")",
        loop);
  }
  combine_lanes(scope, module_, tile, sums, options_);
  Scope finish(&scope);
  for (std::size_t m = 0; m < sums.size(); ++m) {
    finish.line("finish(z, " + u32_literal(static_cast<std::int64_t>(m)) + ", n, " + sums[m].name +
                ");");
  }
  scope.block("if (lane == 0u" + (live.empty() ? "" : " && " + live) + ")", finish);
  return make_shader(module_, scope, tile.threads(), ceil_div(columns, tile.rows));
}

// `half` is the prefix of the offset of the tile to read, if tiles are double-buffered.
void Contraction::write_products(Scope& scope, const TileShape& tile,
                                 const std::string& half) const {
  const int width_m = tile.width_m(), width_n = tile.width_n();
  const int steps = tile.depth / tile.slices, written = std::min(steps, kMaxWrittenOut);
  Scope loop(&scope);
  Scope& all = written < steps ? loop : scope;
  for (int k = 0; k < written; ++k) {
    Scope step(&all);
    const auto read = [&](const std::string& name, const TileOperand& operand, int count,
                          int threads, const std::string& thread) {
      const int pitch = operand.pitch(tile);
      std::string at = (half.empty() ? "" : half + name + " + ") + thread;
      if (tile.slices > 1) at += " + slice * " + u32_literal(pitch);
      if (written < steps) at += " + k * " + u32_literal(pitch * tile.slices);
      for (int i = 0; i < count; ++i) {
        step.line("let " + name + std::to_string(i) + " = tile_" + name + "[" + at + " + " +
                  u32_literal(k * tile.slices * pitch + i * threads) + "];");
      }
    };
    read("a", a_, tile.per_m / width_m, tile.threads_m(), "ty");
    read("b", b_, tile.per_n / width_n, tile.threads_n(), "tx");
    for (int row = 0; row < tile.per_m; ++row) {
      for (int col = 0; col < tile.per_n / width_n; ++col) {
        step.line("acc" + std::to_string(row) + "_" + std::to_string(col) + " += a" +
                  std::to_string(row / width_m) + component(row, width_m) + " * b" +
                  std::to_string(col) + ";");
      }
    }
    for (int col = 0; product_.bias_grad_row && col < tile.per_n / width_n; ++col) {
      step.line("ones" + std::to_string(col) + " += b" + std::to_string(col) + ";");
    }
    for (int row = 0; product_.bias_grad_column && row < tile.per_m / width_m; ++row) {
      step.line("ones" + std::to_string(row) + " += a" + std::to_string(row) + ";");
    }
    all.block("", step);
  }
  if (written < steps) {
    scope.block(
        "for (var k = 0u; k < " + u32_literal(steps) + "; k += " + u32_literal(written) + ")",
        loop);
  }
}

// Returns true if an epilogue is too long to be compiled once per result of a thread. All helpers
// except relu's are long.
bool is_long(const ScalarProgram& program) {
  return std::any_of(program.instrs.begin(), program.instrs.end(), [](const Instr& instr) {
    if (instr.kind != InstrKind::kOp) return false;
    const std::string_view text = instr.code->wgsl[static_cast<std::size_t>(DType::kF32)];
    return text.find("tg_") != std::string_view::npos && !text.starts_with("tg_relu(");
  });
}

// Calls finish() for a thread's results: unrolled if the epilogue is short, else in a loop over an
// array, which is in memory.
void Contraction::write_results(Scope& scope, const TileShape& tile) {
  const int width = tile.width_n(), blocks = tile.per_n / width;
  const int step = finish_.chosen ? width : 1;  // results per call
  scope.line("let m = m0 + ty * " + u32_literal(tile.width_m()) + ";");
  scope.line("let n = n0 + tx * " + u32_literal(width) + ";");
  const auto result = [&](int i, int block) {
    return "acc" + std::to_string(i) + "_" + std::to_string(block);
  };
  if (!is_long(launch_.body)) {
    for (int i = 0; i < tile.per_m; ++i) {
      for (int j = 0; j < tile.per_n; j += step) {
        scope.line("finish(z, m + " +
                   u32_literal(place_of_result(i, tile.width_m(), tile.threads_m())) + ", n + " +
                   u32_literal(place_of_result(j, width, tile.threads_n())) + ", " +
                   result(i, j / width) + (step > 1 ? "" : component(j, width)) + ");");
      }
    }
    return;
  }
  const auto place = [](const std::string& i, int each, int threads) {
    if (each == 1) return i + " * " + u32_literal(threads);
    const std::string w = u32_literal(each);
    return i + " / " + w + " * " + u32_literal(threads * each) + " + " + i + " % " + w;
  };
  std::string list;
  for (int i = 0; i < tile.per_m * blocks; ++i)
    list += (i > 0 ? ", " : "") + result(i / blocks, i % blocks);
  scope.line("var results = array<" + vector_type(width) + ", " +
             std::to_string(tile.per_m * blocks) + ">(" + list + ");");
  Scope rows(&scope), cols(&rows);
  std::string value = "results[i * " + u32_literal(blocks) + " + j";
  if (width > 1) value += " / " + u32_literal(width);
  value += ']';
  if (width > 1 && step == 1) value += "[j % " + u32_literal(width) + "]";
  cols.line("finish(z, m + " + place("i", tile.width_m(), tile.threads_m()) + ", n + " +
            place("j", width, tile.threads_n()) + ", " + value + ");");
  rows.block(
      "for (var j = 0u; j < " + u32_literal(tile.per_n) + "; j += " + u32_literal(step) + ")",
      cols);
  scope.block("for (var i = 0u; i < " + u32_literal(tile.per_m) + "; i++)", rows);
}

// Stores a thread's sums for bias_grad_store.
void Contraction::write_bias_grad_results(Scope& scope, const TileShape& tile) {
  if (!product_.has_bias_grad()) return;
  // The first row of tiles sees all of b, and its first row of threads all columns. Likewise for a.
  const bool of_b = product_.bias_grad_row;
  const int width = of_b ? tile.width_n() : tile.width_m();
  const int threads = of_b ? tile.threads_n() : tile.threads_m();
  Scope ones(&scope);
  for (int i = 0; i < (of_b ? tile.per_n : tile.per_m); ++i) {
    const std::string at =
        (of_b ? "n + " : "m + ") + u32_literal(place_of_result(i, width, threads));
    ones.line("if (" + at + " < " + u32_literal(of_b ? product_.n : window_.end()) +
              ") { finish_bias_grad(" + at + ", ones" + std::to_string(i / width) +
              component(i, width) + "); }");
  }
  scope.block(of_b ? "if (m0 == " + u32_literal(window_.first) + " && ty == 0u)"
                   : "if (n0 == 0u && tx == 0u)",
              ones);
}

// Every slice stores its sums to workgroup memory, then each thread adds up some of the results.
void Contraction::write_sliced_results(Scope& scope, const TileShape& tile) {
  const auto keep = [](Scope& to, const std::string& array, const std::string& at,
                       const std::string& value) {
    to.line(array + "[" + at + "] = " + value + ";");
  };
  const auto along = [](const std::string& thread, int i, int width, int threads) {
    return thread + " * " + u32_literal(width) + " + " +
           u32_literal(place_of_result(i, width, threads));
  };
  const int results = tile.side_m * tile.side_n;
  module_.shared("slice_sums", "f32", std::int64_t{tile.slices} * results, 4);
  for (int i = 0; i < tile.per_m; ++i) {
    for (int j = 0; j < tile.per_n; ++j) {
      keep(scope, "slice_sums",
           "slice * " + u32_literal(results) + " + (" +
               along("ty", i, tile.width_m(), tile.threads_m()) + ") * " +
               u32_literal(tile.side_n) + " + " + along("tx", j, tile.width_n(), tile.threads_n()),
           "acc" + std::to_string(i) + "_" + std::to_string(j / tile.width_n()) +
               component(j, tile.width_n()));
    }
  }
  const bool of_b = product_.bias_grad_row;
  if (product_.has_bias_grad()) {
    const int width = of_b ? tile.width_n() : tile.width_m();
    const int threads = of_b ? tile.threads_n() : tile.threads_m();
    const std::string thread = of_b ? "tx" : "ty";
    module_.shared("slice_bias_grad", "f32",
                   std::int64_t{tile.slices} * (of_b ? tile.side_n : tile.side_m), 4);
    Scope first(&scope);
    for (int i = 0; i < (of_b ? tile.per_n : tile.per_m); ++i) {
      keep(first, "slice_bias_grad",
           "slice * " + u32_literal(of_b ? tile.side_n : tile.side_m) + " + " +
               along(thread, i, width, threads),
           "ones" + std::to_string(i / width) + component(i, width));
    }
    scope.block(of_b ? "if (ty == 0u)" : "if (tx == 0u)", first);
  }
  scope.line("workgroupBarrier();");
  const auto sum = [&](Scope& to, const std::string& array, const std::string& at, int stride) {
    std::string text = array + "[" + at + "]";
    for (int slice = 1; slice < tile.slices; ++slice) {
      text += " + " + array + "[" + at + " + " + u32_literal(slice * stride) + "]";
    }
    to.line("let sum = " + text + ";");
  };
  const std::string side = u32_literal(tile.side_n);
  Scope loop(&scope);
  sum(loop, "slice_sums", "r", results);
  loop.line("finish(z, m0 + r / " + side + ", n0 + r % " + side + ", sum);");
  scope.block("for (var r = local; r < " + u32_literal(results) +
                  "; r += " + u32_literal(tile.threads()) + ")",
              loop);
  if (!product_.has_bias_grad()) return;
  Scope ones(&scope);
  const int along_side = of_b ? tile.side_n : tile.side_m;
  sum(ones, "slice_bias_grad", "local", along_side);
  ones.line(std::string("finish_bias_grad(") + (of_b ? "n0" : "m0") + " + local, sum);");
  const std::string first = of_b ? "m0 == " + u32_literal(window_.first) : "n0 == 0u";
  scope.block("if (" + first + " && local < " + u32_literal(along_side) + " && " +
                  (of_b ? "n0" : "m0") + " + local < " +
                  u32_literal(of_b ? product_.n : window_.end()) + ")",
              ones);
}

// Declares the position of workgroup and thread, and the registers that accumulate over k.
void Contraction::write_places(Scope& scope, const TileShape& tile, std::int64_t tiles_m,
                               std::int64_t tiles_n) const {
  const std::string threads_n = u32_literal(tile.threads_n());
  write_tile_place(scope, tile.side_m, tile.side_n, tiles_m, tiles_n);
  if (tile.slices > 1) {
    const std::string slice = u32_literal(tile.slice_threads());
    scope.line("let slice = local / " + slice + ";");
    scope.line("let ty = local % " + slice + " / " + threads_n + ";");
  } else {
    scope.line("let ty = local / " + threads_n + ";");
  }
  scope.line("let tx = local % " + threads_n + ";");
  a_.write_places(scope, tile);
  b_.write_places(scope, tile);
  const auto zero = [&](const std::string& name, int width) {
    scope.line("var " + name + " = " + vector_type(width) + "(0.0f);");
  };
  for (int row = 0; row < tile.per_m; ++row) {
    for (int col = 0; col < tile.per_n / tile.width_n(); ++col) {
      zero("acc" + std::to_string(row) + "_" + std::to_string(col), tile.width_n());
    }
  }
  if (!product_.has_bias_grad()) return;
  const int width = product_.bias_grad_row ? tile.width_n() : tile.width_m();
  const int blocks = (product_.bias_grad_row ? tile.per_n : tile.per_m) / width;
  for (int i = 0; i < blocks; ++i) zero("ones" + std::to_string(i), width);
}

// Loops over k. The next tile is prefetched while this one is multiplied. If both fit, tiles are
// double-buffered, so that storing the next one does not wait for threads that still multiply.
void Contraction::write_steps(Scope& scope, const TileShape& tile) {
  const int sizes[] = {a_.vectors(tile), b_.vectors(tile)};
  const bool twice = depth() > tile.depth &&
                     2 * bytes_of(tile) - 4 * sums_of(tile) <= options_.max_workgroup_bytes;
  const int copies = twice ? 2 : 1;
  module_.shared("tile_a", vector_type(tile.width_m()), std::int64_t{copies} * sizes[0],
                 4 * tile.width_m());
  module_.shared("tile_b", vector_type(tile.width_n()), std::int64_t{copies} * sizes[1],
                 4 * tile.width_n());
  const std::string step = u32_literal(tile.depth), end = end_k();
  const auto fetch = [&](Scope& to, const std::string& k0) {
    a_.write_fetch(to, tile, k0);
    b_.write_fetch(to, tile, k0);
  };
  const auto keep = [&](Scope& to) {
    a_.write_keep(to, tile, twice ? "half_a" : "");
    b_.write_keep(to, tile, twice ? "half_b" : "");
  };
  fetch(scope, first_k());
  Scope loop(&scope);
  if (!twice) {
    keep(loop);
    loop.line("workgroupBarrier();");
    if (depth() > tile.depth) {
      Scope ahead(&loop);
      fetch(ahead, "k0 + " + step);
      loop.block("if (k0 + " + step + " < " + end + ")", ahead);
    }
    write_products(loop, tile, "");
    loop.line("workgroupBarrier();");
    return scope.block("for (var k0 = " + first_k() + "; k0 < " + end + "; k0 += " + step + ")",
                       loop);
  }
  scope.line("var half_a = 0u;");
  scope.line("var half_b = 0u;");
  keep(scope);
  scope.line("workgroupBarrier();");
  fetch(loop, "k0");
  write_products(loop, tile, "half_");
  loop.line("half_a = " + u32_literal(sizes[0]) + " - half_a;");
  loop.line("half_b = " + u32_literal(sizes[1]) + " - half_b;");
  keep(loop);
  loop.line("workgroupBarrier();");
  scope.block(
      "for (var k0 = " + first_k() + " + " + step + "; k0 < " + end + "; k0 += " + step + ")",
      loop);
  write_products(scope, tile, "half_");
}

Shader Contraction::write_tiled(const TileShape& tile) {
  const std::int64_t tiles_m = ceil_div(window_.count, tile.side_m);
  const std::int64_t tiles_n = ceil_div(product_.n, tile.side_n);
  write_functions(tile.side_m, tile.side_n, tile.depth, tile.slices == 1 && tile.width_n() == 4);
  const std::int64_t groups = window_.outer_count * tiles_m * tiles_n;
  Scope scope;
  open_rows(scope, Tile{1, tile.threads(), true}, groups, "tile");
  write_places(scope, tile, tiles_m, tiles_n);
  write_steps(scope, tile);
  if (tile.slices > 1) {
    write_sliced_results(scope, tile);
  } else {
    write_results(scope, tile);
    write_bias_grad_results(scope, tile);
  }
  return make_shader(module_, scope, tile.threads(), groups);
}

}  // namespace

Shader write_kind(const Launch& launch, const ContractionLaunch& /*p*/,
                  const WgslOptions& options) {
  Shader shader;
  if (options.blocks > 0) return Contraction(launch, options).write();
  if (write_by_subgroup_matrix(launch, options, shader)) return shader;
  return Contraction(launch, options).write();
}

}  // namespace tensorgrad::wgsl
