// SPDX-License-Identifier: MIT
// Contractions with subgroup matrices, for f16 operands. A workgroup computes BM x BN results, each
// of its subgroups UM x UN matrices of them in registers, in f32. Per step of BK, both operands are
// staged in workgroup memory, in vectors of eight f16. The results pass through the same memory to
// the epilogue, some lines of each subgroup's matrices at a time.
//
// With f16x3, operands are f32, and staged as hi + lo / 2048 in f16. hi hi and hi lo + lo hi are
// summed in matrices of their own, and lo lo is left out (Ootomo and Yokota 2022, "Recovering
// single precision accuracy from Tensor Cores").
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "codegen/wgsl/matmul/contraction.h"

namespace tensorgrad::wgsl {
namespace {

// The speeds are GpuModel::subgroup_matrix_tiles and f16x3_tiles.
struct SubgroupTile {
  int across_m, across_n;  // matrices per subgroup: UM, UN
  int subgroups_m, subgroups_n;
  int deep;  // BK in matrices

  [[nodiscard]] int subgroups() const { return subgroups_m * subgroups_n; }
};
constexpr std::array<SubgroupTile, 4> kSubgroupTiles = {
    {{4, 4, 2, 2, 2}, {4, 2, 2, 4, 4}, {4, 2, 2, 2, 2}, {2, 2, 2, 2, 4}}};
// With f16x3, a subgroup has two matrices of sums per result.
constexpr std::array<SubgroupTile, 2> kSplitTiles = {{{4, 2, 2, 4, 2}, {2, 2, 2, 2, 2}}};
static_assert(kSubgroupTiles.size() == GpuModel{}.subgroup_matrix_tiles.size() &&
              kSplitTiles.size() == GpuModel{}.f16x3_tiles.size());
constexpr const char* kTiles = "tiles";
constexpr int kResultPad = 4;  // elements: the length of a vector

class SubgroupMatrixContraction : private ContractionParts {
 public:
  using ContractionParts::ContractionParts;

  bool write(Shader& shader);

 private:
  [[nodiscard]] bool takes();
  [[nodiscard]] const SubgroupTile* pick() const;
  [[nodiscard]] TileShape tile_of(const SubgroupTile& shape) const;
  [[nodiscard]] std::int64_t vectors_of(const SubgroupTile& shape) const;
  [[nodiscard]] int operand_vectors(const SubgroupTile& shape) const {
    const TileShape tile = tile_of(shape);
    return a_.half_vectors(tile) + b_.half_vectors(tile);
  }
  [[nodiscard]] int result_pitch(const SubgroupTile& shape) const {
    return shape.across_n * unit_.n + kResultPad;
  }
  // Vectors of workgroup memory for one line of matrices of each subgroup.
  [[nodiscard]] int result_vectors(const SubgroupTile& shape) const {
    return shape.subgroups() * unit_.m * result_pitch(shape) / 4 * (split_ ? 2 : 1);
  }
  // Lines of matrices to store at a time: as many as fit the memory of the operands.
  [[nodiscard]] int lines_at_once(const SubgroupTile& shape) const {
    const int fit = operand_vectors(shape) / result_vectors(shape);
    return std::clamp(floor_pow2(fit), 1, shape.across_m);
  }
  [[nodiscard]] int bias_grad_sums_per_thread() const {
    return static_cast<int>(
        ceil_div(product_.bias_grad_row ? tile_.side_n : tile_.side_m, tile_.threads()));
  }
  void write_places(Scope& scope, std::int64_t tiles_m, std::int64_t tiles_n);
  void write_steps(Scope& scope);
  void write_load(Scope& scope, bool is_a, bool low, int number, int k) const;
  void write_products(Scope& scope) const;
  void write_bias_grad_sums(Scope& scope) const;
  void write_results(Scope& scope);
  void write_bias_grad_results(Scope& scope) const;
  [[nodiscard]] std::string first_of_side() const;

