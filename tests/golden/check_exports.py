# SPDX-License-Identifier: MIT
"""Imports each folder of pretrained/ with `tg lm import`, exports it with `tg lm export`, loads that
with transformers and compares the logits with those of expected.safetensors. Needs
tools/pretrained-requirements.txt; run it as `check_exports.py PATH_OF_TG`. Exits with 1 if logits
differ.
"""

import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent / "pretrained"
TOLERANCE = 1e-4


def difference(tool, folder, scratch):
    model, exported = scratch / f"{folder.name}.safetensors", scratch / folder.name
    for words in (["import", folder, "-o", model], ["export", model, "-o", exported]):
        subprocess.run([tool, "lm", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    expected = load_file(folder / "expected.safetensors")
    net, info = AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    with torch.no_grad():
        return (net.eval()(expected["tokens"].long()).logits - expected["logits"]).abs().max().item()


def main():
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(path for path in ROOT.iterdir() if path.is_dir()):
            worst = difference(sys.argv[1], folder, pathlib.Path(scratch))
            failed = failed or not worst <= TOLERANCE
            print(f"{folder.name}: {worst:.2g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
