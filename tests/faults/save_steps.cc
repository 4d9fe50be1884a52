// SPDX-License-Identifier: MIT
// save_steps FILE COUNT: trains for COUNT steps and saves after each; if FILE exists, resumes from
// it. For tests/faults/faults.py.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;

struct FaultNet {
  tg::nn::Linear hidden{2, 16}, out{16, 1};
  TG_MODULE(hidden, out)
};

int main(int argc, char** argv) {
  const std::string_view count = argc == 3 ? argv[2] : "";
  std::int64_t steps = 0;
  const auto [stop, error] = std::from_chars(count.data(), count.data() + count.size(), steps);
  if (error != std::errc() || stop != count.data() + count.size()) {
    std::fputs("usage: save_steps FILE COUNT\n", stderr);
    return 2;
  }
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
    while (trainer.steps() < steps) {
      trainer.step({{"x", x}, {"y", y}});
      trainer.save(argv[1]);
      std::printf("saved %lld\n", static_cast<long long>(trainer.steps()));
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "error: %s\n", thrown.what());
    return 1;
  }
}
