# SPDX-License-Identifier: MIT
"""JAX with optax on the workloads of tg_bench: one JSON line per workload and mode.

`jit`: one step per call; on a CPU, waits for its loss. `scan`: many steps per call.
"""
import functools
import math
import os
import sys

import workloads
from workloads import Cnn, Decoder, Mamba, Mlp, WORKLOADS

MODES = ["jit", "scan"]
OPTIONS = workloads.parse(__doc__.splitlines()[0], MODES)
if OPTIONS.threads:  # JAX uses as many threads as cores are allowed at import
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:OPTIONS.threads])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

jax.config.update("jax_default_matmul_precision", "highest")  # f32
WHO = f"JAX {jax.__version__}"
KEYS = iter(jax.random.split(jax.random.PRNGKey(0), 1000))


def normal(*shape):
    return 0.02 * jax.random.normal(next(KEYS), shape)


def linear(inputs, outputs):
    return {"w": normal(inputs, outputs), "b": jnp.zeros(outputs)}


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def cross_entropy(logits, target):
    logs = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(target, 0)[..., None], -1)[..., 0]
    counts = target != workloads.IGNORED
    return -jnp.where(counts, logs, 0).sum() / counts.sum()


def mlp(shape):
    params = [linear(a, b) for a, b in zip(shape.sizes, shape.sizes[1:])]

    def forward(params, x):
        for layer in params[:-1]:
            x = jax.nn.relu(apply(layer, x))
        return apply(params[-1], x)

    x = jax.random.uniform(next(KEYS), (shape.batch, shape.sizes[0]))
    if shape.classes:
        y = jax.random.randint(next(KEYS), (shape.batch,), 0, 10)
        return params, (x, y), lambda p, x, y: cross_entropy(forward(p, x), y)
    y = jax.random.uniform(next(KEYS), (shape.batch, 1))
    return params, (x, y), lambda p, x, y: ((forward(p, x) - y) ** 2).mean()


def cnn(shape):
    first, second = shape.channels
    params = {"conv": [{"w": normal(b, a, 3, 3), "b": jnp.zeros(b)} for a, b in ((1, first), (first, second))],
              "hidden": linear(second * 49, shape.hidden), "out": linear(shape.hidden, 10)}

    def loss(params, x, y):
        for layer in params["conv"]:
            x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME",
                                             dimension_numbers=("NCHW", "OIHW", "NCHW"))
            x = jax.nn.relu(x + layer["b"][:, None, None])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = jax.nn.relu(apply(params["hidden"], x.reshape(x.shape[0], -1)))
        return cross_entropy(apply(params["out"], x), y)

    x = jax.random.uniform(next(KEYS), (shape.batch, 1, 28, 28))
    return params, (x, jax.random.randint(next(KEYS), (shape.batch,), 0, 10)), loss


def norm_params(width):
    return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}


