# SPDX-License-Identifier: MIT
"""The check `includes` of check_repo.py accepts files with all needed headers and names every use
without one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

OURS = {"src/ir/graph.h": "#include <string>\n#include <vector>\n"}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**OURS, **files}.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run([sys.executable, "-B", ROOT / "tools/check_repo.py", "--root",
                               folder, "includes"], capture_output=True, text=True)


class CheckIncludes(unittest.TestCase):
    def accepts(self, text):
        result = run({"src/ir/graph.cpp": text})
        self.assertEqual(result.returncode, 0, result.stdout)

    def names(self, text, problem):
        result = run({"src/ir/graph.cpp": text})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("src/ir/graph.cpp:" + problem, result.stdout)
        self.assertIn("includes: 1 problems", result.stdout)

    def test_accepts_headers_of_its_own_and_of_what_it_includes(self):
        self.accepts('#include "ir/graph.h"\n#include <map>\nstd::map<std::string, int> x;\n')
        self.accepts("#include <ir/graph.h>\nstd::vector<int> x;\n")
        self.accepts("#include <map>\nstd::pair<int, int> x;\n")  # one of several headers

    def test_names_what_is_missing_once_with_its_line(self):
        self.names('#include "ir/graph.h"\n\nint x = std::min(1, 2), y = std::min(3, 4);\n',
                   "3: std::min without <algorithm>")
        self.names("// std::string\n/* std::map\n */\nstd::set<int> x;\n",
                   "4: std::set without <set>")

    def test_reads_code_alone(self):
        self.accepts('const char* x = "std::map \\" std::set"; // std::vector\n')
        self.accepts('const char* x = R"(std::map " std::set)";\n')

    def test_knows_every_name(self):
        self.names("std::flurry x;\n", "1: std::flurry is not in the table")

    def test_looks_at_every_room(self):
        for folder in ("include/tensorgrad", "cli", "bench", "examples"):
            self.assertEqual(run({folder + "/x.h": "std::map<int, int> x;\n"}).returncode, 1, folder)


if __name__ == "__main__":
    unittest.main()
