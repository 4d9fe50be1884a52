# SPDX-License-Identifier: MIT
"""PyTorch's copy_ and its sum of a matrix of f32 that is as large as those of `tg_bench --only memory`,
within the memory of the device."""
import argparse
import json

import torch

from torch_gemm import cpu_microseconds, gpu_microseconds

COLUMNS, CPU_ROWS, GPU_ROWS = 1024, 16384, 32768


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=0, help="on the CPU; 0: as PyTorch has it")
    args = parser.parse_args()
    gpu = torch.cuda.is_available()
    more = {"device": torch.cuda.get_device_name()} if gpu else {"device": "cpu"}
    if args.threads and not gpu:
        torch.set_num_threads(args.threads)
        more["threads"] = args.threads
    source = torch.rand(GPU_ROWS if gpu else CPU_ROWS, COLUMNS, device="cuda" if gpu else "cpu") * 2 - 1
    target = torch.empty_like(source)
    once = source.numel() * source.element_size()
    for what, call, moved in (("copy_", lambda: target.copy_(source), 2 * once), ("sum", source.sum, once)):
        us = (gpu_microseconds if gpu else cpu_microseconds)(call)
        print(json.dumps({"workload": "memory", "who": f"PyTorch {torch.__version__}", "what": what,
                          "bytes": moved, "us": round(us, 2), "gb_per_s": round(moved / us / 1000, 2), **more}))


if __name__ == "__main__":
    main()
