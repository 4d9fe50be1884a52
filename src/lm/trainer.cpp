// SPDX-License-Identifier: MIT
#include "tensorgrad/lm/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "tensorgrad/distributed/communicator.h"
#include "tensorgrad/error.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {
namespace {

// Returns the document of each token, i32 [B, L]: the number of documents that have started so far.
// Returns nullopt if `start` is not set.
std::optional<Tensor> documents_in(Tensor tokens, std::optional<std::int32_t> start, Loc loc) {
  if (!start) return std::nullopt;
  return cumsum(cast(eq(tokens, static_cast<double>(*start)), i32), 1, loc);
}

// Returns a function that computes the loss for `tokens` and `next`, i32 [B, L]. Errors in these
// are the caller's, so they are reported at its location.
auto language_loss(std::optional<std::int32_t> document_start, Loc loc) {
  return [document_start, loc](const nn::LanguageModel& net, const Inputs& in) {
    const Tensor tokens = in["tokens"];
    return net.loss(tokens, in["next"], {}, documents_in(tokens, document_start, loc), loc);
  };
}

// Returns a function that computes the loss of each window in nats, [B]. Targets of kIgnoreIndex do
// not count.
auto window_nats(std::optional<std::int32_t> document_start, Loc loc) {
  return [document_start, loc](const nn::LanguageModel& net, const Inputs& in) {
    const Tensor tokens = in["tokens"];
    const LinearCrossEntropyOptions each{.ignore_index = kIgnoreIndex,
                                         .reduction = Reduction::kNone};
    const std::optional<Tensor> documents = documents_in(tokens, document_start, loc);
    return sum(net.loss(tokens, in["next"], each, documents, loc), 1, false, loc);
  };
}

void check_training(const TrainingOptions& o, Loc loc) {
  const auto demand = [&](bool holds, const char* name, const char* expected, double given) {
    if (holds) return;
    throw UserError(std::string("LanguageTrainer: ") + name + ": expected " + expected + ", got " +
                        std::to_string(given),
                    loc);
  };
  const auto count = [&](const char* name, std::int64_t given) {
    demand(given >= 1, name, "at least 1", static_cast<double>(given));
  };
  count("batch", o.batch);
  count("length", o.length);
  count("steps", o.steps);
  count("accumulate", o.accumulate);
  demand(o.lr > 0 && std::isfinite(o.lr), "lr", "a number above 0", o.lr);
  demand(o.final_lr >= 0 && o.final_lr <= o.lr, "final_lr", "a number from 0 to lr", o.final_lr);
  demand(o.warmup >= 0, "warmup", "0 or more", static_cast<double>(o.warmup));
  demand(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "weight_decay", "0 or more",
         o.weight_decay);
  demand(!o.document_start || *o.document_start >= 0, "document_start", "0 or more",
         o.document_start.value_or(0));
  demand(o.clip_grad_norm >= 0, "clip_grad_norm", "0 or more", o.clip_grad_norm);
}

Schedule rate_of(const TrainingOptions& options) {
  const std::int64_t falling = std::max<std::int64_t>(1, options.steps - options.warmup);
  const Schedule down = Schedule::cosine(options.lr, options.final_lr, falling);
  return options.warmup == 0 ? down : Schedule::warmup(options.warmup, down);
}

CompileOptions compile_options(const nn::LanguageModelConfig& config,
                               const TrainingOptions& options, Loc loc) {
  const Shape tokens = {options.batch, options.length};
  CompileOptions made{.inputs = {{"tokens", tokens, i32}, {"next", tokens, i32}},
                      .optimizer = optim::AdamW{.lr = rate_of(options),
                                                .beta1 = options.beta1,
                                                .beta2 = options.beta2,
                                                .weight_decay = options.weight_decay},
                      .groups = {nn::LanguageModel::no_weight_decay()},
                      .clip_grad_norm = options.clip_grad_norm,
                      .accumulate = options.accumulate,
                      .mixed_precision = options.mixed_precision,
                      .seed = options.seed,
                      .device = options.device,
                      .distributed = options.distributed,
                      .shard_optimizer = options.shard_optimizer,
                      .shard_parameters = options.shard_parameters};
  if (options.train_only_bc) made.groups = train_only_bc(config, true, loc);
  return made;
}

int ranks_of(const TrainingOptions& options) {
  return options.distributed == nullptr ? 1 : options.distributed->size();
}

TokenDataset windows_of(TokenSequence text, const TrainingOptions& options, Loc loc) {
  if (text.size() < options.length) {
    throw UserError("LanguageTrainer: expected a text of at least " +
                        std::to_string(options.length) + " tokens (one window), got " +
                        std::to_string(text.size()) + "; set a smaller length for shorter texts",
                    loc);
  }
  return {std::move(text),
          {.length = options.length,
           .tail = TokenTail::kWrap,
           .batch = options.batch * ranks_of(options),
           .seed = options.seed},
          loc};
}

DataLoader loader_of(const TokenDataset& windows, const TrainingOptions& options, Loc loc) {
  auto get = [windows, length = options.length](std::int64_t index,
                                                std::int64_t epoch) -> NamedTensors {
    const TokenExample window = windows.at(index, epoch);
    return {{"tokens", HostTensor::from({length}, window.inputs)},
            {"next", HostTensor::from({length}, window.targets)}};
  };
  return {windows.size(),
          std::move(get),
          {.batch = options.batch,
           .seed = options.seed,
           .num_shards = ranks_of(options),
           .shard = options.distributed == nullptr ? 0 : options.distributed->rank()},
          loc};
}

// Returns the rows of B and C if a parameter is the weight or bias that computes them, else an
// empty range.
RowRange rows_of_b_and_c(nn::MixerKind kind, const nn::LanguageModelConfig& config,
                         const std::string& name, const Shape& shape) {
  const auto is_of = [&](const std::string& projection) {
    return name == projection + ".weight" || name == projection + ".bias";
  };
  if (kind == nn::MixerKind::kMamba1 && is_of("x_proj")) {
    return {shape[0] - 2 * config.mamba.d_state, shape[0]};
  }
  if ((kind == nn::MixerKind::kMamba2 || kind == nn::MixerKind::kMamba2Shared) &&
      is_of("in_proj")) {
    const std::int64_t begin = 2 * config.mamba2.expand * config.d_model;
    return {begin, begin + 2 * config.mamba2.groups * config.mamba2.d_state};
  }
  if (kind == nn::MixerKind::kMamba3 && is_of("in_proj")) {
    const std::int64_t begin = 2 * config.mamba3.expand * config.d_model;
    return {begin, begin + 2 * config.mamba3.ranks * config.mamba3.d_state};
  }
  return {};
}

struct MixerName {
  std::int64_t layer;
  nn::MixerKind kind;
  std::string name;  // of the parameter in its mixer
};
std::optional<MixerName> mixer_parameter(const nn::LanguageModelConfig& config,
                                         const std::string& name) {
  const auto met = match_pattern("backbone.layers.*.mixer.*", name);
  if (!met) return std::nullopt;
  const auto layer = static_cast<std::size_t>(std::stoll(met->at(0)));
  const bool plain = config.layers.empty();
  return MixerName{static_cast<std::int64_t>(layer),
                   plain ? nn::MixerKind::kMamba1 : config.layers.at(layer), met->at(1)};
}

nn::LanguageModelConfig trained_config(const nn::LanguageModelConfig& config, Loc loc) {
  if (config.weight_format == nn::WeightFormat::kF32) return config;
  throw UserError("LanguageTrainer: " + std::string(nn::to_string(config.weight_format)) +
                      " weights cannot be trained; convert them to f32 with "
                      "quantize(model, nn::WeightFormat::kF32)",
                  loc);
}

}  // namespace

