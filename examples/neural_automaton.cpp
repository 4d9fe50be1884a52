// SPDX-License-Identifier: MIT
// A neural cellular automaton (Mordvintsev et al. 2020) grows a mushroom from a single cell. All
// cells run the same small network on their own state and that of their neighbors, at random times.
// Training starts from results of earlier runs, so that the automaton also learns to keep its
// shape. Draws the growth.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kSide = 16, kCells = kSide * kSide, kChannels = 16, kHidden = 64;  // 4 of them RGBA
constexpr int kState = kChannels * kCells, kColours = 4 * kCells;
constexpr int kBatch = 8, kPool = 128, kSteps = 20;  // steps per call
constexpr double kAlive = 0.1;

using State = std::vector<float>;  // [channels, height, width]

struct Rule {
  Rule() { out.weight = tg::Parameter({kChannels, kHidden, 1, 1}); }  // initially changes nothing
  tg::nn::Conv2d in{3 * kChannels, kHidden, 1}, out{kHidden, kChannels, 1, {}, false};
  TG_MODULE(in, out)

  // Returns each channel and its horizontal and vertical gradients: [B, C, H, W] -> [B, 3 C, H, W].
  static tg::Tensor perceive(tg::Tensor x) {
    const std::vector<float> self{0, 0, 0, 0, 1, 0, 0, 0, 0};
    const std::vector<float> across{-1, 0, 1, -2, 0, 2, -1, 0, 1};  // Sobel filter, times 8
    const tg::Tensor slope = tg::constant(across, {1, 1, 3, 3}) / 8.0;
    const tg::Tensor filters =
        tg::concat({tg::constant(self, {1, 1, 3, 3}), slope, transpose(slope)});
    return conv2d(x, tile(filters, {kChannels, 1, 1, 1}), {}, {.padding = 1, .groups = kChannels});
  }
  // Returns f32 [B, 1, H, W]: 1 if a cell or one of its neighbors has grown.
  static tg::Tensor alive(tg::Tensor x) {
    return cast(max_pool2d(narrow(x, 1, 3, 1), 3, {.stride = 1, .padding = 1}) > kAlive, tg::f32);
  }
  [[nodiscard]] tg::Tensor step(tg::Tensor x) const {
    const tg::Tensor moved = tg::bernoulli({x.size(0), 1, kSide, kSide}, 0.5);
    const tg::Tensor next = x + out(relu(in(perceive(x)))) * moved;
    return next * (alive(x) * alive(next));
  }
  [[nodiscard]] tg::Tensor run(tg::Tensor x, int steps) const {
    for (int i = 0; i < steps; ++i) x = step(x);
    return x;
  }
};

// Returns red, green and blue, each times alpha, and alpha: [4, H, W].
std::vector<float> mushroom() {
  constexpr int kMargin = 2;
  const std::array<std::string, kSide - 2 * kMargin> rows = {
      "....RRRR....", "..RRRWWRRR..", ".RRRRWWRRRR.", ".RWWRRRRWWR.",
      "RRWWRRRRWWRR", "RRRRRWWRRRRR", "RRRRRWWRRRRR", ".RRBBBBBBRR.",
      "...BKBBKB...", "...BBBBBB...", "...BBBBBB...", "....BBBB....",
  };
  const std::map<char, std::array<float, 4>> colours = {{'.', {0, 0, 0, 0}},
                                                        {'R', {0.85F, 0.15F, 0.15F, 1}},
                                                        {'W', {1, 1, 1, 1}},
                                                        {'B', {0.9F, 0.8F, 0.6F, 1}},
                                                        {'K', {0.2F, 0.1F, 0.1F, 1}}};
  std::vector<float> picture(kColours);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t x = 0; x < rows.size(); ++x) {
      const std::size_t at = (y + kMargin) * kSide + x + kMargin;
      for (std::size_t c = 0; c < 4; ++c) picture[c * kCells + at] = colours.at(rows[y][x])[c];
    }
  }
  return picture;
}

State seed() {
  State state(kState);
  for (std::size_t c = 3; c < kChannels; ++c) state[c * kCells + kCells / 2 + kSide / 2] = 1;
  return state;
}

double error_of(const float* state, const std::vector<float>& picture) {
  double sum = 0;
  for (std::size_t i = 0; i < kColours; ++i) sum += std::pow(state[i] - picture[i], 2);
  return sum / kColours;
}

