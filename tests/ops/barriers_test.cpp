// SPDX-License-Identifier: MIT
// WGSL of every kernel that the op cases and their gradients use: every thread reaches each
// barrier, and no sum depends on the order of threads.
#include <gtest/gtest.h>

#include <set>

#include "codegen/wgsl/writer.h"
#include "op_cases.h"
#include "slopes.h"
#include "support/sanitized.h"
#include "support/wgsl_uniformity.h"

namespace tensorgrad::testing {
namespace {

constexpr const char* kHead =
    "@group(0) @binding(0) var<storage, read> b0: array<u32>;\n"
    "@group(0) @binding(1) var<storage, read_write> b1: array<u32>;\n"
    "var<workgroup> shared: array<u32, 64>;\n"
    "fn wait(n: u32) { if (n > 3u) { workgroupBarrier(); } }\n"
    "fn twice(n: u32) -> u32 { return n * 2u; }\n"
    "@compute @workgroup_size(64)\n"
    "fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) local: "
    "u32) {\n  let group = group_id.x;\n  ";

TEST(Barriers, in_divergent_control_flow_are_found) {
  for (const char* body : {
           "if (local == 0u) { workgroupBarrier(); }",
           "if (local >= 9u) { return; }\n  workgroupBarrier();",
           "let row = group * 64u + local;\n  if (row < 9u) { } else { workgroupBarrier(); }",
           "var n = 3u;\n  if (local > 3u) { n = 4u; }\n  if (n == 4u) { workgroupBarrier(); }",
           "for (var i = 0u; i < local; i++) { workgroupBarrier(); }",
           "for (var i = 0u; i < 9u; i++) { if (i > local) { break; } workgroupBarrier(); }",
           "for (var i = 0u; i < 9u; i++) { workgroupBarrier(); if (i > local) { continue; } }",
           "if (shared[0] > 3u) { workgroupBarrier(); }",
           "if (b1[0] > 3u) { workgroupBarrier(); }",
           "if (b0[local] > 3u) { workgroupBarrier(); }",
           "if (twice(local) > 3u) { workgroupBarrier(); }",
           "if (local > 3u) { wait(7u); }",
           "wait(local);",
           "while (local < shared[1]) { workgroupBarrier(); }",
           "if (local < 9u) { shared[local] = subgroupShuffleXor(local, 1u); }",
           "let n = local;\n  if (workgroupUniformLoad(&shared[n]) > n) { workgroupBarrier(); }",
       }) {
    EXPECT_FALSE(barriers_not_reached_by_all(std::string(kHead) + body + "\n}\n").empty()) << body;
  }
}

TEST(Barriers, in_uniform_control_flow_are_accepted) {
  for (const char* body : {
           "if (local == 0u) { shared[0] = 1u; }\n  workgroupBarrier();",
           "if (group > 9u) { return; }\n  workgroupBarrier();",
           "for (var i = 0u; i < twice(group); i++) { wait(b0[i]); }",
           "if (workgroupUniformLoad(&shared[0]) > 3u) { workgroupBarrier(); }",
           "for (var i = 0u; i < local; i++) { if (i == 3u) { break; } }\n  workgroupBarrier();",
           "var n = local;\n  for (var i = 1u; i < 9u; i++) { if (n >= i) { n -= i; } wait(3u); }",
           "// if (local == 0u) { workgroupBarrier(); }\n  wait(group);",
           "let n = subgroupShuffleXor(local, 1u);\n  if (n > 3u) { }\n  wait(group);",
       }) {
    const std::vector<std::string> found =
        barriers_not_reached_by_all(std::string(kHead) + body + "\n}\n");
    EXPECT_TRUE(found.empty()) << body << "\n" << found.at(0);
  }
}

// Calls look(text, name) for the variants of each kernel: for devices with the minimum features,
// for devices with subgroups, with subgroups emulated in workgroup memory, and for small kernels
// that are joined with others.
template <class Look>
void each_kernel(const std::vector<OpCase>& cases, const Look& look) {
  WgslOptions with_subgroups, in_memory, joined;
  with_subgroups.subgroups = {.size = 32};
  in_memory.subgroups = {.size = 32, .in_memory = true};
  joined.joined = true;
  for (const OpCase& each : cases) {
    GraphBuilder builder(11);
    builder.output("y", each.apply(inputs_of(builder, each)));
    if (each.differentiable) {
      const Embedded made = embed(builder, each);
      const std::vector<Tensor> grads = grad(made.loss, made.raw);
      for (std::size_t i = 0; i < grads.size(); ++i)
        builder.output("d" + std::to_string(i), grads[i]);
    }
    for (const Launch& launch : compile_for_test(builder.graph(), 8).program.launches) {
      std::set<std::string> texts;
      for (const WgslOptions& options : {WgslOptions{}, with_subgroups, in_memory, joined})
        texts.insert(write_wgsl(launch, options).text());
      for (const std::string& text : texts) look(text, each.name + ", " + launch.name);
    }
  }
}

TEST(Barriers, of_our_kernels_are_reached_by_every_thread) {
  int waiting = 0;
  each_kernel(kSanitized ? state_space_cases() : all_cases(),
              [&](const std::string& text, const std::string& name) {
                if (!waits_for_others(text)) return;
                ++waiting;
                const std::vector<std::string> found = barriers_not_reached_by_all(text);
                EXPECT_TRUE(found.empty()) << name << ": " << found.at(0) << "\n" << text;
              });
  EXPECT_GT(waiting, kSanitized ? 100 : 1000);
}

TEST(StateSpaces, kernels_use_no_atomics) {
  int kernels = 0;
  each_kernel(state_space_cases(), [&](const std::string& text, const std::string& name) {
    ++kernels;
    EXPECT_EQ(text.find("atomic"), std::string::npos) << name << "\n" << text;
  });
  EXPECT_GT(kernels, 300);
}

}  // namespace
}  // namespace tensorgrad::testing
