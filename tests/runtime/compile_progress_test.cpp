// SPDX-License-Identifier: MIT
// Progress and cancellation of compile(), and the output of explain().
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct ProgressNet {
  nn::Linear layer{4, 4};
  TG_MODULE(layer)
};

Tensor progress_loss(const ProgressNet& net, const Inputs& in) {
  return mean(square(net.layer(in["x"])));
}

CompileOptions watched(CompileWatcher watcher) {
  return {.inputs = {{"x", {2, 4}}},
          .optimizer = optim::Adam{},
          .device = {.kind = "cpu", .threads = 1},
          .progress = std::move(watcher)};
}

Tensor long_chain(const Inputs& in, int steps) {
  Tensor x = in["x"];
  for (int i = 0; i < steps; ++i) x = i % 2 == 0 ? sin(x) : x * 1.01;
  return x;
}

FunctionOptions watched_function(CompileWatcher watcher) {
  return {.inputs = {{"x", {2, 4}}},
          .device = {.kind = "cpu", .threads = 1},
          .progress = std::move(watcher)};
}

TEST(CompileProgress, reports_every_pass_in_order) {
  std::vector<CompileProgress> seen;
  auto trainer = compile(ProgressNet{}, progress_loss, watched([&](const CompileProgress& now) {
                           seen.push_back(now);
                           return true;
                         }));
  std::set<std::string> names;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    names.insert(seen[i].pass);
    if (i == 0) continue;
    EXPECT_GE(seen[i].milliseconds, seen[i - 1].milliseconds);
    EXPECT_GT(seen[i].visits, seen[i - 1].visits);
  }
  for (const auto& [pass, milliseconds] : trainer.report().passes)
    EXPECT_THAT(names, Contains(pass));
  EXPECT_LT(trainer.step({{"x", std::vector<float>(8, 1)}}).loss, 1e3);
}

TEST(CompileProgress, is_reported_within_long_passes) {
  std::map<std::string, int> calls;
  compile_function([](const Inputs& in) { return long_chain(in, 10000); },
                   watched_function([&](const CompileProgress& now) {
                     ++calls[now.pass];
                     return true;
                   }));
  EXPECT_GT(calls["fuse"], 3);
}

TEST(CompileProgress, false_stops_a_compile_in_any_pass) {
  std::vector<std::string> names;
  compile(ProgressNet{}, progress_loss, watched([&](const CompileProgress& now) {
            names.push_back(now.pass);
            return true;
          }));
  for (const std::string& name : names) {
    try {
      compile(ProgressNet{}, progress_loss,
              watched([&](const CompileProgress& now) { return now.pass != name; }));
      FAIL() << "compiled: " << name;
    } catch (const AbortedError& error) {
      EXPECT_EQ(error.message(), "compile: stopped by the option progress");
      EXPECT_THAT(error.what(), HasSubstr("in the pass " + name));
    }
  }
}

TEST(CompileProgress, false_stops_a_long_pass_half_way) {
  int calls = 0;
  EXPECT_THROW(compile_function([](const Inputs& in) { return long_chain(in, 10000); },
                                watched_function([&](const CompileProgress& now) {
                                  return now.pass != "fuse" || ++calls < 3;
                                })),
               AbortedError);
  EXPECT_EQ(calls, 3);
}

TEST(Explain, lists_passes_with_time_work_and_remaining_nodes) {
  auto trainer = compile(ProgressNet{}, progress_loss, watched({}));
  const std::string text = trainer.explain();
  const std::size_t at = text.find("\ncompile   ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(text.substr(at), ::testing::ContainsRegex("    fuse  [0-9.e-]+ ms, [0-9]+ visits, "
                                                        "[0-9]+ nodes\n"));
  EXPECT_THAT(text.substr(at),
              ::testing::ContainsRegex("    plan  [0-9.e-]+ ms, [0-9]+ visits, " +
                                       std::to_string(trainer.report().launches) + " launches\n"));
  EXPECT_THAT(text, Not(HasSubstr("bounds on the size of kernels")));
}

TEST(Explain, names_ops_cut_by_kernel_limits) {
  const auto rolls = compile_function(
      [](const Inputs& in) {
        Tensor x = in["x"];
        for (int i = 0; i < 12; ++i) x = roll(x, {1}, {1});
        return x;
      },
      watched_function({}));
  EXPECT_THAT(rolls.explain(), HasSubstr("\nbounds on the size of kernels\n    roll: "));
  EXPECT_THAT(rolls.explain(),
              HasSubstr("as its readers may repeat at most 32 operations\n    at "));
  const auto chain =
      compile_function([](const Inputs& in) { return long_chain(in, 3000); }, watched_function({}));
  EXPECT_THAT(chain.explain(), HasSubstr("as a launch computes at most 1024 nodes\n    at "));
}

}  // namespace
}  // namespace tensorgrad::testing
