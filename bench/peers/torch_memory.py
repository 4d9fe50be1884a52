# SPDX-License-Identifier: MIT
"""PyTorch's copy_ and sum, and layer norm and RMS norm with weights, forward and backward. The f32
matrices have the sizes of `tg_bench --only memory`, in device memory."""
import argparse
import ctypes
import json

import torch
from torch.nn import functional as F

from torch_gemm import cpu_microseconds, gpu_microseconds

COLUMNS, CPU_MIB, GPU_MIB = 1024, (16, 64), (16, 128)
CALLS = 20  # per CUDA graph


def keep_freed_memory():
    """Stops glibc from returning large blocks to the system, which clears them again for the next
    call. That would take most of the time of a call. Our results are in preallocated buffers."""
    trim_threshold, mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(mmap_max, 0)
        libc.mallopt(trim_threshold, 2**31 - 1)


def captured_microseconds(call):
    """Returns the time of one of several calls in a CUDA graph. A graph excludes the host, which
    can limit short calls."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for _ in range(CALLS):
            call()
    return gpu_microseconds(graph.replay, calls=1) / CALLS


def without_gradients(call):
    def called():
        with torch.no_grad():
            call()
    return called


def norms(source, dy):
    """Yields (what, a call, the number of matrices it moves). Backward: gradients of x, weight and
    bias from dy."""
    x = source.clone().requires_grad_()
    weight, bias = (value.requires_grad_() for value in (
        torch.ones(COLUMNS, device=source.device), torch.zeros(COLUMNS, device=source.device)))
    for name, given, norm in (
            ("layer_norm with weight and bias", (x, weight, bias), lambda: F.layer_norm(x, (COLUMNS,), weight, bias)),
            ("rms_norm with weight", (x, weight), lambda: F.rms_norm(x, (COLUMNS,), weight))):
        yield f"{name} forward", without_gradients(norm), 2
        y = norm()
        yield f"{name} backward", lambda: torch.autograd.grad(y, given, dy, retain_graph=True), 3


def calls(source):
    target = torch.empty_like(source)
    yield "copy_", lambda: target.copy_(source), 2
    yield "sum", source.sum, 1
    yield from norms(source, torch.full_like(source, 0.5))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=0, help="threads on the CPU; 0: PyTorch's default")
    args = parser.parse_args()
    gpu = torch.cuda.is_available()
    more = {"device": torch.cuda.get_device_name()} if gpu else {"device": "cpu"}
    if args.threads and not gpu:
        torch.set_num_threads(args.threads)
        more["threads"] = args.threads
    keep_freed_memory()
    if gpu:  # capture needs a non-default stream; a backward pass runs on its forward pass's stream
        torch.cuda.set_stream(torch.cuda.Stream())
    for mib in GPU_MIB if gpu else CPU_MIB:
        source = torch.rand((mib << 20) // (4 * COLUMNS), COLUMNS, device="cuda" if gpu else "cpu") * 2 - 1
        once = source.numel() * source.element_size()
        for what, call, matrices in calls(source):
            us = (captured_microseconds if gpu else cpu_microseconds)(call)
            moved = matrices * once
            print(json.dumps({"workload": "memory", "who": f"PyTorch {torch.__version__}", "what": what,
                              "matrix": f"{mib} MiB", "bytes": moved, "us": round(us, 2),
                              "gb_per_s": round(moved / us / 1000, 2), **more}), flush=True)


if __name__ == "__main__":
    main()
