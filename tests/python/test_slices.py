"""What cannot be computed slice by slice is refused, with the operator that is in the way; what slices keep and how their gradients
come together, in one process. How families train with slices stands in pipeline_ranks.py."""

import functools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import torch.nn.functional as F  # noqa: E402
from pfeife import ConfigError, _host  # noqa: E402
from pfeife._executor import Executor  # noqa: E402
from pfeife._operators import Moment  # noqa: E402
from pfeife._schedule import Action  # noqa: E402
from pfeife._slices import Leaf, Slices  # noqa: E402
from pfeife._stages import Program, Stage  # noqa: E402
from pipeline_models import TinyGPT, tokens  # noqa: E402
from pipeline_ranks import Captured, difference  # noqa: E402
from torch import nn  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402


class Middle(nn.Module):
    """Embedding, something in between, and a head."""

    def __init__(self, between, loss=lambda scores, labels: F.cross_entropy(scores.flatten(0, 1), labels.flatten())):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.mixing = nn.Conv1d(8, 8, 3, padding=1)
        self.between, self.loss = between, loss

    def forward(self, ids, labels):
        return self.loss(self.head(self.between(self, self.embedding(ids))), labels)


def attention(h, **how):
    q = h.unflatten(2, (2, 4)).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, **how).transpose(1, 2).flatten(2)


def sliced(module, lengths=None):
    capture = Captured(module, tokens(4, torch.Generator()))
    nodes = [node.name for node in capture.program.graph.nodes if node.op == "call_function"]
    return Slices(Program(capture, capture.parameters, capture.buffers, [{"nodes": nodes}]), [0.5, 1], lengths)


REFUSED = {
    "scaled_dot_product_attention.*is not causal": lambda self, h: attention(h),
    "scaled_dot_product_attention.*draws": lambda self, h: attention(h, is_causal=True, dropout_p=0.1),
    "mean .*meets the sequence": lambda self, h: h + h.mean(1, keepdim=True),
    "dropout .*draws": lambda self, h: F.dropout(h, 0.1),
    "conv1d .*meets the sequence": lambda self, h: self.mixing(h.transpose(1, 2)).transpose(1, 2),
    "cumsum .*meets the sequence": lambda self, h: h.cumsum(1),
    "softmax .*meets the sequence": lambda self, h: h.softmax(1),
    "matmul .*meets the sequence": lambda self, h: (h @ h.transpose(1, 2)).tril().softmax(-1) @ h,
    "layer_norm .*meets the sequence": lambda self, h: F.layer_norm(h, (6, 8)),
    "slice .*meets the sequence": lambda self, h: torch.cat([h[:, 1:], h[:, :1]], 1),
    "flip .*meets the sequence": lambda self, h: h.flip(1),
    "has the sequence along several": lambda self, h: (h.unsqueeze(2) * h.unsqueeze(1)).sum(2),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_mixes_positions_is_refused_by_name(why):
    with pytest.raises(ConfigError, match=why):
        sliced(Middle(REFUSED[why]))


def test_what_treats_positions_one_by_one_is_taken():
    sliced(Middle(lambda self, h: attention(F.layer_norm(h, (8,)), is_causal=True) + F.gelu(h).softmax(-1)))


def test_labels_of_the_next_position_and_other_losses_are_refused():
    shifted = Middle(lambda self, h: h, lambda scores, labels: F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten()))
    with pytest.raises(ConfigError, match="slice .*meets the sequence"):
        sliced(shifted)
    with pytest.raises(ConfigError, match="sum .*meets the sequence"):
        sliced(Middle(lambda self, h: h, lambda scores, labels: scores.sum()))
    with pytest.raises(ConfigError, match="not the module's loss"):
        sliced(Middle(lambda self, h: h, lambda scores, labels: F.cross_entropy(scores.flatten(0, 1), labels.flatten()) * 2))


