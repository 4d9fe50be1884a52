// SPDX-License-Identifier: MIT
// A step allocates nothing: what a thousand more of them allocate is less than one each. Not under
// sanitizers, which count for themselves.
#include <gtest/gtest.h>

#include "counting_new.h"
#include "tensorgrad/tensorgrad.h"

#if !defined(TENSORGRAD_SANITIZED)

namespace tensorgrad::testing {
namespace {

struct Regressor {
  nn::Linear first{3, 16}, second{16, 1};
  TG_MODULE(first, second)
};

void expect_no_allocation_a_step(const DeviceOptions& device) {
  auto trainer = compile(Regressor{},
                         [](const Regressor& net, const Inputs& in) {
                           return mse(net.second(relu(net.first(in["x"]))), in["y"]);
                         },
                         {.dataset = {{"x", {64, 3}}, {"y", {64, 1}}},
                          .batch = 16,
                          .optimizer = optim::AdamW{.lr = Schedule::cosine(1e-3, 1e-4, 3000)},
                          .clip_grad_norm = 1.0,
                          .device = device});
  trainer.upload_data("x", std::vector<float>(192, 0.5F));
  trainer.upload_data("y", std::vector<float>(64, 1.5F));
  const auto of = [&](int steps) {
    const std::int64_t before = allocations();
    trainer.run(steps);
    return allocations() - before;
  };
  of(1000);
  const std::int64_t few = of(200), many = of(1200);
  EXPECT_GT(few, 0) << "nothing is counted";
  // An epoch of 4 steps makes an order of the data anew.
  EXPECT_LT(many - few, 1000) << few << " of 200 steps, " << many << " of 1200";
}

TEST(Allocations, a_step_makes_none_on_cpu) {
  expect_no_allocation_a_step({.kind = "cpu", .threads = 2});
}
TEST(Allocations, a_step_makes_none_on_webgpu) {
  expect_no_allocation_a_step({.kind = "webgpu", .allow_software = true});
}

}  // namespace
}  // namespace tensorgrad::testing

#endif
