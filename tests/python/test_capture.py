"""From a module to a plan: what is captured equals the module, and what cannot be is refused with its line."""

import dataclasses
import random
import subprocess
import sys
import types
import warnings

import pytest

import pfeife

torch = pytest.importorskip("torch", reason="torch is not installed here: capture is not tested")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from pfeife._capture.grad_regions import GradientFlow  # noqa: E402

DEVICE = dict(peak={"fp32": "1 TFLOP/s"}, memory_bandwidth="1000 TB/s", kernel_overhead="0 us")
TOKENS, LABELS = torch.arange(32).reshape(8, 4) % 10, torch.arange(8) % 10
BATCH = {"tokens": TOKENS, "labels": LABELS}


class Net(nn.Module):
    """Its head is its embedding; it has a buffer that is not saved, and statistics that forward writes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.layer = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.full((8,), 2.0), persistent=False)

    def forward(self, tokens, labels=None):
        x = self.norm(self.dropout(self.layer(self.embedding(tokens)) * self.scale).mean(1))
        logits = self.head(x)
        return logits if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def loss_of(capture, microbatch):
    torch.manual_seed(1)
    arguments = iter(microbatch)
    values = {**capture.program.constants, **capture.parameters, **capture.buffers}
    given = [values[spec.target] if spec.target else next(arguments) for spec in capture.program.graph_signature.input_specs]
    made = torch.fx.Interpreter(capture.program.graph_module).run(*given)
    return made[0]


def test_a_graph_computes_what_the_module_computes():
    net = Net()
    before = dict(net.named_parameters())
    capture = pfeife.capture(net, microbatches=2, **BATCH)
    assert all(net.get_parameter(name) is tensor for name, tensor in before.items())
    assert capture.parameters["head.weight"] is capture.parameters["embedding.weight"] is net.embedding.weight
    assert capture.buffers["scale"] is net.scale and capture.is_open and capture.microbatch == 4
    leaves = capture.leaves(**BATCH)
    assert [leaf is tensor for leaf, tensor in zip(leaves, (TOKENS, LABELS))] == [True, True]
    for count in (1, 2, 3):  # of other sizes, too
        parts = capture.split(leaves, count)
        assert sum(len(part[0]) for part in parts) == 8 and len(parts) == count
        for tokens, labels in parts:
            torch.manual_seed(1)
            own = net(tokens, labels)["loss"]
            mine = loss_of(capture, [tokens, labels])
            assert torch.equal(own, mine)
            wanted = torch.autograd.grad(own, list(before.values()))
            got = torch.autograd.grad(mine, list(before.values()))
            assert all(torch.equal(a, b) for a, b in zip(wanted, got))


@dataclasses.dataclass
class Sample:
    tokens: torch.Tensor
    labels: torch.Tensor
    factor: float = 2.0


class OfSamples(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, sample):
        return self.net(sample.tokens, sample.labels)["loss"] * sample.factor


def test_batches_of_every_form():
    net = Net()
    same = pfeife.capture(net, TOKENS, LABELS, microbatches=2)
    assert same.archive == pfeife.capture(net, microbatches=2, **BATCH).archive
    for given in (same.leaves(TOKENS, LABELS), same.leaves(**BATCH), same.leaves(labels=LABELS, tokens=TOKENS), same.leaves(BATCH)):
        assert given[0] is TOKENS and given[1] is LABELS
    held = pfeife.capture(OfSamples(), Sample(TOKENS, LABELS), microbatches=2)
    assert held.program.graph_signature.user_inputs == ("sample_tokens", "sample_labels")
    for wrong, words in [
        (Sample(TOKENS, LABELS, 3.0), "sample.factor of the batch is 3.0; the graph holds for 2.0"),
        (Sample(TOKENS[:, :2], LABELS), r"sample.tokens of the batch is \[8, 2\]; the graph holds for \[8, 4\]"),
        (Sample(TOKENS, LABELS.float()), "sample.labels of the batch is torch.float32"),
        (BATCH, "lacks sample.tokens, sample.labels, sample.factor and has tokens, labels besides"),
    ]:
        with pytest.raises(pfeife.Unexportable, match=words):
            held.leaves(wrong)


def test_a_loss_beside_the_model_and_a_model_on_meta():
    with torch.device("meta"):
        net = Net()
    inside = pfeife.capture(net, microbatches=2, **BATCH)
    beside = pfeife.capture(
        net, microbatches=2, loss=lambda logits, batch: F.cross_entropy(logits, batch["y"]), tokens=TOKENS, y=LABELS
    )
    assert net.layer.weight.is_meta and beside.parameters["layer.weight"] is net.layer.weight
    targets = [[node.target for node in capture.program.graph.nodes if node.op == "call_function"] for capture in (inside, beside)]
    assert targets[0] == targets[1]
    real = pfeife.capture(Net(), microbatches=2, **BATCH)
    assert real.archive == inside.archive  # a rank that has the weights plans as one that has none


def test_recurrent_layers_that_refer_to_their_weights_anew_are_unchanged():
    """Their references name the weights of the last forward, which functional_call may have exchanged."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0].pow(2).mean()

    module, x = Net(), torch.randn(8, 2, 3)
    capture = pfeife.capture(module, x, microbatches=2)
    torch.func.functional_call(module, {name: tensor.detach() * 2 for name, tensor in module.named_parameters()}, (x,))
    assert not list(capture.watch.bound(module).changes())
    assert not list(capture.watch.bound(Net()).changes(values_alone=True))  # a module of the same kind may take the plan


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(label_smoothing=0.1), nn.CrossEntropyLoss(torch.rand(10)), F.cross_entropy])
def test_losses_of_torch_take_the_target_that_forward_does_not(loss):
    module = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 10))
    x = torch.randn(8, 4)
    same = lambda output, batch: loss(output, batch[1])  # noqa: E731
    capture, wanted = (pfeife.capture(module, x, LABELS, loss=loss_given, microbatches=2) for loss_given in (loss, same))
    assert torch.equal(loss_of(capture, [x[:4], LABELS[:4]]), loss_of(wanted, [x[:4], LABELS[:4]]))
    named = pfeife.capture(module, input=x, y=LABELS, loss=loss, microbatches=2)
    assert torch.equal(loss_of(named, [x[:4], LABELS[:4]]), loss_of(wanted, [x[:4], LABELS[:4]]))
    with pytest.raises(pfeife.Unexportable, match="has 2 arguments that forward does not have: say which"):
        pfeife.capture(module, x, LABELS, LABELS, loss=loss, microbatches=2)


