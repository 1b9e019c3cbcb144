"""Sizes and shapes of values that a stage does not have: made of the sizes of the model's inputs, which every rank has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._sympy.printers import PythonPrinter

aten = torch.ops.aten
# Operators that read shape and type of a tensor alone.
METADATA_ONLY = {getattr(aten, name) for name in "zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty".split()}


def reads_metadata_only(node: fx.Node) -> bool:
    return getattr(node.target, "overloadpacket", None) in METADATA_ONLY


def symbols(value: Any) -> set[Any]:
    return set(value.node.expr.free_symbols) if isinstance(value, torch.SymInt) else set()


def function_of(expression: Any, names: Sequence[str]) -> Callable[..., int]:
    """A function of whole numbers with these names."""
    compute = eval(f"lambda {', '.join(names)}: {PythonPrinter().doprint(expression)}")

    def size(*numbers: int) -> int:
        return int(compute(*numbers))

    return size


def empty(dtype: torch.dtype, device: torch.device, rank: int, *numbers: int) -> torch.Tensor:
    """numbers: sizes, then strides."""
    return torch.empty_strided(numbers[:rank], numbers[rank:], dtype=dtype, device=device)


class Sizes:
    """inputs: the model's, with their traced values."""

    def __init__(self, inputs: Iterable[fx.Node]):
        self._places: dict[Any, tuple[fx.Node, int]] = {}
        self._numbers: dict[fx.Node, int] = {}
        self._functions: dict[Any, tuple[Callable[..., int], list[tuple[int, int]]]] = {}
        for number, node in enumerate(inputs):
            value = node.meta.get("val")
            self._numbers[node] = number
            for dimension, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                    self._places.setdefault(size.node.expr, (node, dimension))

    def shape(self, node: fx.Node, leaves: Sequence[torch.Tensor]) -> torch.Size | None:
        """The shape of the graph's value where these are the model's inputs; None where inputs do not say it."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or self.sources(*value.shape) is None:
            return None
        return torch.Size([self._size(size, leaves) if isinstance(size, torch.SymInt) else size for size in value.shape])

    def _size(self, number: torch.SymInt, leaves: Sequence[torch.Tensor]) -> int:
        expression = number.node.expr
        if expression not in self._functions:
            needed = sorted(symbols(number), key=str)
            places = [(self._numbers[node], d) for node, d in map(self._places.__getitem__, needed)]
            self._functions[expression] = function_of(expression, [str(symbol) for symbol in needed]), places
        compute, places = self._functions[expression]
        return compute(*(leaves[number].shape[d] for number, d in places))

    def sources(self, *numbers: Any) -> list[fx.Node] | None:
        """The inputs whose sizes say these numbers; None where they do not."""
        needed = set().union(*map(symbols, numbers))
        if not needed <= self._places.keys():
            return None
        return list(dict.fromkeys(self._places[symbol][0] for symbol in sorted(needed, key=str)))

    def node(self, graph: fx.Graph, number: Any, value: Callable[[fx.Node], fx.Node]) -> Any:
        """The number, or the node that computes it. value: gives the graph's node of an input."""
        if not isinstance(number, torch.SymInt):
            return number
        expression = number.node.expr
        needed = sorted(symbols(number), key=str)
        sizes = []
        for symbol in needed:
            source, dimension = self._places[symbol]
            sizes.append(graph.call_function(aten.sym_size.int, (value(source), dimension)))
        if expression.is_symbol:
            return sizes[0]
        return graph.call_function(function_of(expression, [str(symbol) for symbol in needed]), tuple(sizes))
