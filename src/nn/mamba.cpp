// SPDX-License-Identifier: MIT
// Mamba, and language models of it and of attention.
#include "tensorgrad/nn/mamba.h"
#include "tensorgrad/nn/causal_attention.h"
#include "tensorgrad/nn/gated_mlp.h"
#include "tensorgrad/nn/language_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "nn/layer_options.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

Linear scaled_linear(std::int64_t in, std::int64_t out, std::int64_t residuals, Loc loc,
                     bool bias = false) {
  Linear made(in, out, bias, loc);
  const double bound = 1 / std::sqrt(static_cast<double>(in * residuals));
  made.weight = Parameter({out, in}, init::uniform(-bound, bound), loc);
  return made;
}

std::int64_t dt_rank_of(std::int64_t d_model, const MambaOptions& options) {
  return options.dt_rank > 0 ? options.dt_rank : (d_model + 15) / 16;
}

Linear dt_projection(std::int64_t rank, std::int64_t width, const MambaOptions& options, Loc loc) {
  Linear made(rank, width, true, loc);  // weight uniform in +-1 / sqrt(rank)
  made.bias.emplace(Shape{width},
                    init::inverse_softplus(options.dt_min, options.dt_max, options.dt_floor), loc);
  return made;
}

std::vector<float> log_counts(std::int64_t rows, std::int64_t columns) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(static_cast<float>(std::log(static_cast<double>(i % columns + 1))));
  }
  return values;
}

void demand_taps(const char* what, std::int64_t taps, Loc loc) {
  if (taps >= 2) return;
  throw ShapeError(std::string(what) + ": d_conv must be at least 2, got " + std::to_string(taps),
                   loc);
}

void demand_width(const char* what, const Tensor& x, std::int64_t width, Loc loc) {
  if (x.rank(loc) == 3 && x.size(-1, loc) == width) return;
  throw ShapeError(std::string(what) + ": expected [B, L, " + std::to_string(width) + "], got " +
                       to_string(x.shape(loc)),
                   loc);
}

}  // namespace

Mamba::Mamba(std::int64_t width, const MambaOptions& given, Loc loc)
    : options(given),
      d_model(width),
      d_inner(given.expand * width),
      dt_rank(dt_rank_of(width, given)),
      A_log({d_inner, given.d_state}, init::literal(log_counts(d_inner, given.d_state)), loc),
      D({d_inner}, init::ones(), loc),
      in_proj(width, 2 * d_inner, given.bias, loc),
      conv1d(d_inner, d_inner, given.d_conv, {.groups = d_inner}, given.conv_bias, loc),
      x_proj(d_inner, dt_rank + 2 * given.d_state, given.x_bias, loc),
      dt_proj(dt_projection(dt_rank, d_inner, given, loc)),
      out_proj(scaled_linear(d_inner, width, given.residuals, loc, given.bias)) {
  demand_taps("Mamba", given.d_conv, loc);
  if (!given.b_c_dt_norm_weights) return;
  if (!given.b_c_dt_norm)
    throw UserError("Mamba: b_c_dt_norm_weights is set, but b_c_dt_norm is not", loc);
  dt_norm.emplace(dt_rank, given.norm_epsilon, loc);
  b_norm.emplace(given.d_state, given.norm_epsilon, loc);
  c_norm.emplace(given.d_state, given.norm_epsilon, loc);
}

std::vector<StateSpec> Mamba::state_specs(std::int64_t batch) const {
  return {{"conv", {batch, options.d_conv - 1, d_inner}},
          {"ssm", {batch, d_inner, options.d_state}}};
}

