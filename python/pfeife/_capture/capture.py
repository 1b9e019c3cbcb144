"""From a module and the batch of a step to the graph of one microbatch: the planner reads it, the executor cuts it.

The module is left as it is; its parameters and inputs are stood in for by tensors without contents on `cpu` while torch.export
traces, so that a model on `meta`, on a device, of any size gives the same graph. Not here: control flow on values of
tensors, which a graph does not hold.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from . import loss_weight
from .archive import bind_symbols, packed, strip_archive
from .batch import Batch
from .errors import DATA_DEPENDENT, Unexportable, explained, where_recorded, why_fixed, with_text
from .grad_regions import inline_regions, recorded_as_it_trains, refuse_hooks, refuse_untraced, refuse_written_inputs
from .outputs import KEY, Outputs
from .terms import PROBE, Terms, symbols_of
from .watch import Form, Watch

__all__ = ["Capture", "Unexportable"]


@contextlib.contextmanager
def masks_as_in_eager_mode(packed_sequences: bool = False) -> Iterator[None]:
    """Keeps transformers from building attention masks that only say "all" or "causal".

    In eager mode it passes no mask and `is_causal` instead, which is what allows fused attention; while exporting it
    cannot look at values and builds the mask, which then goes to every layer.
    packed_sequences: the batch gives positions, of which it may read where sequences begin.
    """
    with contextlib.ExitStack() as patches:
        masking = sys.modules.get("transformers.masking_utils")
        replacements: dict[str, Callable[..., Any]] = {"is_torchdynamo_exporting": lambda: False}
        if not packed_sequences:
            replacements["find_packed_sequence_indices"] = lambda positions: None
        for name, replacement in replacements.items():
            if hasattr(masking, name):
                patches.enter_context(mock.patch.object(masking, name, replacement))
        yield


def without_contents(tensor: torch.Tensor) -> torch.Tensor:
    """A fake tensor of the same form on the CPU. The fake mode keeps no reference to `tensor`, which Pipeline may swap."""
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")


def with_fake_weights(module: nn.Module) -> nn.Module:
    """Replaces parameters and buffers by tensors of the fake mode in force; tied ones stay tied."""
    fake: dict[int, torch.Tensor] = {}
    for owner in module.modules():
        for table in (owner._parameters, owner._buffers):
            for name, tensor in table.items():
                if tensor is not None and id(tensor) not in fake:
                    empty = without_contents(tensor)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    fake[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
                table[name] = None if tensor is None else fake[id(tensor)]
    return module


@contextlib.contextmanager
def fake_weights(module: nn.Module) -> Iterator[None]:
    """The same while it holds."""
    tables = [table for owner in module.modules() for table in (owner._parameters, owner._buffers)]
    before = [dict(table) for table in tables]
    try:
        with_fake_weights(module)
        yield
    finally:
        for table, own in zip(tables, before):
            table.update(own)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without torch's own words on stderr, which an exception says, too."""
    with contextlib.ExitStack() as held:
        for name in ("torch.fx.experimental.symbolic_shapes", "torch.export._trace"):
            held.enter_context(mock.patch.object(logging.getLogger(name), "disabled", True))
        held.enter_context(contextlib.redirect_stderr(io.StringIO()))
        held.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield


def program_of(
    module: nn.Module,
    args: tuple,
    kwargs: dict[str, Any],
    shapes: Any,
    notes: list[str],
    packed_sequences: bool = False,
    cut: Callable[[torch.export.ExportedProgram], None] = lambda program: None,
) -> torch.export.ExportedProgram:
    """Exports a module's training step on these arguments. shapes: which sizes are open, as torch.export takes it. cut: takes out what is not of the loss.

    Errors: Unexportable if it would train in another way than the module; what torch.export raises, and the module itself.
    """
    with quiet(), masks_as_in_eager_mode(packed_sequences), recorded_as_it_trains(notes):
        program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=False)
    refuse_untraced(program)
    inline_regions(program, notes)
    cut(program)
    refuse_written_inputs(program)
    loss_weight.check(program)
    return program


def drop_assertions(program: torch.export.ExportedProgram) -> None:
    """Leaves out what only asserts something of sizes and values."""
    graph = program.graph_module.graph
    asserts = (torch.ops.aten._assert_scalar.default, torch.ops.aten.sym_constrain_range_for_size.default)
    for node in reversed(list(graph.nodes)):
        is_number = isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, torch.SymFloat, int, bool, float))
        if node.op == "call_function" and not node.users and (node.target in asserts or is_number):
            graph.erase_node(node)
    program.graph_module.recompile()


