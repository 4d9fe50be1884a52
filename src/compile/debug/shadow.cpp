// SPDX-License-Identifier: MIT
#include "compile/debug/shadow.h"

#include <algorithm>

#include "base/check.h"
#include "compile/runtime/element_codec.h"
#include "ir/sources.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::string launch_text(const Program& program, std::size_t launch) {
  return "launch " + std::to_string(launch) + " (" + program.launches[launch].name + ")";
}

std::string value_text(const Graph& graph, ValueId id) {
  const Node& node = graph[id];
  const std::string origin = node.origin.empty() ? "" : " of " + node.origin;
  return std::string(node.op->name) + origin + " " + to_string(node.type);
}

std::string ops_text(const Launch& launch) {
  std::string text;
  for (const std::string& op : launch.ops) text += (text.empty() ? "" : ", ") + op;
  return text;
}

std::vector<double> decoded(const std::vector<std::uint32_t>& words, DType dtype) {
  std::vector<double> values;
  values.reserve(words.size());
  for (const std::uint32_t word : words) values.push_back(decode_element(word, dtype));
  return values;
}

}  // namespace

Shadow::Shadow(Device& device, const Program& program, std::span<const BufferHandle> buffers,
               const Graph& fused, const PlanOptions& options)
    : device_(device),
      program_(program),
      buffers_(buffers.begin(), buffers.end()),
      graph_(fused),
      options_(options),
      map_(memory_map(fused, options, program)) {
  separate_.resize(program.launches.size());
  std::vector<BufferDecl> decls = program.buffers;
  for (BufferDecl& decl : decls) decl.data.clear();  // the buffers already hold it
  for (std::size_t i = 0; i < separate_.size(); ++i) {
    Program& one = separate_[i].program;
    one.buffers = decls;
    one.scalars = program.scalars;
    one.launches = {program.launches[i]};
    separate_[i].executable = device.prepare(one, buffers_);
  }
}

void Shadow::rebind(std::span<const BufferHandle> buffers, int changed) {
  buffers_.assign(buffers.begin(), buffers.end());
  for (SeparateLaunch& each : separate_) device_.rebind(*each.executable, buffers_, changed);
}

void Shadow::run(const RuntimeScalars& row) {
  seen_.clear();
  for (std::size_t i = 0; i < separate_.size(); ++i) {
    const LaunchValues& launch = map_.launches[i];
    if (launch.first_part) {
      values_.clear();
      for (const ValueId id : launch.reads) read(i, id);
      for (const ValueId id : launch.stores) evaluate(id, row);
    }
    device_.wait(device_.run(*separate_[i].executable, {&row, 1}));
    if (launch.last_part) check(i, row);
  }
}

std::vector<std::uint32_t> Shadow::words_at(const BufferRange& place, const Type& type) {
  const auto count = static_cast<std::size_t>(numel(type.shape));
  const DType stored = dtype_in_memory(type.dtype, options_.stores_f16);
  std::vector<std::byte> bytes(stored_bytes(count, stored));
  device_.wait(device_.download(buffers_[static_cast<std::size_t>(place.buffer)],
                                place.offset * static_cast<std::int64_t>(element_bytes(stored)),
                                bytes));
  return from_stored(bytes, count, stored);
}

// Reads an operand of a launch. Checks that it has not changed since it was computed or, for a
// leaf, since it was first read.
void Shadow::read(std::size_t launch, ValueId id) {
  const Type& type = graph_[id].type;
  std::vector<std::uint32_t> words = words_at(map_.places.at(id), type);
  const auto [at, fresh] = seen_.try_emplace(id, words);
  if (!fresh && at->second != words) {
    const auto where = std::mismatch(words.begin(), words.end(), at->second.begin()).first;
    const BufferRange& place = map_.places.at(id);
    throw InternalError(
        "shadow: " + launch_text(program_, launch) + " on " + device_.info().backend + " reads " +
            value_text(graph_, id) + " from " +
            program_.buffers[static_cast<std::size_t>(place.buffer)].name +
            ", which another launch has overwritten; the first changed element is " +
            std::to_string(where - words.begin()),
        graph_[id].location);
  }
  values_[id] = error_bound_in_memory(type, decoded(words, type.dtype));
}

double Shadow::scalar(const Node& node, const RuntimeScalars& row) const {
  const auto& names = program_.scalars;
  const auto at = std::find(names.begin(), names.end(), node.attrs.text("name"));
  CHECK(at != names.end());
  return decode_element(row.words[at - names.begin() + 2], node.type.dtype);
}

const WithErrorBound& Shadow::evaluate(ValueId id, const RuntimeScalars& row) {
  const auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  const Node& node = graph_[id];
  WithErrorBound result;
  if (node.op == &ops::scalar) {
    result.value = {node.type, {scalar(node, row)}};
  } else {
    CHECK(node.op->eval != nullptr, value_text(graph_, id) + " was not read");
    std::vector<const WithErrorBound*> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) inputs.push_back(&evaluate(input, row));
    result = evaluate_with_error_bound(node, inputs, kOpTolerance);
  }
  return values_[id] = std::move(result);
}

// Returns where a value is stored. For a scalar output with a ring, that depends on the row.
BufferRange Shadow::stored_at(ValueId id, const RuntimeScalars& row) const {
  BufferRange place = map_.places.at(id);
  for (const GraphOutput& output : graph_.outputs) {
    if (!options_.rings.contains(output.name)) continue;
    if (through_views(graph_, output.value).value != id) continue;
    const auto& names = program_.scalars;
    const auto word = std::find(names.begin(), names.end(), kRingScalar) - names.begin() + 2;
    place.offset += row.words[word];
  }
  return place;
}

void Shadow::check(std::size_t launch, const RuntimeScalars& row) {
  const LaunchValues& made = map_.launches[launch];
  for (const ValueId id : made.stores) {
    const Node& node = graph_[id];
    const bool copy = made.group < 0;
    std::vector<std::uint32_t> words =
        words_at(copy ? made.copy_to : stored_at(id, row), node.type);
    const auto difference = first_difference(values_.at(id), decoded(words, node.type.dtype));
    if (difference) {
      throw InternalError("shadow: " + launch_text(program_, launch) + " on " +
                              device_.info().backend + " stores a wrong " + value_text(graph_, id) +
                              ": " + to_string(*difference, node.type.shape) + "; the launch is " +
                              ops_text(program_.launches[launch]),
                          node.location);
    }
    if (!copy) seen_[id] = std::move(words);
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
