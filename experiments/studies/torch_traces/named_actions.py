"""Names the actions of torch.distributed.pipelining stages for the profiler, whatever schedule runs them.

torch 2.11's Schedule1F1B records no ranges at all, and ScheduleGPipe none of its stage. Call name_actions(stages) once
before profiling, then traces have "0F0", "0B0", "0I0", "0W0" around the work of each action.
"""

import functools

from torch.profiler import record_function


def _named(stage, method: str, kind) -> None:
    run = getattr(stage, method)

    @functools.wraps(run)
    def wrapper(microbatch, *args, **kwargs):
        with record_function(f"{stage.stage_index}{kind(kwargs)}{microbatch}"):
            return run(microbatch, *args, **kwargs)

    setattr(stage, method, wrapper)


def name_actions(stages) -> None:
    for stage in stages:
        _named(stage, "forward_one_chunk", lambda _: "F")
        _named(stage, "backward_one_chunk", lambda given: "B" if given.get("full_backward", True) else "I")
        _named(stage, "backward_weight_one_chunk", lambda _: "W")
