"""From a module to a `.pt2` archive: export with an open batch size, then a file without weights and debugging noise."""
import contextlib
import io
import json
import sys
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import batch_dimensions
import loss_weight
from grad_regions import inline_regions, recorded_as_it_trains, refuse_hooks, refuse_untraced
from proof import prove_ways, prove_values
from shipped_models import Model


@contextlib.contextmanager
def masks_as_in_eager_mode():
    """Keeps transformers from building attention masks that only say "all" or "causal".

    In eager mode it passes no mask and `is_causal` instead, which is what allows fused attention; while exporting it
    cannot look at values and builds the mask, which then goes to every layer.
    """
    with contextlib.ExitStack() as patches:
        if "transformers" in sys.modules:
            masking = "transformers.masking_utils."
            patches.enter_context(mock.patch(masking + "is_torchdynamo_exporting", lambda: False))
            patches.enter_context(mock.patch(masking + "find_packed_sequence_indices", lambda positions: None))
        yield


def with_fake_weights(module: nn.Module) -> nn.Module:
    """Replaces the module's meta tensors by tensors of the fake mode in force, so that the graph's device is `cpu`."""
    fake = {}
    for owner in module.modules():
        for table in (owner._parameters, owner._buffers):
            for name, tensor in table.items():
                if tensor is not None and id(tensor) not in fake:
                    empty = torch.empty_like(tensor, device="cpu")
                    is_parameter = isinstance(tensor, nn.Parameter)
                    fake[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
                table[name] = fake.get(id(tensor))
    return module


def fake_like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="cpu")


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
        refuse_hooks(module)
    else:
        with torch.device("meta"):
            module, inputs = entry.build(batch)
        refuse_hooks(module)
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        with fake:
            with_fake_weights(module)
            if isinstance(inputs, dict):
                inputs = {key: fake_like(value) for key, value in inputs.items()}
            else:
                inputs = tuple(fake_like(value) for value in inputs)
    dimensions = entry.dimensions(inputs)
    shapes = None if microbatch else open_batch(inputs, dimensions)
    by_position, by_name = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
    with masks_as_in_eager_mode(), recorded_as_it_trains(notes):
        program = torch.export.export(module.train(), by_position, by_name, dynamic_shapes=shapes, strict=False)
    refuse_untraced(program)
    inline_regions(program, notes)
    loss_weight.check(program, notes)
    return Exported(program, module, inputs, dimensions, shapes is not None, fake, notes)


def few_samples(exported: Exported) -> tuple | dict:
    """Two of the example's samples, if the batch size is open."""
    inputs, at = exported.inputs, batch_dimensions.named(exported.dimensions)
    if not exported.is_open:
        return inputs
    return batch_dimensions.like(inputs, {name: one if at[name] is None else one.narrow(at[name], 0, 2)
                                          for name, one in batch_dimensions.named(inputs).items()})


def prove(exported: Exported, archive: bytes) -> str:
    """A sentence that says what was compared; Unexportable if the archive trains in another way than the module."""
    if exported.fake is None:
        with warnings.catch_warnings():  # of torch's own reading
            warnings.simplefilter("ignore")
            program = torch.export.load(io.BytesIO(archive))
        return prove_values(program, exported.module, few_samples(exported), exported.notes)
    with exported.fake, masks_as_in_eager_mode(), recorded_as_it_trains([]), \
            mock.patch("torch.compiler._is_exporting_flag", True):
        return prove_ways(exported.program, exported.module, exported.inputs, exported.notes)


def contiguous_elements(meta: dict) -> int:
    count = 1
    for size in meta["sizes"]:
        count *= size["as_int"]
    return count


