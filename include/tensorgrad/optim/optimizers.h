// SPDX-License-Identifier: MIT
// Optimizers. An optimizer is a composite: it is written with ops over one flat tensor of all
// parameters, so that its whole update is one launch (and with clipping one more, for the norm).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/optim/param_groups.h"
#include "tensorgrad/optim/schedule.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace optim {

// A number of an optimizer: a constant of its kernel, or, made by adjustable(), a run-time scalar
// of its field's name ("beta1"), which Trainer::set() changes from the next update on.
struct Hyperparameter {
  Hyperparameter(double number) : value(number) {}  // NOLINT(google-explicit-constructor)
  double value;
  bool adjustable = false;
  operator double() const { return value; }  // NOLINT(google-explicit-constructor)
};
inline Hyperparameter adjustable(double value) {
  Hyperparameter result(value);
  result.adjustable = true;
  return result;
}

// What an optimizer sees while it is traced. All tensors are f32; `param` and `grad` are flat:
// every trained parameter's elements, one behind another.
class Update {
 public:
  virtual ~Update() = default;
  Tensor param, grad;
  Tensor lr;    // this update's learning rate: [], or one for each element where groups differ
  Tensor step;  // [], number of this update, from 1
  // A tensor like `param` that keeps its value from update to update; it starts as `initial`.
  virtual Tensor state(const std::string& name, double initial = 0) = 0;
  virtual void set_state(const std::string& name, Tensor value) = 0;
  virtual void set_param(Tensor value) = 0;
  // The weight decay, a run-time scalar that starts as `initial` ("weight_decay"), or what the
  // groups have instead: shaped as `lr`. None where there is none: it is 0, and no group has one.
  virtual std::optional<Tensor> weight_decay(double initial) = 0;
  // [], a number that the host computes for each update, in double; `update` counts from 1.
  virtual Tensor per_update(const std::string& name,
                            std::function<double(std::int64_t update)> value) = 0;

  // [], the number of that name, or what `of` makes of it, in double. Values that set() is given
  // for one that is adjustable must be at least 0 and less than `below`.
  virtual Tensor hyperparameter(const std::string& name, const Hyperparameter& number, double below,
                       const std::function<double(double)>& of = nullptr) = 0;

  // The parameters one by one, as they lie in the flat tensors.
  struct ParamInfo {
    std::string name;
    Shape shape;
  };
  [[nodiscard]] virtual const std::vector<ParamInfo>& param_infos() const = 0;
  // What a flat tensor holds for parameter `part`, in its shape.
  virtual Tensor param_view(const Tensor& flat, std::size_t index) = 0;
  // The reverse: a flat tensor of one tensor for each parameter; an empty Tensor leaves zeros.
  virtual Tensor flatten(const std::vector<Tensor>& params) = 0;
  // bool, like `param`: does the element belong to a parameter that the filter picks? Cheap for
  // the filter that the optimizer has as its member `params`: those come first in each group.
  virtual Tensor mask(const ParamFilter& filter) = 0;
};

// PyTorch's optimizers, with its names, defaults and numerics (torch.optim, single-tensor form).
// With `maximize` the loss grows. Decay is added to the gradient where nothing else is said. Each
// throws UserError, when it is compiled, on numbers out of range.

// v = momentum * v + (1 - dampening) * g, at first v = g; p -= lr * v (nesterov: p -= lr * (g +
// momentum * v), which needs a momentum and no dampening).
struct SGD {
  static constexpr const char* kName = "SGD";
  Schedule lr = 1e-3;
  Hyperparameter momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double dampening = 0;
  bool maximize = false;
  void operator()(Update& update) const;
};

// Kingma and Ba 2015: p -= lr * mhat / (sqrt(vhat) + eps). amsgrad (Reddi, Kale and Kumar 2018): v
// is the largest so far. epsilon_hat (the paper's section 2, last paragraph): eps is added to
// sqrt(v), not to sqrt(vhat): p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps).
struct Adam {
  static constexpr const char* kName = "Adam";
  Schedule lr = 1e-3;
  Hyperparameter beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false, epsilon_hat = false, maximize = false;
  void operator()(Update& update) const;
};

