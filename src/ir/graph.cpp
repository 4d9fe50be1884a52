// SPDX-License-Identifier: MIT
// Graphs: checked appending, rewriting, verification and hashing.
#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/visits.h"
#include "ir/max_elements.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

thread_local std::int64_t max_elements = kMaxTensorElements;

// Returns the result type by the op's own rule. Adds the name and the location to errors.
Type infer_type(const OpDef& op, const std::vector<Type>& inputs, const Attrs& attrs,
                const SourceLocation& location, std::string_view name) {
  const auto named = [&](const UserError& error) {
    return std::string(name) + ": " + error.message();
  };
  try {
    return op.infer(inputs, attrs);
  } catch (const ShapeError& error) {
    throw ShapeError(named(error), location);
  } catch (const DtypeError& error) {
    throw DtypeError(named(error), location);
  } catch (const UserError& error) {
    throw UserError(named(error), location);
  }
}

}  // namespace

MaxElements::MaxElements(std::int64_t elements)
    : before_(std::exchange(max_elements, std::max(elements, kMaxTensorElements))) {}
MaxElements::~MaxElements() { max_elements = before_; }
std::int64_t MaxElements::now() { return max_elements; }

void check_shape(std::string_view name, const Shape& shape, const SourceLocation& location) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 1) {
      throw ShapeError(
          std::string(name) + ": every size must be at least 1, got " + to_string(shape), location);
    }
    if (count > MaxElements::now() / size) {
      throw ShapeError(std::string(name) + ": " + to_string(shape) +
                           " has more than 2^31-1 elements, the limit of a tensor",
                       location);
    }
    count *= size;
  }
}

ValueId Graph::add(const OpDef& op, std::vector<ValueId> inputs, Attrs attrs,
                   SourceLocation location, std::string origin, std::string_view name) {
  CHECK(op.arity == -1 ? !inputs.empty() : inputs.size() == static_cast<size_t>(op.arity),
        std::string(op.name) + " got " + std::to_string(inputs.size()) + " inputs");
  std::vector<Type> types;
  types.reserve(inputs.size());
  for (const ValueId id : inputs) {
    CHECK(id >= 0 && id < size(), op.name);
    types.push_back((*this)[id].type);
  }
  if (name.empty()) name = op.name;
  Type type = infer_type(op, types, attrs, location, name);
  check_shape(name, type.shape, location);
  return append(
      {&op, std::move(inputs), std::move(type), std::move(attrs), location, std::move(origin), -1});
}

ValueId Graph::append(Node node) {
  visit();
  nodes.push_back(std::move(node));
  return size() - 1;
}

ValueId Graph::find_leaf(const OpDef& op, const std::string& name) const {
  for (ValueId id = 0; id < size(); ++id) {
    const Node& node = (*this)[id];
    if (node.op == &op && node.attrs.text("name") == name) return id;
  }
  return kNoValue;
}

std::vector<std::vector<ValueId>> users_of(const Graph& graph) {
  std::vector<std::vector<ValueId>> users(graph.nodes.size());
  for (ValueId id = 0; id < graph.size(); ++id) {
    for (const ValueId input : graph[id].inputs) users[static_cast<size_t>(input)].push_back(id);
  }
  return users;
}

Graph rewrite_graph(const Graph& graph,
                    const std::function<ValueId(Graph& out, const Node& node)>& rewrite) {
  Graph out;
  std::vector<ValueId> map(graph.nodes.size(), kNoValue);
  const auto at = [&](ValueId old) {
    const ValueId id = map[static_cast<size_t>(old)];
    CHECK(id != kNoValue, "a rewritten graph reads a value that was dropped");
    return id;
  };
  for (ValueId id = 0; id < graph.size(); ++id) {
    visit();
    Node node = graph[id];
    for (ValueId& input : node.inputs) input = at(input);
    const ValueId given = rewrite(out, node);
    map[static_cast<size_t>(id)] = given != kNoValue ? given : out.append(std::move(node));
  }
  for (const GraphOutput& output : graph.outputs)
    out.outputs.push_back({output.name, at(output.value)});
  for (const GraphUpdate& update : graph.updates) {
    out.updates.push_back({at(update.leaf), at(update.value)});
  }
  return out;
}

void verify(const Graph& graph) {
  for (ValueId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    visit(1 + static_cast<std::int64_t>(node.inputs.size()));
    CHECK(node.op != nullptr);
    const std::string where = "%" + std::to_string(id) + " " + node.op->name;
    CHECK(node.op->arity == -1 || node.inputs.size() == static_cast<size_t>(node.op->arity), where);
    std::vector<Type> types;
    for (const ValueId input : node.inputs) {
      CHECK(input >= 0 && input < id, where + " reads a value that is not before it");
      types.push_back(graph[input].type);
    }
    CHECK(infer_type(*node.op, types, node.attrs, node.location, node.op->name) == node.type,
          where + " has a wrong type");
  }
  for (const GraphOutput& output : graph.outputs) {
    CHECK(output.value >= 0 && output.value < graph.size(), "output " + output.name);
  }
  for (const GraphUpdate& update : graph.updates) {
    CHECK(update.leaf >= 0 && update.leaf < graph.size());
    CHECK(update.value >= 0 && update.value < graph.size());
    CHECK(graph[update.leaf].op->kind == OpKind::kLeaf);
    CHECK(graph[update.leaf].type == graph[update.value].type, "an update changes a leaf's type");
  }
}

namespace {

class Hasher {
 public:
  void bytes(const void* data, std::size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < n; ++i) state_ = (state_ ^ p[i]) * 1099511628211ULL;
  }
  void number(std::int64_t value) { bytes(&value, sizeof value); }
  void text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes(value.data(), value.size());
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 1469598103934665603ULL;
};

void hash_attr(Hasher& h, const AttrValue& value) {
  h.number(static_cast<std::int64_t>(value.index()));
  if (const auto* i = std::get_if<std::int64_t>(&value)) h.number(*i);
  if (const auto* d = std::get_if<double>(&value)) h.number(std::bit_cast<std::int64_t>(*d));
  if (const auto* s = std::get_if<std::string>(&value)) h.text(*s);
  if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) {
    h.number(static_cast<std::int64_t>(l->size()));
    for (const std::int64_t i : *l) h.number(i);
  }
}

}  // namespace

std::uint64_t hash(const Graph& graph) {
  Hasher h;
  for (const Node& node : graph.nodes) {
    h.text(node.op->name);
    h.number(static_cast<std::int64_t>(node.inputs.size()));
    for (const ValueId input : node.inputs) h.number(input);
    h.text(to_string(node.type));
    for (const auto& [key, value] : node.attrs.items()) {
      h.text(key);
      hash_attr(h, value);
    }
  }
  for (const GraphOutput& output : graph.outputs) {
    h.text(output.name);
    h.number(output.value);
  }
  for (const GraphUpdate& update : graph.updates) {
    h.number(update.leaf);
    h.number(update.value);
  }
  return h.value();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
