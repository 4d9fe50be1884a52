// SPDX-License-Identifier: MIT
// Losses, composed of other ops. where() evaluates both branches, so the argument of the branch not
// taken is replaced by one with a finite gradient: 0 * infinity would be NaN.
#include "tensorgrad/functional/losses.h"

#include <cmath>
#include <numbers>

#include "base/numbers.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

struct Named {
  const char* name;
  Tensor tensor;
};

void same_shape(const char* op, const Named& a, const Named& b, const SourceLocation& location) {
  if (a.tensor.shape() == b.tensor.shape()) return;
  throw ShapeError(std::string(op) + ": shapes differ: " + a.name + " " +
                       to_string(a.tensor.shape()) + ", " + b.name + " " +
                       to_string(b.tensor.shape()),
                   location);
}

Tensor reduced(Tensor x, Reduction reduction, Loc loc) {
  switch (reduction) {
    case Reduction::kMean: return mean(x, {}, false, loc);
    case Reduction::kSum: return sum(x, {}, false, loc);
    case Reduction::kNone: return x;
    case Reduction::kBatchMean:
      return sum(x, {}, false, loc) * (1.0 / static_cast<double>(x.size(0, loc)));
  }
  return x;
}

// Like torch.clamp_min: NaN is kept, and the gradient passes at the bound. The test for NaN is
// needed because comparisons with NaN may be true on GPUs.
Tensor at_least(Tensor x, double bound) { return where(lt(x, bound) && !isnan(x), bound, x); }

// Returns t log t, or 0 if t is 0.
Tensor t_log_t(Tensor t) {
  const Tensor zero = eq(t, 0.0);
  return where(zero, 0.0, t * log(where(zero, 1.0, t)));
}

// Returns the Huber loss of d divided by its scale:
//   q^2 / 2 + delta (|d| - q), with q = min(|d|, delta)
Tensor huber(Tensor d, double delta) {
  const Tensor size = abs(d), inner = minimum(size, delta);
  return 0.5 * square(inner) + delta * (size - inner);
}

void check_positive(const char* op, const char* what, double value,
                    const SourceLocation& location) {
  if (value > 0) return;
  throw UserError(std::string(op) + ": " + what + " must be more than 0, got " + number_text(value),
                  location);
}

}  // namespace

Tensor mse(Tensor a, Tensor b, Reduction reduction, Loc loc) {
  const Composite composite("mse", loc);
  upcast({&a, &b});
  same_shape("mse", {"a", a}, {"b", b}, loc);
  return reduced(square(a - b), reduction, loc);
}

Tensor mse_loss(Tensor a, Tensor b, Reduction reduction, Loc loc) {
  const Composite composite("mse_loss", loc);
  upcast({&a, &b});
  same_shape("mse_loss", {"a", a}, {"b", b}, loc);
  return reduced(square(a - b), reduction, loc);
}

Tensor l1_loss(Tensor a, Tensor b, Reduction reduction, Loc loc) {
  const Composite composite("l1_loss", loc);
  upcast({&a, &b});
  same_shape("l1_loss", {"a", a}, {"b", b}, loc);
  return reduced(abs(a - b), reduction, loc);
}

Tensor huber_loss(Tensor a, Tensor b, double delta, Reduction reduction, Loc loc) {
  const Composite composite("huber_loss", loc);
  upcast({&a, &b});
  same_shape("huber_loss", {"a", a}, {"b", b}, loc);
  check_positive("huber_loss", "delta", delta, loc);
  return reduced(huber(a - b, delta), reduction, loc);
}

Tensor smooth_l1_loss(Tensor a, Tensor b, double beta, Reduction reduction, Loc loc) {
  const Composite composite("smooth_l1_loss", loc);
  upcast({&a, &b});
  same_shape("smooth_l1_loss", {"a", a}, {"b", b}, loc);
  if (beta == 0) return reduced(abs(a - b), reduction, loc);
  check_positive("smooth_l1_loss", "beta", beta, loc);
  return reduced(huber(a - b, beta) * (1.0 / beta), reduction, loc);
}

Tensor poisson_nll_loss(Tensor x, Tensor targets, const PoissonOptions& options, Loc loc) {
  const Composite composite("poisson_nll_loss", loc);
  upcast({&x, &targets});
  same_shape("poisson_nll_loss", {"x", x}, {"targets", targets}, loc);
  Tensor loss = options.log_input ? exp(x) - targets * x : x - targets * log(x + options.eps);
  if (options.full) {
    const Tensor large = gt(targets, 1.0), t = where(large, targets, 1.0);
    const Tensor stirling = t * log(t) - t + 0.5 * log(2 * std::numbers::pi * t);
    loss = loss + where(large, stirling, 0.0);
  }
  return reduced(loss, options.reduction, loc);
}

