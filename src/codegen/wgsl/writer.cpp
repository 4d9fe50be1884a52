// SPDX-License-Identifier: MIT
// Entry point of the WGSL writer: dispatches on the launch kind and writes the header comment.
#include "codegen/wgsl/writer.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/wgsl/opaque.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns one comment line: without line breaks, printable ASCII only.
std::string comment_line(const std::string& text) {
  std::string line = "// ";
  for (const char c : text) line += c >= ' ' && c <= '~' ? c : ' ';
  return line + "\n";
}

std::string header_of(const Launch& launch) {
  std::string ops;
  for (const std::string& op : launch.ops) ops += (ops.empty() ? "" : ", ") + op;
  std::string locations;
  for (const SourceLocation& location : launch.locations) {
    if (!location.known()) continue;
    locations += (locations.empty() ? "" : ", ") + to_string(location);
  }
  std::string text = comment_line(launch.name + ": " + ops);
  if (!locations.empty()) text += comment_line("at " + locations);
  return text;
}

}  // namespace

}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::wgsl {
namespace {

const OpaqueWriter& opaque_writer(const OpaqueLaunch& opaque) {
  for (const OpaqueWriter& each : kOpaqueWriters) {
    if (each.name == opaque.kernel->name) return each;
  }
  UNREACHABLE();
}

Shader write_kind(const Launch& launch, const OpaqueLaunch& opaque, const WgslOptions& options) {
  return opaque_writer(opaque).write(launch, options);
}

}  // namespace

Shader write_shader(const Launch& launch, const WgslOptions& asked) {
  WgslOptions options = asked;
  const auto* opaque = launch.find<OpaqueLaunch>();
  const bool needs_barriers =
      launch.is<SortLaunch>() || (opaque != nullptr && opaque_writer(*opaque).needs_barriers);
  if (asked.barrier_free && !needs_barriers) {
    options.lanes = options.map_width = 1;
    options.matmul_tile = MatmulTile::kNone;
    options.scatter_variant = ScatterVariant::kLanes;
  }
  return std::visit([&](const auto& kind) { return write_kind(launch, kind, options); },
                    launch.kind);
}

std::string print_enables(const std::vector<std::string>& types, bool uses_subgroup_matrix,
                          bool enables_subgroups) {
  const bool f16 = std::any_of(types.begin(), types.end(), [](const std::string& type) {
    return type.find("f16") != std::string::npos;
  });
  return std::string(f16 || uses_subgroup_matrix ? "enable f16;\n" : "") +
         (uses_subgroup_matrix ? kSubgroupMatrixDirectives : "") +
         (enables_subgroups ? "enable subgroups;\n" : "");
}

std::string print_bindings(const std::vector<Binding>& bindings,
                           const std::vector<std::string>& types, const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    text += "@group(0) @binding(" + std::to_string(i) + ") var<storage, " +
            (bindings[i].mode == BindMode::kRead ? "read" : "read_write") + "> " + name +
            std::to_string(i) + ": array<" + types[i] + ">;\n";
  }
  return text;
}

std::string declare_scalars() {
  return "@group(1) @binding(0) var<uniform> scalars: array<vec4<u32>, " +
         std::to_string(kMaxRuntimeScalars / 4) + ">;\n";
}

std::string print_shared(const std::string& name, const Shader::Shared& array) {
  return "var<workgroup> " + name + ": array<" + array.type + ", " + std::to_string(array.count) +
         ">;\n";
}

std::string print_function(const std::string& text) {
  return (text.starts_with('\n') ? "" : "\n") + text + (text.ends_with('\n') ? "" : "\n");
}

std::string print_main(const std::string& body, int threads) {
  return "\n@compute @workgroup_size(" + std::to_string(threads) +
         ")\nfn main(@builtin(workgroup_id) group_id: vec3<u32>, "
         "@builtin(local_invocation_index) local: u32) {\n" +
         body + "}\n";
}

std::string print_header(const Launch& launch) { return header_of(launch); }

}  // namespace tensorgrad::wgsl

namespace tensorgrad::inline TENSORGRAD_ABI {

WgslKernel write_wgsl(const Launch& launch, const WgslOptions& options) {
  const wgsl::Shader shader = wgsl::write_shader(launch, options);
  const wgsl::Grid grid = wgsl::fold_groups(shader.groups);
  WgslKernel kernel;
  kernel.groups_x = grid.x;
  kernel.groups_y = grid.y;
  kernel.threads = shader.threads;
  kernel.uses_scalars = shader.uses_scalars;
  kernel.workgroup_bytes = shader.workgroup_bytes();
  CHECK(kernel.threads <= options.max_threads, launch.name);
  CHECK(kernel.workgroup_bytes <= options.max_workgroup_bytes, launch.name);
  kernel.header = header_of(launch);
  kernel.body =
      wgsl::print_enables(shader.types, shader.uses_subgroup_matrix, shader.enables_subgroups);
  kernel.body += wgsl::print_bindings(launch.bindings, shader.types, "b");
  if (shader.uses_scalars) kernel.body += wgsl::declare_scalars();
  for (const auto& [name, array] : shader.shared) kernel.body += wgsl::print_shared(name, array);
  for (const auto& [name, text] : shader.functions) kernel.body += wgsl::print_function(text);
  kernel.body += wgsl::print_main(shader.main, shader.threads);
  return kernel;
}

std::string emit_wgsl(const Launch& launch, const WgslOptions& options) {
  WgslOptions roomy = options;
  const auto* product = launch.find<ContractionLaunch>();
  if (product != nullptr && (product->by_rows || product->a_by_rows)) {
    roomy.max_workgroup_bytes = std::max(roomy.max_workgroup_bytes, kRowEpilogueBytes);
  }
  return write_wgsl(launch, roomy).text();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
