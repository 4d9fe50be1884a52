// SPDX-License-Identifier: MIT
// Quantized weights: rounding, products and rows on both backends, and memory without an f32 copy.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include "counts/large_gpu.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::WeightFormat;

constexpr WeightFormat kFormats[] = {WeightFormat::kF16, WeightFormat::kBf16, WeightFormat::kInt8,
                                     WeightFormat::kInt8PerTensor, WeightFormat::kInt4};

HostTensor random_matrix(std::int64_t out, std::int64_t in, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(out * in));
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Rows have different scales.
    values[i] = normal(random) * (1 + static_cast<float>(i / static_cast<std::size_t>(in) % 5));
  }
  return HostTensor::from({out, in}, values);
}

std::vector<float> rounded(const HostTensor& weight, WeightFormat format) {
  return nn::dequantize_weight(nn::quantize_weight(weight, format), format).floats();
}

double largest(const std::vector<float>& values, std::size_t begin, std::size_t count) {
  double most = 0;
  for (std::size_t i = begin; i < begin + count; ++i)
    most = std::max<double>(most, std::abs(values[i]));
  return most;
}

TEST(QuantizedWeight, rounding_error_is_within_the_format) {
  const HostTensor weight = random_matrix(10, 64, 1);
  const std::vector<float> values = weight.floats();
  for (const WeightFormat format : kFormats) {
    const std::vector<float> got = rounded(weight, format);
    ASSERT_EQ(got.size(), values.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      double bound = 0;
      switch (format) {
        case WeightFormat::kF16: bound = std::abs(values[i]) * 0x1p-11; break;
        case WeightFormat::kBf16: bound = std::abs(values[i]) * 0x1p-8; break;
        case WeightFormat::kInt8: bound = largest(values, i / 64 * 64, 64) / 127 / 2; break;
        case WeightFormat::kInt8PerTensor:
          bound = largest(values, 0, values.size()) / 127 / 2;
          break;
        default: bound = largest(values, i / 32 * 32, 32) / 7 / 2;
      }
      ASSERT_NEAR(got[i], values[i], bound * (1 + 1e-5)) << nn::to_string(format) << ' ' << i;
    }
    // Names are parsed, and zeros are exact.
    EXPECT_EQ(nn::to_string(nn::parse_weight_format(nn::to_string(format))), nn::to_string(format));
    EXPECT_THAT(rounded(HostTensor::from({1, 64}, std::vector<float>(64)), format),
                ::testing::Each(0.0F));
  }
  EXPECT_THROW((void)nn::parse_weight_format("int3"), UserError);
}

TEST(QuantizedWeight, halves_are_rounded_to_even) {
  const std::vector<float> given = {1 + 0x1p-11F, 1 + 0x3p-11F, -3e-5F,   0x1p-25F,
                                    0x1.8p-25F,   65519,        0x1p-14F, 0x1.ffep-15F};
  EXPECT_THAT(rounded(HostTensor::from({1, 8}, given), WeightFormat::kF16),
              ::testing::ElementsAre(1, 1 + 0x2p-10F, -503 * 0x1p-24F, 0, 0x1p-24F, 65504, 0x1p-14F,
                                     0x1p-14F));
  EXPECT_THAT(
      rounded(HostTensor::from({1, 4}, std::vector<float>{1 + 0x1p-8F, 1 + 0x3p-8F, -3, 1e-39F}),
              WeightFormat::kBf16),
      ::testing::ElementsAre(1, 1 + 0x4p-8F, -3, ::testing::FloatNear(1e-39F, 1e-40F)));
}

TEST(QuantizedWeight, values_outside_the_format_are_rejected) {
  const auto one = [](float value) {
    std::vector<float> values(32);
    values[7] = value;
    return HostTensor::from({1, 32}, values);
  };
  for (const WeightFormat format : kFormats) {
    EXPECT_THROW((void)nn::quantize_weight(one(NAN), format), UserError);
    EXPECT_THROW((void)nn::quantize_weight(one(INFINITY), format), UserError);
  }
  EXPECT_THROW((void)nn::quantize_weight(one(65520), WeightFormat::kF16), UserError);
  EXPECT_THROW((void)nn::quantize_weight(one(3.4e38F), WeightFormat::kBf16), UserError);
  EXPECT_THROW((void)nn::quantize_weight(random_matrix(2, 48, 1), WeightFormat::kInt4), UserError);
  EXPECT_THROW((void)nn::quantize_weight(random_matrix(2, 6, 1), WeightFormat::kInt8), UserError);
  EXPECT_THROW((void)nn::quantize_weight(random_matrix(2, 32, 1), WeightFormat::kF32), UserError);
  nn::Linear odd(6, 2);
  odd.quantize(WeightFormat::kInt8);
  EXPECT_FALSE(odd.quantized.has_value());
}

struct PackedNet {
  nn::Linear fc;
  nn::Embedding table;
  TG_MODULE(fc, table)
};

PackedNet packed_net(std::int64_t out, std::int64_t in, WeightFormat format) {
  PackedNet net{nn::Linear(in, out), nn::Embedding(out, in)};
  net.fc.quantize(format);
  net.table.quantize(format);
  return net;
}

std::map<std::string, HostTensor> values_of(const PackedNet& net, const HostTensor& weight,
                                            const HostTensor& bias) {
  std::map<std::string, HostTensor> values = {{"fc.bias", bias}};
  for (const std::string name : {"fc.weight", "table.weight"}) {
    if (!net.fc.quantized) {
      values[name] = weight;
      continue;
    }
    const nn::QuantizedTensor packed = nn::quantize_weight(weight, net.fc.quantized->format);
    values[name + ".data"] = packed.data;
    if (packed.scale) values[name + ".scale"] = *packed.scale;
  }
  return values;
}

