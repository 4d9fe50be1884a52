# SPDX-License-Identifier: MIT
"""check_repo.py names every planted violation with its line."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# check: (file, its text, what the message must contain). The words are split so that this file
# itself does not violate the rules.
BREACHES = {
    "paths": [("a.txt", "fine\nsee /" + "home/someone/x\n", "a.txt:2: path of one machine"),
              ("a.txt", "https:" + "//files.pypi" + ".example/x\n", "a.txt:1: registry by host")],
    "links": [("README.md", "# T\n\n[x](docs/none.md)\n", "README.md:3: link to nothing"),
              ("README.md", "# T\n[x](#nope)\n", "README.md:2: no such heading")],
    "commands": [("README.md", "run `." + "/dev fly`\n", "README.md:1: ./dev has no command fly"),
                 ("README.md", "`." + "/dev demo`\n", "README.md:1: ./dev test is not in the first")],
    "env": [("src/base/env.cpp", '{"TENSORGRAD_A",\n"x"}, env("TENSORGRAD_A")\n',
             "src/base/env.cpp:1: TENSORGRAD_A is not in docs/debugging.md"),
            ("docs/debugging.md", "\n| `TENSORGRAD_B=1` | x |\n",
             "docs/debugging.md:2: TENSORGRAD_B is not a switch"),
            ("src/base/env.cpp", '\n{"TENSORGRAD_C", "x"}\n',
             "src/base/env.cpp:2: nothing reads TENSORGRAD_C"),
            ("cli/a.cpp", '// x\nenv("TENSORGRAD_D")\n',
             "cli/a.cpp:2: TENSORGRAD_D is not in src/base/env.cpp"),
            ("src/a/a.cpp", 'std::getenv("HOME")\n', "src/a/a.cpp:1: getenv"),
            ("cli/a.cpp", 'std::getenv("TENSORGRAD_E")\n', "cli/a.cpp:1: getenv"),
            ("tests/a.cpp", "std::getenv(name)\n", "tests/a.cpp:1: getenv")],
    "heads": [("a.h", "#pragma once\n", "a.h:1: the first line is not"),
              ("a.h", "// SPDX-License-Identifier: MIT\n", "a.h:1: a header without #pragma once"),
              ("a.cpp", "// SPDX-License-Identifier: MIT\n// \u00b5s\n", "a.cpp:2: not ASCII")],
    "temporary": [("tests/a.cpp", "// x\nwrite(::testing::TempDir() + name);\n",
                   "tests/a.cpp:2: one name for all")],
    "constants": [("src/a/b.cpp", "constexpr int kA = 1;\nconstexpr int kA = 2;\n",
                   "src/a/b.cpp:2: kA is 2, but 1 in src/a/b.cpp")],
    "pages": [("docs/internals/a.md", "word " * 2001, "docs/internals/a.md:1: 2001 words"),
              ("docs/benchmarks.md", "line\n" * 301, "docs/benchmarks.md:300: 301 lines")],
}


class CheckRepo(unittest.TestCase):
    def test_names_every_breach_and_accepts_a_good_tree(self):
        for check, cases in BREACHES.items():
            for path, text, message in cases:
                with self.subTest(message), tempfile.TemporaryDirectory() as folder:
                    root = pathlib.Path(folder)
                    (root / "dev").write_text("cmd_demo() {\n}\ncmd_test() {\n}\n")
                    (root / "README.md").write_text("`." + "/dev demo`, `." + "/dev test`\n")
                    for known in ["src/base/env.cpp", "docs/debugging.md"]:
                        (root / known).parent.mkdir(parents=True)
                        (root / known).write_text("// SPDX-License-Identifier: MIT\n")
                    self.assertEqual(self.run_on(root, check).returncode, 0)
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text)
                    result = self.run_on(root, check)
                    self.assertEqual(result.returncode, 1, result.stdout)
                    self.assertIn(message, result.stdout)

    def run_on(self, root, check):
        return subprocess.run([sys.executable, "-B", ROOT / "tools/check_repo.py", "--root", root,
                               check], capture_output=True, text=True)


if __name__ == "__main__":
    unittest.main()
