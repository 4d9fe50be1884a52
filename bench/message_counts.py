#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the messages of scaling_model.py with those that Open MPI counts.

  message_counts.py build/release/tests/mpi_ranks --ranks 2 3 4

Runs two tests of mpi_ranks under Open MPI's monitoring and compares the messages and bytes
between all pairs of ranks. Fails if a pair differs from the model. The exit status is 77 if this MPI has no
monitoring (ompi_info lists the component `pml: monitoring`).
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from scaling_model import FLOAT, PADDING, all_gather, all_reduce, broadcast, total

ROOT = pathlib.Path(__file__).resolve().parents[1]
MPIRUN_SH = ROOT / "tests/distributed/mpirun.sh"
HUNG, SKIPPED = 137, 77  # exit statuses of mpirun.sh, and of a test that ctest skips
TRIES = 4
SENT = re.compile(r"E\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent")


def exchange(ranks):
    """Yields the messages of exchanged_hash() in tests/distributed/ranks.h."""
    for elements in (0, 1, 2, 1000, (1 << 22) + 5):
        yield from all_reduce(elements, ranks)
    yield from all_gather(7 * FLOAT, ranks)
    yield from broadcast(7 * FLOAT, ranks)
    yield from all_gather(1, ranks)  # barrier()
    yield from all_gather(0, ranks)  # the end of each rank


def classifier(ranks):
    """Yields the messages of train_classifier() in tests/distributed/ranks.h."""
    shapes = (64 * 32, 32, 32 * 10, 10)  # each parameter begins at a multiple of PADDING
    elements = sum(-(-count // PADDING) * PADDING for count in shapes)
    yield from all_gather(6 * 8, ranks)  # hashes of what must be equal, see ObjectiveImpl::agree()
    yield from all_gather(8, ranks)      # the hash of the buckets
    for _ in range(3):                   # parameters, and two states of Adam
        yield from broadcast(FLOAT * elements, ranks)
    for _ in range(10 + 4):
        yield from all_reduce(elements, ranks)  # one bucket
    yield from all_reduce(10, ranks)     # losses of run(10)
    for _ in range(4):
        yield from all_reduce(1, ranks)  # the loss of step()
    yield from all_gather(0, ranks)      # the end of each rank


TESTS = {"exchange": exchange, "classifier": classifier}


def counted(mpirun, program, test, ranks):
    """Returns what Open MPI counted as {(sender, receiver): (messages, bytes)}."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            command = [MPIRUN_SH, folder, mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks),
                       "--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3",
                       "--mca", "pml_monitoring_filename", f"{folder}/counts", program, test]
            result = subprocess.run(command, capture_output=True, text=True)
            files = [path.read_text() for path in pathlib.Path(folder).glob("counts.*.prof")]
        # mpirun sometimes hangs after its ranks have ended, and then their files are complete.
        if len(files) == ranks and result.returncode in (0, HUNG):
            return {(int(sender), int(receiver)): (int(messages), int(size))
                    for sender, receiver, size, messages in SENT.findall("".join(files))}
        if result.returncode != HUNG:
            break
    sys.exit(f"{program} {test} on {ranks} ranks ended with status {result.returncode} and {len(files)} files of "
             f"counts:\n{result.stdout}{result.stderr}")


def has_monitoring(mpirun):
    """Returns whether the MPI of this mpirun has the component that counts messages."""
    info = pathlib.Path(mpirun).with_name("ompi_info")
    if not info.exists():
        return False
    listed = subprocess.run([info, "--param", "pml", "monitoring"], capture_output=True, text=True).stdout
    return "MCA pml: monitoring" in listed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="mpi_ranks, which -DTENSORGRAD_MPI=ON builds")
    parser.add_argument("--mpirun", default=shutil.which("mpirun"), help="mpirun of Open MPI")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4], help="numbers of ranks, divisors of 12")
    args = parser.parse_args()
    if not args.program.is_file():
        parser.error(f"no such file: {args.program}")
    if args.mpirun is None or not pathlib.Path(args.mpirun).exists():
        parser.error(f"no mpirun: {args.mpirun}")
    for ranks in args.ranks:
        if ranks < 1 or 12 % ranks != 0:
            parser.error(f"--ranks: expected divisors of 12, the batch of the classifier; got {ranks}")
    if not has_monitoring(args.mpirun):
        print(f"{args.mpirun}: Open MPI has no component `pml: monitoring`")
        sys.exit(SKIPPED)
    wrong = []
    print("| test | ranks | messages | bytes | pairs as modelled |\n|---|---|---|---|---|")
    for test, messages in TESTS.items():
        for ranks in args.ranks:
            real, expected = counted(args.mpirun, args.program.resolve(), test, ranks), total(messages(ranks))
            pairs = sorted(real.keys() | expected.keys())
            differ = [pair for pair in pairs if real.get(pair) != expected.get(pair)]
            wrong += [f"{test} on {ranks} ranks, from {pair[0]} to {pair[1]}: counted {real.get(pair)}, modelled "
                      f"{expected.get(pair)}" for pair in differ]
            print(f"| {test} | {ranks} | {sum(count for count, _ in real.values()):,} | "
                  f"{sum(size for _, size in real.values()):,} | {len(pairs) - len(differ)} of {len(pairs)} |")
    if wrong:
        sys.exit("(messages, bytes) differ from bench/scaling_model.py:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
