// SPDX-License-Identifier: MIT
// SingleFlight: of many concurrent calls, the first and the last run; the others return nullopt.
#include "tensorgrad/train/single_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

// Blocks calls until it is opened.
struct Gate {
  std::promise<void> entered, opened;
  std::shared_future<void> open = opened.get_future().share();
};

TEST(SingleFlight, runs_the_newest_waiting_call) {
  Gate gate;
  std::vector<int> ran;
  SingleFlight<int(int)> flight([&](int x) {
    if (ran.empty()) gate.entered.set_value();
    ran.push_back(x);
    gate.open.wait();
    return 10 * x;
  });
  auto first = flight(1);
  gate.entered.get_future().wait();
  auto second = flight(2), third = flight(3), fourth = flight(4);
  EXPECT_EQ(second.get(), std::nullopt);  // while the first call still runs
  EXPECT_EQ(third.get(), std::nullopt);
  gate.opened.set_value();
  EXPECT_EQ(first.get(), 10);
  EXPECT_EQ(fourth.get(), 40);
  EXPECT_EQ(flight(5).get(), 50);
  EXPECT_EQ(ran, (std::vector<int>{1, 4, 5}));
}

// The original library drops a caller whose call fails while another waits.
TEST(SingleFlight, each_caller_gets_its_own_error) {
  Gate gate;
  SingleFlight<int(int)> flight([&](int x) -> int {
    if (x == 1) gate.entered.set_value();
    gate.open.wait();
    throw std::runtime_error("call " + std::to_string(x));
  });
  auto first = flight(1);
  gate.entered.get_future().wait();
  auto second = flight(2);
  gate.opened.set_value();
  for (auto* each : {&first, &second}) {
    try {
      static_cast<void>(each->get());
      ADD_FAILURE() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), each == &first ? "call 1" : "call 2");
    }
  }
}

TEST(SingleFlight, destruction_answers_waiting_calls) {
  Gate gate;
  std::future<std::optional<std::monostate>> first, second;
  std::atomic<int> ran = 0;
  {
    SingleFlight<void(int)> flight([&](int) {
      if (++ran == 1) gate.entered.set_value();
      gate.open.wait();
    });
    first = flight(1);
    gate.entered.get_future().wait();
    second = flight(2);
    gate.opened.set_value();
  }
  EXPECT_TRUE(first.get().has_value());
  EXPECT_EQ(second.get().has_value(), ran == 2);  // the second may have had its turn
}

TEST(SingleFlight, works_with_a_compiled_function) {
  CompiledFunction forward = compile_function(
      nn::Linear(2, 2),
      [](const nn::Linear& net, const Inputs& in) { return net(in["x"]) * 0.0 + in["x"] * 2.0; },
      {.inputs = {{"x", {2}}}, .device = {.kind = "cpu"}});
  SingleFlight<std::vector<float>(std::vector<float>)> flight(
      [&](const std::vector<float>& x) { return forward({{"x", x}}).floats(); });
  EXPECT_EQ(flight({1, 2}).get(), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace tensorgrad::testing
