"""A step's arguments as the graph's inputs: names of the tensors, their batch dimensions, and the way back."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import keyword
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .errors import Unexportable

Path = tuple  # of the keys that lead to a value: ("labels",), ("inputs", "tokens"), ("boxes", 0)
PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)


def children(value: Any) -> dict[Any, Any] | None:
    """What a dict, dataclass, list or tuple holds; None of other values."""
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)}
    if isinstance(value, (tuple, list)):
        return dict(enumerate(value))
    return None


def flat(value: Any, path: Path = ()) -> dict[Path, Any]:
    inner = children(value)
    if inner is None:
        if not isinstance(value, (torch.Tensor, *PLAIN)):
            raise Unexportable(
                f"{shown(path)} of the batch is a {type(value).__name__}. A batch holds tensors, numbers, texts and None, in "
                "dicts, lists, tuples and dataclasses"
            )
        return {path: value}
    found: dict[Path, Any] = {}
    for key, item in inner.items():
        found.update(flat(item, (*path, key)))
    return found


def rebuilt(value: Any, change: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """The value with every leaf changed, in containers of the same kinds."""
    inner = children(value)
    if inner is None:
        return change(path, value)
    new = {key: rebuilt(item, change, (*path, key)) for key, item in inner.items()}
    if type(value) is dict:
        return new
    if isinstance(value, (tuple, list)):
        return type(value)(*new.values()) if hasattr(value, "_fields") else type(value)(new.values())
    copied = copy.copy(value)
    for key, item in new.items():
        if isinstance(copied, Mapping):
            copied[key] = item  # type: ignore[index]
        else:
            object.__setattr__(copied, key, item)
    return copied


def shown(path: Path) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else ("." if i else "") + str(key) for i, key in enumerate(path)) or "the value"


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for each in the graph: identifiers that differ."""
    names: list[str] = []
    for path in paths:
        name = re.sub(r"\W", "_", "_".join(map(str, path)))
        if not name.isidentifier() or keyword.iskeyword(name):
            name = "input_" + name
        while name in names or name == "self":
            name += "_"
        names.append(name)
    return names


def arguments_of(module: nn.Module) -> tuple[list[str], bool, bool]:
    """Names of forward's arguments; whether it takes more by position, and more by name."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    kinds = [parameter.kind for parameter in parameters]
    names = [parameter.name for parameter in parameters if parameter.kind in plain]
    return names, inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds


def is_of_torch(loss: Callable) -> bool:
    """Whether it takes an output and a target, as torch's losses do."""
    return isinstance(loss, nn.modules.loss._Loss) or getattr(loss, "__module__", "") == "torch.nn.functional"


def called(loss: Callable) -> Callable:
    """A module that is none of the model's is called without its hooks: torch.export knows no name for it."""
    if not isinstance(loss, nn.Module):
        return loss
    if name := next((name for name, _ in loss.named_parameters()), ""):
        raise Unexportable(f"the loss has the parameter {name}, which no pipeline would train: make the loss a layer of the model")
    return loss.forward


