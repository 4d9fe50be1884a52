// SPDX-License-Identifier: MIT
// Each option of tg lm: sampling, tokenizers, scoring and weight types. The tests fail if the tool
// confuses two options.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::test {
namespace {

using OptionLine = nlohmann::json;
using OptionWords = std::vector<std::string>;
using OptionTokens = std::vector<std::int32_t>;

constexpr std::int64_t kOptionWidth = 32, kOptionLetters = 24;

Tokenizer option_letters() {
  std::vector<std::string> letters;
  for (int i = 0; i < kOptionLetters; ++i) letters.emplace_back(1, static_cast<char>('a' + i));
  return Tokenizer::characters(letters);
}

// Returns a model with its initial weights plus random numbers in [-size, size].
lm::SavedModel option_model(nn::LanguageModelConfig config, const Tokenizer& tokenizer,
                            float size) {
  config.vocab_size = tokenizer.vocab_size();
  config.d_model = kOptionWidth;
  config.n_layer = static_cast<std::int64_t>(config.layers.size());
  const CompiledFunction forward = compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 5});
  lm::SavedModel model{config, forward.download_params(), tokenizer};
  std::mt19937 random(2);
  for (auto& [name, tensor] : model.weights) {
    std::vector<float> values = tensor.floats();
    for (float& v : values) v += size * (static_cast<float>(random() % 2001) / 1000.0F - 1);
    tensor = HostTensor::from(tensor.shape, values);
  }
  return model;
}

// The logits of a letter depend only on the previous letter, and all are below 0.
lm::SavedModel model_of_pairs() {
  lm::SavedModel model = option_model({.layers = {nn::MixerKind::kMlp}, .tie_embeddings = false},
                                      option_letters(), 0.5F);
  const auto set = [&](const std::string& name, const auto& change) {
    HostTensor& tensor = model.weights.at(name);
    std::vector<float> values = tensor.floats();
    for (float& v : values) v = change(v);
    tensor = HostTensor::from(tensor.shape, values);
  };
  set("backbone.layers.0.mixer.fc2.weight", [](float) { return 0.0F; });
  set("backbone.norm_f.weight", [](float) { return 1.0F; });
  set("backbone.embedding.weight", [](float v) { return std::abs(v) + 0.01F; });
  set("lm_head.weight", [](float v) { return -std::abs(v) - 0.01F; });
  return model;
}

class TgLmGenerate : public ::testing::Test {
 protected:
  TgLmGenerate() {
    lm::save_model(folder_ / "pairs.safetensors", model_of_pairs());
    greedy_ = written({"--temperature", "0"});
  }

  // Returns the tokens that the tool writes after "a".
  OptionTokens written(const OptionWords& options) const {
    OptionWords words = {"lm", "generate", "pairs.safetensors", "--device", "cpu",    "--prompt",
                         "a",  "--json",   "--max-tokens",      "20",       "--quiet"};
    words.insert(words.end(), options.begin(), options.end());
    const ToolResult result = folder_.tg(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? OptionLine::parse(result.out)["tokens"].get<OptionTokens>()
                            : OptionTokens();
  }
  // Returns the tokens that the library generates.
  static OptionTokens wanted(const lm::SamplingOptions& sampling) {
    lm::Generator generator(model_of_pairs(), {.device = {.kind = "cpu"}});
    return generator.generate("a", {.sampling = sampling, .max_tokens = 20}).tokens;
  }

  TestFolder folder_;
  OptionTokens greedy_;
};

TEST_F(TgLmGenerate, draws_only_the_likeliest_if_options_exclude_others) {
  ASSERT_EQ(greedy_.size(), 20U);
  EXPECT_NE(written({"--temperature", "5"}), greedy_);
  EXPECT_EQ(written({"--temperature", "5", "--top-k", "1"}), greedy_);
  EXPECT_EQ(written({"--temperature", "5", "--top-p", "1e-9"}), greedy_);
  EXPECT_EQ(written({"--temperature", "5", "--min-p", "1"}), greedy_);
}

TEST_F(TgLmGenerate, draws_as_the_library_does_with_each_option) {
  const lm::SamplingOptions hot = {.temperature = 5, .seed = 3};
  const OptionWords words = {"--temperature", "5", "--seed", "3"};
  const auto check = [&](const char* option, const char* text, lm::SamplingOptions sampling) {
    OptionWords more = words;
    more.insert(more.end(), {option, text});
    const OptionTokens tokens = written(more);
    EXPECT_EQ(tokens, wanted(sampling)) << option;
    EXPECT_NE(tokens, wanted(hot)) << option << " changes nothing";
    EXPECT_NE(tokens, greedy_) << option;
  };
  EXPECT_EQ(written(words), wanted(hot));
  lm::SamplingOptions each = hot;
  each.top_k = 4;
  check("--top-k", "4", each);
  (each = hot).top_p = 0.4;
  check("--top-p", "0.4", each);
  (each = hot).min_p = 0.7;
  check("--min-p", "0.7", each);
  (each = hot).repetition_penalty = 2.5;
  check("--repetition-penalty", "2.5", each);
}

TEST_F(TgLmGenerate, huge_penalty_prevents_repetition) {
  const OptionTokens tokens = written({"--temperature", "0", "--repetition-penalty", "1e6"});
  std::set<std::int32_t> all(tokens.begin(), tokens.end());
  all.insert(option_letters().encode("a").front());
  EXPECT_EQ(all.size(), 21U);
  EXPECT_LT(std::set<std::int32_t>(greedy_.begin(), greedy_.end()).size(), 20U)
      << "it would repeat";
}

TEST(TgLmTokenizers, bytes_and_pairs_of_them_are_made_of_the_text) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 3 == 0 ? "the cat sat\n" : "a d\xC3\xB6g ran home\n";
  write_text(folder / "story.txt", text);
  const auto tokenizer = [&](const std::string& wanted) {
    const ToolResult result =
        folder.tg({"lm",       "train",   "story.txt",    "--tokenizer", wanted,     "--out",
                   "run",      "--force", "--arch",       "mamba1",      "--layers", "1",
                   "--width",  "16",      "--steps",      "1",           "--batch",  "1",
                   "--length", "8",       "--no-samples", "--device",    "cpu"});
    EXPECT_EQ(result.code, 0) << result.err;
    const lm::SavedModel model = lm::load_model(folder / "run/model.safetensors");
    EXPECT_EQ(model.config.vocab_size, model.tokenizer.value().vocab_size());
    return model.tokenizer.value();
  };
  const std::string word = "the d\xC3\xB6g";
  const Tokenizer bytes = tokenizer("bytes");
  EXPECT_EQ(bytes.vocab_size(), 257);  // the bytes and the end-of-text token
  EXPECT_EQ(bytes.encode(word).size(), word.size());
  const Tokenizer pairs = tokenizer("bpe:270");
  EXPECT_EQ(pairs.vocab_size(), 270);
  EXPECT_LT(pairs.encode(word).size(), word.size());
  EXPECT_EQ(pairs.decode(pairs.encode(word)), word);
  EXPECT_EQ(tokenizer("bpe:264").vocab_size(), 264);
}

