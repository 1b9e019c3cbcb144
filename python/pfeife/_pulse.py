"""Which rank keeps the others waiting: each says every second what it does and for whom it waits, and who waits in vain follows
these words to a rank that waits for nobody, or says nothing any more."""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch.distributed as dist

PERIOD = 1.0  # seconds


class Status(NamedTuple):
    """What a rank reported. number: of the report. action: that runs. awaited: ranks that it waits for."""

    number: int
    action: str
    awaited: tuple[int, ...]


class Pulse:
    """Publishes what a rank does. store: shared by all ranks. ranks: those that this rank may wait for. state: gives its action and
    the ranks that it awaits."""

    def __init__(self, store: dist.Store, rank: int, ranks: Iterable[int], state: Callable[[], tuple[str, tuple[int, ...]]]):
        self._store, self._rank, self._ranks = store.clone(), rank, list(ranks)
        ended = threading.Event()
        beats = threading.Thread(target=_beat, args=(store.clone(), rank, state, ended), daemon=True, name="pfeife pulse")
        beats.start()
        weakref.finalize(self, _end, ended, beats)

    def culprits(self, awaited: Iterable[int]) -> list[tuple[int, str]]:
        """(rank, what it does) of the ranks that keep the awaited ranks waiting, directly or through others. Takes some seconds."""
        before = {rank: self._status(rank) for rank in self._ranks}
        time.sleep(2.5 * PERIOD)
        found, seen, waiting = [], {self._rank}, list(awaited)
        while waiting:
            rank = waiting.pop()
            if rank in seen:
                continue
            seen.add(rank)
            status = self._status(rank)
            if status is None or before.get(rank) is not None and status.number == before[rank].number:  # type: ignore[union-attr]
                found.append((rank, "does not answer: it died, or is stopped"))
            elif status.awaited:
                waiting += status.awaited
            else:
                found.append((rank, f"keeps the others waiting ({status.action})"))
        return sorted(found)

    def _status(self, rank: int) -> Status | None:
        with contextlib.suppress(Exception):  # the host of the store may have died
            if self._store.check([str(rank)]):
                return Status(*pickle.loads(self._store.get(str(rank))))
        return None


def _beat(store: dist.Store, rank: int, state: Callable[[], tuple[str, tuple[int, ...]]], ended: threading.Event) -> None:
    number = 0
    with contextlib.suppress(Exception):  # of a store whose host ended
        while not ended.is_set():
            store.set(str(rank), pickle.dumps((number, *state())))
            number += 1
            ended.wait(PERIOD)


def _end(ended: threading.Event, beats: threading.Thread) -> None:
    """At the end of the process, too: a thread that then came back from the store would end it badly."""
    ended.set()
    if beats is not threading.current_thread():
        beats.join(timeout=2 * PERIOD)
