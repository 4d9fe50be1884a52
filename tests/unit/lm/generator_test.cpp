// SPDX-License-Identifier: MIT
// Decoders and generators. Each step returns the logits of the model for the whole text. Texts do
// not depend on the other texts of a batch. Possible stop strings and partial characters are held
// back.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "lm/stop_text.h"
#include "support/message_of.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::Completion;
using lm::Decoder;
using lm::GenerateOptions;
using lm::Generator;
using lm::SavedModel;
using nn::MixerKind;

constexpr std::int64_t kSymbols = 256;
using Tokens = std::vector<std::int32_t>;

// Returns a model with weights far from the initial ones, so that each token affects later ones.
SavedModel wild_model(const nn::LanguageModelConfig& config) {
  CompiledFunction forward = compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 5});
  SavedModel model{config, forward.download_params(), Tokenizer::bytes()};
  std::mt19937 random(2);
  for (auto& [name, tensor] : model.weights) {
    std::vector<float> values = tensor.floats();
    for (float& v : values) v += 0.3F * (static_cast<float>(random() % 2001) / 1000.0F - 1);
    tensor = HostTensor::from(tensor.shape, values);
  }
  return model;
}

SavedModel wild_model(std::vector<MixerKind> layers, std::int64_t max_length = 40) {
  return wild_model(small_mamba(kSymbols, std::move(layers), max_length));
}

SavedModel hybrid(std::int64_t max_length = 40) {
  return wild_model({MixerKind::kMamba1, MixerKind::kMlp, MixerKind::kMamba2, MixerKind::kAttention,
                     MixerKind::kMamba3},
                    max_length);
}

Tokens some_text(std::size_t length, unsigned seed) {
  std::mt19937 random(seed);
  Tokens tokens(length);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % kSymbols);
  return tokens;
}

// Computes the logits after the last token of a text in one pass over the text.
class Whole {
 public:
  explicit Whole(const SavedModel& model, std::size_t length)
      : length_(length),
        forward_(compile_function(
            nn::LanguageModel(model.config),
            [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
            {.inputs = {{"tokens", {1, static_cast<std::int64_t>(length)}, i32}},
             .device = {.kind = "cpu"}})) {
    forward_.upload_params(model.weights);
  }
  std::vector<float> after(Tokens text) {
    const std::size_t last = text.size() - 1;
    text.resize(length_);  // later tokens have no effect
    const std::vector<float> all = forward_({{"tokens", text}}).floats();
    return {all.begin() + static_cast<std::ptrdiff_t>(last) * kSymbols,
            all.begin() + static_cast<std::ptrdiff_t>(last + 1) * kSymbols};
  }

 private:
  std::size_t length_;
  CompiledFunction forward_;
};

// Expects an error of at most 1e-5 * max(1, |logit|).
void expect_row(std::span<const float> logits, std::size_t row, const std::vector<float>& want,
                const std::string& where) {
  for (std::size_t k = 0; k < want.size(); ++k) {
    ASSERT_NEAR(logits[row * kSymbols + k], want[k], 1e-5 * std::max(1.0F, std::abs(want[k])))
        << where << ", token " << k;
  }
}

// Decodes prompts of different lengths, then single tokens. Does this twice, because a new prompt
// must reset the states.
void steps_are_the_whole(const std::string& device, const SavedModel& model) {
  Whole whole(model, 26);
  Decoder decoder(model,
                  {.batch = 4, .max_chunk = 4, .device = {.kind = device, .allow_software = true}});
  for (unsigned round = 0; round < 2; ++round) {
    std::vector<Tokens> texts = {some_text(9, round), some_text(1, 10 + round),
                                 some_text(17, 20 + round)};
    std::span<const float> logits = decoder.prefill(texts);
    for (unsigned step = 0;; ++step) {
      for (std::size_t row = 0; row < texts.size(); ++row) {
        expect_row(logits, row, whole.after(texts[row]),
                   "row " + std::to_string(row) + ", step " + std::to_string(step));
      }
      if (step == 4) break;
      Tokens next = some_text(4, 100 * round + step);
      for (std::size_t row = 0; row < texts.size(); ++row) texts[row].push_back(next[row]);
      logits = decoder.step(next);
    }
  }
}

TEST(LmDecoder, steps_match_the_whole_model_on_cpu) { steps_are_the_whole("cpu", hybrid()); }
TEST(LmDecoder, steps_by_the_zero_order_hold_match_the_whole_model) {
  nn::LanguageModelConfig config =
      small_mamba(kSymbols, {MixerKind::kMamba1, MixerKind::kMamba1}, 40);
  config.mamba.discretization = Discretization::kZeroOrderHold;
  steps_are_the_whole("cpu", wild_model(config));
}

// Rounding errors do not accumulate over many steps.
TEST(LmDecoder, matches_the_whole_model_for_300_single_tokens) {
  constexpr std::size_t kLength = 300;
  const SavedModel model = hybrid(kLength);
  CompiledFunction whole = compile_function(
      nn::LanguageModel(model.config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, kLength}, i32}}, .device = {.kind = "cpu"}});
  whole.upload_params(model.weights);
  const Tokens text = some_text(kLength, 3);
  const std::vector<float> want = whole({{"tokens", text}}).floats();
  Decoder decoder(model, {.batch = 1, .device = {.kind = "cpu"}});
  std::span<const float> logits = decoder.prefill(std::vector<Tokens>{{text[0]}});
  for (std::size_t i = 0;; ++i) {
    const auto row = want.begin() + static_cast<std::ptrdiff_t>(i) * kSymbols;
    expect_row(logits, 0, {row, row + kSymbols}, "token " + std::to_string(i));
    if (i + 1 == kLength) break;
    logits = decoder.step(Tokens{text[i + 1]});
  }
}

