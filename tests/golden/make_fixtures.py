# SPDX-License-Identifier: MIT
"""Writes what PyTorch computes in double precision from float32 values. Needs torch (CPU); run it in this folder.

mlp.safetensors and lm.safetensors: two small models trained for 10 steps.
optim.safetensors: parameters under each optimizer with given gradients, and learning-rate schedules.
vision.safetensors: convolutions, pools and resizing, with the gradients of a weighted sum.
scan.safetensors: scans, sorts and their like of three tensors, with gradients.
"""

import math
import struct

import torch
import torch.nn.functional as F

import fixture_file

STEPS = 10


def write_safetensors(path, tensors):
    def entry(name, tensor):
        whole = tensor.dtype in (torch.int64, torch.int32)
        flat = tensor.detach().flatten().tolist()
        return (name, "I32" if whole else "F32", tensor.shape, struct.pack(f"<{len(flat)}{'i' if whole else 'f'}", *flat))

    fixture_file.write(path, [entry(name, tensor) for name, tensor in tensors.items()])


def draw(generator, shape, scale):
    return (torch.randn(shape, generator=generator) * scale).float().double()


def train(path, params, batches, loss_of, optimizer_of, clip):
    tensors = {f"init/{name}": value.clone() for name, value in params.items()}
    for name, value in batches.items():
        tensors[name] = value
    for value in params.values():
        value.requires_grad_(True)
    optimizer = optimizer_of(list(params.values()))
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(params, {name: value[step] for name, value in batches.items()})
        loss.backward()
        if step == 0:
            tensors.update({f"grad/{name}": value.grad.clone() for name, value in params.items()})
        if clip > 0:
            torch.nn.utils.clip_grad_norm_(list(params.values()), clip)
        optimizer.step()
        losses.append(loss.item())
    tensors.update({f"final/{name}": value for name, value in params.items()})
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    write_safetensors(path, tensors)
    print(path, losses)


def mlp():
    g = torch.Generator().manual_seed(1)
    params = {
        "hidden.weight": draw(g, (32, 64), 0.125), "hidden.bias": draw(g, (32,), 0.1),
        "out.weight": draw(g, (10, 32), 0.2), "out.bias": draw(g, (10,), 0.1),
    }
    batches = {"x": draw(g, (STEPS, 16, 64), 1.0), "t": torch.randint(0, 10, (STEPS, 16), generator=g)}

    def loss_of(p, batch):
        hidden = torch.relu(F.linear(batch["x"], p["hidden.weight"], p["hidden.bias"]))
        return F.cross_entropy(F.linear(hidden, p["out.weight"], p["out.bias"]), batch["t"])

    train("mlp.safetensors", params, batches, loss_of,
          lambda values: torch.optim.AdamW(values, lr=3e-3, weight_decay=0.05), clip=0.5)


