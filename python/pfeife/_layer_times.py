"""A file of layer times (configs/reference/layer_times.md): each distinct block of a transformers model on one rank of a mesh, timed here.

A block is sharded by the model's own plan of tensor parallelism: linear layers get the rows or columns of one rank, so that its
operators are a rank's, without collectives, which a plan adds. Not measured: cp and ep; experts under tp; how blocks disturb each other.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import fnmatch
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ._config import Options, PathLike
from ._core import ConfigError
from ._measure import Row, here, timed_block
from ._overhead import EMPTY

COLUMNS = (
    "kind,tp,cp,ep,microbatch,sequence,recompute,precision,compiled,forward_ms,input_ms,weight_ms,saved_bytes,temporary_bytes,"
    "parameter_bytes,output_bytes,machine,versions"
).split(",")
SETTING = COLUMNS[:9]
PRECISIONS = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


class Reached(Exception):
    """A block's inputs are known."""


class Block(nn.Module):
    """A decoder layer as a function of its hidden states."""

    def __init__(self, layer: nn.Module, more: tuple[Any, ...], keywords: dict[str, Any]):
        super().__init__()
        self.layer, self.more, self.keywords = layer, more, keywords

    def forward(self, hidden: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.layer(hidden, *self.more, **self.keywords)
        return (outputs if isinstance(outputs, torch.Tensor) else outputs[0],)


class Embedding(nn.Module):
    def __init__(self, embedding: nn.Module):
        super().__init__()
        self.embedding = embedding

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (self.embedding(tokens),)


class Head(nn.Module):
    """Final norm, logits, cross entropy in fp32."""

    def __init__(self, norm: nn.Module, logits: nn.Module, targets: torch.Tensor):
        super().__init__()
        self.norm, self.logits, self.targets = norm, logits, targets

    def forward(self, hidden: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits = self.logits(self.norm(hidden)).float()
        return (functional.cross_entropy(logits.flatten(0, -2), self.targets),)


class Layout:
    """Where a causal language model of transformers has its parts."""

    def __init__(self, model: nn.Module):
        base: Any = getattr(model, "base_model", None)
        norms = [getattr(base, name, None) for name in ("norm", "final_layernorm", "ln_f")]
        self.model: Any = model
        self.base: Any = base
        self.config: Any = getattr(self.model, "config", None)
        self.layers: Any = getattr(base, "layers", None)
        self.norm: Any = next((norm for norm in norms if norm is not None), None)
        self.logits: Any = self.model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        if not isinstance(self.layers, nn.ModuleList) or self.norm is None or self.logits is None or self.config is None:
            raise ConfigError(
                f"{type(model).__name__} is no causal language model of transformers with `layers`, a final norm and a head, of which "
                "alone layer times are measured; pfeife.measure(model, batch) without times and mesh takes any module"
            )
        self.embedding: Any = self.model.get_input_embeddings()
        self.prefix = f"{self.model.base_model_prefix}.layers.*"
        self.plan: dict[str, str] = dict(getattr(model, "tp_plan", None) or getattr(model, "_tp_plan", None) or {})

    def kind(self, number: int) -> str:
        """What the planner calls the layer."""
        types = getattr(self.config, "layer_types", None)
        form = types[number] if types else "full_attention"
        window = getattr(self.config, "sliding_window", None)
        if not types and window and getattr(self.config, "use_sliding_window", True):
            form = "sliding_attention"
        if form not in ("full_attention", "sliding_attention"):
            raise ConfigError(f"layer {number} is of type {form}, of which no times are measured yet; full_attention and sliding_attention are")
        rotary = getattr(self.config, "no_rope_layers", None)
        attention = "attention" + (f" window {window}" if form == "sliding_attention" else "")
        attention += " not rotary" if rotary and not rotary[number] else ""
        names = {name.rpartition(".")[2] for name, _ in self.layers[number].named_modules()}
        return attention + ("+experts" if "experts" in names else "+dense")

    def distinct(self) -> dict[str, int]:
        """The kinds, and the first layer of each."""
        first: dict[str, int] = {}
        for number in range(len(self.layers)):
            first.setdefault(self.kind(number), number)
        return first

    def inputs(self, number: int, batch: Any, device: torch.device) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the model hands to that layer, had it no layers before it: of a copy that has no other."""
        found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

        def hook(_: nn.Module, given: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            found.append((given, keywords))
            raise Reached

        layers = self.base.layers
        try:
            self.base.layers = nn.ModuleList([layers[number]])
            alone: Any = copy.deepcopy(self.model)
        finally:
            self.base.layers = layers
        alone = placed(alone, device)
        alone.config.use_cache = False
        alone.base_model.layers[0].register_forward_pre_hook(hook, with_kwargs=True)
        with torch.no_grad(), contextlib.suppress(Reached):
            alone(**batch) if isinstance(batch, Mapping) else alone(*(batch if isinstance(batch, (tuple, list)) else (batch,)))
        if not found:
            raise ConfigError(f"the model does not call its layer {number} on this batch")
        return found[0]


def measure_layers(
    model: nn.Module,
    batch: object,
    mesh: Mapping[str, int],
    file: PathLike,
    device: torch.device,
    compile: bool | Options,
    autocast: torch.dtype | None,
    repetitions: int,
) -> list[Row]:
    """Does the work of pfeife.measure() with times."""
    for axis, size in mesh.items():
        if axis not in ("tp", "cp", "ep"):
            raise ConfigError(f"mesh: {axis!r} does not change a layer; give tp, such as mesh={{'tp': 8}}")
        if axis != "tp" and size != 1:
            raise ConfigError(f"mesh: layers are measured without {axis} so far; leave it out, or add rows of your own to the file")
    tp = int(mesh.get("tp", 1))
    layout = Layout(model)
    batch = here_all(batch, device)
    tokens = next((leaf for leaf in leaves(batch) if leaf.dim() == 2 and not leaf.is_floating_point()), None)
    if tokens is None:
        raise ConfigError("the batch has no token numbers of [sequences, tokens]")
    held = next(model.parameters()).dtype
    precision = PRECISIONS.get(autocast or held)
    if precision is None:
        raise ConfigError(f"the model's parameters are of {held}; use bfloat16, float16 or float32")
    about = {
        **{"tp": tp, "cp": 1, "ep": 1, "microbatch": tokens.shape[0], "sequence": tokens.shape[1], "recompute": "none", "precision": precision},
        **{"compiled": "true" if compile else "false", "machine": machine_of(device), "versions": versions()},
    }
    empty, _ = timed_block(EMPTY, [torch.ones(1, device=device, requires_grad=True)], device, compile, autocast, repetitions)
    rows = []

    def add(kind: str, module: nn.Module, given: torch.Tensor) -> torch.Tensor:
        row, outputs = timed_block(module, [given], device, compile, autocast, repetitions)
        if compile:
            torch.compiler.reset()  # the next module has the same code, of which so many versions are compiled
        whole = "backward_input_ms" if row["backward_input_ms"] else "backward_weight_ms"
        row[whole] = max(0.0, row[whole] - empty["backward_input_ms"])
        rows.append(
            {
                "kind": kind,
                **about,
                "forward_ms": max(0.0, row["forward_ms"] - empty["forward_ms"]),
                "input_ms": row["backward_input_ms"],
                "weight_ms": row["backward_weight_ms"],
                "saved_bytes": row["saved_bytes"],
                "parameter_bytes": sum(parameter.nbytes for parameter in module.parameters()),
                "output_bytes": outputs[0].nbytes,
            }
        )
        return outputs[0]

    embedding = sharded(layout.embedding, layout, full_name(model, layout.embedding), tp)
    numbers = here(tokens, device) % embedding.weight.shape[0]
    hidden = add("embedding", Embedding(placed(embedding, device)), numbers)
    for kind, number in layout.distinct().items():
        given, keywords = layout.inputs(number, batch, device)
        layer = placed(sharded(layout.layers[number], layout, layout.prefix, tp), device)
        states = keywords.pop("hidden_states", None)
        more = here_all(given if states is not None else given[1:], device)
        hidden = add(kind, Block(layer, more, here_all(keywords, device)), hidden.detach().requires_grad_())
    logits = sharded(layout.logits, layout, full_name(model, layout.logits), tp)
    targets = torch.randint(logits.weight.shape[0], (tokens.numel(),), device=device)
    add("head", Head(placed(copy.deepcopy(layout.norm), device), placed(logits, device), targets), hidden.detach().requires_grad_())
    write_rows(Path(file), rows)
    return rows


def sharded(module: Any, layout: Layout, name: str, tp: int) -> Any:
    """A copy with one rank's part of what the model's plan divides. name: of the module, as the plan has it."""
    module = copy.deepcopy(module)
    if tp == 1:
        return module
    if not layout.plan:
        raise ConfigError(f"{type(layout.model).__name__} has no plan of tensor parallelism (tp_plan); measure tp 1")
    heads = getattr(layout.config, "num_key_value_heads", None) or layout.config.num_attention_heads
    if heads % tp:
        raise ConfigError(f"tp {tp} does not divide the {heads} key and value heads")
    own = {f"{name}.{inner}" if inner else name: part for inner, part in module.named_modules()}
    rules = {pattern: style for pattern, style in layout.plan.items() if pattern == name or pattern.startswith(f"{name}.")}
    for pattern, style in rules.items():
        parts = [part for called, part in own.items() if called == pattern or fnmatch.fnmatch(called, pattern)]
        if style.startswith("replicated"):
            continue
        for part in parts:
            shard(part, pattern, style, tp)
        if not parts:
            raise not_measured(pattern, style)
    return module


def not_measured(pattern: str, style: str) -> ConfigError:
    return ConfigError(
        f"the model's plan divides {pattern} by {style!r}, of which no rank's part is known here, but of linear layers by colwise and "
        "rowwise and embeddings by embedding_rowwise; measure tp 1, or write rows of your own into the file"
    )


def shard(part: Any, pattern: str, style: str, tp: int) -> None:
    """The first rank's rows or columns of a linear layer or an embedding."""
    words = style.split("_")
    linear = isinstance(part, nn.Linear) and words[0] in ("colwise", "rowwise")
    if not linear and not (isinstance(part, nn.Embedding) and style == "embedding_rowwise"):
        raise not_measured(pattern, style)
    dim = 1 if linear and words[0] == "rowwise" else 0
    whole = part.weight.shape[dim]
    if whole % tp:
        raise ConfigError(f"tp {tp} does not divide the {whole} of {pattern}")
    for key in ("weight", "bias"):
        parameter = getattr(part, key, None)
        if parameter is not None and dim < parameter.dim():
            piece = parameter.detach().narrow(dim, 0, whole // tp).clone()
            setattr(part, key, nn.Parameter(piece, parameter.requires_grad))
    setattr(part, ("num_embeddings" if not linear else "in_features" if dim else "out_features"), whole // tp)


def full_name(model: nn.Module, part: nn.Module) -> str:
    return next(name for name, module in model.named_modules() if module is part)


def placed(module: nn.Module, device: torch.device) -> nn.Module:
    """On the device; of `meta`, with small numbers."""
    for part in module.modules():
        for key, parameter in list(part._parameters.items()):
            if parameter is not None:
                part._parameters[key] = here(parameter, device)
        for key, buffer in list(part._buffers.items()):
            if buffer is not None:
                part._buffers[key] = here(buffer, device)
    return module


def leaves(batch: object) -> list[torch.Tensor]:
    values = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else [batch]
    return [value for value in values if isinstance(value, torch.Tensor)]


def here_all(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return here(value, device)
    if isinstance(value, Mapping):
        return {key: here_all(item, device) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(here_all(item, device) for item in value)
    return value


def machine_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} processor, {torch.get_num_threads()} threads of {os.cpu_count()}"


def versions() -> str:
    library = sys.modules.get("transformers")
    return f"torch {torch.__version__}" + (f", transformers {library.__version__}" if library else "")


def write_rows(file: Path, rows: list[Row]) -> None:
    """Rows of the same setting in the file are replaced, others stay."""
    kept: list[Mapping[str, Any]] = []
    if file.exists():
        with open(file, newline="") as before:
            kept = list(csv.DictReader(line for line in before if not line.startswith("#")))
    new = {tuple(str(row[key]) for key in SETTING) for row in rows}
    kept = [row for row in kept if tuple(row.get(key) or "" for key in SETTING) not in new]
    with open(file, "w", newline="") as after:
        writer = csv.DictWriter(after, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in [*kept, *rows]:
            writer.writerow({key: f"{value:.6f}" if isinstance(value, float) else value for key, value in row.items()})