def archive_of(
    program: torch.export.ExportedProgram, module: nn.Module, dimensions: Sequence[int | None] | None, *, keep_weights: bool = False
) -> dict[str, bytes]:
    """Its files, as the planner reads them. dimensions: [input] of the samples; None if their number is open."""
    saved = io.BytesIO()
    try:
        torch.export.save(program, saved)
    except Exception:  # torch has no form for what some assertions ask
        drop_assertions(program)
        saved = io.BytesIO()
        torch.export.save(program, saved)
    files = strip_archive(saved.getvalue(), module, keep_weights)
    facts: dict[str, Any] = {}
    if dimensions is not None:
        names = program.graph_signature.user_inputs
        facts["batch_dimensions"] = {name: d for name, d in zip(names, dimensions) if d is not None}
    if (position := loss_weight.position(program)) is not None:
        facts["loss_weight"] = position
    if facts:
        files["extra/pfeife.json"] = json.dumps(facts, separators=(",", ":")).encode()
    return files


def loss_of(returned: Any) -> Any:
    """What training needs of what a module returns: its loss, and the weight that it may name."""
    loss, weight = returned, None
    if isinstance(returned, Mapping):
        loss, weight = returned.get("loss"), returned.get(loss_weight.NAME)
    elif hasattr(returned, "loss"):
        loss, weight = returned.loss, getattr(returned, loss_weight.NAME, None)
    elif isinstance(returned, (tuple, list)) and returned:
        loss = returned[0]
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.is_floating_point():
        found = f"{list(loss.shape)} of {loss.dtype}" if isinstance(loss, torch.Tensor) else f"a {type(loss).__name__}"
        raise Unexportable(
            f"the loss is {found}; it is a scalar: what forward returns, its first value, its `loss`. Give labels to a model that "
            "computes it with them, or say it beside the model: loss=lambda output, batch: F.cross_entropy(output, batch[\"labels\"])"
        )
    return {"loss": loss} if weight is None else {"loss": loss, loss_weight.NAME: weight}


def whole_step(module: nn.Module, batch: Batch, loss: Callable | None, keep: Callable[[Any], dict[str, Any]]) -> nn.Module:
    """The module with the graph's inputs as forward's arguments and the loss as its result, under the same names.

    keep: gives what of the module's own result is a result, too.
    """
    kind = type(module)
    forward = module.__dict__.get("forward")  # of this object alone

    def step(self: nn.Module, *tensors: torch.Tensor) -> Any:
        output, with_loss = batch.call(forward or kind.forward.__get__(self), tensors, loss)
        return {**loss_of(with_loss), **keep(output)}

    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kinds) for name in ("self", *batch.names)]
    step.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    whole = copy.copy(module)
    whole.__dict__ = {key: value for key, value in module.__dict__.items() if key != "forward"}
    whole.__class__ = type(kind.__name__, (kind,), {"forward": step, "__module__": kind.__module__, "__qualname__": kind.__qualname__})
    return whole


def symbols_at(program: torch.export.ExportedProgram, dimensions: Sequence[Iterable[int]]) -> set[Any]:
    """The symbols of a program's sizes in these dimensions. dimensions: [input]."""
    by_name = {node.name: node for node in program.graph.nodes}
    found: set[Any] = set()
    for name, own in zip(program.graph_signature.user_inputs, dimensions):
        for d in own:
            found.update(symbols_of(by_name[str(name)].meta["val"].shape[d]))
    return found


def resized(tensor: torch.Tensor, dimension: int, samples: int) -> torch.Tensor:
    sizes = list(tensor.shape)
    sizes[dimension] = samples
    return tensor.new_empty(sizes)


