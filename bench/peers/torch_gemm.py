# SPDX-License-Identifier: MIT
"""PyTorch's f32 products (cuBLAS; MKL or oneDNN on a CPU) with the sizes of `tg_bench --only gemm`."""
import json
import statistics
import time

import torch

GPU_SIZES = [(1024, 384, 128), (4096, 4096, 4096), (16384, 384, 384), (16384, 1152, 384),
             (16384, 384, 1536), (16384, 1536, 384)]
CPU_SIZES = [(64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
             (128, 256, 784), (256, 784, 128)]


def gpu_microseconds(product, times=9, calls=20):
    """Returns the median over `times` of the GPU time of one of `calls` consecutive calls."""
    product()
    results = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            product()
        end.record()
        torch.cuda.synchronize()
        results.append(start.elapsed_time(end) * 1000 / calls)
    return statistics.median(results)


def cpu_microseconds(product, seconds=0.5):
    """Returns the median of calls that fill the time."""
    for _ in range(10):
        product()
    results, deadline = [], time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(results) < 5:
        start = time.perf_counter()
        product()
        results.append((time.perf_counter() - start) * 1e6)
    return statistics.median(results)


def report(size, us, **more):
    m, n, k = size
    print(json.dumps({"workload": "gemm", "size": f"{m}x{n}x{k}", "who": f"PyTorch {torch.__version__}",
                      "us": round(us, 2), "gflops": round(2 * m * n * k / us / 1000, 1), **more}), flush=True)


def on_gpu():
    torch.backends.cuda.matmul.allow_tf32 = False
    for m, n, k in GPU_SIZES:
        x, w, dy = (torch.randn(size, device="cuda") for size in ((m, k), (n, k), (m, n)))
        products = {"x w^T": lambda: x @ w.T, "dy w": lambda: dy @ w, "dy^T x": lambda: dy.T @ x}
        for name, product in products.items():
            report((m, n, k), gpu_microseconds(product), product=name, device=torch.cuda.get_device_name())


def on_cpu():
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for m, n, k in CPU_SIZES:
            a, b, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
            report((m, n, k), cpu_microseconds(lambda: torch.mm(a, b, out=out)), threads=threads)


if __name__ == "__main__":
    on_gpu() if torch.cuda.is_available() else on_cpu()