// Initial states for training. In each batch drawn, the worst state is replaced by the seed.
class Pool {
 public:
  explicit Pool(std::vector<float> picture) : picture_(std::move(picture)) {}
  std::vector<float> draw() {
    std::vector<float> batch;
    for (int& index : drawn_) {
      index = sample::below(random_, kPool);
      const State& state = states_[static_cast<std::size_t>(index)];
      batch.insert(batch.end(), state.begin(), state.end());
    }
    std::size_t worst = 0;
    for (std::size_t i = 1; i < kBatch; ++i) {
      if (error_of(&batch[i * kState], picture_) > error_of(&batch[worst * kState], picture_))
        worst = i;
    }
    const State first = seed();
    std::copy(first.begin(), first.end(), &batch[worst * kState]);
    return batch;
  }
  void put_back(const std::vector<float>& batch) {
    for (std::size_t i = 0; i < kBatch; ++i)
      states_[static_cast<std::size_t>(drawn_[i])].assign(&batch[i * kState],
                                                          &batch[i * kState] + kState);
  }

 private:
  std::vector<float> picture_;
  std::vector<State> states_ = std::vector<State>(kPool, seed());
  std::array<int, kBatch> drawn_{};
  sample::Random random_{1};
};

// Returns the seed and the states after each call of `grow`.
std::vector<State> watch(tg::CompiledFunction& grow, int calls) {
  std::vector<State> states{seed()};
  for (int i = 0; i < calls; ++i) states.push_back(grow({{"state", states.back()}}).floats());
  return states;
}

// Draws states next to each other, on white.
sample::Picture strip(const std::vector<State>& states) {
  constexpr int kZoom = 3, kSize = kSide * kZoom;
  sample::Picture picture(static_cast<int>(states.size()) * kSize, kSize);
  int left = 0;
  for (const State& state : states) {
    for (int y = 0; y < kSize; ++y) {
      for (int x = 0; x < kSize; ++x) {
        const int cell = y / kZoom * kSide + x / kZoom;
        const auto at = static_cast<std::size_t>(cell);
        const float behind = 1 - state[3 * kCells + at];
        picture.set(left + x, y, state[at] + behind, state[kCells + at] + behind,
                    state[2 * kCells + at] + behind);
      }
    }
    left += kSize;
  }
  return picture;
}

bool learn(const sample::Options& options) {
  const int steps = options.steps(2500, 100), unrolled = options.smoke() ? 2 : kSteps;
  auto trainer = tg::compile(
      Rule{},
      [&](const Rule& rule, const tg::Inputs& in) {
        const tg::Tensor end = tg::capture("end", rule.run(in["state"], unrolled));
        return mean(square(narrow(end, 1, 0, 4) - in["picture"]));
      },
      {.inputs = {{"state", {kBatch, kChannels, kSide, kSide}}, {"picture", {4, kSide, kSide}}},
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::multi_step(2e-3, {steps * 3 / 4}, 0.1)},
       .normalize_grads = "*",
       .seed = 1,
       .device = options.device});
  const std::vector<float> picture = mushroom();
  Pool pool(picture);
  double recent = 0;
  for (int step = 1; step <= steps; ++step) {
    const std::vector<float> begin = pool.draw();
    const tg::StepResult result =
        trainer.step({{"state", begin}, {"picture", picture}}, {.captures = {"end"}});
    pool.put_back(result.captures.at("end").floats());
    recent = step == 1 ? result.loss : 0.95 * recent + 0.05 * result.loss;
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(recent));
  }
  constexpr int kSeen = 4;  // steps between two pictures
  auto grow = trainer.attach(
      [](const Rule& rule, const tg::Inputs& in) { return rule.run(in["state"], kSeen); },
      {.inputs = {{"state", {1, kChannels, kSide, kSide}}}});
  const std::vector<State> states = watch(grow, 4 * kSteps / kSeen);
  sample::save_png(options, "neural_automaton.png",
                   strip({states.begin(), states.begin() + 2 * kSteps / kSeen + 1}));
  const double grown = error_of(states[kSteps / kSeen].data(), picture);
  const double kept = error_of(states.back().data(), picture);
  const bool good = sample::at_most(options, "squared error once it is grown", grown, 0.015, 0.16);
  return sample::at_most(options, "squared error after four times as many steps", kept, 0.015,
                         0.2) &&
         good;
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Grows a mushroom.", learn); }
