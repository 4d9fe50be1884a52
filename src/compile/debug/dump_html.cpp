// SPDX-License-Identifier: MIT
// graph.html: a page of launches. A launch highlights those that share a buffer with it.
#include <algorithm>

#include "compile/debug/dump.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>launches</title><style>
body { font: 13px/1.4 sans-serif; margin: 0 auto; max-width: 76em; padding: 0 1em 4em; color: #212529 }
header { position: sticky; top: 0; background: #fff; padding: .8em 0; border-bottom: 1px solid #ced4da }
input { font: inherit; width: 22em; padding: .2em .4em }
details { border: 1px solid #ced4da; border-left: 5px solid #868e96; border-radius: 3px; margin: 3px 0 }
summary { display: flex; gap: 1em; padding: .25em .6em; cursor: pointer; align-items: baseline }
summary b { flex: 1; overflow-wrap: anywhere } summary span { white-space: nowrap; color: #495057 }
.contraction { border-left-color: #1971c2 } .row { border-left-color: #2f9e44 }
.scatter { border-left-color: #e8590c }
.before { background: #e7f5ff } .after { background: #fff4e6 }
i.bar { display: inline-block; height: .6em; background: #adb5bd }
div { padding: .1em 1.5em } pre { overflow: auto; background: #f8f9fa; margin: .5em; padding: .6em }
code { overflow-wrap: anywhere }
</style></head><body>
)";

constexpr const char* kScript = R"(<script>
const all = [...document.querySelectorAll("details")];
const words = (box, what) => box.dataset[what].split(" ").filter(Boolean);
document.querySelector("input").addEventListener("input", event => {
  const text = event.target.value.toLowerCase();
  for (const box of all) box.hidden = !box.textContent.toLowerCase().includes(text);
});
for (const box of all) {
  box.addEventListener("mouseenter", () => {
    const at = all.indexOf(box), from = new Set(words(box, "reads")), to = new Set(words(box, "writes"));
    all.forEach((other, i) => {
      if (i < at && words(other, "writes").some(b => from.has(b))) other.classList.add("before");
      if (i > at && words(other, "reads").some(b => to.has(b))) other.classList.add("after");
    });
  });
  box.addEventListener("mouseleave", () => {
    for (const other of all) other.classList.remove("before", "after");
  });
}
</script>
)";

std::string launch_box(const Program& program, std::size_t i, const std::string& kernel,
                       std::int64_t most_bytes) {
  const Launch& launch = program.launches[i];
  std::string reads, writes, bindings;
  for (const Binding& binding : launch.bindings) {
    const std::string number = std::to_string(binding.buffer) + " ";
    if (binding.mode != BindMode::kWrite) reads += number;
    if (binding.mode != BindMode::kRead) writes += number;
    const char* mode = binding.mode == BindMode::kRead    ? "reads "
                       : binding.mode == BindMode::kWrite ? "writes "
                                                          : "reads and writes ";
    const BufferDecl& buffer = program.buffers[static_cast<std::size_t>(binding.buffer)];
    bindings += "<div>" + (mode + xml_text(bound_text(program, binding))) + ", " +
                bytes_text(buffer.bytes) + "</div>\n";
  }
  const std::int64_t bar = most_bytes > 0 ? launch.bytes_moved * 80 / most_bytes : 0;
  std::string text =
      "<details class=\"" + kind_name(launch) + "\" data-reads=\"" + reads + "\" data-writes=\"" +
      writes + "\"><summary>" + "<span>" + std::to_string(i) + "</span><b>" +
      xml_text(launch.name) + "</b>" + "<span>" + domain_text(launch) + "</span><span>" +
      bytes_text(launch.bytes_moved) + " <i class=\"bar\" style=\"width:" + std::to_string(bar) +
      "px\"></i></span><span>" +
      (launch.locations.empty() ? "" : xml_text(to_string(launch.locations.front()))) +
      "</span></summary>\n";
  for (const std::string& op : launch.ops) text += "<div><code>" + xml_text(op) + "</code></div>\n";
  for (const SourceLocation& location : launch.locations)
    text += "<div>at " + xml_text(to_string(location)) + "</div>\n";
  if (launch.flops > 0) text += "<div>" + std::to_string(launch.flops) + " operations</div>\n";
  return text + bindings + "<pre>" + xml_text(kernel) + "</pre></details>\n";
}

}  // namespace

std::string graph_html(const Program& program, const std::vector<std::string>& kernels) {
  std::int64_t most = 0;
  for (const Launch& launch : program.launches) most = std::max(most, launch.bytes_moved);
  std::string text = kHead;
  text += "<header><b>" + std::to_string(program.launches.size()) + " launches, " +
          std::to_string(program.buffers.size()) + " buffers, " + bytes_text(program.peak_bytes) +
          "</b> &nbsp; <input placeholder=\"show launches with this text\"> &nbsp; " +
          "blue: writes its inputs; orange: reads its outputs</header>\n";
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    text += launch_box(program, i, kernels[i], most);
  }
  return text + kScript + "</body></html>\n";
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
