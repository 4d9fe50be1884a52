// SPDX-License-Identifier: MIT
// Cross-entropy of a linear layer over many classes, computed for a chunk of rows at a time. The
// gradient of the summed loss is 1 times the gradient that flows into the sum. The gradients of a
// chunk are therefore computed right after its loss, while its logits are available. The logits are
// neither kept nor recomputed. Liger Kernel (Hsu et al. 2024) does the same.
#include <algorithm>

#include "ops/registry.h"
#include "tensorgrad/functional/losses.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Default number of logits of a chunk: 256 MB, enough to occupy any GPU with matrix products.
constexpr std::int64_t kMaxLogits = std::int64_t{1} << 26;

// Returns the largest divisor of `rows` in (most / 2, most], or min(rows, most) if there is none.
std::int64_t rows_of_piece(std::int64_t rows, std::int64_t most) {
  for (std::int64_t each = std::min(rows, most); each > most / 2; --each) {
    if (rows % each == 0) return each;
  }
  return std::min(rows, most);
}

CrossEntropyOptions options_of(const LinearCrossEntropyOptions& given, Reduction reduction) {
  return {.ignore_index = given.ignore_index,
          .label_smoothing = given.label_smoothing,
          .reduction = reduction};
}

class Head {
 public:
  Head(Tensor x, Tensor weight, Tensor targets, const LinearCrossEntropyOptions& options, Loc loc)
      : x_(reshape(x, {numel(targets.shape()), weight.size(1, loc)}, loc)),
        weight_(transpose(weight, 0, 1, loc)),
        targets_(reshape(targets, {numel(targets.shape())}, loc)),
        options_(options),
        loc_(loc) {
    if (!options_.bias) return;
    upcast({&*options_.bias});
    bias_ = unsqueeze(*options_.bias, 0, loc);
  }

  [[nodiscard]] std::int64_t rows() const { return x_.size(0); }

  // Returns the losses of some rows.
  [[nodiscard]] Tensor losses(std::int64_t first, std::int64_t count) const {
    return loss_of(narrow(x_, 0, first, count, loc_), first, Reduction::kNone);
  }

  // Returns the sum of the losses of all rows, and computes the gradients with it. The gradients
  // are with respect to views that only the head reads, because x may also depend on the weight.
  [[nodiscard]] Tensor sum_of_losses(std::int64_t each) const {
    std::vector<Tensor> inputs = {x_, weight_}, of_rows, of_rest;
    if (bias_) inputs.push_back(*bias_);
    const auto forward = [&](const std::vector<Tensor>&) {
      std::optional<Tensor> total;
      for (std::int64_t first = 0; first < rows(); first += each) {
        std::vector<Tensor> wrt = inputs;
        wrt[0] = narrow(x_, 0, first, std::min(each, rows() - first), loc_);
        const Tensor loss = loss_of(wrt[0], first, Reduction::kSum);
        const std::vector<Tensor> gradients = grad(loss, wrt, loc_);
        of_rows.push_back(gradients[0]);
        for (std::size_t i = 1; i < gradients.size(); ++i) {
          if (first == 0)
            of_rest.push_back(gradients[i]);
          else
            of_rest[i - 1] = stored(of_rest[i - 1] + gradients[i]);
        }
        total = total ? *total + loss : loss;
      }
      return *total;
    };
    const auto backward = [&](const std::vector<Tensor>&, Tensor, Tensor dy) {
      std::vector<Tensor> gradients = {concat(of_rows, 0, loc_) * dy};
      for (const Tensor& gradient : of_rest) gradients.push_back(gradient * dy);
      return gradients;
    };
    return custom_gradient(inputs, forward, backward, loc_);
  }

  // Returns the number of targets that are not ignored.
  [[nodiscard]] Tensor count() const {
    return sum(cast(ne(targets_, *options_.ignore_index), f32), {}, false, loc_);
  }

 private:
  // Materializes a partial sum. If all chunks were added up later, all of them would be kept until
  // then.
  [[nodiscard]] Tensor stored(Tensor x) const {
    OpContext ctx("linear_cross_entropy", loc_);
    return ctx.out(op::apply(ctx.builder, ops::barrier, {ctx.in(x)}));
  }
  [[nodiscard]] Tensor loss_of(Tensor rows, std::int64_t first, Reduction reduction) const {
    const Tensor products = matmul(rows, weight_, loc_);
    return cross_entropy(bias_ ? products + *bias_ : products,
                         narrow(targets_, 0, first, rows.size(0), loc_),
                         options_of(options_, reduction), loc_);
  }

  Tensor x_, weight_, targets_;  // [rows, size], [size, C], [rows]
  std::optional<Tensor> bias_;   // [1, C]
  LinearCrossEntropyOptions options_;
  Loc loc_;
};

void check_operands(Tensor x, Tensor weight, Tensor targets, const LinearCrossEntropyOptions& given,
                    Loc loc) {
  const std::string name = "linear_cross_entropy: ";
  if (weight.rank() != 2 || x.rank() < 1 || x.size(-1) != weight.size(1)) {
    throw ShapeError(name + "inner sizes differ: x " + to_string(x.shape()) + ", weight " +
                         to_string(weight.shape()) + " ([classes, size])",
                     loc);
  }
  if (targets.dtype() != DType::kI32) {
    throw DtypeError(name + "targets must be i32, got " + std::string(to_string(targets.dtype())),
                     loc);
  }
  Shape expected = x.shape();
  expected.pop_back();
  if (targets.shape() != expected) {
    throw ShapeError(name + "targets must be " + to_string(expected) + " for x " +
                         to_string(x.shape()) + ", got " + to_string(targets.shape()),
                     loc);
  }
  if (given.bias) demand_shape("linear_cross_entropy", "bias", *given.bias, {weight.size(0)}, loc);
  if (given.rows < 0)
    throw UserError(name + "rows must be 0 or more, got " + std::to_string(given.rows), loc);
}

}  // namespace

Tensor linear_cross_entropy(Tensor x, Tensor weight, Tensor targets,
                            const LinearCrossEntropyOptions& options, Loc loc) {
  const Composite composite("linear_cross_entropy", loc);
  check_operands(x, weight, targets, options, loc);
  const std::int64_t rows = numel(targets.shape());
  const std::int64_t each =
      options.rows > 0
          ? options.rows
          : rows_of_piece(rows, std::max<std::int64_t>(1, kMaxLogits / weight.size(0)));
  if (rows <= each || autocasts()) {
    return cross_entropy(linear(x, weight, options.bias, loc), targets,
                         options_of(options, options.reduction), loc);
  }
  upcast({&x, &weight});
  const Head head(x, weight, targets, options, loc);
  if (options.reduction == Reduction::kNone) {
    std::vector<Tensor> losses;
    for (std::int64_t first = 0; first < rows; first += each)
      losses.push_back(head.losses(first, std::min(each, rows - first)));
    return reshape(concat(losses, 0, loc), targets.shape(), loc);
  }
  const Tensor total = head.sum_of_losses(each);
  switch (options.reduction) {
    case Reduction::kMean:
      return options.ignore_index ? total / head.count() : total / static_cast<double>(rows);
    case Reduction::kBatchMean: return total / static_cast<double>(targets.size(0));
    default: return total;
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
