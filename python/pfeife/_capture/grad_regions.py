"""Where a module's forward switches gradients off: taken over into the exported graph as plain operators.

torch.export makes a subgraph of every torch.no_grad block, forgets torch.inference_mode, the backward of a
torch.autograd.Function and hooks on gradients, and takes what follows a reentrant torch.utils.checkpoint for a no_grad
block. `recorded_as_it_trains` mends or refuses these while torch.export traces, `inline_regions` makes operators of the
subgraphs. Not here: torch.cond and others whose subgraphs depend on values, which the planner refuses.
"""
import contextlib
import dataclasses
import math
import operator
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import _SingleLevelFunction
from torch.export.graph_signature import InputKind
from torch.nn.modules._functions import BackwardHookFunction

from .errors import Unexportable, where, where_recorded, with_text

aten = torch.ops.aten
HIGHER_ORDER = torch.ops.higher_order


def place_in_the_model() -> str:
    """FILE:LINE of the innermost call that is neither torch's nor of this package."""
    return where(traceback.extract_stack()) or "the model"


def add_note(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)


def note_checkpoint(notes: list[str]) -> None:
    add_note(notes, "torch.utils.checkpoint: the archive holds what it computes, not that it computes it again; "
                    "plan.recompute: blocks plans which blocks do")


class Unread:
    """The context of a Function's forward, where nobody runs its backward."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def operators_of(function: Any, arguments: Sequence[Any]) -> Any:
    """What its forward computes, as plain operators."""
    with_context = function.setup_context is _SingleLevelFunction.setup_context
    return function.forward(*([Unread()] if with_context else []), *arguments)


LARGEST = 1 << 26  # numbers, of which a comparison is made


def trains_as_its_operators(function: Any, apply: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether a Function's backward gives the gradients of its forward's operators, on random numbers of two sizes."""

    def numbers(tensor: torch.Tensor, scale: float) -> torch.Tensor:
        sizes = [size if isinstance(size, int) else size.node.hint for size in tensor.shape]
        if math.prod(sizes) > LARGEST:
            raise ValueError("too many numbers")
        if not tensor.is_floating_point():
            return torch.zeros(sizes, dtype=tensor.dtype)
        return (scale * torch.randn(sizes, dtype=torch.float64)).requires_grad_(tensor.requires_grad)

    def gradients(call: Callable[..., Any], given: list[Any]) -> list[Any]:
        torch.manual_seed(1)
        returned = call(*(value * 1 if isinstance(value, torch.Tensor) else value for value in given))  # no leaf, which may be written
        outputs = [result for result in (returned if isinstance(returned, tuple) else (returned,)) if isinstance(result, torch.Tensor)]
        roots = [output for output in outputs if output.requires_grad]
        leaves = [value for value in given if isinstance(value, torch.Tensor) and value.requires_grad]
        return [*outputs, *torch.autograd.grad(roots, leaves, [torch.randn_like(root) for root in roots], allow_unused=True)]

    def compare() -> bool:
        with torch.random.fork_rng(devices=[]):
            for scale in (0.1, 3.0):
                given = [numbers(argument, scale) if isinstance(argument, torch.Tensor) else argument for argument in arguments]
                pairs = zip(gradients(apply, given), gradients(lambda *them: operators_of(function, them), given), strict=True)
                if not all(a is b or torch.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in pairs):
                    return False
        return True

    try:
        with ThreadPoolExecutor(1) as outside:  # of what is being recorded, which is this thread's
            return outside.submit(compare).result()
    except Exception:  # anything may go wrong in a user's function
        return False


