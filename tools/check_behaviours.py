#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/behaviours.md and docs/mamba_behaviours.md name only tests that there are, and each of their rows a test or
`not there`; docs/training.md names only tests that there are; so do the tables of docs/architecture.md whose last column
is `tests`, each row at least one.

A test is named in backquotes in the last column of a table, in one of two forms:

  unit.optim.Schedule.stays_at_its_end    FOLDER.Suite.case of tests/FOLDER; with parameters
  debug.cpu/ShadowOn.accepts_random_...   FOLDER.Instantiation/Suite.case
  meta.layers, package.NAME               a test that a .cmake file of that folder adds
  ops/softmax, golden/gelu, optim/adam    a row of the table that drives a folder's tests (TABLES)
  errors/missing_input                    tests/errors/missing_input.cpp or .cc
  passes/dce/unused                       tests/passes/dce/unused.ir
  examples/kan                            examples/kan.cpp, which examples_test runs

In docs/architecture.md also by a path from tests/ on, or by the name of another .ir file in the same folder.
"""

import argparse
import pathlib
import re
import sys

PAGES = ["docs/behaviours.md", "docs/mamba_behaviours.md"]
# Pages without such tables, of whose names only those that look like a case are held.
PROSE = ["docs/training.md"]
# Pages with other tables, too: only those whose last column is called `tests` are held.
MIXED = ["docs/architecture.md"]
CASE = re.compile(r"`((?:unit\.\w+|runtime|ops|errors|learning)\.\w+(?:/\w+)?\.\w+)`")
NOT_THERE = "not there"
# What drives a table of tests: the files with its rows.
TABLES = {"ops": ["tests/ops/*_cases.cpp", "src/ops/pointwise.def"],
          "golden": ["tests/golden/*_test.cpp"],
          "optim": ["tests/unit/optim/*_test.cpp"]}
NAME = re.compile(r"`([^`]+)`")
TEST = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
PARAMETRIC = re.compile(r"^\s*TEST_P\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
INSTANCE = re.compile(r"INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+),")
# A row begins `{"name",` or `kind("name",` or is a line of pointwise.def.
ROW = re.compile(r'[{(]\s*"(\w+)"|^POINTWISE\w+\((\w+),', re.MULTILINE)
PREFIX = re.compile(r'"(\w+)"\s*\+')
SUFFIX = re.compile(r'\+\s*"(\w+)"')
WORD = re.compile(r'"(\w+)"')


def texts(root, patterns):
    return [path.read_text() for pattern in patterns for path in sorted(root.glob(pattern))]


class Tests:
    """What tests there are, by the names that the page may give them."""

    def __init__(self, root):
        self.root = root
        self.tables = {}
        self.cases = {}

    def exists(self, name):
        folder, slash, rest = name.partition("/")
        if slash and folder in TABLES:
            return self.is_row(folder, rest)
        if slash and folder == "errors":
            return any((self.root / "tests/errors" / (rest + end)).is_file() for end in (".cpp", ".cc"))
        if slash and folder == "passes":
            return (self.root / "tests/passes" / (rest + ".ir")).is_file()
        if slash and folder == "examples":
            return (self.root / "examples" / (rest + ".cpp")).is_file()
        match = re.fullmatch(r"(unit\.\w+|\w+)\.((?:\w+/)?\w+\.\w+)", name)
        if match:
            return match[2] in self.suites(match[1].replace(".", "/"))
        match = re.fullmatch(r"(meta|package)\.(\w+)", name)
        return match is not None and self.is_added(match[1], match[2])

    def is_row(self, table, name):
        if table not in self.tables:
            text = "\n".join(texts(self.root, TABLES[table]))
            rows = {name for found in ROW.findall(text) for name in found if name}
            self.tables[table] = [rows] + [set(kind.findall(text)) for kind in (PREFIX, SUFFIX, WORD)]
        rows, prefixes, suffixes, words = self.tables[table]
        # A name may be put together: "conv2d_" + name, "sum_" + axes, name + "_edges"; and a row
        # {"mse_loss_", ...} is gone through with each of "mean", "sum", "none".
        return (name in rows
                or any(name.startswith(p) and (name[len(p):] in rows or name[len(p):].isdigit())
                       for p in prefixes)
                or any(name.endswith(s) and name[:-len(s)] in rows for s in suffixes)
                or any(name.startswith(r) and name[len(r):] in words for r in rows if r[-1] == "_"))

    def suites(self, folder):
        """Suite.case, or Instantiation/Suite.case, of the programs made of tests/FOLDER."""
        if folder not in self.cases:
            found = set()
            pattern = f"tests/{folder}/*.cpp" if folder.startswith("unit/") else f"tests/{folder}/**/*.cpp"
            for text in texts(self.root, [pattern]):
                instances = INSTANCE.findall(text)
                parametric = PARAMETRIC.findall(text)
                found |= {f"{suite}.{case}" for suite, case in set(TEST.findall(text)) - set(parametric)}
                found |= {f"{instance}/{suite}.{case}" for suite, case in parametric
                          for instance, of in instances if of == suite}
            self.cases[folder] = found
        return self.cases[folder]

    def is_added(self, folder, name):
        text = "\n".join(texts(self.root, [f"tests/{folder}/*.cmake"]))
        return re.search(rf"\b{re.escape(name)}\b", text) is not None


def tables(text):
    """The rows of the page's tables with their lines: the table's head and the cells, without heads and rules."""
    previous, head = "", []
    for number, line in enumerate(text.splitlines(), 1):
        is_row = line.startswith("|")
        is_rule = re.fullmatch(r"\|[-| :]+\|", line) is not None
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if is_row else []
        if is_row and not previous.startswith("|"):
            head = cells
        elif is_row and not is_rule:
            yield number, head, cells
        previous = line


def problems(root, page_name):
    page = root / page_name
    if not page.is_file():
        yield 1, "there is no such page"
        return
    known, rows = Tests(root), 0
    for line, _, cells in tables(page.read_text()):
        rows += 1
        names = NAME.findall(cells[-1])
        for name in names:
            if not known.exists(name):
                yield line, f"there is no test {name}"
        if not names and not cells[-1].startswith(NOT_THERE):
            yield line, f"neither a test nor `{NOT_THERE}`"
    if rows == 0:
        yield 1, "no table"


def problems_of_tests(root, page_name):
    known = Tests(root)
    for line, head, cells in tables((root / page_name).read_text()):
        if head[-1] != "tests":
            continue
        names, path = NAME.findall(cells[-1]), root
        for name in names:
            if name.startswith("tests/"):
                path = root / name
                exists = path.exists()
            elif name.endswith(".ir"):
                exists = path.with_name(name).is_file()
            else:
                exists = known.exists(name)
            if not exists:
                yield line, f"there is no test {name}"
        if not names:
            yield line, "no test"


def cases_that_are_not_there(root, page_name):
    known = Tests(root)
    for line, text in enumerate((root / page_name).read_text().splitlines(), 1):
        for name in CASE.findall(text):
            if not known.exists(name):
                yield line, f"there is no test {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    found = [(page, *problem) for page in PAGES
             if page == PAGES[0] or (args.root / page).is_file()
             for problem in problems(args.root.resolve(), page)]
    found += [(page, *problem) for page in PROSE if (args.root / page).is_file()
              for problem in cases_that_are_not_there(args.root.resolve(), page)]
    found += [(page, *problem) for page in MIXED if (args.root / page).is_file()
              for problem in problems_of_tests(args.root.resolve(), page)]
    for page, line, why in found:
        print(f"{page}:{line}: {why}")
    print(f"behaviours: {len(found) or 'no'} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
