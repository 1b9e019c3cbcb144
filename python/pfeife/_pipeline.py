"""Trains a module as a plan says, over the process groups of torch.distributed: every rank follows its lowered row."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import DeviceMesh
from torch.distributed.tensor import DTensor

from ._agreement import Batches, Photographed
from ._assembly import Assembly
from ._capture import Unexportable
from ._check import Checked, Measured, check, trace
from ._core import ConfigError, RuntimeFault
from ._executor import Executor
from ._messages import Arriving, Messages
from ._operators import Moment
from ._config import Options
from ._plan import Plan, autocast_type
from ._pulse import Pulse
from ._same_graph import adopted, facts_of
from ._schedule import Action, Schedule
from ._shared_head import SharedHead, shared_rows
from ._stages import Given

if TYPE_CHECKING:
    from ._capture.capture import Capture
Group = Union[dist.ProcessGroup, DeviceMesh]
BUCKET_BYTES = 25 << 20
NOT_WITH_HEAD = {
    "compile": "a head on all ranks has not been tried beside compiled stages",
    "shard": "FSDP2 shards parameters of whole stages, and the head's are divided among stages",
}
MOST_FORMS = 1000  # of returned values that are remembered, by the sizes of microbatches


def full(tensor: torch.Tensor) -> torch.Tensor:
    """Gathers a DTensor; returns other tensors unchanged."""
    whole: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def own_device(device: torch.device | str) -> torch.device:
    """With its number. "cuda" is the card that was set, and where none was, that of torchrun's local rank, which is set."""
    device = torch.device(device)
    if device.type == "cpu" or device.index is not None:
        return device
    cards = torch.get_device_module(device)
    local = int(os.environ.get("LOCAL_RANK", 0))
    if cards.current_device() == 0 and local < cards.device_count():
        cards.set_device(local)
    return torch.device(device.type, cards.current_device())


class Named(dict[str, nn.Parameter]):
    """Parameters by name, over whose pairs one goes as over those of torch: for name, parameter in pipe.named_parameters()."""

    def __iter__(self) -> Iterator[Any]:  # pairs
        return iter(self.items())


