"""How the loss of a batch is made of those of its microbatches: which means over labels and masks it consists of, whose counts a
microbatch has to be given, and what takes the samples of a microbatch together otherwise, so that no weight makes up for it.

The samples of an open graph lie along the dimensions of symbolic size, of a graph that was recorded to look for them along multiples
of PROBE. Of any other graph only the loss's own reductions and batch norm are known. Not here: what counts are (_terms.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

import torch
from torch import fx

from .errors import where_recorded, with_text

LABELLED = {"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d"}
PROBE = 1009  # samples: a number that no size of a model is a multiple of
LINEAR = {"to", "_to_copy", "view", "reshape", "squeeze", "unsqueeze", "neg", "clone", "alias", "detach", "contiguous", "expand", "select", "flatten"}
NORMS = {"batch_norm", "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm"}
ALONG = {"softmax", "_softmax", "log_softmax", "_log_softmax", "cumsum", "cumprod", "cummax", "logcumsumexp", "flip", "roll", "renorm"}
SELECTING = {"index", "index_select", "gather", "take", "index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "index_copy"}
SHAPED = {"sym_size", "arange", *(f"{kind}_like" for kind in ("zeros", "ones", "full", "empty")), *(f"new_{kind}" for kind in ("zeros", "ones", "full", "empty"))}
COUNTING = {"histc", "bincount"}
HOW = "fewer, larger microbatches come nearer to the batch's"


class Count(NamedTuple):
    """A mean's count. node: the operator, a loss over labels or a division by `divisor`. of_sum: whether it divides a sum."""

    node: fx.Node
    divisor: fx.Node | None
    of_sum: bool


def name_of(node: fx.Node) -> str:
    return str(getattr(getattr(node.target, "overloadpacket", node.target), "__name__", node.target)).rpartition(".")[2]


def argument(node: fx.Node, name: str, default: Any = None) -> Any:
    schema = getattr(node.target, "_schema", None)
    for i, formal in enumerate(schema.arguments if schema else ()):
        if formal.name == name:
            return node.args[i] if i < len(node.args) else node.kwargs.get(name, formal.default_value)
    return default


