"""Plans: searched, swept, loaded, priced."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Union, cast, overload

import numpy as np

from . import _config, _core
from ._config import Asked, Cluster, Model, Options, PathLike, Timed, text_of
from ._config import cluster as cluster_of
from ._schedule import Schedule, schedule
from ._trace import Record, Trace, write_chrome_trace

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.distributed import DeviceMesh, ProcessGroup
    from torch.distributed.pipelining import PipelineStage
    from typing_extensions import Unpack

    from ._capture.capture import Capture
    from ._check import Measured as Traced
    from ._keys import Keys
    from ._measure import Measured
    from ._overhead import Overhead

Progress = Union[bool, Callable[[float], object]]
Value = Union[int, float, str, bool, None]
Row = dict[str, Value]
Loss = Callable[[Any, Any], Any]
Planable = Union[PathLike, bytes, Model, "Capture", "nn.Module"]
Hosts = Union[PathLike, Cluster, Options]
How = tuple[int, Union[Callable[[float], object], None]]  # threads, progress
UNCOSTED = re.compile(r"or \{(\S+): \{bytes: io\}\} if its bytes are all")  # how a refused model's operators are named


class Infeasible(Exception):
    """Nothing fits into the devices' memory. The message says which rank lacks how much, and what would help.

    Attributes:
        helps: (change, what then fits) that were tried, the fastest first.
        record: All that is known, as Plan.record.
    """

    def __init__(self, message: str, helps: list[tuple[str, str]], record: Record):
        super().__init__(message)
        self.helps = helps
        self.record = record


class Judgement(NamedTuple):
    """What the judge says, who shares no code with the search.

    Attributes:
        proven: Whether all that the plan says holds, with costs computed again from its files.
        text: The sentences of the judge.
    """

    proven: bool
    text: str


class Compared(NamedTuple):
    """Why a run took other time than its plan."""

    why: str  #: a sentence: how much longer, and to what most of it went
    text: str  #: all that `pfeife-exp compare` says: losses of each rank, which add up, and errors of each kind of action

    def __str__(self) -> str:
        return self.text


class Exported(NamedTuple):
    """A plan in the words of a framework.

    Attributes:
        text: The first file's.
        lost: What could not be carried over.
        files: By their names.
    """

    text: str
    lost: list[str]
    files: dict[str, bytes]

    def __str__(self) -> str:
        return self.text


class Page(str):
    """An HTML document that needs nothing else. At the end of a notebook's cell it stands below, and can be used."""

    def _repr_html_(self) -> str:
        frame = "width: 100%; height: 900px; border: 0"
        return f'<iframe title="report" style="{frame}" srcdoc="{html.escape(self)}"></iframe>'


class StageInfo(TypedDict):
    """What a stage of an archive's plan executes and holds. Values, nodes, parameters and buffers are named as in the graph."""

    rank: int
    nodes: list[str]  # in the order of execution
    copied: list[str]  # nodes that other stages execute, too: positions, masks
    inputs: list[str]  # of the model
    parameters: list[str]
    buffers: list[str]
    written: list[str]  # buffers that its forward writes
    outputs: list[str]  # of the model
    receives: list[tuple[str, int]]  # value, and the stage that sends it
    sends: list[tuple[str, int]]  # value, and the stage that receives it
    gradients_from: list[int]  # stages that return gradients of values that were sent to them
    recomputed: bool  # as a whole
    offload: float  # share of its saved bytes