def test_a_loss_that_is_a_module():
    class Own(nn.Module):
        factor = 2.0

        def forward(self, output, batch):
            return F.cross_entropy(output, batch[1]) * self.factor

    module, loss, x = nn.Sequential(nn.Linear(4, 10)), Own(), torch.randn(8, 4)
    capture = pfeife.capture(module, x, LABELS, loss=loss, microbatches=2)
    assert torch.equal(loss_of(capture, [x[:4], LABELS[:4]]), 2 * F.cross_entropy(module(x[:4]), LABELS[:4]))
    loss.factor = 3.0
    assert list(capture.watch.bound(module).changes()) == ["the loss function.factor was 2.0, and is 3.0"]
    loss.weight = nn.Parameter(torch.ones(()))
    with pytest.raises(pfeife.Unexportable, match="the loss has the parameter weight"):
        pfeife.capture(module, x, LABELS, loss=loss, microbatches=2)


def test_a_plan_of_a_capture_has_its_microbatches():
    capture = pfeife.capture(Net(), microbatches=4, **BATCH)
    few = dict(families=["1f1b"], baselines=[], iterations=1)
    cluster = pfeife.uniform_cluster(2, memory="8 GiB", peak={"fp32": "50 GFLOP/s", "bf16_amp": "1 TFLOP/s"}, memory_bandwidth="10 GB/s")
    for asked, count in (({}, 4), (dict(microbatches=2), 2), (dict(precision="bf16_amp"), 4)):
        plan = pfeife.plan(capture, cluster, **few, **asked)
        assert sum(cell.startswith("0F") for cell in plan.schedule.cells[0]) == count
    with pytest.raises(pfeife.ConfigError, match='memory_bandwidth="2 TB/s"'):
        pfeife.plan(capture, pfeife.uniform_cluster(2, memory="8 GiB"), **few)


# Two layers of w x w for m samples: 2 m w^2 operations forward, as many for each gradient; 1 Top/s.
def test_times_and_weights_of_a_plan_by_hand():
    width, samples = 1024, 32
    module = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(2)))
    cluster = pfeife.uniform_cluster(
        2, bandwidth="1000 TB/s", latency="1 ns", gemm_efficiency={"fp32": [["1 MFLOP", 1.0], ["1 TFLOP", 1.0]]}, **DEVICE
    )
    plan = pfeife.plan(
        module,
        torch.zeros(2 * samples, width),
        cluster=cluster,
        loss=lambda output, batch: output.mean(),
        microbatches=2,
        cuts=[0],
        families=["1f1b"],
        baselines=["1f1b"],
        launch_overhead="0 us",
        recompute="none",
        calibration={"stage_overhead": "0 us"},
    )
    events = plan.estimated.events
    forward = events[events.action == "0F0"]
    assert (forward.end - forward.start)[0] == pytest.approx(2 * samples * width**2 / 1e12 * 1e9, rel=1e-3)
    assert [stage["parameters"] for stage in plan.stages] == [["0.weight"], ["1.weight"]]
    assert plan.stages[0]["inputs"] == ["input"] and plan.capture.parameters["0.weight"] is module[0].weight
    assert plan.peaks[0] > 4 * 4 * width**2  # weight, gradient, two moments of AdamW


