"""From a module to a `.pt2` archive: captured as `pfeife.plan(module, ...)` does it, with an open batch size, then proven."""
import io
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import batch_dimensions
from package import capture, grad_regions, loss_weight, packed
from proof import prove_ways, prove_values
from shipped_models import Model


def open_batch(inputs: tuple | dict, dimensions: tuple | dict) -> tuple | dict:
    """Dynamic shapes: the batch dimension of each input is open."""
    any_size = torch.export.Dim("batch", min=2, max=63)
    if batch_dimensions.samples(inputs, dimensions) < 2:
        raise SystemExit("the example batch must have 2 samples at least: export takes a size of 1 for a constant "
                         "(or fix the size with --microbatch 1)")
    at = batch_dimensions.named(dimensions)
    return batch_dimensions.like(inputs, {name: {} if d is None else {d: any_size} for name, d in at.items()})


@dataclass
class Exported:
    """What was exported, and what its proof needs."""
    program: torch.export.ExportedProgram
    module: nn.Module
    inputs: tuple | dict
    dimensions: tuple | dict  # of each input that of the samples, or None
    is_open: bool  # the batch size
    fake: FakeTensorMode | None  # that of module and inputs; None: they have contents
    notes: list[str]  # sentences for the user


def export(entry: Model, microbatch: int | None, dtype: torch.dtype) -> Exported:
    """The program of one microbatch, with gradients where the module has them.

    Without a size, the graph holds for 2 to 63 samples: export takes a 1 for a constant, and diffusers copies larger
    batches before upsampling.
    """
    batch = microbatch or max(2, entry.microbatch)
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    fake, notes = None, []
    if entry.real_weights:
        module, inputs = entry.build(batch)
        grad_regions.refuse_hooks(module)
    else:
        with torch.device("meta"):
            module, inputs = entry.build(batch)
        grad_regions.refuse_hooks(module)
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        with fake:
            capture.with_fake_weights(module)
            if isinstance(inputs, dict):
                inputs = {key: capture.without_contents(value) for key, value in inputs.items()}
            else:
                inputs = tuple(capture.without_contents(value) for value in inputs)
    dimensions = entry.dimensions(inputs)
    shapes = None if microbatch else open_batch(inputs, dimensions)
    by_position, by_name = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    program = capture.program_of(module.train(), by_position, by_name, shapes, notes)
    loss_weight.note_labels(program, notes)
    return Exported(program, module, inputs, dimensions, shapes is not None, fake, notes)


def few_samples(exported: Exported) -> tuple | dict:
    """Two of the example's samples, if the batch size is open."""
    inputs, at = exported.inputs, batch_dimensions.named(exported.dimensions)
    if not exported.is_open:
        return inputs
    return batch_dimensions.like(inputs, {name: tensor if at[name] is None else tensor.narrow(at[name], 0, 2)
                                          for name, tensor in batch_dimensions.named(inputs).items()})


def prove(exported: Exported, archive: bytes) -> str:
    """A sentence that says what was compared; Unexportable if the archive trains in another way than the module."""
    if exported.fake is None:
        with warnings.catch_warnings():  # of torch's own reading
            warnings.simplefilter("ignore")
            program = torch.export.load(io.BytesIO(archive))
        return prove_values(program, exported.module, few_samples(exported), exported.notes)
    with exported.fake, capture.masks_as_in_eager_mode(), grad_regions.recorded_as_it_trains([]), \
            mock.patch("torch.compiler._is_exporting_flag", True):
        return prove_ways(exported.program, exported.module, exported.inputs, exported.notes)


@dataclass
class Written:
    nodes: int
    parameters: int
    proof: str
    notes: list[str]


def write_archive(path: Path, entry: Model, microbatch: int | None, dtype: torch.dtype, keep_weights: bool) -> Written:
    """Exports a model to `path`. Nothing is written if the archive would train in another way than the module."""
    exported = export(entry, microbatch, dtype)
    dimensions = None if exported.is_open else list(batch_dimensions.named(exported.dimensions).values())
    files = capture.archive_of(exported.program, exported.module, dimensions, keep_weights=keep_weights)
    archive = packed(files, path.stem)
    proof = prove(exported, archive)
    path.write_bytes(archive)
    return Written(len(json.loads(files["models/model.json"])["graph_module"]["graph"]["nodes"]),
                   sum(parameter.numel() for parameter in exported.module.parameters()), proof, exported.notes)
