"""What a graph takes of a module as it was: its children, parameters, buffers, modes and hooks, and every attribute that forward
read while the graph was recorded. A graph is a photograph: what changes afterwards, or while it is taken, it does not have.

Not here: values of tensors, which the graph reads again in each step; what functions read that are neither methods of the module's
classes nor called by them from the same file.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import numbers
import operator
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from .batch import PLAIN
from .errors import Unexportable

_OWN = frozenset(vars(nn.Module())) | {"forward"}  # attributes of every module, which are compared by themselves
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_METHODS = frozenset(dir(nn.Module))
LARGEST = 1000  # values of a container that is compared
LOSS = "the loss function"
CURE = (
    "The plan's graph holds the module as it was captured: plan again and make a new Pipeline, or set it back. What changes from step "
    "to step is an input of the batch or a buffer"
)


def has_numbers(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and not thing.is_meta and not isinstance(thing, FakeTensor)


class Same:
    """An object that has no value of its own: equal to itself alone, a tensor to all with its numbers."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, another: object) -> bool:
        if not isinstance(another, Same) or another.thing is self.thing:
            return isinstance(another, Same)
        both = (self.thing, another.thing)
        if not all(map(has_numbers, both)) or both[0].dtype is not both[1].dtype:
            return False
        return torch.equal(*(tensor.detach().cpu() for tensor in both))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"a {type(self.thing).__name__}"


def is_plain(value: Any) -> bool:
    return isinstance(value, (PLAIN, numbers.Number)) and not isinstance(value, torch.SymInt)


def frozen(value: Any, depth: int = 3) -> Any:
    """What can be compared later: a value as it is, a container by its values, another object by its identity."""
    if is_plain(value):
        return value
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, weakref.ref):  # what it names is another's; torch's recurrent layers make new ones after an exchange of weights
        return None
    if hasattr(value, "bit_generator"):  # of numpy
        return repr(value.bit_generator.state)
    if depth and isinstance(value, types.SimpleNamespace):
        return frozen(vars(value), depth - 1)
    if depth and isinstance(value, (list, tuple, set, frozenset, collections.deque, Mapping)) and len(value) <= LARGEST:
        if isinstance(value, Mapping):
            return {key: frozen(item, depth - 1) for key, item in value.items()}
        if isinstance(value, (set, frozenset)):
            return frozenset(item for item in value if is_plain(item))
        return [frozen(item, depth - 1) for item in value]
    return Same(value)


def differs(before: Any, now: Any) -> bool:
    return before is not now and before != now


