// SPDX-License-Identifier: MIT
// From a traced graph to a program: the one place that knows the passes and their order.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "ir/graph.h"
#include "passes/fuse.h"
#include "passes/rematerialize.h"
#include "plan/plan.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class DumpFolder;

struct CompileRequest {
  std::string name;  // of the program, for dumps: "train", "forward"
  Graph graph;       // as traced; outputs are set
  // Training: gradients of `loss` with respect to `wrt` are appended, and given to `extend`, which
  // appends the optimizer.
  ValueId loss = kNoValue, loss_scale = kNoValue;  // the latter: autodiff()'s `scale`
  std::vector<ValueId> wrt;
  std::function<void(Graph& graph, const std::vector<ValueId>& grads)> extend;
  FuseOptions fusing;             // what the device decides; the rest is set by compile_graph()
  bool split_rows = true;         // for a device that shares a row among few of its threads
  bool stores_attention = false;  // attention by products, with its weights in memory
  bool split_all = false;  // and cut products, scatters and reductions whatever it costs: for tests
  RematerializeOptions rematerializing;
  PlanOptions plan;
  std::vector<std::string> skip;  // passes to leave out, beside those of TENSORGRAD_SKIP
  CompileWatcher progress;
};

// Sets what the device decides: its limits, and who shares long rows.
void compile_for(const DeviceInfo& device, CompileRequest& request);

// What a pass looked at, and what it left: nodes, or launches of the plan.
struct PassCost {
  std::int64_t visits = 0;
  std::size_t left = 0;
};

struct Compiled {
  Graph graph;  // simplified, before fusion: what the reference interprets
  Graph fused;
  Program program;
  std::vector<PassProfile> passes;
  std::vector<PassCost> costs;  // of each of the passes
  std::vector<FuseNote> notes;
  double milliseconds = 0;
  std::shared_ptr<DumpFolder> dump;  // null where TENSORGRAD_DUMP is not set
};

// Environment switches (TENSORGRAD_SKIP, _DEBUG, _DUMP) apply.
Compiled compile_graph(CompileRequest request);

// What that begins with: the graph as traced, with the gradients that the request wants.
Graph differentiated(CompileRequest request);

// The passes between differentiation and fusing, in the order in which compile_graph() runs them.
struct GraphPass {
  std::string name;
  std::function<Graph(const Graph&)> run;
  bool needed = false;  // what comes after relies on it: it cannot be skipped
};
std::span<const GraphPass> graph_passes();

// The passes after those. They cut up what is too large for a device: where a binding holds at most
// `max_binding_bytes` (0: anything), and where it does not itself share rows among its threads.
// Then some values are computed again rather than kept. `split_all`: all is cut, whatever its size.
std::vector<GraphPass> late_passes(std::int64_t max_binding_bytes, bool split_rows,
                                   const RematerializeOptions& rematerializing = {},
                                   bool split_all = false);

// The names of all of these and "fuse", in order; a pass that runs twice is there twice.
std::vector<std::string> pass_names();

// What TENSORGRAD_SKIP may name: of those, once each, what nothing relies on; "row_epilogue", a
// part of fuse; "chain", a part of the plan.
std::vector<std::string> skippable_names();

// The pass of that name (those above, and "fuse" for launches of at most `max_bindings` buffers);
// throws UserError, with the names there are.
GraphPass find_pass(const std::string& name, int max_bindings,
                    std::int64_t max_binding_bytes = DeviceLimits{}.max_binding_bytes);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
