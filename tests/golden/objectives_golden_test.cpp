// SPDX-License-Identifier: MIT
// Compares several losses over one set of parameters with PyTorch (make_objective_fixtures.py):
// losses, gradients of the first step, and the final parameters.
#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kBatch = 16, kRounds = 8;

struct Discriminator {
  nn::Linear first{2, 16}, second{16, 1};
  TG_MODULE(first, second)
  Tensor operator()(Tensor x) const { return second(leaky_relu(first(x), 0.2)); }
};
struct Generator {
  nn::Linear first{3, 16}, second{16, 2};
  TG_MODULE(first, second)
  Tensor operator()(Tensor z) const { return second(tanh(first(z))); }
};
struct Gan {
  Discriminator discriminator;
  Generator generator;
  TG_MODULE(discriminator, generator)
};

struct ActorCritic {
  nn::Linear trunk{4, 16}, actor{16, 3}, critic{16, 1};
  TG_MODULE(trunk, actor, critic)
  Tensor features(Tensor state) const { return tanh(trunk(state)); }
  Tensor value(Tensor state) const { return flatten(critic(features(state))); }
};

// Steps the objectives in turn, each with its own inputs.
template <class Model>
void train(const std::string& file, const std::vector<ObjectiveSpec<Model>>& objectives,
           const std::string& kind, const Tolerances& tolerances) {
  const Fixture fixture(file);
  auto trainer = compile(Model{}, objectives, {.device = {.kind = kind, .allow_software = true}});
  trainer.upload_params(fixture.parameters());
  for (std::int64_t round = 0; round < kRounds; ++round) {
    for (const auto& objective : objectives) {
      std::map<std::string, HostTensor> given;
      FeedView feed;
      for (const InputSpec& input : objective.options.inputs) {
        const auto words = fixture.batch<float>(input.name, round);  // possibly bits of integers
        const auto bytes = std::as_bytes(std::span(words));
        HostTensor& tensor = given[input.name] = {input.dtype, {}, {bytes.begin(), bytes.end()}};
        feed.add(input.name, HostView(input.dtype, tensor.bytes.data(), words.size()));
      }
      const float loss = trainer[objective.name].step(feed).loss;
      const auto want = fixture.values<float>("losses/" + objective.name);
      EXPECT_NEAR(loss, want.at(static_cast<std::size_t>(round)), tolerances.loss * 2) << round;
      if (round == 0) {
        expect_tensors(fixture, "grad/" + objective.name + "/",
                       trainer[objective.name].download_grads(), tolerances.gradient);
      }
    }
  }
  expect_tensors(fixture, "final/", trainer.download_params(), tolerances.parameter);
}

void train_gan(const std::string& kind, const Tolerances& tolerances) {
  const auto d_loss = [](const Gan& net, const Inputs& in) {
    return mean(softplus(-net.discriminator(in["real"]))) +
           mean(softplus(net.discriminator(net.generator(in["z_d"]))));
  };
  const auto g_loss = [](const Gan& net, const Inputs& in) {
    return mean(softplus(-net.discriminator(net.generator(in["z_g"]))));
  };
  train<Gan>("gan.safetensors",
             {{.name = "d",
               .loss = d_loss,
               .params = "discriminator.*",
               .options = {.inputs = {{"real", {kBatch, 2}}, {"z_d", {kBatch, 3}}},
                           .optimizer = optim::Adam{.lr = 2e-2, .beta1 = 0.5, .beta2 = 0.9}}},
              {.name = "g",
               .loss = g_loss,
               .params = "generator.*",
               .options = {.inputs = {{"z_g", {kBatch, 3}}},
                           .optimizer = optim::Adam{.lr = 1e-2, .beta1 = 0.5, .beta2 = 0.9},
                           .clip_grad_norm = 0.25}}},
             kind, tolerances);
}

TEST(Golden, gan_with_two_adams_on_cpu) { train_gan("cpu", kOnCpu); }
TEST(Golden, gan_with_two_adams_on_webgpu) { train_gan("webgpu", kOnWebGpu); }

void train_actor_critic(const std::string& kind, const Tolerances& tolerances) {
  const auto critic_loss = [](const ActorCritic& net, const Inputs& in) {
    return mse(net.value(in["state"]), in["gain"]);
  };
  const auto actor_loss = [](const ActorCritic& net, const Inputs& in) {
    const Tensor log_p = log_softmax(net.actor(net.features(in["state"])));
    const Tensor taken = flatten(gather(log_p, 1, unsqueeze(in["action"], 1)));
    return -mean(taken * (in["gain"] - detach(net.value(in["state"]))));
  };
  const auto but = [](const std::string& head) {
    return [head](const std::string& name, const Shape&) { return !name.starts_with(head); };
  };
  train<ActorCritic>("actor_critic.safetensors",
                     {{.name = "critic",
                       .loss = critic_loss,
                       .params = but("actor"),
                       .options = {.inputs = {{"state", {kBatch, 4}}, {"gain", {kBatch}}},
                                   .optimizer = optim::SGD{.lr = 5e-2, .momentum = 0.9}}},
                      {.name = "actor",
                       .loss = actor_loss,
                       .params = but("critic"),
                       .options = {.inputs = {{"state", {kBatch, 4}},
                                              {"gain", {kBatch}},
                                              {"action", {kBatch}, i32}},
                                   .optimizer = optim::Adam{.lr = 1e-2}}}},
                     kind, tolerances);
}

TEST(Golden, actor_and_critic_with_a_shared_trunk_on_cpu) { train_actor_critic("cpu", kOnCpu); }
TEST(Golden, actor_and_critic_with_a_shared_trunk_on_webgpu) {
  train_actor_critic("webgpu", kOnWebGpu);
}

}  // namespace
}  // namespace tensorgrad::testing
