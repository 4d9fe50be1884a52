# SPDX-License-Identifier: MIT
"""Writes mamba_blocks.safetensors: layers of Mamba-3, attention and gated MLPs, and the logits of a model of all kinds
of layers but Mamba-2, computed step by step in double precision from float32 weights. Needs numpy alone; run it in this
folder.

NAME/param/: weights. NAME/in/: what the layer is given. NAME/y: what it makes of that. NAME/initial/: values that
parameters begin with, where the definition fixes them.
The mathematics is that of the papers (Mamba 2312.00752, Mamba-3 2603.15569, rotary positions 2104.09864, gated units
2002.05202). B sequences, L steps, H heads of P channels, R ranks, N elements of a state.
"""

import numpy as np

import fixture_file

BATCH, LENGTH, WIDTH = 2, 13, 16
EPSILON = 1e-5  # of norms


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return np.log1p(np.exp(x))


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x ** 2, axis=-1, keepdims=True) + EPSILON) * weight


def cut(x, sizes):
    """x in parts of these sizes along its last axis."""
    return np.split(x, np.cumsum(sizes)[:-1], axis=-1)


def turn(pairs, angle):
    """Elements i and i + half of the last axis, as one complex number, turned by angle [..., half]."""
    half = pairs.shape[-1] // 2
    real, imaginary = pairs[..., :half], pairs[..., half:]
    return np.concatenate([real * np.cos(angle) - imaginary * np.sin(angle),
                           real * np.sin(angle) + imaginary * np.cos(angle)], axis=-1)


def mamba1(p, x, states):
    """x [B, L, WIDTH]. Euler's rule."""
    inner = p["D"].size
    rank = p["dt_proj.weight"].shape[1]
    u, gate = cut(x @ p["in_proj.weight"].T, [inner, inner])
    taps = p["conv1d.weight"].shape[2]
    padded = np.concatenate([np.zeros((len(u), taps - 1, inner)), u], axis=1)
    u = p["conv1d.bias"] + sum(padded[:, k:k + u.shape[1]] * p["conv1d.weight"][:, 0, k] for k in range(taps))
    u = silu(u)
    delta, b, c = cut(u @ p["x_proj.weight"].T, [rank, states, states])
    delta = softplus(delta @ p["dt_proj.weight"].T + p["dt_proj.bias"])
    a = -np.exp(p["A_log"])  # [inner, states]
    h = np.zeros((len(x), inner, states))
    y = np.zeros_like(u)
    for t in range(x.shape[1]):
        d = delta[:, t, :, None]
        h = np.exp(d * a) * h + d * b[:, t, None, :] * u[:, t, :, None]
        y[:, t] = np.sum(h * c[:, t, None, :], axis=-1) + p["D"] * u[:, t]
    return (y * silu(gate)) @ p["out_proj.weight"].T


def heavy_tail(x):
    return np.where(x >= 0, 1 + x, 1 / (1 - np.minimum(x, 0)))


