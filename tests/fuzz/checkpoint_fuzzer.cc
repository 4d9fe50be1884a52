// SPDX-License-Identifier: MIT
// libFuzzer: loads a checkpoint, which may fail with a UserError. The first byte selects whether
// the checksums are removed, so that the fuzzer reaches the data that they cover.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;

namespace {

struct FuzzedNet {
  tg::nn::Linear hidden{2, 16}, out{16, 1};
  TG_MODULE(hidden, out)
};

auto make_trainer() {
  return tg::compile(FuzzedNet{},
                     [](const FuzzedNet& net, const tg::Inputs& in) {
                       return mse(net.out(tanh(net.hidden(in["x"]))), in["y"]);
                     },
                     {.inputs = {{"x", {4, 2}}, {"y", {4, 1}}},
                      .optimizer = tg::optim::Adam{.lr = 0.05},
                      .device = {.kind = "cpu", .threads = 1}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto trainer = make_trainer();
  if (size == 0) return 0;
  try {
    std::vector<std::byte> file(std::as_bytes(std::span(data, size)).begin() + 1,
                                std::as_bytes(std::span(data, size)).end());
    if (data[0] == 'u') {
      tg::StoredFile stored = tg::read_safetensors({file, "fuzz"});
      stored.checksums = false;
      tg::write_safetensors(file, stored);
    }
    const auto before = trainer.save_bytes();
    try {
      trainer.load({file, "fuzz"});
    } catch (const tg::UserError&) {
      if (trainer.save_bytes() != before) std::abort();  // a failed load must change nothing
    }
  } catch (const tg::UserError&) {  // malformed input
  }
  return 0;
}