class Capture:
    """The graph of one microbatch of a module's training, with its loss.

    program: a torch.export.ExportedProgram whose first output is the scalar loss; its weights are the module's own. archive:
        the bytes that the planner reads. whole: the module itself, with the graph's inputs by position and {"loss": loss}.
    parameters, buffers: by their names in the module the module's own objects; tied names share one.
    outputs: which values of the graph the module returns. training: the mode of the module then. samples: of the batch. microbatches: into how many it is split. microbatch: samples of the largest. is_open: whether the graph holds for other sizes.
    form, watch: what the module was, and which of its attributes forward read.
    notes: sentences about what is planned in another way than it is written.
    """

    def __init__(
        self,
        module: nn.Module,
        args: tuple,
        kwargs: Mapping[str, Any],
        *,
        loss: Callable | None = None,
        microbatches: int = 1,
        batch_dims: Mapping[str, int | None] | None = None,
        dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    ):
        self.module = module
        self.training = module.training
        self.notes: list[str] = []
        self._batch = Batch(module, args, kwargs, batch_dims or {}, dynamic_shapes)
        self.samples = self._batch.samples
        if microbatches > self.samples:
            raise Unexportable(f"a batch of {self.samples} samples has no {microbatches} microbatches; {self.samples} at most")
        self.microbatches = microbatches
        self.microbatch = -(-self.samples // microbatches)
        refuse_hooks(module)
        if module._forward_hooks or module._forward_pre_hooks:
            raise Unexportable("the model itself has forward hooks, which would see a microbatch's tensors; put them on inner modules")
        self._fixed_because = ""
        self.watch = Watch(module, loss)
        self.whole = whole_step(module, self._batch, loss, self._kept)
        self.program = self._exported()
        if not module.training:
            self.notes.append("the model is in evaluation mode, so it trains without dropout and with fixed statistics; model.train() before plan()")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            self.notes.append("no parameter needs a gradient, so that nothing is trained; requires_grad_() before plan()")
        self.is_open = not self._fixed_because
        self._note_loss()
        self.form = Form(module)
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self.buffers = dict(module.named_buffers(remove_duplicate=False))
        self.archive = self._archive()
        for table in (self.program.state_dict, self.program.constants):
            table.update({name: tensor for name, tensor in {**self.parameters, **self.buffers}.items() if name in table})

    def __repr__(self) -> str:
        kind, size = type(self.module).__name__, f"{self.microbatch} samples{' or others' if self.is_open else ''}"
        return f"<pfeife.capture of {kind}: {len(self.program.graph.nodes)} operators, microbatches of {size}, {len(self.notes)} notes>"

    def _exported(self) -> torch.export.ExportedProgram:
        if self.microbatch == 1:
            self._fixed_because = "it was planned for microbatches of one sample"
            return self._traced(None)
        try:
            return self._traced(torch.export.Dim("batch", min=2, max=max(63, 2 * self.microbatch)))
        except Unexportable:
            raise
        except Exception as error:  # torch has no kind of its own for sizes that are not open
            is_open_error = error
        self.notes.clear()
        try:
            program = self._traced(None)
        except Unexportable:
            raise
        except Exception as error:  # anything may go wrong in a user's model
            if any(self._batch.lengths):
                raise Unexportable(
                    f"no graph of this model holds for other sizes in the dimensions of dynamic_shapes: {why_fixed(error, 'size')}. Leave dynamic_shapes out, "
                    "and give microbatches of one size (padded)"
                ) from error
            raise explained(error) from error
        self._fixed_because = why_fixed(is_open_error)
        self.notes.append(f"microbatches have {self.microbatch} samples, no more and no fewer: {self._fixed_because}")
        return program

    @property
    def whole_inputs(self) -> set[str]:
        """The graph's names of the inputs that every microbatch gets whole."""
        return {str(name) for name, d in zip(self.program.graph_signature.user_inputs, self._batch.dimensions) if d is None}

    @property
    def length_symbols(self) -> set[Any]:
        """The graph's symbols of the sizes in dynamic_shapes."""
        return symbols_at(self.program, self._batch.lengths)

    def _note_loss(self) -> None:
        """Says loudly where losses of microbatches are not that of the batch."""
        program = self.program
        if not self.is_open:
            with contextlib.suppress(Exception):  # a model that takes no other number of samples
                program = self._traced(None, PROBE)
        signature, graph = program.graph_signature, program.graph
        inputs = [node for node in graph.nodes if node.op == "placeholder" and node.name in signature.user_inputs]
        weighed = loss_weight.position(program) is not None
        loss = graph.output_node().args[0][0]
        lengths = self.length_symbols if program is self.program else set()
        doubts = Terms(graph, loss, inputs, set(signature.inputs_to_parameters), self.whole_inputs, weighed, lengths).doubts
        messages = [doubts[0] + (f" ({len(doubts) - 1} more: plan.capture.notes)" if len(doubts) > 1 else "")] if doubts else []
        self.notes += doubts
        if note := self._batch.split_note(self.microbatches):
            self.notes.append(note)
            messages.append(note)
        for warning in messages if os.environ.get("RANK", "0") == "0" else ():
            warnings.warn(warning, stacklevel=5)

    def _kept(self, output: Any) -> dict[str, Any]:
        """What the traced program gives besides the loss."""
        return {KEY: self._keep(output)} if torch.compiler.is_exporting() else {}

    def _traced(self, size: Any, samples: int | None = None) -> torch.export.ExportedProgram:
        at = self._batch.dimensions
        lengths = self._batch.lengths if samples is None else []
        shapes: Any = None
        if size is not None or any(lengths):
            dims = {name: torch.export.Dim(name, min=2) for named in lengths for name in named.values()}
            shapes = tuple({**({} if d is None or size is None else {d: size}), **{k: dims[name] for k, name in named.items()}} for d, named in zip(at, lengths))
        with contextlib.ExitStack() as held:
            with FakeTensorMode(allow_non_fake_inputs=True):
                held.enter_context(fake_weights(self.module))
                examples = [without_contents(example) for example in self._batch.examples]
                own = [example if d is None else example.narrow(d, 0, self.microbatch).clone() for d, example in zip(at, examples)]
                inputs = own if samples is None else [value if d is None else resized(value, d, samples) for d, value in zip(at, own)]
            outputs, notes = Outputs(), []
            self._keep = outputs.keep
            if samples is None:
                self.outputs, notes = outputs, self.notes
                held.enter_context(self.watch.recording(self.whole))
            return program_of(
                self.whole,
                tuple(inputs),
                {},
                shapes,
                notes,
                "position_ids" in self._batch.names,
                lambda program: outputs.cut(program, samples or self.microbatch, notes, symbols_at(program, lengths)),
            )

    def _archive(self) -> bytes:
        try:
            files = archive_of(self.program, self.module, None if self.is_open else self._batch.dimensions)
            bind_symbols(files, {str(symbol) for symbol in self.length_symbols})
        except Exception as error:
            raise explained(error) from error
        return packed(files, "model")

    @property
    def example(self) -> list[torch.Tensor]:
        """[input] Of one microbatch of the batch that was captured."""
        at = self._batch.dimensions
        return [example if d is None else example.narrow(d, 0, self.microbatch) for example, d in zip(self._batch.examples, at)]

    def leaves(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """The tensors of a batch as the graph's inputs, in their order. Unexportable if the graph does not hold for them."""
        return self._batch.leaves(args, kwargs)

    def some_leaves(self, *args: Any, **kwargs: Any) -> tuple[list[torch.Tensor], set[str]]:
        """The same of a batch that may lack inputs, such as labels: zeros stand in for them. And the graph's names of those.

        Unexportable if nothing that the module returns can be made without them.
        """
        missing: list[int] = []
        leaves = self._batch.leaves(args, kwargs, missing)
        names = {str(self.program.graph_signature.user_inputs[i]) for i in missing}
        if missing and not self.outputs.without(names):
            absent = ", ".join(self._batch.names[i] for i in missing)
            raise Unexportable(f"the batch lacks {absent}, which all that the model returns depends on: give it, too")
        return leaves, names

    def split(self, leaves: Sequence[torch.Tensor], microbatches: int) -> list[list[torch.Tensor]]:
        """[microbatch][input] The samples in order, in parts that differ by one at most. Inputs without samples go to all.

        There are fewer than asked for where only larger parts have sizes that the graph holds for, as of the last batch of an epoch.
        Unexportable if it holds for none.
        """
        samples, allowed = self.samples_in(leaves), self._allowed
        for count in range(microbatches, 0, -1):
            small, more = divmod(samples, count)
            sizes = [small + 1] * more + [small] * (count - more)
            if all(size in allowed for size in sizes):
                break
        else:
            raise Unexportable(
                f"{samples} samples are no {microbatches} microbatches or fewer of sizes that the graph holds for: {self._only}. Leave "
                "such a batch out (DataLoader: drop_last=True), or plan for this size"
            )
        return self._batch.split(leaves, sizes)

    @property
    def _allowed(self) -> range:
        """Numbers of samples of a microbatch."""
        return range(2, max(63, 2 * self.microbatch) + 1) if self.is_open else range(self.microbatch, self.microbatch + 1)

    @property
    def _only(self) -> str:
        only = f"microbatches of 2 to {max(self._allowed)}" if self.is_open else f"microbatches of {self.microbatch}"
        return only + (f" ({self._fixed_because})" if self._fixed_because else "")

    def samples_in(self, leaves: Sequence[torch.Tensor]) -> int:
        """How many samples the graph's inputs hold."""
        return int(next(leaf.shape[d] for leaf, d in zip(leaves, self._batch.dimensions) if d is not None))

    def batches(self, args: tuple, kwargs: Mapping[str, Any]) -> list[Any] | None:
        """The microbatches, where a list of them is the only argument; None where the arguments are one batch."""
        is_list = len(args) == 1 and not kwargs and isinstance(args[0], list)
        return args[0] if is_list and not self._batch.is_one(args[0]) else None

    def as_microbatch(self, leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """These inputs as one microbatch. Unexportable if the graph does not hold for so many samples."""
        samples = self.samples_in(leaves)
        if samples not in self._allowed:
            raise Unexportable(f"it has {samples} samples; the graph holds for {self._only}")
        return self._batch.split(leaves, [samples])[0]

    def placed(self, error: Exception) -> Exception:
        """A mistake that names a node of the graph, with the line of the model that makes it."""
        message = str(error)
        if "Symbol('u" in message:  # a size that is not the batch's
            message = f"{message.split(';')[0]}. {DATA_DEPENDENT}"
        for node in self.program.graph.nodes:
            if re.search(rf"\b{re.escape(node.name)}\b", message) and (place := where_recorded(node.meta.get("stack_trace") or "")):
                return type(error)(f"{message}\n  {node.name}: {with_text(place)}")
        return error
