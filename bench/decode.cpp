// SPDX-License-Identifier: MIT
// Tokens a second of a Mamba-1 that writes on, after prompts of several lengths.
#include <tensorgrad/tensorgrad.h>

#include "models.h"
#include "workloads.h"

namespace tensorgrad::bench {

void decode(const Options& options, const std::string& device) {
  const nn::MambaConfig config = device == "cpu" ? small_mamba() : mamba_130m();
  const auto next = [](const nn::MambaLM& net, const Inputs& in) {
    return net.resume_last(in["tokens"], in["keep"]);
  };
  for (const std::int64_t batch : {1, 64}) {
    const lm::DecoderOptions decoding = {.batch = batch};
    lm::Decoder decoder(compile_forward(nn::MambaLM(config), next,
                                        {.inputs = lm::Decoder::inputs(batch),
                                         .device = {.kind = device,
                                                    .threads = options.threads,
                                                    .allow_software = options.allow_software,
                                                    .tuning_cache = options.tuning_cache}}),
                        decoding);
    const std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch), 1);
    for (const std::size_t context : {16U, 1024U, 4096U}) {
      const std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(batch),
                                                           std::vector<std::int32_t>(context, 1));
      decoder.begin(prompts);
      const double us = median_microseconds(options.seconds / 2, 1, [&] { decoder.step(tokens); });
      if (options.profile && context == 16) {
        const std::vector<float> keep(tokens.size(), 1.0F);
        print_launches("decode-" + std::to_string(batch), "run",
                       decoder.forward().profile({{"tokens", tokens}, {"keep", keep}}, kProfiling));
      }
      Fields fields = {{"workload", text("decode")}, {"who", text("tensorgrad")}};
      append(fields, described_device(decoder.forward().device()));
      append(fields, {{"layers", std::to_string(config.n_layer)},
                      {"width", std::to_string(config.d_model)},
                      {"batch", std::to_string(batch)},
                      {"context", std::to_string(context)},
                      {"tokens_per_second", number(static_cast<double>(batch) * 1e6 / us)}});
      print_line(fields);
    }
  }
}

}  // namespace tensorgrad::bench