def place_in_empty_storages(config: dict, same: dict[str, str]) -> None:
    """Gives every distinct tensor its own place in one storage per dtype, whose file is then left empty.

    torch writes the same path for all fake tensors, which reads as if they were all tied. After this, two names are
    tied exactly if (path_name, storage_offset) agree, as in an archive with weights. The device becomes `meta`, so that
    `torch.export.load` allocates nothing. `same` maps the second and later names of a tied tensor to its first name.
    """
    path_of_dtype, used, place = {}, {}, {}
    for name, payload in config.items():
        meta = payload["tensor_meta"]
        first = same.get(name, name)
        if first not in place:
            prefix = payload["path_name"].rsplit("_", 1)[0]
            path = path_of_dtype.setdefault(meta["dtype"], f"{prefix}_{len(path_of_dtype)}")
            place[first] = path, used.get(path, 0)
            used[path] = used.get(path, 0) + contiguous_elements(meta)
        payload["path_name"], meta["storage_offset"] = place[first][0], {"as_int": place[first][1]}
        meta["device"] = {"type": "meta", "index": None}


def prune_graph(program: dict) -> None:
    """Drops what only debuggers read: assertions, stack traces, Python function names, calls of inner modules."""
    graph_module = program["graph_module"]
    graph = graph_module["graph"]
    graph["nodes"] = [node for node in graph["nodes"] if node["target"] != "torch.ops.aten._assert_tensor_metadata.default"]
    for node in graph["nodes"]:
        node["metadata"] = {key: text for key, text in node["metadata"].items() if key == "nn_module_stack"}
    graph_module["module_call_graph"] = graph_module["module_call_graph"][:1]


def tied_names(module: nn.Module) -> dict[str, str]:
    first, same = {}, {}
    tensors = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, tensor in tensors:
        if first.setdefault(id(tensor), name) != name:
            same[name] = first[id(tensor)]
    return same


def strip_archive(archive: bytes, module: nn.Module, keep_weights: bool) -> dict[str, bytes]:
    """The files of a compact archive: weights empty unless kept, no example inputs, no debugging noise."""
    files = {}
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        for path in source.namelist():
            files[path.split("/", 1)[1]] = source.read(path)

    program = json.loads(files["models/model.json"])
    prune_graph(program)
    files["models/model.json"] = json.dumps(program, separators=(",", ":")).encode()
    files["data/sample_inputs/model.pt"] = b""

    if not keep_weights:
        same = tied_names(module)
        for folder, config_name in (("weights", "model_weights_config"), ("constants", "model_constants_config")):
            config_path = f"data/{folder}/{config_name}.json"
            payloads = json.loads(files[config_path])
            place_in_empty_storages(payloads["config"], same)
            files = {path: data for path, data in files.items()
                     if not path.startswith(f"data/{folder}/") or path == config_path}
            files[config_path] = json.dumps(payloads, separators=(",", ":")).encode()
            for payload in payloads["config"].values():
                files[f"data/{folder}/{payload['path_name']}"] = b""
    return files


def packed(files: dict[str, bytes], folder: str) -> bytes:
    """Equal files give equal bytes: sorted names, one date."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{folder}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, files[name])
    return archive.getvalue()


def facts(exported: Exported) -> dict:
    """What the program itself does not say: extra/pfeife.json."""
    told = {}
    if not exported.is_open:
        names = exported.program.graph_signature.user_inputs
        at = batch_dimensions.named(exported.dimensions).values()
        told["batch_dimensions"] = {name: d for name, d in zip(names, at) if d is not None}
    if (position := loss_weight.position(exported.program)) is not None:
        told["loss_weight"] = position
    return told


@dataclass
class Written:
    nodes: int
    parameters: int
    proof: str
    notes: list[str]


def write_archive(path: Path, entry: Model, microbatch: int | None, dtype: torch.dtype, keep_weights: bool) -> Written:
    """Exports a model to `path`. Nothing is written if the archive would train in another way than the module."""
    exported = export(entry, microbatch, dtype)
    saved = io.BytesIO()
    torch.export.save(exported.program, saved)
    files = strip_archive(saved.getvalue(), exported.module, keep_weights)
    if told := facts(exported):
        files["extra/pfeife.json"] = json.dumps(told, separators=(",", ":")).encode()
    archive = packed(files, path.stem)
    proof = prove(exported, archive if keep_weights else saved.getvalue())
    path.write_bytes(archive)
    return Written(len(json.loads(files["models/model.json"])["graph_module"]["graph"]["nodes"]),
                   sum(parameter.numel() for parameter in exported.module.parameters()), proof, exported.notes)