class Batch:
    """The arguments of one step, as they were when the model was captured.

    names: [input] of the graph. dimensions: [input] the dimension of the samples; None = every microbatch gets it whole.
    samples: how many. lengths: [input] by dimension the names of sizes that differ from microbatch to microbatch.
    """

    def __init__(
        self,
        module: nn.Module,
        args: tuple,
        kwargs: Mapping[str, Any],
        batch_dims: Mapping[str, int | None],
        dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    ):
        self._args, self._kwargs = args, dict(kwargs)
        self._forward, self._more_by_position, self._more_by_name = arguments_of(module)
        self._values = self._flat(args, kwargs)
        self._paths = [path for path, value in self._values.items() if isinstance(value, torch.Tensor)]
        if not self._paths:
            raise Unexportable("the batch holds no tensor: pfeife.plan(model, batch, cluster=...) takes what the data loader gives")
        self.names = names_of(self._paths)
        self.guessed = False  # some input's dimension, against that of another input
        self.dimensions = self._dimensions(batch_dims)
        sizes = [self._values[path].shape[at] for path, at in zip(self._paths, self.dimensions) if at is not None]
        self.samples = sizes[0]
        self.lengths = self._lengths(dynamic_shapes or {})

    def split_note(self, microbatches: int) -> str:
        """What is cut, and what is given whole, where inputs do not agree."""
        if not self.guessed or microbatches == 1:
            return ""
        cut = [f"{shown(path)} {list(example.shape)}" for path, example, d in zip(self._paths, self.examples, self.dimensions) if d is not None]
        whole = [f"{shown(path)} {list(example.shape)}" for path, example, d in zip(self._paths, self.examples, self.dimensions) if d is None]
        return (
            f"of the batch, {', '.join(cut)} are cut into {microbatches} microbatches along their samples, and every microbatch gets all of "
            f"{', '.join(whole)}; batch_dims={{...}} says otherwise. Nodes of graphs are no samples: give batches of graphs of equal sizes, or "
            "microbatches=1"
        )

    @property
    def examples(self) -> list[torch.Tensor]:
        return [self._values[path] for path in self._paths]

    def _flat(self, args: tuple, kwargs: Mapping[str, Any]) -> dict[Path, Any]:
        """Arguments by position under their names, so that both ways to give them are one."""
        named = {self._forward[i] if i < len(self._forward) else f"argument_{i}": argument for i, argument in enumerate(args)}
        if twice := set(named) & set(kwargs):
            raise Unexportable(f"the argument {twice.pop()!r} is given by position and by name")
        return flat({**named, **kwargs})

    def _by_path(self, key: str, named: Mapping[str, Any]) -> dict[Path, Any]:
        """What the user says of inputs, by name or as shown."""
        places = {name: path for path, name in zip(self._paths, self.names)} | {shown(path): path for path in self._paths}
        if unknown := [name for name in named if name not in places]:
            raise Unexportable(f"{key}: there is no input {unknown[0]!r}; inputs: {', '.join(map(shown, self._paths))}")
        return {places[name]: value for name, value in named.items()}

    def _lengths(self, dynamic_shapes: Mapping[str, Mapping[int, str]]) -> list[dict[int, str]]:
        given = self._by_path("dynamic_shapes", dynamic_shapes)
        for path, named in given.items():
            example = self._values[path]
            for d, name in named.items() if isinstance(named, Mapping) else [(named, None)]:
                if not isinstance(d, int) or not isinstance(name, str) or not name.isidentifier():
                    raise Unexportable(f'dynamic_shapes: {shown(path)} has {named!r}; a dimension and a name, {{1: "length"}}')
                if not 0 <= d < example.dim() or d == self.dimensions[self._paths.index(path)]:
                    why = "counts samples, which may differ anyway" if 0 <= d < example.dim() else "is none that it has"
                    raise Unexportable(f"dynamic_shapes: dimension {d} of {shown(path)} {list(example.shape)} {why}")
                if example.shape[d] < 2:
                    raise Unexportable(
                        f"dynamic_shapes: dimension {d} of {shown(path)} {list(example.shape)} is {example.shape[d]} long, of which torch.export "
                        "makes a graph for this length alone: give a batch that is 2 or longer there"
                    )
        lengths = [dict(given.get(path, {})) for path in self._paths]
        self._refuse_unequal(self.examples, lengths)
        return lengths

    def _refuse_unequal(self, tensors: Sequence[torch.Tensor], lengths: Sequence[Mapping[int, str]]) -> None:
        """Errors: Unexportable where sizes of one name differ."""
        found: dict[str, tuple[int, str]] = {}
        for path, tensor, named in zip(self._paths, tensors, lengths):
            for d, name in named.items():
                place = f"dimension {d} of {shown(path)} {list(tensor.shape)}"
                size, first = found.setdefault(name, (tensor.shape[d], place))
                if size != tensor.shape[d]:
                    raise Unexportable(f"{name!r} of dynamic_shapes is {size} in {first} and {tensor.shape[d]} in {place}; sizes of one name are equal")

    def is_one(self, value: list) -> bool:
        """Whether a list is a batch itself: the only argument, or the arguments in order."""
        for args in ((value,), tuple(value)):
            with contextlib.suppress(Unexportable):
                if self._flat(args, {}).keys() == self._values.keys():
                    return True
        return False

    def _dimensions(self, batch_dims: Mapping[str, int | None]) -> list[int | None]:
        given = self._by_path("batch_dims", batch_dims)
        firsts = [self._values[path].shape[0] for path in self._paths if path not in given and self._values[path].dim()]
        counts = Counter([size for size in firsts if size != 1] or firsts).most_common()  # one of 1 is for all samples
        usual = counts[0][0] if firsts else None
        self.guessed = len(counts) > 1
        if len(counts) > 1 and counts[0][1] == counts[1][1]:
            sizes = {shown(path): list(self._values[path].shape) for path in self._paths if path not in given}
            raise Unexportable(
                f"inputs have different leading sizes, {sizes}, and none is that of most: say which dimension counts samples, None for inputs "
                'that every microbatch gets whole: batch_dims={"tokens": 0, "positions": None}'
            )
        found = []
        for path in self._paths:
            value = self._values[path]
            at = given[path] if path in given else 0 if value.dim() and value.shape[0] == usual else None
            if at is not None and not 0 <= at < value.dim():
                raise Unexportable(f"batch_dims: {shown(path)} {list(value.shape)} has no dimension {at}")
            found.append(at)
        sizes = {shown(path): self._values[path].shape[at] for path, at in zip(self._paths, found) if at is not None}
        if len(set(sizes.values())) != 1:
            raise Unexportable(
                f"inputs have different numbers of samples: {sizes}. Say which dimension is the batch: "
                'batch_dims={"tokens": 1, "positions": None}'
                if sizes
                else "no input has a batch dimension"
            )
        return found

    def call(self, module_forward: Callable[..., Any], tensors: Sequence[torch.Tensor], loss: Callable | None) -> tuple[Any, Any]:
        """What the module makes of these tensors, and what the loss beside it makes of that, else the same."""
        by_path = dict(zip(self._paths, tensors))

        def tensor(prefix: Any) -> Callable[[Path, Any], Any]:
            return lambda path, value: by_path.get((prefix, *path), value)

        names = [self._forward[i] if i < len(self._forward) else f"argument_{i}" for i in range(len(self._args))]
        args = tuple(rebuilt(value, tensor(name)) for name, value in zip(names, self._args))
        kwargs = {name: rebuilt(value, tensor(name)) for name, value in self._kwargs.items()}
        if loss is None:
            output = module_forward(*args, **kwargs)
            return output, output
        own_args = args if self._more_by_position else args[: len(self._forward)]
        own_kwargs = kwargs if self._more_by_name else {name: value for name, value in kwargs.items() if name in self._forward}
        output = module_forward(*own_args, **own_kwargs)
        if is_of_torch(loss):
            rest = [*args[len(self._forward) :], *(value for name, value in kwargs.items() if name not in self._forward)]
            if len(rest) != 1 or self._more_by_position or self._more_by_name:
                raise Unexportable(
                    f"{type(loss).__name__ if isinstance(loss, nn.Module) else loss.__name__} takes what forward returns and one target, and the "
                    f"batch has {len(rest)} arguments that forward does not have: say which, loss=lambda output, batch: loss(output, batch[\"labels\"])"
                )
            return output, called(loss)(output, rest[0])
        batch = (args, kwargs) if args and kwargs else kwargs if not args else args[0] if len(args) == 1 else args
        return output, called(loss)(output, batch)

    def leaves(self, args: tuple, kwargs: Mapping[str, Any], stood_in: list[int] | None = None) -> list[torch.Tensor]:
        """A batch as the graph's inputs, in their order. Unexportable if it is not as the captured one, but for samples.

        stood_in: gets the numbers of the inputs that are not there or None, which zeros stand in for; None = all must be there.
        """
        values = self._flat(args, kwargs)
        is_whole = values.keys() == self._values.keys() or stood_in is not None and values.keys() <= self._values.keys()
        if len(args) == 1 and not kwargs and not is_whole:
            inner = args[0]  # the batch itself, as plan() takes it
            if isinstance(inner, Mapping):
                values = self._flat((), inner)
            elif isinstance(inner, (tuple, list)):
                values = self._flat(tuple(inner), {})
        if stood_in is not None:
            self._stand_in(values, stood_in)
        if values.keys() != self._values.keys():
            missing = [shown(path) for path in self._values if path not in values]
            unknown = [shown(path) for path in values if path not in self._values]
            raise Unexportable(
                "the batch is not as the one that was planned for: it "
                + " and ".join(
                    [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(unknown)} besides"] * bool(unknown)
                )
            )
        for path, value in self._values.items():
            if not isinstance(value, torch.Tensor) and (isinstance(values[path], torch.Tensor) or values[path] != value):
                raise Unexportable(f"{shown(path)} of the batch is {values[path]!r}; the graph holds for {value!r}: plan again")
        found = [values[path] for path in self._paths]
        for path, at, example, tensor, named in zip(self._paths, self.dimensions, self.examples, found, self.lengths):
            if not isinstance(tensor, torch.Tensor):
                raise Unexportable(f"{shown(path)} of the batch is {tensor!r}; the graph takes a tensor")
            differing = [d for d, (a, b) in enumerate(zip(example.shape, tensor.shape)) if a != b and d != at and (d not in named or b < 2)]
            if differing or tensor.dim() != example.dim():
                open_at = "" if at is None else f", where dimension {at} counts samples"
                remedy = ""
                if tensor.dim() == example.dim():
                    d = differing[0]
                    remedy = f", or leave dimension {d} open: dynamic_shapes={{{shown(path)!r}: {{{d}: 'length'}}}} of plan() and capture()"
                    if d in named:
                        remedy = f"; dimension {d} is open from 2 on"
                raise Unexportable(
                    f"{shown(path)} of the batch is {list(tensor.shape)}; the graph holds for {list(example.shape)}{open_at}: plan again{remedy}"
                )
            if tensor.dtype != example.dtype:
                raise Unexportable(f"{shown(path)} of the batch is {tensor.dtype}; the graph holds for {example.dtype}")
        counts = {shown(path): tensor.shape[at] for path, at, tensor in zip(self._paths, self.dimensions, found) if at is not None}
        if len(set(counts.values())) != 1:
            raise Unexportable(f"inputs have different numbers of samples: {counts}")
        self._refuse_unequal(found, self.lengths)
        return found

    def _stand_in(self, values: dict[Path, Any], stood_in: list[int]) -> None:
        """Adds zeros for the inputs that a batch lacks, for as many samples as the others have."""
        there = [values.get(path) for path in self._paths]
        sizes = [leaf.shape[at] for leaf, at in zip(there, self.dimensions) if at is not None and isinstance(leaf, torch.Tensor) and at < leaf.dim()]
        for i, (path, example, at) in enumerate(zip(self._paths, self.examples, self.dimensions)):
            if there[i] is None and sizes:
                shape = [sizes[0] if d == at else size for d, size in enumerate(example.shape)]
                values[path] = torch.zeros(shape, dtype=example.dtype)
                stood_in.append(i)

    def split(self, leaves: Sequence[torch.Tensor], sizes: Sequence[int]) -> list[list[torch.Tensor]]:
        """[microbatch][input] In the order in memory that the graph was traced for."""
        parts = []
        for leaf, at, example in zip(leaves, self.dimensions, self.examples):
            own = [leaf] * len(sizes) if at is None else list(leaf.split(list(sizes), at))
            parts.append([part.contiguous() if example.is_contiguous() else part for part in own])
        return [list(split_leaf) for split_leaf in zip(*parts)]
