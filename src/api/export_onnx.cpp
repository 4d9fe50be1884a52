// SPDX-License-Identifier: MIT
// Forward::export_onnx: traces the function anew, for several sizes where its inputs have an open
// one, and hands the graphs to the room onnx with the elements of their leaves.
#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <span>

#include "api/forward.h"
#include "compile/host_random.h"
#include "onnx/convert.h"
#include "onnx/writers.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr std::size_t kLeastSizes = 3;
// Small ones, and remainders of all kinds. Few are sizes of layers, which an open size must not
// look like: what is done with equal sizes may differ.
constexpr std::int64_t kUsualSizes[] = {3, 7, 10, 23, 41, 54, 88};

void check_sizes(const OnnxOptions& options) {
  if (options.size_name.empty())
    throw UserError(
        "export_onnx: OnnxOptions::size_name is empty; expected a name for the dynamic size");
  const std::set<std::int64_t> sizes(options.sizes.begin(), options.sizes.end());
  if (sizes.empty()) return;
  if (*sizes.begin() >= 2 && sizes.size() >= kLeastSizes && sizes.size() == options.sizes.size())
    return;
  throw UserError("export_onnx: OnnxOptions::sizes must be at least " +
                  std::to_string(kLeastSizes) + " different sizes above 1, got " +
                  to_string(options.sizes));
}

// What computes, in order: no views, which a size of 1 needs fewer of, and no numbers.
std::vector<const Node*> work_of(const TracedFunction& traced) {
  std::vector<const Node*> work;
  for (const Node& node : traced.trace.graph.nodes) {
    const OpKind kind = node.op->kind;
    if (kind != OpKind::kLeaf && kind != OpKind::kGenerator && kind != OpKind::kView)
      work.push_back(&node);
  }
  return work;
}

// A size of 1 is often given, and often treated apart.
void refuse_other_work(const TracedFunction& of_one, const TracedFunction& usual) {
  const std::vector<const Node*> few = work_of(of_one), work = work_of(usual);
  for (std::size_t i = 0; i < std::max(few.size(), work.size()); ++i) {
    if (i < few.size() && i < work.size() && few[i]->op == work[i]->op) continue;
    onnx::refuse(
        i < work.size() ? *work[i] : *few[i],
        "the operations traced for a dynamic size of 1 differ from those for larger sizes; "
        "set OnnxOptions::sizes to ignore size 1");
  }
}

}  // namespace

// It reads the trained parameters: averages, where they are asked for, are what these names stand
// for.
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
    return;  // the function does not take it
  }
  refuse_other_work(*of_one, usual);
}

// Sizes that nobody asked for may be none that the function takes.
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
  if (traced.size() < kLeastSizes) std::rethrow_exception(refused);
  if (sizes.empty()) check_size_of_one(*traced.begin()->second);
  return traced;
}

void CompiledFunctionImpl::export_onnx(const FileSink& sink, const OnnxOptions& options) const {
  const auto lock = turns_->lock();
  check_sizes(options);
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
