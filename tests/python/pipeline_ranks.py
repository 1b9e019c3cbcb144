"""Ranks in processes of this machine that train models as pipelines and compare them with the plain modules.

Usage: pipeline_ranks.py RANKS FOLDER: runs every case of that many ranks; FOLDER/rankR.json has what rank R found, by case.
test_pipeline.py judges it. Processes are forked after torch is loaded, and run all cases one after the other.
"""

import datetime
import io
import json
import os
import re
import sys
import traceback
import zlib
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import pfeife
from pfeife._pipeline import Pipeline
from pfeife._stages import Moment, draws

SEED = 7
CLUSTER = dict(memory="1 GiB", peak={"fp32": "1 TFLOP/s"}, gemm_efficiency={"fp32": [["0.001 GFLOP", 1]]}, memory_bandwidth="100 GB/s")


class Skips(nn.Module):
    """Layers whose first value, and whose mask, pass over all the others; one layer is used three times."""

    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(8)])
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.last = nn.Linear(width, 3)

    def forward(self, x, y):
        early = torch.tanh(self.first(x))
        mask = (x > 0).to(x.dtype)
        h = early
        for layer in self.layers:
            h = torch.tanh(layer(h))
            h = h + torch.tanh(self.layers[1](self.frozen(h)))
        return F.cross_entropy(self.last(h * mask + early), y)