class Plan:
    """A plan, beside the baselines that it is compared with. In a notebook: table, timeline, memory.

    Attributes:
        name: "planned", or the baseline's.
        title: Its schedule, "zb_greedy, V=3".
        step: ms, simulated unless the request leaves that out.
        bound: ms, a lower bound on the estimate of every plan of this plan's `bound_class`; None = unknown.
        bound_class: "1f1b", "12 families".
        bound_covers: `bound_class` written out.
        gap: How far the step is above the bound, a share.
        peaks: [rank] bytes, estimated.
        limits: [rank] bytes, what a device has less its reserve.
        cuts: Indices of layers, each the last one before a cut.
        cut_modules: The names of these layers.
        rank_of_stage: [stage] rank.
        precision: fp32, tf32, bf16_amp or fp16_amp.
        recompute_except_last: Whether no stage recomputes the microbatch that it runs forward last.
        capture: What was captured of a module (pfeife.capture); None for other models.
        notes: Which faster plans of a module were left out since no Pipeline could run them, and why.
        overhead: What Pipeline's actions take on this machine (us, measured), where the times include it; else None.
        record: Every figure of the table and the report, as case.json has it (configs/reference/results.md).
    """

    def __init__(self, core: _core.Planned, keep: Sequence[_core.MemoryFile] = (), contestant: int = 0):
        self._core = core
        self._keep = list(keep)
        self._number = contestant
        self._contestant = core.contestant(contestant)
        self.name: str = self._contestant.name
        self.title: str = self._contestant.title
        self.fits: bool = self._contestant.fits
        self.cuts: list[int] = self._contestant.cuts
        self.cut_modules: list[str] = self._contestant.cut_modules
        self.rank_of_stage: list[int] = self._contestant.rank_of_stage
        self.device_of_rank: list[int] = self._contestant.device_of_rank
        self.precision: str = self._contestant.precision
        self.recompute_except_last: bool = self._contestant.recompute_except_last
        self.peaks = np.array(self._contestant.peaks, dtype=np.int64)
        self.limits = np.array(self._contestant.limits, dtype=np.int64)
        bound = core.bound(contestant)
        self.bound: float | None = bound and bound[0]
        self.bound_class: str = bound[1] if bound else ""
        self.bound_covers: str = core.bound_covers(contestant)
        self.capture: Capture | None = None
        self.notes: list[str] = []
        self.overhead: Overhead | None = None

    @property
    def step(self) -> float:
        return self._contestant.predicted.step

    @property
    def gap(self) -> float | None:
        return self.step / self.bound - 1 if self.bound else None

    @property
    def schedule(self) -> Schedule:
        """Lowered: with transfers, reductions and optimizer steps."""
        return Schedule(self._contestant.schedule)

    @property
    def estimated(self) -> Trace:
        """The step where transfers never contend."""
        return Trace(self._contestant.estimated, limits=self._contestant.limits)

    def simulate(self) -> Trace:
        """Simulates the step on links that transfers share.

        Raises:
            RuntimeFault: The simulation failed, or this package was built without SimGrid.
        """
        core = self._contestant.simulated or self._core.simulate(self._number)
        return Trace(core, limits=self._contestant.limits)

    @property
    def baselines(self) -> dict[str, Plan]:
        """The case's baseline plans that are possible, by name."""
        return {
            self._core.contestant(number).name: Plan(self._core, self._keep, number)
            for number in range(1, self._core.count)
            if self._core.contestant(number).possible
        }

    @property
    def stages(self) -> list[StageInfo]:
        """[stage] What it executes and holds. Errors: ConfigError if the model has no graph."""
        return cast("list[StageInfo]", self._core.stages(self._number))

    def violations(self, schedule: Schedule | None = None) -> str:
        """Judges the rows of a schedule for the plan's stages. Needs the plan of an archive or a module.

        Values and gradients pass between stages as in the graph; Schedule.violations() assumes that stages form a chain.

        Args:
            schedule: Absent, the plan's own.

        Returns:
            What is wrong with it; "" if nothing is.
        """
        return self._core.violations(self._number, (schedule or self.schedule).text())

    def must_execute(self, where: str, called: str = "") -> None:
        """Raises ConfigError if `where` does not execute the plan, by the table of configs/reference/execution.md.

        Args:
            where: A name of the table's first column, "Pipeline(shard=)".
            called: What the message says in place of `where`.
        """
        if why := self._core.not_executed(self._number, where):
            raise _core.ConfigError(f"{called or where}: {why}")

    @property
    def recomputed_blocks(self) -> list[list[str]]:
        """[block] Names of the nodes that backward recomputes, in stages that are recomputed only in part."""
        return self._core.blocks(self._number)

    @property
    def slice_ends(self) -> list[float]:
        """[slice] Where it ends, as a share of the sequence; empty: microbatches are whole."""
        return self._core.slice_ends(self._number)

    @property
    def record(self) -> Record:
        record: Record = json.loads(self._core.record)
        return record

    def table(self, *, verbose: bool = False, width: int | None = None, colour: bool = False) -> str:
        """Returns the table that pfeife-exp prints.

        Args:
            verbose: Also why the plan was chosen, and the memory of each device.
            width: Columns of the screen; absent, as pfeife-exp takes them.
            colour: With escape sequences of terminals.
        """
        width = width or shutil.get_terminal_size((100, 24)).columns
        return self._core.table(max(width, 60), colour, verbose)

    def timeline_svg(self, *, width: int = 1200) -> str:
        """Draws the predicted step, true to scale, with the memory of each rank. Returns SVG."""
        return Trace(self._contestant.predicted, limits=self._contestant.limits).svg(self.title, width=width)

    def report(self) -> Page:
        """Returns the case's page as pfeife-exp writes it: an HTML document that needs nothing else. A notebook shows it."""
        return Page(self._core.report())

    def save(self, folder: PathLike) -> None:
        """Writes plan.yaml, schedule.csv, certificate.txt and what torch.distributed.pipelining needs.

        Args:
            folder: For load_plan() and for `pfeife-run folder/plan.yaml`. A model that has no file is saved there, too.
        """
        self._core.save(Path(folder), self._number)

    def export(self, framework: str, folder: PathLike | None = None) -> Exported:
        """Writes the plan in the words of a framework.

        Args:
            framework: megatron, torchtitan, automodel, deepspeed, torch or chakra. A plan that was made with
                `plan={"for": "megatron"}` has only what Megatron-LM runs (configs/reference/frameworks.md).
            folder: The files are written there; absent, nowhere.

        Returns:
            The files, one of them launch.sh where the framework trains; in `lost` the parts of the model left out.

        Raises:
            ConfigError: The framework cannot run the plan, or its files cannot describe the model.
        """
        files, lost = self._core.export(framework, self._number)
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name, content in files:
                (Path(folder) / name).write_bytes(content)
                if name == "launch.sh":
                    (Path(folder) / name).chmod(0o755)
        return Exported(files[0][1].decode("utf-8", "replace"), lost, dict(files))

    def compare(self, measured: PathLike | Traced | Sequence[Traced]) -> Compared:
        """Explains why a run of the plan took longer than simulated.

        Args:
            measured: What pipe.trace(**batch) returns, or several of them, of which the median step counts; or a folder of traces
                of torch.profiler, a file a rank.

        Raises:
            ConfigError: The traces cannot be read, or are of another plan.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.save(folder / "plan")
            simulated = self.simulate()
            write_chrome_trace(folder / "plan" / "trace.json", "simulated", simulated.events)
            if isinstance(measured, (str, os.PathLike)):
                traces = [os.fspath(measured)]
            else:
                steps = cast("Sequence[Traced]", measured if isinstance(measured, Sequence) else [measured])
                # A file a rank: each has a clock of its own.
                traces = [str(folder / f"rank{rank}.json") for rank in range(simulated.ranks)]
                schedule = self.schedule
                for rank, file in enumerate(traces):
                    begin, events = 0, list[Record]()
                    for step in steps:
                        events += step.of_cells(schedule, rank, begin)
                        begin += int(1e6 * step.step) + 1
                    write_chrome_trace(Path(file), "measured", events)
            program = Path(__file__).with_name("pfeife-exp")
            done = subprocess.run([program, "compare", folder / "plan", *traces], capture_output=True, text=True)
        if done.returncode:
            raise _core.ConfigError(done.stderr.strip().replace(f"{folder}/", ""))
        text = done.stdout.replace(f"{folder}/", "")
        return Compared(" ".join(text.split("\n\n")[0].split()), text)

    def to_torch(
        self,
        model: nn.Module | Capture | None = None,
        device: torch.device | str = "cpu",
        group: ProcessGroup | DeviceMesh | None = None,
        **how: Any,
    ) -> tuple[list[PipelineStage], Any]:
        """Makes the plan's stages and schedule for torch.distributed.pipelining, on this rank. Cuts may lie anywhere.

        Args:
            model: Absent, the module that was planned.
            device: See Pipeline.
            group: See Pipeline.
            how: Further arguments of Pipeline.

        Returns:
            This rank's PipelineStages, and their schedule. schedule.step(**batch, losses=losses) takes the whole batch on every
            rank, of the size that was planned, and adds the gradients that Pipeline.step() adds; on the rank of the last
            stage `losses` sum to the step's loss.

        Raises:
            ConfigError: torch cannot run the plan; the message has the reason.
        """
        from ._torch import to_torch

        return to_torch(self.capture if model is None else model, self, device, group, how)

    def certify(self, threads: int | None = None) -> Judgement:
        """Has the proof of the bound checked by the judge.

        Raises:
            ConfigError: There is no proof, or the judge refuses it.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder)
            return certify(folder, threads)

    def __repr__(self) -> str:
        return "\n".join([self.table().rstrip("\n"), *(f"note: {note}" for note in self.notes)])

    def _repr_svg_(self) -> str:
        return self.timeline_svg()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table(width=120))}</pre>{self.timeline_svg()}"


