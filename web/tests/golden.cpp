// SPDX-License-Identifier: MIT
// Prints what C++ computes, as JSON: losses and launch tables of the models that golden.test.mjs
// writes in JavaScript, and results of every op on small tensors (cases.inc, made by cases.py).
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;

namespace {

// Numbers in [-1, 1), those of support.mjs.
std::vector<float> numbers(std::size_t count, std::uint32_t seed, float scale = 1) {
  std::vector<float> all(count);
  for (float& each : all) {
    seed = seed * 1664525U + 1013904223U;
    each = (static_cast<float>(seed >> 8U) / 8388608.0F - 1) * scale;
  }
  return all;
}

std::vector<std::int32_t> integers(std::size_t count, std::uint32_t seed, std::int32_t below) {
  std::vector<std::int32_t> all;
  for (const float each : numbers(count, seed))
    all.push_back(static_cast<std::int32_t>((each + 1) / 2 * static_cast<float>(below)));
  return all;
}

void print_string(const std::string& text) {
  std::putchar('"');
  for (const char c : text) {
    if (c == '\n') {
      std::fputs("\\n", stdout);
    } else if (c == '"' || c == '\\') {
      std::printf("\\%c", c);
    } else {
      std::putchar(c);
    }
  }
  std::putchar('"');
}

// Bits, as JSON has neither infinity nor NaN.
void print_words(const void* data, std::size_t count) {
  std::putchar('[');
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(data) + 4 * i, sizeof word);
    std::printf("%s%u", i == 0 ? "" : ",", word);
  }
  std::putchar(']');
}

void print_model(const char* name, tg::TrainerBase& trainer, const std::vector<float>& losses) {
  std::printf("\"%s\": {\"losses\": ", name);
  print_words(losses.data(), losses.size());
  std::fputs(", \"explain\": ", stdout);
  print_string(trainer.explain());
  std::fputs("},\n", stdout);
}

struct Mlp {
  tg::nn::Linear in{1, 64}, mid{64, 64}, out{64, 1};
  TG_MODULE(in, mid, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(relu(mid(relu(in(x))))); }
};

void sine() {
  auto trainer = tg::compile(
      Mlp{}, [](const Mlp& net, const tg::Inputs& in) { return tg::mse(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {32, 1}}, {"y", {32, 1}}},
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(5e-3, 1e-4, 20)},
       .seed = 3,
       .device = {.kind = "cpu"}});
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < 10; ++i) {
    losses.push_back(trainer.step({{"x", numbers(32, i, 3)}, {"y", numbers(32, i + 100)}}).loss);
  }
  print_model("sine", trainer, losses);
}

struct Cnn {
  tg::nn::Conv2d conv{1, 4, 3, {.padding = 1}};
  tg::nn::BatchNorm norm{4};
  tg::nn::Dropout drop{0.25};
  tg::nn::Linear out{4 * 16, 5};
  TG_MODULE(conv, norm, drop, out)
  tg::Tensor operator()(tg::Tensor x) const {
    const tg::Tensor h = tg::max_pool2d(tg::relu(norm(conv(x))), 2);
    return out(tg::flatten(drop(h), 1));
  }
};

void cnn() {
  auto trainer =
      tg::compile(Cnn{},
                  [](const Cnn& net, const tg::Inputs& in) {
                    return tg::cross_entropy(net(in["x"]), in["y"], {.label_smoothing = 0.1});
                  },
                  {.inputs = {{"x", {6, 1, 8, 8}}, {"y", {6}, tg::i32}},
                   .optimizer = tg::optim::SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true},
                   .clip_grad_norm = 1,
                   .device = {.kind = "cpu"}});
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < 10; ++i) {
    losses.push_back(
        trainer.step({{"x", numbers(6 * 64, i)}, {"y", integers(6, i + 100, 5)}}).loss);
  }
  print_model("cnn", trainer, losses);
}

void language() {
  tg::nn::LanguageModelConfig config{.vocab_size = 11, .d_model = 16, .n_layer = 4};
  config.layers = {tg::nn::MixerKind::kMamba1, tg::nn::MixerKind::kAttention,
                   tg::nn::MixerKind::kMamba3, tg::nn::MixerKind::kMlp};
  config.mamba3 = {.d_state = 8, .head_dim = 8};
  auto trainer = tg::compile(tg::nn::LanguageModel(config),
                             [](const tg::nn::LanguageModel& net, const tg::Inputs& in) {
                               return net.loss(in["x"], in["y"]);
                             },
                             {.inputs = {{"x", {2, 12}, tg::i32}, {"y", {2, 12}, tg::i32}},
                              .optimizer = tg::optim::AdamW{.lr = 0.01},
                              .device = {.kind = "cpu"}});
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < 5; ++i) {
    losses.push_back(
        trainer.step({{"x", integers(24, i, 11)}, {"y", integers(24, i + 7, 11)}}).loss);
  }
  print_model("language", trainer, losses);
}

// Two losses that train different parameters of one model, with one of their own optimizers.
struct Pair {
  tg::nn::Linear a{4, 4}, b{4, 4};
  TG_MODULE(a, b)
};

