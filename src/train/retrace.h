// SPDX-License-Identifier: MIT
// Debug check that a function still traces to the graph that was compiled.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class Retrace {
 public:
  // Keeps the traced graph if TENSORGRAD_RETRACE is set.
  void keep(const Graph& traced);
  // Traces again if a graph was kept. Throws UserError, with the user's line, at the first node
  // that differs. `what` names the function.
  void check(const std::string& what, const std::function<Graph()>& trace) const;

 private:
  std::optional<Graph> compiled_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