def language_model():
    g = torch.Generator().manual_seed(2)
    vocab, width, length, heads, batch = 17, 16, 8, 2, 4
    params = {
        "tokens.weight": draw(g, (vocab, width), 0.5), "places.weight": draw(g, (length, width), 0.3),
        "norm1.weight": 1 + draw(g, (width,), 0.1), "norm1.bias": draw(g, (width,), 0.1),
        # No bias: that of the keys has a gradient of exactly 0, and Adam would train on the rounding of it.
        "qkv.weight": draw(g, (3 * width, width), 0.25),
        "joined.weight": draw(g, (width, width), 0.25), "joined.bias": draw(g, (width,), 0.1),
        "norm2.weight": 1 + draw(g, (width,), 0.1), "norm2.bias": draw(g, (width,), 0.1),
        "up.weight": draw(g, (4 * width, width), 0.25), "up.bias": draw(g, (4 * width,), 0.1),
        "down.weight": draw(g, (width, 4 * width), 0.125), "down.bias": draw(g, (width,), 0.1),
        "norm3.weight": 1 + draw(g, (width,), 0.1), "norm3.bias": draw(g, (width,), 0.1),
    }
    text = torch.randint(0, vocab, (STEPS, batch, length + 1), generator=g)
    batches = {"x": text[:, :, :-1].contiguous(), "t": text[:, :, 1:].contiguous()}

    def loss_of(p, data):
        def norm(x, name):
            return F.layer_norm(x, (width,), p[name + ".weight"], p[name + ".bias"])

        def linear(x, name):
            return F.linear(x, p[name + ".weight"], p[name + ".bias"])

        x = p["tokens.weight"][data["x"]] + p["places.weight"]
        parts = F.linear(norm(x, "norm1"), p["qkv.weight"]).view(batch, length, 3, heads, width // heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + linear(mixed, "joined")
        x = x + linear(F.gelu(linear(norm(x, "norm2"), "up")), "down")
        logits = norm(x, "norm3") @ p["tokens.weight"].T
        return F.cross_entropy(logits.reshape(-1, vocab), data["t"].reshape(-1))

    train("lm.safetensors", params, batches, loss_of,
          lambda values: torch.optim.Adam(values, lr=1e-2), clip=0)


class Formula(torch.optim.Optimizer):
    """What torch.optim does not have: an update of one parameter, as its paper has it, with state from 0."""

    def __init__(self, params, **numbers):
        super().__init__(params, {**self.defaults_of, **numbers})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["t"] = state.get("t", 0) + 1
                for name in ("m", "v"):
                    state.setdefault(name, torch.zeros_like(p))
                self.update(p, p.grad, state, group)


class EpsilonHat(Formula):
    """Kingma and Ba 2015, the end of section 2."""
    defaults_of = {"beta1": 0.9, "beta2": 0.999}

    def update(self, p, g, s, h):
        s["m"] = h["beta1"] * s["m"] + (1 - h["beta1"]) * g
        s["v"] = h["beta2"] * s["v"] + (1 - h["beta2"]) * g * g
        rate = h["lr"] * math.sqrt(1 - h["beta2"] ** s["t"]) / (1 - h["beta1"] ** s["t"])
        p -= rate * s["m"] / (s["v"].sqrt() + h["eps"])


class Lion(Formula):
    """Chen et al. 2023, algorithm 2."""
    defaults_of = {"beta1": 0.9, "beta2": 0.99}

    def update(self, p, g, s, h):
        c = h["beta1"] * s["m"] + (1 - h["beta1"]) * g
        p -= h["lr"] * (c.sign() + h["weight_decay"] * p)
        s["m"] = h["beta2"] * s["m"] + (1 - h["beta2"]) * g


class Muon(Formula):
    """Jordan et al. 2024, in double, for a matrix [m, n]."""
    defaults_of = {"momentum": 0.95}

    def update(self, p, g, s, h):
        s["m"] = h["momentum"] * s["m"] + g
        x = g + h["momentum"] * s["m"]
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.T if tall else x
        p *= 1 - h["lr"] * h["weight_decay"]
        p -= h["lr"] * math.sqrt(max(1, p.shape[0] / p.shape[1])) * x


def several(tensors):
    """Parameters of several shapes with given gradients: Muon beside AdamW, groups, accumulation, averages."""
    g = torch.Generator().manual_seed(4)
    shapes = {"wide": (3, 5), "bias": (5,), "tall": (6, 2)}
    start = {name: draw(g, shape, 1.0) for name, shape in shapes.items()}
    grads = {name: draw(g, (12, *shape), 1.0) for name, shape in shapes.items()}
    for name in shapes:
        tensors[f"several/start/{name}"], tensors[f"several/grads/{name}"] = start[name], grads[name]
    optim = torch.optim

    def muon(p):
        return [Muon([p["wide"], p["tall"]], lr=0.1, weight_decay=0.3),
                optim.AdamW([p["bias"]], lr=0.1 * 0.2, weight_decay=0.3)]

    def groups(p):
        return [optim.AdamW([{"params": [p["bias"]], "weight_decay": 0.0, "lr": 0.02},
                             {"params": [p["wide"]]}], lr=0.1, weight_decay=0.3)]

    def adamw(p):
        return [optim.AdamW(list(p.values()), lr=0.1, weight_decay=0.3)]

    cases = {"muon": (muon, 1, 0), "groups": (groups, 1, 0), "accumulate": (adamw, 3, 0), "ema": (adamw, 1, 0.9)}
    for case, (make, every, decay) in cases.items():
        p = {name: value.clone().requires_grad_(True) for name, value in start.items()}
        made = make(p)
        model = torch.nn.ParameterDict(p)
        from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
        averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        for step in range(12):
            for name, value in p.items():
                part = grads[name][step] / every
                value.grad = part if step % every == 0 else value.grad + part
            if (step + 1) % every == 0:
                if case == "accumulate":
                    torch.nn.utils.clip_grad_norm_(list(p.values()), 1.5)
                for optimizer in made:
                    optimizer.step()
                averaged.update_parameters(model)
        for name, value in (averaged.module if case == "ema" else model).items():
            tensors[f"several/{case}/{name}"] = value.detach()


def optimizers(tensors):
    """One parameter, whose gradients do not depend on it: large, ordinary, tiny and zero ones."""
    g = torch.Generator().manual_seed(3)
    start = draw(g, (8,), 1.0)
    scale = torch.tensor([1e4, 1e2, 1, 1, 1, 1e-3, 1e-7, 0], dtype=torch.float64)
    grads = (draw(g, (12, 8), 1.0) * scale).float().double()
    grads[5:] /= 64  # norms on both sides of the one that clips
    tensors["start"], tensors["grads"] = start, grads
    optim = torch.optim
    cases = {
        "sgd": lambda p: optim.SGD(p, lr=0.1),
        "sgd_decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.3),
        "sgd_momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        "sgd_momentum_decay": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.3),
        "sgd_nesterov_decay": lambda p: optim.SGD(p, lr=0.1, momentum=0.8, weight_decay=0.3, nesterov=True),
        "sgd_clip": lambda p: optim.SGD(p, lr=0.1),
        "adam": lambda p: optim.Adam(p, lr=0.1),
        "adam_decay": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.3),
        "adam_betas": lambda p: optim.Adam(p, lr=0.1, betas=(0.5, 0.8), eps=1e-3),
        "adamw": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.3),
        "adamw_clip": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.3),
        "adamw_no_decay": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0),
        "sgd_dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.4),
        "sgd_maximize": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.3, maximize=True),
        "adam_amsgrad": lambda p: optim.Adam(p, lr=0.1, betas=(0.9, 0.8), amsgrad=True),
        "adam_maximize": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.3, maximize=True),
        "adamw_amsgrad": lambda p: optim.AdamW(p, lr=0.1, betas=(0.9, 0.8), weight_decay=0.3, amsgrad=True),
        "nadam": lambda p: optim.NAdam(p, lr=0.1, weight_decay=0.3),
        "nadam_decoupled": lambda p: optim.NAdam(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.3, momentum_decay=0.1,
                                                 decoupled_weight_decay=True),
        "radam": lambda p: optim.RAdam(p, lr=0.1, weight_decay=0.3),
        "radam_decoupled": lambda p: optim.RAdam(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.3,
                                                 decoupled_weight_decay=True, maximize=True),
        "rmsprop": lambda p: optim.RMSprop(p, lr=0.1),
        "rmsprop_momentum": lambda p: optim.RMSprop(p, lr=0.1, alpha=0.8, momentum=0.9, weight_decay=0.3),
        "rmsprop_centered": lambda p: optim.RMSprop(p, lr=0.1, alpha=0.8, eps=1e-3, centered=True, maximize=True),
        "adagrad": lambda p: optim.Adagrad(p, lr=0.1, maximize=True),
        "adagrad_decay": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.2, weight_decay=0.3,
                                                 initial_accumulator_value=0.5),
        "adadelta": lambda p: optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.3, maximize=True),
        "clip_value": lambda p: optim.SGD(p, lr=0.1),
        "normalize": lambda p: optim.SGD(p, lr=0.1),
        "adam_epsilon_hat": lambda p: EpsilonHat(p, lr=0.1, eps=1e-3),
        "lion": lambda p: Lion(p, lr=0.1, weight_decay=0.3),
    }
    for name, make in cases.items():
        value = start.clone().requires_grad_(True)
        optimizer = make([value])
        after = []
        for grad in grads:
            value.grad = grad.clone()
            if name.endswith("_clip"):
                torch.nn.utils.clip_grad_norm_([value], 100)
            if name == "clip_value":
                torch.nn.utils.clip_grad_value_([value], 0.5)
            if name == "normalize":
                value.grad /= value.grad.norm() + 1e-8
            optimizer.step()
            after.append(value.detach().clone())
        tensors["optimizer/" + name] = torch.stack(after)


