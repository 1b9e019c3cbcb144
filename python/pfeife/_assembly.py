"""What the ranks of a plan execute: rows and stages, made in one process without a process group.

Pipeline() makes one rank's; plan() makes all, so that no plan is given that Pipeline() would refuse. Not here: what
depends on the options of Pipeline() (shard, compile, scaler), and what runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from ._core import ConfigError
from ._operators import Moment
from ._slices import Slices
from ._stages import Program, Stage

if TYPE_CHECKING:
    from ._capture.capture import Capture
    from ._plan import Plan


class Assembly:
    """rows: [rank] what each executes. pieces: slices of a microbatch. trains: whether there are backwards.

    Errors: ConfigError with the reason why the plan cannot run.
    """

    def __init__(self, plan: Plan, capture: Capture, module: nn.Module | None = None, slice_lengths: Sequence[int] | None = None):
        self.plan = plan
        # An order in which transfers that hold their rank never wait in a circle.
        if wrong := plan.violations(plan.schedule):
            raise ConfigError(f"the schedule cannot run where transfers hold their rank; lower it again:\n{wrong}")
        self.pieces, rows = plan.schedule._actions()
        self.rows = [[action for cell in row for action in cell] for row in rows]
        self.trains = any(action.kind in "BIW" for row in self.rows for action in row)
        self.microbatches = (1 + max(action.microbatch for row in self.rows for action in row)) // self.pieces
        self._planned = plan.stages
        self.rank_of = [stage["rank"] for stage in self._planned]
        own = module if isinstance(module, nn.Module) else None
        self.program = Program(
            capture,
            dict(own.named_parameters(remove_duplicate=False)) if own else capture.parameters,
            dict(own.named_buffers(remove_duplicate=False)) if own else capture.buffers,
            self._planned,
        )
        self._refuse_beside_offload()
        if self.pieces > 1:
            if any(stage["written"] for stage in self._planned):
                raise ConfigError("slices of the sequence run without buffers that are written: leave them out of the model, or plan 1f1b")
            self.program.slices = Slices(self.program, plan.slice_ends, slice_lengths)
        planned = {(source, target) for source, stage in enumerate(self._planned) for _, target in stage["sends"]}
        for source, target in self.program.crossings:
            if (source, target) not in planned:
                raise ConfigError(f"another module than was planned: the schedule sends nothing from stage {source} to {target}")

    def of_rank(self, rank: int) -> list[int]:
        """The numbers of its stages."""
        return [stage for stage, owner in enumerate(self.rank_of) if owner == rank]

    def names(self, rank: int) -> list[str]:
        """The parameters and buffers of its stages."""
        program = self.program
        return list(dict.fromkeys(name for stage in self.of_rank(rank) for name in program.state(program.nodes[stage])))

    def stages(self, rank: int, device: torch.device, moment: Moment, *, split: bool = True) -> dict[int, Stage]:
        """Its stages, by number. split: I and W are two actions where the rows have them; False: W is empty."""
        blocks = [set(block) for block in self.plan.recomputed_blocks]
        row, stages = self.rows[rank], {}
        for stage in self.of_rank(rank):
            apart = split and any(action.kind == "I" and action.stage == stage for action in row)
            last = [action.microbatch for action in row if action.kind == "F" and action.stage == stage][-1]
            kept = last if self.plan.recompute_except_last else None
            stages[stage] = Stage(self.program, stage, self._planned[stage], blocks, device, moment, split=apart, kept=kept)
        return stages

    def _refuse_beside_offload(self) -> None:
        offloading = {action.stage for row in self.rows for action in row if action.kind == "OFFLOAD"}
        if none := sorted(stage for stage in offloading if not self._planned[stage]["offload"]):
            raise ConfigError(
                f"the rows have OFFLOAD of stage {none[0]}, and the plan names no share of it: say a share for each stage in its "
                "plan.yaml (offload: [1, 0.5, 0, 0]), or take rows without OFFLOAD"
            )


def refusal(plan: Plan, capture: Capture) -> str:
    """Why Pipeline() would refuse the plan of what was captured, on any rank; "" where it takes the plan."""
    device = torch.device("cpu")
    try:
        assembly = Assembly(plan, capture)
        for rank in range(len(assembly.rows)):
            assembly.stages(rank, device, Moment(0, device))
    except Exception as error:  # whatever fails here fails there
        return str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
    return ""
