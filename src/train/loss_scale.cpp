// SPDX-License-Identifier: MIT
#include "train/loss_scale.h"

#include <array>
#include <cmath>

#include "base/numbers.h"
#include "ops/registry.h"
#include "ops/structured.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kScaleName = "_loss_scale";
constexpr const char* kCountsName = "_skip_nonfinite";
constexpr LossScale kNoScale = {
    .init_scale = 1, .growth_factor = 2, .backoff_factor = 1, .growth_interval = 0};
constexpr double kMinFactor = 0x1p-100;  // its inverse is finite

void check_scale(const char* what, double value, bool fits, const char* expected) {
  if (fits) return;
  throw UserError(std::string("loss_scale: ") + what + ": expected " + expected + ", got " +
                  number_text(value));
}

void check(const LossScale& options) {
  const double init = options.init_scale, growth = options.growth_factor,
               backoff = options.backoff_factor;
  check_scale("init_scale", init, init >= kMinFactor && init <= 0x1p100,
              "a number between 2^-100 and 2^100");
  check_scale("growth_factor", growth, growth > 1 && std::isfinite(growth), "more than 1");
  check_scale("backoff_factor", backoff, backoff > 0 && backoff <= 1, "more than 0 and at most 1");
  check_scale("growth_interval", options.growth_interval, options.growth_interval >= 0,
              "at least 0");
}

}  // namespace

std::string scale_state(const ParameterRange& trained, bool scales) {
  const std::string name = scales ? kScaleName : kCountsName;
  return trained.objective.empty() ? name : name + "." + trained.objective;
}

bool is_scale_state(const std::string& name) {
  return name.starts_with(kScaleName) || name.starts_with(kCountsName);
}

std::vector<float> unscaled_state(std::int64_t updates) {
  std::vector<float> state(static_cast<std::size_t>(kScaleNumbers));
  state[static_cast<std::size_t>(ScaleNumber::kTaken)] = static_cast<float>(updates);
  return state;
}

// All elements of a state have the same initial value, 0. A factor of 0 stands for the initial
// scale.
LossScaler::LossScaler(Trace& trace, const ParameterRange& trained,
                       const std::optional<LossScale>& options)
    : trace_(trace), scales_(options), options_(options.value_or(kNoScale)) {
  check(options_);
  Builder builder{trace.graph, {}, "loss_scale"};
  old_ = trace.tensor(op::apply(builder, ops::state, {},
                                {{"name", scale_state(trained, scales_)},
                                 {"shape", Shape{kScaleNumbers}},
                                 {"dtype", static_cast<std::int64_t>(DType::kF32)},
                                 {"init", 0.0}}));
  const Composite composite("loss_scale", {});
  factor_ = known(element(old_, ScaleNumber::kFactor));
}

Tensor LossScaler::element(const Tensor& state, ScaleNumber which) {
  return squeeze(narrow(state, 0, static_cast<std::int64_t>(which), 1), 0);
}

Tensor LossScaler::unscale() const {
  const Composite composite("loss_scale", {});
  return 1.0 / factor_;
}

// Compiles to one launch: all intermediate values have the shape of the state, and the norm is read
// from memory. The factor does not grow beyond the range of f32.
void LossScaler::follow(const Tensor& norm, const std::optional<Tensor>& due) {
  const Composite composite("loss_scale", {});
  const Shape shape = {kScaleNumbers};
  const auto old = [&](ScaleNumber which) { return broadcast_to(element(old_, which), shape); };
  OpContext ctx("loss_scale", {});
  const Tensor stored = ctx.out(op::apply(ctx.builder, ops::barrier, {ctx.in(norm)}));
  const Tensor finite = isfinite(broadcast_to(stored, shape));
  const Tensor ends = due ? broadcast_to(*due, shape) : full(shape, 1, boolean);
  const Tensor taken = ends && finite, skipped = ends && !finite;
  const Tensor factor = known(old(ScaleNumber::kFactor));
  const Tensor in_a_row = where(skipped, 0.0, old(ScaleNumber::kInARow) + where(taken, 1.0, 0.0));
  const Tensor grown = factor * options_.growth_factor;
  const Tensor grows = options_.growth_interval > 0
                           ? taken && in_a_row >= options_.growth_interval && isfinite(grown)
                           : full(shape, 0, boolean);
  const Tensor fallen = maximum(factor * options_.backoff_factor, kMinFactor);
  const std::array<Tensor, kScaleNumbers> numbers = {
      where(skipped, fallen, where(grows, grown, factor)),
      where(grows, 0.0, in_a_row),
      old(ScaleNumber::kSkipped) + where(skipped, 1.0, 0.0),
      old(ScaleNumber::kTaken) + where(taken, 1.0, 0.0),
      1.0 / factor,
      where(taken, 1.0, 0.0)};
  const Tensor index = arange(kScaleNumbers);
  new_ = numbers.back();
  for (std::size_t i = numbers.size() - 1; i-- > 0;)
    new_ = where(eq(index, static_cast<std::int64_t>(i)), numbers[i], new_);
  trace_.graph.updates.push_back({old_.id(), new_.id()});
}

Tensor LossScaler::known(const Tensor& kept) const {
  return where(eq(kept, 0.0), options_.init_scale, kept);
}

Tensor LossScaler::number(ScaleNumber which) const { return element(new_, which); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
