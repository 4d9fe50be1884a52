// SPDX-License-Identifier: MIT
// Logs each rewrite with the name of its rule, at TENSORGRAD_DEBUG=5.
#pragma once

#include <string>

#include "base/env.h"
#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class RewriteLog {
 public:
  explicit RewriteLog(const char* pass) : pass_(pass), on_(debug_level(pass) >= 5) {}

  // `graph` is the graph under construction, in which `before` would be the next node. `after`
  // replaces it.
  void replaced(const char* rule, const Graph& graph, const Node& before, ValueId after) const {
    if (!on_) return;
    debug_print(std::string(pass_) + " " + rule + ": " + print(before) + "\n  -> %" +
                std::to_string(after) + " = " + print(graph[after]));
  }
  void dropped(const char* rule, const Graph& graph, ValueId id) const {
    if (!on_) return;
    debug_print(std::string(pass_) + " " + rule + ": %" + std::to_string(id) + " = " +
                print(graph[id]) + "\n  -> nothing");
  }

 private:
  const char* pass_;
  bool on_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
