// SPDX-License-Identifier: MIT
// Runs the passes in order, each followed by a check, a dump and timing.
#include "compile/compile.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/check.h"
#include "base/env.h"
#include "base/numbers.h"
#include "base/visits.h"
#include "codegen/wgsl/writer.h"
#include "compile/debug/dump.h"
#include "compile/gradients.h"
#include "ir/max_elements.h"
#include "ops/attention.h"
#include "passes/autodiff.h"
#include "passes/decompose.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/limit_views.h"
#include "passes/rematerialize.h"
#include "passes/simplify.h"
#include "passes/split_k.h"
#include "passes/split_k_to_binding_limit.h"
#include "passes/split_reduce.h"
#include "passes/split_scatter.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Returns the passes named by TENSORGRAD_SKIP.
std::vector<std::string> skipped_passes() {
  std::vector<std::string> names = split_list(env("TENSORGRAD_SKIP"));
  const std::vector<std::string> known = skippable_names();
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    refuse_env("TENSORGRAD_SKIP", name, "passes among " + all);
  }
  return names;
}

// Runs passes one by one and records times, costs, dumps and progress.
class PassRunner {
 public:
  explicit PassRunner(const CompileRequest& request)
      : name_(request.name),
        skip_(skipped_passes()),
        progress_(request.progress),
        folder(DumpFolder::open(request.name)) {
    skip_.insert(skip_.end(), request.skip.begin(), request.skip.end());
  }

  [[nodiscard]] bool skipped(const std::string& pass) const {
    return std::find(skip_.begin(), skip_.end(), pass) != skip_.end();
  }

  [[nodiscard]] double milliseconds() const { return milliseconds_since(start_); }

  void run(const std::string& pass, Graph& graph, const std::function<void(Graph&)>& body,
           bool needed = false) {
    if (!needed && skipped(pass)) return;
    const bool shown = debug_level(pass) >= 3;
    const std::uint64_t before = shown ? hash(graph) : 0;
    timed(pass, [&] {
      body(graph);
      verify(graph);
      return graph.nodes.size();
    });
    if (shown) {
      debug_print("-- " + pass + (hash(graph) != before ? "\n" + print(graph) : " (unchanged)"));
    }
    if (folder) folder->graph(pass, graph);
  }

  // `body` returns the number of nodes or launches after the pass.
  void timed(const std::string& pass, const std::function<std::size_t()>& body) {
    const double begin = milliseconds();
    const std::int64_t before = Visits::count();
    std::size_t left = 0;
    pass_ = pass;
    try {
      check_progress();
      left = body();
    } catch (Error& error) {
      error.add_context("while compiling " + name_ + ", in the pass " + pass);
      throw;
    }
    times.push_back({pass, begin, milliseconds() - begin});
    costs.push_back({Visits::count() - before, left});
  }

  void check_progress() const {
    if (!progress_) return;
    if (!progress_({pass_, milliseconds(), Visits::count() - first_visit_}))
      throw AbortedError("compile: stopped by the option progress");
  }

  [[nodiscard]] bool watched() const { return static_cast<bool>(progress_); }

 private:
  std::string name_;
  std::vector<std::string> skip_;
  CompileWatcher progress_;
  std::string pass_;
  Clock::time_point start_ = Clock::now();
  std::int64_t first_visit_ = Visits::count();

 public:
  std::vector<PassProfile> times;
  std::vector<PassCost> costs;  // of each pass
  std::shared_ptr<DumpFolder> folder;
};

int most_bindings(const Program& program) {
  std::size_t most = 0;
  for (const Launch& launch : program.launches) most = std::max(most, launch.bindings.size());
  return static_cast<int>(most);
}

void fuse_and_plan(PassRunner& passes, const FuseOptions& fusing, const PlanOptions& planning,
                   const Graph& graph, Compiled& result) {
  passes.timed("fuse", [&] {
    result.notes.clear();
    result.fused = fuse(graph, fusing, &result.notes);
    verify(result.fused);
    return result.fused.nodes.size();
  });
  if (passes.folder) passes.folder->graph("fuse", result.fused);
  if (debug_level("fuse") >= 3) debug_print("-- fuse\n" + print(result.fused));
  passes.timed("plan", [&] {
    result.program = plan(result.fused, planning);
    verify(result.program);
    return result.program.launches.size();
  });
}

