"""Messages between the ranks of a pipeline: all that differs between the backends of torch.distributed.

One group carries everything, in the order of the rows, which are valid where SEND and RECV hold their rank: so NCCL, which
runs the messages of a group one after the other, never waits in a circle. Only the tensors of one message are coalesced,
never neighbours of a row (a coalesced group ends as a whole). Tensors that are on their way stay alive until they are sent.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

Form = tuple[torch.dtype, torch.Size]
# Messages of one route that may be on their way at once; the next one waits for the oldest.
ON_THEIR_WAY = 4


class Messages:
    """Those that this rank sends and receives.

    group: of torch.distributed. device: of this rank's tensors; Gloo carries those of a card by way of the host.
    """

    def __init__(self, group: Any, device: torch.device):
        self._group = group
        backend = group._get_backend(device if dist.get_backend_config(group).find(device.type) >= 0 else torch.device("cpu"))
        self._staged = device.type != "cpu" and backend.name() == "gloo"
        self._coalesced = backend.name() != "gloo"
        self.device = device
        self.wire = torch.device("cpu") if self._staged else device
        if self._coalesced and hasattr(backend, "eager_connect_single_device"):
            # Else the first message makes a communicator of two ranks, in whatever order the ranks come by.
            backend.eager_connect_single_device(device)
        self._sent: dict[Any, deque[tuple[list[dist.Work], list[torch.Tensor]]]] = {}

    def _post(self, post: Any, tensors: Sequence[torch.Tensor], peer: int) -> list[dist.Work]:
        other = dist.get_global_rank(self._group, peer)
        if self._coalesced and len(tensors) > 1:
            return dist.batch_isend_irecv([dist.P2POp(post, tensor, other, self._group) for tensor in tensors])
        return [post(tensor, other, self._group) for tensor in tensors]

    def send(self, route: Any, tensors: Sequence[torch.Tensor], to: int) -> None:
        if not tensors:
            return
        carried = [tensor.detach().to(self.wire).contiguous() for tensor in tensors]
        sent = self._sent.setdefault(route, deque())
        while len(sent) >= ON_THEIR_WAY:
            for work in sent.popleft()[0]:
                work.wait()
        sent.append((self._post(dist.isend, carried, to), carried))

    def receive(self, forms: Sequence[Form], source: int) -> Arriving:
        tensors = [torch.empty(shape, dtype=dtype, device=self.wire) for dtype, shape in forms]
        return Arriving(tensors, self._post(dist.irecv, tensors, source), self.device)

    def tell(self, route: Any, thing: Any, to: int) -> None:
        """A thing of Python, for hear() of the other rank."""
        data = torch.frombuffer(bytearray(pickle.dumps(thing)), dtype=torch.uint8)
        for part in (torch.tensor([len(data)]), data):
            self.send((route, "told"), [part.to(self.wire)], to)

    def hear(self, source: int) -> Any:
        size = self.receive([(torch.int64, torch.Size([1]))], source).wait()[0]
        data = self.receive([(torch.uint8, torch.Size([int(size)]))], source).wait()[0]
        return pickle.loads(data.cpu().numpy().tobytes())

    def finish(self) -> None:
        """Waits for all that was sent."""
        for sent in self._sent.values():
            while sent:
                for work in sent.popleft()[0]:
                    work.wait()

    def abandon(self) -> None:
        """Forgets what was sent, after a failure."""
        self._sent.clear()


class Arriving:
    """The tensors of a message that is on its way."""

    def __init__(self, tensors: list[torch.Tensor], works: list[dist.Work], device: torch.device):
        self._tensors, self._works, self._device = tensors, works, device

    def wait(self) -> list[torch.Tensor]:
        for work in self._works:  # once: Gloo counts
            work.wait()
        return [tensor.to(self._device) for tensor in self._tensors]