RecurrentResult Mamba::run(Tensor x, const std::vector<Tensor>& state,
                           std::optional<Tensor> documents, Loc loc) const {
  demand_width("Mamba", x, d_model, loc);
  std::optional<Tensor> window, carried, conv_bias;
  if (!state.empty()) {
    window = state.at(0);
    carried = state.at(1);
  }
  if (conv1d.bias) conv_bias = conv1d.bias->tensor(loc);
  const Tensor both = in_proj(x, loc);
  const Tensor gate = narrow(both, -1, d_inner, d_inner, loc);
  const CausalConv conv =
      causal_conv1d(narrow(both, -1, 0, d_inner, loc), conv1d.weight.tensor(loc), conv_bias, window,
                    documents, loc);
  const Tensor u = silu(conv.y, loc);
  const Tensor made = x_proj(u, loc);
  const std::int64_t n = options.d_state;
  const auto part = [&](std::int64_t first, std::int64_t count, const auto& weighed) {
    const Tensor values = narrow(made, -1, first, count, loc);
    if (weighed) return (*weighed)(values, loc);
    return options.b_c_dt_norm ? rms_norm(values, std::nullopt, options.norm_epsilon, loc) : values;
  };
  const Tensor delta =
      linear(part(0, dt_rank, dt_norm), dt_proj.weight.tensor(loc), std::nullopt, loc);
  const SelectiveScan scan = selective_scan(u, delta, -exp(Operand(A_log, loc)),
                                            part(dt_rank, n, b_norm), part(dt_rank + n, n, c_norm),
                                            {.D = D.tensor(loc),
                                             .z = gate,
                                             .delta_bias = dt_proj.bias->tensor(loc),
                                             .delta_softplus = true,
                                             .initial_state = carried,
                                             .discretization = options.discretization,
                                             .documents = documents},
                                            loc);
  return {out_proj(scan.y, loc), {conv.state, scan.state}};
}

Mamba2::Mamba2(std::int64_t width, const Mamba2Options& given, Loc loc)
    : options(given),
      d_model(width),
      d_inner(given.expand * width),
      heads(d_inner / std::max<std::int64_t>(1, given.head_dim)),
      d_conv(d_inner + 2 * given.groups * given.d_state),
      in_proj(width, d_inner + d_conv + heads, given.bias, loc),
      conv1d(d_conv, d_conv, given.d_conv, {.groups = d_conv}, given.conv_bias, loc),
      dt_bias({heads}, init::inverse_softplus(given.dt_min, given.dt_max, given.dt_floor), loc),
      A_log({heads}, init::log_of_uniform(given.a_min, given.a_max), loc),
      D({heads}, init::ones(), loc),
      norm(d_inner, given.norm_epsilon, loc),
      out_proj(scaled_linear(d_inner, width, given.residuals, loc, given.bias)) {
  demand_taps("Mamba2", given.d_conv, loc);
  if (heads * given.head_dim == d_inner && heads % given.groups == 0) return;
  throw ShapeError("Mamba2: head_dim must divide expand * d_model and groups the heads, got " +
                       std::to_string(given.head_dim) + ", " + std::to_string(d_inner) + " and " +
                       std::to_string(given.groups),
                   loc);
}

std::vector<StateSpec> Mamba2::state_specs(std::int64_t batch) const {
  return {{"conv", {batch, options.d_conv - 1, d_conv}},
          {"ssm", {batch, heads, options.head_dim, options.d_state}}};
}

namespace {

// Each group's channels of x [B, L, D] normalised by themselves.
Tensor grouped_norm(const RMSNorm& norm, Tensor x, std::int64_t groups, Loc loc) {
  if (groups == 1) return norm(x, loc);
  Shape parts = x.shape(loc);
  parts.back() /= groups;
  parts.insert(parts.end() - 1, groups);
  const Tensor even = rms_norm(reshape(x, parts, loc), std::nullopt, norm.eps, loc);
  return reshape(even, x.shape(loc), loc) * norm.weight.tensor(loc);
}

}  // namespace

