// SPDX-License-Identifier: MIT
// Joins models of one function for several sizes, node by node, to a single model for every size.
// Constants that differ are computed from the size.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/numbers.h"
#include "onnx/conversion.h"
#include "onnx/size_rules.h"
#include "onnx/writers.h"

namespace tensorgrad::onnx {
namespace {

using Ints = std::vector<std::int64_t>;
using Constants = std::vector<io::OnnxTensor>;  // one for each model

template <class T>
T element_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::size_t element_size(OnnxType type) {
  switch (type) {
    case OnnxType::kBool: return 1;
    case OnnxType::kFloat16: return 2;
    case OnnxType::kFloat:
    case OnnxType::kInt32:
    case OnnxType::kUint32: return 4;
    case OnnxType::kInt64:
    case OnnxType::kUint64: return 8;
  }
  UNREACHABLE("invalid element type");
}

// Integers beyond 2^53 are rounded.
Numbers elements_of(const io::OnnxTensor& tensor) {
  Numbers values;
  const std::size_t size = element_size(tensor.value.type);
  for (std::size_t at = 0; at < tensor.data.size(); at += size) {
    const std::byte* bytes = &tensor.data[at];
    switch (tensor.value.type) {
      case OnnxType::kFloat: values.push_back(element_at<float>(bytes)); break;
      case OnnxType::kInt32: values.push_back(element_at<std::int32_t>(bytes)); break;
      case OnnxType::kInt64:
        values.push_back(static_cast<double>(element_at<std::int64_t>(bytes)));
        break;
      case OnnxType::kBool: values.push_back(element_at<std::uint8_t>(bytes)); break;
      default: UNREACHABLE("constant of an unsupported type");
    }
  }
  return values;
}

bool same_tensor(const io::OnnxTensor& a, const io::OnnxTensor& b) {
  if (a.value.type != b.value.type || a.value.shape != b.value.shape) return false;
  return a.data.data() == b.data.data() || std::ranges::equal(a.data, b.data);
}

// True if names, types and ranks are equal.
bool are_alike(const std::vector<io::OnnxValue>& some, const std::vector<io::OnnxValue>& others) {
  return std::ranges::equal(some, others, [](const io::OnnxValue& a, const io::OnnxValue& b) {
    return a.name == b.name && a.type == b.type && a.shape.size() == b.shape.size();
  });
}

class Joining {
 public:
  Joining(std::vector<Converted> models, Sizes sizes, std::string size_name)
      : models_(std::move(models)), sizes_(std::move(sizes)), size_name_(std::move(size_name)) {
    for (Converted& model : models_) {
      auto& named = initializers_.emplace_back();
      for (const io::OnnxTensor& each : model.emitter.model.graph.initializers)
        named.emplace(each.value.name, each);
    }
    emitter().set_prefix(size_name_);
  }

  Emitter run() {
    std::vector<std::vector<io::OnnxNode>> lists;
    for (Converted& model : models_) lists.push_back(std::move(model.emitter.nodes()));
    for (Converted& model : models_) model.emitter.nodes().clear();
    refuse_other_ends();
    join_ends([](io::OnnxGraph& graph) { return &graph.inputs; });
    join_ends([](io::OnnxGraph& graph) { return &graph.outputs; });
    std::vector<std::vector<io::OnnxNode>*> pointers;
    for (auto& list : lists) pointers.push_back(&list);
    join_nodes(pointers, true);
    // Nodes that compute constants from the size come first.
    std::vector<io::OnnxNode>& made = emitter().nodes();
    made.insert(made.end(), std::make_move_iterator(lists[0].begin()),
                std::make_move_iterator(lists[0].end()));
    drop_unread_constants();
    return std::move(emitter());
  }

 private:
  // The first model becomes the joint model.
  Emitter& emitter() { return models_[0].emitter; }

  // ---- errors ----------------------------------------------------------------------------------

  // Returns the source node of the operator that is being joined.
  [[nodiscard]] const Node& node() const {
    const auto longer =
        std::ranges::find_if(models_, [&](const Converted& m) { return at_ < m.made_by.size(); });
    return longer->graph[longer->made_by[at_]];
  }

  [[nodiscard]] std::string for_sizes(std::size_t other, const std::string& first,
                                      const std::string& second) const {
    return first + " for a dynamic size of " + std::to_string(sizes_[0]) + " and " + second +
           " for a dynamic size of " + std::to_string(sizes_[other]);
  }

