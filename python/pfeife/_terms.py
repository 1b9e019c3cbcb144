"""Means over labels and masks in the loss, as those of the whole batch: each microbatch divides its sum by its share of the batch's
count, in place of its own count, so that the microbatches' losses add up to the module's on the batch (_capture/terms.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import torch
from torch import fx

from ._capture.errors import where_recorded, with_text
from ._capture.terms import Count, Terms, argument
from ._core import ConfigError
from ._operators import Moment


class Means:
    """The counts that losses of a program divide by. whole: names of the inputs that every microbatch gets whole. is_open: whether the graph holds for whole batches."""

    def __init__(self, program: Any, parameters: set[str], whole: set[str], is_open: bool, lengths: Set[Any] = frozenset()):
        self._program, self._is_open = program, is_open
        self.terms = Terms(program.graph, program.outputs[0], program.inputs, parameters, whole, lengths=lengths)
        self.counts: dict[fx.Node, Count] = {count.node: count for count in self.terms.counts}
        self._counters: dict[fx.Node, Callable[[Sequence[torch.Tensor]], torch.Tensor]] = {}

    def refuse_lists(self) -> None:
        """Errors: ConfigError where counts of microbatches that are given one by one do not add up to one of all."""
        for node, count in self.counts.items():
            if count.of_sum and count.divisor is not None and not self.terms.is_sum(count.divisor):
                place = where_recorded(node.meta.get("stack_trace") or "")
                raise ConfigError(
                    f"the loss divides by {count.divisor.name}, which is no sum over the microbatches of a list{f' ({with_text(place)})' if place else ''}: "
                    'divide by a sum, as (labels != -100).sum(), or return {"loss": loss, "loss_weight": weight of this microbatch}'
                )

    def of_batch(self, node: fx.Node, given: Any) -> torch.Tensor:
        """The count that an operator of the whole batch has. given: the batch (Given)."""
        count = self.counts[node]
        if count.divisor is not None and self._is_open and given.samples is None:
            return self.count(node, given.leaves)
        parts = torch.stack([self.count(node, part) for part in given.micro])
        if given.samples is None or count.of_sum:
            return parts.sum(0)
        shares = torch.tensor(given.samples, dtype=parts.dtype, device=parts.device) / sum(given.samples)
        return torch.tensordot(shares, parts, 1)

    def count(self, node: fx.Node, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """The count that the operator has on these inputs."""
        return self._counter(node, self.counts[node])(leaves)

    def _counter(self, node: fx.Node, count: Count) -> Callable[[Sequence[torch.Tensor]], torch.Tensor]:
        if node not in self._counters:
            if count.divisor is not None:
                of_inputs = self._program.of_inputs([count.divisor])
                self._counters[node] = lambda leaves: torch.as_tensor(of_inputs(leaves)[0], dtype=torch.float64)
            else:
                labels, weight, ignored = node.args[1], argument(node, "weight"), argument(node, "ignore_index")
                of_inputs = self._program.of_inputs([operand for operand in (labels, weight) if operand is not None])

                def counted(leaves: Sequence[torch.Tensor]) -> torch.Tensor:
                    labels, *weights = of_inputs(leaves)
                    counts = labels != ignored
                    if not weights:
                        return counts.sum().double()
                    return (weights[0].double()[torch.where(counts, labels, 0)] * counts).sum()

                self._counters[node] = counted
        return self._counters[node]

    def operator(self, node: fx.Node, target: Callable[..., Any], moment: Moment) -> Callable[..., Any]:
        """What a stage calls in an operator's place."""
        count = self.counts.get(node)
        if count is None:
            return target
        name = node.name
        if count.divisor is not None:
            return lambda value, *_, **__: value / moment.divisors[name].to(value.dtype)

        def summed(scores: Any, labels: Any, weight: Any = None, reduction: int = 1, *others: Any, **how: Any) -> Any:
            how.pop("reduction", None)
            total = target(scores, labels, weight, 2, *others, **how)  # a sum
            return total / moment.divisors[name].to(total.dtype)

        return summed

    def divisors(self, counts: Mapping[fx.Node, torch.Tensor], share: float) -> dict[str, torch.Tensor]:
        """What each operator of a microbatch divides by. counts: of the batch, over all replicas. share: of the loss."""
        return {node.name: count * share if self.counts[node].of_sum else count for node, count in counts.items()}

