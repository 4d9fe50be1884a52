# SPDX-License-Identifier: MIT
"""What PyTorch calls the public ops: tools/differential.py compares with it.

Each rule takes the arguments of the op in the order of its parameters in C++, defaults filled in,
tensors as those of PyTorch, options as an object with a member for each field. Ops without a rule
are named in LEFT_OUT with the reason.
"""
import math

import torch
import torch.nn.functional as F

LEFT_OUT = {
    **dict.fromkeys("""random_bits rand rand_like uniform randn randn_like normal exponential
        bernoulli randint randperm categorical multinomial gumbel_softmax dropout dropout1d
        dropout2d alpha_dropout philox""".split(), "random"),
    "sample_tokens": "PyTorch has no such function",
    **dict.fromkeys("""scalar state set_state capture print is_training grad checkpoint
        custom_gradient associative_scan""".split(), "no function of its arguments"),
    **dict.fromkeys("""causal_conv1d selective_scan ssd rotary_scan linear_recurrence
        linear_cross_entropy segment_softmax batch_statistics unpack_bytes
        bitcast""".split(), "PyTorch has no such function"),
    "constant": "its argument is no tensor",
}
# Whose gradient is not compared.
NO_GRADIENT = {
    "scatter": "PyTorch's is wrong for duplicates",
    "round_to_f16": "it is not differentiable here",
    "kl_div": "PyTorch's by a target of 0 is NaN",
    "poisson_nll_loss": "PyTorch's by the targets is NaN from Stirling's formula at 0",
}
# Which edge values are not tried.
NO_EDGES = {
    "lerp": "PyTorch adds products without rounding them, which overflow later",
    "scaled_dot_product_attention": "PyTorch multiplies masked values by 0",
    **dict.fromkeys("conv_transpose1d conv_transpose2d".split(),
                    "an infinity is multiplied by the zeros between elements"),
    **dict.fromkeys("softmax log_softmax".split(), "a row with +inf is NaN, here in fewer places"),
    **dict.fromkeys("""binary_cross_entropy binary_cross_entropy_with_logits nll_loss cross_entropy
        kl_div poisson_nll_loss gaussian_nll_loss cosine_embedding_loss hinge_embedding_loss
        """.split(), "not in the domain of the targets"),
}
# Differences from their argument: a rounding error of that stays, however small the result.
DIFFERENCES = {"tanhshrink"}
DTYPES = {"f32": None, "i32": torch.int32, "u32": torch.int64, "bool": torch.bool}


def axes_of(axes, x):
    """Axes as PyTorch takes them; none given means all."""
    given = [axes] if isinstance(axes, int) else list(axes)
    return given or list(range(x.dim()))


def integer(x):
    return not x.is_floating_point()


def divide(a, b):
    whole = integer(a) and integer(b)
    return torch.div(a, b, rounding_mode="trunc") if whole else a / b


def minimum(a, b):
    return torch.minimum(*torch.broadcast_tensors(a, b))


def maximum(a, b):
    return torch.maximum(*torch.broadcast_tensors(a, b))


def reduced(loss, reduction):
    if reduction == "batchMean":
        return loss.sum() / loss.shape[0]
    return {"none": loss, "sum": loss.sum(), "mean": loss.mean()}[reduction]


def torch_reduction(loss):
    """A loss of PyTorch whose reduction is done here."""
    return lambda *arguments: reduced(loss(*arguments[:-1]), arguments[-1])


def prod(x, axes, keepdim):
    for axis in sorted((a % x.dim() for a in axes_of(axes, x)), reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim)
    return x


class LogCumSumExp(torch.autograd.Function):
    """torch.logcumsumexp, whose own gradient drops NaN of the gradient that it is given."""

    @staticmethod
    def forward(ctx, x, axis):
        y = torch.logcumsumexp(x, axis)
        ctx.axis = axis % max(1, x.dim())
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y, dy = (each.movedim(ctx.axis, -1) for each in (*ctx.saved_tensors, dy))
        later = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool).triu()
        terms = dy.unsqueeze(-2) * torch.exp(x.unsqueeze(-1) - y.unsqueeze(-2))
        dx = torch.where(later, terms, torch.zeros(())).sum(-1)
        return dx.movedim(-1, ctx.axis), None