def grew_only(before: Any, now: Any) -> bool:
    """Whether what was in a container is in it still."""
    if isinstance(before, list) and isinstance(now, list):
        return len(now) > len(before) and not any(map(differs, before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        return not any(key not in now or differs(value, now[key]) for key, value in before.items())
    return False


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def functions_of(kind: type) -> list[Any]:
    """The functions of a user's class and of its bases, without those of torch."""
    kinds = [ancestor for ancestor in kind.__mro__ if not ancestor.__module__.startswith(("torch.", "builtins"))]
    return [value for owner in kinds for value in vars(owner).values() if isinstance(value, types.FunctionType)]


class Watch:
    """The attributes that forward reads of modules, and of the objects which they hold, while `recording` holds.

    model: whose forward runs. loss: a module or a function that runs behind it; None = none.
    """

    def __init__(self, model: nn.Module, loss: Any = None):
        self._paths: dict[int, str] = {}
        self._kept: list[Any] = []  # whose ids are above
        self._kinds: dict[type, None] = {nn.Module: None}
        self._names: list[tuple[str, Callable[[], Any], Any]] = []  # globals and closures: name, how to read it, value then
        self._functions: set[Any] = set()  # whose names are there
        self._first: dict[tuple[int, str], Any] = {}  # of what was read before it was written
        self._last: dict[tuple[int, str], Any] = {}  # of what was read, then written
        self._written: set[tuple[int, str]] = set()
        self._objects: dict[int, Any] = {}
        self._model = model
        for name, root in (("", model), (LOSS, loss)):
            if isinstance(root, nn.Module):
                for path, module in root.named_modules(remove_duplicate=False):
                    self._add(module, ".".join(part for part in (name, path) if part))
            elif root is not None:
                self._function(name, getattr(root, "func", root))
        for kind in {type(module): None for module in self._kept if isinstance(module, nn.Module)}:
            for function in functions_of(kind):
                self._function("", function)

    def _add(self, thing: Any, path: str, depth: int = 2) -> None:
        if id(thing) in self._paths:
            return
        self._paths[id(thing)] = path
        self._objects[id(thing)] = thing
        self._kept.append(thing)
        if not isinstance(thing, nn.Module):
            self._kinds[type(thing)] = None
        for name, value in vars(thing).items() if depth else ():
            is_object = hasattr(value, "__dict__") and type(value).__flags__ & (1 << 9) and not isinstance(value, (torch.Tensor, nn.Module, type))
            if is_object and name not in _OWN and not callable(value):
                self._add(value, f"{path}.{name}" if path else name, depth - 1)

    def _function(self, name: str, function: Any, helps: bool = False) -> None:
        """The globals and closures that a function reads, and those of the functions of its file that it calls. helps: it is such a one."""
        if isinstance(function, types.MethodType):
            if hasattr(function.__self__, "__dict__") and not isinstance(function.__self__, type):
                self._add(function.__self__, name)
            function = function.__func__
        code = getattr(function, "__code__", None)
        if code is None or function in self._functions:
            return
        self._functions.add(function)
        space = function.__globals__
        # co_names has attributes, too.
        for global_name in dict.fromkeys(step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"):
            helper = space.get(global_name)
            if not helps and isinstance(helper, types.FunctionType) and helper.__globals__ is space:
                self._function("", helper, helps=True)
            if is_plain(space.get(global_name)) and global_name in space and not global_name.startswith("__"):
                label = f"{global_name} of {space.get('__name__', 'a module')}"
                self._names.append((label, lambda space=space, global_name=global_name: space.get(global_name), space[global_name]))  # type: ignore[misc]
        for free_name, cell in zip(code.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):  # empty
                if is_plain(cell.cell_contents):
                    label = f"{free_name} of {function.__qualname__}"
                    self._names.append((label, lambda cell=cell: cell.cell_contents, cell.cell_contents))  # type: ignore[misc]

    @contextlib.contextmanager
    def recording(self, copy_of_model: nn.Module) -> Iterator[None]:
        """While it holds, notes what is read. Unexportable if forward draws numbers of Python, or counts."""
        self._paths[id(copy_of_model)] = ""
        self._objects[id(copy_of_model)] = self._model
        for seen in (self._first, self._last, self._written):
            seen.clear()
        numpy = sys.modules.get("numpy")
        draws = {"random": (random.getstate, random.setstate)}
        if numpy is not None:
            draws["numpy.random"] = (lambda: numpy.random.get_state(legacy=False), numpy.random.set_state)  # type: ignore[dict-item, return-value]
        before = {name: get() for name, (get, _) in draws.items()}
        with contextlib.ExitStack() as held:
            for kind in self._kinds:
                with contextlib.suppress(TypeError, AttributeError):  # a class that cannot be changed
                    held.enter_context(self._watched(kind))
            yield
        for name, (get, put) in draws.items():
            if repr(get()) != repr(before[name]):
                put(before[name])
                raise Unexportable(
                    f"forward draws numbers of Python's {name} while it is recorded, and a graph would hold this one draw for ever. "
                    "Draw them in the data loader and give them with the batch, or by torch (torch.rand) and choose by torch.where"
                )
        self._refuse_counters()
        del self._paths[id(copy_of_model)], self._objects[id(copy_of_model)]

    @contextlib.contextmanager
    def _watched(self, kind: type) -> Iterator[None]:
        own = {name: vars(kind).get(name) for name in ("__getattribute__", "__setattr__")}
        read: Any = kind.__getattribute__
        write: Any = kind.__setattr__

        def get(thing: Any, name: str) -> Any:
            value = read(thing, name)
            if name[:2] != "__" and id(thing) in self._paths:
                self._was_read(thing, name, value)
            return value

        def put(thing: Any, name: str, value: Any) -> None:
            write(thing, name, value)
            if id(thing) in self._paths and name not in _OWN:
                key = (id(self._objects[id(thing)]), name)
                if key in self._first:
                    self._last[key] = frozen(value)
                else:
                    self._written.add(key)

        kind.__getattribute__, kind.__setattr__ = get, put  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            for name, original in own.items():
                if original is None:
                    delattr(kind, name)
                else:
                    setattr(kind, name, original)

    def _was_read(self, thing: Any, name: str, value: Any) -> None:
        key = (id(self._objects[id(thing)]), name)
        if key in self._first or key in self._written or name in _OWN:
            return
        if name in object.__getattribute__(thing, "__dict__") or is_plain(value) and name not in _METHODS:
            self._first[key] = frozen(value)

    def _refuse_counters(self) -> None:
        """What forward read and left otherwise: the next forward would find it so, and the graph never does."""
        settled = {key for key, before in self._first.items() if before is None}  # made on first use
        found = [(self._name(key), self._first[key], now) for key, now in self._last.items() if is_plain(now) and key not in settled]
        for key, before in self._first.items():
            if not is_plain(before) and not isinstance(before, Same):
                with contextlib.suppress(AttributeError):
                    now = frozen(getattr(self._objects[key[0]], key[1]))
                    if not grew_only(before, now):
                        found.append((self._name(key), before, now))
        found += [(name, before, get()) for name, get, before in self._names]
        for name, before, now in found:
            if differs(before, now):
                raise Unexportable(
                    f"forward reads {name} and changes it from {shown(before)} to {shown(now)}; a graph would hold {shown(before)} for ever. "
                    "Make it a tensor that forward writes in place (register_buffer), or an input of the batch; what only the first forward "
                    "sets is set by one run of the module before plan()"
                )

    def _name(self, key: tuple[int, str]) -> str:
        path = self._paths.get(key[0], "")
        return f"{path}.{key[1]}" if path else key[1]

    def bound(self, model: nn.Module) -> Bound:
        """The attributes as they are now in a model, the one that was recorded or another of its kind."""
        modules = dict(model.named_modules(remove_duplicate=False))
        entries = []
        for (number, name), value in self._first.items():
            path = self._paths[number]
            owner: Any = self._objects[number]
            if model is not self._model and not path.startswith(LOSS):
                owner = modules.get(path)
                head, _, last = path.rpartition(".")
                if owner is None and head in modules:
                    owner = getattr(modules[head], last, None)  # an object that a module holds
            if owner is not None:
                entries.append((self._name((number, name)), owner, name, value, self._last.get((number, name), value)))
        return Bound(entries, self._names)


class Bound:
    """Attributes of a model, and the globals of its code: what was read while its graph was recorded.

    entries: name in messages, owner, name, value, and the value that forward left. names: of globals, how to read them, value.
    """

    def __init__(self, entries: list[tuple[str, Any, str, Any, Any]], names: list[tuple[str, Callable[[], Any], Any]]):
        self._entries, self._names = entries, names

    def now(self) -> Bound:
        """With the values that are there now."""
        entries = [(label, owner, name, frozen(getattr(owner, name, None)), left) for label, owner, name, _, left in self._entries]
        return Bound(entries, self._names)

    def changes(self, values_alone: bool = False) -> Iterator[str]:
        """values_alone: without objects that have no value of their own."""
        for label, owner, name, before, left in self._entries:
            now = getattr(owner, name, None)
            if now is not before and differs(before, now := frozen(now)) and differs(left, now):
                if not values_alone or is_plain(before) and is_plain(now):
                    yield f"{label} was {shown(before)}, and is {shown(now)}"
        for label, get, before in self._names:
            if differs(before, get()):
                yield f"{label} was {shown(before)}, and is {shown(get())}"


class Form:
    """The modules that a model consists of, with their modes, children, parameters, buffers and hooks."""

    def __init__(self, model: nn.Module):
        self._modules = [(path, module, self._of(module), self._named(module)) for path, module in model.named_modules(remove_duplicate=False)]

    @staticmethod
    def _of(module: nn.Module) -> list[Any]:
        own = module.__dict__
        tensors = (*own["_parameters"].values(), None, *own["_buffers"].values())
        return [type(module), own["training"], own.get("forward"), *map(len, map(own.__getitem__, HOOKS)), *own["_modules"].values(), *tensors]

    @staticmethod
    def _named(module: nn.Module) -> dict[str, dict[str, Any]]:
        own = module.__dict__
        return {"": dict(own["_modules"]), "parameter ": dict(own["_parameters"]), "buffer ": dict(own["_buffers"])}

    def changes(self, modes: bool = True) -> Iterator[str]:
        """What is otherwise now. modes: whether training and evaluation count."""
        for path, module, before, named in self._modules:
            now = self._of(module)
            if len(now) != len(before) or not all(map(operator.is_, before, now)):
                yield from self._compared(path, before, now, named, self._named(module), True, modes)

    def changes_in(self, model: nn.Module) -> Iterator[str]:
        """What is otherwise in a model that is to stand for this one: other objects may do, of the same kinds."""
        others = dict(model.named_modules(remove_duplicate=False))
        for path, _, before, named in self._modules:
            if path in others:  # else its parent says so
                yield from self._compared(path, before, self._of(others[path]), named, self._named(others[path]), False, True)

    @staticmethod
    def _compared(path: str, before: list[Any], now: list[Any], named: Any, named_now: Any, same: bool, modes: bool) -> Iterator[str]:
        name = path or "the model"
        if before[0] is not now[0] and path:
            yield f"{name} was a {before[0].__name__}, and is a {now[0].__name__}"
        if modes and before[1] is not now[1]:
            was, mode = ("training" if training else "evaluation" for training in (before[1], now[1]))
            yield f"{name} was in {was} mode, and is in {mode} mode"
        if same and before[2] is not now[2]:
            yield f"forward of {name} is another function"
        hooks = slice(3, 3 + len(HOOKS))
        if before[hooks] != now[hooks]:
            yield f"{name} had {sum(before[hooks])} hooks, and has {sum(now[hooks])}"
        for what, table in named.items():
            for key in {**table, **named_now[what]}:
                before_value, value_now = table.get(key), named_now[what].get(key)
                if before_value is not value_now and (same or (before_value is None) != (value_now is None)):
                    yield f"{what}{path}{'.' * bool(path)}{key} {'was taken away' if value_now is None else 'is new' if before_value is None else 'is another object'}"
