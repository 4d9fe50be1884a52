// SPDX-License-Identifier: MIT
// Tokens a second of models of each kind of Mamba that write on, after prompts of several lengths.
#include <tensorgrad/tensorgrad.h>

#include <utility>

#include "models.h"
#include "workloads.h"

namespace tensorgrad::bench {
namespace {

void decode_by(const std::string& mixer, const nn::LanguageModelConfig& config,
               const Options& options, const std::string& device) {
  const auto next = [](const nn::LanguageModel& net, const Inputs& in) {
    return net.resume_last(in["tokens"], in["keep"]);
  };
  for (const std::int64_t batch : {1, 64}) {
    const lm::DecoderOptions decoding = {.batch = batch};
    lm::Decoder decoder(compile_function(nn::LanguageModel(config), next,
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
      decoder.prefill(prompts);
      const double us = median_microseconds(options.seconds / 2, 1, [&] { decoder.step(tokens); });
      if (options.profile && context == 16) {
        const std::vector<float> keep(tokens.size(), 1.0F);
        print_launches("decode-" + mixer + "-" + std::to_string(batch), "run",
                       decoder.forward().profile({{"tokens", tokens}, {"keep", keep}}, kProfiling));
      }
      Fields fields = {{"workload", text("decode")}, {"who", text("tensorgrad")}};
      append(fields, described_device(decoder.forward().device()));
      append(fields, {{"mixer", text(mixer)},
                      {"layers", std::to_string(config.n_layer)},
                      {"width", std::to_string(config.d_model)},
                      {"batch", std::to_string(batch)},
                      {"context", std::to_string(context)},
                      {"tokens_per_second", number(static_cast<double>(batch) * 1e6 / us)}});
      print_line(fields);
    }
  }
}

}  // namespace

void decode(const Options& options, const std::string& device) {
  using Kind = nn::MixerKind;
  for (const auto& [mixer, kind] :
       {std::pair("mamba1", Kind::kMamba1), std::pair("mamba2", Kind::kMamba2),
        std::pair("mamba3", Kind::kMamba3)}) {
    nn::LanguageModelConfig config = device == "cpu" ? small_mamba() : mamba_130m();
    config.layers.assign(static_cast<std::size_t>(config.n_layer), kind);
    decode_by(mixer, config, options, device);
  }
}

}  // namespace tensorgrad::bench