void report(const Compiled& compiled, const std::string& name) {
  for (const Launch& launch : compiled.program.launches) {
    if (debug_level(launch.name) >= 4) debug_print(emit_wgsl(launch));
  }
  if (debug_level() < 1) return;
  std::string text = "compile " + name + ": " + std::to_string(compiled.graph.nodes.size()) +
                     " nodes, " + std::to_string(count_dispatches(compiled.program)) +
                     " launches, " + std::to_string(compiled.program.buffers.size()) +
                     " buffers, " + std::to_string(compiled.program.peak_bytes) + " bytes;";
  for (const PassProfile& pass : compiled.passes)
    text += " " + pass.name + " " + number_text(pass.milliseconds) + " ms";
  debug_print(text);
  if (debug_level() >= 2) debug_print(print(compiled.program));
}

}  // namespace

std::vector<ValueId> gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt) {
  return autodiff(graph, loss, wrt);
}

std::span<const GraphPass> graph_passes() {
  static const std::vector<GraphPass> passes = {
      // Decomposes ops that have their own gradients. The passes below do not support them.
      {"expand", expand, true},
      // Unused nodes first, so that the following passes have less to process.
      {"dce", dce},
      // Simplifying creates foldable nodes (it moves arithmetic to scalars), and folding creates
      // simplifiable ones (a product with a literal 1). Two rounds are enough for gradients.
      {"simplify", simplify},
      {"fold", fold},
      {"simplify", simplify},
      {"fold", fold},
      // After simplification, so that equal results of different expressions are merged.
      {"cse", cse},
      {"dce", dce},
  };
  return passes;
}

std::vector<GraphPass> late_passes(std::int64_t max_binding_bytes, bool split_rows,
                                   const RematerializeOptions& rematerializing, bool split_all,
                                   const GpuModel& gpu) {
  std::vector<GraphPass> passes;
  if (max_binding_bytes > 0) {
    passes.push_back({"split_k_to_binding_limit", [=](const Graph& g) {
                        return split_k_to_binding_limit(g, max_binding_bytes, split_all);
                      }});
  }
  if (split_rows) {
    passes.push_back({"split_k", [=](const Graph& g) { return split_k(g, split_all, gpu); }});
  }
  if (split_rows || split_all) {
    passes.push_back(
        {"split_scatter", [=](const Graph& g) { return split_scatter(g, split_all, gpu); }});
    passes.push_back({"split_reduce", [=](const Graph& g) {
                        return split_reduce(g, max_binding_bytes, split_all, gpu);
                      }});
  }
  passes.push_back(
      {"rematerialize", [=](const Graph& g) { return rematerialize(g, rematerializing); }});
  return passes;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const GraphPass& pass : graph_passes()) names.push_back(pass.name);
  for (const GraphPass& pass : late_passes(1, true)) names.push_back(pass.name);
  names.emplace_back("fuse");
  return names;
}