// Loshchilov and Hutter 2019: Adam, where the decay is p *= 1 - lr * weight_decay.
struct AdamW {
  static constexpr const char* kName = "AdamW";
  Schedule lr = 1e-3;
  Hyperparameter beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false, epsilon_hat = false, maximize = false;
  void operator()(Update& update) const;
};

// Dozat 2016: Adam with Nesterov's momentum, mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2).
struct NAdam {
  static constexpr const char* kName = "NAdam";
  Schedule lr = 2e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // as AdamW
  bool maximize = false;
  void operator()(Update& update) const;
};

// Liu et al. 2020: Adam that is not adaptive before the variance of 1 / sqrt(vhat) is tractable.
struct RAdam {
  static constexpr const char* kName = "RAdam";
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  // as AdamW
  bool maximize = false;
  void operator()(Update& update) const;
};

// Hinton 2012 (lecture 6e): p -= lr * g / (sqrt(v) + eps), v the running mean of g^2; centered
// (Graves 2013): of its variance; with momentum, on the quotient.
struct RMSprop {
  static constexpr const char* kName = "RMSprop";
  Schedule lr = 1e-2;
  Hyperparameter alpha = 0.99;
  double eps = 1e-8, weight_decay = 0;
  Hyperparameter momentum = 0;
  bool centered = false, maximize = false;
  void operator()(Update& update) const;
};

// Duchi, Hazan and Singer 2011: p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(sum of g^2) + eps).
struct Adagrad {
  static constexpr const char* kName = "Adagrad";
  Schedule lr = 1e-2;
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
  void operator()(Update& update) const;
};

// Zeiler 2012.
struct Adadelta {
  static constexpr const char* kName = "Adadelta";
  Schedule lr = 1.0;
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
  void operator()(Update& update) const;
};

// Chen et al. 2023, algorithm 2: p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p);
// m = beta2 * m + (1 - beta2) * g.
struct Lion {
  static constexpr const char* kName = "Lion";
  Schedule lr = 1e-4;
  Hyperparameter beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  bool maximize = false;
  void operator()(Update& update) const;
};

// Jordan et al. 2024: b = momentum * b + g; p -= lr * sqrt(max(1, m / n)) * O, where O is b
// (nesterov: g + momentum * b) [m, n], divided by its norm, after `ns_steps` Newton-Schulz steps
// towards the nearest orthogonal matrix, in f32; the decay is p *= 1 - lr * weight_decay. It is for
// weights within the network: embeddings and output layers, too, are better left to AdamW.
struct Muon {
  static constexpr const char* kName = "Muon";
  Schedule lr = 2e-2;
  // What it trains, all of two axes; the others get AdamW, at lr * adamw_lr_factor.
  ParamFilter params = [](const std::string&, const Shape& shape) { return shape.size() == 2; };
  double momentum = 0.95;
  bool nesterov = true;
  int ns_steps = 5;
  double weight_decay = 0;  // of both
  double adamw_lr_factor = 0.015;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // of AdamW
  bool maximize = false;
  void operator()(Update& update) const;
};

}  // namespace optim

// Any optimizer: something with a Schedule `lr` that can be called with an optim::Update. Where its
// type has a `kName`, checkpoints record it.
class Optimizer {
 public:
  Optimizer() = default;
  template <class T>
    requires requires(const T& t, optim::Update& u) {
      t(u);
      Schedule(t.lr);
    }
  Optimizer(T optimizer)  // NOLINT(google-explicit-constructor)
      : lr_(optimizer.lr) {
    if constexpr (requires { ParamFilter(optimizer.params); }) first_ = optimizer.params;
    if constexpr (requires { std::string(T::kName); }) name_ = T::kName;
    apply_ = [o = std::move(optimizer)](optim::Update& u) { o(u); };
  }

  [[nodiscard]] bool present() const { return static_cast<bool>(apply_); }
  [[nodiscard]] const Schedule& lr() const { return lr_; }
  [[nodiscard]] const std::string& name() const { return name_; }  // empty where it has none
  // The parameters that it treats apart from the others.
  [[nodiscard]] const ParamFilter& first() const { return first_; }
  void apply(optim::Update& update) const { apply_(update); }

 private:
  Schedule lr_ = 0.0;
  std::string name_;
  ParamFilter first_;
  std::function<void(optim::Update&)> apply_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
