"""The model that both sides run: a stack of transformer blocks as GPT has them, and a squared error.

Each function below builds one size for `configs/models/export_models.py --module`; the torch side cuts the same module.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {  # hidden: layers, sequence, samples a microbatch, heads
    64: (8, 32, 1, 4),
    256: (8, 128, 2, 4),
    768: (4, 128, 1, 12),
}
MICROBATCHES = 8


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, h):  # [batch, sequence, hidden]
        q, k, v = self.qkv(self.norm1(h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        h = h + self.out(mixed)
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class Stack(nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        layers, _, _, heads = SIZES[hidden]
        self.layers = nn.ModuleList(Block(hidden, heads) for _ in range(layers))

    def forward(self, x, target):
        for layer in self.layers:
            x = layer(x)
        return F.mse_loss(x, target)


def build(hidden: int):
    _, sequence, batch, _ = SIZES[hidden]
    torch.manual_seed(0)
    shape = batch, sequence, hidden
    return Stack(hidden), {"x": torch.randn(shape), "target": torch.randn(shape)}


def hidden_64():
    return build(64)


def hidden_256():
    return build(256)


def hidden_768():
    return build(768)
