// SPDX-License-Identifier: MIT
// In the kernels of whole training steps, each thread reaches each barrier. The kernels are written
// as by the WebGPU backend, including those that several launches share.
// tests/ops/barriers_test.cpp tests single launches.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/wgsl/join.h"
#include "counts/large_gpu.h"
#include "debug/wrapped_device.h"
#include "support/small_mamba.h"
#include "support/wgsl_uniformity.h"

namespace tensorgrad::testing {
namespace {

using nn::MixerKind;

// Returns the program of a training step on a device with these limits, with clipping and AdamW.
Program training_step(const nn::LanguageModelConfig& config, std::int64_t length,
                      const std::shared_ptr<Device>& limits) {
  const auto device = std::make_shared<RecordingDevice>(limits);
  DeviceOptions where;
  where.opened = device;
  const Shape text = {2, length};
  compile(nn::LanguageModel(config),
          [](const nn::LanguageModel& net, const Inputs& in) {
            return cross_entropy(net(in["tokens"]), in["next"]);
          },
          {.inputs = {{"tokens", text, i32}, {"next", text, i32}},
           .optimizer = optim::AdamW{},
           .groups = {nn::LanguageModel::no_weight_decay()},
           .clip_grad_norm = 1,
           .device = where});
  return device->programs.at(0);
}

// Kernels whose threads wait for each other.
struct Seen {
  std::set<std::string> all;  // their texts
  int concurrent = 0, chains = 0, exchanging = 0, trading = 0;
};

// Makes each barrier conditional in turn, and expects that this is detected.
void expect_each_is_looked_at(const std::string& text) {
  for (const std::string barrier : {"workgroupBarrier();", "storageBarrier();"}) {
    for (std::size_t at = text.find(barrier); at != std::string::npos;
         at = text.find(barrier, at + 1)) {
      std::string wrong = text;
      wrong.replace(at, barrier.size(), "if (atomicLoad(&some) > 0u) { " + barrier + " }");
      ASSERT_FALSE(barriers_not_reached_by_all(wrong).empty()) << wrong;
    }
  }
}

void look_at(const Program& program, const WgslOptions& options, int max_bindings, Seen& seen) {
  for (const Dispatch& dispatch : write_dispatches(program, options, max_bindings)) {
    const std::string& text = dispatch.kernel.body;
    if (!waits_for_others(text) || !seen.all.insert(text).second) continue;
    const std::vector<std::string> found = barriers_not_reached_by_all(text);
    ASSERT_TRUE(found.empty()) << found.at(0) << "\n" << dispatch.kernel.text();
    seen.exchanging += text.find("subgroupShuffleXor") == std::string::npos ? 0 : 1;
    seen.trading += text.find("traded") == std::string::npos ? 0 : 1;
    if (dispatch.count == 1) continue;
    int& joined =
        program.launches[dispatch.first + 1].fused_sequence ? seen.chains : seen.concurrent;
    if (++joined == 1) expect_each_is_looked_at(text);
  }
}

// Tests a small model, and one with more steps and channels than a tile or chunk holds, with the
// minimum limits and with those of a large GPU. Threads exchange values through workgroup memory,
// by subgroup operations, or as subgroups through workgroup memory (`in_memory`).
void check_training_of(const std::vector<MixerKind>& layers) {
  Seen seen;
  nn::LanguageModelConfig wide = small_mamba(131, layers, 300);
  wide.d_model = 128;
  wide.mamba.d_state = 16;
  wide.mamba2 = {.d_state = 64, .head_dim = 32};
  wide.mamba3 = {.d_state = 32, .head_dim = 32, .ranks = 2};
  for (const std::shared_ptr<Device>& device :
       {std::shared_ptr<Device>(make_null_device({})), large_gpu().opened}) {
    const DeviceLimits& limits = device->info().limits;
    for (const Program& program : {training_step(small_mamba(11, layers, 24), 20, device),
                                   training_step(wide, 300, device)}) {
      for (const Subgroups& subgroups :
           {Subgroups{}, Subgroups{.size = 32}, Subgroups{.size = 32, .in_memory = true}}) {
        WgslOptions options;
        options.max_threads = limits.max_workgroup_invocations;
        options.max_workgroup_bytes = limits.max_workgroup_bytes;
        options.subgroups = subgroups;
        look_at(program, options, limits.max_storage_bindings, seen);
      }
    }
  }
  EXPECT_GT(seen.all.size(), 50U);
  for (const int some : {seen.concurrent, seen.chains, seen.exchanging, seen.trading})
    EXPECT_GT(some, 5);
}

TEST(Barriers, of_training_of_mamba1_are_reached_by_every_thread) {
  check_training_of({MixerKind::kMamba1});
}
TEST(Barriers, of_training_of_mamba2_are_reached_by_every_thread) {
  check_training_of({MixerKind::kMamba2});
}
TEST(Barriers, of_training_of_mamba3_are_reached_by_every_thread) {
  check_training_of({MixerKind::kMamba3});
}
TEST(Barriers, of_training_of_a_hybrid_are_reached_by_every_thread) {
  check_training_of({MixerKind::kMamba1, MixerKind::kAttention, MixerKind::kMlp});
}

}  // namespace
}  // namespace tensorgrad::testing
