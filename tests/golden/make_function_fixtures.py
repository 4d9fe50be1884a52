# SPDX-License-Identifier: MIT
"""Writes what torch.nn.functional gives in double precision: functions.safetensors. Run it in this folder.

A case has its operands `name/in0` .., its result `name/out`, and `name/grad0` .., the gradients of
sum(result * w) by the operands of floats, with w = 1, 1.25, 1.5 .. 2.5, 1, 1.25 ..
"""

import math

import torch
import torch.nn.functional as F

from make_fixtures import draw, write_safetensors

INF = math.inf
tensors = {}
generator = torch.Generator().manual_seed(5)


def weights_like(x):
    return (1 + torch.arange(x.numel(), dtype=torch.float64) % 7 * 0.25).reshape(x.shape)


def case(name, function, *operands):
    given = []
    for i, operand in enumerate(operands):
        if not torch.is_tensor(operand):
            operand = torch.tensor(operand)
        if operand.dtype == torch.bool:
            operand = operand.to(torch.int32)
        if operand.is_floating_point():
            operand = operand.float().double().requires_grad_(True)
        tensors[f"{name}/in{i}"] = operand.detach()
        given.append(operand)
    y = function(*given)
    tensors[f"{name}/out"] = y if y.dtype != torch.bool else y.to(torch.int32)
    if not y.is_floating_point() or not y.requires_grad:
        return
    (y * weights_like(y)).sum().backward()
    for i, operand in enumerate(given):
        if operand.grad is not None:
            tensors[f"{name}/grad{i}"] = operand.grad


def normal(*shape):
    return draw(generator, shape, 1.0)


def unit(*shape):
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def activations():
    x = [-1e4, -100, -20, -7, -3.0000002, -3, -2.5, -1.5, -1, -0.3, -1e-4, 0, 1e-4, 0.5, 1, 2, 2.9999998, 3, 6, 7, 20,
         100, 1e4]
    for name, function in {
        "leaky_relu": lambda v: F.leaky_relu(v, 0.1), "elu": lambda v: F.elu(v, 0.7), "selu": F.selu,
        "celu": lambda v: F.celu(v, 0.7), "hardtanh": F.hardtanh, "relu6": F.relu6, "hardsigmoid": F.hardsigmoid,
        "hardswish": F.hardswish, "mish": F.mish, "logsigmoid": F.logsigmoid, "softsign": F.softsign,
        "tanhshrink": F.tanhshrink, "threshold": lambda v: F.threshold(v, 0.5, -2), "gelu": F.gelu, "silu": F.silu,
        "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"), "softplus": F.softplus,
        "atan": torch.atan, "asinh": torch.asinh,
    }.items():
        case(name, function, x)
    small = [-5.0, -1, -0.9, -0.1, -1e-4, 0, 1e-4, 0.3, 0.8, 1, 2.5, 40]
    case("sinh", torch.sinh, small)
    case("cosh", torch.cosh, small)
    inside = [-1.0, -0.99, -0.5, -1e-4, 0, 1e-4, 0.3, 0.999, 1]
    case("asin", torch.asin, inside)
    case("acos", torch.acos, inside)
    case("atanh", torch.atanh, inside[1:-1])
    case("acosh", torch.acosh, [1.0001, 1.5, 10, 1e4, 1e9])
    case("log10", torch.log10, [1e-30, 0.001, 0.5, 1, 7, 1e5, 3e38])
    case("hypot", torch.hypot, [3.0, 1e-20, 3e18, -1], [4.0, 2e-20, -1e18, 0])
    case("glu", F.glu, normal(3, 6))
    case("prelu", F.prelu, normal(2, 3, 2), [0.1, -0.2, 0.7])
    case("clamp", lambda v, lo, hi: torch.clamp(v, lo, hi), [-2.0, -1, 0, 1, 2, 0.5, 0.5], [-1.0, -1, -1, -1, -1, 2, 0],
         [1.0, 1, 1, 1, 1, 1, 1])
    case("lerp", torch.lerp, normal(5), normal(5), [0.0, 0.3, 0.5, 0.8, 1.0])
    case("remainder", torch.remainder, [7.5, -7.5, 7.5, -7.5, 6, -6, 0.25], [2.0, 2, -2, -2, 3, 3, -1])
    case("floor_divide", lambda v, w: torch.floor_divide(v.detach(), w.detach()), [7.5, -7.5, 7.5, -7.5, 6, -6, 0.25, 1], [2.0, 2, -2, -2, 3, 3, -1, 0])
    whole = torch.tensor([7, -7, 7, -7, 6, -6, 0, 5], dtype=torch.int32), torch.tensor([2, 2, -2, -2, 3, 3, 4, -1],
                                                                                    dtype=torch.int32)
    case("remainder_i32", torch.remainder, *whole)
    case("floor_divide_i32", torch.floor_divide, *whole)
    case("nan_to_num", lambda v: torch.nan_to_num(v.float()).double(), torch.tensor([1.5, math.nan, INF, -INF], dtype=torch.float32))


