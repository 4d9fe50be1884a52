// SPDX-License-Identifier: MIT
// Training of language models: windows of a text, runs that resume bit for bit, training of
// selected rows, and scores of long texts.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "support/small_mamba.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using lm::LanguageTrainer;
using lm::TextScorer;
using lm::TrainingOptions;
using nn::LanguageModelConfig;
using nn::MixerKind;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kLetters = 7;

LanguageModelConfig letters_config(std::vector<MixerKind> layers) {
  return small_mamba(kLetters, std::move(layers), 16);
}

Tokens letters(std::int64_t count, unsigned seed) { return random_tokens(count, kLetters, seed); }

TrainingOptions few_steps() {
  return {.batch = 2,
          .length = 8,
          .steps = 20,
          .lr = 1e-2,
          .warmup = 3,
          .seed = 4,
          .device = {.kind = "cpu"}};
}

TEST(PackDocuments, holds_out_the_end_of_each_and_marks_where_pieces_end) {
  Tokenizer tokenizer = Tokenizer::characters({"a", "b", "c"}, {"<end>"});
  const std::vector<std::string> documents = {"aaaaaaab", "", "cb", "bbbbbbcc<end>"};
  const auto plain = lm::pack_documents(documents, tokenizer, {.holdout = 0.25});
  EXPECT_EQ(tokenizer.decode(plain.train.read_all()), "aaaaaacbbbbbbbc");
  EXPECT_EQ(tokenizer.decode(plain.validation.read_all()), "abc<end>");
  tokenizer.set_eos("<end>");
  const auto marked = lm::pack_documents(documents, tokenizer, {.holdout = 0.25});
  EXPECT_EQ(tokenizer.decode(marked.train.read_all()), "aaaaaa<end>cb<end>bbbbbbc<end>");
  EXPECT_EQ(tokenizer.decode(marked.validation.read_all()), "ab<end>c<end>");
  const auto whole = lm::pack_documents(documents, tokenizer, {.holdout = 0});
  EXPECT_EQ(tokenizer.decode(whole.train.read_all()), "aaaaaaab<end>cb<end>bbbbbbcc<end>");
  EXPECT_EQ(whole.validation.size(), 0);
}

void goes_on_bit_for_bit(const std::string& device) {
  const test::TempDir folder;
  const std::string path = folder / "checkpoint.safetensors";
  const LanguageModelConfig config = letters_config({MixerKind::kMamba1, MixerKind::kMlp});
  TrainingOptions options = few_steps();
  options.accumulate = 3;
  options.device = {.kind = device, .allow_software = true};
  const auto make = [&] {
    return std::make_unique<LanguageTrainer>(config, TokenSequence(letters(61, 1)), TokenSequence(),
                                             options);
  };
  auto whole = make();
  std::vector<double> losses;
  for (int i = 0; i < 9; ++i) {
    if (i == 4) {
      whole->save(path);
      EXPECT_EQ(whole->save_bytes(), read_file(path));
    }
    losses.push_back(whole->step());
  }
  EXPECT_GT(whole->epochs(), 6) << "4 batches are an epoch";
  auto resumed = make();
  resumed->load(read_file(path));
  EXPECT_EQ(resumed->steps(), 4);
  for (std::size_t i = 4; i < 9; ++i) EXPECT_EQ(resumed->step(), losses[i]) << i;
  const auto want = whole->model().weights, got = resumed->model().weights;
  for (const auto& [name, tensor] : want) EXPECT_EQ(got.at(name).bytes, tensor.bytes) << name;
}
TEST(LanguageTrainer, resumes_bit_for_bit) { goes_on_bit_for_bit("cpu"); }
TEST(LanguageTrainer, resumes_bit_for_bit_on_webgpu) { goes_on_bit_for_bit("webgpu"); }

