// SPDX-License-Identifier: MIT
// Optimizers, and the interface for custom ones. Those compared with `torch.optim.NAME` have its
// defaults and numerics. In formulas, p is the parameter, g its gradient and t the number of the
// update, from 1. Weight decay is added to the gradient (g + weight_decay * p) unless stated
// otherwise.
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

/// Hyperparameter of an optimizer: a constant of the compiled program, or a run-time scalar if made
/// with adjustable().
struct Hyperparameter {
  /// Creates a constant.
  Hyperparameter(double number) : value(number) {}  // NOLINT(google-explicit-constructor)

  double value;             ///< The constant, or the initial value of the scalar.
  bool adjustable = false;  ///< Set by the function adjustable().

  /// Returns the initial value.
  operator double() const { return value; }  // NOLINT(google-explicit-constructor)
};

/// Returns a hyperparameter that Stepper::set() can change without recompiling. It starts as
/// `value`, and the scalar has the name of the field, for example "beta1". A new value applies from
/// the next update.
inline Hyperparameter adjustable(double value) {
  Hyperparameter result(value);
  result.adjustable = true;
  return result;
}

/// One update of the parameters, passed to an optimizer when it is traced. All tensors are f32.
/// Flat tensors have shape [N] and concatenate the elements of all trained parameters. Parameters
/// can be padded with zeros there.
class Update {
 public:
  virtual ~Update() = default;

  /// Flat parameters and their gradients. Clipping and accumulation are already applied to `grad`.
  Tensor param, grad;

  Tensor lr;    ///< Learning rate: [], or flat if parameter groups have different rates.
  Tensor step;  ///< Number of this update [], from 1. Skipped updates do not count.

  /// Returns an optimizer state: a flat tensor that keeps its value between updates. All its
  /// elements start as `initial`.
  virtual Tensor state(const std::string& name, double initial = 0) = 0;

  /// Sets the value of a state after this update. Throws UserError unless state() was called with
  /// this name before.
  virtual void set_state(const std::string& name, Tensor value) = 0;

  /// Sets the parameters after this update. Compiling throws UserError if an optimizer never calls
  /// it.
  virtual void set_param(Tensor value) = 0;

  /// Returns the weight decay, or nullopt if it is 0 for all parameters. It is a run-time scalar
  /// "weight_decay" [] that starts as `initial`. If parameter groups have other values, it is flat.
  virtual std::optional<Tensor> weight_decay(double initial) = 0;

  /// Returns a number [] that the host computes in double precision before each update. `update`
  /// is the value of `step`. If updates can be skipped, each step waits for the one before it.
  virtual Tensor per_update(const std::string& name,
                            std::function<double(std::int64_t update)> value) = 0;

  /// Returns a hyperparameter [], or `of(value)` computed by the host in double precision. If
  /// `number` is adjustable, Stepper::set() accepts values in [0, below).
  virtual Tensor hyperparameter(const std::string& name, const Hyperparameter& number, double below,
                                const std::function<double(double)>& of = nullptr) = 0;

  /// Name and shape of a trained parameter.
  struct ParamInfo {
    std::string name;  ///< Path in the model, such as "fc1.weight".
    Shape shape;       ///< Shape in the model, not that of the flat tensors.
  };

  /// Returns the trained parameters in the order of the flat tensors.
  [[nodiscard]] virtual const std::vector<ParamInfo>& param_infos() const = 0;

  /// Returns the elements of a flat tensor that belong to parameter `index`, in its shape.
  virtual Tensor param_view(const Tensor& flat, std::size_t index) = 0;

  /// Returns the flat tensor of one tensor per parameter, the inverse of param_view(). An empty
  /// Tensor stands for zeros.
  virtual Tensor flatten(const std::vector<Tensor>& params) = 0;

  /// Returns a flat boolean tensor that is true for the elements of parameters that `filter`
  /// selects. It is cheap for the optimizer's member `params`, whose parameters come first in each
  /// group.
  virtual Tensor mask(const ParamFilter& filter) = 0;
};

/// Stochastic gradient descent, like `torch.optim.SGD`: p -= lr * v with v = momentum * v + (1 -
/// dampening) * g. In the first update, v = g.
struct SGD {
  static constexpr const char* kName = "SGD";  ///< Name in checkpoints.
  Schedule lr = 1e-3;                          ///< Learning rate.
  Hyperparameter momentum = 0;  ///< Factor of the previous v, at least 0. If 0, v is g.
  bool nesterov = false;    ///< p -= lr * (g + momentum * v). Requires momentum and no dampening.
  double weight_decay = 0;  ///< Factor of p that is added to g; 0: no decay.
  double dampening = 0;     ///< Reduces g in v, from the second update on, in [0, 1).
  bool maximize = false;    ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is out of range or `nesterov` is not allowed.
  void operator()(Update& update) const;
};

