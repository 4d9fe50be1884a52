# SPDX-License-Identifier: MIT
"""PyTorch on the sample `addition --original`: the accuracy on the held-out sums, by seed.

    python3 bench/peers/torch_addition.py --seeds 8

Model, data, steps, learning rate and decay are those of examples/addition.cpp; random numbers are
PyTorch's.
"""
import argparse
import statistics

import torch
from torch import nn
from torch.nn import functional as F

from torch_steps import Decoder
from workloads import WORKLOADS

SHAPE = WORKLOADS["addition"]
PLUS, EQUALS, FIRST_DIGIT, STEPS = 10, 11, 5, 1500


def sums():
    """Returns the texts of all pairs, "ab+cd=" and three digits of the sum, lowest first. Held-out
    pairs are separate."""
    known, held_out = [], []
    for a in range(100):
        for b in range(100):
            text = [a // 10, a % 10, PLUS, b // 10, b % 10, EQUALS, (a + b) % 10, (a + b) // 10 % 10, (a + b) // 100]
            (held_out if ((100 * a + b) * 31 + 7) % 5 == 0 else known).append(text)
    return torch.tensor(known), torch.tensor(held_out)


def share_right(net, tests):
    text = tests[:, :SHAPE.length].clone()
    text[:, FIRST_DIGIT + 1:] = 0
    right = torch.ones(len(tests), dtype=torch.bool)
    with torch.no_grad():
        for place in range(FIRST_DIGIT, FIRST_DIGIT + 3):
            digit = net(text)[:, place].argmax(-1)
            if place + 1 < SHAPE.length:
                text[:, place + 1] = digit
            right &= digit == tests[:, place + 1]
    return right.float().mean().item()


def trained(seed, known):
    torch.manual_seed(seed)
    net = Decoder(SHAPE)
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    optimizer = torch.optim.AdamW(net.parameters(), 5e-3, weight_decay=0.01, fused=True)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = 5e-3 + (5e-4 - 5e-3) * step / STEPS
        text = known[torch.randint(len(known), (SHAPE.batch,))]
        logits = net(text[:, :SHAPE.length])[:, FIRST_DIGIT:]
        loss = F.cross_entropy(logits.reshape(-1, SHAPE.vocabulary), text[:, FIRST_DIGIT + 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), SHAPE.clip)
        optimizer.step()
    return net


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8, help="number of seeds, from 1")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    known, held_out = sums()
    shares = []
    for seed in range(1, args.seeds + 1):
        shares.append(100 * share_right(trained(seed, known), held_out))
        print(f"seed {seed}: {shares[-1]:.1f} % of the held-out sums are right", flush=True)
    print(f"median {statistics.median(shares):.1f} %")


if __name__ == "__main__":
    main()
