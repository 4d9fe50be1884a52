// SPDX-License-Identifier: MIT
// Loss functions, with the names, formulas and weighting of torch.nn.functional. Operands of one
// loss have equal shapes and do not broadcast, unless a comment says otherwise. They are f32, or
// f16 converted to f32; the result is f32. Losses throw ShapeError if shapes do not match, and
// DtypeError for other dtypes. A loss is finite whenever PyTorch's is, for logits of any magnitude.
#pragma once

#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Reduction applied to the per-element losses.
enum class Reduction {
  kMean,      ///< The mean.
  kSum,       ///< The sum.
  kNone,      ///< The loss of each element.
  kBatchMean  ///< The sum divided by the size of the first axis.
};

// ---- regression --------------------------------------------------------------------------------

/// Returns the squared error (a - b)^2. mse() is short for mse_loss().
Tensor mse(Tensor a, Tensor b, Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
Tensor mse_loss(Tensor a, Tensor b, Reduction reduction = Reduction::kMean,
                Loc loc = Loc::current());

/// Returns the absolute error |a - b|. The gradient is 0 if a = b.
Tensor l1_loss(Tensor a, Tensor b, Reduction reduction = Reduction::kMean,
               Loc loc = Loc::current());

/// Returns the Huber loss (Huber 1964): `(a - b)^2 / 2` if |a - b| < delta, else
/// `delta (|a - b| - delta / 2)`. Throws UserError if `delta` is not positive.
Tensor huber_loss(Tensor a, Tensor b, double delta = 1, Reduction reduction = Reduction::kMean,
                  Loc loc = Loc::current());

/// Returns huber_loss() with delta = beta, divided by `beta`. If `beta` is 0, returns l1_loss().
/// Throws UserError if `beta` is negative.
Tensor smooth_l1_loss(Tensor a, Tensor b, double beta = 1, Reduction reduction = Reduction::kMean,
                      Loc loc = Loc::current());

/// Options of poisson_nll_loss().
struct PoissonOptions {
  bool log_input = true;  ///< `x` is the logarithm of the rate, not the rate.
  bool full = false;  ///< Adds Stirling's approximation t log(t) - t + log(2 pi t) / 2 if t > 1.
  double eps = 1e-8;  ///< Added to the rate if `log_input` is false.
  Reduction reduction = Reduction::kMean;  ///< Reduction of the per-element losses.
};

/// Returns the negative log-likelihood of Poisson-distributed targets t: `e^x - t x`, or
/// `x - t log(x + eps)` if `log_input` is false.
Tensor poisson_nll_loss(Tensor x, Tensor targets, const PoissonOptions& options = {},
                        Loc loc = Loc::current());

/// Options of gaussian_nll_loss().
struct GaussianOptions {
  bool full = false;  ///< Adds log(2 pi) / 2.
  double eps = 1e-6;  ///< Lower bound of the variance. The gradient ignores the bound.
  Reduction reduction = Reduction::kMean;  ///< Reduction of the per-element losses.
};

/// Returns the negative log-likelihood of normally distributed targets t with mean `x`:
/// `(log(var) + (x - t)^2 / var) / 2`. `var` broadcasts to `x`.
Tensor gaussian_nll_loss(Tensor x, Tensor targets, Tensor var, const GaussianOptions& options = {},
                         Loc loc = Loc::current());

// ---- classification ----------------------------------------------------------------------------

/// Options of cross_entropy() and nll_loss().
struct CrossEntropyOptions {
  /// Weights of the classes: [C]. With i32 targets, Reduction::kMean divides by the sum of the
  /// targets' weights.
  std::optional<Tensor> weight = std::nullopt;

  /// Target to ignore, for i32 targets. Ignored targets count neither in the loss nor in the mean.
  /// By default, every target must be a class, and PyTorch's default of -100 is an error (see
  /// CompileOptions::check_indices). Counting the targets for the mean costs a language model
  /// another pass over its logits.
  std::optional<std::int32_t> ignore_index = std::nullopt;

  double label_smoothing = 0;  ///< Share of a target that is spread over all classes, in [0, 1].
  int axis = -1;               ///< Axis of the classes. PyTorch uses axis 1.
  Reduction reduction = Reduction::kMean;  ///< Reduction of the per-target losses.
};

/// Returns -log(softmax(logits)[target]). The logits are [..., C]. The targets are i32 [...], or
/// f32 [..., C] with a distribution over the classes for each example.
///
/// With i32 targets and no label smoothing, logits other than the target's may be -inf.
/// Reduction::kMean is the mean over the targets, or NaN if all of them are ignored. With f32
/// targets it divides by the number of distributions, regardless of their weights. Throws
/// ShapeError or DtypeError if operands do not match. Throws UserError if `label_smoothing` is out
/// of range, or if `ignore_index` is set with f32 targets.
Tensor cross_entropy(Tensor logits, Tensor targets, const CrossEntropyOptions& options,
                     Loc loc = Loc::current());
Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction = Reduction::kMean,
                     Loc loc = Loc::current());

