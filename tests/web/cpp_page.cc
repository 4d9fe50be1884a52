// SPDX-License-Identifier: MIT
// A page for cpp_page_test.mjs: calls of a page while other calls are suspended. Prints a line for
// each event.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <emscripten.h>
#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

namespace {

constexpr int kEndless = 1'000'000;

struct Net {
  tg::nn::Linear out{2, 1};
  TG_MODULE(out)
};

std::optional<tg::Trainer<Net>> trainer;

tg::Future<void> go_on() {
  try {
    co_await trainer->run_async(-1);
  } catch (const tg::UserError& error) {
    std::printf("error: %s\n", error.what());
  }
  // The page ends both by calling stop() and leave() while they are suspended.
  for (const char* how : {"stopped", "left"}) {
    tg::Future<std::vector<float>> run = trainer->run_async(kEndless);
    std::printf("endless\n");
    try {
      co_await run;
    } catch (const tg::AbortedError&) {
      std::printf("%s\n", how);
    }
  }
  std::printf("end\n");
}

}  // namespace

// Functions that the page calls.
extern "C" {
EMSCRIPTEN_KEEPALIVE void stop() {
  tg::Future<int> behind = trainer->async([] { return 1; });
  try {
    behind.get();
  } catch (const tg::UserError& error) {
    std::printf("wait: %s\n", error.what());
  }
  trainer->abort();
}
EMSCRIPTEN_KEEPALIVE void leave() { trainer.reset(); }
}

int main(int, char** argv) {
  trainer = tg::compile(
      Net{}, [](const Net& net, const tg::Inputs& in) { return mse(net.out(in["x"]), in["y"]); },
      {.dataset = {{"x", {4, 2}}, {"y", {4, 1}}},
       .batch = 2,
       .optimizer = tg::optim::SGD{.lr = 0.01},
       .device = {.kind = argv[1], .allow_software = true}});
  trainer->upload_data("x", std::vector<float>{0, 0, 0, 1, 1, 0, 1, 1});
  trainer->upload_data("y", std::vector<float>{0, 1, 1, 2});
  tg::Future<std::vector<float>> queued = trainer->run_async(5);
  for (int i = 0; i < 3; ++i) trainer->run(1);  // main() is suspended, and the queued call waits
  std::printf("main: %d steps\n", static_cast<int>(trainer->steps()));
  std::printf("queued: %d losses\n", static_cast<int>(queued.get().size()));
  go_on();
  std::printf("main ends\n");
}