Tensor gaussian_nll_loss(Tensor x, Tensor targets, Tensor var, const GaussianOptions& options,
                         Loc loc) {
  const Composite composite("gaussian_nll_loss", loc);
  upcast({&x, &targets, &var});
  same_shape("gaussian_nll_loss", {"x", x}, {"targets", targets}, loc);
  // The bound affects the value but not the gradient.
  const Tensor held = var + detach(at_least(var, options.eps) - var);
  Tensor loss = 0.5 * (log(held) + square(x - targets) / held);
  if (options.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(loss, options.reduction, loc);
}

// ---- classification ----------------------------------------------------------------------------

namespace {

// Common parts of the classification losses: checks, and the class axis moved to the end.
struct Classes {
  Classes(const char* op, Tensor x, Tensor targets, const CrossEntropyOptions& options, Loc loc);

  // Returns the element of `x` [..., C] that each target selects.
  [[nodiscard]] Tensor picked(Tensor x) const {
    return squeeze(gather(x, -1, unsqueeze(index, -1, loc), loc), -1, loc);
  }
  // Returns x, with zeros for ignored targets.
  [[nodiscard]] Tensor kept(Tensor x) const { return keep ? where(*keep, x, 0.0) : x; }
  // Returns the weight of each target.
  [[nodiscard]] Tensor weights() const {
    if (!weight) return kept(ones(index.shape(), f32, loc));
    Shape all = index.shape();
    all.push_back(weight->size(0));
    return kept(picked(broadcast_to(*weight, all, loc)));
  }

  const CrossEntropyOptions& options;
  Loc loc;
  Tensor scores, index;  // [..., C], i32 [...]
  std::optional<Tensor> weight, keep;
};

Classes::Classes(const char* op, Tensor x, Tensor targets, const CrossEntropyOptions& given, Loc at)
    : options(given), loc(at), scores(x), index(targets), weight(given.weight) {
  const std::string name = op;
  if (x.rank() == 0) throw ShapeError(name + ": expected logits [..., C], got []", loc);
  const auto axis = static_cast<int>(resolve_axis(given.axis, x.shape(), name, loc));
  std::vector<int> turned;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != axis) turned.push_back(d);
  }
  turned.push_back(axis);
  Shape expected = x.shape();
  expected.erase(expected.begin() + axis);
  const bool one_each = targets.shape() == expected;
  const bool by_index = targets.dtype() != DType::kF32;
  if (by_index ? targets.dtype() != DType::kI32 : one_each) {
    throw DtypeError(name + ": targets must be i32, got " + std::string(to_string(targets.dtype())),
                     loc);
  }
  if (!by_index) expected = x.shape();
  if (targets.shape() != expected) {
    throw ShapeError(name + ": targets must be " + to_string(expected) + " for logits " +
                         to_string(x.shape()) + ", got " + to_string(targets.shape()),
                     loc);
  }
  if (weight && weight->shape() != Shape{x.size(axis)}) {
    throw ShapeError(name + ": weight must be " + to_string(Shape{x.size(axis)}) + " for logits " +
                         to_string(x.shape()) + ", got " + to_string(weight->shape()),
                     loc);
  }
  if (axis != x.rank() - 1) {
    scores = permute(x, turned, loc);
    if (!by_index) index = permute(targets, turned, loc);
  }
  if (by_index && given.ignore_index) {
    keep = ne(targets, *given.ignore_index);
    index = where(*keep, targets, 0);
  }
}

// Reduces `losses`. For a mean, divides by the sum of the weights of the targets.
Tensor reduced_by_weight(Tensor losses, const Classes& classes, Loc loc) {
  const bool plain = !classes.weight && !classes.keep;
  if (plain || classes.options.reduction != Reduction::kMean)
    return reduced(losses, classes.options.reduction, loc);
  return sum(losses, {}, false, loc) / sum(classes.weights(), {}, false, loc);
}

// A log-probability is a score minus `shift` minus `log_sum`, both [...]. The shift is subtracted
// first; the logarithm would lose digits if it were added to it.
struct Normaliser {
  Tensor shift, log_sum;
};