// Software drivers are slow to compile kernels, so each kind of layer has its own test.
TEST(LmDecoder, mamba1_steps_match_the_whole_model_on_webgpu) {
  steps_are_the_whole("webgpu", wild_model({MixerKind::kMamba1}));
}
TEST(LmDecoder, mamba2_steps_match_the_whole_model_on_webgpu) {
  steps_are_the_whole("webgpu", wild_model({MixerKind::kMamba2}));
}
TEST(LmDecoder, mamba3_steps_match_the_whole_model_on_webgpu) {
  steps_are_the_whole("webgpu", wild_model({MixerKind::kMamba3}));
}
TEST(LmDecoder, attention_steps_match_the_whole_model_on_webgpu) {
  steps_are_the_whole("webgpu", wild_model({MixerKind::kAttention}));
}

TEST(LmDecoder, compiles_few_sizes_for_prompts_of_any_length) {
  const SavedModel model = wild_model({MixerKind::kMamba1});
  Decoder decoder(model, {.batch = 1, .max_chunk = 20, .device = {.kind = "cpu"}});
  Whole whole(model, 64);
  for (const std::size_t length : {1U, 2U, 3U, 7U, 16U, 23U, 47U, 64U}) {
    const Tokens text = some_text(length, 3);
    expect_row(decoder.prefill(std::vector<Tokens>{text}), 0, whole.after(text),
               std::to_string(length));
  }
  std::vector<std::int64_t> sizes = decoder.forward().compiled_sizes();
  std::sort(sizes.begin(), sizes.end());
  EXPECT_THAT(sizes, ::testing::ElementsAre(1, 4, 16));
}

// Returns what each launch that writes to a key-value cache moves, as explain() prints it.
std::vector<std::string> moved_to_caches(const Decoder& decoder) {
  std::istringstream lines(decoder.forward().explain());
  std::vector<std::string> moved;
  std::string launch;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("  moves ");
    if (at != std::string::npos) launch = line.substr(at, line.find(',') - at);
    EXPECT_EQ(line.find("    copy "), std::string::npos) << line;
    if (line.starts_with("    index_update ")) moved.push_back(launch);
  }
  return moved;
}

