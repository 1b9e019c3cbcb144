"""Slices of a microbatch's sequence, as schedules of seq1f1b, terapipe and slimpipe cut it: what a stage does with one.

Every value of the graph either has the sequence along a dimension, which operators carry on by the rules below, or is the same
for all slices. Attention reads keys and values of earlier slices as leaves, on which autograd adds up the gradients of later
slices until the slice's own backward takes them. They stay until then, also where the attention is computed again; those of a
sequence's last slice nobody reads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ._core import ConfigError

POINTWISE = {
    *("add sub mul div neg pow rsqrt sqrt exp log tanh sigmoid relu gelu silu sin cos clone contiguous to _to_copy alias".split()),
    *("dropout detach type_as".split()),
}
VIEWS = {"view", "reshape", "_unsafe_view", "flatten"}


class Along(NamedTuple):
    """dimension: of the sequence. merged: behind samples, in one dimension with them."""

    dimension: int
    merged: bool = False


def name_of(node: Any) -> str:
    packet = getattr(node.target, "overloadpacket", node.target)
    return str(getattr(packet, "__name__", packet))


def shape_of(node: Any) -> list[Any]:
    value = node.meta["val"]
    return list((value[0] if isinstance(value, (list, tuple)) else value).shape)


def argument(node: Any, place: int, name: str, default: Any) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


class Leaf:
    """A slice's key or value as later slices read it; its gradient is what they add. alone: it stays without the rest of its
    storage, which is computed again in backward, or offloaded. Inside a reentrant checkpoint, where autograd is off, it takes a
    gradient in any case.
    """

    def __init__(self, source: torch.Tensor, alone: bool):
        copies = alone and source.untyped_storage().nbytes() > source.nbytes
        self.tensor = (source.detach().clone() if copies else source.detach()).requires_grad_(
            source.requires_grad or not torch.is_grad_enabled()
        )
        self._joined = False

    def join(self, source: torch.Tensor) -> None:
        """Adds the gradient to that of the tensor that it was made of, once: of the first that has a graph."""
        if self._joined or not source.requires_grad or not torch.is_grad_enabled():
            return
        leaf = self.tensor
        source.register_hook(lambda gradient: gradient if leaf.grad is None else gradient + leaf.grad)
        self._joined = True


class Slices:
    """How a captured program runs by slices. ends: of the plan's slices, as shares of the sequence. lengths: in tokens,
    if they are others.

    Errors: ConfigError naming the operator that mixes positions.
    """

    def __init__(self, program: Any, ends: Sequence[float], lengths: Sequence[int] | None = None):
        self.count = count = len(ends)
        self._inputs = program.inputs
        sizes = {shape_of(node)[1] for node in program.inputs if len(shape_of(node)) > 1}
        if len(sizes) != 1 or not all(isinstance(size, int) for size in sizes):
            raise ConfigError(
                f"slices: the inputs' second dimension, which is taken for the sequence, is {sorted(map(str, sizes))} long; it must be "
                "of one fixed length"
            )
        self.length: int = sizes.pop()
        if lengths is None:
            borders = [0, *(round(end * self.length) for end in ends)]
            lengths = [end - begin for begin, end in zip(borders, borders[1:])]
        if len(lengths) != count or sum(lengths) != self.length or min(lengths) < 1:
            raise ConfigError(f"slice_lengths {list(lengths)}: needed are {count} lengths of 1 and more that add up to {self.length}")
        self._lengths = list(lengths)
        self._begins = [sum(lengths[:k]) for k in range(count)]
        self.along: dict[fx.Node, Along | None] = {}
        self._cut: dict[fx.Node, list[int]] = {}  # operands that are the same for all slices and lie along the sequence
        self._labels: Any = None
        for node in program.graph.nodes:
            if node.op == "placeholder":
                self.along[node] = Along(1) if node in program.inputs and len(shape_of(node)) > 1 else None
            elif node.op == "call_function":
                self.along[node] = self._rule(node, node is program.outputs[0])
        if self._labels not in program.inputs:
            raise ConfigError("slices: the loss must be F.cross_entropy, a mean, whose labels are an input of the model")
        self._label_input = program.inputs.index(self._labels)
        self._kept: dict[tuple[int, str], list[list[Leaf]]] = {}  # [slice] key and value

    # Where the sequence lies.

    def _refuse(self, node: Any, why: str) -> ConfigError:
        return ConfigError(
            f"slices: {name_of(node)} ({node.name}) {why}; plan families of whole microbatches (1f1b), or leave it out of the model"
        )

    def _rule(self, node: Any, is_loss: bool) -> Along | None:
        operands = {source: self.along[source] for source in node.all_input_nodes if self.along.get(source)}
        if not operands:
            return None
        name, first = name_of(node), node.args[0]
        along = self.along.get(first) if isinstance(first, fx.Node) else None
        if name == "sym_size":
            if along == Along(node.args[1] % len(shape_of(first))):
                raise self._refuse(node, "reads the length of the sequence")
            return None
        if name == "dropout" and node.args[1] and node.args[2]:
            raise self._refuse(node, "draws other numbers for slices than for whole sequences: set dropout to 0")
        if name in POINTWISE:
            return self._pointwise(node, operands)
        if name == "embedding":
            if self.along.get(node.args[1]) and not along:
                return self.along[node.args[1]]
        elif name == "scaled_dot_product_attention":
            return self._attention(node)
        elif name == "cross_entropy_loss":
            self._loss(node, is_loss)
            return None
        elif along is None:
            pass
        elif name in ("linear", "matmul"):
            if len(operands) == 1 and along.dimension != len(shape_of(first)) - 1:
                return along
        elif name in ("layer_norm", "rms_norm"):
            if len(operands) == 1 and along.dimension < len(shape_of(first)) - len(node.args[1]):
                return along
        elif name in VIEWS or (name == "unflatten" and node.args[1] % len(shape_of(first)) != along.dimension):
            return self._viewed(node, along)
        elif name in ("transpose", "permute"):
            rank = len(shape_of(first))
            order = list(range(rank))
            if name == "permute":
                order = [dimension % rank for dimension in node.args[1]]
            else:
                a, b = (dimension % rank for dimension in node.args[1:3])
                order[a], order[b] = order[b], order[a]
            return Along(order.index(along.dimension), along.merged)
        elif name == "unsqueeze":
            at = node.args[1] % (len(shape_of(first)) + 1)
            return Along(along.dimension + (at <= along.dimension), along.merged)
        elif name in ("softmax", "select", "unbind", "chunk", "split", "split_with_sizes", "slice"):
            at = argument(node, {"softmax": 1, "select": 1, "unbind": 1, "slice": 1}.get(name, 2), "dim", 0) % len(shape_of(first))
            if at != along.dimension:
                return Along(along.dimension - (name in ("select", "unbind") and at < along.dimension), along.merged)
        elif node.target is operator.getitem:
            return along
        raise self._refuse(node, "meets the sequence, and is not known to treat positions one by one")

    def _pointwise(self, node: Any, operands: dict[fx.Node, Any]) -> Along:
        rank = len(shape_of(node))
        # Counted from behind, as shapes are broadcast.
        found = {(operand.dimension - len(shape_of(value)), operand.merged) for value, operand in operands.items()}
        if len(found) > 1:
            raise self._refuse(node, "has the sequence along several dimensions")
        behind, merged = found.pop()
        for place, argument in enumerate(node.args):
            if isinstance(argument, fx.Node) and argument not in operands and isinstance(argument.meta.get("val"), torch.Tensor):
                shape = shape_of(argument)
                if len(shape) >= -behind and shape[behind] != 1:
                    if merged:
                        raise self._refuse(node, "joins samples and sequence in one dimension with what is the same for all slices")
                    self._cut.setdefault(node, []).append(place)
        if node in self._cut:
            self._cut[node].append(behind)
        return Along(rank + behind, merged)

    def _attention(self, node: Any) -> Along:
        places = [(self.along.get(argument), len(shape_of(argument))) for argument in node.args[:3]]
        if any(place is None or place.merged or place.dimension != rank - 2 for place, rank in places):
            raise self._refuse(node, "has the sequence elsewhere than in the last dimension but one of queries, keys and values")
        if not argument(node, 5, "is_causal", False) or argument(node, 3, "attn_mask", None) is not None:
            raise self._refuse(node, "is not causal (is_causal=True, no mask): earlier slices would need later ones")
        if argument(node, 4, "dropout_p", 0.0):
            raise self._refuse(node, "draws other numbers for slices than for whole sequences: set dropout to 0")
        return Along(places[0][1] - 2)

    def _loss(self, node: Any, is_loss: bool) -> None:
        scores, labels = node.args[:2]
        if not is_loss or argument(node, 2, "weight", None) is not None or argument(node, 3, "reduction", 1) != 1:
            raise self._refuse(node, "is not the module's loss, an unweighted mean over labels")
        if not self.along.get(scores) or not self.along.get(labels) or labels.meta["val"].is_floating_point():
            raise self._refuse(node, "has scores or labels without the sequence")
        while labels.op == "call_function" and name_of(labels) in VIEWS | {"contiguous", "clone", "to"}:
            labels = labels.args[0]
        self._labels, self._ignored = labels, argument(node, 4, "ignore_index", -100)

    def _viewed(self, node: Any, along: Along) -> Along:
        """The sequence lies behind as many elements as before."""
        before, after = shape_of(node.args[0]), shape_of(node)
        if along.merged:
            if along.dimension == 0 and before[0] == after[0]:
                return along
            raise self._refuse(node, "takes samples and sequence apart")

        def product(sizes: Sequence[Any]) -> Any:
            total: Any = 1
            for size in sizes:
                total = total * size
            return total

        ahead = product(before[: along.dimension])
        for at, size in enumerate(after):
            if size == self.length and product(after[:at]) == ahead:
                return Along(at)
        if along.dimension == 1 and after and after[0] == before[0] * self.length:
            return Along(0, merged=True)
        raise self._refuse(node, "merges the sequence with other dimensions")

    # What a slice's operators do.

    def operator(self, node: Any, target: Any, again: bool = False) -> Callable[..., Any]:
        """What a stage calls in an operator's place. again: it is computed again in backward."""
        name = name_of(node)
        along = self.along.get(node)
        if name == "cross_entropy_loss":
            # A sum, which the slice's share divides by the microbatch's labels.
            def summed(scores: Any, labels: Any, weight: Any = None, reduction: int = 1, *others: Any, **how: Any) -> Any:
                return target(scores, labels, weight, 2, *others, **{k: value for k, value in how.items() if k != "reduction"})

            return summed
        if along is None:
            return target
        if name == "scaled_dot_product_attention":
            return self._attending(node, again)
        if name in VIEWS - {"flatten"}:

            def viewed(value: Any, shape: Sequence[Any]) -> Any:
                shape = list(shape)
                if shape[along.dimension] != -1:
                    here = self._lengths[self._slice]
                    whole = shape[along.dimension]
                    shape[along.dimension] = whole // self.length * here if along.merged else here
                return target(value, shape)

            return viewed
        if node in self._cut:
            *places, behind = self._cut[node]

            def cut(*args: Any, **how: Any) -> Any:
                given = [self._piece(argument, behind) if i in places else argument for i, argument in enumerate(args)]
                return target(*given, **how)

            return cut
        return target

    def _piece(self, value: torch.Tensor, dimension: int) -> torch.Tensor:
        return value.narrow(dimension, self._begins[self._slice], self._lengths[self._slice])

    def _attending(self, node: Any, again: bool) -> Callable[..., Any]:
        how = {name: node.kwargs[name] for name in ("scale", "enable_gqa") if name in node.kwargs}

        def attend(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> Any:
            kept = self._kept.setdefault((self._microbatch, node.name), [])
            if len(kept) == self._slice < self.count - 1:  # the first time, and later slices read them
                kept.append([Leaf(tensor, again or self._offloads) for tensor in (key, value)])
            for piece in kept[self._slice : self._slice + 1]:
                for leaf, tensor in zip(piece, (key, value)):
                    leaf.join(tensor)
            keys, values = (
                torch.cat([*(piece[i].tensor for piece in kept[: self._slice]), own], -2) for i, own in enumerate((key, value))
            )
            mask = torch.ones(query.shape[-2], keys.shape[-2], dtype=torch.bool, device=query.device)
            return torch.nn.functional.scaled_dot_product_attention(
                query, keys, values, attn_mask=mask.tril(keys.shape[-2] - query.shape[-2]), **how
            )

        return attend

    # Of a pass.

    def at(self, number: int, offloads: bool = False) -> None:
        """From now on, operators compute this slice, of all slices of all microbatches. offloads: what they save can leave the device."""
        self._offloads = offloads
        self._microbatch, self._slice = divmod(number, self.count)

    def drop(self, names: set[str]) -> None:
        """Forgets keys and values of the slice in the attentions of these names, behind its backward."""
        for name in names:
            if kept := self._kept.get((self._microbatch, name)):
                del kept[self._slice :]

    def forget(self) -> None:
        self._kept.clear()

    def labels(self, part: Sequence[torch.Tensor]) -> int:
        """How many of a microbatch count."""
        return int((part[self._label_input] != self._ignored).sum())

    def cut(self, micro: Sequence[Sequence[torch.Tensor]], shares: Sequence[float]) -> tuple[list[list[torch.Tensor]], list[float]]:
        """Inputs and shares of slices, of those of microbatches."""
        parts, of_slices = [], []
        for m, part in enumerate(micro):
            labels = self.labels(part)
            for begin, length in zip(self._begins, self._lengths):
                parts.append([
                    value.narrow(1, begin, length) if self.along[node] else value for node, value in zip(self._inputs, part)
                ])
                of_slices.append(shares[m] / labels if labels else 0.0)
        return parts, of_slices + [0.0] * (len(shares) - len(micro)) * self.count
