// SPDX-License-Identifier: MIT
// Attention in tiles (Dao et al. 2022). A workgroup keeps a block of rows and loops over the
// columns in blocks. Its threads form a grid of ny x nx. Each has some rows and columns of the tile
// of scores in registers, and some columns of the result for the same rows. Operands of both
// products are staged in workgroup memory, in vectors of four along the width of q, k, v. The
// distance of lines is an odd number of vectors, so that neighboring threads access different
// banks. The next block of columns is prefetched. Rows are those of q; for dk and dv they are those
// of k, and columns are those of q. These two results leave few registers and little workgroup
// memory, so their columns of q and dy take turns in one array, and q is loaded twice.
#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "base/check.h"
#include "codegen/wgsl/attention/attention.h"
#include "codegen/wgsl/line_tile.h"
#include "codegen/wgsl/opaque.h"

namespace tensorgrad::wgsl {
namespace {

struct TileBlock {
  int rows, columns;  // of the score tile
  int ny, nx;         // threads

  [[nodiscard]] int threads() const { return ny * nx; }
  [[nodiscard]] int per_y() const { return rows / ny; }
  [[nodiscard]] int per_x() const { return columns / nx; }
  // True if a subgroup of 32 threads can be 4 rows of 8. GPUs read vectors from workgroup memory by
  // half a subgroup. They fetch a vector once for two neighbors, so these share a column.
  [[nodiscard]] bool pairs() const { return ny % 4 == 0 && nx % 8 == 0; }
};
// From large to small; the first that fits the device and yields enough workgroups is used. On an
// H100, four or eight scores per thread are faster than sixteen, and faster than larger blocks.
// With rows of keys there are more results and so fewer free registers, and columns are fewer.
constexpr std::array<TileBlock, 4> kBlocks = {
    {{32, 32, 8, 16}, {16, 16, 8, 8}, {8, 8, 8, 8}, {8, 4, 8, 4}}};
constexpr int kColumnsOfKeys = 16;
static_assert(kKeysOfPart % kBlocks.front().rows == 0);

std::string number(int i) { return std::to_string(i); }

class AttentionWriter : private AttentionParts {
 public:
  AttentionWriter(const Launch& launch, const WgslOptions& options)
      : AttentionParts(launch, options), block_(pick(options)) {}

  Shader write();

 private:
  // The row and column of a thread's score.
  [[nodiscard]] std::string row_of(int r) const {
    return "row_start + ty + " + u32_literal(r * block_.ny);
  }
  [[nodiscard]] std::string column_of(int c) const {
    return "col_start + tx + " + u32_literal(c * block_.nx);
  }
  [[nodiscard]] std::string query(int r, int c) const {
    return keys() ? "at_col" + number(c) : "at_row" + number(r);
  }
  [[nodiscard]] std::string key(int r, int c) const {
    return keys() ? "at_row" + number(r) : "at_col" + number(c);
  }

  // Vectors per line, and distance of lines in vectors.
  static std::int64_t vectors(std::int64_t width) { return ceil_div(width, 4); }
  static std::int64_t pitch(std::int64_t width) { return vectors(width) | 1; }
  // That of an array which holds columns of both widths in turn.
  [[nodiscard]] std::int64_t column_pitch() const {
    return std::max(pitch(s_.depth), pitch(s_.width));
  }
  [[nodiscard]] std::int64_t bytes(const TileBlock& b) const;
  [[nodiscard]] TileBlock pick(const WgslOptions& options) const;

  LineTile lines(const std::string& operand, const std::string& array, int count,
                 std::int64_t width, std::int64_t pitch_of_array);
  void bring_columns(Scope& before, Scope& tile, const std::string& first,
                     const std::vector<LineTile>& all) const;
  void write_products(Scope& scope, const std::string& result, const std::string& x,
                      const std::string& y, std::int64_t width, std::int64_t y_pitch) const;
  void write_accumulate(Scope& scope, const std::string& acc, const std::string& y,
                        std::int64_t width, std::int64_t y_pitch) const;
  void declare_results(Scope& scope, const std::string& acc, std::int64_t width) const;
  void store_results(Scope& scope, const std::string& acc, int which, std::int64_t width,
                     const std::string& factor);
  void put(Scope& scope, const std::string& function, const std::string& line, int v,
           std::int64_t width, const std::string& vector, const std::string& factor) const;
  void write_live(Scope& scope);
  void write_scores(Scope& scope);
  void write_tiles(Scope& scope, const std::string& first, const Scope& tile);
  void write_maximum(Scope& scope) const;
  void write_forward(Scope& scope);
  void write_products_of_keys(Scope& loop, const LineTile& dy) const;
  void write_gradients_of_values(Scope& loop, const LineTile& q) const;
  void write_backward(Scope& scope);
  template <class Visit>
  void each_query(Scope& scope, const Visit& visit) const;
  void write_sums_of_queries(Scope& loop);
  void write_parts(Scope& scope);
  [[nodiscard]] std::string scale() {
    return module_.constant(DType::kF32,
                            std::bit_cast<std::uint32_t>(static_cast<float>(s_.scale)));
  }
  void put_weight(Scope& scope, int r, int c, const std::string& value) const;