// The cost of a step does not depend on the room for further ones, except that of attention itself.
TEST(LmDecoder, writes_to_its_caches_only_what_is_new) {
  for (const std::size_t prompt : {1U, 16U}) {
    std::vector<std::vector<std::string>> moved;
    for (const std::int64_t room : {40, 4000}) {
      const SavedModel model = wild_model({MixerKind::kAttention, MixerKind::kAttention}, room);
      Decoder decoder(model, {.batch = 2, .device = {.kind = "cpu"}});
      decoder.prefill(std::vector<Tokens>{some_text(prompt, 1), some_text(prompt, 2)});
      moved.push_back(moved_to_caches(decoder));
    }
    EXPECT_EQ(moved[0].size(), 4U);  // keys and values of two layers
    EXPECT_EQ(moved[0], moved[1]);
  }
}

// Returns a model that generates a fixed text: after token t, it predicts the token that follows t
// in the text. The model has `padding` more ids than the tokenizer. Their logits are the largest.
SavedModel model_that_writes(const Tokens& text, Tokenizer tokenizer, std::int64_t padding = 0) {
  const std::int64_t known = tokenizer.vocab_size(), symbols = known + padding;
  nn::LanguageModelConfig config{
      .vocab_size = symbols, .d_model = symbols, .n_layer = 1, .layers = {MixerKind::kMlp}};
  config.tie_embeddings = false;
  SavedModel model{config, {}, std::move(tokenizer)};
  const nn::LanguageModel net(config);
  ParameterVisitor visitor([&](const std::string& name, const Parameter& parameter) {
    std::vector<float> values(static_cast<std::size_t>(numel(parameter.shape())));
    const auto width = static_cast<std::size_t>(symbols);
    if (name == "backbone.embedding.weight") {
      for (std::size_t i = 0; i < width; ++i) values[i * width + i] = 1;
    } else if (name == "lm_head.weight") {
      for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        values[static_cast<std::size_t>(text[i + 1]) * width + static_cast<std::size_t>(text[i])] =
            9;
      }
      std::fill(values.begin() + known * symbols, values.end(), 20.0F);
    } else if (name.find("norm") != std::string::npos) {
      std::fill(values.begin(), values.end(), 1.0F);
    }
    model.weights[name] = HostTensor::from(parameter.shape(), values);
  });
  net.visit_fields(visitor);
  return model;
}

// Tokens that the device samples are those that the host samples from the same logits.
void samples_as_the_host(const std::string& device, const SavedModel& model,
                         const lm::SamplingOptions& rules) {
  Decoder decoder(model,
                  {.batch = 3, .max_chunk = 4, .device = {.kind = device, .allow_software = true}});
  const std::vector<Tokens> texts = {some_text(6, 1), some_text(3, 2)};
  const auto samplers = [&] {
    return std::vector<lm::Sampler>{lm::Sampler(rules, 1), lm::Sampler(rules, 2)};
  };
  std::vector<lm::Sampler> host = samplers(), on_device = samplers();
  std::vector<Tokens> want;
  std::span<const float> logits = decoder.prefill(texts);
  for (int i = 0; i < 12; ++i) {
    Tokens next = lm::sample_rows(host, logits.first(2 * kSymbols));
    next.push_back(0);
    want.push_back(next);
    logits = decoder.step(next);
  }
  std::vector<Tokens> got = {decoder.prefill_and_sample(texts, on_device)};
  for (const std::int64_t count : {1, 3, 7}) {
    const Tokens tokens = decoder.sample(count, on_device);
    ASSERT_EQ(tokens.size(), static_cast<std::size_t>(3 * count));
    for (auto at = tokens.begin(); at != tokens.end(); at += 3) got.emplace_back(at, at + 3);
  }
  EXPECT_EQ(got, want) << "temperature " << rules.temperature;
}

const lm::SamplingOptions kSampling[] = {
    {.temperature = 0},
    {.seed = 5},
    {.temperature = 0.8, .top_k = 40, .top_p = 0.9, .min_p = 0.01, .seed = 6}};

