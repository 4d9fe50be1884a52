# SPDX-License-Identifier: MIT
"""host_counts.py reports a failure if there are more or fewer instructions than committed."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import host_counts  # noqa: E402

GIVEN = {kind: 1000 for kind in host_counts.COSTS}


class HostCounts(unittest.TestCase):
    def verdict(self, expected, got):
        return host_counts.compare(expected, got, pathlib.Path("folder"))

    def test_accepts_what_is_near(self):
        lines, fine = self.verdict(GIVEN, GIVEN | {"step": 1049, "compile": 951})
        self.assertTrue(fine, lines)

    def test_refuses_more_and_fewer_and_names_the_kind(self):
        for count in (1051, 949):
            lines, fine = self.verdict(GIVEN, GIVEN | {"step": count})
            self.assertFalse(fine)
            self.assertTrue(any(line.startswith("BAD step") for line in lines), lines)
            self.assertEqual(sum(line.startswith("BAD") for line in lines), 1)
            self.assertIn("TENSORGRAD_UPDATE=1", lines[-1])

    def test_refuses_numbers_that_are_missing_on_either_side(self):
        fewer = {kind: 1000 for kind in list(GIVEN)[1:]}
        self.assertFalse(self.verdict(fewer, GIVEN)[1])
        self.assertFalse(self.verdict(GIVEN, fewer)[1])

    def run_program(self, path, compiler):
        with tempfile.TemporaryDirectory() as folder:
            expected = pathlib.Path(folder) / "expected.json"
            expected.write_text('{"GNU 12": {}}\n')
            return subprocess.run(
                [sys.executable, "-B", HERE / "host_counts.py", "--program", "x", "--library", "y",
                 "--compiler", compiler, "--expected", expected, "--folder", folder],
                capture_output=True, text=True, env=os.environ | {"PATH": path, "TENSORGRAD_UPDATE": ""})

    def test_says_aloud_why_nothing_is_measured(self):
        with tempfile.TemporaryDirectory() as empty:
            result = self.run_program(empty, "GNU 12")
            self.assertEqual(result.returncode, host_counts.SKIPPED)
            self.assertIn("SKIPPED: valgrind is missing", result.stdout)
        with tempfile.TemporaryDirectory() as folder:
            valgrind = pathlib.Path(folder) / "valgrind"
            valgrind.write_text("#!/bin/sh\n")
            valgrind.chmod(0o755)
            result = self.run_program(folder, "Clang 99")
            self.assertEqual(result.returncode, host_counts.SKIPPED)
            self.assertIn("no numbers for the compiler Clang 99, only for GNU 12", result.stdout)


if __name__ == "__main__":
    unittest.main()
