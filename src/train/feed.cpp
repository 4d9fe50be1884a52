// SPDX-License-Identifier: MIT
#include "train/feed.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "compile/runtime/element_codec.h"
#include "ops/registry.h"
#include "tensorgrad/ops/creation.h"
#include "tensorgrad/ops/indexing.h"
#include "tensorgrad/ops/views.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Attrs leaf_attrs(const std::string& name, const Shape& shape, DType dtype) {
  return {{"name", name}, {"shape", shape}, {"dtype", static_cast<std::int64_t>(dtype)}};
}

void check_spec(const InputSpec& spec, std::set<std::string>& names,
                const SourceLocation& location) {
  if (!names.insert(spec.name).second)
    throw UserError("input '" + spec.name + "' is declared twice", location);
  if (spec.name.empty() || spec.name[0] == '_') {
    throw UserError("input names must not be empty or begin with '_', got '" + spec.name + "'",
                    location);
  }
}

bool opened(const InputSpec& spec) {
  return std::find(spec.shape.begin(), spec.shape.end(), kDynamic) != spec.shape.end();
}

// Returns the rows order[cursor .. cursor + batch) of a dataset entry.
Tensor gather_batch(Trace& trace, const InputSpec& spec, const Tensor& rows, std::int64_t batch,
                    const SourceLocation& location) {
  Tensor whole = trace.tensor(
      trace.graph.add(ops::data, {}, leaf_attrs(spec.name, spec.shape, spec.dtype), location));
  const std::int64_t count = spec.shape[0];
  const std::int64_t width = numel(spec.shape) / count;
  const Tensor index = broadcast_to(reshape(rows, {batch, 1}), {batch, width});
  Shape shape = spec.shape;
  shape[0] = batch;
  return reshape(gather(reshape(whole, {count, width}), 0, index), shape);
}

void declare_dataset(Trace& trace, const std::vector<InputSpec>& dataset, std::int64_t batch,
                     const SourceLocation& location, std::map<std::string, Tensor>& tensors) {
  const Composite composite("batch", location);
  const std::int64_t count = dataset[0].shape.empty() ? 0 : dataset[0].shape[0];
  for (const InputSpec& spec : dataset) {
    if (opened(spec)) {
      throw UserError("dataset: '" + spec.name +
                          "' has a dynamic size; only inputs passed to each step can have one",
                      location);
    }
    if (spec.shape.empty() || spec.shape[0] != count) {
      throw ShapeError("dataset: '" + dataset[0].name + "' " + to_string(dataset[0].shape) +
                           " and '" + spec.name + "' " + to_string(spec.shape) +
                           " must have the same number of rows",
                       location);
    }
  }
  if (batch < 1 || batch > count) {
    throw UserError("dataset: the batch must be between 1 and " + std::to_string(count) +
                        ", the number of rows, got " + std::to_string(batch),
                    location);
  }
  const Tensor order = trace.tensor(
      trace.graph.add(ops::data, {}, leaf_attrs(kOrderName, {count}, DType::kI32), location));
  const Tensor cursor = trace.tensor(trace.scalar(kCursorName, DType::kI32, 0, location));
  const Tensor rows = gather(order, 0, arange(batch) + cursor);
  for (const InputSpec& spec : dataset)
    tensors[spec.name] = gather_batch(trace, spec, rows, batch, location);
}

// Returns a hint on what a negative index may mean.
std::string hint_for(const IndexBound& bound, std::int64_t index) {
  if (index >= 0 || bound.except) return "";
  if (bound.op == "embedding") return "; for padding, use an index in the table as padding_idx";
  return bound.op == "cross_entropy" ? "; set ignore_index to skip such targets" : "";
}

