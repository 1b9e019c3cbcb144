"""Messages between the ranks of a pipeline: all that differs between the backends of torch.distributed.

Connections of their own carry them, in the order of the rows, which are valid where SEND and RECV hold their rank: so NCCL,
which runs the messages of a communicator one after the other, never waits in a circle. Only tensors of one message are
coalesced, never neighbours of a row (a coalesced group ends as a whole). Tensors stay alive until they are sent, and arrive
with their dimensions in the same order in memory, since the receiving stage may view them as its graph was traced.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import pickle
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ._core import RuntimeFault


class Form(NamedTuple):
    """What a message holds of a tensor. stride: of the order of its dimensions in memory, without gaps."""

    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]


def form_of(tensor: torch.Tensor) -> Form:
    stride = tensor.stride() if tensor.is_contiguous() else torch.empty_like(tensor, device="meta").stride()
    return Form(tensor.dtype, tensor.shape, stride)


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor without gaps, as they lie in memory."""
    return tensor if tensor.is_contiguous() else tensor.as_strided((tensor.numel(),), (1,))


def laid_out(tensor: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """The same numbers with that stride."""
    if tensor.stride() == tuple(stride) and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


# Messages of one route that may be on their way at once; the next one waits for the oldest.
ON_THEIR_WAY = 4


class Messages:
    """The messages that this rank sends and receives.

    ranks: of the world, in order; they alone make this, in one order. device: of this rank's tensors; Gloo carries those of
    a card by way of the host. timeout: seconds until an exchange counts as hung; None = as in init_process_group.
    """

    def __init__(self, ranks: Sequence[int], device: torch.device, timeout: float | None = None):
        me, name = dist.get_rank(), "-".join(map(str, ranks))
        self.world = list(ranks)
        self.awaited: tuple[int, ...] = ()  # ranks of the world, while this one waits for them; as they were, after a failure
        store = dist.distributed_c10d._get_default_store()
        number = store.add(f"pfeife/{name}/{me}", 1)  # the same on all of them
        self._store = dist.PrefixStore(f"pfeife/{name}/{number}", store)
        self._ranks, self.rank = len(ranks), list(ranks).index(me)
        self._exchanged = 0
        self._limit = timeout
        self.all(None)  # all are there: else the backend waits for one that it has no name for
        self._backend = self._connected(dist.group.WORLD, device, timeout)
        self._coalesced = self._backend.name() != "gloo"
        self.device = device
        self.wire = device if self._coalesced else torch.device("cpu")
        self._peers: dict[Hashable, int] = {}  # by route
        self._sent: dict[Hashable, deque[tuple[list[dist.Work], list[torch.Tensor]]]] = {}

    def _connected(self, world: dist.ProcessGroup, device: torch.device, timeout: float | None) -> Any:
        try:
            theirs = world._get_backend(device)
        except RuntimeError:  # none for cards
            theirs = world._get_backend(torch.device("cpu"))
        theirs = getattr(theirs, "wrapped_pg", theirs)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        limit = self._patience(theirs)
        if theirs.name() == "gloo":
            return dist.ProcessGroupGloo(self._store, self.rank, self._ranks, timeout=limit)
        if theirs.name() == "nccl":
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = limit
            backend = dist.ProcessGroupNCCL(self._store, self.rank, self._ranks, options)
            # Else the first message makes a communicator of two ranks, in whatever order the ranks come by.
            backend.eager_connect_single_device(device)
            return backend
        if self._ranks != world.size():
            raise RuntimeError(f"the backend {theirs.name()} carries pipelines of all ranks alone; use nccl or gloo")
        return theirs

    def _patience(self, backend: Any = None) -> datetime.timedelta:
        if self._limit is not None:
            return datetime.timedelta(seconds=self._limit)
        options = getattr(backend, "options", None)
        return options._timeout if options is not None else self._store.timeout

    def awaiting(self, ranks: Sequence[int] | None = None) -> Messages:
        """While it holds, this rank waits for these; None = for all others. A context without a generator: messages are many."""
        self.awaited = tuple(self.world[rank] for rank in (range(self._ranks) if ranks is None else ranks) if rank != self.rank)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.awaited = self.awaited if error else ()

    def _post(self, post: Callable[..., dist.Work], tensors: Sequence[torch.Tensor], peer: int) -> list[dist.Work]:
        if self._coalesced and len(tensors) > 1:
            self._backend._start_coalescing()
            for tensor in tensors:
                post([tensor], peer, 0)
            return [self._backend._end_coalescing()]
        return [post([tensor], peer, 0) for tensor in tensors]

    def send(self, route: Hashable, tensors: Sequence[torch.Tensor], to: int, forms: Sequence[Form]) -> None:
        """forms: with strides that the receiver knows."""
        if not tensors:
            return
        strides = [form.stride for form in forms]
        carried = [flat(laid_out(tensor.detach().to(self.wire), stride)) for tensor, stride in zip(tensors, strides)]
        sent = self._sent.setdefault(route, deque())
        with self.awaiting([to]):
            while sent and all(work.is_completed() for work in sent[0][0]):
                sent.popleft()
            if len(sent) >= ON_THEIR_WAY:
                wait(sent.popleft()[0])
            sent.append((self._post(self._backend.send, carried, to), carried))
        self._peers[route] = to

    def receive(self, forms: Sequence[Form], source: int) -> Arriving:
        tensors = [torch.empty_strided(form.shape, form.stride, dtype=form.dtype, device=self.wire) for form in forms]
        with self.awaiting([source]):
            works = self._post(self._backend.recv, [flat(tensor) for tensor in tensors], source)
        return Arriving(self, tensors, works, [source])

    def announce(self, route: Hashable, thing: object, to: int) -> None:
        """Sends a picklable object, which announcement() of the other rank returns."""
        data = torch.frombuffer(bytearray(pickle.dumps(thing)), dtype=torch.uint8)
        for part in (torch.tensor([len(data)]), data):
            self.send((route, "announced"), [part], to, [form_of(part)])

    def announcement(self, source: int) -> Any:
        """Waits for what announce() of the rank `source` sends, and returns it."""
        size = self.receive([Form(torch.int64, torch.Size([1]), (1,))], source).wait()[0]
        data = self.receive([Form(torch.uint8, torch.Size([int(size)]), (1,))], source).wait()[0]
        return pickle.loads(data.cpu().numpy().tobytes())

    def finish(self) -> None:
        """Waits for all that was sent."""
        for route, sent in self._sent.items():
            with self.awaiting([self._peers[route]]):
                while sent:
                    wait(sent.popleft()[0])

    def begin_sum(self, tensor: torch.Tensor, op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Arriving:
        carried = tensor.detach().to(self.wire, copy=True)
        how = dist.AllreduceOptions()
        how.reduceOp = op
        with self.awaiting():
            return Arriving(self, [carried], [self._backend.allreduce([carried], how)])

    def sum(self, tensor: torch.Tensor, op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> torch.Tensor:
        """Over the ranks."""
        return self.begin_sum(tensor, op).wait()[0]

    def extremes(self, number: int) -> tuple[int, int]:
        """The smallest and the largest of all ranks' numbers."""
        found = self.sum(torch.tensor([-number, number], device=self.device), dist.ReduceOp.MAX).tolist()
        return -found[0], found[1]

    def first(self, tensor: torch.Tensor, rank: int = 0) -> torch.Tensor:
        """That of the first rank, or of another, on all."""
        with self.awaiting():
            return self.begin_first(tensor, rank).wait()[0]

    def begin_first(self, tensor: torch.Tensor, rank: int) -> Arriving:
        """That of this rank of the group, on all; others give one of its form."""
        carried = tensor.detach().to(self.wire, copy=True)
        how = dist.BroadcastOptions()
        how.rootRank = rank
        return Arriving(self, [carried], [self._backend.broadcast([carried], how)])

    def begin_sum_on(self, tensor: torch.Tensor, rank: int) -> Arriving:
        """Over the ranks, on this one of them; elsewhere what comes is meaningless."""
        carried = tensor.detach().to(self.wire, copy=True)
        how = dist.ReduceOptions()
        how.rootRank = rank
        return Arriving(self, [carried], [self._backend.reduce([carried], how)])

    def bytes_of(self, forms: Sequence[tuple[torch.dtype, torch.Size]], tensors: Sequence[torch.Tensor] | None, rank: int) -> list[torch.Tensor]:
        """The tensors of that rank, which alone has them, on all; of any type, in one message."""
        sizes = [dtype.itemsize * shape.numel() for dtype, shape in forms]
        flat = torch.empty(sum(sizes), dtype=torch.uint8, device=self.device)
        if tensors:
            flat = torch.cat([tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8) for tensor in tensors])
        parts = self.first(flat, rank).split(sizes) if len(flat) else [flat] * len(sizes)
        return [part.clone().view(dtype).view(shape) for part, (dtype, shape) in zip(parts, forms)]

    def all(self, thing: object) -> list[Any]:
        """[rank] The picklable object that each rank gave to this call; all ranks must call it."""
        self._exchanged += 1
        self._store.set(f"{self._exchanged}/{self.rank}", pickle.dumps(thing))
        return [self._fetched(f"{self._exchanged}/{rank}", rank) for rank in range(self._ranks)]

    def _fetched(self, key: str, rank: int) -> Any:
        """Waits for the object of a rank. Errors: RuntimeFault if the rank does not store it in time."""
        patience, pause = self._patience(getattr(self, "_backend", None)).total_seconds(), 0.001
        end = time.monotonic() + patience
        with self.awaiting([rank]):
            while not self._store.check([key]):
                if self._store.check(["failed"]):
                    raise RuntimeFault(f"rank {rank} waits no longer: {self._store.get('failed').decode()}")
                if time.monotonic() > end:
                    late = [rank for rank in range(self._ranks) if not self._store.check([f"{self._exchanged}/{rank}"])]
                    words = "rank" + "s" * (len(late) > 1) + " " + ", ".join(map(str, late))
                    raise RuntimeFault(f"{words} did not come within {patience:g} s: died or stalled before{' Pipeline()' if self._exchanged == 1 else ''}")
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        return pickle.loads(self._store.get(key))

    def reason(self) -> str:
        """The reason of the rank that failed first, if that rank could report one."""
        with contextlib.suppress(Exception):
            if self._store.check(["failed"]):
                return str(self._store.get("failed").decode())
        return ""

    def abandon(self, reason: str) -> str:
        """After a failure: ends what the others wait for, and gives the reason of the rank that failed first."""
        with contextlib.suppress(Exception):
            reason = self._store.compare_set("failed", "", reason).decode() or reason
        self._sent.clear()
        if self._coalesced:
            with contextlib.suppress(Exception):
                self._backend.abort()
        self._backend = None
        gc.collect()  # Gloo's connections close with the last reference to them
        return reason


def wait(works: list[dist.Work]) -> None:
    """Once each: Gloo counts. A failure keeps no reference to them."""
    while works:
        works.pop(0).wait()


class Arriving:
    """The tensors of a message or a sum that is under way."""

    def __init__(self, messages: Messages, tensors: list[torch.Tensor], works: list[dist.Work], sources: Sequence[int] | None = None):
        self._messages, self._tensors, self._works, self._sources = messages, tensors, works, sources

    def is_done(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def wait(self) -> list[torch.Tensor]:
        with self._messages.awaiting(self._sources):
            wait(self._works)
        return [tensor.to(self._messages.device) for tensor in self._tensors]
