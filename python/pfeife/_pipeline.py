"""Trains a module as a plan says: every rank follows its lowered row, over the process groups of torch.distributed.

The rows' transfers carry the values that cross cuts and their gradients; values between two stages of a rank are handed over.
Not here: what a stage is (_stages.py), what differs between backends (_messages.py).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from ._core import ConfigError, RuntimeFault
from ._messages import Arriving, Messages
from ._stages import Moment, Program, copied

CELL = re.compile(r"(\d+)([A-Z_]+?)(\d*)(?:[<>](\d+))?")
FORWARD = {"F", "SEND_F", "RECV_F"}
NOT_EXECUTED = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "OPTIMIZER_STEP"}
AUTOCAST = {"bf16_amp": torch.bfloat16, "fp16_amp": torch.float16}


class Action(NamedTuple):
    kind: str  # F B I W, SEND_F RECV_F SEND_B RECV_B
    stage: int
    microbatch: int
    other: int  # the stage at the other end of a transfer


def actions(row: list[str]) -> list[Action]:
    """What a row executes: overlapped cells one after the other, transfers over stages as any others."""
    found = []
    for cell in row:
        inner = cell[1 : cell.index(")")].split(";") if cell.startswith("(") else [cell]
        for text in filter(None, inner):
            parsed = CELL.fullmatch(text)
            if not parsed:
                raise ConfigError(f"the cell {text!r} of the schedule is none that a pipeline executes")
            stage, kind, microbatch, other = parsed.groups()
            kind = kind.removeprefix("SKIP_")
            if kind in NOT_EXECUTED:
                continue
            step = {"SEND_F": 1, "RECV_F": -1, "SEND_B": -1, "RECV_B": 1}.get(kind, 0)
            found.append(Action(kind, int(stage), int(microbatch), int(other) if other else int(stage) + step))
    return found


class Stage:
    """One of this rank's stages. sources, targets: by stage at the other end, which of its inputs come from there, and which
    of its results go there."""

    def __init__(self, program: Program, number: int, said: Mapping[str, Any], blocks: list[set[str]], split: bool, make: Any):
        self.number = number
        self.nodes = program.nodes[number]
        self.inputs = program.read(self.nodes)
        self.leaves = [(i, program.inputs.index(one)) for i, one in enumerate(self.inputs) if one in program.inputs]
        self.sources: dict[int, list[int]] = {}
        self.targets: dict[int, list[int]] = {}
        gives: dict[Any, int] = {}
        for (source, target), values in program.crossings.items():
            if target == number:
                self.sources[source] = [self.inputs.index(one) for one in values]
            if source == number:
                self.targets[target] = [gives.setdefault(one, len(gives)) for one in values]
        self.loss = gives.setdefault(program.outputs[0], len(gives)) if program.loss_stage == number else None
        names = {node.name for node in self.nodes}
        again = [names] if said["recomputed"] else [block & names for block in blocks if block & names]
        self.written = [program.tensor(name) for name in said["written"]]
        self._make = lambda **how: program.assemble(self.nodes, list(gives), *make, **how)
        self.module = self._make(split=split, blocks=again, written=program.placeholders(said["written"]))
        self.trained = [one for one in self.module.parameters() if one.requires_grad]
        self._evaluation: nn.Module | None = None

    @property
    def evaluation(self) -> nn.Module:
        if self._evaluation is None:
            self._evaluation = self._make(training=False)
        return self._evaluation


class Flight(NamedTuple):
    """What a stage keeps of a microbatch between its forward and its backward."""

    given: tuple[Any, ...]
    received: dict[int, list[Any]]
    tape: list[tuple[Any, torch.Tensor]] | None


class Pipeline:
    """A module that is trained as planned, on the ranks of a group.

    model: the module that was planned, or what pfeife.capture() made of it. plan: of pfeife.plan(model, ...).
    device: of this rank, "cuda" the current one. group: of torch.distributed, a rank a rank of the plan; None the default
        group. seed: of random operators, the same on all ranks.
    Errors: ConfigError on every rank if this is another module than was planned, or the group has another size.
    """

    def __init__(self, model: Any, plan: Any, device: Any = None, group: Any = None, *, seed: int = 0, scaler: Any = None):
        capture = getattr(plan, "capture", None) if isinstance(model, nn.Module) else model
        if capture is None:
            raise ConfigError("the plan is of no module: pfeife.plan(model, batch, ...) plans one, pfeife.capture(model, batch) reads it")
        if not dist.is_initialized():
            raise ConfigError("torch.distributed is not initialized: torchrun, and torch.distributed.init_process_group() first")
        self.plan, self.capture = plan, capture
        self.group = group.get_group() if hasattr(group, "get_group") else group or dist.group.WORLD
        self.rank = dist.get_rank(self.group)
        self.device = torch.device(device or "cpu")
        if self.device.type != "cpu" and self.device.index is None:
            self.device = torch.device(self.device.type, torch.get_device_module(self.device).current_device())
        self.scaler = scaler
        self._synced = True
        self._messages = Messages(self.group, self.device)
        self._moment = Moment(seed, self.device)
        self._forms: dict[Any, Any] = {}
        self._agreed(lambda: self._built(model))

    def _agreed(self, work: Any) -> None:
        """The work, with its mistake on every rank."""
        said = None
        try:
            work()
        except Exception as error:
            said, own = str(error), error
        of_rank: list[Any] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(of_rank, said, group=self.group)
        if said is not None:
            raise own
        for rank, other in enumerate(of_rank):
            if other is not None:
                raise ConfigError(f"rank {rank}: {other}")

    def _built(self, model: Any) -> None:
        plan, cells = self.plan, self.plan.schedule.cells
        size = dist.get_world_size(self.group)
        if len(cells) != size:
            raise ConfigError(f"the plan is for {len(cells)} ranks, and the group has {size}: plan for devices={size}")
        wrong = plan.schedule.violations("rank", blocking=True)
        if wrong:
            raise ConfigError(f"the schedule cannot run where transfers hold their rank; lower it anew:\n{wrong}")
        self._row = actions(cells[self.rank])
        everything = [action for row in cells for action in actions(row)]
        self.microbatches = 1 + max(action.microbatch for action in everything)
        self._split = {(a.stage, a.microbatch) for a in self._row if a.kind == "I"}
        said = plan.stages
        self._rank_of = [stage["rank"] for stage in said]
        own = [stage for stage, rank in enumerate(self._rank_of) if rank == self.rank]
        parameters, buffers = self.capture.parameters, self.capture.buffers
        if isinstance(model, nn.Module):
            parameters = dict(model.named_parameters(remove_duplicate=False))
            buffers = dict(model.named_buffers(remove_duplicate=False))
        program = Program(self.capture, parameters, buffers, said)
        state = [program.state(nodes) for nodes in program.nodes]
        self._program = program
        self.names = list(dict.fromkeys(name for stage in own for name in state[stage]))
        for name in self.names:
            self._place(program.tensor(name))
        blocks = [set(block) for block in plan.recomputed_blocks]
        self._stages = {}
        for stage in own:
            split = any(one == stage for one, _ in self._split)
            make = (self.device, self._moment)
            self._stages[stage] = Stage(program, stage, said[stage], blocks, split, make)
        for source, target in program.crossings:
            ends = {source: "SEND_F", target: "RECV_F"}
            for end, kind in ends.items():
                if self._rank_of[source] != self._rank_of[target] and not any(
                    a.kind == kind and a.stage == end and a.other == source + target - end for a in everything
                ):
                    raise ConfigError(f"another module than was planned: the schedule sends nothing from stage {source} to {target}")
        self._ties = self._tied(program, state)

    def _place(self, tensor: torch.Tensor) -> None:
        """The same object, on this rank's device."""
        if tensor.device != self.device:
            tensor.data = tensor.data.to(self.device)

    # Tied parameters: one object, held by several ranks.

    def _tied(self, program: Program, state: list[list[str]]) -> list[tuple[torch.Tensor, Any, int]]:
        """(parameter, group of its ranks, the first of them) in the same order on every rank."""
        holders: dict[int, tuple[torch.Tensor, set[int]]] = {}
        for stage, names in enumerate(state):
            for name in names:
                tensor = program.tensor(name)
                if isinstance(tensor, nn.Parameter):
                    holders.setdefault(id(tensor), (tensor, set()))[1].add(self._rank_of[stage])
        ties = []
        groups: dict[tuple[int, ...], Any] = {}
        for tensor, ranks in holders.values():
            of = tuple(sorted(ranks))
            if len(of) > 1:
                if of not in groups:
                    ranks_of_world = [dist.get_global_rank(self.group, rank) for rank in of]
                    groups[of] = dist.new_group(ranks_of_world, use_local_synchronization=True) if self.rank in of else None
                if self.rank in of:
                    first = dist.get_global_rank(self.group, of[0])
                    dist.broadcast(tensor.data, first, group=groups[of])
                    ties.append((tensor, groups[of], first))
        return ties

    # A step.

    def step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Forward and backward of a batch, whose gradients are added to those that are there.

        Takes what the module's forward takes, the whole batch on every rank. Gives the loss, the same on every rank: the
        mean of the microbatches' losses by their samples.
        """
        me = dist.get_rank()
        if self._synced:
            for tensor, _, first in self._ties:
                if tensor.grad is not None and me != first:
                    tensor.grad.zero_()  # summed already: counts once
        loss = self._run(self._row, args, kwargs, training=True)
        self._moment.step += 1
        if self._synced:
            for tensor, group, _ in self._ties:
                if not tensor.requires_grad:
                    continue
                if tensor.grad is None:
                    tensor.grad = torch.zeros_like(tensor)
                dist.all_reduce(tensor.grad, group=group)
        return loss

    @torch.no_grad()
    def evaluate(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """The loss of a batch as model.eval() has it: nothing is dropped, batch norm uses its statistics, buffers stay."""
        row = [action for action in self._row if action.kind in FORWARD]
        return self._run(row, args, kwargs, training=False)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """While it holds, step() leaves the gradients of each rank to itself; the first step behind it sums them all."""
        before, self._synced = self._synced, False
        try:
            yield
        finally:
            self._synced = before

    def _run(self, row: list[Action], args: tuple[Any, ...], kwargs: Mapping[str, Any], training: bool) -> torch.Tensor:
        leaves = self.capture.leaves(*args, **kwargs)
        self._micro = self.capture.split(leaves, self.microbatches)
        self._weights = self._shares(leaves)
        self._sizes = [tuple(one.shape for one in part) for part in self._micro]
        self._training = training
        self._values: dict[tuple[int, int, int], Any] = {}
        self._grads: dict[tuple[int, int, int], Any] = {}
        self._flights: dict[tuple[int, int], Flight] = {}
        self._losses: list[torch.Tensor] = []
        do = {kind: getattr(self, f"_{kind.lower()}") for kind in ("F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B")}
        action = None
        try:
            with self._moment.kept():
                for action in row:
                    do[action.kind](action)
            self._messages.finish()
            loss = sum(self._losses) if self._losses else torch.zeros((), device=self.device)
            return self._shared(loss)
        except Exception as error:
            self._messages.abandon()
            if isinstance(error, ConfigError):
                raise
            where = f"{action.stage}{action.kind}{action.microbatch}" if action else "the step"
            raise RuntimeFault(f"rank {self.rank}, {where}: {type(error).__name__}: {error}") from error
        finally:
            self._values, self._grads, self._flights, self._micro = {}, {}, {}, []

    def _shares(self, leaves: list[torch.Tensor]) -> list[float]:
        """[microbatch] How much of the step's loss is its own: its share of the samples."""
        for i, leaf in enumerate(leaves):
            counts = [part[i].numel() for part in self._micro]
            if sum(counts) == leaf.numel():
                return [count / leaf.numel() for count in counts]
        return [1 / len(self._micro)] * len(self._micro)

    def _shared(self, loss: torch.Tensor) -> torch.Tensor:
        source = self._rank_of[self._program.loss_stage]
        form = self._agree_on("loss", loss.dtype, source)
        loss = loss.to(self._messages.wire, form)
        dist.broadcast(loss, dist.get_global_rank(self.group, source), group=self.group)
        return loss.to(self.device)

    def _agree_on(self, what: str, own: Any, source: int) -> Any:
        """The thing of one rank, on all; asked once."""
        if what not in self._forms:
            said = [own]
            dist.broadcast_object_list(said, dist.get_global_rank(self.group, source), group=self.group)
            self._forms[what] = said[0]
        return self._forms[what]

    # Transfers. What a message holds is told before the first of each route and size: of values type, shape, and whether they need
    # gradients; of gradients which there are.

    def _send(self, to: int, route: Any, parts: list[Any], forms: list[Any]) -> None:
        known = self._forms.get(("sent", route))
        if known is None:
            self._forms["sent", route] = forms
            self._messages.tell(route, forms, to)
        elif known != forms:
            raise ConfigError(
                f"what stage {route[1]} sends to stage {route[2]} was {known} and is {forms}: what needs a gradient, and autocast, "
                "stay as they were in the first step; make a new Pipeline after a change"
            )
        self._messages.send(route, [one for one in parts if isinstance(one, torch.Tensor)], to)

    def _receive(self, source: int, route: Any) -> tuple[list[Any], Arriving]:
        known = self._forms.get(("received", route))
        if known is None:
            known = self._forms["received", route] = self._messages.hear(source)
        return known, self._messages.receive([(form[0], form[1]) for form in known if isinstance(form, tuple)], source)

    def _route(self, action: Action) -> tuple[Any, ...]:
        kind, stage, microbatch, other = action
        ends = (stage, other) if kind.startswith("SEND") else (other, stage)
        return (kind[-1], *ends, self._sizes[microbatch], self._training)

    @staticmethod
    def _filled(forms: list[Any], tensors: list[torch.Tensor]) -> list[Any]:
        left = iter(tensors)
        return [next(left).requires_grad_(form[2]) if isinstance(form, tuple) else form for form in forms]

    def _send_f(self, action: Action) -> None:
        values = self._values.pop((action.stage, action.other, action.microbatch))
        forms = [(one.dtype, one.shape, one.requires_grad) if isinstance(one, torch.Tensor) else one for one in values]
        self._send(self._rank_of[action.other], self._route(action), values, forms)

    def _recv_f(self, action: Action) -> None:
        self._values[action.other, action.stage, action.microbatch] = self._receive(self._rank_of[action.other], self._route(action))

    def _send_b(self, action: Action) -> None:
        grads = self._grads.pop((action.stage, action.other, action.microbatch))
        forms = [(one.dtype, one.shape, False) if isinstance(one, torch.Tensor) else None for one in grads]
        self._send(self._rank_of[action.other], self._route(action), grads, forms)

    def _recv_b(self, action: Action) -> None:
        self._grads[action.other, action.stage, action.microbatch] = self._receive(self._rank_of[action.other], self._route(action))

    def _taken(self, box: dict[tuple[int, int, int], Any], source: int, target: int, microbatch: int) -> list[Any]:
        """A message that was received, or what a stage of this rank left."""
        found = box.pop((source, target, microbatch))
        if self._rank_of[source] != self.rank:
            forms, arriving = found
            return self._filled(forms, arriving.wait())
        return [one.detach().requires_grad_(one.requires_grad) if isinstance(one, torch.Tensor) else one for one in found]

    # Actions.

    def _f(self, action: Action) -> None:
        stage, m = self._stages[action.stage], action.microbatch
        self._moment.at(m)
        tape: list[Any] | None = [] if self._training and (action.stage, m) in self._split else None
        self._moment.tape = tape
        inputs: list[Any] = [None] * len(stage.inputs)
        for i, leaf in stage.leaves:
            inputs[i] = self._micro[m][leaf].to(self.device, non_blocking=True)
        received = {}
        for source, places in stage.sources.items():
            received[source] = self._taken(self._values, source, action.stage, m)
            for i, value in zip(places, received[source]):
                inputs[i] = value
        written = [(one, one.clone()) for one in stage.written] if self._training else []
        module = stage.module if self._training else stage.evaluation
        with self._autocast(), copied(module, written):
            given = module(*inputs)
        with torch.no_grad():
            for buffer, copy in written:
                buffer.copy_(copy)
        for target, places in stage.targets.items():
            self._values[action.stage, target, m] = [given[i] for i in places]
        if stage.loss is not None:
            self._losses.append(given[stage.loss].detach() * self._weights[m])
        if self._training:
            self._flights[action.stage, m] = Flight(given, received, tape)

    def _b(self, action: Action) -> None:
        stage, m = self._stages[action.stage], action.microbatch
        flight = self._flights.pop((action.stage, m))
        self._moment.at(m)
        self._moment.tape = flight.tape
        roots, grads = [], []
        for target, places in stage.targets.items():
            for i, grad in zip(places, self._taken(self._grads, target, action.stage, m)):
                if grad is not None:
                    roots.append(flight.given[i])
                    grads.append(grad)
        if stage.loss is not None and flight.given[stage.loss].requires_grad:
            loss = flight.given[stage.loss]
            share = torch.full_like(loss, self._weights[m])
            roots.append(loss)
            grads.append(share if self.scaler is None else self.scaler.scale(share))
        if roots:
            with torch.autocast(self.device.type, enabled=False):
                torch.autograd.backward(roots, grads)
        for source, values in flight.received.items():
            self._grads[action.stage, source, m] = [one.grad if isinstance(one, torch.Tensor) else None for one in values]
        if flight.tape:
            self._flights[action.stage, m] = flight._replace(given=(), received={})

    _i = _b

    def _w(self, action: Action) -> None:
        flight = self._flights.pop((action.stage, action.microbatch), None)
        if flight is not None and flight.tape:
            edges, grads = zip(*flight.tape)
            with torch.autocast(self.device.type, enabled=False):
                torch.autograd.backward(edges, grads, inputs=self._stages[action.stage].trained)

    @contextlib.contextmanager
    def _autocast(self) -> Iterator[None]:
        yield

    # What training needs besides.

    def named_parameters(self) -> dict[str, nn.Parameter]:
        """This rank's, by their names in the module; a tied one once."""
        found: dict[int, tuple[str, nn.Parameter]] = {}
        for name in self.names:
            tensor = self._program.tensor(name)
            if isinstance(tensor, nn.Parameter):
                found.setdefault(id(tensor), (name, tensor))
        return dict(found.values())

    def parameters(self) -> list[nn.Parameter]:
        return list(self.named_parameters().values())
