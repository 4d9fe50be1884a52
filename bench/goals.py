# SPDX-License-Identifier: MIT
"""Performance goals (GOALS) and whether measurements meet them. tables.py prints the result.

A goal has a function that takes lines and returns what it found: for each item its name, the value
that the goal bounds and, for a ratio, the peer. It returns nothing if lines of ours or of the peer
are missing.
"""

import typing

from medians import OURS, is_step, medians


class Found(typing.NamedTuple):
    name: str
    value: float
    peer: str = ""


def on_gpu(line):
    """True if a line was measured on a GPU. Lines of products on the CPU name no device."""
    return not line.get("device", "cpu").startswith("cpu")


def steps(workload, gpu=False, peer="", mode="", own_mode="", mamba_ssm=False, tf32=True):
    """Ours over the best peer, as in the table of ratios: the best mode and number of threads of
    each, among those requested. PyTorch with the kernels of mamba-ssm counts only if requested, and
    PyTorch with products in TF32 unless excluded."""
    def find(lines):
        lines = [line for line in lines if is_step(line) and line["workload"] == workload and on_gpu(line) == gpu]
        times = medians(lines, ("who", "mode", "device", "threads"), "us_per_step")
        ours = [us for key, us in times.items() if key[0] == OURS and own_mode in ("", key[1])]
        peers = {key: us for key, us in times.items()
                 if key[0] != OURS and key[0].startswith(peer) and mode in ("", key[1]) and
                 (mamba_ssm or not key[1].startswith("mamba-ssm")) and (tf32 or "TF32" not in key[0])}
        if not ours or not peers:
            return []
        best = min(peers, key=peers.get)
        return [Found(workload, min(ours) / peers[best], ", ".join(best[:2]))]
    return find


def streaming(workload):
    """Steps on new batches from the host (`stream`) over steps on data of the device (`run`), on a
    GPU."""
    def find(lines):
        lines = [line for line in lines if is_step(line) and line["workload"] == workload and
                 line["who"] == OURS and on_gpu(line)]
        times = medians(lines, ("mode", "device"), "us_per_step")
        return [Found(workload, us / times["run", key[1]]) for key, us in times.items()
                if key[0] == "stream" and ("run", key[1]) in times]
    return find


def launches(workload):
    """The number of launches of a step in `run` on a GPU."""
    def find(lines):
        counts = [line["launches"] for line in lines if is_step(line) and line["workload"] == workload and
                  line["who"] == OURS and line["mode"] == "run" and on_gpu(line)]
        return [Found(workload, max(counts))] if counts else []
    return find


def peak_memory(workload, peer):
    """Peak memory of a step on a GPU: the maximum over our modes, relative to the peer's minimum."""
    def find(lines):
        lines = [line for line in lines if is_step(line) and line["workload"] == workload and on_gpu(line)]
        peaks = medians(lines, ("who", "mode", "device"), "peak_bytes")
        ours = [peak for key, peak in peaks.items() if key[0] == OURS]
        peers = {key: peak for key, peak in peaks.items() if key[0].startswith(peer)}
        if not ours or not peers:
            return []
        least = min(peers, key=peers.get)
        return [Found(workload, max(ours) / peers[least], ", ".join(least[:2]))]
    return find


def milliseconds(workload, gpu):
    """Time of a step in `run` on GPUs whose names contain `gpu`, with the fastest WebGPU library."""
    def find(lines):
        lines = [line for line in lines if is_step(line) and line["workload"] == workload and
                 line["who"] == OURS and line["mode"] == "run" and on_gpu(line) and gpu in line["device"]]
        times = medians(lines, ("device", "driver"), "us_per_step")
        return [Found(workload, min(times.values()) / 1000)] if times else []
    return find


def cube(size):
    """Returns the edge of a cube with as many multiplications as a product m x n x k."""
    m, n, k = map(int, size.split("x"))
    return (m * n * k) ** (1 / 3)