TEST(LanguageTrainer, learns_a_text_and_reports_losses) {
  // Each letter is always followed by the same one.
  Tokens text;
  for (std::int32_t i = 0; i < 400; ++i)
    text.push_back(i * 3 % static_cast<std::int32_t>(kLetters));
  TrainingOptions options = few_steps();
  options.steps = 90;
  const auto [train, held] = TokenSequence(text).split(0.2);
  LanguageTrainer trainer(letters_config({MixerKind::kMamba2}), train, held, options);
  const double before = trainer.validate().loss();
  EXPECT_NEAR(before, std::log(kLetters), 0.3);
  for (int i = 0; i < 90; ++i) trainer.step();
  EXPECT_LT(trainer.validate().loss(), 0.05);
  EXPECT_LT(trainer.lr(), 4e-4) << "the rate has come down";
  EXPECT_EQ(trainer.validate().tokens, 79);
  EXPECT_EQ(trainer.validate(3).tokens, 24);
}

// A text of one window can be trained on, because its first token follows the last one.
TEST(LanguageTrainer, learns_a_text_of_one_window) {
  TrainingOptions options = few_steps();
  options.steps = 60;
  LanguageTrainer trainer(letters_config({MixerKind::kMamba1}),
                          TokenSequence(Tokens{0, 1, 2, 3, 4, 5, 6, 3}), TokenSequence(), options);
  double loss = 0;
  for (int i = 0; i < 60; ++i) loss = trainer.step();
  EXPECT_LT(loss, 0.2);
  EXPECT_EQ(trainer.epochs(), 60);
}

// Three batches of two windows have the same mean loss and update as one batch of six.
TEST(LanguageTrainer, accumulates_batches_to_one_update) {
  TrainingOptions options = few_steps();
  options.batch = 6;
  const auto make = [&] {
    return LanguageTrainer(letters_config({MixerKind::kMamba1, MixerKind::kMlp}),
                           TokenSequence(letters(6 * 8, 1)), TokenSequence(), options);
  };
  LanguageTrainer at_once = make();
  options.batch = 2;
  options.accumulate = 3;
  LanguageTrainer in_three = make();
  EXPECT_EQ(in_three.tokens_per_step(), at_once.tokens_per_step());
  for (int step = 0; step < 4; ++step) EXPECT_NEAR(in_three.step(), at_once.step(), 2e-5) << step;
  EXPECT_EQ(in_three.steps(), 4);
  EXPECT_EQ(in_three.epochs(), 4) << "all six windows are an update";
  const auto want = at_once.model().weights;
  for (const auto& [name, tensor] : in_three.model().weights) {
    const std::vector<float> a = tensor.floats(), b = want.at(name).floats();
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4) << name;
  }
}

// Returns the change of each element in the first update, divided by the learning rate.
std::map<std::string, std::vector<double>> first_update(TrainingOptions options) {
  options.warmup = 0;
  LanguageTrainer trainer(letters_config({MixerKind::kMamba1, MixerKind::kMamba3}),
                          TokenSequence(letters(61, 1)), TokenSequence(), options);
  const auto before = trainer.model().weights;
  trainer.step();
  std::map<std::string, std::vector<double>> changes;
  for (const auto& [name, tensor] : trainer.model().weights) {
    const std::vector<float> old = before.at(name).floats(), now = tensor.floats();
    for (std::size_t i = 0; i < now.size(); ++i)
      changes[name].push_back((static_cast<double>(now[i]) - old[i]) / options.lr);
  }
  return changes;
}

// The first update of AdamW is lr * g / (|g| + 1e-8). If gradients are that small, they can be
// computed from it.
TEST(LanguageTrainer, clips_the_norm_of_all_gradients) {
  TrainingOptions options = few_steps();
  options.weight_decay = 0;
  for (const double clip : {3e-8, 1e-7}) {
    options.clip_grad_norm = clip;
    double squares = 0;
    for (const auto& [name, changes] : first_update(options)) {
      for (const double change : changes)
        squares += std::pow(1e-8 * change / (1 - std::abs(change)), 2);
    }
    EXPECT_NEAR(std::sqrt(squares), clip, 0.01 * clip);
  }
}

TEST(LanguageTrainer, decays_all_parameters_outside_the_group_without_decay) {
  TrainingOptions options = few_steps();
  options.weight_decay = 0;
  const auto plain = first_update(options);
  options.weight_decay = 0.5;
  const LanguageTrainer as_begun(letters_config({MixerKind::kMamba1, MixerKind::kMamba3}),
                                 TokenSequence(letters(61, 1)), TokenSequence(), options);
  const ParamGroup spared = nn::LanguageModel::no_weight_decay();
  const auto weights = as_begun.model().weights;
  for (const auto& [name, changes] : first_update(options)) {
    const std::vector<float> weight = weights.at(name).floats();
    const double decay = spared.params(name, weights.at(name).shape) ? 0 : 0.5;
    for (std::size_t i = 0; i < changes.size(); ++i)
      ASSERT_NEAR(changes[i] - plain.at(name)[i], -decay * weight[i], 1e-4) << name;
  }
}

