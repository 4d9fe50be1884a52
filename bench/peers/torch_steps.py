# SPDX-License-Identifier: MIT
"""PyTorch on the workloads of tg_bench: one JSON line per workload and mode.

Matrix products are f32 unless an option says otherwise. The loss is read at every step on a CPU, and stays on the device on a GPU.
"""
import importlib.util
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import workloads
from workloads import Cnn, Mamba, Mlp, WORKLOADS

MODES = ["eager", "fused", "compile", "cuda-graph", "compile-cuda-graph", "mamba-ssm", "mamba-ssm-cuda-graph"]
WHO = f"PyTorch {torch.__version__}"


def mlp(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i + 2 < len(sizes):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def cnn(shape):
    first, second = shape.channels
    return nn.Sequential(nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(second * 49, shape.hidden), nn.ReLU(), nn.Linear(shape.hidden, 10))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape.width
        self.heads, self.act = shape.heads, F.gelu if shape.gelu else F.relu
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.symbols = nn.Parameter(0.02 * torch.randn(shape.vocabulary, shape.width))
        self.places = nn.Parameter(0.02 * torch.randn(shape.length, shape.width))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last = nn.LayerNorm(shape.width)

    def forward(self, text):
        x = F.embedding(text, self.symbols) + self.places
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.symbols)


def scan_by_doubling(factor, term):
    """Computes h[t] = factor[t] * h[t - 1] + term[t] along axis 1 in log2(size) rounds (Hillis and
    Steele)."""
    distance = 1
    while distance < factor.shape[1]:
        term = torch.cat([term[:, :distance], term[:, distance:] + factor[:, distance:] * term[:, :-distance]], 1)
        factor = torch.cat([factor[:, :distance], factor[:, distance:] * factor[:, :-distance]], 1)
        distance *= 2
    return term


class Mixer(nn.Module):
    """Runs short scans step by step, which is faster without a fused kernel. Runs long scans by
    doubling, and again in the backward pass, because storing all rounds of all layers would not
    fit."""

    def __init__(self, shape):
        super().__init__()
        self.inner, self.states, self.rank = 2 * shape.width, 16, math.ceil(shape.width / 16)
        self.in_proj = nn.Linear(shape.width, 2 * self.inner, bias=False)
        self.conv1d = nn.Conv1d(self.inner, self.inner, 4, groups=self.inner, padding=3)
        self.x_proj = nn.Linear(self.inner, self.rank + 2 * self.states, bias=False)
        self.dt_proj = nn.Linear(self.rank, self.inner)
        self.dt_proj.bias.data.fill_(math.log(math.expm1(0.01)))
        self.A_log = nn.Parameter(torch.log(torch.arange(1, self.states + 1).float()).repeat(self.inner, 1))
        self.D = nn.Parameter(torch.ones(self.inner))
        self.out_proj = nn.Linear(self.inner, shape.width, bias=False)

    def forward(self, x):
        steps = x.shape[1]
        u, z = self.in_proj(x).chunk(2, -1)
        u = F.silu(self.conv1d(u.transpose(1, 2))[..., :steps].transpose(1, 2))
        delta, b, c = self.x_proj(u).split([self.rank, self.states, self.states], -1)
        delta = F.softplus(self.dt_proj(delta))
        if steps > workloads.LONG:
            y = checkpoint(self.scan, u, delta, b, c, use_reentrant=False)
        else:
            y = self.scan(u, delta, b, c)
        return self.out_proj((y + self.D * u) * F.silu(z))

    def scan(self, u, delta, b, c):
        factor = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.A_log))
        term = (delta * u).unsqueeze(-1) * b.unsqueeze(2)
        if u.shape[1] > workloads.LONG:
            states = scan_by_doubling(factor, term)
        else:
            h, each = torch.zeros_like(term[:, 0]), []
            for a, t in zip(factor.unbind(1), term.unbind(1)):
                h = a * h + t
                each.append(h)
            states = torch.stack(each, 1)
        return (states @ c.unsqueeze(-1)).squeeze(-1)


class MambaLm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.symbols = nn.Parameter(0.02 * torch.randn(shape.vocabulary, shape.width))
        self.norms = nn.ModuleList(nn.RMSNorm(shape.width, 1e-5) for _ in range(shape.layers))
        self.mixers = nn.ModuleList(Mixer(shape) for _ in range(shape.layers))
        self.last = nn.RMSNorm(shape.width, 1e-5)

    def forward(self, text):
        x = F.embedding(text, self.symbols)
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return F.linear(self.last(x), self.symbols)