def products(gpu, wanted=lambda size: True, threads=None):
    """Our speed over that of the best peer. On the CPU, both use `threads` threads."""
    def find(lines):
        lines = [line for line in lines if line.get("workload") == "gemm" and on_gpu(line) == gpu and
                 (gpu or line.get("threads") == threads) and wanted(line["size"])]
        speeds = medians(lines, ("size", "product", "who"), "gflops")
        found = []
        for size, product in dict.fromkeys(key[:2] for key in speeds):
            peers = {key[2]: speed for key, speed in speeds.items()
                     if key[:2] == (size, product) and not key[2].startswith(OURS)}
            if peers and (size, product, OURS) in speeds:
                best = max(peers, key=peers.get)
                found.append(Found(f"{size} {product}".strip(), speeds[size, product, OURS] / peers[best], best))
        return found
    return find


def mebibytes(matrix):
    return int(matrix.split()[0])


def of_copy(matrix):
    """Speed of memory-bound launches on a GPU, relative to our copy of the largest matrix. A
    smaller copy may run from a cache. Excludes `mean`, which reduces to the loss."""
    def find(lines):
        lines = [line for line in lines if line.get("workload") == "memory" and line["who"] == OURS and
                 on_gpu(line) and "matrix" in line]
        speeds = medians(lines, ("device", "what", "launch", "matrix"), "gb_per_s")
        copies = {key[0]: speeds[key] for key in sorted(speeds, key=lambda key: mebibytes(key[3]))
                  if key[1] == "copy"}
        return [Found(f"{what}: {launch}", speed / copies[device])
                for (device, what, launch, of), speed in speeds.items()
                if of == matrix and device in copies and what != "copy" and launch != "mean"]
    return find


def scans(workload):
    """Speed of the selective scan launches on a GPU, forward and backward, relative to our copy."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "scan" and line["workload"] == workload and
                 line["who"] == OURS and on_gpu(line) and line.get("op", "").startswith("selective_scan")]
        return [Found(op, share) for (_, op, _), share in medians(lines, ("device", "op", "domain"), "of_copy").items()]
    return find


def probes(workload, peer, value):
    """Ours over the best peer whose name starts with `peer`, on the CPU."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "probe" and line["workload"] == workload and
                 "length" not in line and not on_gpu(line)]
        of = medians(lines, ("who",), value)
        peers = [key for key in of if key[0].startswith(peer)]
        if (OURS,) not in of or not peers:
            return []
        best = min(peers, key=of.get)
        return [Found(workload, of[OURS,] / of[best], best[0])]
    return find


def slowdown_by_a_busy_core(lines):
    """Our step time while another process keeps a core busy, relative to that on an idle machine."""
    lines = [line for line in lines if line.get("measure") == "busy core" and line["who"] == OURS]
    times = medians(lines, ("workload", "mode", "busy"), "us_per_step")
    return [Found(workload, us / times[workload, mode, False]) for (workload, mode, taken), us in times.items()
            if taken and (workload, mode, False) in times]


def throughput(workload, ranks):
    """Throughput of several ranks over one, each with a GPU of its own."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "distributed" and line["who"] == OURS and
                 line["workload"] == workload and line["mode"] == "run" and
                 line["ranks"] == line["gpus"] == ranks and on_gpu(line)]
        return [Found(workload, value) for value in medians(lines, ("device",), "throughput").values()]
    return find


def compiling(workload, gpu):
    """The first compilation in a process; on a GPU, with the kernels in the driver's cache."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "compile" and line["workload"] == workload and
                 line["who"] == OURS and on_gpu(line) == gpu and
                 line.get("driver_cache") == ("filled" if gpu else None)]
        times = medians(lines, ("device",), "first_ms")
        return [Found(workload, max(times.values()))] if times else []
    return find