/// Options of linear_cross_entropy().
struct LinearCrossEntropyOptions {
  std::optional<Tensor> bias = std::nullopt;                ///< [C].
  std::optional<std::int32_t> ignore_index = std::nullopt;  ///< See CrossEntropyOptions.
  double label_smoothing = 0;                               ///< See CrossEntropyOptions.
  Reduction reduction = Reduction::kMean;                   ///< See CrossEntropyOptions.

  /// Maximum number of rows whose logits are computed at a time. If 0, a chunk has at most 2^26
  /// logits, or one row.
  std::int64_t rows = 0;
};

/// Returns cross_entropy() of linear(x, weight, bias) without storing all logits. Use it for large
/// numbers of classes. Corresponds to `torch.nn.functional.linear_cross_entropy`. Shapes: x
/// [..., size], weight [C, size] and targets i32 [...].
///
/// Logits are computed for a chunk of rows at a time, and the gradients right after them (Hsu et
/// al. 2024, "Liger Kernel"). Only the logits of one chunk are in memory, and nothing is computed
/// twice. Gradients of the weight and the bias are accumulated chunk by chunk. All logits are
/// stored within Autocast, and if the losses of Reduction::kNone are differentiated.
///
/// Throws ShapeError if shapes do not match, DtypeError if the targets are not i32, and UserError
/// if `rows` is negative or `label_smoothing` is out of range.
Tensor linear_cross_entropy(Tensor x, Tensor weight, Tensor targets,
                            const LinearCrossEntropyOptions& options = {},
                            Loc loc = Loc::current());

/// Returns -log_probs[target]: the cross_entropy() of log-probabilities, for example from
/// log_softmax(). The targets are i32. Throws UserError if `label_smoothing` is set.
Tensor nll_loss(Tensor log_probs, Tensor targets, const CrossEntropyOptions& options = {},
                Loc loc = Loc::current());

/// Options of binary_cross_entropy() and binary_cross_entropy_with_logits().
struct BinaryOptions {
  /// Weight of each element. It broadcasts.
  std::optional<Tensor> weight = std::nullopt;

  /// Weight of positive targets, for binary_cross_entropy_with_logits() only. It broadcasts.
  std::optional<Tensor> pos_weight = std::nullopt;

  Reduction reduction = Reduction::kMean;  ///< Reduction of the per-element losses.
};

/// Returns -(t log(p) + (1 - t) log(1 - p)) for probabilities `p` and targets t in [0, 1].
/// Logarithms are at least -100, as in PyTorch. The gradient below this bound is 0. Throws
/// UserError if `pos_weight` is set.
Tensor binary_cross_entropy(Tensor p, Tensor targets, const BinaryOptions& options = {},
                            Loc loc = Loc::current());

/// Returns binary_cross_entropy() of p = sigmoid(logits), computed stably from the logits and
/// without the bound.
Tensor binary_cross_entropy_with_logits(Tensor logits, Tensor targets,
                                        const BinaryOptions& options = {},
                                        Loc loc = Loc::current());

/// Returns the Kullback-Leibler divergence `t (log(t) - x)` of targets t from log-probabilities
/// `x`. `0 log(0)` counts as 0. If `log_target` is set, the targets are log-probabilities too, and
/// the result is `e^t (t - x)`. Use Reduction::kBatchMean for the divergence of distributions.
Tensor kl_div(Tensor x, Tensor targets, Reduction reduction = Reduction::kMean,
              bool log_target = false, Loc loc = Loc::current());

// ---- distances and margins ---------------------------------------------------------------------

/// Returns x . y / (|x| |y|) along an axis, which is dropped. Norms are at least `eps`; the
/// gradient ignores the bound.
Tensor cosine_similarity(Tensor x, Tensor y, int axis = 1, double eps = 1e-8,
                         Loc loc = Loc::current());

/// Returns 1 - cos(x, y) if the target is 1, and max(0, cos(x, y) - margin) if it is -1. Shapes: x
/// and y [..., D], targets [...].
Tensor cosine_embedding_loss(Tensor x, Tensor y, Tensor targets, double margin = 0,
                             Reduction reduction = Reduction::kMean, Loc loc = Loc::current());

/// Returns `x` if the target is 1, and max(0, margin - x) if it is -1.
Tensor hinge_embedding_loss(Tensor x, Tensor targets, double margin = 1,
                            Reduction reduction = Reduction::kMean, Loc loc = Loc::current());

/// Returns max(0, margin - t (x - y)) for targets t of 1 or -1. If t = 1, `x` should be the larger
/// one.
Tensor margin_ranking_loss(Tensor x, Tensor y, Tensor targets, double margin = 0,
                           Reduction reduction = Reduction::kMean, Loc loc = Loc::current());

/// Returns max(0, |a - p| - |a - n| + margin) for vectors along the last axis (Balntas et al.
/// 2016). An epsilon of 1e-6 is added to each element of a difference. If `swap`, uses the smaller
/// of |a - n| and |p - n| instead of |a - n|. The gradient of a distance of 0 is 0.
Tensor triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, double margin = 1,
                           bool swap = false, Reduction reduction = Reduction::kMean,
                           Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
