// SPDX-License-Identifier: MIT
// A small decoder of characters (Radford et al. 2019) learns from Shakespeare's works. The last
// tenth of each is held out. Draws the losses and prints a text that it generates.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

struct Size {
  std::int64_t batch, length, width, layers, heads;
  double dropout;
  int steps;
};
constexpr Size kSmall{24, 64, 128, 3, 4, 0, 1000}, kLarge{64, 256, 384, 6, 6, 0.1, 5000},
    kTiny{4, 16, 32, 1, 2, 0, 3};
constexpr int kTestWindows = 1024, kCharacters = 500;

struct Gpt {
  Gpt(const Size& size, std::int64_t symbols)
      : tokens(symbols, size.width),
        places(size.length, size.width),
        blocks(static_cast<std::size_t>(size.layers),
               tg::nn::TransformerEncoderLayer(size.width, size.heads,
                                               {.dim_feedforward = 4 * size.width,
                                                .dropout = size.dropout,
                                                .norm_first = true,
                                                .gelu = true})),
        norm(size.width),
        head(size.width, symbols) {
    tokens.weight = tg::Parameter({symbols, size.width}, tg::init::normal(0, 0.02));
    places.weight = tg::Parameter({size.length, size.width}, tg::init::normal(0, 0.02));
  }
  tg::nn::Embedding tokens, places;
  std::vector<tg::nn::TransformerEncoderLayer> blocks;
  tg::nn::LayerNorm norm;
  tg::nn::Linear head;
  TG_MODULE(tokens, places, blocks, norm, head)

  // Tokens i32 [B, T] -> logits [B, T, symbols] of the next tokens
  tg::Tensor operator()(tg::Tensor text) const {
    tg::Tensor x = tokens(text) + places(tg::arange(text.shape()[1]));
    for (const auto& block : blocks) x = block(x, {.causal = true});
    return head(norm(x));
  }
};

tg::Tensor loss_of(const Gpt& net, const tg::Inputs& in) {
  return cross_entropy(net(in["text"]), in["next"]);
}

// Tokens and the next tokens, i32 [B, T] each.
std::vector<tg::InputSpec> inputs_of(const Size& size) {
  return {{"text", {size.batch, size.length}, tg::i32},
          {"next", {size.batch, size.length}, tg::i32}};
}

// Reads at most `most` works. The last tenth of each goes to the validation data.
tg::TextData read_works(const std::string& folder, int most) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  paths.resize(std::min(paths.size(), static_cast<std::size_t>(most)));
  std::vector<std::string> texts;
  std::string all;
  for (const std::string& path : paths) {
    const std::vector<std::byte> bytes = tg::read_file(path);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    all += texts.back();
  }
  tg::TextData data{tg::CharVocabulary::of(all, folder), {}, {}};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const tg::TextData work = tg::read_text(tg::FileSource::text(texts[i], paths[i]),
                                            {.vocabulary = data.vocabulary.symbols()});
    data.train.insert(data.train.end(), work.train.begin(), work.train.end());
    data.validation.insert(data.validation.end(), work.validation.begin(), work.validation.end());
  }
  return data;
}

tg::DataLoader loader_of(const tg::TokenDataset& data, bool shuffle, std::int64_t batch) {
  return {data.size(),
          [data](std::int64_t index) -> tg::NamedTensors {
            const tg::TokenExample example = data.at(index);
            const auto length = static_cast<std::int64_t>(example.inputs.size());
            return {{"text", tg::HostTensor::from({length}, example.inputs)},
                    {"next", tg::HostTensor::from({length}, example.targets)}};
          },
          {.batch = batch, .shuffle = shuffle}};
}

// Returns nats per character over the first `batches` batches.
double loss_on(tg::CompiledFunction& forward, tg::DataLoader& loader, std::int64_t batches) {
  loader.load_state({});
  double sum = 0;
  for (std::int64_t b = 0; b < batches; ++b) sum += forward(loader.next()).floats()[0];
  return sum / static_cast<double>(batches);
}

std::string write(tg::CompiledFunction& next, const tg::CharVocabulary& vocabulary,
                  std::int64_t length) {
  sample::Random random(1);
  std::vector<std::int32_t> text = vocabulary.encode("\n\nKING. ");
  while (static_cast<int>(text.size()) < kCharacters) {
    const std::size_t seen = std::min(text.size(), static_cast<std::size_t>(length));
    std::vector<std::int32_t> window(text.end() - static_cast<std::ptrdiff_t>(seen), text.end());
    window.resize(static_cast<std::size_t>(length));  // padding is not attended to
    const std::vector<float> chances = next({{"text", window}}).floats();
    const auto symbols = static_cast<std::size_t>(vocabulary.size());
    text.push_back(
        sample::draw(random, &chances[(seen - 1) * symbols], static_cast<int>(vocabulary.size())));
  }
  return vocabulary.decode(text);
}

bool learn(const sample::Options& options) {
  const Size size = options.smoke() ? kTiny : options.large ? kLarge : kSmall;
  const tg::TextData data =
      read_works(sample::data_folder(options, "shakespeare"), options.steps(1000, 4));
  const tg::TokenDataset train(tg::TokenSequence(data.train), {.length = size.length, .stride = 1});
  const auto held_out = static_cast<std::int64_t>(data.validation.size());
  const tg::TokenDataset tests(tg::TokenSequence(data.validation),
                               {.length = size.length, .stride = held_out / kTestWindows});
  tg::DataLoader batches = loader_of(train, true, size.batch);
  tg::DataLoader test_batches = loader_of(tests, false, size.batch);
  const std::int64_t test_count = options.full() ? test_batches.batches_per_epoch() : 2;
  std::printf("%zu characters to learn from, %lld symbols\n", data.train.size(),
              static_cast<long long>(data.vocabulary.size()));
  const int steps = options.steps(size.steps, 60);
  auto trainer = tg::compile(
      Gpt(size, data.vocabulary.size()), loss_of,
      {.inputs = inputs_of(size),
       .optimizer = tg::optim::AdamW{.lr = tg::Schedule::warmup(
                                         steps / 20 + 1, tg::Schedule::cosine(3e-3, 1e-4, steps)),
                                     .beta2 = 0.99,
                                     .weight_decay = 0.1},
       .groups = {tg::no_weight_decay()},
       .clip_grad_norm = 1,
       .seed = 1,
       .device = options.device});
  auto test = trainer.attach(loss_of, {.inputs = inputs_of(size)});
  auto next =
      trainer.attach([](const Gpt& net, const tg::Inputs& in) { return softmax(net(in["text"])); },
                     {.inputs = {{"text", {1, size.length}, tg::i32}}});
  sample::Curve learned{"learned from", {}}, unseen{"held out", {}};
  const int piece = std::max(1, steps / 20);
  double sum = 0;
  for (int step = 1; step <= steps; ++step) {
    sum += trainer.step(batches.next()).loss / piece;
    if (step % piece != 0) continue;
    learned.points.emplace_back(step, sum);
    unseen.points.emplace_back(step, loss_on(test, test_batches, options.full() ? 4 : 1));
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(sum) +
                     "  held out " + std::to_string(unseen.points.back().second));
    sum = 0;
  }
  const double loss = loss_on(test, test_batches, test_count);
  if (options.full()) std::printf("%s\n", write(next, data.vocabulary, size.length).c_str());
  sample::save_curves(options, "char_gpt.svg", "steps", {learned, unseen});
  return sample::at_most(options, "nats a character of what was held out", loss,
                         options.large ? 1.55 : 1.9, 3.0);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns to write like Shakespeare.", learn);
}
