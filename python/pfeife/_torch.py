"""A plan on the runtime of torch.distributed.pipelining: its own order of actions and messages, stages of any cut.

What torch cannot run is refused with the reason. torch sends values to the next stage only, of one size, and gives each stage's
module what the one before gave; the model's inputs are read from the whole batch, which every rank has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

from ._core import ConfigError
from ._pipeline import Group, Pipeline

if TYPE_CHECKING:
    from ._capture.capture import Capture
    from ._plan import Plan


class Fed(nn.Module):
    """A stage as torch calls it: takes what the one before gave, and gives what the next one takes, or the loss."""

    def __init__(self, pipe: Pipeline, number: int, forms: tuple[torch.Tensor, ...]):
        super().__init__()
        self.forms = forms
        self.pipe, self.stage = [pipe], pipe.stages[number]  # in a list: it is no module of this one's
        self.module = self.stage.module
        self.before = self.stage.sources.get(number - 1, [])
        self.behind = self.stage.targets.get(number + 1, [])
        self.order = [action.microbatch for action in pipe.row if action.kind == "F" and action.stage == number]
        self.micro: list[list[torch.Tensor]] = []
        self.ran = 0

    def forward(self, *received: torch.Tensor) -> Any:
        pipe, stage = self.pipe[0], self.stage
        m = self.order[self.ran % len(self.order)]
        self.ran += 1
        inputs: list[Any] = [None] * len(stage.inputs)
        for i, leaf in stage.leaves:
            inputs[i] = self.micro[m][leaf].to(pipe.device, non_blocking=True)
        for i, value in zip(self.before, received):
            inputs[i] = value
        pipe.moment.at(m, recomputes=m != stage.kept)
        with pipe.cast():
            given = stage.forward(inputs)
        if stage.loss is not None:
            return given[stage.loss]
        return tuple(given[i].to(form.dtype) for i, form in zip(self.behind, self.forms))  # wider than autocast's: the type that form() gave to torch


class Schedule(_PipelineScheduleRuntime):
    """torch's schedule with the plan's rows. step() takes a batch as Pipeline.step() does."""

    def __init__(self, pipe: Pipeline, stages: list[PipelineStage], rows: dict[int, list[Any]]):
        super().__init__(stages, pipe.microbatches, loss_fn=lambda loss, share: loss * share.to(loss)[0], scale_grads=False)
        self.pipe = pipe
        self.stage_index_to_group_rank = dict(enumerate(pipe.plan.rank_of_stage))
        for stage in stages:
            stage.stage_index_to_group_rank = self.stage_index_to_group_rank
        self._prepare_schedule_with_comms(rows, format="compute_comms")

    def step(self, *args: Any, target: object = None, losses: list[Any] | None = None, return_outputs: bool = False, **kwargs: Any) -> None:
        given = self.pipe._taken(args, kwargs, may_lack=False)
        micro = given.micro
        planned = [form(node).shape for node in self.pipe.program.inputs]
        if len(micro) != self.pipe.microbatches or any([tensor.shape for tensor in part] != planned for part in micro):
            raise ConfigError(
                f"torch's buffers are for {self.pipe.microbatches} microbatches with inputs of {[list(shape) for shape in planned]}; leave "
                "other batches out (DataLoader: drop_last=True), or use pfeife.Pipeline"
            )
        counts = self.pipe._counts(given)
        for stage in self._stages:
            stage.submod.micro, stage.submod.ran = micro, 0
        shares = torch.tensor(counts, dtype=torch.float64) / sum(counts)
        with self.pipe.moment.kept():
            super().step(target=shares, losses=losses, return_outputs=False)
        self.pipe.moment.step += 1


def to_torch(
    model: nn.Module | Capture, plan: Plan, device: torch.device | str, group: Group | None, how: dict[str, Any]
) -> tuple[list[PipelineStage], Schedule]:
    """Does the work of Plan.to_torch()."""
    exported = plan.export("torch").files
    split_points = json.loads(exported["split_points.json"])
    pipe = Pipeline(model, plan, device, group, **how)
    if why := split_points["schedule_why_not"] or refusal(pipe):
        raise ConfigError(f"torch.distributed.pipelining cannot run this plan: {why}. pfeife.Pipeline can")
    total = len(plan.rank_of_stage)
    stages = []
    for number in pipe.stages:
        gives = pipe.program.crossings.get((number, number + 1)) or pipe.program.outputs[:1]
        takes = pipe.program.crossings.get((number - 1, number), [])
        shapes = [tuple(form(value) for value in values) for values in (takes, gives)]
        stages.append(PipelineStage(Fed(pipe, number, shapes[1]), number, total, pipe.device, shapes[0], shapes[1], pipe.group))
    ranks = plan.rank_of_stage
    if any(a == b for a, b in zip(ranks, ranks[1:])):
        for stage in stages:  # torch greets a neighbour on the same rank, which gloo refuses
            stage._get_init_p2p_neighbors_ops = list
    rows = exported[split_points["schedule"]].decode().splitlines()
    return stages, Schedule(pipe, stages, {rank: [_Action.from_str(cell) for cell in row.split(",")] for rank, row in enumerate(rows)})


def refusal(pipe: Pipeline) -> str:
    """What is against it in the stages themselves."""
    if pipe._head:
        return "torch has no actions of a head that all ranks share"
    for (source, target), values in pipe.program.crossings.items():
        for value in values:
            example = value.meta["val"]
            if target != source + 1:
                return f"{value.name!r} of stage {source} is read in stage {target}, and torch sends to the next stage only"
            if not isinstance(example, torch.Tensor) or not example.is_floating_point():
                return f"{value.name!r} crosses from stage {source}, and torch asks a gradient of all that it sends, which this has not"
    return ""


def form(value: Any) -> torch.Tensor:
    """A tensor without contents in the form of a microbatch's value, from which torch allocates its buffers."""
    example = value.meta["val"]
    sizes = [size.node.hint if isinstance(size, torch.SymInt) else size for size in example.shape]
    return torch.empty(sizes, dtype=example.dtype, device="meta")
