// SPDX-License-Identifier: MIT
// Trainers and functions as global variables. The library must not depend on static initialization
// that may run later.
#include <gtest/gtest.h>

#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct Line {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

Trainer<Line> global_trainer =
    compile(Line{}, [](const Line& m, const Inputs& in) { return mse(m.fc(in["x"]), in["y"]); },
            {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
             .optimizer = optim::SGD{.lr = 0.1},
             .device = {.kind = "cpu", .threads = 1}});
CompiledFunction global_function = global_trainer.attach(
    [](const Line& m, const Inputs& in) { return m.fc(in["x"]); }, {.inputs = {{"x", {1, 3}}}});

TEST(GlobalTrainer, trains_as_a_local_one) {
  auto local =
      compile(Line{}, [](const Line& m, const Inputs& in) { return mse(m.fc(in["x"]), in["y"]); },
              {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
               .optimizer = optim::SGD{.lr = 0.1},
               .device = {.kind = "cpu", .threads = 1}});
  const Feed feed = {{"x", std::vector<float>(12, 1)}, {"y", std::vector<float>(8, 2)}};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(global_trainer.step(feed).loss, local.step(feed).loss);
  EXPECT_EQ(global_function({{"x", std::vector<float>(3, 1)}}).floats().size(), 2U);
}

}  // namespace
}  // namespace tensorgrad::testing
