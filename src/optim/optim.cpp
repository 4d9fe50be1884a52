// SPDX-License-Identifier: MIT
// Optimizers, composed of ops.
#include "tensorgrad/optim/optimizers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/numbers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Throws UserError unless low <= value < below.
void check_range(const std::string& what, double value, double low = 0, double below = kInfinity) {
  if (value >= low && value < below) return;
  throw UserError(format_text("%s: expected at least %g and less than %g, got %g", what.c_str(),
                              low, below, value));
}

void check_adam(const std::string& name, double beta1, double beta2, double eps,
                double weight_decay) {
  check_range(name + ": beta1", beta1, 0, 1);
  check_range(name + ": beta2", beta2, 0, 1);
  check_range(name + ": eps", eps);
  check_range(name + ": weight_decay", weight_decay);
}

Tensor descent(const Update& u, bool maximize) { return maximize ? -u.grad : u.grad; }

// Returns the gradient plus weight decay.
Tensor decayed_gradient(Update& u, const Tensor& grad, double weight_decay) {
  const auto decay = u.weight_decay(weight_decay);
  return decay ? grad + *decay * u.param : grad;
}

// Returns the parameter after decoupled weight decay.
Tensor decayed_param(Update& u, double weight_decay) {
  const auto decay = u.weight_decay(weight_decay);
  return decay ? u.param * (1.0 - u.lr * *decay) : u.param;
}

// The decay of a running mean, less than 1.
struct Decay {
  const char* name;
  Hyperparameter number;
};
Tensor kept(Update& u, const Decay& decay) { return u.hyperparameter(decay.name, decay.number, 1); }
Tensor taken(Update& u, const Decay& decay) {
  return u.hyperparameter(decay.name, decay.number, 1, [](double number) { return 1 - number; });
}

// Updates a state to decay * state + (1 - decay) * x and returns it.
Tensor running_mean(Update& u, const char* name, const Decay& decay, const Tensor& x) {
  const Tensor mean = kept(u, decay) * u.state(name) + taken(u, decay) * x;
  u.set_state(name, mean);
  return mean;
}

// Returns 1 - decay^t, without the cancellation of this formula for small t.
Tensor correction(Update& u, const Decay& decay) {
  return -expm1(u.step * u.hyperparameter(decay.name, decay.number, 1,
                                          [](double number) { return std::log(number); }));
}

bool may_be_used(const Hyperparameter& number) { return number != 0 || number.adjustable; }

Tensor momentum_of(Update& u, const Hyperparameter& momentum) {
  return u.hyperparameter("momentum", momentum, kInfinity);
}

struct AdamStep {
  Hyperparameter beta1, beta2;
  double eps;
  bool amsgrad = false, epsilon_hat = false;
};

// Returns the learning rate times mhat / (sqrt(vhat) + eps), and updates the moments.
Tensor adam_step(Update& u, const Tensor& grad, const AdamStep& adam) {
  const Decay beta1 = {"beta1", adam.beta1}, beta2 = {"beta2", adam.beta2};
  const Tensor m = running_mean(u, "exp_avg", beta1, grad);
  Tensor v = running_mean(u, "exp_avg_sq", beta2, square(grad));
  if (adam.amsgrad) {
    v = maximum(u.state("max_exp_avg_sq"), v);
    u.set_state("max_exp_avg_sq", v);
  }
  const Tensor correction1 = correction(u, beta1), correction2 = correction(u, beta2);
  if (adam.epsilon_hat) return u.lr * sqrt(correction2) / correction1 * m / (sqrt(v) + adam.eps);
  return (u.lr / correction1) * m / (sqrt(v) * rsqrt(correction2) + adam.eps);
}

}  // namespace

void SGD::operator()(Update& u) const {
  check_range("SGD: momentum", momentum);
  check_range("SGD: weight_decay", weight_decay);
  // With 1 or more, v would ignore or reverse all gradients after the first.
  check_range("SGD: dampening", dampening, 0, 1);
  if (nesterov && (!may_be_used(momentum) || dampening != 0)) {
    throw UserError("SGD: nesterov requires momentum and zero dampening");
  }
  Tensor g = decayed_gradient(u, descent(u, maximize), weight_decay);
  if (may_be_used(momentum)) {
    const Tensor factor = momentum_of(u, momentum), old = factor * u.state("momentum_buffer");
    // The state starts as zero, so without dampening the first step needs no special case.
    const Tensor v = dampening == 0 ? old + g : where(u.step == 1.0, g, old + (1 - dampening) * g);
    u.set_state("momentum_buffer", v);
    g = nesterov ? g + factor * v : v;
  }
  u.set_param(u.param - u.lr * g);
}

