// SPDX-License-Identifier: MIT
// What the tests of user errors make their mistakes with.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "errors/expect_error.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

// A function being traced, with its inputs x f32[4,3], y f32[4,2] and i i32[4].
class Traced : public ::testing::Test {
 private:
  GraphBuilder builder_;

 public:
  Tensor x = builder_.input({4, 3}), y = builder_.input({4, 2});
  Tensor i = builder_.input({4}, 0, 2, i32);
};

struct Net {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

using In = const Inputs&;

inline Tensor predict(const Net& net, In in) { return net.fc(in["x"]); }
inline Tensor plain_loss(const Net& net, In in) { return mse(net.fc(in["x"]), in["y"]); }

// Compiles a Net for training. Unless `options` says otherwise, with SGD, on the CPU, with the
// inputs x f32[4,3], y f32[4,2] and i i32[4].
template <class Loss>
Trainer<Net> compiled(Loss loss, CompileOptions options = {}, Loc loc = Loc::current()) {
  if (options.inputs.empty() && options.dataset.empty()) {
    options.inputs = {{"x", {4, 3}}, {"y", {4, 2}}, {"i", {4}, i32}};
  }
  if (!options.optimizer.present()) options.optimizer = optim::SGD{};
  if (options.device.kind == "auto") options.device.kind = "cpu";
  return compile(Net{}, loss, options, loc);
}

// Compiles any model for training with SGD, on the CPU, with the input x f32[4,3].
template <class Model, class Loss>
Trainer<Model> compiled_model(Model model, Loss loss, Loc loc = Loc::current()) {
  return compile(std::move(model), loss,
                 {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}},
                 loc);
}

// Compiles a function of a Net and an input x f32 for the CPU.
template <class Function>
CompiledFunction compiled_function(Function function, const Shape& x = {4, 3},
                                   Loc loc = Loc::current()) {
  return compile_function(Net{}, function, {.inputs = {{"x", x}}, .device = {.kind = "cpu"}}, loc);
}

// Two objectives over a Net: "w" trains its weight and "b" its bias.
inline std::vector<ObjectiveSpec<Net>> two_objectives() {
  const CompileOptions options = {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
                                  .optimizer = optim::SGD{}};
  return {{.name = "w", .loss = plain_loss, .params = "*.weight", .options = options},
          {.name = "b", .loss = plain_loss, .params = "*.bias", .options = options}};
}

// Compiles several objectives over a Net for the CPU.
inline MultiTrainer<Net> compiled(const std::vector<ObjectiveSpec<Net>>& objectives,
                                  std::int64_t memory_budget = 0, Loc loc = Loc::current()) {
  return compile(Net{}, objectives, {.device = {.kind = "cpu"}, .memory_budget = memory_budget},
                 loc);
}

// A trainer with valid values for its inputs. The destructor checks that the rejected call changed
// nothing.
struct Example {
  Example() = default;
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;
  ~Example() {
    EXPECT_EQ(trainer.steps(), 0);
    EXPECT_EQ(parameter_bytes(), before_);
  }

  std::vector<float> x = std::vector<float>(12, 1), y = std::vector<float>(8, 1);
  std::vector<std::int32_t> i = {0, 1, 1, 0};
  std::map<std::string, FeedValue> feed = {{"x", x}, {"y", y}, {"i", i}};
  Trainer<Net> trainer = compiled(plain_loss);

 private:
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> parameter_bytes() const {
    std::map<std::string, std::vector<std::byte>> bytes;
    for (const auto& [name, tensor] : trainer.download_params()) bytes[name] = tensor.bytes;
    return bytes;
  }

  std::map<std::string, std::vector<std::byte>> before_ = parameter_bytes();
};

// The samples of a DataLoader whose values do not matter.
inline NamedTensors no_fields(std::int64_t) { return {}; }

}  // namespace tensorgrad::testing
