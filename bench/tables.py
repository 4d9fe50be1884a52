#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns JSON lines of measurements into Markdown tables, and writes them into pages.

  tables.py FILE...                              prints the tables of the lines in these files
  tables.py FILE... --update PAGE --section NAME puts them between that section's markers
  tables.py FILE... --tables ratios,probes       only these tables, for docs/benchmarks.md

All tables of a run belong in a page of bench/results/, some of them in docs/benchmarks.md. A line
with `run` says where, when and with which command the following lines were measured (bench/run.py
writes it). Each of them is printed, so a page can combine several runs; with --tables, they are
summarized in one line. Lines of the same measurement (rounds) are replaced by their median.
goals.py defines the goals in the first table.
"""

import argparse
import json
import pathlib
import sys

import goals
from medians import OURS, is_step, medians

HOST = {"encoding": "us_encoding", "submitting": "us_submitting", "waiting": "us_waiting"}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def megabytes(value):
    return f"{value / 1e6:,.1f} MB"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def check_parameters(lines):
    """Fails if two models that are compared differ in the number of parameters."""
    counts = {}
    for line in lines:
        if "parameters" in line:
            counts.setdefault(line["workload"].split(" (")[0], {}).setdefault(line["parameters"], line["who"])
    for workload, by in counts.items():
        if len(by) > 1:
            sys.exit(f"{workload}: the models differ: " + ", ".join(
                f"{who} has {count} parameters" for count, who in by.items()))


def reached(lines):
    rows = goals.rows(lines)
    return "### Goals\n\nIf a goal covers several measurements, the row has their range and each that misses " \
        "it.\n\n" + table(["workload", "ours over the best peer", "goal", "met?"], rows) if rows else ""


def own_steps(lines):
    lines = [line for line in lines if is_step(line) and line["who"] == OURS]
    if not lines:
        return ""
    rows = {}
    for line in lines:
        rows[line["workload"], line["mode"], line["device"], line.get("threads", "")] = line
    keys = ("workload", "mode", "device", "threads")
    times = medians(lines, keys, "us_per_step")
    compiles, passes = medians(lines, keys, "compile_ms"), medians(lines, keys, "passes_ms")
    host = {}
    for head, name in HOST.items():
        of_lines = medians(lines, keys, name)
        if of_lines:
            host[head] = of_lines

    def cell(values, key):
        return number(values[key]) if key in values else ""
    return "### Steps\n\n" + ("Encoding, submitting and waiting are average host times in microseconds per "
                              "step.\n\n"
                              if host else "") + table(
        ["workload", "device", "mode", "us a step", *host, "launches", "peak bytes", "passes, ms", "compile, ms"],
        [[key[0], device_text(line), key[1], number(times[key]), *(cell(of_lines, key) for of_lines in host.values()),
          line["launches"], f"{line['peak_bytes']:,}", cell(passes, key), cell(compiles, key)]
         for key, line in rows.items()])


def device_text(line):
    name = line["device"].split("; ")[0]
    return with_threads(name, line["threads"]) if line.get("threads") and " thread" not in name else name


def ratios(lines):
    """Ours over the best peer, with the best mode and number of threads of each."""
    steps = [line for line in lines if is_step(line)]
    names = list(dict.fromkeys(line["workload"] for line in steps))
    if not any(line["who"] != OURS for line in steps):
        return ""
    times = medians(steps, ("workload", "who", "mode", "device", "threads"), "us_per_step")
    rows = []
    for name in names:
        of_name = {key: us for key, us in times.items() if key[0] == name}
        ours = {key: us for key, us in of_name.items() if key[1] == OURS}
        peers = {key: us for key, us in of_name.items() if key[1] != OURS}
        if not ours or not peers:
            continue
        best, own = min(peers, key=peers.get), min(ours, key=ours.get)
        rows.append([name, f"{number(ours[own])} ({own[2]})",
                     f"{number(peers[best])} ({best[1]}, {best[2]})", f"{ours[own] / peers[best]:.2f}",
                     spread(steps, own, best)])
    if not rows:
        return ""
    head = ["workload", "ours, us a step", "best peer", "ours over it", "in single rounds"]
    return "### Ours over the best peer\n\n" + table(head, rows) + "\n" + every_peer(names, times)


def spread(steps, own, best):
    """Returns the smallest and the largest ratio of a round."""
    def by_round(key):
        return {(line.get("from"), line.get("round", 0)): line["us_per_step"] for line in steps
                if tuple(line.get(k, "") for k in ("workload", "who", "mode", "device", "threads")) == key}
    a, b = by_round(own), by_round(best)
    each = [a[i] / b[i] for i in a.keys() & b.keys()]
    return f"{min(each):.2f} to {max(each):.2f}" if each else ""


def every_peer(names, times):
    columns = list(dict.fromkeys((who, mode) for _, who, mode, _, _ in times))
    rows = []
    for name in names:
        row = [name]
        for who, mode in columns:
            found = [us for key, us in times.items() if key[:3] == (name, who, mode)]
            row.append(number(min(found)) if found else "")
        rows.append(row)
    return "All modes, in microseconds per step, with the better number of threads:\n\n" + table(
        ["workload", *(f"{who}, {mode}" for who, mode in columns)], rows)


def device_memory(lines):
    """Peak device memory of the steps that report it, ours and at least one peer's."""
    steps = [line for line in lines if is_step(line) and "peak_bytes" in line]
    if not any(line["who"] != OURS for line in steps):
        return ""
    peaks = medians(steps, ("workload", "who", "mode"), "peak_bytes")
    columns = list(dict.fromkeys((who, mode) for _, who, mode in peaks))
    rows = [[name, *(megabytes(peaks[name, who, mode]) if (name, who, mode) in peaks else ""
                     for who, mode in columns)] for name in dict.fromkeys(key[0] for key in peaks)]
    return "### Peak memory of the device\n\n" + table(
        ["workload", *(f"{who}, {mode}" for who, mode in columns)], rows)


