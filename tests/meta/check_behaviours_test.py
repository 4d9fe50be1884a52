# SPDX-License-Identifier: MIT
"""check_behaviours.py finds each test that a page may name, and names each that is not there."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

SOURCES = {
    "tests/unit/api/a_test.cpp": "TEST(Plain, one) {\nTEST_F(Fixed,\n       two) {\n"
                                 "TEST_P(Each, three) {\nINSTANTIATE_TEST_SUITE_P(\n    All, Each, x);\n",
    "tests/ops/a_cases.cpp": '{"softmax", x},\nconv("plain", {1});\n"conv2d_" + name\nname + "_edges"\n'
                             '"sum_" + axes\n',
    "src/ops/pointwise.def": "POINTWISE1(relu,  Signed)\n",
    "tests/golden/a_test.cpp": 'one("gelu", gelu)\n{"mse_", x}\nadd(cases, "mean");\n',
    "tests/unit/optim/a_test.cpp": 'OptimizerCase{\n    "adam", x}\n',
    "tests/errors/wrong.cpp": "", "tests/errors/broken.cc": "",
    "tests/passes/dce/unused.ir": "", "examples/kan.cpp": "",
    "tests/meta/meta.cmake": "meta_test(layers tools/check_layers.py)\n",
}
THERE = ["unit.api.Plain.one", "unit.api.Fixed.two", "unit.api.All/Each.three", "ops/softmax",
         "ops/conv2d_plain", "ops/softmax_edges", "ops/sum_13", "ops/relu", "ops/relu_edges",
         "golden/gelu", "golden/mse_mean", "optim/adam", "errors/wrong", "errors/broken", "passes/dce/unused",
         "examples/kan", "meta.layers"]
NOT_THERE = ["unit.api.Plain.two", "unit.api.Each.three", "unit.api.Other/Each.three", "api.Plain.one",
             "ops/softmin", "ops/conv2d_other", "ops/sum_x", "golden/relu", "golden/mse_sum",
             "optim/sgd", "errors/right",
             "passes/dce/other", "examples/other", "meta.other", "softmax"]


def page(cells):
    rows = "".join(f"| it does | {cell} |\n" for cell in cells)
    return f"# Page\n\n| behaviour | tests |\n|---|---|\n{rows}"


class CheckBehaviours(unittest.TestCase):
    def run_on(self, text, prose=None, mixed=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, source in SOURCES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(source)
            if text is not None:
                (root / "docs").mkdir()
                (root / "docs/behaviours.md").write_text(text)
                if prose is not None:
                    (root / "docs/training.md").write_text(prose)
                if mixed is not None:
                    (root / "docs/architecture.md").write_text(mixed)
            return subprocess.run([sys.executable, "-B", ROOT / "tools/check_behaviours.py", "--root", root],
                                  capture_output=True, text=True)

    def test_finds_every_kind_of_test(self):
        result = self.run_on(page([f"`{name}`" for name in THERE] + [", ".join(f"`{n}`" for n in THERE),
                                                                     "not there: nobody asked"]))
        self.assertEqual((result.returncode, result.stdout), (0, "behaviours: no problems\n"))

    def test_names_what_is_not_there_with_its_line(self):
        result = self.run_on(page([f"`{THERE[0]}` `{name}`" for name in NOT_THERE]))
        self.assertEqual(result.returncode, 1)
        for line, name in enumerate(NOT_THERE, 5):
            self.assertIn(f"docs/behaviours.md:{line}: there is no test {name}\n", result.stdout)
        self.assertEqual(result.stdout.count("there is no test"), len(NOT_THERE))

    def test_wants_a_test_in_every_row(self):
        for cell in ["", "surely", "`"]:
            result = self.run_on(page([cell]))
            self.assertIn("docs/behaviours.md:5: neither a test nor", result.stdout)
            self.assertEqual(result.returncode, 1)

    def test_holds_the_cases_that_a_page_without_tables_names(self):
        good = page([f"`{THERE[0]}`"])
        prose = "`Trainer.step` waits (`unit.api.Plain.one`,\n`unit.api.Plain.two`), `runtime.Trainer.*`\n"
        result = self.run_on(good, prose)
        self.assertEqual(result.stdout, "docs/training.md:2: there is no test unit.api.Plain.two\n"
                                        "behaviours: 1 problems\n")
        self.assertEqual(self.run_on(good, prose.replace("two", "one")).returncode, 0)

    def test_holds_the_tables_of_a_page_that_have_a_column_of_tests(self):
        good = page([f"`{THERE[0]}`"])
        mixed = ("| what | where |\n|---|---|\n| it | `unit.api.Plain.two` |\n\n| pass | tests |\n|---|---|\n"
                 "| dce | `tests/passes/dce/unused.ir`, `tests/passes/dce` |\n"
                 "| both | `tests/passes/dce/unused.ir`, `unused.ir` |\n| form | `unit.api.All/Each.three` |\n")
        self.assertEqual(self.run_on(good, mixed=mixed).returncode, 0)
        for cell, why in [("`unit.api.Plain.two`", "there is no test unit.api.Plain.two"), ("", "no test"),
                          ("`tests/passes/cse`", "there is no test tests/passes/cse"),
                          ("`tests/passes/dce/unused.ir`, `used.ir`", "there is no test used.ir")]:
            result = self.run_on(good, mixed=f"{mixed}| more | {cell} |\n")
            self.assertEqual(result.stdout, f"docs/architecture.md:10: {why}\nbehaviours: 1 problems\n")
            self.assertEqual(result.returncode, 1)

    def test_wants_a_page_with_tables(self):
        for text in [None, "# Page\n"]:
            self.assertEqual(self.run_on(text).returncode, 1)


if __name__ == "__main__":
    unittest.main()
