#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails each call on a file in turn: the call returns an error, the process is killed, or the power
fails (faulty_files.cc). Then the command that a user would enter next must reach the result of an
undisturbed run, bit for bit, and leave no temporary file. An error must name the file."""
import argparse
import concurrent.futures
import errno
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

KILLS = ["kill", "power", "undo"]
WRITES = {"create", "write", "pwrite", "fsync", "mkdir", "rename", "link", "ftruncate", "close"}
ERRORS = {  # the calls that return it
    errno.EIO: {"open", "read", "pread", "rmdir", "unlink", *WRITES},
    errno.ENOSPC: WRITES,
    errno.EMFILE: {"open", "create"},
    errno.EACCES: {"open", "create", "mkdir", "rename", "unlink", "rmdir", "link"},
    errno.EINTR: {"open", "create", "read", "write", "pread", "pwrite", "close", "ftruncate"},
}
TIMES = ("seconds", "images_per_second", "tokens_per_second", "checksum")
SECONDS = 120  # limit of one run


class Failure(Exception):
    pass


def write_idx(path, shape, data):
    path.write_bytes(struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + bytes(data))


def write_images(folder):
    """5x5 images of three classes: a bright row, a bright column, a bright diagonal."""
    folder.mkdir()
    draw = random.Random(1)
    for name, count in (("train", 60), ("t10k", 25)):
        labels = [i % 3 for i in range(count)]
        pixels = []
        for label in labels:
            at = draw.randrange(5)
            bright = {0: lambda r, c: r == at, 1: lambda r, c: c == at, 2: lambda r, c: r == c}[label]
            pixels += [200 * bright(r, c) + draw.randrange(40) for r in range(5) for c in range(5)]
        write_idx(folder / f"{name}-images-idx3-ubyte", (count, 5, 5), pixels)
        write_idx(folder / f"{name}-labels-idx1-ubyte", (count,), labels)


def write_story(path):
    draw = random.Random(2)
    words = (["the cat", "a dog", "the king"], ["sat", "ran", "sang"], ["here", "on the mat"])
    path.write_text("".join(" ".join(map(draw.choice, words)) + ".\n" for _ in range(60)))


def timeless(text):
    """The lines of metrics.jsonl without what depends on the clock."""
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in text.splitlines()]


def result_of(folder):
    """What is in a folder, without what depends on the clock."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = None
        elif path.name == "metrics.jsonl":
            found[name] = timeless(path.read_text())
        elif path.name not in ("curves.svg", "run.json"):
            found[name] = path.read_bytes()
        else:
            found[name] = ""
    return found


class Scenario:
    """`start`: what is tried; `prepare`: what happens before; `resume`: what the user enters after a
    failure if `run` is there (else `start` again)."""

    def __init__(self, name, start, prepare=(), resume=None, run="run", keeps_old=False):
        self.name, self.start, self.prepare, self.run = name, start, prepare, run
        self.resume, self.keeps_old = resume or start, keeps_old


def scenarios(tg, save_steps):
    train = [tg, "train", "--device", "cpu", "--threads", "1", "--checkpoint-every", "never"]
    images = train + ["--data", "images", "--out", "run", "--epochs", "2", "--batch", "12"]
    resume = train + ["--resume", "run"]
    lm = [tg, "lm", "train", "--device", "cpu", "--threads", "1", "--checkpoint-every", "never"]
    story = lm + ["story.txt", "--out", "run", "--arch", "mamba1", "--layers", "1", "--width", "8",
                  "--steps", "6", "--batch", "2", "--length", "8", "--warmup", "2", "--eval-every", "3",
                  "--sample-tokens", "4"]
    lm_resume = lm + ["--resume", "run"]
    old = images + ["--hidden", "4"]
    export = [tg, "export", "--run", "run", "--out"]
    return [
        Scenario("train", images + ["--hidden", "8"], resume=resume),
        Scenario("train --force", images + ["--hidden", "8", "--force"], [old], resume, keeps_old=True),
        Scenario("train --resume", resume, [images + ["--hidden", "8", "--stop-after", "3"]]),
        Scenario("lm train", story, resume=lm_resume),
        Scenario("lm train --force", story + ["--seed", "1", "--force"], [story], lm_resume, keeps_old=True),
        Scenario("lm train --resume", lm_resume, [story + ["--stop-after", "4"]]),
        Scenario("export", export + ["net.onnx"], [old]),
        Scenario("export --web", export + ["web", "--web"], [old]),
        Scenario("save", [save_steps, "net.safetensors", "4"]),
    ]


def run(command, folder, faults=None):
    """Exit code and output; a code below 0 is a signal's number."""
    environment = {**os.environ, "LC_ALL": "C", **(faults or {})}
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=SECONDS)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