TEST(LmDecoder, samples_as_the_host_on_cpu) {
  const SavedModel model = hybrid();
  for (const lm::SamplingOptions& rules : kSampling) samples_as_the_host("cpu", model, rules);
}
TEST(LmDecoder, samples_as_the_host_on_webgpu) {
  const SavedModel model = wild_model({MixerKind::kMamba2, MixerKind::kAttention});
  for (const lm::SamplingOptions& rules : kSampling) samples_as_the_host("webgpu", model, rules);
}

// Texts, tokens and reasons to end are the same however many tokens a GPU samples at once.
TEST(LmGenerator, texts_do_not_depend_on_tokens_per_read_on_webgpu) {
  Tokenizer tokenizer = Tokenizer::bytes({"<end>"});
  tokenizer.set_eos("<end>");
  SavedModel model =
      model_that_writes(Tokenizer::bytes().encode("abcdefghijklmnopq"), tokenizer, 7);
  model.eos_ids = {'p'};
  Generator generator(model, {.batch = 2, .device = {.kind = "webgpu", .allow_software = true}});
  generator.decoder().set_context(12);
  const std::vector<std::string> prompts = {"a", "j", "f"};
  std::vector<GenerateOptions> all(6);
  all[0].sampling.temperature = 0;
  all[1] = {.sampling = {.temperature = 0}, .max_tokens = 6, .stop = {"dx", "lmn", "i"}};
  all[2] = {.sampling = {.temperature = 2, .top_k = 9, .seed = 3}, .max_tokens = 30};
  all[3] = {.sampling = {.temperature = 2, .top_p = 0.7, .min_p = 0.001},
            .max_tokens = 70,  // more than two reads of 32
            .ignore_eos = true};
  all[4] = {.sampling = {.temperature = 0}, .max_tokens = 1};
  all[5].sampling.temperature = 0;
  all[5].on_text = [](const lm::GeneratedChunk& written) { return written.text != "h"; };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<Completion> want;
    for (const std::int64_t at_once : {1, 2, 16, 32}) {
      all[i].tokens_per_read = at_once;
      const std::vector<Completion> made = generator.generate(prompts, all[i]);
      if (at_once == 1) want = made;
      for (std::size_t k = 0; k < prompts.size(); ++k) {
        EXPECT_EQ(made[k].tokens, want[k].tokens) << at_once << ", " << prompts[k];
        EXPECT_EQ(made[k].text, want[k].text) << at_once << ", " << prompts[k];
        EXPECT_EQ(made[k].finish_reason, want[k].finish_reason) << at_once << ", " << prompts[k];
      }
    }
  }
}

TEST(LmGenerator, unusable_logits_are_an_error_on_webgpu) {
  SavedModel model = model_that_writes(Tokenizer::bytes().encode("abcd"), Tokenizer::bytes());
  std::vector<float> weights = model.weights.at("lm_head.weight").floats();
  weights[std::size_t{7} * 256 + 'c'] = std::numeric_limits<float>::quiet_NaN();
  model.weights.at("lm_head.weight") = HostTensor::from({256, 256}, weights);
  Generator generator(model, {.device = {.kind = "webgpu", .allow_software = true}});
  for (const std::int64_t at_once : {1, 16}) {
    EXPECT_THAT(
        [&] {
          (void)generator.generate("a",
                                   {.sampling = {.temperature = 0}, .tokens_per_read = at_once});
        },
        ::testing::ThrowsMessage<UserError>(
            ::testing::HasSubstr("sampling: the logit of token 7 is NaN")));
  }
}