class Terms:
    """Which values of a graph are sums or means over samples. The graph's first output is the loss.

    parameters: names of the graph's inputs that are trained. whole: of those that every microbatch gets whole.
    weighed: the module names the weight of a microbatch, so that counts are its own. lengths: symbols of sizes that are open, and count no samples.
    counts: of means that are not over all samples alike. is_one_mean: whether the loss is a single one, up to constants.
    doubts: sentences about what a microbatch's loss does not say of the batch's.
    """

    def __init__(self, graph: fx.Graph, loss: fx.Node, inputs: Iterable[fx.Node], parameters: set[str], whole: set[str], weighed: bool = False, lengths: Set[Any] = frozenset()):
        self.counts: list[Count] = []
        self.doubts: list[str] = []
        self._reductions = 0
        self._loss = loss
        self._tail: set[fx.Node] = set()
        symbols = {symbol for node in inputs if node.name not in whole for size in sizes_of(node) for symbol in symbols_of(size)} - lengths
        probed = any(PROBE in sizes_of(node) for node in inputs)
        self._is_open = bool(symbols) or probed
        self._samples: dict[fx.Node, list[int]] = {}  # dimensions along which they lie
        self._of_batch: set[fx.Node] = set()
        self._of_values: set[fx.Node] = set()  # and not only of the number of samples
        self._of_weights: set[fx.Node] = set()  # and of random numbers
        own = {node.name for node in inputs} - whole
        for node in graph.nodes:
            self._samples[node] = [
                d
                for d, size in enumerate(sizes_of(node))
                if (isinstance(size, int) and size and size % PROBE == 0 if probed else not symbols.isdisjoint(symbols_of(size)))
            ]
            before = node.all_input_nodes
            if node.op == "placeholder" and node.name in own or not self._of_batch.isdisjoint(before):
                self._of_batch.add(node)
                if node.op == "placeholder" or not self._of_values.isdisjoint(before) and name_of(node) not in SHAPED:
                    self._of_values.add(node)
            random = node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            if node.name in parameters or random or not self._of_weights.isdisjoint(before):
                self._of_weights.add(node)
        kinds = self._kinds(loss)
        if "sum" in kinds:
            self._doubt(loss, "the loss is a sum over samples, of which step() takes the mean over microbatches, not the sum; a mean has no such factor")
        if weighed:
            self.counts, self.doubts = [], []
        self.is_one_mean = self._reductions == 1 and len(self.counts) == 1
        self._doubt_couplings(graph)

    # The loss, backwards to its reductions over samples.

    def _is_reduced(self, node: fx.Node) -> bool:
        if self._is_open:
            return not self._samples[node]
        value = node.meta.get("val")
        return not isinstance(value, torch.Tensor) or value.numel() == 1 or name_of(node) == "stack" and all(map(self._is_reduced, node.all_input_nodes))

    def _kinds(self, node: Any) -> set[str]:
        """Which of "mean" and "sum" over samples a value consists of, linearly; none: it is the same for all microbatches."""
        if not isinstance(node, fx.Node) or node not in self._of_batch:
            return set()
        self._tail.add(node)
        name, operands = name_of(node), node.all_input_nodes
        batch = [operand for operand in operands if operand in self._of_batch]
        if all(self._is_reduced(operand) for operand in batch):
            if name in LINEAR or name in ("stack", "cat", "mean", "sum"):
                return set().union(*map(self._kinds, batch))
            if name in ("add", "sub", "add_", "sub_"):
                return set().union(*map(self._kinds, batch))
            if name in ("mul", "mul_") and len(batch) == 1 and operands.count(batch[0]) == 1:
                return self._kinds(batch[0])
            if name in ("div", "div_", "true_divide") and isinstance(node.args[0], fx.Node):
                return self._divided(node, *node.args[:2])
            return self._cannot(node, f"{name} of means over samples is no mean over samples")
        self._reductions += 1
        how = argument(node, "reduction")
        if name in LABELLED and how == 1 and not node.args[1].meta["val"].is_floating_point():
            if self._of_weights.isdisjoint([factor for factor in node.args[1:3] if isinstance(factor, fx.Node)]):
                self.counts.append(Count(node, None, True))
                return {"mean"}
            return self._cannot(node, "its labels depend on weights or random numbers, so that their count is not known before the step")
        if how in (1, 2) or name in ("mean", "sum"):
            return {"mean" if how == 1 or name == "mean" else "sum"}
        return self._cannot(node, f"{name} takes the samples of a microbatch together")

    def _divided(self, node: fx.Node, value: fx.Node, divisor: Any) -> set[str]:
        if not isinstance(divisor, fx.Node) or divisor not in self._of_batch:
            kinds = self._kinds(value)
            by_samples = isinstance(divisor, int) and divisor % PROBE == 0 if self._is_open else True  # by a size that is fixed
            return {"mean"} if kinds and by_samples else kinds
        kinds = self._kinds(value)
        is_counted = divisor not in self._of_weights and (self._is_open or self.is_sum(divisor))
        if not is_counted or len(kinds) > 1 or argument(node, "rounding_mode") is not None:
            return self._cannot(node, "the count of this mean is not known before the step")
        self.counts.append(Count(node, divisor, kinds == {"sum"}))
        return {"mean"}

    def is_sum(self, node: fx.Node) -> bool:
        """Whether the batch's is the sum of the microbatches'."""
        while name_of(node) in LINEAR:
            node = node.args[0]  # type: ignore[assignment]
        return name_of(node) in ("sum", "sym_size", "count_nonzero")

    def _cannot(self, node: fx.Node, why: str) -> set[str]:
        self._doubt(node, why)
        return {"mean"}

    def _doubt(self, node: fx.Node, why: str) -> None:
        place = where_recorded(node.meta.get("stack_trace") or "")
        at = f" ({with_text(place)})" if place else ""
        if place and any(place in doubt for doubt in self.doubts):
            return
        doubt = f"the loss is computed a microbatch at a time, and is not that of the whole batch: {why}{at}; {HOW}"
        if doubt not in self.doubts:
            self.doubts.append(doubt)

    # What comes before.

    def _doubt_couplings(self, graph: fx.Graph) -> None:
        needed: set[fx.Node] = set()
        stack = [self._loss]
        counted = {count.divisor for count in self.counts}
        while stack:
            node = stack.pop()
            if node not in needed and node not in counted:
                needed.add(node)
                stack += [source for source in node.all_input_nodes if source in self._of_batch]
        seen: set[str] = set()
        for node in graph.nodes:
            if node in needed and node not in self._tail and node.op == "call_function" and (why := self._coupling(node)) and why not in seen:
                seen.add(why)
                self._doubt(node, why)

    def _coupling(self, node: fx.Node) -> str:
        name = name_of(node)
        if name in NORMS and argument(node, "training", argument(node, "train", False)):
            return "batch norm takes the statistics of a microbatch"
        before = max((len(self._samples[source]) for source in node.all_input_nodes), default=0)
        value = node.meta.get("val")
        if not before or not isinstance(value, torch.Tensor) or node not in self._of_values:
            return ""
        if len(self._samples[node]) > max(before, 1):
            return f"{name} compares the samples of a microbatch with each other"
        if not self._samples[node] and value.is_floating_point() and name not in COUNTING:
            return f"{name} takes the samples of a microbatch together"
        if name in ALONG or name in SELECTING:
            first: Any = node.args[0]
            own = self._samples.get(first, [])
            if name == "index":
                chosen = [index for d, index in enumerate(node.args[1]) if d in own and isinstance(index, fx.Node)]  # type: ignore[arg-type, union-attr]
            else:
                dims = argument(node, "dim", argument(node, "dims", 0))
                rank = len(sizes_of(first))
                if not {d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims])} & set(own):
                    return ""
                chosen = [index for index in (argument(node, "index"),) if isinstance(index, fx.Node)]
            if name in ALONG or any(index in self._of_values and index not in self._of_weights or self._drawn(index) for index in chosen):
                return f"{name} mixes the samples of a microbatch"
        return ""

    def _drawn(self, node: fx.Node) -> bool:
        return node in self._of_weights and node not in self._of_values


def sizes_of(node: fx.Node) -> list[Any]:
    value = node.meta.get("val")
    return list(value.shape) if isinstance(value, torch.Tensor) else []


def symbols_of(size: Any) -> Iterator[Any]:
    if isinstance(size, torch.SymInt):
        yield from getattr(size.node.expr, "free_symbols", ())
