# SPDX-License-Identifier: MIT
"""bench/scaling_simulator.py: messages counted by hand and by Open MPI, buckets of the library, measured times, and
properties of every algorithm. tests/CMakeLists.txt also compares messages with those of a run over MPI."""

import contextlib
import io
import math
import pathlib
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import message_counts  # noqa: E402
import scaling_clusters as clusters  # noqa: E402
import scaling_model as model  # noqa: E402
import scaling_simulator as simulator  # noqa: E402

GPT, GPT2 = clusters.DECODERS
SIZES = [1, 2, 1000, 4096, (1 << 22) + 5, 6494976]
RANKS = [2, 4, 8, 16, 64, 1024]


def source(path):
    return (ROOT / path).read_text()


class Messages(unittest.TestCase):
    def test_a_sum_counted_by_hand(self):
        # Ten elements on three ranks: parts of 4, 4 and 2.
        self.assertEqual(model.total(model.all_reduce(10, 3)), {
            (0, 1): (2, 4 * (4 + 4)), (0, 2): (2, 4 * (2 + 4)), (1, 0): (2, 4 * (4 + 4)),
            (1, 2): (2, 4 * (2 + 4)), (2, 0): (2, 4 * (4 + 2)), (2, 1): (2, 4 * (4 + 2))})
        # One element on two ranks: rank 1 has no part, but still sends a message of no bytes.
        self.assertEqual(sorted(model.all_reduce(1, 2)), [(0, 1, 0), (0, 1, 4), (1, 0, 0), (1, 0, 4)])
        self.assertEqual(list(model.all_reduce(0, 4)), [])

    def test_large_sums_are_divided_into_slices(self):
        messages = list(model.all_reduce((1 << 22) + 4, 2))
        self.assertEqual([size for sender, _, size in messages if sender == 0], [1 << 23, 1 << 23, 8, 8])

    def test_runs_counted_by_open_mpi(self):
        # What message_counts.py counted on three ranks.
        self.assertEqual(model.total(message_counts.exchange(3)), {
            (0, 1): (14, 11187573), (0, 2): (14, 11187549), (1, 0): (13, 11187545), (1, 2): (13, 11187517),
            (2, 0): (13, 11187521), (2, 1): (13, 11187517)})
        self.assertEqual(model.total(message_counts.classifier(3)), {
            (0, 1): (44, 123240), (0, 2): (44, 123232), (1, 0): (41, 93288), (1, 2): (41, 93264),
            (2, 0): (41, 93280), (2, 1): (41, 93264)})

    def test_the_cost_of_direct_is_that_of_its_messages(self):
        for ranks in (2, 3, 8, 16, 24):
            for elements in (1, 5, 1000, (1 << 22) + 5):
                cost = model.direct(elements, ranks, model.Network())
                messages = list(model.all_reduce(elements, ranks))
                sent = [sum(size for sender, _, size in messages if sender == rank) for rank in range(ranks)]
                leaving = [sum(size for sender, receiver, size in messages
                               if sender // 8 == host and receiver // 8 != host) for host in range(-(-ranks // 8))]
                with self.subTest(ranks=ranks, elements=elements):
                    self.assertEqual(cost.messages * ranks, len(messages))
                    self.assertEqual(cost.sent, max(sent))
                    self.assertEqual(cost.leaving, max(leaving))

    def test_constants_are_those_of_the_library(self):
        mpi, plan = source("src/mpi/mpi.cpp"), source("src/plan/exchange.cpp")
        self.assertIn("constexpr std::size_t kSlice = std::size_t{1} << 22;", mpi)
        self.assertIn("constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;", mpi)
        self.assertEqual((model.SLICE, model.MAX_MESSAGE), (1 << 22, 1 << 30))
        for constant, value in (("kCutElements", "64"), ("kMinCut", "256 << 10"), ("kMinBuckets", "8")):
            self.assertIn(f"constexpr std::int64_t {constant} = {value};", plan)
        self.assertEqual((model.CUT, model.MIN_CUT, model.MIN_BUCKETS), (64, 256 << 10, 8))
        self.assertIn("kDefaultBucketBytes = 25 << 20;", source("include/tensorgrad/distributed/communicator.h"))
        self.assertEqual(model.BUCKET_BYTES, 25 << 20)


class Buckets(unittest.TestCase):
    def test_decoders_are_those_of_the_benchmarks(self):
        text = source("bench/models.cpp")
        for decoder, constant in ((GPT, "kGpt"), (GPT2, "kGpt2"), (clusters.SMALL, "kSmallGpt")):
            numbers = re.search(rf"DecoderSize {constant} = {{([^}}]*)}}", text)[1].split(", ")
            self.assertEqual([int(numbers[at]) for at in (0, 1, 2, 4, 5)],
                             [decoder.vocabulary, decoder.width, decoder.layers, decoder.length, decoder.batch])

    def test_numbers_are_those_that_were_measured(self):
        # exchanged_bytes and buckets, as tg_bench prints them
        self.assertEqual(4 * clusters.SMALL.parameters, 3231232)
        self.assertEqual(len(clusters.SMALL.buckets), 4)
        self.assertEqual(len(model.buckets(clusters.SMALL.gradients(), 300000)), 13)
        self.assertIn(f"`gpt2` has {len(GPT2.buckets)} buckets", source("bench/results/distributed.md"))
        for decoder in (GPT, GPT2):
            row = next(line for line in source("bench/results/distributed.md").splitlines()
                       if line.startswith(f"| {decoder.name} | tensorgrad, run |"))
            self.assertIn(f"| {4e-6 * decoder.parameters:.1f} MB |", row)

    def test_cover_all_elements_in_the_order_of_the_backward_pass(self):
        for bucket_bytes in (1, 300000, 1 << 20, model.BUCKET_BYTES, 1 << 40):
            made = model.buckets(GPT.gradients(), bucket_bytes)
            most = max(min(bucket_bytes // 4, GPT.parameters // 8), 256 << 10)
            self.assertEqual([bucket.ready for bucket in made], sorted(bucket.ready for bucket in made))
            self.assertEqual(made[-1].ready, 1)
            end = 0
            for bucket in sorted(made, key=lambda bucket: bucket.begin):
                self.assertEqual(bucket.begin, end)
                self.assertTrue(0 < bucket.elements <= most)
                end = bucket.end
            self.assertEqual(end, GPT.parameters)

    def test_formed_by_hand(self):
        # At most 2^18 elements: a gradient that fits joins the one after it, a large one is cut.
        made = model.buckets([(100, 1.0), (600000, 0.5), (200000, 0.25), (60000, 0.125)])
        self.assertEqual([(bucket.begin, bucket.end, bucket.ready) for bucket in made], [
            (600128, 860160, 0.25), (337984, 600128, 0.5), (75840, 337984, 0.5), (0, 75840, 1.0)])


class Algorithms(unittest.TestCase):
    def each(self, *names):
        for name in names or model.ALGORITHMS:
            for ranks in RANKS:
                for elements in SIZES:
                    yield name, ranks, min(ranks, 8), elements, model.ALGORITHMS[name](elements, ranks, model.Network())

    def test_send_no_less_than_any_algorithm_must(self):
        for name, ranks, local, elements, cost in self.each():
            case = (name, ranks, elements)
            self.assertGreaterEqual(cost.sent * (1 + 1e-12), 8 * elements * (1 - 1 / ranks), case)
            self.assertGreaterEqual(cost.leaving * (1 + 1e-12), 8 * elements * (1 - local / ranks), case)
            self.assertGreaterEqual(cost.messages, math.log2(ranks), case)
            self.assertGreater(cost.scatter, cost.gather, case)
            self.assertGreater(cost.gather, 0, case)

    def test_those_that_divide_the_elements_send_the_least(self):
        for name, ranks, _, elements, cost in self.each("ring", "halving", "two-level"):
            self.assertAlmostEqual(cost.sent, 8 * elements * (1 - 1 / ranks), 4, (name, ranks, elements))

    def test_numbers_of_messages(self):
        for name, ranks, local, elements, cost in self.each():
            expected = {"direct": 2 * (ranks - 1) * len(model.slices(elements)), "ring": 2 * (ranks - 1),
                        "tree": math.log2(ranks), "halving": 2 * math.log2(ranks),
                        "two-level": 2 * (local - 1) + 2 * (ranks // local - 1)}[name]
            self.assertEqual(cost.messages, expected, (name, ranks, elements))

    def test_direct_sends_more_between_hosts_by_the_devices_of_a_host(self):
        for ranks in (16, 64, 1024):
            elements = ranks * 1000
            direct = model.direct(elements, ranks, model.Network())
            halving = model.halving(elements, ranks, model.Network())
            self.assertAlmostEqual(direct.leaving / halving.leaving, 8)

    def test_of_one_rank_cost_nothing_but_latencies(self):
        for name in ("direct", "ring", "tree", "halving", "two-level"):
            cost = model.ALGORITHMS[name](1000, 1, model.Network())
            self.assertEqual((cost.messages, cost.sent, cost.leaving), (0, 0, 0), name)
            self.assertLess(cost.seconds, 1e-5)

    def test_a_ring_timed_by_hand(self):
        network = model.Network(local_latency=1, message_time=0.25, local_bandwidth=100, add_bandwidth=50)
        cost = model.ring(100, 4, network)  # three steps of 100 bytes
        self.assertEqual((cost.scatter, cost.gather), (3 * (1 + 0.5 + 1) + 3 * 2, 3 * (1 + 0.5 + 1)))

    def test_faster_networks_are_never_slower(self):
        for name, algorithm in model.ALGORITHMS.items():
            slow = algorithm(1 << 20, 64, model.Network()).seconds
            for change in ({"local_latency": 0.5e-6}, {"remote_latency": 1e-6}, {"message_time": 1e-7},
                           {"local_bandwidth": 1e11}, {"remote_bandwidth": 1e12}, {"add_bandwidth": 1e11}):
                self.assertLessEqual(algorithm(1 << 20, 64, model.Network(**change)).seconds, slow, (name, change))

    def test_numbers_of_ranks_that_do_not_fit_are_refused(self):
        for name, ranks, error in (("direct", 0, "expected at least 1, got 0"),
                                   ("ring", 12, "expected a multiple of the 8 devices of a host, got 12"),
                                   ("halving", 24, "hosts: expected a power of two, got 3"),
                                   ("tree", 6, "ranks of a host: expected a power of two, got 6")):
            with self.assertRaisesRegex(ValueError, error):
                model.ALGORITHMS[name](100, ranks, model.Network())


class Steps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.clusters = clusters.Clusters()

    def test_measured_times_are_met(self):
        # Three values are fitted to six times. The other three, and the ratios, are predictions.
        fit = self.clusters.calibration
        for decoder, hidden, step in ((GPT, 0.1, 1e-9), (GPT2, 0.03, 0.015)):
            row = clusters.row_of(self.clusters.rows, decoder.name)
            made = model.simulate(decoder, self.clusters.hosts.device, row.one_rank, fit.threads)
            self.assertAlmostEqual(made.exchanging / row.exchanging, 1)
            self.assertAlmostEqual(made.hidden / row.hidden, 1, delta=hidden)
            self.assertAlmostEqual(made.seconds / row.all_ranks, 1, delta=step)
            self.assertAlmostEqual(2 * row.one_rank / made.seconds / row.throughput, 1, delta=0.015)
        self.assertGreater(min(fit.wait_per_bucket, fit.wait_per_step), 0)

    def test_nccl_over_nvlink_is_met_without_a_fit(self):
        for row in self.clusters.rows:
            if row.who.startswith("PyTorch") and row.ranks == 2:
                decoder = next(each for each in clusters.DECODERS if each.name == row.workload)
                costs = lambda elements: model.halving(elements, 2, clusters.DIRECT_NETWORK)  # noqa: E731
                made = model.simulate(decoder, clusters.DIRECT_DEVICE, row.one_rank, costs)
                self.assertAlmostEqual(2 * row.one_rank / made.seconds / row.throughput, 1, delta=0.02)

    def test_a_free_exchange_adds_only_the_copies_back(self):
        free = lambda elements: model.Cost(0, 0, 0, 0, 0)  # noqa: E731
        for decoder in (GPT, GPT2):
            self.assertAlmostEqual(model.simulate(decoder, model.Device(copies=False), 0.1, free).seconds, 0.1)
            made = model.simulate(decoder, model.Device(host_bandwidth=1e10), 0.1, free)
            self.assertAlmostEqual(made.seconds, 0.1 + 4 * decoder.parameters / 1e10)

    def test_an_exchange_that_is_too_slow_follows_the_first_bucket(self):
        slow = lambda elements: model.Cost(elements, 0, 0, 0, 0)  # noqa: E731
        device = model.Device(copies=False, memory_bandwidth=math.inf)
        made = model.simulate(GPT2, device, 1.0, slow)
        first = 1 - GPT2.backward_share * (1 - GPT2.buckets[0].ready)
        self.assertAlmostEqual(made.seconds, first + GPT2.parameters)
        self.assertEqual((made.exchanging, made.hidden), (GPT2.parameters, 0))

    def test_slower_ranks_and_more_ranks_are_never_faster(self):
        for cluster in (self.clusters.hosts, self.clusters.devices):
            for name in model.ALGORITHMS:
                times = [cluster.step(GPT2, 64, name, slowdown=slowdown).seconds for slowdown in (1, 1.1, 2)]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], cluster.one_rank(GPT2))
            for name in ("ring", "tree", "halving", "two-level"):
                times = [cluster.step(GPT2, ranks, name).seconds for ranks in RANKS]
                self.assertEqual(times, sorted(times), name)

    def test_accumulated_batches_exchange_once(self):
        cluster = self.clusters.hosts
        one, four = (cluster.step(GPT, 8, "direct", batch=GPT.batch * count) for count in (1, 4))
        update = cluster.device.optimizer_time(GPT.parameters)
        self.assertAlmostEqual(four.seconds - one.seconds, 3 * (cluster.one_rank(GPT) - update))
        self.assertAlmostEqual(four.exchanging, one.exchanging)

    def test_speedups_are_at_most_the_number_of_ranks(self):
        for cluster, decoders in ((self.clusters.hosts, clusters.DECODERS), (self.clusters.devices, clusters.DECODERS),
                                  (self.clusters.cpus, [clusters.SMALL])):
            for decoder in decoders:
                for ranks in RANKS:
                    self.assertTrue(0 < cluster.strong(decoder, ranks, "halving") <= ranks)
                    self.assertTrue(0 < cluster.weak(decoder, ranks, "halving") <= 1)

    def test_the_slowest_of_two_normal_times(self):
        # The mean of the larger of two normal values is their deviation over the root of pi.
        cluster = self.clusters.devices
        passes = cluster.one_rank(GPT2) - cluster.device.optimizer_time(GPT2.parameters)
        added = cluster.varied(GPT2, 2, "halving", 0.02) - cluster.varied(GPT2, 2, "halving", 0)
        self.assertAlmostEqual(added / (0.02 * passes / math.sqrt(math.pi)), 1, delta=0.02)

    def test_zero_divides_the_update_and_delays_the_second_half(self):
        device = model.Device(copies=False, memory_bandwidth=1e9)
        costs = lambda elements: model.Cost(0, 1.0, 0, 0, 0)  # noqa: E731
        update = device.optimizer_time(GPT.parameters)
        made = model.simulate(GPT, device, 10.0, costs, zero=4)
        self.assertAlmostEqual(made.seconds, 10 - update + update / 4 + len(GPT.buckets))


class Page(unittest.TestCase):
    def test_page_and_chart_are_up_to_date(self):
        self.assertEqual(simulator.stale(clusters.Clusters()), [], "run python3 bench/scaling_simulator.py --update")

    def test_a_changed_number_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page, image = pathlib.Path(folder) / "page.md", pathlib.Path(folder) / "image.svg"
            page.write_text(simulator.PAGE.read_text().replace("| gpt2 | 1024 |", "| gpt2 | 1025 |", 1))
            image.write_text(simulator.CHART.read_text())
            self.assertEqual(simulator.stale(clusters.Clusters(), page, image), [page])

    def test_the_chart_has_a_line_for_each_algorithm_in_both_panels(self):
        root = xml.etree.ElementTree.fromstring(simulator.chart(clusters.Clusters()))
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 2 * (len(model.ALGORITHMS) + 1))
        for line in lines:
            self.assertEqual(len(line.get("points").split()), 11)

    def test_pages_without_measurements_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# Nothing\n")
            with self.assertRaisesRegex(ValueError, "no section a with tables"):
                clusters.measured_rows(page, "a")
            page.write_text("<!-- bench: a -->\n| x | y |\n<!-- bench end -->\n")
            with self.assertRaisesRegex(ValueError, "section a has no rows of several ranks"):
                clusters.measured_rows(page, "a")
        with self.assertRaisesRegex(ValueError, "expected one row of gpt2, tensorgrad, run on 3 ranks, got 0"):
            clusters.row_of(clusters.measured_rows(), "gpt2", ranks=3)

    def test_wrong_options_are_refused(self):
        for words, error in ((["--network", "bandwidth=3"], "expected NAME=NUMBER with a number above 0 and a name of "
                              "devices_per_host, .*; got 'bandwidth=3'"),
                             (["--network", "message_time=0"], "got 'message_time=0'"),
                             (["--device", "launch_time=fast"], "got 'launch_time=fast'"),
                             (["--network", "devices_per_host=6"], "expected a multiple of the 6 devices of a host"),
                             (["--check", "--device", "launch_time=1"], "the page has the default values")):
            output = io.StringIO()
            with (mock.patch.object(sys, "argv", ["scaling_simulator.py", *words]), contextlib.redirect_stderr(output),
                  contextlib.redirect_stdout(io.StringIO()), self.assertRaises(SystemExit) as refused):
                simulator.main()
            self.assertRegex(f"{refused.exception} {output.getvalue()}", error)


if __name__ == "__main__":
    unittest.main()
