"""What cannot be captured: the line of the user's code, and a remedy. Needs no torch."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Iterable
from pathlib import Path

PACKAGE = str(Path(__file__).parent.parent)


class Unexportable(ValueError):
    """A model whose graph would not train as the module does, or has none; the text says where and what to do."""


DATA_DEPENDENT = (
    "forward decides by a value of a tensor, and a graph holds one way only. Use torch.where or a mask instead of `if`, "
    "keep sizes apart from values, or tell torch what always holds: torch._check(...). A mask that masks nothing may be left "
    "out of the batch"
)
#: (pattern of the exception's name and text, remedy), the first that is found.
REMEDIES = [
    (r"_higher_order_ops|higher_order", "control flow on values of tensors (torch.cond, while_loop, scan): a graph holds one way "
     "only. Compute both and choose by torch.where"),
    (r"DataDependent|data-dependent|Could not guard|Could not extract specialized|\.item\(\)|_local_scalar_dense", DATA_DEPENDENT),
    (r"numpy|tolist|\.data_ptr|\.storage", "forward reads values of tensors in Python (numpy, tolist, data_ptr), which a graph "
     "cannot hold. Use tensor operators, or do it in the data loader"),
    (r"[Ff]ake impl|[Mm]eta (kernel|impl)|'Meta' backend|UnsupportedOperator|no fake", "an operator says nothing of its result's "
     "shape. Register that: torch.library.register_fake(...)"),
    (r"assigned during export", "forward sets attributes. Make them buffers: register_buffer(name, tensor)"),
    (r"devices? (meta|cpu).*(meta|cpu)", "a tensor is an attribute of the module, but not registered, so that it stays on its "
     "device. Make it a buffer: register_buffer(name, tensor)"),
    (r"unexpected keyword|positional argument|multiple values|required argument", "the batch does not fit forward: a dict gives "
     "arguments by name, a tuple in order, all else is one argument. What only a loss beside the model reads: "
     "loss=lambda output, batch: ..."),
]


def where(frames: Iterable[traceback.FrameSummary]) -> str:
    """FILE:LINE of the innermost frame that is neither torch's nor this package's; "" if there is none."""
    for frame in reversed(list(frames)):
        if not re.search(r"/torch/|/unittest/|/contextlib\.py$|^<", frame.filename) and not frame.filename.startswith(PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def with_text(place: str) -> str:
    file, _, line = place.rpartition(":")
    text = linecache.getline(file, int(line)).strip() if file else ""
    return f"{place}: {text}" if text else place


def where_recorded(stack: str) -> str:
    """The same of a stack trace as torch.export records one with each node."""
    return where(traceback.FrameSummary(file, int(line), "") for file, line in re.findall(r'File "(.*)", line (\d+)', stack))


def chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, the first cause first."""
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.insert(0, cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return found


def explained(error: Exception) -> Unexportable:
    """What a user can do about an exception of torch.export or of the module's own."""
    causes = chain(error)
    places = [where(traceback.extract_tb(cause.__traceback__)) for cause in causes]
    place = next((place for place in places if place), "")
    text = f"{type(causes[0]).__name__}: {causes[0]}".strip()
    place = place or where_recorded(text)
    remedy = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, text)), "")
    message = next((line.strip() for line in text.splitlines() if line.strip()), text)
    return Unexportable(f"{with_text(place) or 'the model'}\n  {message[:400]}" + (f"\n  {remedy}" if remedy else ""))


def why_fixed(error: Exception, size: str = "batch size") -> str:
    """Why a graph holds for one batch size (or another) only, of what torch.export says of an open one."""
    text = str(chain(error)[0])
    if "specialized it to be a constant" in text:
        return f"the model has sizes that hold for this {size} only"
    if guard := re.search(r"generated guard (.+)", text):
        return f"the model decides by the {size}: {guard[1]}"
    return str(explained(error)).replace("\n", " ")