def test_modules_need_a_batch_and_archives_have_one(tiny):
    with pytest.raises(pfeife.ConfigError, match="microbatches"):
        pfeife.plan(Net(), BATCH, cluster="a100_sxm4_40gb_x8")
    with pytest.raises(pfeife.ConfigError, match="cluster: the devices to plan for"):
        pfeife.plan(Net(), BATCH, microbatches=2)
    with pytest.raises(pfeife.ConfigError, match="belong to a torch.nn.Module"):
        pfeife.plan(tiny, "a100_sxm4_40gb_x8", devices=2, microbatches=2, loss=max)


class Bad(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)


class Decides(Bad):
    def forward(self, x):
        return self.layer(x).mean() if x.sum() > 0 else self.layer(x).sum()  # here


class Writes(Bad):
    def forward(self, x):
        return self.layer(x.mul_(2)).mean()  # here


class LeavesTorch(Bad):
    def forward(self, x):
        return self.layer(x).mean() + float(x.numpy()[0, 0])  # here


class Conditional(Bad):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (self.layer(x),)).mean()  # here


class Casts(Bad):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layer(x).float().mean()


class Swish(torch.autograd.Function):
    """Its backward is what autograd makes of its forward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        half = torch.sigmoid(x)
        return gradient * (half + x * half * (1 - half))


class Rounded(torch.autograd.Function):
    """Its backward is not."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Swishes(Bad):
    def forward(self, x):
        return Swish.apply(self.layer(x)).mean()


class Rounds(Bad):
    def forward(self, x):
        return Rounded.apply(self.layer(x)).mean()


class NoScalar(Bad):
    def forward(self, x):
        return self.layer(x)


class SizedByValues(Bad):
    def forward(self, x):
        return self.layer(x)[x[:, 0] > 0].mean()  # here


class Reshapes(Bad):
    def forward(self, x):
        return self.layer(x).view(4, 8).mean()


class Mean(Bad):
    def forward(self, x):
        return self.layer(x).mean()


@pytest.mark.parametrize(
    "kind, words",
    [
        (Decides, ["# here", "decides by a value", "torch.where"]),
        (Writes, ["# here", "'x'", "x.clone()"]),
        (LeavesTorch, ["# here", "data loader"]),
        (Conditional, ["# here", "torch.where"]),
        (Casts, ["torch.autocast", "bf16_amp"]),
        (Rounds, ["Rounded, a torch.autograd.Function", "is_exporting()", "x + (q - x).detach()", "added to the loss that forward returns"]),
        (NoScalar, ["[s", "8] of torch.float32", "loss=lambda output, batch"]),
    ],
)
def test_what_cannot_be_captured_is_named_with_its_line(kind, words, capfd):
    with pytest.raises(pfeife.Unexportable) as refused:
        pfeife.capture(kind(), torch.ones(8, 8), microbatches=2)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    if words[0] == "# here":
        assert f"{__file__}:{kind.forward.__code__.co_firstlineno + 1}" in str(refused.value)
    assert capfd.readouterr().err == ""


def test_a_function_whose_backward_is_that_of_its_operators():
    module, x = Swishes(), torch.randn(8, 8)
    capture = pfeife.capture(module, x, microbatches=2)
    assert "Swish" in capture.notes[0] and "the same on random numbers" in capture.notes[0]
    wanted = torch.autograd.grad(module(x[:4]), list(module.parameters()))
    got = torch.autograd.grad(loss_of(capture, [x[:4]]), list(module.parameters()))
    assert all(torch.allclose(value, expected) for value, expected in zip(wanted, got))


