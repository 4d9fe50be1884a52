#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulates data-parallel training on up to 1024 devices, with the model of scaling_model.py.

  scaling_simulator.py                    prints the tables of bench/results/scaling_out.md
  scaling_simulator.py --update           writes them to that page, and its chart
  scaling_simulator.py --check            fails if the page or the chart is not what it would write
  scaling_simulator.py --network remote_bandwidth=25e9 --device host_bandwidth=25e9
                                          prints the tables of other hardware

The times that ranks wait for each other are fitted to the times of two GPUs in
bench/results/distributed.md. Needs no packages and no device.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys
import tempfile

import scaling_chart
import tables
from scaling_clusters import CPU_DEVICE, CPU_NETWORK, DECODERS, DIRECT_DEVICE, DIRECT_NETWORK, ROOT, SMALL, Clusters
from scaling_model import ALGORITHMS, FLOAT, Device, Network, part, simulate, slices

PAGE = ROOT / "bench/results/scaling_out.md"
CHART = ROOT / "docs/images/scaling_out.svg"

RANKS = [2, 8, 64, 256, 1024]

VARIATIONS = [0, 0.005, 0.02, 0.05]  # of step times, as standard deviation over mean
STALL, STALL_SHARE = 0.05, 1e-4      # seconds, and the share of the steps of a device that have it
SLOW_DEVICE = 1.1                    # time of the passes of a slow device over that of others

UNITS = {"devices_per_host": "", "local_latency": "us", "remote_latency": "us", "message_time": "us",
         "local_bandwidth": "GB/s", "remote_bandwidth": "GB/s", "add_bandwidth": "GB/s", "host_bandwidth": "GB/s",
         "memory_bandwidth": "GB/s", "launch_time": "us"}


# ---- tables --------------------------------------------------------------------------------------

def milliseconds(seconds):
    return f"{seconds * 1e3:,.1f}"


def quantity(name, value):
    scale = {"us": 1e6, "GB/s": 1e-9, "": 1}[UNITS[name]]
    return f"{value * scale:,.4g} {UNITS[name]}".strip()


def hardware(clusters):
    rows = []
    for name, unused in {**dict.fromkeys((field.name for field in dataclasses.fields(Network)), ()),
                         "host_bandwidth": (1, 2), "memory_bandwidth": (), "launch_time": (2,)}.items():
        kinds = (clusters.hosts.network, DIRECT_NETWORK, CPU_NETWORK)
        if not hasattr(Network, name):
            kinds = (clusters.hosts.device, DIRECT_DEVICE, CPU_DEVICE)
        rows.append([f"`{name}`", *("" if number in unused else quantity(name, getattr(kind, name))
                                    for number, kind in enumerate(kinds))])
    return tables.table(["assumed", "host memory", "device to device", "CPU"], rows)


def check(clusters):
    fit, lines = clusters.calibration, []

    def line(row, what, measured, simulated, unit, fitted):
        who = "PyTorch" if "PyTorch" in row.who else "tensorgrad"
        lines.append([row.workload, who, row.ranks, what, unit(measured), unit(simulated),
                      f"{simulated / measured - 1:+.1%}", "fitted" if fitted else "predicted"])

    for decoder in DECODERS:
        for row in (row for row in clusters.rows if row.workload == decoder.name):
            if row.who == "tensorgrad, run":
                step = simulate(decoder, clusters.hosts.device, row.one_rank, fit.threads)
                first = row.ranks == 2 and decoder is DECODERS[0]
                line(row, "exchange, ms", row.exchanging, step.exchanging, milliseconds, row.ranks == 2)
                line(row, "hidden, ms", row.hidden, step.hidden, milliseconds, False)
                line(row, "step, ms", row.all_ranks, step.seconds, milliseconds, first)
            elif row.who.endswith("fused"):
                step = simulate(decoder, DIRECT_DEVICE, row.one_rank, functools.partial(
                    ALGORITHMS["halving"], ranks=row.ranks, network=DIRECT_NETWORK))
                first = False
            else:
                continue
            line(row, "throughput over one rank", row.throughput, row.ranks * row.one_rank / step.seconds,
                 "{:.3f}".format, first)
    text = tables.table(["workload", "who", "ranks", "what", "measured", "simulated", "difference", ""], lines)
    return text + (f"\nFitted: ranks wait {fit.wait_per_bucket * 1e6:,.0f} us per bucket and "
                   f"{fit.wait_per_step * 1e6:,.0f} us per step, and sum {fit.sum_bandwidth / 1e9:.1f} GB/s.\n")


