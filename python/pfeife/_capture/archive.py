"""A program as the planner reads it: the archive of torch.export.save without weights and debugging noise."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from torch import nn


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
    path_of_dtype: dict[int, str] = {}
    used: dict[str, int] = {}
    place: dict[str, tuple[str, int]] = {}
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
    first: dict[int, str] = {}
    same: dict[str, str] = {}
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


def bind_symbols(files: dict[str, bytes], names: set[str]) -> None:
    """Puts the sizes of the example in the place of these symbols: the planner reads graphs with one open size, the samples."""
    if not names:
        return
    import sympy
    from torch.utils._sympy import functions

    path = "models/model.json"
    functions_by_name = {**vars(sympy), **vars(functions)}
    sizes: dict[Any, int] = {}

    def expression(value: dict) -> Any:
        return eval(value["expr_str"], functions_by_name)  # what sympy.srepr wrote

    def note(value: Any) -> None:
        if isinstance(value, dict):
            if "as_expr" in value and (found := expression(value["as_expr"])).is_Symbol and str(found) in names:
                sizes[found] = value["as_expr"]["hint"]["as_int"]
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            note(inner)

    def bound(value: Any) -> Any:
        if isinstance(value, dict) and "as_expr" in value:
            size = expression(value["as_expr"]).subs(sizes)
            return {"as_int": int(size)} if size.is_Integer else {"as_expr": {**value["as_expr"], "expr_str": sympy.srepr(size)}}
        if isinstance(value, dict):
            return {key: bound(inner) for key, inner in value.items()}
        return [bound(inner) for inner in value] if isinstance(value, list) else value

    program = json.loads(files[path])
    note(program)
    program["graph_module"] = bound(program["graph_module"])
    files[path] = json.dumps(program, separators=(",", ":")).encode()


def packed(files: dict[str, bytes], folder: str) -> bytes:
    """Equal files give equal bytes: sorted names, one date."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name in sorted(files):
            entry = zipfile.ZipInfo(f"{folder}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, files[name])
    return archive.getvalue()
