"""A head that all ranks share: each has a part of the words (Yeung et al. 2024, "Balancing Pipeline Parallelism with Vocabulary
Parallelism"; rows with S and T, planner/schedules/README.md).

The head is the linear layer and the cross-entropy that end the model. F of the last stage gives the linear layer's input to all
ranks (BROADCAST_F). S of a rank computes the logits of its words, their largest and the sum of their exponentials, which
REDUCE_S adds up over the ranks; T computes the gradient of the rank's words. The input's gradient is the sum of all ranks' parts:
with two barriers T makes a part, and B of the last stage waits for REDUCE_T; with one S makes what needs the rank's logits alone,
which is scaled when REDUCE_S is there. Not here: heads without a linear layer, losses besides one cross-entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.distributed import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from ._core import ConfigError
from ._messages import Arriving, Messages, form_of
from ._operators import Moment, draws
from ._schedule import Schedule, schedule

if TYPE_CHECKING:
    from ._plan import Plan
    from ._stages import Program

aten = torch.ops.aten
FAMILIES = ("vocab_1", "vocab_2", "interlaced")
# Operators between the logits and the loss that treat rows of words alone, and leave the words last.
UNCHANGING = {"contiguous", "clone", "alias", "to", "_to_copy", "float", "type_as"}
FLATTENING = {"view", "reshape", "_unsafe_view", "flatten"}
Rows = Callable[[torch.Tensor], torch.Tensor]


def name_of(node: fx.Node) -> str:
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet))


def argument(node: fx.Node, place: int, name: str, default: Any) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def refused(why: str) -> ConfigError:
    return ConfigError(
        f"the head cannot be shared by all ranks: {why}. Needed is a model that ends with F.cross_entropy(linear(hidden), labels); else "
        "leave schedule= out"
    )


def barriers_of(rows: Sequence[Sequence[Any]]) -> int:
    """1 where a T stands behind its B on the last stage's rank, so that B does not wait for it; else 2. 0: no head is shared."""
    places = {(action.kind, action.stage, action.microbatch): i for row in rows for i, action in enumerate(row) if action.kind in "STB"}
    if not any(kind == "S" for kind, _, _ in places):
        return 0
    last = max(stage for _, stage, _ in places)
    late = any(kind == "T" and stage == last and i > places.get(("B", last, m), i) for (kind, stage, m), i in places.items())
    return 1 if late else 2


