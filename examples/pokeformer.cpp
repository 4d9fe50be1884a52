// SPDX-License-Identifier: MIT
// A small Llama (Touvron et al. 2023: RMSNorm, rotary positions) with relu and a tied output layer
// learns the names of the first 151 Pokemon and generates names. Letters are sampled on the device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr int kSymbols = 27;  // 0 marks both ends of a name
constexpr int kLength = 16, kWidth = 64, kHeads = 4, kInner = 256, kLayers = 2;
constexpr int kBatch = 32, kMadeUp = 8;
constexpr int kParameters = 100'992;

constexpr const char* kNames =
    "bulbasaur ivysaur venusaur charmander charmeleon charizard squirtle wartortle blastoise "
    "caterpie metapod butterfree weedle kakuna beedrill pidgey pidgeotto pidgeot rattata raticate "
    "spearow fearow ekans arbok pikachu raichu sandshrew sandslash nidoran nidorina nidoqueen "
    "nidorino nidoking clefairy clefable vulpix ninetales jigglypuff wigglytuff zubat golbat "
    "oddish gloom vileplume paras parasect venonat venomoth diglett dugtrio meowth persian "
    "psyduck golduck mankey primeape growlithe arcanine poliwag poliwhirl poliwrath abra kadabra "
    "alakazam machop machoke machamp bellsprout weepinbell victreebel tentacool tentacruel "
    "geodude graveler golem ponyta rapidash slowpoke slowbro magnemite magneton farfetchd doduo "
    "dodrio seel dewgong grimer muk shellder cloyster gastly haunter gengar onix drowzee hypno "
    "krabby kingler voltorb electrode exeggcute exeggutor cubone marowak hitmonlee hitmonchan "
    "lickitung koffing weezing rhyhorn rhydon chansey tangela kangaskhan horsea seadra goldeen "
    "seaking staryu starmie mrmime scyther jynx electabuzz magmar pinsir tauros magikarp gyarados "
    "lapras ditto eevee vaporeon jolteon flareon porygon omanyte omastar kabuto kabutops "
    "aerodactyl snorlax articuno zapdos moltres dratini dragonair dragonite mewtwo mew";

tg::Parameter matrix(std::int64_t out, std::int64_t in) {
  return tg::Parameter({out, in}, tg::init::normal(0, 0.02));
}

tg::nn::Linear layer(std::int64_t in, std::int64_t out, bool bias) {
  tg::nn::Linear made(in, out, bias);
  made.weight = matrix(out, in);
  if (bias) made.bias = tg::Parameter({out});
  return made;
}

struct Block {
  tg::nn::RMSNorm before_attention{kWidth, 1e-6}, before_mlp{kWidth, 1e-6};
  tg::nn::Linear query = layer(kWidth, kWidth, false), key = layer(kWidth, kWidth, false),
                 value = layer(kWidth, kWidth, false), out = layer(kWidth, kWidth, false),
                 up = layer(kWidth, kInner, true), down = layer(kInner, kWidth, true);
  TG_MODULE(before_attention, before_mlp, query, key, value, out, up, down)

  // [B, T, D] -> [B, H, T, D / H]
  static tg::Tensor heads(tg::Tensor x) {
    return transpose(reshape(x, {-1, kLength, kHeads, kWidth / kHeads}), 1, 2);
  }

  [[nodiscard]] tg::Tensor attention(tg::Tensor x) const {
    const tg::Tensor mixed = scaled_dot_product_attention(
        rope(heads(query(x))), rope(heads(key(x))), heads(value(x)), {.causal = true});
    return out(reshape(transpose(mixed, 1, 2), {-1, kLength, kWidth}));
  }

  tg::Tensor operator()(tg::Tensor x) const {
    x = x + attention(before_attention(x));
    return x + down(relu(up(before_mlp(x))));
  }
};

struct Pokeformer {
  tg::Parameter symbols = matrix(kSymbols, kWidth);
  std::vector<Block> blocks = std::vector<Block>(kLayers);
  tg::nn::RMSNorm last{kWidth, 1e-6};
  TG_MODULE(symbols, blocks, last)

  // Symbols i32 [B, T] -> logits [B, T, 27] of the next symbols
  tg::Tensor operator()(tg::Tensor text) const {
    tg::Tensor x = embedding(text, symbols);
    for (const Block& block : blocks) x = block(x);
    return linear(last(x), symbols);
  }
};

// Returns the mean loss over the letters of the names and their ends.
tg::Tensor loss_of(const Pokeformer& net, const tg::Inputs& in) {
  const tg::Tensor losses =
      cross_entropy(net(in["x"]), in["y"], {.reduction = tg::Reduction::kNone});
  return sum(losses * in["mask"]) / sum(in["mask"]);
}

