"""Small modules with what pipelines find hard, and batches for them: MODELS by name."""

import torch
import torch.nn.functional as F
from torch import nn


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
        h = F.dropout(h, 0.0, self.training)  # draws nothing
        for number, block in enumerate(self.blocks):
            attention_dropout = self.dropout if self.training and number else 0.0  # the first draws nothing
            q, k, v = block["qkv"](block["before"](h)).view(batch, length, 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=attention_dropout)
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


class Chain(nn.Module):
    """Residual blocks with dropout, one after the other."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))
        self.last = nn.Linear(8, 3)

    def forward(self, x, y):
        for layer in self.layers:
            x = x + F.dropout(torch.tanh(layer(x)), 0.2, self.training)
        return F.cross_entropy(self.last(x), y)


class Recurrent(nn.Module):
    """Dropout between the layers of recurrent networks, of which one has a single layer, and around them."""

    def __init__(self):
        super().__init__()
        self.deep = nn.LSTM(8, 8, num_layers=3, dropout=0.3, batch_first=True)
        self.wide = nn.GRU(8, 8, num_layers=2, dropout=0.3, batch_first=True, bidirectional=True)
        self.flat = nn.RNN(16, 8, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x, y):
        h = F.dropout(x, 0.2, self.training).unsqueeze(1).expand(-1, 3, -1)
        for network in (self.deep, self.wide, self.flat):
            h = F.dropout(network(h)[0], 0.2, self.training)
        return F.cross_entropy(self.last(h[:, -1]), y)


def skips(samples, generator):
    return torch.randn(samples, 8, generator=generator, dtype=torch.float64), torch.randint(3, (samples,), generator=generator)


def tokens(samples, generator):
    return tuple(torch.randint(11, (samples, 6), generator=generator) for _ in range(2))


def images(samples, generator):
    return torch.randn(samples, 1, 4, 4, generator=generator, dtype=torch.float64), torch.randint(3, (samples,), generator=generator)


class Labels(nn.Module):
    """The loss is a mean over labels that count, whose number the module returns."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x, y):
        return {"loss": F.cross_entropy(self.layers(x), y), "loss_weight": (y != -100).sum()}


class Towers(nn.Module):
    """Two towers that read nothing of each other, a frozen part before one of them, and values that pass over them: a mask, and a
    value of which a comparison alone is read."""

    def __init__(self):
        super().__init__()
        self.frozen, self.early = nn.Linear(8, 4).requires_grad_(False), nn.Linear(8, 8)
        self.left, self.right = (nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(4, 4), nn.Tanh())]) for _ in range(2))
        self.last = nn.Linear(16, 3)

    def forward(self, x, y):
        mask = (x[:, :1] > 0).to(x.dtype)
        early = torch.tanh(self.early(x))
        left = self.left(torch.tanh(self.frozen(x))) * mask
        right = self.right(x[:, 4:])
        h = torch.cat([left, right, early], 1)
        return F.cross_entropy(self.last(h * (h > 0)), y) + (left * (early[:, :4] > 0)).mean()


class Averages(nn.Module):
    """What forward writes and reads: moving averages, by a chain of operators and by a view, a frozen copy of a layer, and a counter
    that the loss reads."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))
        self.target, self.last = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 3)
        for name, shape in (("count", ()), ("mean", (8,)), ("table", (3, 8)), ("norm", (8,))):
            self.register_buffer(name, torch.ones(shape))

    def forward(self, x, y):
        if self.training:
            self.count += 1
            self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            self.table[1:].mul_(0.9).add_(0.1)
            torch.div(self.norm, 1.1, out=self.norm)
            with torch.no_grad():
                self.target.weight.mul_(0.9).add_(self.layers[0].weight, alpha=0.1)
        h = self.target(x - self.mean) * self.norm + self.table[y]
        for layer in self.layers:
            h = h + torch.tanh(layer(h))
        return F.cross_entropy(self.last(h), y) * (1 + 1 / self.count)


class Layouts(nn.Module):
    """Views of values whose dimensions lie in another order in memory; sizes, and the shape alone, of a value long before."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 24), nn.Linear(24, 3)
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(6))

    def forward(self, x, y):
        first = torch.cat([self.first(x), self.first(-x)])
        h = first[: x.shape[0]]
        for layer in self.layers:
            turned = torch.tanh(layer(h).view(-1, 4, 6).transpose(1, 2)) * 1.5
            h = h + turned.transpose(1, 2).view(-1, 24)
        twice = torch.zeros_like(first).index_add(0, torch.arange(h.shape[0], device=h.device), h)
        return F.cross_entropy(self.last(twice[: h.shape[0]]), y) + twice.sum() / first.shape[0]


MODELS = {
    "skips": (Skips, skips),
    "tied_gpt": (TinyGPT, tokens),
    "batch_norm": (Convolutions, images),
    "dropout_gpt": (lambda: TinyGPT(dropout=0.2), tokens),
    "chain": (Chain, skips),
    "recurrent": (Recurrent, skips),
    "labels": (Labels, skips),
    "towers": (Towers, skips),
    "averages": (Averages, skips),
    "layouts": (Layouts, skips),
}
