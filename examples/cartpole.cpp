// SPDX-License-Identifier: MIT
// Balances a pole on a cart by policy gradients (REINFORCE, Williams 1992). 16 carts play 200 steps
// each; then one training step raises the probability of actions that did better than average.
// Draws the returns, and the angle of a pole before and after training.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kCarts = 16, kSteps = 200, kRows = kCarts * kSteps;
constexpr float kDt = 0.02F;  // seconds per step

// Physics of Barto, Sutton and Anderson 1983, with Euler steps of 0.02 s.
struct Cart {
  std::array<float, 4> state{};  // position, speed, angle, angular speed
  bool fallen = false;

  void reset(sample::Random& random) {
    for (float& each : state) each = sample::uniform(random, -0.05F, 0.05F);
    fallen = false;
  }

  void move(int action) {
    constexpr float kGravity = 9.8F, kPole = 0.1F, kTotal = 1.1F, kHalfLength = 0.5F;
    auto& [x, v, angle, turn] = state;
    const float force = action == 1 ? 10.0F : -10.0F;
    const float sine = std::sin(angle), cosine = std::cos(angle);
    const float push = (force + kPole * kHalfLength * turn * turn * sine) / kTotal;
    const float spin = (kGravity * sine - cosine * push) /
                       (kHalfLength * (4.0F / 3 - kPole * cosine * cosine / kTotal));
    const float speed_up = push - kPole * kHalfLength * spin * cosine / kTotal;
    x += kDt * v;
    v += kDt * speed_up;
    angle += kDt * turn;
    turn += kDt * spin;
    fallen = std::abs(x) > 2.4F || std::abs(angle) > 0.2094F;  // 12 degrees
  }
};

struct Policy {
  tg::nn::Linear first{4, 16}, second{16, 2};
  TG_MODULE(first, second)
  // Returns log-probabilities of the two pushes.
  tg::Tensor operator()(tg::Tensor state) const { return log_softmax(second(tanh(first(state)))); }
};

struct Episodes {
  std::vector<float> states = std::vector<float>(kRows * 4), weights = std::vector<float>(kRows);
  std::vector<std::int32_t> actions = std::vector<std::int32_t>(kRows);
  double mean_length = 0;
  sample::Points angles;  // of the first cart's pole, in degrees, by seconds, until it falls
};

// Plays an episode with each cart. Row t * kCarts + c is step t of cart c. Its weight is how much
// better than average the rest of the episode was, and 0 after a fall.
Episodes play(tg::CompiledFunction& policy, sample::Random& random) {
  Episodes episodes;
  std::array<Cart, kCarts> carts;
  for (Cart& cart : carts) cart.reset(random);
  std::vector<float> states(kCarts * 4);
  std::vector<bool> alive(kRows, false);
  for (int t = 0; t < kSteps; ++t) {
    for (std::size_t c = 0; c < kCarts; ++c)
      std::copy(carts[c].state.begin(), carts[c].state.end(),
                states.begin() + static_cast<std::ptrdiff_t>(c) * 4);
    if (!carts[0].fallen) {
      const float radians = carts[0].state[2];
      episodes.angles.emplace_back(kDt * static_cast<float>(t), radians * 180 / std::numbers::pi);
    }
    const std::vector<float> log_p = policy({{"state", states}}).floats();
    for (std::size_t c = 0; c < kCarts; ++c) {
      const std::size_t row = static_cast<std::size_t>(t) * kCarts + c;
      std::copy_n(&states[c * 4], 4, &episodes.states[row * 4]);
      if (carts[c].fallen) continue;
      alive[row] = true;
      episodes.actions[row] = sample::uniform(random, 0, 1) < std::exp(log_p[c * 2 + 1]) ? 1 : 0;
      carts[c].move(episodes.actions[row]);
    }
  }
  double sum = 0, squares = 0, count = 0;
  for (std::size_t c = 0; c < kCarts; ++c) {
    float gain = 0;
    for (int t = kSteps; t-- > 0;) {
      const std::size_t row = static_cast<std::size_t>(t) * kCarts + c;
      if (!alive[row]) continue;
      episodes.weights[row] = gain = 1 + 0.99F * gain;
      sum += gain;
      squares += gain * gain;
      ++count;
    }
  }
  const double mean = sum / count, deviation = std::sqrt(squares / count - mean * mean) + 1e-6;
  for (std::size_t row = 0; row < kRows; ++row) {
    if (alive[row])
      episodes.weights[row] = static_cast<float>((episodes.weights[row] - mean) / deviation);
  }
  episodes.mean_length = count / kCarts;
  return episodes;
}

bool balance(const sample::Options& options) {
  auto trainer = tg::compile(
      Policy{},
      [](const Policy& net, const tg::Inputs& in) {
        const tg::Tensor taken = gather(net(in["state"]), 1, reshape(in["action"], {kRows, 1}));
        return -sum(flatten(taken) * in["weight"]) / static_cast<double>(kRows);
      },
      {.inputs = {{"state", {kRows, 4}}, {"action", {kRows}, tg::i32}, {"weight", {kRows}}},
       .optimizer = tg::optim::Adam{.lr = 1e-2},
       .seed = 1,
       .device = options.device});
  auto policy =
      trainer.attach([](const Policy& net, const tg::Inputs& in) { return net(in["state"]); },
                     {.inputs = {{"state", {kCarts, 4}}}});
  sample::Random random(3);
  const int rounds = options.steps(400, 60);
  sample::Curve returns{"mean of 16", {}}, before{"before training", {}};
  double recent = 0;
  for (int round = 0; round < rounds; ++round) {
    const Episodes episodes = play(policy, random);
    returns.points.emplace_back(round, episodes.mean_length);
    if (round == 0) before.points = episodes.angles;
    recent = round == 0 ? episodes.mean_length : 0.8 * recent + 0.2 * episodes.mean_length;
    sample::progress("round " + std::to_string(round) + "  steps " + std::to_string(recent));
    if (recent > 198) break;
    trainer.step(
        {{"state", episodes.states}, {"action", episodes.actions}, {"weight", episodes.weights}});
  }
  double played = 0;
  sample::Curve after{"after", {}};
  for (int i = 0; i < 5; ++i) {
    const Episodes episodes = play(policy, random);
    played += episodes.mean_length / 5;
    after.points = episodes.angles;
  }
  sample::Drawing drawing(980, 360);
  drawing.plot({60, 40, 400, 260}, {returns},
               {.title = "Return", .x_name = "training steps", .legend = false});
  drawing.plot({540, 40, 420, 260}, {before, after},
               {.title = "Angle of a pole in degrees", .x_name = "seconds"});
  drawing.save(options, "cartpole.svg");
  return sample::at_least(options, "mean return of 200", played, 190, 60);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Balances a pole on a cart.", balance);
}
