// SPDX-License-Identifier: MIT
// The passes in order, with a dump, a check and the time after each.
#include "compile/compile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/env.h"
#include "compile/gradients.h"
#include "kernel/wgsl_writer.h"
#include "passes/autodiff.h"
#include "passes/fuse.h"
#include "passes/simplify.h"
#include "passes/split_product.h"
#include "passes/split_reduce.h"

namespace tensorgrad {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Runs passes one by one and keeps what people want to see of them.
class PassRunner {
 public:
  explicit PassRunner(const std::string& name)
      : name_(name), skip_(split_list(env("TENSORGRAD_SKIP"))) {
    const std::string folder = env("TENSORGRAD_DUMP");
    if (folder.empty()) return;
    static std::atomic<int> compiles{0};
    folder_ = std::filesystem::path(folder) / (std::to_string(compiles++) + "_" + name_);
    std::filesystem::create_directories(folder_ / "kernels");
  }

  [[nodiscard]] bool skipped(const std::string& pass) const {
    return std::find(skip_.begin(), skip_.end(), pass) != skip_.end();
  }

  void run(const std::string& pass, Graph& graph, const std::function<void(Graph&)>& body) {
    if (skipped(pass)) return;
    const std::uint64_t before = hash(graph);
    const auto start = Clock::now();
    try {
      body(graph);
    } catch (Error& error) {
      error.add_context("while compiling " + name_ + ", in the pass " + pass);
      throw;
    }
    times.emplace_back(pass, milliseconds_since(start));
    verify(graph);
    if (debug_level(pass) >= 3) {
      const bool changed = hash(graph) != before || pass == "fuse";
      debug_print("-- " + pass + (changed ? "\n" + print(graph) : " (unchanged)"));
    }
    dump(pass, graph);
  }

  void dump(const std::string& pass, const Graph& graph) {
    if (folder_.empty()) return;
    const std::string number = std::to_string(dumped_++);
    write((number.size() < 2 ? "0" : "") + number + "_" + pass + ".ir", print(graph));
  }

  void dump(const Program& program) {
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const Launch& launch = program.launches[i];
      if (folder_.empty() && debug_level(launch.name) < 4) continue;
      const std::string text = emit_wgsl(launch);
      if (debug_level(launch.name) >= 4) debug_print(text);
      std::string number = std::to_string(i);
      number.insert(0, 3 - std::min<std::size_t>(3, number.size()), '0');
      if (!folder_.empty()) write("kernels/" + number + "_" + launch.name + ".wgsl", text);
    }
    if (!folder_.empty()) write("99_plan.txt", print(program));
  }

  std::vector<std::pair<std::string, double>> times;

 private:
  void write(const std::string& file, const std::string& text) const {
    std::ofstream out(folder_ / file);
    out << text;
  }

  std::string name_;
  std::vector<std::string> skip_;
  std::filesystem::path folder_;
  int dumped_ = 0;
};

int most_bindings(const Program& program) {
  std::size_t most = 0;
  for (const Launch& launch : program.launches) most = std::max(most, launch.bindings.size());
  return static_cast<int>(most);
}

void fuse_and_plan(PassRunner& passes, const FuseOptions& fusing, const PlanOptions& planning,
                   const Graph& graph, Compiled& result) {
  const auto fuse_start = Clock::now();
  result.fused = fuse(graph, fusing);
  passes.times.emplace_back("fuse", milliseconds_since(fuse_start));
  verify(result.fused);
  passes.dump("fuse", result.fused);
  if (debug_level("fuse") >= 3) debug_print("-- fuse\n" + print(result.fused));
  const auto plan_start = Clock::now();
  result.program = plan(result.fused, planning);
  passes.times.emplace_back("plan", milliseconds_since(plan_start));
}

void report(const Compiled& compiled, const std::string& name) {
  if (debug_level() < 1) return;
  std::string text = "compile " + name + ": " + std::to_string(compiled.graph.nodes.size()) +
                     " nodes, " + std::to_string(compiled.program.launches.size()) + " launches, " +
                     std::to_string(compiled.program.buffers.size()) + " buffers, " +
                     std::to_string(compiled.program.peak_bytes) + " bytes;";
  for (const auto& [pass, ms] : compiled.passes)
    text += " " + pass + " " + std::to_string(ms) + " ms";
  debug_print(text);
  if (debug_level() >= 2) debug_print(print(compiled.program));
}

}  // namespace

std::vector<ValueId> gradients(Graph& graph, ValueId loss, std::span<const ValueId> wrt) {
  return autodiff(graph, loss, wrt);
}

Compiled compile_graph(CompileRequest request) {
  const auto start = Clock::now();
  PassRunner passes(request.name);
  Compiled result;
  Graph graph = std::move(request.graph);
  passes.dump("trace", graph);
  if (request.loss != kNoValue) {
    passes.run("autodiff", graph, [&](Graph& g) {
      const std::vector<ValueId> grads = autodiff(g, request.loss, request.wrt);
      request.extend(g, grads);
    });
  }
  // Unused nodes first: the others then have less to look at.
  passes.run("dce", graph, [](Graph& g) { g = dce(g); });
  // Simplify makes foldable nodes (it moves arithmetic to scalars), folding makes simplifiable ones
  // (a product with a literal 1): twice is enough for what gradients leave behind.
  for (int round = 0; round < 2; ++round) {
    passes.run("simplify", graph, [](Graph& g) { g = simplify(g); });
    passes.run("fold", graph, [](Graph& g) { g = fold(g); });
  }
  // After the algebra, so that equal results of different ways are found equal.
  passes.run("cse", graph, [](Graph& g) { g = cse(g); });
  passes.run("dce", graph, [](Graph& g) { g = dce(g); });
  result.graph = graph;
  // What people are told of, and the reference computes, is what they wrote: these cut it up.
  const std::int64_t most_bytes = request.plan.max_binding_bytes;
  if (most_bytes > 0) {
    passes.run("split_product", graph, [&](Graph& g) { g = split_product(g, most_bytes); });
  }
  if (request.split_rows) {
    passes.run("split_reduce", graph, [&](Graph& g) { g = split_reduce(g, most_bytes); });
  }
  // Last: it looks at who reads what, which the passes above change. It also makes the copies that
  // the plan relies on, so when skipped it still runs, without grouping.
  FuseOptions fusing{.max_bindings = request.max_bindings, .enabled = !passes.skipped("fuse")};
  fuse_and_plan(passes, fusing, request.plan, graph, result);
  if (most_bindings(result.program) > request.max_bindings) {
    fusing.assume_in_place = false;
    fuse_and_plan(passes, fusing, request.plan, graph, result);
    CHECK(most_bindings(result.program) <= request.max_bindings, "a launch binds too many buffers");
  }
  verify(result.program);
  passes.dump(result.program);
  result.passes = std::move(passes.times);
  result.milliseconds = milliseconds_since(start);
  report(result, request.name);
  return result;
}

}  // namespace tensorgrad