TEST(LmDecoder, refuses_what_it_cannot_sample) {
  const SavedModel model = wild_model({MixerKind::kMamba2});
  Decoder decoder(model, {.device = {.kind = "cpu"}});
  std::vector<lm::Sampler> one = {lm::Sampler({})}, two(2, lm::Sampler({}));
  std::vector<lm::Sampler> penalty = {lm::Sampler({.repetition_penalty = 2})};
  const std::vector<Tokens> text = {{1, 2}};
  const std::string first =
      "decoder: sample() continues what prefill_and_sample() began; call that first";
  EXPECT_EQ(test::message_of([&] { (void)decoder.sample(1, one); }), first);
  EXPECT_EQ(test::message_of([&] { (void)decoder.prefill_and_sample(text, two); }),
            "decoder: expected a sampler for each of 1 texts, got 2");
  EXPECT_EQ(test::message_of([&] { (void)decoder.prefill_and_sample(text, penalty); }),
            "decoder: a repetition penalty cannot be applied on the device; use step()");
  decoder.prefill_and_sample(text, one);
  EXPECT_EQ(test::message_of([&] { (void)decoder.sample(0, one); }),
            "decoder: expected to sample 1 to 32 tokens at once, got 0");
  EXPECT_EQ(test::message_of([&] { (void)decoder.sample(33, one); }),
            "decoder: expected to sample 1 to 32 tokens at once, got 33");
  EXPECT_EQ(decoder.sample(32, one).size(), 32U);
  decoder.step(Tokens{1});
  EXPECT_EQ(test::message_of([&] { (void)decoder.sample(1, one); }), first);
  EXPECT_EQ(test::message_of([&] { (void)decoder.profile(3); }),
            "decoder: expected a chunk of 4^k tokens, at most max_chunk = 256, got 3");
  EXPECT_GT(decoder.profile(4).launches.size(), 5U);
  EXPECT_EQ(
      test::message_of([&] { decoder.step(Tokens{std::numeric_limits<std::int32_t>::min()}); }),
      "decoder: -2147483648 is not a token");
  for (const std::int32_t wrong : {-1, 256}) {
    EXPECT_THAT(test::message_of([&] { decoder.step(Tokens{wrong}); }),
                ::testing::HasSubstr("input 'tokens'"))
        << wrong;
  }
  Decoder wrapped(compile_function(nn::LanguageModel(model.config),
                                   [](const nn::LanguageModel& net, const Inputs& in) {
                                     return net.resume_last(in["tokens"], in["keep"]);
                                   },
                                   {.inputs = Decoder::inputs(1), .device = {.kind = "cpu"}}),
                  {});
  EXPECT_EQ(test::message_of([&] { (void)wrapped.prefill_and_sample(text, one); }),
            "decoder: only decoders of a model or a trainer sample on the device");
}

std::vector<Tokens> prompts_of_all_lengths() {
  return {some_text(5, 1), some_text(12, 2), some_text(5, 3), some_text(1, 4), some_text(30, 5)};
}

std::vector<Tokens> written_by(Generator& generator, const std::vector<Tokens>& prompts,
                               const GenerateOptions& options) {
  std::vector<Tokens> tokens;
  for (Completion& each : generator.generate_from(prompts, options))
    tokens.push_back(std::move(each.tokens));
  return tokens;
}

TEST(LmGenerator, batch_does_not_change_the_texts) {
  const SavedModel model = hybrid();
  const std::vector<Tokens> prompts = prompts_of_all_lengths();
  GenerateOptions options{.sampling = {.repetition_penalty = 1.2, .temperature = 0.8, .top_k = 40},
                          .max_tokens = 7};
  Generator together(model, {.batch = 3, .max_chunk = 4, .device = {.kind = "cpu"}});
  const std::vector<Tokens> texts = written_by(together, prompts, options);
  EXPECT_EQ(together.times().tokens, 35);
  EXPECT_EQ(together.times().prompt_tokens, 53);
  EXPECT_EQ(together.times().steps, 12);  // two batches; the first token comes from the prompt
  Generator alone(model, {.batch = 1, .max_chunk = 4, .device = {.kind = "cpu"}});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    options.first_random_stream = i;
    EXPECT_EQ(written_by(alone, {prompts[i]}, options).front(), texts[i]) << i;
  }
}

