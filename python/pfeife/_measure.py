"""Times of a module's blocks as they run here: compiled, with the kernels that this torch has, on one device.

Each block is timed by itself, with its weights only on the device, so that the model may be larger than it; what a call and a
backward of nothing take is left out. Not measured:
messages (the cluster says them), the optimizer, how blocks disturb each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import fx, nn

from ._capture.capture import Capture
from ._config import Model, Options, Timed, layers, model, uniform_cluster
from ._core import ConfigError
from ._plan import Plan, Pricer, plan
from ._operators import ACTIVATIONS, Moment
from ._overhead import EMPTY, overhead_here
from ._stages import Program


T = TypeVar("T")
Row = dict[str, Any]  # of a block: name, ms, bytes


class Measured(Timed):
    """Layers with the times that a device took for them; plan() takes it. table: [layer] what was measured. overhead: what
    Pipeline's actions take on this machine beside them; plan() adds it."""

    def __init__(self, archive: Model, table: list[Row], cuts: list[int], linears: list[int]):
        super().__init__(archive.entry, archive.name, archive.keep, archive.more)
        self.table, self.linears, self.overhead = table, linears, overhead_here(again=True)
        self._cuts = cuts

    def cuts_of(self, planned: Plan) -> list[int]:
        """The plan's cuts as `cuts` of a plan of the module itself, which can be trained:
        plan(module, batch, ..., cuts=measured.cuts_of(planned), schedule=planned.schedule)."""
        return [self._cuts[cut] for cut in planned.cuts]


def measure(
    capture: Capture, device: torch.device, compile: bool | Options, autocast: torch.dtype | None, repetitions: int
) -> Measured:
    """Does the work of pfeife.measure()."""
    archive = model(capture.archive)
    any_devices: dict[str, Any] = dict(peak={"fp32": "10 TFLOP/s"}, memory_bandwidth="1 TB/s", memory="100 TiB")
    how: dict[str, Any] = dict(microbatches=1, baselines=[], engines=["estimate"], recompute="none")
    found = Pricer(archive, uniform_cluster(2, **any_devices), devices=2, cuts_at="blocks", **how).layers
    cuts = [i for i, (_, may_be_cut) in enumerate(found[:-1]) if may_be_cut]
    if not cuts:
        raise ConfigError("the model has no place to be cut")
    blocks = len(cuts) + 1
    cut = plan(archive, uniform_cluster(blocks, **any_devices), devices=blocks, cuts=cuts, families=["gpipe"], iterations=1, **how)
    planned = cut.stages
    program = Program(capture, capture.parameters, capture.buffers, planned)
    names = [found[i][0] for i in [*cuts, len(found) - 1]]
    last_reader: dict[fx.Node, int] = {}
    for (_, reader), crossing in program.crossings.items():
        for value in crossing:
            last_reader[value] = max(reader, last_reader.get(value, 0))
    values: dict[fx.Node, torch.Tensor] = dict(zip(program.inputs, (here(leaf, device) for leaf in capture.example)))
    table = []
    sizes: dict[fx.Node, int] = {}
    counted: set[str] = set()
    empty, _ = timed_block(EMPTY, [torch.ones(1, device=device, requires_grad=True)], device, compile, autocast, repetitions)
    for number, nodes in enumerate(program.nodes):
        own = {name: here(program.tensor(name), device) for name in program.state(nodes)}
        of_block = Program(capture, {**capture.parameters, **capture.buffers, **all_names(program, own)}, {}, planned)
        of_block.means = None  # counts of a whole batch take no time here
        gives = [node for node in last_reader if node in nodes]
        gives += [program.outputs[0]] if program.loss_stage == number else []
        module = of_block.assemble(nodes, gives, device, Moment(0, device))
        inputs = [values[node] for node in program.read(nodes)]
        row, outputs = timed_block(module, inputs, device, compile, autocast, repetitions)
        row["forward_ms"] = max(0.0, row["forward_ms"] - empty["forward_ms"])
        whole = "backward_input_ms" if row["backward_input_ms"] else "backward_weight_ms"
        row[whole] = max(0.0, row[whole] - empty["backward_input_ms"])
        values.update(zip(gives, outputs))
        sizes.update({node: tensor.nbytes for node, tensor in zip(gives, outputs)})
        values = {node: tensor for node, tensor in values.items() if node in program.inputs or last_reader.get(node, -1) > number}
        to_next = program.crossings.get((number, number + 1), [])
        new = [name for name in own if name not in counted and isinstance(own[name], nn.Parameter)]
        counted.update(new)
        row.update(
            name=names[number],
            output_bytes=sum(sizes[node] for node in to_next),
            parameter_bytes=sum(own[name].nbytes for name in new),
        )
        table.append(row)
    skips = [
        (node.name, names[source], names[to], sizes[node])
        for (source, to), crossing in program.crossings.items()
        if to > source + 1
        for node in crossing
    ]
    columns = {key: [row[key] for row in table] for key in table[0] if key != "name"}
    linears = [sum(node.target in ACTIVATIONS for node in nodes) for nodes in program.nodes]
    return Measured(layers(names=names, **columns, skips=skips, name=type(capture.module).__name__), table, cuts, linears)


