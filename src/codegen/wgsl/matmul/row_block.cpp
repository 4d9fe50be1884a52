// SPDX-License-Identifier: MIT
// Contractions in which a workgroup has all columns of its 8 or 16 rows: those with an epilogue by
// rows, and launches of fused sequences.
//   out[m,n] = epilogue(sum_k a[m,k] * b[k,n])
// Processes 64 columns and 64 steps of k at a time. Four slices of 64 threads share the steps; a
// thread has 2 or 4 rows and 4 columns. Operands keep their layout in workgroup memory, so that
// nothing is transposed: a thread reads vectors of four along k or along the other axis. The next
// piece is prefetched while one is multiplied. At the end, the sums of the slices are added in a
// fixed order.
#include "base/check.h"
#include "codegen/wgsl/matmul/contraction.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

// The default, for many workgroups; and a taller block, used if there are enough rows.
constexpr TileShape kLowBlock = {kFusedSequenceRows, kMaxRowColumns, 64, 2, 4, 4};
constexpr TileShape kHighBlock = {16, kMaxRowColumns, 64, 4, 4, 4};
static_assert(kLowBlock.threads() == 256 && kHighBlock.threads() == 256);

std::string number(int value) { return std::to_string(value); }

class RowBlock : private ContractionParts {
 public:
  RowBlock(const Launch& launch, const WgslOptions& options)
      : ContractionParts(launch, options),
        tile_(options.blocks == 0 && window_.count >= options.gpu.full_row_block_rows ? kHighBlock
                                                                                      : kLowBlock) {
  }

  Shader write();

 private:
  [[nodiscard]] std::int64_t tiles() const { return ceil_div(product_.n, tile_.side_n); }
  [[nodiscard]] std::int64_t depths() const { return ceil_div(product_.k, tile_.depth); }
  [[nodiscard]] int b_start() const { return a_.line_vectors(tile_); }

  void write_places(Scope& scope) const;
  void fetch(Scope& scope, const std::string& piece) const;
  void write_pieces(Scope& scope);
  void write_products(Scope& scope) const;
  void load_quad(Scope& scope, const TileOperand& operand, bool is_a) const;
  [[nodiscard]] std::string place(const TileOperand& operand, bool is_a, int i) const;
  [[nodiscard]] std::string element(const TileOperand& operand, bool is_a, int i, int k) const;
  void zero_sums(Scope& scope, bool declare) const;
  void write_sums(Scope& scope);
  void write_results(Scope& scope) const;
  void write_rows(Scope& scope);

  // Groups of four steps per slice.
  [[nodiscard]] int quads() const { return tile_.depth / tile_.slices / 4; }
  [[nodiscard]] int row_vectors() const { return tile_.side_n / 4; }
  [[nodiscard]] int result_vectors() const { return tile_.side_m * row_vectors(); }

  const TileShape& tile_;
};

Shader RowBlock::write() {
  CHECK(tile_.threads() <= options_.max_threads, launch_.name);
  CHECK(!product_.has_bias_grad() && product_.batch == 1, launch_.name);
  CHECK(!product_.by_rows || tiles() == 1, launch_.name);
  write_functions(tile_.side_m, tile_.side_n, tile_.depth, !product_.by_rows);
  const std::int64_t groups = ceil_div(window_.count, tile_.side_m);
  Scope scope;
  open_rows(scope, Tile{1, tile_.threads(), true}, groups, "tile");
  write_places(scope);
  write_pieces(scope);
  if (product_.by_rows) write_rows(scope);
  return make_shader(module_, scope, tile_.threads(), groups);
}

void RowBlock::write_places(Scope& scope) const {
  scope.line("let z = " + batch_of("0u") + ";");
  scope.line("let m0 = tile * " + u32_literal(tile_.side_m) +
             (window_.first > 0 ? " + " + u32_literal(window_.first) : "") + ";");
  scope.line("let slice = local / " + u32_literal(tile_.slice_threads()) + ";");
  scope.line("let ty = local % " + u32_literal(tile_.slice_threads()) + " / " +
             u32_literal(tile_.threads_n()) + ";");
  scope.line("let tx = local % " + u32_literal(tile_.threads_n()) + ";");
  a_.write_places(scope, tile_);
  b_.write_places(scope, tile_);
  zero_sums(scope, true);
}