def masked_softmax(x, mask, axis):
    scores = x.masked_fill(~mask, -math.inf)
    nothing = (scores == -math.inf).all(axis, keepdim=True)
    return scores.masked_fill(nothing, 0.0).softmax(axis).masked_fill(nothing, 0.0)


def rope(x, options):
    half = x.shape[-1] // 2
    if x.shape[-1] % 2 or options.position is not None:
        raise ValueError("not a case")
    place = torch.arange(x.shape[-2], dtype=torch.float64) + options.offset
    pair = torch.arange(half, dtype=torch.float64)
    angle = (place[:, None] * options.base ** (-2 * pair / x.shape[-1])).to(x.dtype)
    cos, sin = angle.cos(), angle.sin()
    if options.pairs == "halves":
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def attention(q, k, v, options):
    if options.enable_gqa or options.dropout or options.mask is not None:
        raise ValueError("not a case")
    scale = options.scale if options.scale is not None else 1 / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-1, -2) * scale
    if options.causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return scores.softmax(-1) @ v


def cross_entropy(logits, targets, options):
    if isinstance(options, str):
        return F.cross_entropy(logits.movedim(-1, 1 if logits.dim() > 1 else 0), targets.long(),
                               reduction=none_of(options))
    if options.ignore_index is not None:
        raise ValueError("not a case")
    logits = logits.movedim(options.axis, 1)
    return F.cross_entropy(logits, targets.long(), options.weight,
                           label_smoothing=options.label_smoothing,
                           reduction=none_of(options.reduction))


def none_of(reduction):
    if reduction == "batchMean":
        raise ValueError("not a case")
    return reduction


def nll_loss(log_probs, targets, options):
    if options.ignore_index is not None or options.label_smoothing:
        raise ValueError("not a case")
    return F.nll_loss(log_probs.movedim(options.axis, 1), targets.long(), options.weight,
                      reduction=none_of(options.reduction))


def binary(loss):
    def rule(x, targets, options):
        more = {} if options.pos_weight is None else {"pos_weight": options.pos_weight}
        return loss(x, targets, options.weight, reduction=none_of(options.reduction), **more)
    return rule


def layer_norm(x, *rest):
    if rest and isinstance(rest[0], (list, tuple)):
        shape, weight, bias, eps = rest
    else:
        (weight, bias, eps), shape = rest, x.shape[-1:]
    return F.layer_norm(x, list(shape), weight, bias, eps)


def batch_norm(x, mean, var, weight, bias, eps):
    return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)


def pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def convolution(function):
    return lambda x, w, b, o: function(x, w, b, o.stride, o.padding, o.dilation, o.groups)


def transposed(function):
    return lambda x, w, b, o: function(x, w, b, o.stride, o.padding, o.output_padding, o.groups,
                                       o.dilation)


def interpolate(x, size, mode, align_corners):
    if mode == "nearest":
        if align_corners:
            raise ValueError("not a case")
        return F.interpolate(x, pair(size), mode="nearest")
    return F.interpolate(x, pair(size), mode="bilinear", align_corners=align_corners)


def pad(x, amounts, how):
    if not isinstance(how, str):
        return F.pad(x, list(amounts), value=how)
    axes = len(amounts) // 2  # PyTorch wants one or two axes more than it pads
    batched = x.reshape((1,) * (axes + 2 - x.dim()) + tuple(x.shape)) if x.dim() < axes + 2 else x
    padded = F.pad(batched, list(amounts), mode=how)
    return padded.reshape(padded.shape[padded.dim() - x.dim():])


def cast(x, dtype):
    if dtype == "f16":
        return x.to(torch.float16).to(x.dtype) if x.is_floating_point() else None
    if x.is_floating_point() and dtype == "bool":
        return x != 0
    target = DTYPES[dtype] or torch.get_default_dtype()
    if x.is_floating_point() and dtype in ("i32", "u32"):
        low, high = (-2.0 ** 31, 2.0 ** 31 - 1) if dtype == "i32" else (0.0, 2.0 ** 32 - 1)
        x = x.detach().double().nan_to_num(nan=0.0).trunc().clamp(low, high)
    return x.to(target)


