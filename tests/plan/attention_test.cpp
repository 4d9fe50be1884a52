// SPDX-License-Identifier: MIT
// Attention in a plan: no tensor of T x S elements is stored, whatever the mask is computed from. A
// launch can be cut by batches. Dropout of the weights is the same forward and backward.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel/attention.h"
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kLength = 256, kHeads = 2, kDepth = 8;

struct Training {
  GraphBuilder builder;
  Tensor q, k, v;

  Training()
      : q(builder.input({1, kHeads, kLength, kDepth})),
        k(builder.input({1, kHeads, kLength, kDepth})),
        v(builder.input({1, kHeads, kLength, kDepth})) {
    builder.leaves["_seed"] = {77};
    builder.leaves["_step"] = {3};
  }
  void attend(const AttentionOptions& options) {
    const Tensor loss = sum(square(scaled_dot_product_attention(q, k, v, options)));
    const std::vector<Tensor> d = grad(loss, {q, k, v});
    builder.output("loss", loss);
    builder.output("dq", d[0]);
    builder.output("dk", d[1]);
    builder.output("dv", d[2]);
  }
  std::int64_t largest_slot() {
    const Compiled compiled = compile_for_test(builder.graph(), 8);
    std::int64_t most = 0;
    for (const BufferDecl& buffer : compiled.program.buffers) {
      if (buffer.kind == BufferKind::kSlot) most = std::max(most, buffer.bytes);
    }
    return most;
  }
  // Compares forward results and gradients on the CPU with the interpreter, which computes in
  // double.
  void check() {
    expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, Where::kCpu),
                 interpret_graph(builder.graph(), builder.leaves), 1e-4, "on the cpu");
  }
};

// The largest slot holds dk and dv.
constexpr std::int64_t kMaxBytes = 2 * kHeads * kLength * kDepth * 4;

TEST(Attention, stores_no_weights) {
  Training t;
  t.attend({.causal = true});
  EXPECT_LE(t.largest_slot(), kMaxBytes);
  t.check();
}

// The attention kernel needs barriers. If they are slow on a device, attention is computed by
// products.
TEST(Attention, uses_products_if_barriers_are_slow) {
  Training t;
  t.attend({.causal = true});
  DeviceInfo info = device_at(Where::kCpu)->info();
  for (const bool slow : {false, true}) {
    info.slow_barriers = slow;
    CompileRequest request;
    request.graph = t.builder.graph();
    compile_for(info, request);
    const Compiled compiled = compile_graph(std::move(request));
    const bool attends = std::any_of(
        compiled.program.launches.begin(), compiled.program.launches.end(),
        [](const Launch& launch) { return find_kernel<AttentionKernel>(launch) != nullptr; });
    EXPECT_EQ(attends, !slow);
    expect_close(t.builder.graph(), interpret_graph(compiled.graph, t.builder.leaves),
                 interpret_graph(t.builder.graph(), t.builder.leaves), 1e-6, "as compiled");
  }
}

TEST(Attention, stores_no_mask_of_documents) {
  Training t;
  const Tensor document = t.builder.input({1, 1, kLength}, 0, 5, i32);
  t.attend({.mask = eq(unsqueeze(document, 3), unsqueeze(document, 2)), .causal = true});
  EXPECT_LE(t.largest_slot(), kMaxBytes);
  t.check();
}

TEST(Attention, stores_no_slopes_over_distances) {
  Training t;
  const Tensor slope = t.builder.input({kHeads, 1, 1}, 0.01, 0.1);
  const Shape square = {kLength, kLength};
  t.attend({.mask = (iota(square, 1, f32) - iota(square, 0, f32)) * slope, .causal = true});
  EXPECT_LE(t.largest_slot(), kMaxBytes);
  t.check();
}

TEST(Attention, stores_no_random_numbers_and_drops_the_same_backwards) {
  Training t;
  t.attend({.causal = true, .dropout = 0.3});
  EXPECT_LE(t.largest_slot(), kMaxBytes);
  t.check();
}

TEST(Attention, reads_a_stored_mask) {
  Training t;
  const Tensor allowed = t.builder.boolean({kLength, kLength});
  t.attend({.mask = allowed});
  EXPECT_LE(t.largest_slot(), kMaxBytes);
  t.check();
}