  template <class Visit>
  void each(const Visit& visit) const {
    for (int r = 0; r < block_.per_y(); ++r) {
      for (int c = 0; c < block_.per_x(); ++c) visit(r, c);
    }
  }
  // The v-th vector of a thread. Threads beyond the line read its last vector; their results are
  // not stored.
  [[nodiscard]] std::string vector_of(int v, std::int64_t width) const {
    const bool whole = (v + 1) * block_.nx <= vectors(width);
    const std::string at = "tx + " + u32_literal(v * block_.nx);
    return whole ? at : "min(" + at + ", " + u32_literal(vectors(width) - 1) + ")";
  }
  [[nodiscard]] int vectors_each(std::int64_t width) const {
    return static_cast<int>(ceil_div(vectors(width), block_.nx));
  }
  // The queries for which a thread adds up dq.
  [[nodiscard]] int queries_each() const {
    return static_cast<int>(ceil_div(block_.columns, block_.ny));
  }
  [[nodiscard]] std::int64_t weight_pitch() const { return ceil_div(block_.columns, 4) | 1; }

  TileBlock block_;
};

std::int64_t AttentionWriter::bytes(const TileBlock& b) const {
  const std::int64_t weights = b.rows * (ceil_div(b.columns, 4) | 1);
  const std::int64_t both = pitch(s_.depth) + pitch(s_.width);
  std::int64_t lines = b.rows * both;
  switch (pass_) {
    case AttentionPass::kForward:
      lines = b.rows * pitch(s_.depth) + b.columns * column_pitch() + ceil_div(b.rows * b.nx, 4);
      break;
    case AttentionPass::kQueries: lines += b.columns * both; break;
    case AttentionPass::kKeys:
    case AttentionPass::kBackward: lines += b.columns * column_pitch(); break;
  }
  return 16 * (weights + lines) + (truth_mask() ? 8 : 0);
}

TileBlock AttentionWriter::pick(const WgslOptions& options) const {
  for (TileBlock b : kBlocks) {
    const bool last = b.rows == kBlocks.back().rows && b.columns == kBlocks.back().columns;
    if (options.attention_columns > 0 && b.columns > options.attention_columns) continue;
    if (keys()) b.columns = std::min(b.columns, kColumnsOfKeys);
    if (b.threads() > options.max_threads || bytes(b) > options.max_workgroup_bytes) continue;
    if (last || options.attention_columns > 0) return b;
    // A smaller block is better if half of the rows would be unused or there are too few
    // workgroups.
    if (b.rows > 8 && b.rows / 2 >= rows()) continue;
    const std::int64_t groups =
        window_.count * (backward() ? s_.dq_parts : ceil_div(rows(), b.rows));
    if (b.rows > 16 && groups < options.gpu.full_attention_groups) continue;
    return b;
  }
  CHECK(false, l_.name + ": no tile fits the device");
  return kBlocks.back();
}

LineTile AttentionWriter::lines(const std::string& operand, const std::string& array, int count,
                                std::int64_t width, std::int64_t pitch_of_array) {
  module_.shared(array, "vec4<f32>", count * pitch_of_array, 16);
  return {operand, array, count, vectors(width), pitch_of_array, block_.threads()};
}

// Loads the tile's columns. Those of the next tile are prefetched, unless they are too many or a
// mask may skip that tile.
void AttentionWriter::bring_columns(Scope& before, Scope& tile, const std::string& first,
                                    const std::vector<LineTile>& all) const {
  const auto ahead = [&](const LineTile& part) { return !truth_mask() && part.at_once(); };
  for (const LineTile& part : all) {
    if (ahead(part)) {
      part.declare(before);
      part.fetch(before, first);
      part.keep(tile);
    } else {
      part.load(tile, "col_start");
    }
  }
  tile.line("workgroupBarrier();");
  for (const LineTile& part : all) {
    if (ahead(part)) part.fetch(tile, "col_start + " + u32_literal(block_.columns));
  }
}

// Calls step for each index, as step(0u), step(1u) ...; written out if there are few, so that
// compilers know all addresses. Otherwise in a loop, four at a time if possible.
template <class Step>
void repeat(Scope& scope, const std::string& name, std::int64_t count, const Step& step) {
  const bool loops = count > kMaxWrittenOut;
  const std::int64_t at_once = !loops ? count : count % 4 == 0 ? 4 : 1;
  Scope loop(&scope);
  for (std::int64_t i = 0; i < at_once; ++i) {
    Scope one(&loop);
    const std::string at = u32_literal(i);
    step(one, !loops ? at : at_once == 1 ? name : "(" + name + " + " + at + ")");
    loop.block("", one);
  }
  const std::string head = "for (var " + name + " = 0u; " + name + " < " + u32_literal(count) +
                           "; " + name + " += " + u32_literal(at_once) + ")";
  scope.block(loops ? head : "", loop);
}

// RESULTr_c += row r of x times column c of y.
void AttentionWriter::write_products(Scope& scope, const std::string& result, const std::string& x,
                                     const std::string& y, std::int64_t width,
                                     std::int64_t y_pitch) const {
  each([&](int r, int c) {
    scope.line("var " + result + number(r) + "_" + number(c) + " = 0.0f;");
  });
  const auto step = [&](Scope& to, const std::string& at) {
    for (int r = 0; r < block_.per_y(); ++r) {
      to.line("let x" + number(r) + " = " + x + "[(ty + " + u32_literal(r * block_.ny) + ") * " +
              u32_literal(pitch(width)) + " + " + at + "];");
    }
    for (int c = 0; c < block_.per_x(); ++c) {
      to.line("let y" + number(c) + " = " + y + "[(tx + " + u32_literal(c * block_.nx) + ") * " +
              u32_literal(y_pitch) + " + " + at + "];");
    }
    // Each fma is one operation; a dot product would take an additional one.
    for (const char part : {'x', 'y', 'z', 'w'}) {
      each([&](int r, int c) {
        const std::string sum = result + number(r) + "_" + number(c);
        to.line(sum + " = fma(x" + number(r) + "." + part + ", y" + number(c) + "." + part + ", " +
                sum + ");");
      });
    }
  };
  repeat(scope, "at", vectors(width), step);
}

void AttentionWriter::declare_results(Scope& scope, const std::string& acc,
                                      std::int64_t width) const {
  for (int r = 0; r < block_.per_y(); ++r) {
    for (int v = 0; v < vectors_each(width); ++v) {
      scope.line("var " + acc + number(r) + "_" + number(v) + " = vec4<f32>();");
    }
  }
}

// ACC += weights times y.
void AttentionWriter::write_accumulate(Scope& scope, const std::string& acc, const std::string& y,
                                       std::int64_t width, std::int64_t y_pitch) const {
  const auto step = [&](Scope& loop, const std::string& j) {
    for (int r = 0; r < block_.per_y(); ++r) {
      loop.line("let w" + number(r) + " = weights[(ty + " + u32_literal(r * block_.ny) + ") * " +
                u32_literal(weight_pitch()) + " + " + j + "];");
    }
    for (int v = 0; v < vectors_each(width); ++v) {
      loop.line("let at" + number(v) + " = " + vector_of(v, width) + ";");
      for (int s = 0; s < 4; ++s) {
        const std::string name = "y" + number(s) + "_" + number(v);
        loop.line("let " + name + " = " + y + "[(" + j + " * 4u + " + u32_literal(s) + ") * " +
                  u32_literal(y_pitch) + " + at" + number(v) + "];");
        for (int r = 0; r < block_.per_y(); ++r) {
          loop.line(acc + number(r) + "_" + number(v) + " += w" + number(r) + "." + "xyzw"[s] +
                    std::string(" * ") + name + ";");
        }
      }
    }
  };
  repeat(scope, "j", block_.columns / 4, step);
}

void AttentionWriter::store_results(Scope& scope, const std::string& acc, int which,
                                    std::int64_t width, const std::string& factor) {
  const bool vectorized = width % 4 == 0;
  vectorized ? write_result_of_four(which, rows(), width) : write_result(which, rows(), width);
  for (int r = 0; r < block_.per_y(); ++r) {
    Scope row(&scope), there(&row);
    row.line("let i = " + row_of(r) + ";");
    const std::string by = factor.empty() ? "" : " * " + factor + (forward() ? number(r) : "");
    for (int v = 0; v < vectors_each(width); ++v)
      put(there, "store" + number(which), "i", v, width, acc + number(r) + "_" + number(v), by);
    row.block("if (i < " + u32_literal(rows()) + ")", there);
    scope.block("", row);
  }
}

// Calls fn FUNCTION or FUNCTION_four for the elements of the v-th vector of a thread, times FACTOR.
void AttentionWriter::put(Scope& scope, const std::string& function, const std::string& line, int v,
                          std::int64_t width, const std::string& vector,
                          const std::string& factor) const {
  const bool vectorized = width % 4 == 0;
  const auto call = [&](const std::string& name, int c, const std::string& value) {
    const std::string w = "(tx + " + u32_literal(v * block_.nx) + ") * 4u + " + u32_literal(c);
    const bool whole = vectorized && (v + 1) * block_.nx <= vectors(width);
    const std::string text = name + "(p, " + line + ", " + w + ", " + value + factor + ");";
    scope.line(whole ? text : "if (" + w + " < " + u32_literal(width) + ") { " + text + " }");
  };
  if (vectorized) return call(function + "_four", 0, vector);
  for (int c = 0; c < 4; ++c) call(function, c, vector + "." + "xyzw"[c]);
}

// Declares `liveR_C`: true if a score of the tile is in range and not masked by a boolean mask.
void AttentionWriter::write_live(Scope& scope) {
  for (int r = 0; r < block_.per_y(); ++r)
    scope.line("let at_row" + number(r) + " = " + row_of(r) + ";");
  for (int c = 0; c < block_.per_x(); ++c)
    scope.line("let at_col" + number(c) + " = " + column_of(c) + ";");
  each([&](int r, int c) {
    const std::string at = number(r) + "_" + number(c);
    const std::string i = query(r, c), j = key(r, c);
    std::string live = "at_row" + number(r) + " < " + u32_literal(rows()) + " && at_col" +
                       number(c) + " < " + u32_literal(columns());
    if (s_.causal) live += " && " + j + " <= " + i;
    scope.line("var live" + at + " = " + live + ";");
    if (truth_mask()) {
      scope.line("if (live" + at + ") { live" + at + " = mask_at(p, " + i + ", " + j + "); }");
    }
  });
}

// Scales the scores and adds the mask.
void AttentionWriter::write_scores(Scope& scope) {
  const std::string by = scale();
  each([&](int r, int c) {
    const std::string at = number(r) + "_" + number(c);
    scope.line("s" + at + " *= " + by + ";");
    if (!has(AttentionInput::kMask) || truth_mask()) return;
    scope.line("if (live" + at + ") { s" + at + " += mask_at(p, " + query(r, c) + ", " + key(r, c) +
               "); }");
  });
}

// Loops over the tiles of a block of rows. Skips tiles that a boolean mask excludes entirely, such
// as the unused part of a KV cache.
void AttentionWriter::write_tiles(Scope& scope, const std::string& first, const Scope& tile) {
  std::string end = u32_literal(columns());
  if (s_.causal && !keys()) end = "min(" + end + ", row_start + " + u32_literal(block_.rows) + ")";
  scope.line("let end = " + end + ";");
  Scope loop(&scope);
  loop.line("workgroupBarrier();");
  write_live(loop);
  if (truth_mask()) {
    std::string any;
    each([&](int r, int c) {
      any += (any.empty() ? "live" : " || live") + number(r) + "_" + number(c);
    });
    module_.shared("tiles_seen", "atomic<u32>", 1, 4);
    module_.shared("last_seen", "u32", 1, 4);
    // Workgroup memory is not zero-initialized.
    scope.line("if (local == 0u) { atomicStore(&tiles_seen[0], 0u); }");
    loop.line("if (" + any + ") { atomicMax(&tiles_seen[0], col_start + 1u); }");
    loop.line("workgroupBarrier();");
    loop.line("if (local == 0u) { last_seen[0] = atomicLoad(&tiles_seen[0]); }");
    loop.block("if (workgroupUniformLoad(&last_seen[0]) > col_start)", tile);
  } else {
    loop.block("", tile);
  }
  scope.block("for (var col_start = " + first +
                  "; col_start < end; col_start += " + u32_literal(block_.columns) + ")",
              loop);
}

void AttentionWriter::put_weight(Scope& scope, int r, int c, const std::string& value) const {
  const std::string column = "(tx + " + u32_literal(c * block_.nx) + ")";
  scope.line("weights[(ty + " + u32_literal(r * block_.ny) + ") * " + u32_literal(weight_pitch()) +
             " + " + column + " / 4u][" + column + " % 4u] = " + value + ";");
}

// Declares mostR, the maximum of topR and the row's scores in this tile, in every thread of the
// row.
void AttentionWriter::write_maximum(Scope& scope) const {
  for (int r = 0; r < block_.per_y(); ++r) {
    const std::string n = number(r);
    scope.line("var most" + n + " = top" + n + ";");
    for (int c = 0; c < block_.per_x(); ++c) {
      const std::string at = n + "_" + number(c);
      scope.line("if (live" + at + ") { most" + n + " = max(most" + n + ", s" + at + "); }");
    }
    scope.line("lanes[((ty + " + u32_literal(r * block_.ny) + ") * " + u32_literal(block_.nx) +
               " + tx) / 4u][tx % 4u] = most" + n + ";");
  }
  scope.line("workgroupBarrier();");
  for (int r = 0; r < block_.per_y(); ++r) {
    const std::string n = number(r);
    for (int v = 0; v < block_.nx / 4; ++v) {
      scope.line("let m" + n + "_" + number(v) + " = lanes[(ty + " + u32_literal(r * block_.ny) +
                 ") * " + u32_literal(block_.nx / 4) + " + " + u32_literal(v) + "];");
      const std::string m = "m" + n + "_" + number(v);
      scope.line("most" + n + " = max(max(max(most" + n + ", " + m + ".x), max(" + m + ".y, " + m +
                 ".z)), " + m + ".w);");
    }
  }
}

void AttentionWriter::write_forward(Scope& scope) {
  module_.shared("lanes", "vec4<f32>", ceil_div(block_.rows * block_.nx, 4), 16);
  const std::int64_t cp = column_pitch();
  const LineTile columns_k = lines("k", "columns_kv", block_.columns, s_.depth, cp);
  const LineTile columns_v = lines("v", "columns_kv", block_.columns, s_.width, cp);
  lines("q", "rows_q", block_.rows, s_.depth, pitch(s_.depth)).load(scope, "row_start");
  declare_results(scope, "o", s_.width);
  for (int r = 0; r < block_.per_y(); ++r) {
    scope.line("var top" + number(r) + " = -3.4028234e38f;");
    scope.line("var sum" + number(r) + " = 0.0f;");
  }
  Scope loop(&scope);
  bring_columns(scope, loop, "0u", {columns_k});
  columns_v.begin(loop, "col_start");
  write_products(loop, "s", "rows_q", "columns_kv", s_.depth, cp);
  write_scores(loop);
  write_maximum(loop);  // contains a barrier after the reads of k
  columns_v.end(loop, "col_start");
  for (int r = 0; r < block_.per_y(); ++r) {
    const std::string n = number(r);
    loop.line("let shrink" + n + " = exp(top" + n + " - most" + n + ");");
    loop.line("sum" + n + " *= shrink" + n + ";");
    for (int v = 0; v < vectors_each(s_.width); ++v) {
      loop.line("o" + n + "_" + number(v) + " *= shrink" + n + ";");
    }
    loop.line("top" + n + " = most" + n + ";");
  }
  each([&](int r, int c) {
    const std::string at = number(r) + "_" + number(c);
    loop.line("var p" + at + " = 0.0f;");
    Scope live(&loop);
    live.line("p" + at + " = exp(s" + at + " - top" + number(r) + ");");
    live.line("sum" + number(r) + " += p" + at + ";");
    if (has(AttentionInput::kKeep)) {
      live.line("p" + at + " *= keep_at(p, at_row" + number(r) + ", at_col" + number(c) + ");");
    }
    loop.block("if (live" + at + ")", live);
    put_weight(loop, r, c, "p" + at);
  });
  loop.line("workgroupBarrier();");
  write_accumulate(loop, "o", "columns_kv", s_.width, cp);
  write_tiles(scope, "0u", loop);
  scope.line("workgroupBarrier();");
  for (int r = 0; r < block_.per_y(); ++r) {
    scope.line("lanes[((ty + " + u32_literal(r * block_.ny) + ") * " + u32_literal(block_.nx) +
               " + tx) / 4u][tx % 4u] = sum" + number(r) + ";");
  }
  scope.line("workgroupBarrier();");
  write_result(1, s_.rows, 1);
  for (int r = 0; r < block_.per_y(); ++r) {
    const std::string n = number(r);
    std::string total;
    for (int v = 0; v < block_.nx / 4; ++v) {
      total += (v > 0 ? " + " : "") + std::string("dot(lanes[(ty + ") + u32_literal(r * block_.ny) +
               ") * " + u32_literal(block_.nx / 4) + " + " + u32_literal(v) + "], vec4<f32>(1.0f))";
    }
    scope.line("let total" + n + " = " + total + ";");
    // zeros if all columns are masked
    scope.line("let nothing" + n + " = total" + n + " == 0.0f;");
    scope.line("let factor" + n + " = select(1.0f / total" + n + ", 0.0f, nothing" + n + ");");
    scope.line("let i" + n + " = " + row_of(r) + ";");
    scope.line("if (tx == 0u && i" + n + " < " + u32_literal(s_.rows) + ") { store1(p, i" + n +
               ", 0u, select(top" + n + " + log(total" + n + "), 0.0f, nothing" + n + ")); }");
  }
  store_results(scope, "o", 0, s_.width, "factor");
}

// Computes s from the columns of q, which columns_0 holds, and dp from those of dy, which replace
// them.
void AttentionWriter::write_products_of_keys(Scope& loop, const LineTile& dy) const {
  write_products(loop, "s", "rows_0", "columns_0", s_.depth, column_pitch());
  loop.line("workgroupBarrier();");
  dy.load(loop, "col_start");
  loop.line("workgroupBarrier();");
  write_products(loop, "dp", "rows_1", "columns_0", s_.width, column_pitch());
}

// Adds the tile to dv. Then replaces p by ds and, in columns_0, dy by q.
void AttentionWriter::write_gradients_of_values(Scope& loop, const LineTile& q) const {
  write_accumulate(loop, "d1_", "columns_0", s_.width, column_pitch());
  loop.line("workgroupBarrier();");
  each([&](int r, int c) { put_weight(loop, r, c, "ds" + number(r) + "_" + number(c)); });
  Scope again(&loop);  // has variables of the first load's names
  q.load(again, "col_start");
  loop.block("", again);
  loop.line("workgroupBarrier();");
}

void AttentionWriter::write_backward(Scope& scope) {
  const std::string x0 = keys() ? "k" : "q", x1 = keys() ? "v" : "dy";
  const std::string y0 = keys() ? "q" : "k", y1 = keys() ? "dy" : "v";
  lines(x0, "rows_0", block_.rows, s_.depth, pitch(s_.depth)).load(scope, "row_start");
  lines(x1, "rows_1", block_.rows, s_.width, pitch(s_.width)).load(scope, "row_start");
  declare_results(scope, "d0_", s_.depth);
  if (keys()) declare_results(scope, "d1_", s_.width);
  std::string first = "0u";
  if (s_.causal && keys())
    first = "row_start / " + u32_literal(block_.columns) + " * " + u32_literal(block_.columns);
  Scope loop(&scope);
  // Results of the forward pass for each query.
  Scope& of_queries = keys() ? loop : scope;
  for (int n = 0; n < (keys() ? block_.per_x() : block_.per_y()); ++n) {
    const std::string at = keys() ? column_of(n) : row_of(n);
    of_queries.line("let query" + number(n) + " = min(" + at + ", " + u32_literal(s_.rows - 1) +
                    ");");
    of_queries.line("let lse" + number(n) + " = lse_at(p, query" + number(n) + ", 0u);");
    of_queries.line("let delta" + number(n) + " = delta_at(p, query" + number(n) + ", 0u);");
  }
  const std::int64_t depth_pitch = keys() ? column_pitch() : pitch(s_.depth);
  const LineTile columns_0 = lines(y0, "columns_0", block_.columns, s_.depth, depth_pitch);
  const LineTile columns_1 =
      keys() ? lines(y1, "columns_0", block_.columns, s_.width, depth_pitch)
             : lines(y1, "columns_1", block_.columns, s_.width, pitch(s_.width));
  if (keys()) {
    bring_columns(scope, loop, first, {columns_0});
    write_products_of_keys(loop, columns_1);
  } else {
    bring_columns(scope, loop, first, {columns_0, columns_1});
    write_products(loop, "s", "rows_0", "columns_0", s_.depth, pitch(s_.depth));
    write_products(loop, "dp", "rows_1", "columns_1", s_.width, pitch(s_.width));
  }
  write_scores(loop);
  each([&](int r, int c) {
    const std::string at = number(r) + "_" + number(c);
    loop.line("var p" + at + " = 0.0f;");
    loop.line("var ds" + at + " = 0.0f;");
    Scope live(&loop);
    const std::string of_query = number(keys() ? c : r);
    live.line("p" + at + " = exp(s" + at + " - lse" + of_query + ");");
    std::string dp = "dp" + at;
    if (has(AttentionInput::kKeep)) {
      live.line("let keep = keep_at(p, " + query(r, c) + ", " + key(r, c) + ");");
      dp = "keep * " + dp;
    }
    live.line("ds" + at + " = p" + at + " * (" + dp + " - delta" + of_query + ");");
    if (has(AttentionInput::kKeep)) live.line("p" + at + " *= keep;");
    loop.block("if (live" + at + ")", live);
    put_weight(loop, r, c, (keys() ? "p" : "ds") + at);
  });
  loop.line("workgroupBarrier();");
  if (keys()) write_gradients_of_values(loop, columns_0);
  write_accumulate(loop, "d0_", "columns_0", s_.depth, depth_pitch);
  if (backward()) write_sums_of_queries(loop);
  write_tiles(scope, first, loop);
  store_results(scope, "d0_", 0, s_.depth, scale());
  if (keys()) store_results(scope, "d1_", 1, s_.width, "");
}

// Calls visit(scope, n, v) for vector v of query n, of those for which the thread adds up dq. The
// scope declares `i`, the line of dq.
template <class Visit>
void AttentionWriter::each_query(Scope& scope, const Visit& visit) const {
  const bool spare = block_.columns < block_.ny;  // threads without a query
  const bool whole = !spare && s_.rows % block_.columns == 0;
  for (int n = 0; n < queries_each(); ++n) {
    Scope one(&scope), there(&one);
    one.line("let at = col_start + ty + " + u32_literal(n * block_.ny) + ";");
    there.line("let i = dq_start + at;");
    for (int v = 0; v < vectors_each(s_.depth); ++v) visit(there, n, v);
    const std::string ours = "if (at < " + u32_literal(s_.rows) +
                             (spare ? " && ty < " + u32_literal(block_.columns) : "") + ")";
    one.block(whole ? "" : ours, there);
    scope.block("", one);
  }
}

// Adds ds^T k to dq, for the tile's keys. Always the same thread has an element of dq.
void AttentionWriter::write_sums_of_queries(Scope& loop) {
  const int queries = queries_each(), vectors_of_depth = vectors_each(s_.depth);
  for (int n = 0; n < queries; ++n) {
    const std::string query = number(n), last = u32_literal(block_.columns - 1);
    loop.line("let column" + query + " = min(ty + " + u32_literal(n * block_.ny) + ", " + last +
              ");");
    for (int v = 0; v < vectors_of_depth; ++v)
      loop.line("var e" + query + "_" + number(v) + " = vec4<f32>();");
  }
  repeat(loop, "j", block_.rows, [&](Scope& step, const std::string& j) {
    for (int n = 0; n < queries; ++n) {
      const std::string column = "column" + number(n);
      step.line("let w" + number(n) + " = weights[" + j + " * " + u32_literal(weight_pitch()) +
                " + " + column + " / 4u][" + column + " % 4u];");
    }
    for (int v = 0; v < vectors_of_depth; ++v) {
      step.line("let k" + number(v) + " = rows_0[" + j + " * " + u32_literal(pitch(s_.depth)) +
                " + " + vector_of(v, s_.depth) + "];");
      for (int n = 0; n < queries; ++n) {
        step.line("e" + number(n) + "_" + number(v) + " += w" + number(n) + " * k" + number(v) +
                  ";");
      }
    }
  });
  const std::int64_t lines_of_dq = s_.dq_parts * s_.rows;
  s_.depth % 4 == 0 ? write_sum_of_four(2, lines_of_dq, s_.depth)
                    : write_sum(2, lines_of_dq, s_.depth);
  const std::string by = " * " + scale();
  each_query(loop, [&](Scope& to, int n, int v) {
    put(to, "add2", "i", v, s_.depth, "e" + number(n) + "_" + number(v), by);
  });
}

// Loops over the keys of a part of dq.
void AttentionWriter::write_parts(Scope& scope) {
  const std::int64_t parts = s_.dq_parts, rounds = s_.rounds();
  const std::int64_t of_chunk = kKeysOfPart / block_.rows;
  const std::int64_t tiles =
      rounds > 1 ? rounds * of_chunk : std::min(of_chunk, ceil_div(rows(), block_.rows));
  const std::int64_t lines_of_dq = parts * s_.rows;
  s_.depth % 4 == 0 ? write_result_of_four(2, lines_of_dq, s_.depth)
                    : write_result(2, lines_of_dq, s_.depth);
  scope.line("let dq_start = dq_part * " + u32_literal(s_.rows) + ";");
  Scope clear(&scope);
  each_query(clear, [&](Scope& to, int, int v) {
    put(to, "store2", "i", v, s_.depth, "vec4<f32>()", "");
  });
  scope.block("for (var col_start = 0u; col_start < " + u32_literal(s_.rows) +
                  "; col_start += " + u32_literal(block_.columns) + ")",
              clear);
  Scope tile(&scope), there(&tile);
  tile.line("let round = tile / " + u32_literal(of_chunk) + ";");
  tile.line("let chunk = round * " + u32_literal(parts) + " + select(dq_part, " +
            u32_literal(parts - 1) + " - dq_part, round % 2u == 1u);");
  tile.line("let row_start = chunk * " + u32_literal(kKeysOfPart) + " + tile % " +
            u32_literal(of_chunk) + " * " + u32_literal(block_.rows) + ";");
  there.line("workgroupBarrier();");  // after the last reads of the previous tile
  write_backward(there);
  tile.block("if (row_start < " + u32_literal(rows()) + ")", there);
  scope.block("for (var tile = 0u; tile < " + u32_literal(tiles) + "; tile++)", tile);
}

Shader AttentionWriter::write() {
  write_inputs(backward());
  // Workgroups of a head.
  const std::int64_t down = backward() ? s_.dq_parts : ceil_div(rows(), block_.rows);
  const std::int64_t groups = window_.count * down;
  module_.shared("weights", "vec4<f32>", block_.rows * weight_pitch(), 16);
  Scope scope;
  open_rows(scope, Tile{1, block_.threads(), true}, groups, "unit");
  scope.line("let p = unit / " + u32_literal(down) + " + " + u32_literal(window_.first) + ";");
  if (backward()) {
    scope.line("let dq_part = unit % " + u32_literal(down) + ";");
  } else {
    // The last rows of a causal mask take longest, so they run first.
    scope.line("let row_start = (" + u32_literal(down - 1) + " - unit % " + u32_literal(down) +
               ") * " + u32_literal(block_.rows) + ";");
  }
  if (block_.pairs()) {
    const std::string across = u32_literal(block_.nx / 8);
    scope.line("let subgroup = local / 32u;");
    scope.line("let tx = subgroup % " + across + " * 8u + local / 2u % 8u;");
    scope.line("let ty = subgroup / " + across + " * 4u + local / 16u % 2u * 2u + local % 2u;");
  } else {
    scope.line("let tx = local % " + u32_literal(block_.nx) + ";");
    scope.line("let ty = local / " + u32_literal(block_.nx) + ";");
  }
  if (forward()) {
    write_forward(scope);
  } else if (backward()) {
    write_parts(scope);
  } else {
    write_backward(scope);
  }
  return make_shader(module_, scope, block_.threads(), groups);
}

}  // namespace

Shader write_attention(const Launch& launch, const WgslOptions& options) {
  Shader shader;
  if (write_attention_of_few_queries(launch, options, shader) ||
      write_attention_by_subgroup_matrix(launch, options, shader))
    return shader;
  return AttentionWriter(launch, options).write();
}

}  // namespace tensorgrad::wgsl
