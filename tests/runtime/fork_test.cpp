// SPDX-License-Identifier: MIT
// Trainers in a process forked from one that has trainers.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <functional>

#include <gtest/gtest.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad {
namespace {

struct Line {
  nn::Linear fc{2, 1};
  TG_MODULE(fc)
};

auto line_trainer(const std::string& device) {
  return compile(Line(),
                 [](const Line& m, const Inputs& in) { return mean(square(m.fc(in["x"]))); },
                 {.inputs = {{"x", {4, 2}}},
                  .optimizer = optim::SGD{.lr = 0.001},
                  .device = {.kind = device, .allow_software = true}});
}

const std::vector<float> kX = {1, 2, 3, 4, 5, 6, 7, 8};

// Returns what `action` returns in a child process; 98 if it throws, 99 if it does not end.
int in_child(const std::function<int()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    try {
      ::_exit(action());
    } catch (...) {  // must not reach the parent's test
      ::_exit(98);
    }
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

bool says_fork(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.message().find("before fork()") != std::string::npos;
  }
  return false;
}

TEST(Fork, webgpu_trainers_are_errors_in_the_child) {
  auto trainer = line_trainer("webgpu");
  const float loss = trainer.step({{"x", kX}}).loss;
  EXPECT_EQ(in_child([&] { return says_fork([&] { trainer.step({{"x", kX}}); }) ? 0 : 1; }), 0);
  EXPECT_EQ(in_child([&] { return says_fork([&] { (void)trainer.download_params(); }) ? 0 : 1; }),
            0);
  EXPECT_EQ(in_child([&] { return says_fork([&] { (void)trainer.save_bytes(); }) ? 0 : 1; }), 0);
  EXPECT_EQ(in_child([&] { return says_fork([&] { line_trainer("webgpu"); }) ? 0 : 1; }), 0);
  // Destroying an inherited trainer releases nothing, and the CPU device works.
  EXPECT_EQ(in_child([&] {
              {
                const auto gone = std::move(trainer);
              }
              auto cpu = line_trainer("cpu");
              return std::abs(cpu.step({{"x", kX}}).loss - loss) < 1e-3 * loss ? 0 : 1;
            }),
            0);
  EXPECT_LT(trainer.step({{"x", kX}}).loss, loss) << "the parent goes on";
}

TEST(Fork, cpu_trainers_work_in_the_child) {
  auto trainer = line_trainer("cpu");
  const float first = trainer.step({{"x", kX}}).loss;
  EXPECT_EQ(in_child([&] {
              const float second = trainer.step({{"x", kX}}).loss;
              auto other = line_trainer("cpu");
              return second < first && other.step({{"x", kX}}).loss == first ? 0 : 1;
            }),
            0);
  EXPECT_LT(trainer.step({{"x", kX}}).loss, first);
}

}  // namespace
}  // namespace tensorgrad
