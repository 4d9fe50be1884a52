// SPDX-License-Identifier: MIT
// Scatter:
//   out[p,v,q] = epilogue(sum of src[p,i,q] over i with index[p,i,q] == v)
// Every result gathers its own addends in order, so that the sum is deterministic. Two variants:
// - by lanes: several threads share one result and read every index of its line.
// - in blocks: a workgroup has some values v and columns q. It reads 256 indices at a time, marks
//   those in its range, and adds only these. Indices read per result: count / (values * columns of
//   a block). The marks are bits, which are set in any order and read in the order of i.
#include <algorithm>
#include <cmath>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

// Columns of a block, so that neighboring threads read contiguous elements; and sums (8 KiB).
constexpr int kBlockColumns = 64;
constexpr int kBlockSums = 2048;

Tile scatter_tile(const ScatterLaunch& scatter, std::int64_t results, const WgslOptions& options) {
  const int most = std::min(256, floor_pow2(options.max_threads));
  Tile tile;
  // Neighboring results share p and an index, and read contiguous sources.
  tile.lanes_first = scatter.post < 8;
  tile.lanes = std::min(ceil_pow2(ceil_div(scatter.count, 8)),
                        floor_pow2(std::max<std::int64_t>(1, options.gpu.full_threads / results)));
  if (options.lanes > 0) tile.lanes = options.lanes;
  tile.lanes = std::clamp(tile.lanes, 1, most);
  tile.rows = std::max(1, group_threads(std::max(tile.lanes, 64), options) / tile.lanes);
  return tile;
}

// Returns the type of the sums.
DType scatter_dtype(const ScatterLaunch& scatter) { return scatter.source.instrs.back().dtype; }

// A workgroup's share of the results in the variant of blocks: `values` * `columns` sums in
// workgroup memory. One thread updates each sum.
struct ScatterBlock {
  int threads = 256, values = 1, columns = 1;
  bool repeats = false;  // one index serves all columns; otherwise a block has one column

  [[nodiscard]] int rows_at_once() const { return threads / columns; }
  // Blocks along q, and in all.
  [[nodiscard]] std::int64_t across(const Window& window) const {
    return ceil_div(window.columns, columns);
  }
  [[nodiscard]] std::int64_t count(const Window& window) const {
    return window.outer_count * ceil_div(window.count, values) * across(window);
  }
};

ScatterBlock scatter_block(const ScatterLaunch& scatter, const Window& window,
                           const WgslOptions& options) {
  ScatterBlock block;
  block.threads = group_threads(256, options);
  block.repeats = index_repeats(scatter);
  if (block.repeats) {
    block.columns = std::min({ceil_pow2(scatter.post), kBlockColumns, block.threads});
  }
  const int room =
      static_cast<int>(std::min<std::int64_t>(kBlockSums, options.max_workgroup_bytes / 8));
  block.values = std::max(1, std::min(ceil_pow2(window.count), floor_pow2(room / block.columns)));
  // Use fewer values per block if the GPU would be idle otherwise, but enough for every thread.
  while (block.values > block.rows_at_once() &&
         block.count(window) < options.gpu.full_scatter_groups) {
    block.values /= 2;
  }
  return block;
}

// Returns true if blocks are faster. Estimates the steps of a thread; an index and an addend are
// one step each.
bool blocks_pay(const ScatterLaunch& scatter, const Window& window, const Tile& tile,
                const ScatterBlock& block, const GpuModel& gpu) {
  constexpr double kRound = 8;  // barriers and marks per round of indices
  const auto count = static_cast<double>(scatter.count);
  const auto results = static_cast<double>(window.rows() * window.columns);
  const auto full = static_cast<double>(gpu.full_threads);
  const double waves = std::max(1.0, results * tile.lanes / full);
  const double by_lanes = waves * count / tile.lanes;
  const double block_waves =
      std::max(1.0, static_cast<double>(block.count(window) * block.threads) / full);
  const double own =
      std::min(1.0, static_cast<double>(block.values) / static_cast<double>(scatter.size));
  const double rounds = std::ceil(count / block.threads);
  return block_waves * (rounds * kRound + 2 * own * count) < by_lanes;
}

// One round: processes the indices from `first` on. `hits` has two halves that alternate, so that
// the unused one can be cleared.
void write_round(Scope& scope, const ScatterLaunch& scatter, const ScatterBlock& block) {
  const std::string words = u32_literal(std::max(1, block.threads / 32));
  const std::string rows = u32_literal(block.rows_at_once());
  scope.line("let i = first + local;");
  Scope look(&scope);
  look.line("let at = u32(index_at(p, i, " + std::string(block.repeats ? "0u" : "q") + ")) - v0;");
  Scope note(&look);
  note.line("places[local] = at;");
  note.line("atomicOr(&hits[side + local / 32u], 1u << (local % 32u));");
  look.block("if (at < " + u32_literal(block.values) + ")", note);
  scope.block("if (i < " + u32_literal(scatter.count) + ")", look);
  scope.line("workgroupBarrier();");
  scope.line("if (local < " + words + ") { atomicStore(&hits[" + words +
             " - side + local], 0u); }");
  Scope word(&scope), bit(&word);
  word.line("var bits = atomicLoad(&hits[side + w]);");
  bit.line("let hit = w * 32u + firstTrailingBit(bits);");
  bit.line("bits = bits & (bits - 1u);");
  bit.line("let at = places[hit];");
  std::string mine = block.rows_at_once() == 1 ? "" : "at % " + rows + " == row";
  if (scatter.post % block.columns != 0) {
    mine += std::string(mine.empty() ? "" : " && ") + "q < " + u32_literal(scatter.post);
  }
  bit.line((mine.empty() ? "" : "if (" + mine + ") { ") + "sums[at * " +
           u32_literal(block.columns) + " + column] += source_at(p, first + hit, q);" +
           (mine.empty() ? "" : " }"));
  word.block("while (bits != 0u)", bit);
  scope.block("for (var w = 0u; w < " + words + "; w++)", word);
  scope.line("workgroupBarrier();");
  scope.line("side = " + words + " - side;");
}

