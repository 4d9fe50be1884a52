// SPDX-License-Identifier: MIT
// CompiledFunction::export_onnx(): traces the function again, for several sizes if an input has a
// dynamic size, and passes the graphs with the values of their leaves to the onnx module.
#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <span>
#include <string>

#include "compile/runtime/host_random.h"
#include "onnx/convert.h"
#include "onnx/writers.h"
#include "ops/registry.h"
#include "train/compiled_function.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr std::size_t kMinSizes = 3;
// Small sizes with various remainders. Few of them are common layer sizes: the function may treat a
// dynamic size that equals a layer size differently.
constexpr std::int64_t kUsualSizes[] = {3, 7, 10, 23, 41, 54, 88};

void check_sizes(const OnnxOptions& options) {
  if (options.size_name.empty())
    throw UserError(
        "export_onnx: OnnxOptions::size_name is empty; expected a name for the dynamic size");
  const std::set<std::int64_t> sizes(options.sizes.begin(), options.sizes.end());
  if (sizes.empty()) return;
  if (*sizes.begin() >= 2 && sizes.size() >= kMinSizes && sizes.size() == options.sizes.size())
    return;
  throw UserError("export_onnx: OnnxOptions::sizes must be at least " + std::to_string(kMinSizes) +
                  " different sizes above 1, got " + to_string(options.sizes));
}

// ONNX requires different keys.
void check_metadata(const OnnxOptions& options) {
  std::set<std::string> keys;
  for (const auto& [key, value] : options.metadata) {
    if (keys.insert(key).second) continue;
    throw UserError("export_onnx: OnnxOptions::metadata has the key '" + key +
                    "' more than once; expected different keys");
  }
}

// Returns the nodes that compute, in order. Views are left out because a size of 1 needs fewer of
// them; leaves and generators are left out too.
std::vector<const Node*> computing_nodes(const TracedFunction& traced) {
  std::vector<const Node*> work;
  for (const Node& node : traced.trace.graph.nodes) {
    const OpKind kind = node.op->kind;
    if (kind != OpKind::kLeaf && kind != OpKind::kGenerator && kind != OpKind::kView)
      work.push_back(&node);
  }
  return work;
}

// Throws if the function traces to other ops for a size of 1. This size is common, and often
// handled separately.
void refuse_other_work(const TracedFunction& of_one, const TracedFunction& usual) {
  const std::vector<const Node*> few = computing_nodes(of_one), work = computing_nodes(usual);
  for (std::size_t i = 0; i < std::max(few.size(), work.size()); ++i) {
    if (i < few.size() && i < work.size() && few[i]->op == work[i]->op) continue;
    onnx::refuse(
        i < work.size() ? *work[i] : *few[i],
        "the operations traced for a dynamic size of 1 differ from those for larger sizes; "
        "set OnnxOptions::sizes to ignore size 1");
  }
}

}  // namespace

// Reads the trained parameters. If averages are exported, their values are stored under the names
// of the parameters.
std::unique_ptr<TracedFunction> CompiledFunctionImpl::traced_for_export(std::int64_t size) const {
  return trace_function(table_, closed(options_.inputs, size), {}, 0, function_,
                        {.training = options_.training,
                         .autocast = options_.mixed_precision,
                         .exported = true,
                         .any_size = sizes_.dynamic(),
                         .first_stream = kForwardStream},
                        location_);
}

void CompiledFunctionImpl::check_size_of_one(const TracedFunction& usual) const {
  std::unique_ptr<TracedFunction> of_one;
  try {
    of_one = traced_for_export(1);
  } catch (const UserError&) {
    return;  // the function does not accept size 1
  }
  refuse_other_work(*of_one, usual);
}

// The default sizes may include some that the function does not accept; these are skipped.
std::map<std::int64_t, std::unique_ptr<TracedFunction>> CompiledFunctionImpl::traced_for_sizes(
    const std::vector<std::int64_t>& sizes) const {
  std::map<std::int64_t, std::unique_ptr<TracedFunction>> traced;
  std::exception_ptr refused;
  for (const std::int64_t size :
       sizes.empty() ? std::span<const std::int64_t>(kUsualSizes) : sizes) {
    try {
      auto one = traced_for_export(size);
      for (const Node& node : one->trace.graph.nodes) {
        if (node.op == &ops::state) sizes_.check_state(node.attrs.text("name"), node.type, size);
      }
      traced[size] = std::move(one);
    } catch (UserError& error) {
      error.add_context("while tracing for a dynamic size of " + std::to_string(size) +
                        ", one of OnnxOptions::sizes");
      if (!sizes.empty()) throw;
      if (!refused) refused = std::current_exception();
    }
  }
  if (traced.size() < kMinSizes) std::rethrow_exception(refused);
  if (sizes.empty()) check_size_of_one(*traced.begin()->second);
  return traced;
}

void CompiledFunctionImpl::export_onnx(const FileSink& sink, const OnnxOptions& options) const {
  const auto lock = call_lock_->lock();
  check_sizes(options);
  check_metadata(options);
  const NamedTensors params = download_params();
  std::map<std::string, std::vector<std::byte>> states;
  const auto values_of = [&](const TracedFunction& traced) {
    auto scalars = std::make_shared<std::map<std::string, std::vector<std::byte>>>();
    return [&params, &states, &traced, scalars,
            this](const Node& leaf) -> std::span<const std::byte> {
      const std::string& name = leaf.attrs.text("name");
      if (leaf.op == &ops::parameter) return params.at(name).bytes;
      const bool state = leaf.op == &ops::state;
      std::vector<std::byte>& bytes = state ? states[name] : (*scalars)[name];
      bytes.resize(static_cast<size_t>(numel(leaf.type.shape)) * element_bytes(leaf.type.dtype));
      if (state) {
        first().instance().download(state_buffer(name), 0, bytes);
      } else {
        const std::uint32_t word = float_bits(traced.trace.scalars.at(name));
        std::memcpy(bytes.data(), &word, sizeof word);
      }
      return bytes;
    };
  };
  const onnx::ModelText text{options.name, options.doc, options.metadata};
  const auto graph_of = [&](const TracedFunction& traced) {
    return options.states ? onnx::with_open_states(traced.trace.graph) : traced.trace.graph;
  };
  if (!sizes_.dynamic()) {
    const auto traced = traced_for_export(sizes_.first().size);
    const onnx::LeafValues values = values_of(*traced);
    return io::write_onnx(sink, onnx::to_onnx(graph_of(*traced), text, values));
  }
  const auto traced = traced_for_sizes(options.sizes);
  std::vector<onnx::SizedGraph> graphs;
  for (const auto& [size, one] : traced) graphs.push_back({size, graph_of(*one), values_of(*one)});
  io::write_onnx(sink, onnx::to_onnx(graphs, options.size_name, text));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
