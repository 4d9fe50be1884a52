// SPDX-License-Identifier: MIT
// Ends in the way that the first argument names, on the device that the second one names. A static
// destructor, atexit() and threads use a trainer until the end. The exit code is 0 if all of it
// worked.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;

namespace {

struct Net {
  tg::nn::Linear in{4, 64}, out{64, 1};
  TG_MODULE(in, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(relu(in(x))); }
};

tg::DeviceOptions device(const std::string& kind) { return {.kind = kind, .allow_software = true}; }

tg::Trainer<Net> make(const std::string& kind) {
  return tg::compile(
      Net{}, [](const Net& net, const tg::Inputs& in) { return mse(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {16, 4}}, {"y", {16, 1}}},
       .optimizer = tg::optim::SGD{.lr = 1e-2},
       .device = device(kind)});
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(2);
}

// Steps twice; the loss must not rise.
void steps(tg::Trainer<Net>& trainer) {
  const std::vector<float> x(64, 0.5F), y(16, 1);
  try {
    const float first = trainer.step({{"x", x}, {"y", y}}).loss;
    const float second = trainer.step({{"x", x}, {"y", y}}).loss;
    if (!(second <= first + 1e-6F)) fail("the loss rises");
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

// Destroyed after the statics of functions of the library, which are created later.
struct Late {
  std::optional<tg::Trainer<Net>> trainer;

  Late() = default;
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;
  ~Late() {
    if (trainer) steps(*trainer);
  }
} late;

thread_local std::optional<tg::Trainer<Net>> of_thread;

// Never destroyed.
tg::Trainer<Net>& leaked(const std::string& kind) {
  static auto* const trainer = new tg::Trainer<Net>(make(kind));
  return *trainer;
}

void in_a_static_destructor(const std::string& kind) { late.trainer.emplace(make(kind)); }

void in_destructors_of_threads(const std::string& kind) {
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      of_thread.emplace(make(kind));
      steps(*of_thread);
    }).join();
  }
}

std::string kind_at_exit;
void in_atexit(const std::string& kind) {
  kind_at_exit = kind;
  steps(leaked(kind));
  std::atexit([] { steps(leaked(kind_at_exit)); });
}

void in_a_loss(const std::string& kind) {
  static tg::Trainer<Net> other = make(kind);
  tg::compile_function(Net{}, [](const Net&, const tg::Inputs&) -> tg::Tensor { std::exit(0); },
                       {.inputs = {{"x", {2, 4}}}, .device = device(kind)});
  fail("the loss was not called");
}

void while_a_thread_steps(const std::string& kind) {
  static std::atomic<int> count = 0;
  leaked(kind);
  std::thread([kind] {
    for (;; ++count) steps(leaked(kind));
  }).detach();
  while (count < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::exit(0);
}

void by_quick_exit(const std::string& kind) {
  steps(leaked(kind));
  std::quick_exit(0);
}

void while_a_loader_reads(const std::string& /*kind*/) {
  static tg::DataLoader loader(1000,
                               [](std::int64_t) -> tg::NamedTensors {
                                 std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                 return {{"x", tg::HostTensor::from({1}, std::vector<float>{1})}};
                               },
                               {.batch = 4, .workers = 4});
  loader.next();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(const std::string&)>> ways = {
      {"in_a_static_destructor", in_a_static_destructor},
      {"in_destructors_of_threads", in_destructors_of_threads},
      {"in_atexit", in_atexit},
      {"in_a_loss", in_a_loss},
      {"while_a_thread_steps", while_a_thread_steps},
      {"by_quick_exit", by_quick_exit},
      {"while_a_loader_reads", while_a_loader_reads}};
  if (argc != 3 || !ways.contains(argv[1])) fail("expected a way and a device");
  ways.at(argv[1])(argv[2]);
  return 0;
}