// Loads piece number `piece` of both operands from memory into registers.
void RowBlock::fetch(Scope& scope, const std::string& piece) const {
  Scope one(&scope);
  const std::string depths_text = u32_literal(depths());
  one.line("let n0 = " + piece + " / " + depths_text + " * " + u32_literal(tile_.side_n) + ";");
  const std::string k0 = "(" + piece + " % " + depths_text + " * " + u32_literal(tile_.depth) + ")";
  a_.write_fetch(one, tile_, k0);
  b_.write_fetch(one, tile_, k0);
  scope.block("", one);
}

void RowBlock::write_pieces(Scope& scope) {
  module_.shared("pieces", "vec4<f32>",
                 b_start() + std::max(b_.line_vectors(tile_), tile_.slices * result_vectors()), 16);
  const std::int64_t pieces = tiles() * depths();
  fetch(scope, "0u");
  Scope loop(&scope);
  loop.own("piece");
  a_.write_keep_lines(loop, tile_, "pieces", 0);
  b_.write_keep_lines(loop, tile_, "pieces", b_start());
  loop.line("workgroupBarrier();");
  if (pieces > 1) {
    Scope ahead(&loop);
    fetch(ahead, "(piece + 1u)");
    loop.block("if (piece + 1u < " + u32_literal(pieces) + ")", ahead);
  }
  write_products(loop);
  loop.line("workgroupBarrier();");
  Scope end(&loop);
  write_sums(end);
  const std::string last = u32_literal(depths() - 1);
  loop.block(depths() == 1 ? "" : "if (piece % " + u32_literal(depths()) + " == " + last + ")",
             end);
  scope.block("for (var piece = 0u; piece < " + u32_literal(pieces) + "; piece++)", loop);
}

// Returns the index of a thread's i-th row (column). They are adjacent if lines run along them,
// else interleaved, so that neighboring threads read neighboring lines.
std::string RowBlock::place(const TileOperand& operand, bool is_a, int i) const {
  const std::string thread = is_a ? "ty" : "tx";
  const int threads = is_a ? tile_.threads_m() : tile_.threads_n();
  return operand.along_k() ? "(" + thread + " + " + u32_literal(i * threads) + ")"
                           : "(" + thread + " * " + u32_literal(is_a ? tile_.per_m : tile_.per_n) +
                                 " + " + u32_literal(i) + ")";
}

// Loads vectors for four steps of k. If lines run along k, a<i> (b<i>) contains the steps of one
// row (column), else a<k> contains four rows (columns) at one step.
void RowBlock::load_quad(Scope& scope, const TileOperand& operand, bool is_a) const {
  const std::string quad = "(slice * " + u32_literal(quads()) + " + quad)";
  const int count = !operand.along_k() ? 4 : is_a ? tile_.per_m : tile_.per_n;
  for (int i = 0; i < count; ++i) {
    const std::string line = operand.along_k() ? place(operand, is_a, i)
                                               : "(" + quad + " * 4u + " + u32_literal(i) + ")";
    const std::string along = operand.along_k() ? quad : place(operand, is_a, 0) + " / 4u";
    scope.line("let " + std::string(is_a ? "a" : "b") + number(i) + " = pieces[" +
               u32_literal(is_a ? 0 : b_start()) + " + " + line + " * " +
               u32_literal(operand.line_pitch(tile_)) + " + " + along + "];");
  }
}

// Returns the expression of row (column) i at step k of the four that load_quad() loaded.
std::string RowBlock::element(const TileOperand& operand, bool is_a, int i, int k) const {
  const std::string name = is_a ? "a" : "b";
  if (operand.along_k()) return name + number(i) + component(k, 4);
  if ((is_a ? tile_.per_m : tile_.per_n) == 4) return name + number(k) + component(i, 4);
  return name + number(k) + "[" + place(operand, is_a, i) + " % 4u]";
}

