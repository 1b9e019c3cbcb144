"""Models small enough to execute in tests; each has one or two things that pipelines find hard. The forward returns the
loss.
"""
import torch
from torch import nn
from torch.nn import functional as F


class TinyMlp(nn.Module):
    """Three residual blocks and a skip connection from the input to the head."""

    def __init__(self, width: int = 16, classes: int = 8):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                                  nn.Linear(4 * width, width)) for _ in range(3))
        self.head = nn.Linear(width + 8, classes)

    def forward(self, x, labels):
        h = self.embed(x)
        for block in self.blocks:
            h = h + block(h)
        return F.cross_entropy(self.head(torch.cat([h, x], dim=1)), labels)


class TinyGpt(nn.Module):
    """A causal transformer whose head shares the token embedding's weight; without dropout, so deterministic."""

    def __init__(self, vocabulary: int = 61, length: int = 12, width: int = 16, heads: int = 2, layers: int = 4):
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width),
        }) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, labels):
        h = self.tokens(ids) + self.positions
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm1"](h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            h = h + layer["out"](mixed)
            h = h + layer["down"](F.gelu(layer["up"](layer["norm2"](h))))
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), labels.flatten())


class TinyUnet(nn.Module):
    """Three levels down and up again; each level's result skips to the level that mirrors it."""

    def __init__(self, width: int = 6, levels: int = 3):
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.stem = nn.Conv2d(2, width, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in zip(widths, widths[1:]))
        self.middle = nn.Sequential(nn.GroupNorm(2, widths[-1]), nn.SiLU(), nn.Conv2d(widths[-1], widths[-1], 3, padding=1))
        self.up = nn.ModuleList(nn.Conv2d(a + b, a, 3, padding=1) for a, b in reversed(list(zip(widths, widths[1:]))))
        self.head = nn.Conv2d(width + 2, 2, 1)

    def forward(self, image, noise):
        h, skips = self.stem(image), []
        for layer in self.down:
            skips.append(h)
            h = layer(F.silu(h))
        h = h + self.middle(h)
        for layer in self.up:
            h = F.interpolate(h, scale_factor=2.0, mode="nearest")
            h = F.silu(layer(torch.cat([h, skips.pop()], dim=1)))
        return F.mse_loss(self.head(torch.cat([h, image], dim=1)), noise)


class TinyConvnet(nn.Module):
    """What needs care when a model is cut: batch norm, operators in place, dropout, an integer and a boolean value that
    are made early and read late."""

    def __init__(self, width: int = 8, classes: int = 5):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.Dropout(0.2),
            nn.Conv2d(width, width, 1)) for _ in range(3))
        self.head = nn.Linear(width, classes)

    def forward(self, images, labels):
        brightest = images.mean(dim=1).flatten(1).argmax(dim=1)
        positive = images.mean(dim=1, keepdim=True) > 0
        h = self.stem(images)
        for block in self.blocks:
            h = F.relu_(h + block(h))
        h = torch.where(positive, h, 0.1 * h).flatten(2)
        bright = h.gather(2, brightest[:, None, None].expand(-1, h.shape[1], 1)).flatten(1)
        return F.cross_entropy(self.head(F.dropout(h.mean(dim=2) + bright, 0.1, self.training)), labels)


class TinyShared(nn.Module):
    """One matrix and one norm that six layers share, and a vector that is added everywhere; used twice in a layer."""

    def __init__(self, width: int = 12, layers: int = 6):
        super().__init__()
        self.shared = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.shift = nn.Parameter(0.1 * torch.randn(width))
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x, target):
        h = x
        for layer in self.own:
            h = h + layer(torch.tanh(self.shared(torch.tanh(self.shared(self.norm(h)) + self.shift))))
        return F.mse_loss(h, target)
