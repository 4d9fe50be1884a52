// SPDX-License-Identifier: MIT
// Mistakes with indices.
#include <cstdint>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

using IndexingErrors = Traced;

TEST_F(IndexingErrors, shapes_differ) {
  EXPECT_ERROR(gather(x, 1, zeros({3, 1}, i32)), ShapeError,
               "gather: x [4,3] and index [3,1] differ on axes other than 1");
  EXPECT_ERROR(take_along_dim(x, i, 0), ShapeError,
               "take_along_dim: x [4,3] and index [4] differ in the number of axes");
  EXPECT_ERROR(scatter(x, 0, i, x), ShapeError,
               "scatter: index and source must match x [4,3] except on axis 0, got [4] and [4,3]");
  EXPECT_ERROR(scatter_add(x, 1, zeros({2, 1}, i32), zeros({2, 1})), ShapeError,
               "scatter_add: x [4,3] and source [2,1] differ on axes other than 1");
}

TEST_F(IndexingErrors, index_of_floats) {
  EXPECT_ERROR(gather(x, 1, y), DtypeError, "gather: an index must be i32 or u32, got f32[4,2]");
  EXPECT_ERROR(scatter(x, 1, y, y), DtypeError, "scatter: expected an i32 or u32 index, got f32");
  EXPECT_ERROR(embedding(x, zeros({5, 2})), DtypeError,
               "embedding: an index must be i32 or u32, got f32[12,2]");
  EXPECT_ERROR(one_hot(x, 3), DtypeError, "one_hot: expected an i32 or u32 index, got f32");
}

TEST_F(IndexingErrors, scatter_add_of_bool) {
  EXPECT_ERROR(scatter_add(i > 0, 0, i, i > 0), DtypeError,
               "scatter_add: expected f32, i32 or u32, got bool[4]");
}

TEST_F(IndexingErrors, index_update_shapes_or_types_differ) {
  const Tensor start = narrow(i, 0, 0, 1);
  EXPECT_ERROR(index_update(x, 0, start, y), ShapeError,
               "index_update: x [4,3] and update [4,2] differ on axes other than 0");
  EXPECT_ERROR(index_update(x, 0, start, cast(x, i32)), DtypeError,
               "index_update: x f32[4,3] and update i32[4,3] differ in type");
}

TEST_F(IndexingErrors, index_update_start_invalid) {
  EXPECT_ERROR(index_update(x, 1, i, y), ShapeError,
               "index_update: expected a start that broadcasts to [4,1], got [4]");
  EXPECT_ERROR(index_update(x, 1, y, y), DtypeError,
               "index_update: expected an i32 or u32 start, got f32[4,2]");
}

TEST_F(IndexingErrors, embedding_table_of_three_axes) {
  EXPECT_ERROR(embedding(i, zeros({5, 2, 2})), ShapeError,
               "embedding: expected a table [V, D], got [5,2,2]");
}

TEST_F(IndexingErrors, padding_idx_out_of_range) {
  EXPECT_ERROR(nn::Embedding(4, 2, {.padding_idx = 4}), UserError,
               "Embedding: padding_idx must be in [0, 4), got 4");
}

TEST(IndexRangeErrors, embedding_index_minus_one) {
  const auto look_up = [](const nn::Embedding& table, In in) { return FAULTY(table(in["i"])); };
  auto function = compile_function(nn::Embedding(4, 2), look_up,
                                   {.inputs = {{"i", {3}, i32}}, .device = {.kind = "cpu"}});
  EXPECT_ERROR(function({{"i", std::vector<std::int32_t>{0, 3, -1}}}), UserError,
               "input 'i': element 2 is -1, which embedding uses as an index in [0, 4); for "
               "padding, use an index in the table as padding_idx");
}

TEST(IndexRangeErrors, input_index_out_of_range) {
  auto trainer = compiled(
      [](const Net& net, In in) { return FAULTY(cross_entropy(net.fc(in["x"]), in["i"])); });
  Example example;
  example.i[2] = 2;
  EXPECT_ERROR(trainer.step(example.feed), UserError,
               "input 'i': element 2 is 2, which cross_entropy uses as an index in [0, 2)");
}

TEST(IndexRangeErrors, dataset_index_out_of_range) {
  const auto loss = [](const Net& net, In in) {
    return FAULTY(cross_entropy(net.fc(in["x"]), in["t"]));
  };
  auto trainer = compiled(loss, {.dataset = {{"x", {8, 3}}, {"t", {8}, i32}}, .batch = 4});
  const std::vector<std::int32_t> targets = {0, -1, 0, 0, 0, 0, 0, 0};
  EXPECT_ERROR(
      trainer.upload_data("t", targets), UserError,
      StartsWith(
          "input 't': element 1 is -1, which cross_entropy uses as an index in [0, 2); set "));
}

TEST(IndexRangeErrors, input_index_neither_in_range_nor_ignored) {
  auto trainer = compiled([](const Net& net, In in) {
    return FAULTY(cross_entropy(net.fc(in["x"]), in["i"], {.ignore_index = -100}));
  });
  Example example;
  example.i = {-100, 1, -100, 0};
  trainer.step(example.feed);
  example.i = {-100, 1, -3, 0};
  EXPECT_ERROR(trainer.step(example.feed), UserError,
               "input 'i': element 2 is -3, which cross_entropy uses as an index in [0, 2)");
}

}  // namespace tensorgrad::testing