void Adam::operator()(Update& u) const {
  check_adam("Adam", beta1, beta2, eps, weight_decay);
  const Tensor g = decayed_gradient(u, descent(u, maximize), weight_decay);
  u.set_param(u.param - adam_step(u, g, {beta1, beta2, eps, amsgrad, epsilon_hat}));
}

void AdamW::operator()(Update& u) const {
  check_adam("AdamW", beta1, beta2, eps, weight_decay);
  const Tensor p = decayed_param(u, weight_decay);
  u.set_param(p - adam_step(u, descent(u, maximize), {beta1, beta2, eps, amsgrad, epsilon_hat}));
}

void NAdam::operator()(Update& u) const {
  check_adam("NAdam", beta1, beta2, eps, weight_decay);
  check_range("NAdam: momentum_decay", momentum_decay);
  Tensor g = descent(u, maximize), p = u.param;
  if (decoupled_weight_decay) {
    p = decayed_param(u, weight_decay);
  } else {
    g = decayed_gradient(u, g, weight_decay);
  }
  const auto mu = [beta = beta1, decay = momentum_decay](std::int64_t t) {
    return beta * (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * decay));
  };
  // Product of all mu so far. Computed in order, so that a resumed run has the same value.
  struct Product {
    std::int64_t t = 0;
    double value = 1;
  };
  const auto product = [mu, last = std::make_shared<Product>()](std::int64_t t) {
    if (t < last->t) *last = {};
    while (last->t < t) last->value *= mu(++last->t);
    return last->value;
  };
  // lr (1 - mu_t) / (1 - prod mu) and lr mu_{t+1} / (1 - prod mu mu_{t+1}), without lr.
  const Tensor of_grad = u.per_update(
      "of_grad", [mu, product](std::int64_t t) { return (1 - mu(t)) / (1 - product(t)); });
  const Tensor of_mean = u.per_update("of_mean", [mu, product](std::int64_t t) {
    return mu(t + 1) / (1 - product(t) * mu(t + 1));
  });
  const Tensor m = running_mean(u, "exp_avg", {"beta1", beta1}, g);
  const Tensor v = running_mean(u, "exp_avg_sq", {"beta2", beta2}, square(g));
  const Tensor denominator = sqrt(v) * rsqrt(correction(u, {"beta2", beta2})) + eps;
  u.set_param(p - u.lr * (of_grad * g + of_mean * m) / denominator);
}

