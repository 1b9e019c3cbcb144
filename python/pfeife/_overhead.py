"""Processor time that Pipeline's actions take beside the operators of stages: Python, autograd's entry, messages.

Measured once a machine, by the action loop itself (Executor) on two ranks that are threads of this process, over Gloo. Not
measured: NCCL's messages, and the host of a card, which works ahead of it; there the figures are upper limits.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
import torch.distributed as dist
from torch import fx, nn

from ._core import RuntimeFault
from ._executor import Executor
from ._messages import Messages
from ._operators import Moment, aten, deferred
from ._schedule import Action

LAYERS, WIDTH, MICROBATCHES, STEPS = 4, 16, 8, 30
CPU = torch.device("cpu")


class Overhead(NamedTuple):
    """us of processor time. compute: an F, B or I beside its operators. message: a SEND or RECV. layer: what I and W of a linear
    layer take more than its B."""

    compute: float
    message: float
    layer: float

    @property
    def stage(self) -> float:
        """An F with its RECV and SEND, or a B with its own."""
        return self.compute + 2 * self.message

    def __str__(self) -> str:
        return f"measured: {self.stage / 3:.0f} us an action of Pipeline"


def overhead_here(again: bool = False) -> Overhead:
    """This machine's figures: from a file of the user's cache, where they are kept once measured. Processes that start together
    wait for the one that measures. again: measures in any case. Errors: RuntimeFault if Gloo cannot be used."""
    key = f"{platform.node()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
    with contextlib.ExitStack() as held:
        file: IO[str] | None = None
        kept: dict[str, list[float]] = {}
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # no home, no such folder, or a file of something else
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pfeife"
            cache.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(cache / "overhead.json", "a+"))
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            kept = json.loads(file.read() or "{}")
        if again or key not in kept:
            # In a process of its own: one that has gone backward may not fork ranks any more.
            program = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from pfeife._overhead import measured; print(*measured())"
            done = subprocess.run([sys.executable, "-c", program, json.dumps(sys.path)], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeFault(done.stderr.strip().rpartition("\n")[2])
            kept[key] = [float(f"{float(figure):.2g}") for figure in done.stdout.split()[-3:]]
            if file:
                file.truncate(0)
                file.write(json.dumps(kept, indent=1))
        return Overhead(*kept[key])


class Threads(Messages):
    """The messages of a rank that is a thread."""

    def __init__(self, store: dist.Store, rank: int):
        self.world, self._ranks, self.rank = [0, 1], 2, rank
        self.device = self.wire = CPU
        self.awaited, self._coalesced, self._peers, self._sent = (), False, {}, {}
        self._backend = dist.ProcessGroupGloo(store, rank, 2, timeout=datetime.timedelta(seconds=60))


class Empty(nn.Module):
    """A block that computes nothing: its times are those of a call and of autograd's entry."""

    def forward(self, value: torch.Tensor) -> tuple[torch.Tensor]:
        return (value.view_as(value),)


class Tiny:
    """A stage of small layers, the first or the second of two, with what Executor needs of a Stage."""

    def __init__(self, number: int, moment: Moment, split: bool):
        self.inputs, self.leaves = [None], [] if number else [(0, 0)]
        self.sources, self.targets = ({0: [0]}, {}) if number else ({}, {1: [0]})
        self.returns_to, self.returned_by = self.sources.keys(), self.targets.keys()
        self.loss, self.offload, self.kept, self.names = 0 if number else None, 0.0, None, frozenset[str]()
        graph, root = fx.Graph(), nn.Module()
        value = graph.placeholder("value")
        for i in range(LAYERS):
            root.register_parameter(f"weight{i}", nn.Parameter(torch.eye(WIDTH)))
            linear = deferred(aten.linear.default, moment) if split else aten.linear.default
            value = graph.call_function(linear, (value, graph.get_attr(f"weight{i}")))
        graph.output((graph.call_function(aten.mean.default, (value,)) if number else value,))
        self.module: Any = fx.GraphModule(root, graph)
        self.trained = list(self.module.parameters())

    def forward(self, inputs: list[torch.Tensor]) -> Any:
        return self.module(*inputs)

    def alone(self) -> Iterator[tuple[str, int]]:
        """Kinds and ns of a forward and a backward without the action loop, as pfeife.measure() takes them; of nothing, too."""
        for kind, module, trained in (("alone", self.module, self.trained), ("empty", EMPTY, [])):
            value = torch.ones(WIDTH, WIDTH, requires_grad=bool(self.sources) or kind == "empty")
            begin = time.thread_time_ns()
            (result,) = module(value)
            yield f"{kind} F", time.thread_time_ns() - begin
            gradient, wanted = torch.ones_like(result), [*trained, *([value] if value.requires_grad else [])]
            begin = time.thread_time_ns()
            torch.autograd.grad([result], wanted, [gradient])
            yield f"{kind} B", time.thread_time_ns() - begin


EMPTY = Empty()


def measured() -> Overhead:
    """Measures the figures now, for some seconds: the first quartile of all that is timed in turns."""
    taken: dict[tuple[int, str], list[int]] = {}
    kinds = [["F", "SEND_F", "RECV_B", "B"], ["RECV_F", "F", "B", "SEND_B"]]
    batch, shares = [[torch.ones(WIDTH, WIDTH)] for _ in range(MICROBATCHES)], [1 / MICROBATCHES] * MICROBATCHES
    store = dist.HashStore()

    def run(rank: int) -> None:
        moment, messages = Moment(0, CPU), Threads(store, rank)
        whole: Any = Tiny(rank, moment, False)
        split: Any = Tiny(rank, moment, True)
        for step in range(2 * STEPS):
            stage, backward = (split, ["I", "W"]) if step % 2 else (whole, ["B"])
            own = [kind for name in kinds[rank] for kind in (backward if name == "B" else [name])]
            executor = Executor({rank: stage}, [0, 1], rank, messages, moment)
            executor.clock = time.thread_time_ns
            executor.run([Action(kind, rank, m, 1 - rank, "") for m in range(MICROBATCHES) for kind in own], batch, shares, True, {})
            for action, turn, _, ended in executor.measured:
                taken.setdefault((rank, f"split {action.kind}" if step % 2 else action.kind), []).append(ended - turn)
            for kind, time_alone in whole.alone():
                taken.setdefault((rank, kind), []).append(time_alone)

    with ThreadPoolExecutor(2) as ranks:
        list(ranks.map(run, range(2)))

    def us(*kinds: str) -> float:
        """Sum over both ranks."""
        found = [taken[rank, kind] for kind in kinds for rank in range(2) if (rank, kind) in taken]
        return sum(statistics.quantiles(values, n=4)[0] for values in found) / 1e3

    compute = (us("F", "B") - us("alone F", "alone B") + us("empty F", "empty B")) / 4
    message = us("SEND_F", "RECV_F", "SEND_B", "RECV_B") / 4
    more = us("split F", "split I", "split W") - us("F", "B")
    return Overhead(max(0.0, compute), message, max(0.0, more) / (2 * LAYERS))
