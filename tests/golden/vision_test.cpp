// SPDX-License-Identifier: MIT
// Compares convolutions, pooling and resizing with PyTorch (make_fixtures.py): results, and the
// gradients of a weighted sum of them.
#include <cstring>

#include "support/graph_builder.h"
#include "support/source_path.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

struct VisionCase {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>&)> apply;
};

std::vector<VisionCase> cases() {
  return {
      {"conv2d", [](T t) { return conv2d(t[0], t[1], t[2]); }},
      {"conv2d_all",
       [](T t) {
         return conv2d(t[0], t[1], t[2],
                       {.stride = {2, 1}, .padding = {2, 1}, .dilation = {1, 3}, .groups = 2});
       }},
      {"conv2d_depthwise",
       [](T t) { return conv2d(t[0], t[1], t[2], {.stride = 2, .padding = 1, .groups = 4}); }},
      {"conv1d",
       [](T t) {
         return conv1d(t[0], t[1], t[2], {.stride = 2, .padding = 2, .dilation = 2, .groups = 2});
       }},
      {"conv_transpose2d", [](T t) { return conv_transpose2d(t[0], t[1], t[2]); }},
      {"conv_transpose2d_all",
       [](T t) {
         return conv_transpose2d(t[0], t[1], t[2],
                                 {.stride = {3, 2},
                                  .padding = {1, 0},
                                  .output_padding = {2, 1},
                                  .groups = 2,
                                  .dilation = {1, 2}});
       }},
      {"conv_transpose1d",
       [](T t) { return conv_transpose1d(t[0], t[1], t[2], {.stride = 2, .padding = 1}); }},
      {"max_pool2d", [](T t) { return max_pool2d(t[0], 2); }},
      {"max_pool2d_overlapping_ties",
       [](T t) { return max_pool2d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"max_pool2d_dilated_ties",
       [](T t) { return max_pool2d(t[0], {2, 3}, {.stride = 1, .dilation = {3, 2}}); }},
      {"max_pool2d_large_ties", [](T t) { return max_pool2d(t[0], {6, 5}, {.stride = 1}); }},
      {"max_pool1d_ties", [](T t) { return max_pool1d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"avg_pool2d",
       [](T t) { return avg_pool2d(t[0], {3, 2}, {.stride = {2, 1}, .padding = 1}); }},
      {"avg_pool2d_inside",
       [](T t) {
         return avg_pool2d(t[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false});
       }},
      {"avg_pool1d", [](T t) { return avg_pool1d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"adaptive_avg_pool2d", [](T t) { return adaptive_avg_pool2d(t[0], {3, 5}); }},
      {"adaptive_avg_pool2d_to_more", [](T t) { return adaptive_avg_pool2d(t[0], {5, 3}); }},
      {"adaptive_max_pool2d_ties", [](T t) { return adaptive_max_pool2d(t[0], {4, 3}); }},
      {"nearest", [](T t) { return interpolate(t[0], {14, 24}); }},
      {"nearest_fraction", [](T t) { return interpolate(t[0], {10, 5}); }},
      {"bilinear", [](T t) { return interpolate(t[0], {10, 5}, Interpolation::kBilinear); }},
      {"bilinear_corners",
       [](T t) { return interpolate(t[0], {3, 11}, Interpolation::kBilinear, true); }},
  };
}

struct Stored {
  Shape shape;
  Values values;
};

Stored stored(const StoredFile& file, const std::string& name) {
  const auto& tensor = file.tensors.at(name);
  std::vector<float> floats(tensor.data.size() / sizeof(float));
  std::memcpy(floats.data(), tensor.data.data(), tensor.data.size());
  return {tensor.shape, {floats.begin(), floats.end()}};
}

// Runs all cases in one program.
void check(Where where) {
  const StoredFile file = read_safetensors(test::source_path("tests/golden/vision.safetensors"));
  GraphBuilder builder;
  ValueMap want;
  const auto expect = [&](const std::string& name, const Tensor& value) {
    const Stored expected = stored(file, name);
    ASSERT_EQ(value.shape(), expected.shape) << name;
    builder.output(name, value);
    want[name] = expected.values;
  };
  for (const VisionCase& each : cases()) {
    const std::string name = std::string(each.name) + "/";
    std::vector<Tensor> operands;
    while (file.tensors.contains(name + std::to_string(operands.size()))) {
      const Stored given = stored(file, name + std::to_string(operands.size()));
      operands.push_back(builder.input(given.shape, f32, given.values));
    }
    const Tensor y = each.apply(operands);
    const Stored weights = stored(file, name + "weights");
    const Tensor loss = sum(y * builder.input(weights.shape, f32, weights.values));
    const std::vector<Tensor> gradients = grad(loss, operands);
    expect(name + "y", y);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      expect(name + "d" + std::to_string(i), gradients[i]);
    }
  }
  expect_close(builder.graph(), run_graph(builder.graph(), builder.leaves, where), want, 2e-5,
               to_string(where));
}

TEST(GoldenVision, ops_and_gradients_are_pytorchs_on_cpu) { check(Where::kCpu); }
TEST(GoldenVision, ops_and_gradients_are_pytorchs_on_webgpu) { check(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
