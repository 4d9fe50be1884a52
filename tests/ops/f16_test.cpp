// SPDX-License-Identifier: MIT
// f16: stored and moved in two bytes and computed in f32, with the same results on every device,
// including devices that store it as f32.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/half.h"
#include "codegen/wgsl/writer.h"
#include "op_cases.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

// Where a group of tests runs: on the CPU, or on WebGPU with and without f16.
using Places = std::span<const Where>;
constexpr Where kOnCpu[] = {Where::kCpu};
constexpr Where kOnWebGpu[] = {Where::kWebGpu, Where::kWebGpuDefaultLimits};

void check_at(Places places, GraphBuilder& s, double tolerance) {
  for (const Where where : places) s.check(where, tolerance);
}

double rounded(double value) { return from_half(to_half(static_cast<float>(value))); }

// Border cases (ties, the largest, the smallest normal and subnormal values) and random numbers of
// all magnitudes.
Values edges() {
  Values values = {0,        -0.0,        1,       -1,      1 + 0x1p-11, 1 + 0x1.8p-10,
                   65504,    65519.9,     65520,   -65520,  1e30,        -1e30,
                   0x1p-14,  0x1.ffcp-15, 0x1p-24, 0x1p-25, 0x1.002p-25, -0x1.8p-24,
                   INFINITY, -INFINITY,   NAN,     2047.5,  2048.5,      4099};
  Draw draw(7);
  for (int i = 0; i < 4000; ++i) {
    const double size = std::exp2(draw.real(-26, 17));
    values.push_back(static_cast<float>(draw.chance(0.5) ? size : -size));
  }
  return values;
}

void check_rounding(Places places) {
  const Values given = edges();
  GraphBuilder s;
  const Tensor x = s.input({static_cast<std::int64_t>(given.size())}, f32, given);
  s.output("rounded", round_to_f16(x));
  s.output("there and back", cast(cast(x, f16), f32));
  s.output("kept", cast(x, f16));
  Values want;
  for (const double value : given) want.push_back(rounded(value));
  for (const Where where : places) {
    expect_close(s.graph(), run_graph(s.graph(), s.leaves, where),
                 {{"rounded", want}, {"there and back", want}, {"kept", want}}, 0,
                 to_string(where));
  }
}
TEST(F16, is_rounded_to_the_nearest_on_cpu) { check_rounding(kOnCpu); }
TEST(F16, is_rounded_to_the_nearest_on_webgpu) { check_rounding(kOnWebGpu); }

void check_moves(Places places) {
  for (const std::int64_t n : {1, 5, 8, 33}) {
    GraphBuilder s(static_cast<std::uint64_t>(n));
    const Tensor x = s.input({3, n, 2}, -4, 4, f16), y = s.input({3, 2, 2}, -4, 4, f16);
    const Tensor index = s.input({3, 7, 2}, -1, static_cast<double>(n), i32);
    s.output("turned", transpose(x, 0, 2));
    s.output("flipped", flip(x, 1));
    s.output("padded", pad(x, {1, 2}, 0.1));
    s.output("narrowed", narrow(x, 1, n - 1, 1));
    s.output("joined", concat({x, y, x}, 1));
    s.output("gathered", gather(x, 1, index));
    s.output("updated", index_update(x, 1, narrow(index, 1, 0, 1), y));
    s.output("chosen", where(gt(x, 0.0), x, reshape(flip(x, 0), {3, n, 2})));
    s.output("whole", cast(x, i32));
    s.output("counted", cast(arange(n), f16));
    s.output("wide", cast(expand(unsqueeze(x, 0), {2, -1, -1, -1}), f32));
    check_at(places, s, 0);
  }
}
TEST(F16, moves_keep_the_bits_on_cpu) { check_moves(kOnCpu); }
TEST(F16, moves_keep_the_bits_on_webgpu) { check_moves(kOnWebGpu); }