RecurrentResult Mamba2::run(Tensor x, const std::vector<Tensor>& state,
                            std::optional<Tensor> documents, Loc loc) const {
  demand_width("Mamba2", x, d_model, loc);
  std::optional<Tensor> window, carried, conv_bias;
  if (!state.empty()) {
    window = state.at(0);
    carried = state.at(1);
  }
  if (conv1d.bias) conv_bias = conv1d.bias->tensor(loc);
  const Tensor all = in_proj(x, loc);
  const Tensor gate = narrow(all, -1, 0, d_inner, loc);
  const CausalConv conv =
      causal_conv1d(narrow(all, -1, d_inner, d_conv, loc), conv1d.weight.tensor(loc), conv_bias,
                    window, documents, loc);
  const Tensor mixed = silu(conv.y, loc);
  const std::int64_t batch = x.size(0), length = x.size(1), n = options.d_state;
  const std::int64_t wide = options.groups * n;
  const auto grouped = [&](std::int64_t first) {
    return reshape(narrow(mixed, -1, first, wide, loc), {batch, length, options.groups, n}, loc);
  };
  SsdOptions how = {
      .chunk = options.chunk, .D = D.tensor(loc), .initial_state = carried, .documents = documents};
  Tensor dt = narrow(all, -1, d_inner + d_conv, heads, loc);
  if (options.dt_limit_min > 0 || options.dt_limit_max > 0) {
    dt = softplus(Operand(dt + dt_bias.tensor(loc), loc));
    if (options.dt_limit_min > 0) dt = maximum(dt, options.dt_limit_min);
    if (options.dt_limit_max > 0) dt = minimum(dt, options.dt_limit_max);
  } else {
    how.dt_bias = dt_bias.tensor(loc);
    how.dt_softplus = true;
  }
  const Ssd scan = ssd(
      reshape(narrow(mixed, -1, 0, d_inner, loc), {batch, length, heads, options.head_dim}, loc),
      dt, -exp(Operand(A_log, loc)), grouped(d_inner), grouped(d_inner + wide), how, loc);
  const Tensor y = reshape(scan.y, {batch, length, d_inner}, loc) * silu(gate, loc);
  return {out_proj(grouped_norm(norm, y, options.groups, loc), loc), {conv.state, scan.state}};
}

Mamba3::Mamba3(std::int64_t width, const Mamba3Options& given, Loc loc)
    : options(given),
      d_model(width),
      d_inner(given.expand * width),
      heads(d_inner / std::max<std::int64_t>(1, given.head_dim)),
      in_proj(width, 2 * d_inner + 2 * given.ranks * given.d_state + 3 * heads + given.d_state / 2,
              false, loc),
      b_norm(given.d_state, given.norm_epsilon, loc),
      c_norm(given.d_state, given.norm_epsilon, loc),
      b_bias({heads, given.ranks, given.d_state}, init::ones(), loc),
      c_bias({heads, given.ranks, given.d_state}, init::ones(), loc),
      dt_bias({heads}, init::inverse_softplus(given.dt_min, given.dt_max, given.dt_floor), loc),
      D({heads}, init::ones(), loc),
      out_proj(scaled_linear(d_inner, width, given.residuals, loc)) {
  if (heads * given.head_dim != d_inner || given.d_state % 2 != 0 || given.ranks < 1) {
    throw ShapeError(
        "Mamba3: head_dim must divide expand * d_model, d_state must be even and ranks at least 1, "
        "got " +
            std::to_string(given.head_dim) + ", " + std::to_string(d_inner) + ", " +
            std::to_string(given.d_state) + " and " + std::to_string(given.ranks),
        loc);
  }
  if (given.decay == DecayActivation::kSoftplus)
    A_bias.emplace(Shape{heads}, init::inverse_softplus(given.a_min, given.a_max), loc);
  if (given.out_norm != OutNorm::kNone) norm.emplace(d_inner, given.norm_epsilon, loc);
  if (given.ranks == 1) return;
  const Shape factors = {heads, given.ranks, given.head_dim};
  mimo_x.emplace(factors, init::constant(1 / static_cast<double>(given.ranks)), loc);
  mimo_z.emplace(factors, init::ones(), loc);
  mimo_out.emplace(factors, init::ones(), loc);
}

std::vector<StateSpec> Mamba3::state_specs(std::int64_t batch) const {
  const std::int64_t n = options.d_state, r = options.ranks, p = options.head_dim;
  return {{"ssm", {batch, heads, p, n}},
          {"b", {batch, heads, r, n}},
          {"x", {batch, heads, r, p}},
          {"phase", {batch, heads, n / 2}}};
}

namespace {

// The rate of decay, -A, of the projected a.
Tensor decay_rate(Tensor a, const Mamba3& layer, Loc loc) {
  if (layer.A_bias) return softplus(Operand(a + layer.A_bias->tensor(loc), loc));
  const Tensor above = maximum(a, 0.0), below = minimum(a, 0.0);
  return maximum(above + 1.0 / (1.0 - below), layer.options.a_floor);
}

}  // namespace

