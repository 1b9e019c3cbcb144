"""From Python's values to the words of a config (configs/REFERENCE.md), which the library reads."""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from . import _core

PathLike = Union[str, "os.PathLike[str]"]
Options = Mapping[str, object]  # what a config says, by its keys
CLUSTERS = Path(__file__).with_name("clusters")
MODELS = Path(__file__).with_name("models")
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]([A-Za-z0-9_./ +%-]*[A-Za-z0-9_./+%-])?")


def yaml(value: object) -> str:
    """The value as YAML in one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{yaml(key)}: {yaml(item)}" for key, item in value.items()) + "}"
    if hasattr(value, "tolist"):  # of numpy
        return yaml(value.tolist())
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
    if isinstance(value, Iterable):
        return "[" + ", ".join(map(yaml, value)) + "]"
    raise _core.ConfigError(f"a {type(value).__name__} cannot be a value of a config: {value!r}")


class Source:
    """Where a model or a cluster comes from: what a config says of it, and what has to be kept for that."""

    def __init__(self, entry: str | dict[str, str], name: str = "", keep: Sequence[_core.MemoryFile] = (), more: Options | None = None):
        self.entry = entry
        self.name = name
        self.keep = list(keep)
        self.more = dict(more or {})

    def __repr__(self) -> str:
        return f"<pfeife.{type(self).__name__} {self.name or self.entry}>"


class Model(Source):
    """A model: a file, bytes or layers (pfeife.model, pfeife.layers)."""


class Timed(Model):
    """Layers with the times that a device took for them (pfeife.measure). linears: [layer] how many linear layers it has."""

    linears: list[int]


class Cluster(Source):
    """Devices and their links (pfeife.cluster, pfeife.uniform_cluster)."""


def model(
    source: PathLike | bytes,
    *,
    format: str | None = None,
    name: str | None = None,
    skips: PathLike | None = None,
    profile: PathLike | None = None,
    operators: Options | None = None,
    time_unit: str | None = None,
) -> Model:
    """Names a model's file, or takes its bytes.

    Args:
        source: An archive of torch.export (.pt2), a layer table (.csv), or a published profile; the name of a model that
            comes with Pfeife, "tiny_gpt"; or the bytes of an archive or a table.
        format: "pt2", "table", "pipedream" or "piper"; not needed for names that end in .pt2 or .csv, and for bytes.
        name: Shown for bytes in tables and messages.
        skips: CSV of values that pass over layers, for a layer table.
        profile: Measured times of an archive's operators.
        operators: Costs of operators that Pfeife does not know.
        time_unit: The unit of the times of a piper profile, "1 ms".

    Raises:
        ConfigError: The source is of no known format. What is wrong in it is said by what plans it.
    """
    keep = []
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
        keep.append(_core.MemoryFile(content))
        format = format or ("pt2" if content.startswith(b"PK") else "table")
        name = name or "model"
        file = keep[0].path
    else:
        file = os.fspath(source)
        shipped = MODELS / f"{file}.pt2"
        if "/" not in file and not Path(file).exists() and shipped.exists():
            file, name = str(shipped), name or file
        name = name or ""
        format = format or {".pt2": "pt2", ".csv": "table"}.get(Path(file).suffix)
    entry: str | dict[str, str] = file
    if format:
        entry = {"file": file, "format": format, **({"time_unit": time_unit} if time_unit else {})}
    more = {"skips": skips, "profile": profile, "operators": operators}
    return Model(entry, name, keep, {key: value for key, value in more.items() if value is not None})


def layers(
    forward_ms: Sequence[float],
    backward_input_ms: Sequence[float],
    backward_weight_ms: Sequence[float],
    *,
    names: Sequence[str] | None = None,
    output_bytes: Sequence[int] | int = 0,
    parameter_bytes: Sequence[int] | int = 0,
    saved_bytes: Sequence[int] | int = 0,
    weight_saved_bytes: Sequence[int] | int = 0,
    temporary_bytes: Sequence[int] | int = 0,
    optimizer_ms: Sequence[float] | float | None = None,
    output_ms: Sequence[float] | float | None = None,
    skips: Iterable[tuple[str, str, str, int]] = (),
    name: str = "layers",
) -> Model:
    """Makes a model of layers at hand.

    Args are sequences [layer] in order of execution; a single value holds for all layers.

    Args:
        forward_ms: Time of one microbatch's forward, on any device.
        backward_input_ms: Time of its gradients of inputs.
        backward_weight_ms: Time of its gradients of weights.
        names: Of the layers; absent, numbers.
        output_bytes: What a cut after the layer sends forward, and as much gradient back.
        parameter_bytes: Weights.
        saved_bytes: Kept from forward to backward.
        weight_saved_bytes: Kept from backward-input to backward-weight.
        temporary_bytes: Held in addition while a pass runs.
        optimizer_ms: Time of the optimizer step.
        output_ms: How long the output takes to the next stage; absent, as the links give it.
        skips: (value, from, to, bytes) by names of layers: a value of `from` that `to` reads.
        name: Of the model.
    """
    count = len(forward_ms)
    columns: dict[str, Any] = {
        "name": names if names is not None else [f"layer{i}" for i in range(count)],
        "forward_ms": forward_ms,
        "backward_input_ms": backward_input_ms,
        "backward_weight_ms": backward_weight_ms,
        "output_bytes": output_bytes,
        "parameter_bytes": parameter_bytes,
        "saved_bytes": saved_bytes,
        "weight_saved_bytes": weight_saved_bytes,
        "temporary_bytes": temporary_bytes,
        "optimizer_ms": optimizer_ms,
        "output_ms": output_ms,
    }
    table = {}
    for key, values in columns.items():
        if values is None:
            continue
        listed = list(values) if hasattr(values, "__len__") else [values] * count
        if len(listed) != count:
            raise _core.ConfigError(f"{key} has {len(listed)} values, and there are {count} layers (forward_ms)")
        table[key] = listed
    keep = [_core.MemoryFile(_csv(table, zip(*table.values())))]
    more = {}
    skipped = list(skips)
    if skipped:
        keep.append(_core.MemoryFile(_csv(["value", "from", "to", "bytes"], skipped)))
        more["skips"] = keep[1].path
    return Model({"file": keep[0].path, "format": "table"}, name, keep, more)


def _csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([f"{cell:.15g}" if isinstance(cell, float) else cell for cell in row])
    return text.getvalue().encode()


def cluster_names() -> list[str]:
    """Returns the names of the clusters that come with Pfeife."""
    return sorted(file.stem for file in CLUSTERS.glob("*.yaml"))


def text_of(content: Options) -> bytes:
    """A file of what it says."""
    return "".join(f"{key}: {yaml(value)}\n" for key, value in {"version": 1, **content}.items()).encode()


def cluster(source: PathLike | Options | Cluster, *, set: Options | None = None) -> Cluster:
    """Names devices and their links.

    Args:
        source: The name of a cluster that comes with Pfeife (pfeife.cluster_names()), a file, or what such a file says as a
            dictionary (configs/clusters/README.md); or a Cluster.
        set: Values that replace those of the file, by the paths of their keys: {"links.nic.bandwidth": "50 GB/s"}.
    """
    keep = []
    name = ""
    if isinstance(source, Cluster):
        file, name, keep = str(source.entry), source.name, list(source.keep)
    elif isinstance(source, Mapping):
        name = str(source.get("name", "cluster"))
        keep.append(_core.MemoryFile(text_of(source)))
        file = keep[0].path
    else:
        file = os.fspath(source)
        named = CLUSTERS / f"{file}.yaml"
        if named.exists() and "/" not in file:
            file, name = str(named), file
        elif not Path(file).exists() and Path(file).suffix != ".yaml" and "/" not in file:
            shipped = cluster_names()
            nearest = difflib.get_close_matches(file, shipped, 1)
            raise _core.ConfigError(
                f"cluster: there is none called {file!r}"
                + (f"; did you mean {nearest[0]!r}?" if nearest else ".")
                + f" It is a file, a dictionary, or one of {', '.join(shipped)}"
            )
    if set:  # a file of its own, which plans can be saved with
        try:
            text = _core.changed_cluster(file, {key: yaml(value) for key, value in set.items()})
        except _core.ConfigError as error:
            raise _core.ConfigError(str(error).replace(file, name or file)) from None
        name = name or Path(file).stem
        keep.append(_core.MemoryFile(text.encode()))
        file = keep[-1].path
    return Cluster(file, name, keep)


def uniform_cluster(
    devices: int,
    *,
    memory: str = "80 GiB",
    bandwidth: str = "200 GB/s",
    latency: str = "10 us",
    **kind: object,
) -> Cluster:
    """Makes a cluster of equal devices, each with one full-duplex port to all others: enough for models whose layers have times.

    Args:
        devices: How many.
        memory: Of each, "80 GiB".
        bandwidth: Of each port, in each direction.
        latency: Of each port, in each direction.
        kind: Further keys of the device kind. To estimate the times of a module or an archive at least
            peak={"fp32": "20 TFLOP/s"}, by compute type (bf16 for bf16_amp), and memory_bandwidth="2 TB/s".
    """
    if isinstance(peak := kind.get("peak"), Mapping):
        kind["peak"] = {key.removesuffix("_amp"): value for key, value in peak.items()}
    return cluster(
        {
            "name": f"uniform_x{devices}",
            "device_kinds": {"device": {"memory": memory, **kind}},
            "devices": [{"kind": "device", "count": devices}],
            "links": [{"name": "port", "per": "device", "bandwidth": bandwidth, "duplex": "full"}],
            "routes": [{"over": "port", "latency": latency}],
        }
    )


_CASE_KEYS = ("devices", "microbatches")
# Sections whose keys are keywords by themselves, too.
_SECTIONS = ("training", "plan", "simulation")


def _places() -> dict[str, tuple[str, ...]]:
    """Where a keyword stands in a config: ("training", "precision")."""
    places: dict[str, tuple[str, ...]] = {}
    for key in _core.keys():
        section, _, leaf = key.partition(".")
        if leaf and section in _SECTIONS:
            places.setdefault(leaf, (section, leaf))
    for key in _core.keys():
        if "." not in key and key not in ("version", "cases", "model", "cluster", "measurement", "step_below", "figures"):
            places[key] = (key,)
    for key in _CASE_KEYS:
        places[key] = ("cases", key)
    places["cases"] = ("cases",)
    return places


PLACES = _places()


def keys_module() -> str:
    """The text of _keys.py: the keywords as a TypedDict, for editors and type checkers."""
    lines = [f'        "{key}": Any,  # {".".join(PLACES[key])}' for key in sorted(PLACES)]
    return "\n".join(
        [
            '"""Keywords of plan(), sweep() and Pricer(), for editors and type checkers; written from the keys of a config by',
            'PFEIFE_WRITE_KEYS=1 pytest tests/python/test_plan.py -k keywords."""',
            "",
            "from typing import Any, TypedDict",
            "",
            "Keys = TypedDict(",
            '    "Keys",',
            "    {",
            *lines,
            "    },",
            "    total=False,",
            ")",
            "",
        ]
    )