std::vector<ParamGroup> train_only_bc(const nn::LanguageModelConfig& config, bool attention,
                                      Loc loc) {
  const auto has = [&](auto... kinds) {
    return std::any_of(config.layers.begin(), config.layers.end(),
                       [&](nn::MixerKind kind) { return ((kind == kinds) || ...); });
  };
  const bool states =
      config.layers.empty() || has(nn::MixerKind::kMamba1, nn::MixerKind::kMamba2,
                                   nn::MixerKind::kMamba3, nn::MixerKind::kMamba2Shared);
  const bool attends = attention && has(nn::MixerKind::kAttention, nn::MixerKind::kMamba2Shared);
  if (!states && !attends) {
    throw UserError("train_only_bc: the model has no layer with B and C", loc);
  }
  std::vector<ParamGroup> groups;
  const auto rows = [config](const std::string& name, const Shape& shape) {
    const auto of = mixer_parameter(config, name);
    if (!of) return RowRange{};
    return rows_of_b_and_c(of->kind, nn::layer_config(config, of->layer), of->name, shape);
  };
  if (states) {
    ParamGroup group;
    group.name = "b_and_c";
    group.params = [rows](const std::string& name, const Shape& shape) {
      return rows(name, shape).end > 0;
    };
    group.rows = [rows](const std::string& name, const Shape& shape) {
      return std::vector<RowRange>{rows(name, shape)};
    };
    groups.push_back(std::move(group));
  }
  if (attends) {
    ParamGroup group;
    group.name = "attention";
    group.params = [config](const std::string& name, const Shape&) {
      const auto of = mixer_parameter(config, name);
      if (of) return of->kind == nn::MixerKind::kAttention;
      if (match_pattern("backbone.shared.*.attention.*", name)) return true;
      const auto adapter = match_pattern("backbone.layers.*.shared.*.*", name);
      return adapter && (adapter->at(1) == "q" || adapter->at(1) == "k" || adapter->at(1) == "v");
    };
    groups.push_back(std::move(group));
  }
  groups.push_back({.params = "*", .name = "others", .freeze = true});
  return groups;
}