void check_states(Places places) {
  GraphBuilder s;
  const Tensor kept = s.leaf(ops::state, "kept", {5, 3}, f16, s.draw.values(f16, 15, -2, 2));
  const Tensor x = s.input({5, 3});
  const Trace& trace = Trace::current("update", {});
  const ValueId leaf = trace.value(kept, "update", {});
  const ValueId value = trace.value(kept * 0.5 + cast(x, f16), "update", {});
  s.graph().updates.push_back({leaf, value});
  check_at(places, s, 1e-3);
}
TEST(F16, keeps_states_on_cpu) { check_states(kOnCpu); }
TEST(F16, keeps_states_on_webgpu) { check_states(kOnWebGpu); }

TEST(F16, is_the_type_of_results_of_f16_operands) {
  GraphBuilder s;
  const Tensor h = s.input({4, 4}, -1, 1, f16), x = s.input({4, 4});
  EXPECT_EQ((h + h).dtype(), f16);
  EXPECT_EQ((h * 0.1).dtype(), f16);
  EXPECT_EQ((h + x).dtype(), f32);
  EXPECT_EQ((h > 0.0).dtype(), boolean);
  EXPECT_EQ(where(h > 0.0, h, x).dtype(), f32);
  EXPECT_EQ(where(h > 0.0, h, 0.0).dtype(), f16);
  EXPECT_EQ(matmul(h, h).dtype(), f16);
  EXPECT_EQ(matmul(h, x).dtype(), f32);
  EXPECT_EQ(sum(h).dtype(), f16);
  EXPECT_EQ(mean(h).dtype(), f16);
  EXPECT_EQ(argmax(h, 0).dtype(), i32);
  // Weights are f32: the type of the input determines the result.
  EXPECT_EQ(linear(h, x).dtype(), f16);
  EXPECT_EQ(layer_norm(h, s.input({4})).dtype(), f16);
  EXPECT_EQ(softmax(h).dtype(), f16);
  EXPECT_EQ(gelu(h).dtype(), f16);
  EXPECT_EQ(cumsum(h, 0).dtype(), f16);
  EXPECT_EQ(mse(h, h).dtype(), f32);
  EXPECT_EQ(scaled_dot_product_attention(h, h, h).dtype(), f16);
}

// The error is one rounding above that of f32. Intermediate sums do not overflow.
void check_computing(Places places) {
  GraphBuilder s;
  const Tensor h = s.input({40, 33}, -1, 1, f16), w = s.input({20, 33}, -1, 1);
  const Tensor large = full({3000}, 300, f16);
  s.output("mean", mean(large));
  s.output("norm", norm(large));
  s.output("softmax", softmax(h * 8.0));
  s.output("linear", relu(linear(h, w)));
  s.output("product", matmul(h, transpose(h)));
  s.output("sum", sum(h, 0));
  s.output("layer_norm", layer_norm(h));
  s.output("sorted", argsort(h, 1));
  s.output("summed", cumsum(h, 1));
  s.output("power", pow(abs(h) + 0.5, 1.5));
  const Tensor image = reshape(narrow(h, 1, 0, 32), {2, 4, 5, 32});
  s.output("conv", conv2d(image, s.input({6, 4, 3, 3}, -1, 1)));
  s.output("pool", max_pool2d(image, {2, 2}));
  s.output("attention", scaled_dot_product_attention(h, h, h, {.causal = false}));
  check_at(places, s, 2e-3);
  const ValueMap mean_of = interpret_graph(s.graph(), s.leaves);
  EXPECT_EQ(mean_of.at("mean"), Values{300});
}
TEST(F16, is_computed_in_f32_on_cpu) { check_computing(kOnCpu); }
TEST(F16, is_computed_in_f32_on_webgpu) { check_computing(kOnWebGpu); }

