"""Trains GPT-2 of transformers as a pipeline of as many stages as torchrun starts processes, or more.

    torchrun --nproc-per-node 4 gpt2.py --size gpt2-large --cluster a100_sxm4_80gb_x8    # cards
    torchrun --nproc-per-node 2 gpt2.py --size tiny                                      # processors

Several hosts: several_hosts.sbatch. Weights are random; GPT2LMHeadModel.from_pretrained() in place of them trains on.
"""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint
from transformers import GPT2Config, GPT2LMHeadModel

import pfeife

SIZES = {  # width, layers, heads, tokens
    "tiny": (64, 4, 4, 32),
    "gpt2": (768, 12, 12, 1024),
    "gpt2-large": (1280, 36, 20, 1024),
    "gpt2-xl": (1600, 48, 25, 1024),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="gpt2-large")
    parser.add_argument("--cluster", help="a name of pfeife.cluster_names(), or a file; absent: equal devices")
    parser.add_argument("--samples", type=int, default=32, help="of a step")
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", help="where a checkpoint goes")
    return parser.parse_args()


def batches(asked, vocabulary, tokens):
    """Your data loader: the same whole batch on every rank. Here numbers that a model can learn."""
    random = torch.Generator().manual_seed(1)
    for _ in range(asked.steps):
        first = torch.randint(vocabulary, (asked.samples, 1), generator=random)
        ids = (first + torch.arange(tokens)) % vocabulary
        yield {"input_ids": ids, "labels": ids}


def main():
    asked = options()
    on_cards = torch.cuda.is_available()
    if on_cards:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = "cuda" if on_cards else "cpu"
    dist.init_process_group("nccl" if on_cards else "gloo")
    width, layers, heads, tokens = SIZES[asked.size]
    config = GPT2Config(n_embd=width, n_layer=layers, n_head=heads, n_positions=tokens, use_cache=False)
    torch.manual_seed(0)  # the same weights on every rank
    model = GPT2LMHeadModel(config)
    precision = "bf16_amp" if on_cards else "fp32"
    cluster = asked.cluster or pfeife.uniform_cluster(
        dist.get_world_size(), memory="24 GiB", peak={"bf16" if on_cards else "fp32": "50 TFLOP/s"}, memory_bandwidth="500 GB/s", bandwidth="20 GB/s"
    )
    first = next(batches(asked, config.vocab_size, tokens))
    plan = pfeife.plan(
        model, first, cluster, devices=dist.get_world_size(), microbatches=asked.microbatches, precision=precision, recompute="if_needed"
    )
    pipe = pfeife.Pipeline(model, plan, device=device)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=3e-4)
    if dist.get_rank() == 0:
        print(plan)
    for step, batch in enumerate(batches(asked, config.vocab_size, tokens)):
        with torch.autocast(device, torch.bfloat16) if on_cards else contextlib.nullcontext():
            loss = pipe.step(**batch)
        pipe.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss:.6f}", flush=True)
    if asked.folder:  # under the names of the unsplit model: any plan, or GPT2LMHeadModel itself, loads it
        dist.checkpoint.save(pipe.state_dict(), checkpoint_id=asked.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
