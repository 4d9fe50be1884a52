# SPDX-License-Identifier: MIT
"""Compares the instructions of the host's hot paths, counted by callgrind, with committed numbers.

  host_counts.py --program build/release/tests/host_work --compiler "GNU 12"
  TENSORGRAD_UPDATE=1 host_counts.py ...      rewrites host_counts.json

Startup and shutdown of the process are not counted, because some of it depends on time. Fails if a
count differs from the committed one by more than TOLERANCE. More instructions mean a slowdown. Fewer
mean that the number is out of date and would hide the next slowdown. Exits with code 77 if nothing
can be measured.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "host_counts.json"
TOLERANCE = 0.05
SKIPPED = 77
# Kind of work: how often it is done, another kind whose cost is subtracted, and a description.
COSTS = {"compile": (1, None, "trace and compile of the addition transformer"),
         "step": (50, None, "step() on the null device"),
         "run": (10, None, "run() of 50 steps on the null device"),
         "encode": (10, "run", "what run() of 50 steps takes more on a WebGPU library that does nothing")}


def instructions(program, kind, count, folder, library):
    out = folder / f"callgrind.{kind}"
    environment = {"PATH": os.environ["PATH"], "TENSORGRAD_WEBGPU_LIB": str(library)}
    # On one core, the library encodes with one thread. Counts of several threads vary.
    cores = sorted(os.sched_getaffinity(0))
    core = cores[sorted(COSTS).index(kind) % len(cores)]
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no",
         "--toggle-collect=counted_work", str(program), kind, str(count)],
        capture_output=True, text=True, env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found or int(found[1]) == 0:
        sys.exit(f"{program} {kind} {count} under valgrind: exit code {done.returncode}\n{done.stderr}")
    return int(found[1])


def measure(program, library, folder, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        counts = dict(zip(COSTS, pool.map(
            lambda kind: instructions(program, kind, COSTS[kind][0], folder, library), COSTS)))
    each = {kind: round(counts[kind] / times) for kind, (times, _, _) in COSTS.items()}
    return {kind: each[kind] - (each[without] if without else 0) for kind, (_, without, _) in COSTS.items()}


def compare(expected, got, folder):
    """Returns the lines to print, and whether all counts are within the tolerance."""
    lines, fine = [], True
    for kind, count in got.items():
        if kind not in expected:
            lines.append(f"BAD {kind}: no number is committed")
            fine = False
            continue
        change = count / expected[kind] - 1
        bad = abs(change) > TOLERANCE
        fine = fine and not bad
        lines.append(f"{'BAD' if bad else 'ok '} {kind}: {count:,} instructions, committed "
                     f"{expected[kind]:,} ({change:+.1%}); one is: {COSTS[kind][-1]}")
        if bad:
            lines.append(f"    where they go: callgrind_annotate {folder}/callgrind.{kind}")
    for kind in expected.keys() - got.keys():
        lines.append(f"BAD {kind}: committed, but not measured")
        fine = False
    if not fine:
        lines.append("where the change is meant, write the numbers anew: TENSORGRAD_UPDATE=1 ctest "
                     "--preset release -R counts.host")
    return lines, fine


def skip(why):
    print(f"SKIPPED: {why}", flush=True)
    return SKIPPED


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True, help="a WebGPU that does nothing")
    parser.add_argument("--compiler", required=True, help="the numbers are those of one compiler")
    parser.add_argument("--expected", type=pathlib.Path, default=EXPECTED)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."), help="for callgrind's files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        return skip("valgrind is missing (Debian: valgrind; ./dev setup installs it), so nothing guards "
                    "the host's instruction counts")
    everything = json.loads(args.expected.read_text()) if args.expected.exists() else {}
    update = bool(os.environ.get("TENSORGRAD_UPDATE"))
    if args.compiler not in everything and not update:
        return skip(f"{args.expected.name} has no numbers for the compiler {args.compiler}, only for "
                    f"{', '.join(everything) or 'none'}")
    args.folder.mkdir(parents=True, exist_ok=True)
    got = measure(args.program, args.library, args.folder, args.jobs)
    if update:
        everything[args.compiler] = got
        args.expected.write_text(json.dumps(everything, indent=2) + "\n")
        print(json.dumps(got))
        return 0
    lines, fine = compare(everything[args.compiler], got, args.folder)
    print("\n".join(lines))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
