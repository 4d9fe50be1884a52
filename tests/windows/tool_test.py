#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains with the tool for Windows, which another program starts, on the CPU and on WebGPU.

  tool_test.py PROGRAM... TG.EXE   for example wine64 build/windows/tg.exe
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND = []
TABLE = "width,height,kind\n" + "".join(
    f"{(i * 7 % 20) / 10 + (0 if i % 2 else 3)},{i * 3 % 10},{'small' if i % 2 else 'large'}\n"
    for i in range(80))


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "M\u00f6bel \u2211" / "t.csv"  # Unicode within and beyond Latin-1
        self.data.parent.mkdir()
        self.data.write_text(TABLE)

    def tg(self, *arguments, code=0):
        result = subprocess.run([*COMMAND, *arguments], cwd=self.folder, capture_output=True,
                                stdin=subprocess.DEVNULL, text=True, encoding="utf-8")
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def train(self, out, *arguments, code=0):
        return self.tg("train", "--data", "M\u00f6bel \u2211/t.csv", "--epochs", "3", "--out", out,
                       *arguments, code=code)

    def losses(self, out):
        lines = (self.folder / out / "metrics.jsonl").read_text().splitlines()
        epochs = [json.loads(line) for line in lines]
        return [line["test_loss"] for line in epochs if line["kind"] == "epoch"]

    def test_trains_on_the_cpu_and_on_webgpu(self):
        out = "L\u00e4ufe \u2211/cpu"
        self.assertIn(out, self.train(out, "--device", "cpu"))
        adapters = self.tg("devices").split("webgpu adapter ")[1:]
        number = next(each.split()[0] for each in adapters if "llvmpipe" in each)
        self.train("gpu", "--device", "webgpu", "--adapter", number, "--allow-software")
        cpu, gpu = self.losses(out), self.losses("gpu")
        self.assertEqual(len(cpu), 3)
        for a, b in zip(cpu, gpu, strict=True):
            self.assertAlmostEqual(a, b, places=4)

    def test_replaces_a_run_and_leaves_no_temporary(self):
        self.train("run", "--device", "cpu")
        self.assertIn("already contains a run", self.train("run", "--device", "cpu", code=1))
        self.train("run", "--device", "cpu", "--force")
        names = sorted(path.name for path in (self.folder / "run").iterdir())
        self.assertIn("run.json", names)
        self.assertFalse([name for name in names if ".tmp." in name or name.startswith(".")], names)

    def test_ends_of_lines_stay(self):
        self.train("run", "--device", "cpu")
        for name in ("metrics.jsonl", "run.json"):
            self.assertNotIn(b"\r", (self.folder / "run" / name).read_bytes())
        printed = subprocess.run([*COMMAND, "runs", "run"], cwd=self.folder, capture_output=True)
        self.assertEqual(printed.returncode, 0)
        self.assertNotIn(b"\r", printed.stdout)


if __name__ == "__main__":
    COMMAND = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