class MambaSsm(nn.Module):
    """The same model from mamba-ssm: fused CUDA kernels for scan and convolution, fused norms."""

    def __init__(self, shape):
        super().__init__()
        from mamba_ssm.models.config_mamba import LanguageModelConfig
        from mamba_ssm.models.mixer_seq_simple import MambaLMHeadModel
        self.model = MambaLMHeadModel(LanguageModelConfig(
            d_model=shape.width, n_layer=shape.layers, vocab_size=shape.vocabulary, pad_vocab_size_multiple=1,
            ssm_cfg={"layer": "Mamba1"}))

    def forward(self, text):
        return self.model(text).logits


def can_run(name, mode, gpu):
    if "mamba-ssm" in mode:
        there = all(importlib.util.find_spec(module) for module in ("mamba_ssm", "causal_conv1d"))
        return gpu and there and isinstance(WORKLOADS[name], Mamba)
    return gpu or "graph" not in mode


def built(name, mode, device):
    """Returns the model, a function that computes the loss, and the optimizer's type."""
    shape = WORKLOADS[name]
    if isinstance(shape, Mlp) and not shape.classes:
        model = mlp(shape.sizes).to(device)
        x, y = torch.rand(shape.batch, 1, device=device), torch.rand(shape.batch, 1, device=device)
        return model, lambda net: F.mse_loss(net(x), y), torch.optim.Adam
    if isinstance(shape, (Mlp, Cnn)):
        model = (mlp(shape.sizes) if isinstance(shape, Mlp) else cnn(shape)).to(device)
        size = (shape.sizes[0],) if isinstance(shape, Mlp) else (1, 28, 28)
        x = torch.rand(shape.batch, *size, device=device)
        y = torch.randint(0, 10, (shape.batch,), device=device)
        return model, lambda net: F.cross_entropy(net(x), y), torch.optim.AdamW
    if isinstance(shape, Mamba):
        model = (MambaSsm if "mamba-ssm" in mode else MambaLm)(shape).to(device)
        text, target = (torch.randint(0, shape.vocabulary, (shape.batch, shape.length), device=device)
                        for _ in range(2))
        return model, lambda net: F.cross_entropy(net(text).flatten(0, 1), target.flatten()), torch.optim.AdamW
    model = Decoder(shape).to(device)
    text = torch.randint(0, shape.vocabulary, (shape.batch, shape.length), device=device)
    target = torch.randint(0, shape.vocabulary, (shape.batch, shape.length), device=device)
    target[:, :shape.length - shape.answers] = workloads.IGNORED
    return (model, lambda net: F.cross_entropy(net(text).flatten(0, 1), target.flatten(),
                                               ignore_index=workloads.IGNORED), torch.optim.AdamW)


def stepper(name, mode, device, bf16=False):
    """Returns a function that runs one step and returns its loss, and the number of parameters."""
    model, loss, optimizer = built(name, mode, device)
    parameters = list(model.parameters())
    clip = WORKLOADS[name].clip
    kind = {"fused": mode != "eager", "capturable": "graph" in mode}
    optimizer = optimizer(parameters, lr=workloads.LEARNING_RATE, **kind)
    net = torch.compile(model) if "compile" in mode else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16, cache_enabled="graph" not in mode):
            value = loss(net)
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        return value.detach()

    count = sum(p.numel() for p in parameters)
    return (captured(step) if "graph" in mode else step), count


def captured(step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main():
    options = workloads.parse(__doc__.splitlines()[0], MODES, [
        ("--tf32", "products on a GPU's tensor cores, rounded to TF32"),
        ("--bf16", "mixed precision on a GPU: autocast to bf16")])
    who = WHO + (" with TF32" if options.tf32 else "") + (" with bf16" if options.bf16 else "")
    gpu = torch.cuda.is_available()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    if not gpu:
        torch.set_num_threads(options.threads or torch.get_num_threads())
    device, where = ("cuda", torch.cuda.get_device_name()) if gpu else (
        "cpu", f"cpu, {torch.get_num_threads()} threads")
    if options.probe:
        step, count = stepper(options.probe, "fused", device)
        return workloads.report_probe(options.probe, who, where, count, lambda: step().item())
    for name in workloads.names(options, gpu):
        for mode in options.modes:
            if not can_run(name, mode, gpu):
                continue
            if gpu:
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            step, count = stepper(name, mode, device, options.bf16)
            us = workloads.median_us(step if gpu else lambda: step().item(),
                                     torch.cuda.synchronize if gpu else lambda: None, options.seconds)
            workloads.report(name, mode, who, where, count, us,
                             torch.cuda.max_memory_allocated() if gpu else None)
    return None


if __name__ == "__main__":
    sys.exit(main())