def test_an_operator_with_a_gradient_of_its_own_keeps_it():
    @torch.library.custom_op("pfeife_test::round", mutates_args=())
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return x.round()

    rounded.register_fake(torch.empty_like)
    rounded.register_autograd(lambda ctx, gradient: gradient * 3)

    class Rounding(Bad):
        def forward(self, x):
            return rounded(self.layer(x)).sum()

    module, x = Rounding(), torch.randn(8, 8)
    capture = pfeife.capture(module, x, microbatches=2)
    wanted = torch.autograd.grad(module(x[:4]), list(module.parameters()))
    got = torch.autograd.grad(loss_of(capture, [x[:4]]), list(module.parameters()))
    assert all(torch.equal(value, expected) for value, expected in zip(wanted, got)) and wanted[1].eq(12).all()


def test_what_the_planner_refuses_has_its_line_too():
    with pytest.raises(pfeife.ConfigError, match=r"index: .*test_capture.py:\d+: return .*# here"):
        pfeife.plan(SizedByValues(), torch.ones(8, 8), cluster="a100_sxm4_40gb_x8", devices=2, microbatches=2)


class Reads(nn.Module):
    """What forward reads besides tensors: numbers, lists, objects, others' attributes; `unread` it does not."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)), nn.Dropout(0.0))
        self.temperature, self.powers, self.unread = 2.0, [1, 2], 1.0
        self.options, self.settings = types.SimpleNamespace(scale=2.0), Sample(None, None)
        self.mask = torch.ones(8)

    def forward(self, x):
        h = self.layers(x * self.mask) * self.options.scale * self.settings.factor
        return h.pow(self.powers[1]).mean() / self.temperature


CHANGES = {
    "temperature was 2.0, and is 4.0": lambda m: setattr(m, "temperature", 4.0),
    "powers was [1, 2], and is [1, 3]": lambda m: m.powers.__setitem__(1, 3),
    "options was {'scale': 2.0}, and is {'scale': 1.0}": lambda m: setattr(m.options, "scale", 1.0),
    "settings.factor was 2.0, and is 1.0": lambda m: setattr(m.settings, "factor", 1.0),
    "layers.4.p was 0.0, and is 0.5": lambda m: setattr(m.layers[4], "p", 0.5),
    "mask was a Tensor, and is a Tensor": lambda m: setattr(m, "mask", torch.zeros(8)),
    "layers.1 was in training mode, and is in evaluation mode": lambda m: m.layers[1].eval(),
    "layers.1 is another object": lambda m: m.layers.__setitem__(1, nn.Linear(8, 8)),
    "layers.5 is new": lambda m: m.layers.append(nn.ReLU()),
    "layers.0 had 0 hooks, and has 1": lambda m: m.layers[0].register_forward_hook(print),
    "layers.2 was a Linear, and is a Bilinear": lambda m: setattr(m.layers[2], "__class__", nn.Bilinear),
    "forward of layers.3 is another function": lambda m: setattr(m.layers[3], "forward", lambda x: x),
    "parameter layers.0.bias is another object": lambda m: setattr(m.layers[0], "bias", nn.Parameter(torch.ones(8))),
    "parameter layers.0.bias is another object; parameter": lambda m: [setattr(layer, "bias", None) for layer in m.layers[:2]],
}


@pytest.mark.parametrize("words", CHANGES)
def test_what_changed_in_a_module_since_it_was_captured_is_named(words):
    from pfeife._agreement import Photographed

    module = Reads()
    photographed = Photographed(pfeife.capture(module, torch.randn(8, 8), microbatches=2), module)
    photographed.note()
    with torch.no_grad():  # all that a graph reads anew
        module.unread, module.mask, module.layers[0].bias.requires_grad = 3.0, torch.ones(8), False
        module.layers[1].weight.data = torch.zeros(8, 8)
        module.layers[2].weight.zero_()
        module.layers[2].weight.register_hook(print)
    photographed.refuse_changes(trains=True)
    CHANGES[words](module)
    with pytest.raises(pfeife.ConfigError) as refused:
        photographed.refuse_changes(trains=True)
    assert words.replace("is another object; parameter", "was taken away; parameter") in str(refused.value) and "plan again" in str(refused.value)
    if "mode" in words:
        photographed.refuse_changes(trains=False)


def test_another_module_of_the_same_kind_is_compared_by_its_form():
    from pfeife._agreement import Photographed

    capture = pfeife.capture(Reads(), torch.randn(8, 8), microbatches=2)
    Photographed(capture, Reads())
    second = Reads()
    second.temperature = 5.0
    with pytest.raises(pfeife.ConfigError, match="temperature was 2.0, and is 5.0"):
        Photographed(capture, second)
    second = Reads()
    second.layers[3] = nn.Identity()
    with pytest.raises(pfeife.ConfigError, match="layers.3 was a Linear, and is a Identity"):
        Photographed(capture, second)


CALLS = 0
SCALE = 2.0


class Counts(Reads):
    steps = 0

    def forward(self, x):
        self.steps += 1
        return super().forward(x) * self.steps


class CountsInAContainer(Reads):
    def forward(self, x):
        self.powers[1] += 1
        return super().forward(x)


class CountsGlobally(Reads):
    def forward(self, x):
        global CALLS
        CALLS += 1
        return super().forward(x) * CALLS


def counted(x):
    global CALLS
    CALLS += 1
    return x * CALLS


class CountsInAHelper(Reads):
    def forward(self, x):
        return super().forward(counted(x))


def scaled(x):
    return x * SCALE


class ReadsInAHelper(Reads):
    def forward(self, x):
        return super().forward(scaled(x))


class Draws(Reads):
    def forward(self, x):
        return super().forward(x) * (2 if random.random() < 0.5 else 1)


class Logs(Reads):
    """Writes that no later forward reads."""

    def __init__(self):
        super().__init__()
        self.seen, self.depth, self.width = [], 0, None

    def forward(self, x):
        self.width = x.shape[1]
        self.seen.append(self.width)
        self.depth += 1
        made = super().forward(x) * self.width
        self.depth -= 1
        return made


@pytest.mark.parametrize(
    "kind, words",
    [
        (Counts, "reads steps and changes it from 0 to 1"),
        (CountsInAContainer, r"reads powers and changes it from \[1, 2\] to \[1, 3\]"),
        (CountsGlobally, "reads CALLS of test_capture and changes it from 0 to 1"),
        (CountsInAHelper, "reads CALLS of test_capture and changes it from 0 to 1"),
        (Draws, "draws numbers of Python's random"),
        (Logs, None),
    ],
)
def test_what_python_would_do_otherwise_in_the_next_forward_is_refused(kind, words, monkeypatch):
    if words is None:
        assert pfeife.capture(kind(), torch.randn(8, 8), microbatches=2).notes == []
        return
    monkeypatch.setitem(globals(), "CALLS", 0)
    state = random.getstate()
    with pytest.raises(pfeife.Unexportable, match=words):
        pfeife.capture(kind(), torch.randn(8, 8), microbatches=2)
    assert random.getstate() == state


def test_what_needs_a_gradient_in_a_graph_needs_one_in_torch():
    """A mask drawn in the shape of a value, constants beside it, a detached value."""

    class DropsPaths(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            y = self.first(x)
            kept = y.new_empty(y.shape[0], 1).bernoulli_(0.5).div_(0.5)
            z = self.second(y + torch.ones_like(y) * y.new_full((4,), 2.0) + torch.randn_like(y))
            return (y + z * kept + torch.zeros_like(y).add_(z.detach())).pow(2).mean()

    graph = pfeife.capture(DropsPaths(), torch.randn(8, 4), microbatches=2).program.module()
    needing, flow = set(), GradientFlow()

    class Runs(torch.fx.Interpreter):
        def run_node(self, node):
            made = super().run_node(node)
            if isinstance(made, torch.Tensor) and made.requires_grad:
                needing.add(node)
            return made

    Runs(graph).run(torch.randn(4, 4))
    for node in graph.graph.nodes:
        if node.op == "get_attr" and node in needing:
            flow.needing.add(node)
        elif node.op == "call_function":
            flow.add(node, enabled=True)
    assert any(node.target is torch.ops.aten.bernoulli_.float for node in graph.graph.nodes)
    assert flow.needing == {node for node in needing if node.op != "output"}


def test_a_number_that_a_helper_of_forward_reads_is_watched(monkeypatch):
    module = ReadsInAHelper()
    capture = pfeife.capture(module, torch.randn(8, 8), microbatches=2)
    assert not list(capture.watch.bound(module).changes())
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert list(capture.watch.bound(module).changes()) == ["SCALE of test_capture was 2.0, and is 3.0"]


def test_operators_of_unknown_cost_are_planned_by_their_bytes():
    class Rotates(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.layers = nn.Parameter(torch.randn(8, 8)), nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))

        def forward(self, x):
            return self.layers(x @ torch.matrix_exp(self.turn - self.turn.T)).pow(2).mean()

    cluster = pfeife.uniform_cluster(2, memory="8 GiB", peak={"fp32": "50 GFLOP/s"}, memory_bandwidth="10 GB/s")
    with pytest.warns(UserWarning, match="nothing is known of the cost of aten::matrix_exp: they are charged by their bytes"):
        plan = pfeife.plan(Rotates(), torch.randn(8, 8), cluster, microbatches=4, families=["1f1b"])
    assert any("matrix_exp" in note for note in plan.capture.notes) and any("matrix_exp" in name for s in plan.stages for name in s["nodes"])


class Contrasts(nn.Module):
    """Every sample beside every other of its microbatch, as CLIP does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        h = self.layer(x.reshape(4, 8))
        return {"loss": F.cross_entropy(h @ h.T, torch.arange(4)), "embedding": h, "logits": h @ h.T}


