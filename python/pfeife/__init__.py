"""Pfeife: pipeline-parallel training, planned, simulated and drawn.

>>> import pfeife
>>> plan = pfeife.plan("vit_g14.pt2", "a100_sxm4_40gb_x8", devices=4, microbatches=8, precision="tf32")
>>> plan                       # the table; in a notebook with timeline and memory
>>> plan.simulate().events     # numpy record array
>>> pfeife.schedule("zbv", ranks=4, microbatches=8).svg(f=1, i=1, w=0.8)
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ._capture import Unexportable
from ._config import Cluster, Model, cluster, cluster_names, layers, model, uniform_cluster
from ._core import ConfigError, RuntimeFault
from ._plan import Exported, Infeasible, Judgement, Plan, Price, Pricer, capture, certify, load_plan, measure, mesh, plan, sweep
from ._schedule import Schedule, families, schedule
from ._trace import Trace

if TYPE_CHECKING:
    from ._pipeline import Pipeline

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name == "Pipeline":  # needs torch, which the rest does without
        from ._pipeline import Pipeline

        return Pipeline
    raise AttributeError(f"module 'pfeife' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Cluster",
    "ConfigError",
    "Exported",
    "Infeasible",
    "Judgement",
    "Model",
    "Pipeline",
    "Plan",
    "Price",
    "Pricer",
    "RuntimeFault",
    "Schedule",
    "Trace",
    "Unexportable",
    "capture",
    "certify",
    "cluster",
    "cluster_names",
    "families",
    "layers",
    "load_plan",
    "measure",
    "mesh",
    "model",
    "plan",
    "schedule",
    "sweep",
    "uniform_cluster",
]
if find_spec("torch") is None:  # `from pfeife import *` works without it
    __all__.remove("Pipeline")
