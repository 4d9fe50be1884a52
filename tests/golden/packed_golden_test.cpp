// SPDX-License-Identifier: MIT
// Compares scans and convolutions of packed documents with loops over the steps of each document in
// double precision (make_packed_fixtures.py): results and gradients of all operands.
#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

struct NoPackedModel {
  TG_MODULE()
};
using PackedTensors = std::map<std::string, Tensor>;

Tensor packed_convolution(const PackedTensors& in, Tensor documents) {
  return causal_conv1d(in.at("x"), in.at("weight"), in.at("bias"), std::nullopt, documents).y;
}

template <Discretization discretization>
Tensor packed_selective(const PackedTensors& in, Tensor documents) {
  return selective_scan(in.at("u"), in.at("delta"), in.at("rates"), in.at("b"), in.at("c"),
                        {.D = in.at("skip"),
                         .z = in.at("z"),
                         .delta_bias = in.at("bias"),
                         .delta_softplus = true,
                         .discretization = discretization,
                         .documents = documents})
      .y;
}

Tensor packed_ssd(const PackedTensors& in, Tensor documents) {
  return ssd(in.at("x"), in.at("dt"), in.at("rates"), in.at("b"), in.at("c"),
             {.chunk = 8, .D = in.at("skip"), .documents = documents})
      .y;
}

Tensor packed_rotary(const PackedTensors& in, Tensor documents) {
  return rotary_scan(in.at("x"), in.at("dt"), in.at("rates"), in.at("lam"), in.at("theta"),
                     in.at("b"), in.at("c"), {.chunk = 8, .documents = documents})
      .y;
}

void check_packed(const std::string& name, Tensor (*function)(const PackedTensors&, Tensor),
                  const std::string& device) {
  const Fixture fixture("packed_functions.safetensors");
  const std::string prefix = name + "/in/", weight = name + "/weight/y";
  std::vector<InputSpec> specs = {{"documents", fixture.shape("documents"), i32}};
  const std::vector<std::int32_t> documents = fixture.values<std::int32_t>("documents");
  std::map<std::string, std::vector<float>> given;
  FeedView feed;
  feed.add("documents", documents);
  for (const std::string& full : fixture.names()) {
    if (!full.starts_with(prefix) && full != weight) continue;
    specs.push_back({full, fixture.shape(full)});
    given[full] = fixture.values<float>(full);
    feed.add(full, given[full]);
  }
  auto forward =
      compile_function(NoPackedModel{},
                       [&](const NoPackedModel&, const Inputs& in) {
                         PackedTensors operands;
                         std::vector<std::string> names;
                         std::vector<Tensor> of;
                         for (const InputSpec& spec : specs) {
                           if (!spec.name.starts_with(prefix)) continue;
                           names.push_back(spec.name.substr(prefix.size()));
                           of.push_back(in[spec.name]);
                           operands.emplace(names.back(), of.back());
                         }
                         const Tensor y = function(operands, in["documents"]);
                         const std::vector<Tensor> grads = grad(sum(y * in[weight]), of);
                         PackedTensors out = {{"out/y", y}};
                         for (std::size_t i = 0; i < of.size(); ++i)
                           out.emplace("gradient/" + names[i], grads[i]);
                         return out;
                       },
                       {.inputs = specs, .device = {.kind = device, .allow_software = true}});
  for (const auto& [output, got] : forward.run(feed)) {
    const std::string full = name + "/" + output;
    ASSERT_EQ(got.shape, fixture.shape(full)) << full;
    expect_close(got.floats(), fixture.values<float>(full), 1e-5, full);
  }
}

TEST(PackedGolden, ConvolutionsAreThoseOfEachDocumentOnCpu) {
  check_packed("conv", packed_convolution, "cpu");
}
TEST(PackedGolden, ConvolutionsAreThoseOfEachDocumentOnWebGpu) {
  check_packed("conv", packed_convolution, "webgpu");
}
TEST(PackedGolden, SelectiveScansAreThoseOfEachDocumentOnCpu) {
  check_packed("selective", packed_selective<Discretization::kEuler>, "cpu");
  check_packed("selective_hold", packed_selective<Discretization::kZeroOrderHold>, "cpu");
}
TEST(PackedGolden, SelectiveScansAreThoseOfEachDocumentOnWebGpu) {
  check_packed("selective", packed_selective<Discretization::kEuler>, "webgpu");
  check_packed("selective_hold", packed_selective<Discretization::kZeroOrderHold>, "webgpu");
}
TEST(PackedGolden, DualitiesAreThoseOfEachDocumentOnCpu) { check_packed("ssd", packed_ssd, "cpu"); }
TEST(PackedGolden, DualitiesAreThoseOfEachDocumentOnWebGpu) {
  check_packed("ssd", packed_ssd, "webgpu");
}
TEST(PackedGolden, RotaryScansAreThoseOfEachDocumentOnCpu) {
  check_packed("rotary", packed_rotary, "cpu");
}
TEST(PackedGolden, RotaryScansAreThoseOfEachDocumentOnWebGpu) {
  check_packed("rotary", packed_rotary, "webgpu");
}

}  // namespace
}  // namespace tensorgrad::testing
