#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy on the repository's .cpp files that have changed since they last passed.

A file counts as changed if its code, that of one of our headers that it includes (also indirectly),
a .clang-tidy above it or clang-tidy itself has changed. BUILD/tidy/ stores a hash of all of these for
each file that passed.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
# GCC's options for precompiled headers. clang cannot read these, and files include all they need
# anyway.
PRECOMPILED = re.compile(r" -fpch-preprocess| -Winvalid-pch| -include \S*cmake_pch\.hxx")
# A literal, or a comment that clang-tidy does not read.
COMMENT = re.compile(rb'(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|//(?![^\n]*NOLINT)[^\n]*', re.DOTALL)
# clang does not know all of GCC's warnings, and std::stable_sort of GCC 12 calls a deprecated function.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option",
         "--extra-arg=-Wno-error=deprecated-declarations"]
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
BASES = [ROOT / name for name in ("src", "include", "cli", "bench", "tests")]
COMMON = [ROOT / folder / ".clang-tidy" for folder in (".", "tests")]


@functools.cache
def includes_of(path):
    found = []
    for name in INCLUDE.findall(path.read_text()):
        for base in [path.parent, *BASES]:
            if (base / name).is_file():
                found.append((base / name).resolve())
                break
    return found


@functools.cache
def without_comments(path):
    """Returns the text of a file without line comments, of which only NOLINT has an effect."""
    code = COMMENT.sub(lambda found: found[1] or b"", path.read_bytes())
    return b"\n".join(filter(None, map(bytes.rstrip, code.splitlines())))


@functools.cache
def configured(folder):
    """Returns the .clang-tidy files that apply to the files of a folder, except those of COMMON."""
    found = b"" if folder == ROOT else configured(folder.parent)
    own = folder / ".clang-tidy"
    return found + own.read_bytes() if own.is_file() and own not in COMMON else found


def key_of(path, common):
    """Returns a hash of all our code that the result for `path` depends on."""
    seen, todo = set(), [path]
    while todo:
        here = todo.pop()
        if here not in seen:
            seen.add(here)
            todo += includes_of(here)
    digest = hashlib.sha256(common + configured(path.parent))
    for here in sorted(seen):
        digest.update(str(here).encode() + without_comments(here))
    return digest.hexdigest()


class Progress:
    """Counts the files that were looked at. A terminal shows the number, a log every fiftieth."""

    def __init__(self, count):
        self.count, self.done, self.lock = count, 0, threading.Lock()
        self.terminal = sys.stdout.isatty()

    def one_more(self, findings=""):
        with self.lock:
            self.done += 1
            if findings:
                print(("\r\033[K" if self.terminal else "") + findings, end="", flush=True)
            line = f"clang-tidy: {self.done} of {self.count} files"
            if self.terminal:
                print(f"\r{line}", end="\n" if self.done == self.count else "", flush=True)
            elif self.done % 50 == 0:
                print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clang-tidy", required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", help="only these files")
    args = parser.parse_args()

    version = subprocess.run([args.clang_tidy, "--version"], capture_output=True, check=True).stdout
    common = version + b"".join(path.read_bytes() for path in COMMON)
    passed = args.build / "tidy"
    passed.mkdir(exist_ok=True)
    commands = PRECOMPILED.sub("", (args.build / "compile_commands.json").read_text())
    (passed / "compile_commands.json").write_text(commands)
    entries = json.loads(commands)
    sources = {pathlib.Path(e["file"]).resolve() for e in entries}
    sources = sorted(s for s in sources if ROOT / "build" not in s.parents)
    if args.files:
        wanted = {pathlib.Path(f).resolve() for f in args.files}
        sources = [s for s in sources if s in wanted]
    todo = [(s, passed / key_of(s, common)) for s in sources]
    todo = [(s, stamp) for s, stamp in todo if not stamp.exists()]
    print(f"clang-tidy: {len(todo)} of {len(sources)} files to look at", flush=True)
    progress = Progress(len(todo))

    def one(job):
        source, stamp = job
        command = [args.clang_tidy, "-p", str(passed), "--quiet",
                   *EXTRA, str(source)]
        result = subprocess.run(command, capture_output=True, text=True)
        ours = re.search(rf"^{re.escape(str(ROOT))}/.*warning:", result.stdout, re.MULTILINE)
        if result.returncode == 0 and not ours:
            stamp.touch()
            progress.one_more()
            return True
        progress.one_more(result.stdout or result.stderr)
        return False

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(one, todo))
    print(f"clang-tidy: {results.count(False)} files with findings")
    return 1 if False in results else 0


if __name__ == "__main__":
    sys.exit(main())
