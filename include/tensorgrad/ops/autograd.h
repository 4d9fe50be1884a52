// SPDX-License-Identifier: MIT
// Gradients of a traced function, and what a part of it has to say about its own.
#pragma once

#include <functional>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// The gradient of a scalar f32 loss with respect to each of `wrt`: parameters, inputs or anything
// in between. Gradients are tensors like others, and have gradients in turn. Zero where the loss
// does not depend on it.
std::vector<Tensor> grad(Tensor loss, const std::vector<Tensor>& wrt, Loc loc = Loc::current());

// What `function` gives for `inputs`, without keeping what it computes on the way for the backward
// pass, which computes it again (Chen et al. 2016; torch.utils.checkpoint). Costs one more forward
// pass of the function. It changes no bit of the result and its gradients, gradients of gradients
// among them: gradients are added up in the order in which they are without it. But on a GPU the
// second pass's kernels may be others: small products and rows (of norms, softmax) may be added up
// in another order, and WGSL lets a driver contract products and sums as it likes, kernel by kernel
// (some 1e-7).
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs, Loc loc = Loc::current());

// What `forward` gives for `inputs`, with the gradient that `backward` says instead of its own:
// `backward(inputs, y, dy)` gets y, the result, and dy, its gradient, and gives one gradient for
// each input, of the same shape. (torch.autograd.Function.) What forward reads beside its inputs
// has no gradient through it.
// Throws ShapeError, DtypeError or UserError where backward gives something else.
Tensor custom_gradient(const std::vector<Tensor>& inputs,
                       const std::function<Tensor(const std::vector<Tensor>& inputs)>& forward,
                       const std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                               Tensor y, Tensor dy)>& backward,
                       Loc loc = Loc::current());

}  // namespace tensorgrad
