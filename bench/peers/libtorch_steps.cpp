// SPDX-License-Identifier: MIT
// LibTorch in C++ on a workload of tg_bench, on the CPU. Prints one JSON line. bench/run.py builds
// it against the library in PyTorch's wheel, and passes the sizes of the workload:
//
//   libtorch_steps NAME MODE THREADS SECONDS mlp BATCH CLASSES CLIP SIZE...
//   libtorch_steps NAME MODE THREADS SECONDS cnn BATCH CHANNELS CHANNELS HIDDEN CLIP
//   libtorch_steps NAME MODE THREADS SECONDS decoder VOCABULARY WIDTH LAYERS HEADS LENGTH BATCH
//     GELU ANSWERS CLIP
//
// MODE: `fused` updates the parameters with the kernel that Python's fused=True calls. `probe` does
// the same, and reports when the first step was done and the peak memory after 20 more.
#include <sys/resource.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using torch::Tensor;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr double kRate = 1e-3;
constexpr std::int64_t kIgnored = -100;

struct Block : nn::Module {
  Block(std::int64_t width, std::int64_t heads, bool gelu) : heads(heads), gelu(gelu) {
    const auto square = [&](const char* name) {
      return register_module(name, nn::Linear(nn::LinearOptions(width, width).bias(false)));
    };
    q = square("q"), k = square("k"), v = square("v"), o = square("o");
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})));
    up = register_module("up", nn::Linear(width, 4 * width));
    down = register_module("down", nn::Linear(4 * width, width));
  }
  Tensor forward(Tensor x) {
    const auto b = x.size(0), t = x.size(1), d = x.size(2);
    const auto split = [&](const Tensor& all) {
      return all.view({b, t, heads, d / heads}).transpose(1, 2);
    };
    const Tensor h = norm1(x);
    const Tensor mixed = at::scaled_dot_product_attention(split(q(h)), split(k(h)), split(v(h)), {},
                                                          0.0, /*is_causal=*/true);
    x = x + o(mixed.transpose(1, 2).reshape({b, t, d}));
    const Tensor wide = up(norm2(x));
    return x + down(gelu ? torch::gelu(wide) : torch::relu(wide));
  }
  std::int64_t heads;
  bool gelu;
  nn::Linear q{nullptr}, k{nullptr}, v{nullptr}, o{nullptr}, up{nullptr}, down{nullptr};
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
};

struct Decoder : nn::Module {
  Decoder(std::int64_t vocabulary, std::int64_t width, std::int64_t layers, std::int64_t heads,
          std::int64_t length, bool gelu) {
    symbols = register_parameter("symbols", 0.02 * torch::randn({vocabulary, width}));
    places = register_parameter("places", 0.02 * torch::randn({length, width}));
    for (std::int64_t i = 0; i < layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i),
                                       std::make_shared<Block>(width, heads, gelu)));
    }
    last = register_module("last", nn::LayerNorm(nn::LayerNormOptions({width})));
  }
  Tensor forward(const Tensor& text) {
    Tensor x = torch::embedding(symbols, text) + places;
    for (const auto& block : blocks) x = block->forward(x);
    return torch::matmul(last(x), symbols.t());
  }
  Tensor symbols, places;
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm last{nullptr};
};

// Adam, or AdamW with a decay, with the kernel that Python's fused=True calls.
class FusedAdam {
 public:
  FusedAdam(std::vector<Tensor> parameters, double decay)
      : parameters_(std::move(parameters)), decay_(decay) {
    for (const Tensor& each : parameters_) {
      means_.push_back(torch::zeros_like(each));
      squares_.push_back(torch::zeros_like(each));
      steps_.push_back(torch::zeros({}));
    }
  }
  void step() {
    const torch::NoGradGuard guard;
    std::vector<Tensor> grads;
    for (const Tensor& each : parameters_) grads.push_back(each.grad());
    at::_foreach_add_(steps_, 1);
    if (decay_ > 0) {
      at::_fused_adamw_(parameters_, grads, means_, squares_, {}, steps_, kRate, .9, .999, decay_,
                        1e-8, false, false);
    } else {
      at::_fused_adam_(parameters_, grads, means_, squares_, {}, steps_, kRate, .9, .999, 0, 1e-8,
                       false, false);
    }
  }

 private:
  std::vector<Tensor> parameters_, means_, squares_, steps_;
  double decay_;
};

struct Workload {
  std::function<Tensor()> loss;
  std::vector<Tensor> parameters;
  double clip = 0, decay = 0.01;
};

