"""The exporter's proof: the archive trains as the module does.

With weights both run on the same inputs, and loss, further outputs, buffers and the gradient of every parameter are
compared. Without weights there are no numbers: the same functions must lead backward from the loss to each parameter.
"""
import contextlib
from collections import Counter
from dataclasses import dataclass

import torch
from torch import nn
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from package import Unexportable

SEED = 0  # of random operators, the same before both runs


@dataclass
class Run:
    outputs: list[torch.Tensor]
    leaves: dict[str, torch.Tensor]  # trainable parameters by name; of tied ones each name that the graph reads
    buffers: dict[str, torch.Tensor]  # as they are afterwards

    @property
    def loss(self) -> torch.Tensor:
        return next(output for output in self.outputs if output.is_floating_point() and output.numel() == 1)


def names_of(module: nn.Module) -> dict[str, str]:
    """The first name of the same tensor, by each name of a trainable parameter."""
    first = {id(parameter): name for name, parameter in module.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in module.named_parameters(remove_duplicate=False) if parameter.requires_grad}


@contextlib.contextmanager
def buffers_kept(module: nn.Module):
    """Afterwards the module's buffers are what they were, in tensors and in contents."""
    tables = [(owner._buffers, dict(owner._buffers)) for owner in module.modules()]
    contents = {id(tensor): (tensor, tensor.clone()) for _, table in tables for tensor in table.values() if tensor is not None}
    try:
        yield
    finally:
        for table, before in tables:
            table.update(before)
        with torch.no_grad():
            for buffer, before in contents.values():
                buffer.copy_(before)


def run_module(module: nn.Module, inputs: tuple | dict) -> Run:
    torch.manual_seed(SEED)
    returned = module(**inputs) if isinstance(inputs, dict) else module(*inputs)
    leaves = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    buffers = {name: buffer.detach().clone() for name, buffer in module.named_buffers(remove_duplicate=False)}
    return Run([leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)], leaves, buffers)


def run_program(program: torch.export.ExportedProgram, inputs: tuple | dict) -> Run:
    """Its graph on copies of its own weights and buffers."""
    leaves, buffers, arguments = {}, {}, []
    given = iter(pytree.tree_leaves(inputs))
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT:
            arguments.append(next(given))
        elif spec.kind == InputKind.PARAMETER:
            stored = program.state_dict[spec.target]
            if spec.target not in leaves:
                leaves[spec.target] = stored.detach().clone().requires_grad_(stored.requires_grad)
            arguments.append(leaves[spec.target])
        elif spec.kind == InputKind.BUFFER:
            stored = program.state_dict if spec.target in program.state_dict else program.constants
            buffers.setdefault(spec.target, stored[spec.target].detach().clone())
            arguments.append(buffers[spec.target])
        else:
            arguments.append(program.constants[spec.target])
    torch.manual_seed(SEED)
    returned = torch.fx.Interpreter(program.graph_module).run(*arguments)
    leaves = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    return Run([result for result in returned if isinstance(result, torch.Tensor)], leaves, buffers)


def ways_to_parameters(run: Run, first: dict[str, str]) -> Counter:
    """What backward runs on the ways from the loss to parameters: its functions by name, parameters by their uses."""
    name_of = {id(leaf): first[name] for name, leaf in run.leaves.items()}

    def name(node):
        return name_of.get(id(node.variable)) if hasattr(node, "variable") else node.name()

    following = {}
    leads = set()  # nodes from which a parameter is reached
    stack = [(run.loss.grad_fn, False)] if run.loss.grad_fn is not None else []
    while stack:
        node, is_left = stack.pop()
        if is_left:
            if hasattr(node, "variable") and name(node) or any(follower in leads for follower in following[node]):
                leads.add(node)
        elif node not in following:
            following[node] = [function for function, _ in node.next_functions if function is not None]
            stack += [(node, True), *((follower, False) for follower in following[node])]
    counts = Counter(name(node) for node in leads if not hasattr(node, "variable"))
    counts.update(name(follower) for node in leads for follower in following[node] if follower in leads and hasattr(follower, "variable"))
    return counts


def no_gradient(notes: list[str]) -> Unexportable:
    return Unexportable("no parameter gets a gradient from the module's loss. " + " ".join(note + "." for note in notes))


def refuse(found: list[str]) -> None:
    shown = "".join("\n  " + line for line in found[:8])
    rest = f"\n  and {len(found) - 8} more" if len(found) > 8 else ""
    raise Unexportable(f"the archive would train in another way than the module, so it is not written:{shown}{rest}\n"
                       "torch.export records operators of forward alone. Look for what makes other gradients than these "
                       "operators do (hooks, .data, in-place writes under torch.no_grad), or decides by Python (random, "
                       "training steps counted), and write it with tensor operators")