def _threads(threads: int | None) -> int:
    return threads or len(os.sched_getaffinity(0))


def _shown(progress: Progress, name: str = "") -> Callable[[float], object] | None:
    if not progress:
        return None
    if callable(progress):
        return progress

    def show(share: float) -> None:
        end = "\n" if share >= 1 else ""
        print(f"\r{name}{share:5.0%}", end=end, file=sys.stderr, flush=True)

    return show


def _infeasible(core: _core.Planned) -> Infeasible:
    record = json.loads(core.record)
    tried = record.get("tried") or []
    helps = [(trial["change"], core.helps[i]) for i, trial in enumerate(tried) if core.helps[i]]
    lines = [core.contestant(0).reason, *(f"  would help: {change}: {then}" for change, then in helps)]
    return Infeasible("\n".join(lines), helps, record)


def capture(
    module: nn.Module,
    *args: Any,
    loss: Loss | None = None,
    microbatches: int = 1,
    batch_dims: Mapping[str, int | None] | None = None,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    **kwargs: Any,
) -> Capture:
    """Captures a torch.nn.Module's training of one microbatch as a graph. plan() takes what this returns.

    Args:
        module: On any device, `meta` included. It is not computed, and not changed.
        args: Arguments of forward for the batch of one step, as the data loader gives it.
        kwargs: Such arguments by name. Arguments that forward does not have are for the loss alone.
        loss: A loss of torch (nn.CrossEntropyLoss(), F.mse_loss) is called with what forward returns and the argument that
            forward does not have; any other function with what forward returns and the batch (kwargs, args, or the only
            argument). Absent, forward returns the loss: itself, as its first value, or as `loss` of a dict or an object.
        microbatches: Into how many the batch is split.
        batch_dims: The dimension of each input's samples, {"tokens": 1, "positions": None}; None: each microbatch gets the
            whole input. Absent, the first dimension of all inputs whose size there is the most common one.
        dynamic_shapes: Dimensions whose sizes differ from microbatch to microbatch, by input, with a name for each size:
            {"tokens": {1: "length"}, "labels": {1: "length"}}. Sizes of one name are equal, from 2 on. The planner takes those
            of `batch`.

    Returns:
        The graph's program, its archive and the parameters.

    Raises:
        Unexportable: The graph cannot be captured; the message has the line of the model and what to do.
    """
    from ._capture.capture import Capture

    return Capture(module, args, kwargs, loss=loss, microbatches=microbatches, batch_dims=batch_dims, dynamic_shapes=dynamic_shapes)


