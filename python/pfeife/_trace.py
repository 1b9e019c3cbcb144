"""What happens in a step, as numpy arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _core

Record = dict[str, Any]  # of JSON

_TIMES = ("posted", "start", "end", "launch")
_NUMBERS = ("rank", "peer", "stage", "microbatch", *_TIMES)


class Trace:
    """A step as it was estimated or simulated.

    Attributes:
        step: ms.
        bubble: The share of ranks x step that no F, B, I or W fills.
        source: "estimated" or "simulated".
        events: numpy record array, an event a task: kind ("compute", "transfer", "reduction", "optimizer", "copy"), action
            ("2F0"), rank, peer (receiver of a transfer, else the rank), stage, microbatch (-1 = none), and in integer
            nanoseconds posted (its inputs were ready; it waits for its turn), start, end, launch (leading part that is
            overhead).
        memory: [rank] record arrays of time (ns) and bytes; for a schedule without a model, microbatches in flight.
        attribution: [rank] {cause: ns}, which sum to the step.
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
        """Returns the events as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.events)

    def memory_snapshot(self) -> Record:
        """Returns the memory as torch.cuda.memory._snapshot() has it, a device a rank: pickle it for pytorch.org/memory_viz.

        A block is what a rank's memory grew by, with the action that ran then as its frame; later actions
        of its stage and microbatch free it, maybe in parts, else others do. Sums over time are exact; blocks are no tensors.
        """
        compute = self.events[self.events.kind == "compute"]
        return {
            "segments": [],
            "device_traces": [
                _blocks(samples, compute[compute["rank"] == rank]) for rank, samples in enumerate(self.memory)
            ],
        }

    def svg(self, title: str = "", *, width: int = 1200) -> str:
        """Draws the timeline, true to scale, with the memory of each rank below. Returns SVG."""
        return self._core.svg(title, self._limits, width, self._counts)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<pfeife.Trace {self.source}, {self.ranks} ranks, step {self.step:.6g} ms, bubble {self.bubble:.1%}>"


def write_chrome_trace(file: Path, source: str, events: Iterable[Mapping[str, Any]]) -> None:
    """The events of such a source in the form of a trace.json, as far as pfeife-exp reads it."""
    written: list[Record] = []
    ranks = set()
    for event in events:
        kind, action, rank, peer, posted, start, end, launch = (event[name] for name in ("kind", "action", "rank", "peer", *_TIMES))
        ranks.add(int(rank))
        details: Record = {"action": str(action), "posted": int(posted) / 1000, "launch": int(launch) / 1000}
        if kind == "transfer":
            details["to_rank"] = int(peer)
        times = {"ts": int(start) / 1000, "dur": int(end - start) / 1000}
        written.append({"ph": "X", "name": str(action), "cat": str(kind), "pid": int(rank) + 1, "tid": 1, **times, "args": details})
    named = [{"ph": "M", "name": "process_name", "pid": rank + 1, "args": {"name": f"{source}: rank {rank}"}} for rank in sorted(ranks)]
    file.write_text(json.dumps({"traceEvents": named + written}))


def _blocks(samples: np.recarray[Any, Any], events: np.recarray[Any, Any]) -> list[Record]:
    """Allocations and releases that add up to the samples of a rank."""
    ran = events[np.argsort(events.start, kind="stable")]
    live: list[Record] = []
    ended: list[Record] = []
    held = 0
    for time, total in zip(samples.time.tolist(), samples.bytes.tolist()):
        at = int(np.searchsorted(ran["start"], time, "right")) - 1
        during = ran[at] if at >= 0 else None
        owner = (int(during["stage"]), int(during["microbatch"])) if during is not None else None
        action = str(during["action"]) if during is not None else "parameters, gradients, optimizer state"
        if total > held:
            live.append({"of": owner, "action": action, "size": total - held, "begin": time})
        freed = held - total
        # Its own first, the newest first; what was there from the beginning last.
        for block in sorted(live[::-1], key=lambda block: (block["of"] != owner, block["of"] is None)) if freed > 0 else ():
            part = min(freed, block["size"])
            ended.append({**block, "size": part, "end": time})
            block["size"] -= part
            freed -= part
            if freed == 0:
                break
        live = [block for block in live if block["size"] > 0]
        held = total
    entries = []
    address = 1 << 40
    for block in ended + live:
        frame = {"name": block["action"], "filename": "pfeife", "line": 0}
        entry = {"addr": address, "size": block["size"], "stream": 0, "frames": [frame]}
        entries.append({**entry, "action": "alloc", "time_us": block["begin"] / 1000})
        if "end" in block:
            entries.append({**entry, "action": "free_requested", "time_us": block["end"] / 1000})
            entries.append({**entry, "action": "free_completed", "time_us": block["end"] / 1000})
        address += block["size"]
    return sorted(entries, key=lambda entry: entry["time_us"])