DeviceOptions any_of_kind(const std::string& kind) {
  return {.kind = kind, .allow_software = true};
}

CompiledFunction packed_forward(const PackedNet& net, std::int64_t rows,
                                const DeviceOptions& device) {
  const std::int64_t in = net.fc.weight.shape()[1];
  return compile_function(net,
                          [](const PackedNet& of, const Inputs& inputs) {
                            return std::map<std::string, Tensor>{
                                {"y", of.fc(inputs["x"])},
                                {"head", of.table.times(inputs["x"])},
                                {"rows", of.table(inputs["at"])}};
                          },
                          {.inputs = {{"x", {rows, in}}, {"at", {rows}, i32}}, .device = device});
}

// Compares with an f32 layer of the dequantized weights.
void check_products(std::int64_t rows, std::int64_t out, std::int64_t in,
                    const std::string& device) {
  const HostTensor weight = random_matrix(out, in, 3), x = random_matrix(rows, in, 4);
  const HostTensor bias = HostTensor::from({out}, random_matrix(1, out, 5).floats());
  std::vector<std::int32_t> at(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < at.size(); ++i)
    at[i] = static_cast<std::int32_t>((i * 7 + 3) % static_cast<std::size_t>(out));
  for (const WeightFormat format : kFormats) {
    if (format == WeightFormat::kInt4 && in % 32 != 0) continue;  // not a multiple of a group
    const PackedNet net = packed_net(out, in, format);
    ASSERT_TRUE(net.fc.quantized.has_value());
    const PackedNet plain{nn::Linear(in, out), nn::Embedding(out, in)};
    CompiledFunction packed = packed_forward(net, rows, any_of_kind(device));
    CompiledFunction whole = packed_forward(plain, rows, any_of_kind("cpu"));
    packed.upload_params(values_of(net, weight, bias));
    whole.upload_params(
        values_of(plain, nn::dequantize_weight(nn::quantize_weight(weight, format), format), bias));
    const NamedTensors want = whole.run({{"x", x}, {"at", at}});
    for (const auto& [name, got] : packed.run({{"x", x}, {"at", at}})) {
      const std::vector<float> a = got.floats(), b = want.at(name).floats();
      const double scale = largest(b, 0, b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 2e-6 * scale)
            << name << ' ' << i << " of " << nn::to_string(format) << " on " << device;
      }
    }
  }
}

TEST(QuantizedWeight, products_use_the_rounded_weights_on_cpu) {
  check_products(1, 96, 64, "cpu");
  check_products(1, 70, 352, "cpu");
  check_products(1, 70, 100, "cpu");
  check_products(7, 40, 96, "cpu");
  check_products(130, 100, 160, "cpu");
}
TEST(QuantizedWeight, products_use_the_rounded_weights_on_webgpu) {
  check_products(1, 96, 64, "webgpu");
  check_products(40, 40, 96, "webgpu");
}

// The planned memory has room for the packed weights, but not for a matrix in f32.
void takes_as_much_as_its_bits(const DeviceOptions& device) {
  constexpr std::int64_t kOut = 256, kIn = 512, kBytes = kOut * kIn * 4;
  const auto peak = [&](WeightFormat format, std::int64_t rows) {
    const PackedNet net = packed_net(kOut, kIn, format);
    return packed_forward(net, rows, device).report().peak_bytes;
  };
  // If there are many rows, products are split differently. This changes the memory by far less
  // than the size of a matrix.
  for (const auto& [rows, slack] : {std::pair(1, 2048), std::pair(3, 2048), std::pair(64, 65536)}) {
    const std::int64_t others = peak(WeightFormat::kF32, rows) - 2 * kBytes + slack;
    EXPECT_LT(others, rows == 64 ? kBytes : 100'000) << rows;
    EXPECT_LE(peak(WeightFormat::kF16, rows), kBytes + others) << rows;
    EXPECT_LE(peak(WeightFormat::kBf16, rows), kBytes + others) << rows;
    EXPECT_LE(peak(WeightFormat::kInt8, rows), kBytes / 2 + 2 * kOut * 4 + others) << rows;
    EXPECT_LE(peak(WeightFormat::kInt8PerTensor, rows), kBytes / 2 + others) << rows;
    EXPECT_LE(peak(WeightFormat::kInt4, rows), kBytes / 4 + kBytes / 16 + others) << rows;
  }
}

TEST(QuantizedWeight, takes_as_much_memory_as_its_bits) {
  takes_as_much_as_its_bits(any_of_kind("cpu"));
}
// Tests the plan without compiling kernels.
TEST(QuantizedWeight, takes_as_much_memory_as_its_bits_within_the_least_limits_of_webgpu) {
  takes_as_much_as_its_bits(any_of_kind("null"));
}
TEST(QuantizedWeight, takes_as_much_memory_as_its_bits_of_a_large_webgpu_device) {
  takes_as_much_as_its_bits(large_gpu());
}
// A device gets the same plan as a null device if their limits are equal.
TEST(QuantizedWeight, takes_as_much_memory_as_is_planned_on_webgpu) {
  const PackedNet net = packed_net(96, 64, WeightFormat::kInt8);
  const CompiledFunction on_device = packed_forward(net, 1, any_of_kind("webgpu"));
  DeviceOptions planned;
  planned.opened = make_null_device(on_device.same_device().opened->info().limits);
  EXPECT_EQ(on_device.report().peak_bytes, packed_forward(net, 1, planned).report().peak_bytes);
}

}  // namespace
}  // namespace tensorgrad::testing