def compiling(lines):
    lines = [line for line in lines if line.get("measure") == "compile"]
    if not lines:
        return ""
    keys = ("workload", "device")
    passes, again = medians(lines, keys, "passes_ms"), medians(lines, keys, "again_ms")
    first = {cache: medians([line for line in lines if line.get("driver_cache") == cache], keys, "first_ms")
             for cache in (None, "empty", "filled")}
    rows = [[key[0], key[1].split("; ")[0], number(passes[key]),
             *(number(of[key]) if key in of else "" for of in (first["empty"], first["filled"] | first[None])),
             number(again[key])] for key in passes]
    return "### Compiling\n\nMilliseconds from the user's function to a program that can run: tracing, passes, " \
        "kernels, and opening the device the first time in a process. The passes are included.\n\n" + table(
            ["workload", "device", "passes", "first, empty driver cache", "first", "again"], rows)


def probes(lines):
    lines = [line for line in lines if line.get("measure") == "probe" and "length" not in line]
    if not lines:
        return ""
    start = medians(lines, ("workload", "who"), "start_to_first_step_s")
    memory = medians(lines, ("workload", "who"), "peak_rss_bytes")
    rows = []
    for workload, who in start:
        peers = [s for (w, p), s in start.items() if w == workload and p != OURS]
        least = [m for (w, p), m in memory.items() if w == workload and p != OURS]
        rows.append([workload, who, f"{start[workload, who]:.3f}",
                     f"{start[workload, who] / min(peers):.2f}" if who == OURS and peers else "",
                     megabytes(memory[workload, who]),
                     f"{memory[workload, who] / min(least):.2f}" if who == OURS and least else ""])
    return "### Cold start and memory\n\nThe time from the start of the process to the end of its first " \
        "step, and the peak resident memory after 21 steps.\n\n" + table(
            ["workload", "who", "start to first step, s", "over the best peer", "peak resident memory",
             "over the best peer"], rows)


def busy(lines):
    lines = [line for line in lines if line.get("measure") == "busy core"]
    if not lines:
        return ""
    times = medians(lines, ("workload", "who", "mode", "busy"), "us_per_step")
    rows = [[workload, who, mode, number(us), number(times[workload, who, mode, True]),
             f"{times[workload, who, mode, True] / us:.2f}"]
            for (workload, who, mode, taken), us in times.items()
            if not taken and (workload, who, mode, True) in times]
    return "### While another process keeps one core busy\n\n" + table(
        ["workload", "who", "mode", "both cores idle, us a step", "one core busy, us a step", "slowdown"], rows)


