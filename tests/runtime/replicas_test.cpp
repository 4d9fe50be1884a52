// SPDX-License-Identifier: MIT
// Functions that share the same weights and run concurrently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

struct TwoLayers {
  nn::Linear first{16, 64}, second{64, 8};
  Buffer scale = Buffer::from(HostTensor::from({8}, Floats(8, 0.5F)));
  TG_MODULE(first, second, scale)
  Tensor operator()(const Tensor& x) const {
    return softmax(second(tanh(first(x)))) * scale.tensor();
  }
};

CompiledFunction two_layers(const char* device, int threads = 2) {
  return compile_function(TwoLayers{},
                          [](const TwoLayers& net, const Inputs& in) { return net(in["x"]); },
                          {.inputs = {{"x", {kDynamic, 16}}},
                           .device = {.kind = device, .threads = threads, .allow_software = true}});
}

void expect_same_results(const char* device, int calls) {
  constexpr std::size_t kClients = 8;
  auto function = two_layers(device);
  std::vector<Feed> inputs;
  std::vector<Floats> expected;
  for (std::size_t k = 0; k < kClients; ++k) {
    inputs.push_back(
        {{"x", numbers(16 * (1 + static_cast<std::int64_t>(k) % 3), static_cast<unsigned>(k))}});
    expected.push_back(function(inputs.back()).floats());
  }
  std::vector<CompiledFunction> replicas;
  for (std::size_t k = 0; k < kClients; ++k) replicas.push_back(function.replica());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (std::size_t k = 0; k < kClients; ++k) {
    clients.emplace_back([&, k] {
      for (int i = 0; i < calls; ++i) wrong += replicas[k](inputs[k]).floats() != expected[k];
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}
TEST(Replicas, compute_the_same_at_the_same_time_on_cpu) { expect_same_results("cpu", 200); }
TEST(Replicas, compute_the_same_at_the_same_time_on_webgpu) { expect_same_results("webgpu", 3); }

TEST(Replicas, share_their_weights) {
  auto function = two_layers("cpu");
  auto replica = function.replica();
  const Feed x = {{"x", Floats(16, 1)}};
  auto params = function.download_params();
  params.at("second.weight") = HostTensor::from({8, 64}, Floats(512, 0));
  params.at("second.bias") = HostTensor::from({8}, Floats(8, 0));
  params.emplace("scale", HostTensor::from({8}, Floats(8, 8)));
  replica.upload_params(params);
  EXPECT_THAT(function(x).floats(), Each(1.0F));
  function = replica.replica();  // destroys the first one
  EXPECT_THAT(function(x).floats(), Each(1.0F));
  EXPECT_EQ(bits_of(function.download_params()), bits_of(replica.download_params()));
}

// Each upload sets all weights to one number. A run that saw part of an upload would mix two
// numbers.
TEST(Replicas, never_see_partial_uploads) {
  struct Weights {
    Parameter a{{4096}}, b{{4096}};
    TG_MODULE(a, b)
  };
  auto function = compile_function(
      Weights{}, [](const Weights& net, const Inputs&) { return sum(abs(net.a - net.b)); },
      {.device = {.kind = "cpu", .threads = 1}});
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int k = 0; k < 2; ++k) {
    readers.emplace_back([&, replica = function.replica()]() mutable {
      while (!done) wrong += replica().floats()[0] != 0;
    });
  }
  for (int i = 0; i < 100; ++i) {
    const HostTensor all = HostTensor::from({4096}, Floats(4096, static_cast<float>(i)));
    function.upload_params({{"a", all}, {"b", all}});
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Replicas, of_attached_or_stateful_functions_are_rejected) {
  const auto refused = [](const CompiledFunction& function) {
    try {
      static_cast<void>(function.replica());
      return std::string("nothing was thrown");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  auto trainer = compile(
      TwoLayers{}, [](const TwoLayers& net, const Inputs& in) { return mean(net(in["x"])); },
      {.inputs = {{"x", {1, 16}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  const auto attached =
      trainer.attach([](const TwoLayers& net, const Inputs& in) { return net(in["x"]); },
                     {.inputs = {{"x", {1, 16}}}});
  EXPECT_THAT(refused(attached), HasSubstr("replica: the function is attached to a trainer"));
  const auto counter = compile_function(
      [](const Inputs&) {
        const Tensor count = state("count", {});
        set_state("count", count + 1.0);
        return count;
      },
      {.device = {.kind = "cpu"}});
  EXPECT_THAT(refused(counter), HasSubstr("replica: the function sets a state"));
}

}  // namespace
}  // namespace tensorgrad::testing