class Loss(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.layer, self.norm, self.loss = nn.Linear(8, 8), nn.BatchNorm1d(8), loss

    def forward(self, x, y):
        return self.loss(self, self.layer(x), x, y)


def contrast(m, h, x, y):
    h = F.normalize(h, dim=-1)
    return F.cross_entropy(h @ h.roll(1, -1).T, torch.arange(len(h)))


LOSSES = {
    "matmul compares the samples": contrast,
    "batch norm takes the statistics": lambda m, h, x, y: F.cross_entropy(m.norm(h), y),
    "cdist compares the samples|_cdist_forward compares the samples": lambda m, h, x, y: torch.cdist(h, h).mean(),
    "sub compares the samples": lambda m, h, x, y: (h[:, None] - h[None]).pow(2).mean(),
    "mean takes the samples of a microbatch together": lambda m, h, x, y: (h - h.mean(0)).pow(2).mean(),
    "var takes the samples of a microbatch together": lambda m, h, x, y: h.mean() + h.var(0).mean(),
    "matmul takes the samples of a microbatch together": lambda m, h, x, y: (h.T @ x).mean(),
    "sqrt of means over samples": lambda m, h, x, y: (h - x).pow(2).mean().sqrt(),
    "mul of means over samples": lambda m, h, x, y: h.pow(2).mean() * x.pow(2).mean(),
    "flip mixes the samples": lambda m, h, x, y: (h + h.flip(0)).pow(2).mean(),
    "softmax mixes the samples": lambda m, h, x, y: (h.softmax(0) * x).mean(),
    "index mixes the samples": lambda m, h, x, y: h[torch.randperm(len(h))].mul(x).mean(),
    "index mixes the samples ": lambda m, h, x, y: h[y].mul(x).mean(),
    "the count of this mean is not known before the step": lambda m, h, x, y: (h * x).sum() / h.sigmoid().sum(),
    "the loss is a sum over samples": lambda m, h, x, y: F.mse_loss(h, x, reduction="sum"),
    "a labels' loss": lambda m, h, x, y: F.cross_entropy(h, y),
    "of samples": lambda m, h, x, y: F.mse_loss(h, x) + 0.1 * m.layer.weight.pow(2).sum() + F.cross_entropy(h, y, reduction="none").mean(),
    "of size": lambda m, h, x, y: (h[torch.arange(len(h)), y].sum() / len(h) + h.softmax(-1).gather(1, y[:, None]).mean()).neg(),
    "of a mask": lambda m, h, x, y: ((h - x).pow(2).mean(-1) * (y > 2)).sum() / (y > 2).sum().clamp(min=1),
}


@pytest.mark.parametrize("words", LOSSES)
@pytest.mark.parametrize("microbatches", [2, 8])
def test_a_loss_that_takes_samples_together_is_said_loudly(words, microbatches):
    x, y = torch.randn(8, 8), torch.arange(8) % 8
    module = Loss(LOSSES[words])
    expected = not words.startswith(("a ", "of "))
    if microbatches == 8 and "batch norm" in words:
        return  # which torch refuses of one sample
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        capture = pfeife.capture(module, x, y, microbatches=microbatches)
    loud = [str(warning.message) for warning in caught if "is not that of the whole batch" in str(warning.message)]
    doubts = [note for note in capture.notes if "is not that of the whole batch" in note]
    assert bool(doubts) == bool(loud) == expected, capture.notes
    if expected:
        assert any(word.strip() in loud[0] for word in words.split("|")) and "test_capture.py" in loud[0], loud


def test_values_that_compare_samples_of_a_microbatch_are_no_outputs():
    capture = pfeife.capture(Contrasts(), torch.ones(8, 8), microbatches=2)
    assert not capture.is_open
    notes = [note for note in capture.notes if note.startswith("pipe(): ")]
    assert len(notes) == 1 and "logits" in notes[0] and "[4, 4]" in notes[0]


def test_a_batch_that_cannot_be_open_is_fixed():
    fixed = pfeife.capture(Reshapes(), torch.ones(8, 8), microbatches=2)
    assert not fixed.is_open and "sizes that hold for this batch size only" in fixed.notes[0]
    assert [len(part[0]) for part in fixed.split(fixed.leaves(torch.ones(8, 8)), 2)] == [4, 4]
    assert [len(part[0]) for part in fixed.split(fixed.leaves(torch.ones(12, 8)), 3)] == [4, 4, 4]
    assert [len(part[0]) for part in fixed.split(fixed.leaves(torch.ones(4, 8)), 3)] == [4]  # the last batch of an epoch
    with pytest.raises(pfeife.Unexportable, match="6 samples are no 2 microbatches or fewer of sizes .*: microbatches of 4"):
        fixed.split(fixed.leaves(torch.ones(6, 8)), 2)
    ones = pfeife.capture(Mean(), torch.ones(4, 8), microbatches=4)
    assert not ones.is_open and len(ones.split(ones.leaves(torch.ones(3, 8)), 3)) == 3


def test_the_batch_dimension():
    class Sequences(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x, positions):
            return (self.layer(x) + positions).mean()

    x, positions = torch.ones(5, 6, 8), torch.ones(5, 1, 8)
    capture = pfeife.capture(Sequences(), x, positions, microbatches=2, batch_dims={"x": 1, "positions": None})
    parts = capture.split(capture.leaves(x, positions), 2)
    assert [part[0].shape for part in parts] == [(5, 3, 8)] * 2 and all(part[1] is positions for part in parts)
    with pytest.raises(pfeife.Unexportable, match="batch_dims: there is no input 'y'; inputs: x, positions"):
        pfeife.capture(Sequences(), x, positions, batch_dims={"y": 1})
    with pytest.raises(pfeife.Unexportable, match="a batch of 5 samples has no 6 microbatches; 5 at most"):
        pfeife.capture(Sequences(), x, positions, microbatches=6)


class Graphs(nn.Module):
    """Nodes, edges between them and targets of graphs, as PyTorch Geometric joins them to a batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, nodes, edges=None, targets=None, scale=None):
        h = self.layer(nodes)
        return h.pow(2).mean() + sum(tensor.mean() * 0.1 for tensor in (edges, targets, scale) if tensor is not None)


def test_inputs_that_are_no_batch_are_said_or_refused():
    nodes, edges, targets = torch.randn(12, 8), torch.ones(2, 20), torch.ones(4)
    with pytest.raises(pfeife.Unexportable, match=r"different leading sizes, .*'edges': \[2, 20\].*batch_dims"):
        pfeife.capture(Graphs(), nodes, edges, targets, microbatches=4)
    with pytest.warns(UserWarning, match=r"nodes \[12, 8\], scale \[12, 8\] are cut .* gets all of edges \[2, 20\]"):
        capture = pfeife.capture(Graphs(), nodes, edges, scale=nodes, microbatches=4)
    assert any("gets all of edges" in note for note in capture.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = pfeife.capture(Graphs(), nodes, microbatches=4)
        mask = pfeife.capture(Graphs(), nodes, scale=torch.ones(1, 8), targets=torch.ones(()), microbatches=4)
        same = pfeife.capture(Graphs(), nodes, edges, targets, microbatches=4, batch_dims=dict(nodes=0, edges=None, targets=None))
    assert plain.notes == mask.notes == [] and "cut into" not in "".join(same.notes)


class Chain(nn.Module):
    """Two products whose sizes are known by hand, and a loss that counts labels."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(16, 64, bias=False), nn.Linear(64, 16, bias=False)

    def forward(self, x, labels):
        return F.cross_entropy(self.narrow(self.wide(x)), labels)


def test_measured_blocks_are_layers_of_a_plan_and_cuts_of_the_module():
    pytest.importorskip("pfeife._operators", reason="the package has no executor")
    with torch.device("meta"):
        module = Chain()
    capture = pfeife.capture(module, torch.ones(8, 16), LABELS, microbatches=2)
    measured = pfeife.measure(capture, compile=False, device="cpu", repetitions=1)
    assert sum(row["parameter_bytes"] for row in measured.table) == 2 * 16 * 64 * 4 and sum(measured.linears) == 2
    assert measured.table[0]["output_bytes"] == 4 * 64 * 4  # [4 samples, 64] fp32
    assert all(row["forward_ms"] >= 0 for row in measured.table) and measured.overhead.stage > 0
    assert measured.table[0]["backward_input_ms"] == 0  # of the batch, which needs none
    assert all(parameter.is_meta and parameter.grad is None and parameter.requires_grad for parameter in module.parameters())
    few = dict(microbatches=2, baselines=[], engines=["estimate"], families=["1f1b"], iterations=1)
    plan = pfeife.plan(measured, pfeife.uniform_cluster(2), **few)
    same = pfeife.plan(capture, pfeife.uniform_cluster(2, **DEVICE), **few, cuts=measured.cuts_of(plan))
    assert same.capture is capture and same.cuts == measured.cuts_of(plan)


layer = 1


def test_an_attribute_is_no_global_of_its_name(monkeypatch):
    from pfeife._agreement import Photographed

    module = nn.Sequential(Reached())
    capture = pfeife.capture(module, torch.randn(8, 4), microbatches=2)
    monkeypatch.setitem(globals(), "layer", 2)
    Photographed(capture, module).refuse_changes(True)


class Reached(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).mean()


def test_what_actions_take_is_in_a_modules_plan(monkeypatch):
    """By hand: GPipe of 2 microbatches on 2 ranks, 3 forwards and 3 backwards one after the other, whose operators take nothing."""
    overhead = pytest.importorskip("pfeife._overhead")
    capture = pfeife.capture(Chain(), torch.ones(8, 16), LABELS, microbatches=2)
    cluster = pfeife.uniform_cluster(2, latency="0 us", peak={"fp32": "1000 PFLOP/s"}, memory_bandwidth="1000 TB/s")
    how = dict(engines=["estimate"], iterations=1, launch_overhead="0 us", optimizer="sgd", recompute="none")

    def planned(*figures, **more):
        monkeypatch.setattr(overhead, "overhead_here", lambda: overhead.Overhead(*figures))
        return pfeife.plan(capture, cluster, **{**how, **more})

    plan = planned(100.0, 50.0, 0.0, families=["gpipe"])
    assert plan.step == pytest.approx(6 * 0.2, rel=0.01) and "measured: 67 us an action" in plan.notes[0]
    assert "67 us" in repr(plan) and plan.overhead.stage == 200
    given = planned(100.0, 50.0, 0.0, families=["gpipe"], calibration={"stage_overhead": "1 us"})
    assert given.step < 0.1 and given.overhead is None and given.notes == []
    split, whole = planned(100.0, 0.0, 0.0, families=["zb_h1", "1f1b"]), planned(100.0, 0.0, 1e4, families=["zb_h1", "1f1b"])
    assert not any("W" in cell for row in whole.schedule.cells for cell in row), whole.title
    assert split.title == whole.title or "planned with whole backwards" in whole.notes[-1]
    only = planned(100.0, 0.0, 1e4, families=["zb_h1"])
    assert only.title.startswith("zb_h1") and "ms a step more" in only.notes[-1]


def test_figures_are_measured_once_a_machine(tmp_path, monkeypatch):
    overhead = pytest.importorskip("pfeife._overhead")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = overhead.overhead_here()
    assert first.compute > 0 and first.message > 0 and overhead.overhead_here() == first
    file = tmp_path / "pfeife" / "overhead.json"
    file.write_text(file.read_text().replace(str(first.message), "12345.0"))
    assert overhead.overhead_here().message == 12345.0  # nothing is measured again


@pytest.mark.parametrize("hook", [False, True])
def test_weights_gradients_of_w_are_those_of_a_whole_backward(hook):
    """Of a linear layer, added to what is there; what a hook does to a parameter's gradient is done."""
    operators = pytest.importorskip("pfeife._operators")
    layer, frozen = nn.Linear(3, 5).double(), nn.Linear(5, 2, bias=False).double().requires_grad_(False)
    x = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    if hook:
        layer.weight.register_hook(lambda gradient: 2 * gradient)
    moment = operators.Moment(0, torch.device("cpu"))
    linear = operators.deferred(torch.ops.aten.linear.default, moment)
    for _ in range(2):
        frozen(layer(x)).sum().backward()
    wanted = [tensor.grad.clone() for tensor in (x, layer.weight, layer.bias)]
    x.grad = layer.weight.grad = layer.bias.grad = None
    for _ in range(2):
        moment.tape = []
        linear(linear(x, layer.weight, layer.bias), frozen.weight).sum().backward()
        with torch.no_grad():
            roots = [entry for entry in moment.tape if not callable(entry) or entry()]
        assert len(moment.tape) == 1 and len(roots) == hook
        if roots:
            torch.autograd.backward(*zip(*roots))
    assert all(torch.allclose(tensor.grad, want, rtol=1e-12) for tensor, want in zip((x, layer.weight, layer.bias), wanted))


def test_the_package_needs_no_torch():
    program = "import sys; sys.modules['torch'] = None; import pfeife; pfeife.Unexportable; pfeife.capture; pfeife.measure"
    subprocess.run([sys.executable, "-c", program], check=True)
