"""A pipeline beside the plain module: whether they agree, and what a step of it took."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ._core import ConfigError
from ._operators import Moment, draw_count, takes_random_numbers
from ._schedule import Schedule
from ._stages import Given, Program
from ._trace import _NUMBERS

if TYPE_CHECKING:
    from ._pipeline import Pipeline


class Draws(TorchDispatchMode):
    """While it holds, the random operators of the plain module draw the numbers that the pipeline's do.

    Its operators are taken to come in the program's order: for a node of the program one, or several that go on drawing.
    """

    def __init__(self, program: Program, moment: Moment, microbatch: int):
        super().__init__()
        moment.at(microbatch)
        self._moment = moment
        counts = [(node.name, draw_count(node, moment.device)) for node in program.graph.nodes]
        self._generator = moment.generator
        self._of_state: dict[bytes, str] = {}  # so that what a checkpoint computes again draws the same
        self._names = iter([name for node_name, count in counts for name in ([node_name] + [""] * (count - 1) if count else [])])

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if takes_random_numbers(function, args, kwargs or {}):
            state = self._generator.get_state().numpy().tobytes()
            if state not in self._of_state:
                self._of_state[state] = next(self._names, "")
            if name := self._of_state[state]:
                self._moment.draw(zlib.crc32(name.encode()))
        return function(*args, **(kwargs or {}))


class Backward(nn.Module):
    """A module whose backward is part of its forward: what a checkpoint computes again there has the same parameters."""

    def __init__(self, plain: nn.Module):
        super().__init__()
        self.plain = plain

    def forward(self, share: float, *given: torch.Tensor) -> torch.Tensor:
        returned = self.plain(*given)
        loss: torch.Tensor = returned["loss"] if isinstance(returned, dict) else returned[0] if isinstance(returned, tuple) else returned
        with torch.autocast(given[0].device.type, enabled=False):
            (loss * share).backward()
        return loss.detach()


class Checked(NamedTuple):
    """The same on every rank. loss, plain_loss: of the step. gradients: by name, how far each is from the plain module's, as a
    share of its largest number; inf where only one has a gradient, or a number is NaN."""

    loss: float
    plain_loss: float
    gradients: dict[str, float]

    def __repr__(self) -> str:
        name, far = max(self.gradients.items(), key=lambda pair: pair[1], default=("none", 0.0))
        return f"loss {self.loss:.9g}, plain {self.plain_loss:.9g}; gradients differ by at most {far:.2g} ({name})"


def check(pipe: Pipeline, args: Sequence[object], kwargs: Mapping[str, object]) -> Checked:
    """Does the work of Pipeline.check()."""
    if pipe.replicas:
        raise ConfigError("check() compares one pipeline on its own batch: make one without replicas")
    program: Program = pipe.program
    before = {name: parameter.grad for name, parameter in pipe.named_parameters().items()}
    step = pipe.moment.step
    whole = _whole(pipe)
    buffers = {name: program.tensor(name).clone() for name in pipe.names if name not in before}
    for parameter in pipe.parameters():
        parameter.grad = None
    scale, pipe._executor.scale = pipe._executor.scale, None
    loss = pipe.step(*args, **kwargs)
    own = {name: parameter.grad for name, parameter in pipe.named_parameters().items()}
    pipe._executor.scale, pipe.moment.step = scale, step
    given = pipe._taken(tuple(args), kwargs, may_lack=False)
    means = program.means
    plain = own_module = getattr(pipe.capture, "whole", None)
    if means and means.counts and not means.terms.is_one_mean:
        plain = None  # which counts its means over labels, as the module does not of a microbatch
    if plain is None:
        nodes = [node for node in program.graph.nodes if node.op == "call_function"]
        plain = program.assemble(nodes, program.outputs[:1], pipe.device, pipe.moment)
        named = {node: whole[name] for name in whole for node in program.placeholders([name])}
        inputs = [program.inputs.index(node) for node in program.read(nodes)]
        own_module = None
    else:
        named, inputs = whole, list(range(len(program.inputs)))
    named = {f"plain.{name}": tensor for name, tensor in named.items()}
    plain_loss = 0.0
    with pipe.moment.kept():
        for m, (part, share) in enumerate(zip(given.micro, _shares(pipe, given, plain is own_module))):
            values = [part[i].to(pipe.device) for i in inputs]
            pipe.moment.at(m)
            if share:
                with pipe.cast(), contextlib.nullcontext() if plain is not own_module else Draws(program, pipe.moment, m):
                    unscaled = torch.func.functional_call(Backward(plain), named, (share, *values))
                plain_loss += float(unscaled * share)
    torch.clear_autocast_cache()
    far = {name: _apart(gradient, _own_words(pipe, name, whole[name].grad)) for name, gradient in own.items()}
    for name, parameter in pipe.named_parameters().items():
        parameter.grad = before[name]
    with torch.no_grad():
        for name, buffer in buffers.items():
            program.tensor(name).copy_(buffer)
    gradients = {name: distance for of_rank in pipe._messages.all(far) for name, distance in of_rank.items()}
    return Checked(float(loss), plain_loss, gradients)


def _shares(pipe: Pipeline, given: Given, by_module: bool) -> list[float]:
    """[microbatch] of the step's loss. by_module: its loss is divided by its own count."""
    shares: list[float] = pipe._counts(given)
    means = pipe.program.means
    if not means or not means.counts:
        return shares
    of_rank = pipe._messages.all(pipe.moment.of_microbatches)
    pipe.moment.of_microbatches = [{name: value for tensors in parts for name, value in tensors.items()} for parts in zip(*(part for part in of_rank if part))]
    if not by_module:
        return shares
    (node,) = means.counts
    own = None
    if pipe._computes(node.name):
        whole = means.of_batch(node, given)
        of_sum = means.counts[node].of_sum
        own = [float(means.count(node, part) / whole) * (1.0 if of_sum else share) for part, share in zip(given.micro, shares)]
    return next(shares for shares in pipe._messages.all(own) if shares is not None)