Tensor loss_by_index(const Classes& classes, const std::optional<Normaliser>& by, Loc loc) {
  const double smoothing = classes.options.label_smoothing;
  Tensor loss = -classes.picked(classes.scores);
  if (by) loss = (by->shift + loss) + by->log_sum;
  if (classes.weight) loss = loss * classes.weights();
  if (smoothing > 0) {
    Tensor logs = classes.scores;
    if (by) logs = (logs - unsqueeze(by->shift, -1, loc)) - unsqueeze(by->log_sum, -1, loc);
    const Tensor spread = classes.weight ? logs * *classes.weight : logs;
    const auto count = static_cast<double>(classes.scores.size(-1));
    loss = (1 - smoothing) * loss - (smoothing / count) * sum(spread, -1, false, loc);
  }
  return reduced_by_weight(classes.kept(loss), classes, loc);
}

// Like PyTorch, divides by the number of distributions, regardless of weights.
Tensor loss_by_distribution(const Classes& classes, Loc loc) {
  const double smoothing = classes.options.label_smoothing;
  const auto count = static_cast<double>(classes.scores.size(-1));
  Tensor targets = classes.index;
  if (smoothing > 0) targets = targets * (1 - smoothing) + smoothing / count;
  if (classes.weight) targets = targets * *classes.weight;
  const Tensor losses = -sum(log_softmax(classes.scores, -1, loc) * targets, -1, false, loc);
  return reduced(losses, classes.options.reduction, loc);
}

}  // namespace

// Computes log(sum exp(logits - m)) + m - logits[target], where m is the maximum. The target's
// logit is read by a gather along the classes.
Tensor cross_entropy(Tensor logits, Tensor targets, const CrossEntropyOptions& options, Loc loc) {
  const Composite composite("cross_entropy", loc);
  upcast({&logits, &targets});
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw UserError("cross_entropy: label_smoothing must be in [0, 1], got " +
                        number_text(options.label_smoothing),
                    loc);
  }
  const Classes classes("cross_entropy", logits, targets, options, loc);
  if (targets.dtype() == DType::kF32) {
    if (options.ignore_index) {
      throw UserError("cross_entropy: ignore_index requires i32 targets, got f32", loc);
    }
    return loss_by_distribution(classes, loc);
  }
  const Tensor shift = detached_max(classes.scores, -1, loc);
  const Tensor log_sum = log(sum(exp(classes.scores - shift), -1, false, loc));
  return loss_by_index(classes, Normaliser{squeeze(shift, -1, loc), log_sum}, loc);
}

Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction, Loc loc) {
  return cross_entropy(logits, targets, {.reduction = reduction}, loc);
}

Tensor nll_loss(Tensor log_probs, Tensor targets, const CrossEntropyOptions& options, Loc loc) {
  const Composite composite("nll_loss", loc);
  upcast({&log_probs, &targets});
  if (targets.dtype() != DType::kI32) {
    throw DtypeError(
        "nll_loss: targets must be i32, got " + std::string(to_string(targets.dtype())), loc);
  }
  if (options.label_smoothing != 0) {
    throw UserError("nll_loss: label_smoothing is only supported by cross_entropy", loc);
  }
  return loss_by_index(Classes("nll_loss", log_probs, targets, options, loc), std::nullopt, loc);
}

Tensor binary_cross_entropy(Tensor p, Tensor targets, const BinaryOptions& options, Loc loc) {
  const Composite composite("binary_cross_entropy", loc);
  upcast({&p, &targets});
  same_shape("binary_cross_entropy", {"p", p}, {"targets", targets}, loc);
  if (options.pos_weight) {
    throw UserError("binary_cross_entropy: pos_weight requires binary_cross_entropy_with_logits",
                    loc);
  }
  const auto held_log = [](Tensor x) {
    const Tensor none = le(x, 0.0);
    return where(none, -100.0, at_least(log(where(none, 1.0, x)), -100.0));
  };
  Tensor loss = -(targets * held_log(p) + (1.0 - targets) * held_log(1.0 - p));
  if (options.weight) loss = loss * *options.weight;
  return reduced(loss, options.reduction, loc);
}

