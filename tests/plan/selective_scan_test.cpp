// SPDX-License-Identifier: MIT
// Selective scans in a plan: which values are saved for the backward pass, that a launch can be cut
// by batches, and that sums are added up in one order.
#include <algorithm>
#include <utility>

#include "codegen/wgsl/writer.h"
#include "kernel/selective.h"
#include "kernel/selective_kept.h"
#include "plan/scan_training.h"

namespace tensorgrad::testing {
namespace {

TEST(SelectiveScan, stores_one_state_of_sixteen) {
  constexpr std::int64_t kSteps = 512, kLines = 32, kStates = 16;
  ScanTraining t(1, kSteps, kLines, kStates);
  const Compiled compiled = compile_for_test(t.builder.graph(), 8);
  std::int64_t most = 0;
  for (const BufferDecl& buffer : compiled.program.buffers) {
    if (buffer.kind == BufferKind::kSlot) most = std::max(most, buffer.bytes);
  }
  // The results of the backward launch, for two segments. All states would take five times as much.
  const std::int64_t steps = kSteps * kLines, state = kLines * kStates;
  EXPECT_LE(most, 4 * (2 * steps + 2 * kSteps * kStates + 3 * state));
  EXPECT_LT(5 * most, 4 * steps * kStates + 1024);
  t.check(Where::kCpu);
}

// Saved states are stored in pairs if only backward passes read them. They are not if maps read
// them, as for a gradient that is differentiated again, or if the number of states is odd.
TEST(SelectiveScan, keeps_states_by_pairs_only_for_backward_on_webgpu) {
  const auto paired = [](ScanTraining& t) {
    return paired_states(compile_for_test(t.builder.graph(), 8).program).size();
  };
  for (const auto& [states, buffers] : {std::pair(6, 1U), std::pair(5, 0U)}) {
    ScanTraining t(2, 40, 8, states);
    EXPECT_EQ(paired(t), buffers) << states;
  }
  for (const auto& [states, buffers] : {std::pair(6, 1U), std::pair(5, 0U)}) {
    ScanTraining gated(2, 40, 8, states, true);
    EXPECT_EQ(paired(gated), buffers) << states << ", gated";
  }
  ScanTraining twice(2, 40, 8, 6);
  const std::vector<Tensor>& in = twice.inputs;
  const Tensor y = selective_scan(in[0], in[1], in[2], in[3], in[4]).y;
  const Tensor d = grad(sum(square(y)), {in[1]}).at(0);
  twice.builder.output("dd", grad(sum(square(d)), {in[1]}).at(0));
  EXPECT_EQ(paired(twice), 0U);
  twice.check(Where::kWebGpu);
}

// D and the gate are part of the scan launches, forward and backward. The only other tensor with
// all steps is 2 y, the incoming gradient.
TEST(SelectiveScan, fuses_the_gate) {
  ScanTraining t(2, 64, 12, 4, true);
  const Compiled compiled = compile_for_test(t.builder.graph(), 8);
  int scans = 0, others = 0;
  for (const Launch& launch : compiled.program.launches) {
    const Store& store = launch.stores.at(0);
    const int buffer = launch.bindings.at(static_cast<std::size_t>(store.binding)).buffer;
    const BufferKind kind = compiled.program.buffers.at(static_cast<std::size_t>(buffer)).kind;
    if (find_kernel<SelectiveKernel>(launch) != nullptr) {
      ++scans;
    } else if (kind == BufferKind::kSlot && store.map.domain_size() == 2 * 64 * 12) {
      ++others;
    }
  }
  EXPECT_EQ(scans, 2);
  EXPECT_EQ(others, 1) << print(compiled.program);
  t.check(Where::kCpu);
}

// Without a backward pass, only the last state is kept. Neither the other states nor o of a gated
// scan are written.
TEST(SelectiveScan, forward_keeps_only_the_last_state) {
  constexpr std::int64_t kSteps = 512, kLines = 8, kStates = 16;
  for (const bool gated : {false, true}) {
    GraphBuilder s;
    const Shape steps = {1, kSteps, kLines}, bc = {1, kSteps, kStates};
    SelectiveScanOptions options;
    if (gated) options.z = s.input(steps);
    const SelectiveScan scan =
        selective_scan(s.input(steps), s.input(steps, 0.01, 0.4), s.input({kLines, kStates}, -2, 0),
                       s.input(bc), s.input(bc), options);
    s.output("y", scan.y);
    s.output("state", scan.state);
    const Program program = compile_for_test(s.graph(), 8).program;
    constexpr std::int64_t kResults = kSteps * kLines + kLines * kStates;
    for (const Launch& launch : program.launches) {
      if (find_kernel<SelectiveKernel>(launch) == nullptr) continue;
      std::int64_t written = 0;
      for (const Store& store : launch.stores) written += store.map.domain_size();
      EXPECT_EQ(written, kResults);
      EXPECT_EQ(write_wgsl(launch).text().find("store2"), std::string::npos);
    }
    for (const BufferDecl& buffer : program.buffers) {
      if (buffer.kind != BufferKind::kSlot) continue;
      EXPECT_LE(buffer.bytes, 4 * (kSteps * 2 * kStates + 256)) << buffer.name;  // B and C together
    }
    s.check(Where::kCpu, 1e-4);
  }
}

// Only the forward launch is cut by batches, because its operands are too large.
TEST(SelectiveScan, is_split_by_batch_on_webgpu) {
  GraphBuilder s;
  const Tensor u = s.input({6, 20, 16}), delta = s.input({6, 20, 16}, 0.01, 0.4);
  const Tensor wide = s.input({6, 20, 16, 8}), bc = s.input({6, 20, 4});
  // Every eighth element of an operand: the binding covers the whole operand.
  const Tensor thin = squeeze(narrow(wide, 3, 0, 1), 3);
  s.output("y", selective_scan(u * 0.5, delta, s.input({16, 4}, -2, -0.1), bc, bc).y);
  s.output("of_thin", selective_scan(thin, delta, s.input({16, 4}, -2, -0.1), bc, bc).y);
  const SelectiveScanOptions by_thin = {.D = s.input({16}), .z = thin};
  s.output("by_thin", selective_scan(u, delta, s.input({16, 4}, -2, -0.1), bc, bc, by_thin).y);
  const std::int64_t most = 32 * 1024;  // `wide` has 61,440 bytes
  const Compiled cut = compile_for_test(s.graph(), 8, most);
  const auto scans = [&](bool gated) {
    return std::count_if(
        cut.program.launches.begin(), cut.program.launches.end(), [&](const Launch& l) {
          return find_kernel<SelectiveKernel>(l) != nullptr &&
                 l.as<OpaqueLaunch>().input(SelectiveInput::kZ).instrs.empty() != gated;
        });
  };
  EXPECT_GT(scans(false), 2);
  EXPECT_GT(scans(true), 1);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 0, most),
               interpret_graph(s.graph(), s.leaves), 1e-4, "on webgpu");
}

