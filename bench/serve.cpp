// SPDX-License-Identifier: MIT
// Clients of a server that call replicas of one function concurrently, with one row each.
#include <tensorgrad/tensorgrad.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "workloads.h"

namespace tensorgrad::bench {
namespace {

constexpr std::int64_t kPixels = 784;

struct ServedClassifier {
  nn::Linear hidden{kPixels, 256}, narrow{256, 128}, out{128, 10};
  TG_MODULE(hidden, narrow, out)
  Tensor operator()(const Tensor& x) const { return out(relu(narrow(relu(hidden(x))))); }
};

// Returns the calls per second of all clients together.
double calls_per_second(const CompiledFunction& function, int clients, double seconds) {
  std::vector<CompiledFunction> replicas;
  for (int i = 0; i < clients; ++i) replicas.push_back(function.replica());
  const std::vector<float> x(kPixels, 0.5F);
  for (CompiledFunction& each : replicas) each.run({{"x", x}});
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> calls = 0;
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (CompiledFunction& each : replicas) {
    threads.emplace_back([&] {
      std::int64_t own = 0;
      while (!stop) {
        each.run({{"x", x}});
        ++own;
      }
      calls += own;
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& each : threads) each.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return static_cast<double>(calls) / took.count();
}

}  // namespace

void serve(const Options& options, const std::string& device) {
  const CompiledFunction function = compile_function(
      ServedClassifier{},
      [](const ServedClassifier& net, const Inputs& in) { return net(in["x"]); },
      {.inputs = {{"x", {1, kPixels}}},
       .device = {
           .kind = device, .threads = options.threads, .allow_software = options.allow_software}});
  for (const int clients : {1, 2, 4, 8}) {
    Fields fields = {{"workload", text("serve")}};
    append(fields, described_device(function.device()));
    append(fields,
           {{"clients", std::to_string(clients)},
            {"calls_per_second", number(calls_per_second(function, clients, options.seconds))}});
    print_line(fields);
  }
}

}  // namespace tensorgrad::bench
