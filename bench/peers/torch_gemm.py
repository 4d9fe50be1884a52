# SPDX-License-Identifier: MIT
"""cuBLAS, through PyTorch, on the products that `tg_bench --device webgpu --only gemm` times."""
import json
import statistics

import torch

SIZES = [(1024, 384, 128), (4096, 4096, 4096), (16384, 384, 384), (16384, 1152, 384),
         (16384, 384, 1536), (16384, 1536, 384)]


def microseconds(product, times=9, calls=20):
    """Median over `times` of the GPU's time for one of `calls` calls in a row."""
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


def main():
    if not torch.cuda.is_available():
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    for m, n, k in SIZES:
        x, w, dy = (torch.randn(size, device="cuda") for size in ((m, k), (n, k), (m, n)))
        products = {"x w^T": lambda: x @ w.T, "dy w": lambda: dy @ w, "dy^T x": lambda: dy.T @ x}
        for name, product in products.items():
            us = microseconds(product)
            print(json.dumps({"workload": "gemm", "size": f"{m}x{n}x{k}", "product": name,
                              "who": f"PyTorch {torch.__version__}",
                              "device": torch.cuda.get_device_name(), "us": round(us, 2),
                              "gflops": round(2 * m * n * k / us / 1000, 1)}))


if __name__ == "__main__":
    main()