RecurrentResult Mamba3::run(Tensor x, const std::vector<Tensor>& state,
                            std::optional<Tensor> documents, Loc loc) const {
  demand_width("Mamba3", x, d_model, loc);
  const std::int64_t batch = x.size(0), length = x.size(1), p = options.head_dim;
  const std::int64_t n = options.d_state, r = options.ranks;
  const std::vector<Tensor> made =
      split(in_proj(x, loc), {d_inner, d_inner, r * n, r * n, heads, heads, heads, n / 2}, -1, loc);
  const Shape steps = {batch, length, heads, 1, p}, gates = {batch, length, 1, r, n};
  const auto per_rank = [&](Tensor v, const std::optional<Parameter>& factor) {
    return factor ? v * factor->tensor(loc) : v;
  };
  const auto gate = [&](Tensor v, const RMSNorm& even, const Parameter& bias) {
    return even(reshape(v, gates, loc), loc) + bias.tensor(loc);
  };
  const Tensor inner = reshape(made[1], steps, loc);
  const Tensor dt = softplus(Operand(made[4] + dt_bias.tensor(loc), loc));
  const Tensor rate = -decay_rate(made[5], *this, loc);
  const Tensor theta = broadcast_to(unsqueeze(made[7], 2, loc), {batch, length, heads, n / 2}, loc);
  RotaryScanOptions how = {.chunk = options.chunk, .documents = documents};
  if (!state.empty()) how.initial_state = {state.at(0), state.at(1), state.at(2), state.at(3)};
  const RotaryScan scan =
      rotary_scan(per_rank(inner, mimo_x), dt, rate, sigmoid(Operand(made[6], loc)), theta,
                  gate(made[2], b_norm, b_bias), gate(made[3], c_norm, c_bias), how, loc);
  const Tensor skip = reshape(D.tensor(loc), {heads, 1, 1}, loc);
  const Tensor open = silu(per_rank(reshape(made[0], steps, loc), mimo_z), loc);
  Tensor y = scan.y + inner * skip;
  if (options.out_norm == OutNorm::kBeforeGate) {
    y = rms_norm(y, std::nullopt, norm->eps, loc) *
        reshape(norm->weight.tensor(loc), {heads, 1, p}, loc);
  }
  y = y * open;
  y = reshape(r == 1 ? y : sum(y * mimo_out->tensor(loc), 3, true, loc), {batch, length, d_inner},
              loc);
  if (options.out_norm == OutNorm::kAfterGate) y = (*norm)(y, loc);
  return {out_proj(y, loc), {scan.state.state, scan.state.b, scan.state.x, scan.state.phase}};
}

CausalAttention::CausalAttention(std::int64_t width, std::int64_t count, const Options& given,
                                 Loc loc)
    : options(given),
      d_model(width),
      heads(count),
      kv_heads(given.kv_heads == 0 ? count : given.kv_heads),
      in_proj(1, 1, false, loc),
      out_proj(scaled_linear(width, width, given.residuals, loc, given.bias)) {
  if (heads < 1 || kv_heads < 1 || d_model % heads != 0 || heads % kv_heads != 0) {
    throw ShapeError(
        "CausalAttention: d_model must be a multiple of heads and heads of kv_heads, got " +
            std::to_string(d_model) + ", " + std::to_string(heads) + " and " +
            std::to_string(kv_heads),
        loc);
  }
  const std::int64_t each = d_model / heads;
  if (given.rope_dims < 0 || given.rope_dims > each || given.rope_dims % 2 != 0) {
    throw ShapeError(
        "CausalAttention: rope_dims: expected an even number from 0 to d_model / "
        "heads = " +
            std::to_string(each) + ", got " + std::to_string(given.rope_dims),
        loc);
  }
  in_proj = Linear(d_model, d_model / heads * (heads + 2 * kv_heads), given.bias, loc);
}

std::vector<StateSpec> CausalAttention::state_specs(std::int64_t batch) const {
  const Shape cache = {batch, kv_heads, options.max_length, d_model / heads};
  return {{"k", cache}, {"v", cache}, {"position", {batch}}};
}

