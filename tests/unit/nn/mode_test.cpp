// SPDX-License-Identifier: MIT
// Differences between training and eval mode: dropout, batch norm and its buffers.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using In = const Inputs&;
const DeviceOptions kCpu{.kind = "cpu"};

struct Net {
  nn::Linear fc{2, 3};
  nn::BatchNorm1d norm{3};
  nn::Dropout drop{0.5};
  TG_MODULE(fc, norm, drop)
  Tensor operator()(Tensor x) const { return drop(norm(fc(x))); }
};

std::map<std::string, Tensor> running(const Net& net) {
  return {{"mean", net.norm.running_mean->tensor()}, {"var", net.norm.running_var->tensor()}};
}

struct Fixed {
  Trainer<Net> trainer = compile(
      Net{}, [](const Net& net, In in) { return sum(square(net(in["x"]))); },
      {.inputs = {{"x", {4, 2}}}, .optimizer = optim::SGD{.lr = 0.01}, .seed = 3, .device = kCpu});
  std::vector<float> x = {1, 2, 3, 4, -5, 6, 7, 9};

  NamedTensors statistics() {
    return trainer.attach([](const Net& net, In) { return running(net); }, {}).run();
  }
};

TEST(Mode, is_training_only_in_compile) {
  bool seen = false;
  struct Scale {
    Parameter w{{1}};
    TG_MODULE(w)
  };
  const auto loss = [&](const Scale& m, In) {
    seen = is_training();
    return sum(square(m.w + 1.0));
  };
  auto trainer = compile(Scale{}, loss, {.optimizer = optim::SGD{}, .device = kCpu});
  EXPECT_TRUE(seen);
  trainer.attach(loss, {});
  EXPECT_FALSE(seen);
  trainer.attach(loss, {.training = true});
  EXPECT_TRUE(seen);
  compile_function(Scale{}, loss, {.device = kCpu});
  EXPECT_FALSE(seen);
}

TEST(Mode, dropout_is_the_identity_in_inference) {
  const auto drops = [](const nn::Identity&, In in) {
    const Tensor x = in["x"];
    return std::map<std::string, Tensor>{{"0", dropout(x, 0.5)},
                                         {"1", dropout1d(x, 0.5)},
                                         {"2", dropout2d(unsqueeze(x, 3), 0.5)},
                                         {"3", alpha_dropout(x, 0.5)}};
  };
  const std::vector<float> x(60, 1.5F);
  for (const bool training : {false, true}) {
    auto forward =
        compile_function(nn::Identity{}, drops,
                         {.inputs = {{"x", {3, 4, 5}}}, .device = kCpu, .training = training});
    for (const auto& [name, y] : forward.run({{"x", x}}))
      EXPECT_EQ(y.floats() == x, !training) << name;
  }
}

TEST(Mode, may_be_set_for_a_part_of_a_function) {
  auto forward = compile_function(nn::Identity{},
                                  [](const nn::Identity&, In in) {
                                    std::map<std::string, Tensor> parts;
                                    {
                                      const TrainingMode frozen(false);
                                      parts["frozen"] = dropout(in["x"], 0.5);
                                      const TrainingMode again(true);
                                      parts["again"] = dropout(in["x"], 0.5);
                                    }
                                    parts["after"] = dropout(in["x"], 0.5);
                                    return parts;
                                  },
                                  {.inputs = {{"x", {50}}}, .device = kCpu, .training = true});
  const std::vector<float> x(50, 1);
  const NamedTensors y = forward.run({{"x", x}});
  EXPECT_EQ(y.at("frozen").floats(), x);
  EXPECT_NE(y.at("again").floats(), x);
  EXPECT_NE(y.at("after").floats(), x);
}

