# SPDX-License-Identifier: MIT
"""Exports small random models with `tg lm export`, reads them with llama.cpp, and compares logits and token ids. Needs
tools/gguf-requirements.txt; run it in this folder as `check_gguf.py PATH_OF_TG`. Exits with 1 if something differs.

- Each folder of pretrained/: the logits of transformers.
- gguf/*.gguf, imported and exported again: the logits of the file, and the ids of texts.
- A model in each format of `tg lm quantize`: the logits of its dequantized weights.
- A byte-level tokenizer with each rule that cuts text: the ids of Hugging Face's tokenizers.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import llama_cpp
from make_gguf_fixtures import TEXT, TEXTS, draw

ROOT = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-4
# llama.cpp takes gelu() from a table in f16, and rounds what is multiplied with weights of 16, 8 and 4 bits.
LOOSE = {"gpt2": 1e-2, "gpt2_odd": 1e-2, "f16": 1e-2, "bf16": 5e-2, "int8": 0.1, "int8_per_tensor": 0.1, "int4": 0.1}
REFUSED = {"mamba_odd": "no biases", "mamba2_odd": "no biases", "falcon_mamba": "one epsilon", "llama_bias": "with biases",
           "bamba": "no model", "bamba_odd": "no model", "jamba": "no model", "jamba_odd": "no model"}
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
RULES = {"gpt2": None, "cl100k": CL100K, "cl100k_ignore_merges": CL100K, "qwen2": CL100K.replace("{1,3}", "")}


class Check:
    def __init__(self, tool, scratch):
        self.tool, self.scratch, self.failed = tool, scratch, False

    def report(self, name, worst, tolerance):
        self.failed = self.failed or not worst <= tolerance
        print(f"{name}: {worst:.2g} (at most {tolerance:.2g})")

    def run(self, *words, refused=None):
        done = subprocess.run([self.tool, "lm", *map(str, words)], capture_output=True, text=True)
        if refused is None and done.returncode == 0:
            return
        if refused is None or done.returncode == 0 or refused not in done.stderr:
            raise SystemExit(f"{words}: {done.returncode}, {done.stderr}")

    def export(self, source, name):
        model, out = self.scratch / f"{name}.safetensors", self.scratch / f"{name}.gguf"
        self.run("import", source, "-o", model)
        self.run("export", model, "-o", out, refused=REFUSED.get(name))
        return out

    def compare(self, path, name, tokens, logits):
        with llama_cpp.Model(path) as model:
            worst = max(numpy.abs(model.logits(t) - want).max() for t, want in zip(tokens, logits))
        self.report(name, worst, LOOSE.get(name, TOLERANCE))

    def pretrained(self):
        for folder in sorted(path for path in (ROOT / "pretrained").iterdir() if path.is_dir()):
            out = self.export(folder, folder.name)
            if folder.name in REFUSED:
                print(f"{folder.name}: refused, as expected")
                continue
            expected = load_file(folder / "expected.safetensors")
            self.compare(out, folder.name, expected["tokens"], expected["logits"])

    def fixtures(self):
        ids = json.loads((ROOT / "gguf/ids.json").read_text())
        for name in ("llama", "gpt2", "mamba", "mamba2"):
            out = self.export(ROOT / f"gguf/{name}.gguf", name)
            expected = load_file(ROOT / f"gguf/{name}.safetensors")
            self.compare(out, name, [expected["tokens"]], [expected["logits"]])
            with llama_cpp.Model(out) as model:
                different = sum(model.encode(text) != want for text, want in ids.get(name, {}).items())
            self.report(f"{name}, texts with other ids", different, 0)

    def llama(self, name, vocab, tokenizer=None):
        """Writes a folder of transformers."""
        random, width, forward = numpy.random.default_rng(5), 64, 96
        folder = self.scratch / f"{name}_folder"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({
            "model_type": "llama", "vocab_size": vocab, "hidden_size": width, "intermediate_size": forward,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 64, "tie_word_embeddings": True}))
        layer = "model.layers.0."
        tensors = {"model.embed_tokens.weight": draw(random, vocab, width), "model.norm.weight": draw(random, width),
                   layer + "input_layernorm.weight": draw(random, width, mean=1.0),
                   layer + "post_attention_layernorm.weight": draw(random, width, mean=1.0)}
        for part, rows, columns in (("self_attn.q", width, width), ("self_attn.k", width // 2, width),
                                    ("self_attn.v", width // 2, width), ("self_attn.o", width, width),
                                    ("mlp.gate", forward, width), ("mlp.up", forward, width),
                                    ("mlp.down", width, forward)):
            tensors[f"{layer}{part}_proj.weight"] = draw(random, rows, columns, scale=0.1)
        save_file(tensors, folder / "model.safetensors")
        if tokenizer is not None:
            tokenizer.save(str(folder / "tokenizer.json"))
        return folder

    def formats(self):
        tokens = numpy.arange(12, dtype=numpy.int32) * 5 % 40
        source = self.scratch / "plain.safetensors"
        self.run("import", self.llama("plain", 40), "-o", source)
        for kind in ("f16", "bf16", "int8", "int8_per_tensor", "int4"):
            packed, plain = self.scratch / f"{kind}.safetensors", self.scratch / f"{kind}_f32.safetensors"
            self.run("quantize", source, "--type", kind, "-o", packed)
            self.run("quantize", packed, "--type", "f32", "-o", plain)
            for model in (packed, plain):
                self.run("export", model, "-o", model.with_suffix(".gguf"))
            with llama_cpp.Model(plain.with_suffix(".gguf")) as model:
                logits = model.logits(tokens)
            self.compare(packed.with_suffix(".gguf"), kind, [tokens], [logits])

    def rules(self):
        for name, expression in RULES.items():
            made = Tokenizer(models.BPE(ignore_merges=name.endswith("ignore_merges")))
            cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=expression is None)
            if expression is not None:
                cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), cut])
            made.pre_tokenizer, made.decoder = cut, decoders.ByteLevel()
            made.train_from_iterator([TEXT, "12 123 1234 don't DON'T\r\n\r\n  x"], trainers.BpeTrainer(
                vocab_size=320, special_tokens=["<s>", "</s>", "<|endoftext|>"], show_progress=False,
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
            out = self.export(self.llama(name, 330, made), f"rule_{name}")
            with llama_cpp.Model(out) as model:
                different = sum(model.encode(text) != made.encode(text).ids for text in TEXTS)
            self.report(f"rule {name}, texts with other ids", different, 0)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        check = Check(sys.argv[1], pathlib.Path(scratch))
        check.pretrained()
        check.fixtures()
        check.formats()
        check.rules()
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
