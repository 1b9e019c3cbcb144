"""What operators of a stage do besides what the captured program says: draw random numbers of their own, leave their weights'
gradients for W, run again in backward, write copies of buffers."""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.checkpoint import checkpoint

Root = tuple[GradientEdge, torch.Tensor]  # of a backward, with its gradient
Tape = list["Root | Callable[[], None]"]  # what W goes back from, and calls that add gradients themselves
aten = torch.ops.aten
MASK = (1 << 63) - 1
# The operators whose weights' gradients can wait for W, and which of their arguments are not weights. All others make both
# at once, and theirs come with I.
ACTIVATIONS = {
    aten.linear.default: (0,),
    aten.addmm.default: (1,),
    aten.mm.default: (0,),
    aten.bmm.default: (0,),
    aten.matmul.default: (0,),
    aten.embedding.default: (1,),
    **{getattr(aten, f"conv{d}d").default: (0,) for d in (1, 2, 3)},
    **{getattr(aten, f"conv{d}d").padding: (0,) for d in (1, 2, 3)},
    aten.conv_transpose1d.default: (0,),
    aten.conv_transpose2d.input: (0,),
    aten.conv_transpose3d.input: (0,),
    aten.convolution.default: (0,),
}


# Arguments that operators have for training, and their values in evaluation.
QUIET = {"train": False, "training": False, "dropout_p": 0.0}


class Moment:
    """What a stage's operators have to know of the action that runs: where random numbers begin, who takes what W needs.

    Random numbers depend on seed, step, microbatch and the node's name, so they are the same under every plan, in
    recomputation, and in the unsplit model.
    """

    def __init__(self, seed: int, device: torch.device):
        self.seed = seed
        self.step = 0
        self.tape: Tape | None = None
        self.recomputes = True  # what is planned so
        self.offloads = False  # what autograd saves can leave the device
        self.base = 0
        self.of_microbatches: list[dict[str, torch.Tensor]] = []
        self.divisors: dict[str, torch.Tensor] = {}  # of means in the loss, of the microbatch that runs
        self.device = device
        if device.type == "cpu":
            self.generator = torch.default_generator
        else:
            of_device = torch.get_device_module(device)
            of_device.init()
            self.generator = of_device.default_generators[device.index or 0]

    def at(
        self,
        microbatch: int,
        tape: Tape | None = None,
        *,
        recomputes: bool = True,
        offloads: bool = False,
    ) -> None:
        self.base = hash((self.seed, self.step, microbatch))
        self.divisors = self.of_microbatches[microbatch] if microbatch < len(self.of_microbatches) else {}
        self.tape = tape
        self.recomputes = recomputes
        self.offloads = offloads

    def draw(self, salt: int) -> None:
        self.generator.manual_seed(hash((self.base, salt)) & MASK)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """While it holds, what is drawn leaves the user's generator as it was."""
        state = self.generator.get_state()
        try:
            yield
        finally:
            self.generator.set_state(state)


def let_go(leaf: torch.Tensor) -> None:
    """Frees a leaf's storage, which autograd's hooks keep for the backward. The leaf keeps its shape, and still takes its gradient."""
    leaf.data = leaf.new_empty(1).expand(leaf.shape)


class Deferred(torch.autograd.Function):
    """An operator whose backward makes the gradients of its activations, and leaves those of its weights on the tape."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, call: Callable[..., Any], moment: Moment, *inputs: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            ctx.own = [value.detach().requires_grad_(value.requires_grad) for value in inputs]
            result = call(*ctx.own)
        ctx.edge, ctx.tape = get_gradient_edge(result), moment.tape
        for tensor in ctx.own if moment.offloads else ():
            let_go(tensor)
        return result.detach()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        wanted = [tensor for tensor in ctx.own if tensor.requires_grad]
        gradients = iter(torch.autograd.grad([ctx.edge], wanted, [grad], retain_graph=True) if wanted else ())
        ctx.tape.append((ctx.edge, grad))
        return None, None, None, *[next(gradients) if tensor.requires_grad else None for tensor in ctx.own]


class DeferredLinear(torch.autograd.Function):
    """A linear layer whose backward makes its input's gradient, and leaves on the tape the call that makes those of its weights:
    without the second graph of Deferred, which takes longer than a small layer."""

    @staticmethod
    def forward(ctx: Any, moment: Moment, value: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        ctx.save_for_backward(value, weight)
        ctx.bias, ctx.tape = bias, moment.tape
        return aten.linear.default(value, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        value, weight = ctx.saved_tensors
        ctx.tape.append(functools.partial(add_gradients, value, grad, weight, ctx.bias))
        return None, grad @ weight if ctx.needs_input_grad[1] else None, None, None


def add_gradients(value: torch.Tensor, grad: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Adds the gradients of a linear layer's weights to those of the parameters."""
    grad, value = grad.reshape(-1, grad.shape[-1]), value.reshape(-1, value.shape[-1])
    if weight.requires_grad and weight.grad is not None:
        weight.grad.addmm_(grad.t(), value)
    elif weight.requires_grad:
        weight.grad = grad.t() @ value
    if bias is not None and bias.requires_grad:
        bias.grad = grad.sum(0) if bias.grad is None else bias.grad.add_(grad.sum(0))


