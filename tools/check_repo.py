#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small rules of the repository. The command line selects rules by name (default: all).

  paths      no file names a user's folder, or a package registry by host
  links      every relative link in a Markdown file leads to a file, every #anchor to a heading
  commands   every `./dev X` in a Markdown file is a command of ./dev; the README begins with
             `./dev demo` and `./dev test`
  env        the switches of src/base/env.cpp are those that docs/debugging.md describes and that the
             code reads, and the code reads none of them from the environment in other ways
  heads      C++ files are ASCII, have the license line, and headers have #pragma once (not -inl.h)
  temporary  files that tests write have unique names (test::TempDir), because tests run in parallel
  constants  no name stands for two numbers in src, include and cli
  pages      pages of docs/internals have at most 2,000 words, docs/benchmarks.md 300 lines
  includes   C++ files include the standard headers whose names they use (check_includes.py)
"""

import argparse
import pathlib
import re
import subprocess
import sys

import check_includes

MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:home|root|work|farm|Users)/\w")
REGISTRY = re.compile(r"https?://[^\s)]*(?:debian|pypi|pythonhosted|npmjs|crates\.io|golang|maven)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
ENV_TABLE = "src/base/env.cpp"
# Files that read variables whose names are parameters: the terminal's, and those that a test
# restores or passes to a process, or is given.
GETENV = {"cli/run/progress.cpp", "tests/cli/tool.cpp", "tests/support/graph_builder.cpp",
          "tests/unit/io/holder.cpp"}
SKIP = {"build", "runs", ".git", "__pycache__", ".cache"}


def files(root):
    """Returns the files that git tracks or would add; without git, every file outside build folders."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "-c", "-o", "--exclude-standard"],
                            capture_output=True)
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [p for p in root.rglob("*") if not SKIP & set(p.relative_to(root).parts)]
    return sorted(p for p in set(paths) if p.is_file() and not p.is_symlink())


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""  # not a text file


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_paths(root):
    for path in files(root):
        text = text_of(path)
        for match in MACHINE_PATH.finditer(text):
            yield path, line_of(text, match.start()), f"path of one machine: {match[0]}..."
        for match in REGISTRY.finditer(text):
            yield path, line_of(text, match.start()), f"registry by host: {match[0]}; name the package"


def anchors(text):
    """Returns the anchors that a Markdown viewer generates from the headings of a text."""
    found = set()
    for title in HEADING.findall(FENCE.sub("", text)):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        copy = 0
        while (slug if not copy else f"{slug}-{copy}") in found:
            copy += 1
        found.add(slug if not copy else f"{slug}-{copy}")
    return found


