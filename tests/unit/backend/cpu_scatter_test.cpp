// SPDX-License-Identifier: MIT
// Scatter launches on the CPU, compared with the oracle.
#include <gtest/gtest.h>

#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

struct ScatterSize {
  std::int64_t pre, count, post, size;
};

const ScatterSize kScatterSizes[] = {{1, 1000, 64, 12}, {1, 50, 7, 5},  {128, 1, 1, 10},
                                     {1, 20000, 1, 30}, {3, 40, 20, 8}, {2, 3000, 16, 4},
                                     {1, 4, 1000, 9},   {500, 30, 1, 6}};

IndexMap sources(const ScatterSize& s) { return IndexMap::identity({s.pre, s.count, s.post}); }

ScatterLaunch scatter_of(const ScatterSize& s) {
  return {.pre = s.pre, .count = s.count, .post = s.post, .size = s.size};
}

// Only a store follows, so sums are added in the output buffer, which is not zero at first.
TEST(CpuScatter, into_a_part_of_a_buffer) {
  for (const ScatterSize& s : {ScatterSize{1, 300, 16, 4000}, {2, 5, 64, 3000}, {1, 40, 3, 7}}) {
    LaunchBuilder b(scatter_of(s), "part");
    const std::int64_t n = s.pre * s.count * s.post, results = s.pre * s.size * s.post;
    const int index = b.input(n, DType::kI32, static_cast<std::uint32_t>(s.size) + 2);
    const int source = b.input(n), out = b.in_place(results + 9);
    Launch& l = b.launch();
    auto& scatter = l.as<ScatterLaunch>();
    Scalar(scatter.index).load(index, sources(s), DType::kI32);
    Scalar(scatter.source).load(source, sources(s));
    l.stores = {store_to(out, {{View{{results}, {1}, 5, {}, {}}}}, Scalar(l.body).acc())};
    expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-5});
  }
}

// Indices up to two beyond the size, and a negative one, are dropped.
TEST(CpuScatter, an_index_per_row) {
  for (const ScatterSize& s : kScatterSizes) {
    LaunchBuilder b(scatter_of(s), "rows");
    const int index = b.input(s.pre * s.count, DType::kI32, static_cast<std::uint32_t>(s.size) + 2);
    b.contents[0][0] = static_cast<std::uint32_t>(-1);
    const int source = b.input(s.pre * s.count * s.post), out = b.output(s.pre * s.size * s.post);
    Launch& l = b.launch();
    auto& scatter = l.as<ScatterLaunch>();
    Scalar(scatter.index)
        .load(index, {{View{{s.pre * s.count, s.post}, {1, 0}, 0, {}, {}}}}, DType::kI32);
    Scalar src(scatter.source);
    src.op(op_mul(), {src.load(source, sources(s)), src.constant(0.5f)});
    l.stores = {store_to(out, IndexMap::identity({s.pre * s.size * s.post}), Scalar(l.body).acc())};
    expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-5});
  }
}

TEST(CpuScatter, an_index_per_element_and_an_epilogue) {
  for (const ScatterSize& s : kScatterSizes) {
    LaunchBuilder b(scatter_of(s), "elements");
    const std::int64_t n = s.pre * s.count * s.post, results = s.pre * s.size * s.post;
    const int index = b.input(n, DType::kI32, static_cast<std::uint32_t>(s.size) + 2);
    const int source = b.input(n), residual = b.input(results), out = b.output(results);
    Launch& l = b.launch();
    auto& scatter = l.as<ScatterLaunch>();
    Scalar(scatter.index).load(index, sources(s), DType::kI32);
    Scalar(scatter.source).load(source, sources(s));
    Scalar body(l.body);
    const IndexMap id = IndexMap::identity({results});
    const int sum = body.op(op_add(), {body.acc(), body.load(residual, id)});
    l.stores = {store_to(out, id, sum)};
    expect_as_oracle(b, oracle_scalars(), {1e-3, 1e-5});
  }
}

}  // namespace
}  // namespace tensorgrad::testing