TEST(LmGenerator, greedy_text_matches_the_whole_model) {
  const SavedModel model = hybrid();
  Whole whole(model, 24);
  Generator generator(model, {.device = {.kind = "cpu"}});
  Tokens text = some_text(6, 7);
  const Completion made = generator
                              .generate_from(std::vector<Tokens>{text},
                                             {.sampling = {.temperature = 0}, .max_tokens = 18})
                              .front();
  for (const std::int32_t token : made.tokens) {
    const std::vector<float> logits = whole.after(text);
    ASSERT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
    text.push_back(token);
  }
  EXPECT_EQ(made.finish_reason, lm::FinishReason::kMaxTokens);
  EXPECT_EQ(made.text, Tokenizer::bytes().decode(made.tokens));
}

TEST(LmGenerator, ends_when_the_attention_cache_is_full) {
  const SavedModel model = wild_model({MixerKind::kAttention, MixerKind::kMamba2}, 9);
  Generator generator(model, {.device = {.kind = "cpu"}});
  const Tokens prompt = some_text(6, 7);
  const Completion made =
      generator.generate_from(std::vector<Tokens>{prompt}, {.ignore_eos = true}).front();
  EXPECT_EQ(made.finish_reason, lm::FinishReason::kContext);
  EXPECT_EQ(made.tokens.size(), 4U);  // three fit in the cache, one more is sampled after them
  EXPECT_THAT([&] { (void)generator.generate_from(std::vector<Tokens>{some_text(10, 1)}); },
              ::testing::ThrowsMessage<UserError>(::testing::StartsWith(
                  "generate: prompt 0 has 10 tokens, but the model's attention keeps 9")));
}

TEST(LmGenerator, of_a_trainer_ends_when_the_attention_cache_is_full) {
  const auto ending = [](MixerKind kind) {
    auto trainer = compile(nn::LanguageModel(small_mamba(kSymbols, {kind}, 9)),
                           [](const nn::LanguageModel& net, const Inputs& in) {
                             return cross_entropy(net(in["tokens"]), in["next"]);
                           },
                           {.inputs = {{"tokens", {1, 4}, i32}, {"next", {1, 4}, i32}},
                            .optimizer = optim::SGD{},
                            .device = {.kind = "cpu"}});
    Generator generator(Decoder(trainer), Tokenizer::bytes());
    return generator.generate_from(std::vector<Tokens>{some_text(6, 7)}, {.max_tokens = 12})
        .front();
  };
  EXPECT_EQ(ending(MixerKind::kAttention).finish_reason, lm::FinishReason::kContext);
  EXPECT_EQ(ending(MixerKind::kAttention).tokens.size(), 4U);
  EXPECT_EQ(ending(MixerKind::kMamba2).finish_reason, lm::FinishReason::kMaxTokens);
}

TEST(LmGenerator, of_a_function_ends_at_its_limit) {
  Decoder decoder(
      compile_function(nn::LanguageModel(small_mamba(kSymbols, {MixerKind::kAttention}, 9)),
                       [](const nn::LanguageModel& net, const Inputs& in) {
                         return net.resume_last(in["tokens"], in["keep"]);
                       },
                       {.inputs = Decoder::inputs(1), .device = {.kind = "cpu"}}),
      {});
  EXPECT_EQ(decoder.context(), 0);
  decoder.set_context(9);
  Generator generator(std::move(decoder), Tokenizer::bytes());
  const Completion made =
      generator.generate_from(std::vector<Tokens>{some_text(6, 7)}, {.max_tokens = 12}).front();
  EXPECT_EQ(made.finish_reason, lm::FinishReason::kContext);
  EXPECT_EQ(made.tokens.size(), 4U);
}

struct Stream {
  std::vector<std::string> pieces;
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 20};
  Stream() {
    options.on_text = [this](const lm::GeneratedChunk& written) {
      pieces.emplace_back(written.text);
      return true;
    };
  }
};