void RowBlock::write_products(Scope& scope) const {
  Scope loop(&scope);
  loop.own("quad");
  load_quad(loop, a_, true);
  load_quad(loop, b_, false);
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < tile_.per_m; ++i) {
      for (int j = 0; j < tile_.per_n; ++j) {
        loop.line("acc" + number(i) + "_" + number(j) + " += " + element(a_, true, i, k) + " * " +
                  element(b_, false, j, k) + ";");
      }
    }
  }
  scope.block("for (var quad = 0u; quad < " + u32_literal(quads()) + "; quad++)", loop);
}

// Runs after all steps of k. Stores the sums of the slices in place of b, then adds them, four
// adjacent results per thread.
void RowBlock::write_sums(Scope& scope) {
  const std::string start = u32_literal(b_start()) + " + slice * " + u32_literal(result_vectors());
  for (int i = 0; i < tile_.per_m; ++i) {
    const std::string row = start + " + " + place(a_, true, i) + " * " + u32_literal(row_vectors());
    const std::string acc = "acc" + number(i) + "_";
    if (!b_.along_k()) {
      scope.line("pieces[" + row + " + tx] = vec4<f32>(" + acc + "0, " + acc + "1, " + acc + "2, " +
                 acc + "3);");
      continue;
    }
    for (int j = 0; j < tile_.per_n; ++j) {
      const std::string column = place(b_, false, j);
      scope.line("pieces[" + row + " + " + column + " / 4u][" + column + " % 4u] = " + acc +
                 number(j) + ";");
    }
  }
  scope.line("workgroupBarrier();");
  std::string sum;
  for (int slice = 0; slice < tile_.slices; ++slice) {
    sum += (slice > 0 ? " + " : "") + std::string("pieces[") +
           u32_literal(b_start() + slice * result_vectors()) + " + local]";
  }
  Scope one(&scope);
  one.line("let sum = " + sum + ";");
  if (product_.by_rows) {
    module_.shared("row_results", "f32", std::int64_t{4} * result_vectors(), 4);
    for (int c = 0; c < 4; ++c)
      one.line("row_results[local * 4u + " + u32_literal(c) + "] = sum" + component(c, 4) + ";");
  } else {
    write_results(one);
  }
  const bool all = result_vectors() == tile_.threads();
  scope.block(all ? "" : "if (local < " + u32_literal(result_vectors()) + ")", one);
  if (tiles() > 1) zero_sums(scope, false);
  scope.line("workgroupBarrier();");
}

void RowBlock::zero_sums(Scope& scope, bool declare) const {
  for (int i = 0; i < tile_.per_m; ++i) {
    for (int j = 0; j < tile_.per_n; ++j)
      scope.line((declare ? "var acc" : "acc") + number(i) + "_" + number(j) + " = 0.0f;");
  }
}

void RowBlock::write_results(Scope& scope) const {
  scope.line("let m = m0 + local / " + u32_literal(row_vectors()) + ";");
  scope.line("let n = piece / " + u32_literal(depths()) + " * " + u32_literal(tile_.side_n) +
             " + local % " + u32_literal(row_vectors()) + " * 4u;");
  if (finish_.chosen) return scope.line("finish(z, m, n, sum);");
  for (int c = 0; c < 4; ++c)
    scope.line("finish(z, m, n + " + u32_literal(c) + ", sum" + component(c, 4) + ");");
}

// Runs the epilogue over the rows in workgroup memory.
void RowBlock::write_rows(Scope& scope) {
  Scope rows(&scope);
  const int lanes = tile_.threads() / tile_.side_m;
  const RowDomain domain{product_.m, product_.n,
                         place_rows(rows, lanes, "m0", window_.count % tile_.side_m == 0),
                         "row_results[(row - m0) * " + u32_literal(tile_.side_n) + " + col]"};
  write_row_passes(rows, module_, launch_, domain, Tile{tile_.side_m, lanes, true}, options_);
  scope.block("", rows);
}

}  // namespace

Shader write_row_block(const Launch& launch, const WgslOptions& options) {
  return RowBlock(launch, options).write();
}

}  // namespace tensorgrad::wgsl
