# SPDX-License-Identifier: MIT
"""./dev installs what a command needs, and builds its preset. Programs that it calls are replaced."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Programs of the system that ./dev may call here. Others are missing.
SYSTEM = ["awk", "bash", "cat", "dirname", "env", "expand", "grep", "head", "mkdir", "rm", "sed", "sort", "tr",
          "touch", "chmod"]
LOG = 'echo "${0##*/} $*" >>"$LOG"\n'
# A cmake that configures and builds nothing but tg, which logs its arguments.
CMAKE = LOG + '''
preset=$(sed -n 's/.*--preset \\([a-z-]*\\).*/\\1/p' <<<"$*")
mkdir -p "build/$preset"
case $* in
  *--build*)
    echo '#!/usr/bin/env bash' >"build/$preset/tg"
    echo 'echo "$0 $*" >>"$LOG"' >>"build/$preset/tg"
    chmod +x "build/$preset/tg" ;;
  *) touch "build/$preset/build.ninja"
     [ "$preset" != dev ] || exit 3 ;;
esac
'''


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for name in ("dev", "CMakePresets.json"):
            shutil.copy2(ROOT / name, self.root)
        os.utime(self.root / "CMakePresets.json", (0, 0))  # older than a tree that is configured
        for name in SYSTEM:
            (self.bin / name).symlink_to(shutil.which(name))
        self.program("id", "echo 0\n")
        self.program("apt-get", LOG)
        self.program("dpkg-query", "")  # no package is installed
        self.program("cmake", CMAKE)

    def program(self, name, text):
        (self.bin / name).write_text(f"#!{shutil.which('bash')}\n{text}")
        (self.bin / name).chmod(0o755)

    def dev(self, *arguments):
        """Runs ./dev. Returns what it and the replaced programs printed."""
        log = self.root / "log"
        log.write_text("")
        result = subprocess.run([self.bin / "bash", "./dev", *arguments], cwd=self.root, text=True,
                                env={"PATH": str(self.bin), "LOG": str(log)}, capture_output=True)
        self.log = log.read_text()
        return result

    def installed(self):
        lines = [line for line in self.log.splitlines() if line.startswith("apt-get install")]
        return " ".join(lines).split()

    def test_demo_needs_no_packages_of_tests(self):
        result = self.dev("demo", "--data", "images")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("libcli11-dev", self.installed())
        self.assertIn("dataset-fashion-mnist", self.installed())
        for package in ("libgtest-dev", "libgmock-dev", "libopenmpi-dev", "valgrind"):
            self.assertNotIn(package, self.installed())
            self.assertNotIn(package, result.stderr)
        self.assertIn("cmake --preset tool\n", self.log)
        self.assertRegex(self.log, r"cmake --build --preset tool .*--target tg\n")
        self.assertRegex(self.log, r"build/tool/tg train .*--data images\n")
        self.assertNotIn("release", self.log)

    def test_demo_uses_a_release_tree_that_is_configured(self):
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/CMakeCache.txt").touch()
        result = self.dev("demo", "--data", "images")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.log, r"build/release/tg train .*--data images\n")
        self.assertNotIn("tool", self.log)

    def test_tg_passes_its_arguments(self):
        result = self.dev("tg", "devices", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("build/tool/tg devices --json\n", self.log)

    def test_test_installs_those_of_the_tool_and_of_tests(self):
        self.assertEqual(self.dev("test").returncode, 3)  # by configuring dev
        for package in ("g++", "libcli11-dev", "libgtest-dev", "libopenmpi-dev", "nodejs"):
            self.assertIn(package, self.installed())

    def test_missing_packages_are_named_if_they_cannot_be_installed(self):
        self.program("id", "echo 1000\n")  # not root, and there is no sudo
        result = self.dev("demo", "--data", "images")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.log, "")
        self.assertIn("missing: libhwy-dev (", result.stderr)
        self.assertRegex(result.stderr, "run as root: apt-get install g\\+\\+ cmake .*libstb-dev")
        self.assertRegex(result.stderr, "must be installed by an administrator:\n +git\n +python3\n")
        self.assertNotIn("libgtest-dev", result.stderr)

    def test_unknown_command_is_refused(self):
        result = self.dev("tests")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown command 'tests'", result.stderr)
        self.assertIn("\n  demo ", result.stderr.replace("\t", " "))


if __name__ == "__main__":
    unittest.main()
