// SPDX-License-Identifier: MIT
// Scatter: out[p,v,q] = epilogue(sum over i with index[p,i,q] == v of src[p,i,q]). Every result
// gathers its own addends, in order, so no atomics are needed and the sum is always the same.
#include <algorithm>

#include "base/check.h"
#include "kernel/wgsl_parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kFullGpu = 1 << 16;  // threads

Tile scatter_tile(const Launch& launch, std::int64_t results, const WgslOptions& options) {
  const int most = std::min(256, floor_pow2(options.max_threads));
  Tile tile;
  // Neighbouring results share a p and an index, and read neighbouring sources.
  tile.lanes_first = launch.post < 8;
  tile.lanes = std::min(ceil_pow2(ceil_div(launch.count, 8)),
                        floor_pow2(std::max<std::int64_t>(1, kFullGpu / results)));
  if (options.lanes > 0) tile.lanes = options.lanes;
  tile.lanes = std::clamp(tile.lanes, 1, most);
  tile.rows = std::max(1, (tile.lanes >= 64 ? tile.lanes : std::min(64, most)) / tile.lanes);
  return tile;
}

void write_source(Module& module, const std::string& name, const std::string& type,
                  const ScalarProgram& program, const Domain& domain) {
  CHECK(!program.instrs.empty());
  ProgramWriter writer(module, program, domain, domain);
  Scope scope;
  const int last = static_cast<int>(program.instrs.size()) - 1;
  writer.write_all(scope, writer.needed({last}));
  scope.line("return " + writer.value(last) + ";");
  module.function(
      name, "fn " + name + "(p: u32, i: u32, q: u32) -> " + type + " {\n" + scope.text() + "}\n");
}

void write_finish(Module& module, const Launch& launch) {
  const Domain domain = {{"p", launch.pre}, {"v", launch.size}, {"q", launch.post}};
  ProgramWriter writer(module, launch.body, domain, domain, "acc");
  Scope scope;
  std::vector<int> roots;
  for (const Store& store : launch.stores) roots.push_back(store.value);
  writer.write_all(scope, writer.needed(roots));
  for (const Store& store : launch.stores) writer.store(scope, store);
  module.function("finish",
                  "fn finish(p: u32, v: u32, q: u32, acc: f32) {\n" + scope.text() + "}\n");
}

}  // namespace

WgslKernel write_scatter(const Launch& launch, const WgslOptions& options) {
  const std::int64_t results = launch.pre * launch.size * launch.post;
  const Domain sources = {{"p", launch.pre}, {"i", launch.count}, {"q", launch.post}};
  const Tile tile = scatter_tile(launch, results, options);
  Module module(launch);
  write_source(module, "index_at", "i32", launch.scatter_index, sources);
  write_source(module, "source_at", "f32", launch.scatter_source, sources);
  write_finish(module, launch);

  const Domain domain = {{"result", results}};
  Scope scope;
  const std::string live = open_rows(scope, tile, results, "result");
  scope.line("let q = " + coordinate(scope, domain, 1, launch.post) + ";");
  scope.line("let v = " + coordinate(scope, domain, launch.post, launch.size) + ";");
  scope.line("let p = " + coordinate(scope, domain, launch.post * launch.size, launch.pre) + ";");
  const Partial sum{"acc", DType::kF32, ReduceOp::kSum};
  declare_partial(scope, module, sum);
  Scope loop(scope);
  loop.line("if (index_at(p, i, q) == i32(v)) { acc += source_at(p, i, q); }");
  scope.block(std::string("for (var i = ") + (tile.lanes == 1 ? "0u" : "lane") + "; i < " +
                  u32_literal(launch.count) + "; i += " + u32_literal(tile.lanes) + ")",
              loop);
  combine_lanes(scope, module, tile, {sum}, options);
  const std::string guard =
      tile.lanes == 1 ? "" : "lane == 0u" + (live.empty() ? "" : " && " + live);
  scope.line(guard.empty() ? "finish(p, v, q, acc);"
                           : "if (" + guard + ") { finish(p, v, q, acc); }");

  const Grid grid = fold_groups(ceil_div(results, tile.rows));
  WgslKernel kernel;
  kernel.groups_x = grid.x;
  kernel.groups_y = grid.y;
  kernel.threads = tile.threads();
  kernel.body = module.declarations() + main_function(scope, tile.threads());
  kernel.workgroup_bytes = module.shared_bytes();
  kernel.uses_hyper = module.uses_hyper();
  return kernel;
}

}  // namespace tensorgrad::wgsl
