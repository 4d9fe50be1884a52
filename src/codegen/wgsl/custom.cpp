// SPDX-License-Identifier: MIT
// Custom launches: the user's functions, wrapped by generated code that reads the inputs and stores
// the result.
#include <algorithm>

#include "base/check.h"
#include "codegen/wgsl/opaque.h"
#include "kernel/user_kernel.h"

namespace tensorgrad::wgsl {
namespace {

constexpr int kThreads = 64;

}  // namespace

Shader write_custom(const Launch& launch, const WgslOptions& options) {
  const CustomKernel& op = *kernel_of<UserKernel>(launch).op;
  if (op.wgsl.empty()) {
    throw UserError("custom op '" + op.name + "' has no WGSL body",
                    launch.locations.empty() ? SourceLocation() : launch.locations.front());
  }
  Module module(launch);
  const auto& opaque = launch.as<OpaqueLaunch>();
  for (std::size_t k = 0; k < opaque.inputs.size(); ++k) {
    const std::string name = "in" + std::to_string(k);
    const Type& type = op.inputs[k];
    const std::int64_t count = numel(type.shape);
    write_source(module, name + "_at", opaque.inputs[k], {{"p", 1}, {"i", count}, {"q", 1}});
    const std::string wgsl_type(register_type(type.dtype));
    module.function(name, "fn " + name + "(i: u32) -> " + wgsl_type +
                              " {\n  if (i >= " + u32_literal(count) + ") { return " + wgsl_type +
                              "(); }\n  return " + name + "_at(0u, i, 0u);\n}\n");
  }
  module.function("element", op.wgsl + "\n");
  const Window window = window_of(launch);
  Scope scope;
  const Tile tile{std::min(kThreads, options.max_threads), 1, true};
  open_rows(scope, tile, window.count, "i", window.first);
  const Store& store = launch.stores.at(0);
  const ElementRef place = place_of(scope, {{"i", opaque.kernel->rows}}, store.map);
  scope.line(module.store(store.binding, store.dtype, place.index, "element(i)"));
  return make_shader(module, scope, tile.rows, ceil_div(window.count, tile.rows));
}

}  // namespace tensorgrad::wgsl