LanguageTrainer::LanguageTrainer(const nn::LanguageModelConfig& config, TokenSequence train,
                                 TokenSequence validation, const TrainingOptions& options, Loc loc)
    : config_(nn::LanguageModel(trained_config(config, loc), loc).config),
      options_((check_training(options, loc), options)),
      validation_(std::move(validation)),
      loader_(loader_of(windows_of(std::move(train), options, loc), options, loc)),
      trainer_(compile(nn::LanguageModel(config, loc), language_loss(options.document_start, loc),
                       compile_options(config_, options, loc), loc)) {
  trainer_.add_loader("text", loader_, loc);
}

LanguageTrainer::LanguageTrainer(const SavedModel& model, TokenSequence train,
                                 TokenSequence validation, const TrainingOptions& options, Loc loc)
    : LanguageTrainer(model.config, std::move(train), std::move(validation), options, loc) {
  trainer_.upload_params(model.weights, {}, loc);
}

double LanguageTrainer::step(Loc loc) {
  double sum = 0;
  for (int i = 0; i < options_.accumulate; ++i)
    sum += trainer_.step(loader_.next(loc), {}, loc).loss;
  return checked_loss(sum, loc);
}

double LanguageTrainer::profiled_step(Profile& profile, Loc loc) {
  double sum = 0;
  for (int i = 1; i < options_.accumulate; ++i)
    sum += trainer_.step(loader_.next(loc), {}, loc).loss;
  profile = trainer_.profile(loader_.next(loc), {}, loc);
  return checked_loss(sum + trainer_.losses(loc).back(), loc);
}

double LanguageTrainer::checked_loss(double sum, Loc loc) const {
  const double loss = sum / options_.accumulate;
  if (std::isfinite(loss)) return loss;
  throw UserError("LanguageTrainer: the loss is " + number_text(loss) + " at step " +
                      std::to_string(steps()) + "; a smaller learning rate may help",
                  loc);
}

double LanguageTrainer::epochs() const {
  const LoaderState at = loader_.state();
  return static_cast<double>(at.epoch) +
         static_cast<double>(at.position) / static_cast<double>(loader_.batches_per_epoch());
}

std::int64_t LanguageTrainer::tokens_per_step() const {
  return options_.batch * options_.length * options_.accumulate * ranks_of(options_);
}

std::int64_t LanguageTrainer::parameters() const {
  std::int64_t count = 0;
  ParameterVisitor visitor(
      [&](const std::string&, const Parameter& parameter) { count += numel(parameter.shape()); });
  nn::LanguageModel(config_).visit_fields(visitor);
  return count;
}

SavedModel LanguageTrainer::model(std::optional<Tokenizer> tokenizer) const {
  return {config_, trainer_.download_params(), std::move(tokenizer)};
}

TextScore LanguageTrainer::validate(const ValidationOptions& options, Loc loc) {
  const std::int64_t batch = options_.batch, length = options_.length;
  if (validation_.size() < 2) {
    throw UserError("LanguageTrainer: validate: the validation text has fewer than two tokens",
                    loc);
  }
  if (options.num_shards < 1 || options.shard < 0 || options.shard >= options.num_shards) {
    throw UserError("LanguageTrainer: validate: expected shard < num_shards, got shard " +
                        std::to_string(options.shard) + " of " + std::to_string(options.num_shards),
                    loc);
  }
  if (!validator_) {
    const Shape shape = {batch, length};
    validator_ = trainer_.attach(window_nats(options_.document_start, loc),
                                 {.inputs = {{"tokens", shape, i32}, {"next", shape, i32}},
                                  .mixed_precision = options_.mixed_precision},
                                 loc);
  }
  const std::int64_t pairs = validation_.size() - 1;
  const std::int64_t windows = (pairs + length - 1) / length;
  const std::int64_t count =
      options.max_windows > 0 ? std::min(options.max_windows, windows) : windows;
  TextScore score;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * length)), next(tokens.size());
  for (std::int64_t round = 0; round < count; round += batch * options.num_shards) {
    if (options.before_batch) options.before_batch();
    const std::int64_t from = round + options.shard * batch;
    // In the last round only, as every part has as many rounds. Sharded parameters are gathered by
    // all ranks in each round.
    if (from >= count && !options_.shard_parameters) break;
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(next.begin(), next.end(), kIgnoreIndex);
    for (std::int64_t row = 0; row < std::min(batch, count - from); ++row) {
      const std::int64_t begin = (from + row) * windows / count * length;
      const std::int64_t here = std::min(length, pairs - begin);
      const auto at = static_cast<std::size_t>(row * length);
      const auto size = static_cast<std::size_t>(here);
      validation_.read(begin, std::span(tokens).subspan(at, size));
      validation_.read(begin + 1, std::span(next).subspan(at, size));
      score.tokens += here;
    }
    for (const float nats : (*validator_)({{"tokens", tokens}, {"next", next}}, loc).floats())
      score.nats += nats;
  }
  return score;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