namespace {

// The cache with `fresh` [B, H, L, D] written from each sequence's place `position` [B] on.
Tensor written(Tensor cache, Tensor fresh, Tensor position, Loc loc) {
  const std::int64_t batch = cache.size(0), room = cache.size(2), length = fresh.size(2);
  const Tensor place = iota({batch, room}, 1, f32, loc) - unsqueeze(position, 1, loc);
  const Shape whole = cache.shape();
  const auto for_all = [&](Tensor at) {
    return broadcast_to(reshape(at, {batch, 1, room, 1}, loc), whole, loc);
  };
  if (length == 1) return where(for_all(place == 0.0), broadcast_to(fresh, whole, loc), cache);
  const Tensor inside = place >= 0.0 && place < static_cast<double>(length);
  const Tensor index = cast(clamp(place, 0, static_cast<double>(length - 1)), i32);
  return where(for_all(inside), gather(fresh, 2, for_all(index), loc), cache);
}

// x [B, H, L, D] with rotary positions `at` [B, L].
Tensor turned(Tensor x, Tensor at, double base, Loc loc) {
  const std::int64_t batch = x.size(0), length = x.size(2), pairs = x.size(3) / 2;
  const Shape shape = {batch, 1, length, pairs};
  const Tensor angle =
      reshape(at, {batch, 1, length, 1}, loc) *
      exp2(iota(shape, 3, f32, loc) * (-std::log2(base) / static_cast<double>(pairs)));
  const Tensor a = narrow(x, -1, 0, pairs, loc), b = narrow(x, -1, pairs, pairs, loc);
  const Tensor c = cos(angle), s = sin(angle);
  return concat({a * c - b * s, b * c + a * s}, -1, loc);
}

}  // namespace

RecurrentResult CausalAttention::run(Tensor x, const std::vector<Tensor>& state,
                                     std::optional<Tensor> documents, Loc loc) const {
  demand_width("CausalAttention", x, d_model, loc);
  const std::int64_t each = d_model / heads;
  const Tensor all = in_proj(x, loc);
  const auto of_heads = [&](std::int64_t first, std::int64_t count) {
    const Tensor part = narrow(all, -1, first * each, count * each, loc);
    return transpose(reshape(part, {x.size(0), x.size(1), count, each}, loc), 1, 2, loc);
  };
  Tensor q = of_heads(0, heads), k = of_heads(heads, kv_heads);
  Tensor v = of_heads(heads + kv_heads, kv_heads);
  AttentionOptions attending = {.causal = true, .enable_gqa = kv_heads != heads};
  std::vector<Tensor> behind;
  if (documents && !state.empty()) {
    throw UserError("CausalAttention: expected documents or a state, got both", loc);
  }
  std::optional<Tensor> at;  // the positions [B, L], where they are not those of rope()
  if (documents) {
    at = cast(document_positions(*documents, loc), f32);
  } else if (!state.empty()) {
    at = iota({x.size(0), x.size(1)}, 1, f32, loc) + unsqueeze(state.at(2), 1, loc);
  }
  if (options.rope) {
    const std::int64_t dims = options.rope_dims > 0 ? options.rope_dims : each;
    const auto rotated = [&](Tensor all_dims) {
      const Tensor part = dims < each ? narrow(all_dims, -1, 0, dims, loc) : all_dims;
      const Tensor made = at ? turned(part, *at, options.rope_base, loc)
                             : rope(part, {.base = options.rope_base}, loc);
      if (dims == each) return made;
      return concat({made, narrow(all_dims, -1, dims, each - dims, loc)}, -1, loc);
    };
    q = rotated(q);
    k = rotated(k);
  }
  if (documents) {
    const Shape square = {x.size(0), 1, x.size(1), x.size(1)};
    const Tensor back = iota(square, 2, f32, loc) - iota(square, 3, f32, loc);
    attending.mask = back <= reshape(*at, {x.size(0), 1, x.size(1), 1}, loc);
  }
  if (!state.empty()) {
    const Tensor position = state.at(2);
    const std::int64_t length = x.size(1), room = options.max_length;
    k = written(state.at(0), k, position, loc);
    v = written(state.at(1), v, position, loc);
    const Tensor row = iota({length, room}, 0, f32, loc),
                 column = iota({length, room}, 1, f32, loc);
    attending.causal = false;
    attending.mask = column - row <= reshape(position, {x.size(0), 1, 1, 1}, loc);
    behind = {k, v, position + static_cast<double>(length)};
  }
  const Tensor y = scaled_dot_product_attention(q, k, v, attending, loc);
  return {out_proj(reshape(transpose(y, 1, 2, loc), x.shape(loc), loc), loc), behind};
}