template <class T>
void check_range(const InputSpec& spec, const HostView& value, const IndexBound& bound) {
  const T* data = static_cast<const T*>(value.data);
  // Every element is checked at each step, so this loop must be fast. Converted to unsigned, a
  // negative index is larger than any size.
  const auto size = static_cast<std::uint64_t>(bound.size);
  const auto check = [&](std::size_t i) {
    const auto index = static_cast<std::int64_t>(data[i]);
    if ((index >= 0 && index < bound.size) || index == bound.except) return;
    throw UserError("input '" + spec.name + "': element " + std::to_string(i) + " is " +
                        std::to_string(index) + ", which " + bound.op +
                        " uses as an index in [0, " + std::to_string(bound.size) + ")" +
                        hint_for(bound, index),
                    bound.location);
  };
  if (bound.columns.empty()) {
    for (std::size_t i = 0; i < value.count; ++i) {
      if (static_cast<std::uint64_t>(data[i]) >= size) check(i);
    }
    return;
  }
  for (std::size_t row = 0; row < value.count; row += static_cast<std::size_t>(bound.row)) {
    for (const std::int64_t column : bound.columns) {
      const std::size_t i = row + static_cast<std::size_t>(column);
      if (static_cast<std::uint64_t>(data[i]) >= size) check(i);
    }
  }
}

// Returns a shape such as "[?,3]".
std::string dynamic_text(const InputSpec& spec) {
  std::string text;
  for (const std::int64_t size : spec.shape)
    text += (text.empty() ? "" : ",") + (size == kDynamic ? "?" : std::to_string(size));
  return "[" + text + "]";
}

}  // namespace

bool check_open(const std::vector<InputSpec>& specs, const SourceLocation& location) {
  bool any = false;
  for (const InputSpec& spec : specs) {
    any |= opened(spec);
    if (std::count(spec.shape.begin(), spec.shape.end(), kDynamic) > 1) {
      throw ShapeError("input '" + spec.name + "': " + dynamic_text(spec) +
                           " has several dynamic sizes; only one can be inferred",
                       location);
    }
  }
  return any;
}

std::int64_t dynamic_size(const std::vector<InputSpec>& specs, const FeedView& feed,
                          std::int64_t otherwise) {
  const InputSpec* first = nullptr;
  std::int64_t size = otherwise;
  for (const InputSpec& spec : specs) {
    const auto given = feed.find(spec.name);
    if (!opened(spec) || given == feed.end()) continue;
    const std::int64_t each = numel(closed({spec}, 1)[0].shape);
    const auto count = static_cast<std::int64_t>(given->second.count);
    if (count == 0 || count % each != 0) {
      throw ShapeError("input '" + spec.name + "': expected a multiple of " + std::to_string(each) +
                       " elements for " + dynamic_text(spec) + ", got " + std::to_string(count));
    }
    if (first != nullptr && count / each != size) {
      throw ShapeError("inputs '" + first->name + "' " + dynamic_text(*first) + " and '" +
                       spec.name + "' " + dynamic_text(spec) + " have different dynamic sizes: " +
                       std::to_string(size) + " and " + std::to_string(count / each));
    }
    first = &spec;
    size = count / each;
  }
  return size;
}

std::vector<InputSpec> closed(std::vector<InputSpec> specs, std::int64_t size) {
  for (InputSpec& spec : specs) std::replace(spec.shape.begin(), spec.shape.end(), kDynamic, size);
  return specs;
}

Inputs declare_inputs(Trace& trace, const std::vector<InputSpec>& inputs,
                      const std::vector<InputSpec>& dataset, std::int64_t batch,
                      const SourceLocation& location) {
  std::map<std::string, Tensor> tensors;
  std::set<std::string> names;
  for (const InputSpec& spec : inputs) {
    check_spec(spec, names, location);
    CHECK(!opened(spec), "input '" + spec.name + "' is traced without its size");
    const Attrs attrs = leaf_attrs(spec.name, spec.shape, spec.dtype);
    tensors[spec.name] = trace.tensor(trace.graph.add(ops::input, {}, attrs, location));
  }
  for (const InputSpec& spec : dataset) check_spec(spec, names, location);
  if (dataset.empty() && batch != 0) {
    throw UserError("batch is set to " + std::to_string(batch) + ", but no dataset is declared",
                    location);
  }
  if (!dataset.empty()) declare_dataset(trace, dataset, batch, location, tensors);
  return Inputs(std::move(tensors));
}