// Steps of equal size, along the sign of an average; biases go twice as far.
struct SignAverage {
  tg::Schedule lr = tg::Schedule::linear(0.02, 0.01, 8);
  tg::optim::Hyperparameter beta = tg::optim::adjustable(0.9);
  void operator()(tg::optim::Update& u) const {
    const tg::Tensor beta_now = u.hyperparameter("beta", beta, 1, nullptr);
    const tg::Tensor m = beta_now * u.state("average") + (1 - beta_now) * u.grad;
    u.set_state("average", m);
    std::vector<tg::Tensor> parts;
    for (std::size_t i = 0; i < u.param_infos().size(); ++i)
      parts.push_back(tg::sign(u.param_view(m, i)));
    const tg::Tensor far = tg::where(u.mask({"*.bias"}), u.lr * 2, u.lr);
    u.set_param(u.param * 0.99 - far * u.flatten(parts) / u.step);
  }
};

void pair() {
  using tg::Inputs;
  auto trainer = tg::compile(
      Pair{},
      {{"left",
        [](const Pair& net, const Inputs& in) { return tg::mse(net.b(net.a(in["x"])), in["y"]); },
        {"a.*"},
        {.inputs = {{"x", {3, 4}}, {"y", {3, 4}}}, .optimizer = SignAverage{}}},
       {"right",
        [](const Pair& net, const Inputs& in) { return tg::mean(tg::abs(net.b(net.a(in["x"])))); },
        {"b.*"},
        {.dataset = {{"x", {12, 4}}}, .batch = 4, .optimizer = tg::optim::SGD{.lr = 0.1}}}},
      {.seed = 5, .device = {.kind = "cpu"}});
  trainer.upload_data("x", numbers(48, 9));
  std::vector<float> losses;
  for (std::uint32_t i = 0; i < 6; ++i) {
    losses.push_back(
        trainer["left"].step({{"x", numbers(12, i)}, {"y", numbers(12, i + 50)}}).loss);
    losses.push_back(trainer["right"].run(1)[0]);
  }
  print_model("pair", trainer, losses);
}

// The order of a data loader over 3 epochs.
void order() {
  tg::DataLoader loader(10,
                        [](std::int64_t i) {
                          const std::vector<float> one = {static_cast<float>(i)};
                          return tg::NamedTensors{{"i", tg::HostTensor::from({1}, one)}};
                        },
                        {.batch = 4, .drop_last = false, .workers = 0, .seed = 7});
  std::vector<float> all;
  for (int i = 0; i < 9; ++i) {
    for (const float each : loader.next().fields.at("i").floats()) all.push_back(each);
  }
  std::fputs("\"order\": ", stdout);
  print_words(all.data(), all.size());
  std::fputs(",\n", stdout);
}

// ---- ops ---------------------------------------------------------------------------------------

using Outputs = std::map<std::string, tg::Tensor>;

// The tensors of a result, by the number at which they come.
void add(Outputs& all, tg::Tensor tensor) {
  all[std::string(1, static_cast<char>('a' + all.size()))] = tensor;
}
template <class T>
void add(Outputs& all, const std::vector<T>& list) {
  for (const T& each : list) add(all, each);
}
void add(Outputs& all, const std::pair<tg::Tensor, tg::Tensor>& both) {
  add(all, both.first);
  add(all, both.second);
}
void add(Outputs& all, const tg::ValuesAndIndices& both) {
  add(all, both.values);
  add(all, both.indices);
}
void add(Outputs& all, const tg::RotaryState& state) {
  for (const tg::Tensor each : {state.state, state.b, state.x, state.phase}) add(all, each);
}
template <class T>
  requires requires(const T& t) { t.y, t.state; }
void add(Outputs& all, const T& both) {
  add(all, both.y);
  add(all, both.state);
}
template <class T>
Outputs outputs(const T& result) {
  Outputs all;
  add(all, result);
  return all;
}

struct Nothing {
  TG_MODULE()
};

struct Case {
  const char* name;
  std::vector<tg::InputSpec> inputs;
  std::function<Outputs(const tg::Inputs&)> function;
};

const std::vector<Case>& cases() {
  using namespace tensorgrad;
  static const std::vector<Case> all = {
#include "cases.inc"
  };
  return all;
}

void op(const Case& each, bool last) {
  auto function = tg::compile_function(
      Nothing(), [&](const Nothing&, const tg::Inputs& in) { return each.function(in); },
      {.inputs = each.inputs, .device = {.kind = "cpu"}, .training = true});
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<std::int32_t>> ints;
  floats.reserve(each.inputs.size());
  ints.reserve(each.inputs.size());
  tg::FeedView feed;
  std::uint32_t seed = 1;
  for (const tg::InputSpec& spec : each.inputs) {
    const auto count = static_cast<std::size_t>(tg::numel(spec.shape));
    if (spec.dtype == tg::f32) {
      floats.push_back(numbers(count, seed++));
      feed.add(spec.name, floats.back());
    } else {
      ints.push_back(integers(count, seed++, 2));
      feed.add(spec.name, tg::FeedValue(spec.dtype, ints.back().data(), count));
    }
  }
  std::printf("\"%s\": {", each.name);
  bool first = true;
  for (const auto& [name, tensor] : function.run(feed)) {
    std::printf("%s\"%s\": ", first ? "" : ", ", name.c_str());
    first = false;
    if (tensor.dtype == tg::f16) {
      const auto values = tensor.floats();
      print_words(values.data(), values.size());
    } else {
      print_words(tensor.bytes.data(), tensor.bytes.size() / 4);
    }
  }
  std::printf("}%s\n", last ? "" : ",");
}

}  // namespace

int main() {
  std::puts("{");
  sine();
  cnn();
  language();
  pair();
  order();
  std::puts("\"ops\": {");
  for (const Case& each : cases()) op(each, &each == &cases().back());
  std::puts("}}");
}