class Head:
    """What the graph's end is. value: the linear layer's input. weight, bias: names in the module. rows: makes of `value` the
    [labels, hidden] that the loss reads. loss: the cross-entropy. ignored: label that does not count.

    Errors: ConfigError with what stands in the way.
    """

    def __init__(self, program: Program):
        self.loss = loss = program.outputs[0]
        if name_of(loss) != "cross_entropy_loss":
            raise refused(f"the loss is {loss.name}")
        scores, labels = loss.args[:2]
        if argument(loss, 2, "weight", None) is not None or argument(loss, 5, "label_smoothing", 0.0):
            raise refused("the loss has weights of words or label_smoothing")
        if labels.meta["val"].is_floating_point() or scores.meta["val"].dim() != 2:
            raise refused("scores are not [labels, words]")
        self.ignored: int = argument(loss, 4, "ignore_index", -100)
        self.takes_mean = argument(loss, 3, "reduction", 1) == 1
        steps: list[Rows] = []
        node = scores
        while name_of(node) != "linear":
            steps.insert(0, self._step(node))
            node = node.args[0]
        value, weight, bias = node.args[0], node.args[1], argument(node, 2, "bias", None)
        parameters = [program.parameter_name(source) for source in (weight, bias) if source is not None]
        if None in parameters:
            raise refused("the linear layer's weight is no parameter")
        self.value: fx.Node = value
        self.linear = node
        self.names: list[str] = [name for name in parameters if name is not None]
        self.words: int = program.tensor(self.names[0]).shape[0]
        self.rows: Rows = lambda tensor: self._made(steps, tensor)
        self._refuse_labels(program, labels)
        self.labels = program.of_inputs([labels])

    def _step(self, node: fx.Node) -> Rows:
        """An operator on logits, as one on what the logits are made of."""
        if node.op != "call_function" or name_of(node) not in UNCHANGING | FLATTENING | {"slice"}:
            raise refused(f"{node.name} stands between the linear layer and the loss")
        before, after = node.args[0].meta["val"].shape, node.meta["val"].shape  # type: ignore[union-attr]
        if name_of(node) in UNCHANGING:
            return lambda tensor: tensor
        if name_of(node) in FLATTENING:
            if len(after) != 2 or before[-1] != after[-1]:
                raise refused(f"{node.name} does not leave the words as they are")
            return lambda tensor: tensor.reshape(-1, tensor.shape[-1])
        dim, start, end, step = (argument(node, i + 1, name, default) for i, (name, default) in enumerate((("dim", 0), ("start", None), ("end", None), ("step", 1))))
        if dim % len(before) == len(before) - 1 or any(isinstance(place, fx.Node) for place in (start, end, step)):
            raise refused(f"{node.name} cuts the words, or at a size that is open")
        return lambda tensor: aten.slice.Tensor(tensor, dim, start, end, step)

    @staticmethod
    def _made(steps: Sequence[Rows], tensor: torch.Tensor) -> torch.Tensor:
        for step in steps:
            tensor = step(tensor)
        return tensor

    def _refuse_labels(self, program: Program, labels: fx.Node) -> None:
        stack, seen = [labels], set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            stack += node.all_input_nodes
            if (node.op == "placeholder" and node not in program.inputs) or (node.op == "call_function" and draws(node)):
                raise refused(f"its labels depend on {node.name}")

    def without(self, nodes: Sequence[fx.Node], needed: Callable[[fx.Node], Sequence[fx.Node]], writing: Callable[[fx.Node], bool]) -> list[fx.Node]:
        """The nodes of the last stage that are not of the head. needed: what a node reads. writing: whether a node writes buffers."""
        own = set(nodes)
        if self.linear not in own or self.loss not in own:
            raise refused("a cut lies within it; cut before the linear layer")
        if self.value not in own:
            raise refused("the last stage has nothing but the head; cut earlier")
        kept: set[fx.Node] = set()
        stack = [self.value, *(node for node in nodes if writing(node))]
        while stack:
            node = stack.pop()
            if node in own and node not in kept:
                kept.add(node)
                stack += needed(node)
        if self.linear in kept:
            raise refused("its logits are read by more than the loss")
        return [node for node in nodes if node in kept]


def shared_rows(asked: str | Schedule, plan: Plan) -> Schedule:
    """Lowered rows with S and T for the plan's ranks and microbatches. Errors: ConfigError if these are others."""
    if isinstance(asked, str) and asked not in FAMILIES:
        raise ConfigError(f"schedule: unknown word {asked!r}; use {', '.join(FAMILIES)}. Other families are planned: pfeife.plan(families=[...])")
    microbatches = 1 + max(action.microbatch for row in plan.schedule._actions()[1] for cell in row for action in cell)
    ranks = plan.schedule.ranks
    rows = schedule(asked, ranks=ranks, microbatches=microbatches) if isinstance(asked, str) else asked
    actions = [action for row in rows._actions()[1] for cell in row for action in cell]
    if not barriers_of([actions]):
        raise ConfigError("schedule: its rows have no S and T, with which all ranks share the head; plan it: pfeife.plan(schedule=...)")
    found = rows.ranks, 1 + max(action.microbatch for action in actions)
    if found != (ranks, microbatches):
        raise ConfigError(f"schedule: it has {found[0]} ranks and {found[1]} microbatches, and the plan has {ranks} and {microbatches}")
    return rows if any(action.kind.startswith("SEND") for action in actions) or ranks == 1 else rows.lower()


class Share(NamedTuple):
    """Which words a rank has."""

    begin: int
    end: int

    def of_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor[self.begin : self.end]


