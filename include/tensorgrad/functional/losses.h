// SPDX-License-Identifier: MIT
// Losses, with the names, formulas and weighting of torch.nn.functional. Each is finite wherever
// PyTorch's is, at logits of any size. Unless said otherwise all tensors are f32 and of one shape:
// broadcasting in a loss is nearly always a mistake, and refused.
#pragma once

#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// What is made of the elements' losses: their mean, their sum, themselves; or their sum over the
// size of the first axis (what kl_div needs to be the divergence of distributions).
enum class Reduction { kMean, kSum, kNone, kBatchMean };

// ---- regression --------------------------------------------------------------------------------

// (a - b)^2.
Tensor mse(Tensor a, Tensor b, Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// The same.
Tensor mse_loss(Tensor a, Tensor b, Reduction reduction = Reduction::kMean,
                Loc loc = Loc::current());
// |a - b|; gradient 0 where they are equal.
Tensor l1_loss(Tensor a, Tensor b, Reduction reduction = Reduction::kMean,
               Loc loc = Loc::current());
// (a - b)^2 / 2 below delta > 0, delta (|a - b| - delta / 2) above (Huber 1964).
Tensor huber_loss(Tensor a, Tensor b, double delta = 1, Reduction reduction = Reduction::kMean,
                  Loc loc = Loc::current());
// huber_loss / beta; beta 0 gives l1_loss.
Tensor smooth_l1_loss(Tensor a, Tensor b, double beta = 1, Reduction reduction = Reduction::kMean,
                      Loc loc = Loc::current());

struct PoissonOptions {
  bool log_input = true;  // x is the logarithm of the rate: e^x - t x; else x - t log(x + eps)
  bool full = false;      // add Stirling's t log t - t + log(2 pi t) / 2 where t > 1
  double eps = 1e-8;
  Reduction reduction = Reduction::kMean;
};
Tensor poisson_nll_loss(Tensor x, Tensor targets, const PoissonOptions& options = {},
                        Loc loc = Loc::current());

struct GaussianOptions {
  bool full = false;  // add log(2 pi) / 2
  double eps = 1e-6;  // the variance is at least this; its gradient passes all the same
  Reduction reduction = Reduction::kMean;
};
// (log var + (x - t)^2 / var) / 2; var may be anything that broadcasts to x.
Tensor gaussian_nll_loss(Tensor x, Tensor targets, Tensor var, const GaussianOptions& options = {},
                         Loc loc = Loc::current());

// ---- classification ----------------------------------------------------------------------------

struct CrossEntropyOptions {
  std::optional<Tensor> weight = std::nullopt;  // [C]: the mean is then one by weight
  // A target of this number counts for nothing, in the mean neither. PyTorch takes -100 unasked;
  // here every target counts unless you say so, and -100 is an error: the mean over a number of
  // targets that is counted costs a language model another pass over its logits.
  std::optional<std::int32_t> ignore_index = std::nullopt;
  double label_smoothing = 0;  // in [0, 1]: this share of a target is spread over all classes
  int axis = -1;               // of the classes; PyTorch's is 1
  Reduction reduction = Reduction::kMean;
};
// -log softmax(logits)[target]; logits [..., C], targets i32 [...] (the logits' shape without the
// axis of classes); or targets f32 like the logits, a distribution over the classes for each. -inf
// logits are fine where they are not a target. The mean is over the targets: their weight where
// there are weights. All of them ignored gives NaN.
Tensor cross_entropy(Tensor logits, Tensor targets, const CrossEntropyOptions& options,
                     Loc loc = Loc::current());
Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction = Reduction::kMean,
                     Loc loc = Loc::current());
struct LinearCrossEntropyOptions {
  std::optional<Tensor> bias = std::nullopt;                // [C]
  std::optional<std::int32_t> ignore_index = std::nullopt;  // as above
  double label_smoothing = 0;
  Reduction reduction = Reduction::kMean;
  std::int64_t rows = 0;  // logits of at most so many rows at a time; 0: of 2^26 logits, or one row
};
// cross_entropy of linear(x, weight, bias) with targets i32 [...], for many classes: x [..., size],
// weight [C, size]. A piece's gradients are made where its logits are, so that the logits of one
// piece at a time are in memory, and nothing is computed twice. (torch.nn.functional's of that
// name; Hsu et al. 2024, "Liger Kernel".) Sums over rows are added up piece by piece. Within
// Autocast, and where each target's loss is asked for and differentiated (kNone), all logits are
// kept.
Tensor linear_cross_entropy(Tensor x, Tensor weight, Tensor targets,
                            const LinearCrossEntropyOptions& options = {},
                            Loc loc = Loc::current());
// cross_entropy of log-probabilities: -log_probs[target]. No label smoothing, targets i32.
Tensor nll_loss(Tensor log_probs, Tensor targets, const CrossEntropyOptions& options = {},
                Loc loc = Loc::current());

struct BinaryOptions {
  std::optional<Tensor> weight = std::nullopt;      // of each element; broadcasts
  std::optional<Tensor> pos_weight = std::nullopt;  // of positive targets; broadcasts; with logits
  Reduction reduction = Reduction::kMean;
};
// -(t log p + (1 - t) log(1 - p)), logarithms held at -100 (with gradient 0 there).
Tensor binary_cross_entropy(Tensor p, Tensor targets, const BinaryOptions& options = {},
                            Loc loc = Loc::current());
// The same of p = sigmoid(logits), from the logits.
Tensor binary_cross_entropy_with_logits(Tensor logits, Tensor targets,
                                        const BinaryOptions& options = {},
                                        Loc loc = Loc::current());

// t (log t - x), x being log-probabilities and 0 log 0 = 0; with log_target e^t (t - x).
Tensor kl_div(Tensor x, Tensor targets, Reduction reduction = Reduction::kMean,
              bool log_target = false, Loc loc = Loc::current());

// ---- distances and margins ---------------------------------------------------------------------

// x . y / (|x| |y|) along an axis, which is dropped; norms are at least eps.
Tensor cosine_similarity(Tensor x, Tensor y, int axis = 1, double eps = 1e-8,
                         Loc loc = Loc::current());
// x, y [..., D], targets [...] of 1 or -1: 1 - cos where 1, max(0, cos - margin) where -1.
Tensor cosine_embedding_loss(Tensor x, Tensor y, Tensor targets, double margin = 0,
                             Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// targets of 1 or -1: x where 1, max(0, margin - x) where -1.
Tensor hinge_embedding_loss(Tensor x, Tensor targets, double margin = 1,
                            Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// max(0, margin - t (x - y)), t of 1 or -1.
Tensor margin_ranking_loss(Tensor x, Tensor y, Tensor targets, double margin = 0,
                           Reduction reduction = Reduction::kMean, Loc loc = Loc::current());
// max(0, |a - p| - |a - n| + margin) of vectors along the last axis; eps = 1e-6 is added to each
// difference. `swap`: the nearer of |a - n| and |p - n| (Balntas et al. 2016).
Tensor triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, double margin = 1,
                           bool swap = false, Reduction reduction = Reduction::kMean,
                           Loc loc = Loc::current());

}  // namespace tensorgrad
