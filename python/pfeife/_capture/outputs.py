"""What a module returns besides its loss, for passes forward only: which values of the graph it consists of.

The planner's graph ends with the loss. Operators that only outputs need (an argmax of logits) are taken out of it and run behind
the pass. Not here: outputs that need weights which the loss does not need; they are None, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from .batch import PLAIN, Path, rebuilt, shown
from .terms import SHAPED, name_of, symbols_of

KEY = "output"  # of the traced program's results, until cut() takes it out


class Outputs:
    """values: names of the graph's values that the outputs consist of, without the model's inputs."""

    def __init__(self) -> None:
        self._frame: Any = None
        self._paths: list[Path] = []
        self._nodes: list[fx.Node | None] = []
        self._dimensions: list[int | None] = []
        self._read: list[set[str]] = []  # by path, the model's inputs that it depends on
        self._behind: fx.GraphModule | None = None
        self.values: list[str] = []

    def keep(self, output: Any) -> list[torch.Tensor]:
        """The tensors in what the module returned."""
        kept: dict[Path, torch.Tensor] = {}

        def leaf(path: Path, value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                kept[path] = value
            return value if isinstance(value, PLAIN) else None

        self._frame = rebuilt(output, leaf)
        self._paths = list(kept)
        return list(kept.values())

    def cut(self, program: torch.export.ExportedProgram, microbatch: int, notes: list[str], lengths: Set[Any] = frozenset()) -> None:
        """Takes the outputs, and what only they need, out of the program. lengths: symbols of open sizes that count no samples."""
        graph, signature, count = program.graph_module.graph, program.graph_signature, len(self._paths)
        results = list(graph.output_node().args[0])
        kept = len(results) - count
        returned = results[kept:]
        graph.output_node().args = (tuple(results[:kept]),)
        del signature.output_specs[len(signature.output_specs) - count :]
        call = program.module_call_graph[0].signature
        del call.outputs[len(call.outputs) - count :]
        spec = pytree.tree_unflatten(list(range(call.out_spec.num_leaves)), call.out_spec)
        del spec[KEY]
        call.out_spec = pytree.tree_structure(spec)
        own = set(signature.user_inputs)
        behind: dict[fx.Node, None] = {}  # backwards
        needed: set[fx.Node] = {result for result in returned if isinstance(result, fx.Node)}
        for node in reversed(list(graph.nodes)):
            if node in needed and node.op == "call_function" and all(user in behind for user in node.users) and not node.is_impure():
                behind[node] = None
                needed.update(node.all_input_nodes)
        reads: dict[fx.Node, set[str]] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                reads[node] = {node.name} & own
            elif name_of(node) in SHAPED:  # which zeros in a missing input's place have, too
                reads[node] = set()
            else:
                reads[node] = set().union(*(reads[source] for source in node.all_input_nodes))
        copies: dict[fx.Node, fx.Node] = {}
        tail = fx.Graph()
        for node in reversed(behind):
            for source in node.all_input_nodes:
                if source not in behind and source not in copies and (source.op == "call_function" or source.name in own):
                    copies[source] = tail.placeholder(source.name)
        for node in reversed(behind):
            if all(source in copies for source in node.all_input_nodes):
                copies[node] = tail.node_copy(node, copies.__getitem__)
        for path, node in zip(self._paths, returned):
            is_there = isinstance(node, fx.Node) and (node in copies or node not in behind and (node.op == "call_function" or node.name in own))
            joined = joins(node.meta["val"], microbatch, lengths) if is_there else ()
            if len(joined) > 1:
                notes.append(f"pipe(): {shown(path)} is None: samples may lie along several of its dimensions, {list(node.meta['val'].shape)}, as where it compares those of a microbatch")
            elif not is_there:
                notes.append(f"pipe(): {shown(path)} is None: it needs weights that the loss does not need")
            self._nodes.append(node if is_there and len(joined) < 2 else None)
            self._dimensions.append(joined[0] if joined else None)
            self._read.append(reads[node] if isinstance(node, fx.Node) else set())
        results = [node for node in self._nodes if node is not None]
        for node in results:
            if node not in copies:
                copies[node] = tail.placeholder(node.name)
        tail.output(tuple(copies[node] for node in results))
        self._behind = fx.GraphModule({}, tail)
        self._asked = [node.name for node in tail.nodes if node.op == "placeholder"]
        self.values = [name for name in self._asked if name not in own]
        for node in behind:
            graph.erase_node(node)
        program.graph_module.recompile()

    def rename(self, names: Mapping[str, str]) -> None:
        """After values of the graph got other names."""
        self._asked = [names.get(name, name) for name in self._asked]
        self.values = [names.get(name, name) for name in self.values]

    def without(self, inputs: set[str]) -> list[Path]:
        """The outputs that depend on none of these inputs of the model."""
        return [path for path, node, read in zip(self._paths, self._nodes, self._read) if node is not None and not read & inputs]

    def assembled(self, parts: Sequence[Mapping[str, Any]], shares: Sequence[float], missing: set[str]) -> Any:
        """What the module returns. parts: [microbatch] values and the model's inputs by name. shares: [microbatch] of the loss.
        missing: inputs that the batch did not have; what depends on them is None."""
        assert self._behind is not None
        results = [self._behind(*[part[name] for name in self._asked]) for part in parts]
        joined = iter(zip(*results))
        of_path: dict[Path, Any] = {}
        for path, node, dimension in zip(self._paths, self._nodes, self._dimensions):
            if node is not None:
                of_all = next(joined)
                if dimension is not None:
                    of_path[path] = torch.cat(of_all, dimension)
                elif of_all[0].is_floating_point():
                    of_path[path] = sum(scalar.double() * share for scalar, share in zip(of_all, shares)).to(of_all[0].dtype)
                else:
                    of_path[path] = sum(of_all)
        there = self.without(missing)
        return rebuilt(self._frame, lambda path, value: of_path[path] if path in there else value)


def joins(value: Any, microbatch: int, lengths: Set[Any]) -> list[int]:
    """The dimensions that samples may lie along; none of a number for all samples."""
    if not isinstance(value, torch.Tensor):
        return []
    if found := [d for d, size in enumerate(value.shape) if set(symbols_of(size)) - lengths]:
        return found
    return ([d for d, size in enumerate(value.shape) if isinstance(size, int) and size == microbatch] or [0]) if value.dim() else []
