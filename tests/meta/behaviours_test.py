# SPDX-License-Identifier: MIT
"""tests/behaviours/*.tsv, docs/training.md, docs/trust.md and docs/internals/ name only tests that exist.

Each row of a .tsv file is a behavior or a mistake of a library that tensorgrad replaces: section, behavior, ours,
tests. It names at least one test, in one of these forms, with spaces between them:

  unit.optim.Schedule.stays_at_its_end    FOLDER.Suite.case of tests/FOLDER
  debug.cpu/ShadowOn.accepts_random_...   FOLDER.Instantiation/Suite.case
  meta.layers, package.NAME               a test that a .cmake file of that folder adds
  ops/softmax, golden/gelu, optim/adam    a row of the table that drives a folder's tests (TABLES)
  errors/loss_that_returns_nothing        tests/errors/must_not_compile/loss_that_returns_nothing.cc
  passes/dce/unused                       tests/passes/dce/unused.ir
  examples/kan                            examples/kan.cpp, which examples_test runs

In docs/training.md, names that look like a case must exist. In docs/trust.md and docs/internals/, each row of a table
whose last column is `tests` names at least one, also by a path from tests/ on, or another .ir file of the same folder.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = ["section", "behavior", "ours", "tests"]
CASE = re.compile(r"`((?:unit\.\w+|runtime|ops|errors|learning)\.\w+(?:/\w+)?\.\w+)`")
# A folder of tests that a table drives: the files with its rows.
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
    """The tests of a tree, by the names that rows may give them."""

    def __init__(self, root):
        self.root = root
        self.tables = {}
        self.cases = {}

    def exists(self, name):
        folder, slash, rest = name.partition("/")
        if slash and folder in TABLES:
            return self.is_row(folder, rest)
        if slash and folder == "errors":
            return (self.root / "tests/errors/must_not_compile" / (rest + ".cc")).is_file()
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


def rows(text):
    """Yields the rows of a .tsv file with their lines; the first is that of the columns."""
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#"):
            yield number, line.split("\t")


def problems(root, path):
    """Yields (line, reason) for each problem of a .tsv file."""
    known, seen = Tests(root), set()
    found = list(rows(path.read_text()))
    if len(found) < 2 or found[0][1] != COLUMNS:
        yield 1, f"expected the columns {', '.join(COLUMNS)} and rows"
        return
    for line, cells in found[1:]:
        if len(cells) != len(COLUMNS) or not cells[0] or not cells[1]:
            yield line, f"expected section, behavior, ours and tests, got {cells}"
            continue
        if tuple(cells[:2]) in seen:
            yield line, f"'{cells[1]}' is there twice"
        seen.add(tuple(cells[:2]))
        yield from ((line, f"unknown test '{name}'") for name in cells[-1].split() if not known.exists(name))
        if not cells[-1].strip():
            yield line, "no test"


def tables(text):
    """Yields the rows of the tables of a page: line, head and cells."""
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


def problems_of_tables(root, page):
    """Yields (line, reason) for each problem of the tables of a page whose last column is `tests`."""
    known = Tests(root)
    for line, head, cells in tables(page.read_text()):
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
                yield line, f"unknown test '{name}'"
        if not names:
            yield line, "no test"


def problems_of_prose(root, page):
    """Yields (line, reason) for each case that a page names and that does not exist."""
    known = Tests(root)
    for line, text in enumerate(page.read_text().splitlines(), 1):
        yield from ((line, f"unknown test '{name}'") for name in CASE.findall(text) if not known.exists(name))


class Repository(unittest.TestCase):
    def check(self, pattern, find):
        paths = sorted(ROOT.glob(pattern))
        self.assertTrue(paths, pattern)
        self.assertEqual([], [f"{path.relative_to(ROOT)}:{line}: {why}" for path in paths
                              for line, why in find(ROOT, path)])

    def test_rows_name_tests_that_exist(self):
        self.check("tests/behaviours/*.tsv", problems)

    def test_pages_name_tests_that_exist(self):
        self.check("docs/training.md", problems_of_prose)
        self.check("docs/internals/*.md", problems_of_tables)
        self.check("docs/trust.md", problems_of_tables)

    def test_testing_page_says_how_many_rows_there_are(self):
        page = (ROOT / "docs/testing.md").read_text()
        said = re.findall(r"\[(\w+\.tsv)\]\(\.\./tests/behaviours/\1\) \((\d+)\)", page)
        counted = {path.name: sum(1 for _ in rows(path.read_text())) - 1
                   for path in (ROOT / "tests/behaviours").glob("*.tsv")}
        self.assertTrue(counted)
        self.assertEqual({name: int(count) for name, count in said}, counted)


# A tree for the tests of the functions above.
SOURCES = {
    "tests/unit/api/a_test.cpp": "TEST(Plain, one) {\nTEST_F(Fixed,\n       two) {\n"
                                 "TEST_P(Each, three) {\nINSTANTIATE_TEST_SUITE_P(\n    All, Each, x);\n",
    "tests/ops/a_cases.cpp": '{"softmax", x},\nconv("plain", {1});\n"conv2d_" + name\nname + "_edges"\n'
                             '"sum_" + axes\n',
    "src/ops/pointwise.def": "POINTWISE1(relu,  Signed)\n",
    "tests/golden/a_test.cpp": 'one("gelu", gelu)\n{"mse_", x}\nadd(cases, "mean");\n',
    "tests/unit/optim/a_test.cpp": 'OptimizerCase{\n    "adam", x}\n',
    "tests/errors/must_not_compile/broken.cc": "",
    "tests/passes/dce/unused.ir": "", "examples/kan.cpp": "",
    "tests/meta/meta.cmake": "meta_test(layers tools/check_layers.py)\n",
}
EXISTING = ["unit.api.Plain.one", "unit.api.Fixed.two", "unit.api.All/Each.three", "ops/softmax",
            "ops/conv2d_plain", "ops/softmax_edges", "ops/sum_13", "ops/relu", "ops/relu_edges",
            "golden/gelu", "golden/mse_mean", "optim/adam", "errors/broken", "passes/dce/unused",
            "examples/kan", "meta.layers"]
UNKNOWN = ["unit.api.Plain.two", "unit.api.Each.three", "unit.api.Other/Each.three", "api.Plain.one",
           "ops/softmin", "ops/conv2d_other", "ops/sum_x", "golden/relu", "golden/mse_sum",
           "optim/sgd", "errors/right",
           "passes/dce/other", "examples/other", "meta.other", "softmax"]


class Checks(unittest.TestCase):
    def found(self, check, name, text):
        """The problems of a file with this text in the tree of SOURCES."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for source, content in [*SOURCES.items(), (name, text)]:
                (root / source).parent.mkdir(parents=True, exist_ok=True)
                (root / source).write_text(content)
            return list(check(root, root / name))

    def found_in_rows(self, lines):
        return self.found(problems, "tests/behaviours/a.tsv", "# Rows.\nsection\tbehavior\tours\ttests\n" + lines)

    def test_every_kind_of_test_is_found(self):
        lines = "".join(f"A\tcase {name}\t\t{name}\n" for name in EXISTING)
        self.assertEqual(self.found_in_rows(lines + f"A\tall\tof them\t{' '.join(EXISTING)}\n"), [])

    def test_unknown_tests_are_named_with_their_lines(self):
        lines = "".join(f"A\tcase {name}\t\t{EXISTING[0]} {name}\n" for name in UNKNOWN)
        self.assertEqual(self.found_in_rows(lines),
                         [(line, f"unknown test '{name}'") for line, name in enumerate(UNKNOWN, 3)])

    def test_rows_need_every_column_and_a_test_once(self):
        good = f"A\tit\t\t{EXISTING[0]}\n"
        self.assertEqual(self.found_in_rows(good + "A\tother\tyes\t\n"), [(4, "no test")])
        for row in ["A\tit\n", "\tit\t\tops/softmax\n", "A\t\t\tops/softmax\n", "A\tit\t\t\tops/softmax\n"]:
            (line, why), = self.found_in_rows(row)
            self.assertEqual((line, why[:8]), (3, "expected"))
        self.assertEqual(self.found_in_rows(good + good), [(4, "'it' is there twice")])

    def test_files_need_columns_and_rows(self):
        for text in ["", "# Rows.\n", "section\tbehavior\tours\ttests\n", f"A\tit\t\t{EXISTING[0]}\n"]:
            (line, why), = self.found(problems, "tests/behaviours/a.tsv", text)
            self.assertEqual((line, why), (1, "expected the columns section, behavior, ours, tests and rows"))

    def test_cases_of_prose_are_found(self):
        prose = "`Trainer.step` waits (`unit.api.Plain.one`,\n`unit.api.Plain.two`), `runtime.Trainer.*`\n"
        self.assertEqual(self.found(problems_of_prose, "docs/page.md", prose),
                         [(2, "unknown test 'unit.api.Plain.two'")])
        self.assertEqual(self.found(problems_of_prose, "docs/page.md", prose.replace("two", "one")), [])

    def test_tables_with_a_column_of_tests_are_checked(self):
        page = ("| what | where |\n|---|---|\n| it | `unit.api.Plain.two` |\n\n| pass | tests |\n|---|---|\n"
                "| dce | `tests/passes/dce/unused.ir`, `tests/passes/dce` |\n"
                "| both | `tests/passes/dce/unused.ir`, `unused.ir` |\n| form | `unit.api.All/Each.three` |\n")
        self.assertEqual(self.found(problems_of_tables, "docs/page.md", page), [])
        for cell, why in [("`unit.api.Plain.two`", "unknown test 'unit.api.Plain.two'"), ("", "no test"),
                          ("`tests/passes/cse`", "unknown test 'tests/passes/cse'"),
                          ("`tests/passes/dce/unused.ir`, `used.ir`", "unknown test 'used.ir'")]:
            self.assertEqual(self.found(problems_of_tables, "docs/page.md", f"{page}| more | {cell} |\n"),
                             [(10, why)])


if __name__ == "__main__":
    unittest.main()