GatedMlp::GatedMlp(std::int64_t d_model, std::int64_t inner, std::int64_t residuals, bool bias,
                   Loc loc)
    : width(inner),
      fc1(d_model, 2 * inner, bias, loc),
      fc2(scaled_linear(inner, d_model, residuals, loc, bias)) {}

Tensor GatedMlp::operator()(Tensor x, Loc loc) const {
  const Tensor both = fc1(x, loc);
  const Tensor gate = narrow(both, -1, 0, width, loc), up = narrow(both, -1, width, width, loc);
  return fc2(silu(gate, loc) * up, loc);
}

GeluMlp::GeluMlp(std::int64_t d_model, std::int64_t width, std::int64_t residuals, Loc loc)
    : fc1(d_model, width, true, loc), fc2(scaled_linear(width, d_model, residuals, loc, true)) {}

Tensor GeluMlp::operator()(Tensor x, Loc loc) const {
  return fc2(gelu(fc1(x, loc), GeluApproximation::kTanh, loc), loc);
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
  static constexpr std::pair<const char*, MixerKind> kKinds[] = {
      {"mamba1", MixerKind::kMamba1}, {"mamba2", MixerKind::kMamba2},
      {"mamba3", MixerKind::kMamba3}, {"attention", MixerKind::kAttention},
      {"mlp", MixerKind::kMlp},       {"moe", MixerKind::kMoe}};
  std::string pattern = name;
  if (name == "jamba") pattern = "mamba2 mamba2 mamba2 attention";
  if (name == "zamba") pattern = "mamba3 mamba3 mamba3 mamba3 mamba3 attention";
  std::istringstream words(pattern);
  std::vector<MixerKind> period, layers;
  for (std::string word; words >> word;) {
    const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                           [&](const auto& each) { return word == each.first; });
    if (found == std::end(kKinds)) {
      throw UserError("mixer_schedule: unknown schedule '" + name +
                          "'; expected jamba, zamba, or a list of mamba1, mamba2, mamba3, "
                          "attention, mlp and moe",
                      loc);
    }
    period.push_back(found->second);
  }
  if (period.empty()) throw UserError("mixer_schedule: expected the name of a schedule", loc);
  for (std::int64_t i = 0; i < n_layer; ++i)
    layers.push_back(period[static_cast<std::size_t>(i) % period.size()]);
  return layers;
}

