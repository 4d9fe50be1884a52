// SPDX-License-Identifier: MIT
// Entry of the WGSL writer: picks the form by the launch's kind and heads it with a comment.
#include "kernel/wgsl_writer.h"

#include "base/check.h"
#include "kernel/wgsl_parts.h"

namespace tensorgrad {
namespace {

// One line of comment: no line breaks, printable ASCII only.
std::string comment_line(const std::string& text) {
  std::string line = "// ";
  for (const char c : text) line += c >= ' ' && c <= '~' ? c : ' ';
  return line + "\n";
}

std::string header_of(const Launch& launch) {
  std::string ops;
  for (const std::string& op : launch.ops) ops += (ops.empty() ? "" : ", ") + op;
  std::string sites;
  for (const Site& site : launch.sites) {
    if (!site.known()) continue;
    sites += (sites.empty() ? "" : ", ") + to_string(site);
  }
  std::string text = comment_line(launch.name + ": " + ops);
  if (!sites.empty()) text += comment_line("at " + sites);
  return text;
}

}  // namespace

WgslKernel write_wgsl(const Launch& launch, const WgslOptions& options) {
  WgslKernel kernel;
  switch (launch.kind) {
    case LaunchKind::kMap: kernel = wgsl::write_map(launch, options); break;
    case LaunchKind::kRow: kernel = wgsl::write_row(launch, options); break;
    case LaunchKind::kContraction: kernel = wgsl::write_contraction(launch, options); break;
    case LaunchKind::kScatter: kernel = wgsl::write_scatter(launch, options); break;
    case LaunchKind::kScan: kernel = wgsl::write_scan(launch, options); break;
    case LaunchKind::kSort: kernel = wgsl::write_sort(launch, options); break;
    case LaunchKind::kCustom: kernel = wgsl::write_custom(launch, options); break;
    case LaunchKind::kAttention: kernel = wgsl::write_attention(launch, options); break;
  }
  CHECK(kernel.threads <= options.max_threads, launch.name);
  CHECK(kernel.workgroup_bytes <= options.max_workgroup_bytes, launch.name);
  kernel.header = header_of(launch);
  return kernel;
}

std::string emit_wgsl(const Launch& launch, const WgslOptions& options) {
  return write_wgsl(launch, options).text();
}

}  // namespace tensorgrad