def all_names(program: Program, own: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Under every name that a tensor has."""
    return {name: own[first] for name in program.tensors() if (first := program.first_name(name)) in own}


def here(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy; of `meta`, small numbers."""
    if tensor.is_meta:
        copy = torch.empty_like(tensor, device=device)
        copy = copy.normal_(0, 0.02) if copy.is_floating_point() else copy.zero_()
    else:
        copy = tensor.detach().to(device, copy=True)
    return nn.Parameter(copy, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copy


def timed_block(
    module: nn.Module,
    inputs: Sequence[torch.Tensor],
    device: torch.device,
    compile: bool | Options,
    autocast: torch.dtype | None,
    repetitions: int,
) -> tuple[Row, list[torch.Tensor]]:
    """Times, bytes kept for backward, and results. The gradients of inputs alone are those of frozen weights."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    row: Row = {}
    outputs: list[torch.Tensor] = []
    for frozen in (False, True) if trained else (False,):
        for parameter in trained:
            parameter.requires_grad_(not frozen)
        run = torch.compile(module, **(compile if isinstance(compile, Mapping) else {})) if compile else module
        forward, backward = [], []
        for repetition in range(2 + repetitions):
            leaves = [value.detach().requires_grad_(value.requires_grad) for value in inputs]
            kept = Kept([*module.parameters(), *module.buffers()])
            with torch.autocast(device.type, autocast, enabled=autocast is not None):
                if repetition == 1 and not frozen:  # compiled already, not timed
                    with torch.autograd.graph.saved_tensors_hooks(kept.keep, kept.give):
                        run(*leaves)
                    row["saved_bytes"] = kept.bytes
                    continue
                took, results = clocked(lambda: run(*leaves), device)
            forward.append(took)
            roots = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
            wanted = [leaf for leaf in [*leaves, *(() if frozen else trained)] if leaf.requires_grad]
            if roots and wanted:
                gradients = [torch.ones_like(root) for root in roots]
                took, _ = clocked(lambda: torch.autograd.grad(roots, wanted, gradients, allow_unused=True), device)
            else:
                took = 0.0
            backward.append(took)
            outputs = [result.detach().requires_grad_(result.requires_grad) for result in results]
        median = statistics.median(backward[-repetitions:])
        if not frozen:
            needs_input = any(value.requires_grad for value in inputs)
            row["forward_ms"] = statistics.median(forward[-repetitions:])
            row["backward_input_ms"], row["backward_weight_ms"] = (median, 0.0) if needs_input and not trained else (0.0, median)
            results_of_training = outputs
        elif needs_input:
            whole = row["backward_weight_ms"]
            row["backward_input_ms"], row["backward_weight_ms"] = min(median, whole), max(0.0, whole - median)
    for parameter in trained:
        parameter.requires_grad_(True)
    return row, results_of_training


def clocked(work: Callable[[], T], device: torch.device) -> tuple[float, T]:
    """ms, and what it makes."""
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        result = work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end), result
    before = time.perf_counter()
    result = work()
    return 1e3 * (time.perf_counter() - before), result


class Kept:
    """Bytes that autograd keeps, once a storage, without weights."""

    def __init__(self, weights: Iterable[torch.Tensor]):
        self._seen = {weight.untyped_storage().data_ptr() for weight in weights}
        self.bytes = 0

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor

    def give(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor
