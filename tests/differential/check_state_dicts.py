# SPDX-License-Identifier: MIT
"""Loads the weights that state_dicts.cpp writes into models of PyTorch, with load_state_dict(strict=True), and compares
names and outputs: `check_state_dicts.py PATH_OF_STATE_DICTS`. Needs tools/pretrained-requirements.txt. Exits with 1 if
something differs.
"""

import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from torch import nn

TOLERANCE = 1e-4


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.PReLU(4), nn.MaxPool2d(2),
                                  nn.ConvTranspose2d(4, 6, 3, stride=2))
        self.group = nn.GroupNorm(3, 6)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(nn.functional.gelu(self.instance(self.group(self.body(x)))).mean((2, 3)))


class Signals(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(2, 4, 3)
        self.norm = nn.BatchNorm1d(4)
        self.up = nn.ConvTranspose1d(4, 4, 2)
        self.lstm = nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 5, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(self.up(self.norm(self.first(x)).relu()).transpose(1, 2))[0])[0]


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True)
                                     for _ in range(2))
        self.decoder = nn.TransformerDecoderLayer(8, 2, 12, batch_first=True, norm_first=True)
        self.attention = nn.MultiheadAttention(8, 4, bias=False, batch_first=True)
        self.other = nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)
        self.layer = nn.LayerNorm(8)
        self.rms = nn.RMSNorm(8)
        self.head = nn.Linear(8, 11, bias=False)

    def forward(self, x):
        x = self.tokens(x)
        memory = x
        for each in self.encoder:
            memory = each(memory)
        x = self.decoder(x, memory)
        return self.head(self.rms(self.layer(self.attention(x, x, x)[0] + self.other(x, x, x)[0])))


def main():
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.argv[1], scratch], check=True)
        for model in (Pictures(), Signals(), Texts()):
            name = type(model).__name__.lower()
            weights = load_file(pathlib.Path(scratch) / f"{name}.safetensors")
            run = load_file(pathlib.Path(scratch) / f"{name}.run.safetensors")
            # A dict without module versions, as read from a file, may lack num_batches_tracked.
            model.load_state_dict(weights, strict=True)
            model.eval()
            with torch.no_grad():
                worst = (model(run["x"]) - run["y"]).abs().max().item()
            known = {key for key in model.state_dict() if not key.endswith("num_batches_tracked")}
            failed = failed or known != weights.keys() or not worst <= TOLERANCE
            print(f"{name}: {len(weights)} tensors, outputs differ by {worst:.2g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
