// SPDX-License-Identifier: MIT
// Tests of user errors: one file per error, named after it. The comment `// error: MESSAGE`, at the
// end of the offending line or on the lines above it, holds the message that must be thrown. The
// type must match exactly, and the location must be that line. If an error has no line in user
// code, as for file contents and run-time values, the comment is `// throws: MESSAGE`. In a
// message, `#` matches a number, a final `...` matches any text, and TMP stands for the folder of
// temporary().
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <typeinfo>
#include <vector>

#include "tensorgrad/tensorgrad.h"

#define MISTAKE(name, Expected)                                                              \
  static void mistake_##name();                                                              \
  TEST(Mistake, name) { expect_mistake(__FILE__, #name, typeid(Expected), mistake_##name); } \
  static void mistake_##name()

namespace tensorgrad::testing {

void expect_mistake(const std::string& file, const std::string& name,
                    const std::type_info& expected, void (*body)());

// Returns a path that no other test uses. It is removed when the process ends.
std::string temporary(const std::string& name);

struct Net {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

using In = const Inputs&;

inline Tensor plain_loss(const Net& net, In in) { return mse(net.fc(in["x"]), in["y"]); }

// Compiles a Net for the CPU with inputs x f32[4,3], y f32[4,2] and i i32[4].
template <class Loss>
Trainer<Net> compiled(Loss loss, CompileOptions options = {.optimizer = optim::SGD{}},
                      Loc loc = Loc::current()) {
  if (options.inputs.empty() && options.dataset.empty()) {
    options.inputs = {{"x", {4, 3}}, {"y", {4, 2}}, {"i", {4}, i32}};
  }
  if (options.device.kind == "auto") options.device.kind = "cpu";
  return compile(Net{}, loss, options, loc);
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
  Example();
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;
  ~Example();

  std::vector<float> x = std::vector<float>(12, 1), y = std::vector<float>(8, 1);
  std::vector<std::int32_t> i = {0, 1, 1, 0};
  std::map<std::string, FeedValue> feed = {{"x", x}, {"y", y}, {"i", i}};
  Trainer<Net> trainer = compiled(plain_loss);

 private:
  std::map<std::string, HostTensor> before_ = trainer.download_params();
};

}  // namespace tensorgrad::testing
