// SPDX-License-Identifier: MIT
// Contractions on the CPU, compared with the oracle: shapes, layouts, prologues, epilogues,
// batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

struct ProductSize {
  std::int64_t batch, m, n, k;
};

std::string text(const ProductSize& s) {
  return std::to_string(s.batch) + "*" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
         std::to_string(s.k);
}

// A matrix operand [batch, rows, cols], stored row-major or with the last two axes exchanged.
IndexMap matrix(std::int64_t batch, std::int64_t rows, std::int64_t cols, bool transposed) {
  View v{{batch, rows, cols}, {rows * cols, cols, 1}, 0, {}, {}};
  if (transposed) v.strides = {rows * cols, 1, rows};
  return {{v}};
}

struct Made {
  int a = 0, b = 0, out = 0;
};

Made make_product(LaunchBuilder& b, const ProductSize& s, bool a_transposed, bool b_transposed) {
  auto& l = b.launch().kind.emplace<ContractionLaunch>(
      ContractionLaunch{.batch = s.batch, .m = s.m, .n = s.n, .k = s.k});
  Made made{b.input(s.batch * s.m * s.k), b.input(s.batch * s.k * s.n),
            b.output(s.batch * s.m * s.n)};
  Scalar(l.a).load(made.a, matrix(s.batch, s.m, s.k, a_transposed));
  Scalar(l.b).load(made.b, matrix(s.batch, s.k, s.n, b_transposed));
  return made;
}

Tolerance room(const ProductSize& s) { return {3e-6 * static_cast<double>(s.k) + 1e-6, 1e-5}; }

IndexMap whole(const ProductSize& s) { return IndexMap::identity({s.batch, s.m, s.n}); }

TEST(CpuContraction, every_layout_of_many_shapes) {
  const ProductSize sizes[] = {
      {1, 1, 1, 1},       {1, 1, 1, 700},    {1, 7, 1, 5},     {1, 300, 1, 200},  {1, 1, 300, 200},
      {1, 1, 13, 3},      {1, 6, 16, 8},     {1, 5, 15, 7},    {1, 17, 33, 65},   {1, 128, 10, 64},
      {1, 64, 64, 64},    {1, 100, 130, 40}, {1, 256, 64, 1},  {1, 40, 500, 3},   {1, 31, 29, 1000},
      {1, 130, 200, 450}, {1, 3, 2000, 30},  {1, 2000, 3, 30}, {1, 12, 12, 5000}, {1, 14, 32, 384}};
  for (const ProductSize& s : sizes) {
    for (int layout = 0; layout < 4; ++layout) {
      LaunchBuilder b(ContractionLaunch{}, text(s) + " layout " + std::to_string(layout));
      const Made made = make_product(b, s, (layout & 1) != 0, (layout & 2) != 0);
      b.launch().stores = {store_to(made.out, whole(s), Scalar(b.launch().body).acc())};
      expect_as_oracle(b, oracle_scalars(), room(s));
    }
  }
}

TEST(CpuContraction, batches_of_every_layout) {
  const ProductSize sizes[] = {{512, 8, 8, 16}, {40, 8, 16, 8}, {6, 64, 64, 32},   {3, 150, 90, 70},
                               {5, 1, 40, 20},  {7, 20, 1, 30}, {2, 300, 260, 20}, {9, 1, 1, 4}};
  for (const ProductSize& s : sizes) {
    for (int layout = 0; layout < 4; ++layout) {
      LaunchBuilder b(ContractionLaunch{}, text(s) + " layout " + std::to_string(layout));
      const Made made = make_product(b, s, (layout & 1) != 0, (layout & 2) != 0);
      const int bias = b.input(s.n);
      Scalar body(b.launch().body);
      const IndexMap across{{View{{s.batch, s.m, s.n}, {0, 0, 1}, 0, {}, {}}}};
      const int sum = body.op(op_add(), {body.acc(), body.load(bias, across)});
      b.launch().stores = {store_to(made.out, whole(s), sum)};
      expect_as_oracle(b, oracle_scalars(), room(s));
    }
  }
}