  const SubgroupMatrix& unit_ = options_.subgroup_matrix;
  bool split_ = false;  // f32 operands as two f16 numbers each
  SubgroupTile shape_ = {};
  TileShape tile_ = {};
};

TileShape SubgroupMatrixContraction::tile_of(const SubgroupTile& shape) const {
  TileShape tile = {};
  tile.side_m = unit_.m * shape.across_m * shape.subgroups_m;
  tile.side_n = unit_.n * shape.across_n * shape.subgroups_n;
  tile.depth = unit_.k * shape.deep;
  // These only have to yield the number of threads.
  tile.per_n = 4;
  tile.per_m = tile.side_m * tile.side_n / (4 * shape.subgroups() * unit_.subgroup);
  tile.slices = 1;
  return tile;
}

std::int64_t SubgroupMatrixContraction::vectors_of(const SubgroupTile& shape) const {
  return std::max(operand_vectors(shape), lines_at_once(shape) * result_vectors(shape));
}

// Returns null if other variants are at least as fast.
const SubgroupTile* SubgroupMatrixContraction::pick() const {
  const SubgroupTile* best = nullptr;
  double best_time = 0;
  const GpuModel& gpu = options_.gpu;
  const std::span<const SubgroupTile> shapes =
      split_ ? std::span<const SubgroupTile>(kSplitTiles) : kSubgroupTiles;
  const std::span<const TileSpeed> speeds =
      split_ ? std::span<const TileSpeed>(gpu.f16x3_tiles) : gpu.subgroup_matrix_tiles;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const SubgroupTile& shape = shapes[i];
    const TileShape tile = tile_of(shape);
    if (tile.threads() > options_.max_threads) continue;
    if (16 * vectors_of(shape) > options_.max_workgroup_bytes) continue;
    if (cuts_parts(tile.depth)) continue;
    if (!a_.fits_vec8(tile) || !b_.fits_vec8(tile)) continue;
    if (options_.subgroup_matrix_tile == static_cast<int>(i) + 1) return &shape;
    if (options_.joined && tile.threads() != group_threads(tile.threads(), options_)) continue;
    const double groups = std::llround(
        options_.concurrent_work_ratio *
        static_cast<double>(window_.outer_count * ceil_div(window_.count, tile.side_m) *
                            ceil_div(product_.n, tile.side_n)));
    const auto at_once = static_cast<double>(gpu.cores * speeds[i].at_once);
    const double time =
        std::ceil(groups / at_once) * at_once * tile.side_m * tile.side_n / speeds[i].rate;
    if (best != nullptr && time >= best_time) continue;
    best = &shape;
    best_time = time;
  }
  const std::int64_t products = window_.outer_count * window_.count * product_.n * depth();
  const std::int64_t fewest = split_ ? gpu.min_f16x3_products : gpu.min_subgroup_matrix_products;
  return products < fewest || depth() < unit_.k ? nullptr : best;
}

void SubgroupMatrixContraction::write_places(Scope& scope, std::int64_t tiles_m,
                                             std::int64_t tiles_n) {
  write_tile_place(scope, tile_.side_m, tile_.side_n, tiles_m, tiles_n);
  scope.line("let sub_lane = local % " + u32_literal(unit_.subgroup) + ";");
  scope.line("let sub = local / " + u32_literal(unit_.subgroup) + ";");
  scope.line("let sub_m = sub / " + u32_literal(shape_.subgroups_n) + " * " +
             u32_literal(unit_.m * shape_.across_m) + ";");
  scope.line("let sub_n = sub % " + u32_literal(shape_.subgroups_n) + " * " +
             u32_literal(unit_.n * shape_.across_n) + ";");
  a_.write_places(scope, tile_);
  b_.write_places(scope, tile_);
  for (int i = 0; i < shape_.across_m; ++i) {
    for (int j = 0; j < shape_.across_n; ++j) {
      const std::string at = std::to_string(i) + "_" + std::to_string(j);
      scope.line("var acc" + at + ": " + result_type(unit_) + ";");
      if (split_) scope.line("var low" + at + ": " + result_type(unit_) + ";");
    }
  }
  for (int i = 0; product_.has_bias_grad() && i < bias_grad_sums_per_thread(); ++i)
    scope.line("var ones" + std::to_string(i) + " = 0.0f;");
}

// Declares aI or bI, a matrix of an operand at step k of a tile. `low`: low_aI or low_bI, of lo.
void SubgroupMatrixContraction::write_load(Scope& scope, bool is_a, bool low, int number,
                                           int k) const {
  const TileOperand& operand = is_a ? a_ : b_;
  const int pitch = operand.half_pitch(tile_);
  const int along = number * (is_a ? unit_.m : unit_.n), deep = k * unit_.k;
  const std::string i = std::string(is_a ? "sub_m" : "sub_n") + " + " + u32_literal(along);
  const int start = (is_a ? 0 : 8 * a_.half_vectors(tile_)) + (low ? operand.low_part(tile_) : 0);
  const std::string first = start == 0 ? "" : u32_literal(start) + " + ";
  const std::string at =
      first + (operand.along_k() ? "(" + i + ") * " + u32_literal(pitch) + " + " + u32_literal(deep)
                                 : u32_literal(deep * pitch) + " + " + i);
  // Rows of a and columns of b are lines if they are contiguous along k.
  const bool column_major = is_a != operand.along_k();
  scope.line(std::string("let ") + (low ? "low_" : "") + (is_a ? "a" : "b") +
             std::to_string(number) + " = " +
             load_matrix(unit_, is_a ? MatrixSide::kLeft : MatrixSide::kRight, kTiles, at,
                         column_major, pitch) +
             ";");
}

// Multiplies one tile of each operand.
void SubgroupMatrixContraction::write_products(Scope& scope) const {
  const auto multiply = [&](Scope& to, const char* sum, const char* a, int i, const char* b) {
    for (int j = 0; j < shape_.across_n; ++j) {
      const std::string acc = sum + std::to_string(i) + "_" + std::to_string(j);
      to.line(acc + " = subgroupMatrixMultiplyAccumulate(" + a + std::to_string(i) + ", " + b +
              std::to_string(j) + ", " + acc + ");");
    }
  };
  for (int k = 0; k < shape_.deep; ++k) {
    Scope step(&scope);
    for (int low = 0; low < (split_ ? 2 : 1); ++low) {
      for (int j = 0; j < shape_.across_n; ++j) write_load(step, false, low != 0, j, k);
    }
    if (!split_) {
      for (int i = 0; i < shape_.across_m; ++i) write_load(step, true, false, i, k);
    }
    for (int i = 0; i < shape_.across_m; ++i) {
      if (split_) write_load(step, true, false, i, k);
      multiply(step, "acc", "a", i, "b");
      if (!split_) continue;
      multiply(step, "low", "a", i, "low_b");
      write_load(step, true, true, i, k);
      multiply(step, "low", "low_a", i, "b");
    }
    scope.block("", step);
  }
}

// Returns the condition under which the workgroup sums the operand that is multiplied with ones:
// its tile is the first along the other side.
std::string SubgroupMatrixContraction::first_of_side() const {
  return product_.bias_grad_row ? "m0 == " + u32_literal(window_.first) : "n0 == 0u";
}

// Each thread sums some lines.
void SubgroupMatrixContraction::write_bias_grad_sums(Scope& scope) const {
  if (!product_.has_bias_grad()) return;
  const TileOperand& operand = product_.bias_grad_row ? b_ : a_;
  const int start = product_.bias_grad_row ? a_.half_vectors(tile_) : 0;
  const auto first = [&](bool low) {
    return std::string(kTiles) + "[" +
           u32_literal(start + (low ? operand.low_part(tile_) / 8 : 0)) + " + ";
  };
  const std::string pitch = u32_literal(operand.half_pitch(tile_) / 8);
  const int side = operand.side(tile_);
  Scope sums(&scope);
  for (int i = 0; i < bias_grad_sums_per_thread(); ++i) {
    const std::string line = "(local + " + u32_literal(i * tile_.threads()) + ")";
    const std::string sum = "ones" + std::to_string(i) + " += ";
    Scope each(&sums), loop(&each);
    for (int low = 0; low < (split_ ? 2 : 1); ++low) {
      const std::string x = low != 0 ? "y" : "x", by = low != 0 ? kSplitFactor : "1.0f";
      if (operand.along_k()) {
        loop.line("let " + x + " = " + first(low != 0) + line + " * " + pitch + " + k];");
        for (const char c : {'x', 'y', 'z', 'w'})
          loop.line(sum + "dot(unpack2x16float(" + x + "." + c + "), vec2<f32>(" + by + "));");
      } else {
        loop.line("let " + x + " = " + first(low != 0) + "k * " + pitch + " + " + line + " / 8u][" +
                  line + " % 8u / 2u];");
        loop.line(sum + "unpack2x16float(" + x + ")[" + line + " % 2u] * " + by + ";");
      }
    }
    const int steps = operand.along_k() ? tile_.depth / 8 : tile_.depth;
    each.block("for (var k = 0u; k < " + u32_literal(steps) + "; k++)", loop);
    const bool all = (i + 1) * tile_.threads() <= side;
    sums.block(all ? "" : "if (" + line + " < " + u32_literal(side) + ")", each);
  }
  scope.block("if (" + first_of_side() + ")", sums);
}

// The next tile is prefetched while this one is multiplied.
void SubgroupMatrixContraction::write_steps(Scope& scope) {
  module_.shared(kTiles, "vec4<u32>", vectors_of(shape_), 16);
  const std::string step = u32_literal(tile_.depth);
  // group_id.z is 0. If the driver does not know the length of the loop, products are faster.
  scope.line("let end = " + end_k() + " + group_id.z;");
  const auto fetch = [&](Scope& to, const std::string& k0) {
    a_.write_fetch(to, tile_, k0);
    b_.write_fetch(to, tile_, k0);
  };
  fetch(scope, first_k());
  Scope loop(&scope);
  a_.write_keep_vec8(loop, tile_, kTiles, 0);
  b_.write_keep_vec8(loop, tile_, kTiles, a_.half_vectors(tile_));
  loop.line("workgroupBarrier();");
  if (depth() > tile_.depth) {
    Scope ahead(&loop);
    fetch(ahead, "k0 + " + step);
    loop.block("if (k0 + " + step + " < end)", ahead);
  }
  write_products(loop);
  write_bias_grad_sums(loop);
  loop.line("workgroupBarrier();");
  scope.block("for (var k0 = " + first_k() + "; k0 < end; k0 += " + step + ")", loop);
}

// Stores some lines of a subgroup's matrices at a time.
void SubgroupMatrixContraction::write_results(Scope& scope) {
  const int step = finish_.chosen ? 4 : 1;  // results per call
  const int lines = lines_at_once(shape_), pitch = result_pitch(shape_);
  const int width = shape_.across_n * unit_.n, count = lines * unit_.m * width / step;
  const std::string across = u32_literal(width / step);
  const int per_subgroup = lines * unit_.m * pitch;
  const int to_low = shape_.subgroups() * per_subgroup;
  scope.line("let staged = sub * " + u32_literal(per_subgroup) + ";");
  for (int i = 0; i < shape_.across_m; i += lines) {
    if (i > 0) scope.line("workgroupBarrier();");
    for (int more = 0; more < lines; ++more) {
      for (int j = 0; j < shape_.across_n; ++j) {
        const int at = more * unit_.m * pitch + j * unit_.n;
        const std::string name = std::to_string(i + more) + "_" + std::to_string(j);
        scope.line(store_matrix(kTiles, "staged + " + u32_literal(at), "acc" + name, pitch));
        if (split_) {
          scope.line(
              store_matrix(kTiles, "staged + " + u32_literal(to_low + at), "low" + name, pitch));
        }
      }
    }
    scope.line("workgroupBarrier();");
    Scope loop(&scope);
    loop.line("let row = r / " + across + ";");
    loop.line("let col = r % " + across + (step > 1 ? " * " + u32_literal(step) : "") + ";");
    loop.line("let at = staged + row * " + u32_literal(pitch) + " + col;");
    const auto staged = [&](const std::string& at) {
      const std::string vector = std::string(kTiles) + "[" + at + " / 4u]";
      return step == 1 ? "bitcast<f32>(" + vector + "[at % 4u])"
                       : "bitcast<vec4<f32>>(" + vector + ")";
    };
    std::string value = staged("at");
    if (split_)
      value += " + " + staged("(at + " + u32_literal(to_low) + ")") + " * " + kSplitFactor;
    loop.line("finish(z, m0 + sub_m + " + u32_literal(i * unit_.m) + " + row, n0 + sub_n + col, " +
              value + ");");
    scope.block("for (var r = sub_lane; r < " + u32_literal(count) +
                    "; r += " + u32_literal(unit_.subgroup) + ")",
                loop);
  }
}

void SubgroupMatrixContraction::write_bias_grad_results(Scope& scope) const {
  if (!product_.has_bias_grad()) return;
  const bool of_b = product_.bias_grad_row;
  Scope ones(&scope);
  for (int i = 0; i < bias_grad_sums_per_thread(); ++i) {
    const std::string line = "local + " + u32_literal(i * tile_.threads());
    const std::string at = std::string(of_b ? "n0" : "m0") + " + " + line;
    ones.line("if (" + line + " < " + u32_literal(of_b ? tile_.side_n : tile_.side_m) + " && " +
              at + " < " + u32_literal(of_b ? product_.n : window_.end()) +
              ") { finish_bias_grad(" + at + ", ones" + std::to_string(i) + "); }");
  }
  scope.block("if (" + first_of_side() + ")", ones);
}

// Returns whether the operands can be in matrices. Sets split_.
bool SubgroupMatrixContraction::takes() {
  if (product_.by_rows || product_.a_by_rows || options_.matmul_tile != MatmulTile::kAuto ||
      options_.lanes != 0)
    return false;
  if (a_.is_half() && b_.is_half()) return true;
  // With fewer rows, most of a matrix would be empty.
  split_ = options_.f16x3 && window_.count >= unit_.m;
  if (split_) {
    a_.split();
    b_.split();
  }
  return split_;
}

bool SubgroupMatrixContraction::write(Shader& shader) {
  if (!takes()) return false;
  const SubgroupTile* const picked = pick();
  if (picked == nullptr) return false;
  shape_ = *picked;
  tile_ = tile_of(shape_);
  if (product_.has_bias_grad()) write_bias_grad();
  write_functions(tile_.side_m, tile_.side_n, tile_.depth, true, true);
  const std::int64_t tiles_m = ceil_div(window_.count, tile_.side_m);
  const std::int64_t tiles_n = ceil_div(product_.n, tile_.side_n);
  const std::int64_t groups = window_.outer_count * tiles_m * tiles_n;
  Scope scope;
  open_rows(scope, Tile{1, tile_.threads(), true}, groups, "tile");
  write_places(scope, tiles_m, tiles_n);
  write_steps(scope);
  write_results(scope);
  write_bias_grad_results(scope);
  shader = make_shader(module_, scope, tile_.threads(), groups);
  shader.uses_subgroup_matrix = true;
  return true;
}

}  // namespace

