#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Warns if a .cpp has more than 800 lines or a header more than 400; --table lists the longest."""

import argparse
import pathlib

LIMITS = {".cpp": 800, ".h": 400}
FOLDERS = ("include", "src", "cli", "examples", "bench", "tests")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--table", action="store_true", help="also print the longest files")
    args = parser.parse_args()

    sizes = []
    for folder in FOLDERS:
        for path in (args.root / folder).rglob("*"):
            if path.suffix in LIMITS:
                lines = len(path.read_text().splitlines())
                sizes.append((lines / LIMITS[path.suffix], lines, path))
    sizes.sort(reverse=True, key=lambda row: row[0])

    if args.table:
        print(f"{'lines':>6} {'limit':>6}  file")
        for _, lines, path in sizes[:25]:
            print(f"{lines:6} {LIMITS[path.suffix]:6}  {path.relative_to(args.root)}")
    for suffix, limit in LIMITS.items():
        mine = [lines for _, lines, path in sizes if path.suffix == suffix]
        print(f"{suffix}: {len(mine)} files, {sum(mine)} lines, limit {limit} a file")

    too_long = [row for row in sizes if row[0] > 1]
    for _, lines, path in too_long:
        print(f"warning: {path.relative_to(args.root)}: {lines} lines, aim for at most "
              f"{LIMITS[path.suffix]}")


if __name__ == "__main__":
    main()