TEST(LanguageTrainer, rate_warms_up_and_decays) {
  TrainingOptions options = few_steps();
  options.steps = 9;
  options.final_lr = 1e-3;
  LanguageTrainer trainer(letters_config({MixerKind::kMlp}), TokenSequence(letters(61, 1)),
                          TokenSequence(), options);
  for (int i = 0; i < 11; ++i) {
    const double along = std::min(1.0, (i - 3) / 6.0);
    const double falls = 1e-3 + 9e-3 * (1 + std::cos(along * 3.14159265358979)) / 2;
    const double rate = i < 3 ? 1e-2 * (i + 1) / 4 : falls;
    EXPECT_NEAR(trainer.lr(), rate, 1e-12) << "update " << i;
    trainer.step();
  }
}

// Returns the windows of the first two epochs in order. Identifies them by their losses, with a
// model that does not change.
std::vector<std::int64_t> order_of_windows(std::uint32_t seed) {
  TrainingOptions options = few_steps();
  options.batch = 1;
  options.seed = seed;
  options.lr = options.final_lr = 1e-30;
  const TokenSequence text(letters(75, 1));  // 10 windows
  LanguageTrainer begun(letters_config({MixerKind::kMamba1}), text, TokenSequence(), few_steps());
  LanguageTrainer trainer(begun.model(), text, TokenSequence(), options);
  auto forward = begun.trainer().attach(
      [](const nn::LanguageModel& net, const Inputs& in) {
        return cross_entropy(net(in["tokens"]), in["next"]);
      },
      {.inputs = {{"tokens", {1, 8}, i32}, {"next", {1, 8}, i32}}});
  const TokenDataset windows(text, {.length = 8, .tail = TokenTail::kWrap, .seed = seed});
  std::vector<std::int64_t> order;
  for (std::int64_t step = 0; step < 2 * windows.size(); ++step) {
    const double loss = trainer.step();
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const TokenExample window = windows.at(i, step / windows.size());
      const double nats =
          forward({{"tokens", window.inputs}, {"next", window.targets}}).floats()[0];
      if (std::abs(nats - loss) < 1e-6) order.push_back(i);
    }
  }
  return order;
}

