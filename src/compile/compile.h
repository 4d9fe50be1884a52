// SPDX-License-Identifier: MIT
// Compiles a traced graph to a program. The passes and their order are defined here.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "ir/graph.h"
#include "passes/fuse/fuse.h"
#include "passes/rematerialize.h"
#include "plan/plan.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class DumpFolder;

struct CompileRequest {
  std::string name;  // of the program, for dumps: "train", "forward"
  Graph graph;       // as traced, with outputs
  // For training: the gradients of `loss` with respect to `wrt` are appended and passed to
  // `extend`, which appends the optimizer.
  ValueId loss = kNoValue, loss_scale = kNoValue;  // loss_scale: `scale` of autodiff()
  std::vector<ValueId> wrt;
  std::function<void(Graph& graph, const std::vector<ValueId>& grads)> extend;
  FuseOptions fusing;             // set by compile_for(), except for what compile_graph() sets
  bool split_rows = true;         // split long rows: the device does not divide them itself
  bool stores_attention = false;  // decompose attention and store its weights
  bool split_all = false;         // splits everything that can be split; for tests
  bool in_parts = false;          // the launches run in two parts: none spans both
  RematerializeOptions rematerializing;
  PlanOptions plan;
  std::vector<std::string> skip;  // passes to skip, in addition to TENSORGRAD_SKIP
  CompileWatcher progress;
};

// Sets the options that depend on the device: limits, splitting of rows, fusion.
void compile_for(const DeviceInfo& device, CompileRequest& request);

// The work of a pass and the number of nodes, or launches of the plan, after it.
struct PassCost {
  std::int64_t visits = 0;
  std::size_t left = 0;
};

struct Compiled {
  Graph graph;  // simplified, before fusion; the reference interprets it
  Graph fused;
  Program program;
  std::vector<PassProfile> passes;
  std::vector<PassCost> costs;  // parallel to `passes`
  std::vector<FuseNote> notes;
  double milliseconds = 0;
  std::shared_ptr<DumpFolder> dump;  // null if TENSORGRAD_DUMP is not set
};

// Compiles a graph. Honors TENSORGRAD_SKIP, TENSORGRAD_DEBUG and TENSORGRAD_DUMP.
Compiled compile_graph(CompileRequest request);

// Returns the traced graph with the gradients of the request: the first step of compile_graph().
Graph differentiated(CompileRequest request);

// Returns the passes between differentiation and fusion, in the order of compile_graph().
struct GraphPass {
  std::string name;
  std::function<Graph(const Graph&)> run;
  bool needed = false;  // later passes rely on it, so it cannot be skipped
};
std::span<const GraphPass> graph_passes();

// Returns the passes after graph_passes(). They split what exceeds `max_binding_bytes` (0: no
// limit), with `split_rows` also what is long for `gpu`, and finally rematerialize values.
// `split_all` splits everything, whatever its size.
std::vector<GraphPass> late_passes(std::int64_t max_binding_bytes, bool split_rows,
                                   const RematerializeOptions& rematerializing = {},
                                   bool split_all = false, const GpuModel& gpu = {});

// Returns the names of all these passes and "fuse", in order. A pass that runs twice is listed
// twice.
std::vector<std::string> pass_names();

// Returns the names that TENSORGRAD_SKIP accepts: each of these passes once, except those that
// others rely on; "row_epilogue" and "row_operands", parts of fusion; and "fused_sequences", a part
// of planning.
std::vector<std::string> skippable_names();

// Returns the pass of that name: one of the above, or "fuse" for launches of at most `max_bindings`
// buffers. Throws UserError with the available names if there is none.
GraphPass find_pass(const std::string& name, int max_bindings,
                    std::int64_t max_binding_bytes = DeviceLimits{}.max_binding_bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