class Injector:
    def __init__(self, shim, folder, ignore_sync):
        self.shim, self.folder, self.ignore_sync = shim, folder, ignore_sync
        self.references = {}

    def work(self, scenario):
        """A folder with what the scenario begins with."""
        top = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (top / "backup").mkdir()
        shutil.copytree(self.folder / "begin" / scenario.name.replace(" ", "_"), top / "work")
        return top

    def expect_success(self, command, folder):
        code, out, err = run(command, folder)
        if code not in (0, 130):
            raise Failure(f"{' '.join(command)}: exit code {code}\n{out}{err}")
        return out

    def prepare(self, scenario):
        """Returns the calls of an undisturbed run, as pairs of call and path."""
        begin = self.folder / "begin" / scenario.name.replace(" ", "_")
        begin.mkdir(parents=True)
        write_images(begin / "images")
        write_story(begin / "story.txt")
        (begin / "run").mkdir()
        (begin / "run").rmdir()
        for command in scenario.prepare:
            self.expect_success(command, begin)
        results = []
        if scenario.keeps_old:
            (begin / "run" / "notes.txt").write_text("mine")
            top = self.work(scenario)
            self.expect_success(scenario.resume, top / "work")
            results.append(result_of(top / "work"))
            shutil.rmtree(top)
        top = self.work(scenario)
        log = top / "log"
        code, out, err = run(scenario.start, top / "work", self.faults(top, 0, ""))
        if code != 0:
            raise Failure(f"{scenario.name}: exit code {code}\n{out}{err}")
        results.insert(0, result_of(top / "work"))
        calls = [tuple(line.split(" ", 2)[1:]) for line in log.read_text().splitlines()]
        shutil.rmtree(top)
        self.references[scenario.name] = results
        return calls

    def faults(self, top, at, kind):
        return {"LD_PRELOAD": self.shim, "FAULTS_ROOT": str(top / "work"), "FAULTS_BACKUP": str(top / "backup"),
                "FAULTS_LOG": str(top / "log"), "FAULTS_AT": str(at), "FAULTS_KIND": str(kind),
                "FAULTS_IGNORE_SYNC": "1" if self.ignore_sync else "0"}

    def check(self, scenario, at, kind, path):
        """Raises Failure if the run or what follows it is wrong."""
        top = self.work(scenario)
        work = top / "work"
        code, out, err = run(scenario.start, work, self.faults(top, at, kind))
        if kind in KILLS:
            if code != -9:
                raise Failure(f"was not killed: exit code {code}\n{out}{err}")
        elif code == 1:
            # Temporaries go by the name of what they become.
            name = re.sub(r"(\.tmp\.\d+)(/.*)?$", "", path)
            names = {os.path.basename(n) for n in (name, path, os.path.dirname(path))} - {""}
            lines = [line for line in err.splitlines() if line.startswith("error: ")]
            if len(lines) != 1 or not any(n in lines[0] for n in names | {"run"}):
                raise Failure(f"the error does not name {name}:\n{err}")
        elif code != 0:
            raise Failure(f"exit code {code}\n{out}{err}")
        wanted = self.references[scenario.name]
        if code == 0:
            wanted = wanted[:1]
        else:
            reported = [int(n) for n in re.findall(r"^saved (\d+)$", out, re.M)]
            again = scenario.resume if (work / scenario.run).exists() else scenario.start
            after = self.expect_success(again, work)
            loaded = re.search(r"^loaded (\d+)$", after, re.M)
            if loaded and reported and int(loaded[1]) < reported[-1]:
                raise Failure(f"step {reported[-1]} was saved, step {loaded[1]} is there")
        got = result_of(work)
        if code == 0 and path.endswith("/.lock"):  # could not be removed; the next start does it
            got.pop(f"{scenario.run}/.lock", None)
        if got not in wanted:
            for number, one in enumerate(wanted):
                differing = [n for n in sorted(got.keys() | one.keys())
                             if got.get(n, "missing") != one.get(n, "missing")]
                print(f"  differs from result {number} in {', '.join(differing)}", file=sys.stderr)
            raise Failure(f"the result is another one\n{out}{err}")
        shutil.rmtree(top)


def points_of(calls):
    for number, (call, path) in enumerate(calls, 1):
        for kind in KILLS:
            yield number, kind, call, path
        for code, names in ERRORS.items():
            if call in names:
                yield number, code, call, path
        if call in ("read", "write", "pread", "pwrite"):
            yield number, "short", call, path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tg", required=True)
    parser.add_argument("--save-steps", required=True)
    parser.add_argument("--shim", required=True, help="library of faulty_files.cc")
    parser.add_argument("--count", type=int, default=0, help="number of points per scenario; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="chooses the points")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--point", help="NUMBER:KIND, one point of one scenario, whose folder is kept")
    parser.add_argument("--ignore-sync", action="store_true",
                        help="fsync does nothing: points must fail, or this finds nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tensorgrad-faults-"))
    injector = Injector(os.path.abspath(arguments.shim), folder, arguments.ignore_sync)
    failures = total = 0
    for scenario in scenarios(os.path.abspath(arguments.tg), os.path.abspath(arguments.save_steps)):
        if arguments.only not in scenario.name:
            continue
        calls = injector.prepare(scenario)
        points = list(points_of(calls))
        chosen = points
        if arguments.point:
            chosen = [p for p in points if f"{p[0]}:{p[1]}" == arguments.point]
        elif arguments.count and arguments.count < len(points):
            chosen = sorted(random.Random(arguments.seed).sample(points, arguments.count), key=str)
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            jobs = {pool.submit(injector.check, scenario, n, kind, path): (n, kind, call, path)
                    for n, kind, call, path in chosen}
            for job in concurrent.futures.as_completed(jobs):
                n, kind, call, path = jobs[job]
                try:
                    job.result()
                except (Failure, subprocess.TimeoutExpired) as error:
                    failed += 1
                    shown = kind if isinstance(kind, str) else errno.errorcode[kind]
                    print(f"FAILED {scenario.name}, --point {n}:{kind} ({shown} at {call} {path}): {error}",
                          file=sys.stderr)
        print(f"{scenario.name}: {len(calls)} calls, {len(chosen)} of {len(points)} points, {failed} failed",
              flush=True)
        failures += failed
        total += len(chosen)
    print(f"{total} points, {failures} failed")
    if failures:
        print(f"folders of failed points are kept in {folder}", file=sys.stderr)
        return 1
    if total == 0:
        print("no scenario has such a point", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