// The gradients of a net with f16 activations match those of f32 to three digits, and have the type
// of the tensor they belong to.
void check_gradients_of_halves(Places places) {
  ValueMap found[2];
  for (const bool half : {false, true}) {
    GraphBuilder s(3);
    const Tensor x = s.input({16, 12}, -1, 1), w = s.input({24, 12}, -0.5, 0.5),
                 v = s.input({3, 24}, -0.5, 0.5), t = s.input({16, 3}, -1, 1);
    const Tensor in = half ? cast(x, f16) : x;
    const Tensor hidden = silu(linear(in, w));
    const Tensor y = linear(softmax(hidden), v);
    const std::vector<Tensor> grads = grad(mse(y, t), {w, v, x, hidden});
    EXPECT_EQ(grads[3].dtype(), half ? f16 : f32);
    for (std::size_t i = 0; i < grads.size(); ++i)
      s.output("d" + std::to_string(i), cast(grads[i], f32));
    found[half ? 1 : 0] = interpret_graph(s.graph(), s.leaves);
    if (!half) continue;
    check_at(places, s, 1e-4);
    expect_close(s.graph(), found[1], found[0], 2e-3, "beside f32");
  }
}
TEST(F16, has_gradients_on_cpu) { check_gradients_of_halves(kOnCpu); }
TEST(F16, has_gradients_on_webgpu) { check_gradients_of_halves(kOnWebGpu); }

// Products large enough for subgroup matrices, if the device has them, with fused pointwise ops.
// The sizes are not multiples of a tile. The two products of the gradient, which would share a
// launch, are tested separately.
void check_large_products(Places places) {
  for (const bool of_weights : {false, true}) {
    GraphBuilder s;
    const Tensor x = s.input({201, 138}, -1, 1, f16), w = s.input({170, 138}, -0.2, 0.2, f16);
    const Tensor y = silu(linear(x, w));
    s.output("y", y);
    const Tensor loss = mean(square(cast(y, f32))) * 100.0;
    s.output("gradient", cast(grad(loss, {of_weights ? w : x})[0], f32));
    check_at(places, s, 2e-3);
  }
}
TEST(F16, large_products_are_right_on_cpu) { check_large_products(kOnCpu); }
TEST(F16, large_products_are_right_on_webgpu) { check_large_products(kOnWebGpu); }

// Attention with subgroup matrices, if the device has them: rows and columns that do not fill
// blocks, few rows, heads of 128, additive and boolean masks, dropout, and a row that attends to
// almost nothing.
void check_attention(Places places) {
  struct Case {
    std::int64_t batch, rows, columns, depth, width;
    bool causal, mask;
    double dropout = 0;
    bool bool_mask = false;
  };
  for (const Case& c :
       {Case{2, 70, 70, 16, 16, true, false}, Case{1, 33, 97, 16, 32, false, true},
        Case{3, 5, 40, 32, 16, false, false}, Case{1, 64, 64, 16, 16, true, true},
        Case{1, 40, 40, 16, 16, true, false, 0.25}, Case{2, 70, 75, 16, 16, false, true, 0, true},
        Case{1, 70, 70, 16, 32, true, true, 0, true}, Case{1, 33, 40, 128, 128, true, false},
        Case{1, 1, 90, 16, 16, false, true, 0, true}}) {
    SCOPED_TRACE(std::to_string(c.rows) + "x" + std::to_string(c.columns));
    GraphBuilder s;
    const Tensor q = s.input({c.batch, c.rows, c.depth}, -2, 2, f16);
    const Tensor k = s.input({c.batch, c.columns, c.depth}, -2, 2, f16);
    const Tensor v = s.input({c.batch, c.columns, c.width}, -1, 1, f16);
    const Tensor weight = s.input({c.batch, c.rows, c.width}, -1, 1);
    AttentionOptions options{.causal = c.causal, .dropout = c.dropout};
    if (c.mask && !c.bool_mask) options.mask = s.input({c.batch, c.rows, c.columns}, -3, 1);
    if (c.bool_mask) options.mask = s.boolean({c.batch, c.rows, c.columns});
    const Tensor y = scaled_dot_product_attention(q, k, v, options);
    s.output("y", cast(y, f32));
    const std::vector<Tensor> gradients = grad(sum(cast(y, f32) * weight), {q, k, v});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      s.output("gradient " + std::to_string(i), cast(gradients[i], f32));
    check_at(places, s, 4e-3);
  }
}
TEST(F16, attention_is_right_on_cpu) { check_attention(kOnCpu); }
TEST(F16, attention_is_right_on_webgpu) { check_attention(kOnWebGpu); }

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

