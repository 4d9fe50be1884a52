// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/language_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "nn/layer_options.h"
#include "nn/spoiled_steps.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

namespace {

// Names of the enumerators of MixerKind, in their order.
constexpr std::array<std::string_view, 7> kMixerKinds = {
    "mamba1", "mamba2", "mamba3", "attention", "mlp", "moe", "mamba2_shared"};
static_assert(kMixerKinds.size() == static_cast<std::size_t>(MixerKind::kMamba2Shared) + 1);

}  // namespace

std::string_view to_string(MixerKind kind) {
  return kMixerKinds.at(static_cast<std::size_t>(kind));
}

std::optional<MixerKind> parse_mixer_kind(std::string_view name) {
  for (std::size_t i = 0; i < kMixerKinds.size(); ++i) {
    if (kMixerKinds[i] == name) return static_cast<MixerKind>(i);
  }
  return std::nullopt;
}

BlockNorm::BlockNorm(NormKind kind, std::int64_t size, double epsilon, Loc loc) {
  if (kind == NormKind::kRmsNorm) {
    rms.emplace(size, epsilon, loc);
  } else {
    layer.emplace(size, epsilon, true, loc);
  }
}

void BlockNorm::visit_fields(ParameterVisitor& visitor) const {
  if (rms) rms->visit_fields(visitor);
  if (layer) layer->visit_fields(visitor);
}

Tensor BlockNorm::operator()(Tensor x, Loc loc) const {
  return rms ? (*rms)(x, loc) : (*layer)(x, loc);
}

LanguageModelConfig gpt2_config(std::int64_t vocab_size, std::int64_t d_model, std::int64_t blocks,
                                std::int64_t heads, std::int64_t n_positions) {
  LanguageModelConfig config{.vocab_size = vocab_size, .d_model = d_model, .n_layer = 2 * blocks};
  for (std::int64_t i = 0; i < blocks; ++i)
    config.layers.insert(config.layers.end(), {MixerKind::kAttention, MixerKind::kMlp});
  config.heads = heads;
  config.attention.max_length = n_positions;
  config.attention.rope = false;
  config.attention.bias = true;
  config.mlp_width = 4 * d_model;
  config.norm = NormKind::kLayerNorm;
  config.mlp = MlpKind::kGelu;
  config.n_positions = n_positions;
  return config;
}

std::vector<MixerKind> mixer_schedule(const std::string& name, std::int64_t n_layer, Loc loc) {
  std::string pattern = name;
  if (name == "jamba") pattern = "mamba2 mamba2 mamba2 attention";
  if (name == "zamba") pattern = "mamba3 mamba3 mamba3 mamba3 mamba3 attention";
  std::istringstream words(pattern);
  std::vector<MixerKind> period, layers;
  for (std::string word; words >> word;) {
    const std::optional<MixerKind> kind = parse_mixer_kind(word);
    if (!kind) {
      throw UserError("mixer_schedule: unknown schedule '" + name +
                          "'; expected jamba, zamba, or a list of mamba1, mamba2, mamba3, "
                          "attention, mlp, moe and mamba2_shared",
                      loc);
    }
    period.push_back(*kind);
  }
  if (period.empty()) throw UserError("mixer_schedule: expected the name of a schedule", loc);
  for (std::int64_t i = 0; i < n_layer; ++i)
    layers.push_back(period[static_cast<std::size_t>(i) % period.size()]);
  return layers;
}

MixerBlock::MixerBlock(MixerKind kind, const LanguageModelConfig& config, Loc loc)
    : MixerBlock(kind, config, 0, loc) {}

MixerBlock::MixerBlock(MixerKind kind, const LanguageModelConfig& config, std::int64_t shared_block,
                       Loc loc)
    : norm(config.norm, config.d_model, config.norm_epsilon, loc) {
  const auto of_many = [&](auto options) {
    options.residuals = config.n_layer;
    return options;
  };
  switch (kind) {
    case MixerKind::kMamba1: mamba.emplace(config.d_model, of_many(config.mamba), loc); break;
    case MixerKind::kMamba2Shared:
      shared.emplace(config.d_model, config.shared, shared_block, loc);
      [[fallthrough]];
    case MixerKind::kMamba2: mamba2.emplace(config.d_model, of_many(config.mamba2), loc); break;
    case MixerKind::kMamba3: mamba3.emplace(config.d_model, of_many(config.mamba3), loc); break;
    case MixerKind::kAttention:
      attention.emplace(config.d_model, config.heads, of_many(config.attention), loc);
      break;
    case MixerKind::kMlp: {
      if (config.mlp == MlpKind::kGelu) {
        gelu_mlp.emplace(config.d_model,
                         config.mlp_width > 0 ? config.mlp_width : 4 * config.d_model,
                         config.n_layer, loc);
        break;
      }
      const std::int64_t usual = (config.d_model * 8 / 3 + 7) / 8 * 8;
      mlp.emplace(config.d_model, config.mlp_width > 0 ? config.mlp_width : usual, config.n_layer,
                  config.mlp_bias, loc);
      break;
    }
    case MixerKind::kMoe: moe.emplace(config.d_model, of_many(config.moe), loc); break;
  }
}