@overload
def measure(
    model: nn.Module | Capture,
    batch: object = None,
    *,
    mesh: None = None,
    times: None = None,
    device: torch.device | str | None = None,
    compile: bool | Options = True,
    precision: str = "fp32",
    repetitions: int = 20,
    microbatches: int = 1,
    loss: Loss | None = None,
    batch_dims: Mapping[str, int | None] | None = None,
) -> Measured: ...


@overload
def measure(
    model: nn.Module,
    batch: object,
    *,
    times: PathLike,
    mesh: Mapping[str, int] | None = None,
    device: torch.device | str | None = None,
    compile: bool | Options = True,
    precision: str = "fp32",
    repetitions: int = 20,
) -> list[dict[str, Any]]: ...


def measure(
    model: nn.Module | Capture,
    batch: object = None,
    *,
    mesh: Mapping[str, int] | None = None,
    times: PathLike | None = None,
    device: torch.device | str | None = None,
    compile: bool | Options = True,
    precision: str = "fp32",
    repetitions: int = 20,
    microbatches: int = 1,
    loss: Loss | None = None,
    batch_dims: Mapping[str, int | None] | None = None,
) -> Measured | list[dict[str, Any]]:
    """Times the blocks of a module as they run here, one by one on one device. The module is left as it is.

    Args:
        model: A torch.nn.Module, or what capture() made of one.
        batch: See plan().
        mesh: {"tp": 8} times one rank's part of each distinct layer, by the model's own plan of tensor parallelism, without
            collectives. Only with `times`.
        times: A file of layer times to write, "layers.csv", from which pfeife.mesh() and the key model.times plan any number
            of devices. The model is then a causal language model of transformers (`meta` included), the batch one
            microbatch. The file keeps its rows of other meshes and batches.
        device: Absent, the GPU where there is one.
        compile: Each block is compiled by torch.compile, with these of its options.
        precision: "fp32", "tf32", or "bf16_amp" and "fp16_amp" under torch.autocast.
        repetitions: Of each block; the median counts.
        microbatches: Into how many the batch is split.
        loss: See capture().
        batch_dims: See capture().

    Returns:
        Timed layers, which plan() divides among any number of ranks; `measured.cuts_of(plan)` are cuts of the module,
        `measured.overhead` is what an action of Pipeline takes on this machine. With `times` the rows that were written.

    Raises:
        Unexportable: The module cannot be captured.
        ConfigError: The request is invalid.
    """
    import torch

    from ._measure import measure as measured

    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    options = compile if isinstance(compile, bool) else dict(compile)
    if mesh is not None and times is None:
        raise _core.ConfigError('mesh: the times of a rank are written to a file; add times="layers.csv"')
    if times is not None:
        from ._layer_times import measure_layers

        if not _is_module(model) or microbatches != 1:
            raise _core.ConfigError("times: takes a module and a batch of one microbatch; leave microbatches out")
        return measure_layers(cast("nn.Module", model), batch, mesh or {}, times, place, options, autocast_type(precision), repetitions)
    how: dict[str, Any] = dict(loss=loss, batch_dims=batch_dims, microbatches=microbatches)
    taken = _captured(model, batch, **how) if _is_module(model) else model
    return measured(taken, place, options, autocast_type(precision), repetitions)


def autocast_type(precision: str) -> torch.dtype | None:
    """The type that torch.autocast casts to; None where it does not cast."""
    import torch

    types = {"fp32": None, "tf32": None, "bf16_amp": torch.bfloat16, "fp16_amp": torch.float16}
    if precision not in types:
        raise _core.ConfigError(f"precision: unknown word {precision!r}; use {', '.join(types)}")
    return types[precision]


def _captured(model: nn.Module, batch: object, **given: Any) -> Capture:
    if isinstance(batch, Mapping):
        return capture(model, **batch, **given)
    return capture(model, *(batch if isinstance(batch, (tuple, list)) else (batch,)), **given)


