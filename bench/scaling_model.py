# SPDX-License-Identifier: MIT
"""A model of one step of data-parallel training: messages, bytes and times.

The messages are those of src/mpi/mpi.cpp, and the buckets those of src/plan/exchange.cpp. Both are
exact. Times follow from the bandwidths and latencies of a Network. All transfers that share a link
are assumed to share it perfectly, so times are lower bounds.
"""

import dataclasses
import functools
import math

FLOAT = 4                  # bytes
SLICE = 1 << 22            # elements that MPI sums at once: kSlice of src/mpi/mpi.cpp
MAX_MESSAGE = 1 << 30      # bytes: kMaxMessageBytes of src/mpi/mpi.cpp
PADDING = 64               # elements: parameters begin at multiples of this
CUT = 64                   # elements: kCutElements of src/plan/exchange.cpp
MIN_CUT = 256 << 10      # elements: kMinCut of src/plan/exchange.cpp
MIN_BUCKETS = 8          # kMinBuckets of src/plan/exchange.cpp
BUCKET_BYTES = 25 << 20    # kDefaultBucketBytes of tensorgrad/distributed/communicator.h


# ---- messages of the library over MPI ------------------------------------------------------------

def part(elements, ranks, rank):
    """Returns how many of the elements a rank adds up."""
    size = -(-elements // ranks)
    return max(0, min(size, elements - rank * size))


def slices(elements):
    return [min(SLICE, elements - begin) for begin in range(0, elements, SLICE)]


def all_reduce(elements, ranks):
    """Yields the messages of all_reduce_sum() as (sender, receiver, bytes): each rank adds one part
    of a slice, and sends the sums to the others. Messages of empty parts are sent too."""
    for count in slices(elements):
        for sender in range(ranks):
            for receiver in range(ranks):
                if sender != receiver:
                    yield sender, receiver, FLOAT * part(count, ranks, receiver)
                    yield sender, receiver, FLOAT * part(count, ranks, sender)


def all_gather(size, ranks):
    for sender in range(ranks):
        yield from ((sender, receiver, size) for receiver in range(ranks) if receiver != sender)


def broadcast(size, ranks):
    for begin in range(0, size, MAX_MESSAGE):
        yield from ((0, receiver, min(MAX_MESSAGE, size - begin)) for receiver in range(1, ranks))


def total(messages):
    """Returns {(sender, receiver): (messages, bytes)}."""
    sums = {}
    for sender, receiver, size in messages:
        count, bytes_ = sums.get((sender, receiver), (0, 0))
        sums[sender, receiver] = count + 1, bytes_ + size
    return sums


# ---- buckets -------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Bucket:
    begin: int    # elements
    end: int
    ready: float  # part of the backward pass after which the gradients are known

    @property
    def elements(self):
        return self.end - self.begin


def buckets(gradients, bucket_bytes=BUCKET_BYTES):
    """Divides gradients, given as (elements, ready) in the order of the parameters, into buckets in
    the order of their exchange. Follows join_segments() of src/plan/exchange.cpp."""
    segments, end = [], 0
    for elements, ready in gradients:
        padded = -(-elements // PADDING) * PADDING
        segments.append(Bucket(end, end + padded, ready))
        end += padded
    most = min(max(bucket_bytes // FLOAT, 1), max(end // MIN_BUCKETS, MIN_CUT))
    piece = max(most, MIN_CUT) // CUT * CUT
    made = []
    for segment in reversed(segments):
        size = segment.elements
        if made and made[-1].elements + size <= most:
            made[-1] = Bucket(segment.begin, made[-1].end, max(made[-1].ready, segment.ready))
            continue
        end = segment.end
        while size > most and end - segment.begin > piece:
            begin = -(-(end - piece) // CUT) * CUT
            made.append(Bucket(begin, end, segment.ready))
            end = begin
        made.append(Bucket(segment.begin, end, segment.ready))
    return sorted(made, key=lambda bucket: bucket.ready)


@dataclasses.dataclass(frozen=True)
class Decoder:
    """A decoder of bench/models.cpp."""
    name: str
    vocabulary: int
    width: int
    layers: int
    length: int
    batch: int
    launches: int = 0  # of a step (bench/results/gpu.md)

    def backward(self):
        """Yields the operations of the backward pass as (multiply-adds, parameters whose gradients
        it completes), per token. Parameters are (place in the array, elements)."""
        width, length = self.width, self.length
        block = [(width,)] * 4 + [(width, width)] * 4 + [(4 * width, width), (4 * width,),
                                                         (width, 4 * width), (width,)]
        first = 2  # after the embeddings of symbols and places
        last = first + len(block) * self.layers

        def named(layer, *places):
            return [(first + len(block) * layer + at, math.prod(block[at])) for at in places]

        yield 2 * self.vocabulary * width, []  # the head, whose weight is that of the embedding
        yield 0, [(last, width), (last + 1, width)]
        for layer in reversed(range(self.layers)):
            yield 2 * 4 * width * width, named(layer, 10, 11)  # down
            yield 2 * 4 * width * width, named(layer, 8, 9)    # up
            yield 0, named(layer, 2, 3)                        # the norm of the MLP
            yield 2 * width * width, named(layer, 7)           # the projection of attention
            yield 5 * length * width / 2, []                   # five causal products of attention
            for place in (6, 5, 4):                            # values, keys, queries
                yield 2 * width * width, named(layer, place)
            yield 0, named(layer, 0, 1)                        # the norm of attention
        yield 0, [(0, self.vocabulary * width), (1, length * width)]

    def gradients(self):
        """Returns (elements, ready) of each parameter, in their order. See buckets()."""
        work = sum(cost for cost, _ in self.backward())
        done, found = 0, {}
        for cost, parameters in self.backward():
            done += cost
            for place, elements in parameters:
                found[place] = elements, done / work
        return [found[place] for place in range(len(found))]

    @functools.cached_property
    def buckets(self):
        return buckets(self.gradients())

    @functools.cached_property
    def parameters(self):
        return sum(elements for elements, _ in self.gradients())

    @functools.cached_property
    def backward_share(self):
        """Returns the share of the backward pass in the time of both passes. Each product has two
        gradients. Attention has two products, and five in the backward pass."""
        backward = sum(cost for cost, _ in self.backward())
        attention = self.layers * self.length * self.width / 2
        return backward / (backward + (backward - 5 * attention) / 2 + 2 * attention)


# ---- collective operations -----------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Network:
    """Hosts with several devices. Bandwidths are bytes per second, times are seconds."""
    devices_per_host: int = 8
    local_latency: float = 1e-6     # of a message within a host
    remote_latency: float = 5e-6    # of a message between hosts
    message_time: float = 0.5e-6    # of the thread of a rank, to send or receive a message
    local_bandwidth: float = 10e9   # of each rank within its host
    remote_bandwidth: float = 50e9  # of each host, in each direction; its ranks share it
    add_bandwidth: float = 10e9     # at which a rank adds received elements

    def hosts(self, ranks):
        """Returns (ranks per host, hosts). Raises ValueError if hosts would differ."""
        local = min(ranks, self.devices_per_host)
        if ranks < 1:
            raise ValueError(f"ranks: expected at least 1, got {ranks}")
        if ranks % local != 0:
            raise ValueError(f"ranks: expected a multiple of the {local} devices of a host, got {ranks}")
        return local, ranks // local


@dataclasses.dataclass(frozen=True)
class Cost:
    """What an all-reduce costs. An all-reduce is a reduce-scatter and an all-gather, except for
    `tree`, which reduces to one rank and broadcasts."""
    scatter: float      # seconds of the first half
    gather: float       # seconds of the second half
    messages: int       # sent by the busiest rank
    sent: float         # bytes sent by the busiest rank
    leaving: float      # bytes that leave the busiest host

    @property
    def seconds(self):
        return self.scatter + self.gather


def direct(elements, ranks, network):
    """The library's algorithm: each rank exchanges messages with each other rank."""
    local, hosts = network.hosts(ranks)
    latency = network.remote_latency if hosts > 1 else network.local_latency
    scatter = gather = messages = sent = leaving = 0
    for count in slices(elements):
        own = [part(count, ranks, rank) for rank in range(local)]
        size = FLOAT * own[0]
        phase = latency + max(2 * (ranks - 1) * network.message_time,
                              (local - 1) * size / network.local_bandwidth,
                              local * (ranks - local) * size / network.remote_bandwidth)
        scatter += phase + (ranks - 1) * size / network.add_bandwidth
        gather += phase
        messages += 2 * (ranks - 1)
        sent += FLOAT * (count - own[0] + (ranks - 1) * own[0])
        leaving += FLOAT * (local * (count - sum(own)) + (ranks - local) * sum(own))
    return Cost(scatter, gather, messages, sent, leaving)


def ring(elements, ranks, network):
    """Each rank sends to the next one only. Ranks of a host follow each other."""
    _, hosts = network.hosts(ranks)
    latency = network.remote_latency if hosts > 1 else network.local_latency
    bandwidth = min(network.local_bandwidth, network.remote_bandwidth) if hosts > 1 else network.local_bandwidth
    size = FLOAT * elements / ranks
    half = (ranks - 1) * (latency + 2 * network.message_time + size / bandwidth)
    sent = 2 * (ranks - 1) * size
    return Cost(half + (ranks - 1) * size / network.add_bandwidth, half, 2 * (ranks - 1), sent,
                sent if hosts > 1 else 0)


def rounds(count, what):
    if count & (count - 1) != 0:
        raise ValueError(f"{what}: expected a power of two, got {count}")
    return count.bit_length() - 1


def tree(elements, ranks, network):
    """A binomial tree adds all elements on rank 0, and another one distributes the sums."""
    local, hosts = network.hosts(ranks)
    size = FLOAT * elements
    within, between = rounds(local, "ranks of a host"), rounds(hosts, "hosts")
    half = (within * (network.local_latency + size / network.local_bandwidth)
            + between * (network.remote_latency + size / network.remote_bandwidth)
            + (within + between) * 2 * network.message_time)
    return Cost(half + (within + between) * size / network.add_bandwidth, half, within + between,
                (within + between) * size, between * size)


def halving(elements, ranks, network):
    """Recursive halving and doubling. Pairs of a host exchange the large halves."""
    local, hosts = network.hosts(ranks)
    within, between = rounds(local, "ranks of a host"), rounds(hosts, "hosts")
    half = add = leaving = 0
    size = FLOAT * elements
    for number in range(within + between):
        size /= 2
        remote = number >= within
        half += 2 * network.message_time + (
            network.remote_latency + local * size / network.remote_bandwidth if remote
            else network.local_latency + size / network.local_bandwidth)
        add += size / network.add_bandwidth
        leaving += 2 * local * size if remote else 0
    return Cost(half + add, half, 2 * (within + between), 2 * FLOAT * elements * (1 - 1 / ranks), leaving)


def two_level(elements, ranks, network):
    """Each rank of a host adds a part of the host's elements (direct). Rings then add the parts of
    all hosts, one ring for each rank of a host."""
    local, hosts = network.hosts(ranks)
    size = FLOAT * elements / local
    half = add = 0
    if local > 1:
        half += network.local_latency + max(2 * (local - 1) * network.message_time,
                                            (local - 1) * size / network.local_bandwidth)
        add += (local - 1) * size / network.add_bandwidth
    piece = size / hosts
    half += (hosts - 1) * (network.remote_latency + 2 * network.message_time
                           + local * piece / network.remote_bandwidth)
    add += (hosts - 1) * piece / network.add_bandwidth
    between = 2 * (hosts - 1) * piece
    return Cost(half + add, half, 2 * (local - 1) + 2 * (hosts - 1), 2 * (local - 1) * size + between,
                local * between)


ALGORITHMS = {"direct": direct, "ring": ring, "tree": tree, "halving": halving, "two-level": two_level}


# ---- a step --------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Device:
    """One GPU and the way from its memory to the exchange. Bandwidths are bytes per second."""
    host_bandwidth: float = 55e9  # of copies to host memory, and of copies back
    memory_bandwidth: float = 4e12
    launch_time: float = 3e-6     # seconds: shortest time of a launch
    wait_per_bucket: float = 0    # seconds: ranks wait for each other
    wait_per_step: float = 0      # seconds: the device waits for the host
    copies: bool = True           # False: devices exchange without host memory

    def optimizer_time(self, elements):
        """AdamW reads four arrays and writes three."""
        return 7 * FLOAT * elements / self.memory_bandwidth


@dataclasses.dataclass(frozen=True)
class Step:
    seconds: float
    exchanging: float  # seconds of all buckets
    hidden: float      # seconds of the buckets that were exchanged before the backward pass ended


def simulate(decoder, device, one_rank, costs, *, accumulate=1, slowdown=1.0, zero=1):
    """Simulates a step.

    `one_rank` is the time of a step of one rank without exchange. `costs` returns the Cost of the
    exchange of so many elements. Gradients of `accumulate` batches are added before an update.
    `slowdown` is the factor by which the slowest rank's passes are slower. If `zero` is more than
    1, so many ranks divide the optimizer's work (ZeRO-1): the second half of the exchange then has
    parameters, and follows the update.
    """
    elements = sum(bucket.elements for bucket in decoder.buckets)
    update = device.optimizer_time(elements)
    passes = (one_rank - update) * slowdown
    backward_end = accumulate * passes
    backward = passes * decoder.backward_share
    host_time = lambda count: FLOAT * count / device.host_bandwidth if device.copies else 0  # noqa: E731

    downloaded = exchanged = uploaded = exchanging = hidden = gather = 0
    for bucket in decoder.buckets:
        ready = backward_end - backward * (1 - bucket.ready)
        downloaded = max(downloaded, ready) + host_time(bucket.elements)
        cost = costs(bucket.elements)
        spent = device.wait_per_bucket + (cost.scatter if zero > 1 else cost.seconds)
        gather += cost.gather
        exchanged = max(exchanged, downloaded) + spent
        exchanging += spent
        hidden += spent if exchanged <= backward_end else 0
        # The copies back are queued behind the backward pass, which was submitted before.
        uploaded = max(uploaded, exchanged, backward_end) + host_time(bucket.elements / zero)
    end = max(backward_end, uploaded) + update / zero + device.wait_per_step
    if zero > 1:
        end += host_time(elements / zero) + gather + host_time(elements)
        exchanging += gather
    return Step(end, exchanging, hidden)
