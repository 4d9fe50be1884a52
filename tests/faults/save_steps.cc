// SPDX-License-Identifier: MIT
// save_steps FILE COUNT: trains for COUNT steps and saves after each; if FILE exists, resumes from
// it. For tests/faults/faults.py.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;

struct FaultNet {
  tg::nn::Linear hidden{2, 16}, out{16, 1};
  TG_MODULE(hidden, out)
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const auto loss = [](const FaultNet& net, const tg::Inputs& in) {
      return mse(net.out(tanh(net.hidden(in["x"]))), in["y"]);
    };
    auto trainer = tg::compile(FaultNet{}, loss,
                               {.inputs = {{"x", {4, 2}}, {"y", {4, 1}}},
                                .optimizer = tg::optim::Adam{.lr = 0.05},
                                .device = {.kind = "cpu", .threads = 1}});
    const std::vector<float> x = {0, 0, 0, 1, 1, 0, 1, 1}, y = {0, 1, 1, 0};
    if (std::filesystem::exists(argv[1])) trainer.load(argv[1]);
    std::printf("loaded %lld\n", static_cast<long long>(trainer.steps()));
    while (trainer.steps() < std::atoll(argv[2])) {
      trainer.step({{"x", x}, {"y", y}});
      trainer.save(argv[1]);
      std::printf("saved %lld\n", static_cast<long long>(trainer.steps()));
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
