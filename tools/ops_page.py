#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes docs/ops.md, the table of what works where, from the reports of the tests of ops.

The tests in tests/ops note which ops they go through; a test that failed counts for nothing. Without
--update, fails where the page is not what the reports say.
"""

import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
REPORTS = ("ops_tests_host.xml", "ops_tests_device.xml")
TYPES = ("f32", "i32", "u32", "bool")


def kind_of(suite, name):
    """Which column a test fills, or None."""
    if suite.endswith("SecondGradient"):
        return "second gradient"
    if suite == "GradientOnDevice":
        return "gradient on webgpu"
    if suite.endswith("Gradient"):
        return "gradient"
    if suite == "Forward":
        return "least limits" if name.endswith("default_limits") else "webgpu"
    return "cpu" if suite.endswith("Forward") else None


def read(folder):
    covered, differentiable = collections.defaultdict(set), set()
    for report in REPORTS:
        for case in xml.etree.ElementTree.parse(folder / report).iter("testcase"):
            if case.get("status") != "run" or case.find("failure") is not None:
                continue
            values = {p.get("name"): p.get("value") for p in case.iter("property")}
            kind = kind_of(case.get("classname"), case.get("name"))
            if kind and "covered" in values:
                covered[kind].update(values["covered"].split(", "))
            differentiable.update(values.get("differentiable", "").split())
    return covered, differentiable


def page(covered, differentiable):
    everything = set().union(*covered.values())

    def mark(entry, kind):
        return "yes" if entry in covered[kind] else "**no**"

    lines = ["# What works where", "",
             "Made by `tools/ops_page.py --update` from the reports of the tests of ops, and held to them by the test `meta.ops_page`. "
             "Each case of `tests/ops` runs on the CPU and on WebGPU, with all of the device's limits and with the least that WebGPU promises, "
             "and is compared with an interpreter in double. Gradients are compared with differences, and so are gradients of gradients; compiled gradients with the interpreter's.",
             "", "## Ops", "",
             "What graphs are made of. Types are those of the first operand.", "",
             "| op | types | cpu | webgpu | least limits | gradient | on webgpu | second gradient |",
             "|---|---|---|---|---|---|---|---|"]
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

        if name in differentiable:
            gradient = [mark(f"op {name} f32", kind)
                        for kind in ("gradient", "gradient on webgpu", "second gradient")]
        else:
            gradient = ["–"] * 3
        lines.append(f"| `{name}` | {' '.join(types)} | {every('cpu')} | {every('webgpu')} | "
                     f"{every('least limits')} | {' | '.join(gradient)} |")
    lines += ["", "## Functions", "",
              "What is written with other ops, as users call it. Where nothing of it has a gradient, as in a comparison, that column says no.", "",
              "| function | cpu | webgpu | least limits | gradient | on webgpu | second gradient |",
              "|---|---|---|---|---|---|---|"]
    for entry in sorted(e for e in everything if e.startswith("function ") and not e.endswith(".grad")):
        marks = [mark(entry, kind) for kind in ("cpu", "webgpu", "least limits", "gradient",
                                                "gradient on webgpu", "second gradient")]
        lines.append(f"| `{entry[9:]}` | {' | '.join(marks)} |".replace("**no**", "–"))
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