void MixerBlock::visit_fields(ParameterVisitor& visitor) const {
  detail::visit_field(visitor, "norm", norm);
  detail::visit_field(visitor, "mixer", mamba);
  detail::visit_field(visitor, "mixer", mamba2);
  detail::visit_field(visitor, "mixer", mamba3);
  detail::visit_field(visitor, "mixer", attention);
  detail::visit_field(visitor, "mixer", mlp);
  detail::visit_field(visitor, "mixer", gelu_mlp);
  detail::visit_field(visitor, "mixer", moe);
  detail::visit_field(visitor, "shared", shared);
}

std::vector<StateSpec> MixerBlock::state_specs(std::int64_t batch) const {
  if (mamba) return mamba->state_specs(batch);
  if (mamba2) return mamba2->state_specs(batch);
  if (mamba3) return mamba3->state_specs(batch);
  if (attention) return attention->state_specs(batch);
  return {};
}

RecurrentResult MixerBlock::run(Tensor x, const std::vector<Tensor>& state,
                                std::optional<Tensor> documents, Loc loc) const {
  if (shared)
    throw UserError("MixerBlock: a block of mamba2_shared is run by run_shared(), got run()", loc);
  return mix(x, x, state, documents, loc);
}

RecurrentResult MixerBlock::run_shared(Tensor x, Tensor embedded,
                                       const SharedTransformer& transformer,
                                       const std::vector<Tensor>& state,
                                       std::optional<Tensor> documents, Loc loc) const {
  if (!shared) {
    throw UserError("MixerBlock: only a block of mamba2_shared is run by run_shared(); use run()",
                    loc);
  }
  std::vector<Tensor> own;  // the states of the mixer
  std::vector<Tensor> attended;
  if (!state.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(transformer.state_specs(1).size());
    attended.assign(state.begin(), state.begin() + first);
    own.assign(state.begin() + first, state.end());
  }
  RecurrentResult added = transformer.run(x, embedded, *shared, attended, documents, loc);
  RecurrentResult made = mix(x, x + added.y, own, documents, loc);
  made.state.insert(made.state.begin(), added.state.begin(), added.state.end());
  return made;
}

RecurrentResult MixerBlock::mix(Tensor x, Tensor in, const std::vector<Tensor>& state,
                                std::optional<Tensor> documents, Loc loc) const {
  Tensor h = norm(in, loc);
  std::optional<SpoiledSteps> spoiled;
  if (documents && !mlp && !gelu_mlp && !moe) spoiled.emplace(h, *documents, loc);
  RecurrentResult made;
  if (mamba) {
    made = mamba->run(h, state, documents, loc);
  } else if (mamba2) {
    made = mamba2->run(h, state, documents, loc);
  } else if (mamba3) {
    made = mamba3->run(h, state, documents, loc);
  } else if (attention) {
    made = attention->run(h, state, documents, loc);
  } else {
    made.y = mlp ? (*mlp)(h, loc) : gelu_mlp ? (*gelu_mlp)(h, loc) : (*moe)(h, loc);
  }
  if (spoiled) {
    made.y = spoiled->put_back(made.y, loc);
    for (Tensor& part : made.state) part = spoiled->put_back_last(part, loc);
  }
  made.y = x + made.y;
  return made;
}

