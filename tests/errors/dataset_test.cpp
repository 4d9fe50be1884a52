// SPDX-License-Identifier: MIT
// Mistakes with datasets.
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(DatasetErrors, row_counts_differ) {
  EXPECT_ERROR(compiled(plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {7, 2}}}, .batch = 4}),
               ShapeError, "dataset: 'x' [8,3] and 'y' [7,2] must have the same number of rows");
}

TEST(DatasetErrors, batch_out_of_range) {
  EXPECT_ERROR(compiled(plain_loss, {.dataset = {{"x", {8, 3}}}, .batch = 9}), UserError,
               "dataset: the batch must be between 1 and 8, the number of rows, got 9");
  EXPECT_ERROR(compiled(plain_loss, {.dataset = {{"x", {8, 3}}}}), UserError,
               "dataset: the batch must be between 1 and 8, the number of rows, got 0");
  EXPECT_ERROR(compiled(plain_loss, {.dataset = {{"x", {0, 3}}}, .batch = 1}), UserError,
               "dataset: the batch must be between 1 and 0, the number of rows, got 1");
}

TEST(DatasetErrors, name_unknown) {
  auto trainer = compiled(plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4});
  const std::vector<float> z(24);
  EXPECT_ERROR(trainer.upload_data("z", z), UserError,
               "unknown dataset entry 'z'; available: x, y");
}

TEST(DatasetErrors, data_missing) {
  auto trainer = compiled(plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4});
  trainer.upload_data("x", std::vector<float>(24));
  EXPECT_ERROR(trainer.run(1), UserError, "dataset entry 'y' has no data; call upload_data()");
}

TEST(DatasetErrors, entry_passed_to_a_step) {
  auto trainer = compiled(plain_loss, {.dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4});
  EXPECT_ERROR(trainer.step({{"x", std::vector<float>(12)}}), UserError,
               "'x' is an entry of the dataset; each step draws its rows");
}

TEST(DatasetErrors, batch_without_dataset) {
  EXPECT_ERROR(compiled(plain_loss, {.inputs = {{"x", {8, 3}}}, .batch = 8}), UserError,
               "batch is set to 8, but no dataset is declared");
}

}  // namespace tensorgrad::testing