def norm(x, p, axes, keepdim):
    return torch.linalg.vector_norm(x, p, axes_of(axes, x), keepdim)


def argument(function):
    def rule(x, axis, keepdim):
        if axis is None:
            return function(x.flatten(), 0) if not keepdim else None
        return function(x, axis, keepdim)
    return rule


def values_and_indices(result):
    return [result.values, result.indices.to(torch.int32)]


def split(x, size, axis):
    return list(torch.split(x, size if isinstance(size, int) else list(size), axis))


def unfold(x, axis, size, step, dilation):
    axis %= x.dim()
    starts = range(0, x.shape[axis] - (size - 1) * dilation, step)
    rows = [x.narrow(axis, s, (size - 1) * dilation + 1) for s in starts]
    rows = [row.index_select(axis, torch.arange(0, row.shape[axis], dilation)) for row in rows]
    return torch.stack([row.movedim(axis, -1) for row in rows], axis)


def tensordot(a, b, *rest):
    return torch.tensordot(a, b, rest[0] if len(rest) == 1 else (list(rest[0]), list(rest[1])))


def matmul(a, b):
    return torch.matmul(a, b)


def shaped(function):
    """An op without tensors."""
    def rule(*arguments):
        *rest, dtype = arguments
        return function(*rest).to(DTYPES[dtype] or torch.get_default_dtype())
    return rule


def iota(shape, axis):
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return torch.arange(shape[axis]).reshape(along).expand(list(shape))


def scatter_reduce(how):
    return lambda x, axis, index, source: x.scatter_reduce(axis, index.long(), source, how)


def index_add(x, axis, index, source):
    return x.index_add(axis, index.long(), source)


def index_update(x, axis, start, update):
    place = iota(x.shape, axis) - start.long()
    size = update.shape[axis]
    taken = update.gather(axis, place.clamp(0, size - 1))
    return torch.where((place >= 0) & (place < size), taken, x)


def bitwise(function):
    def rule(*x):
        if not all(integer(each) for each in x):
            raise ValueError("not a case")
        return function(*x)
    return rule