// Reads names from names.txt, one per line, or uses those above. Skips names that are too long for
// the model.
std::vector<std::string> read_names(const sample::Options& options) {
  std::string text = kNames;
  if (!options.data.empty()) {
    const std::vector<std::byte> bytes = tg::read_file(options.data + "/names.txt");
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string name; words >> name;) {
    const bool usable = name.size() < kLength &&
                        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
    if (usable) names.push_back(name);
  }
  if (names.empty()) throw tg::IoError(options.data + "/names.txt: no names of letters a to z");
  return names;
}

struct Batch {
  std::vector<std::int32_t> x = std::vector<std::int32_t>(kBatch * kLength), y = x;
  std::vector<float> mask = std::vector<float>(kBatch * kLength);
};

Batch draw_batch(const std::vector<std::string>& names, sample::Random& random) {
  Batch batch;
  for (std::size_t row = 0; row < kBatch; ++row) {
    const std::string& name =
        names[static_cast<std::size_t>(sample::below(random, static_cast<int>(names.size())))];
    for (std::size_t t = 0; t <= name.size(); ++t) {
      const std::size_t at = row * kLength + t;
      if (t > 0) batch.x[at] = name[t - 1] - 'a' + 1;
      if (t < name.size()) batch.y[at] = name[t] - 'a' + 1;
      batch.mask[at] = 1;
    }
  }
  return batch;
}

// Generates names in parallel, letter by letter: the function samples the next letter at each
// position.
std::vector<std::string> make_up(tg::CompiledFunction& next) {
  std::vector<std::string> names(kMadeUp);
  std::vector<std::int32_t> text(kMadeUp * kLength);
  for (std::size_t t = 0; t + 1 < kLength; ++t) {
    const std::vector<std::int32_t> drawn = next({{"x", text}}).ints();
    for (std::size_t i = 0; i < kMadeUp; ++i) {
      const std::int32_t letter = drawn[i * kLength + t];
      if (names[i].size() < t || letter == 0) continue;  // the name has ended
      names[i] += static_cast<char>('a' + letter - 1);
      text[i * kLength + t + 1] = letter;
    }
  }
  return names;
}

bool learn(const sample::Options& options) {
  const std::vector<std::string> names = read_names(options);
  std::printf("%zu names\n", names.size());
  const int steps = options.steps(1500, 150);
  const tg::InputSpec text{"x", {kBatch, kLength}, tg::i32};
  auto trainer =
      tg::compile(Pokeformer{}, loss_of,
                  {.inputs = {text, {"y", {kBatch, kLength}, tg::i32}, {"mask", {kBatch, kLength}}},
                   .optimizer = tg::optim::AdamW{.lr = tg::Schedule::linear(5e-3, 5e-4, steps),
                                                 .weight_decay = 0.01},
                   .groups = {tg::no_weight_decay()},
                   .clip_grad_norm = 1,
                   .seed = options.seed.value_or(1),
                   .device = options.device});
  if (sample::count_parameters(trainer) != kParameters) throw tg::UserError("a wrong model");
  constexpr double kTemperature = 1;  // lower: more likely names
  auto next = trainer.attach(
      [](const Pokeformer& net, const tg::Inputs& in) {
        return categorical(net(in["x"]) / kTemperature, -1);
      },
      {.inputs = {{"x", {kMadeUp, kLength}, tg::i32}}});
  sample::Random random(options.seed.value_or(1));
  sample::Curve losses{"nats a letter", {}};
  std::vector<std::string> made;
  double recent = 0;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = draw_batch(names, random);
    const double now = trainer.step({{"x", batch.x}, {"y", batch.y}, {"mask", batch.mask}}).loss;
    recent = step == 0 ? now : 0.95 * recent + 0.05 * now;
    losses.points.emplace_back(step, now);
    if (step % 100 != 99 && step + 1 != steps) continue;
    made = make_up(next);
    std::string line;
    for (const std::string& name : made) line += " " + name;
    std::printf("step %d  loss %.3f %s\n", step + 1, recent, line.c_str());
  }
  sample::Drawing drawing(800, 400);
  drawing.plot({60, 40, 500, 310}, {losses}, {.title = "Loss", .x_name = "steps"});
  drawing.text(600, 31, "Names made up", {.size = 14, .bold = true});
  for (std::size_t i = 0; i < made.size(); ++i) {
    const bool known = std::find(names.begin(), names.end(), made[i]) != names.end();
    drawing.text(600, 66 + 28 * static_cast<double>(i), made[i],
                 {.size = 16, .color = known ? "#868e96" : "#212529"});
  }
  drawing.text(600, 66 + 28 * 8 + 10, "gray: a real one", {.color = "#868e96"});
  drawing.save(options, "pokeformer.svg");
  return sample::at_most(options, "nats a letter", recent, 0.7, 2.4);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns to spell Pokemon.", learn);
}
