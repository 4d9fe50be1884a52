#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs random programs of public ops here and in PyTorch, and compares values and gradients.

    differential.py --runner PROGRAM --api API.json [--device cpu|webgpu|both] [--hours H]
                    [--count N] [--seed FIRST] [--edges SHARE]

API.json is the output of tools/describe_api.py, PROGRAM is tests/differential/runner.cpp. Arguments
are those of web/tests/cases.py, with other sizes and with other values for parameters that have a
default. tools/differential_programs.py draws the programs and computes them in PyTorch;
tools/differential_rules.py has what PyTorch calls the ops.

Seed N makes the same program every time. Each result is compared with PyTorch in double precision.
How far it may be off follows from PyTorch too: the program is repeated with every argument and
result moved by rounding errors, those of sums of n terms by more. Edge programs are one op on zeros,
subnormal, huge and tiny numbers, infinities and NaN; they must agree with PyTorch in double or in
single precision. A finding is reduced to its first wrong call and printed.
"""
import argparse
import collections
import json
import math
import random
import struct
import subprocess
import sys
import time
import types
import warnings
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "web/tests"), str(ROOT / "web"), str(ROOT / "tools")]
from differential_programs import (EPS, F32, SMALLEST, Maker, Noise, Program, Ref, Rejected,  # noqa: E402
                                   evaluate, refs_in, renumbered, results_of)
from differential_rules import LEFT_OUT, NO_GRADIENT, RULES  # noqa: E402
from generate import by_name, camel  # noqa: E402

UNDERFLOW = 256 * SMALLEST  # of an edge program: a factor of the result may be flushed
WIDE = 10  # times the largest error seen among a few drawn ones
# Relative error of a function, in units of EPS: f32 functions of devices are good to a few ulp. For
# sums of n terms it is more by sqrt(n); see tests/differential in docs/trust.md.
ULPS = {"cpu": 4, "webgpu": 8}


# ---- the library ---------------------------------------------------------------------------------

def padded(data):
    """Bytes up to a multiple of 8."""
    return data + bytes(-len(data) % 8)


def wire(value):
    """A value as web/bindings/value.h has it."""
    if value is None:
        return struct.pack("<II", 0, 0)
    if isinstance(value, bool):
        return struct.pack("<II", 2, value)
    if isinstance(value, Ref):
        return struct.pack("<II", 6, value)
    if isinstance(value, (int, float)):
        return struct.pack("<IId", 1, 0, value)
    if isinstance(value, str):
        return struct.pack("<II", 3, len(value)) + padded(value.encode())
    if isinstance(value, dict):
        return struct.pack("<II", 5, len(value)) + b"".join(
            wire(key) + wire(each) for key, each in value.items())
    if isinstance(value, np.ndarray):
        number = {"float32": 0, "int32": 1, "uint32": 2}[value.dtype.name]
        data = value.tobytes()
        return struct.pack("<IIII", 7, value.size, number, len(data)) + padded(data)
    return struct.pack("<II", 4, len(value)) + b"".join(map(wire, value))


def unwired(data, at=0):
    """A value of the reply, and where the next begins."""
    tag, count = struct.unpack_from("<II", data, at)
    at += 8
    if tag == 3:
        return data[at:at + count].decode(), at + (count + 7) // 8 * 8
    if tag == 7:
        number, size = struct.unpack_from("<II", data, at)
        at += 8
        dtype = (np.float32, np.int32, np.uint32)[number]
        return np.frombuffer(data, dtype, size // 4, at).copy(), at + (size + 7) // 8 * 8
    if tag in (4, 5):
        items = []
        for _ in range(count * (tag - 3)):
            item, at = unwired(data, at)
            items.append(item)
        return (items if tag == 4 else dict(zip(items[::2], items[1::2]))), at
    raise SystemExit(f"differential: a reply has the tag {tag}")


class Refused(Exception):
    """The library threw."""


class Library:
    """The runner on one device."""

    def __init__(self, runner, device):
        self.command, self.device, self.process = [runner, device], device, None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, program, outputs, weights=None):
        """The values of `outputs`, and the gradients. Throws Refused, or Crashed."""
        inputs = list(program.inputs)
        calls = program.calls
        more = []
        total = len(inputs) + sum(count for _, count in outputs["counts"])
        if weights is not None:
            shift = len(inputs)
            inputs.append(weights)
            move = lambda r: Ref(r + 1 if r >= shift else r)  # noqa: E731
            calls = [renumbered(c, move) for c in calls]
            wrt = [Ref(k) for k, each in enumerate(program.inputs) if each.dtype == F32]
            last = Ref(total)  # moved by one
            more = [["mul", "", 0, last, Ref(shift)], ["sum", "", 0, Ref(total + 1)],
                    ["grad", "", 0, Ref(total + 2), wrt]]
            wanted = [move(r) for r in outputs["refs"]] + \
                [Ref(total + 3 + k) for k in range(len(wrt))]
        else:
            wanted = [Ref(r) for r in outputs["refs"]]
        encoded = [[camel(c.name), "", 0] + [sent(each) for each in c.arguments] for c in calls]
        request = wire({"inputs": inputs, "shapes": [list(each.shape) for each in inputs],
                        "calls": encoded + more, "outputs": wanted})
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(struct.pack("<I", len(request)) + request)
            self.process.stdin.flush()
            size = struct.unpack("<I", self.process.stdout.read(4))[0]
            reply, _ = unwired(self.process.stdout.read(size))
        except (BrokenPipeError, struct.error):
            code = self.process.wait()
            self.process = None
            raise Crashed(f"the runner ended with {code}") from None
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["outputs"]


class Crashed(Exception):
    """The runner ended."""


def sent(value):
    """An argument as the bindings read it."""
    if isinstance(value, tuple):
        return {camel(key): sent(each) for key, each in value[1].items()}
    if isinstance(value, types.SimpleNamespace):
        return None
    if isinstance(value, list) and not isinstance(value, str):
        return [sent(each) for each in value]
    return value


# ---- comparison ----------------------------------------------------------------------------------

def first_wrong(got, wanted, bound):
    """The first element that is off by more than its bound, or None."""
    got, wanted, bound = (np.asarray(each, np.float64).reshape(-1) for each in (got, wanted, bound))
    if got.size != wanted.size:
        return f"{got.size} elements; expected {wanted.size}"
    with np.errstate(all="ignore"):
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted)) | \
            (np.abs(got - wanted) <= bound)
    if same.all():
        return None
    at = int(np.argmin(same))
    return f"element {at} is {got[at]!r}; PyTorch has {wanted[at]!r}, bound {bound[at]:.3g}"


def as_f32(value):
    """What a device would store of a value; integers stay."""
    x = value.to(torch.float64).numpy()
    if value.is_floating_point():
        with np.errstate(over="ignore"):
            x = x.astype(F32).astype(np.float64)
    return x


class Comparison:
    """One program on one device."""

    def __init__(self, program, api, library):
        self.program, self.api, self.library = program, api, library
        self.ulps = ULPS[library.device]

    def layout(self, values):
        """Which values are compared, and how many each call has."""
        counts, at = [], len(self.program.inputs)
        for call in self.program.calls:
            length = len(results_of(call, values[:at], self.api))
            counts.append((call, length))
            at += length
        refs = [r for r in range(len(self.program.inputs), at) if values[r] is not None]
        return {"refs": refs, "counts": counts}

    def weights_for(self, value):
        """Weights of the sum that is differentiated; None if the last value has no gradient."""
        if value is None or not value.is_floating_point() or value.numel() == 0:
            return None
        if not any(each.dtype == F32 for each in self.program.inputs) or \
                any(call.name in NO_GRADIENT for call in self.program.calls):
            return None
        return np.cos(np.arange(value.numel()) * 1.7 + 0.3).astype(F32).reshape(tuple(value.shape))

    def finding(self):
        """What is wrong, as (call number or -1 of a gradient, text); None if nothing is."""
        values, _ = evaluate(self.program, self.api)
        outputs = self.layout(values)
        weights = self.weights_for(values[-1])
        if weights is not None:
            try:
                evaluate(self.program, self.api, weights=torch.from_numpy(weights).double())
            except RuntimeError:  # PyTorch has no gradient
                weights = None
        got = self.library.run(self.program, outputs, weights)
        for draws in (3, 60):
            found = self.against(got, values, outputs, weights, draws)
            if found is None:
                return None
        return found

    def against(self, got, values, outputs, weights, draws):
        """The first wrong result; bounds come of so many drawn errors."""
        doubles = None if weights is None else torch.from_numpy(weights).double()
        values, gradients = evaluate(self.program, self.api, weights=doubles)
        refs = outputs["refs"]
        wanted = [values[r] for r in refs] + list(gradients or [])
        spread = [torch.zeros_like(each, dtype=torch.float64) for each in wanted]
        for seed in range(draws + 1):
            if seed < draws:
                moved, slopes = evaluate(self.program, self.api, noise=Noise(seed, self.ulps),
                                         weights=doubles)
            else:  # how far single precision is off without a device
                moved, slopes = evaluate(self.program, self.api, torch.float32, weights=None
                                         if doubles is None else doubles.float())
            for total, other, value in zip(spread, [moved[r] for r in refs] + list(slopes or []),
                                           wanted):
                if other.shape == value.shape:
                    off = (other.double() - value.double()).abs()
                    torch.maximum(total, torch.nan_to_num(off, nan=math.inf), out=total)
        for k, (value, total) in enumerate(zip(wanted, spread)):
            floating = value.is_floating_point()
            bound = WIDE * total.numpy()
            if floating:
                bound = bound + 2 * EPS * np.abs(value.numpy()) + 2 * SMALLEST
                if k >= len(refs) and value.numel() > 0:
                    bound = bound + 32 * EPS * self.slope_scale(value, values[-1], k - len(refs))
            wanted_here = as_f32(value)
            if k >= len(refs):  # PyTorch multiplies 0 by an infinity where a branch is not taken
                unknown = np.isnan(wanted_here)
                wanted_here = np.where(unknown, got[k].reshape(wanted_here.shape), wanted_here)
                bound = np.where(unknown, 0.0, bound)
            wrong = first_wrong(got[k], wanted_here, bound)
            if wrong is None:
                continue
            if k < len(refs):
                return self.call_of(refs[k], outputs), wrong
            inputs = [i for i, a in enumerate(self.program.inputs) if a.dtype == F32]
            return -1, f"gradient by input {inputs[k - len(refs)]}: {wrong}"
        return None

    def slope_scale(self, gradient, result, number):
        """How large the terms of a gradient may be, which cancel in a constant function."""
        inputs = [array for array in self.program.inputs if array.dtype == F32]
        largest = [float(torch.nan_to_num(x).abs().max()) if x.numel() > 0 else 0.0
                   for x in (gradient, result, torch.from_numpy(inputs[number]))]
        return largest[0] + (largest[1] / largest[2] if largest[2] > 0 else 0.0)

    def call_of(self, ref, outputs):
        """The number of the call that makes a value."""
        at = len(self.program.inputs)
        for number, (_, length) in enumerate(outputs["counts"]):
            at += length
            if ref < at:
                return number
        raise AssertionError

    def edge_finding(self):
        """As finding(), of an edge program: PyTorch in double or single precision may be right."""
        values, _ = evaluate(self.program, self.api)
        outputs = self.layout(values)
        got = self.library.run(self.program, outputs)
        candidates = []
        for floats in (torch.float64, torch.float32):
            for flushed in (False, True):
                candidates.append(evaluate(self.program, self.api, floats, flushed=flushed)[0])
        bounds = [torch.zeros_like(v, dtype=torch.float64) if v is not None else None
                  for v in values]
        for seed in range(3):
            moved, _ = evaluate(self.program, self.api, noise=Noise(seed, self.ulps))
            for total, other, value in zip(bounds, moved, values):
                if total is not None and other.shape == value.shape:
                    off = torch.nan_to_num((other.double() - value.double()).abs(), nan=0.0,
                                           posinf=0.0)
                    torch.maximum(total, off, out=total)
        for k, r in enumerate(outputs["refs"]):
            floating = values[r].is_floating_point()
            good = np.zeros(values[r].numel(), bool)
            bound = WIDE * bounds[r].numpy().reshape(-1)
            result = np.asarray(got[k], np.float64).reshape(-1)
            for each in candidates:
                want = as_f32(each[r]).reshape(-1)
                with np.errstate(all="ignore"):
                    near = np.abs(result - want) <= bound + (
                        4 * EPS * np.abs(want) + UNDERFLOW if floating else 0)
                good |= (result == want) | (np.isnan(result) & np.isnan(want)) | near
            if not good.all():
                at = int(np.argmin(good))
                return self.call_of(r, outputs), \
                    f"element {at} is {result[at]!r}; PyTorch has {as_f32(values[r]).reshape(-1)[at]!r}"
        return None


# ---- findings ------------------------------------------------------------------------------------

def only_call(program, number, api):
    """The call `number` with its arguments as inputs."""
    values, _ = evaluate(program, api)
    call = program.calls[number]
    refs = sorted(set(refs_in(list(call.arguments))))
    inputs = []
    for r in refs:
        x = values[r]
        if x.dtype == torch.bool:
            return None
        whole = np.uint32 if x.dtype == torch.int64 else np.int32
        inputs.append(x.numpy().astype(F32 if x.is_floating_point() else whole))
    return Program(inputs, [renumbered(call, lambda r: Ref(refs.index(r)))])


def text_of(program):
    """A program for people."""
    lines = []
    for k, array in enumerate(program.inputs):
        numbers = np.array2string(array.reshape(-1), separator=", ", threshold=60,
                                  floatmode="unique", max_line_width=100000)
        lines.append(f"  %{k} = {array.dtype}{list(array.shape)} {numbers}")

    def shown(value):
        if isinstance(value, Ref):
            return f"%{int(value)}"
        if isinstance(value, list):
            return "[" + ", ".join(map(shown, value)) + "]"
        if isinstance(value, tuple):
            return "{" + ", ".join(f"{k}: {shown(v)}" for k, v in value[1].items()) + "}"
        return "default" if isinstance(value, types.SimpleNamespace) else json.dumps(value)

    for call in program.calls:
        lines.append(f"  {call.name}({', '.join(map(shown, call.arguments))})")
    return "\n".join(lines)


def report(seed, device, program, number, what, edges, comparison, api):
    """Prints a finding, reduced if its call alone is wrong too."""
    small = None
    if number >= 0 and len(program.calls) > 1:
        small = only_call(program, number, api)
    elif number < 0 and len(program.calls) > 1:
        small = only_call(program, len(program.calls) - 1, api)
    if small is not None:
        try:
            again = Comparison(small, api, comparison.library)
            found = again.edge_finding() if edges else again.finding()
            if found is not None:
                program, number, what = small, found[0], found[1]
        except (Refused, Crashed, Rejected, RuntimeError):
            pass
    name = "gradient" if number < 0 else program.calls[number].name
    print(f"\nseed {seed} on {device}: {name}: {what}\n{text_of(program)}", flush=True)
    return name if number >= 0 else "gradient of " + program.calls[-1].name


def changed(result):
    """A result of PyTorch whose floats are off by 1e-4."""
    if isinstance(result, list):
        return [changed(each) for each in result]
    return result * (1 + 1e-4) if result is not None and result.is_floating_point() else result


def main():
    """Runs programs until the time or the count is over."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--runner", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--device", choices=("cpu", "webgpu", "both"), default="both")
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edges", type=float, default=0.2, help="share of edge programs, on the CPU")
    parser.add_argument("--webgpu-every", type=int, default=10, help="programs per program on WebGPU")
    parser.add_argument("--wrong", metavar="OP", help="changes what PyTorch has for an op by 1e-4: "
                        "every program that calls it must be a finding")
    options = parser.parse_args()
    if options.hours == 0 and options.count == 0:
        options.count = 1
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    api = json.loads(Path(options.api).read_text(encoding="utf-8"))
    unknown = set(by_name(api["functions"])) ^ (set(RULES) | set(LEFT_OUT))
    if unknown:
        sys.exit(f"differential: tools/differential_rules.py and the headers disagree about {unknown}")
    if options.wrong:
        right = RULES[options.wrong]
        RULES[options.wrong] = lambda *arguments: changed(right(*arguments))
    devices = ("cpu", "webgpu") if options.device == "both" else (options.device,)
    libraries = [Library(options.runner, each) for each in devices]
    start, seed, last = time.monotonic(), options.seed, 0.0
    done, refused, found = collections.Counter(), collections.Counter(), collections.Counter()
    ops = collections.Counter()
    while (options.hours == 0 or time.monotonic() - start < options.hours * 3600) and \
            (options.count == 0 or seed < options.seed + options.count):
        edges = random.Random(seed + 1).random() < options.edges and "cpu" in devices
        program = Maker(api, seed, edges).run()
        if options.wrong and options.wrong not in [call.name for call in program.calls]:
            seed += 1
            continue
        for library in libraries:
            skipped = library.device == "webgpu" and \
                (edges or len(devices) == 2 and options.count != 1 and
                 seed % options.webgpu_every != 0)
            if skipped or not program.calls:
                continue
            comparison = Comparison(program, api, library)
            try:
                finding = comparison.edge_finding() if edges else comparison.finding()
            except Refused as error:
                refused[str(error).split(":", maxsplit=1)[0]] += 1
                if options.count == 1:
                    print(f"refused: {error}\n{text_of(program)}")
                continue
            except (RuntimeError, ValueError) as error:  # PyTorch refuses a moved argument
                refused[f"PyTorch, {str(error)[:40]}"] += 1
                continue
            except Crashed as error:
                finding = len(program.calls) - 1, str(error)
            done[library.device + (" (edges)" if edges else "")] += 1
            ops.update(call.name for call in program.calls)
            if finding is not None:
                found[report(seed, library.device, program, *finding, edges, comparison, api)] += 1
        seed += 1
        if time.monotonic() - last > 10:
            last = time.monotonic()
            print(f"{sum(done.values())} programs, {sum(found.values())} findings, "
                  f"next --seed {seed}", file=sys.stderr, flush=True)
    print(f"{dict(done)} programs; {len(ops)} of {len(RULES)} ops; {sum(found.values())} findings "
          f"{dict(found)}; refused: {dict(refused.most_common(12))}; next --seed {seed}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
