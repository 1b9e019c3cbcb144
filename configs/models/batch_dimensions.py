"""Which dimension of each input holds the samples: told, or found by building the inputs of two batches."""
import torch

from package import Unexportable

REMEDY = ("let FUNCTION take the batch size (def my_model(batch=4)), or return the dimensions as a third value: "
          "(module, inputs, {\"tokens\": 0, \"positions\": 1})")


def named(inputs: tuple | dict) -> dict[str | int, torch.Tensor]:
    return dict(inputs) if isinstance(inputs, dict) else dict(enumerate(inputs))


def like(inputs: tuple | dict, values: dict) -> tuple | dict:
    return dict(values) if isinstance(inputs, dict) else tuple(values.values())


def shown(name: str | int, tensor: torch.Tensor) -> str:
    return f"input {name!r} {list(tensor.shape)}"


def samples(inputs: tuple | dict, dimensions: tuple | dict) -> int:
    at = named(dimensions)
    return next(tensor.shape[at[name]] for name, tensor in named(inputs).items() if at[name] is not None)


def first(inputs: tuple | dict) -> tuple | dict:
    """The first of every input that has as many samples there as the first input."""
    tensors = named(inputs)
    batch = next(tensor.shape[0] for tensor in tensors.values() if tensor.dim() > 0)
    return like(inputs, {name: 0 if tensor.dim() > 0 and tensor.shape[0] == batch else None for name, tensor in tensors.items()})


def given_dimensions(inputs: tuple | dict, dimensions: tuple | list | dict) -> tuple | dict:
    """By name or in order; inputs that are not named have no samples."""
    tensors = named(inputs)
    given = dimensions if isinstance(dimensions, dict) else dict(enumerate(dimensions))
    if unknown := [name for name in given if name not in tensors]:
        raise Unexportable(f"a batch dimension is given for {unknown[0]!r}; inputs: {', '.join(map(str, tensors))}")
    found = {name: given.get(name) for name in tensors}
    for name, tensor in tensors.items():
        if found[name] is not None and not 0 <= found[name] < tensor.dim():
            raise Unexportable(f"{shown(name, tensor)} has no dimension {found[name]}, which is given as its batch")
    sizes = {tensors[name].shape[at] for name, at in found.items() if at is not None}
    if len(sizes) != 1:
        raise Unexportable(f"the given batch dimensions have sizes {sorted(sizes)}; all must have the number of samples")
    return like(inputs, found)


def grown(inputs: tuple | dict, larger: tuple | dict) -> tuple | dict:
    """The dimension of each input that is longer in `larger`, the inputs of one more sample."""
    tensors, others, found = named(inputs), named(larger), {}
    for name, tensor in tensors.items():
        longer = [d for d, (a, b) in enumerate(zip(tensor.shape, others[name].shape)) if a != b]
        if len(longer) > 1 or any(others[name].shape[d] != tensor.shape[d] + 1 for d in longer):
            raise Unexportable(f"{shown(name, tensor)} is {list(others[name].shape)} with one more sample: one dimension must be "
                               "the number of samples")
        found[name] = longer[0] if longer else None
    if all(at is None for at in found.values()):
        raise Unexportable("no input has one sample more when FUNCTION is asked for one more")
    sizes = {name: tensors[name].shape[at] for name, at in found.items() if at is not None}
    if len(set(sizes.values())) != 1:
        raise Unexportable(f"inputs have different numbers of samples: {sizes}")
    return like(inputs, found)


def by_length(inputs: tuple | dict, batch: int | None) -> tuple | dict:
    """Where nothing else is known: the only length that every input has once, or `batch`."""
    tensors = {name: tensor for name, tensor in named(inputs).items() if tensor.dim() > 0}
    lengths = [set(size for size in tensor.shape if list(tensor.shape).count(size) == 1) for tensor in tensors.values()]
    common = set.intersection(*lengths) if batch is None else {batch}
    if len(common) == 1:
        size, = common
        found = {name: [d for d, length in enumerate(tensor.shape) if length == size] for name, tensor in named(inputs).items()}
        if all(len(at) <= 1 for at in found.values()) and any(found.values()):
            return like(inputs, {name: at[0] if at else None for name, at in found.items()})
    shapes = ", ".join(shown(name, tensor) for name, tensor in tensors.items())
    raise Unexportable(f"which dimension is the batch is not known: {shapes}; {REMEDY}")