@contextlib.contextmanager
def recorded_as_it_trains(notes: list[str]) -> Iterator[None]:
    """While it holds, torch.export records what backward will do; what it cannot record raises Unexportable.

    inference_mode is recorded as no_grad. torch.utils.checkpoint calls its function. It and a torch.autograd.Function without
    an operand that needs a gradient run without gradients, as in torch; with one, a Function is its forward's operators, if
    they have its gradients. `notes` receives a sentence for each thing that the user has to know.
    """

    original_apply = torch._C._FunctionBase.__dict__["apply"]

    def apply(function: Any, *arguments: Any) -> Any:
        if function.__module__ == "torch._library.autograd":  # of an operator that has its own, in every graph, too
            return original_apply.__get__(None, function)(*arguments)
        takes_gradient = torch.is_grad_enabled() and any(isinstance(argument, torch.Tensor) and argument.requires_grad
                                                         for argument in arguments)
        is_checkpoint = function is torch.utils.checkpoint.CheckpointFunction
        if takes_gradient and not is_checkpoint and function.__module__.startswith("torch._higher_order_ops"):
            raise Unexportable(f"{place_in_the_model()}: control flow on values of tensors ({function.__name__}): a graph holds one "
                               "way only. Compute both and choose by torch.where")
        if takes_gradient and not is_checkpoint:
            named = f"{place_in_the_model()} calls {function.__module__}.{function.__qualname__}, a torch.autograd.Function"
            is_hook = function is BackwardHookFunction
            if is_hook or not trains_as_its_operators(function, original_apply.__get__(None, function), arguments):
                raise Unexportable(
                    named + (" that is a module's backward hook" if is_hook else "")
                    + ". An archive holds operators and cannot hold its backward. Call plain operators instead, for the export at "
                    "least (if torch.compiler.is_exporting(): ...): a loss whose gradient it injects is added to the loss that forward "
                    "returns; x whose gradient is scaled or reversed by a is a * x + ((1 - a) * x).detach(); q with the gradient of x is "
                    "x + (q - x).detach()")
            add_note(notes, f"{named}: the graph holds the operators of its forward, whose gradients were the same on random numbers")
            return operators_of(function, arguments)
        if is_checkpoint:
            note_checkpoint(notes)
        if is_checkpoint and not takes_gradient and torch.is_grad_enabled():
            add_note(notes, f"{place_in_the_model()}: torch.utils.checkpoint with use_reentrant=True and no input that needs a "
                            "gradient. Its parameters get no gradient, neither in torch nor here; use_reentrant=False "
                            "gives them theirs")
        with torch.set_grad_enabled(takes_gradient):  # set in Python, else torch.export does not record it
            if not is_checkpoint:
                return original_apply.__get__(None, function)(*arguments)
            checkpointed, _, *inputs = arguments
            return checkpointed(*inputs)

    def without_recomputation(*_: Any, **__: Any) -> Iterator[None]:
        note_checkpoint(notes)
        yield

    def enter_inference_mode(self: Any) -> None:
        self._gradients = torch.set_grad_enabled(not self.mode)

    def exit_inference_mode(self: Any, *error: Any) -> None:
        self._gradients.__exit__(*error)

    def register_hook(*_: Any) -> None:
        raise Unexportable(f"{place_in_the_model()} registers a hook on a gradient, which an archive cannot hold; scale the "
                           "gradient by operators instead, e.g. x * a + (x * (1 - a)).detach()")

    with contextlib.ExitStack() as patches:
        for owner, name, replacement in [
                (_SingleLevelFunction, "apply", classmethod(apply)),  # of all Functions, also where apply was bound before
                (torch.utils.checkpoint, "_checkpoint_without_reentrant_generator", without_recomputation),
                (torch.inference_mode, "__enter__", enter_inference_mode),
                (torch.inference_mode, "__exit__", exit_inference_mode),
                (torch.Tensor, "register_hook", register_hook)]:
            patches.enter_context(mock.patch.object(owner, name, replacement))
        yield