TEST(LmGenerator, streams_whole_characters) {
  const std::string text = "a\xC3\xA9\xF0\x9F\x99\x82z";  // characters of 1, 2, 4 and 1 bytes
  Tokens bytes = Tokenizer::bytes().encode(text);
  Generator generator(model_that_writes(bytes, Tokenizer::bytes()), {.device = {.kind = "cpu"}});
  Stream stream;
  stream.options.max_tokens = 7;
  EXPECT_EQ(generator.generate("a", stream.options).text, text.substr(1));
  EXPECT_THAT(stream.pieces, ::testing::ElementsAre("\xC3\xA9", "\xF0\x9F\x99\x82", "z"));
  // A partial character at the end becomes U+FFFD.
  stream.pieces.clear();
  stream.options.max_tokens = 4;
  EXPECT_EQ(generator.generate("a", stream.options).text, "\xC3\xA9\xEF\xBF\xBD");
  EXPECT_THAT(stream.pieces, ::testing::ElementsAre("\xC3\xA9", "\xEF\xBF\xBD"));
}

TEST(LmGenerator, ends_before_a_stop_string_that_spans_tokens) {
  const Tokens bytes = Tokenizer::bytes().encode("abcdefgh");
  Generator generator(model_that_writes(bytes, Tokenizer::bytes()), {.device = {.kind = "cpu"}});
  Stream stream;
  stream.options.stop = {"dx", "efg"};
  const Completion made = generator.generate("a", stream.options);
  EXPECT_EQ(made.text, "bcd");
  EXPECT_EQ(made.finish_reason, lm::FinishReason::kStopString);
  EXPECT_EQ(made.tokens, Tokenizer::bytes().encode("bcdefg"));
  EXPECT_THAT(stream.pieces, ::testing::ElementsAre("b", "c", "d")) << "never a part of one";
  // "c" may begin "cdx" until "d" completes the other stop string. The callback has priority.
  stream.options.stop = {"cdx", "d"};
  EXPECT_EQ(generator.generate("a", stream.options).finish_reason, lm::FinishReason::kStopString);
  GenerateOptions refusing = stream.options;
  refusing.on_text = [](const lm::GeneratedChunk& written) { return written.text != "c"; };
  const Completion refused = generator.generate("a", refusing);
  EXPECT_EQ(refused.text, "bc");
  EXPECT_EQ(refused.finish_reason, lm::FinishReason::kCallback);
  stream.options.stop = {"dx", "efg"};
  // Text that is held back is output at the end if it is not a stop string.
  stream.options.max_tokens = 5;
  stream.pieces.clear();
  EXPECT_EQ(generator.generate("a", stream.options).text, "bcdef");
  EXPECT_THAT(stream.pieces, ::testing::ElementsAre("b", "c", "d", "ef"));
}

TEST(LmGenerator, ends_at_eos_and_on_request_of_the_callback) {
  Tokenizer tokenizer = Tokenizer::characters({"a", "b", "c"}, {"<end>"});
  tokenizer.set_eos("<end>");
  const SavedModel model = model_that_writes({3, 1, 0, 2, 3}, tokenizer);
  Generator generator(model, {.device = {.kind = "cpu"}});
  Stream stream;
  const Completion whole = generator.generate("", stream.options);
  EXPECT_EQ(whole.text, "bac");
  EXPECT_EQ(whole.tokens, (Tokens{1, 0, 2, 3}));
  EXPECT_EQ(whole.finish_reason, lm::FinishReason::kStopToken);
  stream.options.ignore_eos = true;
  stream.options.max_tokens = 9;
  EXPECT_EQ(generator.generate("", stream.options).text, "bacbacb") << "marks are no text";
  int count = 0;
  stream.options.on_text = [&](const lm::GeneratedChunk&) { return ++count < 2; };
  const Completion cut = generator.generate("", stream.options);
  EXPECT_EQ(cut.text, "ba");
  EXPECT_EQ(cut.finish_reason, lm::FinishReason::kCallback);
}

TEST(LmGenerator, DoesNotSampleIdsWithoutToken) {
  const Tokens bytes = Tokenizer::bytes().encode("abcd");
  Generator generator(model_that_writes(bytes, Tokenizer::bytes(), 7),
                      {.batch = 2, .device = {.kind = "cpu"}});
  const std::vector<std::string> prompts = {"a", "b"};
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 2};
  std::vector<Completion> made = generator.generate(prompts, options);
  EXPECT_EQ(made[0].text, "bc");
  EXPECT_EQ(made[1].text, "cd");
  options.sampling = {.temperature = 3, .seed = 4};
  options.max_tokens = 40;
  for (const Completion& each : generator.generate(prompts, options))
    EXPECT_LT(*std::max_element(each.tokens.begin(), each.tokens.end()), 256);
}