def prove_ways(program: torch.export.ExportedProgram, module: nn.Module, inputs: tuple | dict, notes: list[str]) -> str:
    """Without weights. Runs under the conditions that export ran under."""
    first = names_of(module)
    with buffers_kept(module):
        theirs = ways_to_parameters(run_module(module, inputs), first)
    ours = ways_to_parameters(run_program(program, inputs), first)
    reached = len(set(first.values()) & set(theirs))
    if reached == 0:
        raise no_gradient(notes)
    found = [f"{name} {'is reached' if name in first else 'runs'} {ours[name]} times in backward, in the module's {theirs[name]}"
             for name in dict.fromkeys([*first.values(), *theirs, *ours]) if ours[name] != theirs[name]]
    if found:
        refuse(found)
    return (f"{reached} of {len(set(first.values()))} trainable parameters get a gradient, by the same functions as in the module; "
            "with weights (--real-weights) values are compared")


def drawn(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random contents: [0, 1) as probabilities are, too; integers up to the largest of the example, 1 at least."""
    if tensor.dtype == torch.bool:
        return torch.rand(tensor.shape, generator=generator) < 0.5
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)
    largest = max(1, int(tensor.max())) if tensor.numel() > 0 else 1
    return torch.randint(0, largest + 1, tensor.shape, generator=generator, dtype=tensor.dtype)


def gradients(run: Run, first: dict[str, str]) -> dict[str, torch.Tensor]:
    """By the first name of each parameter that gets one; the same tensor under several names has their sum."""
    before = {name: leaf.grad for name, leaf in run.leaves.items()}
    try:
        for leaf in run.leaves.values():
            leaf.grad = None
        if run.loss.requires_grad:
            run.loss.backward()
        sums = {}
        for name, leaf in run.leaves.items():
            if leaf.grad is not None:
                sums[first[name]] = sums[first[name]] + leaf.grad if first[name] in sums else leaf.grad
        return sums
    finally:
        for name, leaf in run.leaves.items():
            leaf.grad = before[name]


def measured_module(module: nn.Module, inputs: tuple | dict,
                    notes: list[str]) -> tuple[Run, dict[str, torch.Tensor], tuple | dict]:
    """Run, gradients and inputs: random ones, or the example's where those give no finite loss or no gradient."""
    generator = torch.Generator().manual_seed(SEED)
    for candidate in (pytree.tree_map(lambda value: drawn(value, generator), inputs), inputs):
        try:
            with buffers_kept(module):
                run = run_module(module, candidate)
                found = gradients(run, names_of(module))
        except Exception:  # a model may refuse what was drawn
            if candidate is inputs:
                raise
            continue
        if not found:
            raise no_gradient(notes)
        if run.loss.isfinite() and any(gradient.count_nonzero() > 0 for gradient in found.values()):
            return run, found, candidate
    raise Unexportable("the module's loss, on random inputs and on the example's, is not finite or has no gradient but 0: the "
                       "archive cannot be compared with it. Return example inputs or weights that it can train on")


def is_rounded(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)


def norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(wide(tensor)))


def differing(what: str, ours: dict, theirs: dict, floor: float = 0) -> tuple[list[str], float]:
    """What differs, and the largest relative difference. Both run the same operators in the same order, so that roundings
    are all that may differ; half of a type's digits is far more than these take. `floor`: of tensors that are all rounding,
    as the gradient of a bias before a norm."""
    found, largest = [], 0.0
    for name in dict.fromkeys([*theirs, *ours]):
        gradient = theirs[name] if name in theirs else ours[name]
        expected, actual = (side.get(name, torch.zeros_like(gradient)) for side in (theirs, ours))
        if expected.shape != actual.shape or expected.dtype != actual.dtype:
            found.append(f"{what} {name}: {actual.dtype} {list(actual.shape)}, in the module {expected.dtype} {list(expected.shape)}")
            continue
        if torch.allclose(wide(expected), wide(actual), rtol=0, atol=0, equal_nan=True):
            continue
        scale, distance = norm(expected), norm(wide(actual) - wide(expected))
        allowed = torch.finfo(expected.dtype).eps ** 0.5 if is_rounded(expected) else 0
        if not distance <= allowed * scale + floor:
            share = f"{distance / scale:.2g} of its norm" if scale > 0 else "it is 0 there"
            found.append(f"{what} {name}: differs from the module's by {share}")
        largest = max(largest, distance / scale if scale > 0 else 0.0)
    return found, largest


def prove_values(program: torch.export.ExportedProgram, module: nn.Module, inputs: tuple | dict, notes: list[str]) -> str:
    """With weights, those of the program against those of the module."""
    first = names_of(module)
    theirs, expected, inputs = measured_module(module, inputs, notes)
    ours = run_program(program, inputs)
    own_gradients = gradients(ours, first)
    scale = max(norm(tensor) for tensor in expected.values())
    eps = max(torch.finfo(tensor.dtype).eps for tensor in expected.values())
    judged = [differing("output", dict(enumerate(ours.outputs)), dict(enumerate(theirs.outputs))),
              differing("gradient of", own_gradients, expected, floor=16 * eps * scale),
              differing("buffer", ours.buffers, {name: theirs.buffers[name] for name in ours.buffers})]
    if found := [line for lines, _ in judged for line in lines]:
        refuse(found)
    return (f"loss, buffers and the gradients of {len(expected)} of {len(set(first.values()))} trainable parameters are the "
            f"module's (largest relative difference {max(largest for _, largest in judged):.1g})")