TEST(LanguageTrainer, visits_all_windows_in_the_order_of_the_seed) {
  const std::vector<std::int64_t> order = order_of_windows(4);
  ASSERT_EQ(order.size(), 20U);
  const std::vector<std::int64_t> first(order.begin(), order.begin() + 10),
      second(order.begin() + 10, order.end());
  EXPECT_THAT(first, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(second, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_NE(first, second);
  EXPECT_EQ(order_of_windows(4), order);
  EXPECT_NE(order_of_windows(5), order);
}

// The loss of a text of two documents is the sum of the losses of each document. The second one
// starts with token 0.
TEST(LanguageTrainer, NothingGoesFromOnePackedDocumentToTheNext) {
  const Tokens first = {3, 1, 4, 1, 0}, second = {0, 5, 2, 6};
  Tokens both = first;
  both.insert(both.end(), second.begin() + 1, second.end());
  const auto nats = [](const Tokens& text, std::optional<std::int32_t> start) {
    TrainingOptions options = few_steps();
    options.document_start = start;
    const LanguageModelConfig config = mixed_mamba(kLetters, 16);
    LanguageTrainer trainer(config, TokenSequence(letters(80, 2)), TokenSequence(text), options);
    for (int i = 0; i < 5; ++i) trainer.step();
    const lm::TextScore score = trainer.validate();
    EXPECT_EQ(score.tokens, static_cast<std::int64_t>(text.size()) - 1);
    return score.nats;
  };
  EXPECT_NEAR(nats(both, 0), nats(first, 0) + nats(second, 0), 1e-5);
  EXPECT_GT(std::abs(nats(both, {}) - nats(first, {}) - nats(second, {})), 1e-3);
}

TEST(LanguageTrainer, validation_uses_the_tokens_of_the_window) {
  const LanguageModelConfig config = letters_config({MixerKind::kMamba1});
  const Tokens text = letters(30, 8);  // 29 targets: windows of 8, 8, 8 and 5
  LanguageTrainer trainer(config, TokenSequence(letters(40, 1)), TokenSequence(text), few_steps());
  auto forward = trainer.trainer().attach(
      [](const nn::LanguageModel& net, const Inputs& in) {
        return cross_entropy(net(in["tokens"]), in["next"], Reduction::kSum);
      },
      {.inputs = {{"tokens", {1, kDynamic}, i32}, {"next", {1, kDynamic}, i32}}});
  double nats = 0;
  for (std::size_t at = 0; at < 29; at += 8) {
    const std::size_t end = std::min<std::size_t>(29, at + 8);
    const auto part = [&](std::size_t from, std::size_t to) {
      return Tokens(text.begin() + static_cast<std::ptrdiff_t>(from),
                    text.begin() + static_cast<std::ptrdiff_t>(to));
    };
    nats += forward({{"tokens", part(at, end)}, {"next", part(at + 1, end + 1)}}).floats()[0];
  }
  const lm::TextScore score = trainer.validate();
  EXPECT_EQ(score.tokens, 29);
  EXPECT_NEAR(score.nats, nats, 1e-4);
  EXPECT_NEAR(score.perplexity(), std::exp(nats / 29), 1e-4);
}

TEST(LanguageTrainer, parts_of_the_validation_add_up_to_the_whole) {
  const LanguageModelConfig config = letters_config({MixerKind::kMamba1});
  LanguageTrainer trainer(config, TokenSequence(letters(40, 1)), TokenSequence(letters(86, 8)),
                          few_steps());  // 11 windows of 8, the last one of 5
  const lm::TextScore whole = trainer.validate();
  EXPECT_EQ(whole.tokens, 85);
  for (const int parts : {1, 2, 3, 20}) {
    SCOPED_TRACE(parts);
    lm::TextScore sum;
    std::set<int> calls;
    for (int part = 0; part < parts; ++part) {
      int count = 0;
      const lm::TextScore score =
          trainer.validate({.before_batch = [&] { ++count; }, .num_shards = parts, .shard = part});
      sum.nats += score.nats;
      sum.tokens += score.tokens;
      calls.insert(count);
    }
    EXPECT_EQ(sum.tokens, 85);
    EXPECT_NEAR(sum.nats, whole.nats, 1e-4);
    EXPECT_EQ(calls.size(), 1U);
  }
  const lm::TextScore three = trainer.validate({.max_windows = 3, .num_shards = 2, .shard = 0});
  EXPECT_EQ(three.tokens + trainer.validate({.max_windows = 3, .num_shards = 2, .shard = 1}).tokens,
            trainer.validate(3).tokens);
  EXPECT_THROW((void)trainer.validate({.num_shards = 2, .shard = 2}), UserError);
  EXPECT_THROW((void)trainer.validate({.num_shards = 0}), UserError);
}

// Expects that training changes only attention and the rows [begin, end) of `projection`.
void expect_only_b_and_c(MixerKind kind, const std::string& projection, std::int64_t begin,
                         std::int64_t end, bool biased = false) {
  LanguageModelConfig config = letters_config({kind, MixerKind::kMlp, MixerKind::kAttention, kind});
  config.mamba.x_bias = config.mamba2.bias = biased;
  TrainingOptions options = few_steps();
  options.train_only_bc = true;
  LanguageTrainer trainer(config, TokenSequence(letters(61, 1)), TokenSequence(), options);
  const auto before = trainer.model().weights;
  for (int i = 0; i < 3; ++i) trainer.step();
  for (const auto& [name, tensor] : trainer.model().weights) {
    const std::vector<float> old = before.at(name).floats(), now = tensor.floats();
    if (name.find("layers.2.mixer") != std::string::npos) {  // all of attention is trained
      EXPECT_NE(old, now) << name;
      continue;
    }
    const bool partly = name.ends_with("mixer." + projection + ".weight") ||
                        name.ends_with("mixer." + projection + ".bias");
    if (!partly) {
      EXPECT_EQ(before.at(name).bytes, tensor.bytes) << name;
      continue;
    }
    const std::size_t width = old.size() / static_cast<std::size_t>(tensor.shape[0]);
    for (std::int64_t row = 0; row < tensor.shape[0]; ++row) {
      std::size_t changed = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t at = static_cast<std::size_t>(row) * width + i;
        changed += old[at] != now[at] ? 1 : 0;
      }
      EXPECT_EQ(changed, row >= begin && row < end ? width : 0) << name << ", row " << row;
    }
  }
}

TEST(BAndCAlone, other_rows_stay_unchanged) {
  for (const bool biased : {false, true}) {
    expect_only_b_and_c(MixerKind::kMamba1, "x_proj", 1, 11, biased);    // dt_rank 1, N 5
    expect_only_b_and_c(MixerKind::kMamba2, "in_proj", 48, 60, biased);  // z and x of 24, N 6
  }
  expect_only_b_and_c(MixerKind::kMamba3, "in_proj", 48, 48 + 24);  // two ranks
}

// If nothing is written to the states or nothing is read from them, their decay has no effect. This
// shows that the first half of the rows computes B and the second half C.
TEST(BAndCAlone, selects_the_rows_of_b_and_c) {
  for (const MixerKind kind : {MixerKind::kMamba1, MixerKind::kMamba2}) {
    const LanguageModelConfig config = letters_config({kind});
    const std::vector<ParamGroup> groups = lm::train_only_bc(config);
    const std::string name = std::string("backbone.layers.0.mixer.") +
                             (kind == MixerKind::kMamba1 ? "x_proj" : "in_proj") + ".weight";
    auto forward = compile_function(
        nn::LanguageModel(config),
        [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
        {.inputs = {{"tokens", {1, 9}, i32}}, .device = {.kind = "cpu"}, .seed = 2});
    auto weights = forward.download_params();
    HostTensor& bias = weights.at("backbone.layers.0.mixer.conv1d.bias");  // added after in_proj
    std::fill(bias.bytes.begin(), bias.bytes.end(), std::byte{0});
    const Tokens text = letters(9, 3);
    // Returns the logits if these rows are zero and, with `decays`, the decays are changed.
    const auto run = [&](std::int64_t begin, std::int64_t end, bool decays) {
      auto changed = weights;
      std::vector<float> matrix = weights.at(name).floats();
      const auto width = static_cast<std::int64_t>(matrix.size()) / weights.at(name).shape[0];
      std::fill(matrix.begin() + begin * width, matrix.begin() + end * width, 0.0F);
      changed[name] = HostTensor::from(weights.at(name).shape, matrix);
      HostTensor& logs = changed["backbone.layers.0.mixer.A_log"];
      std::vector<float> values = logs.floats();
      if (decays) {
        for (float& v : values) v += 1;
      }
      logs = HostTensor::from(logs.shape, values);
      forward.upload_params(changed);
      return forward({{"tokens", text}}).floats();
    };
    const RowRange rows = groups[0].rows(name, weights.at(name).shape).at(0);
    const std::int64_t middle = (rows.begin + rows.end) / 2;
    EXPECT_EQ(run(rows.begin, middle, false), run(rows.begin, middle, true));
    EXPECT_EQ(run(middle, rows.end, false), run(middle, rows.end, true));
    EXPECT_NE(run(rows.begin + 1, middle, false), run(rows.begin + 1, middle, true));
    EXPECT_NE(run(rows.begin, middle - 1, false), run(rows.begin, middle - 1, true));
    EXPECT_NE(run(middle + 1, rows.end, false), run(middle + 1, rows.end, true));
    EXPECT_NE(run(middle, rows.end - 1, false), run(middle, rows.end - 1, true));
  }
  EXPECT_THROW(lm::train_only_bc(letters_config({MixerKind::kMlp, MixerKind::kAttention})),
               UserError);
}

TEST(TextScorer, carries_the_state_over_a_long_text) {
  const LanguageModelConfig config = letters_config({MixerKind::kMamba1, MixerKind::kMamba3});
  const Tokens text = letters(100, 8);
  auto forward =
      compile_function(nn::LanguageModel(config),
                       [](const nn::LanguageModel& net, const Inputs& in) {
                         return cross_entropy(net(in["tokens"]), in["next"], Reduction::kSum);
                       },
                       {.inputs = {{"tokens", {1, kDynamic}, i32}, {"next", {1, kDynamic}, i32}},
                        .device = {.kind = "cpu"},
                        .seed = 6});
  const auto nats = [&](std::size_t begin, std::size_t end) {  // of the tokens after `begin`
    const auto at = [&](std::size_t i) { return text.begin() + static_cast<std::ptrdiff_t>(i); };
    return static_cast<double>(forward({{"tokens", Tokens(at(begin), at(end - 1))},
                                        {"next", Tokens(at(begin + 1), at(end))}})
                                   .floats()[0]);
  };
  const lm::SavedModel model{config, forward.download_params(), {}};
  for (const std::int64_t piece : {7, 32, 128}) {
    TextScorer scorer(model, {.chunk = piece, .device = {.kind = "cpu"}});
    const lm::TextScore score = scorer.score(text);
    EXPECT_EQ(score.tokens, 99);
    EXPECT_NEAR(score.nats, nats(0, 100), 2e-3) << piece;
    EXPECT_EQ(scorer.score(text).nats, score.nats) << "each text begins anew";
  }
  TextScorer forgets(model, {.chunk = 10, .context = 20, .device = {.kind = "cpu"}});
  EXPECT_NEAR(forgets.score(text).nats,
              nats(0, 21) + nats(20, 41) + nats(40, 61) + nats(60, 81) + nats(80, 100), 2e-3);
  TextScorer parts(model, {.chunk = 10, .batch = 3, .device = {.kind = "cpu"}});
  EXPECT_NEAR(parts.score(text).nats, nats(0, 34) + nats(33, 67) + nats(66, 100), 2e-3);
  EXPECT_THROW(parts.score(letters(3, 1)), UserError);
}

TEST(TextScorer, context_is_that_of_attention) {
  const LanguageModelConfig config = letters_config({MixerKind::kAttention, MixerKind::kMamba2});
  LanguageTrainer trainer(config, TokenSequence(letters(61, 1)), TokenSequence(), few_steps());
  const Tokens text = letters(50, 2);
  TextScorer whole(trainer.trainer(), config, {.chunk = 5}),
      same(trainer.trainer(), config, {.chunk = 5, .context = 15});
  EXPECT_EQ(whole.score(text).nats, same.score(text).nats);
  EXPECT_THROW(TextScorer(trainer.trainer(), config, {.chunk = 17}), UserError);
  EXPECT_THROW(TextScorer(trainer.trainer(), config, {.chunk = 5, .context = 20}), UserError);
  EXPECT_THROW(TextScorer(trainer.trainer(), config, {.chunk = 5, .context = 7}), UserError);
}

TEST(LanguageTrainer, invalid_options_are_rejected) {
  const auto refusal = [](const TrainingOptions& options, std::int64_t tokens) -> std::string {
    try {
      const LanguageTrainer trainer(letters_config({MixerKind::kMlp}),
                                    TokenSequence(letters(tokens, 1)), TokenSequence(), options);
    } catch (const UserError& error) {
      return error.message();
    }
    return "nothing was thrown";
  };
  TrainingOptions options = few_steps();
  EXPECT_EQ(refusal(options, 7),
            "LanguageTrainer: expected a text of at least 8 tokens (one window), got 7; set a "
            "smaller length for shorter texts");
  options.lr = 0;
  EXPECT_EQ(refusal(options, 50), "LanguageTrainer: lr: expected a number above 0, got 0.000000");
  options.lr = 1e-2;
  options.train_only_bc = true;
  EXPECT_EQ(refusal(options, 50), "train_only_bc: the model has no layer with B and C");
  options.train_only_bc = false;
  LanguageTrainer trainer(letters_config({MixerKind::kMlp}), TokenSequence(Tokens(50, 7)),
                          TokenSequence(), options);
  EXPECT_THROW(trainer.step(), UserError) << "there are 7 letters";
  EXPECT_THROW(trainer.validate(), UserError);
}

}  // namespace
}  // namespace tensorgrad::testing