def losses():
    a, b = normal(4, 3), normal(4, 3)
    b[0] = a[0]
    for how in ("mean", "sum", "none"):
        case(f"mse_loss_{how}", lambda x, y: F.mse_loss(x, y, reduction=how), a, b)
        case(f"l1_loss_{how}", lambda x, y: F.l1_loss(x, y, reduction=how), a, b)
        case(f"huber_loss_{how}", lambda x, y: F.huber_loss(x, y, reduction=how, delta=0.6), a, b)
        case(f"smooth_l1_loss_{how}", lambda x, y: F.smooth_l1_loss(x, y, reduction=how, beta=0.6), a, b)
    case("huber_far", lambda x, y: F.huber_loss(x, y, reduction="none"), [1e30, -1e30, 1.0, 1.5], [0.0, 0, 0, 0])

    logits = normal(6, 5) * 3
    logits[1] = torch.tensor([1e4, -1e4, 0, 9999, 30])
    weight = unit(5) + 0.2
    target = torch.tensor([0, 3, 4, -100, 2, 2], dtype=torch.int32)
    kept = torch.tensor([0, 3, 4, 1, 2, 2], dtype=torch.int32)
    shares = torch.softmax(normal(6, 5), -1)
    for how in ("mean", "sum", "none"):
        case(f"cross_entropy_{how}", lambda x, t: F.cross_entropy(x, t.long(), reduction=how), logits, kept)
        case(f"cross_entropy_ignore_{how}", lambda x, t: F.cross_entropy(x, t.long(), reduction=how), logits, target)
        case(f"cross_entropy_all_{how}", lambda x, t, w: F.cross_entropy(x, t.long(), w.detach(), reduction=how,
                                                                         label_smoothing=0.2), logits, target, weight)
        case(f"cross_entropy_shares_{how}", lambda x, t, w: F.cross_entropy(x, t, w.detach(), reduction=how,
                                                                            label_smoothing=0.2), logits, shares, weight)
        case(f"nll_loss_{how}", lambda x, t, w: F.nll_loss(x, t.long(), w.detach(), reduction=how), logits, target, weight)
    masked = torch.tensor([[0.5, -INF, 2], [-INF, -INF, 1]], dtype=torch.float64)
    case("cross_entropy_masked", lambda x, t: F.cross_entropy(x, t.long(), reduction="none"), masked,
         torch.tensor([2, 2], dtype=torch.int32))
    case("cross_entropy_axis_1", lambda x, t: F.cross_entropy(x, t.long()), normal(2, 3, 4),
         torch.randint(0, 3, (2, 4), generator=generator).int())

    p, t = unit(3, 4) * 0.98 + 0.01, unit(3, 4)
    far = torch.tensor([1e4, -1e4, 1e4, -1e4, 90, -90, 0, 30], dtype=torch.float64)
    ends = torch.tensor([0, 1, 1, 0, 0, 1, 0.3, 0.5], dtype=torch.float64)
    for how in ("mean", "sum", "none"):
        case(f"bce_{how}", lambda x, y, w: F.binary_cross_entropy(x, y, w.detach(), reduction=how), p, t.clone(), unit(4) + 0.5)
        case(f"bce_logits_{how}", lambda x, y, w, q: F.binary_cross_entropy_with_logits(
            x, y, w.detach(), reduction=how, pos_weight=q.detach()), normal(3, 4) * 3, t.clone(), unit(4) + 0.5, unit(4) + 0.5)
    case("bce_logits_far", lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), far, ends)
    logs = torch.log_softmax(normal(3, 4), -1)
    for how in ("mean", "sum", "none", "batchmean"):
        case(f"kl_div_{how}", lambda x, y: F.kl_div(x, y, reduction=how), logs, shares[:3, :4])
        case(f"kl_div_log_{how}", lambda x, y: F.kl_div(x, y, reduction=how, log_target=True), logs, normal(3, 4) - 2)
    with torch.no_grad():
        hole = shares[0].clone()
        hole[2] = 0
    case("kl_div_hole", lambda x: F.kl_div(x, hole.float().double(), reduction="none"), normal(5))
    tensors["kl_div_hole/in1"] = hole

    u, v = normal(4, 3), normal(4, 3)
    case("cosine_similarity", F.cosine_similarity, u, v)
    case("cosine_similarity_short", lambda x, y: F.cosine_similarity(x, y, dim=0), [1e-9, 2e-9], [3.0, 4])
    signs = torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)
    case("cosine_embedding", lambda x, y: F.cosine_embedding_loss(x, y, signs, margin=-0.3), u, v)
    case("hinge_embedding", lambda x: F.hinge_embedding_loss(x, signs, margin=0.4), normal(4))
    case("margin_ranking", lambda x, y: F.margin_ranking_loss(x, y, signs, margin=0.2), normal(4), normal(4))
    case("triplet", lambda x, y, z: F.triplet_margin_loss(x, y, z, reduction="none"), u, v, normal(4, 3))
    case("triplet_swap", lambda x, y, z: F.triplet_margin_loss(x, y, z, swap=True), u, v, normal(4, 3))
    for full in (False, True):
        case(f"poisson_{full}", lambda x, y: F.poisson_nll_loss(x, y.detach(), full=full), normal(4), [0.0, 1, 2, 7])
        case(f"poisson_rate_{full}", lambda x, y: F.poisson_nll_loss(x, y.detach(), log_input=False, full=full), [0.0, 1, 2, 7],
             [0.0, 1, 5, 7])
        case(f"gaussian_{full}", lambda x, y, s: F.gaussian_nll_loss(x, y, s, full=full), normal(3, 2), normal(3, 2),
             [[0.5, 1e-9], [1, 2], [3, 0.1]])


