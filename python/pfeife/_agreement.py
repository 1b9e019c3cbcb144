"""What holds before a step: the module is as it was captured, and all ranks have the same batch. Who sees otherwise says so to all
ranks, so that each refuses before the first message of the step, and none waits for another."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ._capture.watch import CURE, Form
from ._core import ConfigError
from ._messages import Messages

if TYPE_CHECKING:
    from ._capture.capture import Capture

SAMPLED = 1024  # numbers of each input that are compared in every step


class Photographed:
    """The module beside what was captured of it. capture: of this module or of another of its kind."""

    def __init__(self, capture: Capture, module: nn.Module | None):
        self._form: Form | None = None
        self._read: Any = None
        self._training = getattr(capture, "training", None)
        self._module = module
        watch = getattr(capture, "watch", None)
        if watch is None or not isinstance(module, nn.Module):
            return
        self._read = watch.bound(module)
        if changes := [*capture.form.changes_in(module), *self._read.changes(values_alone=module is not capture.module)]:
            raise ConfigError(_said(changes))
        self._read = self._read.now()

    def note(self) -> None:
        """From now on, the module consists of the objects that it has now."""
        if self._read is not None:
            self._form = Form(self._module)

    def refuse_changes(self, trains: bool) -> None:
        """Errors: ConfigError. trains: else the modes of modules do not count."""
        now = getattr(self._module, "training", None)
        if trains and None not in (now, self._training) and now != self._training:
            mode, then = ("training", "evaluation") if now else ("evaluation", "training")
            raise ConfigError(
                f"the model is in {mode} mode, and its graph was captured in {then} mode: model.{'eval' if now else 'train'}() "
                "before step(), or plan again. pipe(**batch) and pipe.evaluate(**batch) evaluate in both modes"
            )
        if self._form and (changes := [*self._form.changes(modes=trains), *self._read.changes()]):
            raise ConfigError(_said(changes))


def _said(changes: Sequence[str]) -> str:
    more = f" (and {len(changes) - 3} more)" if len(changes) > 3 else ""
    return f"{'; '.join(changes[:3])}{more}. {CURE}"


class Batches:
    """The batches of all ranks: of every step the sizes and some numbers of each input, of the first and then of every
    `every`-th step all bytes. every: 0 = of the first alone."""

    def __init__(self, messages: Messages, every: int):
        self._messages, self._every = messages, every
        self._steps = 0
        self._places: dict[int, torch.Tensor] = {}

    def meet(self, mistake: Exception | None, leaves: Sequence[torch.Tensor]) -> Exception | None:
        """The error that this rank raises: its own mistake, else that of another rank, else that batches differ."""
        whole = self._steps % self._every == 0 if self._every else not self._steps
        self._steps += 1
        complaint = f"{type(mistake).__name__}: {mistake}" if mistake else ""
        seen = [] if mistake else list(self._seen(leaves, whole))
        own = zlib.crc32(repr((complaint, seen)).encode())
        smallest, largest = self._messages.extremes(own)
        if smallest == largest:
            return mistake
        of_rank = self._messages.all((complaint, seen))
        if mistake:
            return mistake
        for rank, (words, _) in enumerate(of_rank):
            if words:
                return ConfigError(f"rank {rank}: {words}")
        rank, differing = next((rank, differing) for rank, (_, differing) in enumerate(of_rank) if differing != of_rank[0][1])
        shapes = [[pair[0] for pair in both] for both in (differing, of_rank[0][1])]
        return ConfigError(
            f"rank {rank} has another batch than rank 0{'' if shapes[0] == shapes[1] else f', inputs of {shapes[0]} instead of {shapes[1]}'}: "
            "all ranks of a pipeline give the same whole batch. Shuffle with the same seed on all of them, and use a DistributedSampler "
            "over replicas alone"
        )

    def _seen(self, leaves: Sequence[torch.Tensor], whole: bool) -> Iterator[tuple[list[int], int]]:
        for leaf in leaves:
            flat = leaf.detach().reshape(-1)
            if not whole:
                flat = flat[self._sample(len(flat), flat.device)]
            yield list(leaf.shape), zlib.crc32(flat.cpu().contiguous().view(torch.uint8).numpy()) if len(flat) else 0

    def _sample(self, size: int, device: torch.device) -> Any:
        """Places all over an input, which meet every column of a table."""
        if size <= SAMPLED:
            return slice(None)
        if size not in self._places:
            self._places[size] = torch.arange(SAMPLED) * 2654435761 % size
        return self._places[size].to(device)