Workload make_mlp(const std::vector<double>& n) {
  const auto batch = static_cast<std::int64_t>(n[0]);
  const bool classes = n[1] != 0;
  nn::Sequential net;
  for (std::size_t i = 3; i + 1 < n.size(); ++i) {
    net->push_back(
        nn::Linear(static_cast<std::int64_t>(n[i]), static_cast<std::int64_t>(n[i + 1])));
    if (i + 2 < n.size()) net->push_back(nn::ReLU());
  }
  const Tensor x = torch::rand({batch, static_cast<std::int64_t>(n[3])});
  const Tensor y = classes ? torch::randint(0, 10, {batch}, torch::kLong) : torch::rand({batch, 1});
  return {[=]() mutable {
            const Tensor out = net->forward(x);
            return classes ? F::cross_entropy(out, y) : F::mse_loss(out, y);
          },
          net->parameters(), n[2], classes ? 0.01 : 0};
}

Workload make_cnn(const std::vector<double>& n) {
  const auto batch = static_cast<std::int64_t>(n[0]), first = static_cast<std::int64_t>(n[1]),
             second = static_cast<std::int64_t>(n[2]), hidden = static_cast<std::int64_t>(n[3]);
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  nn::Sequential net(conv(1, first), nn::ReLU(), nn::MaxPool2d(2), conv(first, second), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(second * 49, hidden), nn::ReLU(),
                     nn::Linear(hidden, 10));
  const Tensor x = torch::rand({batch, 1, 28, 28});
  const Tensor y = torch::randint(0, 10, {batch}, torch::kLong);
  return {[=]() mutable { return F::cross_entropy(net->forward(x), y); }, net->parameters(), n[4]};
}

Workload make_decoder(const std::vector<double>& n) {
  const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(n[i]); };
  const std::int64_t vocabulary = whole(0), length = whole(4), batch = whole(5), answers = whole(7);
  auto net = std::make_shared<Decoder>(vocabulary, whole(1), whole(2), whole(3), length, n[6] != 0);
  const Tensor text = torch::randint(0, vocabulary, {batch, length}, torch::kLong);
  Tensor target = torch::randint(0, vocabulary, {batch, length}, torch::kLong);
  target.slice(1, 0, length - answers).fill_(kIgnored);
  return {[=] {
            return F::cross_entropy(net->forward(text).flatten(0, 1), target.flatten(),
                                    F::CrossEntropyFuncOptions().ignore_index(kIgnored));
          },
          net->parameters(), n[8]};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double median_microseconds(const std::function<void()>& step, double seconds) {
  const double warm = seconds_now();
  do step();
  while (seconds_now() - warm < 0.2 * seconds);
  std::vector<double> times;
  const double start = seconds_now();
  while (seconds_now() - start < seconds || times.size() < 5) {
    const double before = seconds_now();
    step();
    times.push_back((seconds_now() - before) * 1e6);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr, "usage: see the head of libtorch_steps.cpp; bench/run.py runs it\n");
    return 2;
  }
  const std::string name = argv[1], mode = argv[2], kind = argv[5];
  if (std::atoi(argv[3]) > 0) torch::set_num_threads(std::atoi(argv[3]));
  std::vector<double> numbers;
  for (int i = 6; i < argc; ++i) numbers.push_back(std::atof(argv[i]));
  const Workload workload = kind == "mlp"   ? make_mlp(numbers)
                            : kind == "cnn" ? make_cnn(numbers)
                                            : make_decoder(numbers);
  FusedAdam optimizer(workload.parameters, workload.decay);
  std::int64_t count = 0;
  for (const Tensor& each : workload.parameters) count += each.numel();
  const std::function<void()> step = [&] {
    for (const Tensor& each : workload.parameters) each.mutable_grad() = Tensor();
    Tensor loss = workload.loss();
    loss.backward();
    if (workload.clip > 0) nn::utils::clip_grad_norm_(workload.parameters, workload.clip);
    optimizer.step();
    (void)loss.item<float>();
  };
  const std::string who = std::string("LibTorch ") + TORCH_VERSION;
  const auto print = [&](const std::string& begin, const std::string& end) {
    std::printf(
        "{%s\"workload\": \"%s\", \"mode\": \"%s\", \"who\": \"%s\", \"device\": "
        "\"cpu, %d threads\", \"parameters\": %lld, %s}\n",
        begin.c_str(), name.c_str(), mode.c_str(), who.c_str(), torch::get_num_threads(),
        static_cast<long long>(count), end.c_str());
  };
  char text[128];
  if (mode == "probe") {
    step();
    const double done = seconds_now();
    for (int i = 0; i < 20; ++i) step();
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    std::snprintf(text, sizeof text, "\"first_step_done\": %.6f, \"peak_rss_bytes\": %lld", done,
                  static_cast<long long>(usage.ru_maxrss) * 1024);
    print("\"measure\": \"probe\", ", text);
    return 0;
  }
  std::snprintf(text, sizeof text, "\"us_per_step\": %.2f",
                median_microseconds(step, std::atof(argv[4])));
  print("", text);
  return 0;
}