void RAdam::operator()(Update& u) const {
  check_adam("RAdam", beta1, beta2, eps, weight_decay);
  Tensor g = descent(u, maximize), p = u.param;
  if (decoupled_weight_decay) {
    p = decayed_param(u, weight_decay);
  } else {
    g = decayed_gradient(u, g, weight_decay);
  }
  // Rectification r_t * sqrt(1 - beta2^t), or 0 if rho_t is at most 5.
  const Tensor rectified = u.per_update("rectified", [beta = beta2](std::int64_t t) {
    const auto steps = static_cast<double>(t);
    const double left = 1 - std::pow(beta, steps), limit = 2 / (1 - beta) - 1;
    const double rho = limit - 2 * steps * (1 - left) / left;
    if (rho <= 5) return 0.0;
    return std::sqrt(left * (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
  });
  const Tensor m = running_mean(u, "exp_avg", {"beta1", beta1}, g);
  const Tensor v = running_mean(u, "exp_avg_sq", {"beta2", beta2}, square(g));
  const Tensor adapted = where(rectified > 0.0, rectified / (sqrt(v) + eps), 1.0);
  u.set_param(p - (u.lr / correction(u, {"beta1", beta1})) * m * adapted);
}

void RMSprop::operator()(Update& u) const {
  check_range("RMSprop: alpha", alpha, 0, 1);
  check_range("RMSprop: eps", eps);
  check_range("RMSprop: weight_decay", weight_decay);
  check_range("RMSprop: momentum", momentum);
  const Tensor g = decayed_gradient(u, descent(u, maximize), weight_decay);
  const Decay mean = {"alpha", alpha};
  Tensor v = running_mean(u, "square_avg", mean, square(g));
  // Rounding must not make the variance negative.
  if (centered) v = maximum(v - square(running_mean(u, "grad_avg", mean, g)), 0.0);
  Tensor change = g / (sqrt(v) + eps);
  if (may_be_used(momentum)) {
    change = momentum_of(u, momentum) * u.state("momentum_buffer") + change;
    u.set_state("momentum_buffer", change);
  }
  u.set_param(u.param - u.lr * change);
}

void Adagrad::operator()(Update& u) const {
  check_range("Adagrad: lr_decay", lr_decay);
  check_range("Adagrad: weight_decay", weight_decay);
  check_range("Adagrad: initial_accumulator_value", initial_accumulator_value);
  check_range("Adagrad: eps", eps);
  const Tensor g = decayed_gradient(u, descent(u, maximize), weight_decay);
  const Tensor sum = u.state("sum", initial_accumulator_value) + square(g);
  u.set_state("sum", sum);
  Tensor lr_now = u.lr;
  if (lr_decay != 0) lr_now = lr_now / (1.0 + (u.step - 1.0) * lr_decay);
  u.set_param(u.param - lr_now * g / (sqrt(sum) + eps));
}

void Adadelta::operator()(Update& u) const {
  check_range("Adadelta: rho", rho, 0, 1);
  // With 0, or a number that is flushed to 0, the factor sqrt(u + eps) of all updates stays 0.
  if (!(eps >= std::numeric_limits<float>::min() && eps < kInfinity)) {
    throw UserError(format_text("Adadelta: eps: expected at least 2^-126, got %g", eps));
  }
  check_range("Adadelta: weight_decay", weight_decay);
  const Tensor g = decayed_gradient(u, descent(u, maximize), weight_decay);
  const Tensor v = running_mean(u, "square_avg", {"rho", rho}, square(g));
  const Tensor change = sqrt(u.state("acc_delta") + eps) / sqrt(v + eps) * g;
  running_mean(u, "acc_delta", {"rho", rho}, square(change));
  u.set_param(u.param - u.lr * change);
}

void Lion::operator()(Update& u) const {
  check_adam("Lion", beta1, beta2, 0, weight_decay);
  const Tensor g = descent(u, maximize), m = u.state("exp_avg");
  const Decay of_direction = {"beta1", beta1};
  const Tensor direction = sign(kept(u, of_direction) * m + taken(u, of_direction) * g);
  running_mean(u, "exp_avg", {"beta2", beta2}, g);
  u.set_param(decayed_param(u, weight_decay) - u.lr * direction);
}

namespace {

// Approximates the nearest orthogonal matrix (Jordan et al. 2024). Brings the singular values close
// to 1 by iterating
//   x = a x + (b A + c A^2) x,  A = x x^T,
// where a, b, c are chosen for the fastest growth from near 0.
Tensor orthogonalized(const Tensor& matrix, int steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEps = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? transpose(matrix) : matrix;
  x = x / (sqrt(sum(square(x))) + kEps);
  for (int i = 0; i < steps; ++i) {
    const Tensor a = matmul(x, transpose(x));
    x = kA * x + matmul(kB * a + kC * matmul(a, a), x);
  }
  return tall ? transpose(x) : x;
}

}  // namespace

void Muon::operator()(Update& u) const {
  check_adam("Muon", beta1, beta2, eps, weight_decay);
  check_range("Muon: momentum", momentum, 0, 1);
  check_range("Muon: adamw_lr_factor", adamw_lr_factor);
  check_range("Muon: ns_steps", ns_steps, 1, 100);
  // One state is both the momentum buffer of matrices and the first moment of other parameters.
  const Tensor muon = u.mask(params), g = descent(u, maximize);
  const Tensor m =
      where(muon, momentum, beta1) * u.state("exp_avg") + where(muon, 1.0, 1 - beta1) * g;
  const Tensor v = beta2 * u.state("exp_avg_sq") + (1 - beta2) * square(g);
  u.set_state("exp_avg", m);
  u.set_state("exp_avg_sq", where(muon, 0.0, v));
  const Tensor direction = nesterov ? g + momentum * m : m;
  std::vector<Tensor> updates(u.param_infos().size());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto& [name, shape] = u.param_infos()[i];
    if (!params(name, shape)) continue;
    if (shape.size() != 2) {
      throw UserError("Muon: expected parameters with two axes, '" + name + "' has " +
                      std::to_string(shape.size()));
    }
    const double tall = static_cast<double>(shape[0]) / static_cast<double>(shape[1]);
    updates[i] =
        std::sqrt(std::max(1.0, tall)) * orthogonalized(u.param_view(direction, i), ns_steps);
  }
  const Tensor adamw = (adamw_lr_factor / correction(u, {"beta1", beta1})) * m /
                       (sqrt(v) * rsqrt(correction(u, {"beta2", beta2})) + eps);
  const Tensor rate = u.lr * where(muon, 1.0, adamw_lr_factor);
  const auto decay = u.weight_decay(weight_decay);
  const Tensor p = decay ? u.param * (1.0 - rate * *decay) : u.param;
  u.set_param(p - u.lr * where(muon, u.flatten(updates), adamw));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::optim