class TinyGPT(nn.Module):
    """Attention, pieces of chunked values, and a head that is the embedding."""

    def __init__(self, width=8, blocks=4, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.embedding, self.position = nn.Embedding(11, width), nn.Embedding(6, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                dict(
                    before=nn.LayerNorm(width),
                    qkv=nn.Linear(width, 3 * width),
                    out=nn.Linear(width, width),
                    between=nn.LayerNorm(width),
                    up=nn.Linear(width, 4 * width),
                    down=nn.Linear(2 * width, width),
                )
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens, labels):
        batch, length = tokens.shape
        h = self.embedding(tokens) + self.position(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            q, k, v = block["qkv"](block["before"](h)).view(batch, length, 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
            h = h + F.dropout(block["out"](mixed.transpose(1, 2).reshape(batch, length, -1)), self.dropout, self.training)
            left, right = block["up"](block["between"](h)).chunk(2, -1)
            h = h + block["down"](F.gelu(left) * right)
        return F.cross_entropy(self.head(h).flatten(0, 1), labels.flatten())


class Convolutions(nn.Module):
    """Batch norm with its statistics."""

    def __init__(self, width=4, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(width if i else 1, width, 3, padding=1) for i in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(layers))
        self.last = nn.Linear(width, 3)

    def forward(self, x, y):
        for layer, norm in zip(self.layers, self.norms):
            x = F.relu(norm(layer(x)), inplace=True)
        return F.cross_entropy(self.last(x.mean((2, 3))), y)


def skips(samples, generator):
    return torch.randn(samples, 8, generator=generator, dtype=torch.float64), torch.randint(3, (samples,), generator=generator)


def tokens(samples, generator):
    return tuple(torch.randint(11, (samples, 6), generator=generator) for _ in range(2))


def images(samples, generator):
    return torch.randn(samples, 1, 4, 4, generator=generator, dtype=torch.float64), torch.randint(3, (samples,), generator=generator)


MODELS = {
    "skips": (Skips, skips),
    "tied_gpt": (TinyGPT, tokens),
    "batch_norm": (Convolutions, images),
    "dropout_gpt": (lambda: TinyGPT(dropout=0.2), tokens),
}


class Captured:
    """What pfeife.capture() gives, for modules of tensors by position."""

    def __init__(self, module, args):
        batch = torch.export.Dim("batch", min=2, max=64)
        self.program = torch.export.export(module, args, dynamic_shapes=tuple({0: batch} for _ in args))
        saved = io.BytesIO()
        torch.export.save(self.program, saved)
        self.archive = saved.getvalue()
        self.of(module)

    def of(self, module):
        self.module = module
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self.buffers = dict(module.named_buffers(remove_duplicate=False))
        return self

    def leaves(self, *args):
        return list(args)

    def split(self, leaves, microbatches):
        return [list(part) for part in zip(*(leaf.tensor_split(microbatches) for leaf in leaves))]


def schedule_of(family, ranks, microbatches):
    stages = 2 if family in ("looped", "interleaved_1f1b", "looped_bfs", "zb1p", "zb_greedy") else None
    return pfeife.schedule(family, ranks=ranks, microbatches=microbatches, stages_per_rank=stages)


def planned(capture, family, ranks, microbatches, **more):
    """A plan of that family, cut into equal numbers of layers, in the midst of blocks."""
    schedule = schedule_of(family, ranks, microbatches)
    stages = 1 + max(int(stage) for row in schedule.cells for cell in row for stage in re.findall(r"(\d+)F", cell))
    model, cluster = pfeife.model(capture.archive), pfeife.uniform_cluster(ranks, **CLUSTER)
    common = dict(devices=ranks, microbatches=microbatches, engines=["estimate"], baselines=[])
    pricer = pfeife.Pricer(model, cluster, **common, cuts_at="layers")
    allowed = [i for i, (_, may) in enumerate(pricer.layers[:-1]) if may]
    common["cuts"] = [allowed[(s * len(allowed)) // stages] for s in range(1, stages)]
    how = dict(families=[family], stages_per_rank=stages // ranks, iterations=1, **more) if more else dict(schedule=schedule)
    return pfeife.plan(model, cluster, **how, **common)


class DrawsAsPlanned(TorchDispatchMode):
    """The plain module's random operators with the numbers that a pipeline gives them."""

    def __init__(self, program, step, microbatch):
        super().__init__()
        self.moment = Moment(SEED, torch.device("cpu"))
        self.moment.step = step
        self.moment.at(microbatch)
        self.names = [node.name for node in program.graph.nodes if draws(node)]

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in function.tags:
            self.moment.draw(zlib.crc32(self.names.pop(0).encode()))
        return function(*args, **(kwargs or {}))


def plain(capture, module, batches, microbatches):
    """[step] Of the plain module on the microbatches one by one: loss, gradients, then weights, buffers and evaluated loss."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    steps = []
    for step, batch in enumerate(batches):
        parts = capture.split(batch, microbatches)
        loss = 0
        for m, part in enumerate(parts):
            with DrawsAsPlanned(capture.program, step, m):
                own = module(*part) * (len(part[0]) / len(batch[0]))
                own.backward()
            loss += own.detach()
        gradients = {name: one.grad for name, one in module.named_parameters()}
        optimizer.step()
        optimizer.zero_grad()
        weights = {name: one.detach().clone() for name, one in module.named_parameters()}
        buffers = {name: one.double().clone() for name, one in module.named_buffers()}
        module.eval()
        with torch.no_grad():
            evaluated = sum(module(*part) * (len(part[0]) / len(batch[0])) for part in parts)
        module.train()
        steps.append((loss, gradients, weights, buffers, evaluated))
    return steps


def difference(one, other):
    if one is None or other is None:
        return 0.0 if one is other else float("inf")
    return float(((one.detach() - other).abs().max() / other.abs().max().clamp(min=1e-3)))


def trained(capture, plan, module, batches, wanted):
    """How far a pipeline is from the plain module."""
    pipe = Pipeline(capture.of(module), plan, seed=SEED)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=1e-2)
    found = {"loss": 0.0, "gradients": 0.0, "weights": 0.0, "buffers": 0.0, "evaluation": 0.0}

    def note(what, one, other):
        found[what] = max(found[what], difference(one, other))

    for batch, (loss, gradients, weights, buffers, evaluated) in zip(batches, wanted):
        note("loss", pipe.step(*batch), loss)
        for name, parameter in pipe.named_parameters().items():
            note("gradients", parameter.grad, gradients[name])
        optimizer.step()
        optimizer.zero_grad()
        for name, parameter in pipe.named_parameters().items():
            note("weights", parameter, weights[name])
        for name in set(buffers) & set(pipe.names):
            note("buffers", capture.buffers[name].double(), buffers[name])
        note("evaluation", pipe.evaluate(*batch), evaluated)
    return found


def cases(ranks):
    """By name the model, and what its plan is made of."""
    found = {}
    for model in MODELS if ranks == 2 else ("skips", "dropout_gpt"):
        for family in pfeife.families():
            found[f"{model}-{family}"] = model, dict(family=family)
    for family in ("1f1b", "zb1p", "dualpipev"):
        for kind in ("full", "blocks"):
            for model in ("dropout_gpt", "batch_norm"):
                found[f"{model}-{family}-{kind}"] = model, dict(family=family, recompute=kind)
    return {name: (model, dict(ranks=ranks, microbatches=2 * ranks, **how)) for name, (model, how) in found.items()}


def main():
    ranks, folder, *only = int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    asked = {name: case for name, case in cases(ranks).items() if not only or name in only}
    captures, plans = {}, {}
    for name in dict.fromkeys(model for model, _ in asked.values()):
        make, batch = MODELS[name]
        torch.manual_seed(SEED)
        captures[name] = Captured(make().double(), batch(4, torch.Generator().manual_seed(0)))
    for name, (model, how) in asked.items():
        try:
            plans[name] = planned(captures[model], **how)
        except Exception as error:
            plans[name] = error
    rank = 0
    for other in range(1, ranks):
        if os.fork() == 0:
            rank = other
            break
    store = dist.FileStore(str(folder / "store"), ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))
    results, wanted = {}, {}
    for name, (model, how) in asked.items():
        try:
            if isinstance(plans[name], Exception):
                raise plans[name]
            make, batch = MODELS[model]
            generator = torch.Generator().manual_seed(1)
            batches = [batch(samples, generator) for samples in (4 * ranks, 4 * ranks + 3)]
            modules = []
            for _ in range(2 - (model in wanted)):
                torch.manual_seed(SEED)
                modules.append(make().double())
            if model not in wanted:
                wanted[model] = plain(captures[model], modules.pop(), batches, how["microbatches"])
            results[name] = trained(captures[model], plans[name], modules.pop(), batches, wanted[model])
        except Exception as error:
            results[name] = {"error": "".join(traceback.format_exception(error))}
            break
    (folder / f"rank{rank}.json").write_text(json.dumps(results))
    dist.destroy_process_group()
    for _ in range(1, ranks if rank == 0 else 1):
        os.wait()


if __name__ == "__main__":
    main()
