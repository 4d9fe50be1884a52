// SPDX-License-Identifier: MIT
// Basic indexing of tensors, as in NumPy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a part of the numbers 0 to 23 in the shape [2, 3, 4].
HostTensor part(const std::function<Tensor(const Tensor&)>& take) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0F);
  auto function = compile_function([&](const Inputs& in) { return take(in["x"]); },
                                   {.inputs = {{"x", {2, 3, 4}}}, .device = {.kind = "cpu"}});
  return function({{"x", values}});
}

std::string error_of(const std::function<Tensor(const Tensor&)>& take) {
  try {
    part(take);
    return "nothing was thrown";
  } catch (const ShapeError& error) {
    return error.what();
  }
}

TEST(Indexing, by_numbers_drops_axes) {
  EXPECT_EQ(part([](const Tensor& x) { return x[1]; }).shape, (Shape{3, 4}));
  const HostTensor row = part([](const Tensor& x) { return x[{1, -1}]; });
  EXPECT_EQ(row.shape, (Shape{4}));
  EXPECT_THAT(row.floats(), ElementsAre(20, 21, 22, 23));
  const HostTensor one = part([](const Tensor& x) { return x[{0, 2, std::size_t{3}}]; });
  EXPECT_EQ(one.shape, Shape{});
  EXPECT_THAT(one.floats(), ElementsAre(11));
}

TEST(Indexing, by_slices_keeps_axes) {
  const HostTensor middle = part([](const Tensor& x) { return x[{kAll, 1, Slice{1, -1}}]; });
  EXPECT_EQ(middle.shape, (Shape{2, 2}));
  EXPECT_THAT(middle.floats(), ElementsAre(5, 6, 17, 18));
  const HostTensor steps =
      part([](const Tensor& x) { return x[{0, Slice{.step = 2}, Slice{1, {}, 2}}]; });
  EXPECT_EQ(steps.shape, (Shape{2, 2}));
  EXPECT_THAT(steps.floats(), ElementsAre(1, 3, 9, 11));
  const HostTensor clamped = part([](const Tensor& x) { return x[{0, 0, Slice{-9, 99}}]; });
  EXPECT_THAT(clamped.floats(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(part([](const Tensor& x) { return x[{}]; }).shape, (Shape{2, 3, 4}));
}

TEST(Indexing, by_an_ellipsis_counts_from_the_end) {
  const HostTensor last = part([](const Tensor& x) { return x[{kEllipsis, -1}]; });
  EXPECT_EQ(last.shape, (Shape{2, 3}));
  EXPECT_THAT(last.floats(), ElementsAre(3, 7, 11, 15, 19, 23));
  EXPECT_EQ(part([](const Tensor& x) { return x[{0, kEllipsis, 0}]; }).shape, (Shape{3}));
  EXPECT_EQ(part([](const Tensor& x) { return x[{0, 0, kEllipsis, 0}]; }).shape, Shape{});
}

TEST(Indexing, adds_axes) {
  EXPECT_EQ(part([](const Tensor& x) { return x[kNewAxis]; }).shape, (Shape{1, 2, 3, 4}));
  EXPECT_EQ(part([](const Tensor& x) { return x[{0, kNewAxis, kEllipsis, kNewAxis}]; }).shape,
            (Shape{1, 3, 4, 1}));
}

TEST(Indexing, has_the_gradient_of_its_elements) {
  struct Weights {
    Parameter w{{2, 5}, init::ones()};
    TG_MODULE(w)
  };
  const auto loss = [](const Weights& net, const Inputs&) {
    return sum(net.w.tensor()[{1, Slice{.start = 1, .step = 2}}] * 3);
  };
  auto trainer = compile(Weights{}, loss, {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  trainer.step();
  EXPECT_THAT(trainer.download_grads().at("w").floats(), ElementsAre(0, 0, 0, 0, 0, 0, 3, 0, 3, 0));
}

TEST(Indexing, error_names_the_axis) {
  EXPECT_THAT(error_of([](const Tensor& x) { return x[{0, -4}]; }),
              HasSubstr("index: element -4 of axis 1 of [2,3,4] is out of range"));
  EXPECT_THAT(error_of([](const Tensor& x) { return x[{0, Slice{2, 2}}]; }),
              HasSubstr("index: the slice [2, 2) of axis 1 of [2,3,4] is empty"));
  EXPECT_THAT(error_of([](const Tensor& x) { return x[Slice{.step = -1}]; }),
              HasSubstr("index: expected a step of at least 1, got -1"));
  EXPECT_THAT(error_of([](const Tensor& x) { return x[{0, 0, 0, 0}]; }),
              HasSubstr("index: 4 indices for the 3 axes of [2,3,4]"));
  EXPECT_THAT(error_of([](const Tensor& x) { return x[{kEllipsis, kEllipsis}]; }),
              HasSubstr("index: expected at most one kEllipsis"));
  EXPECT_THAT(error_of([](const Tensor& x) { return x[7]; }), HasSubstr("indexing_test.cpp"));
}

}  // namespace
}  // namespace tensorgrad::testing
