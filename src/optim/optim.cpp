// SPDX-License-Identifier: MIT
// Optimizers, in terms of ops.
#include <cmath>
#include <cstdio>
#include <limits>

#include "tensorgrad/optim.h"

namespace tensorgrad::optim {
namespace {

// Throws UserError unless low <= value < below.
void check_range(const std::string& what, double value, double low, double below) {
  if (value >= low && value < below) return;
  char text[160];
  std::snprintf(text, sizeof text, "%s: at least %g and less than %g expected, got %g",
                what.c_str(), low, below, value);
  throw UserError(text);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check_adam(const std::string& name, double beta1, double beta2, double eps,
                double weight_decay) {
  check_range(name + ": beta1", beta1, 0, 1);
  check_range(name + ": beta2", beta2, 0, 1);
  check_range(name + ": eps", eps, 0, kInfinity);
  check_range(name + ": weight_decay", weight_decay, 0, kInfinity);
}

// Weight decay as a run-time scalar, where there is any.
Tensor decay_of(double weight_decay) { return scalar("weight_decay", weight_decay); }

// lr * mhat / (sqrt(vhat) + eps), and the new moments.
Tensor adam_step(Update& u, const Tensor& grad, double beta1, double beta2, double eps) {
  const Tensor m = beta1 * u.state("exp_avg") + (1 - beta1) * grad;
  const Tensor v = beta2 * u.state("exp_avg_sq") + (1 - beta2) * square(grad);
  u.set_state("exp_avg", m);
  u.set_state("exp_avg_sq", v);
  // 1 - beta^t, without the cancellation that the formula has for small t
  const Tensor correction1 = -expm1(u.step * std::log(beta1));
  const Tensor correction2 = -expm1(u.step * std::log(beta2));
  return (u.lr / correction1) * m / (sqrt(v) * rsqrt(correction2) + eps);
}

}  // namespace

void SGD::operator()(Update& u) const {
  check_range("SGD: momentum", momentum, 0, kInfinity);
  check_range("SGD: weight_decay", weight_decay, 0, kInfinity);
  if (nesterov && momentum == 0) throw UserError("SGD: nesterov needs a momentum");
  Tensor g = u.grad;
  if (weight_decay != 0) g = g + decay_of(weight_decay) * u.param;
  if (momentum != 0) {
    const Tensor v = momentum * u.state("momentum_buffer") + g;
    u.set_state("momentum_buffer", v);
    g = nesterov ? g + momentum * v : v;
  }
  u.set_param(u.param - u.lr * g);
}

void Adam::operator()(Update& u) const {
  check_adam("Adam", beta1, beta2, eps, weight_decay);
  Tensor g = u.grad;
  if (weight_decay != 0) g = g + decay_of(weight_decay) * u.param;
  u.set_param(u.param - adam_step(u, g, beta1, beta2, eps));
}

void AdamW::operator()(Update& u) const {
  check_adam("AdamW", beta1, beta2, eps, weight_decay);
  Tensor p = u.param;
  if (weight_decay != 0) p = p * (1.0 - u.lr * decay_of(weight_decay));
  u.set_param(p - adam_step(u, u.grad, beta1, beta2, eps));
}

}  // namespace tensorgrad::optim