TEST(SelectiveScan, of_more_results_than_a_binding_holds_is_rejected) {
  ScanTraining t(6, 20, 16, 4);
  EXPECT_THROW(static_cast<void>(compile_for_test(t.builder.graph(), 8, 8 * 1024)), UserError);
}

TEST(SelectiveScan, binds_no_more_than_eight_buffers) {
  for (const std::int64_t length : {60, 300}) {  // in one segment, and in two
    for (const bool of_state : {false, true}) {
      GraphBuilder s;
      const Shape steps = {1, length, 4}, bc = {1, length, 3};
      const std::vector<Tensor> t = {
          s.input(steps), s.input(steps, 0.01, 0.4), s.input({4, 3}, -2, 0), s.input(bc),
          s.input(bc),    s.input({1, 4, 3}),        s.input({4}),           s.input(steps)};
      const SelectiveScan scan = selective_scan(t[0], t[1], t[2], t[3], t[4],
                                                {.D = t[6], .z = t[7], .initial_state = t[5]});
      Tensor loss = sum(square(scan.y));
      if (of_state) loss = loss + sum(scan.state * t[5]);
      const std::vector<Tensor> d = grad(loss, t);
      for (std::size_t i = 0; i < d.size(); ++i) s.output("d" + std::to_string(i), d[i]);
      for (const Launch& launch : compile_for_test(s.graph(), 8).program.launches)
        EXPECT_LE(launch.bindings.size(), 8U) << launch.name << ", " << length;
    }
  }
}

// With 520 channels there are enough lines for each to process all of its steps in one piece.
// Otherwise a third launch first computes what flows back into each piece.
TEST(SelectiveScan, of_many_channels_has_an_unsplit_backward_pass) {
  for (const std::int64_t channels : {520, 30}) {
    ScanTraining t(2, 270, channels, 61);
    const Compiled compiled = compile_for_test(t.builder.graph(), 8);
    EXPECT_EQ(
        std::count_if(compiled.program.launches.begin(), compiled.program.launches.end(),
                      [](const Launch& l) { return find_kernel<SelectiveKernel>(l) != nullptr; }),
        channels == 520 ? 2 : 3);
  }
  ScanTraining(2, 70, 520, 61).check(Where::kCpu);
}
TEST(SelectiveScan, of_many_channels_unsplit_matches_the_reference_on_webgpu) {
  ScanTraining(2, 70, 520, 61).check(Where::kWebGpu);
}

TEST(SelectiveScan, needs_the_workgroup_memory_that_every_device_has) {
  for (const std::int64_t states : {1, 4, 5, 8, 16, 33, 64}) {
    for (const std::int64_t channels : {1, 3, 40}) {
      for (const bool gated : {false, true}) {
        ScanTraining t(1, 40, channels, states, gated);
        for (const Launch& launch : compile_for_test(t.builder.graph(), 8).program.launches) {
          if (find_kernel<SelectiveKernel>(launch) == nullptr) continue;
          EXPECT_LE(write_wgsl(launch).workgroup_bytes, 16 << 10) << states << " x " << channels;
        }
      }
    }
  }
}

void check_equal_scans(Where where) {
  for (const std::int64_t length : {60, 300}) {  // by blocks of channels, and by lines
    ScanTraining t(3, length, 70, 5, true);
    const ValueMap first = run_graph(t.builder.graph(), t.builder.leaves, where);
    EXPECT_EQ(first, run_graph(t.builder.graph(), t.builder.leaves, where));
  }
}
TEST(SelectiveScan, is_deterministic) { check_equal_scans(Where::kCpu); }
TEST(SelectiveScan, is_deterministic_on_webgpu) { check_equal_scans(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