def summed(decoder, ranks, algorithm, network):
    """Returns messages, bytes and bytes that leave a host in cells, and the seconds of all buckets."""
    costs = [algorithm(bucket.elements, ranks, network) for bucket in decoder.buckets]
    cells = [f"{sum(cost.messages for cost in costs):,}", tables.megabytes(sum(cost.sent for cost in costs)),
             tables.megabytes(sum(cost.leaving for cost in costs))]
    return cells, sum(cost.seconds for cost in costs)


def messages(clusters):
    rows, network = [], clusters.hosts.network
    for decoder in DECODERS:
        start = 3 * FLOAT * decoder.parameters  # parameters, and two states of AdamW
        for ranks in RANKS:
            cells, _ = summed(decoder, ranks, ALGORITHMS["direct"], network)
            smallest = min(FLOAT * part(count, ranks, 0) for bucket in decoder.buckets
                           for count in slices(bucket.elements))
            seconds = start * (ranks - network.hosts(ranks)[0]) / network.remote_bandwidth
            rows.append([decoder.name, ranks, len(decoder.buckets), *cells, f"{smallest / 1e3:,.1f} kB",
                         f"{start * (ranks - 1) / 1e9:,.1f} GB", f"{seconds:.1f} s"])
    return tables.table(["workload", "ranks", "buckets", "messages of a rank", "bytes of a rank",
                         "bytes leaving a host", "smallest message", "rank 0 at the start", "time"], rows)


def algorithms(clusters):
    rows = []
    for ranks in RANKS:
        for name, algorithm in ALGORITHMS.items():
            cells, seconds = summed(DECODERS[1], ranks, algorithm, clusters.hosts.network)
            rows.append([ranks, name, *cells, milliseconds(seconds)])
    return tables.table(["ranks", "algorithm", "messages of a rank", "bytes of a rank", "bytes leaving a host",
                         "ms of all buckets"], rows)


def scaled(clusters, measure, digits):
    """Compares algorithms by a function of Cluster, such as "weak"."""
    rows = [[decoder.name, ranks,
             *(f"{getattr(clusters.hosts, measure)(decoder, ranks, name):.{digits}f}" for name in ALGORITHMS),
             f"{getattr(clusters.devices, measure)(decoder, ranks, 'halving'):.{digits}f}"]
            for decoder in DECODERS for ranks in RANKS]
    return tables.table(["workload", "ranks", *ALGORITHMS, "device to device"], rows)


def weak(clusters):
    return scaled(clusters, "weak", 2)


def strong(clusters):
    return scaled(clusters, "strong", 1)


def cpus(clusters):
    names = ["direct", "ring", "halving"]
    rows = [[ranks, summed(SMALL, ranks, ALGORITHMS["direct"], CPU_NETWORK)[0][0],
             *(f"{clusters.cpus.weak(SMALL, ranks, name):.2f}" for name in names),
             *(f"{clusters.cpus.strong(SMALL, ranks, name):.1f}" for name in names)] for ranks in RANKS]
    return tables.table(["ranks", "messages of a rank, direct", *(f"weak, {name}" for name in names),
                         *(f"strong, {name}" for name in names)], rows)


def sensitivity(clusters):
    """Changes one assumption at a time."""
    changes = [{}, {"remote_bandwidth": 0.25}, {"remote_bandwidth": 4}, {"local_bandwidth": 3}, {"add_bandwidth": 3},
               {"local_bandwidth": 3, "add_bandwidth": 3}, {"message_time": 4}, {"remote_latency": 4}]
    rows, before = [], clusters.hosts
    for factors in changes:
        network = dataclasses.replace(before.network, **{
            name: getattr(before.network, name) * factor for name, factor in factors.items()})
        changed = dataclasses.replace(before, network=network)
        label = ", ".join(f"`{name}` {quantity(name, getattr(network, name))}" for name in factors) or "none"
        rows.append([label, *(f"{changed.weak(DECODERS[1], RANKS[-1], name):.2f}" for name in ALGORITHMS)])
    return tables.table(["changed", *ALGORITHMS], rows)


