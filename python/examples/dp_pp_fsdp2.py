"""Pipelines beside each other whose stages are sharded (FSDP2): ranks are replicas x stages.

    torchrun --nproc-per-node 8 dp_pp_fsdp2.py --stages 4    # 2 replicas of 4 stages
    torchrun --nproc-per-node 4 dp_pp_fsdp2.py --stages 2    # also on processors
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import pfeife

STEPS, SAMPLES, WIDTH = 20, 16, 64
# Of 1F1B, interleaved or not, every backward is whole, as FSDP2 wants it: it gathers and reduces in hooks of backwards.
FAMILIES = ["1f1b", "interleaved_1f1b"]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x, y):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return F.cross_entropy(self.head(x), y)


def batches(replica):
    """Each replica has its own samples; all ranks of one pipeline get the same."""
    random = torch.Generator().manual_seed(replica)
    for _ in range(STEPS):
        x = torch.randn(SAMPLES, WIDTH, generator=random)
        yield {"x": x, "y": x[:, :4].argmax(1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, default=2)
    stages = parser.parse_args().stages
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    mesh = init_device_mesh(device, (dist.get_world_size() // stages, stages), mesh_dim_names=("dp", "pp"))
    torch.manual_seed(0)
    model = Network()
    devices = pfeife.uniform_cluster(stages, memory="1 GiB", peak={"fp32": "50 GFLOP/s"}, memory_bandwidth="10 GB/s", bandwidth="1 GB/s")
    replica = mesh["dp"].get_local_rank()
    plan = pfeife.plan(model, next(batches(replica)), devices, microbatches=8, families=FAMILIES)
    pipe = pfeife.Pipeline(model, plan, device=device, group=mesh["pp"], shard=mesh["dp"])
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=3e-3)
    for step, batch in enumerate(batches(replica)):
        loss = pipe.step(**batch)  # the mean over all replicas
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
