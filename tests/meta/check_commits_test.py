# SPDX-License-Identifier: MIT
"""check_commits.py accepts good subjects, names bad ones, and checks only new commits."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
IDENTITY = {f"GIT_{who}_{what}": "someone@example.org"
            for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

GOOD = ["api: add a dynamic size", "docs,tests: rename", "tests/meta: pass",
        "readme.md: embed a figure", "x: " + "a" * 69]

# subject: what the message must contain
BAD = {
    "Add a dynamic size": "not of the form",
    "API: add a dynamic size": "not of the form",
    "api:add a dynamic size": "not of the form",
    "api: adds a dynamic size": "'adds' is no verb in the imperative",
    "api: added a dynamic size": "'added' is no verb in the imperative",
    "api: Add a dynamic size": "'Add' is no verb in the imperative",
    "api: add a dynamic size.": "ends with a period",
    "x: " + "a" * 70: "73 characters, at most 72",
}


class CheckCommits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("An old subject. Of any form; and of any length, since it was before the rule")
        self.base = self.git("rev-parse", "HEAD").stdout.strip()

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.root, *arguments], check=True, capture_output=True,
                              text=True, env=os.environ | IDENTITY)

    def commit(self, subject):
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)

    def check(self, base=None):
        return subprocess.run([sys.executable, "-B", ROOT / "tools/check_commits.py", "--root",
                               self.root, "--base", base or self.base],
                              capture_output=True, text=True)

    def test_accepts_good_subjects_and_merges(self):
        for subject in GOOD:
            self.commit(subject)
        self.git("checkout", "--quiet", "-b", "side", "HEAD~1")
        self.commit("api: add a side")
        self.git("merge", "--quiet", "--no-ff", "--message", "Merge branch 'main'", "main")
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("6 new, no problems", result.stdout)

    def test_names_bad_subjects(self):
        for subject, message in BAD.items():
            with self.subTest(subject):
                self.git("reset", "--quiet", "--hard", self.base)
                self.commit(subject)
                result = self.check()
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(message, result.stdout)

    def test_passes_with_a_note_without_the_base(self):
        self.commit("Anything")
        result = self.check("0" * 40)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("nothing checked", result.stdout)


if __name__ == "__main__":
    unittest.main()