def check_links(root):
    for path in (p for p in files(root) if p.suffix == ".md"):
        text = text_of(path)
        blank = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)  # keeps line numbers
        for match in LINK.finditer(blank):
            target, _, anchor = match[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (path.parent / target).resolve() if target else path
            if not there.exists():
                yield path, line_of(blank, match.start()), f"link to nothing: {match[1]}"
            elif anchor and there.suffix == ".md" and anchor not in anchors(text_of(there)):
                yield path, line_of(blank, match.start()), f"no such heading: {match[1]}"


FIRST_SCREEN = 30  # lines of the README


def check_commands(root):
    known = set(re.findall(r"^cmd_(\w+)\(\)", text_of(root / "dev"), re.MULTILINE))
    if not known:
        yield root / "dev", 1, "no cmd_NAME() found"
    first_screen = "\n".join(text_of(root / "README.md").splitlines()[:FIRST_SCREEN])
    for command in ("./dev demo", "./dev test"):
        if command not in first_screen:
            yield root / "README.md", 1, f"{command} is not in the first {FIRST_SCREEN} lines"
    for path in (p for p in files(root) if p.suffix == ".md"):
        text = text_of(path)
        for match in re.finditer(r"(?:^|[`$])\s*\./dev +([a-z]\w*)", text, re.MULTILINE):
            if match[1] not in known:
                yield path, line_of(text, match.start()), f"./dev has no command {match[1]}"


def check_heads(root):
    for path in (p for p in files(root) if p.suffix in {".h", ".cpp"}):
        text = text_of(path)
        if not text.startswith("// SPDX-License-Identifier: MIT\n"):
            yield path, 1, "the first line is not `// SPDX-License-Identifier: MIT`"
        # Highway includes an -inl.h once per instruction set.
        once = path.suffix == ".h" and not path.name.endswith("-inl.h")
        if once and "\n#pragma once\n" not in text:
            yield path, 1, "a header without #pragma once"
        for number, line in enumerate(text.splitlines(), 1):
            if not line.isascii():
                yield path, number, "not ASCII"


def check_env(root):
    table, page = root / ENV_TABLE, root / "docs/debugging.md"
    declared = {m[1]: m.start() for m in re.finditer(r'\{"(TENSORGRAD_\w+)",', text_of(table))}
    told = {m[1]: m.start() for m in re.finditer(r"^\| `(TENSORGRAD_[A-Z_]+)", text_of(page), re.M)}
    for name in sorted(set(declared) - set(told)):
        yield table, line_of(text_of(table), declared[name]), f"{name} is not in docs/debugging.md"
    for name in sorted(set(told) - set(declared)):
        yield page, line_of(text_of(page), told[name]), f"{name} is not a switch of {ENV_TABLE}"
    read = set()
    for path in (p for p in files(root) if p.suffix in {".h", ".cpp", ".cc"}):
        text, name = text_of(path), path.relative_to(root).as_posix()
        for match in re.finditer(r'\benv(?:_flag)?\("(\w+)"\)', text):
            read.add(match[1])
            if match[1] not in declared:
                yield path, line_of(text, match.start()), f"{match[1]} is not in {ENV_TABLE}"
        for match in re.finditer(r"\bgetenv\(([^)]*)\)", text):
            ours = "TENSORGRAD_" in match[1] or name.startswith("src/")
            if name != ENV_TABLE and (ours or '"' not in match[1] and name not in GETENV):
                yield path, line_of(text, match.start()), f"getenv; {ENV_TABLE} has env() for it"
    for name in sorted(set(declared) - read):
        yield table, line_of(text_of(table), declared[name]), f"nothing reads {name}"


def check_temporary(root):
    for path in (p for p in files(root) if p.suffix in {".h", ".cpp", ".cc"}):
        text = text_of(path)
        for match in re.finditer(r"testing::TempDir\(\)", text):
            yield path, line_of(text, match.start()), "one name for all; test::TempDir has its own"


NUMBER = re.compile(r"constexpr[\w:<>\s]*?\s(k[A-Z]\w*) = ((?:std::u?int64_t\{|std::size_t\{)?[\d'][\w' <}]*);")
# Their values depend on the instruction set or the platform.
DIFFERENT = {"kDefaultSteps", "kFlush", "kRows"}


def check_constants(root):
    values = {}
    for path in (p for p in files(root) if p.suffix in {".h", ".cpp"}
                 and p.relative_to(root).parts[0] in {"src", "include", "cli"}):
        text = text_of(path)
        for match in NUMBER.finditer(text):
            name, value = match[1], match[2].strip()
            first = values.setdefault(name, (value, path))
            if name not in DIFFERENT and value != first[0]:
                yield path, line_of(text, match.start()), (
                    f"{name} is {value}, but {first[0]} in {first[1].relative_to(root)}")


def check_pages(root):
    for path in sorted((root / "docs" / "internals").glob("*.md")):
        words = len(text_of(path).split())
        if words > 2000:
            yield path, 1, f"{words} words; divide the page, the limit is 2000"
    benchmarks = root / "docs" / "benchmarks.md"
    if benchmarks.exists() and (lines := len(text_of(benchmarks).splitlines())) > 300:
        yield benchmarks, 300, f"{lines} lines; the limit is 300, details belong in bench/results"


CHECKS = {"paths": check_paths, "links": check_links, "commands": check_commands,
          "env": check_env, "heads": check_heads, "temporary": check_temporary,
          "constants": check_constants, "pages": check_pages,
          "includes": check_includes.check}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    args = parser.parse_args()
    unknown = set(args.checks) - set(CHECKS)
    if unknown:
        parser.error(f"no such check: {' '.join(sorted(unknown))}")
    root = args.root.resolve()
    failures = 0
    for name in args.checks or CHECKS:
        for path, line, why in CHECKS[name](root):
            print(f"{path.relative_to(root)}:{line}: {why}")
            failures += 1
    print(f"{' '.join(args.checks or CHECKS)}: {failures or 'no'} problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