namespace {

std::int64_t layer_count(const LanguageModelConfig& config, MixerKind kind) {
  return std::count(config.layers.begin(), config.layers.end(), kind);
}

void check_shared_options(const SharedTransformer::Options& options, Loc loc) {
  const auto check = [&](const char* what, std::int64_t least, std::int64_t given) {
    if (given >= least) return;
    throw UserError("LanguageModel: shared." + std::string(what) + ": expected " +
                        std::to_string(least) + " or more, got " + std::to_string(given),
                    loc);
  };
  check("blocks", 1, options.blocks);
  check("heads", 1, options.heads);
  check("mlp_width", 0, options.mlp_width);
  check("adapter_rank", 0, options.adapter_rank);
  if (!options.attention_adapters || options.adapter_rank > 0) return;
  throw UserError("LanguageModel: shared.attention_adapters: expected an adapter_rank above 0",
                  loc);
}

LanguageModelConfig checked_config(LanguageModelConfig config, Loc loc) {
  if (config.vocab_size < 1 || config.d_model < 1 || config.n_layer < 1) {
    throw UserError("LanguageModel: vocab_size, d_model and n_layer must be given", loc);
  }
  if (config.layers.empty()) {
    config.layers = mixer_schedule("mamba1", config.n_layer, loc);
  }
  if (static_cast<std::int64_t>(config.layers.size()) != config.n_layer) {
    throw UserError("LanguageModel: expected " + std::to_string(config.n_layer) + " layers, got " +
                        std::to_string(config.layers.size()),
                    loc);
  }
  if (config.n_positions < 0) {
    throw UserError(
        "LanguageModel: n_positions: expected 0 or more, got " + std::to_string(config.n_positions),
        loc);
  }
  check_layer_options(config, loc);
  const bool shares = layer_count(config, MixerKind::kMamba2Shared) > 0;
  if (shares) check_shared_options(config.shared, loc);
  if (config.n_positions == 0) return config;
  LanguageModelConfig options = config;
  options.layers.clear();  // avoids a copy for each layer
  const auto refuse_rope = [&](bool rope, const std::string& what) {
    if (!rope) return;
    throw UserError("LanguageModel: n_positions: learned positions cannot be combined with " +
                        what + "; expected " + what + " = false",
                    loc);
  };
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    if (config.layers[static_cast<std::size_t>(i)] == MixerKind::kAttention)
      refuse_rope(layer_config(options, i, loc).attention.rope, "attention.rope");
  }
  refuse_rope(shares && config.shared.attention.rope, "shared.attention.rope");
  const auto limit = [&](CausalAttention::Options& attention) {
    attention.max_length = std::min(attention.max_length, config.n_positions);
  };
  limit(config.attention);
  limit(config.shared.attention);
  for (LayerOptions& entry : config.layer_options) {
    if (entry.attention) limit(entry.attention->options);
  }
  return config;
}

}  // namespace

namespace {

// Returns the projections of a block that are quantized, the large ones.
std::vector<Linear*> quantized_projections(MixerBlock& block) {
  if (block.mamba) return {&block.mamba->in_proj, &block.mamba->x_proj, &block.mamba->out_proj};
  if (block.mamba2) {
    std::vector<Linear*> all = {&block.mamba2->in_proj, &block.mamba2->out_proj};
    if (block.shared) {
      all.push_back(&block.shared->out);
      for (auto* adapter :
           {&block.shared->q, &block.shared->k, &block.shared->v, &block.shared->mlp}) {
        if (*adapter) all.insert(all.end(), {&(*adapter)->down, &(*adapter)->up});
      }
    }
    return all;
  }
  if (block.mamba3) return {&block.mamba3->in_proj, &block.mamba3->out_proj};
  if (block.attention) return {&block.attention->in_proj, &block.attention->out_proj};
  if (block.gelu_mlp) return {&block.gelu_mlp->fc1, &block.gelu_mlp->fc2};
  if (block.moe) return {&block.moe->fc1, &block.moe->fc2};
  return {&block.mlp->fc1, &block.mlp->fc2};
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& given, Loc loc)
    : config(checked_config(given, loc)),
      backbone{Embedding(config.vocab_size, config.d_model, loc),
               {},
               {},
               BlockNorm(config.norm, config.d_model, config.norm_epsilon, loc),
               {}} {
  backbone.embedding.weight =
      Parameter({config.vocab_size, config.d_model}, init::normal(0, 0.02), loc);
  if (config.n_positions > 0) {
    backbone.position_embedding.emplace(config.n_positions, config.d_model, loc);
    backbone.position_embedding->weight =
        Parameter({config.n_positions, config.d_model}, init::normal(0, 0.02), loc);
  }
  const std::int64_t uses = layer_count(config, MixerKind::kMamba2Shared);
  SharedTransformer::Options shared = config.shared;
  shared.attention.residuals = config.n_layer;
  for (std::int64_t i = 0; i < std::min(uses, shared.blocks); ++i)
    backbone.shared.emplace_back(config.d_model, shared, config.norm_epsilon, loc);
  std::int64_t use = 0;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    backbone.layers.emplace_back(config.layers[i],
                                 layer_config(config, static_cast<std::int64_t>(i), loc),
                                 use % std::max<std::int64_t>(1, shared.blocks), loc);
    if (config.layers[i] == MixerKind::kMamba2Shared) ++use;
  }
  if (!config.tie_embeddings) lm_head.emplace(config.d_model, config.vocab_size, false, loc);
  if (config.weight_format == WeightFormat::kF32) return;
  backbone.embedding.quantize(config.weight_format, loc);
  for (MixerBlock& block : backbone.layers) {
    for (Linear* each : quantized_projections(block)) each->quantize(config.weight_format, loc);
  }
  for (SharedTransformer& block : backbone.shared) {
    for (Linear* each :
         {&block.attention.in_proj, &block.attention.out_proj, &block.fc1, &block.fc2})
      each->quantize(config.weight_format, loc);
  }
  if (lm_head) lm_head->quantize(config.weight_format, loc);
}

