# SPDX-License-Identifier: MIT
"""bench/tables.py: what becomes of lines, which are refused, and how a page is updated."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
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
    def test_medians_of_rounds_and_the_ratio_to_the_best_peer(self):
        text = tables.markdown(LINES)
        self.assertIn("| tiny | 110 (run) | 220 (Peer, quick) | 0.50 | 0.25 to 0.60 |", text)
        self.assertIn("| tiny | cpu | run | 110 | 3 | 4,096 | 0.7 | 1.5 |", text)
        self.assertIn("Measured on 2026-01-02 with `./dev bench --peers`, 2 rounds", text)
        self.assertIn("Beside: Peer 1.", text)

    def test_every_run_is_named_that_lines_come_from(self):
        gpu = {"device": "webgpu (A GPU); webgpu: asked for", "driver": "wgpu-native 1, Vulkan, driver 2"}
        other = {"run": RUN["run"] | {"date": "2026-01-03", "rounds": 1, "commit": "def"}}
        text = tables.markdown([*LINES, other, step("tensorgrad", "run", 90, 0, workload="small", **gpu)])
        self.assertIn("Measured in 2 runs;", text)
        self.assertIn("- steps of tiny; probe; busy core; scaling: on 2026-01-02 with", text)
        self.assertIn("- steps of small: on 2026-01-03 with `./dev bench --peers`, 1 round by turns, medians: "
                      "a machine. Commit def. webgpu (A GPU): wgpu-native 1, Vulkan, driver 2. Beside: Peer 1.", text)
        self.assertIn("Nothing says where the rest", tables.markdown([LINES[1], *LINES]))
        self.assertTrue(tables.markdown(LINES[1:]).startswith("Nothing says where these lines come from."))

    def test_rounds_of_several_runs_are_not_mixed_in_ratios(self):
        text = tables.markdown([*LINES, RUN, step("tensorgrad", "run", 110, 0), step("Peer", "quick", 110, 0)])
        self.assertIn("| 0.25 to 1.00 |", text)

    def test_what_the_host_does_has_columns_where_it_is_known(self):
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

    def test_launches_bound_by_memory_are_set_beside_our_copy(self):
        def launch(who, what, us, **more):
            return {"workload": "memory", "who": who, "device": "cpu (X, 2 threads)", "threads": 2, "what": what,
                    "bytes": 2e7, "us": us, "gb_per_s": 2e4 / us} | more
        text = tables.markdown([RUN, launch("tensorgrad", "copy", 1000, launch="copy"),
                                launch("tensorgrad", "softmax forward", 2000, launch="softmax"),
                                launch("Peer 1", "copy_", 800, device="cpu")])
        self.assertIn("| softmax forward | softmax | cpu (X, 2 threads) | 20.0 MB | 2,000 | 10 | 0.50 |", text)
        self.assertIn("| Peer 1, copy_ |  | cpu, 2 threads | 20.0 MB | 800 | 25 | 1.25 |", text)

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

    def test_peak_memory_where_a_peer_tells_its_own(self):
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
        self.assertIn("tiny: not the same model", str(refused.exception))

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

    def test_the_command_that_is_kept_has_no_paths(self):
        words = ["--build", "x", "--peers", "/x/python", "--rounds", "2", "--out=/x/y", "--only", "addition"]
        self.assertEqual(run.own_command(words), "./dev bench --peers --rounds 2 --only addition")

    def test_the_runner_refuses_what_it_does_not_know(self):
        for option in ("--parts", "--only"):
            result = subprocess.run([sys.executable, "-B", ROOT / "bench/run.py", option, "nothing"],
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn("there is no nothing", result.stderr)


if __name__ == "__main__":
    unittest.main()
