# SPDX-License-Identifier: MIT
"""onnxruntime's time of a call of each classifier that `tg_bench --write-models` exported.

Prints lines as `tg_bench --only latency` does. Inputs and outputs are bound once, which is the
fastest call that the Python package has. Fails if the outputs differ from ours.
"""

import argparse
import json
import pathlib
import resource
import statistics
import time

import numpy
import onnxruntime

WHO = f"onnxruntime {onnxruntime.__version__}"
MOST_DIFFERENCE = 1e-4


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(path, threads, seconds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = numpy.load(path.with_suffix(".npz"))
    x, want = arrays["x"], arrays["y"]
    name, rows = path.stem.split("-")
    out = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros_like(want))
    binding = session.io_binding()
    binding.bind_cpu_input(session.get_inputs()[0].name, x)
    binding.bind_ortvalue_output(session.get_outputs()[0].name, out)
    session.run_with_iobinding(binding)
    difference = float(numpy.abs(out.numpy() - want).max())
    if not difference <= MOST_DIFFERENCE:
        raise SystemExit(f"{path.name}: outputs differ by {difference:.3g}; expected at most {MOST_DIFFERENCE}")
    warm = time.perf_counter()
    while time.perf_counter() - warm < seconds * 0.2:
        session.run_with_iobinding(binding)
    times, start, before = [], time.perf_counter(), cpu_seconds()
    while time.perf_counter() - start < seconds or len(times) < 5:
        called = time.perf_counter()
        session.run_with_iobinding(binding)
        times.append(time.perf_counter() - called)
    cpu = (cpu_seconds() - before) / len(times)
    print(json.dumps({"measure": "latency", "workload": name, "who": WHO, "device": "cpu", "rows": int(rows),
                      "us": round(statistics.median(times) * 1e6, 2), "cpu_us": round(cpu * 1e6, 2),
                      "difference": float(f"{difference:.3g}")}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=pathlib.Path, help="the folder of tg_bench --write-models")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    for name in ("call", "mlp", "cnn"):
        for path in sorted(args.models.glob(f"{name}-*.onnx"), key=lambda path: int(path.stem.split("-")[1])):
            measure(path, args.threads, args.seconds / 4)


if __name__ == "__main__":
    main()