Tensor LanguageModel::operator()(Tensor tokens, Loc loc) const {
  return logits(hidden(tokens, std::nullopt, loc), loc);
}
Tensor LanguageModel::operator()(Tensor tokens, Tensor documents, Loc loc) const {
  return logits(hidden(tokens, documents, loc), loc);
}

Tensor LanguageModel::hidden(Tensor tokens, std::optional<Tensor> documents, Loc loc) const {
  Tensor x = backbone.embedding(tokens, loc);
  if (documents && documents->shape(loc) != tokens.shape(loc)) {
    throw ShapeError("LanguageModel: expected documents " + to_string(tokens.shape(loc)) +
                         ", got " + to_string(documents->shape(loc)),
                     loc);
  }
  if (backbone.position_embedding && documents) {
    x = x + embedded_positions(cast(document_positions(*documents, loc), f32), loc);
  } else if (backbone.position_embedding) {
    const std::int64_t length = tokens.size(-1, loc);
    if (length > config.n_positions) {
      throw ShapeError(
          "LanguageModel: expected at most n_positions = " + std::to_string(config.n_positions) +
              " tokens, got " + std::to_string(length),
          loc);
    }
    x = x + narrow(backbone.position_embedding->weight.tensor(loc), 0, 0, length, loc);
  }
  const Tensor embedded = x;
  for (const MixerBlock& block : backbone.layers)
    x = run_layer(block, x, embedded, {}, documents, loc).y;
  return x;
}

RecurrentResult LanguageModel::run_layer(const MixerBlock& block, Tensor x, Tensor embedded,
                                         const std::vector<Tensor>& state,
                                         std::optional<Tensor> documents, Loc loc) const {
  if (!block.shared) return block.run(x, state, documents, loc);
  const SharedTransformer& transformer =
      backbone.shared.at(static_cast<std::size_t>(block.shared->block));
  return block.run_shared(x, embedded, transformer, state, documents, loc);
}