def stragglers(clusters):
    rows = []
    for ranks in RANKS:
        cells = [clusters.hosts.varied(DECODERS[1], ranks, "halving", variation) for variation in VARIATIONS]
        stalls = (1 - (1 - STALL_SHARE) ** ranks) * STALL
        slow = clusters.hosts.step(DECODERS[1], ranks, "halving", slowdown=SLOW_DEVICE).seconds - cells[0]
        rows.append([ranks, milliseconds(cells[0]), *(f"+{milliseconds(cell - cells[0])}" for cell in cells[1:]),
                     f"+{milliseconds(stalls)}", f"+{milliseconds(slow)}"])
    return tables.table(["ranks", "no variation", *(f"{value:.1%} variation" for value in VARIATIONS[1:]),
                         "rare stalls", "one slow device"], rows)


def zero(clusters):
    rows = []
    for decoder in DECODERS:
        for ranks in RANKS:
            cells = [cluster.step(decoder, ranks, "halving", zero=share).seconds
                     for cluster in (clusters.hosts, clusters.devices) for share in (1, ranks)]
            rows.append([decoder.name, ranks, *(milliseconds(cell) for cell in cells),
                         tables.megabytes(2 * FLOAT * decoder.parameters / ranks)])
    return tables.table(["workload", "ranks", "host memory, ms", "with ZeRO-1, ms", "device to device, ms",
                         "with ZeRO-1, ms", "optimizer state of a rank"], rows)


SECTIONS = {"scaling-check": check, "scaling-messages": messages, "scaling-algorithms": algorithms,
            "scaling-weak": weak, "scaling-sensitivity": sensitivity, "scaling-strong": strong, "scaling-cpus": cpus,
            "scaling-stragglers": stragglers, "scaling-zero": zero, "scaling-hardware": hardware}


def chart(clusters):
    ranks = [1 << power for power in range(11)]
    names = {"halving": "halving", "two-level": "two-level", "ring": "ring", "tree": "tree",
             "direct": "direct (this library)"}
    lines = {"device to device": (clusters.devices, "halving")} | {
        title: (clusters.hosts, name) for name, title in names.items()}
    return scaling_chart.svg("Weak scaling: throughput of a rank over that of one rank", ranks, [
        (decoder.name, {title: [cluster.weak(decoder, count, name) for count in ranks]
                        for title, (cluster, name) in lines.items()}) for decoder in DECODERS])


def write(clusters, page, image):
    for name, make in SECTIONS.items():
        tables.update(page, name, make(clusters))
    image.write_text(chart(clusters))


def stale(clusters, page=PAGE, image=CHART):
    """Returns those of both files that are not as they would be written."""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / page.name, pathlib.Path(folder) / image.name
        made[0].write_text(page.read_text())
        write(clusters, *made)
        return [old for old, new in zip((page, image), made, strict=True)
                if not old.exists() or old.read_text() != new.read_text()]


def overridden(kind, settings, option):
    """Returns a Network or a Device with other values, given as NAME=NUMBER."""
    names = [field.name for field in dataclasses.fields(kind) if field.name in UNITS]
    values = {}
    for setting in settings:
        name, _, number = setting.partition("=")
        try:
            value = int(number) if name == "devices_per_host" else float(number)
        except ValueError:
            value = 0
        if name not in names or not 0 < value < float("inf"):
            raise ValueError(f"{option}: expected NAME=NUMBER with a number above 0 and a name of {', '.join(names)}; "
                             f"got '{setting}'")
        values[name] = value
    return kind(**values)


def run(args):
    clusters = Clusters(overridden(Network, args.network, "--network"), overridden(Device, args.device, "--device"))
    if args.update:
        write(clusters, PAGE, CHART)
    elif args.check:
        if paths := stale(clusters):
            raise ValueError("out of date; run `python3 bench/scaling_simulator.py --update`: "
                             + ", ".join(str(path.relative_to(ROOT)) for path in paths))
    else:
        print("\n".join(f"## {name}\n\n{make(clusters)}" for name, make in SECTIONS.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the page and the chart")
    parser.add_argument("--check", action="store_true", help="fail if the page or the chart is out of date")
    parser.add_argument("--network", nargs="+", default=[], metavar="NAME=NUMBER", help="other values of Network")
    parser.add_argument("--device", nargs="+", default=[], metavar="NAME=NUMBER", help="other values of Device")
    args = parser.parse_args()
    if (args.update or args.check) and (args.network or args.device):
        parser.error("the page has the default values of --network and --device")
    try:
        run(args)
    except ValueError as error:
        sys.exit(f"scaling_simulator.py: {error}")


if __name__ == "__main__":
    main()
