"""What stages save for their backwards, on its way to the host and back (OFFLOAD, RELOAD).

Whatever autograd saves in a forward is held by handles in its place, which may be without their tensor until the backward. A
storage moves as a whole and once, however many views of it are saved. Not here: which microbatches go, and when (the plan's
rows).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

LEAST_BYTES = 4096  # of a storage that moves


class Handle:
    """A tensor that autograd saved; None while it is on the host."""

    __slots__ = ("tensor", "version", "form", "__weakref__")

    def __init__(self, tensor: torch.Tensor):
        self.tensor: torch.Tensor | None = tensor.detach()  # results come with their node, which holds the handle
        self.version = tensor._version
        self.form = tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()

    def value(self, stage: int, microbatch: int) -> torch.Tensor:
        """The saved tensor. Errors: RuntimeError if it is still on the host, or was written since the forward, as autograd raises."""
        if self.tensor is None:
            raise RuntimeError(
                f"internal error: {stage}B{microbatch} reads what is on the host: {stage}RELOAD{microbatch} did not run before it"
            )
        if self.tensor._version != self.version:
            raise RuntimeError(
                f"a tensor of {list(self.form[2])} that stage {stage} saved for the backward of microbatch {microbatch} was "
                "modified by an inplace operation since; write the result of that operation elsewhere"
            )
        return self.tensor


def storage_of(tensor: torch.Tensor) -> int:
    """What names the tensor's storage while that exists."""
    return int(tensor.untyped_storage()._cdata)


def holders(storage: int) -> int:
    """How many tensors hold it, and its object in Python."""
    return int(torch._C._storage_Use_Count(storage))


def chosen(sizes: Sequence[int], wanted: float) -> list[int]:
    """Which of the sizes to take for so many bytes: the largest first, as long as they fit; then the smallest that completes
    them. Never less than wanted, where there is enough."""
    taken: list[int] = []
    rest: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        fits = sizes[i] <= wanted
        (taken if fits else rest).append(i)
        wanted -= sizes[i] if fits else 0
    return taken + rest[-1:] if wanted > 0 else taken


