#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what the library costs a program that uses it: bytes, and time to compile a file.

Prints one JSON line per measurement, as tg_bench does. Run it through ./dev bench.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    subprocess.run([str(c) for c in command], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build" / "release")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder) / "whole.so"
        run(args.compiler, "-shared", "-o", whole,
            f"-Wl,--version-script={TOP / 'cmake' / 'exports.map'}", "-Wl,-Bsymbolic-functions",
            "-Wl,-z,pack-relative-relocs", "-Wl,--whole-archive",
            args.build / "libtensorgrad.a", "-Wl,--no-whole-archive", "-lhwy", "-lutf8proc",
            "-lz", "-ldl", "-lpthread")
        run("strip", whole)
        program = pathlib.Path(folder) / "program"
        run("strip", "-o", program, args.build / "examples" / "mlp_sin")
        print(json.dumps({"measure": "the whole library, stripped, without wgpu-native",
                          "bytes": whole.stat().st_size}))
        print(json.dumps({"measure": "examples/mlp_sin, stripped, library linked in",
                          "bytes": program.stat().st_size}))
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            run(args.compiler, "-std=c++20", "-O2", f"-I{TOP / 'include'}",
                f"-I{TOP / 'examples'}", "-c",
                TOP / "examples" / "mlp_sin.cpp", "-o", pathlib.Path(folder) / "sample.o")
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"measure": "compile examples/mlp_sin.cpp with -O2",
                          "seconds": round(statistics.median(seconds), 2)}))


if __name__ == "__main__":
    main()
