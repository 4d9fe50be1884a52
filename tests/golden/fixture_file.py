# SPDX-License-Identifier: MIT
"""The one way in which fixtures are written: safetensors, byte for byte the same for the same tensors."""

import json
import struct


def write(path, entries):
    """`entries`: the name, type ("F32"), shape and bytes of each tensor."""
    header, data, at = {}, [], 0
    for name, dtype, shape, raw in entries:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + b"".join(data))
