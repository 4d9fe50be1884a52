// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/mamba.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nn/mixer_parts.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {
namespace {

std::int64_t dt_rank_of(std::int64_t d_model, const MambaOptions& options) {
  return options.dt_rank > 0 ? options.dt_rank : (d_model + 15) / 16;
}

Linear dt_projection(std::int64_t rank, std::int64_t width, const MambaOptions& options, Loc loc) {
  Linear made(rank, width, true, loc);  // weight: uniform within +-1/sqrt(rank)
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

// Normalizes each group of channels of x [B, L, D] separately.
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

// Returns the decay rate, -A, for the projection `a`.
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

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
