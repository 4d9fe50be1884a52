# SPDX-License-Identifier: MIT
"""bench/tables.py: tables made from lines, rejected lines, and how a page is updated."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import goals  # noqa: E402
import run  # noqa: E402
import tables  # noqa: E402

RUN = {"run": {"date": "2026-01-02", "command": "./dev bench --peers", "rounds": 2, "machine": "a machine",
               "commit": "abc", "versions": ["Peer 1"]}}


def step(who, mode, us, turn, **more):
    line = {"workload": "tiny", "mode": mode, "who": who, "device": "cpu", "parameters": 7, "us_per_step": us,
            "round": turn}
    if who == tables.OURS:
        line |= {"launches": 3, "peak_bytes": 4096, "passes_ms": 0.7, "compile_ms": 1.5}
    return line | more


LINES = [RUN,
         step("tensorgrad", "run", 100, 0), step("tensorgrad", "run", 120, 1), step("tensorgrad", "run", 110, 2),
         step("tensorgrad", "step", 500, 0),
         step("Peer", "slow", 900, 0), step("Peer", "quick", 400, 0), step("Peer", "quick", 200, 1),
         step("Peer", "quick", 220, 2),
         {"measure": "probe", "workload": "tiny", "who": "tensorgrad", "start_to_first_step_s": 0.1,
          "peak_rss_bytes": 30e6},
         {"measure": "probe", "workload": "tiny", "who": "Peer", "start_to_first_step_s": 2.0,
          "peak_rss_bytes": 300e6},
         {"measure": "busy core", "workload": "tiny", "who": "tensorgrad", "mode": "step", "busy": False,
          "us_per_step": 100},
         {"measure": "busy core", "workload": "tiny", "who": "tensorgrad", "mode": "step", "busy": True,
          "us_per_step": 210},
         {"measure": "scaling", "workload": "tiny", "who": "tensorgrad", "device": "cpu", "what": "batch", "size": 4,
          "us_per_step": 100, "peak_bytes": 1e6},
         {"measure": "scaling", "workload": "tiny", "who": "tensorgrad", "device": "cpu", "what": "batch", "size": 8,
          "us_per_step": 190, "peak_bytes": 2e6}]


class BenchTables(unittest.TestCase):
    def test_throughput_of_several_ranks_is_a_median_of_rounds(self):
        line = {"measure": "distributed", "workload": "tiny", "mode": "run", "who": "tensorgrad",
                "device": "webgpu (A GPU); webgpu: requested", "parameters": 7, "ranks": 2, "gpus": 2,
                "us_of_one_rank": 100, "us_per_step": 110, "exchanged_bytes": 4e6, "us_exchanging": 40,
                "us_exchanging_hidden": 30}
        peer = {"measure": "distributed", "workload": "tiny", "mode": "compile", "who": "Peer", "device": "A GPU",
                "parameters": 7, "ranks": 2, "gpus": 2, "us_of_one_rank": 90, "us_per_step": 95, "throughput": 1.9,
                "exchanged_bytes": 4e6}
        text = tables.markdown([RUN, *(line | {"throughput": value, "round": i}
                                       for i, value in enumerate((1.7, 1.9, 1.8))), peer])
        self.assertIn("| tiny | tensorgrad, run | webgpu (A GPU) | 2 | 2 | 100 | 110 | 1.80 | 4.0 MB | 40 | 30 |", text)
        self.assertIn("| tiny | Peer, compile | A GPU | 2 | 2 | 90 | 95 | 1.90 | 4.0 MB |  |  |", text)
        with self.assertRaises(SystemExit):
            tables.markdown([RUN, line | {"throughput": 1.8}, peer | {"parameters": 8}])

    def test_medians_of_rounds_and_the_ratio_to_the_best_peer(self):
        text = tables.markdown(LINES)
        self.assertIn("| tiny | 110 (run) | 220 (Peer, quick) | 0.50 | 0.25 to 0.60 |", text)
        self.assertIn("| tiny | cpu | run | 110 | 3 | 4,096 | 0.7 | 1.5 |", text)
        self.assertIn("Measured on 2026-01-02 with `./dev bench --peers`, 2 rounds", text)
        self.assertIn("Peers: Peer 1.", text)

    def test_every_run_of_the_lines_is_named(self):
        gpu = {"device": "webgpu (A GPU); webgpu: requested", "driver": "wgpu-native 1, Vulkan, driver 2"}
        other = {"run": RUN["run"] | {"date": "2026-01-03", "rounds": 1, "commit": "def"}}
        text = tables.markdown([*LINES, other, step("tensorgrad", "run", 90, 0, workload="small", **gpu)])
        self.assertIn("Measured in 2 runs.", text)
        self.assertIn("- steps of tiny; probe; busy core; scaling: on 2026-01-02 with", text)
        self.assertIn("- steps of small: on 2026-01-03 with `./dev bench --peers`, 1 round, medians: "
                      "a machine. Commit def. webgpu (A GPU): wgpu-native 1, Vulkan, driver 2. Peers: Peer 1.", text)
        self.assertIn("The origin of the other lines", tables.markdown([LINES[1], *LINES]))
        self.assertTrue(tables.markdown(LINES[1:]).startswith("The origin of these lines is unknown."))

    def test_rounds_of_several_runs_are_not_mixed_in_ratios(self):
        text = tables.markdown([*LINES, RUN, step("tensorgrad", "run", 110, 0), step("Peer", "quick", 110, 0)])
        self.assertIn("| 0.25 to 1.00 |", text)

    def test_host_times_have_columns_if_they_are_known(self):
        line = step("tensorgrad", "run", 90, 0, us_encoding=5.5, us_submitting=2, us_waiting=80)
        self.assertIn("| workload | device | mode | us a step | encoding | submitting | waiting | launches |",
                      tables.markdown([RUN, line]))
        self.assertIn("| tiny | cpu | run | 90 | 5.5 | 2 | 80 | 3 |", tables.markdown([RUN, line]))
        self.assertNotIn("encoding", tables.markdown(LINES))

    def test_products_have_a_ratio_to_the_best_peer_with_as_many_threads(self):
        def product(who, threads, gflops, **more):
            return {"workload": "gemm", "size": "8x8x8", "who": who, "gflops": gflops} | (
                {"threads": threads} if threads else {}) | more
        text = tables.markdown([RUN, product("tensorgrad", 1, 90), product("A", 1, 100), product("B", 1, 120),
                                product("tensorgrad", 2, 150), product("A", 2, 100)])
        self.assertIn("| ours over the best peer, 1 thread | ours over the best peer, 2 threads |", text)
        self.assertIn("| 8x8x8 | 90 | 100 | 120 | 150 | 100 | 0.75 | 1.50 |", text)
        text = tables.markdown([RUN, product("tensorgrad", 0, 90, product="x w^T")])
        self.assertIn("| 8x8x8 x w^T | 90 |\n", text)

    def test_memory_bound_launches_are_compared_with_our_copy_of_the_largest_matrix(self):
        def launch(who, what, us, matrix="64 MiB", **more):
            return {"workload": "memory", "who": who, "device": "cpu (X, 2 threads)", "threads": 2, "what": what,
                    "matrix": matrix, "bytes": 2e7, "us": us, "gb_per_s": 2e4 / us} | more
        text = tables.markdown([RUN, launch("tensorgrad", "copy", 1000, launch="copy"),
                                launch("tensorgrad", "softmax forward", 2000, launch="softmax"),
                                launch("tensorgrad", "copy", 500, "16 MiB", launch="copy"),
                                launch("tensorgrad", "softmax forward", 2000, "16 MiB", launch="softmax"),
                                launch("Peer 1", "copy_", 800, device="cpu")])
        self.assertIn("| softmax forward | 64 MiB | softmax | cpu (X, 2 threads) | 20.0 MB | 2,000 | 10 | 0.50 |", text)
        self.assertIn("| softmax forward | 16 MiB | softmax | cpu (X, 2 threads) | 20.0 MB | 2,000 | 10 | 0.50 |", text)
        self.assertIn("| Peer 1, copy_ | 64 MiB |  | cpu, 2 threads | 20.0 MB | 800 | 25 | 1.25 |", text)

    def test_quantized_weights_are_compared_with_f32_by_call_and_by_launch(self):
        def product(weights, us, **more):
            return {"workload": "packed", "who": "tensorgrad", "device": "cpu (X)", "rows": 1, "weights": weights,
                    "us": us, "peak_bytes": 2e6} | more
        text = tables.markdown([RUN, product("f32", 100, launch_us=50), product("int8", 90, launch_us=20)])
        self.assertIn("| int8 | 1 | 90 | 0.90 | 20 | 0.40 | 2.0 MB |", text)
        text = tables.markdown([RUN, product("f32", 100), product("int8", 90)])
        self.assertIn("| int8 | 1 | 90 | 0.90 |  |  | 2.0 MB |", text)

    def test_compiling_with_the_drivers_cache_empty_and_filled(self):
        def compiled(first, **more):
            return {"measure": "compile", "workload": "tiny", "who": "tensorgrad", "passes_ms": 2, "first_ms": first,
                    "again_ms": 30} | more
        text = tables.markdown([RUN, compiled(900, device="webgpu (A)", driver_cache="empty"),
                                compiled(80, device="webgpu (A)", driver_cache="filled"),
                                compiled(40, device="cpu (X)")])
        self.assertIn("| tiny | webgpu (A) | 2 | 900 | 80 | 30 |", text)
        self.assertIn("| tiny | cpu (X) | 2 |  | 40 | 30 |", text)

    def test_scans_and_memory_against_length(self):
        scan = {"measure": "scan", "workload": "m", "who": "tensorgrad", "device": "cpu (X, 2 threads)", "threads": 2,
                "op": "selective_scan", "domain": "1*64x8x4", "us": 10, "moved": 2e6, "gb_per_s": 200, "of_copy": 0.5}
        probe = {"measure": "probe", "workload": "m", "who": "tensorgrad", "length": 64, "peak_bytes": 6e6,
                 "peak_rss_bytes": 21e6}
        text = tables.markdown([RUN, scan, scan | {"us": 30}, scan | {"op": "selective_scan_grad"}, probe])
        self.assertIn("| cpu (X, 2 threads) | m | selective_scan | 1*64x8x4 | 20 | 2.0 MB | 200 | 0.50 |", text)
        self.assertIn("| m | 64 | 6.0 MB | 21.0 MB | 15.0 MB |", text)
        self.assertNotIn("Cold start", text)

    def test_generation_is_compared_by_wall_time_and_by_cpu_time(self):
        def text_of(who, us, cpu, **more):
            return {"measure": "generation", "workload": "g", "who": who, "device": "cpu", "weights": "int8", "threads": 2,
                    "prompt_tokens": 500, "new_tokens": 10, "prompt_us": us, "prompt_cpu_us": cpu, "token_us": us / 100,
                    "token_cpu_us": cpu / 100} | more
        text = tables.markdown([RUN, text_of("tensorgrad", 1e6, 3e6), text_of("tensorgrad", 3e6, 3e6),
                                text_of("tensorgrad", 2e6, 3e6), text_of("A", 4e6, 4e6), text_of("B", 1e6, 1.5e6),
                                text_of("B", 1, 1, threads=1)])
        self.assertIn("a prompt and new tokens after it (500 tokens and 10 new ones)", text)
        self.assertIn("| g | int8 | 2 | 250 | 500 (B) | 0.50 | 50 | 100 (B) | 0.50 | 0.50 | 0.50 |", text)
        self.assertIn("| g | int8 | 1 |  |  |  |  |  |  |  |  |", text)
        self.assertNotIn("on a GPU", text)
        gpu = {"device": "webgpu (X)", "threads": None, "batch": 64}
        sampled = {"greedy_token_us": 5e3, "sampled_token_us": 8e3}
        text = tables.markdown([RUN, text_of("tensorgrad", 1e6, 3e6, **gpu, **sampled),
                                text_of("A", 2e6, 3e6, **gpu), text_of("A", 1e6, 3e6)])
        self.assertIn("### Generation with quantized weights on a GPU", text)
        self.assertIn("| g | int8 | 64 | 32,000 | 16,000 (A) | 2.00 | 6,400 | 3,200 (A) | 2.00 | "
                      "12,800 | 4.00 | 8,000 | 2.50 |", text)
        self.assertIn("| g | int8 | 2 |", text)

    def test_latency_is_compared_for_each_number_of_rows_and_threads(self):
        def call(who, us, **more):
            return {"measure": "latency", "workload": "m", "who": who, "device": "cpu", "rows": 8, "threads": 1,
                    "us": us, "cpu_us": us / 2} | more
        text = tables.markdown([RUN, call("tensorgrad", 30), call("A", 20), call("B", 10, cpu_us=20),
                                call("tensorgrad", 5, threads=2)])
        self.assertIn("| m | 8 | 1 | 30 | 10 (B) | 3.00 | 15 | 10 (A) | 1.50 |", text)
        self.assertIn("| m | 8 | 2 | 5 |  |  | 2.5 |  |  |", text)

    def test_peak_memory_if_a_peer_reports_its_own(self):
        self.assertNotIn("Peak memory", tables.markdown(LINES))
        text = tables.markdown([*LINES, step("Peer", "graph", 300, 0, peak_bytes=5e6)])
        self.assertIn("| workload | tensorgrad, run | tensorgrad, step | Peer, graph |", text)
        self.assertIn("| tiny | 0.0 MB | 0.0 MB | 5.0 MB |", text)

    def test_probes_busy_core_and_scaling(self):
        text = tables.markdown(LINES)
        self.assertIn("| tiny | tensorgrad | 0.100 | 0.05 | 30.0 MB | 0.10 |", text)
        self.assertIn("| tiny | tensorgrad | step | 100 | 210 | 2.10 |", text)
        self.assertIn("| cpu | tiny | batch | 8 | 190 | 1.90 | 2.0 MB | 2.00 |", text)

    def test_models_that_differ_are_not_compared(self):
        with self.assertRaises(SystemExit) as refused:
            tables.markdown([*LINES, step("Other", "x", 1, 0, parameters=8)])
        self.assertIn("tiny: the models differ", str(refused.exception))

    def test_a_page_gets_the_tables_between_its_markers_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("before\n<!-- bench: a -->\nold\n<!-- bench end -->\nbetween\n"
                            "<!-- bench: b -->\nkept\n<!-- bench end -->\nafter\n")
            tables.update(page, "a", "new\n")
            self.assertEqual(page.read_text(),
                             "before\n<!-- bench: a -->\n\nnew\n\n<!-- bench end -->\nbetween\n"
                             "<!-- bench: b -->\nkept\n<!-- bench end -->\nafter\n")
            with self.assertRaises(SystemExit):
                tables.update(page, "c", "new\n")

    def test_named_tables_come_in_their_order_without_commands(self):
        later = {"run": RUN["run"] | {"date": "2026-01-03", "versions": ["Peer 1", "Peer 2"]}}
        gpu = {"device": "webgpu (A GPU); webgpu: requested", "driver": "wgpu-native 1"}
        text = tables.markdown([*LINES, later, step("tensorgrad", "run", 90, 0, workload="small", **gpu)],
                               ["probes", "ratios"])
        self.assertEqual(text.splitlines()[0], "Measured 2026-01-02 to 2026-01-03 on a machine; "
                                               "webgpu (A GPU) with wgpu-native 1. Peers: Peer 1, Peer 2.")
        self.assertLess(text.index("### Cold start"), text.index("### Ours over the best peer"))
        self.assertEqual(text.count("### "), 2)
        self.assertNotIn("./dev bench", text)
        self.assertTrue(tables.markdown([RUN, *LINES[1:]], ["ratios"]).startswith(
            "Measured 2026-01-02 on a machine. Peers: Peer 1.\n"))

    def test_a_table_that_is_unknown_is_refused(self):
        result = subprocess.run([sys.executable, "-B", ROOT / "bench/tables.py", "x.jsonl", "--tables", "nothing"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown table 'nothing'; available: goals, steps,", result.stderr)

    def test_the_command_that_is_kept_has_no_paths(self):
        words = ["--build", "x", "--peers", "/x/python", "--rounds", "2", "--out=/x/y", "--only", "addition"]
        self.assertEqual(run.own_command(words), "./dev bench --peers --rounds 2 --only addition")

    def test_the_runner_refuses_what_it_does_not_know(self):
        for option in ("--parts", "--only"):
            result = subprocess.run([sys.executable, "-B", ROOT / "bench/run.py", option, "nothing"],
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn("unknown 'nothing'", result.stderr)


# Lines for BenchGoals, including some that no goal uses, whose figures would change the result.
GPU, CPU = {"device": "webgpu (A GPU)"}, {"device": "cpu (X, 2 threads)", "threads": 2}


def steps(workload, device, ours, **peers):
    """Lines of ours in both modes and of peers (`name_mode`), with a time for each. On a GPU only
    `run` counts."""
    lines = [step("tensorgrad", "step", ours / 9 if device is GPU else ours * 9, 0, workload=workload, **device),
             step("tensorgrad", "run", ours, 0, workload=workload, **device),
             step("tensorgrad", "run", ours / 99, 0, workload=workload, **(CPU if device is GPU else GPU))]
    where = {"device": "NVIDIA X" if device is GPU else "cpu, 2 threads"}
    for peer, us in peers.items():
        who, mode = peer.split("_")
        lines.append(step(f"{who} 1.0", mode, us, 0, workload=workload, **where))
    return lines


def streamed(workload):
    """Returns a function that makes lines from the ratio of `stream` to `run` on a GPU."""
    def line(mode, us, where):
        return step("tensorgrad", mode, us, 0, workload=workload, **where)
    return lambda ratio: [line("run", 1000, GPU), line("stream", 1000 * ratio, GPU), line("step", 5000, GPU),
                          line("run", 1, CPU), line("stream", 9000, CPU)]


def launches(workload, count):
    return [step("tensorgrad", "run", 50, 0, workload=workload, **GPU) | {"launches": count},
            step("tensorgrad", "step", 50, 0, workload=workload, **GPU) | {"launches": 999},
            step("tensorgrad", "run", 50, 0, workload=workload, **CPU) | {"launches": 999}]


def product(who, size, gflops, **more):
    return {"workload": "gemm", "who": who, "size": size, "gflops": gflops} | more


def on_cores(threads, size, speed):
    """Lines of a peer with only the other number of cores, and of both with four, which no goal uses."""
    return [product("tensorgrad", size, 1000 * speed, threads=threads), product("A", size, 1000, threads=threads),
            product("B", size, 10, threads=threads),
            product("tensorgrad with bias and relu", size, 9000, threads=threads),
            product("A", size, 9000, threads=3 - threads),
            product("tensorgrad", size, 1, threads=4), product("A", size, 9000, threads=4)]


def on_a_gpu(size, speed):
    return [product("tensorgrad", size, 1000 * speed, product="dy w", **GPU),
            product("PyTorch 1.0", size, 1000, product="dy w", device="NVIDIA X"),
            product("PyTorch 1.0", size, 9000, product="x w^T", device="NVIDIA X")]


def memory_bound(matrix, share):
    def launch(what, matrix, speed, who="tensorgrad", **more):
        return {"workload": "memory", "who": who, "what": what, "matrix": matrix, "launch": what, "bytes": 2e7,
                "us": 9, "gb_per_s": speed} | GPU | more
    return [launch("copy", "128 MiB", 1000), launch("norm", matrix, 1000 * share), launch("copy", "16 MiB", 1),
            launch("norm", matrix, 1) | {"launch": "mean"}, launch("copy", matrix, 1, **CPU), launch("norm", matrix, 1, **CPU),
            launch("copy_", matrix, 9000, who="PyTorch 1.0", device="NVIDIA X")]


def peak_memory(ratio, name="char-gpt"):
    """Ours needs more in `step` than in `run`; PyTorch needs less in eager mode than as a graph."""
    def line(who, mode, peak, where, workload=name):
        return step(who, mode, 50, 0, workload=workload, **where) | {"peak_bytes": peak}
    def ours(peak, where, workload=name, mode="run"):
        return line("tensorgrad", mode, peak, where, workload)
    there = {"device": "NVIDIA X"}
    return [ours(1, GPU), ours(1000 * ratio, GPU, mode="step"), ours(9000, CPU), ours(9000, GPU, "char-gpt-small"),
            line("PyTorch 1.0", "eager", 1000, there), line("PyTorch 1.0", "graph", 2000, there),
            line("PyTorch 1.0", "eager", 1, {"device": "cpu, 2 threads"}),
            line("PyTorch 1.0", "eager", 1, there, "other"), line("JAX 1.0", "scan", 1, there)]


def on_ranks(throughput, workload):
    """Returns lines of two ranks: with a GPU each, on one GPU, and on the CPU."""
    both = {"measure": "distributed", "workload": workload, "mode": "run", "who": "tensorgrad", "parameters": 7,
            "ranks": 2, "us_of_one_rank": 100, "us_per_step": 110, "exchanged_bytes": 4e6}
    return [both | GPU | {"gpus": 2, "throughput": throughput},
            both | GPU | {"gpus": 1, "throughput": 1.0},
            both | {"device": "cpu", "gpus": 1, "throughput": 1.0}]


def mixed(ms):
    """Lines for two WebGPU libraries, of which the faster one counts."""
    def line(us, mode="run", who="tensorgrad", name="char-gpt (mixed precision)", **where):
        return step(who, mode, us, 0, workload=name, **(GPU | {"device": "webgpu (NVIDIA H100 80GB HBM3)"} | where))
    return [line(1000 * ms, driver="Dawn"), line(90000, driver="wgpu-native"), line(1, "step", driver="Dawn"),
            line(1, device="webgpu (NVIDIA H200)"), line(1, device="cpu (H100)"), line(1, name="char-gpt"),
            line(1, who="JAX 1.0", device="NVIDIA H100 80GB HBM3")]


def scans(op, share):
    """Lines of three layers, whose median counts."""
    def line(of_copy, **more):
        return {"measure": "scan", "workload": "mamba-130m", "who": "tensorgrad", "op": op, "domain": "8*1024x1536x16",
                "us": 9, "moved": 2e6, "gb_per_s": 200, "of_copy": of_copy} | GPU | more
    return [line(share), line(0.01), line(99), line(0.1, **CPU), line(0.1, workload="mamba1"),
            line(0.1, op="ssd_scan"), line(0.1, who="other"),
            {"measure": "scan", "who": "mamba-ssm 2", "workload": "mamba-130m", "launch": op, "us": 1} | GPU]


def probed(workload, value, ours, who):
    def line(name, amount, **more):
        both = {"start_to_first_step_s": 1, "peak_rss_bytes": 1} | {value: amount}
        return {"measure": "probe", "workload": workload, "who": name} | both | CPU | more
    return [line("tensorgrad", ours), line(f"{who} 1.0", 1000), line("Other 1.0", 1), line("tensorgrad", 9000, **GPU),
            line(f"{who} 1.0", 1, workload="other"), line(f"{who} 1.0", 1, device="NVIDIA X"),
            line(f"{who} 0.9", 5000), line("tensorgrad", 9000, length=64)]


def busy(ratio):
    def line(who, us, taken):
        return {"measure": "busy core", "workload": "addition", "who": who, "mode": "step", "busy": taken,
                "us_per_step": us} | CPU
    return [line("tensorgrad", 100, False), line("tensorgrad", 100 * ratio, True), line("Peer", 1, False),
            line("Peer", 900, True)]


def compiled(ms, device):
    def line(first, device, **more):
        return {"measure": "compile", "workload": "addition", "who": "tensorgrad", "passes_ms": 1, "first_ms": first,
                "again_ms": 9000} | device | more
    if device is CPU:
        return [line(ms, CPU), line(9000, GPU, driver_cache="empty"), line(9000, GPU)]
    return [line(ms, GPU, driver_cache="filled"), line(9000, GPU, driver_cache="empty"), line(9000, GPU)]


def generated(value, threads=None):
    """Returns a function that makes lines from our speed over that of the best peer. Ours have only
    this time, because another goal uses the other."""
    def line(who, us, **more):
        times = {value: us} if who == "tensorgrad" else \
            {"prompt_us": 1, "token_us": 1} | {value.removeprefix("sampled_"): us}
        return {"measure": "generation", "workload": "g", "who": who, "weights": "int8", "threads": threads,
                "device": "cpu", "prompt_tokens": 9, "new_tokens": 9} | times | more
    if not threads:
        on = {"device": "vulkan", "threads": None, "batch": 64}
        return lambda speed: [line("tensorgrad", 1000 / speed, **on), line("A", 1000, **on), line("B", 2000, **on),
                              line("A", 1, **on | {"batch": 1}), line("A", 1), line("tensorgrad", 1)]
    return lambda speed: [line("tensorgrad", 1000 / speed), line("A", 1000), line("B", 2000),
                          line("A", 1, weights="f16"), line("A", 1, threads=3 - threads), line("tensorgrad", 1, **GPU)]


def called(workload, threads):
    def line(who, us, **more):
        return {"measure": "latency", "workload": workload, "who": who, "rows": 8, "threads": threads, "device": "cpu",
                "us": us, "cpu_us": 1} | more
    return lambda share: [line("tensorgrad", 1000 * share), line("A", 1000), line("B", 2000), line("A", 1, rows=64),
                          line("A", 1, threads=3 - threads), line("A", 1, workload="call")]


def over(workload, device, **peers):
    """Returns a function that makes lines of steps from the ratio of ours to the best peer, whose
    time is 1000."""
    return lambda share: steps(workload, device, 1000 * share, **peers)


# What, its goal, a function that makes lines with a given value, a value that meets the goal, and
# one that misses it.
GOALS = [
    ("mlp-sin, GPU", "at most 0.8", over("mlp-sin", GPU, JAX_scan=1000, PyTorch_graph=3000), 0.8, 0.804),
    ("addition, GPU", "at most 0.5", over("addition", GPU, JAX_scan=3000, PyTorch_graph=1000), 0.5, 0.504),
    ("mnist-cnn, GPU", "at most 0.7", over("mnist-cnn", GPU, JAX_scan=1000), 0.7, 0.704),
    ("char-gpt, GPU", "at most 1", over("char-gpt", GPU, PyTorch_graph=1000), 1, 1.004),
    *((f"{name}, GPU", f"at most {most}", over(name, GPU, PyTorch_graph=1000), most, most + 0.004)
      for name, most in (("gpt2", 1.05), ("gpt2-50k", 1.05), ("gpt-long", 1))),
    *((f"batches from the host over data of the device, {workload}, GPU", "at most 1.3", streamed(workload), 1.3, 1.304)
      for workload in ("mlp-sin", "mnist-cnn", "char-gpt")),
    ("launches of mlp-sin, GPU", "at most 8 launches", lambda n: launches("mlp-sin", n), 8, 9),
    ("launches of addition, GPU", "at most 75 launches", lambda n: launches("addition", n), 75, 76),
    ("launches of mnist-cnn, GPU", "at most 30 launches", lambda n: launches("mnist-cnn", n), 30, 31),
    *((f"speed of {what} in each weight format, GPU", "at least 1", generated(value), 1, 0.996)
      for what, value in (("a prompt", "prompt_us"), ("new tokens", "token_us"))),
    ("speed of each product, GPU", "at least 0.8", lambda share: on_a_gpu("1024x384x128", share), 0.8, 0.796),
    ("speed of each memory-bound launch over that of a copy, GPU, 16 MiB", "at least 0.85",
     lambda share: memory_bound("16 MiB", share), 0.85, 0.846),
    ("speed of each memory-bound launch over that of a copy, GPU, 128 MiB", "at least 0.85",
     lambda share: memory_bound("128 MiB", share), 0.85, 0.846),
    ("compiling addition, GPU, kernels in the driver's cache", "at most 500 ms", lambda ms: compiled(ms, GPU),
     500, 501),
    ("mlp-sin, CPU, over JAX's scan", "at most 0.7",
     over("mlp-sin", CPU, JAX_scan=1000, JAX_jit=10, PyTorch_scan=10), 0.7, 0.704),
    ("addition, CPU, over LibTorch", "at most 0.7",
     over("addition", CPU, LibTorch_fused=1000, PyTorch_fused=10, JAX_scan=10), 0.7, 0.704),
    ("mnist-cnn, CPU, over PyTorch eager", "at most 0.5",
     over("mnist-cnn", CPU, PyTorch_eager=1000, PyTorch_fused=10, LibTorch_eager=10), 0.5, 0.504),
    ("char-gpt-small, CPU, over LibTorch", "at most 0.8",
     over("char-gpt-small", CPU, LibTorch_fused=1000, PyTorch_fused=10), 0.8, 0.804),
    *((f"speed of each product up to 128 cubed, {cores}", "at least 1",
       lambda share, size=size, threads=threads: on_cores(threads, size, share), 1, 0.996)
      for threads, cores in ((1, "one core"), (2, "two cores")) for size in ("64x64x64", "128x128x128")),
    *((f"speed of each larger product, {cores}", "at least 0.9",
       lambda share, size=size, threads=threads: on_cores(threads, size, share), 0.9, 0.896)
      for threads, cores in ((1, "one core"), (2, "two cores"))
      for size in ("256x256x256", "512x512x512", "1024x1024x1024", "128x256x784")),
    ("cold start of addition, CPU, over PyTorch", "at most 0.05",
     lambda share: probed("addition", "start_to_first_step_s", 1000 * share, "PyTorch"), 0.05, 0.054),
    ("resident memory of char-gpt-small, CPU, over LibTorch", "at most 0.3",
     lambda share: probed("char-gpt-small", "peak_rss_bytes", 1000 * share, "LibTorch"), 0.3, 0.304),
    ("slowdown of a step by a busy core, CPU", "at most 2.5", busy, 2.5, 2.504),
    ("compiling addition, CPU", "at most 150 ms", lambda ms: compiled(ms, CPU), 150, 151),
    *((f"peak memory of {name}, GPU, over PyTorch", "at most 0.9",
       lambda ratio, name=name: peak_memory(ratio, name), 0.9, 0.904)
      for name in ("char-gpt", "gpt2", "gpt2-50k", "gpt-long")),
    *((f"{name} with f16x3, GPU, over PyTorch", f"at most {most:g}",
       over(f"{name} (f16x3)", GPU, **{"PyTorch_graph": 1000, "PyTorch with TF32_graph": 400, "JAX_scan": 10}),
       most, most + 0.004)
      for name, most in (("char-gpt", 1.0), ("gpt2", 1.05), ("gpt2-50k", 1.05), ("gpt-long", 1.0))),
    *((f"{name} in mixed precision, GPU, over PyTorch", f"at most {most}",
       over(f"{name} (mixed precision)", GPU, **{"PyTorch_graph": 3000, "PyTorch_mamba-ssm": 1000, "JAX_scan": 10}),
       most, most + 0.004)
      for name, most in (("char-gpt", 1.3), ("gpt2", 1.5), ("gpt2-50k", 1.5), ("gpt-long", 1.5), ("mamba-130m", 1.2))),
    *((f"peak memory of {name} in mixed precision, GPU, over PyTorch", "at most 0.9",
       lambda ratio, name=name: peak_memory(ratio, f"{name} (mixed precision)"), 0.9, 0.904)
      for name in ("char-gpt", "gpt2", "gpt2-50k", "gpt-long", "mamba-130m")),
    *((f"throughput of {name} on two GPUs over one", "at least 1.8",
       lambda value, name=name: on_ranks(value, name), 1.8, 1.796) for name in ("char-gpt", "gpt2")),
    ("char-gpt in mixed precision, H100", "at most 11 ms", mixed, 11, 11.1),
    ("mamba1, CPU, over PyTorch eager", "at most 0.25",
     over("mamba1", CPU, PyTorch_eager=1000, PyTorch_compile=10, LibTorch_eager=10), 0.25, 0.254),
    ("mamba1, CPU, over JAX", "at most 1", over("mamba1", CPU, JAX_jit=1000, JAX_scan=3000, PyTorch_compile=10), 1,
     1.004),
    *((f"speed of {what} in each weight format, {cores}", "at least 1", generated(value, threads), 1, 0.996)
      for threads, cores in ((1, "one core"), (2, "two cores"))
      for what, value in (("a prompt", "prompt_us"), ("new tokens", "token_us"))),
    *((f"latency of {workload}, {cores}", "at most 1", called(workload, threads), 1, 1.004)
      for threads, cores in ((1, "one core"), (2, "two cores")) for workload in ("mlp", "cnn")),
    ("mamba-130m, GPU, over PyTorch", "at most 1",
     over("mamba-130m", GPU, **{"PyTorch_eager": 3000, "PyTorch_compile": 1000, "PyTorch_mamba-ssm": 10,
                                "PyTorch_mamba-ssm-cuda-graph": 10, "JAX_scan": 10}), 1, 1.004),
    *(("speed of each selective scan of mamba-130m over that of a copy, GPU", "at least 0.6",
       lambda share, op=op: scans(op, share), 0.6, 0.596) for op in ("selective_scan", "selective_scan_grad"))]


class BenchGoals(unittest.TestCase):
    def rows(self, lines):
        """Returns [what, ours, goal, met?] from the first table of the page, or nothing if there is
        no such table."""
        text = tables.markdown([RUN, *lines])
        if "### Goals" not in text:
            return []
        self.assertEqual(text.index("### "), text.index("### Goals"))
        rows = text[text.index("### Goals"):].split("\n\n")[2].splitlines()
        self.assertEqual(rows[0], "| workload | ours over the best peer | goal | met? |")
        return [row.strip("| ").split(" | ") for row in rows[2:]]

    def row(self, what, lines):
        """Returns the row of this goal. There must be no other, except launches and times, which
        the steps of any goal have."""
        rows = [row for row in self.rows(lines)
                if row[0] == what or not (row[0].startswith("launches") or row[0] in what)]
        self.assertIn([row[0] for row in rows], ([], [what]))
        return rows[0] if rows else None

    def test_a_goal_is_met_at_its_bound_and_missed_beyond_it(self):
        for what, goal, lines, met, missed in GOALS:
            for far, said in ((met, "yes"), (missed, "no")):
                with self.subTest(what, far=far):
                    _, ours, *rest = self.row(what, lines(far))
                    self.assertEqual(rest, [goal, said])
                    self.assertAlmostEqual(float(ours.split()[0]), far)

    def test_there_is_no_goal_that_is_not_tried_here(self):
        self.assertEqual({goal.what for goal in goals.GOALS}, {goal[0] for goal in GOALS})

    def test_the_peer_that_a_goal_is_held_to_is_named(self):
        self.assertEqual(self.row("addition, GPU", steps("addition", GPU, 480, JAX_scan=1000, PyTorch_graph=2000))[1],
                         "0.48 (JAX 1.0, scan)")
        self.assertEqual(self.row("speed of each product, GPU", on_a_gpu("8x8x8", 0.9))[1], "0.90 (PyTorch 1.0)")

    def test_of_several_things_each_that_misses_is_named(self):
        products = on_a_gpu("8x8x8", 0.9) + on_a_gpu("7x7x7", 1.2)
        self.assertEqual(self.rows(products),
                         [["speed of each product, GPU", "0.90 to 1.20", "at least 0.8", "yes, all 2"]])
        self.assertEqual(self.rows(products + on_a_gpu("9x9x9", 0.7))[0][1:],
                         ["0.70 to 1.20", "at least 0.8", "no, 1 of 3: 9x9x9 dy w 0.70"])
        norm = memory_bound("16 MiB", 0.9)
        slow = [line | {"launch": "slow", "gb_per_s": 500} for line in norm if line["launch"] == "norm"]
        self.assertEqual(self.rows(norm + slow)[0][1:],
                         ["0.50 to 0.90", "at least 0.85", "no, 1 of 2: norm: slow 0.50"])

    def test_products_on_one_core_and_on_two_are_held_each_to_peers_on_as_many(self):
        def both(threads, ours, peer):
            return [product(who, "64x64x64", speed, threads=threads)
                    for who, speed in (("tensorgrad", ours), ("A", peer))]
        self.assertEqual(self.rows(both(1, 100, 80) + both(2, 90, 100)),
                         [["speed of each product up to 128 cubed, one core", "1.25 (A)", "at least 1", "yes"],
                          ["speed of each product up to 128 cubed, two cores", "0.90 (A)", "at least 1", "no"]])

    def test_a_scan_that_misses_is_named(self):
        name, goal = "speed of each selective scan of mamba-130m over that of a copy, GPU", "at least 0.6"
        self.assertEqual(self.rows(scans("selective_scan", 0.63) + scans("selective_scan_grad", 0.4)),
                         [[name, "0.40 to 0.63", goal, "no, 1 of 2: selective_scan_grad 0.40"]])

    def test_mixed_precision_is_held_to_its_goal_on_an_h100_alone(self):
        self.assertEqual(self.rows(line for line in mixed(10.895) if "H100" not in line["device"]), [])
        self.assertEqual(self.rows(mixed(10.895)),
                         [["char-gpt in mixed precision, H100", "10.9 ms", "at most 11 ms", "yes"]])

    def test_the_median_of_rounds_decides(self):
        lines = [line for us in (100, 900, 700) for line in steps("mnist-cnn", GPU, us, JAX_scan=1000)]
        self.assertEqual(self.row("mnist-cnn, GPU", lines)[1:], ["0.70 (JAX 1.0, scan)", "at most 0.7", "yes"])

    def test_a_goal_whose_peer_or_measurement_is_absent_is_left_out(self):
        self.assertEqual(self.rows([]), [])
        for what, goal, lines, met, _ in GOALS:
            with self.subTest(what):
                def of_ours(line):
                    return line["who"].startswith(tables.OURS)
                of_itself = any(word in what for word in ("launches", "copy", "busy", "compiling", "H100", "batches",
                                                          "throughput"))
                self.assertEqual(self.row(what, filter(of_ours, lines(met))) is not None, of_itself)
                self.assertEqual(self.rows(line for line in lines(met) if not of_ours(line)), [])
        copies = [line for line in memory_bound("16 MiB", 0.9) if line["what"] != "copy"]
        self.assertEqual(self.rows(copies), [])


if __name__ == "__main__":
    unittest.main()