@pytest.mark.parametrize("lengths", [[3, 4], [6], [6, 0]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ConfigError, match="2 lengths of 1 and more that add up to 6"):
        sliced(Middle(lambda self, h: h), lengths)


class Alone:
    """Messages of a pipeline whose stages are all on one rank."""

    device = torch.device("cpu")

    def finish(self):
        pass


LENGTHS = [2, 1, 3]


def executed(capture, again="none", splits=False, offload=0.0, watch=lambda action, run: run()):
    """[name] Gradients of a step of two microbatches in slices, through three stages of one process, cut behind residual sums.
    again: "full", "blocks" (two pieces of each stage, whatever the cuts go through) or "none". offload: share of what every stage saves of a slice that goes to the host. watch: is told each action, and runs it.
    """
    batch = tokens(8, torch.Generator().manual_seed(3))
    module = capture.module
    nodes = [node.name for node in capture.program.graph.nodes if node.op == "call_function"]
    sums = [i for i, name in enumerate(nodes) if name.startswith("add")]
    begin, end = sums[len(sums) // 5] + 1, sums[2 * len(sums) // 3] + 1
    parts = [nodes[:begin], nodes[begin:end], nodes[end:]]
    facts = dict(recomputed=again == "full", written=[], offload=offload)
    planned = [dict(nodes=part, gradients_from=list(range(s + 1, 3)), **facts) for s, part in enumerate(parts)]
    program = Program(capture, capture.parameters, capture.buffers, planned)
    program.slices = Slices(program, [1 / 3, 1 / 2, 1], LENGTHS)
    moment = Moment(0, Alone.device)
    blocks = [set(part[i * len(part) // 3 :][: len(part) // 3]) for part in parts for i in (0, 1)] if again == "blocks" else []
    stages = {s: Stage(program, s, planned[s], blocks, Alone.device, moment, split=splits) for s in range(3)}
    executor = Executor(stages, [0, 0, 0], 0, Alone(), moment)
    executor.slices = program.slices
    count = len(LENGTHS)
    row = [("F", s, m * count + k) for m in (0, 1) for k in range(count) for s in range(3)]
    row += [("I" if splits else "B", s, m * count + k) for m in (0, 1) for k in reversed(range(count)) for s in (2, 1, 0)]
    row += [("W", s, number) for s in range(3) for number in range(2 * count)] if splits else []
    if offload:
        copies = {"F": ("OFFLOAD", 1), "B": ("RELOAD", 0), "I": ("RELOAD", 0)}
        for i, (kind, *what) in reversed(list(enumerate(row))):
            if kind in copies:
                copy, behind = copies[kind]
                row.insert(i + behind, (copy, *what))
    row = [Action(kind, s, number, s, f"{s}{kind}{number // count}.{number % count}") for kind, s, number in row]
    executor._do = {kind: lambda action, do=do: watch(action, lambda: do(action)) for kind, do in executor._do.items()}
    module.zero_grad()
    executor.run(row, [[value[:4] for value in batch], [value[4:] for value in batch]], [0.5, 0.5], True, {})
    assert not program.slices._kept
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    module.zero_grad()
    return gradients, batch


def far_from_plain(capture, *how):
    module = capture.module
    gradients, batch = executed(capture, *how)
    for i in (0, 4):
        (module(*(value[i : i + 4] for value in batch)) * 0.5).backward()
    return max(difference(gradients[name], parameter.grad) for name, parameter in module.named_parameters())


class Reread(nn.Module):
    """Keys that are values and queries, too, and read by two attentions, of which the second one's go past the cuts; a frozen layer."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.layers[1].requires_grad_(False)

    def forward(self, ids, labels):
        h = self.embedding(ids)
        q = self.layers[0](h).unflatten(2, (2, 4)).transpose(1, 2)
        for layer in self.layers:
            h = h + F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).flatten(2)
            h = h + torch.tanh(layer(h))
            own = layer(h).unflatten(2, (2, 4)).transpose(1, 2)
            h = h + F.scaled_dot_product_attention(own, q, own, is_causal=True).transpose(1, 2).flatten(2)
        return F.cross_entropy(self.head(h).flatten(0, 1), labels.flatten())


MODULES = {"gpt": TinyGPT, "reread": Reread}


@functools.cache
def captured(name, frozen=False):
    torch.manual_seed(5)
    module = MODULES[name]().double()
    if frozen:
        module.embedding.requires_grad_(False)
        for parameter in module.blocks[0].parameters():
            parameter.requires_grad_(False)
    return Captured(module, tokens(4, torch.Generator()))


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("again", ["none", "full", "blocks"])
@pytest.mark.parametrize("name, frozen", [("gpt", False), ("gpt", True), ("reread", False)])
def test_gradients_of_slices_are_those_of_whole_sequences(name, frozen, again, splits):
    assert far_from_plain(captured(name, frozen), again, splits) < 1e-12


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("again", ["none", "full", "blocks"])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_what_slices_save_goes_to_the_host_and_back(monkeypatch, share, again, splits):
    monkeypatch.setattr(_host, "LEAST_BYTES", 0)
    moved, reload = [], _host.Host.reload
    wrong = False

    def watched(self, saved, clock):
        for buffer, _ in saved.away:
            moved.append(buffer.data.numel())
            buffer.data.mul_(0 if wrong else 1)
        return reload(self, saved, clock)

    monkeypatch.setattr(_host.Host, "reload", watched)
    assert far_from_plain(captured("gpt"), again, splits, share) < 1e-12
    # What a stage that is computed again saves is what it receives, which comes from the same process here, and stays.
    assert (sum(moved) > 0) == (again != "full")
    wrong = True
    assert (far_from_plain(captured("gpt"), again, splits, share) > 1e-3) == (again != "full")


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("again", ["none", "full", "blocks"])
def test_without_what_later_slices_add_gradients_differ(monkeypatch, again, splits):
    monkeypatch.setattr(Leaf, "join", lambda self, source: None)
    assert far_from_plain(captured("gpt"), again, splits) > 1e-3


class Alive(TorchDispatchMode):
    """The storages that operators make while it holds."""

    def __init__(self):
        super().__init__()
        self._made = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(results):
            if isinstance(tensor, torch.Tensor) and tensor.dtype != torch.uint8:  # buffers of the host
                storage = tensor.untyped_storage()
                self._made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        return results

    def bytes(self):
        """Of those that are still there."""
        return sum(size for storage, size in self._made.values() if not storage.expired())


# The stage in the middle has two attentions of width 8, and 4 samples in fp64: a token is 4 * 8 * 8 bytes wide. What goes to the
# next stage is one such value, keys and values of both attentions are four, which the last slice has for nobody. What it received
# was there before. The ten linear layers whose weights wait for W keep 8 bytes each in the place of what went.
@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("way", ["computed again", "offloaded"])
def test_keys_and_values_alone_stay(monkeypatch, way, splits):
    monkeypatch.setattr(_host, "LEAST_BYTES", 0)

    def growths(again, offload=0.0):
        alive, grown = Alive(), {}

        def watch(action, run):
            before = alive.bytes()
            run()
            grown[action.text] = alive.bytes() - before

        with alive:
            executed(captured("gpt"), again, splits, offload, watch)
        return {k: grown[f"1F{k}"] + grown.get(f"1OFFLOAD{k}", 0) for k in ("0.1", "0.2", "1.0", "1.1", "1.2")}  # at 0.0 weights are new

    token = 4 * 8 * 8
    wanted = {k: (5, 5, 1)[int(k[-1])] * token * LENGTHS[int(k[-1])] for k in ("0.1", "0.2", "1.0", "1.1", "1.2")}
    found = growths("full") if way == "computed again" else growths("none", 1.0)
    more = 10 * 8 if splits and way == "offloaded" else 0
    assert {k: size - more for k, size in found.items()} == wanted
    assert all(size > 25 * token * LENGTHS[int(k[-1])] for k, size in growths("none").items())
