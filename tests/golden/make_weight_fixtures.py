# SPDX-License-Identifier: MIT
"""Writes models of PyTorch with their weights in other element types, and their results: weights_*.safetensors.
Run it in this folder.

weights_cnn: a network with batch norm, in F16 and I64, with the names that torch saves.
weights_encoder: two layers of a transformer in BF16, with names as in GPT-2 and its [in, out] matrices in the
feed-forward part.
Both have `expected/in` and `expected/out`, the logits.
weights_numbers: F16, BF16, F64 and I64 with every kind of value, and under `as/` what torch makes of them.
"""

import torch
from torch import nn

import fixture_file
from make_fixtures import draw

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.int64: "I64", torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL"}


def write_safetensors(path, tensors):
    """Each tensor with the element type that it has."""
    fixture_file.write(path, [
        (name, DTYPES[tensor.dtype], tensor.shape,
         bytes(tensor.detach().flatten().contiguous().view(torch.uint8).tolist())) for name, tensor in tensors.items()])


def rounded(module, dtype):
    """The module in double precision with weights that `dtype` holds."""
    return module.to(dtype).double().eval()


def stored(module, dtype):
    return {key: value.to(dtype) if value.is_floating_point() else value for key, value in module.state_dict().items()}


def cnn(generator):
    module = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                           nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5))
    for value in module.parameters():
        value.data = draw(generator, value.shape, 0.5)
    for _ in range(3):  # gives the batch norm something to remember
        module.double()(draw(generator, (8, 1, 8, 8), 2.0))
    module = rounded(module, torch.float16)
    x = draw(generator, (3, 1, 8, 8), 1.0)
    return stored(module, torch.float16) | {"expected/in": x.float(), "expected/out": module(x).float()}


def encoder(generator):
    layers = [nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True, norm_first=True, activation="gelu")
              for _ in range(2)]
    module = nn.ModuleList([*layers, nn.Linear(8, 7, bias=False)])
    for value in module.parameters():
        value.data = draw(generator, value.shape, 0.4)
    module = rounded(module, torch.bfloat16)
    x = draw(generator, (2, 5, 8), 1.0)
    hidden = x
    mask = torch.ones(5, 5).triu(1).bool()
    for layer in module[:2]:
        hidden = layer(hidden, src_mask=mask, is_causal=True)
    tensors = {}
    for key, value in stored(module, torch.bfloat16).items():
        key = "head.weight" if key == "2.weight" else "transformer.h." + key
        if "linear" in key and value.dim() == 2:
            value = value.t()
        tensors[key.replace("linear1", "mlp.c_fc").replace("linear2", "mlp.c_proj")] = value
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-10000.0)
    return tensors | {"expected/in": x.float(), "expected/out": module[2](hidden).float()}


def numbers():
    half = torch.tensor([0.0, -0.0, 1.0, -2.5, 65504.0, 2.0**-14, 2.0**-24, -1023 * 2.0**-24, float("inf"),
                         float("-inf"), float("nan")], dtype=torch.float16)
    brain = torch.tensor([0.0, -0.0, 1.0, -2.5, 3.38e38, 2.0**-126, 2.0**-133, -127 * 2.0**-133, float("inf"),
                          float("-inf"), float("nan")], dtype=torch.bfloat16)
    double = torch.tensor([0.0, -0.0, 0.1, 1 / 3, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 2.0**-149, 2.0**-150, 1.5e-45,
                           1e-300, 3.4028234663852886e38, float("inf"), float("-inf"), float("nan")],
                          dtype=torch.float64)
    integer = torch.tensor([0, 1, -1, 2**31 - 1, -(2**31)])
    return {"half": half, "brain": brain, "double": double, "integer": integer, "byte": torch.tensor(
        [0, 127, 128, 255], dtype=torch.uint8), "bool": torch.tensor([True, False]),
            "as/half": half.float(), "as/brain": brain.float(), "as/double": double.float(),
            "as/integer": integer.int()}


def main():
    generator = torch.Generator().manual_seed(11)
    write_safetensors("weights_cnn.safetensors", cnn(generator))
    write_safetensors("weights_encoder.safetensors", encoder(generator))
    write_safetensors("weights_numbers.safetensors", numbers())


main()
