// SPDX-License-Identifier: MIT
// A trainer allocates exactly as many bytes on its device as its report predicts: after compiling,
// during its steps, and with attached functions.
#include <gtest/gtest.h>

#include "metered_device.h"
#include "small_workloads.h"
#if defined(TENSORGRAD_IDLE_WEBGPU)
#include "idle_device.h"
#endif

namespace tensorgrad::testing {
namespace {

using bench::Feeding;

void expect_as_reported(const std::string& model, Feeding feeding,
                        const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<MeteredDevice>(plain);
  {
    bench::Workload workload = small_workload(model, feeding, device);
    const std::int64_t promised = workload.trainer.report().peak_bytes;
    EXPECT_EQ(device->most_held, promised) << model << ", compiled";
    EXPECT_NE(workload.trainer.explain().find("peak      " + std::to_string(promised) + " bytes"),
              std::string::npos);
    for (int i = 0; i < 10; ++i) {
      if (feeding == Feeding::kHost) workload.trainer.step(workload.feed());
      if (feeding == Feeding::kDevice) workload.trainer.run(5);
    }
    EXPECT_FALSE(workload.trainer.download_params().empty());
    EXPECT_EQ(device->most_held, promised) << model << ", after its steps";
    EXPECT_EQ(device->bytes_held, promised) << model;
  }
  EXPECT_EQ(device->bytes_held, 0) << model << ": the trainer is gone";
}

void expect_all_as_reported(const std::shared_ptr<Device>& device) {
  for (const std::string& model : kSmallModels) {
    for (const Feeding feeding : {Feeding::kHost, Feeding::kDevice})
      expect_as_reported(model, feeding, device);
  }
}

struct TwoHeads {
  nn::Linear trunk{3, 16}, a{16, 2}, b{16, 50};
  TG_MODULE(trunk, a, b)
};
const std::vector<float> kRows(24, 0.5F);

// Returns the bytes of all buffers except parameters and states, which are shared.
std::int64_t own_bytes(const std::vector<BufferDecl>& buffers) {
  std::int64_t bytes = 0;
  for (const BufferDecl& each : buffers) {
    const bool shared = each.kind == BufferKind::kParams || each.kind == BufferKind::kState;
    bytes += shared ? 0 : each.bytes;
  }
  return bytes;
}

void expect_attached_as_reported(const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<MeteredDevice>(plain);
  auto trainer = compile(
      TwoHeads{},
      [](const TwoHeads& net, const Inputs& in) {
        return mean(square(net.a(tanh(net.trunk(in["x"])))));
      },
      {.inputs = {{"x", {8, 3}}}, .optimizer = optim::AdamW{.lr = 1e-3}, .device = on(device)});
  const std::int64_t alone = trainer.report().peak_bytes;
  const Feed feed = {{"x", kRows}};
  trainer.step(feed);
  EXPECT_EQ(device->most_held, alone);
  CompiledFunction forward = trainer.attach(
      [](const TwoHeads& net, const Inputs& in) { return net.b(tanh(net.trunk(in["x"]))); },
      {.inputs = {{"x", {8, 3}}}});
  const std::int64_t shared = forward.report().peak_bytes - own_bytes(device->prepared);
  EXPECT_GT(shared, 0);
  const std::int64_t both = alone + forward.report().peak_bytes - shared;
  for (int i = 0; i < 5; ++i) {
    forward.run(feed);
    trainer.step(feed);
  }
  EXPECT_EQ(device->most_held, both);
  EXPECT_EQ(device->bytes_held, both);
}

void expect_objectives_as_reported(const std::shared_ptr<Device>& plain) {
  const auto device = std::make_shared<MeteredDevice>(plain);
  const auto loss_of = [](nn::Linear TwoHeads::* head) {
    return [head](const TwoHeads& net, const Inputs& in) {
      return mean(square((net.*head)(tanh(net.trunk(in["x"])))));
    };
  };
  const CompileOptions options = {.inputs = {{"x", {8, 3}}}, .optimizer = optim::AdamW{.lr = 1e-3}};
  const std::vector<ObjectiveSpec<TwoHeads>> objectives = {
      {.name = "one", .loss = loss_of(&TwoHeads::a), .options = options},
      {.name = "two", .loss = loss_of(&TwoHeads::b), .options = options}};
  auto trainer = compile(TwoHeads{}, objectives, {.device = on(device)});
  const std::int64_t together = trainer.report().peak_bytes;
  for (int i = 0; i < 3; ++i) {
    for (const char* name : {"one", "two"}) trainer[name].step({{"x", kRows}});
  }
  EXPECT_EQ(device->most_held, together);
  EXPECT_LT(together, trainer["one"].report().peak_bytes + trainer["two"].report().peak_bytes);
}

TEST(Peak, matches_allocations_of_the_cpu_device) {
  expect_all_as_reported(make_cpu_device({.threads = 2}));
}
TEST(Peak, of_attached_functions_adds_all_but_parameters_on_cpu) {
  expect_attached_as_reported(make_cpu_device({.threads = 2}));
}
TEST(Peak, of_objectives_covers_all_of_them_on_cpu) {
  expect_objectives_as_reported(make_cpu_device({.threads = 2}));
}

#if defined(TENSORGRAD_IDLE_WEBGPU)
TEST(Peak, matches_allocations_of_the_webgpu_device) { expect_all_as_reported(idle_device()); }
TEST(Peak, of_attached_functions_adds_all_but_parameters_on_webgpu) {
  expect_attached_as_reported(idle_device());
}
TEST(Peak, of_objectives_covers_all_of_them_on_webgpu) {
  expect_objectives_as_reported(idle_device());
}

// The device asks the driver for no more than that, except for its own buffers: the rows of
// scalars, and the staging buffers of downloads.
TEST(Peak, matches_driver_allocations_of_webgpu) {
  IdleWebGpu& asked = idle_webgpu();
  const std::shared_ptr<Device> device = idle_device();
  for (const std::string& model : kSmallModels) {
    ASSERT_EQ(asked.storage_bytes, 0);
    asked.most_storage_bytes = 0;
    bench::Workload workload = small_workload(model, Feeding::kHost, device);
    for (int i = 0; i < 5; ++i) workload.trainer.step(workload.feed());
    EXPECT_EQ(asked.most_storage_bytes, workload.trainer.report().peak_bytes) << model;
  }
}

TEST(Peak, of_webgpus_own_buffers_is_small) {
  IdleWebGpu& asked = idle_webgpu();
  const std::shared_ptr<Device> device = idle_device();
  bench::Workload workload = small_workload("addition", Feeding::kHost, device);
  for (int i = 0; i < 50; ++i) workload.trainer.step(workload.feed());
  constexpr std::int64_t kRing = 1024 * 256;
  EXPECT_EQ(asked.other_bytes, kRing + 256) << "a staging buffer for the loss";
}
#endif

}  // namespace
}  // namespace tensorgrad::testing
