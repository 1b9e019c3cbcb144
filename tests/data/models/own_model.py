"""A model as a user may write it. own_model.pt2 beside this file was made by

    python configs/models/export_models.py --module tests/data/models/own_model.py:own_model --out tests/data/models

small_loss.pt2, lazy_views.pt2 and mixed_types.pt2 in the same way, and torch_saved.pt2 by running this file: torch.export.save alone, with real weights and
stored entries.
"""
import torch
from torch import nn
from torch.nn import functional as F


class OwnModel(nn.Module):
    """Tied embedding and head, attention, batch norm, a frozen layer, a no_grad block, a write into a slice, topk."""

    def __init__(self, width=32, vocabulary=100, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.register_buffer("scale", torch.ones(width), persistent=False)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 64, batch_first=True) for _ in range(layers))
        self.norm = nn.BatchNorm1d(width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens, labels):
        h = self.embed(tokens) * self.scale
        with torch.no_grad():
            positions = torch.arange(tokens.shape[1]).float().unsqueeze(-1)
        h = h + positions
        for block in self.blocks:
            h = block(h)
        h = self.norm(h.transpose(1, 2)).transpose(1, 2)
        h = h + self.frozen(h)
        shifted = torch.zeros_like(h)
        shifted[:, 1:] = h[:, :-1]
        largest, _ = shifted.topk(4, dim=-1)
        loss = F.cross_entropy(self.head(shifted).flatten(0, 1), labels.flatten())
        return loss + largest.mean(), shifted


def own_model(batch=4):
    tokens = torch.zeros(batch, 16, dtype=torch.long)
    return OwnModel(), {"tokens": tokens, "labels": tokens}


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y)


class SmallLoss(nn.Module):
    """Gradients of about 1e-9, which are zero in fp16."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y) * 1e-7


def small_loss(batch=6):
    return SmallLoss(), {"x": torch.zeros(batch, 8), "y": torch.zeros(batch, 4)}


class LazyViews(nn.Module):
    """Values over every cut that are views with a bit of torch's set: conjugated (conj, H), negated (their imaginary part)."""

    def __init__(self, width=16, layers=3):
        super().__init__()
        self.width = width
        self.inp, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.weights = nn.ParameterList(torch.randn(width // 2 + 1, 2) * 0.5 for _ in range(layers))

    def forward(self, x, y):
        f = torch.fft.rfft(self.inp(x), dim=-1)
        for weight in self.weights:
            f = (f * torch.view_as_complex(weight)).conj()
            negated = f.imag
            f = (f * torch.complex(negated, f.real)).H
            f = (f * 2).H + torch.complex(f.real.t(), negated)
        return F.mse_loss(self.out(torch.fft.irfft(f, n=self.width, dim=-1)), y)


def lazy_views(batch=4):
    return LazyViews(), {"x": torch.zeros(batch, 16), "y": torch.zeros(batch, 16)}


class MixedTypes(nn.Module):
    """Blocks whose parameters are float32, bfloat16 and float64, a residual that blocks of each type read, a mask read late."""

    def __init__(self, width=32, vocabulary=50):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        types = [torch.float32, torch.bfloat16, torch.bfloat16, torch.bfloat16, torch.float64, torch.float32]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()).to(t) for t in types)
        self.types = types
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, labels):
        h = self.embed(tokens.long())
        early, mask = h, tokens > 10
        for block, dtype in zip(self.blocks, self.types):
            h = (h + early).to(dtype)
            h = h + block(h) * 2
        h = torch.where(mask.unsqueeze(-1), h.float(), early)
        return F.cross_entropy(self.head(h).flatten(0, 1), labels.flatten())


def mixed_types(batch=4):
    return MixedTypes(), {"tokens": torch.zeros(batch, 12, dtype=torch.uint8), "labels": torch.zeros(batch, 12, dtype=torch.long)}


if __name__ == "__main__":
    torch.manual_seed(0)
    program = torch.export.export(Regression(), (torch.zeros(6, 8), torch.zeros(6, 1)))
    torch.export.save(program, "tests/data/models/torch_saved.pt2")