  [[noreturn]] void refuse_nodes(std::size_t other) const {
    refuse(node(), "the traces for dynamic sizes " + std::to_string(sizes_[0]) + " and " +
                       std::to_string(sizes_[other]) +
                       " differ in more than sizes; OnnxOptions::sizes sets the traced sizes");
  }

  [[noreturn]] void refuse_number(const Numbers& values) const {
    std::size_t other = 1;
    while (other + 1 < values.size() && values[other] == values[0]) ++other;
    refuse(node(), "a number is " +
                       for_sizes(other, number_text(values[0]), number_text(values[other])) +
                       "; expected a * size + b with integers a and b, or 1 / (a * size + b)");
  }

  [[noreturn]] void refuse_elements(const Constants& all) const {
    std::size_t other = 1;
    while (all[other].value.shape == all[0].value.shape) ++other;
    refuse(node(),
           "a constant is " +
               for_sizes(other, to_string(all[0].value.shape), to_string(all[other].value.shape)) +
               "; expected a * size + b evenly spaced integers along one of its axes");
  }

  // Throws UserError if the outputs differ in more than sizes.
  void refuse_other_ends() {
    const auto& first = models_[0].emitter.model.graph.outputs;
    for (std::size_t k = 1; k < models_.size(); ++k) {
      if (are_alike(first, models_[k].emitter.model.graph.outputs)) continue;
      throw UserError("export_onnx: the outputs for dynamic sizes " + std::to_string(sizes_[0]) +
                      " and " + std::to_string(sizes_[k]) + " differ in more than sizes");
    }
  }

  // ---- sizes of inputs and outputs -------------------------------------------------------------

  // Joins the sizes of lists for which are_alike() is true.
  void join_values(const std::vector<std::vector<io::OnnxValue>*>& lists) const {
    for (std::size_t i = 0; i < lists[0]->size(); ++i) {
      io::OnnxValue& first = (*lists[0])[i];
      for (std::size_t d = 0; d < first.shape.size(); ++d) {
        Numbers sizes;
        for (const auto* list : lists) sizes.push_back(static_cast<double>((*list)[i].shape[d]));
        if (std::ranges::count(sizes, sizes[0]) == std::ssize(sizes)) continue;
        first.sizes.resize(first.shape.size());
        const std::optional<Line> line = line_through(sizes_, sizes);
        if (line) first.sizes[d] = text_of(*line, size_name_);
        first.shape[d] = io::kUnknownSize;
      }
    }
  }

  template <class Part>
  void join_ends(Part part) {
    std::vector<std::vector<io::OnnxValue>*> lists;
    for (Converted& model : models_) lists.push_back(part(model.emitter.model.graph));
    join_values(lists);
  }

  // ---- nodes -----------------------------------------------------------------------------------

  void join_nodes(const std::vector<std::vector<io::OnnxNode>*>& lists, bool whole) {
    std::size_t least = lists[0]->size();
    for (const auto* list : lists) least = std::min(least, list->size());
    for (std::size_t i = 0; i < least; ++i) {
      if (whole) at_ = i;
      std::vector<io::OnnxNode*> nodes;
      for (auto* list : lists) nodes.push_back(&(*list)[i]);
      join_node(nodes);
    }
    if (whole) at_ = least;
    for (std::size_t k = 1; k < lists.size(); ++k) {
      if (lists[k]->size() != lists[0]->size()) refuse_nodes(k);
    }
  }

  void join_node(const std::vector<io::OnnxNode*>& nodes) {
    io::OnnxNode& first = *nodes[0];
    for (std::size_t k = 1; k < nodes.size(); ++k) {
      const io::OnnxNode& other = *nodes[k];
      const auto same_key = [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.index() == b.second.index();
      };
      const bool alike = other.op == first.op && other.outputs == first.outputs &&
                         other.inputs.size() == first.inputs.size() &&
                         std::ranges::equal(other.attributes, first.attributes, same_key);
      if (!alike) refuse_nodes(k);
    }
    for (std::size_t j = 0; j < first.inputs.size(); ++j) {
      std::vector<std::string> names;
      for (const io::OnnxNode* each : nodes) names.push_back(each->inputs[j]);
      first.inputs[j] = joined(names, first.op == "Reshape" && j == 1);
    }
    for (std::size_t a = 0; a < first.attributes.size(); ++a) join_attribute(nodes, a);
  }