def schedules(tensors):
    """The learning rate of each of 40 steps, as float64 in two float32 parts."""
    from torch.optim import lr_scheduler as lr

    def warmup(optimizer, steps, after):
        first = lr.LinearLR(optimizer, start_factor=1 / (steps + 1), end_factor=1, total_iters=steps)
        return lr.SequentialLR(optimizer, [first, after], milestones=[steps])

    cases = {
        "constant": lambda o: lr.ConstantLR(o, factor=1),
        "linear": lambda o: lr.LinearLR(o, start_factor=1, end_factor=0.1, total_iters=30),
        "cosine": lambda o: lr.CosineAnnealingLR(o, T_max=39, eta_min=0.05),
        "step": lambda o: lr.StepLR(o, step_size=7, gamma=0.5),
        "multi_step": lambda o: lr.MultiStepLR(o, milestones=[3, 10, 10, 25], gamma=0.5),
        "warmup_constant": lambda o: warmup(o, 5, lr.ConstantLR(o, factor=1)),
        "one_cycle": lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=40),
        "one_cycle_linear": lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=40, pct_start=0.45, div_factor=10,
                                                    final_div_factor=100, anneal_strategy="linear"),
        "one_cycle_three_phase": lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=40, pct_start=0.33,
                                                         three_phase=True),
        "cosine_restarts": lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=6, eta_min=0.05),
        "cosine_restarts_twice": lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
        "exponential": lambda o: lr.ExponentialLR(o, gamma=0.9),
        "polynomial": lambda o: lr.PolynomialLR(o, total_iters=30, power=2.5),
        "sequence": lambda o: lr.SequentialLR(
            o, [lr.ConstantLR(o, factor=0.5, total_iters=100), lr.ExponentialLR(o, gamma=0.9),
                lr.CosineAnnealingLR(o, T_max=25)], milestones=[4, 15]),
        "inverse_sqrt": lambda o: lr.LambdaLR(
            o, lambda t: min((t + 1) ** -0.5, (t + 1) * 10 ** -1.5) / 10 ** -0.5),
        "warmup_cosine": lambda o: warmup(o, 10, lr.CosineAnnealingLR(o, T_max=30)),
    }
    for name, make in cases.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = make(optimizer)
        rates = []
        for _ in range(40):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if len(rates) < 40:
                scheduler.step()
        rates = torch.tensor(rates, dtype=torch.float64)
        upper = rates.float().double()
        tensors["schedule/" + name] = torch.stack([upper, rates - upper])


