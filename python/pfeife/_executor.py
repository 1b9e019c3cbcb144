"""A rank's row, executed: forwards, backwards and weight gradients of its stages, and the messages between them.

Values between two stages of a rank are handed over. Not here: what a stage is (_stages.py), what differs between backends
(_messages.py), what training needs besides a row (_pipeline.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ._core import ConfigError
from ._host import Host, Saved
from ._messages import Arriving, Form, Messages, form_of
from ._operators import Moment, Tape, let_go
from ._schedule import Action
from ._shared_head import SharedHead
from ._slices import Slices
from ._stages import Stage

MOST_DERIVED = 1000  # forms that are remembered

Box = dict[tuple[int, int, int], Any]  # messages by source, target, microbatch: values, or forms and what arrives


def needs_gradient(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


class Announced(NamedTuple):
    """What a receiver knows of a tensor before it comes."""

    form: Form
    needs_gradient: bool


def announced(part: Any) -> Any:
    return Announced(form_of(part), part.requires_grad) if isinstance(part, torch.Tensor) else part


def is_as_announced(form: object, part: object) -> bool:
    """Whether a message's part is as announced; its strides may differ."""
    if not isinstance(form, Announced) or not isinstance(part, torch.Tensor):
        return bool(form == announced(part))
    return (part.dtype, part.shape) == form.form[:2] and part.requires_grad == form.needs_gradient


def laid_out_like(form: Form, shape: torch.Size) -> Form:
    """The same type with another shape, whose dimensions lie in the same order in memory."""
    stride, step = [1] * len(shape), 1
    for d in sorted(range(len(shape)), key=lambda d: (form.stride[d], form.shape[d], -d)):
        stride[d], step = step, step * max(shape[d], 1)
    return Form(form.dtype, shape, tuple(stride))


class Flight(NamedTuple):
    """What a stage keeps of a microbatch between its forward and its backward."""

    ends: Mapping[int, GradientEdge]  # of the graph, by result: what was sent need not stay
    loss: torch.Tensor | None
    received: Mapping[int, list[Any]]
    tape: Tape | None
    saved: Saved | None = None  # of a microbatch that is offloaded
    head: GradientEdge | None = None  # of what a head on all ranks reads


