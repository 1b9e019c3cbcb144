"""Random small modules, each from a seed, for the fuzz of pipelines: their text, the module, and a batch.

Modules have what cuts through a graph meet: towers, skips, masks and indices that pass over stages, tied and frozen
parameters, buffers that forward writes and reads, values that are transposed or expanded, writes in place, several inputs,
losses and outputs. None draws random numbers. Not here: control flow, sizes that depend on values.
"""

import linecache
import random
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LENGTH, WORDS = 6, 4, 11

# Kinds of values: v [batch, W], s [batch, T, W], t [batch, W, T], m bool [batch, W], k bool [batch, T], i index [batch, T]
# below T, j index [batch] below W, n a scalar, p [W, W] of parameters alone.


class Operation(NamedTuple):
    """Statements that make values of the kinds `gives` from values of the kinds `takes`. {0}, {1}: names of the taken values; {a},
    {b}: names of the made ones; {l}: a layer."""

    takes: str
    gives: str
    text: str
    layer: str = ""
    weight: float = 1.0


LINEAR = "nn.Linear(W, W)"
ATTENTION = "nn.MultiheadAttention(W, 2, batch_first=True)"
OPERATIONS = [
    Operation("v", "v", "{a} = torch.tanh(self.{l}({0}))", LINEAR, 3),
    Operation("v", "v", "{a} = {0} + torch.tanh(self.{l}({0}))", LINEAR, 3),
    Operation("v", "v", "{a} = self.{l}({0})", "nn.LayerNorm(W)"),
    Operation("v", "v", "{a} = self.{l}({0})", "nn.BatchNorm1d(W)"),
    Operation("v", "v", "{a} = {0}.detach() * 0.5 + 0.1", "", 0.4),
    Operation("v", "v", "with torch.no_grad():\n    {a} = torch.tanh(self.{l}({0}))", LINEAR, 0.5),
    Operation("v", "v", "{a} = {0} @ self.{l}.abs()", "nn.Parameter(torch.randn(W, W) * 0.4)", 0.5),
    Operation("v", "v", "{a} = {0} + self.{l}({0})", "nn.utils.parametrizations.weight_norm(nn.Linear(W, W))", 0.5),
    Operation("v", "v", "{a} = {0} + self.{l}({0})", "nn.utils.parametrizations.spectral_norm(nn.Linear(W, W))", 0.5),
    Operation("vv", "v", "{a} = {0} + self.{l}({1})", LINEAR, 2),
    Operation("vv", "v", "{a} = {0} * torch.sigmoid({1})"),
    Operation("vv", "v", "{a} = self.{l}(torch.cat([{0}, {1}], -1))", "nn.Linear(2 * W, W)"),
    Operation("v", "vv", "{a}, {b} = self.{l}({0}).chunk(2, -1)", "nn.Linear(W, 2 * W)"),
    Operation("v", "n", "{a} = {0}.pow(2).mean()", "", 0.7),
    Operation("vn", "v", "{a} = {0} / (1 + {1})"),
    Operation("", "p", "{a} = self.{l}.weight.softmax(0)", LINEAR, 0.5),
    Operation("vp", "v", "{a} = {0} @ {1}"),
    Operation("v", "m", "{a} = {0} > 0"),
    Operation("vm", "v", "{a} = {0}.masked_fill({1}, 0.1)", "", 1.5),
    Operation("vvm", "v", "{a} = torch.where({2}, {0}, {1})"),
    Operation("v", "j", "{a} = {0}.argmax(-1)", "", 0.7),
    Operation("vj", "v", "{a} = {0} * (1 + F.one_hot({1}, W))"),
    Operation("vj", "v", "{a} = {0} + {0}.gather(1, {1}[:, None])"),
    Operation("v", "s", "{a} = {0}[:, None, :].expand(-1, T, -1)"),
    Operation("v", "s", "{a} = self.{l}({0}).unflatten(-1, (T, W))", "nn.Linear(W, T * W)"),
    Operation("v", "s", "{a} = {0}[:, None] * self.{l}", "nn.Parameter(torch.randn(T, W))"),
    Operation("s", "s", "{a} = {0} + torch.tanh(self.{l}({0}))", LINEAR, 2),
    Operation("ss", "s", "{a} = {0} + {1}"),
    Operation("s", "s", "{a} = {0} + self.{l}.weight[torch.arange(T)]", "nn.Embedding(T, W)", 0.7),
    Operation("s", "s", "{a} = self.{l}({0})[0]", "nn.GRU(W, W, batch_first=True)", 0.5),
    Operation("ss", "s", "{a} = {0} + self.{l}({0}, {1}, {1}, need_weights=False)[0]", ATTENTION, 1.5),
    Operation("s", "s", "{a} = self.{l}({0}).unflatten(-1, (2, W // 2)).transpose(1, 2)\n{a} = F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True).transpose(1, 2).flatten(2)", LINEAR),
    Operation("sk", "s", "{a} = F.scaled_dot_product_attention(self.{l}({0}), {0}, {0}, attn_mask={1}[:, None, :] | torch.eye(T, dtype=torch.bool))", LINEAR, 1.5),
    Operation("s", "sss", "{a}, {b}, {c} = self.{l}({0}).unflatten(-1, (3, W)).unbind(2)", "nn.Linear(W, 3 * W)"),
    Operation("s", "t", "{a} = {0}.transpose(1, 2)", "", 1.5),
    Operation("t", "t", "{a} = torch.tanh(self.{l}({0}))", "nn.Linear(T, T)"),
    Operation("t", "t", "{a} = self.{l}({0})", "nn.Conv1d(W, W, 3, padding=1)"),
    Operation("t", "t", "{a} = self.{l}({0})", "nn.GroupNorm(2, W)", 0.7),
    Operation("t", "s", "{a} = {0}.transpose(1, 2)", "", 1.5),
    Operation("t", "v", "{a} = self.{l}({0}.flatten(1))", "nn.Linear(T * W, W)"),
    Operation("s", "v", "{a} = {0}.mean(1)"),
    Operation("s", "v", "{a} = {0}[:, -1]"),
    Operation("s", "v", "{a} = {0}.permute(1, 0, 2)[0]"),
    Operation("s", "k", "{a} = {0}.sum(-1) > 0"),
    Operation("sk", "s", "{a} = {0} * {1}[..., None]", "", 1.5),
    Operation("sk", "v", "{a} = ({0} * {1}[..., None]).sum(1) / {1}.sum(1, keepdim=True).clamp(min=1)"),
    Operation("s", "i", "{a} = {0}.sum(-1).argsort(1)", "", 0.7),
    Operation("si", "s", "{a} = {0}.gather(1, {1}[..., None].expand(-1, -1, W))"),
    Operation("si", "s", "{a} = torch.zeros_like({0}).scatter_add(1, {1}[..., None].expand(-1, -1, W), {0})"),
    Operation("t", "t", "{a} = {0}.clone(memory_format=torch.preserve_format)", "", 0.5),
    Operation("t", "t", "{a} = {0}.clone(memory_format=torch.contiguous_format)", "", 0.5),
    Operation("v", "v", "{a} = {0} * torch.ones_like({0}, layout=torch.strided)", "", 0.3),
    # In place: what is written is read by nothing that has saved it.
    Operation("vv", "v", "{a} = {0}.clone()\n{a} += {1}"),
    Operation("v", "v", "{a} = self.{l}({0})\n{a} = F.relu({a}, inplace=True)", LINEAR),
    Operation("vv", "v", "{a} = torch.zeros_like({0})\n{a}[:, :3] = {0}[:, 3:]\n{a}[:, 3:] += {1}[:, :3]"),
    Operation("vv", "vv", "{a} = self.{l}({0})\n{b} = {a}[:, :3]\n{a}.add_({1})\n{b} = torch.cat([{b}, {b}], -1)", LINEAR, 0.7),
    Operation("s", "t", "{a} = (self.{l}({0}) * 2).transpose(1, 2)\n{a}[:, 0].mul_(0.5)", LINEAR, 0.7),
]
# A buffer: how it begins, what forward writes of a value v, what reads it before and after.
BUFFERS = [
    ("torch.zeros(())", "self.{e} += 1", "{0} + self.{e}", "{0} / (1 + self.{e})"),
    ("torch.zeros((), dtype=torch.int64)", "self.{e}.add_(1)", "{0} + self.{e}", "{0} * (self.{e} / 10).clamp(max=1.0)"),
    ("torch.randn(W)", "self.{e}.mul_(0.9).add_({0}.detach().mean(0), alpha=0.1)", "{0} - self.{e}", "{0} * (1 + self.{e})"),
    ("torch.randn(W)", "self.{e}.copy_({0}.detach().mean(0))", "{0} - self.{e}", "{0} - self.{e}"),
    ("torch.randn(W)", "self.{e}[1:3].mul_(0.9)", "{0} - self.{e}", "{0} - self.{e}"),
    ("torch.randn(W)", "self.{e}.view(2, -1)[0].copy_({0}.detach().mean(0)[:3])", "{0} + self.{e}", "{0} * (1 + self.{e})"),
    ("torch.randn(W, W)", "self.{e}.lerp_(self.{l}.weight.detach(), 0.1)", "{0} + self.{e}[0]", "F.linear({0}, self.{e})"),
]
INPUTS = {
    "x": ("v", lambda batch, g: torch.randn(batch, WIDTH, generator=g, dtype=torch.float64)),
    "z": ("v", lambda batch, g: torch.randn(batch, WIDTH, generator=g, dtype=torch.float64)),
    "q": ("s", lambda batch, g: torch.randn(batch, LENGTH, WIDTH, generator=g, dtype=torch.float64)),
    "words": ("", lambda batch, g: torch.randint(WORDS, (batch, LENGTH), generator=g)),
    "lengths": ("", lambda batch, g: torch.randint(1, LENGTH + 1, (batch,), generator=g)),
}


