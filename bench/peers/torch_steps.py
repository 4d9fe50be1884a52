# SPDX-License-Identifier: MIT
"""PyTorch on the workloads of tg_bench: one JSON line each. Eager and (on a GPU) as a CUDA graph."""
import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def mlp(sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i + 2 < len(sizes):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(1568, 64), nn.ReLU(), nn.Linear(64, 10))


class Block(nn.Module):
    def __init__(self, width, heads, act):
        super().__init__()
        self.heads, self.act = heads, act
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
    def __init__(self, vocabulary, width, layers, heads, length, act):
        super().__init__()
        self.symbols = nn.Parameter(0.02 * torch.randn(vocabulary, width))
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads, act) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, text):
        x = self.symbols[text] + self.places
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.symbols)


# vocabulary, width, layers, heads, length, batch, activation, symbols at the end that count, clip
DECODERS = {"addition": (12, 64, 3, 4, 8, 128, F.relu, 3, 1.0),
            "char-gpt": (65, 384, 6, 6, 256, 64, F.gelu, 256, 1.0),
            "char-gpt-small": (65, 128, 4, 4, 64, 8, F.gelu, 64, None)}


def median_us(step, sync, seconds):
    deadline = time.perf_counter() + 0.2 * seconds
    while time.perf_counter() < deadline:
        step()
    sync()
    times, deadline = [], time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times) < 5:
        start = time.perf_counter()
        for _ in range(10):
            step()
        sync()
        times.append((time.perf_counter() - start) / 10 * 1e6)
    return statistics.median(times)


def workload(name, device):
    if name == "mlp-sin":
        model = mlp([1, 64, 64, 1]).to(device)
        x, y = torch.rand(256, 1, device=device), torch.rand(256, 1, device=device)
        return model, lambda: F.mse_loss(model(x), y), torch.optim.Adam
    if name in DECODERS:
        vocabulary, width, layers, heads, length, batch, act, answers, _ = DECODERS[name]
        model = Decoder(vocabulary, width, layers, heads, length, act).to(device)
        text = torch.randint(0, vocabulary, (batch, length), device=device)
        target = torch.randint(0, vocabulary, (batch, length), device=device)
        target[:, :length - answers] = -100
        return (model, lambda: F.cross_entropy(model(text).flatten(0, 1), target.flatten()),
                torch.optim.AdamW)
    images = name == "fashion-cnn"
    model = (cnn() if images else mlp([784, 256, 128, 10])).to(device)
    batch, shape = (64, (1, 28, 28)) if images else (128, (784,))
    x, y = torch.rand(batch, *shape, device=device), torch.randint(0, 10, (batch,), device=device)
    return model, lambda: F.cross_entropy(model(x), y), torch.optim.AdamW


def stepper(name, device, **kwargs):
    model, loss, optimizer = workload(name, device)
    optimizer = optimizer(model.parameters(), lr=1e-3, **kwargs)
    clip = DECODERS[name][-1] if name in DECODERS else None

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return value

    return step


def cuda_graph(name):
    step = stepper(name, "cuda", capturable=True)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def report(name, mode, device, us):
    print(json.dumps({"workload": name, "mode": mode, "who": f"PyTorch {torch.__version__}",
                      "device": device, "us_per_step": round(us, 2)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="mlp-sin,fashion-mlp,fashion-cnn,addition,char-gpt")
    options = parser.parse_args()
    for name in options.only.split(","):
        if name == "char-gpt" and not torch.cuda.is_available():
            name = "char-gpt-small"
        if torch.cuda.is_available():
            sync, device = torch.cuda.synchronize, torch.cuda.get_device_name()
            report(name, "eager", device, median_us(stepper(name, "cuda", fused=True), sync, options.seconds))
            report(name, "CUDA graph", device, median_us(cuda_graph(name), sync, options.seconds))
            continue
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for mode, kwargs in (("eager", {}), ("eager, fused optimizer", {"fused": True})):
                step = stepper(name, "cpu", **kwargs)
                us = median_us(lambda: step().item(), lambda: None, options.seconds)
                report(name, mode, f"cpu, {threads} threads", us)
    return 0


if __name__ == "__main__":
    sys.exit(main())
