"""The stages of a plan as modules, cut from a captured program.

A stage is a torch.fx.GraphModule of its nodes in the plan's order; its parameters and buffers are the user's own objects. It
differs from the program in what its operators do besides (_operators.py), and in that it makes tensors on the pipeline's
device.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import fx, nn
from torch.utils._pytree import tree_unflatten

from ._capture.grad_regions import GradientFlow, state_writes
from ._core import ConfigError
from ._shared_head import Head
from ._operators import ACTIVATIONS, Again, Moment, copied, deferred, drawn, draws, in_evaluation
from ._sizes import Sizes, empty, reads_metadata_only
from ._slices import Slices
from ._terms import Means

if TYPE_CHECKING:
    from ._plan import StageInfo


class Given(NamedTuple):
    """A batch. micro: [microbatch][input]. missing: names of inputs that it did not have. samples: [microbatch], where
    microbatches were given one by one, so that no batch is their sum; leaves: then those of all, one after the other."""

    leaves: list[torch.Tensor]
    micro: list[list[torch.Tensor]]
    missing: set[str]
    samples: list[int] | None = None


class Program:
    """A captured program, and what each stage of a plan executes of it.

    nodes: [stage] in the plan's order. crossings: by (from, to) the values that a stage gives to another. returning: those
    (from, to) whose gradients come back. returned: the stage of each value that the module returns.
    """

    def __init__(
        self,
        capture: Any,
        parameters: Mapping[str, torch.Tensor],
        buffers: Mapping[str, torch.Tensor],
        planned: Sequence[StageInfo],
        shares_head: bool = False,
    ):
        self._tensors = {**capture.program.constants, **buffers, **parameters}
        self.graph = capture.program.graph_module.graph
        self._module = capture.program.graph_module
        signature = capture.program.graph_signature
        self._state = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._parameter_of = signature.inputs_to_parameters
        self._writes = state_writes(self.graph, set(self._state))
        by_name = {node.name: node for node in self.graph.nodes}
        for placeholder, name in self._state.items():
            shape, planned_shape = list(self.tensor(name).shape), list(by_name[placeholder].meta["val"].shape)
            if shape != planned_shape:
                raise ConfigError(f"another module than was planned: {name} is {shape}, and was {planned_shape}")
        self.inputs = [by_name[name] for name in signature.user_inputs if isinstance(name, str)]
        self.outputs = [by_name[name] for name in signature.user_outputs if isinstance(name, str)]
        for stage, facts in enumerate(planned):
            unknown = [name for name in facts["nodes"] if name not in by_name]
            if unknown:
                raise ConfigError(
                    f"another module than was planned: the plan's stage {stage} executes {unknown[0]!r}, which the graph of "
                    "this module does not have; plan this module with the same batch"
                )
        self._sizes = Sizes(self.inputs)
        self._sized = {node: sources for node in self.graph.nodes if (sources := self._size_sources(node)) is not None}
        self._stood_in: dict[fx.Node, list[fx.Node]] = {}  # inputs in the place of a tensor of which shape and type are read
        asked = [[by_name[name] for name in facts["nodes"]] for facts in planned]
        of_all = {node for nodes in asked for node in nodes}
        self.nodes = [self._completed(nodes, of_all) for nodes in asked]
        self.head = Head(self) if shares_head else None
        if self.head:
            self.nodes[-1] = self.head.without(self.nodes[-1], self._needed, lambda node: node in self._writes)
        for facts, nodes in zip(planned, self.nodes):
            own = {node.name for node in nodes} | {name for name, _ in facts.get("receives", ())}
            for node in nodes:
                if reads_metadata_only(node) and (value := node.args[0]).op == "call_function" and value.name not in own:
                    example = value.meta["val"]
                    if (sources := self._sizes.sources(*example.shape, *example.stride())) is not None:
                        self._stood_in[node] = sources
        makers: dict[fx.Node, int] = {}
        for stage, nodes in enumerate(self.nodes):
            for node in nodes:
                makers.setdefault(node, stage)
        self.crossings: dict[tuple[int, int], list[fx.Node]] = {}
        for stage, nodes in enumerate(self.nodes):
            for value in self.read(nodes):
                if value.op == "call_function":
                    if value not in makers:
                        raise ConfigError(f"another module than was planned: no stage of the plan executes {value.name!r}")
                    self.crossings.setdefault((makers[value], stage), []).append(value)
        self.returning = {(source, target) for source, facts in enumerate(planned) for target in facts.get("gradients_from", ())}
        self.loss_stage = len(planned) - 1 if self.head else makers[self.outputs[0]]
        outputs = getattr(capture, "outputs", None)
        self.returned = {by_name[name]: makers.get(by_name[name]) for name in outputs.values} if outputs else {}
        self.slices: Slices | None = None  # whose operators stages have
        self.loss_weight = self._weigher(capture.program.call_spec.out_spec)
        whole: set[str] = getattr(capture, "whole_inputs", set())
        lengths: set[Any] = getattr(capture, "length_symbols", set())
        is_open: bool = getattr(capture, "is_open", True)
        self.means = Means(self, set(self._parameter_of), whole, is_open, lengths) if self.loss_weight is None else None

    def _weigher(self, spec: Any) -> Callable[[Sequence[torch.Tensor]], torch.Tensor] | None:
        """Makes the output "loss_weight" of a microbatch, which depends on the model's inputs alone; None if there is none."""
        places = tree_unflatten(list(range(spec.num_leaves)), spec)
        at = places.get("loss_weight") if isinstance(places, Mapping) else getattr(places, "loss_weight", None)
        if at is None:
            return None
        of_inputs = self.of_inputs([self.outputs[at]])
        return lambda leaves: of_inputs(leaves)[0]

    def of_inputs(self, values: Sequence[fx.Node]) -> Callable[[Sequence[torch.Tensor]], tuple[Any, ...]]:
        """Makes values that depend on the model's inputs alone."""
        wanted: dict[fx.Node, None] = {}

        def want(node: fx.Node) -> None:
            if node.op == "call_function" and node not in wanted:
                for needed in node.all_input_nodes:
                    want(needed)
                wanted[node] = None

        for value in values:
            want(value)
        nodes = list(wanted)
        read = dict.fromkeys([*self.read(nodes), *(node for node in values if node in self.inputs)])
        places = [self.inputs.index(node) for node in read]
        modules: dict[torch.device, fx.GraphModule] = {}

        def make(leaves: Sequence[torch.Tensor]) -> tuple[Any, ...]:
            device = leaves[places[0] if places else 0].device
            if device not in modules:
                modules[device] = self.assemble(nodes, values, device, Moment(0, device))
            results: tuple[Any, ...] = modules[device](*[leaves[i] for i in places])
            return results

        return make

    def counts(self, given: Given) -> list[float]:
        """[microbatch] How much its loss counts: its samples, or the weight that the module names, or with slices its labels."""
        leaves, micro = given.leaves, given.micro
        if self.slices:
            return [float(self.slices.labels(part)) for part in micro]
        if self.loss_weight is not None and not given.missing:
            return [float(self.loss_weight(part)) for part in micro]
        if given.samples is not None:
            return [float(samples) for samples in given.samples]
        split = (i for i, leaf in enumerate(leaves) if sum(part[i].numel() for part in micro) == leaf.numel())
        i = next(split, None)
        return [1.0 if i is None else float(part[i].numel()) for part in micro]

    def crossing_shapes(self, source: int, target: int, leaves: Sequence[torch.Tensor]) -> list[torch.Size | None]:
        """The shapes of what a stage gives to another, in a microbatch of these inputs."""
        return [self._sizes.shape(node, leaves) for node in self.crossings[source, target]]

    def _size_sources(self, node: fx.Node) -> list[fx.Node] | None:
        """The inputs that say the size of another stage's value, maybe."""
        number = node.meta.get("val")
        values = [source for source in node.all_input_nodes if isinstance(source.meta.get("val"), torch.Tensor)]
        if node.op != "call_function" or not isinstance(number, torch.SymInt) or all(node in self.inputs for node in values):
            return None
        return self._sizes.sources(number)

    def _needed(self, node: fx.Node) -> list[fx.Node]:
        """What its computation reads."""
        if node in self._sized:
            return self._sized[node]
        if node in self._stood_in:
            return self._stood_in[node] + [source for source in node.all_input_nodes if source is not node.args[0]]
        return node.all_input_nodes

    def _completed(self, asked: Sequence[fx.Node], of_all: set[fx.Node]) -> list[fx.Node]:
        """With what no plan names: parts of results, sizes."""
        found: dict[fx.Node, None] = {}

        def add(node: fx.Node) -> None:
            if node in found or node.op != "call_function":
                return
            for needed in self._needed(node):
                if needed not in of_all and needed.target is not operator.getitem:
                    add(needed)
            found[node] = None
            for user in node.users:
                if user.target is operator.getitem:
                    add(user)

        for node in asked:
            add(node)
        return list(found)

    def read(self, nodes: Iterable[fx.Node]) -> list[fx.Node]:
        """What they read and do not make: inputs of the model, and values of other stages."""
        own = set(nodes)
        return list(
            dict.fromkeys(
                needed
                for node in nodes
                for needed in self._needed(node)
                if needed not in own and needed.op != "get_attr" and needed.name not in self._state
            )
        )

    def state(self, nodes: Iterable[fx.Node]) -> list[str]:
        """The names of the parameters and buffers that they read."""
        read = (needed.name for node in nodes for needed in node.all_input_nodes if needed.name in self._state)
        return list(dict.fromkeys(self.first_name(self._state[name]) for name in read))

    def written(self, nodes: Iterable[fx.Node]) -> list[str]:
        """The names of the buffers and untrained parameters that they write."""
        roots = dict.fromkeys(root for node in nodes if node in self._writes for root in self._writes[node][1])
        names = dict.fromkeys(self.first_name(self._state[root.name]) for root in roots)
        return [name for name in names if not self.tensor(name).requires_grad]

    def parameter_name(self, placeholder: Any) -> str | None:
        """The name in the module of what the graph calls so; None of what is no parameter."""
        name = self._parameter_of.get(placeholder.name)
        return name and self.first_name(name)

    def placeholders(self, names: Iterable[str]) -> set[str]:
        """What the graph calls those parameters and buffers, which may be several of a tied one."""
        tensors = {id(self.tensor(name)) for name in names}
        return {placeholder for placeholder, name in self._state.items() if id(self.tensor(name)) in tensors}

    def first_name(self, name: str) -> str:
        """The first in the module of a tensor with several names."""
        tensor = self.tensor(name)
        return next(first for first, tensor_there in self._tensors.items() if tensor_there is tensor)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The parameters and buffers."""
        return {name: self.tensor(name) for name in self._state.values()}

    def replace(self, placeholder: str, tensor: torch.Tensor) -> None:
        """A parameter's object, under all its names."""
        old = self.tensor(self._state[placeholder])
        self._tensors = {name: tensor if known_tensor is old else known_tensor for name, known_tensor in self._tensors.items()}

    def tensor(self, name: str) -> torch.Tensor:
        if name not in self._tensors:
            raise ConfigError(f"another module than was planned: it has no {name!r}")
        return self._tensors[name]

    def _trained(self) -> set[fx.Node]:
        """What may need a gradient, of the parameters that need one."""
        flow = GradientFlow()
        for node in self.graph.nodes:
            if node.name in self._parameter_of and self.tensor(self._state[node.name]).requires_grad:
                flow.needing.add(node)
            elif node.op == "call_function":
                flow.add(node, enabled=True)
        return flow.needing

    def _weights(self, nodes: Iterable[fx.Node]) -> set[fx.Node]:
        """Trainable parameters, and what is made of parameters alone."""
        trained: set[fx.Node] = set()
        for node in nodes:
            for needed in node.all_input_nodes:
                if needed.name in self._parameter_of and self.tensor(self._state[needed.name]).requires_grad:
                    trained.add(needed)
            if node.all_input_nodes and all(needed in trained for needed in node.all_input_nodes):
                trained.add(node)
        return trained

    def assemble(
        self,
        nodes: Sequence[fx.Node],
        gives: Sequence[fx.Node],
        device: torch.device,
        moment: Moment,
        *,
        training: bool = True,
        split: bool = False,
        blocks: Sequence[set[str]] = (),
        written: Iterable[str] = (),
        again: bool = False,
    ) -> fx.GraphModule:
        """A module of `nodes` that takes read(nodes), then the model's inputs that are in `gives`, and returns `gives`.
        again: all of it is computed again in backward."""
        graph, root = fx.Graph(), nn.Module()
        given = dict.fromkeys([*self.read(nodes), *(node for node in gives if node in self.inputs)])
        copies: dict[fx.Node, fx.Node] = {node: graph.placeholder(node.name) for node in given}
        weights = self._weights(nodes) if split else set()

        def value(node: Any) -> Any:
            if isinstance(node, torch.device):
                return device
            if not isinstance(node, fx.Node):
                return node
            if node not in copies:
                if node.op == "get_attr":
                    setattr(root, str(node.target), getattr(self._module, str(node.target)))
                else:
                    tensor = self.tensor(self._state[node.name])
                    (root.register_parameter if isinstance(tensor, nn.Parameter) else root.register_buffer)(node.name, tensor)
                copies[node] = graph.get_attr(str(node.target) if node.op == "get_attr" else node.name)
            return copies[node]

        block_of = {name: number for number, block in enumerate(blocks) for name in block}
        inside: dict[int, list[fx.Node]] = {}
        for node in nodes:
            number = block_of.get(node.args[0].name if node.target is operator.getitem else node.name)
            if number is not None:
                inside.setdefault(number, []).append(node)
        in_blocks = {node for block in inside.values() for node in block}
        trained = self._trained() if inside else set()
        ending = {block[-1]: number for number, block in inside.items()}
        for node in nodes:
            if node in ending:
                block, name = inside[ending[node]], f"block{ending[node]}"
                own = set(block)
                used = [node for node in block if node in gives or any(user not in own for user in node.users)]
                inner = self.assemble(block, used, device, moment, training=training, split=split, again=True)
                root.add_module(name, Again(inner, written, moment, [node in trained for node in used]))
                result = graph.call_module(name, tuple(value(node) for node in self.read(block)))
                for i, output in enumerate(used):
                    copies[output] = graph.call_function(operator.getitem, (result, i))
            if node in in_blocks:
                continue
            if not training and node in self._writes:  # nothing is written, and what is there is read
                copies[node] = value(self._writes[node][0])
                continue
            if node in self._sized:
                copies[node] = self._sizes.node(graph, node.meta["val"], value)
                continue
            target, args, kwargs = node.target, node.args, node.kwargs
            if node in self._stood_in:
                shown = args[0].meta["val"]
                numbers = [self._sizes.node(graph, size, value) for size in (*shown.shape, *shown.stride())]
                copies[args[0]] = graph.call_function(empty, (shown.dtype, device, shown.dim(), *numbers))
            if not training:
                args, kwargs = in_evaluation(node)
            if draws(node, training):
                target = drawn(target, node.name, moment)
            elif split and target in ACTIVATIONS:
                others = [argument for i, argument in enumerate(args) if i not in ACTIVATIONS[target] and isinstance(argument, fx.Node)]
                if others and all(weight in weights for weight in others):
                    target = deferred(target, moment)
            if self.slices:
                target = self.slices.operator(node, target, again)
            elif self.means:
                target = self.means.operator(node, target, moment)
            copies[node] = graph.call_function(target, fx.node.map_aggregate(args, value), fx.node.map_aggregate(kwargs, value))
        graph.output(tuple(value(node) for node in gives))
        return fx.GraphModule(root, graph)


