"""Schedules: who does what in which order, in the grammar of torch.distributed.pipelining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

from . import _core
from ._trace import Trace

Times = Union[float, Sequence[float]]


def _costs(costs: dict[str, Times]) -> str:
    """The costs in the form of pfeife-schedule's --costs: "f=1:2,w=0.8"."""

    def text(value: Times) -> str:
        values = value if isinstance(value, Sequence) else [value]
        return ":".join(format(float(value), ".15g") for value in values)

    return ",".join(f"{key}={text(value)}" for key, value in costs.items())


class Action(NamedTuple):
    """What a row does with a microbatch: computations, transfers and copies to the host."""

    kind: str  # F B I W, SEND_F RECV_F SEND_B RECV_B, OFFLOAD RELOAD
    stage: int
    microbatch: int  # with slices of the sequence: the number among those of all microbatches
    peer: int  # the stage at the other end of a transfer; else the stage itself
    text: str  # as in a cell: "3F2.1"

    def __str__(self) -> str:
        return self.text


class Schedule:
    """The rows of a schedule: row r is what rank r does, in that order.

    Attributes:
        cells: `[rank][position]` "0F0", "1B2", "(4F4;3B0)OVERLAP_F_B", "" for nothing: stage, action, microbatch. A plain
            list, to be edited; every method reads it again. F: forward. B: backward, or its parts I (gradients of inputs)
            and W (gradients of weights).
    """

    def __init__(self, cells: str | Sequence[Sequence[str]]):
        """Takes cells, or a CSV text.

        Raises:
            ConfigError: A cell is no action; the message has row and column of the first such cell.
        """
        text = cells if isinstance(cells, str) else _csv(cells)
        self.cells: list[list[str]] = _core.parse(text)

    @property
    def ranks(self) -> int:
        """How many rows there are."""
        return len(self.cells)

    def text(self) -> str:
        """Returns CSV, a line a rank: what Schedule() and pfeife-schedule read, and torch if it knows the actions."""
        return _csv(_core.parse(_csv(self.cells)))

    _text_for_config = text

    def _actions(self) -> tuple[int, list[list[list[Action]]]]:
        """Slices of each microbatch, and [rank][position] the actions of the cell, overlapped ones in their order."""
        slices, rows = _core.actions(_csv(self.cells))
        return slices, [[[Action(*values) for values in cell] for cell in row] for row in rows]

    def violations(self, queues: str = "none", blocking: bool = False) -> str:
        """Judges the rows, whose stages are taken for a chain. Rows of F alone are a pass forward only (training.mode: forward).

        Args:
            queues: Transfers go first in, first out per ordered pair of ranks ("edge"), per pair in both directions ("pair"),
                or per rank ("rank"); "none": each starts when its value is ready.
            blocking: SEND and RECV hold their rank.

        Returns:
            What is wrong, with the grid around the first mistake; "" if nothing is.
        """
        return _core.violations(_csv(self.cells), queues, blocking)

    def lower(self, *, for_torch: bool = False, **costs: Times) -> Schedule:
        """Adds transfers, reductions and optimizer steps, placed by the times that given costs yield.

        Args:
            for_torch: As torch.distributed.pipelining places and reads them.
            costs: As of time().

        Raises:
            ConfigError: The schedule cannot run.
        """
        return Schedule(_core.lower(_csv(self.cells), _costs(costs), for_torch))

    def time(self, *, queues: str = "none", launch: float = 0.0, **costs: Times) -> Trace:
        """Estimates the step under given costs. The trace's memory counts microbatches in flight.

        Args:
            queues: As of violations().
            launch: Overhead of every action, ms.
            costs: f, i, w (or b = i + w), optimizer, transfer in ms, one number or one a stage; overlap, the factor of actions side by side.

        Raises:
            ConfigError: The schedule cannot run.
        """
        return Trace(_core.time(_csv(self.cells), _costs(costs), queues, float(launch)), counts=True)

    def svg(self, title: str = "", width: int = 1200, **costs: Times) -> str:
        """Draws the step under given costs, true to scale. Returns SVG."""
        return self.time(queues="none", launch=0.0, **costs).svg(title, width=width)

    def grid(self) -> str:
        """Returns a grid of unit times: F, I and W take one, B takes two."""
        return _core.grid(_csv(self.cells))

    def __eq__(self, another: object) -> bool:
        return isinstance(another, Schedule) and self.cells == another.cells

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        try:
            return self.grid()
        except _core.ConfigError:
            return self.text()

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg()
        except _core.ConfigError:
            return None


def _csv(cells: Sequence[Sequence[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in cells)


def schedule(
    family: str,
    *,
    ranks: int,
    microbatches: int,
    stages_per_rank: int | None = None,
    loop_batch: int | None = None,
    prefetch: int | Sequence[int] = (),
    most_in_flight: int | Sequence[int] = (),
    **costs: Times,
) -> Schedule:
    """Generates the compute-only schedule of a family (pfeife.families()).

    Args:
        family: Its name.
        ranks: How many.
        microbatches: How many.
        stages_per_rank: V; absent, as few as the family takes.
        loop_batch: Of `looped`: microbatches in a loop.
        prefetch: Of `looped`: forwards that a rank runs early.
        most_in_flight: Of families whose order is built for costs (zb_greedy): how many stages a rank has in flight at most,
            each from its F to the end of its W; one number, or one a rank.
        costs: Of the same families: f, i, w, b, transfer in ms.

    Raises:
        ConfigError: The family does not have this point; the message has the nearest valid values.
    """

    def listed(value: int | Sequence[int]) -> list[int]:
        return [value] if isinstance(value, int) else list(value)

    return Schedule(
        _core.generate(
            family,
            ranks,
            microbatches,
            stages_per_rank,
            loop_batch,
            listed(prefetch),
            _costs(costs),
            listed(most_in_flight),
        )
    )


def families() -> dict[str, str]:
    """Returns every schedule family, and what it accepts."""
    return dict(_core.families())