// -log sigmoid(x) = softplus(-x), -log(1 - sigmoid(x)) = softplus(x)
Tensor binary_cross_entropy_with_logits(Tensor logits, Tensor targets, const BinaryOptions& options,
                                        Loc loc) {
  const Composite composite("binary_cross_entropy_with_logits", loc);
  upcast({&logits, &targets});
  same_shape("binary_cross_entropy_with_logits", {"logits", logits}, {"targets", targets}, loc);
  Tensor positive = targets * softplus(-logits);
  if (options.pos_weight) positive = positive * *options.pos_weight;
  Tensor loss = positive + (1.0 - targets) * softplus(logits);
  if (options.weight) loss = loss * *options.weight;
  return reduced(loss, options.reduction, loc);
}

Tensor kl_div(Tensor x, Tensor targets, Reduction reduction, bool log_target, Loc loc) {
  const Composite composite("kl_div", loc);
  upcast({&x, &targets});
  same_shape("kl_div", {"x", x}, {"targets", targets}, loc);
  if (log_target) return reduced(exp(targets) * (targets - x), reduction, loc);
  return reduced(t_log_t(targets) - targets * x, reduction, loc);
}

// ---- distances and margins ---------------------------------------------------------------------

namespace {

// Returns |x| along an axis, with gradient 0 at 0.
Tensor length(Tensor x, int axis, bool keepdim, Loc loc) {
  const Tensor squares = sum(square(x), axis, keepdim, loc), zero = eq(squares, 0.0);
  return where(zero, 0.0, sqrt(where(zero, 1.0, squares)));
}

}  // namespace

Tensor cosine_similarity(Tensor x, Tensor y, int axis, double eps, Loc loc) {
  const Composite composite("cosine_similarity", loc);
  upcast({&x, &y});
  same_shape("cosine_similarity", {"x", x}, {"y", y}, loc);
  // The bound affects the value but not the gradient.
  const auto unit = [&](Tensor v) {
    const Tensor norm = length(v, axis, true, loc);
    return v / (norm + detach(at_least(norm, eps) - norm));
  };
  return sum(unit(x) * unit(y), axis, false, loc);
}

Tensor cosine_embedding_loss(Tensor x, Tensor y, Tensor targets, double margin, Reduction reduction,
                             Loc loc) {
  const Composite composite("cosine_embedding_loss", loc);
  upcast({&x, &y, &targets});
  same_shape("cosine_embedding_loss", {"x", x}, {"y", y}, loc);
  const auto squares = [&](Tensor v) { return sum(square(v), -1, false, loc) + 1e-12; };
  const Tensor cosine = sum(x * y, -1, false, loc) / sqrt(squares(x) * squares(y));
  same_shape("cosine_embedding_loss", {"cosines", cosine}, {"targets", targets}, loc);
  const Tensor loss = where(eq(targets, 1.0), 1.0 - cosine, 0.0) +
                      where(eq(targets, -1.0), at_least(cosine - margin, 0), 0.0);
  return reduced(loss, reduction, loc);
}

Tensor hinge_embedding_loss(Tensor x, Tensor targets, double margin, Reduction reduction, Loc loc) {
  const Composite composite("hinge_embedding_loss", loc);
  upcast({&x, &targets});
  same_shape("hinge_embedding_loss", {"x", x}, {"targets", targets}, loc);
  const Tensor loss =
      where(ne(targets, -1.0), x, 0.0) + where(ne(targets, 1.0), at_least(margin - x, 0), 0.0);
  return reduced(loss, reduction, loc);
}

Tensor margin_ranking_loss(Tensor x, Tensor y, Tensor targets, double margin, Reduction reduction,
                           Loc loc) {
  const Composite composite("margin_ranking_loss", loc);
  upcast({&x, &y, &targets});
  same_shape("margin_ranking_loss", {"x", x}, {"y", y}, loc);
  same_shape("margin_ranking_loss", {"x", x}, {"targets", targets}, loc);
  return reduced(at_least(margin - targets * (x - y), 0), reduction, loc);
}

Tensor triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, double margin,
                           bool swap, Reduction reduction, Loc loc) {
  const Composite composite("triplet_margin_loss", loc);
  upcast({&anchor, &positive, &negative});
  same_shape("triplet_margin_loss", {"anchor", anchor}, {"positive", positive}, loc);
  same_shape("triplet_margin_loss", {"anchor", anchor}, {"negative", negative}, loc);
  const auto distance = [&](Tensor a, Tensor b) { return length(a - b + 1e-6, -1, false, loc); };
  Tensor away = distance(anchor, negative);
  if (swap) away = minimum(away, distance(positive, negative));
  const Tensor loss = at_least(distance(anchor, positive) - away + margin, 0);
  return reduced(loss, reduction, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