class Stage:
    """One of this rank's stages. sources, targets: by the stage at the other end, which inputs come from there, and which
    results go there. returns_to, returned_by: those stages that get gradients of it, and give gradients back. leaves: (input, input of the model). loss: which result it is; head: which result a
    head on all ranks reads. returned: which results of `evaluation` the
    module returns. kept: the microbatch that is not computed again. offload: share of what it saves that OFFLOAD takes."""

    def __init__(
        self,
        program: Program,
        number: int,
        planned: StageInfo,
        blocks: Sequence[set[str]],
        device: torch.device,
        moment: Moment,
        *,
        split: bool,
        kept: int | None = None,
    ):
        self.kept = kept
        self.offload: float = planned["offload"]
        nodes = program.nodes[number]
        self.names = names = {node.name for node in nodes}
        self.inputs = program.read(nodes)
        self.leaves = [(i, program.inputs.index(node)) for i, node in enumerate(self.inputs) if node in program.inputs]
        self.sources: dict[int, list[int]] = {}
        self.targets: dict[int, list[int]] = {}
        gives: dict[fx.Node, int] = {}
        for (source, target), values in program.crossings.items():
            if target == number:
                self.sources[source] = [self.inputs.index(node) for node in values]
            if source == number:
                self.targets[target] = [gives.setdefault(node, len(gives)) for node in values]
        self.returns_to = {source for source in self.sources if (source, number) in program.returning}
        self.returned_by = {target for target in self.targets if (number, target) in program.returning}
        self.loss = self.head = None
        if program.loss_stage == number and program.head:
            self.head = gives.setdefault(program.head.value, len(gives))
        elif program.loss_stage == number:
            self.loss = gives.setdefault(program.outputs[0], len(gives))
        # The planner knows operators whose schema hides what they write (batch_norm), the graph parameters that it writes.
        names_written = list(dict.fromkeys([*planned["written"], *program.written(nodes)]))
        self.written = [program.tensor(name) for name in names_written]
        again = [names] if planned["recomputed"] else [block & names for block in blocks if block & names]
        written = program.placeholders(names_written)
        give = list(gives)
        self.module: Any = program.assemble(nodes, give, device, moment, split=split, blocks=again, written=written)
        returned = [node for node, stage in program.returned.items() if stage == number]
        self.returned = {node.name: len(give) + i for i, node in enumerate(returned)}
        self.evaluation: Any = program.assemble(nodes, give + returned, device, moment, training=False)
        self.holder: nn.Module = self.module  # of the buffers that it writes
        self.trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Runs the forward of a microbatch in training. Its backward will read the buffers as they are now."""
        if not self.written:
            return self.module(*inputs)
        written = [(buffer, buffer.clone()) for buffer in self.written]
        with copied(self.holder, written):
            given = self.module(*inputs)
        with torch.no_grad():
            for buffer, copy in written:
                buffer.copy_(copy)
        return given

    def shard(self, mesh: Any, program: Program) -> None:
        """Each rank of the mesh keeps a part of every parameter and its gradient, whole while it computes (FSDP2)."""
        both = nn.ModuleList([self.module, self.evaluation])
        sharded = torch.distributed.fsdp.fully_shard(Either(both), mesh=mesh)
        sharded.set_gradient_divide_factor(1.0)  # a sum, as loss shares are of all replicas;
        sharded.set_force_sum_reduction_for_comms(True)  # else one by a factor, which only NCCL has
        self.holder, self.module = sharded, functools.partial(sharded, 0)
        self.evaluation = functools.partial(sharded, 1)
        self.trained = []
        for name, parameter in sharded.named_parameters():
            program.replace(name.rsplit(".", 1)[-1], parameter)


class Either(nn.Module):
    """One of several modules with the same parameters."""

    def __init__(self, modules: nn.ModuleList):
        super().__init__()
        self.alternatives = modules

    def forward(self, which: int, *inputs: Any) -> Any:
        return self.alternatives[which](*inputs)