def shares_of(words: int, ranks: int) -> list[Share]:
    """[rank] As torch.chunk and DTensor divide: equal parts, the last ones smaller or empty."""
    size = -(-words // ranks)
    return [Share(min(rank * size, words), min((rank + 1) * size, words)) for rank in range(ranks)]


class Part:
    """What a rank has of a microbatch between S and the end of T and B."""

    def __init__(self, rows: torch.Tensor, labels: torch.Tensor, factor: torch.Tensor):
        self.rows, self.labels, self.factor = rows, labels, factor  # factor: of each label's loss in the step's
        self.powers: torch.Tensor | None = None  # [labels, own words] exponentials of logits less the largest
        self.early: tuple[torch.Tensor, torch.Tensor] | None = None  # with one barrier, the two parts of the input's gradient
        self.stats: Arriving | None = None
        self.scale: torch.Tensor | None = None  # [labels] of powers, to probabilities
        self.gradient: Arriving | None = None  # of the input, on the last rank
        self.readers = 2  # T, and B on the last rank


class SharedHead:
    """A rank's part of the head. rank, last: this rank, and the one of the last stage. whole_on: the rank whose other stages read
    the weight, too (a tied embedding), and which therefore has all of it; None: no rank has."""

    def __init__(self, head: Head, program: Program, rank: int, ranks: int, whole_on: int | None, barriers: int, moment: Moment, device: torch.device):
        self.head, self._program = head, program
        self.names = head.names
        self.rank, self.last, self.whole_on, self._barriers = rank, ranks - 1, whole_on, barriers
        self._moment, self._device = moment, device
        self.words_of_all = head.words
        self.shares = shares_of(head.words, ranks)
        self.own = self.shares[rank]
        self.scale: Callable[[torch.Tensor], torch.Tensor] | None = None  # of the loss, for fp16
        self.groups: list[Messages] = []  # of BROADCAST_F, REDUCE_S and REDUCE_T: each in the order of microbatches
        self.forget()

    # Parameters.

    @property
    def holds_all(self) -> bool:
        return self.rank == self.whole_on

    def parameters(self) -> list[nn.Parameter]:
        return [self._program.tensor(name) for name in self.names]  # type: ignore[misc]

    def own_rows(self, tensor: torch.Tensor) -> torch.Tensor:
        """This rank's words of its parameter or gradient."""
        return self.own.of_tensor(tensor) if self.holds_all else tensor

    def take(self, name: str, share: Share) -> None:
        """From now on, the module's parameter has these words alone on this rank."""
        tensor = self._program.tensor(name)
        tensor.data, tensor.grad = share.of_tensor(tensor.data).clone(), None

    def begin(self, connect: Callable[[], Messages]) -> None:
        """Makes the connections, and gives all ranks the words of the rank that has them. All ranks call it."""
        self.groups = [connect() for _ in range(3)]
        self.distribute()
        if not self.holds_all and self.rank == self.source:
            for name in self.names:
                self.take(name, self.own)

    @property
    def source(self) -> int:
        return self.last if self.whole_on is None else self.whole_on

    @torch.no_grad()
    def distribute(self) -> None:
        """The source's words on all ranks."""
        messages = self.groups[0]
        for name in self.names:
            tensor = self._program.tensor(name)
            for rank, share in enumerate(self.shares):
                if rank == self.source or share.begin == share.end:
                    continue
                if self.rank == self.source:
                    rows = share.of_tensor(tensor.data).contiguous()
                    messages.send(("words", name, rank), [rows], rank, [form_of(rows)])
                elif self.rank == rank:
                    tensor.data.copy_(messages.receive([form_of(tensor)], self.source).wait()[0])
        messages.finish()

    def sum_ties(self) -> None:
        """Adds the gradients of all ranks' words to those of the rank that has the whole weight, and gives each the sum."""
        messages, source = self.groups[0], self.whole_on
        if source is None:
            return
        for parameter, name in zip(self.parameters(), self.names):
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            for rank, share in enumerate(self.shares):
                if rank == source or share.begin == share.end or self.rank not in (rank, source):
                    continue
                own = share.of_tensor(parameter.grad) if self.rank == source else parameter.grad
                route = "tied words", name, rank
                if self.rank == source:
                    own += messages.receive([form_of(own)], rank).wait()[0]
                    messages.send(route, [own], rank, [form_of(own)])
                else:
                    messages.send(route, [own], source, [form_of(own)])
                    own.copy_(messages.receive([form_of(own)], source).wait()[0])
        messages.finish()

    def gathered(self, name: str, messages: Messages) -> torch.Tensor:
        """The whole parameter, on all ranks."""
        own = self.own_rows(self._program.tensor(name).detach())
        whole = own.new_zeros(self.words_of_all, *own.shape[1:])
        self.own.of_tensor(whole).copy_(own)
        return messages.sum(whole)

    def of_state(self, state: dict[str, torch.Tensor], kept: Mapping[str, torch.Tensor], group: Any) -> dict[str, torch.Tensor]:
        """A state whose parameters of the head are those of the unsplit module: DTensors, or left to the rank that has all."""
        for name in [name for name in state if any(kept[name] is parameter for parameter in self.parameters())]:
            if self.whole_on is None:
                mesh = DeviceMesh.from_group(group, self._device.type)
                shape = torch.Size([self.words_of_all, *state[name].shape[1:]])
                stride = torch.empty(shape, device="meta").stride()
                state[name] = DTensor.from_local(state[name], mesh, [Shard(0)], run_check=False, shape=shape, stride=stride)
            elif not self.holds_all:
                del state[name]
        return state

    # A pass.

    def forget(self) -> None:
        self._parts: dict[int, Part] = {}
        self._sent: dict[int, tuple[torch.Tensor, Arriving]] = {}
        self._waiting: list[int] = []  # microbatches whose REDUCE_S is under way, in order
        self._under_way: list[Arriving] = []  # what nobody here waits for
        self.loss: torch.Tensor | None = None

    def type_of_rows(self) -> torch.dtype:
        kind = self._device.type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.parameters()[0].dtype

    def send(self, microbatch: int, value: torch.Tensor) -> torch.Tensor:
        """On the last rank, behind F: gives all ranks what the logits are made of. Returns that, with its graph."""
        rows: torch.Tensor = self.head.rows(value).to(self.type_of_rows()).contiguous()
        self._sent[microbatch] = rows.detach(), self.groups[0].begin_first(rows.detach(), self.last)
        return rows

    @torch.no_grad()
    def share(self, microbatch: int, leaves: Sequence[torch.Tensor], loss_share: float, training: bool) -> None:
        """S. leaves: the model's inputs. loss_share: of the microbatch's loss in the step's."""
        self._moment.at(microbatch)
        labels = self.head.labels(leaves)[0].reshape(-1).to(self._device)
        part = self._parts[microbatch] = Part(self._rows(microbatch, len(labels)), labels, self._factor(labels, loss_share))
        weight, *bias = [self.own_rows(parameter.detach()) for parameter in self.parameters()]
        logits = F.linear(part.rows, weight, *bias)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        places, found = self._places(labels)
        stats = logits.new_zeros(len(self.shares), 3, len(labels))  # largest logit, sum of exponentials, the label's logit
        largest, total, target = stats[self.rank]
        largest.copy_(logits.amax(1) if logits.shape[1] else torch.full_like(largest, -float("inf")))
        if logits.shape[1]:
            target.copy_(torch.where(found, logits.gather(1, places[:, None])[:, 0], 0))
        powers = logits.sub_(largest[:, None]).exp_()
        total.copy_(powers.sum(1))
        part.stats = self.groups[1].begin_sum(stats)
        self._waiting.append(microbatch)
        if not training:
            return
        part.powers = powers
        if self._barriers == 1:
            expected = powers.to(part.rows.dtype) @ weight.to(part.rows.dtype)
            own = F.embedding(places, weight).to(part.rows.dtype) * found[:, None] if len(weight) else torch.zeros_like(expected)
            part.early = expected, own

    def _rows(self, microbatch: int, labels: int) -> torch.Tensor:
        if self.rank == self.last:
            rows, sent = self._sent.pop(microbatch)
            self._leave(sent)
            return rows
        hidden = self._program.tensor(self.names[0]).shape[1]
        return self.groups[0].begin_first(torch.empty(labels, hidden, dtype=self.type_of_rows(), device=self._device), self.last).wait()[0]

    def _factor(self, labels: torch.Tensor, loss_share: float) -> torch.Tensor:
        """[label] By how much its loss counts in the step's."""
        counts = (labels != self.head.ignored).to(torch.float64 if self._device.type != "mps" else torch.float32)
        divisor = self._moment.divisors.get(self.head.loss.name)
        if divisor is None:
            divisor = counts.sum() if self.head.takes_mean else torch.ones((), device=self._device)
        return counts * (loss_share / divisor)

    def _places(self, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[label] The place of each label among the rank's words, 0 where it is not there; whether it is there."""
        found = (labels >= self.own.begin) & (labels < self.own.end) & (labels != self.head.ignored)
        return torch.where(found, labels - self.own.begin, 0), found

    def advance(self) -> None:
        """Goes on with the microbatches whose REDUCE_S is done."""
        while self._waiting and self._parts[self._waiting[0]].stats.is_done():  # type: ignore[union-attr]
            self._combine(self._waiting.pop(0))

    def _combine_until(self, microbatch: int) -> None:
        while microbatch in self._waiting:
            self._combine(self._waiting.pop(0))

    @torch.no_grad()
    def _combine(self, microbatch: int) -> None:
        """Behind REDUCE_S: the loss, and with one barrier REDUCE_S's sum of the input's gradient."""
        part = self._parts[microbatch]
        assert part.stats is not None
        (stats,) = part.stats.wait()
        largest = stats[:, 0].amax(0)
        scales = (stats[:, 0] - largest).exp()
        total = (scales * stats[:, 1]).sum(0)
        part.scale = scales[self.rank] / total
        if self.rank == self.last:
            losses = largest + total.log() - stats[:, 2].sum(0)
            loss = torch.where(part.factor != 0, losses * part.factor.to(losses.dtype), 0).sum()
            self.loss = loss if self.loss is None else self.loss + loss
        if part.powers is None:  # of an evaluation
            del self._parts[microbatch]
        if part.early is not None:
            expected, own = part.early
            factor = self._scaled(part.factor)[:, None]
            gradient = (expected * part.scale[:, None].to(expected.dtype) - own) * factor.to(expected.dtype)
            part.early, part.gradient = None, self.groups[2].begin_sum_on(gradient, self.last)

    def _scaled(self, factor: torch.Tensor) -> torch.Tensor:
        return self.scale(factor) if self.scale else factor

    @torch.no_grad()
    def rest(self, microbatch: int) -> None:
        """T."""
        self._combine_until(microbatch)
        part = self._parts[microbatch]
        assert part.powers is not None and part.scale is not None
        factor = self._scaled(part.factor).to(part.powers.dtype)
        gradient = part.powers.mul_((part.scale * factor)[:, None])  # of logits
        places, found = self._places(part.labels)
        if gradient.shape[1]:
            gradient.scatter_add_(1, places[:, None], -(factor * found)[:, None])
        gradient = gradient.to(part.rows.dtype)
        parameters = self.parameters()
        if self._barriers == 2:
            weight = self.own_rows(parameters[0].detach()).to(gradient.dtype)
            part.gradient = self.groups[2].begin_sum_on(gradient @ weight, self.last)
        gradients = [lambda: gradient.t() @ part.rows, lambda: gradient.sum(0)]
        for parameter, make in zip(parameters, gradients):
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self.own_rows(parameter.grad).add_(make())
        part.powers = None
        if self.rank != self.last:
            assert part.gradient is not None
            self._leave(part.gradient)
            part.readers -= 1
        self._read(microbatch)

    def _leave(self, arriving: Arriving) -> None:
        self._under_way = [*(earlier for earlier in self._under_way if not earlier.is_done()), arriving]

    def _read(self, microbatch: int) -> None:
        """Forgets a microbatch behind its last reader."""
        self._parts[microbatch].readers -= 1
        if not self._parts[microbatch].readers:
            del self._parts[microbatch]

    def gradient(self, microbatch: int) -> torch.Tensor:
        """On the last rank, in B: that of what send() returned."""
        self._combine_until(microbatch)
        arriving = self._parts[microbatch].gradient
        assert arriving is not None
        self._read(microbatch)
        return arriving.wait()[0]

    def finish(self) -> torch.Tensor | None:
        """Behind the last action: this rank's part of the loss."""
        for microbatch in [*self._waiting]:
            self._combine_until(microbatch)
        for arriving in self._under_way:
            arriving.wait()
        return self.loss