TEST(CpuContraction, attention_heads_are_read_and_written_where_they_lie) {
  const std::int64_t batch = 6, heads = 4, t = 9, d = 16;
  const ProductSize s{batch * heads, t, t, d};
  LaunchBuilder b(ContractionLaunch{.batch = s.batch, .m = t, .n = t, .k = d}, "scores");
  Launch& l = b.launch();
  auto& scores = l.as<ContractionLaunch>();
  const int q = b.input(batch * t * heads * d), k = b.input(batch * t * heads * d);
  const int out = b.output(s.batch * t * t);
  const std::int64_t row = heads * d;
  Scalar(scores.a).load(q, {{View{{batch, heads, t, d}, {t * row, d, row, 1}, 0, {}, {}}}});
  Scalar(scores.b).load(k, {{View{{batch, heads, d, t}, {t * row, d, 1, row}, 0, {}, {}}}});
  l.stores = {store_to(out, whole(s), Scalar(l.body).acc())};
  expect_as_oracle(b, oracle_scalars(), room(s));

  // The other product writes [batch, t, heads, d].
  LaunchBuilder c(ContractionLaunch{.batch = s.batch, .m = t, .n = d, .k = t}, "mix");
  Launch& m = c.launch();
  auto& mix = m.as<ContractionLaunch>();
  const int p = c.input(s.batch * t * t), v = c.input(batch * t * row),
            mixed = c.output(batch * t * row);
  Scalar(mix.a).load(p, IndexMap::identity({s.batch, t, t}));
  const IndexMap lying{{View{{batch, heads, t, d}, {t * row, d, row, 1}, 0, {}, {}}}};
  Scalar(mix.b).load(v, lying);
  m.stores = {store_to(mixed, lying, Scalar(m.body).acc())};
  expect_as_oracle(c, oracle_scalars(), {1e-4, 1e-5});
}

TEST(CpuContraction, epilogue_with_bias_relu_and_a_second_output) {
  for (const ProductSize s :
       {ProductSize{1, 128, 10, 256}, ProductSize{1, 70, 200, 90}, ProductSize{1, 50, 1000, 20},
        ProductSize{1, 1, 64, 100}, ProductSize{1, 90, 1, 80}, ProductSize{4, 33, 47, 21}}) {
    LaunchBuilder b(ContractionLaunch{}, text(s));
    const Made made = make_product(b, s, false, true);
    const int bias = b.input(s.n), mask = b.output(s.batch * s.m * s.n),
              sideways = b.output(s.batch * s.m * s.n);
    Scalar body(b.launch().body);
    const IndexMap across{{View{{s.batch, s.m, s.n}, {0, 0, 1}, 0, {}, {}}}};
    const int sum = body.op(op_add(), {body.acc(), body.load(bias, across)});
    const int zero = body.constant(0);
    const int relu = body.op(op_max(), {sum, zero});
    const int on = body.op(op_less(), {zero, sum}, DType::kBool);
    const IndexMap turned{{View{{s.batch, s.m, s.n}, {s.m * s.n, 1, s.m}, 0, {}, {}}}};
    // The mask may differ if a sum is within rounding of zero, so a scaled sum is stored instead.
    const int scaled =
        body.op(op_where(), {on, sum, body.op(op_mul(), {sum, body.constant(0.25f)})});
    b.launch().stores = {store_to(made.out, whole(s), relu), store_to(mask, whole(s), scaled),
                         store_to(sideways, turned, sum)};
    expect_as_oracle(b, oracle_scalars(), room(s));
  }
}

