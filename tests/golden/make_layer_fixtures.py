# SPDX-License-Identifier: MIT
"""Writes what layers of torch.nn give in double precision: layers.safetensors. Run it in this folder.

A layer has `name/param/..`, `name/in/..`, its result `name/out`, and `name/grad/..`, the gradients of
sum(result * w) by its parameters, w being 1, 1.25, 1.5 .. 2.5, 1, 1.25 ..
"""

import torch
from torch import nn

from make_fixtures import draw, write_safetensors
from make_function_fixtures import weights_like

tensors = {}
generator = torch.Generator().manual_seed(6)


def layer(name, module, inputs, forward=None, rename=lambda key: key):
    module = module.double()
    for value in module.parameters():
        value.data = draw(generator, value.shape, 0.3)
    given = {key: draw(generator, shape, 1.0) if isinstance(shape, tuple) else shape for key, shape in inputs.items()}
    for key, value in module.named_parameters():
        tensors[f"{name}/param/{rename(key)}"] = value.detach()
    for key, value in given.items():
        tensors[f"{name}/in/{key}"] = value
    y = forward(module, **given) if forward else module(*given.values())
    (y * weights_like(y)).sum().backward()
    tensors[f"{name}/out"] = y
    for key, value in module.named_parameters():
        tensors[f"{name}/grad/{rename(key)}"] = value.grad
    for key, value in module.named_buffers():
        if value.is_floating_point():
            tensors[f"{name}/buffer/{rename(key)}"] = value
    return module


def recurrent(module, x, h=None, c=None):
    y, state = module(x) if h is None else module(x, h if c is None else (h, c))
    last = state if torch.is_tensor(state) else torch.cat([part.flatten() for part in state])
    return torch.cat([y.flatten(), last.flatten()])


def main():
    image = {"input": (4, 6, 3, 2)}
    layer("layer_norm", nn.LayerNorm((3, 2)), image)
    layer("rms_norm", nn.RMSNorm(2), image)
    layer("group_norm", nn.GroupNorm(3, 6), image)
    layer("instance_norm", nn.InstanceNorm2d(6, affine=True), image)
    module = layer("batch_norm", nn.BatchNorm2d(6), image)
    module.eval()
    tensors["batch_norm/eval"] = module(tensors["batch_norm/in/input"])
    layer("prelu", nn.PReLU(6), image)

    sequence = {"query": (2, 3, 8)}
    layer("attention", nn.MultiheadAttention(8, 2, batch_first=True), sequence,
          lambda m, query: m(query, query, query)[0])
    mask = torch.ones(3, 3).triu(1).bool()
    layer("attention_causal", nn.MultiheadAttention(8, 4, batch_first=True, bias=False), sequence,
          lambda m, query: m(query, query, query, attn_mask=mask)[0])
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.int32)
    layer("attention_padded", nn.MultiheadAttention(8, 2, batch_first=True),
          {"query": (2, 3, 8), "key": (2, 5, 8), "padding": padding},
          lambda m, query, key, padding: m(query, key, key * 0.5, key_padding_mask=padding != 0)[0])
    for name, first in ("encoder_after", False), ("encoder_first", True):
        layer(name, nn.TransformerEncoderLayer(8, 2, 12, dropout=0, batch_first=True, norm_first=first,
                                               activation="gelu" if first else "relu"), {"src": (2, 3, 8)})
    for name, first in ("decoder_after", False), ("decoder_first", True):
        layer(name, nn.TransformerDecoderLayer(8, 2, 12, dropout=0, batch_first=True, norm_first=first),
              {"tgt": (2, 3, 8), "memory": (2, 5, 8)},
              lambda m, tgt, memory: m(tgt, memory, tgt_mask=mask.double().masked_fill(mask, -torch.inf)))
    layer("lstm", nn.LSTM(3, 4, num_layers=2), {"x": (5, 2, 3)}, recurrent)
    layer("lstm_from", nn.LSTM(3, 4, batch_first=True, bias=False),
          {"x": (2, 5, 3), "h": (1, 2, 4), "c": (1, 2, 4)}, recurrent)
    layer("gru", nn.GRU(3, 4, num_layers=2, batch_first=True), {"x": (2, 5, 3)}, recurrent)
    layer("gru_from", nn.GRU(3, 4), {"x": (5, 2, 3), "h": (1, 2, 4)}, recurrent)

    def weighted(average):
        def run(m, query, key, value, padding=None):
            mask = None if padding is None else padding != 0
            y, weights = m(query, key, value, key_padding_mask=mask, average_attn_weights=average)
            return torch.cat([y.flatten(), weights.flatten()])
        return run

    three = {"query": (2, 3, 8), "key": (2, 5, 6), "value": (2, 5, 3)}
    layer("attention_of_widths", nn.MultiheadAttention(8, 2, batch_first=True, kdim=6, vdim=3), three, weighted(True))
    layer("attention_with_rows", nn.MultiheadAttention(8, 4, batch_first=True, kdim=6, vdim=3, add_bias_kv=True, add_zero_attn=True),
          {**three, "padding": padding}, weighted(False))
    layer("attention_causal_with_rows", nn.MultiheadAttention(8, 2, batch_first=True, bias=False, add_bias_kv=True), sequence,
          lambda m, query: m(query, query, query, attn_mask=mask, need_weights=False)[0])
    layer("attention_unbatched", nn.MultiheadAttention(8, 2, add_zero_attn=True), {"query": (3, 8)},
          lambda m, query: torch.cat([part.flatten() for part in m(query, query, query)]))
    layer("lstm_both_ways", nn.LSTM(3, 4, num_layers=2, bidirectional=True), {"x": (5, 2, 3)}, recurrent)
    layer("lstm_both_ways_from", nn.LSTM(3, 4, batch_first=True, bias=False, bidirectional=True),
          {"x": (2, 5, 3), "h": (2, 2, 4), "c": (2, 2, 4)}, recurrent)
    layer("gru_both_ways", nn.GRU(3, 4, num_layers=2, bidirectional=True, batch_first=True), {"x": (2, 5, 3)}, recurrent)
    layer("gru_unbatched", nn.GRU(3, 4, bidirectional=True), {"x": (5, 3), "h": (2, 4)}, recurrent)
    write_safetensors("layers.safetensors", tensors)


if __name__ == "__main__":
    main()