Shader write_blocks(const ScatterLaunch& scatter, const Window& window, Module& module,
                    const ScatterBlock& block) {
  const std::int64_t blocks = block.count(window);
  const std::int64_t words = std::max(1, block.threads / 32);
  const std::string columns = u32_literal(block.columns), threads = u32_literal(block.threads);
  const std::int64_t sums = std::int64_t{block.values} * block.columns;
  const std::string type(register_type(scatter_dtype(scatter)));
  module.shared("sums", type, sums, 4);
  module.shared("places", "u32", block.threads, 4);
  module.shared("hits", "atomic<u32>", 2 * words, 4);
  const Domain domain = {{"block", blocks}};
  const std::int64_t across = block.across(window), down = ceil_div(window.count, block.values);
  Scope scope;
  open_rows(scope, Tile{1, block.threads, true}, blocks, "block");
  scope.line("let column = local % " + columns + ";");
  scope.line("let row = local / " + columns + ";");
  scope.line("let q = " + coordinate(scope, domain, 1, across) + " * " + columns + " + column;");
  scope.line("let v0 = " + coordinate(scope, domain, across, down) + " * " +
             u32_literal(block.values) + " + " + u32_literal(window.first) + ";");
  scope.line("let p = " + coordinate(scope, domain, across * down, window.outer_count) + " + " +
             u32_literal(window.outer_first) + ";");
  scope.line("for (var e = local; e < " + u32_literal(sums) + "; e += " + threads +
             ") { sums[e] = " + type + "(0); }");
  scope.line("if (local < " + u32_literal(2 * words) + ") { atomicStore(&hits[local], 0u); }");
  scope.line("workgroupBarrier();");
  scope.line("var side = 0u;");
  Scope round(&scope);
  write_round(round, scatter, block);
  scope.block(
      "for (var first = 0u; first < " + u32_literal(scatter.count) + "; first += " + threads + ")",
      round);
  Scope last(&scope);
  std::string inside;
  if (window.count % block.values != 0) inside = "v0 + at < " + u32_literal(window.end());
  if (scatter.post % block.columns != 0) {
    inside += std::string(inside.empty() ? "" : " && ") + "q < " + u32_literal(scatter.post);
  }
  const std::string finish = "finish(p, v0 + at, q, sums[at * " + columns + " + column]);";
  last.line(inside.empty() ? finish : "if (" + inside + ") { " + finish + " }");
  scope.block("for (var at = row; at < " + u32_literal(block.values) +
                  "; at += " + u32_literal(block.rows_at_once()) + ")",
              last);
  return make_shader(module, scope, block.threads, blocks);
}

Shader write_by_lanes(const ScatterLaunch& scatter, const Window& window, Module& module,
                      const Tile& tile, const WgslOptions& options) {
  const std::int64_t results = window.rows() * scatter.post;
  const Domain domain = {{"result", scatter.pre * scatter.size * scatter.post}};
  Scope scope;
  const std::string live =
      open_rows(scope, tile, results, "result", window.first_row() * scatter.post);
  scope.line("let q = " + coordinate(scope, domain, 1, scatter.post) + ";");
  scope.line("let v = " + coordinate(scope, domain, scatter.post, scatter.size) + ";");
  scope.line("let p = " + coordinate(scope, domain, scatter.post * scatter.size, scatter.pre) +
             ";");
  const Partial sum{"acc", scatter_dtype(scatter), ReduceOp::kSum};
  declare_partial(scope, module, sum);
  Scope loop(&scope);
  loop.line("if (index_at(p, i, q) == i32(v)) { acc += source_at(p, i, q); }");
  scope.block(std::string("for (var i = ") + (tile.lanes == 1 ? "0u" : "lane") + "; i < " +
                  u32_literal(scatter.count) + "; i += " + u32_literal(tile.lanes) + ")",
              loop);
  combine_lanes(scope, module, tile, {sum}, options);
  const std::string guard =
      tile.lanes == 1 ? "" : "lane == 0u" + (live.empty() ? "" : " && " + live);
  scope.line(guard.empty() ? "finish(p, v, q, acc);"
                           : "if (" + guard + ") { finish(p, v, q, acc); }");
  return make_shader(module, scope, tile.threads(), ceil_div(results, tile.rows));
}

}  // namespace

Shader write_kind(const Launch& launch, const ScatterLaunch& scatter, const WgslOptions& options) {
  const Window window = window_of(launch);
  const Domain sources = {{"p", scatter.pre}, {"i", scatter.count}, {"q", scatter.post}};
  Module module(launch);
  const Domain places = {{"p", scatter.pre}, {"i", scatter.size}, {"q", scatter.post}};
  write_source(module, "index_at", scatter.index, sources);
  write_source(module, "source_at", scatter.source, sources);
  write_finish(module, launch, places, scatter_dtype(scatter));
  const Tile tile = scatter_tile(scatter, window.rows() * scatter.post, options);
  const ScatterBlock block = scatter_block(scatter, window, options);
  const bool in_blocks = options.scatter_variant == ScatterVariant::kBlocks ||
                         (options.scatter_variant == ScatterVariant::kAuto && options.lanes == 0 &&
                          blocks_pay(scatter, window, tile, block, options.gpu));
  return in_blocks ? write_blocks(scatter, window, module, block)
                   : write_by_lanes(scatter, window, module, tile, options);
}

}  // namespace tensorgrad::wgsl