  void join_attribute(const std::vector<io::OnnxNode*>& nodes, std::size_t a) {
    using Body = std::shared_ptr<const io::OnnxGraph>;
    auto& [key, first] = nodes[0]->attributes[a];
    if (std::holds_alternative<Body>(first)) {
      std::vector<io::OnnxGraph> bodies;
      for (const io::OnnxNode* each : nodes)
        bodies.push_back(*std::get<Body>(each->attributes[a].second));
      first = std::make_shared<const io::OnnxGraph>(joined_body(bodies));
      return;
    }
    for (const io::OnnxNode* each : nodes) {
      if (each->attributes[a].second == first) continue;
      refuse(node(), "'" + key + "' of the operator " + nodes[0]->op +
                         " depends on the dynamic size, but must be a constant in the file");
    }
  }

  io::OnnxGraph joined_body(std::vector<io::OnnxGraph>& bodies) {
    std::vector<std::vector<io::OnnxValue>*> inputs, outputs;
    std::vector<std::vector<io::OnnxNode>*> nodes;
    for (io::OnnxGraph& body : bodies) {
      inputs.push_back(&body.inputs);
      outputs.push_back(&body.outputs);
      nodes.push_back(&body.nodes);
    }
    for (std::size_t k = 1; k < bodies.size(); ++k) {
      if (!are_alike(*inputs[0], *inputs[k]) || !are_alike(*outputs[0], *outputs[k]))
        refuse_nodes(k);
    }
    join_values(inputs);
    join_values(outputs);
    join_nodes(nodes, false);
    return std::move(bodies[0]);
  }

  // ---- constants -------------------------------------------------------------------------------

  // Returns the operand for the joint model. `names` has its name in each model.
  std::string joined(const std::vector<std::string>& names, bool shape_of_reshape) {
    const bool constant = initializers_[0].contains(names[0]);
    Constants all;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto found = initializers_[k].find(names[k]);
      if (constant != (found != initializers_[k].end())) refuse_nodes(k);
      if (!constant && names[k] != names[0]) refuse_nodes(k);
      if (constant) all.push_back(found->second);
    }
    if (!constant) return names[0];
    const auto as_first = [&](const io::OnnxTensor& each) { return same_tensor(each, all[0]); };
    if (std::ranges::all_of(all, as_first)) return names[0];
    const auto [made, fresh] = computed_.try_emplace({names, shape_of_reshape});
    if (fresh) made->second = computed(all, shape_of_reshape);
    return made->second;
  }

  std::string computed(const Constants& all, bool shape_of_reshape) {
    const io::OnnxValue& first = all[0].value;
    std::optional<std::size_t> dynamic_axis;
    for (std::size_t k = 1; k < all.size(); ++k) {
      const io::OnnxValue& other = all[k].value;
      if (other.type != first.type || other.shape.size() != first.shape.size()) refuse_nodes(k);
      for (std::size_t d = 0; d < first.shape.size(); ++d) {
        if (other.shape[d] == first.shape[d]) continue;
        if (dynamic_axis.value_or(d) != d) refuse_elements(all);
        dynamic_axis = d;
      }
    }
    std::vector<NumberTensor> tensors;
    for (const io::OnnxTensor& each : all) tensors.push_back({each.value.shape, elements_of(each)});
    if (dynamic_axis) {
      const std::optional<Steps> steps = steps_along(sizes_, tensors, *dynamic_axis);
      if (!steps) refuse_elements(all);
      return counted(*steps, *dynamic_axis, first);
    }
    const std::string inferred = shape_of_reshape ? with_one_unknown(tensors) : "";
    return inferred.empty() ? element_by_element(first, tensors) : inferred;
  }

  // Returns a shape with -1 for the only size that differs, which Reshape infers from the number of
  // elements. Returns "" if several differ.
  std::string with_one_unknown(const std::vector<NumberTensor>& tensors) {
    Ints shape;
    for (std::size_t e = 0; e < tensors[0].values.size(); ++e) {
      const double first = tensors[0].values[e];
      const auto as_first = [&](const NumberTensor& each) { return each.values[e] == first; };
      shape.push_back(std::ranges::all_of(tensors, as_first) ? static_cast<std::int64_t>(first)
                                                             : -1);
    }
    return std::ranges::count(shape, -1) == 1 ? emitter().list(shape) : "";
  }