MixerBlock::MixerBlock(MixerKind kind, const LanguageModelConfig& config, Loc loc)
    : norm(config.norm, config.d_model, config.norm_epsilon, loc) {
  const auto of_many = [&](auto options) {
    options.residuals = config.n_layer;
    return options;
  };
  switch (kind) {
    case MixerKind::kMamba1: mamba.emplace(config.d_model, of_many(config.mamba), loc); break;
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
}

std::vector<StateSpec> MixerBlock::state_specs(std::int64_t batch) const {
  if (mamba) return mamba->state_specs(batch);
  if (mamba2) return mamba2->state_specs(batch);
  if (mamba3) return mamba3->state_specs(batch);
  if (attention) return attention->state_specs(batch);
  return {};
}

namespace {

// Numbers of packed documents that are not finite. Products of matrices multiply those of one
// document by the zeros between it and others, and NaN times 0 is NaN: so they are taken out before
// a mixer, and what comes after them in their document is NaN behind it.
struct SpoiledSteps {
  SpoiledSteps(Tensor& x, Tensor documents, Loc loc) : steps(take_out(x, documents, loc)) {}

  // x [B, L, D], NaN from the first such step of a document on.
  [[nodiscard]] Tensor put_back(Tensor x, Loc loc) const {
    return where(unsqueeze(steps, -1, loc), kNan, x);
  }
  // A state [B, ..] after the last step.
  [[nodiscard]] Tensor put_back_last(Tensor state, Loc loc) const {
    Shape rows(state.shape(loc).size(), 1);
    rows[0] = state.size(0, loc);
    const Tensor last = narrow(steps, 1, steps.size(1, loc) - 1, 1, loc);
    return where(reshape(last, rows, loc), kNan, state);
  }

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  static Tensor take_out(Tensor& x, Tensor documents, Loc loc) {
    const Tensor finite = all(isfinite(Operand(x, loc)), -1, true, loc);  // [B, L, 1]
    x = where(finite, x, 0.0);
    const Tensor step = iota(documents.shape(loc), 1, i32, loc);
    const Tensor last = cummax(where(squeeze(finite, -1, loc), -1, step), 1, loc).values;
    return last >= step - document_positions(documents, loc);
  }

  Tensor steps;  // bool [B, L]
};

}  // namespace

RecurrentResult MixerBlock::run(Tensor x, const std::vector<Tensor>& state,
                                std::optional<Tensor> documents, Loc loc) const {
  Tensor h = norm(x, loc);
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
  if (config.n_positions == 0) return config;
  LanguageModelConfig options = config;
  options.layers.clear();  // not copied for each layer
  for (std::int64_t i = 0; i < config.n_layer; ++i) {
    if (config.layers[static_cast<std::size_t>(i)] != MixerKind::kAttention ||
        !layer_config(options, i, loc).attention.rope) {
      continue;
    }
    throw UserError(
        "LanguageModel: n_positions: learned positions cannot be combined with "
        "attention.rope; expected attention.rope = false",
        loc);
  }
  const auto limit = [&](CausalAttention::Options& attention) {
    attention.max_length = std::min(attention.max_length, config.n_positions);
  };
  limit(config.attention);
  for (LayerOptions& entry : config.layer_options) {
    if (entry.attention) limit(entry.attention->options);
  }
  return config;
}

}  // namespace

namespace {

// Those of large products.
std::vector<Linear*> matrices_of(MixerBlock& block) {
  if (block.mamba) return {&block.mamba->in_proj, &block.mamba->x_proj, &block.mamba->out_proj};
  if (block.mamba2) return {&block.mamba2->in_proj, &block.mamba2->out_proj};
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
               BlockNorm(config.norm, config.d_model, config.norm_epsilon, loc)} {
  backbone.embedding.weight =
      Parameter({config.vocab_size, config.d_model}, init::normal(0, 0.02), loc);
  if (config.n_positions > 0) {
    backbone.position_embedding.emplace(config.n_positions, config.d_model, loc);
    backbone.position_embedding->weight =
        Parameter({config.n_positions, config.d_model}, init::normal(0, 0.02), loc);
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    backbone.layers.emplace_back(config.layers[i],
                                 layer_config(config, static_cast<std::int64_t>(i), loc), loc);
  }
  if (!config.tie_embeddings) lm_head.emplace(config.d_model, config.vocab_size, false, loc);
  if (config.weight_format == WeightFormat::kF32) return;
  backbone.embedding.quantize(config.weight_format, loc);
  for (MixerBlock& block : backbone.layers) {
    for (Linear* each : matrices_of(block)) each->quantize(config.weight_format, loc);
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
  for (const MixerBlock& block : backbone.layers) x = block.run(x, {}, documents, loc).y;
  return x;
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
  for (std::size_t i = 0; i < backbone.layers.size(); ++i) {
    const MixerBlock& block = backbone.layers[i];
    const std::vector<StateSpec> parts = block.state_specs(batch);
    const std::string prefix = "layers." + std::to_string(i) + ".";
    std::vector<Tensor> before;
    for (const StateSpec& part : parts) {
      Shape rows(part.shape.size(), 1);
      rows[0] = batch;
      // Not a product: what begins anew forgets a NaN, too.
      before.push_back(where(reshape(keep, rows, loc) != 0.0,
                             state(prefix + part.name, part.shape, 0, f32, loc), 0.0));
    }
    const RecurrentResult made = block.run(x, before, std::nullopt, loc);
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