class Pipeline:
    """Trains a module as planned, on the ranks of a group.

    Parameters stay the module's own objects, and those of other ranks stay where they are. Hooks of inner modules do not run.

    Args:
        model: The module that was planned, or what pfeife.capture() made of it.
        plan: Of pfeife.plan(model, ...).
        device: Of this rank; "cuda" is the card that was set, else that of torchrun's local rank.
        group: Of torch.distributed, or a mesh of one dimension: one rank for each rank of the plan. None: the default group,
            which is initialized under torchrun.
        replicas: The data-parallel group: the ranks at this rank's place in all pipelines, each with its own batch.
        shard: In place of `replicas`, a mesh of one dimension whose ranks each keep a part of the parameters (FSDP2). Only for
            families without I and W, and for modules without parameters that several ranks hold. The module then holds
            the shards.
        scaler: Scales fp16's loss: torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler(process_group=...).
        precision: None: the plan's. Forwards of bf16_amp and fp16_amp run under torch.autocast, products of tf32 on a card in
            TF32. A torch.autocast of yours around step(), evaluate() and pipe() wins.
        compile: True, or arguments of torch.compile, which gets every stage.
        schedule: "vocab_1", "vocab_2" or "interlaced", or rows of one, in the place of the plan's rows of 1f1b: all ranks share
            the model's end, a linear layer and its cross-entropy, each with a part of the words. The module then holds this
            rank's words of that layer.
        slice_lengths: Tokens of each slice, for plans with slices of the sequence; None: as planned.
        compare_batches: Ranks compare sizes and 1024 numbers of each input before every step; all bytes before the first
            and before every N-th step; 0: before the first only. All bytes take about 1 ms a MB.
        seed: Of random operators, the same on all ranks.
        timeout: Seconds until an exchange counts as hung; None: torch's.

    Raises:
        ConfigError: On every rank, if this is another module than was planned, or the group has another size; in later calls,
            if the module is not as it was captured (modes, layers, hooks, numbers that forward reads), or the batches of
            ranks differ.
    """

    def __init__(
        self,
        model: nn.Module | Capture,
        plan: Plan,
        device: torch.device | str = "cpu",
        group: Group | None = None,
        *,
        replicas: Group | None = None,
        shard: DeviceMesh | None = None,
        scaler: torch.amp.GradScaler | None = None,
        precision: str | None = None,
        compile: bool | Options = False,
        seed: int = 0,
        schedule: str | Schedule | None = None,
        slice_lengths: Sequence[int] | None = None,
        compare_batches: int = 100,
        timeout: float | None = None,
    ):
        self.capture: Any = getattr(plan, "capture", None) if isinstance(model, nn.Module) else model
        if self.capture is None:
            raise ConfigError(
                "the plan has no module's graph: take what pfeife.plan(model, batch, ...) gives, or, with a plan that was loaded, "
                "pfeife.capture(model, **batch, microbatches=...) in the model's place"
            )
        self.device = own_device(device)
        if not dist.is_initialized():
            if "RANK" not in os.environ:
                raise ConfigError(
                    "this is one process: start one for each rank with torchrun --nproc-per-node RANKS train.py, or call "
                    "torch.distributed.init_process_group() in each before"
                )
            dist.init_process_group("gloo" if self.device.type == "cpu" else None)
        self.plan = plan
        self.module: Any = model if isinstance(model, nn.Module) else getattr(model, "module", None)
        self.group = group.get_group() if isinstance(group, DeviceMesh) else group or dist.group.WORLD
        self._shard = shard
        replicas = replicas or shard
        self.replicas = replicas.get_group() if isinstance(replicas, DeviceMesh) else replicas
        self.rank = dist.get_rank(self.group)
        self._replica = dist.get_rank(self.replicas) if self.replicas else 0
        self._scaler = scaler
        self._precision = precision or plan.precision
        self._autocast = autocast_type(self._precision)
        self._compile = compile
        self._synced = True
        self._summed = False
        self._slice_lengths = slice_lengths
        self._rows = shared_rows(schedule, plan) if schedule is not None else None
        self._head: SharedHead | None = None
        self._timeout = timeout
        self._failed = ""
        self._loss_type: torch.dtype | None = None
        self._forms: dict[tuple[Any, ...], list[dict[str, list[Any]]]] = {}  # of returned values
        self._empty: list[str] = []  # parameters and buffers that were made on meta
        self._ties: list[tuple[torch.Tensor, Messages]] = []
        self.moment = Moment(hash((seed, self._replica)) if self.replicas else seed, self.device)
        self._messages = Messages(dist.get_process_group_ranks(self.group), self.device, timeout)
        self._across: Any = None  # Messages, with replicas
        if self.replicas:
            self._across = Messages(dist.get_process_group_ranks(self.replicas), self.device, timeout)
        self._executor: Any = None
        me, seen_by = dist.get_rank(), weakref.ref(self)
        number = dist.distributed_c10d._get_default_store().add(f"pfeife/pulses/{me}", 1)  # the same on all ranks
        store = dist.PrefixStore(f"pfeife/pulses/{number}", dist.distributed_c10d._get_default_store())
        self._pulse = Pulse(store, me, range(dist.get_world_size()), lambda: pipe._state() if (pipe := seen_by()) else ("ended", ()))
        self._batches = Batches(self._messages, compare_batches)
        mistake: Exception | None = None
        try:
            self._as_rank_0()
            self._photographed = Photographed(self.capture, self.module)
            self._build()
            self._photographed.note()
        except Exception as error:
            mistake = error
        of_rank = self._messages.all(f"{type(mistake).__name__}: {mistake}" if mistake else "")
        if mistake:
            raise mistake
        for rank, report in enumerate(of_rank):
            if report:
                raise ConfigError(f"rank {rank}: {report}")
        self._ties = self._tied()
        if self._head:
            world = dist.get_process_group_ranks(self.group)
            self._head.begin(lambda: Messages(world, self.device, self._timeout))
            self._photographed.note()
        if self.replicas and self._shard is None:
            for name in self.names:
                tensor = self.program.tensor(name)
                tensor.data.copy_(self._across.first(tensor))

    def _as_rank_0(self) -> None:
        """The same graph and plan on all ranks: those of rank 0, where captures differ in the order of nodes alone, or plans by what
        the ranks' machines take for an action."""
        graph, plan = str(self.capture.program.graph), f"{self.plan.schedule.cells}{self.plan.rank_of_stage}{self._rows and self._rows.cells}"
        own = zlib.crc32(graph.encode()), zlib.crc32(plan.encode()), getattr(self.plan, "overhead", None)
        of_rank = self._messages.all(own)
        if all(facts[:2] == of_rank[0][:2] for facts in of_rank):
            return
        if all((facts[0], facts[2]) == (of_rank[0][0], of_rank[0][2]) for facts in of_rank):
            differing = next(rank for rank, facts in enumerate(of_rank) if facts != of_rank[0])
            raise ConfigError(f"rank {differing} has another graph or plan than rank 0; all ranks capture and plan the same")
        facts = self._messages.all(None if self.rank else facts_of(self.plan, self.capture.program))[0]
        if own[:2] != of_rank[0][:2]:
            self.plan = adopted(facts, self.plan, self.capture, self.rank)

    def _build(self) -> None:
        plan = self.plan
        size = dist.get_world_size(self.group)
        ranks = plan.schedule.ranks
        if ranks != size:
            raise ConfigError(f"the plan is for {ranks} ranks, and the group has {size}: plan for devices={size}")
        if self._scaler is not None and size > 1 and not hasattr(self._scaler, "process_group"):
            raise ConfigError(
                "a GradScaler of each rank alone would skip other steps than the others: "
                "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler(process_group=...)"
            )
        self._assembly = assembly = Assembly(plan, self.capture, self.module, self._slice_lengths, self._rows)
        rows, self.program = assembly.rows, assembly.program
        self.row = rows[self.rank]
        self.trains = assembly.trains
        if self._precision == "fp16_amp" and self._scaler is None and self.trains:
            warnings.warn(
                "fp16_amp without a scaler: small gradients become 0. scaler=torch.distributed.fsdp.sharded_grad_scaler."
                "ShardedGradScaler(process_group=...), then scaler.step(optimizer) and scaler.update(); or plan with bf16_amp",
                stacklevel=3,
            )
        self._forward_row = [action for action in self.row if action.kind in ("F", "SEND_F", "RECV_F", "S")]
        self.microbatches = assembly.microbatches
        self._rank_of = assembly.rank_of
        self._refuse_options()
        self.names = assembly.names(self.rank)
        self._head = assembly.head(self.rank, self.moment, self.device)
        if self._head:
            self._take_words(self._head)
        for name in self.names:
            self._place(name, self.program.tensor(name))
        self.stages = assembly.stages(self.rank, self.device, self.moment, split=not self._compile)
        self._executor = Executor(self.stages, self._rank_of, self.rank, self._messages, self.moment)
        self._executor.slices, self._executor.head = self.program.slices, self._head
        self._executor.crossing_shapes = None if self.program.slices else self.program.crossing_shapes
        if self._shard is not None:
            self._sharded()
        if self._compile:
            self._compiled(self._compile if isinstance(self._compile, Mapping) else {})
        if self._scaler is not None:
            self._executor.scale = self._scaler.scale
            if self._head:
                self._head.scale = self._scaler.scale

    def _refuse_options(self) -> None:
        """Raises ConfigError where an option of this Pipeline does not execute what the plan has."""
        for option, given in {"compile": bool(self._compile), "shard": self._shard is not None}.items():
            if given:
                self.plan.must_execute(f"Pipeline({option}=)")
                if self._assembly.barriers:
                    raise ConfigError(f"Pipeline({option}=): {NOT_WITH_HEAD[option]}; leave schedule= out")

    def _take_words(self, head: SharedHead) -> None:
        """This rank's words of the head's parameters, which the rank of all of them gives in begin()."""
        for name in head.names:
            if name not in self.names:
                self.names.append(name)
                if self.rank != head.source:
                    head.take(name, head.own)

    def _place(self, name: str, tensor: torch.Tensor) -> None:
        """The same object, on this rank's device; of `meta`, NaN until load_state_dict() fills it."""
        if tensor.device.type == "meta":
            empty = torch.full_like(tensor, float("nan") if tensor.is_floating_point() else 0, device=self.device)
            parameter = isinstance(tensor, nn.Parameter)
            self._empty.append(name)
            torch.utils.swap_tensors(tensor, nn.Parameter(empty, tensor.requires_grad) if parameter else empty)
        elif tensor.device != self.device:
            tensor.data = tensor.data.to(self.device)

    def _sharded(self) -> None:
        state = [self.program.state(nodes) for nodes in self.program.nodes]
        for name in self.names:
            if isinstance(self.program.tensor(name), nn.Parameter) and sum(name in names for names in state) > 1:
                raise ConfigError(f"{name} is a parameter of several stages, which FSDP2 cannot shard: use replicas")
        for stage in self.stages.values():
            stage.shard(self._shard, self.program)
        if isinstance(self.module, nn.Module):
            for name, parameter in self.named_parameters().items():
                owner, _, leaf = name.rpartition(".")
                self.module.get_submodule(owner)._parameters[leaf] = parameter

    def _compiled(self, how: Options) -> None:
        if any(action.kind == "I" for action in self.row):
            warnings.warn(
                "torch.compile makes gradients of inputs and of weights together: I is a whole backward, and W is empty. "
                "Families without I and W lose nothing",
                stacklevel=4,
            )
        for stage in self.stages.values():
            stage.module, stage.evaluation = torch.compile(stage.module, **how), torch.compile(stage.evaluation, **how)

    # Parameters that several ranks hold: tied ones by ranks of the pipeline, all by its replicas. Their gradients are sums.

    def _tied(self) -> list[tuple[torch.Tensor, Messages]]:
        """(parameter, the ranks that hold it), in the same order on every rank; equal to the first rank's from now on."""
        holders: dict[str, set[int]] = {}
        for stage, rank in enumerate(self._rank_of):
            for name in self.program.state(self.program.nodes[stage]):
                holders.setdefault(name, set()).add(rank)
        ties = []
        groups: dict[tuple[int, ...], Messages] = {}
        for name, ranks in holders.items():
            tensor, members = self.program.tensor(name), tuple(sorted(ranks))
            if isinstance(tensor, nn.Parameter) and len(members) > 1 and self.rank in members:
                if members not in groups:
                    world = [dist.get_global_rank(self.group, rank) for rank in members]
                    groups[members] = Messages(world, self.device, self._timeout)
                tensor.data.copy_(groups[members].first(tensor))
                ties.append((tensor, groups[members]))
        return ties

    def _counted_elsewhere(self) -> list[torch.Tensor]:
        """Parameters of this rank whose gradients are those of another's."""
        words = self._head.parameters() if self._head and self._head.whole_on not in (None, self.rank) else []
        return [*(tie for tie, holders in self._ties if holders.rank), *words]

    def _count_once(self) -> None:
        """Gradients that are sums already stay on one rank only, before more is added and they are summed again."""
        all_of_them = self._replica and self._shard is None
        for tensor in self.parameters() if all_of_them else self._counted_elsewhere():
            if tensor.grad is not None:
                tensor.grad.zero_()

    def _sum_ties(self) -> None:
        for tensor, holders in self._ties:
            if tensor.requires_grad:
                gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                tensor.grad = holders.sum(gradient)
        if self._head:
            self._head.sum_ties()

    def _summed_last(self) -> list[torch.Tensor]:
        """Parameters whose gradients replicas sum behind those of the pipeline."""
        return [*(tie for tie, _ in self._ties), *(self._head.parameters() if self._head else [])]

    def _sum_replicas(self, tensors: list[torch.Tensor], under_way: list[tuple[list[torch.Tensor], Arriving]]) -> None:
        """Begins to sum gradients over the replicas, in buckets."""
        buckets: list[list[torch.Tensor]] = []
        room = 0
        for tensor in tensors:
            if not tensor.requires_grad:
                continue
            if tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
            if room < tensor.nbytes or buckets[-1][0].dtype != tensor.grad.dtype:
                buckets.append([])
                room = BUCKET_BYTES
            buckets[-1].append(tensor.grad)
            room -= tensor.nbytes
        for bucket in buckets:
            under_way.append((bucket, self._across.begin_sum(torch.cat([parameter.reshape(-1) for parameter in bucket]))))

    # Steps.

    def step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Computes forward and backward of a batch, and adds its gradients to those that are there.

        Args:
            args: What the module's forward takes, the whole batch on every rank. Or a list of microbatches, one for
                each of the plan's: batch m is what the rows call microbatch m, wherever the plan's order has it. Their
                samples may differ, and the sizes that capture(dynamic_shapes=) leaves open.
            kwargs: What forward takes by name.

        Returns:
            The loss, equal on every rank: that of the whole batch if it is made of means over samples, labels or masks; else
            the microbatch losses' mean, weighted by samples or by the weights that the module names. Of a list: its sum of
            losses over labels or masks, divided by the count of all microbatches; else the same weighted mean.

        Raises:
            RuntimeFault: On every rank, with rank and action of the one that failed first. Make a new Pipeline after it.
            ConfigError: The plan is forward only, or has another number of microbatches than the list.
        """
        self._must_train("step()")
        given = self._given(args, kwargs, trains=True)
        if self._summed:
            self._count_once()
            self._summed = False
        after: dict[int, Callable[[], None]] = {}
        under_way: list[tuple[list[torch.Tensor], Arriving]] = []
        if self.replicas and self._shard is None and self._synced:
            tied = {id(tensor) for tensor in self._summed_last()}
            for number, stage in self.stages.items():
                last = max(i for i, action in enumerate(self.row) if action.stage == number and action.kind in "BIW")
                untied = [parameter for parameter in stage.trained if id(parameter) not in tied]
                after[last] = lambda untied=untied: self._sum_replicas(untied, under_way)  # type: ignore[misc]
        if self._scaler is not None:
            self._scaler.scale(torch.ones((), device=self.device))  # which makes the scale on ranks without a loss, too
        loss = self._run(self.row, given, True, after)
        self.moment.step += 1
        if self._synced:
            with self._failing("sums of gradients"):
                self._sum_ties()
                if self.replicas:
                    self._sum_replicas(self._summed_last(), under_way)
                for bucket, sums in under_way:
                    parts = sums.wait()[0].split([parameter.numel() for parameter in bucket])
                    for gradient, part in zip(bucket, parts):
                        gradient.copy_(part.view_as(gradient))
            self._summed = True
        return loss

    @torch.no_grad()
    def evaluate(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Returns the loss of a batch as model.eval() has it: nothing is dropped, batch norm uses its statistics, buffers stay.

        Args:
            args: A batch, or a list of microbatches: see step().
            kwargs: What forward takes by name.
        """
        given = self._given(args, kwargs, trains=False)
        return self._run(self._forward_row, given, False, {})

    @torch.no_grad()
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what forward of the whole module returns for a batch as model.eval() has it, on every rank, in the same containers.

        Samples are those of the batch, in order. Floats without samples are averaged like the loss, integers are summed. A value is
        None where `plan.capture.notes` says so, and if it is neither a tensor nor a number or text (a cache). Labels, and any other
        tensor, may be absent or None: what depends on them (the loss) is then None. A list of microbatches gives a list.

        Raises:
            ConfigError: The graph has no outputs but the loss, or the plan has slices.
        """
        if getattr(self.capture, "outputs", None) is None:
            raise ConfigError("the graph has no outputs but the loss: pfeife.plan(model, batch, ...) of the module keeps them")
        self.plan.must_execute("pipe(**batch)")
        if self._head:
            raise ConfigError("pipe(**batch): no rank has all logits of a head that all ranks share; pipe.evaluate(**batch) gives the loss")
        given = self._given(args, kwargs, trains=False, may_lack=True)
        self._executor.returned = {}
        try:
            return self._run(self._forward_row, given, False, {})
        finally:
            self._executor.returned = None

    def check(self, *args: Any, **kwargs: Any) -> Checked:
        """Compares loss and gradients of a step with those of the plain module on the same microbatches and random numbers.

        Every rank holds the whole module meanwhile. Gradients, buffers and random numbers stay as they were.
        """
        self._must_train("check()")
        return check(self, args, kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Measured:
        """Runs step(), for forward-only plans evaluate(), and returns the times of all ranks' actions."""
        return trace(self, args, kwargs)

    def _must_train(self, what: str) -> None:
        self.plan.must_execute("Pipeline.step", what)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """While it holds, step() does not sum gradients over ranks that share parameters. The first step after it sums them."""
        before, self._synced = self._synced, False
        try:
            yield
        finally:
            self._synced = before

    def _taken(self, args: tuple, kwargs: Mapping[str, Any], may_lack: bool) -> Given:
        """The batch as inputs of microbatches. may_lack: zeros stand in for inputs that are not there."""

        def leaves_of(*args: Any, **kwargs: Any) -> tuple[list[torch.Tensor], set[str]]:
            if may_lack:
                found: tuple[list[torch.Tensor], set[str]] = self.capture.some_leaves(*args, **kwargs)
                return found
            return self.capture.leaves(*args, **kwargs), set()

        batches = self.capture.batches(args, kwargs)
        if batches is None:
            leaves, missing = leaves_of(*args, **kwargs)
            return Given(leaves, self.capture.split(leaves, self.microbatches), missing)
        if len(batches) != self.microbatches:
            raise ConfigError(f"a list of {len(batches)} batches, and the plan has {self.microbatches} microbatches: give one batch for each")
        if self.program.means:
            self.program.means.refuse_lists()
        micro, lacking = [], []
        for m, batch in enumerate(batches):
            try:
                leaves, missing = leaves_of(batch)
                micro.append(self.capture.as_microbatch(leaves))
            except Unexportable as error:
                raise Unexportable(f"microbatch {m}: {error}") from error
            lacking.append(missing)
        if any(missing != lacking[0] for missing in lacking):
            raise ConfigError("some microbatches of the list lack inputs that others have: leave them out of all")
        return Given([leaf for part in micro for leaf in part], micro, lacking[0], [self.capture.samples_in(part) for part in micro])

    def _given(self, args: tuple, kwargs: Mapping[str, Any], trains: bool, may_lack: bool = False) -> Given:
        """The batch of a pass, if this rank and all others can run it."""
        if self._failed:
            raise RuntimeFault(f"{self._failed}; make a new Pipeline")
        given, mistake = Given([], [], set()), None
        try:
            self._photographed.refuse_changes(trains)
            given = self._taken(args, kwargs, may_lack)
        except Exception as error:
            mistake = error
        self._executor.action = "before the first action"
        with self._failing("before the first action"):
            refusal = self._batches.meet(mistake, given.leaves)
        if refusal:
            raise refusal
        return given

    def _run(self, row: list[Action], given: Given, training: bool, after: Mapping[int, Callable[[], None]]) -> torch.Tensor:
        with self._failing(lambda: str(self._executor.action)):
            self._filled()
            counts = self._counts(given)
            with self.moment.kept(), self.cast():
                loss = self._executor.run(row, given.micro, counts, training, after)
            torch.clear_autocast_cache()  # casts of weights that change
            if self._executor.returned is not None:
                self._executor.action = "behind the last action"
                outputs = self._returned(self._executor.returned, given, counts)
                self._executor.action = "between steps"
                return outputs
            if self._loss_type is None:
                self._loss_type = self._messages.all(loss.dtype)[self._rank_of[self.program.loss_stage]]
            loss = self._messages.sum(loss.to(self._loss_type))
            loss = self._across.sum(loss) if self.replicas else loss
        self._executor.action = "between steps"
        return loss

    def _filled(self) -> None:
        """Refuses to compute with what was made on meta and never got values."""
        for name in self._empty:
            tensor = self.program.tensor(name)
            if tensor.is_floating_point() and bool(full(tensor.detach()).isnan().all()):
                raise ConfigError(f"{name} was made on meta and has no values: pipe.load_state_dict(state of the unsplit model) before")
        self._empty.clear()

    @contextlib.contextmanager
    def cast(self) -> Iterator[None]:
        """While it holds, torch computes in the plan's precision, or as the user's own torch.autocast says."""
        kind = self.device.type
        with contextlib.ExitStack() as held:
            if self._autocast and not torch.is_autocast_enabled(kind):
                held.enter_context(torch.autocast(kind, dtype=self._autocast))
            if self._precision == "tf32" and kind == "cuda":
                for products in (torch.backends.cuda.matmul, torch.backends.cudnn.conv):
                    held.callback(setattr, products, "fp32_precision", products.fp32_precision)
                    products.fp32_precision = "tf32"
            yield

    def _returned(self, own: dict[str, list[Any]], given: Given, counts: list[float]) -> Any:
        """What the module returns, of the values that the ranks made."""
        micro, missing = given.micro, given.missing
        alike = tuple(self._executor.alike)
        if alike not in self._forms:
            if len(self._forms) > MOST_FORMS:  # on all ranks in the same pass
                self._forms.clear()
            forms = {name: [(value.dtype, value.shape) if isinstance(value, torch.Tensor) else value for value in column] for name, column in own.items()}
            self._forms[alike] = self._messages.all(forms)
        names = [node.name for node in self.program.inputs]
        parts: list[dict[str, Any]] = [{name: tensor.to(self.device) for name, tensor in zip(names, part)} for part in micro]
        for rank, forms in enumerate(self._forms[alike]):
            for name, column in forms.items():
                tensors = [value for value in own[name] if isinstance(value, torch.Tensor)] if rank == self.rank else None
                values = iter(self._messages.bytes_of([value for value in column if isinstance(value, tuple)], tensors, rank))
                for part, value in zip(parts, column):
                    part[name] = next(values) if isinstance(value, tuple) else value
        if given.samples is not None:
            return [self.capture.outputs.assembled([part], [1.0], missing) for part in parts]
        return self.capture.outputs.assembled(parts, [count / sum(counts) for count in counts], missing)

    def _counts(self, given: Given) -> list[float]:
        """[microbatch] How much of the step's loss is its own, over all replicas."""
        counts = self.program.counts(given)
        total = torch.tensor(sum(counts), dtype=torch.float64)
        if self.replicas:
            total = self._across.sum(total.to(self.device))
        if float(total) == 0:
            raise ConfigError("no microbatch of this step counts: its loss weights are 0")
        shares = [count / float(total) for count in counts]
        self.moment.of_microbatches = self._divisors(given, shares)
        return shares + [0.0] * (self.microbatches - len(counts))

    def _computes(self, name: str) -> bool:
        """Whether this rank computes this value of the graph, or a part of it."""
        return (self._head is not None and name == self._head.head.loss.name) or any(name in stage.names for stage in self.stages.values())

    def _divisors(self, given: Given, shares: list[float]) -> list[dict[str, torch.Tensor]]:
        """[microbatch] What means in the loss of this rank's stages divide by."""
        means = self.program.means
        if means is None or self.program.slices:
            return []
        if self._executor.returned is not None and given.samples is not None:  # each microbatch's own loss is asked for
            own = [node for node in means.counts if self._computes(node.name)]
            return [{node.name: means.count(node, part).to(self.device) for node in own} for part in given.micro]
        counts = {}
        for node in means.counts:
            if self._computes(node.name):
                count = means.of_batch(node, given).to(self.device)
                if self.replicas:
                    count = self._across.sum(count if means.counts[node].of_sum else count * sum(shares))
                counts[node] = count
        return [means.divisors(counts, share) for share in shares]

    @contextlib.contextmanager
    def _failing(self, what: str | Callable[[], str]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            own = self._told_of(what if isinstance(what, str) else what(), error)
            first = self._messages.abandon(own)
            for holders in {holders for _, holders in self._ties} | {self._across} - {None} | {*(self._head.groups if self._head else ())}:
                holders.abandon(own)
            self._failed = first if first == own else f"{first}\n  after it: {own}"
            kind = type(error) if isinstance(error, ConfigError) else RuntimeFault
            raise kind(self._failed) from error.with_traceback(None)

    def _told_of(self, action: str, error: Exception) -> str:
        """What a failure says, of the rank that is at fault: this one, or one for which it waited."""
        text = f"{type(error).__name__}: {error}"
        awaited = self._state()[1]
        if not awaited or self._messages.reason():
            return f"rank {self.rank}, {action}: {text}"
        if len(awaited) == 1 and re.search("[Cc]onnection|[Bb]roken pipe", text):
            found = [(awaited[0], "closed its connection without a word: it died, or its program ended")]
        else:
            found = self._pulse.culprits(awaited) or [(rank, "did not answer") for rank in awaited]
        members = self._messages.world
        named = (f"rank {members.index(rank) if rank in members else f'{rank} of the world'} {words}" for rank, words in found)
        return f"{'; '.join(named)}. Rank {self.rank} waited in vain, {action}: {text}"

    def _state(self) -> tuple[str, tuple[int, ...]]:
        """What this rank does, and for which ranks of the world it waits."""
        every = [self._messages, *(holders for _, holders in self._ties), *([self._across] if self._across else []), *(self._head.groups if self._head else [])]
        return str(getattr(self._executor, "action", "in Pipeline()")), next((status.awaited for status in every if status.awaited), ())

    # What training needs besides.

    def named_parameters(self, prefix: str = "") -> Named:
        """Returns this rank's parameters by their names in the module, a tied one by its first name.

        Args:
            prefix: Put before each name, with a dot between.
        """
        tensors = {f"{prefix}.{name}" if prefix else name: self.program.tensor(name) for name in self.names}
        return Named({name: tensor for name, tensor in tensors.items() if isinstance(tensor, nn.Parameter)})

    def parameters(self) -> list[nn.Parameter]:
        """Returns this rank's parameters for an optimizer; an empty parameter if it has none, which optimizers need."""
        return list(self.named_parameters().values()) or [nn.Parameter(torch.empty(0, device=self.device))]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Returns this rank's parameters and buffers by the names of the unsplit module, tied ones by all of theirs.

        A head that ranks share is a DTensor. Rank 0 also has those that no stage uses. torch.distributed.checkpoint makes one checkpoint of those of all ranks.
        """
        kept = self.module.state_dict(keep_vars=True) if self.module is not None else self.program.tensors()
        used = {id(self.program.tensor(name)) for name in self.names}
        of_stages = {id(self.program.tensor(n)) for nodes in self.program.nodes for n in self.program.state(nodes)}
        state = {
            name: tensor.detach()
            for name, tensor in kept.items()
            if id(tensor) in used or (self.rank == 0 and id(tensor) not in of_stages)
        }
        return self._head.of_state(state, kept, self.group) if self._head else state

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Loads what state_dict() of this rank or of the unsplit module returned. With a head that ranks share, all ranks call it.

        Raises:
            ConfigError: A name of this rank is missing.
        """
        own = self.state_dict()
        if missing := [name for name in own if name not in state]:
            raise ConfigError(f"the state lacks {', '.join(missing[:5])}" + (" and more" if len(missing) > 5 else ""))
        for name, tensor in own.items():
            if isinstance(tensor, DTensor) and not isinstance(state[name], DTensor):
                assert self._head is not None
                tensor.to_local().copy_(self._head.own.of_tensor(state[name]))
            else:
                tensor.copy_(state[name])
        if self._head and self._head.whole_on is not None:
            self._head.distribute()

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> torch.Tensor:
        """Clips like torch.nn.utils.clip_grad_norm_, by the norm over the parameters of all ranks, and returns that norm."""
        again = {id(tensor) for tensor in self._counted_elsewhere()}
        norms = [
            full(torch.linalg.vector_norm(parameter.grad, norm_type))
            for parameter in self.parameters()
            if parameter.grad is not None and id(parameter) not in again
        ]
        own = torch.stack(norms).double() if norms else torch.zeros(1, dtype=torch.float64, device=self.device)
        if norm_type == float("inf"):
            norm = self._messages.sum(own.max(), op=dist.ReduceOp.MAX)
        else:
            norm = self._messages.sum((own**norm_type).sum()) ** (1 / norm_type)
        torch.nn.utils.clip_grads_with_norm_(self.parameters(), max_norm, norm)
        return norm
