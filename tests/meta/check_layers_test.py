# SPDX-License-Identifier: MIT
"""check_layers.py accepts a valid tree and names every planted violation."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = {
    "include/tensorgrad/core.h": '#include "tensorgrad/error.h"\n#include "tensorgrad/train.h"\n',
    "include/tensorgrad/error.h": "#include <string>\n",
    "include/tensorgrad/train.h": '#include "tensorgrad/train/trainer.h"\n',
    "include/tensorgrad/train/trainer.h": '#include "tensorgrad/types.h"\n',
    "include/tensorgrad/types.h": "#include <vector>\n",
    "include/tensorgrad/data/safetensors.h": '#include "tensorgrad/error.h"\n',
    "include/tensorgrad/ops.h": '#include "tensorgrad/types.h"\n',
    "src/base/check.h": '#include "tensorgrad/error.h"\n',
    "src/ir/graph.h": '#include "base/check.h"\n',
    "src/ir/graph.cpp": '#include "ir/graph.h"\n#include <fmt/format.h>\n',
    "src/passes/fuse/fuse.h": '#include "ir/graph.h"\n',
    "src/backend/backend.h": '#include "ir/graph.h"\n',
    "src/backend/backend.cpp": '#include "backend/cpu/device.h"\n',
    "src/backend/cpu/device.h": '#include "backend/backend.h"\n#include "hwy/highway.h"\n',
    "src/backend/webgpu/device.h": "#include <webgpu/webgpu.h>\n",
    "src/nn/linear.cpp": '#include "tensorgrad/ops.h"\n#include "tensorgrad/data/safetensors.h"\n',
    "src/train/trainer.cpp": '#include "tensorgrad/ops.h"\n#include "tensorgrad/data/safetensors.h"\n',
    "cli/main.cpp": '#include "args.h"\n#include <CLI/CLI.hpp>\n',
    "cli/args.h": "#include <tensorgrad/ops.h>\n",
}

# name of the violation: (file, its text, what the message must contain)
BREACHES = {
    "upwards": ("src/ir/bad.h", '#include <map>\n#include "passes/fuse/fuse.h"\n',
                "src/ir/bad.h:2: ir may include base, not passes"),
    "sideways": ("src/passes/bad.cpp", '#include "backend/backend.h"\n',
                 "passes may include ops kernel ir base, not backend"),
    "between_backends": ("src/backend/webgpu/bad.cpp", '#include "backend/cpu/device.h"\n',
                         "backend/webgpu and backend/cpu may not include each other"),
    "nn_reaches_into_src": ("src/nn/bad.cpp", '#include "ir/graph.h"\n',
                            "src/nn/bad.cpp:1: nn may include public base, not ir"),
    "tool_reaches_into_src": ("cli/bad.cpp", '#include "base/check.h"\n',
                              "cli may include public, not base"),
    "public_header_below_trace": ("src/ir/bad.cpp", '#include "tensorgrad/ops.h"\n',
                             "ir may not include the public headers of trace"),
    "io_header_below_io": ("src/plan/bad.cpp", "#include <tensorgrad/data/safetensors.h>\n",
                           "plan may not include the public headers of io"),
    "public_header_shows_src": ("include/tensorgrad/bad.h", '#include "ir/graph.h"\n',
                                "a public header includes public and standard headers only"),
    "public_header_shows_library": ("include/tensorgrad/bad.h", "#include <fmt/format.h>\n",
                                    "a public header includes public and standard headers only"),
    "webgpu_header_elsewhere": ("src/plan/bad.cpp", "#include <webgpu/webgpu.h>\n",
                                "only backend/webgpu and examples may include"),
    "system_header_elsewhere": ("src/io/bad.cpp", "#include <unistd.h>\n",
                                "only base/os and cli/os may include <unistd.h>"),
    "system_header_of_the_tool": ("cli/bad.cpp", "#include <sys/ioctl.h>\n",
                                  "may include <sys/ioctl.h>"),
    "system_header_in_public": ("include/tensorgrad/bad.h", "#include <windows.h>\n",
                                "only base/os and cli/os may include <windows.h>"),
    "no_such_module": ("src/misc/bad.cpp", "", "src/misc/bad.cpp:1: is in no module"),
    "no_such_file": ("src/ir/bad.cpp", '#include "ir/nothing.h"\n', "there is no src/ir/nothing.h"),
    "dots": ("src/ir/bad.cpp", '#include "../base/check.h"\n', "without `..`"),
}


def run(root, *args):
    return subprocess.run([sys.executable, "-B", ROOT / "tools/check_layers.py", "--root", root,
                           *args], capture_output=True, text=True)


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name, text in GOOD.items():
            self.write(name, text)
        self.write("src/LAYERS", (ROOT / "src/LAYERS").read_text())
        self.write("src/README.md", (ROOT / "src/README.md").read_text())

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_accepts_a_tree_that_keeps_the_rules(self):
        result = run(self.root)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_names_every_breach(self):
        for name, (path, text, message) in BREACHES.items():
            with self.subTest(name):
                self.write(path, text)
                result = run(self.root)
                (self.root / path).unlink()
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(message, result.stdout)
                self.assertEqual(len(result.stdout.splitlines()), 1, result.stdout)

    def test_notices_an_old_table_and_update_mends_it(self):
        layers = self.root / "src/LAYERS"
        layers.write_text(layers.read_text() + "module extra <- base\n")
        self.assertIn("its table is not that of src/LAYERS", run(self.root).stdout)
        self.assertEqual(run(self.root, "--update").returncode, 0)
        self.assertEqual(run(self.root).returncode, 0)
        self.assertIn("`src/extra/`", (self.root / "src/README.md").read_text())

    def names_only(self, problem):
        result = run(self.root)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual(result.stdout, problem + "\n")

    def test_names_how_a_light_header_reaches_one_that_is_not_allowed(self):
        self.write("include/tensorgrad/train/trainer.h",
                   '#include <map>\n#include "tensorgrad/data/safetensors.h"\n')
        self.names_only("include/tensorgrad/train/trainer.h:2: core.h may not include "
                         "data/safetensors.h (core.h -> train.h -> train/trainer.h -> "
                         "data/safetensors.h); see `light core.h` in src/LAYERS")

    def test_names_a_header_that_is_excluded_from_an_allowed_folder(self):
        self.write("include/tensorgrad/nn/language_model.h", "")
        self.write("include/tensorgrad/nn/linear.h", "")
        self.write("include/tensorgrad/types.h", '#include <tensorgrad/nn/linear.h>\n'
                   '#include <tensorgrad/nn/language_model.h>\n')
        result = run(self.root).stdout
        self.assertIn("types.h:2: core.h may not include nn/language_model.h", result)
        self.assertNotIn("core.h may not include nn/linear.h", result)

    def test_notices_that_a_light_header_is_missing(self):
        (self.root / "include/tensorgrad/core.h").unlink()
        self.names_only("src/LAYERS:1: light core.h: there is no include/tensorgrad/core.h")

    def test_refuses_an_arrow_that_points_up(self):
        self.write("src/LAYERS", "module base <- ir\nmodule ir <- base\n")
        result = run(self.root)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("base <- ir: not a module named above it", result.stderr)


if __name__ == "__main__":
    unittest.main()