def generation(value, threads=None):
    """Our tokens per second over those of the best peer, for each weight format: on a CPU with as
    many threads, or without `threads` on a GPU, for each number of texts. `value` is the time of a
    prompt or of a new token. That of a token which the device samples is compared with a peer's
    token without sampling."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "generation" and line.get("threads") == threads and
                 on_gpu(line) == (threads is None)]
        keys = ("workload", "weights", "batch", "who")
        times = medians(lines, keys, value.removeprefix("sampled_")) | medians(lines, keys, value)
        found = []
        for of in dict.fromkeys(key[:3] for key in times):
            peers = {key[3]: us for key, us in times.items() if key[:3] == of and key[3] != OURS}
            if peers and (*of, OURS) in times:
                best = min(peers, key=peers.get)
                texts = f" of {of[2]} texts" if (of[2] or 1) > 1 else ""
                found.append(Found(f"{of[0]} {of[1]}{texts}", peers[best] / times[(*of, OURS)], best))
        return found
    return find


def latency(workload, threads):
    """Ours over the best peer with as many threads, for each number of rows."""
    def find(lines):
        lines = [line for line in lines if line.get("measure") == "latency" and line["workload"] == workload and
                 line["threads"] == threads and not on_gpu(line)]
        times = medians(lines, ("rows", "who"), "us")
        found = []
        for rows in dict.fromkeys(key[0] for key in times):
            peers = {key[1]: us for key, us in times.items() if key[0] == rows and key[1] != OURS}
            if peers and (rows, OURS) in times:
                best = min(peers, key=peers.get)
                found.append(Found(f"{rows} row{'s'[:rows - 1]}", times[rows, OURS] / peers[best], best))
        return found
    return find


class Goal(typing.NamedTuple):
    what: str
    find: typing.Callable
    bound: float
    at_least: bool = False  # else at most
    unit: str = ""          # else a ratio

    def met(self, value):
        return value >= self.bound if self.at_least else value <= self.bound

    def shown(self, value):
        """Formats with the fewest digits that show whether the goal is met."""
        fewest = 2 if not self.unit else 1 if value < 100 and value % 1 else 0
        texts = [f"{value:.{digits}f}" for digits in range(fewest, fewest + 5)]
        return next((text for text in texts if self.met(float(text)) == self.met(value)), texts[-1])

    def row(self, found):
        values = [each.value for each in found]
        missed = [each for each in found if not self.met(each.value)]
        unit = f" {self.unit}" if self.unit else ""
        goal = f"at {'least' if self.at_least else 'most'} {self.bound:g}{unit}"
        if len(found) == 1:
            peer = f" ({found[0].peer})" if found[0].peer else ""
            return [self.what, self.shown(values[0]) + unit + peer, goal, "no" if missed else "yes"]
        no = f"no, {len(missed)} of {len(found)}: " + "; ".join(
            f"{each.name} {self.shown(each.value)}" for each in missed)
        return [self.what, f"{self.shown(min(values))} to {self.shown(max(values))}{unit}", goal,
                no if missed else f"yes, all {len(found)}"]


def is_small(size):
    """True up to 128 cubed."""
    return cube(size) < 128.5


def is_large(size):
    return not is_small(size)


GPU, CPU = True, False
GOALS = [
    Goal("mlp-sin, GPU", steps("mlp-sin", GPU, own_mode="run"), 0.8),
    Goal("launches of mlp-sin, GPU", launches("mlp-sin"), 8, unit="launches"),
    Goal("addition, GPU", steps("addition", GPU, own_mode="run"), 0.5),
    Goal("launches of addition, GPU", launches("addition"), 75, unit="launches"),
    Goal("mnist-cnn, GPU", steps("mnist-cnn", GPU, own_mode="run"), 0.7),
    Goal("launches of mnist-cnn, GPU", launches("mnist-cnn"), 30, unit="launches"),
    Goal("char-gpt, GPU", steps("char-gpt", GPU, own_mode="run"), 1.0),
    *(Goal(f"{name}, GPU", steps(name, GPU, own_mode="run"), most)
      for name, most in (("gpt2", 1.05), ("gpt2-50k", 1.05), ("gpt-long", 1.0))),
    *(Goal(f"{name} with f16x3, GPU, over PyTorch",
           steps(f"{name} (f16x3)", GPU, "PyTorch", own_mode="run", tf32=False), most)
      for name, most in (("char-gpt", 1.0), ("gpt2", 1.05), ("gpt2-50k", 1.05), ("gpt-long", 1.0))),
    *(Goal(f"batches from the host over data of the device, {workload}, GPU", streaming(workload), 1.3)
      for workload in ("mlp-sin", "mnist-cnn", "char-gpt")),
    *(Goal(f"peak memory of {name}, GPU, over PyTorch", peak_memory(name, "PyTorch"), 0.9)
      for name in ("char-gpt", "gpt2", "gpt2-50k", "gpt-long")),
    *(Goal(f"{name} in mixed precision, GPU, over PyTorch",
           steps(f"{name} (mixed precision)", GPU, "PyTorch", own_mode="run", mamba_ssm=True), most)
      for name, most in (("char-gpt", 1.3), ("gpt2", 1.5), ("gpt2-50k", 1.5), ("gpt-long", 1.5), ("mamba-130m", 1.2))),
    *(Goal(f"peak memory of {name} in mixed precision, GPU, over PyTorch",
           peak_memory(f"{name} (mixed precision)", "PyTorch"), 0.9)
      for name in ("char-gpt", "gpt2", "gpt2-50k", "gpt-long", "mamba-130m")),
    *(Goal(f"throughput of {name} on two GPUs over one", throughput(name, 2), 1.8, at_least=True)
      for name in ("char-gpt", "gpt2")),
    Goal("char-gpt in mixed precision, H100", milliseconds("char-gpt (mixed precision)", "H100"), 11, unit="ms"),
    Goal("speed of each product, GPU", products(GPU), 0.8, at_least=True),
    *(Goal(f"speed of each memory-bound launch over that of a copy, GPU, {matrix}", of_copy(matrix), 0.85,
           at_least=True) for matrix in ("16 MiB", "128 MiB")),
    Goal("compiling addition, GPU, kernels in the driver's cache", compiling("addition", GPU), 500, unit="ms"),
    Goal("mlp-sin, CPU, over JAX's scan", steps("mlp-sin", CPU, "JAX", "scan"), 0.7),
    Goal("addition, CPU, over LibTorch", steps("addition", CPU, "LibTorch"), 0.7),
    Goal("mnist-cnn, CPU, over PyTorch eager", steps("mnist-cnn", CPU, "PyTorch", "eager"), 0.5),
    Goal("char-gpt-small, CPU, over LibTorch", steps("char-gpt-small", CPU, "LibTorch"), 0.8),
    *(goal for threads, cores in ((1, "one core"), (2, "two cores")) for goal in (
        Goal(f"speed of each product up to 128 cubed, {cores}", products(CPU, is_small, threads), 1.0, at_least=True),
        Goal(f"speed of each larger product, {cores}", products(CPU, is_large, threads), 0.9, at_least=True))),
    Goal("cold start of addition, CPU, over PyTorch", probes("addition", "PyTorch", "start_to_first_step_s"), 0.05),
    Goal("resident memory of char-gpt-small, CPU, over LibTorch",
         probes("char-gpt-small", "LibTorch", "peak_rss_bytes"), 0.3),
    Goal("slowdown of a step by a busy core, CPU", slowdown_by_a_busy_core, 2.5),
    Goal("compiling addition, CPU", compiling("addition", CPU), 150, unit="ms"),
    Goal("mamba1, CPU, over PyTorch eager", steps("mamba1", CPU, "PyTorch", "eager"), 0.25),
    Goal("mamba1, CPU, over JAX", steps("mamba1", CPU, "JAX"), 1.0),
    *(goal for threads, cores in ((1, "one core"), (2, "two cores")) for goal in (
        Goal(f"speed of a prompt in each weight format, {cores}", generation("prompt_us", threads), 1.0, at_least=True),
        Goal(f"speed of new tokens in each weight format, {cores}", generation("token_us", threads), 1.0, at_least=True),
        *(Goal(f"latency of {workload}, {cores}", latency(workload, threads), 1.0) for workload in ("mlp", "cnn")))),
    Goal("speed of a prompt in each weight format, GPU", generation("prompt_us"), 1.0, at_least=True),
    Goal("speed of new tokens in each weight format, GPU", generation("sampled_token_us"), 1.0, at_least=True),
    Goal("mamba-130m, GPU, over PyTorch", steps("mamba-130m", GPU, "PyTorch", own_mode="run"), 1.0),
    Goal("speed of each selective scan of mamba-130m over that of a copy, GPU", scans("mamba-130m"), 0.6,
         at_least=True),
]


def rows(lines):
    """Returns [workload, ours over the best peer, goal, met?] for each goal that the lines cover."""
    found = ((goal, goal.find(lines)) for goal in GOALS)
    return [goal.row(each) for goal, each in found if each]
