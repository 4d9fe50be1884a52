// SPDX-License-Identifier: MIT
// Text generation with quantized weights, and the latency of small classifiers. Models are written
// to files first, which llama.cpp and onnxruntime read too (bench/peers/).
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include <tensorgrad/tensorgrad.h>

#include "models.h"
#include "workloads.h"

namespace tensorgrad::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kVocabulary = 50257, kWidth = 768, kBlocks = 12, kHeads = 12,
                       kPositions = 1024;
constexpr std::size_t kPromptTokens = 512, kNewTokens = 64;
constexpr std::int64_t kTokensPerRead = 16;
// llama.cpp's default rules, without its penalty.
const lm::SamplingOptions kRules = {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};
constexpr const char* kFormats[] = {"f16", "int8", "int4"};
constexpr std::int64_t kRows[] = {1, 8, 64};

double cpu_microseconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

DeviceOptions device_options(const Options& options, const std::string& device = "cpu") {
  return {.kind = device,
          .threads = options.threads,
          .allow_software = options.allow_software,
          .tuning_cache = options.tuning_cache};
}

std::string path_in(const Options& options, const std::string& name) {
  return (std::filesystem::path(options.models) / name).string();
}

// ---- generation ------------------------------------------------------------------------------

// Returns GPT-2 with 124 million random parameters, of the sizes that GPT-2 begins training with.
lm::SavedModel random_gpt2() {
  lm::SavedModel model;
  model.config = nn::gpt2_config(kVocabulary, kWidth, kBlocks, kHeads, kPositions);
  std::mt19937 random(1);
  const auto drawn = [&](const Shape& shape, float from, float to) {
    std::uniform_real_distribution<float> draw(from, to);
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = draw(random);
    return HostTensor::from(shape, values);
  };
  ParameterVisitor visitor([&](const std::string& name, const Parameter& parameter) {
    const bool of_norm = parameter.shape().size() == 1 && !name.ends_with("bias");
    model.weights[name] =
        of_norm ? drawn(parameter.shape(), 0.9F, 1.1F) : drawn(parameter.shape(), -0.035F, 0.035F);
  });
  nn::LanguageModel(model.config).visit_fields(visitor);
  return model;
}

// Returns the tokens of the prompt, followed by those that are appended to it.
std::vector<std::int32_t> text_tokens() {
  std::mt19937 random(2);
  std::vector<std::int32_t> tokens(kPromptTokens + kNewTokens);
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>(random() % static_cast<unsigned>(kVocabulary));
  return tokens;
}

// Appends tokens one by one to the prompt, as generation does, in all texts of the decoder. Passes
// the microseconds of the prompts and of each step to `prompt_took` and `token_took`. Returns the
// logits after the last token.
template <class Prompt, class Token>
std::vector<float> generate(lm::Decoder& decoder, const std::vector<std::int32_t>& tokens,
                            const Prompt& prompt_took, const Token& token_took) {
  const auto batch = static_cast<std::size_t>(decoder.batch());
  const std::vector<std::vector<std::int32_t>> prompts(
      batch, {tokens.begin(), tokens.begin() + kPromptTokens});
  Clock::time_point start = Clock::now();
  decoder.prefill(prompts);
  prompt_took(microseconds_since(start));
  std::span<const float> logits;
  for (std::size_t i = kPromptTokens; i < tokens.size(); ++i) {
    start = Clock::now();
    logits = decoder.step(std::vector(batch, tokens[i]));
    token_took(microseconds_since(start));
  }
  return {logits.begin(), logits.end()};
}

// Samples tokens after the prompt on the device, kTokensPerRead at once. Returns the microseconds
// per token.
double sampled_token_microseconds(lm::Decoder& decoder, const std::vector<std::int32_t>& tokens,
                                  const lm::SamplingOptions& rules) {
  const auto batch = static_cast<std::size_t>(decoder.batch());
  const std::vector<std::vector<std::int32_t>> prompts(
      batch, {tokens.begin(), tokens.begin() + kPromptTokens});
  std::vector<lm::Sampler> samplers;
  for (std::size_t row = 0; row < batch; ++row) samplers.emplace_back(rules, row);
  decoder.prefill_and_sample(prompts, samplers);
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < kNewTokens; i += kTokensPerRead)
    decoder.sample(kTokensPerRead, samplers);
  return microseconds_since(start) / kNewTokens;
}

void write_generation(const Options& options) {
  const lm::SavedModel model = random_gpt2();
  const std::vector<std::int32_t> tokens = text_tokens();
  const auto ignored = [](double) {};
  for (const char* const format : kFormats) {
    const lm::SavedModel quantized = lm::quantize(model, nn::parse_weight_format(format));
    const std::string name = std::string("gpt2-") + format;
    lm::save_model(path_in(options, name + ".safetensors"), quantized);
    lm::save_gguf(path_in(options, name + ".gguf"), quantized);
    lm::Decoder decoder(quantized, {.device = device_options(options)});
    const std::vector<float> logits = generate(decoder, tokens, ignored, ignored);
    write_npz(
        path_in(options, name + ".npz"),
        {{"tokens", HostTensor::from({static_cast<std::int64_t>(tokens.size())}, tokens)},
         {"prompt", HostTensor::from({1}, std::vector{static_cast<std::int32_t>(kPromptTokens)})},
         {"logits", HostTensor::from({kVocabulary}, logits)}});
  }
}

