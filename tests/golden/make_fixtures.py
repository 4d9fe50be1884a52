# SPDX-License-Identifier: MIT
"""Writes what PyTorch computes in double precision from float32 values. Needs torch (CPU); run it in this folder.

mlp.safetensors and lm.safetensors: two small models trained for 10 steps.
optim.safetensors: a parameter under each optimizer with given gradients, and learning-rate schedules.
scan.safetensors: scans, sorts and their like of three tensors, with gradients.
"""

import json
import math
import struct

import torch
import torch.nn.functional as F

STEPS = 10


def write_safetensors(path, tensors):
    header, data, at = {}, [], 0
    for name, tensor in tensors.items():
        whole = tensor.dtype in (torch.int64, torch.int32)
        flat = tensor.detach().flatten().tolist()
        raw = struct.pack(f"<{len(flat)}{'i' if whole else 'f'}", *flat)
        header[name] = {"dtype": "I32" if whole else "F32", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data))


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
    }
    for name, make in cases.items():
        value = start.clone().requires_grad_(True)
        optimizer = make([value])
        after = []
        for grad in grads:
            value.grad = grad.clone()
            if name.endswith("_clip"):
                torch.nn.utils.clip_grad_norm_([value], 100)
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
        "warmup_cosine": lambda o: warmup(o, 10, lr.CosineAnnealingLR(o, T_max=30)),
    }
    for name, make in cases.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = make(optimizer)
        rates = []
        for _ in range(40):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        rates = torch.tensor(rates, dtype=torch.float64)
        upper = rates.float().double()
        tensors["schedule/" + name] = torch.stack([upper, rates - upper])


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
    schedules(alone)
    write_safetensors("optim.safetensors", alone)
    along = {}
    scans(along)
    write_safetensors("scan.safetensors", along)