TEST(LmGenerator, EndsAtEachEosIdOfTheModel) {
  Tokenizer tokenizer = Tokenizer::bytes({"<end>"});
  tokenizer.set_eos("<end>");
  SavedModel model = model_that_writes(Tokenizer::bytes().encode("abcdefgh"), tokenizer);
  model.eos_ids = {'f', 'd'};
  std::vector<std::byte> file;
  lm::save_model(file, model);
  Generator generator(lm::load_model(file), {.device = {.kind = "cpu"}});
  GenerateOptions options{.sampling = {.temperature = 0}, .max_tokens = 7};
  const Completion made = generator.generate("a", options);
  EXPECT_EQ(made.text, "bc");
  EXPECT_EQ(made.finish_reason, lm::FinishReason::kStopToken);
  EXPECT_EQ(generator.generate("d", options).text, "e");
  options.ignore_eos = true;
  EXPECT_EQ(generator.generate("a", options).text, "bcdefgh");
}

TEST(LmGenerator, invalid_requests_are_rejected) {
  const SavedModel model = wild_model({MixerKind::kMamba2});
  Generator generator(model, {.batch = 2, .device = {.kind = "cpu"}});
  EXPECT_EQ(test::message_of([&] { (void)generator.generate(""); }),
            "generate: prompt 0 is empty, and the tokenizer has no bos or eos token to start from");
  EXPECT_EQ(test::message_of([&] { (void)generator.generate("a", {.max_tokens = -1}); }),
            "generate: max_tokens must be at least 0, got -1");
  EXPECT_EQ(test::message_of([&] { (void)generator.generate("a", {.stop = {"x", ""}}); }),
            "generate: a stop string is empty, which would end every text");
  EXPECT_EQ(test::message_of([&] { (void)generator.generate("a", {.tokens_per_read = 33}); }),
            "generate: tokens_per_read must be from 1 to 32, got 33");
  EXPECT_EQ(test::message_of([&] { (void)generator.generate("a", {.sampling = {.top_p = 2}}); }),
            "sampling: top_p: expected a number above 0 and at most 1, got 2");
  EXPECT_EQ(test::message_of(
                [&] { (void)generator.decoder().prefill(std::vector<Tokens>(3, Tokens{1})); }),
            "decoder: expected 1 to 2 texts, got 3");
  EXPECT_EQ(test::message_of([&] { (void)generator.decoder().prefill(std::vector<Tokens>(2)); }),
            "decoder: a text has no tokens; expected at least 1");
  SavedModel bare = model;
  bare.tokenizer.reset();
  EXPECT_EQ(test::message_of([&] { const Generator none(bare); }),
            "Generator: the model has no tokenizer");
  EXPECT_EQ(generator.generate("a", {.max_tokens = 0}).text, "");
}

TEST(StopText, finds_strings_however_the_text_is_cut) {
  const std::string text = "one, two; three.";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    lm::StopText stop({"o; t", "; th", "four"});
    std::string out = stop.take(text.substr(0, cut));
    out += stop.take(text.substr(cut));
    EXPECT_TRUE(stop.found());
    EXPECT_EQ(out, "one, tw") << cut;
    EXPECT_EQ(stop.finish(), "");
  }
  // The stop string that ends first is found or, if several end there, the longest.
  lm::StopText both({"abcd", "bc"}), ends({"bc", "abc"});
  EXPECT_EQ(both.take("xabcd"), "xa");
  EXPECT_EQ(ends.take("xabc"), "x");
  lm::StopText waits({"aab"});
  EXPECT_EQ(waits.take("aaa"), "a");
  EXPECT_EQ(waits.take("aa"), "aa");
  EXPECT_EQ(waits.finish(), "aa");
  EXPECT_FALSE(waits.found());
}

}  // namespace
}  // namespace tensorgrad::testing
