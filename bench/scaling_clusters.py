# SPDX-License-Identifier: MIT
"""Reads measured times for scaling_simulator.py, fits the model to them, and simulates clusters."""

import dataclasses
import functools
import pathlib
import re
import statistics

from scaling_model import ALGORITHMS, FLOAT, Cost, Decoder, Device, Network, simulate

ROOT = pathlib.Path(__file__).resolve().parents[1]
DISTRIBUTED = ROOT / "bench/results/distributed.md"
SCALING = ROOT / "bench/results/scaling.md"

DECODERS = [Decoder("char-gpt", 65, 384, 6, 256, 64, 261), Decoder("gpt2", 256, 768, 12, 1024, 8, 502)]
SMALL = Decoder("char-gpt-small", 65, 128, 4, 64, 8)
STRONG_BATCH = 1024  # sequences of all ranks together
QUANTILES = 64


def section(page, name):
    """Yields the cells of all rows in a section of a page. Raises ValueError if there are none."""
    text = page.read_text().partition(f"<!-- bench: {name} -->")[2].partition("<!-- bench end -->")[0]
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in text.splitlines()
            if line.startswith("| ")]
    if not rows:
        raise ValueError(f"{page}: no section {name} with tables")
    return rows


def micro(cell):
    return float(cell.replace(",", "")) * 1e-6 if cell else 0.0


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table of several ranks in distributed.md. Times are seconds."""
    workload: str
    who: str
    ranks: int
    one_rank: float
    all_ranks: float
    throughput: float
    exchanging: float
    hidden: float


def measured_rows(page=DISTRIBUTED, name="distributed-h200"):
    """Returns the measured rows. Raises ValueError if the section has none."""
    found = [Row(cells[0], cells[1], int(cells[3]), micro(cells[5]), micro(cells[6]), float(cells[7]),
                 micro(cells[9]), micro(cells[10]))
             for cells in section(page, name) if len(cells) == 11 and re.fullmatch(r"\d+", cells[3])]
    if not found:
        raise ValueError(f"{page}: section {name} has no rows of several ranks")
    return found


def row_of(rows, workload, who="tensorgrad, run", ranks=2):
    found = [row for row in rows if (row.workload, row.ranks, row.who) == (workload, ranks, who)]
    if len(found) != 1:
        raise ValueError(f"expected one row of {workload}, {who} on {ranks} ranks, got {len(found)}")
    return found[0]


def measured_batches(page=SCALING, name="scaling-cpu", workload=SMALL.name):
    """Returns {batch: seconds of a step}."""
    return {int(cells[3]): micro(cells[4]) for cells in section(page, name) if cells[1:3] == [workload, "batch"]}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What is fitted to the rows of two ranks that are threads. Bandwidths are bytes per second."""
    wait_per_bucket: float   # seconds
    sum_bandwidth: float     # of the gradients that are exchanged
    wait_per_step: float     # seconds

    def device(self, device):
        return dataclasses.replace(device, wait_per_bucket=self.wait_per_bucket, wait_per_step=self.wait_per_step)

    def threads(self, elements):
        """Returns the Cost of a sum by ranks that are threads."""
        return Cost(FLOAT * elements / self.sum_bandwidth, 0, 0, 0, 0)


def calibrate(rows, device):
    """Fits the line through the exchange times of both decoders, and then the wait of a step to the
    step of the first one. All other measured times are predictions."""
    first, second = [(len(decoder.buckets), FLOAT * decoder.parameters, row_of(rows, decoder.name).exchanging)
                     for decoder in DECODERS]
    determinant = first[0] * second[1] - second[0] * first[1]
    wait = (first[2] * second[1] - second[2] * first[1]) / determinant
    inverse = (first[0] * second[2] - second[0] * first[2]) / determinant
    found = Calibration(wait, 1 / inverse, 0)
    row = row_of(rows, DECODERS[0].name)
    step = simulate(DECODERS[0], found.device(device), row.one_rank, found.threads)
    return dataclasses.replace(found, wait_per_step=row.all_ranks - step.seconds)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Devices and their network. `times` has the time of a step of one rank for each decoder, and
    the part of it that does not depend on the batch. Times are seconds."""
    network: Network
    device: Device
    times: dict

    def one_rank(self, decoder, batch=None):
        whole, fixed = self.times[decoder.name]
        return whole if batch is None else fixed + (whole - fixed) * batch / decoder.batch

    def step(self, decoder, ranks, algorithm, batch=None, **options):
        """Returns a step in which each rank trains `batch` sequences, by default the batch of the
        workload. Larger batches are accumulated."""
        accumulate = max(1, (batch or 0) // decoder.batch)
        one = self.one_rank(decoder, batch / accumulate if batch else None)
        costs = functools.partial(ALGORITHMS[algorithm], ranks=ranks, network=self.network)
        return simulate(decoder, self.device, one, costs, accumulate=accumulate, **options)

    def weak(self, decoder, ranks, algorithm):
        """Returns the throughput of a rank over that of one rank, each with the workload's batch."""
        if ranks == 1:
            return 1.0
        return self.one_rank(decoder) / self.step(decoder, ranks, algorithm).seconds

    def strong(self, decoder, ranks, algorithm):
        """Returns the speedup over one rank that trains the same batch of all ranks."""
        update = self.device.optimizer_time(decoder.parameters)
        one = STRONG_BATCH // decoder.batch * (self.one_rank(decoder) - update) + update
        return one / self.step(decoder, ranks, algorithm, STRONG_BATCH // ranks).seconds

    def varied(self, decoder, ranks, algorithm, variation):
        """Returns the mean time of a step if the times of passes vary normally between ranks. All
        ranks wait for the slowest, whose time has the distribution of the maximum."""
        normal = statistics.NormalDist()
        slowest = [normal.inv_cdf(((number + 0.5) / QUANTILES) ** (1 / ranks)) for number in range(QUANTILES)]
        return statistics.fmean(
            self.step(decoder, ranks, algorithm, slowdown=1 + variation * factor).seconds for factor in slowest)


# Devices that access each other's memory, as NCCL uses NVLink within a host and a network adapter of
# each device between hosts.
DIRECT_NETWORK = Network(local_latency=3e-6, remote_latency=10e-6, local_bandwidth=300e9, remote_bandwidth=400e9,
                         add_bandwidth=1e12)
DIRECT_DEVICE = Device(copies=False)

# Hosts with two cores, one rank and Ethernet of 25 Gbit/s.
CPU_NETWORK = Network(devices_per_host=1, remote_latency=30e-6, message_time=5e-6, remote_bandwidth=3e9)
CPU_DEVICE = Device(memory_bandwidth=20e9, copies=False)


class Clusters:
    """The clusters of scaling_simulator.py. Raises ValueError if a measured time is missing."""

    def __init__(self, network=Network(), device=Device()):
        self.rows = measured_rows()
        self.calibration = calibrate(self.rows, device)
        times = {decoder.name: (row_of(self.rows, decoder.name).one_rank, decoder.launches * device.launch_time)
                 for decoder in DECODERS}
        self.hosts = Cluster(network, self.calibration.device(device), times)
        self.devices = Cluster(DIRECT_NETWORK, DIRECT_DEVICE, times)
        batches = measured_batches()
        half, whole = batches[SMALL.batch // 2], batches[SMALL.batch]
        self.cpus = Cluster(CPU_NETWORK, CPU_DEVICE, {SMALL.name: (whole, 2 * half - whole)})