def layer_norm(p, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def decoder(shape):
    width, heads, length = shape.width, shape.heads, shape.length
    params = {"symbols": normal(shape.vocabulary, width), "places": normal(length, width),
              "last": norm_params(width),
              "blocks": [{**{name: normal(width, width) for name in "qkvo"}, "norm1": norm_params(width),
                          "norm2": norm_params(width), "up": linear(width, 4 * width),
                          "down": linear(4 * width, width)} for _ in range(shape.layers)]}
    act = functools.partial(jax.nn.gelu, approximate=False) if shape.gelu else jax.nn.relu
    mask = jnp.tril(jnp.ones((length, length), bool))

    def split(x):
        return x.reshape(x.shape[0], length, heads, width // heads).transpose(0, 2, 1, 3)

    def loss(params, text, target):
        x = params["symbols"][text] + params["places"]
        for block in params["blocks"]:
            h = layer_norm(block["norm1"], x)
            q, k, v = (split(h @ block[name]) for name in "qkv")
            scores = jnp.where(mask, q @ k.swapaxes(2, 3) / (width // heads) ** 0.5, -1e9)
            mixed = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            x = x + mixed @ block["o"]
            x = x + apply(block["down"], act(apply(block["up"], layer_norm(block["norm2"], x))))
        return cross_entropy(layer_norm(params["last"], x) @ params["symbols"].T, target)

    size = (shape.batch, length)
    target = jax.random.randint(next(KEYS), size, 0, shape.vocabulary)
    target = jnp.where(jnp.arange(length) < length - shape.answers, workloads.IGNORED, target)
    return params, (jax.random.randint(next(KEYS), size, 0, shape.vocabulary), target), loss


def rms_norm(weight, x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def scan_by_steps(delta, u, b, c, rate):
    """Runs the steps in order with states [batch, inner, states]; the fastest variant on a CPU."""
    def step(h, at):
        delta, u, b, c = at
        h = jnp.exp(delta[..., None] * rate) * h + (delta * u)[..., None] * b[:, None]
        return h, (h * c[:, None]).sum(-1)

    start = jnp.zeros((u.shape[0], *rate.shape))
    by_steps = [x.swapaxes(0, 1) for x in (delta, u, b, c)]
    return jax.lax.scan(step, start, by_steps, unroll=64)[1].swapaxes(0, 1)


@jax.checkpoint
def scan_by_doubling(delta, u, b, c, rate):
    """Runs all steps at once with jax.lax.associative_scan, and again in the backward pass."""
    factor, term = jnp.exp(delta[..., None] * rate), (delta * u)[..., None] * b[:, :, None]
    states = jax.lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (factor, term), axis=1)[1]
    return (states * c[:, :, None]).sum(-1)


def mamba(shape):
    width, inner, states, rank = shape.width, 2 * shape.width, 16, math.ceil(shape.width / 16)
    params = {"symbols": normal(shape.vocabulary, width), "last": jnp.ones(width),
              "layers": [{"norm": jnp.ones(width), "in": normal(width, 2 * inner), "conv": normal(4, inner),
                          "conv_shift": jnp.zeros(inner), "x": normal(inner, rank + 2 * states),
                          "A_log": jnp.tile(jnp.log(jnp.arange(1.0, states + 1)), (inner, 1)), "D": jnp.ones(inner),
                          "dt": {"w": normal(rank, inner), "b": jnp.full(inner, math.log(math.expm1(0.01)))},
                          "out": normal(inner, width)} for _ in range(shape.layers)]}
    scan = scan_by_steps if shape.length <= workloads.LONG else scan_by_doubling

    def mixer(layer, x):
        u, z = jnp.split(x @ layer["in"], 2, -1)
        before = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
        u = jax.nn.silu(sum(before[:, k:k + shape.length] * layer["conv"][k] for k in range(4))
                        + layer["conv_shift"])
        delta, b, c = jnp.split(u @ layer["x"], (rank, rank + states), -1)
        y = scan(jax.nn.softplus(apply(layer["dt"], delta)), u, b, c, -jnp.exp(layer["A_log"]))
        return ((y + layer["D"] * u) * jax.nn.silu(z)) @ layer["out"]

    def loss(params, text, target):
        x = params["symbols"][text]
        for layer in params["layers"]:
            x = x + mixer(layer, rms_norm(layer["norm"], x))
        return cross_entropy(rms_norm(params["last"], x) @ params["symbols"].T, target)

    size = (shape.batch, shape.length)
    text, target = (jax.random.randint(next(KEYS), size, 0, shape.vocabulary) for _ in range(2))
    return params, (text, target), loss


BUILD = {Mlp: mlp, Cnn: cnn, Decoder: decoder, Mamba: mamba}


def stepper(name, steps):
    """Returns a function that runs `steps` steps per call, one that waits for all, and the
    parameter count."""
    shape = WORKLOADS[name]
    params, data, loss = BUILD[type(shape)](shape)
    plain = isinstance(shape, Mlp) and not shape.classes
    optimizer = optax.adam(workloads.LEARNING_RATE) if plain else optax.adamw(
        workloads.LEARNING_RATE, weight_decay=0.01)
    if shape.clip:
        optimizer = optax.chain(optax.clip_by_global_norm(shape.clip), optimizer)

    def one(carry, _=None):
        params, state = carry
        value, grads = jax.value_and_grad(loss)(params, *data)
        updates, state = optimizer.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    def many(carry):
        carry, values = jax.lax.scan(one, carry, None, length=steps)
        return carry, values[-1]

    compiled = jax.jit(many if steps > 1 else one, donate_argnums=(0,))
    held = {"carry": (params, optimizer.init(params)), "loss": None}

    def call():
        held["carry"], held["loss"] = compiled(held["carry"])

    return call, lambda: held["loss"].block_until_ready(), sum(x.size for x in jax.tree.leaves(params))


def main():
    gpu = jax.default_backend() == "gpu"
    where = jax.devices()[0].device_kind if gpu else f"cpu, {len(os.sched_getaffinity(0))} threads"
    if OPTIONS.probe:
        call, wait, count = stepper(OPTIONS.probe, 1)
        return workloads.report_probe(OPTIONS.probe, WHO, where, count, lambda: (call(), wait()))
    for name in workloads.names(OPTIONS, gpu):
        for mode in OPTIONS.modes:
            small = isinstance(WORKLOADS[name], Mlp) or gpu and name not in ("char-gpt", "mamba-130m")
            steps = 1 if mode == "jit" else 100 if small else 10
            call, wait, count = stepper(name, steps)
            step = call if gpu or steps > 1 else lambda: (call(), wait())
            workloads.report(name, mode, WHO, where, count,
                             workloads.median_us(step, wait, OPTIONS.seconds, steps))
    return None


if __name__ == "__main__":
    sys.exit(main())