class Executor:
    """stages: this rank's, by number. rank_of: [stage]. moment: of their operators."""

    def __init__(self, stages: Mapping[int, Stage], rank_of: Sequence[int], rank: int, messages: Messages, moment: Moment):
        self._stages, self._rank_of, self._rank = stages, rank_of, rank
        self._messages, self._moment = messages, moment
        self._device = messages.device
        self._forms: dict[Any, Any] = {}
        self._derived: dict[Any, Any] = {}
        self.crossing_shapes: Callable[[int, int, Sequence[torch.Tensor]], list[torch.Size | None]] | None = None
        self._do: dict[str, Callable[[Action], None]] = {
            "F": self._forward,
            "B": self._backward,
            "I": self._backward,
            "W": self._weights,
            "SEND_F": self._send_values,
            "RECV_F": self._receive_values,
            "SEND_B": self._send_gradients,
            "RECV_B": self._receive_gradients,
            "OFFLOAD": self._copy,
            "RELOAD": self._copy,
            "S": self._head_share,
            "T": self._head_rest,
        }
        self._host = Host(self._device)
        self.scale: Callable[[torch.Tensor], torch.Tensor] | None = None  # of the loss, for fp16
        self.returned: dict[str, list[Any]] | None = None  # [microbatch] by value, of a pass that gives them
        self.action: Action | str | None = None  # that runs; else where the pass is, in words
        self.slices: Slices | None = None
        self.head: SharedHead | None = None
        self.clock: Callable[[], Any] | None = None  # while a step is traced: ns, or events of a card
        self.measured: list[tuple[Action, Any, Any, Any]] = []  # turn came, began, ended

    def run(
        self,
        row: Sequence[Action],
        micro: Sequence[Sequence[torch.Tensor]],
        shares: Sequence[float],
        training: bool,
        after: Mapping[int, Callable[[], None]],
    ) -> torch.Tensor:
        """A pass over the row. micro: [microbatch][input]. shares: [microbatch] of the step's loss; those without one do not
        run, nor those that are not there. after: what follows the action of that number. Gives this rank's part of the loss."""
        self._micro, self._shares, self._training = micro, shares, training
        if self.slices:
            self._micro, self._shares = micro, shares = self.slices.cut(micro, shares)
        kind = self._device.type
        cast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        self._as_written = torch.autocast(kind, enabled=False) if cast else contextlib.nullcontext()  # around backwards
        self.alike = [(training, cast, *(tensor.shape for tensor in part)) for part in micro]  # whose messages hold the same
        self._split = {(action.stage, action.microbatch) for action in row if action.kind == "I"}
        self._offloaded = {(action.stage, action.microbatch) for action in row if action.kind == "OFFLOAD"}
        self._values: Box = {}
        self._gradients: Box = {}
        self._flights: dict[tuple[int, int], Flight] = {}
        self._loss: torch.Tensor | None = None
        try:
            for number, action in enumerate(row):
                if shares[action.microbatch] or (self.returned is not None and action.microbatch < len(micro)):
                    self.action = action
                    if self.head:
                        self.head.advance()
                    turn = self._began = self.clock() if self.clock else None
                    self._ended = None
                    self._do[action.kind](action)
                    if self.clock:
                        self.measured.append((action, turn, self._began, self._ended or self.clock()))
                if number in after:
                    after[number]()
            self._messages.finish()
            if self.head:
                self._loss = self.head.finish()
            return torch.zeros((), device=self._device) if self._loss is None else self._loss
        finally:
            if self.head:
                self.head.forget()
            self._micro, self._values, self._gradients, self._flights = [], {}, {}, {}
            if self.slices:
                self.slices.forget()

    # Messages. The first message of each route is announced: for a tensor its form and whether it needs a gradient, for another
    # object the object, for a missing gradient None. Those of other sizes follow from it and the sizes of the model's inputs,
    # or are announced, too, where inputs do not say them. Later messages have the strides of the first.

    def _known(self, way: str, route: tuple[Any, ...], microbatch: int) -> list[Any] | None:
        """The forms of a route's message; None: it has to be announced. Both ends find the same."""
        key = way, *route
        if (found := self._forms.get(key, self._derived.get(key))) is not None:
            return list(found)
        first = self._forms.get((way, *route[:3], self.alike[microbatch][:2]))
        if first is None or self.crossing_shapes is None:
            return None
        kind, source, target = route[:3]
        ends = (source, target) if kind == "F" else (target, source)
        forms: list[Any] = []
        for form, shape in zip(first, self.crossing_shapes(*ends, self._micro[microbatch])):
            if form is not None and (not isinstance(form, Announced) or shape is None):
                return None
            forms.append(form and Announced(laid_out_like(form.form, shape), form.needs_gradient))
        if len(self._derived) >= MOST_DERIVED:
            self._derived.clear()
        self._derived[key] = forms
        return forms

    def _remember(self, way: str, route: tuple[Any, ...], microbatch: int, forms: list[Any]) -> None:
        self._forms[(way, *route)] = forms
        self._forms.setdefault((way, *route[:3], self.alike[microbatch][:2]), forms)

    def _send(self, action: Action, box: Box) -> None:
        to = self._rank_of[action.peer]
        parts = box.pop((action.stage, action.peer, action.microbatch))
        route = (action.kind[-1], action.stage, action.peer, self.alike[action.microbatch])
        forms = self._known("sent", route, action.microbatch)
        if forms is None:
            forms = [announced(part) for part in parts]
            self._remember("sent", route, action.microbatch, forms)
            self._messages.announce(route, forms, to)
        elif len(forms) != len(parts) or not all(map(is_as_announced, forms, parts)):
            raise ConfigError(
                f"what stage {action.stage} sends to stage {action.peer} was {forms} and is {[*map(announced, parts)]}: what needs a "
                "gradient stays as it was in the first step; make a new Pipeline after a change"
            )
        tensors = [part for part in parts if isinstance(part, torch.Tensor)]
        self._messages.send(route[:3], tensors, to, [form.form for form in forms if isinstance(form, Announced)])

    def _receive(self, action: Action, box: Box) -> None:
        source = self._rank_of[action.peer]
        route = (action.kind[-1], action.peer, action.stage, self.alike[action.microbatch])
        forms = self._known("received", route, action.microbatch)
        if forms is None:
            forms = self._messages.announcement(source)
            self._remember("received", route, action.microbatch, forms)
        arriving = self._messages.receive([form.form for form in forms if isinstance(form, Announced)], source)
        box[action.peer, action.stage, action.microbatch] = forms, arriving

    def _send_values(self, action: Action) -> None:
        self._send(action, self._values)

    def _receive_values(self, action: Action) -> None:
        self._receive(action, self._values)

    def _send_gradients(self, action: Action) -> None:
        self._send(action, self._gradients)

    def _receive_gradients(self, action: Action) -> None:
        self._receive(action, self._gradients)

    def _taken(self, box: Box, source: int, target: int, microbatch: int) -> list[Any]:
        """A message that was received, or what a stage of this rank left."""
        found = box.pop((source, target, microbatch))
        if self._rank_of[source] == self._rank:
            return [
                value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value for value in found
            ]
        forms, arriving = found
        assert isinstance(arriving, Arriving)
        tensors = iter(arriving.wait())
        return [next(tensors).requires_grad_(form.needs_gradient) if isinstance(form, Announced) else form for form in forms]

    # Computations.

    def _forward(self, action: Action) -> None:
        stage, m = self._stages[action.stage], action.microbatch
        inputs: list[Any] = [None] * len(stage.inputs)
        for i, leaf in stage.leaves:
            inputs[i] = self._micro[m][leaf].to(self._device, non_blocking=True)
        received = {}
        for source, places in stage.sources.items():
            received[source] = self._taken(self._values, source, action.stage, m)
            for i, value in zip(places, received[source]):
                inputs[i] = value
        if self.clock:
            self._began = self.clock()
        tape: Tape | None = [] if (action.stage, m) in self._split else None
        saved = Saved(action.stage, m, stage.offload) if (action.stage, m) in self._offloaded else None
        self._moment.at(m, tape, recomputes=m != stage.kept, offloads=saved is not None)
        if self.slices:
            self.slices.at(m, offloads=saved is not None)
        with saved.hooks() if saved else contextlib.nullcontext():
            given = stage.forward(inputs) if self._training else stage.evaluation(*inputs)
        for target, places in stage.targets.items():
            self._values[action.stage, target, m] = [given[i] for i in places]
            if self._training and target not in stage.returned_by and any(needs_gradient(given[i]) for i in places):
                raise ConfigError(
                    f"what stage {action.stage} gives to stage {target} needs a gradient, and needed none when it was planned: plan "
                    "again after requires_grad_(True)"
                )
        if self.returned is not None:
            for name, i in stage.returned.items():
                self.returned.setdefault(name, [None] * len(self._micro))[m] = given[i]
        if stage.loss is not None:
            loss = given[stage.loss].detach() * self._shares[m]
            self._loss = loss if self._loss is None else self._loss + loss
        rows = self.head.send(m, given[stage.head]) if self.head and stage.head is not None else None
        if self._training:
            sent = {i for places in stage.targets.values() for i in places}
            ends = {i: get_gradient_edge(given[i]) for i in sent if needs_gradient(given[i])}
            loss = None if stage.loss is None else given[stage.loss]
            self._flights[action.stage, m] = Flight(ends, loss, received, tape, saved, get_gradient_edge(rows) if rows is not None and rows.requires_grad else None)
            if saved:
                saved.leave(given[i] for i in sent)
                for source, values in received.items():
                    for tensor in values if self._rank_of[source] != self._rank else ():
                        if isinstance(tensor, torch.Tensor) and all(tensor is not result for result in given):
                            let_go(tensor)

    def _head_share(self, action: Action) -> None:
        assert self.head is not None
        self.head.share(action.microbatch, self._micro[action.microbatch], self._shares[action.microbatch], self._training)

    def _head_rest(self, action: Action) -> None:
        assert self.head is not None
        self.head.rest(action.microbatch)

    def _copy(self, action: Action) -> None:
        saved = self._flights[action.stage, action.microbatch].saved
        assert saved is not None
        way = self._host.offload if action.kind == "OFFLOAD" else self._host.reload
        self._began, self._ended = way(saved, self.clock or (lambda: None))

    def _backward(self, action: Action) -> None:
        stage, m = self._stages[action.stage], action.microbatch
        flight = self._flights.pop((action.stage, m))
        roots, gradients = [], []
        for target in stage.returned_by:
            for i, gradient in zip(stage.targets[target], self._taken(self._gradients, target, action.stage, m)):
                if gradient is not None and i in flight.ends:
                    roots.append(flight.ends[i])
                    gradients.append(gradient)
        if flight.loss is not None and flight.loss.requires_grad:
            roots.append(get_gradient_edge(flight.loss))
            share = torch.full_like(flight.loss, self._shares[m])
            gradients.append(self.scale(share) if self.scale else share)
        if self.head and stage.head is not None:
            gradient = self.head.gradient(m)
            if flight.head:
                roots.append(flight.head)
                gradients.append(gradient)
        if self.slices:
            self.slices.at(m)
        if flight.saved:
            self._host.wait(flight.saved)
        if self.clock:
            self._began = self.clock()
        self._moment.at(m, flight.tape)
        if roots:
            with self._as_written:
                torch.autograd.backward(roots, gradients)
        if self.slices:
            self.slices.drop(stage.names)
        for source in stage.returns_to:
            self._gradients[action.stage, source, m] = [
                value.grad if isinstance(value, torch.Tensor) else None for value in flight.received[source]
            ]
        if flight.tape:
            self._flights[action.stage, m] = Flight({}, None, {}, flight.tape)

    def _weights(self, action: Action) -> None:
        flight = self._flights.pop((action.stage, action.microbatch), None)
        if flight is not None and flight.tape:
            with self._as_written:
                with torch.no_grad():
                    roots = [entry for entry in flight.tape if not callable(entry) or entry()]
                if roots:
                    torch.autograd.backward(*zip(*roots), inputs=self._stages[action.stage].trained)