class Saved:
    """What a stage saves of a microbatch. share: of its bytes, how many OFFLOAD takes."""

    def __init__(self, stage: int, microbatch: int, share: float):
        self.stage, self.microbatch, self.share = stage, microbatch, share
        self.away: list[tuple[Buffer, list[Handle]]] = []
        self.done: Any = None  # event of the last copy
        self._handles: list[weakref.ref[Handle]] = []  # the graph holds them
        self._leaving: set[int] = set()

    def hooks(self) -> torch.autograd.graph.saved_tensors_hooks:
        """While they hold, autograd saves here."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> Handle | torch.Tensor:
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
            return tensor
        handle = Handle(tensor)
        self._handles.append(weakref.ref(handle))
        return handle

    def _unpack(self, packed: Handle | torch.Tensor) -> torch.Tensor:
        return packed.value(self.stage, self.microbatch) if isinstance(packed, Handle) else packed

    def leave(self, values: Iterable[object]) -> None:
        """These go to other stages: messages hold their storages for a while."""
        self._leaving |= {storage_of(value) for value in values if isinstance(value, torch.Tensor)}

    def going(self, device: torch.device) -> list[list[Handle]]:
        """[storage] the handles of what OFFLOAD takes. What anyone else holds, too, stays: its memory would not go. So do
        parameters, buffers, weights that autocast cast, and what goes to other stages or comes from one of this rank."""
        by_storage: dict[int, list[Handle]] = {}
        for reference in self._handles:
            if (handle := reference()) is not None and handle.tensor is not None and handle.tensor.device == device:
                handle.value(self.stage, self.microbatch)
                by_storage.setdefault(storage_of(handle.tensor), []).append(handle)
        probe = torch.empty(1, device=device)
        beside = holders(storage_of(probe)) - 1  # the object in Python
        own = [
            handles
            for storage, handles in by_storage.items()
            if storage not in self._leaving and holders(storage) == len(handles) + beside
        ]
        sizes = [handles[0].tensor.untyped_storage().nbytes() for handles in own]  # type: ignore[union-attr]
        may = [i for i, size in enumerate(sizes) if size >= LEAST_BYTES]
        return [own[may[i]] for i in chosen([sizes[i] for i in may], self.share * sum(sizes))]


class Buffer(NamedTuple):
    """Memory of the host. read: event of the RELOAD that read it last."""

    data: torch.Tensor  # [bytes] uint8
    read: Any


class Host:
    """The host of a device: a stream each way, and buffers that microbatches and steps use one after the other."""

    def __init__(self, device: torch.device):
        self._device = device
        self._cards = None if device.type == "cpu" else torch.get_device_module(device)
        self._out: Any = self._cards.Stream(device) if self._cards else None
        self._back: Any = self._cards.Stream(device) if self._cards else None
        self._free: dict[int, list[Buffer]] = {}  # by bytes
        self.allocated = 0  # buffers, since it exists

    @contextlib.contextmanager
    def _behind(self, stream: Any, *events: Any) -> Iterator[None]:
        """On the stream, behind what computes now and the events."""
        if self._cards is None:
            yield
            return
        stream.wait_stream(self._cards.current_stream(self._device))
        for event in events:
            if event is not None:
                stream.wait_event(event)
        with self._cards.stream(stream):
            yield

    def _taken(self, size: int) -> Buffer:
        if free := self._free.get(size):
            return free.pop()
        self.allocated += 1
        return Buffer(torch.empty(size, dtype=torch.uint8, pin_memory=self._cards is not None), None)

    def offload(self, saved: Saved, clock: Callable[[], Any]) -> tuple[Any, Any]:
        """Gives when the copies began and ended."""
        leaving = [(handles, bytes_of(handles[0].tensor)) for handles in saved.going(self._device)]
        buffers = [self._taken(data.numel()) for _, data in leaving]
        with self._behind(self._out, *(buffer.read for buffer in buffers)):
            began = clock()
            for (handles, data), buffer in zip(leaving, buffers):
                buffer.data.copy_(data, non_blocking=True)
                if self._out is not None:
                    data.record_stream(self._out)
                for handle in handles:
                    handle.tensor = None
                saved.away.append((buffer, handles))
            ended = clock()
            saved.done = self._out.record_event() if self._out is not None else None
        return began, ended

    def reload(self, saved: Saved, clock: Callable[[], Any]) -> tuple[Any, Any]:
        """Copies back what offload() took, after its copies are done. Returns what the clock said at the begin and at the end."""
        # Of the stream that computes, which waits for the copies before it reads, or gives the memory back.
        arriving = [torch.empty(buffer.data.numel(), dtype=torch.uint8, device=self._device) for buffer, _ in saved.away]
        with self._behind(self._back, saved.done):
            began = clock()
            for data, (buffer, _) in zip(arriving, saved.away):
                data.copy_(buffer.data, non_blocking=True)
            ended = clock()
            saved.done = self._back.record_event() if self._back is not None else None
        for data, (buffer, handles) in zip(arriving, saved.away):
            self._free.setdefault(data.numel(), []).append(Buffer(buffer.data, saved.done))
            for handle in handles:
                dtype, *place = handle.form
                handle.tensor = torch.empty(0, dtype=dtype, device=self._device).set_(data.untyped_storage(), *place)
                handle.version = handle.tensor._version
        saved.away = []
        return began, ended

    def wait(self, saved: Saved) -> None:
        """What computes from now on waits for what came back."""
        if saved.done is not None:
            self._cards.current_stream(self._device).wait_event(saved.done)  # type: ignore[union-attr]


def bytes_of(tensor: Any) -> torch.Tensor:
    """The tensor's storage."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
