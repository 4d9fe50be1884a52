// SPDX-License-Identifier: MIT
// Attention in a plan: nothing of T x S elements is stored, whatever the mask is made of; a launch
// can be cut by batches; dropout of the weights is the same forward and backward.
#include <algorithm>
#include <cmath>

#include "support/sketch.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kLength = 256, kHeads = 2, kDepth = 8;

struct Training {
  Sketch sketch;
  Tensor q, k, v;

  Training()
      : q(sketch.input({1, kHeads, kLength, kDepth})),
        k(sketch.input({1, kHeads, kLength, kDepth})),
        v(sketch.input({1, kHeads, kLength, kDepth})) {
    sketch.leaves["_seed"] = {77};
    sketch.leaves["_step"] = {3};
  }
  void attend(const AttentionOptions& options) {
    const Tensor loss = sum(square(scaled_dot_product_attention(q, k, v, options)));
    const std::vector<Tensor> d = grad(loss, {q, k, v});
    sketch.output("loss", loss);
    sketch.output("dq", d[0]);
    sketch.output("dk", d[1]);
    sketch.output("dv", d[2]);
  }
  std::int64_t largest_slot() {
    const Compiled compiled = compile_for_test(sketch.graph(), 8);
    std::int64_t most = 0;
    for (const BufferDecl& buffer : compiled.program.buffers) {
      if (buffer.kind == BufferKind::kSlot) most = std::max(most, buffer.bytes);
    }
    return most;
  }
  // Forward results and gradients on the cpu and in double are the same.
  void check() {
    expect_close(sketch.graph(), run_graph(sketch.graph(), sketch.leaves, Where::kCpu),
                 interpret_graph(sketch.graph(), sketch.leaves), 1e-4, "on the cpu");
  }
};

// The largest slot is that of dk and dv.
constexpr std::int64_t kMostBytes = 2 * kHeads * kLength * kDepth * 4;

TEST(Attention, stores_no_weights) {
  Training t;
  t.attend({.causal = true});
  EXPECT_LE(t.largest_slot(), kMostBytes);
  t.check();
}

TEST(Attention, stores_no_mask_of_documents) {
  Training t;
  const Tensor document = t.sketch.input({1, 1, kLength}, 0, 5, i32);
  t.attend({.mask = eq(unsqueeze(document, 3), unsqueeze(document, 2)), .causal = true});
  EXPECT_LE(t.largest_slot(), kMostBytes);
  t.check();
}

TEST(Attention, stores_no_slopes_over_distances) {
  Training t;
  const Tensor slope = t.sketch.input({kHeads, 1, 1}, 0.01, 0.1);
  const Shape square = {kLength, kLength};
  t.attend({.mask = (iota(square, 1, f32) - iota(square, 0, f32)) * slope, .causal = true});
  EXPECT_LE(t.largest_slot(), kMostBytes);
  t.check();
}

TEST(Attention, stores_no_random_numbers_and_drops_the_same_backwards) {
  Training t;
  t.attend({.causal = true, .dropout = 0.3});
  EXPECT_LE(t.largest_slot(), kMostBytes);
  t.check();
}

TEST(Attention, of_a_stored_mask_reads_it) {
  Training t;
  const Tensor allowed = t.sketch.boolean({kLength, kLength});
  t.attend({.mask = allowed});
  EXPECT_LE(t.largest_slot(), kMostBytes);
  t.check();
}

// What a mask closes is not read: were it only multiplied by zero, NaN would come through.
void leaves_out_what_is_closed(Where where) {
  constexpr std::int64_t kRows = 40, kColumns = 600, kOpen = 256;
  Sketch s;
  const auto keys = [&](Draw& draw) {
    Values values = draw.values(f32, kHeads * kColumns * kDepth, -1, 1);
    for (std::int64_t i = 0; i < numel({kHeads, kColumns, kDepth}); ++i) {
      if (i / kDepth % kColumns >= kOpen) values[static_cast<std::size_t>(i)] = std::nan("");
    }
    return s.input({kHeads, kColumns, kDepth}, f32, values);
  };
  const Tensor q = s.input({kHeads, kRows, kDepth}), k = keys(s.draw), v = keys(s.draw);
  // A cache of which 100 places are full; the last rows see none of it.
  const Shape scores = {kRows, kColumns};
  const Tensor row = iota(scores, 0, f32), column = iota(scores, 1, f32);
  const Tensor full = s.input({}, f32, {100});
  const Tensor o =
      scaled_dot_product_attention(q, k, v, {.mask = column - row < full && row < 35.0});
  const std::vector<Tensor> d = grad(sum(square(o)), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) s.output("d" + std::to_string(i), d[i]);
  s.output("o", o);
  ValueMap zeros = s.leaves;
  for (auto& [name, values] : zeros) {
    std::replace_if(values.begin(), values.end(), [](double x) { return std::isnan(x); }, 0.0);
  }
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), interpret_graph(s.graph(), zeros),
               1e-4, to_string(where));
}

TEST(Attention, leaves_out_what_a_mask_closes_on_cpu) { leaves_out_what_is_closed(Where::kCpu); }
TEST(Attention, leaves_out_what_a_mask_closes_on_webgpu) {
  leaves_out_what_is_closed(Where::kWebGpu);
}

TEST(Attention, is_cut_by_batches_on_webgpu) {
  Sketch s;
  const Shape shape = {6, 20, 16};
  const Tensor q = s.input(shape), k = s.input(shape), v = s.input(shape);
  const Tensor o = scaled_dot_product_attention(q, k, v, {.causal = true});
  const std::vector<Tensor> d = grad(sum(o * o), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) s.output("d" + std::to_string(i), d[i]);
  s.output("o", o);
  // All of q is 7,680 bytes; what dk and dv are stored in, twice that.
  const std::int64_t most = 11 * 1024;
  const Compiled cut = compile_for_test(s.graph(), 8, most);
  EXPECT_GT(std::count_if(cut.program.launches.begin(), cut.program.launches.end(),
                          [](const Launch& l) { return l.kind == LaunchKind::kAttention; }),
            3);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 0, most),
               interpret_graph(s.graph(), s.leaves), 1e-4, "on webgpu");
}

}  // namespace
}  // namespace tensorgrad::testing