// Masked elements are not read. If they were multiplied by zero instead, their NaN would propagate.
void leaves_out_what_is_closed(Where where, DType dtype = f32) {
  constexpr std::int64_t kRows = 40, kColumns = 600, kDynamic = 256;
  GraphBuilder s;
  const auto keys = [&](Draw& draw) {
    Values values = draw.values(dtype, kHeads * kColumns * kDepth, -1, 1);
    for (std::int64_t i = 0; i < numel({kHeads, kColumns, kDepth}); ++i) {
      if (i / kDepth % kColumns >= kDynamic) values[static_cast<std::size_t>(i)] = std::nan("");
    }
    return s.input({kHeads, kColumns, kDepth}, dtype, values);
  };
  const Tensor q = s.input({kHeads, kRows, kDepth}, -2, 2, dtype), k = keys(s.draw),
               v = keys(s.draw);
  // A cache with 100 filled positions. The last rows attend to none of them.
  const Shape scores = {kRows, kColumns};
  const Tensor row = iota(scores, 0, f32), column = iota(scores, 1, f32);
  const Tensor full = s.input({}, f32, {100});
  const Tensor o =
      scaled_dot_product_attention(q, k, v, {.mask = column - row < full && row < 35.0});
  const std::vector<Tensor> d = grad(sum(square(cast(o, f32))), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) s.output("d" + std::to_string(i), d[i]);
  s.output("o", o);
  ValueMap zeros = s.leaves;
  for (auto& [name, values] : zeros) {
    std::replace_if(values.begin(), values.end(), [](double x) { return std::isnan(x); }, 0.0);
  }
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, where), interpret_graph(s.graph(), zeros),
               dtype == f16 ? 4e-3 : 1e-4, to_string(where));
}

TEST(Attention, skips_masked_blocks_on_cpu) { leaves_out_what_is_closed(Where::kCpu); }
TEST(Attention, skips_masked_blocks_on_webgpu) { leaves_out_what_is_closed(Where::kWebGpu); }
// Uses the subgroup matrix if the device has it.
TEST(Attention, skips_masked_blocks_of_f16_on_webgpu) {
  leaves_out_what_is_closed(Where::kWebGpu, f16);
}

// With the subgroup matrix, the results of a row are rescaled when a score exceeds the maximum so
// far. Keys grow with their position, so this happens in several blocks of columns. The first
// columns are masked by the lowest number, as other libraries do.
TEST(Attention, rescales_results_of_f16_if_scores_grow_on_webgpu) {
  constexpr std::int64_t kRows = 40, kColumns = 256, kWide = 16;
  for (const bool causal : {false, true}) {
    GraphBuilder s;
    Values keys = s.draw.values(f16, kHeads * kColumns * kWide, 0.5, 1);
    for (std::size_t i = 0; i < keys.size(); ++i)
      keys[i] *= static_cast<double>(1 << (i / kWide % kColumns / 64));  // 1 to 8
    const Tensor q = s.input({kHeads, causal ? kColumns : kRows, kWide}, 0.5, 1, f16),
                 k = s.input({kHeads, kColumns, kWide}, f16, keys),
                 v = s.input({kHeads, kColumns, kWide}, -1, 1, f16);
    const Shape scores = {q.shape()[1], kColumns};
    const Tensor low = where(iota(scores, 1, f32) < 40.0, -3.4028235e38, 0.0);
    const Tensor o = scaled_dot_product_attention(q, k, v, {.mask = low, .causal = causal});
    s.output("o", o);
    const std::vector<Tensor> d = grad(sum(square(cast(o, f32))), {q, v});
    s.output("dq", d[0]);
    s.output("dv", d[1]);
    s.check(Where::kWebGpu, 4e-3);
  }
}

std::vector<Launch> attention_launches(const Program& program) {
  std::vector<Launch> found;
  std::copy_if(
      program.launches.begin(), program.launches.end(), std::back_inserter(found),
      [](const Launch& launch) { return find_kernel<AttentionKernel>(launch) != nullptr; });
  return found;
}

