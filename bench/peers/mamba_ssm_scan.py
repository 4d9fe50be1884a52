# SPDX-License-Identifier: MIT
"""The fused selective scan of mamba-ssm for a layer of mamba-130m: prints a JSON line per kernel
with its microseconds on the GPU (CUPTI). Compare with selective_scan and selective_scan_grad of
`tg_bench --device webgpu --modes run --only mamba-130m --profile`.

Needs the package: `pip install --no-build-isolation mamba-ssm`, on a machine with nvcc.
"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import mamba_ssm
from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
from workloads import WORKLOADS

STATES, TURNS = 16, 20


def drawn(*size, low=-1.0, high=1.0):
    return torch.empty(*size, device="cuda").uniform_(low, high).requires_grad_()


def main():
    shape = WORKLOADS["mamba-130m"]
    batch, length, inner = shape.batch, shape.length, 2 * shape.width
    inputs = (drawn(batch, inner, length), drawn(batch, inner, length, low=0.01, high=0.4),
              drawn(inner, STATES, low=-2, high=-0.1), drawn(batch, 1, STATES, length),
              drawn(batch, 1, STATES, length))
    weight = drawn(batch, inner, length).detach()

    def turn():
        torch.autograd.grad((selective_scan_fn(*inputs) * weight).sum(), inputs)

    for _ in range(3):
        turn()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(TURNS):
            turn()
        torch.cuda.synchronize()
    for event in profiled.key_averages():
        if "selective_scan" in event.key and event.device_time_total > 0:
            name = "selective_scan_grad" if "bwd" in event.key else "selective_scan"
            print(json.dumps({"measure": "scan", "who": f"mamba-ssm {mamba_ssm.__version__}", "launch": name,
                              "device": torch.cuda.get_device_name(),
                              "domain": f"{batch}*{length}x{inner}x{STATES}",
                              "us": round(event.device_time_total / event.count, 2)}))


if __name__ == "__main__":
    sys.exit(main())
