// SPDX-License-Identifier: MIT
// CompiledFunction::web_files(): compiles the function again, for a portable device and each size,
// and passes the programs with the contents of their buffers to the web module.
#include <algorithm>
#include <cstring>
#include <set>

#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "compile/runtime/index_bounds.h"
#include "ops/registry.h"
#include "pages/model.h"
#include "train/compiled_function.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

std::vector<std::int64_t> sizes_to_export(const WebOptions& options, bool open,
                                          std::int64_t usual) {
  if (!open && !options.sizes.empty()) {
    throw UserError("export_web: WebOptions::sizes is " + to_string(options.sizes) +
                    ", but no input has a dynamic size");
  }
  const std::set<std::int64_t> different(options.sizes.begin(), options.sizes.end());
  if (different.size() != options.sizes.size() || (!different.empty() && *different.begin() < 1)) {
    throw UserError("export_web: WebOptions::sizes must be different sizes of at least 1, got " +
                    to_string(options.sizes));
  }
  return options.sizes.empty() ? std::vector{usual} : options.sizes;
}

}  // namespace

web::SizedProgram CompiledFunctionImpl::compiled_for_web(std::int64_t size, bool f16) const {
  // Reads the trained parameters. If averages are exported, their values take the place of the
  // parameters.
  const auto traced = trace_function(table_, closed(options_.inputs, size), {}, 0, function_,
                                     {.training = options_.training,
                                      .autocast = options_.mixed_precision,
                                      .first_stream = kForwardStream},
                                     location_);
  web::SizedProgram sized;
  if (sizes_.dynamic()) sized.size = size;
  for (const auto& [name, value] : traced->trace.scalars) sized.scalars[name] = float_bits(value);
  sized.scalars[kSeedScalar] = options_.seed.value_or(0);
  CompileRequest request;
  request.name = "web";
  request.plan.params_elements = table_.elements();
  request.plan.memory_budget = options_.memory_budget;
  request.progress = options_.progress;
  request.graph = std::move(traced->trace.graph);
  compile_for(web::portable_device(f16), request);
  Compiled compiled = compile_graph(std::move(request));
  for (const Node& node : compiled.graph.nodes) {
    if (sizes_.dynamic() && node.op == &ops::state)
      sizes_.check_state(node.attrs.text("name"), node.type, size);
  }
  if (options_.check_indices) sized.bounds = index_bounds(compiled.graph);
  sized.program = std::move(compiled.program);
  return sized;
}

web::Files CompiledFunctionImpl::web_files(const WebOptions& options) const {
  const auto lock = call_lock_->lock();
  std::vector<web::SizedProgram> programs;
  for (const std::int64_t size : sizes_to_export(options, sizes_.dynamic(), sizes_.first().size))
    programs.push_back(compiled_for_web(size, options.f16));
  web::Contents contents;
  if (!table_.entries().empty()) {
    const std::vector<float> arena = table_.pack(download_params(), "export_web");
    const auto bytes = std::as_bytes(std::span(arena));
    contents[buffer_name(BufferKind::kParams, "")].assign(bytes.begin(), bytes.end());
  }
  for (const StateEntry& state : first().states()) {
    contents[state_buffer(state.name)] =
        to_stored(first().download_state(state), dtype_in_memory(state.type.dtype, options.f16));
  }
  return web::make_files({options.name, options.doc}, options.f16, programs, contents);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