def vision(tensors):
    """CASE/0, /1 ...: the operands; /y: the result; /weights: of its sum; /d0, /d1 ...: its gradients."""
    g = torch.Generator().manual_seed(4)
    ties = torch.randint(0, 4, (2, 2, 6, 7), generator=g).double()
    x = (2, 4, 7, 8)
    cases = {
        "conv2d": ([x, (6, 4, 3, 3), (6,)], F.conv2d),
        "conv2d_all": ([x, (6, 2, 3, 2), (6,)], lambda a, w, b: F.conv2d(
            a, w, b, stride=(2, 1), padding=(2, 1), dilation=(1, 3), groups=2)),
        "conv2d_depthwise": ([x, (8, 1, 3, 3), (8,)], lambda a, w, b: F.conv2d(
            a, w, b, stride=2, padding=1, groups=4)),
        "conv1d": ([(2, 4, 9), (6, 2, 3), (6,)], lambda a, w, b: F.conv1d(
            a, w, b, stride=2, padding=2, dilation=2, groups=2)),
        "conv_transpose2d": ([(2, 4, 3, 4), (4, 3, 3, 3), (3,)], F.conv_transpose2d),
        "conv_transpose2d_all": ([(2, 4, 3, 4), (4, 3, 3, 2), (6,)], lambda a, w, b: F.conv_transpose2d(
            a, w, b, stride=(3, 2), padding=(1, 0), output_padding=(2, 1), groups=2, dilation=(1, 2))),
        "conv_transpose1d": ([(2, 4, 5), (4, 3, 4), (3,)], lambda a, w, b: F.conv_transpose1d(
            a, w, b, stride=2, padding=1)),
        "max_pool2d": ([x], lambda a: F.max_pool2d(a, 2)),
        "max_pool2d_overlapping_ties": ([ties], lambda a: F.max_pool2d(a, 3, stride=2, padding=1)),
        "max_pool2d_dilated_ties": ([ties], lambda a: F.max_pool2d(a, (2, 3), stride=1, dilation=(3, 2))),
        "max_pool2d_large_ties": ([ties], lambda a: F.max_pool2d(a, (6, 5), stride=1)),
        "max_pool1d_ties": ([ties[0, :, :, :]], lambda a: F.max_pool1d(a, 3, stride=2, padding=1)),
        "avg_pool2d": ([x], lambda a: F.avg_pool2d(a, (3, 2), stride=(2, 1), padding=1)),
        "avg_pool2d_inside": ([x], lambda a: F.avg_pool2d(a, 3, stride=2, padding=1, count_include_pad=False)),
        "avg_pool1d": ([(2, 3, 9)], lambda a: F.avg_pool1d(a, 3, stride=2, padding=1)),
        "adaptive_avg_pool2d": ([x], lambda a: F.adaptive_avg_pool2d(a, (3, 5))),
        "adaptive_avg_pool2d_to_more": ([(1, 2, 3, 2)], lambda a: F.adaptive_avg_pool2d(a, (5, 3))),
        "adaptive_max_pool2d_ties": ([ties], lambda a: F.adaptive_max_pool2d(a, (4, 3))),
        "nearest": ([x], lambda a: F.interpolate(a, (14, 24))),
        "nearest_fraction": ([x], lambda a: F.interpolate(a, (10, 5))),
        "bilinear": ([x], lambda a: F.interpolate(a, (10, 5), mode="bilinear")),
        "bilinear_corners": ([x], lambda a: F.interpolate(a, (3, 11), mode="bilinear", align_corners=True)),
    }
    for name, (operands, function) in cases.items():
        values = [draw(g, v, 1.0) if isinstance(v, tuple) else v.clone() for v in operands]
        for i, value in enumerate(values):
            tensors[f"{name}/{i}"] = value.clone()
            value.requires_grad_(True)
        y = function(*values)
        weights = draw(g, y.shape, 1.0)
        (y * weights).sum().backward()
        tensors[f"{name}/y"], tensors[f"{name}/weights"] = y, weights
        tensors.update({f"{name}/d{i}": value.grad for i, value in enumerate(values)})


