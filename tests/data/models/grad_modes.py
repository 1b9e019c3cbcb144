"""Models whose forward switches gradients off, or computes blocks again.

    python tests/data/models/grad_modes.py [FOLDER]

exports each by export_models.py and writes beside the archives expected.safetensors: inputs of four microbatches, and what
plain torch computes for them in float64 (loss of each microbatch, gradients of the mean loss, buffers afterwards), and how
many tensors of the archive's graph need a gradient.
"""
import json
import struct
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn
from torch.export.graph_signature import InputKind
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WIDTH, MICROBATCHES, SAMPLES = 8, 4, 3
HERE = Path(__file__).resolve()
FOLDER = Path(sys.argv[1]) if __name__ == "__main__" and len(sys.argv) > 1 else HERE.with_suffix("")


class Residual(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))

    def layer(self, i, h):
        return h + torch.tanh(self.layers[i](h))

    def net(self, h):
        for i in range(len(self.layers)):
            h = self.layer(i, h)
        return h


class SelfConditioned(Residual):
    """The first pass, without gradients, is an input of the second."""

    def __init__(self):
        super().__init__(3)
        self.enter = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, y):
        with torch.no_grad():
            first = self.net(self.enter(torch.cat([x, torch.zeros_like(x)], -1)))
        return F.mse_loss(self.net(self.enter(torch.cat([x, first], -1))), y)


class RunningMean(Residual):
    """A buffer is written after layer `write` and read, for a product that keeps it for backward, after layer `read`."""

    def __init__(self, write, read):
        super().__init__()
        self.write, self.read = write, read
        self.register_buffer("mean", torch.zeros(WIDTH))

    def update(self, h):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(0.1 * h.mean(0))

    def forward(self, x, y):
        h = x
        for i in range(len(self.layers)):
            h = self.layer(i, h)
            if i == self.write:
                self.update(h)
            if i == self.read:
                h = h - self.mean * h
        return F.mse_loss(h, y)


class Assigned(RunningMean):
    """The same, but `self.mean = ...`, which torch.export appends to the graph."""

    def update(self, h):
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * h.mean(0)


class Row(RunningMean):
    """The same through a view: the graph's later readers read the buffer itself."""

    def __init__(self, write, read):
        super().__init__(write, read)
        self.register_buffer("mean", torch.ones(1, WIDTH))

    def update(self, h):
        with torch.no_grad():
            self.mean[0].mul_(0.5).add_(h.mean(0))


class Metric(Residual):
    """A further output that no gradient passes; the buffer that it updates is read by nobody."""

    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x, y):
        h = self.net(x)
        with torch.no_grad():
            error = (h - y).abs().mean()
            self.largest.copy_(h.abs().max())
        return F.mse_loss(h, y), error


class Checkpointed(Residual):
    """Reentrant checkpoints: the first has no input that needs a gradient, and torch gives its parameters none."""

    def forward(self, x, y):
        h = x + checkpoint(self.layers[0], x, use_reentrant=True)
        h = self.layer(1, h)
        for i in (2, 3):
            h = checkpoint(self.layer, i, h, use_reentrant=True)
        return F.mse_loss(h, y)


class Clamped(Residual):
    """In place on an activation, which keeps its history; and on a part of one."""

    def forward(self, x, y):
        h = self.layer(1, self.layer(0, x)) * 1.5
        with torch.no_grad():
            h.clamp_(-1, 1)
        h = self.layer(2, h) * 1.5
        with torch.no_grad():
            h[:, :2].mul_(0.5)
        return F.mse_loss(self.layer(3, h), y)


class Switched(Residual):
    """Every way to switch gradients off and on again."""

    @torch.no_grad()
    def decorated(self, h):
        return self.layer(0, h)

    def forward(self, x, y):
        with torch.no_grad():
            a = self.layer(0, x)
            with torch.enable_grad():
                b = self.layer(1, a)
            with torch.no_grad():
                c = self.layer(2, b)
            d = self.layer(3, c)
        torch.set_grad_enabled(False)
        e = self.layer(1, b)
        torch.set_grad_enabled(True)
        with torch.inference_mode():
            f = self.layer(2, e)
        return F.mse_loss(self.net(b + c + d + e + f.clone() + self.decorated(b)), y)


class Kept(Residual):
    """What was right before: detach, straight-through rounding, a frozen teacher, the other checkpoint."""

    def __init__(self):
        super().__init__()
        self.teacher = nn.Linear(WIDTH, WIDTH).requires_grad_(False)

    def forward(self, x, y):
        h = self.layer(1, self.layer(0, x))
        h = h + (h.round() - h).detach()
        h = checkpoint(self.layer, 2, h, use_reentrant=False)
        with torch.no_grad():
            wanted = self.teacher(x)
        return F.mse_loss(self.layer(3, h), y) + F.mse_loss(h, wanted)


def inputs(batch):
    return {"x": torch.randn(batch, WIDTH), "y": torch.randn(batch, WIDTH)}


MODELS = {
    "self_conditioned": SelfConditioned,
    "running_mean": lambda: RunningMean(write=1, read=1),
    "first_to_last": lambda: RunningMean(write=0, read=3),
    "assigned": lambda: Assigned(write=0, read=3),
    "row": lambda: Row(write=0, read=2),
    "metric": Metric,
    "checkpointed": Checkpointed,
    "clamped": Clamped,
    "switched": Switched,
    "kept": Kept,
}


def exported(name):
    """For export_models.py: a function of the model's name."""

    def build(batch=SAMPLES):
        torch.manual_seed(1)
        return MODELS[name](), inputs(batch)

    return build


for model in MODELS:
    globals()[model] = exported(model)


class Needing(torch.fx.Interpreter):
    """Counts the tensors that operators make and whose history torch records."""

    count = 0

    def run_node(self, node):
        made = super().run_node(node)
        self.count += node.op == "call_function" and isinstance(made, torch.Tensor) and made.requires_grad
        return made


def needing(name):
    program = torch.export.load(FOLDER / f"{name}.pt2")
    graph = Needing(program.graph_module)
    weights = program.state_dict
    given = [weights[spec.target].clone() if spec.kind == InputKind.BUFFER else weights.get(spec.target)
             for spec in program.graph_signature.input_specs if spec.kind != InputKind.USER_INPUT]
    graph.run(*given, *inputs(SAMPLES).values())
    return graph.count


def expected(name):
    module, _ = exported(name)()
    module = module.double().train()
    tensors = {}
    for m in range(MICROBATCHES):
        given = {key: value.double() for key, value in inputs(SAMPLES).items()}
        made = module(**given)
        loss = made[0] if isinstance(made, tuple) else made
        (loss / MICROBATCHES).backward()
        tensors |= {f"{key}.{m}": value for key, value in given.items()} | {f"loss.{m}": loss.detach()}
    tensors["needing"] = torch.tensor(float(needing(name)))
    tensors |= {f"gradient.{key}": one.grad for key, one in module.named_parameters() if one.grad is not None}
    tensors |= {f"buffer.{key}": one for key, one in module.named_buffers()}
    return {f"{name}.{key}": value.contiguous() for key, value in tensors.items()}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = struct.pack(f"<{tensor.numel()}d", *tensor.detach().flatten().tolist())
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    tensors = {}
    for model in MODELS:
        subprocess.run([sys.executable, HERE.parents[3] / "configs/models/export_models.py", "--module", f"{HERE}:{model}",
                        "--real-weights", "--out", FOLDER], check=True)
        tensors |= expected(model)
    write_safetensors(FOLDER / "expected.safetensors", tensors)
