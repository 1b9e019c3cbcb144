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
from ._schedule import Schedule
from ._shared_head import SharedHead, barriers_of, refused
from ._slices import Slices
from ._stages import Program, Stage

if TYPE_CHECKING:
    from ._capture.capture import Capture
    from ._plan import Plan


class Assembly:
    """rows: [rank] what each executes. pieces: slices of a microbatch. trains: whether there are backwards.

    Errors: ConfigError with the reason why the plan cannot run.
    """

    def __init__(
        self,
        plan: Plan,
        capture: Capture,
        module: nn.Module | None = None,
        slice_lengths: Sequence[int] | None = None,
        rows: Schedule | None = None,
    ):
        self.plan = plan
        # An order in which transfers that hold their rank never wait in a circle.
        schedule = plan.schedule if rows is None else rows
        if wrong := schedule.violations(blocking=True) if rows is not None else plan.violations(schedule):
            raise ConfigError(f"the schedule cannot run where transfers hold their rank; lower it again:\n{wrong}")
        self.pieces, cells = schedule._actions()
        self.rows = [[action for cell in row for action in cell] for row in cells]
        self.trains = any(action.kind in "BIW" for row in self.rows for action in row)
        self.microbatches = (1 + max(action.microbatch for row in self.rows for action in row)) // self.pieces
        self.barriers = barriers_of(self.rows)
        self._planned = plan.stages
        self.rank_of = [stage["rank"] for stage in self._planned]
        own = module if isinstance(module, nn.Module) else None
        self.program = Program(
            capture,
            dict(own.named_parameters(remove_duplicate=False)) if own else capture.parameters,
            dict(own.named_buffers(remove_duplicate=False)) if own else capture.buffers,
            self._planned,
            shares_head=self.barriers > 0,
        )
        self._refuse_beside_offload()
        self._refuse_beside_head(plan, schedule)
        if self.pieces > 1:
            if any(stage["written"] for stage in self._planned):
                raise ConfigError("slices of the sequence run without buffers that are written: leave them out of the model, or plan 1f1b")
            self.program.slices = Slices(self.program, plan.slice_ends, slice_lengths)
        planned = {(source, target) for source, stage in enumerate(self._planned) for _, target in stage["sends"]}
        for source, target in self.program.crossings:
            if (source, target) not in planned:
                raise ConfigError(f"another module than was planned: the schedule sends nothing from stage {source} to {target}")

    def _refuse_beside_head(self, plan: Plan, schedule: Schedule) -> None:
        """Errors: ConfigError where a head on all ranks does not run with the rest of the plan."""
        if not self.barriers:
            return
        if self.rank_of != list(range(len(self.rows))):
            raise refused(f"the stages are on ranks {self.rank_of}; needed is one stage a rank, in order (plan families=[\"1f1b\"])")
        for source, target in self.program.crossings:
            if target != source + 1:
                raise refused(f"stage {source} gives values to stage {target}, and rows with S and T pass them to the next stage alone")
        if plan.slice_ends or any(stage["offload"] for stage in self._planned):
            raise refused("the plan has slices or offload")
        # With one barrier T of other ranks ends REDUCE_S, so that it stands before B of the last rank.
        last, rows = len(self.rows) - 1, [list(row) for row in schedule.cells]
        if self.barriers == 1:
            late = {f"{last}T{action.microbatch}" for action in self.rows[last] if action.kind == "T"}
            order = [cell for cell in rows[last] if cell not in late]
            rows[last] = [part for cell in order for part in ([cell.replace("B", "T"), cell] if cell.startswith(f"{last}B") else [cell])]
            if wrong := Schedule(rows).violations(blocking=True):
                raise ConfigError(f"T stands so late that ranks would wait in a circle:\n{wrong}")

    def head(self, rank: int, moment: Moment, device: torch.device) -> SharedHead | None:
        """This rank's part of a head on all ranks."""
        if self.program.head is None:
            return None
        weight = self.program.head.names[0]
        holders = [stage for stage, nodes in enumerate(self.program.nodes) if weight in self.program.state(nodes)]
        if len(holders) > 1 or (holders and len(self.program.head.names) > 1):
            raise refused(f"{weight} is a parameter of stages {holders}, too" if len(holders) > 1 else f"{weight} is tied, and there is a bias")
        return SharedHead(self.program.head, self.program, rank, len(self.rows), holders[0] if holders else None, self.barriers, moment, device)

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
