#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates docs/ops.md, the table of supported ops, from the reports of the op tests.

The tests in tests/ops record the ops that they use; failed tests do not count. Without --update,
fails if the page differs from the reports.
"""

import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
REPORTS = [f"ops_tests_{part}.xml" for part in ("host", "device", "device_quick")]
TYPES = ("f32", "i32", "u32", "bool")
# Properties of ops and functions.
TRAITS = ("differentiable", "takes_floats", "makes_floats")


def kind_of(suite, name):
    """Returns the column that a test fills, or None."""
    if suite.endswith("SecondGradient"):
        return "second gradient"
    if suite == "GradientOnDevice":
        return "gradient on webgpu"
    if suite.endswith("Gradient"):
        return "gradient"
    if suite == "HalfOnDevice":
        return "f16 on webgpu"
    if suite in ("Op/HalfCase", "Half"):
        return "f16"
    if suite == "Forward":
        return "least limits" if "default_limits" in name else "webgpu"
    return "cpu" if suite.endswith("Forward") else None


def read(folder):
    covered, traits = collections.defaultdict(set), {trait: set() for trait in TRAITS}
    for report in REPORTS:
        for case in xml.etree.ElementTree.parse(folder / report).iter("testcase"):
            if case.get("status") != "run" or case.find("failure") is not None:
                continue
            values = {p.get("name"): p.get("value") for p in case.iter("property")}
            kind = kind_of(case.get("classname"), case.get("name"))
            if kind and "covered" in values:
                covered[kind].update(values["covered"].split(", "))
            for trait in TRAITS:
                traits[trait].update(values.get(trait, "").split())
    return covered, traits


def page(covered, traits):
    everything = set().union(*(entries for kind, entries in covered.items() if kind[:3] != "f16"))

    def mark(entry, kind):
        return "yes" if entry in covered[kind] else "**no**"

    def half(entry):
        """True if f16 is covered on both devices."""
        return all(entry in covered[kind] for kind in ("f16", "f16 on webgpu"))

    def half_of_op(name, types):
        if half(f"op {name} f16"):
            return "kept"
        if half(f"op {name} f32"):
            return "in f32"
        return "**no**" if "f32" in types else "none"

    def half_of_function(name):
        if half(f"function {name}"):
            return "yes"
        return "**no**" if name in traits["takes_floats"] else "none"

    lines = ["# Supported ops", "",
             "This page lists the ops and functions of the library: their types, the devices that support them, and their gradients. "
             "`tools/ops_page.py --update` generates it from the reports of the op tests. If the page is out of date, the test `meta.ops_page` fails.",
             "",
             "- **yes**: tests pass. **no** (in bold): no test shows it. **none**: there is nothing to test.",
             "- Each case of `tests/ops` runs on the CPU and on WebGPU. Results are compared with an interpreter in double precision.",
             "- **default limits** is WebGPU with its default limits only, which every device supports.",
             "- Gradients and second gradients are compared with finite differences. "
             "**gradient, webgpu** is the compiled gradient, compared with that of the interpreter.",
             "", "## Ops", "",
             "Ops are the nodes of a graph. The column *types* lists the types of the first operand. "
             "An op whose f16 column says *kept* moves f16 elements without computing. "
             "If the column says *in f32*, the op computes in f32 and returns a result rounded to f16. "
             "The gradient is *none* if the operands or the result are integers, booleans or bits.", "",
             "| op | types | cpu | webgpu | default limits | f16 | gradient | gradient, webgpu | second gradient |",
             "|---|---|---|---|---|---|---|---|---|"]
    ops = collections.defaultdict(set)
    for entry in everything:
        if entry.startswith("op "):
            _, name, dtype = entry.split(" ")
            ops[name].add(dtype)
    for name in sorted(ops):
        types = [t for t in TYPES if t in ops[name]]

        def every(kind):
            missing = [t for t in types if f"op {name} {t}" not in covered[kind]]
            return "yes" if not missing else "**not " + " ".join(missing) + "**"

        if name in traits["differentiable"]:
            gradient = [mark(f"op {name} f32", kind)
                        for kind in ("gradient", "gradient on webgpu", "second gradient")]
        else:
            gradient = ["none"] * 3
        lines.append(f"| `{name}` | {' '.join(types)} | {every('cpu')} | {every('webgpu')} | "
                     f"{every('least limits')} | {half_of_op(name, types)} | {' | '.join(gradient)} |")
    lines += ["", "## Functions", "",
              "Functions are what users call. They are built from the ops above; a function that is a single op is listed there. "
              "Functions that return random numbers are included. "
              "f16 and gradients are *none* if a function has no real operands. A gradient is also *none* if the result is not real, as that of a comparison.", "",
              "| function | cpu | webgpu | default limits | f16 | gradient | gradient, webgpu | second gradient |",
              "|---|---|---|---|---|---|---|---|"]
    for entry in sorted(e for e in everything if e.startswith("function ") and not e.endswith(".grad")):
        name = entry.removeprefix("function ")
        marks = [mark(entry, kind) for kind in ("cpu", "webgpu", "least limits")]
        marks.append(half_of_function(name))
        for kind in ("gradient", "gradient on webgpu", "second gradient"):
            has_none = entry not in covered[kind] and name not in traits["makes_floats"]
            marks.append("none" if has_none else mark(entry, kind))
        lines.append(f"| `{name}` | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, required=True, help="folder of the reports")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    text = page(*read(args.results))
    if args.update:
        PAGE.write_text(text)
    elif not PAGE.is_file() or PAGE.read_text() != text:
        print(f"{PAGE.relative_to(ROOT)} is not what the tests say: "
              f"tools/ops_page.py --results {args.results} --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