def scaling(lines):
    lines = [line for line in lines if line.get("measure") == "scaling"]
    if not lines:
        return ""
    keys = ("device", "threads", "workload", "what", "size")
    times, peaks = medians(lines, keys, "us_per_step"), medians(lines, keys, "peak_bytes")
    names = {line["device"]: device_text(line) for line in lines}
    rows, before = [], None
    for key in times:
        same = before and before[:4] == key[:4]
        rows.append([names[key[0]], *key[2:], number(times[key]),
                     f"{times[key] / times[before]:.2f}" if same else "",
                     megabytes(peaks[key]), f"{peaks[key] / peaks[before]:.2f}" if same else ""])
        before = key
    return "### Cost against size\n\n" + table(
        ["device", "workload", "size of", "is", "us a step", "over the row above", "peak bytes", "over the row above"],
        rows)


def distributed(lines):
    """Training on several ranks over one: ours, and PyTorch's with NCCL."""
    lines = [line for line in lines if line.get("measure") == "distributed"]
    if not lines:
        return ""
    keys = ("workload", "who", "mode", "device", "ranks", "gpus")
    names = ("us_of_one_rank", "us_per_step", "throughput", "exchanged_bytes", "us_exchanging",
             "us_exchanging_hidden", "peak_bytes")
    values = {name: medians(lines, keys, name) for name in names}
    rows = []
    for key in values["us_per_step"]:
        cell = {name: of[key] for name, of in values.items() if key in of}
        rows.append([key[0], f"{key[1]}, {key[2]}", key[3].split("; ")[0], key[4], key[5],
                     number(cell["us_of_one_rank"]), number(cell["us_per_step"]), f"{cell['throughput']:.2f}",
                     megabytes(cell["exchanged_bytes"]),
                     *(number(cell[name]) if name in cell else "" for name in names[4:6]),
                     megabytes(cell["peak_bytes"]) if "peak_bytes" in cell else ""])
    return "### Several ranks\n\nEach rank trains the whole batch of the workload. The exchange is that of rank 0, " \
        "in microseconds per step; its hidden part was over before the backward pass was.\n\n" + table(
            ["workload", "who", "device", "ranks", "GPUs", "us a step, one rank", "us a step, all ranks",
             "throughput over one rank", "exchanged", "us exchanging", "of it hidden", "device memory of a rank"],
            rows)


def scans(lines):
    lines = [line for line in lines if line.get("measure") == "scan" and "op" in line]
    if not lines:
        return ""
    keys = ("device", "threads", "workload", "op", "domain")
    times, speeds, of_copy = (medians(lines, keys, value) for value in ("us", "gb_per_s", "of_copy"))
    moved = medians(lines, keys, "moved")
    names = {line["device"]: device_text(line) for line in lines}
    return "### Scans\n\nThe median time of a launch over all layers. The domain is batch, steps, channels and " \
        "states. Bytes are those of the plan. Speeds are compared with that of our f32 copy on the same device." \
        "\n\n" + table(
            ["device", "workload", "op", "domain", "us", "moved", "GB/s", "over our copy"],
            [[names[key[0]], *key[2:], number(us), megabytes(moved[key]), number(speeds[key]), f"{of_copy[key]:.2f}"]
             for key, us in times.items()])


def resident(lines):
    lines = [line for line in lines if line.get("measure") == "probe" and "length" in line]
    if not lines:
        return ""
    planned = medians(lines, ("workload", "length"), "peak_bytes")
    taken = medians(lines, ("workload", "length"), "peak_rss_bytes")
    return "### Memory against length\n\nThe peak resident memory of a process on the CPU after 21 steps, and the " \
        "bytes of its buffers in the plan.\n\n" + table(
            ["workload", "length", "planned", "peak resident", "difference"],
            [[*key, megabytes(planned[key]), megabytes(taken[key]), megabytes(taken[key] - planned[key])]
             for key in planned])


def gemm(lines):
    lines = [line for line in lines if line.get("workload") == "gemm"]
    if not lines:
        return ""
    speeds = medians(lines, ("size", "product", "who", "threads"), "gflops")
    columns = list(dict.fromkeys((who, threads) for _, _, who, threads in speeds))
    compared = [threads for who, threads in columns
                if who == OURS and any(not peer.startswith(OURS) and its == threads for peer, its in columns)]

    def over_best(size, product, threads):
        peers = [speeds[size, product, who, its] for who, its in columns
                 if not who.startswith(OURS) and its == threads and (size, product, who, its) in speeds]
        ours = speeds.get((size, product, OURS, threads))
        return f"{ours / max(peers):.2f}" if ours and peers else ""
    rows = []
    for size, product in dict.fromkeys(key[:2] for key in speeds):
        rows.append([f"{size} {product}".strip(), *(
            number(speeds[size, product, *column]) if (size, product, *column) in speeds else ""
            for column in columns), *(over_best(size, product, threads) for threads in compared)])
    heads = [with_threads(who, threads) for who, threads in columns]
    heads += [with_threads("ours over the best peer", threads) for threads in compared]
    return "### Matrix products\n\nf32, GFLOP/s.\n\n" + table(["m x n x k", *heads], rows)