std::vector<std::string> skippable_names() {
  std::vector<std::string> names;
  for (const std::string& name : pass_names()) {
    // Passes that others rely on (expand) cannot be skipped.
    const auto needed = [&](const GraphPass& pass) { return pass.needed && pass.name == name; };
    if (std::any_of(graph_passes().begin(), graph_passes().end(), needed)) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  names.emplace_back("row_epilogue");
  names.emplace_back("row_operands");
  names.emplace_back("fused_sequences");
  return names;
}

GraphPass find_pass(const std::string& name, int max_bindings, std::int64_t max_binding_bytes) {
  if (name == "fuse") {
    return {name, [=](const Graph& graph) { return fuse(graph, {.max_bindings = max_bindings}); }};
  }
  std::vector<GraphPass> passes = late_passes(max_binding_bytes, true);
  passes.insert(passes.end(), graph_passes().begin(), graph_passes().end());
  std::set<std::string> names = {"fuse"};
  for (const GraphPass& pass : passes) {
    if (pass.name == name) return pass;
    names.insert(pass.name);
  }
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  throw UserError("unknown pass '" + name + "'; available: " + known);
}

void compile_for(const DeviceInfo& device, CompileRequest& request) {
  const std::int64_t elements = request.plan.params_elements;
  if (elements > kMaxTensorElements && device.computes) {
    throw UserError("compile: the model has " + std::to_string(elements) +
                    " parameters, a device takes at most " + std::to_string(kMaxTensorElements) +
                    "; use a smaller model, or trace() to inspect this one");
  }
  request.split_rows = !device.cuts_rows;
  request.stores_attention = device.slow_barriers;
  request.fusing.max_bindings = device.limits.max_storage_bindings;
  request.plan.max_bindings = device.limits.max_storage_bindings;
  request.plan.max_binding_bytes = device.limits.max_binding_bytes;
  request.plan.any_size = !device.computes && device.limits.max_buffer_bytes == kAnySize;
  request.plan.max_buffer_bytes = device.limits.max_buffer_bytes;
  request.plan.stores_f16 = device.stores_f16;
  // Row epilogues, row operands and fused sequences need many barriers.
  const bool rows = device.joins_launches && !device.slow_barriers &&
                    device.limits.max_workgroup_bytes >= kRowEpilogueBytes;
  request.fusing.row_epilogue_columns = rows ? kMaxRowColumns : 0;
  request.fusing.row_operands = rows;
  request.fusing.concat_operands = device.joins_launches;
  request.fusing.gpu = device.gpu;
  if (device.joins_launches) request.fusing.cached_elements = device.gpu.cached_bytes / 4;
  request.plan.gpu = device.gpu;
  request.plan.join_bindings = device.joins_launches ? device.limits.max_storage_bindings : 0;
  request.plan.fused_sequences = rows;
}

namespace {

// Attention with more weights than this is not decomposed.
constexpr std::int64_t kMaxAttentionWeights = 1 << 24;

Graph store_attention(const Graph& graph) {
  const auto attends = [](const Node& node) { return is_attention(*node.op); };
  for (const Node& node : graph.nodes) {
    if (!attends(node)) continue;
    const Shape &q = graph[node.inputs[0]].type.shape, &k = graph[node.inputs[1]].type.shape;
    if (numel(q) / q.back() * k[k.size() - 2] > kMaxAttentionWeights) return graph;
  }
  return decompose_where(graph, attends);
}

void differentiate(Graph& graph, const CompileRequest& request) {
  const std::vector<ValueId> grads = autodiff(graph, request.loss, request.wrt, request.loss_scale);
  request.extend(graph, grads);
}

}  // namespace

Graph differentiated(CompileRequest request) {
  Graph graph = std::move(request.graph);
  if (request.loss != kNoValue) differentiate(graph, request);
  verify(graph);
  return graph;
}

Compiled compile_graph(CompileRequest request) {
  const MaxElements limit(request.plan.params_elements);
  PassRunner passes(request);
  const VisitWatch watch(passes.watched() ? std::function<void()>([&] { passes.check_progress(); })
                                          : nullptr);
  Compiled result;
  Graph graph = std::move(request.graph);
  if (passes.folder) passes.folder->graph("trace", graph);
  if (request.loss != kNoValue) {
    passes.run("autodiff", graph, [&](Graph& g) { differentiate(g, request); });
  }
  const auto run = [&](const GraphPass& pass) {
    passes.run(pass.name, graph, [&](Graph& g) { g = pass.run(g); }, pass.needed);
  };
  if (request.stores_attention) {
    passes.run("store_attention", graph, [&](Graph& g) { g = store_attention(g); }, true);
  }
  for (const GraphPass& pass : graph_passes()) run(pass);
  result.graph = graph;
  passes.timed("limit_views", [&] {
    graph = limit_views(graph);
    return graph.nodes.size();
  });
  // result.graph, which is reported and interpreted, stays as the user wrote it. These passes split
  // it.
  for (const GraphPass& pass :
       late_passes(request.plan.max_binding_bytes, request.split_rows, request.rematerializing,
                   request.split_all, request.fusing.gpu)) {
    run(pass);
  }
  // Last, because it depends on who reads what, which the passes above change. If skipped, it still
  // runs, without grouping, because planning relies on the copies it adds.
  const std::int64_t most_bytes = request.plan.max_binding_bytes;
  const std::int64_t arena_bytes =
      request.plan.params_elements * static_cast<std::int64_t>(kWordBytes);
  FuseOptions fusing = request.fusing;
  fusing.enabled = !passes.skipped("fuse");
  if (passes.skipped("row_epilogue")) fusing.row_epilogue_columns = 0;
  fusing.row_operands &= !passes.skipped("row_operands");
  fusing.arena_fits_binding = most_bytes == 0 || arena_bytes <= most_bytes;
  for (const ParameterBucket& bucket : request.plan.buckets) {
    fusing.bucket_ends.push_back(bucket.end());
    const std::int64_t bytes = bucket.elements * static_cast<std::int64_t>(kWordBytes);
    fusing.arena_fits_binding &= most_bytes == 0 || bytes <= most_bytes;
  }
  request.plan.fused_sequences &= !passes.skipped("fused_sequences") && !request.in_parts;
  fuse_and_plan(passes, fusing, request.plan, graph, result);
  if (most_bindings(result.program) > fusing.max_bindings) {
    fusing.assume_in_place = false;
    fuse_and_plan(passes, fusing, request.plan, graph, result);
    CHECK(most_bindings(result.program) <= fusing.max_bindings, "a launch binds too many buffers");
  }
  result.passes = passes.times;
  result.costs = passes.costs;
  result.milliseconds = passes.milliseconds();
  if (passes.folder)
    passes.folder->program(result.fused, request.plan, result.program, passes.times);
  result.dump = passes.folder;
  report(result, request.name);
  return result;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