RULES = {
    # Pointwise, by the same name.
    **{name: getattr(torch, name) for name in """fmod pow atan2 neg abs floor ceil round trunc exp
        exp2 expm1 log log2 log1p sqrt rsqrt reciprocal square sin cos tan tanh sigmoid sinh asinh
        acosh atanh relu erf eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan
        isfinite isinf lerp hypot log10 asin acos atan cosh tril triu outer dot remainder sign
        """.split()},
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": divide,
    "minimum": minimum, "maximum": maximum, "softplus": lambda x: F.softplus(x, threshold=1e9),
    "round_to_f16": lambda x: cast(x, "f16"), "floor_divide": torch.floor_divide,
    "bitwise_and": bitwise(torch.bitwise_and), "bitwise_or": bitwise(torch.bitwise_or),
    "bitwise_xor": bitwise(torch.bitwise_xor), "bitwise_not": bitwise(torch.bitwise_not),
    "bitwise_left_shift": bitwise(torch.bitwise_left_shift),
    "bitwise_right_shift": bitwise(torch.bitwise_right_shift),
    "where": torch.where, "cast": cast, "detach": lambda x: x.detach(),
    "clamp": lambda x, lo, hi: minimum(maximum(x, torch.as_tensor(lo, dtype=x.dtype)),
                                       torch.as_tensor(hi, dtype=x.dtype)),
    "nan_to_num": torch.nan_to_num,
    # Activations.
    "softmax": torch.softmax, "log_softmax": torch.log_softmax,
    "masked_softmax": masked_softmax,
    "gelu": lambda x, how: F.gelu(x, approximate=how), "silu": F.silu, "leaky_relu": F.leaky_relu,
    "prelu": lambda x, w: torch.where(x > 0, x, w * x), "elu": F.elu, "celu": F.celu,
    "selu": F.selu, "hardtanh": F.hardtanh, "relu6": F.relu6, "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish, "mish": F.mish, "logsigmoid": F.logsigmoid, "softsign": F.softsign,
    "tanhshrink": F.tanhshrink, "threshold": F.threshold, "glu": F.glu,
    "causal_mask": lambda rows, columns: torch.ones(rows, columns).tril() > 0,
    "rope": rope, "scaled_dot_product_attention": attention,
    # Losses.
    "mse": torch_reduction(lambda a, b: (a - b) ** 2),
    "mse_loss": torch_reduction(lambda a, b: (a - b) ** 2),
    "l1_loss": torch_reduction(lambda a, b: (a - b).abs()),
    "huber_loss": torch_reduction(lambda a, b, d: F.huber_loss(a, b, "none", d)),
    "smooth_l1_loss": torch_reduction(lambda a, b, d: F.smooth_l1_loss(a, b, None, None, "none", d)),
    "poisson_nll_loss": lambda x, t, o: F.poisson_nll_loss(
        x, t, o.log_input, o.full, None, o.eps, None, none_of(o.reduction)),
    "gaussian_nll_loss": lambda x, t, v, o: F.gaussian_nll_loss(
        x, t, v, o.full, o.eps, none_of(o.reduction)),
    "cross_entropy": cross_entropy, "nll_loss": nll_loss,
    "binary_cross_entropy": binary(F.binary_cross_entropy),
    "binary_cross_entropy_with_logits": binary(F.binary_cross_entropy_with_logits),
    "kl_div": lambda x, t, how, log: reduced(F.kl_div(x, t, reduction="none", log_target=log), how),
    "cosine_similarity": F.cosine_similarity,
    "cosine_embedding_loss": lambda x, y, t, margin, how: F.cosine_embedding_loss(
        x, y, t, margin, reduction=none_of(how)),
    "hinge_embedding_loss": torch_reduction(
        lambda x, t, margin: F.hinge_embedding_loss(x, t, margin, reduction="none")),
    "margin_ranking_loss": torch_reduction(
        lambda x, y, t, margin: F.margin_ranking_loss(x, y, t, margin, reduction="none")),
    "triplet_margin_loss": lambda a, p, n, margin, swap, how: F.triplet_margin_loss(
        a, p, n, margin, swap=swap, reduction=none_of(how)),
    # Norms.
    "layer_norm": layer_norm, "group_norm": F.group_norm, "batch_norm": batch_norm,
    "rms_norm": lambda x, w, eps: F.rms_norm(x, x.shape[-1:], w, eps),
    "instance_norm": lambda x, w, b, eps: F.instance_norm(x, None, None, w, b, True, 0.0, eps),
    "normalize": lambda x, axis, eps: F.normalize(x, 2.0, axis, eps),
    # Images.
    "conv2d": convolution(F.conv2d), "conv1d": convolution(F.conv1d),
    "conv_transpose2d": transposed(F.conv_transpose2d),
    "conv_transpose1d": transposed(F.conv_transpose1d),
    "max_pool2d": lambda x, k, o: F.max_pool2d(x, k, o.stride, o.padding, o.dilation),
    "max_pool1d": lambda x, k, o: F.max_pool1d(x, k, o.stride, o.padding, o.dilation),
    "avg_pool2d": lambda x, k, o: F.avg_pool2d(x, k, o.stride, o.padding, False,
                                               o.count_include_pad),
    "avg_pool1d": lambda x, k, o: F.avg_pool1d(x, k, o.stride, o.padding, False,
                                               o.count_include_pad),
    "adaptive_avg_pool2d": lambda x, size: F.adaptive_avg_pool2d(x, pair(size)),
    "adaptive_max_pool2d": lambda x, size: F.adaptive_max_pool2d(x, pair(size)),
    "interpolate": interpolate,
    # Tensors of no others.
    "full": shaped(lambda shape, value: torch.full(list(shape), value)),
    "zeros": shaped(lambda shape: torch.zeros(list(shape))),
    "ones": shaped(lambda shape: torch.ones(list(shape))), "arange": shaped(torch.arange),
    "iota": shaped(iota), "eye": shaped(lambda n, m: torch.eye(n, n if m < 0 else m)),
    "full_like": torch.full_like, "zeros_like": torch.zeros_like, "ones_like": torch.ones_like,
    "linspace": torch.linspace,
    "one_hot": shaped(lambda index, n: F.one_hot(index.long(), n)),
    "meshgrid": lambda vectors: list(torch.meshgrid(*vectors, indexing="ij")),
    # Indices.
    "gather": lambda x, axis, index: torch.gather(x, axis, index.long()),
    "take_along_dim": lambda x, index, axis: torch.take_along_dim(x, index.long(), axis),
    "embedding": lambda index, table: F.embedding(index.long(), table),
    "index_select": lambda x, axis, index: torch.index_select(x, axis, index.long()),
    "scatter": lambda x, axis, index, source: x.scatter(axis, index.long(), source),
    "scatter_add": lambda x, axis, index, source: x.scatter_add(axis, index.long(), source),
    "scatter_max": scatter_reduce("amax"), "scatter_min": scatter_reduce("amin"),
    "index_add": index_add, "index_update": index_update, "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    # Products.
    "matmul": matmul, "linear": F.linear, "tensordot": tensordot,
    "einsum": lambda formula, operands: torch.einsum(formula, *operands),
    # Shapes.
    "concat": torch.cat, "stack": torch.stack, "pad": pad,
    "diag": torch.diag, "roll": lambda x, shifts, axes: torch.roll(x, list(shifts), list(axes)),
    "tile": lambda x, counts: torch.tile(x, list(counts)),
    "repeat": lambda x, counts: x.repeat(*counts),
    "repeat_interleave": torch.repeat_interleave,
    "reshape": lambda x, shape: x.reshape(list(shape)),
    "permute": lambda x, axes: x.permute(*axes), "transpose": torch.transpose,
    "broadcast_to": lambda x, shape: x.broadcast_to(list(shape)), "narrow": torch.narrow,
    "flip": lambda x, axes: torch.flip(x, axes_of(axes, x)), "unfold": unfold,
    "unsqueeze": torch.unsqueeze, "squeeze": torch.squeeze, "flatten": torch.flatten,
    "swapaxes": torch.swapaxes,
    "movedim": lambda x, start, end: torch.movedim(x, list(start), list(end)),
    "expand": lambda x, shape: x.expand(list(shape)), "split": split,
    "chunk": lambda x, count, axis: list(torch.chunk(x, count, axis)),
    "unbind": lambda x, axis: list(torch.unbind(x, axis)), "diagonal": torch.diagonal,
    # Reductions.
    "sum": lambda x, axes, keep: torch.sum(x, axes_of(axes, x), keep),
    "mean": lambda x, axes, keep: torch.mean(x, axes_of(axes, x), keep),
    "max": lambda x, axes, keep: torch.amax(x, axes_of(axes, x), keep),
    "min": lambda x, axes, keep: torch.amin(x, axes_of(axes, x), keep),
    "var": lambda x, axes, correction, keep: torch.var(x, axes_of(axes, x), correction=correction,
                                                       keepdim=keep),
    "std": lambda x, axes, correction, keep: torch.std(x, axes_of(axes, x), correction=correction,
                                                       keepdim=keep),
    "logsumexp": lambda x, axes, keep: torch.logsumexp(x, axes_of(axes, x), keep),
    "prod": prod, "norm": norm, "argmax": argument(torch.argmax), "argmin": argument(torch.argmin),
    "any": lambda x, axes, keep: torch.any(x != 0, axes_of(axes, x), keep),
    "all": lambda x, axes, keep: torch.all(x != 0, axes_of(axes, x), keep),
    "count_nonzero": lambda x, axes, keep: torch.sum(x != 0, axes_of(axes, x), keep),
    # Along an axis.
    "argsort": lambda x, axis, down: torch.sort(x, dim=axis, descending=down, stable=True).indices,
    "sort": lambda x, axis, down: values_and_indices(
        torch.sort(x, dim=axis, descending=down, stable=True)),
    "topk": lambda x, k, axis, largest: [torch.topk(x, k, axis, largest).values, None],
    "cumsum": torch.cumsum, "cumprod": torch.cumprod, "logcumsumexp": LogCumSumExp.apply,
    "cummax": lambda x, axis: [torch.cummax(x, axis).values, None],
    "cummin": lambda x, axis: [torch.cummin(x, axis).values, None],
}