def with_threads(what, threads):
    return f"{what}, {threads} thread{'s'[:int(threads) - 1]}" if threads else what


def memory(lines):
    lines = [line for line in lines if line.get("workload") == "memory"]
    if not lines:
        return ""
    keys = ("who", "device", "threads", "what", "matrix", "launch")
    times, speeds = medians(lines, keys, "us"), medians(lines, keys, "gb_per_s")
    sizes_of = medians(lines, keys, "bytes")

    # Peers name the device differently, so only CPU or GPU and the number of threads must match.
    def same_copy(key):
        return key[1].startswith("cpu"), key[2]
    copies = {same_copy(key): speeds[key] for key in sorted(speeds, key=lambda key: goals.mebibytes(key[4]))
              if key[0] == OURS and key[3] == "copy"}
    names = {tuple(line.get(key, "") for key in keys): device_text(line) for line in lines}
    rows = []
    for key, us in times.items():
        copy = copies.get(same_copy(key))
        what = key[3] if key[0] == OURS else f"{key[0]}, {key[3]}"
        rows.append([what, key[4], key[5], names[key], megabytes(sizes_of[key]), number(us), number(speeds[key]),
                     f"{speeds[key] / copy:.2f}" if copy else ""])
    return "### Memory-bound launches\n\nThe time of each launch that reads a whole f32 matrix. Speeds are compared " \
        "with that of our copy of the largest matrix, because a smaller one may stay in a cache. Bytes are those " \
        "of the plan; a copy reads and writes.\n\n" + table(
            ["what", "matrix", "launch", "device", "moved", "us", "GB/s", "over our copy"], rows)


def packed(lines):
    lines = [line for line in lines if line.get("workload") == "packed"]
    if not lines:
        return ""
    keys = ("device", "rows", "weights")
    times, launches, peaks = (medians(lines, keys, value) for value in ("us", "launch_us", "peak_bytes"))

    def over_f32(of, key):
        return [number(of[key]), f"{of[key] / of[key[0], key[1], 'f32']:.2f}"] if key in of else ["", ""]
    rows = [[key[2], key[1], *over_f32(times, key), *over_f32(launches, key), megabytes(peaks[key])]
            for key in times]
    return "### Quantized weights\n\nProducts with a matrix of 4096 x 4096: a call, with its input and result " \
        "on the host, and its launch.\n\n" + table(
            ["weights", "rows", "a call, us", "over f32", "the launch, us", "over f32", "peak bytes"], rows)


def serving(lines):
    lines = [line for line in lines if line.get("workload") == "serve"]
    if not lines:
        return ""
    speeds = medians(lines, ("device", "clients"), "calls_per_second")
    return "### Clients of one function\n\nEach client has a replica, which shares the weights, and passes one " \
        "image per call (784-256-128-10).\n\n" + table(
            ["device", "clients", "calls/s", "over one client"],
            [[key[0].split("; ")[0], key[1], number(speed), f"{speed / speeds[key[0], 1]:.2f}"]
             for key, speed in speeds.items() if (key[0], 1) in speeds])


def decoding(lines):
    lines = [{"mixer": "mamba1"} | line for line in lines if line.get("workload") == "decode"]
    if not lines:
        return ""
    speeds = medians(lines, ("device", "mixer", "layers", "width", "batch", "context"), "tokens_per_second")
    return "### Generation\n\nTokens per second of all sequences together.\n\n" + table(
        ["device", "mixer", "layers", "width", "sequences", "context", "tokens/s"],
        [[key[0].split("; ")[0], *key[1:], number(speed)] for key, speed in speeds.items()])


def over_peers(ours, peers):
    """Returns the cells ours, best peer and ours over it, for values of which the largest is best."""
    if ours is None or not peers:
        return ["" if ours is None else number(ours), "", ""]
    best = max(peers, key=peers.get)
    return [number(ours), f"{number(peers[best])} ({best})", f"{ours / peers[best]:.2f}"]


