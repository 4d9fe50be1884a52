# SPDX-License-Identifier: MIT
"""Writes packed_functions.safetensors: scans and convolutions of packed documents, and their gradients. Each document
is computed by itself, one step after another, in double precision. Needs torch; run it in this folder.

NAME/in/: operands. NAME/out/: results, those of all documents one behind the other. NAME/gradient/: of the sum of each
result times its NAME/weight/. `documents` has the number of each step's document.
B sequences, L steps, D channels, H heads of P channels, G groups of heads, N states, K taps, R ranks.
"""

import torch
from torch.nn.functional import pad, silu, softplus

import fixture_file

BATCH = 2
SIZES = [[1, 6, 1, 16, 5, 2, 8], [17, 1, 1, 20]]  # of the documents of each sequence: 39 steps
LENGTH = 39


def convolution(x, weight, bias):
    """x [L, D], weight [D, K]."""
    taps = weight.shape[1]
    padded = pad(x, (0, 0, taps - 1, 0))
    return bias + sum(padded[k:k + len(x)] * weight[:, k] for k in range(taps))


def selective(u, delta, z, rates, b, c, skip, bias, hold):
    """u, delta and z [L, D], rates [D, N], b and c [L, N]."""
    h = torch.zeros_like(rates)
    steps = []
    for t in range(len(u)):
        dt = softplus(delta[t] + bias)[:, None]
        a = torch.exp(dt * rates)
        weight = (a - 1) / rates if hold else dt
        h = a * h + weight * b[t] * u[t][:, None]
        steps.append((h @ c[t] + skip * u[t]) * silu(z[t]))
    return torch.stack(steps)


def duality(x, dt, rates, b, c, skip):
    """x [L, H, P], dt [L, H], b and c [L, G, N]."""
    each = x.shape[1] // b.shape[1]
    h = torch.zeros(x.shape[1], x.shape[2], b.shape[2], dtype=x.dtype)
    steps = []
    for t in range(len(x)):
        of_b, of_c = (v[t].repeat_interleave(each, 0) for v in (b, c))
        decay = torch.exp(dt[t] * rates)[:, None, None]
        h = decay * h + dt[t][:, None, None] * x[t][:, :, None] * of_b[:, None, :]
        steps.append(torch.einsum("hpn,hn->hp", h, of_c) + skip[:, None] * x[t])
    return torch.stack(steps)


def turned_back(v, phase):
    """v [H, R, N] as pairs of halves, phase [H, N / 2]."""
    half = v.shape[-1] // 2
    both = torch.complex(v[..., :half], v[..., half:]) * torch.exp(-1j * phase)[:, None, :]
    return torch.cat([both.real, both.imag], -1)


def rotary(x, dt, rates, lam, theta, b, c):
    """x [L, H, R, P], dt, rates and lam [L, H], theta [L, H, N / 2], b and c [L, H, R, N]."""
    h = torch.zeros(x.shape[1], x.shape[3], b.shape[3], dtype=x.dtype)
    before = torch.zeros_like(h)
    phase = torch.zeros_like(theta[0])
    steps = []
    for t in range(len(x)):
        phase = phase + theta[t] * dt[t][:, None]
        now = torch.einsum("hrp,hrn->hpn", x[t], turned_back(b[t], phase))
        wide = [v[t][:, None, None] for v in (dt, rates, lam)]
        a = torch.exp(wide[0] * wide[1])
        h = a * h + (1 - wide[2]) * wide[0] * a * before + wide[2] * wide[0] * now
        before = now
        steps.append(torch.einsum("hpn,hrn->hrp", h, turned_back(c[t], phase)))
    return torch.stack(steps)


def by_document(function, of_steps, others):
    """function(steps of a document..., others...) of each document by itself, one behind the other."""
    rows = []
    for row, sizes in enumerate(SIZES):
        cut = [tensor[row].split(sizes) for tensor in of_steps]
        rows.append(torch.cat([function(*parts, *others) for parts in zip(*cut)]))
    return torch.stack(rows)


def main():
    """Writes the file."""
    torch.manual_seed(5)
    tensors = {}

    def numbers(*shape, low=-1.0, high=1.0):
        return torch.rand(*shape, dtype=torch.float32) * (high - low) + low

    def record(name, function, of_steps, others):
        inputs = {key: value.double().requires_grad_() for key, value in (of_steps | others).items()}
        y = by_document(function, [inputs[key] for key in of_steps], [inputs[key] for key in others])
        weight = numbers(*y.shape)
        gradients = torch.autograd.grad((y * weight.double()).sum(), list(inputs.values()))
        for key, value in (of_steps | others).items():
            tensors[f"{name}/in/{key}"] = value.numpy()
        for key, value in zip(inputs, gradients):
            tensors[f"{name}/gradient/{key}"] = value.float().numpy()
        tensors[f"{name}/weight/y"] = weight.numpy()
        tensors[f"{name}/out/y"] = y.detach().float().numpy()

    assert all(sum(sizes) == LENGTH for sizes in SIZES)
    steps = (BATCH, LENGTH)
    tensors["documents"] = torch.stack(
        [torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)) for sizes in SIZES]).int().numpy()
    record("conv", convolution, {"x": numbers(*steps, 5)}, {"weight": numbers(5, 4), "bias": numbers(5)})
    for name, hold in (("selective", False), ("selective_hold", True)):
        record(name, lambda u, delta, z, b, c, rates, skip, bias, hold=hold:
               selective(u, delta, z, rates, b, c, skip, bias, hold),
               {"u": numbers(*steps, 6), "delta": numbers(*steps, 6, low=-3), "z": numbers(*steps, 6, low=-2, high=2),
                "b": numbers(*steps, 5), "c": numbers(*steps, 5)},
               {"rates": numbers(6, 5, low=-2, high=-0.1), "skip": numbers(6), "bias": numbers(6)})
    record("ssd", lambda x, dt, b, c, rates, skip: duality(x, dt, rates, b, c, skip),
           {"x": numbers(*steps, 4, 3), "dt": numbers(*steps, 4, low=0.01, high=0.5), "b": numbers(*steps, 2, 5),
            "c": numbers(*steps, 2, 5)},
           {"rates": numbers(4, low=-2, high=-0.1), "skip": numbers(4)})
    record("rotary", rotary,
           {"x": numbers(*steps, 2, 2, 3), "dt": numbers(*steps, 2, low=0.01, high=0.5),
            "rates": numbers(*steps, 2, low=-2, high=-0.1), "lam": numbers(*steps, 2, low=0.0),
            "theta": numbers(*steps, 2, 2, low=-2, high=2), "b": numbers(*steps, 2, 2, 4),
            "c": numbers(*steps, 2, 2, 4)}, {})
    names = {"float32": "F32", "int32": "I32"}
    fixture_file.write("packed_functions.safetensors",
                       [(name, names[str(value.dtype)], value.shape, value.tobytes())
                        for name, value in tensors.items()])


if __name__ == "__main__":
    main()
