"""Captures of several processes that differ in nothing but the order of nodes: a forward that walks over a set of texts has another
order in each process (PYTHONHASHSEED). All ranks then take the order, the names and the plan of rank 0.

Nodes are alike that compute the same of the same inputs for the same readers, down to the loss.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.export import ExportedProgram

from ._core import ConfigError
from ._schedule import Schedule

if TYPE_CHECKING:
    from ._capture.capture import Capture
    from ._plan import Plan

Facts = dict[str, Any]  # of rank 0's plan and graph, by name

PLANNED = ("stages", "rank_of_stage", "recomputed_blocks", "slice_ends", "precision", "recompute_except_last")


class Adopted:
    """A plan of another rank. own: what this rank planned, for all that no rank has to share."""

    def __init__(self, facts: Facts, own: Plan):
        self._own = own
        self.schedule = Schedule("\n".join(",".join(row) for row in facts["cells"]))
        self.__dict__.update({name: facts[name] for name in PLANNED})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def digest(*parts: object) -> str:
    return hashlib.sha1(repr(parts).encode()).hexdigest()


def labels_of(program: ExportedProgram) -> dict[fx.Node, str]:
    """What a node computes, of what, and for whom."""
    nodes = list(program.graph.nodes)
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    above: dict[fx.Node, str] = {}
    for node in nodes:
        if node.op == "placeholder" and node.name in constants:
            value = program.constants.get(constants[node.name])
            has_numbers = isinstance(value, torch.Tensor) and not value.is_meta
            above[node] = digest("constant", value.detach().cpu().tolist() if has_numbers else None)
        elif node.op in ("placeholder", "get_attr"):
            above[node] = digest(node.op, str(node.target))
        else:
            given = fx.node.map_arg((node.args, node.kwargs), lambda source: Label(above[source]))
            above[node] = digest(node.op, str(node.target), given)
    below: dict[fx.Node, str] = {}
    for node in reversed(nodes):
        below[node] = digest(above[node], sorted(below[user] for user in node.users))
    return below


class Label:
    def __init__(self, text: str):
        self._text = text

    def __repr__(self) -> str:
        return self._text


def facts_of(plan: Plan, program: ExportedProgram) -> Facts:
    """What other ranks need to have the same plan of the same graph."""
    labels = labels_of(program)
    nodes = [(node.name, labels[node]) for node in program.graph.nodes]
    constants = dict(program.graph_signature.inputs_to_lifted_tensor_constants)
    return {"nodes": nodes, "constants": constants, "text": str(program.graph), "cells": plan.schedule.cells, **{name: getattr(plan, name) for name in PLANNED}}


def adopted(facts: Facts, plan: Plan, capture: Capture, rank: int) -> Any:
    """The plan of rank 0, for a capture whose nodes get its order and names. Errors: ConfigError, which names the first node that this
    rank does not have."""
    program = capture.program
    own: dict[str, list[fx.Node]] = {}
    for node, label in labels_of(program).items():
        own.setdefault(label, []).append(node)
    order = []
    for name, label in facts["nodes"]:
        if not own.get(label):
            raise ConfigError(_differs(program, facts, rank, name))
        order.append(own[label].pop(0))
    if left := [node.name for rest in own.values() for node in rest]:
        raise ConfigError(_differs(program, facts, rank, left[0]))
    before = {name: node for (name, _), node in zip(facts["nodes"], order)}
    new_name = {node.name: name for name, node in before.items()}
    first = next(node for node in program.graph.nodes)
    for node in reversed(order):
        if node is not first:
            first.prepend(node)
        first = node
    for name, node in before.items():
        node.name = name
        if node.op == "placeholder":
            node.target = name
    tensors = dict(program.constants)
    specs = [*program.graph_signature.input_specs, *program.graph_signature.output_specs]
    for spec in specs:
        if getattr(spec.arg, "name", None) in new_name:
            spec.arg = dataclasses.replace(spec.arg, name=new_name[spec.arg.name])
            if constant := facts["constants"].get(spec.arg.name):
                program.constants[constant], spec.target = tensors[spec.target], constant
    if getattr(capture, "outputs", None) is not None:
        capture.outputs.rename(new_name)
    program.graph_module.recompile()
    if str(program.graph) != facts["text"]:
        raise ConfigError(_differs(program, facts, rank, ""))
    return Adopted(facts, plan)


def _differs(program: ExportedProgram, facts: Facts, rank: int, name: str) -> str:
    own, of_rank_0 = str(program.graph).splitlines(), facts["text"].splitlines()
    at = f" {name!r} is in one of them alone." if name else ""
    lines: Sequence[str] = next(([a.strip(), b.strip()] for a, b in zip(own, of_rank_0) if a != b), ["", ""])
    return (
        f"rank {rank} has another graph or plan than rank 0; all ranks capture and plan the same.{at} The first line that differs is "
        f"{lines[0]!r}, and on rank 0 {lines[1]!r}. Does forward depend on the process: its rank, random numbers, the order of a set?"
    )
