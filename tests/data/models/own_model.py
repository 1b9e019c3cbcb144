"""A model as a user may write it. own_model.pt2 beside this file was made by

    python configs/models/export_models.py --module tests/data/models/own_model.py:own_model --out tests/data/models

small_loss.pt2 in the same way, and torch_saved.pt2 by running this file: torch.export.save alone, with real weights and
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


if __name__ == "__main__":
    torch.manual_seed(0)
    program = torch.export.export(Regression(), (torch.zeros(6, 8), torch.zeros(6, 1)))
    torch.export.save(program, "tests/data/models/torch_saved.pt2")
