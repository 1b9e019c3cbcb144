"""Keywords of plan(), sweep() and Pricer(), for editors and type checkers; written from the keys of a config by
PFEIFE_WRITE_KEYS=1 pytest tests/python/test_plan.py -k keywords."""

from typing import Any, TypedDict

Keys = TypedDict(
    "Keys",
    {
        "allocator": Any,  # plan.allocator
        "as_fast": Any,  # plan.as_fast
        "baselines": Any,  # baselines
        "calibration": Any,  # calibration
        "cases": Any,  # cases
        "clip_norm": Any,  # training.clip_norm
        "cuts": Any,  # plan.cuts
        "cuts_at": Any,  # plan.cuts_at
        "devices": Any,  # cases.devices
        "engines": Any,  # engines
        "families": Any,  # plan.families
        "file": Any,  # plan.file
        "for": Any,  # plan.for
        "global_batch": Any,  # training.global_batch
        "head": Any,  # plan.head
        "iterations": Any,  # plan.iterations
        "jitter": Any,  # simulation.jitter
        "launch_overhead": Any,  # simulation.launch_overhead
        "lengths": Any,  # training.lengths
        "links": Any,  # simulation.links
        "max_bubble": Any,  # plan.max_bubble
        "memory_margin": Any,  # plan.memory_margin
        "microbatch_costs": Any,  # training.microbatch_costs
        "microbatch_order": Any,  # plan.microbatch_order
        "microbatch_size": Any,  # training.microbatch_size
        "microbatches": Any,  # cases.microbatches
        "mode": Any,  # training.mode
        "offload": Any,  # plan.offload
        "operators": Any,  # operators
        "optimizer": Any,  # training.optimizer
        "order": Any,  # plan.order
        "parallel": Any,  # parallel
        "placement": Any,  # plan.placement
        "plan": Any,  # plan
        "plan_with": Any,  # plan_with
        "precision": Any,  # training.precision
        "profile": Any,  # profile
        "queues": Any,  # simulation.queues
        "receives": Any,  # plan.receives
        "recompute": Any,  # plan.recompute
        "recompute_except_last": Any,  # plan.recompute_except_last
        "reserve": Any,  # plan.reserve
        "schedule": Any,  # plan.schedule
        "search": Any,  # plan.search
        "select_by": Any,  # select_by
        "simulation": Any,  # simulation
        "skips": Any,  # skips
        "slice_lengths": Any,  # plan.slice_lengths
        "slices": Any,  # plan.slices
        "stages_per_rank": Any,  # plan.stages_per_rank
        "training": Any,  # training
        "what_if": Any,  # what_if
    },
    total=False,
)
