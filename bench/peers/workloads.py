# SPDX-License-Identifier: MIT
"""The sizes of tg_bench's workloads (bench/models.cpp), and how every peer measures and reports.

Each line that a peer prints has `parameters`; bench/run.py refuses to compare lines that differ.
"""
import argparse
import json
import statistics
import time
import typing


class Mlp(typing.NamedTuple):
    sizes: tuple  # relu between layers
    batch: int
    classes: bool  # cross-entropy and AdamW; else mean squared error and Adam
    clip: float = 0


class Cnn(typing.NamedTuple):
    """For 28x28 images: (3x3 convolution, relu, 2x2 max pool) twice, two linear layers."""
    channels: tuple
    hidden: int
    batch: int
    clip: float = 0


class Decoder(typing.NamedTuple):
    vocabulary: int
    width: int
    layers: int
    heads: int
    length: int
    batch: int
    gelu: bool
    answers: int  # positions at the end that count in the loss
    clip: float = 0


class Mamba(typing.NamedTuple):
    """Mamba-1 with 16 states, convolutions of width 4, inner width twice the outer, and a tied head."""
    vocabulary: int
    width: int
    layers: int
    length: int
    batch: int
    clip: float = 0


WORKLOADS = {
    "mlp-sin": Mlp((1, 64, 64, 1), 256, classes=False),
    "fashion-mlp": Mlp((784, 256, 128, 10), 128, classes=True),
    "fashion-cnn": Cnn((16, 32), 64, 64),
    "mnist-cnn": Cnn((16, 32), 64, 64, clip=1.0),
    "addition": Decoder(12, 64, 3, 4, 8, 128, gelu=False, answers=3, clip=1.0),
    "char-gpt": Decoder(65, 384, 6, 6, 256, 64, gelu=True, answers=256, clip=1.0),
    "gpt2": Decoder(256, 768, 12, 12, 1024, 8, gelu=True, answers=1024, clip=1.0),
    "gpt2-50k": Decoder(50257, 768, 12, 12, 1024, 8, gelu=True, answers=1024, clip=1.0),
    "gpt-long": Decoder(256, 384, 6, 6, 4096, 4, gelu=True, answers=4096, clip=1.0),
    "char-gpt-small": Decoder(65, 128, 4, 4, 64, 8, gelu=True, answers=64),
    "mamba1": Mamba(65, 128, 2, 64, 8),
    "mamba-130m": Mamba(50280, 768, 24, 1024, 8),
}
LEARNING_RATE = 1e-3
IGNORED = -100  # a target that does not count
LONG = 256  # longer scans are not run step by step


def parse(description, modes, flags=()):
    """Parses the options of every peer, and additional flags as (name, help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="mlp-sin,fashion-mlp,mnist-cnn,addition,char-gpt",
                        help="workloads; without a GPU, char-gpt is char-gpt-small")
    parser.add_argument("--modes", default=",".join(modes), help=f"subset of {', '.join(modes)}")
    parser.add_argument("--threads", type=int, default=0, help="threads on a CPU; 0: all cores")
    parser.add_argument("--seconds", type=float, default=2, help="time for each measurement")
    parser.add_argument("--probe", default="", help="instead: the first step of this workload, and its memory")
    for name, text in flags:
        parser.add_argument(name, action="store_true", help=text)
    options = parser.parse_args()
    options.only, options.modes = options.only.split(","), options.modes.split(",")
    for mode in options.modes:
        if mode not in modes:
            parser.error(f"unknown mode '{mode}'; available: {', '.join(modes)}")
    return options


def names(options, gpu):
    return [name if gpu or name != "char-gpt" else "char-gpt-small" for name in options.only]


def median_us(call, wait, seconds, units=1):
    """Returns the median microseconds per step of calls that run `units` steps and fill the time.

    Calls wait() after as many calls as take a tenth of the time, so that its cost hardly counts.
    """
    start = time.perf_counter()
    calls = 0
    while calls < 3 or time.perf_counter() - start < 0.2 * seconds:
        call()
        calls += 1
        wait()
    together = max(1, int(0.1 * seconds / ((time.perf_counter() - start) / calls)))
    times, deadline = [], time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times) < 5:
        start = time.perf_counter()
        for _ in range(together):
            call()
        wait()
        times.append((time.perf_counter() - start) / together / units * 1e6)
    return statistics.median(times)


def report(workload, mode, who, device, parameters, us, peak_bytes=None):
    """Prints a line. `peak_bytes`: device memory, if the peer reports it."""
    line = {"workload": workload, "mode": mode, "who": who, "device": device, "parameters": parameters,
            "us_per_step": round(us, 2)}
    if peak_bytes is not None:
        line["peak_bytes"] = peak_bytes
    print(json.dumps(line), flush=True)


def report_probe(workload, who, device, parameters, step):
    """Runs and reports the first steps. `step` runs one step and waits. The time includes imports
    and construction."""
    import resource
    step()
    done = time.time()
    for _ in range(20):
        step()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"measure": "probe", "workload": workload, "who": who, "device": device,
                      "parameters": parameters, "first_step_done": done, "peak_rss_bytes": memory}), flush=True)
