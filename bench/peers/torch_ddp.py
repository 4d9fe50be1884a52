# SPDX-License-Identifier: MIT
"""PyTorch's DistributedDataParallel on the workloads of tg_bench: one JSON line per workload and mode.

Each rank is a process with a GPU of its own, and trains the workload's whole batch. Gradients are
exchanged by NCCL. Every line also has the time of one rank without DistributedDataParallel.
"""
import argparse
import json
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import torch_steps
import workloads

MODES = ["fused", "compile"]
BATCHES = 7  # of steps that are timed together; the median counts


def stepper(name, mode, device, ranks):
    """Returns a function that runs one step, the number of parameters, and the bytes of gradients."""
    model, loss, optimizer = torch_steps.built(name, mode, device)
    parameters = list(model.parameters())
    optimizer = optimizer(parameters, lr=workloads.LEARNING_RATE, fused=True)
    clip = workloads.WORKLOADS[name].clip
    net = model
    if ranks > 1:
        ids = [device.index] if device.type == "cuda" else None
        net = DistributedDataParallel(model, device_ids=ids, gradient_as_bucket_view=True)
    if "compile" in mode:
        net = torch.compile(net)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(net).backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()

    return step, sum(p.numel() for p in parameters), sum(p.numel() * p.element_size() for p in parameters)


def timed(step, wait, seconds, agree):
    """Returns the median microseconds of a step. All ranks run as many steps as agree() returns."""
    for _ in range(5):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(3):
        step()
    wait()
    count = agree(max(1, int(seconds / BATCHES / ((time.perf_counter() - start) / 3))))
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(count):
            step()
        wait()
        times.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(times)


def run(rank, options, port, name, mode, answers):
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    torch.manual_seed(rank)
    ranks = answers["ranks"]
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("nccl" if gpu else "gloo", rank=rank, world_size=ranks)

    def wait():
        if gpu:
            torch.cuda.synchronize()
        if ranks > 1:
            dist.barrier()

    def agree(count):
        if ranks == 1:
            return count
        shared = torch.tensor([count], device=device)
        dist.broadcast(shared, 0)
        return int(shared.item())

    step, parameters, size = stepper(name, mode, device, ranks)
    us = timed(step, wait, options.seconds, agree)
    if rank == 0:
        answers.update(us=us, parameters=parameters, bytes=size,
                       device=torch.cuda.get_device_name() if gpu else "cpu")
    if ranks > 1:
        dist.destroy_process_group()


def measured(options, name, mode, ranks):
    """Returns what rank 0 measured, each rank in a fresh process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with multiprocessing.Manager() as manager:
        answers = manager.dict(ranks=ranks)
        multiprocessing.spawn(run, (options, port, name, mode, answers), nprocs=ranks)
        return dict(answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="char-gpt,gpt2", help="workloads")
    parser.add_argument("--modes", default=",".join(MODES), help=f"subset of {', '.join(MODES)}")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="time for each measurement")
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    if 0 < gpus < options.ranks:
        parser.error(f"--ranks: {options.ranks} ranks need as many GPUs, there are {gpus}")
    for name in options.only.split(","):
        if name not in workloads.WORKLOADS:
            parser.error(f"unknown workload '{name}'; available: {', '.join(workloads.WORKLOADS)}")
        for mode in options.modes.split(","):
            if mode not in MODES:
                parser.error(f"unknown mode '{mode}'; available: {', '.join(MODES)}")
            one, all_ranks = (measured(options, name, mode, ranks) for ranks in (1, options.ranks))
            print(json.dumps({
                "measure": "distributed", "workload": name, "mode": mode,
                "who": f"{torch_steps.WHO}, DistributedDataParallel", "device": all_ranks["device"],
                "parameters": all_ranks["parameters"], "ranks": options.ranks,
                "gpus": min(gpus, options.ranks), "us_per_step": round(all_ranks["us"], 2),
                "us_of_one_rank": round(one["us"], 2),
                "throughput": round(options.ranks * one["us"] / all_ranks["us"], 4),
                "exchanged_bytes": all_ranks["bytes"]}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
