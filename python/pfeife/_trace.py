"""What happens in a step, as numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core

_NUMBERS = ("rank", "peer", "stage", "microbatch", "posted", "start", "end", "launch")


class Trace:
    """A step as it was estimated or simulated.

    step: ms. bubble: share of ranks x step that no F, B, I or W fills. source: "estimated" or "simulated".
    events: numpy record array, an event a task: kind ("compute", "transfer", "reduction", "optimizer"), action ("2F0"),
        rank, peer (receiver of a transfer, else the rank), stage, microbatch (-1 = none), and in integer nanoseconds
        posted (all that it needs was there, except its turn), start, end, launch (leading part that is overhead).
    memory: [rank] record arrays of time (ns) and bytes; of a schedule without a model, microbatches in flight.
    attribution: [rank] of ns by cause, which add up to the step.
    """

    def __init__(self, core: _core.Trace, *, counts: bool = False, limits: Sequence[int] = ()):
        self._core = core
        self._counts = counts
        self._limits = list(limits)
        self.source: str = core.source
        self.ranks: int = core.ranks
        self.step: float = core.step
        self.bubble: float = core.bubble
        self.critical_rank: int = core.critical_rank

    @property
    def events(self) -> np.recarray[Any, Any]:
        columns = self._core.columns()
        action = np.array(columns["action"], dtype=str)
        types = [("kind", "U10"), ("action", action.dtype.str if len(action) else "U1")]
        arrays = [np.array(columns["kind"], dtype="U10"), action]
        arrays += [np.frombuffer(columns[name], dtype=np.int64) for name in _NUMBERS]
        return np.rec.fromarrays(arrays, dtype=[*types, *((name, "i8") for name in _NUMBERS)])

    @property
    def memory(self) -> list[np.recarray[Any, Any]]:
        return [
            np.rec.fromarrays(
                [np.frombuffer(part, dtype=np.int64) for part in rank], dtype=[("time", "i8"), ("bytes", "i8")]
            )
            for rank in self._core.memory()
        ]

    @property
    def attribution(self) -> list[dict[str, int]]:
        return self._core.attribution()

    def to_pandas(self) -> Any:
        """The events as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.events)

    def svg(self, title: str = "", *, width: int = 1200) -> str:
        """The timeline, true to scale, with the memory of each rank below. SVG."""
        return self._core.svg(title, self._limits, width, self._counts)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<pfeife.Trace {self.source}, {self.ranks} ranks, step {self.step:.6g} ms, bubble {self.bubble:.1%}>"