TEST(CpuContraction, prologues_compute_the_operands) {
  for (const ProductSize s :
       {ProductSize{1, 60, 70, 50}, ProductSize{1, 9, 300, 500}, ProductSize{5, 20, 30, 40},
        ProductSize{1, 200, 1, 90}, ProductSize{1, 1, 200, 90}}) {
    for (int layout = 0; layout < 4; ++layout) {
      LaunchBuilder b(ContractionLaunch{}, text(s) + " layout " + std::to_string(layout));
      const Made made = make_product(b, s, (layout & 1) != 0, (layout & 2) != 0);
      const int scale = b.input(s.k);
      Launch& l = b.launch();
      auto& product = l.as<ContractionLaunch>();
      Scalar left(product.a), right(product.b);
      left.op(op_max(), {0, left.constant(0)});
      const IndexMap along{{View{{s.batch, s.k, s.n}, {0, 1, 0}, 0, {}, {}}}};
      const int scaled = right.op(op_mul(), {0, right.load(scale, along)});
      right.op(op_add(), {scaled, right.runtime_scalars(9)});
      l.stores = {store_to(made.out, whole(s), Scalar(l.body).acc())};
      RuntimeScalars runtime_scalars = oracle_scalars();
      runtime_scalars.words[9] = oracle_encode(0.125, DType::kF32);
      expect_as_oracle(b, runtime_scalars, room(s));
    }
  }
}

TEST(CpuContraction, padded_operands_read_zeros) {
  const ProductSize s{1, 30, 40, 50};
  LaunchBuilder b(ContractionLaunch{.m = s.m, .n = s.n, .k = s.k}, "padded");
  Launch& l = b.launch();
  auto& product = l.as<ContractionLaunch>();
  const int a = b.input(s.m * s.k), w = b.input(s.k * s.n), out = b.output(s.m * s.n);
  Scalar(product.a).load(a, {{View{{s.m, s.k}, {s.k, 1}, -2, {0, 2}, {s.m, s.k}}}});
  Scalar(product.b).load(w, {{View{{s.k, s.n}, {1, s.k}, -s.k, {0, 1}, {s.k, s.n}}}});
  l.stores = {store_to(out, whole(s), Scalar(l.body).acc())};
  expect_as_oracle(b, oracle_scalars(), room(s));
}

TEST(CpuContraction, ones_sum_the_columns_of_b_or_the_rows_of_a) {
  for (const ProductSize s :
       {ProductSize{1, 64, 10, 128}, ProductSize{1, 784, 128, 32}, ProductSize{1, 3, 40, 7},
        ProductSize{1, 50, 1, 300}, ProductSize{1, 1, 20, 30}, ProductSize{1, 64, 200, 3000},
        ProductSize{1, 20, 260, 2000}, ProductSize{1, 300, 1, 1000}}) {
    for (int layout = 0; layout < 8; ++layout) {
      const bool of_b = layout < 4;
      LaunchBuilder b(ContractionLaunch{}, text(s) + " layout " + std::to_string(layout));
      const Made made = make_product(b, s, (layout & 1) != 0, (layout & 2) != 0);
      Launch& l = b.launch();
      auto& product = l.as<ContractionLaunch>();
      product.bias_grad_row = of_b;
      product.bias_grad_column = !of_b;
      const std::int64_t count = of_b ? s.n : s.m;
      const int sums = b.output(2 * count);
      product.bias_grad_store = store_to(sums, {{View{{count}, {2}, 1, {}, {}}}}, 0);
      l.stores = {store_to(made.out, whole(s), Scalar(l.body).acc())};
      expect_as_oracle(b, oracle_scalars(), room(s), {2, 4, 12});
    }
  }
}

TEST(CpuContraction, large_products_cut_in_many_tiles) {
  const ProductSize s{1, 301, 517, 811};
  LaunchBuilder b(ContractionLaunch{}, "large");
  const Made made = make_product(b, s, true, true);
  Scalar body(b.launch().body);
  const int twice = body.op(op_mul(), {body.acc(), body.constant(2)});
  b.launch().stores = {store_to(made.out, whole(s), twice)};
  expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-5}, {3});
}