def is_simple(weight: torch.Tensor | None) -> bool:
    """Whether its gradient is only added: a parameter without hooks."""
    return weight is None or weight.is_leaf and not (weight._backward_hooks or weight._post_accumulate_grad_hooks)


def deferred_linear(moment: Moment) -> Callable[..., Any]:
    apply = super(torch.autograd.Function, DeferredLinear).apply  # without torch's way through Python, for functorch
    general = deferred(aten.linear.default, moment, general=True)

    def later(value: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
        if moment.tape is None or not (weight.requires_grad or bias is not None and bias.requires_grad):
            return aten.linear.default(value, weight, bias)
        cast = torch.is_autocast_enabled(moment.device.type)
        if moment.offloads or cast or value.is_complex() or not (is_simple(weight) and is_simple(bias)):
            return general(value, weight, bias)
        return apply(moment, value, weight, bias)

    return later


def deferred(target: Callable[..., Any], moment: Moment, general: bool = False) -> Callable[..., Any]:
    """The operator, which leaves its weights' gradients for W while the moment has a tape."""
    if target is aten.linear.default and not general:
        return deferred_linear(moment)
    at = ACTIVATIONS[target]
    anchor = torch.empty(0, requires_grad=True)  # so that the result needs a gradient though no activation does

    def later(*args: Any, **kwargs: Any) -> Any:
        weights = [argument for i, argument in enumerate(args) if i not in at and isinstance(argument, torch.Tensor)]
        if moment.tape is None or not any(weight.requires_grad for weight in weights):
            return target(*args, **kwargs)

        def call(*activations: torch.Tensor) -> torch.Tensor:
            new = dict(zip(at, activations))
            return target(*[new.get(i, argument) for i, argument in enumerate(args)], **kwargs)

        return Deferred.apply(anchor, call, moment, *[args[i] for i in at])

    return later


def drawn(target: Callable[..., Any], name: str, moment: Moment) -> Callable[..., Any]:
    salt = zlib.crc32(name.encode())

    def draws(*args: Any, **kwargs: Any) -> Any:
        moment.draw(salt)
        return target(*args, **kwargs)

    return draws


@contextlib.contextmanager
def copied(module: nn.Module, written: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[None]:
    """While it holds, the module works with copies of the tensors that it writes, (tensor, copy): so what a microbatch keeps
    for its backward stays when the next one writes."""
    copy_of = {id(tensor): copy for tensor, copy in written}
    tables = [table for module in module.modules() for table in (module._buffers, module._parameters)] if written else []
    places = [(table, name, tensor) for table in tables for name, tensor in table.items() if id(tensor) in copy_of]
    try:
        for table, name, tensor in places:
            table[name] = copy_of[id(tensor)]
        yield
    finally:
        for table, name, tensor in places:
            table[name] = tensor


class Rerun(torch.autograd.Function):
    """A reentrant checkpoint, whose inputs get a gradient only where a result that has one depends on them."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, run: Any, trained: Sequence[bool], kind: str, *inputs: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.run = run
        cast = dict(enabled=torch.is_autocast_enabled(kind), cache_enabled=torch.is_autocast_cache_enabled())
        ctx.cast = dict(device_type=kind, dtype=torch.get_autocast_dtype(kind), **cast)
        ctx.tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        ctx.inputs = [None if i in ctx.tensors else value for i, value in enumerate(inputs)]
        ctx.save_for_backward(*[inputs[i] for i in ctx.tensors])
        results = run(anchor, *inputs)
        plain = [result for result, needs in zip(results, trained) if isinstance(result, torch.Tensor) and not needs]
        ctx.mark_non_differentiable(*plain)
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        inputs = list(ctx.inputs)
        for i, saved in zip(ctx.tensors, ctx.saved_tensors):
            inputs[i] = saved.detach().requires_grad_(saved.requires_grad)
        with torch.enable_grad(), torch.autocast(**ctx.cast):
            results = ctx.run(torch.empty(0), *inputs)
        roots = [(result, gradient) for result, gradient in zip(results, gradients) if gradient is not None and isinstance(result, torch.Tensor) and result.requires_grad]
        if roots:
            torch.autograd.backward(*map(list, zip(*roots)))
        return None, None, None, None, *[value.grad if isinstance(value, torch.Tensor) else None for value in inputs]


class Again(nn.Module):
    """Nodes that are computed again in backward, from the buffers that were there. What they write, they write once.

    trained: [result] whether it needs a gradient, which a reentrant checkpoint says of all.
    """

    def __init__(self, inner: fx.GraphModule, written: Iterable[str], moment: Moment, trained: Sequence[bool]):
        super().__init__()
        self.inner = inner
        self._trained = trained
        self._written = [name for name, _ in [*inner.named_buffers(), *inner.named_parameters()] if name in written]
        self._moment = moment

    def forward(self, *args: Any) -> Any:
        if not self._moment.recomputes:
            return self.inner(*args)
        tape = self._moment.tape
        before = [getattr(self.inner, name).clone() for name in self._written]
        first, moment = True, self._moment.base

        def run(anchor: torch.Tensor, *args: Any) -> Any:
            nonlocal first
            if first:
                first = False
                return self.inner(*args)
            self._moment.base = moment
            now = [getattr(self.inner, name) for name in self._written]
            with copied(self.inner, [(buffer, copy.clone()) for buffer, copy in zip(now, before)]):
                return self.inner(*args)

        # With a tape, backwards run inside the backward that computes again, which torch's checkpoint that is not reentrant would
        # take for backwards of their own.
        anchor = torch.empty(0, requires_grad=True)  # so that results need a gradient though no input does
        if tape is not None:
            return Rerun.apply(anchor, run, self._trained, self._moment.device.type, *args)
        return checkpoint(run, anchor, *args, use_reentrant=False, preserve_rng_state=False)


def arguments(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operator by name, with the defaults of those that the call leaves out."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return {}
    found = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
    return {**found, **dict(zip((argument.name for argument in schema.arguments), args)), **kwargs}


def takes_random_numbers(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether this call of an operator does: a dropout of nothing does not, nor one between the layers of a single one."""
    if torch.Tag.nondeterministic_seeded not in getattr(target, "tags", ()):
        return False
    given = arguments(target, args, kwargs)
    trains = given.get("train", given.get("training", True)) is not False
    drops = given.get("dropout_p", given.get("p") if "dropout" in str(target) else None)
    if "num_layers" in given:  # a recurrent network
        return trains and given["dropout"] != 0 and given["num_layers"] > 1
    return trains and drops not in (0, 1)


def draw_count(node: fx.Node, device: torch.device) -> int:
    """How many operators of the module itself draw for the node: a recurrent network has a dropout behind all its layers but the
    last, which are one operator in cuDNN."""
    if not draws(node):
        return 0
    given = arguments(node.target, node.args, node.kwargs)
    return given["num_layers"] - 1 if "num_layers" in given and device.type == "cpu" else 1


def draws(node: fx.Node, training: bool = True) -> bool:
    """Whether it takes random numbers."""
    given = arguments(node.target, node.args, node.kwargs)
    return takes_random_numbers(node.target, node.args, node.kwargs) and (training or not QUIET.keys() & given.keys())


def in_evaluation(node: fx.Node) -> tuple[Any, Any]:
    """The node's arguments as an evaluating model has them."""
    if not arguments(node.target, node.args, node.kwargs):
        return node.args, node.kwargs
    args = [QUIET.get(argument.name, given) for argument, given in zip(node.target._schema.arguments, node.args)]
    return tuple(args), {name: QUIET.get(name, given) for name, given in node.kwargs.items()}
