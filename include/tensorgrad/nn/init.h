// SPDX-License-Identifier: MIT
// Initial values of parameters, as in torch.nn.init.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct HostTensor;

/// Rule for the initial values of a parameter. Create it with the functions of `tensorgrad::init`.
/// Random values are determined by the seed and the position of the parameter in the model.
struct Init {
  /// Distribution, or source, of the values.
  enum class Kind {
    kConstant,         ///< `a`.
    kUniform,          ///< Uniform in [a, b).
    kNormal,           ///< Normal, with mean `a` and standard deviation `b`.
    kLiteral,          ///< `values`.
    kTruncatedNormal,  ///< Normal, like kNormal, restricted to [lo, hi].
    kOrthogonal,       ///< Orthogonal, with gain `a`.
    kInverseSoftplus,  ///< See init::inverse_softplus(); the floor is `a`.
    kLogOfUniform      ///< Logarithm of a number that is uniform in [lo, hi).
  };
  Kind kind = Kind::kConstant;  ///< Kind of distribution; determines which other fields are used.
  double a = 0, b = 0;          ///< See Kind.
  std::vector<float> values = {};   ///< Elements of a literal, in row-major order.
  std::optional<Shape> shape = {};  ///< Shape of a literal; if unset, any shape of that size fits.
  double lo = 0, hi = 0;            ///< See Kind.
};

namespace init {

/// Returns an Init with a constant, or with independent samples of a distribution. uniform()
/// samples from [lo, hi).
Init zeros();
Init ones();
Init constant(double value);
Init uniform(double lo, double hi);
Init normal(double mean = 0, double stddev = 1);

/// Returns an Init with a normal distribution truncated to [lo, hi]. The bounds are absolute.
/// Throws UserError if `stddev` is not positive or lo >= hi.
Init trunc_normal(double mean = 0, double stddev = 1, double lo = -2, double hi = 2);

/// Returns an Init with explicit values in row-major order, one for each element of the parameter.
/// If their number, or the shape of the HostTensor, does not match, creating the parameter throws
/// ShapeError. Throws DtypeError if the HostTensor is not f32 or f16.
Init literal(std::vector<float> values);
Init literal(const HostTensor& values, Loc loc = Loc::current());

/// Returns an Init with a random orthogonal matrix times `gain` (Saxe, McClelland and Ganguli
/// 2014). Rows or columns, whichever are fewer, are orthonormal. All axes after the first count as
/// one. Creating a parameter with fewer than two axes throws ShapeError.
Init orthogonal(double gain = 1);

/// Returns an Init for values whose softplus is log-uniform in [lo, hi), but at least `floor`.
/// Mamba initializes its step sizes this way (Gu and Dao 2023). Throws UserError unless 0 < lo <
/// hi.
Init inverse_softplus(double lo, double hi, double floor = 0);

/// Returns an Init for the logarithm of a number that is uniform in [lo, hi). Throws UserError
/// unless 0 < lo < hi.
Init log_of_uniform(double lo, double hi);

/// Numbers of inputs and outputs of a unit (fan-in and fan-out).
struct Fans {
  double in;   ///< Number of inputs.
  double out;  ///< Number of outputs.
};

/// Returns the fans of a weight [out, in, kernel...]: in and out, each times the kernel size.
/// Throws ShapeError if the weight has fewer than two axes.
Fans fans(const Shape& shape, Loc loc = Loc::current());

/// Fan that kaiming_uniform() and kaiming_normal() use.
enum class Fan {
  kIn,  ///< Fan-in, which preserves the variance in the forward pass.
  kOut  ///< Fan-out, which preserves the variance in the backward pass.
};

/// Returns the gain for leaky_relu(), sqrt(2 / (1 + slope^2)), like torch.nn.init.calculate_gain.
/// The default is that of relu(). Use 1 for linear layers and sigmoid(), and 5/3 for tanh().
double leaky_relu_gain(double slope = 0);

/// Returns an Init with mean 0 and standard deviation gain / sqrt(fan) (He et al. 2015). PyTorch's
/// layers use kaiming_uniform() with the gain leaky_relu_gain(sqrt(5)), which is uniform in
/// +-1/sqrt(fan_in). Throws ShapeError if the shape has fewer than two axes.
Init kaiming_uniform(const Shape& shape, double gain = leaky_relu_gain(), Fan fan = Fan::kIn,
                     Loc loc = Loc::current());
Init kaiming_normal(const Shape& shape, double gain = leaky_relu_gain(), Fan fan = Fan::kIn,
                    Loc loc = Loc::current());

/// Returns an Init with mean 0 and standard deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot
/// and Bengio 2010). Throws ShapeError if the shape has fewer than two axes.
Init xavier_uniform(const Shape& shape, double gain = 1, Loc loc = Loc::current());
Init xavier_normal(const Shape& shape, double gain = 1, Loc loc = Loc::current());

}  // namespace init

/// Function that returns the initial values of a parameter by name and shape. If it returns
/// nothing, the parameter keeps the Init of its module.
/// ```cpp
/// [](const std::string& name, const tg::Shape& shape) -> std::optional<tg::Init> {
///   if (name.ends_with(".bias")) return tg::init::zeros();
///   if (shape.size() < 2) return {};
///   return tg::init::literal(my_values(name, shape));
/// }
/// ```
using InitFunction =
    std::function<std::optional<Init>(const std::string& name, const Shape& shape)>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
