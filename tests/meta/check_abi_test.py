# SPDX-License-Identifier: MIT
"""tools/check_abi.py: which release it compares with, and what it makes of abidiff's exit status."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_abi  # noqa: E402


class Repository(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.addCleanup(setattr, check_abi, "ROOT", check_abi.ROOT)
        check_abi.ROOT = self.root
        self.git("init", "--quiet")

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, text=True, check=True,
                              capture_output=True)
        return done.stdout.strip()

    def commit(self, changelog):
        (self.root / "CHANGELOG.md").write_text(changelog)
        self.git("add", "CHANGELOG.md")
        self.git("commit", "--quiet", "-m", "changelog: edit")
        return self.git("log", "-1", "--format=%h")

    def test_without_a_release_there_is_nothing_to_compare_with(self):
        self.assertEqual(check_abi.last_release(), "")
        self.commit("## [Unreleased]\n")
        self.assertEqual(check_abi.last_release(), "")

    def test_a_release_without_a_tag_is_the_commit_that_named_it(self):
        self.commit("## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n")
        release = self.commit("## [Unreleased]\n\n## [0.2.0] - 2026-02-01\n\n## [0.1.0] - 2026-01-01\n")
        self.commit("## [Unreleased]\n\n- News\n\n## [0.2.0] - 2026-02-01\n\n## [0.1.0] - 2026-01-01\n")
        self.assertEqual(check_abi.last_release(), release)

    def test_the_last_tag_comes_first(self):
        self.commit("## [0.1.0] - 2026-01-01\n")
        self.git("tag", "v0.1.1")
        self.git("tag", "other")
        self.commit("## [0.2.0] - 2026-02-01\n\n## [0.1.0] - 2026-01-01\n")
        self.assertEqual(check_abi.last_release(), "v0.1.1")

    def test_unpacks_the_files_of_a_commit(self):
        old = self.commit("old")
        self.commit("new")
        check_abi.unpack(old, self.root / "build" / "source")
        self.assertEqual((self.root / "build/source/CHANGELOG.md").read_text(), "old")

    def test_the_abi_is_read_from_the_header(self):
        self.assertIsNone(check_abi.abi_of(self.root))
        folder = self.root / "include" / "tensorgrad"
        folder.mkdir(parents=True)
        (folder / "version.h").write_text("#define TENSORGRAD_ABI v1_2\n")
        self.assertEqual(check_abi.abi_of(self.root), "v1_2")


class Verdict(unittest.TestCase):
    def test_follows_the_bits_of_abidiff(self):
        for status, expected in ((0, 0), (4, 1), (8, 1), (12, 1), (1, 2), (3, 2), (5, 2)):
            text, code = check_abi.verdict(status, "report\n")
            self.assertEqual(code, expected, status)
            self.assertTrue(text.startswith("report\n"))


if __name__ == "__main__":
    unittest.main()