// Losses and learning rates of each step, as written by the tool.
struct OptionSteps {
  std::vector<double> losses, rates;
};

TEST(TgLmTrain, trains_as_the_library_does_with_each_option) {
  const TestFolder folder;
  std::string text;
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + random() % kOptionLetters);
  write_text(folder / "text.txt", text);
  const auto trained = [&](const OptionWords& options) {
    OptionWords words = {
        "lm",     "train",    "text.txt", "--device", "cpu",         "--arch",
        "mamba1", "--layers", "1",        "--width",  "16",          "--steps",
        "8",      "--batch",  "3",        "--length", "8",           "--warmup",
        "2",      "--lr",     "0.01",     "--seed",   "3",           "--eval-every",
        "8",      "--out",    "run",      "--force",  "--no-samples"};
    for (std::size_t i = 0; i < options.size(); i += 2) {
      const auto there = std::find(words.begin(), words.end(), options[i]);
      if (there != words.end()) words.erase(there, there + 2);
    }
    words.insert(words.end(), options.begin(), options.end());
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 0) << result.err;
    OptionSteps steps;
    std::istringstream lines(read_text(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const OptionLine read = OptionLine::parse(line);
      if (read["kind"] != "step") continue;
      steps.losses.push_back(read["loss"]);
      steps.rates.push_back(read["lr"]);
    }
    return steps;
  };
  const auto wanted = [&](const lm::TrainingOptions& options) {
    const lm::SavedModel model = lm::load_model(folder / "run/model.safetensors");
    const lm::TokenSplit split =
        lm::pack_documents(std::vector{text}, model.tokenizer.value(),
                           {.holdout = 0.1, .encode = {.add_special_tokens = false}});
    lm::LanguageTrainer trainer(model.config, split.train, split.validation, options);
    OptionSteps steps;
    for (int i = 0; i < 8; ++i) {
      steps.rates.push_back(trainer.lr());
      steps.losses.push_back(trainer.step());
    }
    return steps;
  };
  const lm::TrainingOptions plain = {.batch = 3,
                                     .length = 8,
                                     .steps = 8,
                                     .lr = 0.01,
                                     .final_lr = 0.001,
                                     .warmup = 2,
                                     .seed = 3,
                                     .device = {.kind = "cpu"}};
  const OptionSteps as_it_is = trained({});
  const auto check = [&](const char* option, const char* value, const lm::TrainingOptions& same) {
    const OptionSteps steps = trained({option, value}), want = wanted(same);
    EXPECT_EQ(steps.losses, want.losses) << option;
    EXPECT_EQ(steps.rates, want.rates) << option;
    EXPECT_NE(steps.losses, as_it_is.losses) << option << " changes nothing";
  };
  EXPECT_EQ(as_it_is.losses, wanted(plain).losses);
  lm::TrainingOptions each = plain;
  each.accumulate = 2;
  check("--accumulate", "2", each);
  (each = plain).clip_grad_norm = 1e-7;
  check("--clip-grad-norm", "1e-7", each);
  (each = plain).weight_decay = 9;
  check("--weight-decay", "9", each);
  (each = plain).final_lr = 0.009;
  check("--final-lr", "0.009", each);
  (each = plain).warmup = 5;
  check("--warmup", "5", each);
  (each = plain).seed = 9;
  check("--seed", "9", each);
}

