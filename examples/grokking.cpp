// SPDX-License-Identifier: MIT
// Grokking (Power et al. 2022): a transformer of one layer (that of Nanda et al. 2023) learns
// division modulo a prime from 35 % of all pairs. It memorizes these long before it generalizes to
// the others. Draws both accuracies over the steps.
#include <algorithm>
#include <array>
#include <cmath>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kPrime = 97, kPairs = kPrime * (kPrime - 1), kTrained = kPairs * 35 / 100;
constexpr int kWidth = 128, kHeads = 4, kBatch = 512, kTokens = 3;  // of "a b ="
constexpr int kEvery = 50;                                          // steps between two tests

struct Net {
  Net() {
    tokens.weight = tg::Parameter({kPrime + 1, kWidth}, tg::init::normal(0, 1 / std::sqrt(kWidth)));
  }
  tg::nn::Embedding tokens{kPrime + 1, kWidth};
  tg::Parameter places{{kTokens, kWidth}, tg::init::normal(0, 1 / std::sqrt(kWidth))};
  tg::nn::MultiheadAttention attention{kWidth, kHeads};
  tg::nn::Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth}, out{kWidth, kPrime};
  TG_MODULE(tokens, places, attention, up, down, out)

  // Tokens i32 [B, 3] -> logits [B, 97] of the last token
  tg::Tensor operator()(tg::Tensor text) const {
    const tg::Tensor x = tokens(text) + places;
    tg::Tensor last = narrow(x, 1, kTokens - 1, 1);
    last = last + attention(last, x, x);
    last = last + down(relu(up(last)));
    return squeeze(out(last), 1);
  }
};

// All pairs in random order: tokens [N, 3] and the quotients a / b, [N].
struct Table {
  std::vector<std::int32_t> texts, quotients;
};

Table divide_all() {
  std::vector<std::array<std::int32_t, 3>> rows;  // quotient, divisor, dividend
  for (int c = 0; c < kPrime; ++c) {
    for (int b = 1; b < kPrime; ++b) rows.push_back({c, b, c * b % kPrime});
  }
  sample::Random random(1);
  for (int i = kPairs - 1; i > 0; --i)
    std::swap(rows[static_cast<std::size_t>(i)],
              rows[static_cast<std::size_t>(sample::below(random, i + 1))]);
  Table table;
  for (const auto& [quotient, divisor, dividend] : rows) {
    table.texts.insert(table.texts.end(), {dividend, divisor, kPrime});
    table.quotients.push_back(quotient);
  }
  return table;
}

// Returns the share of `count` rows from `first` on that are right.
double accuracy(tg::CompiledFunction& answer, const Table& table, std::size_t first,
                std::size_t count) {
  const std::span rows = std::span(table.texts).subspan(first * kTokens, count * kTokens);
  const std::vector<std::int32_t> said = answer({{"x", rows}}).ints();
  int right = 0;
  for (std::size_t i = 0; i < count; ++i) right += said[i] == table.quotients[first + i] ? 1 : 0;
  return right / static_cast<double>(count);
}

// Returns the first step with an accuracy of at least 0.99, or the step after the last.
double when_known(const sample::Curve& curve) {
  for (const auto& [step, share] : curve.points) {
    if (share >= 0.99) return step;
  }
  return curve.points.back().first + kEvery;
}

bool learn(const sample::Options& options) {
  const int steps = options.smoke() ? kEvery : options.steps(8000, 250);  // at most
  auto trainer = tg::compile(
      Net{},
      [](const Net& net, const tg::Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.dataset = {{"x", {kTrained, kTokens}, tg::i32}, {"y", {kTrained}, tg::i32}},
       .batch = kBatch,
       .optimizer =
           tg::optim::AdamW{
               .lr = tg::Schedule::warmup(10, 3e-3), .beta2 = 0.98, .weight_decay = 1.0},
       .seed = 1,
       .device = options.device});
  auto answer =
      trainer.attach([](const Net& net, const tg::Inputs& in) { return argmax(net(in["x"]), -1); },
                     {.inputs = {{"x", {tg::kDynamic, kTokens}, tg::i32}}});
  const Table table = divide_all();
  trainer.upload_data("x", std::span(table.texts).first(kTrained * kTokens));
  trainer.upload_data("y", std::span(table.quotients).first(kTrained));
  sample::Curve trained{"trained on", {}}, unseen{"held out", {}};
  double known = 0, grasped = 0;
  for (int step = kEvery; step <= steps && grasped < 0.995; step += kEvery) {
    const float loss = trainer.run(options.smoke() ? 3 : kEvery).back();
    known = accuracy(answer, table, 0, options.smoke() ? 100 : kTrained);
    grasped = accuracy(answer, table, kTrained, options.smoke() ? 100 : kPairs - kTrained);
    trained.points.emplace_back(step, known);
    unseen.points.emplace_back(step, grasped);
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(loss) +
                     "  right " + std::to_string(known) + "  held out " + std::to_string(grasped));
  }
  sample::save_curves(options, "grokking.svg", "steps", {trained, unseen});
  const bool by_heart = sample::at_least(options, "trained pairs that are right", known, 0.99, 0.2);
  if (!options.full()) return by_heart;
  const double delay = when_known(unseen) / when_known(trained);
  const bool later = sample::at_least(
      options, "steps to 99 % of the held-out pairs, by those to 99 % of the others", delay, 2, 0);
  return sample::at_least(options, "held-out pairs that are right", grasped, 0.99, 0) && later &&
         by_heart;
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Learns to divide.", learn); }