def scans(tensors):
    """NAME/INPUT/0, /1: results; NAME/INPUT/grad: of the sum of the first times `weight`."""
    generator = torch.Generator().manual_seed(5)
    inf, nan = math.inf, math.nan
    inputs = {
        "plain": draw(generator, (4, 6), 1),
        "ties": torch.randint(0, 3, (4, 6), generator=generator).double(),
        "odd": torch.tensor([[1, 2, nan, 3, nan, 2], [-inf, -inf, 0, -0.0, 1, 0],
                             [inf, 1, inf, -inf, 2, inf], [0, -0.0, nan, inf, -inf, 0]]).double(),
    }
    weight = draw(generator, (4, 6), 1)
    tensors["weight"] = weight
    for name, value in inputs.items():
        tensors["in/" + name] = value
    whole = lambda t: t.int()
    cases = {
        "cumsum": lambda x: [torch.cumsum(x, 1)],
        "cumprod": lambda x: [torch.cumprod(x, 0)],
        "cummax": lambda x: torch.cummax(x, 1),
        "cummin": lambda x: torch.cummin(x, 0),
        "sort": lambda x: torch.sort(x, dim=1, stable=True),
        "sort_down": lambda x: torch.sort(x, dim=0, stable=True, descending=True),
        "topk": lambda x: [torch.topk(x, 3, dim=1)[0]],
        "topk_least": lambda x: [torch.topk(x, 2, dim=0, largest=False)[0]],
        "logcumsumexp": lambda x: [torch.logcumsumexp(x, 1)],
        "prod": lambda x: [torch.prod(x, 1)],
        "any": lambda x: [whole(torch.any(x, 1))],
        "all": lambda x: [whole(torch.all(x, 1))],
        "count_nonzero": lambda x: [whole(torch.count_nonzero(x, 1))],
        "std": lambda x: [torch.std(x, 1)],
        "norm": lambda x: [torch.linalg.vector_norm(x, 2, 1)],
        "norm_1": lambda x: [torch.linalg.vector_norm(x, 1, 1)],
        "norm_inf": lambda x: [torch.linalg.vector_norm(x, inf, 1)],
    }
    for name, make in cases.items():
        for which, value in inputs.items():
            x = value.clone().requires_grad_(True)
            results = list(make(x))
            for i, result in enumerate(results):
                tensors[f"{name}/{which}/{i}"] = result.int() if result.dtype == torch.int64 else result
            # Which of equal elements topk takes is not said; at an odd one there is no gradient.
            skip = which == "odd" or (which == "ties" and name.startswith("topk"))
            if not results[0].dtype.is_floating_point or skip:
                continue
            flat = results[0].flatten()
            (flat * weight.flatten()[: flat.numel()]).sum().backward()
            tensors[f"{name}/{which}/grad"] = x.grad


if __name__ == "__main__":
    mlp()
    language_model()
    alone = {}
    optimizers(alone)
    several(alone)
    schedules(alone)
    write_safetensors("optim.safetensors", alone)
    images = {}
    vision(images)
    write_safetensors("vision.safetensors", images)
    along = {}
    scans(along)
    write_safetensors("scan.safetensors", along)