TEST(TgLmEval, follows_the_options_of_chunks_and_context) {
  const TestFolder folder;
  const lm::SavedModel model =
      option_model({.layers = {nn::MixerKind::kMamba1}}, option_letters(), 0.3F);
  lm::save_model(folder / "model.safetensors", model);
  std::string text;
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) text += static_cast<char>('a' + random() % kOptionLetters);
  write_text(folder / "text.txt", text);
  const auto loss = [&](const OptionWords& options) {
    OptionWords words = {"lm",  "eval",   "model.safetensors", "--data", "text.txt", "--device",
                         "cpu", "--json", "--chunk",           "16"};
    words.insert(words.end(), options.begin(), options.end());
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? OptionLine::parse(result.out)["loss"].get<double>() : 0;
  };
  const auto wanted = [&](std::int64_t parts, std::int64_t context) {
    lm::TextScorer scorer(
        model, {.chunk = 16, .batch = parts, .context = context, .device = {.kind = "cpu"}});
    return scorer.score(model.tokenizer->encode(text)).loss();
  };
  const double whole = wanted(1, 0), forgetful = wanted(1, 32), parts = wanted(5, 0);
  EXPECT_GT(std::abs(whole - forgetful), 1e-4);
  EXPECT_GT(std::abs(whole - parts), 1e-4);
  EXPECT_GT(std::abs(forgetful - parts), 1e-4);
  EXPECT_NEAR(loss({}), whole, 1e-6);
  EXPECT_NEAR(loss({"--context", "32"}), forgetful, 1e-6);
  EXPECT_NEAR(loss({"--batch", "5"}), parts, 1e-6);
  EXPECT_NEAR(loss({"--batch", "5", "--context", "32"}), wanted(5, 32), 1e-6);
}

// transformers computes perplexity from `tokenizer(text)`, with the special tokens of the template.
TEST(TgLmEval, EncodesTextsAsTransformersUnlessEosIsAskedFor) {
  const TestFolder folder;
  lm::SavedModel model = option_model({.layers = {nn::MixerKind::kMamba1}}, option_letters(), 0.3F);
  OptionLine json = OptionLine::parse(model.tokenizer->to_json());
  const std::string bos = "a", eos = "b";  // any two tokens of the model
  const auto id_of = [&](const std::string& token) { return *model.tokenizer->token_to_id(token); };
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", bos}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", OptionLine::array()},
      {"special_tokens", {{bos, {{"id", bos}, {"ids", {id_of(bos)}}, {"tokens", {bos}}}}}}};
  model.tokenizer = Tokenizer::from_json(json.dump());
  model.tokenizer->set_eos(eos);
  lm::save_model(folder / "model.safetensors", model);
  write_text(folder / "text.txt", "dcabdacdbc");
  const auto evaluated = [&](const OptionWords& options) {
    OptionWords words = {"lm",  "eval",  "model.safetensors", "--data", "text.txt", "--device",
                         "cpu", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return OptionLine::parse(result.out);
  };
  const auto wanted = [&](const std::string& tokens) {
    lm::TextScorer scorer(model, {.device = {.kind = "cpu"}});
    return scorer.score(model.tokenizer->encode(tokens, {.add_special_tokens = false})).loss();
  };
  const OptionLine plain = evaluated({}), trained = evaluated({"--eos"});
  EXPECT_EQ(plain["tokens"], 10);
  EXPECT_NEAR(plain["loss"], wanted("adcabdacdbc"), 1e-6);
  EXPECT_EQ(trained["tokens"], 10);
  EXPECT_NEAR(trained["loss"], wanted("dcabdacdbcb"), 1e-6);
}

TEST(TgLmQuantize, keeps_weights_as_the_type_says) {
  const TestFolder folder;
  const lm::SavedModel model =
      option_model({.layers = {nn::MixerKind::kMamba1}}, option_letters(), 0.3F);
  lm::save_model(folder / "model.safetensors", model);
  for (const std::string type : {"f16", "bf16", "int8", "int8_per_tensor", "int4"}) {
    const ToolResult made = folder.tg(
        {"lm", "quantize", "model.safetensors", "--type", type, "-o", type + ".safetensors"});
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_NE(made.out.find("weights in " + type), std::string::npos) << made.out;
    const lm::SavedModel read = lm::load_model(folder / (type + ".safetensors"));
    EXPECT_EQ(nn::to_string(read.config.weight_format), type);
    const lm::SavedModel want = lm::quantize(model, nn::parse_weight_format(type));
    ASSERT_EQ(read.weights.size(), want.weights.size()) << type;
    for (const auto& [name, tensor] : want.weights)
      EXPECT_EQ(read.weights.at(name).bytes, tensor.bytes) << type << ' ' << name;
  }
}

}  // namespace
}  // namespace tensorgrad::test