def generating(lines):
    """Prompts and new tokens with quantized weights: ours, and llama.cpp's, on the CPU and on a GPU."""
    lines = [line for line in lines if line.get("measure") == "generation"]
    kinds = ([line for line in lines if line["device"].startswith("cpu") == cpu] for cpu in (True, False))
    return "\n".join(generating_on(kind) for kind in kinds if kind)


def generating_on(lines):
    cpu = lines[0]["device"].startswith("cpu")
    keys = ("workload", "weights", "threads" if cpu else "batch", "who")
    times = {name: medians(lines, keys, name) for name in ("prompt_us", "token_us", "prompt_cpu_us", "token_cpu_us")}
    for name in ("greedy_token_us", "sampled_token_us"):  # which peers compute without sampling
        own = medians([line for line in lines if name in line], keys, name)
        times[name] = {of: us for of, us in times["token_us"].items() if of[3] != OURS} | own
    prompts = medians(lines, keys, "prompt_tokens")

    def speeds(name, key):
        """Returns {who: tokens per second of all texts}."""
        texts = 1 if cpu else key[2] or 1
        return {of[3]: (prompts[of] if name.startswith("prompt") else 1) * texts * 1e6 / us
                for of, us in times[name].items() if of[:3] == key}

    def cells(name, key):
        found = speeds(name, key)
        return over_peers(found.pop(OURS, None), found)
    rows = []
    for key in dict.fromkeys(of[:3] for of in prompts):
        by_cpu = [cells(name, key)[2] for name in ("prompt_cpu_us", "token_cpu_us")] if cpu else []
        sampled = [] if cpu else [cells(name, key)[i] for name in ("greedy_token_us", "sampled_token_us") for i in (0, 2)]
        rows.append([*key, *cells("prompt_us", key), *cells("token_us", key), *by_cpu, *sampled])
    lengths = ", ".join(dict.fromkeys(f"{line['prompt_tokens']} tokens and {line['new_tokens']} new ones"
                                      for line in lines))
    note = " The last columns compare tokens per second of CPU time, of all threads together." if cpu else \
        " In the last columns our device samples the tokens, 16 before the host reads them: the largest logit, and " \
        "by top_k 40, top_p 0.95, min_p 0.05 and temperature 0.8. The peer returns logits and samples nothing."
    title = "### Generation with quantized weights" + ("" if cpu else " on a GPU")
    return f"{title}\n\nTokens per second of {'one text' if cpu else 'all texts'}: a prompt and new tokens after it " \
        f"({lengths}).{note}\n\n" + table(
            ["model", "weights", "threads" if cpu else "texts", "prompt, ours", "peer", "ours over it",
             "new tokens, ours", "peer", "ours over it",
             *(["prompt, by CPU time", "new tokens, by CPU time"] if cpu else
               ["greedy, ours", "over it", "sampled, ours", "over it"])], rows)


def latency(lines):
    """Calls of classifiers: ours, and onnxruntime's."""
    lines = [line for line in lines if line.get("measure") == "latency"]
    if not lines:
        return ""
    keys = ("workload", "rows", "threads", "who")
    rows = []
    wall, cpu = medians(lines, keys, "us"), medians(lines, keys, "cpu_us")
    for key in dict.fromkeys(of[:3] for of in wall):
        row = [*key]
        for times in (wall, cpu):
            peers = {of[3]: us for of, us in times.items() if of[:3] == key and of[3] != OURS}
            ours, best = times.get((*key, OURS)), min(peers, key=peers.get, default=None)
            row += ["" if ours is None else number(ours), f"{number(peers[best])} ({best})" if best else "",
                    f"{ours / peers[best]:.2f}" if best and ours is not None else ""]
        rows.append(row)
    return "### Latency of classifiers\n\nA call with its input and result on the host: the median of wall times, " \
        "and the mean CPU time of all threads. `call` is one addition.\n\n" + table(
            ["model", "rows", "threads", "ours, us", "peer, us", "ours over it", "ours, CPU us", "peer, CPU us",
             "ours over it"], rows)


def sizes(lines):
    rows = [[line["measure"], megabytes(line["bytes"]) if "bytes" in line else f"{line['seconds']} s"]
            for line in lines if "measure" in line and ("bytes" in line or "seconds" in line)]
    return "### Sizes\n\n" + table(["what", "is"], rows) if rows else ""


def with_origin(lines):
    """Returns the lines with the number of their run under `from`, -1 if no run was named before."""
    number_of_run, out = -1, []
    for line in lines:
        number_of_run += "run" in line
        out.append(line | {"from": number_of_run})
    return out


