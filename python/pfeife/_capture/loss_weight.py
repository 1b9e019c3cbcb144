"""The output "loss_weight" of a module: by how much a microbatch's mean loss counts in the mean over the batch, such as its
count of labels. The runtime computes it before the step, so it depends on the inputs alone."""
from collections.abc import Mapping

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from .errors import Unexportable

NAME = "loss_weight"
LOSSES = ("cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d")
HOW = '; return {"loss": loss, "loss_weight": (labels != -100).sum()}, for labels among the inputs'


def position(program: torch.export.ExportedProgram) -> int | None:
    """The number of the output "loss_weight" among all; None if the module names none."""
    spec = program.call_spec.out_spec
    places = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    return places.get(NAME) if isinstance(places, Mapping) else getattr(places, NAME, None)


def is_number(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def has_several_labels(loss: torch.fx.Node) -> bool:
    """False if the mean is over an input with one label a sample."""
    labels = loss.args[1]
    return not labels.meta["val"].is_floating_point() and not (labels.op == "placeholder" and labels.meta["val"].dim() == 1)


def refuse_other_sources(program: torch.export.ExportedProgram, weight: torch.fx.Node) -> None:
    kinds = {spec.arg.name: spec for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
    stack, seen = [weight], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        stack += node.all_input_nodes
        if node.op == "placeholder" and kinds[node.name].kind == InputKind.PARAMETER:
            raise Unexportable(f"{NAME} depends on the parameter {kinds[node.name].target}{HOW}")
        if node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Unexportable(f"{NAME} depends on random numbers ({node.target}){HOW}")


def note_labels(program: torch.export.ExportedProgram, notes: list[str]) -> None:
    """Notes a loss that may need a weight, for runtimes that do not count labels by themselves."""
    losses = [node for node in program.graph.nodes if node.op == "call_function"
              and getattr(node.target, "_opname", "") in LOSSES and has_several_labels(node)]
    if losses and position(program) is None:
        notes.append("the loss is a mean over labels: where microbatches have different counts of them (ignore_index, "
                     "padding), training weighs samples, not labels" + HOW)


def check(program: torch.export.ExportedProgram) -> None:
    """Refuses a weight that cannot be computed before the step."""
    outputs = program.graph.output_node().args[0]
    at = position(program)
    if at is None:
        return
    node = outputs[at]
    if not isinstance(node, torch.fx.Node) or not is_number(node.meta["val"]) or node.op == "placeholder":
        raise Unexportable(f"{NAME} is not a scalar tensor that forward computes{HOW}")
    before = [output for output in outputs[:at] if isinstance(output, torch.fx.Node) and is_number(output.meta["val"])
              and output.meta["val"].is_floating_point()]
    if not before:
        raise Unexportable(f"{NAME} comes before the loss{HOW}")
    refuse_other_sources(program, node)