  // Computes each element as a * size + b or as the reciprocal of that.
  std::string element_by_element(const io::OnnxValue& value,
                                 const std::vector<NumberTensor>& tensors) {
    const std::size_t count = tensors[0].values.size();
    std::vector<Line> lines, reciprocals;
    for (std::size_t e = 0; e < count; ++e) {
      Numbers values;
      for (const NumberTensor& each : tensors) values.push_back(each.values[e]);
      const std::optional<Line> line = line_through(sizes_, values);
      if (line) lines.push_back(*line);
      const std::optional<Line> below = reciprocal_line(sizes_, values);
      if (below && value.type == OnnxType::kFloat) reciprocals.push_back(*below);
      if (lines.size() <= e && reciprocals.size() <= e) refuse_number(values);
    }
    if (lines.size() == count) return cast(on_lines(lines, value.shape), value.type);
    const std::string divisor = cast(on_lines(reciprocals, value.shape), value.type);
    return emitter().node("Div", {emitter().number(1, value.type), divisor});
  }

  std::string counted(const Steps& steps, std::size_t axis, const io::OnnxValue& value) {
    Emitter& e = emitter();
    std::string x = e.node("Range", {e.number(0, OnnxType::kInt64), on_lines({steps.length}, {}),
                                     e.number(1, OnnxType::kInt64)});
    Shape base = value.shape, line(value.shape.size(), 1);
    base[axis] = 1;
    line[axis] = -1;
    if (line.size() > 1) x = e.node("Reshape", {x, e.list(line)});
    if (steps.step != 1) x = e.node("Mul", {x, e.list({steps.step}, {})});
    if (steps.base != Ints{0}) x = e.node("Add", {x, e.list(steps.base, base)});
    return cast(x, value.type);
  }

  // ---- computations from the size --------------------------------------------------------------

  std::string cast(const std::string& x, OnnxType type) {
    if (type == OnnxType::kInt64) return x;
    return emitter().node("Cast", {x}, {{"to", static_cast<std::int64_t>(type)}});
  }

  // Returns an INT64 tensor of this shape with the elements a * size + b.
  std::string on_lines(const std::vector<Line>& lines, const Shape& shape) {
    Ints a, b;
    for (const Line& line : lines) {
      a.push_back(line.a);
      b.push_back(line.b);
    }
    std::string x = size();
    if (!shape.empty() || a[0] != 1) x = emitter().node("Mul", {x, emitter().list(a, shape)});
    if (std::ranges::count(b, 0) == std::ssize(b)) return x;
    return emitter().node("Add", {x, emitter().list(b, shape)});
  }

  // Returns the size, an INT64 scalar, from the first input that has it.
  const std::string& size() {
    if (!size_.empty()) return size_;
    for (const io::OnnxValue& input : emitter().model.graph.inputs) {
      const auto named = std::ranges::find(input.sizes, size_name_);
      if (named == input.sizes.end()) continue;
      const std::int64_t axis = named - input.sizes.begin();
      const std::string line =
          emitter().node("Shape", {input.name}, {{"start", axis}, {"end", axis + 1}});
      size_ = emitter().node("Squeeze", {line});
      return size_;
    }
    UNREACHABLE("no input has the dynamic size");
  }

  static void note_inputs(const io::OnnxGraph& graph, std::set<std::string>& names) {
    for (const io::OnnxNode& node : graph.nodes) note_inputs(node, names);
  }
  static void note_inputs(const io::OnnxNode& node, std::set<std::string>& names) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [key, value] : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<const io::OnnxGraph>>(&value);
      if (body != nullptr) note_inputs(**body, names);
    }
  }

  void drop_unread_constants() {
    std::set<std::string> read;
    for (const io::OnnxNode& node : emitter().nodes()) note_inputs(node, read);
    std::erase_if(emitter().model.graph.initializers,
                  [&](const io::OnnxTensor& each) { return !read.contains(each.value.name); });
  }

  std::vector<Converted> models_;
  const Sizes sizes_;
  const std::string size_name_;
  std::vector<std::map<std::string, io::OnnxTensor>> initializers_;  // of each model
  std::size_t at_ = 0;  // index of the node in the main graph
  std::string size_;
  // By names in the models, and whether it is the shape of a Reshape.
  std::map<std::pair<std::vector<std::string>, bool>, std::string> computed_;
};

}  // namespace

io::OnnxModel to_onnx(const std::vector<SizedGraph>& graphs, const std::string& size_name,
                      const ModelText& text) {
  CHECK(graphs.size() >= 3, size_name);
  std::vector<Converted> models;
  Ints sizes;
  for (const SizedGraph& each : graphs) {
    models.push_back(convert(each.graph, each.values));
    sizes.push_back(each.size);
  }
  return finished(Joining(std::move(models), std::move(sizes), size_name).run(), text);
}

}  // namespace tensorgrad::onnx