void generation_with(const Options& options, const std::string& device, const std::string& format,
                     std::int64_t batch) {
  const lm::SavedModel model = lm::load_model(path_in(options, "gpt2-" + format + ".safetensors"));
  lm::Decoder decoder(model, {.batch = batch, .device = device_options(options, device)});
  const std::vector<std::int32_t> tokens = text_tokens();
  std::vector<double> prompts, steps, prompt_cpu, step_cpu;
  generate(decoder, tokens, [](double) {}, [](double) {});  // compiles
  std::vector<double> greedy, sampled;
  const Clock::time_point start = Clock::now();
  do {
    if (device != "cpu") {
      greedy.push_back(sampled_token_microseconds(decoder, tokens, {.temperature = 0}));
      sampled.push_back(sampled_token_microseconds(decoder, tokens, kRules));
    }
    const double before = cpu_microseconds();
    double after_prompt = before;
    generate(
        decoder, tokens,
        [&](double us) {
          prompts.push_back(us);
          after_prompt = cpu_microseconds();
        },
        [&](double us) { steps.push_back(us); });
    prompt_cpu.push_back(after_prompt - before);
    step_cpu.push_back((cpu_microseconds() - after_prompt) / kNewTokens);
  } while (microseconds_since(start) < options.seconds * 1e6);
  Fields fields = {{"measure", text("generation")},
                   {"workload", text("gpt2-124m")},
                   {"who", text("tensorgrad")}};
  append(fields, described_device(decoder.forward().device()));
  append(fields, {{"weights", text(format)},
                  {"batch", std::to_string(batch)},
                  {"prompt_tokens", std::to_string(kPromptTokens)},
                  {"new_tokens", std::to_string(kNewTokens)},
                  {"prompt_us", number(median_of(prompts))},
                  {"prompt_cpu_us", number(median_of(prompt_cpu))},
                  {"token_us", number(median_of(steps))},
                  {"token_cpu_us", number(median_of(step_cpu))}});
  if (device != "cpu") {
    append(fields, {{"greedy_token_us", number(median_of(greedy))},
                    {"sampled_token_us", number(median_of(sampled))}});
  }
  print_line(fields);
  if (!options.profile) return;
  print_launches("gpt2-" + format, "token", decoder.profile(1, kProfiling));
  print_launches("gpt2-" + format, "prompt", decoder.profile(256, kProfiling));
}

// ---- latency ---------------------------------------------------------------------------------

Shape input_shape(const std::string& name, std::int64_t rows) {
  return name == "call"  ? Shape{rows, 1}
         : name == "mlp" ? Shape{rows, 784}
                         : Shape{rows, 1, 28, 28};
}

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

// Returns a classifier or, for "call", a function of one addition.
CompiledFunction latency_function(const Options& options, const std::string& name,
                                  std::int64_t rows) {
  const FunctionOptions made = {.inputs = {{"x", input_shape(name, rows)}},
                                .device = device_options(options)};
  if (name == "call") {
    return compile_function(
        nn::Sequential(), [](const nn::Sequential&, const Inputs& in) { return in["x"] + 1.0; },
        made);
  }
  return compile_function(
      name == "cnn" ? mnist_cnn() : mlp(),
      [](const nn::Sequential& net, const Inputs& in) { return net(in["x"]); }, made);
}

// Calls `f` for each function with inputs for it.
template <class F>
void each_latency_function(const Options& options, const F& f) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> draw(0, 1);
  for (const std::string name : {"call", "mlp", "cnn"}) {
    for (const std::int64_t rows : kRows) {
      if (name == "call" && rows != 1) continue;
      std::vector<float> x(static_cast<std::size_t>(rows * (name == "call" ? 1 : 784)));
      for (float& value : x) value = draw(random);
      CompiledFunction function = latency_function(options, name, rows);
      f(name, rows, function, x);
    }
  }
}

void write_classifiers(const Options& options) {
  each_latency_function(options, [&](const std::string& name, std::int64_t rows,
                                     CompiledFunction& function, const std::vector<float>& x) {
    const std::string file = name + "-" + std::to_string(rows);
    function.export_onnx(path_in(options, file + ".onnx"));
    write_npz(path_in(options, file + ".npz"),
              {{"x", HostTensor::from(input_shape(name, rows), x)}, {"y", function({{"x", x}})}});
  });
}

}  // namespace

void latency(const Options& options) {
  each_latency_function(options, [&](const std::string& name, std::int64_t rows,
                                     CompiledFunction& function, const std::vector<float>& x) {
    double calls = 0;
    double cpu = 0;
    const double us = median_microseconds(options.seconds / 4, 1, [&] {
      if (calls == 0) cpu = cpu_microseconds();
      function.run({{"x", x}});
      ++calls;
    });
    Fields fields = {
        {"measure", text("latency")}, {"workload", text(name)}, {"who", text("tensorgrad")}};
    append(fields, described_device(function.device()));
    append(fields, {{"rows", std::to_string(rows)},
                    {"us", number(us)},
                    {"cpu_us", number((cpu_microseconds() - cpu) / calls)}});
    print_line(fields);
    if (options.profile)
      print_launches(name + "-" + std::to_string(rows), "run",
                     function.profile({{"x", x}}, kProfiling));
  });
}

void generation(const Options& options, const std::string& device) {
  for (const char* const format : kFormats) {
    const std::vector<std::string>& wanted = options.weights;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), format) == wanted.end())
      continue;
    generation_with(options, device, format, 1);
    if (device != "cpu") generation_with(options, device, format, 64);
  }
}

void write_models(const Options& options) {
  std::filesystem::create_directories(options.models);
  write_classifiers(options);
  write_generation(options);
}

}  // namespace tensorgrad::bench