// A value that is only stored as f16 is not rounded first, because the store rounds. A value that
// the launch also reads must be rounded. For a store to f16, an exp of lower accuracy suffices.
void check_stored(Places places) {
  GraphBuilder s;
  const Tensor x = s.input({64, 32}, -4, 4);
  s.output("stored", cast(exp(x), f16));
  const Tensor both = cast(x * 3.0, f16);
  s.output("both", both);
  s.output("further", exp(cast(both, f32)));
  std::string text;
  for (const bool stores : {true, false}) {
    std::int64_t rounded = 0;
    for (const Launch& launch : compile_for_test(s.graph(), 8, 0, stores).program.launches) {
      for (const Instr& instr : launch.body.instrs) {
        const bool op = instr.kind == InstrKind::kOp;
        rounded += op && instr.code->name == std::string_view("round_to_f16") ? 1 : 0;
      }
      if (stores) text += emit_wgsl(launch);
    }
    EXPECT_EQ(rounded, stores ? 1 : 2);
  }
  EXPECT_EQ(count_of(text, "= tg_exp_to_f16("), 1U) << text;
  EXPECT_EQ(count_of(text, "= tg_exp("), 1U) << text;
  check_at(places, s, 1e-3);
}
TEST(F16, is_rounded_by_memory_where_it_is_stored) { check_stored(kOnCpu); }
TEST(F16, is_rounded_by_memory_where_it_is_stored_on_webgpu) { check_stored(kOnWebGpu); }

// Looks up rows of an f16 table. The gradient is summed in f32.
void check_lookup(Places places) {
  GraphBuilder s;
  const Tensor table = s.input({10, 12}, -1, 1, f16), index = s.input({50}, 0, 9, i32);
  const Tensor rows = embedding(index, table);
  EXPECT_EQ(rows.dtype(), f16);
  s.output("rows", rows);
  s.output("gradient", grad(sum(cast(rows, f32)), {table})[0]);
  check_at(places, s, 1e-3);
}
TEST(F16, is_looked_up_on_cpu) { check_lookup(kOnCpu); }
TEST(F16, is_looked_up_on_webgpu) { check_lookup(kOnWebGpu); }

// Activations of half the size (nearly) halve the peak memory of a step.
TEST(F16, takes_half_the_memory) {
  std::int64_t peaks[2][2] = {};
  for (const bool half : {false, true}) {
    GraphBuilder s;
    Tensor x = s.input({512, 64}, -1, 1, half ? f16 : f32);
    const Tensor w = s.input({64, 64}, -0.2, 0.2);
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = relu(linear(y, w));
    const std::vector<Tensor> grads = grad(mean(square(cast(y, f32))), {w});
    s.output("dw", grads[0]);
    for (const bool stores : {false, true}) {
      peaks[half ? 1 : 0][stores ? 1 : 0] =
          compile_for_test(s.graph(), 8, 0, stores).program.peak_bytes;
    }
  }
  EXPECT_EQ(peaks[0][0], peaks[0][1]);
  EXPECT_EQ(peaks[1][0], peaks[0][0]);  // on a device that stores it as f32
  EXPECT_LT(peaks[1][1], 0.6 * static_cast<double>(peaks[0][0]));
}

}  // namespace
}  // namespace tensorgrad::testing
