#!/usr/bin/env bash
# export_models.py: archives train as their modules do, and what would not is refused with what to do. Its proof is tried on
# exporters that are wrong. Usage: exporter_test.sh REPOSITORY. Skipped (77) without a Python that has torch 2.11 or later:
# $TORCH_PYTHON, that of build/venv, or python3.
set -euo pipefail
repository=$1 python=${TORCH_PYTHON:-python3}
[[ -n ${TORCH_PYTHON:-} || ! -x $repository/build/venv/bin/python3 ]] || python=$repository/build/venv/bin/python3
if ! "$python" -c 'import torch; assert torch.__version__ >= "2.11"' 2> /dev/null; then
  echo "skipped: $python has no torch 2.11; set TORCH_PYTHON"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
PYTHONPATH=$repository/configs/models:$repository/tests/data/models "$python" -W ignore - "$repository" << 'EOF'
import contextlib, io, json, sys, zipfile
from pathlib import Path
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import export_models, grad_modes
from grad_modes import MODELS, Residual, inputs
from package import Unexportable, capture, grad_regions
from pt2_export import write_archive
from shipped_models import Model

repository = Path(sys.argv[1])
path = Path("model.pt2")


def written(build, real_weights):
    path.unlink(missing_ok=True)
    torch.manual_seed(1)
    return write_archive(path, Model(lambda batch: (build(), inputs(batch)), 3, real_weights), None, torch.float32, real_weights)


def nodes(archive):
    with zipfile.ZipFile(archive) as files:
        name, = (one for one in files.namelist() if one.endswith("models/model.json"))
        graph = json.loads(files.read(name))["graph_module"]["graph"]["nodes"]
    return [(one["target"], one["inputs"], one["outputs"]) for one in graph]


def refused(build, *words, kinds=(True, False)):
    for real_weights in kinds:
        try:
            written(build, real_weights)
        except Unexportable as error:
            assert all(word in str(error) for word in words), (words, str(error))
            assert not path.exists()
        else:
            raise AssertionError(f"{words}: not refused, real_weights={real_weights}")


# The archives of the tests in C++ are what the exporter writes, with weights and without.
for name, build in MODELS.items():
    shipped = nodes(repository / f"tests/data/models/grad_modes/{name}.pt2")
    for real_weights in (True, False):
        made = written(build, real_weights)
        assert nodes(path) == shipped, (name, real_weights)
        assert ("computes it again" in " ".join(made.notes)) == (name in ("checkpointed", "kept")), (name, made.notes)
made = written(MODELS["checkpointed"], False)
assert "6 of 8 trainable parameters" in made.proof and any("grad_modes.py:" in note and "use_reentrant=False" in note
                                                           for note in made.notes), made


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


bound_before = Reversed.apply


class Changed(Residual):
    """Its second half is called as the test says."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, x, y):
        h = self.layer(1, self.layer(0, x))
        return F.mse_loss(self.layer(2, self.change(self, h)), y)


def with_change(change):
    return lambda: Changed(change)


def hooked(model, h):
    if h.requires_grad:
        h.register_hook(lambda gradient: gradient * 0.5)
    return h


def cast(model, h):
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        return h + model.layer(3, h)


def not_cast(model, h):
    with torch.autocast("cpu", enabled=False):
        return model.layer(3, h)


def backward_hook():
    model = Residual()
    model.layers[1].register_full_backward_hook(lambda module, given, got: tuple(one * 0.5 for one in given))
    model.forward = lambda x, y: F.mse_loss(model.net(x), y)
    return model


def parameter_hook():
    model = MODELS["kept"]()
    model.layers[0].weight.register_hook(lambda gradient: gradient * 0.5)
    return model


# What an archive cannot hold is refused by name.
refused(with_change(lambda model, h: Reversed.apply(h)), "Reversed", "torch.autograd.Function", "is_exporting")
refused(with_change(lambda model, h: bound_before(h)), "Reversed")
refused(with_change(hooked), "hook on a gradient")
refused(parameter_hook, "layers.0.weight", "hook")
refused(backward_hook, "BackwardHookFunction")
refused(with_change(cast), "torch.autocast", "training.precision")
refused(with_change(lambda model, h: h + h.data), ".detach()", kinds=(False,))
written(with_change(lambda model, h: h + Reversed.apply(h.detach())), True)  # whose backward nobody runs
written(with_change(lambda model, h: h + torch.no_grad()(Reversed.apply)(h)), True)
assert any("enabled=False" in note for note in written(with_change(not_cast), True).notes)


class AllCheckpointed(Residual):
    def forward(self, x, y):
        h = x
        for layer in self.layers:
            h = h + torch.utils.checkpoint.checkpoint(layer, h, use_reentrant=True)
        return F.mse_loss(h, y)


refused(AllCheckpointed, "no parameter gets a gradient", "use_reentrant=False")


# Exporters that are wrong. The first is that of before: blocks without gradients become operators with them.
class WithGradients(grad_regions.Inliner):
    def copy(self, node, values, enabled):
        return super().copy(node, values, enabled=True)


class LosesHistory(grad_regions.Inliner):
    """After a write in place its result is read, which has no history."""

    def copy(self, node, values, enabled):
        with mock.patch.object(grad_regions, "written_argument", lambda new: None):
            return super().copy(node, values, enabled)


for name in ("self_conditioned", "running_mean", "first_to_last", "assigned", "row", "clamped", "switched"):
    with mock.patch.object(grad_regions, "Inliner", WithGradients):
        refused(MODELS[name], "would train in another way")
with mock.patch.object(grad_regions, "Inliner", LosesHistory):
    refused(MODELS["clamped"], "would train in another way")


# Without refusals by name, values show what is dropped; without values, functions do.
@contextlib.contextmanager
def nothing_mended(notes):
    yield


with mock.patch.object(capture, "recorded_as_it_trains", nothing_mended), \
        mock.patch.object(grad_regions, "recorded_as_it_trains", nothing_mended), \
        mock.patch.object(grad_regions, "refuse_hooks", lambda module: None):
    refused(with_change(lambda model, h: Reversed.apply(h)), "would train in another way")
    refused(backward_hook, "would train in another way")
    refused(parameter_hook, "gradient of layers.0.weight: differs from the module's by", kinds=(True,))
    refused(MODELS["switched"], "would train in another way")


class Counting(Residual):
    """Decides by Python what it computes."""

    calls = 0

    def forward(self, x, y):
        self.calls += 1
        return F.mse_loss(self.net(x) * self.calls, y)


refused(Counting, "would train in another way", "output 0", kinds=(True,))
# The batch is the dimension that grows with the batch; where nobody knows it, it is refused.
Path("batches.py").write_text("""
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x, y):
        return nn.functional.mse_loss(self.layer(x), y)
