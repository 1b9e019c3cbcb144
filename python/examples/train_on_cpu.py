"""Trains a small network as a pipeline over processes of this machine, which needs no card.

    torchrun --nproc-per-node 2 train_on_cpu.py
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import pfeife

STEPS, SAMPLES, WIDTH = 20, 32, 64


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x, y):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return F.cross_entropy(self.head(x), y)


def batches():
    """The same on every rank: numbers whose first four say the class."""
    random = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        x = torch.randn(SAMPLES, WIDTH, generator=random)
        yield {"x": x, "y": x[:, :4].argmax(1)}


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)  # the same weights on every rank
    model, ranks = Network(), dist.get_world_size()
    processes = pfeife.uniform_cluster(ranks, memory="1 GiB", peak={"fp32": "50 GFLOP/s"}, memory_bandwidth="10 GB/s", bandwidth="1 GB/s")
    plan = pfeife.plan(model, next(batches()), processes, microbatches=8)
    pipe = pfeife.Pipeline(model, plan)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=3e-3)
    if dist.get_rank() == 0:
        print(plan)
    for step, batch in enumerate(batches()):
        loss = pipe.step(**batch)
        pipe.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