def mamba3(p, x, ranks, floor=None):
    """x [B, L, WIDTH]. With a floor, the decays are those of mamba-ssm's heavy_tail_activation()."""
    batch, length = x.shape[:2]
    heads, _, n = p["b_bias"].shape
    inner = p["out_proj.weight"].shape[1]
    each = inner // heads
    z, u, b, c, dt, rate, lam, theta = cut(
        x @ p["in_proj.weight"].T, [inner, inner, ranks * n, ranks * n, heads, heads, heads, n // 2])
    dt = softplus(dt + p["dt_bias"])  # [B, L, H]
    rate = -softplus(rate + p["A_bias"]) if floor is None else -np.maximum(heavy_tail(rate), floor)
    lam = sigmoid(lam)
    # B and C are those of all heads, but for a head's bias: [B, L, H, R, N].
    b = rms_norm(b.reshape(batch, length, 1, ranks, n), p["b_norm.weight"]) + p["b_bias"]
    c = rms_norm(c.reshape(batch, length, 1, ranks, n), p["c_norm.weight"]) + p["c_bias"]
    phase = np.cumsum(dt[..., None] * theta[:, :, None, :], axis=1)[:, :, :, None, :]  # [B, L, H, 1, N / 2]
    b, c = turn(b, -phase), turn(c, -phase)
    u = u.reshape(batch, length, heads, 1, each)
    z = z.reshape(batch, length, heads, 1, each)
    pushed = u * p["mimo_x"] if ranks > 1 else u  # [B, L, H, R, P]
    z = z * p["mimo_z"] if ranks > 1 else z
    h = np.zeros((batch, heads, each, n))
    before = np.zeros_like(h)
    y = np.zeros(pushed.shape)
    for t in range(length):
        now = np.einsum("bhrp,bhrn->bhpn", pushed[:, t], b[:, t])
        alpha = np.exp(dt[:, t] * rate[:, t])[..., None, None]
        beta = (1 - lam[:, t])[..., None, None] * dt[:, t, :, None, None] * alpha
        gamma = (lam[:, t] * dt[:, t])[..., None, None]
        h = alpha * h + beta * before + gamma * now
        before = now
        y[:, t] = np.einsum("bhpn,bhrn->bhrp", h, c[:, t])
    y = (y + p["D"][:, None, None] * u) * silu(z)
    if ranks > 1:
        y = np.sum(y * p["mimo_out"], axis=3)
    return y.reshape(batch, length, inner) @ p["out_proj.weight"].T


def attention(p, x, heads, kv_heads, base=10000):
    """x [B, L, WIDTH]. A query head sees the key head of its group."""
    batch, length, width = x.shape
    each = width // heads
    q, k, v = cut(x @ p["in_proj.weight"].T, [width, kv_heads * each, kv_heads * each])
    q = q.reshape(batch, length, heads, each)
    k = k.reshape(batch, length, kv_heads, each)
    v = v.reshape(batch, length, kv_heads, each)
    frequency = base ** (-2 * np.arange(each // 2) / each)
    angle = (np.arange(length)[:, None] * frequency)[:, None, :]  # [L, 1, P / 2]
    q, k = turn(q, angle), turn(k, angle)
    y = np.zeros_like(q)
    for head in range(heads):
        of = head // (heads // kv_heads)
        for t in range(length):
            scores = np.einsum("bp,bsp->bs", q[:, t, head], k[:, :t + 1, of]) / np.sqrt(each)
            share = np.exp(scores)
            share = share / share.sum(axis=-1, keepdims=True)
            y[:, t, head] = np.einsum("bs,bsp->bp", share, v[:, :t + 1, of])
    return y.reshape(batch, length, width) @ p["out_proj.weight"].T


def gated_mlp(p, x):
    width = p["fc2.weight"].shape[1]
    gate, up = cut(x @ p["fc1.weight"].T, [width, width])
    return (silu(gate) * up) @ p["fc2.weight"].T


class Draw:
    """Float32 values in double precision, at which every parameter counts."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def __call__(self, *shape, scale=1.0, mean=0.0):
        return (mean + scale * self.source.standard_normal(shape)).astype(np.float32).astype(np.float64)

    def linear(self, outputs, inputs):
        return self(outputs, inputs, scale=inputs ** -0.5)

    def mamba1(self, states):
        inner, rank, taps = 2 * WIDTH, 1, 4
        return {"A_log": self(inner, states, scale=0.5), "D": self(inner, scale=0.5, mean=1),
                "in_proj.weight": self.linear(2 * inner, WIDTH), "conv1d.weight": self(inner, 1, taps, scale=0.5),
                "conv1d.bias": self(inner, scale=0.3), "x_proj.weight": self.linear(rank + 2 * states, inner),
                "dt_proj.weight": self(inner, rank), "dt_proj.bias": self(inner, scale=0.5, mean=-0.5),
                "out_proj.weight": self.linear(WIDTH, inner)}

    def mamba3(self, heads, ranks, n):
        inner = 2 * WIDTH
        each = inner // heads
        p = {"in_proj.weight": self.linear(2 * inner + 2 * ranks * n + 3 * heads + n // 2, WIDTH),
             "b_norm.weight": self(n, scale=0.3, mean=1), "c_norm.weight": self(n, scale=0.3, mean=1),
             "b_bias": self(heads, ranks, n, scale=0.5, mean=1), "c_bias": self(heads, ranks, n, scale=0.5, mean=1),
             "dt_bias": self(heads, scale=0.5, mean=-0.5), "A_bias": self(heads, scale=0.5),
             "D": self(heads, scale=0.5, mean=1), "out_proj.weight": self.linear(WIDTH, inner)}
        if ranks > 1:
            p.update({name: self(heads, ranks, each, scale=0.5, mean=0.7) for name in ("mimo_x", "mimo_z", "mimo_out")})
        return p

    def attention(self, heads, kv_heads):
        return {"in_proj.weight": self.linear(WIDTH // heads * (heads + 2 * kv_heads), WIDTH),
                "out_proj.weight": self.linear(WIDTH, WIDTH)}

    def gated_mlp(self, width):
        return {"fc1.weight": self.linear(2 * width, WIDTH), "fc2.weight": self.linear(WIDTH, width)}


def initial_mamba3(heads, ranks, n):
    each = 2 * WIDTH // heads
    values = {"b_bias": np.ones((heads, ranks, n)), "c_bias": np.ones((heads, ranks, n)), "D": np.ones(heads),
              "b_norm.weight": np.ones(n), "c_norm.weight": np.ones(n)}
    if ranks > 1:
        values["mimo_x"] = np.full((heads, ranks, each), 1 / ranks)
        values["mimo_z"] = values["mimo_out"] = np.ones((heads, ranks, each))
    return values


def named(prefix, tensors):
    return {prefix + name: value for name, value in tensors.items()}


def layer(draw, name, params, function, initial=None):
    x = draw(BATCH, LENGTH, WIDTH)
    return {**named(f"{name}/param/", params), **named(f"{name}/initial/", initial or {}),
            f"{name}/in/x": x, f"{name}/y": function(params, x)}


def model(draw, symbols):
    """A block adds mixer(norm(x)) to x; behind the last comes a norm, and the embedding is the head, too."""
    layers = [(draw.mamba1(5), lambda p, x: mamba1(p, x, 5)), (draw.gated_mlp(16), gated_mlp),
              (draw.attention(2, 2), lambda p, x: attention(p, x, 2, 2)), (draw.gated_mlp(16), gated_mlp),
              (draw.mamba3(4, 2, 6), lambda p, x: mamba3(p, x, 2))]
    tokens = draw.source.integers(0, symbols, (BATCH, LENGTH)).astype(np.int32)
    embedding = draw(symbols, WIDTH)
    params = {"backbone.embedding.weight": embedding}
    x = embedding[tokens]
    for i, (mixer, function) in enumerate(layers):
        norm = draw(WIDTH, scale=0.3, mean=1)
        params[f"backbone.layers.{i}.norm.weight"] = norm
        params.update(named(f"backbone.layers.{i}.mixer.", mixer))
        x = x + function(mixer, rms_norm(x, norm))
    norm = params["backbone.norm_f.weight"] = draw(WIDTH, scale=0.3, mean=1)
    return {**named("model/param/", params), "model/in/tokens": tokens, "model/y": rms_norm(x, norm) @ embedding.T}


def write_safetensors(path, tensors):
    def entry(name, tensor):
        whole = tensor.dtype == np.int32
        return name, "I32" if whole else "F32", tensor.shape, tensor.astype("<i4" if whole else "<f4").tobytes()

    fixture_file.write(path, [entry(name, tensor) for name, tensor in tensors.items()])


def main():
    draw = Draw(29)
    tensors = {}
    for name, ranks in (("mamba3", 1), ("mamba3_of_ranks", 2)):
        tensors.update(layer(draw, name, draw.mamba3(4, ranks, 6), lambda p, x, r=ranks: mamba3(p, x, r),
                             initial_mamba3(4, ranks, 6)))
    tensors.update(layer(draw, "attention", draw.attention(2, 2), lambda p, x: attention(p, x, 2, 2)))
    tensors.update(layer(draw, "attention_of_groups", draw.attention(4, 2),
                         lambda p, x: attention(p, x, 4, 2, base=50)))
    tensors.update(layer(draw, "gated_mlp", draw.gated_mlp(16), gated_mlp))
    tensors.update(model(draw, 17))
    heavy = draw.mamba3(4, 1, 6)
    del heavy["A_bias"]
    tensors.update(layer(draw, "mamba3_of_heavy_tails", heavy, lambda p, x: mamba3(p, x, 1, floor=0.7)))
    write_safetensors("mamba_blocks.safetensors", tensors)


if __name__ == "__main__":
    main()
