"""Train a small model on CPUs with four processes, of which one loads its data more slowly than the others.

    python -m whywait.demo.train DIRECTORY

Each process writes what PyTorch's profiler records of three steps to the directory; ``whywait analyze DIRECTORY`` says
who makes the others wait. It needs PyTorch, but no GPU.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

RANKS, SLOW = 4, 2
# What an item takes to load, in seconds, on most ranks and on the slow one.
USUAL, LONG = 0.0005, 0.005
BATCH, STEPS = 8, 6


class Samples(Dataset):
    """Random samples that take some time to load."""

    def __init__(self, rank: int) -> None:
        self._time = LONG if rank == SLOW else USUAL

    def __len__(self) -> int:
        return BATCH * STEPS

    def __getitem__(self, _: int) -> torch.Tensor:
        time.sleep(self._time)
        return torch.randn(64)


def train(rank: int, directory: str) -> None:
    """Train on one rank, and write its trace."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29511")}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    written = Path(directory, f"rank{rank}.pt.trace.json.gz")
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=2, active=STEPS - 3),
        on_trace_ready=lambda done: done.export_chrome_trace(str(written)),
        record_shapes=True,
    ) as profiler:
        for batch in DataLoader(Samples(rank), batch_size=BATCH):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    processes.spawn(train, (sys.argv[1],), nprocs=RANKS)