std::vector<StateSpec> LanguageModel::layer_states(const MixerBlock& block,
                                                   std::int64_t batch) const {
  std::vector<StateSpec> own = block.state_specs(batch);
  if (!block.shared) return own;
  std::vector<StateSpec> all =
      backbone.shared.at(static_cast<std::size_t>(block.shared->block)).state_specs(batch);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

Tensor LanguageModel::hidden_states(Tensor tokens, std::optional<Tensor> documents, Loc loc) const {
  return backbone.norm_f(hidden(tokens, documents, loc), loc);
}

Tensor LanguageModel::embed(Tensor tokens, Tensor lengths, Pooling pooling, Loc loc) const {
  const Tensor x = hidden_states(tokens, std::nullopt, loc);
  const std::int64_t batch = x.size(0, loc), length = x.size(1, loc);
  if (lengths.dtype() != i32) {
    throw DtypeError("LanguageModel: expected i32 lengths, got " +
                         std::string(tensorgrad::to_string(lengths.dtype())),
                     loc);
  }
  if (lengths.shape(loc) != Shape{batch}) {
    throw ShapeError("LanguageModel: expected lengths " + to_string(Shape{batch}) + ", got " +
                         to_string(lengths.shape(loc)),
                     loc);
  }
  const Tensor count = clamp(cast(lengths, f32), 1, static_cast<double>(length));
  if (pooling == Pooling::kLast) {
    const Tensor last = reshape(cast(count - 1.0, i32), {batch, 1, 1}, loc);
    return squeeze(gather(x, 1, broadcast_to(last, {batch, 1, x.size(2)}, loc), loc), 1, loc);
  }
  const Tensor inside = iota({batch, length}, 1, f32, loc) < unsqueeze(count, 1, loc);
  return sum(where(unsqueeze(inside, 2, loc), x, 0.0), 1, false, loc) / unsqueeze(count, 1, loc);
}

Tensor LanguageModel::loss(Tensor tokens, Tensor next, const LinearCrossEntropyOptions& options,
                           std::optional<Tensor> documents, Loc loc) const {
  const Tensor x = hidden(tokens, documents, loc);
  if (lm_head ? lm_head->quantized.has_value() : backbone.embedding.quantized.has_value()) {
    return cross_entropy(logits(x, loc), next,
                         {.ignore_index = options.ignore_index,
                          .label_smoothing = options.label_smoothing,
                          .reduction = options.reduction},
                         loc);
  }
  const Parameter& weight = lm_head ? lm_head->weight : backbone.embedding.weight;
  return linear_cross_entropy(backbone.norm_f(x, loc), weight.tensor(loc), next, options, loc);
}

Tensor LanguageModel::logits(Tensor x, Loc loc) const {
  x = backbone.norm_f(x, loc);
  return lm_head ? (*lm_head)(x, loc) : backbone.embedding.times(x, loc);
}

Tensor LanguageModel::resume(Tensor tokens, Tensor keep, Loc loc) const {
  return logits(resumed(tokens, keep, loc), loc);
}

Tensor LanguageModel::resume_last(Tensor tokens, Tensor keep, Loc loc) const {
  const Tensor x = resumed(tokens, keep, loc);
  return logits(squeeze(narrow(x, 1, x.size(1, loc) - 1, 1, loc), 1, loc), loc);
}

Tensor LanguageModel::resumed(Tensor tokens, Tensor keep, Loc loc) const {
  const std::int64_t batch = tokens.size(0, loc);
  Tensor x = backbone.embedding(tokens, loc);
  if (backbone.position_embedding) x = x + resumed_positions(tokens, keep, loc);
  const Tensor embedded = x;
  for (std::size_t i = 0; i < backbone.layers.size(); ++i) {
    const MixerBlock& block = backbone.layers[i];
    const std::vector<StateSpec> parts = layer_states(block, batch);
    const std::string prefix = "layers." + std::to_string(i) + ".";
    std::vector<Tensor> before;
    for (const StateSpec& part : parts) {
      Shape rows(part.shape.size(), 1);
      rows[0] = batch;
      const Tensor kept = state(prefix + part.name, part.shape, 0, f32, loc);
      // Not a product with `keep`: a new sequence must not inherit NaN.
      before.push_back(part.cleared ? where(reshape(keep, rows, loc) != 0.0, kept, 0.0) : kept);
    }
    const RecurrentResult made = run_layer(block, x, embedded, before, std::nullopt, loc);
    for (std::size_t k = 0; k < parts.size(); ++k)
      set_state(prefix + parts[k].name, made.state.at(k), loc);
    x = made.y;
  }
  return x;
}

Tensor LanguageModel::resumed_positions(Tensor tokens, Tensor keep, Loc loc) const {
  const std::int64_t batch = tokens.size(0, loc), length = tokens.size(1, loc);
  const Tensor begin = where(keep != 0.0, state("position", {batch}, 0, f32, loc), 0.0);
  set_state("position", begin + static_cast<double>(length), loc);
  return embedded_positions(iota({batch, length}, 1, f32, loc) + unsqueeze(begin, 1, loc), loc);
}

Tensor LanguageModel::embedded_positions(Tensor at, Loc loc) const {
  const auto last = static_cast<double>(config.n_positions - 1);
  const Tensor rows =
      (*backbone.position_embedding)(cast(minimum(at, last), i32), loc);  // [B, L, d_model]
  return where(unsqueeze(at <= last, 2, loc), rows, std::numeric_limits<double>::quiet_NaN());
}

ParamGroup LanguageModel::no_weight_decay() {
  ParamGroup group;
  group.params = [](const std::string& name, const Shape& shape) {
    const std::string last = name.substr(name.find_last_of('.') + 1);
    return shape.size() < 2 || last == "A_log" || last.ends_with("bias") ||
           last.starts_with("mimo_");
  };
  group.name = "no_decay";
  group.weight_decay = 0;
  return group;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