def _own_words(pipe: Pipeline, name: str, tensor: torch.Tensor | None) -> torch.Tensor | None:
    """What this rank has of a parameter that ranks divide."""
    divided = pipe._head is not None and name in pipe._head.names and not pipe._head.holds_all
    return pipe._head.own.of_tensor(tensor) if divided and tensor is not None and pipe._head else tensor


def _apart(tensor: torch.Tensor | None, wanted: torch.Tensor | None) -> float:
    if tensor is None or wanted is None:
        return 0.0 if tensor is wanted else float("inf")
    far = float((tensor - wanted).abs().max() / wanted.abs().max().clamp(min=torch.finfo(wanted.dtype).tiny))
    return far if far == far else float("inf")  # max() passes over NaN


def _whole(pipe: Pipeline) -> dict[str, torch.Tensor]:
    """Copies of the parameters and buffers of all ranks."""
    program: Program = pipe.program
    first_of: dict[str, int] = {}
    for rank, names in enumerate(pipe._messages.all(pipe.names)):
        for name in names:
            first_of.setdefault(name, rank)
    copies: dict[str, torch.Tensor] = {}
    for name, rank in first_of.items():
        tensor = program.tensor(name)
        if pipe._head and name in pipe._head.names:
            copies[name] = pipe._head.gathered(name, pipe._messages).requires_grad_(tensor.requires_grad)
            continue
        own = tensor.detach() if rank == pipe.rank else torch.zeros_like(tensor, device=pipe.device)
        copies[name] = pipe._messages.sum(own).requires_grad_(tensor.requires_grad)
    return copies


class Measured:
    """A step as it ran. step: ms. bubble: share of ranks x step that no F, B, I or W fills.

    events: numpy record array with the columns of Trace.events, of F, B, I, W, S and T ("compute"), OFFLOAD and RELOAD ("copy");
        posted: when its turn came, so that up to `start` it waited for messages or copies.
    """

    source = "measured"

    def __init__(self, events: np.recarray[Any, Any], ranks: int):
        self.events, self.ranks = events, ranks
        span = int(events.end.max() - events.posted.min())
        self.step = span / 1e6
        computing = events[events.kind == "compute"]
        self.bubble = 1 - int((computing.end - computing.start).sum()) / (ranks * span)

    def of_cells(self, schedule: Schedule, rank: int, begin: int) -> list[dict[str, Any]]:
        """The events of a rank's row, overlapped ones as one. begin: ns, of the step."""
        own = {event["action"]: event for event in self.events[self.events["rank"] == rank]}
        found = []
        for cell, actions in zip(schedule.cells[rank], schedule._actions()[1][rank]):
            names = [action.text for action in actions if action.text in own]
            if names:
                starts, ends = ([int(own[name][which]) + begin for name in names] for which in ("start", "end"))
                times = dict(posted=min(starts), start=min(starts), end=max(ends), launch=0)
                found.append(dict(kind=str(own[names[0]]["kind"]), action=cell, rank=rank, peer=rank, **times))
        return found

    def to_pandas(self) -> Any:
        """The events as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.events)

    def __repr__(self) -> str:
        return f"<pfeife.Measured {self.ranks} ranks, step {self.step:.6g} ms, bubble {self.bubble:.1%}>"


KINDS = {"F", "B", "I", "W", "S", "T", "OFFLOAD", "RELOAD"}  # that a trace has


def trace(pipe: Pipeline, args: Sequence[object], kwargs: Mapping[str, object]) -> Measured:
    """Does the work of Pipeline.trace()."""
    executor, pieces = pipe._executor, pipe._assembly.pieces
    device = torch.get_device_module(pipe.device) if pipe.device.type != "cpu" else None

    def mark() -> Any:
        if device is None:
            return time.perf_counter_ns()
        event = device.Event(enable_timing=True)
        event.record()
        return event

    executor.measured = []
    pipe._messages.all(None)
    pipe._messages.sum(torch.zeros(1, device=pipe.device))  # so that all begin together
    zero = mark()
    executor.clock = mark
    try:
        (pipe.step if pipe.trains else pipe.evaluate)(*args, **kwargs)
    finally:
        executor.clock = None
    if device is not None:
        device.synchronize()

    def since(event: Any) -> int:
        return event - zero if device is None else int(zero.elapsed_time(event) * 1e6)

    rows = [
        (action.text, pipe.rank, action.stage, action.microbatch // pieces, since(turn), since(began), since(ended))
        for action, turn, began, ended in executor.measured
        if action.kind in KINDS
    ]
    found = [row for of_rank in pipe._messages.all(rows) for row in of_rank]
    action, rank, stage, microbatch, turn, began, ended = (np.array(column) for column in zip(*found))
    kind = np.array(["copy" if "LOAD" in text else "compute" for text in action], dtype="U10")
    arrays = [kind, action]
    arrays += [rank, rank, stage, microbatch, turn, began, ended, np.zeros(len(found), dtype=np.int64)]
    types = [("kind", "U10"), ("action", action.dtype.str), *((name, "i8") for name in _NUMBERS)]
    return Measured(np.rec.fromarrays(arrays, dtype=types), dist.get_world_size(pipe.group))