class Author:
    """Writes one module. Each tower has values of its own until all are joined."""

    def __init__(self, seed: int):
        self.choice = random.Random(seed)
        self.made: list[str] = []
        self.forward: list[str] = []
        self.layers: dict[str, list[str]] = {}
        self.plain_evaluation = True
        self.count = 0
        pick = self.choice
        self.reuse = pick.choice([0, 0.1, 0.5])
        self.frozen = pick.choice([0, 0, 0.3, 1])  # of the first half
        self.size = pick.choice([4, 8, 12, 16, 24])
        towers = pick.choice([1, 1, 2, 2, 3])
        inputs = ["x", *(name for name in INPUTS if name != "x" and pick.random() < 0.4)]
        self.inputs = [*inputs, "z"] if towers > 1 and len(inputs) == 1 else inputs
        self.pools: list[dict[str, list[str]]] = [{} for _ in range(towers)]
        for number, name in enumerate(self.inputs):
            self.take_in(name, self.pools[number % towers])
        for pool in self.pools:
            if not pool.get("v"):
                pool["v"] = ["x"]
        self.pending: list[str] = []  # reads of buffers that come later

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def take_in(self, name: str, pool: dict[str, list[str]]) -> None:
        if name == "words":
            layer = self.layer(f"nn.Embedding({WORDS}, W)")
            made = self.name("s")
            self.forward.append(f"{made} = self.{layer}(words)")
            pool.setdefault("s", []).append(made)
            made = self.name("v")
            self.forward.append(f"{made} = {pool['s'][-1]}.mean(1)")
            pool.setdefault("v", []).append(made)
        elif name == "lengths":
            made = self.name("k")
            self.forward.append(f"{made} = torch.arange(T)[None] < lengths[:, None]")
            pool.setdefault("k", []).append(made)
        else:
            pool.setdefault(INPUTS[name][0], []).append(name)

    def layer(self, text: str) -> str:
        layers_so_far = self.layers.setdefault(text, [])
        if layers_so_far and self.choice.random() < self.reuse:
            return self.choice.choice(layers_so_far)
        name = self.name("l")
        layers_so_far.append(name)
        self.made.append(f"self.{name} = {text}")
        if text == LINEAR and len(layers_so_far) > 1 and self.choice.random() < 0.2 * bool(self.reuse):
            self.made.append(f"self.{name}.weight = self.{layers_so_far[-2]}.weight")
        if self.choice.random() < self.frozen and len(self.forward) < self.size // 2:
            self.made.append(f"self.{name}.requires_grad_(False)")
        return name

    def value(self, pool: dict[str, list[str]], kind: str) -> str:
        """Mostly a late one, at times any."""
        found = pool[kind]
        return found[-1] if self.choice.random() < 0.6 else self.choice.choice(found)

    def step(self, pool: dict[str, list[str]]) -> None:
        if self.choice.random() < 0.08:
            return self.buffer(pool)
        able = [operation for operation in OPERATIONS if all(pool.get(kind) for kind in operation.takes)]
        chosen = self.choice.choices(able, [operation.weight for operation in able])[0]
        taken = [self.value(pool, kind) for kind in chosen.takes]
        given = [self.name(kind) for kind in chosen.gives]
        names = dict(zip("abc", given))
        layer = self.layer(chosen.layer) if chosen.layer else ""
        self.forward += chosen.text.format(*taken, **names, l=layer).splitlines()
        for kind, name in zip(chosen.gives, given):
            pool.setdefault(kind, []).append(name)

    def buffer(self, pool: dict[str, list[str]]) -> None:
        begin, write, early, late = self.choice.choice(BUFFERS)
        name, layer = self.name("e"), self.layer(LINEAR)
        self.made.append(f'self.register_buffer("{name}", {begin})')

        def read(text: str) -> None:
            made, value = self.name("v"), self.value(pool, "v")
            self.forward.append(f"{made} = {text.format(value, e=name)}")
            pool["v"].append(made)

        if self.choice.random() < 0.3:
            read(early)
        words = write.format(self.value(pool, "v"), e=name, l=layer)
        if self.choice.random() < 0.7:
            self.forward += ["if self.training:", "    with torch.no_grad():", f"        {words}"]
        else:
            self.plain_evaluation = False
            self.forward += ["with torch.no_grad():", f"    {words}"]
        when = self.choice.random()
        if when < 0.4:
            read(late)
        elif when < 0.7:
            self.pending.append(late.format("{0}", e=name))

    def written(self) -> str:
        pick = self.choice
        sizes = [self.size // len(self.pools)] * len(self.pools)
        turns = [number for number, size in enumerate(sizes) for _ in range(size)]
        if pick.random() < 0.5:
            pick.shuffle(turns)
        for number in turns:
            self.step(self.pools[number])
        joined: dict[str, list[str]] = {}
        for pool in self.pools:
            for kind, names in pool.items():
                joined.setdefault(kind, []).extend(names)
        ends = [self.tower_end(pool) for pool in self.pools]
        last = ends[0]
        for end in ends[1:]:
            made = self.name("v")
            joint = f"self.{self.layer('nn.Linear(2 * W, W)')}(torch.cat([{last}, {end}], -1))"
            self.forward.append(f"{made} = " + pick.choice([f"{last} * torch.tanh({end})", joint]))
            last = made
        joined["v"].append(last)
        for _ in range(pick.choice([0, 1, 3])):
            self.step(joined)
        for read in self.pending:
            made = self.name("v")
            self.forward.append(f"{made} = {read.format(joined['v'][-1])}")
            joined["v"].append(made)
        last = joined["v"][-1]
        loss = pick.choice(["F.mse_loss({0}, y)", "F.cross_entropy({0}, y.argmax(-1))", "(1 - F.cosine_similarity({0}, y)).mean()"]).format(
            f"self.{self.layer(LINEAR)}({last})"
        )
        terms = [loss, *(f"0.1 * {name}" for name in joined.get("n", []))]
        for _ in range(pick.choice([0, 0, 1, 2])):
            kind = pick.choice([kind for kind in "vst" if joined.get(kind)])
            terms.append(f"0.1 * {pick.choice(joined[kind])}.pow(2).mean()")
        if "words" in self.inputs and pick.random() < 0.5 and joined.get("s"):
            table = self.layers[f"nn.Embedding({WORDS}, W)"][0]
            terms.append(f"F.cross_entropy(F.linear({joined['s'][-1]}, self.{table}.weight).flatten(0, 1), words.flatten())")
        self.forward.append(f"loss = {' + '.join(terms)}")
        self.forward.append("return " + pick.choice(["loss", "loss", f"loss, {last}", f"{{'loss': loss, 'made': {last}, 'early': {joined['v'][0]}}}"]))
        made = "\n        ".join(["super().__init__()", *self.made])
        forward = "\n        ".join(self.forward)
        return (
            f"W, T = {WIDTH}, {LENGTH}\n\nclass Net(nn.Module):\n    def __init__(self):\n        {made}\n\n"
            f"    def forward(self, {', '.join(self.inputs)}, y):\n        {forward}\n"
        )

    def tower_end(self, pool: dict[str, list[str]]) -> str:
        return self.value(pool, "v")


class Made(NamedTuple):
    text: str
    module: nn.Module  # in fp64
    inputs: list[str]
    evaluates: bool  # whether forward writes nothing in evaluation, which a pipeline leaves out

    def batch(self, samples: int, seed: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        given = {name: INPUTS[name][1](samples, generator) for name in self.inputs}
        return {**given, "y": torch.randn(samples, WIDTH, generator=generator, dtype=torch.float64)}


def made(seed: int) -> Made:
    author = Author(seed)
    text = author.written()
    file = f"<module of seed {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"torch": torch, "nn": nn, "F": F, "__name__": "random_modules"}
    exec(compile(text, file, "exec"), names)
    torch.manual_seed(seed)
    module = names["Net"]().double()
    return Made(text, module, author.inputs, author.plain_evaluation)