def contents(lines):
    """Returns a short description of what a run measured."""
    names = {}
    for line in lines:
        if "run" in line:
            continue
        if is_step(line):
            names.setdefault("steps of", {})[line["workload"]] = None
        else:
            what = line.get("measure") or line.get("workload", "")
            names.setdefault("sizes" if "bytes" in line and "measure" in line else what, {})
    return "; ".join(" ".join([what, ", ".join(of)]).strip() for what, of in names.items())


def one_run(run, lines):
    text = f"on {run['date']} with `{run['command']}`, {run['rounds']} round{'s'[:run['rounds'] - 1]}, " \
        f"medians: {run['machine']}. Commit {run['commit']}."
    drivers = dict.fromkeys((line["device"].split("; ")[0], line["driver"]) for line in lines if "driver" in line)
    for device, driver in drivers:
        text += f" {device}: {driver}."
    if run.get("versions"):
        text += " Peers: " + ", ".join(run["versions"]) + "."
    return text


def provenance(lines):
    """Returns the origin of all lines: one line per run."""
    runs = {line["from"]: line["run"] for line in lines if "run" in line}
    if not runs:
        return "The origin of these lines is unknown.\n"
    of = {run: [line for line in lines if line["from"] == run] for run in runs}
    unknown = "" if all(line["from"] in runs for line in lines) else \
        "\nThe origin of the other lines is unknown.\n"
    if len(runs) == 1:
        (number_of_run, run), = runs.items()
        return "Measured " + one_run(run, of[number_of_run]) + "\n" + unknown
    return f"Measured in {len(runs)} runs. If several runs measured the same thing, the median is over all of " \
        "them.\n\n" + "".join(f"- {contents(of[i])}: {one_run(run, of[i])}\n" for i, run in runs.items()) + unknown


def machines(lines):
    """Returns when and where all lines were measured, without the commands."""
    runs = [line["run"] for line in lines if "run" in line]
    if not runs:
        return "The origin of these lines is unknown.\n"
    dates = sorted({run["date"] for run in runs})
    drivers = dict.fromkeys(f"{line['device'].split('; ')[0]} with {line['driver']}" for line in lines
                            if "driver" in line)
    peers = dict.fromkeys(version for run in runs for version in run.get("versions", []))
    return f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))} on " + "; ".join(
        [*dict.fromkeys(run["machine"] for run in runs), *drivers]) + "." + (
            f" Peers: {', '.join(peers)}." if peers else "") + "\n"


TABLES = {"goals": reached, "steps": own_steps, "compile": compiling, "ratios": ratios,
          "device-memory": device_memory, "gemm": gemm, "memory": memory, "probes": probes, "busy": busy,
          "scaling": scaling, "distributed": distributed, "scans": scans, "resident": resident, "packed": packed,
          "serve": serving, "decode": decoding, "generation": generating, "latency": latency, "sizes": sizes}


def markdown(lines, names=()):
    """Returns all tables of these lines, or those with these names."""
    lines = with_origin(lines)
    check_parameters(lines)
    parts = [machines(lines) if names else provenance(lines), *(TABLES[name](lines) for name in names or TABLES)]
    return "\n".join(part for part in parts if part)


def update(page, section, text):
    """Replaces the text between `<!-- bench: NAME -->` and `<!-- bench end -->` in the page."""
    begin, end = f"<!-- bench: {section} -->\n", "<!-- bench end -->"
    whole = page.read_text()
    if whole.count(begin) != 1:
        sys.exit(f"{page}: expected one line {begin.strip()}, found {whole.count(begin)}")
    before, rest = whole.split(begin)
    if end not in rest:
        sys.exit(f"{page}: no {end} after {begin.strip()}")
    page.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1])


def read(files):
    lines = []
    for file in files:
        lines += [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--tables", default="", help=f"subset of {', '.join(TABLES)}; default: all")
    parser.add_argument("--update", type=pathlib.Path, help="the page to update; it needs markers")
    parser.add_argument("--section", help="the name in the markers")
    args = parser.parse_args()
    names = args.tables.split(",") if args.tables else []
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"unknown table '{unknown[0]}'; available: {', '.join(TABLES)}")
    text = markdown(read(args.files), names)
    if not args.update:
        print(text, end="")
        return
    if not args.section:
        parser.error("--update needs --section")
    update(args.update, args.section, text)


if __name__ == "__main__":
    main()