/// Adam (Kingma and Ba 2015), like `torch.optim.Adam`: p -= lr * mhat / (sqrt(vhat) + eps). m and v
/// are running means of g and g^2; mhat and vhat are corrected for their bias towards 0.
///
/// With `eps` = 0, as in PyTorch, an element whose gradients so far are all 0 becomes NaN. This
/// also applies to the other optimizers that add `eps` to a root.
struct Adam {
  static constexpr const char* kName = "Adam";  ///< Name in checkpoints.
  Schedule lr = 1e-3;                           ///< Learning rate.
  Hyperparameter beta1 = 0.9, beta2 = 0.999;    ///< Decay of m and of v, in [0, 1).
  double eps = 1e-8;                            ///< Added to the root, at least 0.
  double weight_decay = 0;                      ///< Factor of p that is added to g; 0: no decay.
  bool amsgrad = false;  ///< Uses the maximum of v over all updates (Reddi et al. 2018).

  /// Adds eps to sqrt(v) instead of sqrt(vhat), as in the last paragraph of section 2 of the paper:
  /// p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps).
  bool epsilon_hat = false;

  bool maximize = false;  ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or a beta is at least 1.
  void operator()(Update& update) const;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), like `torch.optim.AdamW`. The
/// decay is p *= 1 - lr * weight_decay.
struct AdamW {
  static constexpr const char* kName = "AdamW";  ///< Name in checkpoints.
  Schedule lr = 1e-3;                            ///< Learning rate.
  Hyperparameter beta1 = 0.9, beta2 = 0.999;     ///< Decay of m and of v, in [0, 1).
  double eps = 1e-8;                             ///< Added to the root, at least 0.
  double weight_decay = 1e-2;                    ///< Decoupled decay, times lr; 0: no decay.
  bool amsgrad = false, epsilon_hat = false;     ///< As in Adam.
  bool maximize = false;                         ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or a beta is at least 1.
  void operator()(Update& update) const;
};

/// Adam with Nesterov momentum (Dozat 2016), like `torch.optim.NAdam`. The momentum of update t is
/// beta1 * (1 - 0.96^(t * momentum_decay) / 2).
struct NAdam {
  static constexpr const char* kName = "NAdam";  ///< Name in checkpoints.
  Schedule lr = 2e-3;                            ///< Learning rate.
  double beta1 = 0.9, beta2 = 0.999;             ///< Decay of the means of g and g^2, in [0, 1).
  double eps = 1e-8;                             ///< Added to the root, at least 0.
  double weight_decay = 0;                       ///< Factor of p that is added to g; 0: no decay.
  double momentum_decay = 4e-3;                  ///< Speed of the momentum from beta1 / 2 to beta1.
  bool decoupled_weight_decay = false;           ///< Decays like AdamW.
  bool maximize = false;                         ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or a beta is at least 1.
  void operator()(Update& update) const;
};

/// Rectified Adam (Liu et al. 2020), like `torch.optim.RAdam`. The first updates are not adaptive,
/// until the variance of 1 / sqrt(vhat) is tractable.
struct RAdam {
  static constexpr const char* kName = "RAdam";  ///< Name in checkpoints.
  Schedule lr = 1e-3;                            ///< Learning rate.
  double beta1 = 0.9, beta2 = 0.999;             ///< Decay of the means of g and g^2, in [0, 1).
  double eps = 1e-8;                             ///< Added to the root, at least 0.
  double weight_decay = 0;                       ///< Factor of p that is added to g; 0: no decay.
  bool decoupled_weight_decay = false;           ///< Decays like AdamW.
  bool maximize = false;                         ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or a beta is at least 1.
  void operator()(Update& update) const;
};

/// RMSprop (Hinton 2012, lecture 6e), like `torch.optim.RMSprop`: p -= lr * g / (sqrt(v) + eps). v
/// is a running mean of g^2.
struct RMSprop {
  static constexpr const char* kName = "RMSprop";  ///< Name in checkpoints.
  Schedule lr = 1e-2;                              ///< Learning rate.
  Hyperparameter alpha = 0.99;                     ///< Decay of the running means, in [0, 1).
  double eps = 1e-8;                               ///< Added to the root, at least 0.
  double weight_decay = 0;                         ///< Factor of p that is added to g; 0: no decay.
  Hyperparameter momentum = 0;  ///< Momentum of the quotient, at least 0; 0: none.
  bool centered = false;        ///< v is the running variance of g instead (Graves 2013).
  bool maximize = false;        ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or alpha is at least 1.
  void operator()(Update& update) const;
};

