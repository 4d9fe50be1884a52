// SPDX-License-Identifier: MIT
// A device with f16 that does not round to nearest. It stores f16 values as rounded f32 and returns
// the results of the CPU.
#include "compile/debug/graph_run.h"
#include "compile/runtime/element_codec.h"
#include "ops/registry.h"
#include "support/graph_builder.h"
#include "webgpu_test_util.h"
#include "wrapped_vendor.h"

namespace tensorgrad::testing {
namespace {

// Simulates a library whose f16() rounds ties away from zero: changes the values of the rounding
// test, so that they are not ties.
class RoundsHalvesAway final : public WrappedVendor {
 public:
  using WrappedVendor::WrappedVendor;

  WGPUShaderModule create_module(const Api& api, WGPUDevice device,
                                 const WGPUShaderModuleDescriptor& descriptor,
                                 bool checked) const override {
    auto source = *reinterpret_cast<const WGPUShaderSourceWGSL*>(descriptor.nextInChain);
    std::string text = webgpu::string_of(source.code);
    const std::string half = "| 0x1000u";
    const std::size_t at = text.find(half);
    if (webgpu::string_of(descriptor.label) == "rounding" && at != std::string::npos) {
      text.replace(at, half.size(), "| 0x1001u");
      ++changed;
    }
    source.code = webgpu::view(text);
    WGPUShaderModuleDescriptor other = descriptor;
    other.nextInChain = &source.chain;
    return WrappedVendor::create_module(api, device, other, checked);
  }

  mutable int changed = 0;
};

// Ties between two f16 numbers, and other values.
Values numbers() {
  Values values = {1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x1.8p-10, 2049, 65519, 65520, 0x1p-25};
  Draw draw(3);
  for (int i = 0; i < 505; ++i) values.push_back(static_cast<float>(draw.real(-4, 4)));
  return values;
}

TEST(WebGpuRounding, of_another_kind_keeps_f16_as_rounded_f32_on_webgpu) {
  TENSORGRAD_DEVICE_OR_RETURN(honest);
  if (!honest->info().stores_f16) GTEST_SKIP() << "the device has no f16";

  static Api api = real_api();  // the device keeps a reference
  const auto vendor = std::make_shared<RoundsHalvesAway>(api.vendor);
  api.vendor = vendor;
  const std::shared_ptr<webgpu::WebGpuDevice> device = device_through(api);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(vendor->changed, 1);
  EXPECT_FALSE(device->info().stores_f16);

  GraphBuilder s;
  const Values given = numbers();
  const Tensor x = s.input({16, static_cast<std::int64_t>(given.size()) / 16}, f32, given);
  const Tensor h = s.leaf(ops::input, "h", {16, 32}, f16, s.draw.values(f16, 512, -4, 4));
  s.output("rounded", cast(x, f16));
  s.output("turned", transpose(cast(x, f16)) * 1.0);
  s.output("joined", concat({h, cast(x, f16)}, 1));
  s.output("largest", max(h * cast(x, f16), {1}));
  LeafWords leaves;
  for (const auto& [name, values] : s.leaves) {
    std::vector<std::uint32_t>& words = leaves.by_name[name];
    const DType dtype = name == "h" ? f16 : name.starts_with("in") ? f32 : u32;
    for (const double value : values) words.push_back(encode_element(value, dtype));
  }
  const auto wanted = run_on_device(s.graph(), leaves, device_at(Where::kCpu));
  EXPECT_EQ(run_on_device(s.graph(), leaves, device), wanted);
}

}  // namespace
}  // namespace tensorgrad::testing