class Labelled(Net):
    def forward(self, x, y):
        return {"loss": nn.functional.cross_entropy(self.layer(x).flatten(0, 1), y.flatten()), "loss_weight": self.weight(y)}
def sequence_first(batch=3):
    return Net(), (torch.randn(5, batch, 4), torch.randn(5, batch, 4))
def unknown():
    return Net(), (torch.randn(5, 3, 4), torch.randn(5, 3, 4))
def told():
    return (*unknown(), (1, 1))
def multiplied(batch=3):
    return Net(), (torch.randn(2 * batch, 4), torch.randn(2 * batch, 4))
def labelled(batch, weight):
    net = Labelled()
    net.weight = lambda y: weight(net, y)
    return net, (torch.randn(batch, 5, 4), torch.zeros(batch, 5, dtype=torch.long))
def counted(batch=3):
    return labelled(batch, lambda net, y: (y != -100).sum())
def trained(batch=3):
    return labelled(batch, lambda net, y: net.layer.weight.sum())
def listed(batch=3):
    return labelled(batch, lambda net, y: (y != -100).sum(1))
""")


def exported(name, *options):
    path = Path(name + ".pt2")
    path.unlink(missing_ok=True)
    said = io.StringIO()
    with mock.patch.object(sys, "argv", ["export_models.py", "--module", f"batches.py:{name}", "--real-weights", *options]), \
            contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = export_models.main()
    if code != 0:
        assert code == 2 and not path.exists()
        return said.getvalue()
    with zipfile.ZipFile(path) as files:
        sizes = json.loads(files.read(f"{name}/models/model.json"))["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
        facts = f"{name}/extra/pfeife.json"
        return ["as_expr" in size for size in sizes], json.loads(files.read(facts)) if facts in files.namelist() else {}


assert exported("sequence_first") == ([False, True, False], {})
assert exported("told") == ([False, True, False], {})
assert exported("sequence_first", "--microbatch", "3") == ([False] * 3, {"batch_dimensions": {"x": 1, "y": 1}})
assert "input 0 [5, 3, 4], input 1 [5, 3, 4]; let FUNCTION take the batch size" in exported("unknown")
assert "input 0 [6, 4] is [8, 4] with one more sample" in exported("multiplied")
assert exported("counted", "--microbatch", "3")[1]["loss_weight"] == 1
assert "loss_weight depends on the parameter layer.weight" in exported("trained", "--microbatch", "3")
assert "loss_weight is not a scalar tensor" in exported("listed", "--microbatch", "3")
print("exporter: archives train as their modules do")
EOF

# The program says it in a sentence and with exit code 2.
cat > refused.py << 'EOF'
import torch
from torch import nn


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Doubled.apply(self.layer(x)).mean()


class Decides(Net):
    def forward(self, x):
        x = self.layer(x)
        if x.sum() > 0:
            x = x * 2
        return x.mean()


def net(batch=2):
    return Net(), torch.randn(batch, 4)


def decides(batch=2):
    return Decides(), torch.randn(batch, 4)
EOF
if "$python" "$repository/configs/models/export_models.py" --module refused.py:net > said 2>&1; then
  echo "a torch.autograd.Function was not refused"; exit 1
fi
grep -q 'refused.py:net was not exported: .*refused.py:21 calls refused.Doubled' said || { cat said; exit 1; }
if "$python" "$repository/configs/models/export_models.py" --module refused.py:decides > said 2>&1; then
  echo "a branch on a value was not refused"; exit 1
fi
grep -q 'refused.py:decides was not exported: .*refused.py:27: if x.sum() > 0:$' said || { cat said; exit 1; }
grep -q 'Use torch.where' said || { cat said; exit 1; }
[[ ! -e net.pt2 && ! -e decides.pt2 ]] || { echo "an archive was written"; exit 1; }
