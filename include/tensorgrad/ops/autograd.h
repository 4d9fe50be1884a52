// SPDX-License-Identifier: MIT
// Gradients, checkpointing and custom gradients in traced functions.
#pragma once

#include <functional>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the gradients of a scalar f32 loss with respect to the tensors of `wrt` (parameters,
/// inputs or intermediate values), like `torch.autograd.grad`. Gradients have the types of `wrt`
/// and can be differentiated again. A gradient is zero if the loss does not depend on the tensor.
/// Throws ShapeError if the loss is not a scalar, and DtypeError if it is not f32. In mixed
/// precision, an f16 loss is converted to f32.
std::vector<Tensor> grad(Tensor loss, const std::vector<Tensor>& wrt, Loc loc = Loc::current());

/// Returns `function(inputs)`, but does not keep its intermediate values for the backward pass. The
/// backward pass recomputes them, which costs one more forward pass of the function (Chen et al.
/// 2016; `torch.utils.checkpoint`).
///
/// On the CPU, the result and its gradients, including gradients of gradients, are bitwise equal to
/// those without checkpointing: gradients are accumulated in the same order. On a GPU, they can
/// differ by about 1e-7, because the recomputation can use other kernels. Small products and rows
/// (of normalization or softmax) can then be summed in another order. WGSL also allows drivers to
/// contract products and sums differently in each kernel.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs, Loc loc = Loc::current());

/// Returns `forward(inputs)` with the gradient that `backward` defines, as
/// `torch.autograd.Function`. `backward(inputs, y, dy)` receives the result `y` and its gradient
/// `dy`. It returns one gradient for each input, of the input's shape and type. Both functions are
/// called once, while tracing. Other tensors that `forward` reads get no gradient through it.
///
/// Throws DtypeError if `forward` does not return f32, UserError if `backward` returns a wrong
/// number of gradients, and ShapeError if a gradient has the wrong shape or type.
Tensor custom_gradient(const std::vector<Tensor>& inputs,
                       const std::function<Tensor(const std::vector<Tensor>& inputs)>& forward,
                       const std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                               Tensor y, Tensor dy)>& backward,
                       Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
