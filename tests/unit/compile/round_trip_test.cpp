// SPDX-License-Identifier: MIT
// After each pass, real and random graphs can be written as text and parsed back.
#include <gtest/gtest.h>

#include "support/dump.h"
#include "support/models.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

TEST(RoundTrip, of_a_classifier_with_clipping_and_data_on_the_device) {
  const ScratchFolder dump("classifier");
  const ScopedEnv env("TENSORGRAD_DUMP", dump.path());
  auto trainer = compile(Mlp{}, mlp_loss,
                         {.dataset = {{"x", {100, 64}}, {"t", {100}, i32}},
                          .batch = 16,
                          .optimizer = optim::AdamW{.lr = 3e-3},
                          .clip_grad_norm = 0.5,
                          .device = {.kind = "null"}});
  trainer.attach(
      [](const Mlp& net, const Inputs& in) {
        const Tensor y = net.out(relu(net.hidden(in["x"])));
        return std::map<std::string, Tensor>{{"class scores", softmax(y)},
                                             {"\"best\" \\", argmax(y)}};
      },
      {.inputs = {{"x", {16, 64}}}});
  expect_round_trips(dump.path());
}

TEST(RoundTrip, of_a_language_model) {
  const ScratchFolder dump("language");
  const ScopedEnv env("TENSORGRAD_DUMP", dump.path());
  compile(LanguageModel{}, language_model_loss,
          {.inputs = language_model_inputs(),
           .optimizer = optim::SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true},
           .device = {.kind = "null"}});
  expect_round_trips(dump.path());
}

TEST(RoundTrip, of_random_graphs) {
  const ScratchFolder dump("random");
  for (std::uint64_t seed = 0; seed < (kSanitized ? 8 : 40); ++seed) {
    const Graph graph = random_graph(seed).graph;
    expect_round_trip(graph, "seed " + std::to_string(seed));
    const ScopedEnv env("TENSORGRAD_DUMP", dump.path());
    const Compiled compiled = compile_for_test(graph, 8);
    expect_round_trip(compiled.graph, "simplified, seed " + std::to_string(seed));
    expect_round_trip(compiled.fused, "fused, seed " + std::to_string(seed));
  }
  expect_round_trips(dump.path());
}

}  // namespace
}  // namespace tensorgrad::testing