def others():
    x = normal(2, 6, 4)
    case("layer_norm", lambda v, w, b: F.layer_norm(v, (6, 4), w, b), x, normal(6, 4), normal(6, 4))
    case("rms_norm", lambda v, w: F.rms_norm(v, (4,), w, 2.0**-23), x, normal(4))
    case("rms_norm_small", lambda v: F.rms_norm(v, (3,), eps=2.0**-23), [1e-4, -2e-4, 3e-4])
    case("group_norm", lambda v, w, b: F.group_norm(v, 3, w, b), x, normal(6), normal(6))
    case("instance_norm", lambda v: F.instance_norm(v), x)
    case("batch_norm", lambda v, w, b: F.batch_norm(v, None, None, w, b, training=True), x, normal(6), normal(6))
    case("normalize", F.normalize, [[3.0, 4, 0], [1e-13, 0, 0], [1, 1, 1]])
    case("softmax_masked", lambda v: torch.softmax(v, -1), [[1.0, -INF, 2], [0, -INF, -INF]])
    q, k, v = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2)
    case("attention", F.scaled_dot_product_attention, q, k, v)
    case("attention_causal", lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), q, k, v)
    mask = torch.tensor([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]])
    case("attention_masked", lambda a, b, c, m: F.scaled_dot_product_attention(a, b, c, m != 0), q, k, v, mask.int())
    case("attention_added", F.scaled_dot_product_attention, q, k, v, normal(3, 5))
    case("attention_grouped", lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True),
         normal(1, 4, 3, 2), normal(1, 2, 3, 2), normal(1, 2, 3, 2))
    case("einsum_batched", lambda a, b: torch.einsum("bij,bkj->kbi", a, b), normal(2, 3, 4), normal(2, 5, 4))
    case("einsum_dots", lambda a, b: torch.einsum("...ij,...jk", a, b), normal(2, 1, 3, 4), normal(5, 4, 2))
    case("einsum_implied", lambda a, b: torch.einsum("ca,aB", a, b), normal(2, 3), normal(3, 4))
    case("einsum_trace", lambda a: torch.einsum("iji->j", a), normal(3, 2, 3))
    case("tensordot", lambda a, b: torch.tensordot(a, b, ([0, 2], [2, 0])), normal(2, 3, 4), normal(4, 5, 2))
    case("pad_reflect", lambda v: F.pad(v, (3, 1, 0, 2), "reflect"), normal(1, 3, 4))
    case("pad_replicate", lambda v: F.pad(v, (5, 1, 2, 0), "replicate"), normal(1, 3, 4))
    case("pad_circular", lambda v: F.pad(v, (4, 1, 1, 3), "circular"), normal(1, 3, 4))
    case("roll", lambda v: torch.roll(v, (1, -5), (0, 1)), normal(3, 4))
    case("tile", lambda v: torch.tile(v, (2, 1, 2)), normal(2, 3))
    case("repeat_interleave", lambda v: v.repeat_interleave(3, 1), normal(2, 3))
    case("diagonal", lambda v: torch.diagonal(v, -1, 1, 2), normal(2, 4, 3))
    case("diag", lambda v: torch.diag(v, 2), normal(3))
    case("tril", lambda v: torch.tril(v, 1), normal(2, 3, 4))
    case("triu", lambda v: torch.triu(v, -1), normal(4, 3))
    case("movedim", lambda v: torch.movedim(v, (0, -1), (-1, 1)), normal(2, 3, 4))
    case("linspace", lambda v: v + torch.linspace(-1, 2.5, 7, dtype=torch.float64), normal(7))
    case("take_along_dim", lambda v, i: torch.take_along_dim(v, i.long(), 0), normal(4, 3),
         torch.tensor([[3], [1]]).int())
    case("scatter", lambda v, i, s: torch.scatter(v, 0, i.long(), s), normal(4, 2),
         torch.tensor([[3, 0], [1, 2]]).int(), normal(2, 2))
    case("index_add", lambda v, i, s: torch.index_add(v, 1, i.long(), s), normal(2, 4), torch.tensor([1, 3, 1]).int(),
         normal(2, 3))


if __name__ == "__main__":
    activations()
    losses()
    others()
    write_safetensors("functions.safetensors", tensors)