def _is_module(model: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def plan(
    model: Planable,
    batch: Any = None,
    cluster: Hosts | None = None,
    *,
    loss: Loss | None = None,
    batch_dims: Mapping[str, int | None] | None = None,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    threads: int | None = None,
    progress: Progress = False,
    **request: Unpack[Keys],
) -> Plan:
    """Chooses cuts, schedule and order together: plan(model, cluster, ...), or of a module plan(module, batch, cluster, ...).

    A module's plan is one that Pipeline() runs: where Pipeline would refuse the fastest, the next choice is taken, and `notes`
    says so. The times of a module's plan include what Pipeline's actions take on this machine (Plan.overhead), unless the
    request has a calibration or the cluster a stage_overhead. It releases the GIL and is thread-safe; equal requests give
    equal plans. Ctrl-C ends the call at once.

    Args:
        model: A file, bytes, pfeife.model(...), pfeife.layers(...), what measure() returns; a torch.nn.Module on any device,
            `meta` included; or what capture() made of one: plan(capture, cluster, ...), whose microbatches are those of the
            capture unless others are asked for.
        batch: For a module, the batch of one step as the data loader gives it (with `parallel`, of one replica): a dict has
            the arguments of forward by name, a tuple or list has them in order, anything else is the only one.
            microbatches=16 splits it.
        cluster: A name, a file, pfeife.cluster({...}).
        loss: See capture(). The plan keeps what was captured as `capture`.
        batch_dims: See capture().
        dynamic_shapes: See capture().
        threads: Absent, all cores.
        progress: True shows it; a function is called with the share of the search that is done.
        request: Keys of a config (configs/REFERENCE.md); those inside of `training`, `plan` and `simulation` also by
            themselves: devices=4, microbatches=8, precision="tf32", families=["1f1b"], recompute="none",
            launch_overhead="5 us", parallel={"dp": 2}, plan={"devices": [1, 0]}.

    Returns:
        The best plan that was found.

    Raises:
        ConfigError: The request is invalid.
        Infeasible: Nothing fits; the message says what would help.
        Unexportable: The module cannot be captured; the message has its line and what to do.
    """
    taken = None
    if _is_module(model):
        microbatches = request.get("microbatches")
        if not isinstance(microbatches, int):
            raise _core.ConfigError("microbatches: into how many a step's batch is split, microbatches=16")
        taken = _captured(model, batch, loss=loss, batch_dims=batch_dims, dynamic_shapes=dynamic_shapes, microbatches=microbatches)
        batch = loss = batch_dims = dynamic_shapes = None
    elif cluster is None:
        cluster, batch = batch, None
    if hasattr(model, "archive") and hasattr(model, "program"):  # a Capture, whose class needs torch
        taken = cast("Capture", model)
        if not request.keys() & {"microbatches", "schedule", "global_batch", "cases", "lengths", "microbatch_costs"}:
            request["microbatches"] = taken.microbatches
    if taken is not None:
        model = _config.model(taken.archive, name=type(taken.module).__name__)
    if cluster is None:
        raise _core.ConfigError("cluster: the devices to plan for, a name or a file; " + ", ".join(_config.cluster_names()))
    if not (batch is loss is batch_dims is dynamic_shapes is None):
        raise _core.ConfigError("batch, loss, batch_dims and dynamic_shapes belong to a torch.nn.Module; what is captured already has them")
    notes: list[str] = []
    overhead = None
    if taken is not None or isinstance(model, Timed):  # what Pipeline is to run
        cluster, overhead = _with_overhead(cluster, request, notes)
    asked = cluster, request, taken, (_threads(threads), _shown(progress))
    found = _runnable(model, *asked, notes)
    if more := _split_ms(found, overhead, model):
        note = f"I and W of {found.title} take {more:.3g} ms a step more of the processor than whole backwards"
        if whole := _without(found, model, cluster, request, split=True)[0]:
            with contextlib.suppress(Infeasible):
                second = _runnable(model, cluster, whole, *asked[2:], notes)
                if second.step < 1.02 * (found.step + more):
                    note += f", and it would take {found.step:.6g} ms without them; planned with whole backwards"
                    found = second
        notes.append(note)
    found.overhead = overhead
    return found


def _with_overhead(cluster: Hosts, request: Options, notes: list[str]) -> tuple[Hosts, Overhead | None]:
    """The cluster whose devices take what Pipeline's actions take on this machine, unless the request or the cluster says it."""
    hosts = cluster_of(cluster)
    kinds: list[str] = []
    with contextlib.suppress(_core.ConfigError):  # which the search says with names
        kinds = [] if "calibration" in request else _core.kinds_without_overhead(str(hosts.entry))
    if not kinds:
        return hosts, None
    from ._overhead import overhead_here

    try:
        overhead = overhead_here()
    except _core.RuntimeFault as error:
        notes.append(f"what an action of Pipeline takes could not be measured, and is not planned: {error}")
        return hosts, None
    notes.append(f"{overhead}, {overhead.stage:g} us a forward or backward of a stage with its messages")
    return cluster_of(hosts, set={f"device_kinds.{kind}.stage_overhead": f"{overhead.stage:g} us" for kind in kinds}), overhead


def _split_ms(found: Plan, overhead: Overhead | None, model: object) -> float:
    """ms of processor time that I and W add to a step of the slowest rank; 0 below half a per cent of the step.

    A layer of a real stage adds twice what a tiny one does, since W finds its values out of the cache (52 to 92 us beside 31 to
    41, measured on 2 cores in stages of a small GPT).
    """
    if overhead is None:
        return 0
    if isinstance(model, Timed):
        ends = [0, *(cut + 1 for cut in found.cuts), len(model.linears)]
        linears = [sum(model.linears[begin:end]) for begin, end in zip(ends, ends[1:])]
    elif found.capture is not None:
        from ._operators import ACTIVATIONS

        linear = {node.name for node in found.capture.program.graph.nodes if node.target in ACTIVATIONS}
        linears = [len(linear.intersection(stage["nodes"])) for stage in found.stages]
    rows = found.schedule._actions()[1]
    layers = [sum(linears[action.stage] for cell in row for action in cell if action.kind == "W") for row in rows]
    more = 2 * max(layers) * overhead.layer / 1e3
    return more if more > 0.005 * found.step else 0


def _runnable(model: Any, cluster: Hosts, request: Options, taken: Capture | None, how: How, notes: list[str]) -> Plan:
    """The fastest plan that Pipeline() takes. notes: receives which others it would not, and why."""
    left_out: list[str] = []
    while True:
        try:
            core, keep = _answered(model, cluster, request, taken, how)
        except _core.ConfigError as error:
            if left_out:
                raise _core.ConfigError("\n".join([*left_out, f"without it: {error}"])) from None
            raise (taken.placed(error) if taken else error) from None
        if not core.found:
            raise _infeasible(core)
        found = Plan(core, keep)
        found.capture, found.notes = taken, notes
        why = _refused(found)
        if not why:
            return found
        less, name = _without(found, model, cluster, request)
        if less is None:
            raise _core.ConfigError("\n".join([*left_out, f"{found.title} cannot be run: {why}"]))
        request = less
        left_out.append(f"{found.title} would take {found.step:.6g} ms, and cannot be run: {why}; planned without {name}")
        notes.append(left_out[-1])


def _answered(
    model: Any, cluster: Hosts, request: Options, taken: Capture | None, how: How
) -> tuple[_core.Planned, list[_core.MemoryFile]]:
    """The core's answer, and what must live as long. Charges operators of unknown cost by their bytes, with a warning."""
    asked = Asked(model, cluster, request)
    try:
        return asked(_core.plan, asked.text, "", asked.names, *how), asked.keep
    except _core.ConfigError as error:
        if not taken or not (unknown := UNCOSTED.findall(str(error))):
            raise
    model.more["operators"] = {name: {"bytes": "io"} for name in unknown}
    note = (
        f"nothing is known of the cost of {', '.join(unknown)}: they are charged by their bytes, so that times of the plan may be "
        'off; say what they cost: operators={"' + unknown[0] + '": {"flops": "2*m*n*k", "bytes": "io"}}'
    )
    if os.environ.get("RANK", "0") == "0":
        warnings.warn(note, stacklevel=3)
    taken.notes.append(note)
    asked = Asked(model, cluster, request)
    return asked(_core.plan, asked.text, "", asked.names, *how), asked.keep


def _refused(found: Plan) -> str:
    """Why Pipeline() would not take the plan of a module; "" if it does."""
    if found.capture is None:
        return ""
    from ._assembly import refusal

    return refusal(found, found.capture)


def _without(
    found: Plan, model: Planable, cluster: Hosts, request: Options, split: bool = False
) -> tuple[dict[str, Any] | None, str]:
    """A request without what made a plan that cannot be run, and the name of that; None if nothing else is asked for. split:
    without all families that have I and W."""
    family = found.title.partition(",")[0]
    given = request.get("plan", {})
    if not isinstance(given, Mapping):
        return None, ""
    asked: dict[str, Any] = {**given, **{key: value for key, value in request.items() if key != "plan"}}
    if "schedule" in asked or "file" in asked:
        return None, ""
    families = asked.get("families", ["all"])
    if families in ("all", ["all"], "certified", ["certified"]):
        families = list(dict.fromkeys(schedule["family"] for schedule in Pricer(model, cluster, **request).schedules))
    families = [families] if isinstance(families, str) else list(families)
    if split:
        whole = [name for name in families if not _splits(name, found)]
        return {**asked, "families": whole} if whole else None, "I and W"
    if found.slice_ends:
        whole = [name for name in families if name not in ("seq1f1b", "terapipe", "slimpipe")]
        return {**asked, "slices": None, "families": whole} if whole else None, "slices"
    others = [candidate for candidate in families if candidate != family]
    return {**asked, "families": others} if others else None, family


def _splits(family: str, found: Plan) -> bool:
    """Whether the family's backwards are I and W; as the plan's, where it is not made for so many ranks."""
    try:
        return "W" in schedule(family, ranks=found.schedule.ranks, microbatches=2 * found.schedule.ranks).text()
    except _core.ConfigError:
        return True


def load_plan(folder: PathLike, threads: int | None = None) -> Plan:
    """Reads a saved plan, and computes its costs again from the files that it names.

    Args:
        folder: What Plan.save() wrote.
        threads: Absent, all cores.

    Raises:
        ConfigError: A file is missing, or is another than the plan was made from.
    """
    return Plan(_core.load_plan(Path(folder), _threads(threads)))


def certify(folder: PathLike, threads: int | None = None) -> Judgement:
    """Has the judge check a saved plan and the proof of its bound.

    Args:
        folder: What Plan.save() wrote.
        threads: Absent, all cores.

    Raises:
        ConfigError: A file is missing, or the judge refuses the plan or the proof.
    """
    return Judgement(*_core.certify(Path(folder), _threads(threads)))


class _Case(NamedTuple):
    """A case of a sweep, to be planned in any process that has the package."""

    text: str  # of the config
    names: dict[str, str]
    called: dict[str, str]
    files: dict[str, bytes]  # what the text names that is in no file, by the path that it has there
    working: str  # the folder that relative paths start from
    name: str
    digest: str
    kept: Path | None  # where its record is kept
    threads: int


def _plan_case(case: _Case, shown: Callable[[float], object] | None = None) -> str:
    """The record of the case, which is kept with its plan where `case.kept` says so."""
    if os.getcwd() != case.working and os.path.isdir(case.working):
        os.chdir(case.working)
    here = {path: _core.MemoryFile(content) for path, content in case.files.items()}
    text, called = case.text, dict(case.called)
    for path, file in here.items():
        text = text.replace(path, file.path)
        called[file.path] = called.get(path, path)
    core = _config.called_by_name(called, _core.plan, text, case.name, case.names, case.threads, shown)
    record: str = core.record
    if case.kept is not None:
        case.kept.parent.mkdir(parents=True, exist_ok=True)
        if core.found:
            core.save(case.kept.parent / "planned", 0)
        new = case.kept.with_suffix(".new")
        new.write_text(json.dumps({"digest": case.digest, "record": json.loads(record)}))
        new.replace(case.kept)
    return record


def _planned_elsewhere(executor: Any, cases: Mapping[int, _Case]) -> dict[int, str]:
    """[number of the case] Its record. Cases that die are named in a warning and left out; the others go on."""
    futures = {number: executor.submit(_plan_case, case) for number, case in cases.items()}
    records, mistakes = {}, []
    try:
        for number, future in futures.items():
            try:
                records[number] = future.result()
            except _core.ConfigError as error:
                mistakes.append(error)
            except Exception as error:  # of a worker, or of the executor: the other cases are as good
                warnings.warn(f"case {cases[number].name} died and is left out: {type(error).__name__}: {error}", stacklevel=3)
    except BaseException:
        for future in futures.values():
            future.cancel()
        raise
    if mistakes:
        raise mistakes[0]
    return records


def sweep(
    model: Planable,
    cluster: Hosts,
    *,
    folder: PathLike | None = None,
    progress: bool = False,
    threads: int | None = None,
    frame: bool | None = None,
    executor: Any = None,
    **request: Unpack[Keys],
) -> Any:
    """Plans every combination of `devices`, `microbatches` and the further lists in `cases`.

    devices=[2, 4, 8], microbatches=[8, 16], cases={"training.precision": ["tf32", "bf16_amp"]}; other keywords as of
    plan(). Cases that nothing fits have a row, with feasible False.

    Args:
        folder: Cases and their plans are kept there, and those that are there already are not computed again. With
            workers on other machines it must be one that they share.
        executor: Plans the cases at once: any concurrent.futures.Executor, or what has its submit(), whose workers have
            this package: a ProcessPoolExecutor, Dask's Client.get_executor(), mpi4py's MPIPoolExecutor, submitit's
            AutoExecutor. `threads` are then those of one case (1 unless given), and `progress` shows nothing.

    Returns:
        A row a case and plan, the columns of results.csv: a pandas.DataFrame, or dictionaries where there is no pandas
        or frame is False. Only search_s depends on the executor.

    Raises:
        ConfigError: a mistake in what is asked; with an executor after the other cases are done.
    """
    asked = Asked(model, cluster, request)
    cases = asked(_core.cases, asked.text, asked.names)
    files = {file.path: Path(file.path).read_bytes() for file in asked.keep} if executor else {}
    each = _threads(threads) if executor is None else threads or 1
    records, open_cases = {}, {}
    for number, (name, digest) in enumerate(cases, 1):
        kept = Path(folder).absolute() / name / "case.json" if folder is not None else None
        if (record := _kept(kept, digest)) is not None:
            records[number] = record
            continue
        open_cases[number] = _Case(asked.text, asked.names, asked.called, files, os.getcwd(), name, digest, kept, each)
    if executor is not None:
        records.update(_planned_elsewhere(executor, open_cases))
    else:
        for number, case in open_cases.items():
            records[number] = _plan_case(case, _shown(progress, f"{number}/{len(cases)} {case.name} "))
    text = _core.results_csv([records[number] for number in sorted(records)])
    return _framed([_values(row) for row in csv.DictReader(io.StringIO(text))], frame)


def _framed(rows: list[Row], frame: bool | None) -> Any:
    if frame is not False:
        try:
            import pandas
        except ImportError:
            if frame:
                raise
        else:
            return pandas.DataFrame(rows)
    return rows


def mesh(
    architecture: PathLike | Options,
    cluster: Hosts,
    *,
    devices: int | Sequence[int] | None = None,
    frame: bool | None = None,
    **options: object,
) -> Any:
    """Finds the fastest mesh for each number of devices, as `pfeife-exp fits` does.

    Args:
        architecture: A name or a file (configs/architectures), a config.json of Hugging Face, or what such a file says as a
            dictionary.
        cluster: A name, a file or a dictionary, of equal hosts: "h100_sxm_hosts".
        devices: How many, tp x cp x pp x dp; a list gives a row for each. Absent, those of a host.
        frame: False gives dictionaries also where there is pandas.
        options: batch, sequence, optimizer, alloc, price, jobs, and times (a file of layer times), as pfeife-exp fits --help
            explains them.

    Returns:
        A row for each number of devices, the columns of `pfeife-exp fits --csv`: a pandas.DataFrame, or dictionaries where
        there is no pandas.

    Raises:
        ConfigError: The request is invalid.
    """
    hosts = cluster_of(cluster)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for file, content in (("architecture", architecture), (hosts.name or "cluster", hosts.entry)):
            if isinstance(content, Mapping) or str(content).startswith("/proc/"):
                path = Path(folder) / f"{file}.yaml"
                path.write_bytes(text_of(content) if isinstance(content, Mapping) else Path(content).read_bytes())
                content = path
            files.append(os.fspath(content))
        counts = [] if devices is None else [devices] if isinstance(devices, int) else list(devices)
        words = [*files, "--csv", *(["--devices", ",".join(map(str, counts))] if counts else [])]
        for key, value in options.items():
            words += [f"--{key}", str(value)]
        program = Path(__file__).with_name("pfeife-exp")
        done = subprocess.run([program, "fits", *words], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise _core.ConfigError(done.stderr.strip().removeprefix("pfeife-exp: "))
    return _framed([_values(row) for row in csv.DictReader(io.StringIO(done.stdout))], frame)


def _kept(file: Path | None, digest: str) -> str | None:
    try:
        kept = json.loads(file.read_text()) if file else {}
    except (OSError, ValueError):
        return None
    return json.dumps(kept["record"]) if kept.get("digest") == digest else None


def _values(row: Mapping[str, str]) -> Row:
    def value(text: str) -> Value:
        if not text:
            return None
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    return {key: value(text) == 1 if key in ("feasible", "fits") else value(text) for key, text in row.items()}


class Price(NamedTuple):
    """What a choice costs.

    Attributes:
        step: ms, estimated.
        peaks: [rank] bytes, estimated.
        fits: Whether every device has the memory.
    """

    step: float
    peaks: np.ndarray
    fits: bool


class Pricer:
    """For a search of your own: give a batch of choices, receive times and memory.

    Attributes:
        layers: (name, may be cut after) in order.
        schedules: The choices of the families that the request allows, without cuts.
        limits: [rank] bytes.
    """

    def __init__(self, model: Planable, cluster: Hosts, **request: Unpack[Keys]):
        """Takes the keywords of plan(). Errors: ConfigError."""
        asked = Asked(model, cluster, request)
        self._keep = asked.keep
        self._core = asked(_core.Pricer, asked.text, asked.names)
        self.layers: list[tuple[str, bool]] = self._core.layers
        self.schedules: list[Record] = self._core.schedules
        self.limits = np.array(self._core.limits, dtype=np.int64)

    def price(self, choices: Iterable[Options], *, threads: int | None = None) -> list[Price]:
        """Prices choices.

        Args:
            choices: Each {"family": "1f1b", "cuts": [12, 25, 38]}, with stages_per_rank, loop_batch, prefetch, recompute.
                cuts as Plan.cuts, one less than stages.
            threads: Absent, all cores.

        Returns:
            [choice] Its step and memory.

        Raises:
            ConfigError: The first choice that is invalid.
        """
        prices = self._core.price([dict(choice) for choice in choices], _threads(threads))
        return [
            Price(step, np.array(peaks, dtype=np.int64), bool(np.all(np.array(peaks) <= self.limits)))
            for step, peaks in prices
        ]