std::vector<int> subgroup_matrix_tiles(bool f16x3) {
  std::vector<int> numbers(f16x3 ? kSplitTiles.size() : kSubgroupTiles.size());
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

bool write_by_subgroup_matrix(const Launch& launch, const WgslOptions& options, Shader& shader) {
  if (!options.subgroup_matrix.present() || options.subgroup_matrix_tile < 0) return false;
  return SubgroupMatrixContraction(launch, options).write(shader);
}

}  // namespace tensorgrad::wgsl

namespace tensorgrad::inline TENSORGRAD_ABI {

std::string load_matrix(const SubgroupMatrix& shape, MatrixSide side, const std::string& array,
                        const std::string& at, bool column_major, std::int64_t pitch) {
  const std::string k = std::to_string(shape.k);
  const std::string type = side == MatrixSide::kLeft
                               ? "subgroup_matrix_left<f16, " + k + ", " + std::to_string(shape.m)
                               : "subgroup_matrix_right<f16, " + std::to_string(shape.n) + ", " + k;
  return "subgroupMatrixLoad<" + type + ">, " + (column_major ? "col_major" : "row_major") + ">(&" +
         array + ", (" + at + ") / 8u, " + std::to_string(pitch / 8) + "u)";
}

std::string store_matrix(const std::string& array, const std::string& at, const std::string& value,
                         std::int64_t pitch) {
  return "subgroupMatrixStore<row_major>(&" + array + ", (" + at + ") / 4u, " + value + ", " +
         std::to_string(pitch / 4) + "u);";
}

std::string result_type(const SubgroupMatrix& shape) {
  return "subgroup_matrix_result<f32, " + std::to_string(shape.n) + ", " + std::to_string(shape.m) +
         ">";
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