/// Adagrad (Duchi, Hazan and Singer 2011), like `torch.optim.Adagrad`: p -= lr / (1 + (t - 1) *
/// lr_decay) * g / (sqrt(s) + eps). s is the sum of all g^2 so far.
struct Adagrad {
  static constexpr const char* kName = "Adagrad";  ///< Name in checkpoints.
  Schedule lr = 1e-2;                              ///< Learning rate.
  double lr_decay = 0;                             ///< Decay of the learning rate per update.
  double weight_decay = 0;                         ///< Factor of p that is added to g; 0: no decay.
  double initial_accumulator_value = 0;            ///< Value of s before the first update.
  double eps = 1e-10;                              ///< Added to the root, at least 0.
  bool maximize = false;                           ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative.
  void operator()(Update& update) const;
};

/// Adadelta (Zeiler 2012), like `torch.optim.Adadelta`: p -= lr * sqrt(u + eps) / sqrt(v + eps) *
/// g. v and u are running means of g^2 and of the squared changes without lr.
struct Adadelta {
  static constexpr const char* kName = "Adadelta";  ///< Name in checkpoints.
  Schedule lr = 1.0;                                ///< Learning rate.
  double rho = 0.9;                                 ///< Decay of v and u, in [0, 1).
  double eps = 1e-6;                                ///< Added under both roots, at least 2^-126.
  double weight_decay = 0;  ///< Factor of p that is added to g; 0: no decay.
  bool maximize = false;    ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative, rho is at least 1, or eps is less
  /// than 2^-126: with 0, to which devices may round it, no update changes p.
  void operator()(Update& update) const;
};

/// Lion (Chen et al. 2023, algorithm 2): p -= lr * (sign(beta1 * m + (1 - beta1) * g) +
/// weight_decay * p). Then m = beta2 * m + (1 - beta2) * g.
struct Lion {
  static constexpr const char* kName = "Lion";  ///< Name in checkpoints.
  Schedule lr = 1e-4;                           ///< Learning rate.
  Hyperparameter beta1 = 0.9;   ///< Share of m in the direction of the update, in [0, 1).
  Hyperparameter beta2 = 0.99;  ///< Decay of m, in [0, 1).
  double weight_decay = 0;      ///< Decoupled decay, times lr; 0: no decay.
  bool maximize = false;        ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is negative or a beta is at least 1.
  void operator()(Update& update) const;
};

/// Muon (Jordan et al. 2024) for the matrices inside a network; all other parameters use AdamW. For
/// a matrix [m, n], p -= lr * sqrt(max(1, m / n)) * O with the momentum b = momentum * b + g.
///
/// O is b, or g + momentum * b with `nesterov`, divided by its Frobenius norm and orthogonalized by
/// `ns_steps` Newton-Schulz iterations in f32. The decay is p *= 1 - lr * weight_decay. Exclude
/// embeddings and output layers from `params`, since they train better with AdamW.
struct Muon {
  static constexpr const char* kName = "Muon";  ///< Name in checkpoints.
  Schedule lr = 2e-2;                           ///< Learning rate.

  /// Parameters to train with Muon, all with two axes. By default, all parameters with two axes.
  ParamFilter params = [](const std::string&, const Shape& shape) { return shape.size() == 2; };

  double momentum = 0.95;             ///< Factor of the previous b, in [0, 1).
  bool nesterov = true;               ///< O is made of g + momentum * b instead of b.
  int ns_steps = 5;                   ///< Newton-Schulz iterations, from 1 to 99.
  double weight_decay = 0;            ///< Decoupled decay of all parameters; 0: no decay.
  double adamw_lr_factor = 0.015;     ///< Learning rate of AdamW over `lr`; 0 trains nothing.
  double beta1 = 0.9, beta2 = 0.999;  ///< See AdamW.
  double eps = 1e-8;                  ///< See AdamW.
  bool maximize = false;              ///< Maximizes the loss.
  /// Traces an update. Throws UserError if a value is out of range or `params` selects a parameter
  /// without exactly two axes.
  void operator()(Update& update) const;
};

}  // namespace optim

/// Any optimizer: a copyable type with a Schedule `lr` and a call operator that takes an
/// optim::Update. If the type has a `kName`, checkpoints record it. If it has a ParamFilter
/// `params`, optim::Update::mask() is cheap for it.
class Optimizer {
 public:
  /// Creates an empty optimizer.
  Optimizer() = default;

  /// Wraps an optimizer.
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

  /// Returns true unless it is empty.
  [[nodiscard]] bool present() const { return static_cast<bool>(apply_); }

  /// Returns the learning-rate schedule.
  [[nodiscard]] const Schedule& lr() const { return lr_; }

  /// Returns the `kName` of the wrapped type, empty if it has none.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns the `params` of the wrapped optimizer, an empty filter if it has none.
  [[nodiscard]] const ParamFilter& first() const { return first_; }

  /// Traces an update with the wrapped optimizer.
  void apply(optim::Update& update) const { apply_(update); }

 private:
  Schedule lr_ = 0.0;
  std::string name_;
  ParamFilter first_;
  std::function<void(optim::Update&)> apply_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
