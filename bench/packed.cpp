// SPDX-License-Identifier: MIT
// Products with a quantized weight, compared with an f32 weight.
#include <tensorgrad/tensorgrad.h>

#include "workloads.h"

namespace tensorgrad::bench {
namespace {

constexpr std::int64_t kPackedSize = 4096;

struct PackedLayer {
  nn::Linear fc;
  TG_MODULE(fc)
};

void packed_product(const Options& options, const std::string& device, std::int64_t rows,
                    nn::WeightFormat format, const HostTensor& weight) {
  PackedLayer layer{nn::Linear(kPackedSize, kPackedSize, false)};
  layer.fc.quantize(format);
  auto forward = compile_function(
      layer, [](const PackedLayer& net, const Inputs& in) { return net.fc(in["x"]); },
      {.inputs = {{"x", {rows, kPackedSize}}},
       .device = {.kind = device,
                  .allow_software = options.allow_software,
                  .tuning_cache = options.tuning_cache}});
  std::map<std::string, HostTensor> values;
  if (layer.fc.quantized) {
    nn::QuantizedTensor packed = nn::quantize_weight(weight, format);
    values["fc.weight.data"] = std::move(packed.data);
    if (packed.scale) values["fc.weight.scale"] = std::move(*packed.scale);
  } else {
    values["fc.weight"] = weight;
  }
  forward.upload_params(values);
  const std::vector<float> x(static_cast<std::size_t>(rows * kPackedSize), 0.5F);
  const double us = median_microseconds(options.seconds / 4, 1, [&] { forward.run({{"x", x}}); });
  const double launches = forward.profile({{"x", x}}, {.steps = 9}).microseconds();
  Fields fields = {{"workload", text("packed")}};
  append(fields, described_device(forward.device()));
  append(fields, {{"rows", std::to_string(rows)},
                  {"weights", text(std::string(nn::to_string(format)))},
                  {"us", number(us)},
                  {"launch_us", number(launches)},
                  {"peak_bytes", std::to_string(forward.report().peak_bytes)}});
  print_line(fields);
}

}  // namespace

void packed(const Options& options, const std::string& device) {
  std::vector<float> values(static_cast<std::size_t>(kPackedSize * kPackedSize));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 7919 % 2001) / 1000 - 1;
  const HostTensor weight = HostTensor::from({kPackedSize, kPackedSize}, values);
  for (const std::int64_t rows : {1, 64}) {
    for (const char* format : {"f32", "f16", "bf16", "int8", "int8_per_tensor", "int4"})
      packed_product(options, device, rows, nn::parse_weight_format(format), weight);
  }
}

}  // namespace tensorgrad::bench
