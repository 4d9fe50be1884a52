// SPDX-License-Identifier: MIT
// Optimizers and learning-rate schedules. An optimizer is a composite: it is written with ops over
// one flat tensor of all parameters, so that its whole update is one launch (and with clipping one
// more, for the norm).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/ops.h"

namespace tensorgrad {

// A learning rate as a function of the step, counted from 0 (the value at step t is used in the
// t-th step, as in PyTorch's schedulers). Data, not code: it is saved with a checkpoint.
class Schedule {
 public:
  enum class Kind { kConstant, kLinear, kCosine, kWarmup, kStep, kMultiStep };

  Schedule(double rate) : a_(rate) {}  // NOLINT(google-explicit-constructor)

  // From `from` to `to` in a straight line over `steps` steps, then `to`.
  static Schedule linear(double from, double to, std::int64_t steps);
  // From `from` to `to` along half a cosine over `steps`
  // steps, then `to` (Loshchilov and Hutter 2017).
  static Schedule cosine(double from, double to, std::int64_t steps);
  // Grows linearly over the first `steps` steps to what `after` begins with; then `after`, counted
  // from its own 0.
  static Schedule warmup(std::int64_t steps, Schedule after);
  // `rate` times gamma for each `every` steps that are done.
  static Schedule step(double rate, std::int64_t every, double gamma);
  // `rate` times gamma for each milestone that is reached. Milestones rise.
  static Schedule multi_step(double rate, std::vector<std::int64_t> milestones, double gamma);

  [[nodiscard]] double at(std::int64_t step) const;
  // Text that parse() reads back, exactly.
  [[nodiscard]] std::string text() const;
  static Schedule parse(const std::string& text);

 private:
  Kind kind_ = Kind::kConstant;
  double a_ = 0, b_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> milestones_;
  std::shared_ptr<const Schedule> after_;
};

namespace optim {

// What an optimizer sees while it is traced. All tensors are f32; `param` and `grad` are flat:
// every parameter's elements, one behind another.
class Update {
 public:
  virtual ~Update() = default;
  Tensor param, grad;
  Tensor lr;    // [], this step's learning rate
  Tensor step;  // [], number of this step, from 1
  // A tensor like `param` that keeps its value from step to step; it starts as `initial`.
  virtual Tensor state(const std::string& name, double initial = 0) = 0;
  virtual void set_state(const std::string& name, Tensor value) = 0;
  virtual void set_param(Tensor value) = 0;
};

// p -= lr * (g + weight_decay * p), with momentum: v = momentum * v + g; p -= lr * v (nesterov:
// p -= lr * (g + momentum * v)). PyTorch's SGD with dampening 0.
struct SGD {
  Schedule lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  void operator()(Update& update) const;
};

// Kingma and Ba 2015, as PyTorch: p -= lr * mhat /
// (sqrt(vhat) + eps); decay is added to the gradient.
struct Adam {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  void operator()(Update& update) const;
};

// Loshchilov and Hutter 2019, as PyTorch: the decay is p *= 1 - lr * weight_decay.
struct AdamW {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 1e-2;
  void operator()(Update& update) const;
};

}  // namespace optim

// Any optimizer: something with a Schedule `lr` that can be called with an optim::Update.
class Optimizer {
 public:
  Optimizer() = default;
  template <class T>
    requires requires(const T& t, optim::Update& u) {
      t(u);
      Schedule(t.lr);
    }
  Optimizer(T optimizer)  // NOLINT(google-explicit-constructor)
      : lr_(optimizer.lr), apply_([o = std::move(optimizer)](optim::Update& u) { o(u); }) {}

  [[nodiscard]] bool present() const { return static_cast<bool>(apply_); }
  [[nodiscard]] const Schedule& lr() const { return lr_; }
  void apply(optim::Update& update) const { apply_(update); }

 private:
  Schedule lr_ = 0.0;
  std::function<void(optim::Update&)> apply_;
};

}  // namespace tensorgrad