TEST(BatchNorm, updates_statistics_only_in_training) {
  Fixed fixed;
  const auto begin = fixed.statistics();
  EXPECT_EQ(begin.at("mean").floats(), std::vector<float>(3, 0));
  EXPECT_EQ(begin.at("var").floats(), std::vector<float>(3, 1));
  fixed.trainer.step({{"x", fixed.x}});
  const auto one = fixed.statistics();
  EXPECT_NE(one.at("mean").floats(), begin.at("mean").floats());
  auto use = fixed.trainer.attach([](const Net& net, In in) { return net(in["x"]); },
                                  {.inputs = {{"x", {4, 2}}}});
  const std::vector<float> y = use({{"x", fixed.x}}).floats();
  EXPECT_EQ(use({{"x", fixed.x}}).floats(), y) << "no dropout, no new statistics";
  EXPECT_EQ(fixed.statistics().at("mean").bytes, one.at("mean").bytes);
  fixed.trainer.step({{"x", fixed.x}});
  EXPECT_NE(fixed.statistics().at("var").bytes, one.at("var").bytes);
  fixed.trainer.reset();
  EXPECT_EQ(fixed.statistics().at("mean").bytes, begin.at("mean").bytes);
}

TEST(BatchNorm, statistics_are_saved_by_path_and_restored) {
  const test::TempDir folder;
  const std::string path = folder / "batch_norm.safetensors";
  Fixed first, second;
  first.trainer.step({{"x", first.x}});
  first.trainer.save(path);
  std::vector<std::string> found;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) {
    if (name.find("running") != std::string::npos) found.push_back(name);
  }
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].ends_with("norm.running_mean")) << found[0];
  EXPECT_TRUE(found[1].ends_with("norm.running_var")) << found[1];
  second.trainer.load(path);
  EXPECT_EQ(second.statistics().at("mean").bytes, first.statistics().at("mean").bytes);
  EXPECT_EQ(second.trainer.step({{"x", first.x}}).loss, first.trainer.step({{"x", first.x}}).loss);
  EXPECT_EQ(second.statistics().at("var").bytes, first.statistics().at("var").bytes);
  auto alone =
      compile_function(Net{}, [](const Net& net, In) { return running(net); }, {.device = kCpu});
  first.trainer.save(path);
  alone.load_params(path);
  EXPECT_EQ(alone.run().at("mean").bytes, first.statistics().at("mean").bytes);
  std::filesystem::remove(path);
}

TEST(BatchNorm, used_twice_updates_statistics_twice) {
  struct Twice {
    nn::BatchNorm1d norm{1, 1e-5, 0.5};
    TG_MODULE(norm)
  };
  auto trainer =
      compile(Twice{},
              [](const Twice& net, In in) {
                const Tensor first = net.norm(in["x"]), second = net.norm(in["x"] * 3.0);
                return sum(first * second);
              },
              {.inputs = {{"x", {2, 1}}}, .optimizer = optim::SGD{.lr = 0}, .device = kCpu});
  trainer.step({{"x", std::vector<float>{1, 3}}});
  auto mean =
      trainer.attach([](const Twice& net, In) { return net.norm.running_mean->tensor(); }, {});
  EXPECT_EQ(mean().floats(), std::vector<float>{2 * 0.25F + 6 * 0.5F});
}

TEST(Buffer, of_integers_counts_steps) {
  struct Counting {
    Parameter w{{1}, init::ones()};
    Buffer steps{{}, 5, i32};
    TG_MODULE(w, steps)
  };
  auto trainer = compile(Counting{},
                         [](const Counting& m, In) {
                           m.steps.set(m.steps.tensor() + 1);
                           return sum(square(m.w));
                         },
                         {.optimizer = optim::SGD{}, .device = kCpu});
  for (int i = 0; i < 3; ++i) trainer.step();
  auto steps = trainer.attach([](const Counting& m, In) { return m.steps.tensor(); }, {});
  EXPECT_EQ(steps().ints(), std::vector<std::int32_t>{8});
  EXPECT_EQ(trainer.parameter_names(), std::vector<std::string>{"w"});
}

TEST(Buffer, gradient_stops_at_it) {
  struct Held {
    Parameter w{{2}, init::ones()};
    Buffer seen{{2}};
    TG_MODULE(w, seen)
  };
  auto trainer = compile(Held{},
                         [](const Held& m, In) {
                           m.seen.set(detach(m.w * 2.0));
                           return sum(m.seen.tensor() * m.w);
                         },
                         {.optimizer = optim::SGD{.lr = 0}, .device = kCpu});
  EXPECT_EQ(trainer.step().loss, 4);
  EXPECT_EQ(trainer.download_grads().at("w").floats(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace tensorgrad::testing