std::vector<std::uint32_t> encode_elements(const HostView& value) {
  const auto* first = static_cast<const std::byte*>(value.data);
  return from_stored({first, value.count * element_bytes(value.dtype)}, value.count, value.dtype);
}

namespace {

void check_type(const InputSpec& spec, const HostView& value, bool rounded) {
  if (value.dtype != spec.dtype && !rounded) {
    throw DtypeError("input '" + spec.name + "': expected " + std::string(to_string(spec.dtype)) +
                     ", got " + std::string(to_string(value.dtype)));
  }
  if (static_cast<std::int64_t>(value.count) != numel(spec.shape)) {
    throw ShapeError("input '" + spec.name + "': " + to_string(spec.shape) + " has " +
                     std::to_string(numel(spec.shape)) + " elements, got " +
                     std::to_string(value.count));
  }
  if (value.shape != nullptr && *value.shape != spec.shape) {
    throw ShapeError("input '" + spec.name + "': expected " + to_string(spec.shape) + ", got " +
                     to_string(*value.shape));
  }
}

}  // namespace

void check_value(const InputSpec& spec, const HostView& value,
                 const std::map<std::string, std::vector<IndexBound>>& bounds) {
  check_type(spec, value, spec.dtype == DType::kF16 && value.dtype == DType::kF32);
  if (value.data == nullptr) {
    throw UserError("input '" + spec.name + "': null pointer given for " +
                    std::to_string(value.count) + " elements");
  }
  const auto found = bounds.find(spec.name);
  if (found == bounds.end()) return;
  for (const IndexBound& bound : found->second) {
    if (spec.dtype == DType::kI32) check_range<std::int32_t>(spec, value, bound);
    if (spec.dtype == DType::kU32) check_range<std::uint32_t>(spec, value, bound);
  }
}

void check_feed(const std::vector<InputSpec>& specs, const FeedView& feed,
                const std::map<std::string, std::vector<IndexBound>>& bounds) {
  const auto known = [&] {
    std::string names;
    for (const InputSpec& spec : specs) names += (names.empty() ? "" : ", ") + spec.name;
    return names.empty() ? "none" : names;
  };
  for (const auto& [name, value] : feed) {
    bool found = false;
    for (const InputSpec& spec : specs) found |= spec.name == name;
    if (!found) throw UserError("unknown input '" + name + "'; available: " + known());
  }
  for (const InputSpec& spec : specs) {
    const auto given = feed.find(spec.name);
    if (given == feed.end())
      throw UserError("input '" + spec.name + "' is missing; expected inputs: " + known());
    if (given->second.on_device) {
      check_type(spec, given->second, false);
    } else {
      check_value(spec, given->second, bounds);
    }
  }
}

std::int64_t padded_size(std::int64_t size, const std::vector<std::int64_t>& sizes) {
  std::int64_t best = -1;
  for (const std::int64_t each : sizes) {
    if (size >= 0 && each >= size && (best < 0 || each < best)) best = each;
  }
  if (best >= 0) return best;
  std::string known;
  for (const std::int64_t each : sizes) known += (known.empty() ? "" : ", ") + std::to_string(each);
  throw UserError("padded_size: expected a size from 0 to the largest of {" + known + "}, got " +
                  std::to_string(size));
}

Tensor Inputs::operator[](const NameRef& input) const {
  const auto found = tensors_.find(input.name);
  if (found != tensors_.end()) return found->second;
  std::string known;
  for (const auto& [each, tensor] : tensors_) known += (known.empty() ? "" : ", ") + each;
  throw UserError(
      "unknown input '" + input.name + "'; available: " + (known.empty() ? "none" : known),
      input.location);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