// Wide and tall results, with one or several blocks of columns of B, and tiles that end before the
// columns of their group.
TEST(CpuContraction, threads_share_rows_and_columns) {
  const ProductSize sizes[] = {{1, 128, 128, 128}, {1, 60, 700, 150}, {1, 700, 60, 150},
                               {1, 57, 900, 331},  {1, 90, 333, 900}, {1, 20, 4000, 70}};
  for (const ProductSize& s : sizes) {
    for (int layout = 0; layout < 4; ++layout) {
      LaunchBuilder b(ContractionLaunch{}, text(s) + " layout " + std::to_string(layout));
      const Made made = make_product(b, s, (layout & 1) != 0, (layout & 2) != 0);
      Scalar body(b.launch().body);
      const int twice = body.op(op_mul(), {body.acc(), body.constant(2)});
      b.launch().stores = {store_to(made.out, whole(s), layout == 0 ? twice : body.acc())};
      expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-5}, {2, 3, 6});
    }
  }
}

// Compares some elements of a row-major product with sums in double.
void expect_sums(const LaunchBuilder& built, const Made& made, const ProductSize& s,
                 const std::vector<std::uint32_t>& given) {
  const auto at = [](const std::vector<std::uint32_t>& words, std::int64_t i) {
    return double{std::bit_cast<float>(words[static_cast<std::size_t>(i)])};
  };
  const auto& a = built.contents[static_cast<std::size_t>(made.a)];
  const auto& b = built.contents[static_cast<std::size_t>(made.b)];
  for (std::int64_t i = 0; i < s.m * s.n; i += 499) {
    double want = 0;
    for (std::int64_t k = 0; k < s.k; ++k)
      want += at(a, i / s.n * s.k + k) * at(b, k * s.n + i % s.n);
    ASSERT_NEAR(at(given, i), want, room(s).absolute) << text(s) << " element " << i;
  }
}

// Returns a product whose operands are computed as max(x, 0) * 0.5, or stored with these values.
OracleBuffers halves_of(const ProductSize& s, bool a_computed, bool b_computed, int threads) {
  LaunchBuilder built(ContractionLaunch{}, text(s));
  const Made made = make_product(built, s, false, false);
  const auto half = [&](int binding, ScalarProgram& program, bool computed) {
    if (computed) {
      Scalar scalar(program);
      scalar.op(op_mul(), {scalar.op(op_max(), {0, scalar.constant(0)}), scalar.constant(0.5f)});
      return;
    }
    for (std::uint32_t& word : built.contents[static_cast<std::size_t>(binding)])
      word = std::bit_cast<std::uint32_t>(std::max(std::bit_cast<float>(word), 0.0f) * 0.5f);
  };
  auto& operands = built.launch().as<ContractionLaunch>();
  half(made.a, operands.a, a_computed);
  half(made.b, operands.b, b_computed);
  built.launch().stores = {store_to(made.out, whole(s), Scalar(built.launch().body).acc())};
  verify(built.program);
  OracleBuffers buffers = run_on(*make_cpu_device({.threads = threads}), built);
  const std::vector<std::uint32_t>& product = buffers[static_cast<std::size_t>(made.out)];
  if (!a_computed && !b_computed) expect_sums(built, made, s, product);
  return {product};
}

// The shared packing buffer of 16 MiB holds 1024 lines of 4096. The columns of B need three blocks;
// A is packed along with the first block, or by each tile. A has more rows than fit at once, so
// each tile packs them or reads them in place.
TEST(CpuContraction, computed_operands_of_more_than_is_packed_at_once) {
  const ProductSize of_b[] = {{1, 5, 2100, 4096}, {1, 40, 2100, 4096}}, of_a = {1, 1100, 200, 4096};
  for (const int threads : {1, 4}) {
    for (const ProductSize& s : of_b) {
      const OracleBuffers want = halves_of(s, false, false, threads);
      EXPECT_EQ(halves_of(s, false, true, threads), want) << text(s) << " " << threads;
      EXPECT_EQ(halves_of(s, true, true, threads), want) << text(s) << " " << threads;
    }
    EXPECT_EQ(halves_of(of_a, true, false, threads), halves_of(of_a, false, false, threads))
        << text(of_a) << " " << threads;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