def called_by_name(called: Mapping[str, str], work: Callable[..., Any], *arguments: Any) -> Any:
    """The library's work; its mistakes say the name of a path of `called` in the path's place."""
    try:
        return work(*arguments)
    except _core.ConfigError as error:
        message = str(error)
        for path, name in called.items():
            message = message.replace(path, name)
        if "does not say how fast it is" in message:
            message += '; of pfeife.uniform_cluster(...): peak={"fp32": "20 TFLOP/s"}, memory_bandwidth="2 TB/s"'
        raise _core.ConfigError(message) from None


class Asked:
    """A config made of keywords: its text, the names of what has no file, and what must be kept for it."""

    def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The library's work on it; mistakes call what has no file by its name."""
        return called_by_name(self.called, work, *arguments)

    def __init__(self, of_model: Any, of_cluster: Any, keywords: Options):
        self.keep: list[_core.MemoryFile] = []
        self.names: dict[str, str] = {}
        self.called: dict[str, str] = {}
        content: dict[str, Any] = {"version": 1}
        for key, value, kind in (("model", of_model, Model), ("cluster", of_cluster, Cluster)):
            if not isinstance(value, kind):
                value = model(value) if kind is Model else cluster(value)
            self.keep += value.keep
            self.called.update({file.path: value.name for file in value.keep})
            if value.name:
                self.names[key] = value.name
            content[key] = value.entry
            content.update(value.more)
        for key, value in keywords.items():
            if value is None:
                continue
            if hasattr(value, "_text_for_config"):  # a schedule at hand
                self.keep.append(_core.MemoryFile(value._text_for_config().encode()))
                value = self.keep[-1].path
                self.called[value] = "schedule"
                self.names["plan.schedule"] = "schedule"
            place = PLACES.get(key)
            if place is None:
                nearest = difflib.get_close_matches(key, PLACES, 1)
                raise _core.ConfigError(
                    f"unknown keyword {key!r}"
                    + (f"; did you mean {nearest[0]!r}?" if nearest else ".")
                    + " Keywords are the keys of a config: "
                    + ", ".join(sorted(PLACES))
                )
            if len(place) == 1 and isinstance(value, Mapping) and isinstance(content.get(key), dict):
                content[key].update(value)
            elif len(place) == 1:
                content[key] = dict(value) if isinstance(value, Mapping) else value
            else:
                section = content.setdefault(place[0], {})
                if not isinstance(section, dict):
                    raise _core.ConfigError(f"{key} and {place[0]}: {section!r} cannot both be said")
                section[place[1]] = value
        self.text = "".join(f"{key}: {yaml(value)}\n" for key, value in content.items())
