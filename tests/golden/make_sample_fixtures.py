# SPDX-License-Identifier: MIT
"""Writes ten optimizer steps of the networks of examples/, made narrow: sample_*.safetensors. Run it in this folder.

init/NAME: the parameters at first. losses [10]. grads/NAME, params/NAME [10, ...]: every gradient of each step
before it is clipped, every parameter after it. buffers/NAME: what batch norm keeps, at the end. Inputs are [10, ...].
Dropout is left out, and the noise of the autoencoder given, as random numbers differ from PyTorch's.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from make_fixtures import STEPS, draw, write_safetensors


def train(name, seed, module, batches, loss_of, optimizer_of, scale=0.4, clip=0.0):
    g = torch.Generator().manual_seed(seed)
    module = module.double()
    for key, value in module.named_parameters():
        around = 1.0 if "norm" in key and key.endswith("weight") else 0.0
        value.data = (around + draw(g, value.shape, scale)).float().double()
    inputs = {key: make(g) for key, make in batches.items()}
    params = dict(module.named_parameters())
    tensors = {f"init/{key}": value.detach().clone() for key, value in params.items()} | inputs
    optimizer = optimizer_of(list(params.values()))
    losses, grads, after = [], {key: [] for key in params}, {key: [] for key in params}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(module, *(value[step] for value in inputs.values()))
        loss.backward()
        for key, value in params.items():
            grads[key].append(value.grad.clone())
        if clip > 0:
            nn.utils.clip_grad_norm_(list(params.values()), clip)
        optimizer.step()
        for key, value in params.items():
            after[key].append(value.detach().clone())
        losses.append(loss.item())
    for key in params:
        tensors[f"grads/{key}"], tensors[f"params/{key}"] = torch.stack(grads[key]), torch.stack(after[key])
    for key, value in module.named_buffers():
        if value.is_floating_point():
            tensors[f"buffers/{key}"] = value
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    write_safetensors(f"sample_{name}.safetensors", tensors)
    print(name, sum(value.numel() for value in params.values()), losses)


def real(*shape):
    return lambda g: draw(g, (STEPS, *shape), 1.0)


def whole(below, *shape):
    return lambda g: torch.randint(0, below, (STEPS, *shape), generator=g)


class Sine(nn.Module):
    def __init__(self):
        super().__init__()
        self.__dict__["_modules"] = {"in": nn.Linear(1, 8), "mid": nn.Linear(8, 8), "out": nn.Linear(8, 1)}

    def forward(self, x):
        first, mid, out = self._modules.values()
        return out(torch.relu(mid(torch.relu(first(x)))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        def split(y):
            return y.view(*y.shape[:2], self.heads, -1).transpose(1, 2)

        y = self.norm_attention(x)
        mixed = F.scaled_dot_product_attention(split(self.query(y)), split(self.key(y)), split(self.value(y)),
                                               is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.norm_mlp(x))))


class Adder(nn.Module):
    def __init__(self, symbols=12, length=8, width=8):
        super().__init__()
        self.symbols = nn.Parameter(torch.empty(symbols, width))
        self.places = nn.Parameter(torch.empty(length, width))
        self.blocks = nn.ModuleList([Block(width, 2) for _ in range(1)])
        self.norm = nn.LayerNorm(width)

    def forward(self, text):
        x = self.symbols[text] + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.symbols.T


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        # No bias before a norm: its gradient is 0, and Adam would train on the rounding of it.
        self.first = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.second = nn.Conv2d(4, 6, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(4), nn.BatchNorm2d(6)
        self.hidden, self.out = nn.Linear(24, 12), nn.Linear(12, 5)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.norm1(self.first(x))), 2)
        x = F.max_pool2d(torch.relu(self.norm2(self.second(x))), 2)
        return self.out(torch.relu(self.hidden(x.flatten(1))))


class Vae(nn.Module):
    def __init__(self, pixels=16, hidden=12, latent=3):
        super().__init__()
        self.enter, self.mid = nn.Linear(pixels, hidden), nn.Linear(hidden, hidden)
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.back, self.out = nn.Linear(latent, hidden), nn.Linear(hidden, pixels)

    def loss(self, x, noise):
        h = torch.relu(self.mid(torch.relu(self.enter(x))))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(0.5 * log_variance) * noise
        error = (torch.sigmoid(self.out(torch.relu(self.back(z)))) - x).square().sum()
        distance = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        return (error + distance) / len(x)


class Letters(nn.Module):
    def __init__(self, context=4, letters=27, embedding=4, hidden=12):
        super().__init__()
        self.letters = nn.Embedding(letters, embedding)
        self.enter, self.mid = nn.Linear(context * embedding, hidden), nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, letters)

    def forward(self, context):
        h = torch.relu(self.enter(self.letters(context).flatten(1)))
        return self.out(h + torch.relu(self.mid(h)))


class KanLayer(nn.Module):
    KNOTS = 8

    def __init__(self, inputs, outputs):
        super().__init__()
        self.curves = nn.Parameter(torch.empty(outputs, inputs * self.KNOTS))
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        u = ((x + 1) * 0.5 * (self.KNOTS - 1)).unsqueeze(-1) - torch.arange(self.KNOTS)
        u = u.abs()
        spline = torch.where(u < 1, u**3 / 2 - u**2 + 2 / 3, torch.relu(2 - u) ** 3 / 6)
        return F.linear(spline.flatten(-2), self.curves) + F.linear(F.silu(x), self.weight)


class Kan(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = KanLayer(1, 4), KanLayer(4, 1)

    def forward(self, x):
        return self.second(self.first(x))


class Gpt(nn.Module):
    def __init__(self, symbols=13, length=6, width=8):
        super().__init__()
        self.tokens, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(
            width, 2, 4 * width, dropout=0, activation="gelu", batch_first=True, norm_first=True)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols)

    def forward(self, text):
        length = text.shape[1]
        x = self.tokens(text) + self.places(torch.arange(length))
        mask = torch.zeros(length, length).double().masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.head(self.norm(x))


def main():
    def adam(**numbers):
        return lambda values: torch.optim.Adam(values, **numbers)

    def adamw(**numbers):
        return lambda values: torch.optim.AdamW(values, **numbers)

    def classes(net, x, y):
        logits = net(x)
        return F.cross_entropy(logits.flatten(0, -2), y.flatten())

    train("mlp_sin", 11, Sine(), {"x": real(16, 1), "y": real(16, 1)},
          lambda net, x, y: F.mse_loss(net(x), y), adamw(lr=5e-3))
    train("addition", 12, Adder(), {"text": whole(12, 4, 8), "digits": whole(12, 4, 3)},
          lambda net, text, digits: classes(lambda x: net(x)[:, 5:8], text, digits),
          adamw(lr=3e-3, weight_decay=0.1), clip=1.0)
    train("fashion_cnn", 13, Cnn(), {"x": real(6, 1, 8, 8), "y": whole(5, 6)}, classes, adamw(lr=5e-3))
    train("vae", 14, Vae(), {"x": lambda g: torch.rand((STEPS, 8, 16), generator=g), "noise": real(8, 3)},
          lambda net, x, noise: net.loss(x.double(), noise), adam(lr=1e-3), clip=1.0)
    train("makemore", 15, Letters(), {"context": whole(27, 16, 4), "letter": whole(27, 16)}, classes,
          adamw(lr=2e-3, weight_decay=0.05))
    train("kan", 16, Kan(), {"x": lambda g: (2 * torch.rand((STEPS, 16, 1), generator=g) - 1), "y": real(16, 1)},
          lambda net, x, y: F.mse_loss(net(x.double()), y), adam(lr=1e-2))
    # The gradient of the keys' bias is 0: Adam would train on the rounding of it.
    train("char_gpt", 17, Gpt(), {"text": whole(13, 4, 7)},
          lambda net, text: classes(net, text[:, :-1], text[:, 1:]),
          lambda values: torch.optim.SGD(values, lr=5e-2, momentum=0.9, nesterov=True))


if __name__ == "__main__":
    main()
