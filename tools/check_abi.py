#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the ABI of the shared library with that of a release, with libabigail's abidiff.

Builds both libraries in build/abi: the release from its commit, once, and this one from the working
tree. abidiff then compares the exported functions, and the types that the public headers define. An
added function is compatible. Anything else that abidiff reports is not: a removed function, another
signature, or another layout of a type.

Libraries with different inline namespaces (TENSORGRAD_ABI) have no symbol in common, so programs
cannot mix them. They are not compared. Exits with 0 if the libraries are compatible or have different
namespaces, and with 1 otherwise.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Omits what does not affect the ABI: all instruction sets but the first, and warnings.
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_UNITY_BUILD=ON",
           "-DCMAKE_CXX_FLAGS=-g -DHWY_COMPILE_ONLY_STATIC", "-DTENSORGRAD_WARNINGS=OFF",
           "-DTENSORGRAD_INSTALL=OFF", f"-DTENSORGRAD_FETCH_DIR={ROOT / 'build' / '_deps'}"]
OPTIONS += [f"-DTENSORGRAD_BUILD_{part}=OFF" for part in ("BENCH", "CLI", "EXAMPLES", "TESTS")]
# Bits of abidiff's exit status.
FAILED = 1 | 2
CHANGED = 4 | 8


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def last_release():
    """Returns the last tag vX.Y.Z, or the commit that added the last release to the changelog."""
    tag = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if tag:
        return tag
    heading = re.search(r"^## \[\d+\.\d+\.\d+\]", git("show", "HEAD:CHANGELOG.md"), re.MULTILINE)
    return git("log", "-1", "--format=%h", f"-S{heading[0]}", "--", "CHANGELOG.md") if heading else ""


def abi_of(source):
    """Returns the inline namespace of the ABI, or nothing if this version has none."""
    header = source / "include" / "tensorgrad" / "version.h"
    found = re.search(r"define TENSORGRAD_ABI (\w+)", header.read_text()) if header.exists() else None
    return found[1] if found else None


def unpack(commit, folder):
    """Writes the files of a commit into the folder, unless they are there."""
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        sys.exit(f"git archive {commit} failed")
    (folder / "complete").touch()


def build(source, tree, jobs):
    """Builds the shared library. Returns its path."""
    print(f"building the library in {tree.relative_to(ROOT)}", file=sys.stderr, flush=True)
    for command in (["cmake", "-G", "Ninja", "-S", source, "-B", tree, *OPTIONS],
                    ["cmake", "--build", tree, "--parallel", str(jobs), "--target", "tensorgrad"]):
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            sys.exit(f"could not build the library of {source}")
    return tree / "libtensorgrad.so"


def verdict(status, report):
    """Returns what to print, and the exit status."""
    if status & FAILED:
        return f"{report}abidiff failed with exit status {status}", 2
    if status & CHANGED:
        return (f"{report}The ABI has changed, so this version needs another minor version and\n"
                "TENSORGRAD_ABI (CONTRIBUTING.md, Releases)."), 1
    return f"{report}The ABI is compatible.", 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", nargs="?", help="a tag or commit (default: the last release)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    base = args.base or last_release()
    if not base:
        parser.error("there is no release to compare with; name a commit")
    commit = git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if not commit:
        parser.error(f"'{base}' is not a commit")
    folder = ROOT / "build" / "abi"
    before = folder / commit[:12]
    unpack(commit, before / "source")
    names = abi_of(before / "source"), abi_of(ROOT)
    if names[0] != names[1]:
        print(f"{base} has the ABI {names[0]}, this version {names[1]}: not compared, because a "
              "program cannot link to both.")
        return 0
    old = build(before / "source", before / "build", args.jobs)
    new = build(ROOT, folder / "current", args.jobs)
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--headers-dir1", before / "source" / "include",
         "--headers-dir2", ROOT / "include", old, new], text=True, stdout=subprocess.PIPE)
    print(f"the ABI {names[1]} of this version, compared with {base}:")
    text, status = verdict(done.returncode, done.stdout)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
