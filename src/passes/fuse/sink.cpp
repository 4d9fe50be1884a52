// SPDX-License-Identifier: MIT
#include "passes/fuse/sink.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ops/pointwise.h"
#include "passes/fuse/partition.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

bool is_cheap(const OpDef* op) {
  return op == &ops::add || op == &ops::sub || op == &ops::mul || op == &ops::neg;
}

namespace {

class Sinker {
 public:
  Sinker(const Graph& graph, const FuseOptions& options, Partition& parts)
      : graph_(graph), options_(options), parts_(parts), operations_(graph.nodes.size(), 0) {}

  void run() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      if (!may_move(id)) continue;
      std::vector<ValueId> moving = made_for(id);
      moving.push_back(id);
      if (saving(id, moving) <= 0) continue;
      const int home = parts_.group_of(id);
      for (const ValueId each : moving) parts_.sink(each);
      if (fits(home, id)) {
        for (const ValueId each : moving) operations_[index(each)] = operations_with(each);
      } else {
        for (const ValueId each : moving) parts_.raise(each, home);
      }
    }
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  [[nodiscard]] std::int64_t bytes(ValueId id) const {
    const Type& type = graph_[id].type;
    return numel(type.shape) * static_cast<std::int64_t>(element_bytes(type.dtype));
  }

  [[nodiscard]] int operations_with(ValueId id) const {
    int total = 1;
    for (const ValueId input : graph_[id].inputs)
      total += operations_[index(through_views(graph_, input).value)];
    return total;
  }

  [[nodiscard]] bool may_move(ValueId id) const {
    const Node& node = graph_[id];
    const int home = parts_.group_of(id);
    if (home < 0 || !is_cheap(node.op) || node.type.dtype != DType::kF32) return false;
    if (numel(node.type.shape) < options_.cached_elements || parts_.placed(id) ||
        parts_.row_level(id))
      return false;
    const std::vector<ValueId>& members = parts_.group(home).members;
    if (members.size() < 2 || operations_with(id) > kMaxCheapOperations) return false;
    const std::vector<Source>& sources = parts_.sources_of(id);
    if (std::any_of(sources.begin(), sources.end(), [](const Source& s) { return s.barrier; }))
      return false;
    const std::vector<ValueId>& readers = parts_.readers(id);
    return std::all_of(readers.begin(), readers.end(),
                       [&](ValueId reader) { return reads_in_place(reader, id); });
  }

  // Returns the operands that are cheap as well and not stored otherwise: they are recomputed with
  // `id`. (In a norm, the difference to the mean, of which x^ is a product.) Returns none if that
  // would take too many operations.
  [[nodiscard]] std::vector<ValueId> made_for(ValueId id) const {
    std::vector<ValueId> found;
    int operations = operations_with(id);
    for (const Source& source : parts_.sources_of(id)) {
      const ValueId from = source.value;
      const bool here = parts_.group_of(from) == parts_.group_of(id) && !stored(from);
      const bool known = std::find(found.begin(), found.end(), from) != found.end();
      if (!here || known || !source.map.is_identity() || !may_move(from)) continue;
      operations += operations_with(from);
      if (operations > kMaxCheapOperations) return {};
      found.push_back(from);
    }
    return found;
  }

  // True if the reader visits each element of the value once, in order.
  [[nodiscard]] bool reads_in_place(ValueId reader, ValueId id) const {
    const OpKind kind = graph_[reader].op->kind;
    if (kind != OpKind::kPointwise && kind != OpKind::kReduce) return false;
    const int g = parts_.group_of(reader);
    if (g < 0) return false;
    switch (parts_.group(g).kind) {
      case GroupKind::kMap:
      case GroupKind::kRow:
      case GroupKind::kColumn: break;
      case GroupKind::kContraction:
        if (kind == OpKind::kReduce && g != parts_.group_of(id)) return false;  // of an operand
        break;
      default: return false;
    }
    const std::vector<Source>& sources = parts_.sources_of(reader);
    return std::all_of(sources.begin(), sources.end(), [&](const Source& s) {
      return s.value != id || (!s.barrier && s.map.is_identity());
    });
  }

  [[nodiscard]] bool stored(ValueId id) const {
    const std::vector<ValueId>& readers = parts_.readers(id);
    return parts_.placed(id) || std::any_of(readers.begin(), readers.end(), [&](ValueId reader) {
             return parts_.group_of(reader) != parts_.group_of(id);
           });
  }

  // Returns the values that a group reads from memory.
  [[nodiscard]] std::set<ValueId> loads(int g) const {
    std::set<ValueId> found;
    for (const ValueId member : parts_.group(g).members) {
      for (const Source& source : parts_.sources_of(member)) {
        if (parts_.group_of(source.value) != g && parts_.reads_memory(source.value))
          found.insert(source.value);
      }
    }
    return found;
  }

  // Returns the groups that read a value, except its own.
  [[nodiscard]] std::set<int> readers_elsewhere(ValueId id) const {
    std::set<int> found;
    for (const ValueId reader : parts_.readers(id)) found.insert(parts_.group_of(reader));
    found.erase(parts_.group_of(id));
    return found;
  }

  // Returns the bytes of traffic saved by moving `id` to its readers, together with `moving`.
  [[nodiscard]] std::int64_t saving(ValueId id, const std::vector<ValueId>& moving) const {
    const std::set<int> elsewhere = readers_elsewhere(id);
    if (elsewhere.empty()) return 0;
    std::set<ValueId> operands;
    for (const ValueId each : moving) {
      for (const Source& source : parts_.sources_of(each)) {
        const bool moves = std::find(moving.begin(), moving.end(), source.value) != moving.end();
        if (!moves && parts_.reads_memory(source.value)) operands.insert(source.value);
      }
    }
    std::int64_t saved = 2 * bytes(id);
    for (const ValueId operand : operands) {
      const bool made_here = parts_.group_of(operand) == parts_.group_of(id);
      if (made_here && !stored(operand)) saved -= 2 * bytes(operand);
    }
    for (const int g : elsewhere) {
      const std::set<ValueId> read = loads(g);
      saved += bytes(id);
      for (const ValueId operand : operands) saved -= read.contains(operand) ? 0 : bytes(operand);
    }
    return saved;
  }

  [[nodiscard]] bool fits(int home, ValueId id) const {
    std::set<int> touched = {home};
    for (const ValueId reader : parts_.readers(id)) touched.insert(parts_.group_of(reader));
    return std::all_of(touched.begin(), touched.end(), [&](int g) {
      return parts_.bindings_with(g, kNoValue) <= options_.max_bindings;
    });
  }

  const Graph& graph_;
  const FuseOptions& options_;
  Partition& parts_;
  std::vector<int> operations_;  // per element, of the values that have moved
};

}  // namespace

void sink_cheap_values(const Graph& graph, const FuseOptions& options, Partition& parts) {
  Sinker(graph, options, parts).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
