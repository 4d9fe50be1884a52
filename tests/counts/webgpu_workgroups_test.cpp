// SPDX-License-Identifier: MIT
// Runs clipping and AdamW of an embedding. With one thread per element, it needs more workgroups
// than a dispatch has in one dimension.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backend/webgpu/device.h"
#include "many_words.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

// Runs one thread per element. All elements have the gradient 1, which is clipped.
TEST(Workgroups, of_clipping_and_adamw_change_each_of_many_words_once_on_webgpu) {
  const std::shared_ptr<Device> device = device_at(Where::kWebGpu);
  auto& gpu = dynamic_cast<webgpu::WebGpuDevice&>(*device);
  WgslOptions by_element;
  by_element.map_width = 1;
  by_element.matmul_tile = MatmulTile::kNone;
  by_element.scatter_variant = ScatterVariant::kLanes;
  gpu.force_kernels(by_element);
  auto trainer = trainer_of_many(device, [](const ManyWords& net, const Inputs& in) {
    return sum(square(net.words.weight.tensor())) + 0 * mean(cast(in["tokens"], f32));
  });
  gpu.force_kernels({});
  trainer.step({{"tokens", std::vector<std::int32_t>(128)}});
  const std::vector<float> got = trainer.download_params().at("words.weight").floats();
  ASSERT_EQ(got.size(), static_cast<std::size_t>(kElements));
  // Weight decay of 0.01 lr, and the first step of AdamW with a gradient of norm 1.
  const double gradient = 1 / std::sqrt(static_cast<double>(kElements));
  const double want = 0.5 * (1 - 0.1 * 0.01) - 0.1 * gradient / (gradient + kEpsilon);
  EXPECT_NEAR(got[0], want, 1e-5);
  const auto other =
      std::find_if(got.begin(), got.end(), [&](float value) { return value != got[0]; });
  EXPECT_EQ(other - got.begin(), kElements) << "the first that is another";
}

}  // namespace
}  // namespace tensorgrad::testing