def refuse_hooks(module: nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks:
            raise Unexportable(f"parameter {name} has a hook on its gradient, which an archive cannot hold; register it only "
                               "where you train in torch, or scale the gradient by operators in forward")


def refuse_untraced(program: torch.export.ExportedProgram) -> None:
    """Raises Unexportable for a tensor that forward makes and torch.export does not record; for models with weights torch.export
    raises itself."""
    owned = {spec.target for spec in program.graph_signature.input_specs if spec.kind == InputKind.BUFFER}
    for name, constant in program.constants.items():
        if isinstance(constant, FakeTensor) and name not in owned:
            raise Unexportable(f"'{name}' is a tensor that forward makes and torch.export does not record; it comes of .data "
                               "(use .detach()) or torch.autograd.grad")


def schema_arguments(node: fx.Node) -> Iterator[tuple[Any, list[fx.Node]]]:
    """(schema's argument, nodes that are given for it) of an operator's call."""
    schema = getattr(node.target, "_schema", None)
    for i, formal in enumerate(schema.arguments if schema else []):
        given: list[fx.Node] = []
        fx.node.map_arg(node.args[i] if i < len(node.args) else node.kwargs.get(formal.name), given.append)
        yield formal, given


def makes_floats(node: fx.Node) -> bool:
    example = node.meta.get("val")
    return any(isinstance(result, torch.Tensor) and (result.is_floating_point() or result.is_complex())
               for result in (example if isinstance(example, (tuple, list)) else [example]))


# Operators whose floating results depend on no value of their inputs, or hide that they do. The planner's are in gradient_flow.cc.
PASS_NO_GRADIENT = [getattr(aten, f"{kind}_like") for kind in ("zeros", "ones", "full", "empty", "rand", "randn")]
PASS_NO_GRADIENT += [getattr(aten, f"new_{kind}") for kind in ("zeros", "ones", "full", "empty", "empty_strided")]
PASS_NO_GRADIENT += [aten.detach, aten.detach_]


class GradientFlow:
    """Which nodes of a graph may need a gradient, and which share a storage; more rather than fewer of both."""

    def __init__(self) -> None:
        self.needing: set[fx.Node] = set()
        self._storage: dict[fx.Node, list[fx.Node]] = {}

    def sharing(self, node: fx.Node) -> list[fx.Node]:
        return self._storage.setdefault(node, [node])

    def add(self, node: fx.Node, enabled: bool) -> None:
        """`enabled`: whether gradients are on where the node runs."""
        cuts = getattr(node.target, "overloadpacket", None) in PASS_NO_GRADIENT
        if enabled and not cuts and makes_floats(node) and not self.needing.isdisjoint(node.all_input_nodes):
            self.needing.add(node)
        if node.target is operator.getitem:
            self._join(node, node.args[0])
        for formal, given in schema_arguments(node):
            if formal.alias_info is None:
                continue
            for source in given:
                self._join(node, source)
            if formal.alias_info.is_write and node in self.needing:
                self.needing.update(self.sharing(node))

    def _join(self, a: fx.Node, b: fx.Node) -> None:
        group, merged = self.sharing(a), self.sharing(b)
        if group is merged:
            return
        group.extend(merged)
        for node in merged:
            self._storage[node] = group


def written_argument(node: fx.Node) -> fx.Node | None:
    """What an in-place operator writes into and returns."""
    for formal, given in schema_arguments(node):
        if formal.alias_info is not None and formal.alias_info.is_write and len(node.target._schema.returns) == 1:
            return given[0]
    return None


def place_of(block: fx.GraphModule) -> str:
    """FILE:LINE in the model of the first operator of the block."""
    places = (where_recorded(node.meta.get("stack_trace") or "") for node in block.graph.nodes)
    return next((place for place in places if place), "the model")


class Inliner:
    """Replaces the calls of subgraphs in a program's graph by their nodes.

    Where gradients are off, every operand that may need one is detached right before its reader: all that is computed
    there, and what leaves it, then needs none, in whatever program that reads the graph. (A detach for each reader, so
    that no second value passes a cut.) A write into such an operand goes into its storage, and whoever reads it
    afterwards reads the operand itself, with its history, as in torch.
    """

    def __init__(self, program: torch.export.ExportedProgram, notes: list[str]):
        self.module = program.graph_module
        self.graph = self.module.graph
        self.flow = GradientFlow()
        self.notes = notes
        trainable = {spec.arg.name for spec in program.graph_signature.input_specs
                     if spec.kind == InputKind.PARAMETER and program.state_dict[spec.target].requires_grad}
        self.flow.needing.update(node for node in self.graph.nodes if node.op == "placeholder" and node.name in trainable)

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node._erased:
                continue
            if not is_region(node):
                self.flow.add(node, enabled=True)
                continue
            with self.graph.inserting_before(node):
                results = self.inline(self.module, node, lambda outer: outer, enabled=True)
            for user in list(node.users):
                user.replace_all_uses_with(results[user.args[1]])
                self.graph.erase_node(user)
            self.graph.erase_node(node)
        for node in list(self.graph.nodes):
            if node.op == "get_attr" and not node.users and isinstance(getattr(self.module, node.target, None), fx.GraphModule):
                delattr(self.module, node.target)
                self.graph.erase_node(node)

    def inline(self, owner: fx.GraphModule, region: fx.Node, outer: Callable[[fx.Node], Any], enabled: bool) -> list:
        """The region's results as nodes of the graph. `outer` gives the graph's node for one of the region's arguments."""
        block_at = 1 if region.target is HIGHER_ORDER.wrap_with_set_grad_enabled else 4
        block = getattr(owner, region.args[block_at].target)
        if block_at == 1:
            enabled = region.args[0]
        else:
            self.judge_autocast(region, block)
        inputs = [outer(argument) if isinstance(argument, fx.Node) else argument for argument in region.args[block_at + 1:]]
        values = dict(zip((node for node in block.graph.nodes if node.op == "placeholder"), inputs))
        for node in block.graph.nodes:
            if is_region(node):
                values[node] = self.inline(block, node, values.__getitem__, enabled)
            elif node.target is operator.getitem and isinstance(values.get(node.args[0]), list):
                values[node] = values[node.args[0]][node.args[1]]
            elif node.op == "call_function" and node.target is not aten._assert_tensor_metadata.default:
                values[node] = self.copy(node, values, enabled)
        return [values[argument] if isinstance(argument, fx.Node) else argument for argument in block.graph.output_node().args[0]]

    def judge_autocast(self, region: fx.Node, block: fx.GraphModule) -> None:
        if not any(node.op == "call_function" for node in block.graph.nodes):
            return
        if region.args[2]:
            raise Unexportable(f"{place_of(block)}: a torch.autocast block. A graph holds a model in its own precision; leave "
                               "torch.autocast out and plan with training.precision bf16_amp or fp16_amp")
        add_note(self.notes, f"{place_of(block)}: a torch.autocast block that is switched off (enabled=False, or its device is not "
                             "here). The archive does not hold it: under training.precision bf16_amp or fp16_amp its operators "
                             "are cast as all others")

    def copy(self, node: fx.Node, values: dict, enabled: bool) -> fx.Node:
        if any(source not in values for source in node.all_input_nodes):
            raise Unexportable(f"'{node.name}' ({node.target}) in a block without gradients has graphs of its own; write it "
                               "without control flow that depends on values of tensors (torch.cond, while_loop, ...)")
        enabled = enabled or node.target is operator.getitem  # which takes one of a list: its reader detaches it
        new = self.graph.node_copy(node, values.__getitem__)
        written = written_argument(new)
        if not enabled and makes_floats(node):
            with self.graph.inserting_before(new):
                new.args = fx.node.map_arg(new.args, lambda source: self.detached(source, new))
                new.kwargs = fx.node.map_arg(new.kwargs, lambda source: self.detached(source, new))
        self.flow.add(new, enabled)
        return written if not enabled and written in self.flow.needing else new

    def detached(self, value: fx.Node, reader: fx.Node) -> fx.Node:
        if value not in self.flow.needing:
            return value
        node = self.graph.call_function(aten.detach.default, (value,))
        node.meta = {key: reader.meta[key] for key in ("nn_module_stack", "stack_trace") if key in reader.meta}
        node.meta["val"] = value.meta["val"].detach()
        self.flow.add(node, enabled=False)
        return node


def is_region(node: fx.Node) -> bool:
    return node.target in (HIGHER_ORDER.wrap_with_set_grad_enabled, HIGHER_ORDER.wrap_with_autocast)


def write_buffers_early(graph: fx.Graph, flow: GradientFlow, buffers: set[str]) -> None:
    """Moves what export appends for `self.buffer = value`, a copy_ into the buffer, to where the value has been made and the
    buffer been read: else no cut could lie between there and the end of the graph."""
    *nodes, _ = graph.nodes
    place = {node: i for i, node in enumerate(nodes)}
    while nodes and nodes[-1].target is aten.copy_.default and nodes[-1].args[0].name in buffers:
        node = nodes.pop()
        buffer, value = node.args[0], node.args[1]
        whole = value
        while (target := written_argument(whole)) is not None:
            whole = target
        if whole is buffer:  # self.buffer += 1, which has written already
            graph.erase_node(node)
            continue
        before = [value, *(node for node in nodes if node.op == "placeholder")]
        before += [user for view in flow.sharing(buffer) for user in view.users]
        before += [user for view in flow.sharing(value) for user in view.users if written_argument(user) is not None]
        max((user for user in before if user is not node), key=place.__getitem__).append(node)


def inline_regions(program: torch.export.ExportedProgram, notes: list[str]) -> None:
    """Makes plain operators of the blocks without gradients and of autocast blocks that are off; Unexportable for others."""
    inliner = Inliner(program, notes)
    inliner.run()
    signature, graph = program.graph_signature, program.graph_module.graph
    write_buffers_early(graph, inliner.flow, {spec.arg.name for spec in signature.input_specs if spec.kind == InputKind.BUFFER})
    for spec, output in zip(signature.output_specs, graph.output_node().args[0]):
        if isinstance(output, fx.Node):
            spec.arg = dataclasses.replace(spec.arg, name=output.name)
    program.graph_module.recompile()


def state_writes(graph: fx.Graph, state: set[str]) -> dict[fx.Node, tuple[fx.Node, list[fx.Node]]]:
    """The nodes that write into parameters or buffers, or into views of them: what each writes first, and all placeholders of
    parameters and buffers whose memory it changes."""
    flow = GradientFlow()
    writes: dict[fx.Node, tuple[fx.Node, list[fx.Node]]] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        flow.add(node, enabled=False)
        for formal, given in schema_arguments(node):
            if formal.alias_info is None or not formal.alias_info.is_write:
                continue
            for source in given:
                held = (alias for alias in flow.sharing(source) if alias.op == "placeholder" and alias.name in state)
                if changed := [alias for alias in held if alias is source or storage(alias) == storage(source)]:
                    writes.setdefault(node, (source, []))[1].extend(changed)
    return writes


def refuse_written_inputs(program: torch.export.ExportedProgram) -> None:
    flow = GradientFlow()
    inputs = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        flow.add(node, enabled=False)
        for formal, given in schema_arguments(node):
            if formal.alias_info is None or not formal.alias_info.is_write:
                continue
            for view in (alias for value in given for alias in flow.sharing(value)):
                if view.op == "placeholder" and view.name in inputs and storage(view) == storage(given[0]):
                    place = where_recorded(node.meta.get("stack_trace") or "")
                    raise Unexportable(f"{with_text(place) or 'the model'}\n  {node.target} writes into the batch's {view.name!r}, which other microbatches and "
                                       "the data loader may share. Write into a copy: x = x.clone()")


def storage(node: fx.Node) -> int | None:
    example = node.meta.get("val")
    return example.untyped_storage()._cdata if isinstance(example, torch.Tensor) else None