// The forward launch computes the logsumexp only if it is needed.
TEST(Attention, stores_the_logsumexp_for_gradients) {
  for (const bool trained : {false, true}) {
    GraphBuilder s;
    const Tensor q = s.input({2, 20, 16}), k = s.input({2, 20, 16}), v = s.input({2, 20, 16});
    const Tensor o = scaled_dot_product_attention(q, k, v);
    s.output("o", o);
    if (trained) s.output("dq", grad(sum(square(o)), {q})[0]);
    const std::vector<Launch> found = attention_launches(compile_for_test(s.graph(), 8).program);
    ASSERT_EQ(found.size(), trained ? 2U : 1U);
    EXPECT_EQ(found[0].stores.size(), trained ? 2U : 1U);
  }
}

// Only the logsumexp is needed, as in the gradient of a gradient that does not depend on the output
// itself.
void gives_the_logsumexp_alone(Where where) {
  const Graph graph = parse(R"(%0 = input() {dtype=0, name="q", shape=[2,20,16]} : f32[2,20,16]
%1 = input() {dtype=0, name="k", shape=[2,30,16]} : f32[2,30,16]
%2 = input() {dtype=0, name="v", shape=[2,30,8]} : f32[2,30,8]
%3 = attention_lse(%0, %1, %2) {causal=0, keep=0, mask=0, scale=f:0x1p-2} : f32[2,20]
output lse = %3
)",
                            "lse", find_op);
  const std::vector<Launch> found = attention_launches(compile_for_test(graph, 8).program);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].stores.size(), 1U);
  EXPECT_EQ(found[0].stores[0].map.domain_size(), 40);
  Draw draw(5);
  const ValueMap leaves = {{"q", draw.values(DType::kF32, 640, -2, 2)},
                           {"k", draw.values(DType::kF32, 960, -2, 2)},
                           {"v", draw.values(DType::kF32, 480, -2, 2)}};
  expect_close(graph, run_graph(graph, leaves, where), interpret_graph(graph, leaves), 1e-5,
               to_string(where));
}

TEST(Attention, computes_only_the_logsumexp_on_cpu) { gives_the_logsumexp_alone(Where::kCpu); }
TEST(Attention, computes_only_the_logsumexp_on_webgpu) {
  gives_the_logsumexp_alone(Where::kWebGpu);
}

// In f16, results are rounded by the attention launches themselves; a device without f16 rounds
// them, too.
TEST(Attention, of_f16_returns_f16_on_webgpu) {
  GraphBuilder s;
  const Shape shape = {2, 40, 16};
  std::vector<Tensor> qkv;
  for (int i = 0; i < 3; ++i) qkv.push_back(s.input(shape, -1, 1, f16));
  const Tensor o = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {.causal = true});
  const std::vector<Tensor> d = grad(sum(square(cast(o, f32))), qkv);
  s.output("o", o);
  for (std::size_t i = 0; i < 3; ++i) s.output("d" + std::to_string(i), d[i] + d[i]);
  const Program program = compile_for_test(s.graph(), 8).program;
  ASSERT_EQ(attention_launches(program).size(), 3U);
  for (const Launch& launch : attention_launches(program)) {
    for (const Store& store : launch.stores) {
      const bool lse =
          kernel_of<AttentionKernel>(launch).pass == AttentionPass::kForward && store.value == 1;
      EXPECT_EQ(store.dtype, lse ? DType::kF32 : DType::kF16);
    }
  }
  for (const Where where : {Where::kWebGpu, Where::kWebGpuDefaultLimits}) s.check(where, 4e-3);
}

TEST(Attention, is_split_by_batch_on_webgpu) {
  GraphBuilder s;
  const Shape shape = {6, 20, 16};
  const Tensor q = s.input(shape), k = s.input(shape), v = s.input(shape);
  const Tensor o = scaled_dot_product_attention(q, k, v, {.causal = true});
  const std::vector<Tensor> d = grad(sum(o * o), {q, k, v});
  for (std::size_t i = 0; i < 3; ++i) s.output("d" + std::to_string(i), d[i]);
  s.output("o", o);
  // q takes 7,680 bytes in all. The buffer of dk and dv takes twice that.
  const std::int64_t most = 11 * 1024;
  const Compiled cut = compile_for_test(s.graph(), 8, most);
  EXPECT_GT(
      std::count_if(cut.program.launches.begin(), cut.program.launches.end(),
                    [](const Launch& l) { return find_kernel<AttentionKernel>(l) != nullptr; }),
      3);
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 0, most),
               interpret_graph(s.graph(), s.leaves), 1e-4, "on webgpu");
}

}  // namespace
}  // namespace tensorgrad::testing
