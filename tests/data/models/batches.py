"""Models whose loss is a mean over labels, and whose batch is not the first dimension. The archives in the folder batches
beside this file, and expected.safetensors, what plain torch computes in float64 for a whole batch, were made by

    python tests/data/models/batches.py
"""
import importlib
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

BATCH, LENGTH, WIDTH, CLASSES = 8, 5, 16, 11


class Block(nn.Module):
    """Attention over the sequence [batch, length, width], then a product."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.mix(self.norm(x)).chunk(3, dim=-1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Labelled(nn.Module):
    """A language model that leaves out labels of -100 and names their count."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CLASSES, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        loss = F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())
        return {"loss": loss, "loss_weight": (labels != -100).sum()}


class SequenceFirst(nn.Module):
    """x [length, batch, width], positions [3, batch, length], y [batch]: nn.Transformer's order, and that of multimodal
    models' position ids."""

    def __init__(self):
        super().__init__()
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x, positions, y):
        x = x + self.place(positions).sum(0).transpose(0, 1)
        for block in self.blocks:
            x = block(x.transpose(0, 1)).transpose(0, 1)
        return F.cross_entropy(self.head(x[-1]), y)


def labelled(batch=2):
    torch.manual_seed(1)
    tokens = torch.zeros(batch, LENGTH, dtype=torch.long)
    return Labelled(), {"tokens": tokens, "labels": torch.zeros_like(tokens)}


def sequence_first(batch=2):
    torch.manual_seed(2)
    return SequenceFirst(), {"x": torch.zeros(LENGTH, batch, WIDTH), "positions": torch.zeros(3, batch, LENGTH, dtype=torch.long),
                             "y": torch.zeros(batch, dtype=torch.long)}


def given(name):
    """A batch. Samples have 0 to LENGTH labels, those of the third microbatch of two none."""
    generator = torch.Generator().manual_seed(3)
    if name == "sequence_first":
        return {"x": torch.randn(LENGTH, BATCH, WIDTH, generator=generator, dtype=torch.float64),
                "positions": torch.randint(LENGTH, (3, BATCH, LENGTH), generator=generator),
                "y": torch.randint(CLASSES, (BATCH,), generator=generator)}
    tokens, labels = torch.randint(CLASSES, (2, BATCH, LENGTH), generator=generator)
    for sample, count in enumerate([5, 1, 3, 2, 0, 0, 4, 0]):
        labels[sample, count:] = -100
    return {"tokens": tokens, "labels": labels}


def main():
    here = Path(__file__).resolve().parent
    sys.path[:0] = [str(here.parents[2] / "configs/models"), str(here)]
    export_models, grad_modes = importlib.import_module("export_models"), importlib.import_module("grad_modes")
    tensors, folder = {}, here / "batches"
    folder.mkdir(exist_ok=True)
    for build in (labelled, sequence_first):
        name = build.__name__
        sys.argv = ["export_models.py", "--module", f"{__file__}:{name}", "--real-weights", "--out", str(folder)]
        assert export_models.main() == 0
        module, inputs = build()[0].double(), given(name)
        made = module(**inputs)
        loss = made["loss"] if isinstance(made, dict) else made
        loss.backward()
        tensors[f"{name}.loss"] = loss.detach()
        tensors |= {f"{name}.{key}": one for key, one in inputs.items()}
        tensors |= {f"{name}.gradient.{key}": one.grad for key, one in module.named_parameters()}
    grad_modes.write_safetensors(folder / "expected.safetensors", tensors)


if __name__ == "__main__":
    main()
