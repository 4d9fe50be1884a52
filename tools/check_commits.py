#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails if the subject of a new commit is not `area: imperative` in at most 72 characters.

Examples: `passes: fuse bias gradients`, `tests/meta: check commit subjects`. New commits are those
after BASE. Merges are exempt. Passes with a note if the history does not reach back to BASE.
"""

import argparse
import pathlib
import re
import subprocess
import sys

BASE = "f7fee94e4ed2f4497c9466515652c4e1e8d19e8f"  # The rule holds for every commit after this one.
LONGEST = 72
SUBJECT = re.compile(r"(?P<area>[a-z0-9_/.,-]+): (?P<verb>\S+)")
# Endings of the first word in another mood: "adds", "added", "adding".
OTHER_MOOD = re.compile(r".*(?:[^s]s|ed|ing)")
IMPERATIVES = {"alias", "bias", "bring", "embed", "exceed", "feed", "focus", "need", "proceed", "seed",
               "shed", "speed"}


def git(root, *arguments):
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)


def fault(subject):
    """Returns what is wrong with a subject, or None."""
    match = SUBJECT.match(subject)
    if not match:
        return "not of the form `area: imperative` with a lower-case area"
    verb = match["verb"]
    if not re.fullmatch(r"[a-z][a-z-]*", verb) or (
            OTHER_MOOD.fullmatch(verb) and verb not in IMPERATIVES):
        return f"'{verb}' is no verb in the imperative"
    if subject.endswith("."):
        return "ends with a period"
    if len(subject) > LONGEST:
        return f"{len(subject)} characters, at most {LONGEST}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--base", default=BASE, help="check the commits after this one")
    args = parser.parse_args()
    if git(args.root, "merge-base", "--is-ancestor", args.base, "HEAD").returncode != 0:
        print(f"commits: nothing checked, the history does not reach back to {args.base[:7]}")
        return 0
    log = git(args.root, "log", "--no-merges", "--format=%h %s", f"{args.base}..HEAD").stdout
    failures = 0
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if wrong := fault(subject):
            print(f"{commit}: {wrong}: {subject}")
            failures += 1
    print(f"commits: {len(log.splitlines())} new, {failures or 'no'} problems")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
