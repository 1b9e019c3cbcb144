"""What a pipeline does beside training as each family says: functions of a rank, which give how far it is from the plain module.

ALSO says which pipeline_ranks.py runs on how many ranks.
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import time
import warnings
import weakref
from functools import partial

import numpy
import torch
import torch.distributed as dist
import torch.distributed.checkpoint
import torch.nn.functional as F
from torch import nn

import pfeife
from pfeife._pipeline import Pipeline
from pfeife._operators import Again
from pipeline_models import MODELS, Labels, Skips, TinyGPT, tokens
from pipeline_ranks import CLUSTER, SEED, apart, batch_of, difference, made, plain, trained


def accumulation(context):
    """Steps with and without sums over ranks, in any order, add up; the norm is that of all ranks; clipping is the same."""
    module, pipe = made("tied_gpt"), context.pipe("tied_gpt", "1f1b")
    batches = [batch_of("tied_gpt", 8, seed) for seed in range(5)]
    for number, batch in enumerate(batches):
        with pipe.no_sync() if number in (1, 3) else contextlib.nullcontext():
            pipe.step(*batch)
        for part in context.capture("tied_gpt").split(batch, pipe.microbatches):
            (module(*part) * (len(part[0]) / 8)).backward()
    found = {"gradients": apart(pipe, module)}
    for kind in (float("inf"), 3.0):
        limit = 0.9 * float(module.head.weight.grad.abs().max())
        norm = torch.nn.utils.clip_grad_norm_(module.parameters(), limit, kind)
        found[f"norm {kind}"] = difference(pipe.clip_grad_norm_(limit, kind), norm)
        found[f"clipped {kind}"] = apart(pipe, module)
    return found


def another_plan(context):
    """A checkpoint of one plan has the names of the unsplit module, and goes on under another."""
    pipe = context.pipe("tied_gpt", "1f1b")
    for parameter in pipe.parameters():
        parameter.data += 1
    batch = batch_of("tied_gpt", 8, 0)
    loss = pipe.evaluate(*batch)
    torch.distributed.checkpoint.save(pipe.state_dict(), checkpoint_id=context.folder / "checkpoint")
    second = context.pipe("tied_gpt", "zbv")
    state = second.state_dict()
    torch.distributed.checkpoint.load(state, checkpoint_id=context.folder / "checkpoint")
    second.load_state_dict(state)
    whole = made("tied_gpt").state_dict()
    torch.distributed.checkpoint.load(whole, checkpoint_id=context.folder / "checkpoint")
    expected = made("tied_gpt")
    for parameter in expected.parameters():
        parameter.data += 1
    same = max(difference(tensor, expected.state_dict()[name]) for name, tensor in whole.items())
    return {"loss": difference(second.evaluate(*batch), loss), "whole": same}


def meta_device(context):
    """A module without contents gets those of the stages from a state of the whole."""
    plan = context.plan("batch_norm", "1f1b")
    with torch.device("meta"):
        empty = MODELS["batch_norm"][0]().double()
    pipe = Pipeline(context.capture("batch_norm").with_module(empty), plan)
    try:
        pipe.step(*batch_of("batch_norm", 8, 0))
        before = False
    except pfeife.ConfigError as error:
        before = "was made on meta and has no values" in str(error)
    pipe = Pipeline(context.capture("batch_norm").with_module(empty), plan)
    before = before and all(parameter.isnan().all() for parameter in pipe.parameters())
    pipe.load_state_dict(made("batch_norm").state_dict())
    others = [parameter for parameter in empty.parameters() if all(parameter is not own for own in pipe.parameters())]
    module, batch = made("batch_norm"), batch_of("batch_norm", 8, 0)
    pipe.step(*batch)
    for part in context.capture("batch_norm").split(batch, pipe.microbatches):
        (module(*part) * (len(part[0]) / 8)).backward()
    return {"gradients": apart(pipe, module), "empty": 0.0 if before and all(parameter.is_meta for parameter in others) else 1.0}


def autocast(context):
    """Forwards of the user's torch.autocast, in bf16; the same with a scaled loss, whose scale all ranks share."""
    found = {}
    for family in ("1f1b", "zb1p"):
        module = made("tied_gpt").float()
        scaler = context.scaler()
        plan = context.plan("tied_gpt", family, "float32")
        pipe = Pipeline(context.capture("tied_gpt", "float32").with_module(made("tied_gpt").float()), plan, scaler=scaler)
        batch = batch_of("tied_gpt", 8, 0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = pipe.step(*batch)
            parts = [module(*part) * 0.25 for part in context.capture("tied_gpt").split(batch, pipe.microbatches)]
        for part in parts:
            part.backward()
        optimizer = torch.optim.SGD(pipe.parameters(), lr=1.0)
        scaler.unscale_(optimizer)
        found[f"fp32 loss {family}"] = difference(loss, sum(parts).detach())
        found[f"fp32 gradients {family}"] = apart(pipe, module)
        before = [parameter.detach().clone() for parameter in pipe.parameters()]
        optimizer.zero_grad()
        scaler.update()
        pipe.step(*batch)
        if context.rank == 0:
            pipe.parameters()[0].grad[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        skipped = all(torch.equal(parameter, kept) for parameter, kept in zip(pipe.parameters(), before))
        found[f"skipped {family}"] = 0.0 if skipped and scaler.get_scale() == 512.0 else 1.0
    return found


def precision(context):
    """A plan's precision is that of its forwards, without a word of the user's, who may say another or use torch.autocast."""
    found = {}
    batch = batch_of("tied_gpt", 8, 0)

    def apart_from(pipe, cast, own):
        """How far a step is from the plain module's, which is cast; own: the user's own torch.autocast around both."""
        module = made("tied_gpt").float()
        with own:
            loss = pipe.step(*batch)
        with cast:
            parts = [module(*part) * 0.25 for part in context.capture("tied_gpt").split(batch, pipe.microbatches)]
        for part in parts:
            part.backward()
        far = max(difference(loss, sum(parts).detach()), apart(pipe, module))
        with own:
            return max(far, max(pipe.check(*batch).gradients.values()))

    half, fp16 = (partial(torch.autocast, "cpu", dtype) for dtype in (torch.bfloat16, torch.float16))
    as_it_is = contextlib.nullcontext
    plan = context.plan("tied_gpt", "1f1b", "float32", precision="bf16_amp")

    def pipe(**how):
        return Pipeline(context.capture("tied_gpt", "float32").with_module(made("tied_gpt").float()), plan, **how)

    found["fp32 planned"] = apart_from(pipe(), half(), as_it_is())
    found["fp32 said"] = apart_from(pipe(precision="fp32"), as_it_is(), as_it_is())
    found["fp32 own"] = apart_from(pipe(), fp16(), fp16())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second = pipe(precision="fp16_amp")
        tf32 = pipe(precision="tf32")
    found["fp32 fp16"] = apart_from(second, fp16(), as_it_is())
    found["warned"] = 0.0 if sum("fp16_amp without a scaler" in str(warning.message) for warning in caught) == 1 else 1.0
    matmul = torch.backends.cuda.matmul
    before, tf32.device = matmul.fp32_precision, torch.device("cuda")
    with tf32.cast():
        during = matmul.fp32_precision
    found["tf32"] = 0.0 if during == "tf32" != before == matmul.fp32_precision else 1.0
    return found


def loss_weight(context):
    """A module that names its count of labels: the mean is over labels, not over samples."""
    torch.manual_seed(SEED)
    module, own = Labels().double(), Labels().double()
    own.load_state_dict(module.state_dict())
    plan = context.plan("labels", "1f1b")
    pipe = Pipeline(context.capture("labels").with_module(own), plan)
    x, y = batch_of("skips", 8, 0)
    y[:3] = -100
    loss = pipe.step(x, y)
    plain = module(x, y)["loss"]
    plain.backward()
    found = {"loss": difference(loss, plain.detach()), "gradients": apart(pipe, module)}
    try:
        Pipeline(context.capture("labels").with_module(own), plan).step(x, torch.full_like(y, -100))
        found["none counts"] = 1.0
    except pfeife.ConfigError as error:
        right = "before the first action: ConfigError: no microbatch of this step counts" in str(error)
        found["none counts"] = 0.0 if right else str(error)
    return found


def entropy(x, y, module):
    return F.cross_entropy(x, y)


def weighted(x, y, module):
    return 3 * F.cross_entropy(x, y, weight=module.weights, label_smoothing=0.1)


def several(x, y, module):
    """Two means over other labels, one over samples, one of weights alone."""
    return F.cross_entropy(x, y) + 0.5 * F.nll_loss(x.log_softmax(-1), y.clamp(min=0), ignore_index=1) + x.pow(2).mean() - module.weights.mean()


def masked(x, y, module):
    mask = (y != -100).double()
    return (x.pow(2).sum(-1) * mask).sum() / mask.sum().clamp(min=1.0)


def masked_means(x, y, module):
    mask = (y != -100).double()
    return (x.pow(2).sum(-1) * mask).mean() / mask.mean()


def shifted(x, y, module):
    labels = F.pad(y[:, None], (0, 1), value=-100)[:, 0]
    return F.cross_entropy(x, labels, reduction="sum") / (labels != -100).sum()


def by_size(x, y, module):
    return x.pow(2).sum() / x.shape[0]


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.GELU(), nn.Linear(16, 8), nn.Dropout(0.1)) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
        return x.pow(2).mean()


def checked_with_checkpoints(context):
    """check() runs the module's own backward, which computes again what checkpoints left, with the same draws."""
    torch.manual_seed(SEED)
    module, x = Checkpointed().double(), batch_of("skips", 8, 0)[0]
    plan = pfeife.plan(module, x, pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=["1f1b"], baselines=[])
    pipe = Pipeline(module, plan)
    with torch.no_grad():
        for parameter in pipe.parameters():  # so that other ranks' copies in the module are old
            parameter += 0.1
    checked = pipe.check(x)
    of_pairs = dict(pipe.named_parameters()) == {name: parameter for name, parameter in pipe.named_parameters()} == dict(pipe.named_parameters().items())
    return {"gradients": max(checked.gradients.values()), "loss": abs(checked.loss - checked.plain_loss), "pairs": 0.0 if of_pairs else 1.0}


class Means(nn.Module):
    """A chain with a loss over labels."""

    def __init__(self, loss):
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(8, 8), nn.Tanh())), nn.Linear(8, 3))
        self.register_buffer("weights", torch.tensor([1.0, 2.0, 0.5]))
        self.loss = loss

    def forward(self, x, y):
        return self.loss(self.layers(x), y, self)


def means_over_labels(context):
    """The loss and its gradients are the module's on the whole batch, whatever counts microbatches have, none included."""
    found = {}
    x, y = batch_of("skips", 8, 0)
    y[torch.tensor([0, 4, 5])] = -100  # of microbatches of two: 1, 2, 0 and 2 labels
    for loss in (entropy, weighted, several, masked, masked_means, shifted, by_size):
        torch.manual_seed(SEED)
        module = Means(loss).double()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plan = pfeife.plan(
                module, dict(y=y, x=x), pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=["zbv" if loss is several else "1f1b"], baselines=[]
            )
        pipe = Pipeline(module, plan)
        plain = Means(loss).double()
        plain.load_state_dict(module.state_dict())
        for samples in (8, 7):
            wanted = plain(x[:samples], y[:samples])
            plain.zero_grad()
            wanted.backward()
            for parameter in pipe.parameters():
                parameter.grad = None
            found[f"loss {loss.__name__} {samples}"] = difference(pipe.step(x=x[:samples], y=y[:samples]), wanted)
            found[f"gradients {loss.__name__} {samples}"] = apart(pipe, plain)
            found[f"evaluated {loss.__name__} {samples}"] = difference(pipe.evaluate(x=x[:samples], y=y[:samples]), wanted)
            found[f"given {loss.__name__} {samples}"] = difference(pipe(x=x[:samples], y=y[:samples]), wanted)
            checked = pipe.check(x=x[:samples], y=y[:samples])
            found[f"checked {loss.__name__} {samples}"] = max(difference(torch.tensor(checked.plain_loss, dtype=torch.float64), wanted), *checked.gradients.values())
    return found


def another_batch(context):
    """Ranks whose loaders shuffle differently are told, in size or in values."""
    found = {}
    for name, batch in (("values", batch_of("skips", 8, context.rank)), ("size", batch_of("skips", 8 + context.rank, 0))):
        try:
            context.pipe("skips", "1f1b").step(*batch)
            found[name] = 1.0
        except pfeife.ConfigError as error:
            found[name] = 0.0 if "rank 1 has another batch than rank 0" in str(error) else str(error)
    return found


def later_batches(context):
    """Batches that differ from the second step on, or a rank that has none, are refused on all ranks; nothing breaks."""
    module, pipe = made("skips"), context.pipe("skips", "1f1b")
    good = batch_of("skips", 8, 0)
    loss = pipe.step(*good)
    found = {}
    swapped = [tensor.flip(0) for tensor in good]
    for name, batch, words in (
        ("values", swapped, "rank 1 has another batch than rank 0"),
        ("size", [tensor[:6] for tensor in good], "[[6, 8], [6]] instead of [[8, 8], [8]]"),
        ("none", [good[0], None], "rank 1"),
    ):
        try:
            pipe.step(*(batch if context.rank == 1 else good))
            found[name] = 1.0
        except Exception as error:
            right = words in str(error) or (context.rank == 1 and name == "none" and not isinstance(error, pfeife.RuntimeFault))
            found[name] = 0.0 if right else str(error)
    found["goes on"] = difference(pipe.step(*good), loss)
    for part in context.capture("skips").split(good, pipe.microbatches):
        (module(*part) * (2 * len(part[0]) / 8)).backward()
    found["gradients"] = apart(pipe, module)
    return found


def changed_module(context):
    """A change of the module behind Pipeline(), on one rank alone, is refused on all of them, and taken back goes on."""
    torch.manual_seed(SEED)
    module = Named().double()
    batch = dict(zip(("tokens", "labels"), tokens(8, torch.Generator().manual_seed(0))))
    plan = pfeife.plan(module, batch, pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=["zbv"], baselines=[])
    pipe = Pipeline(module, plan, seed=SEED)
    found = {}
    for name, change, back, words in (
        ("mode", lambda: module.gpt.blocks[0].eval(), module.train, "gpt.blocks.0 was in training mode"),
        ("number", lambda: setattr(module.gpt, "dropout", 0.5), lambda: setattr(module.gpt, "dropout", 0.1), "gpt.dropout was 0.1, and is 0.5"),
    ):
        if context.rank == 1:
            change()
        try:
            pipe.step(**batch)
            found[name] = 1.0
        except pfeife.ConfigError as error:
            found[name] = 0.0 if words in str(error) and "plan again" in str(error) else str(error)
        if context.rank == 1:
            back()
        found[f"evaluated {name}"] = difference(pipe.evaluate(**batch), pipe.evaluate(**batch))
    found["goes on"] = max(pipe.check(**batch).gradients.values())
    return found


def checked(context):
    """check() finds no difference, leaves all as it was, and finds one that is there; trace() has every action."""
    pipe = context.pipe("dropout_gpt", "zbv")
    batch = batch_of("dropout_gpt", 9, 0)
    pipe.step(*batch)
    before = [parameter.grad.clone() for parameter in pipe.parameters()]
    found = {}
    for name, whole in (("graph", None), ("module", context.capture("dropout_gpt").module)):
        context.capture("dropout_gpt").whole = whole
        checked = pipe.check(*batch)
        found[f"loss {name}"] = abs(checked.loss - checked.plain_loss)
        found[f"gradients {name}"] = max(checked.gradients.values())
    found["all"] = 0.0 if checked.gradients.keys() == dict(made("dropout_gpt").named_parameters()).keys() else 1.0
    found["kept"] = max(difference(parameter.grad, grad) for parameter, grad in zip(pipe.parameters(), before))
    if context.rank == 1:
        module, backward = pipe.stages[1].module, pipe.stages[1].module.forward
        module.forward = lambda *inputs: tuple(value * 1.001 for value in backward(*inputs))
    broken = pipe.check(*batch)
    found["finds"] = 0.0 if max(broken.gradients.values()) > 1e-5 else 1.0
    events = pipe.trace(*batch).events
    wanted = [action.text for row in pipe.plan.schedule._actions()[1] for cell in row for action in cell if action.kind in "FBIW"]
    ordered = all((own.start[1:] >= own.end[:-1]).all() for own in (events[events["rank"] == rank] for rank in range(2)))
    same = events.dtype.names == pipe.plan.estimated.events.dtype.names
    found["trace"] = 0.0 if sorted(events.action) == sorted(wanted) and ordered and same else 1.0
    return found


def weights_of(folder):
    """Of a checkpoint of pfeife-run: safetensors, which are a header of JSON and the values."""
    weights = {}
    for file in folder.glob("step-*/model-*.safetensors"):
        data = file.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:begin]).items():
            if name != "__metadata__":
                values = bytearray(data[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]])
                dtype = {"F64": torch.float64, "I64": torch.int64}[entry["dtype"]]
                weights[name] = torch.frombuffer(values, dtype=dtype).view(entry["shape"])
    return weights


def runtime(context):
    """pfeife-run, which shares no code with a pipeline, makes the same gradients of the same plans: by a step of SGD at rate 1."""
    found = {}
    for model, inputs in (("skips", ("x", "y")), ("tied_gpt", ("tokens", "labels")), ("batch_norm", ("x", "y"))):
        batch = batch_of(model, 16, 0)
        for family in ("1f1b", "interleaved_1f1b", "zb_greedy", "dualpipev"):
            how = dict(recompute="full") if family == "1f1b" else {}
            plan = context.plan(model, family, optimizer="sgd", **how)
            pipe = context.pipe(model, family, optimizer="sgd", **how)
            pipe.step(*batch)
            place = context.folder / f"{model}-{family}"
            if context.rank == 0:
                plan.save(place)
                for name, tensor in zip(inputs, batch):
                    numpy.save(place / f"{name}.npy", tensor.numpy())
                words = ["train", place / "plan.yaml", "--data", place, "--save", place / "saved"]
                words += ["--steps", "1", "--learning-rate", "1", "--threads"]
                done = subprocess.run([os.environ["PFEIFE_RUN"], *words], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
            dist.barrier()
            after, before = weights_of(place / "saved"), made(model).state_dict()
            far = [difference(parameter.grad, before[name] - after[name]) for name, parameter in pipe.named_parameters().items() if parameter.requires_grad]
            found[f"{model} {family}"] = max(far)
            buffers = [name for name, tensor in pipe.state_dict().items() if name.endswith(("running_mean", "running_var"))]
            found[f"buffers {model} {family}"] = max([difference(pipe.state_dict()[name], after[name]) for name in buffers], default=0.0)
    return found


def slower(context):
    """plan.compare() names the rank and the action that was slow, of one step or the median of several, with the program's words."""
    found = {}
    for family in ("1f1b", "dualpipev"):
        plan = context.plan("dropout_gpt", family)
        pipe = context.pipe("dropout_gpt", family)
        batch = batch_of("dropout_gpt", 8, 0)
        pipe.step(*batch)
        if context.rank == 1:
            module = pipe.stages[1].module
            pipe.stages[1].module = lambda *inputs: time.sleep(0.03) or module(*inputs)
        steps = [pipe.trace(*batch) for _ in range(3)]
        for name, measured in (("one", steps[0]), ("several", steps)):
            compared = plan.compare(measured)
            words = [f"(median of {1 if name == 'one' else 3})", "% longer than simulated (", "ms slower compute, most of it of rank 1"]
            words += ["where 1F takes 3"] if family == "1f1b" else []
            right = all(word in compared.why for word in words) and compared.text.count("rank 1") > 1 and "/tmp" not in compared.text
            found[f"{name} {family}"] = 0.0 if right else compared.text
    try:
        context.plan("dropout_gpt", "zbv").compare(steps)
        found["another plan"] = 1.0
    except pfeife.ConfigError as error:
        found["another plan"] = 0.0 if "rank 0 ran" in str(error) else str(error)
    return found


def except_last(context):
    """Of the microbatch that a stage runs forward last, nothing is computed again."""
    found = {}
    batch = batch_of("dropout_gpt", 8, 0)
    for family, recompute in (("1f1b", "full"), ("zbv", "blocks")):
        plan = context.plan("dropout_gpt", family, recompute=recompute, recompute_except_last=True)
        pipe = Pipeline(context.capture("dropout_gpt").with_module(made("dropout_gpt")), plan, seed=SEED)
        again = [block for stage in pipe.stages.values() for block in stage.module.modules() if isinstance(block, Again)]
        ran = []
        for block in again:
            block.inner.register_forward_pre_hook(lambda inner, _: ran.append(inner))
        pipe.step(*batch)
        twice = {2 * pipe.microbatches - 1}
        found[f"ran {family}"] = 0.0 if {ran.count(block.inner) for block in again} <= twice else 1.0
        found[f"gradients {family}"] = max(pipe.check(*batch).gradients.values())
    return found


def on_torch(context):
    """torch.distributed.pipelining runs the plans that it can, with the gradients of a pipeline; others are refused."""
    found = {}
    ran = (("1f1b", "chain", {}), ("interleaved_1f1b", "batch_norm", {}), ("1f1b", "chain", dict(recompute="full")), ("zbv", "batch_norm", {}))
    for family, model, how in ran:
        plan = context.plan(model, family, **how)
        batch = batch_of(model, 16, 0)
        pipe = Pipeline(context.capture(model).with_module(made(model)), plan, seed=SEED)
        loss = pipe.step(*batch)
        own = made(model)
        stages, schedule = plan.to_torch(context.capture(model).with_module(own), seed=SEED)
        losses = []
        schedule.step(*batch, losses=losses)
        name = " ".join([family, *how])
        if losses:
            found[f"loss {name}"] = difference(sum(losses), loss)
        wanted = {key: gradient.grad for key, gradient in pipe.named_parameters().items()}
        found[f"gradients {name}"] = max(difference(dict(own.named_parameters())[key].grad, gradient) for key, gradient in wanted.items())
        buffers = [(key, buffer) for key, buffer in pipe.state_dict().items() if key not in wanted]
        found[f"buffers {name}"] = max([difference(own.state_dict()[key].double(), buffer.double()) for key, buffer in buffers], default=0.0)
        held = sum(parameter.numel() for stage in stages for parameter in stage.submod.parameters())
        found[f"parameters {name}"] = 0.0 if held == sum(parameter.numel() for parameter in pipe.parameters()) else 1.0
    try:
        schedule.step(*batch_of("batch_norm", 8, 0))
        found["another size"] = 1.0
    except pfeife.ConfigError as error:
        found["another size"] = 0.0 if "drop_last" in str(error) else str(error)
    for model, family, words in (("tied_gpt", "1f1b", "shared by stages"), ("chain", "zb1p", "I and W")):
        try:
            context.plan(model, family).to_torch(context.capture(model).with_module(made(model)))
            found[f"refused {model}"] = 1.0
        except pfeife.ConfigError as error:
            found[f"refused {model}"] = 0.0 if words in str(error) else str(error)
    return found


def compiled(context):
    found = {}
    for family in ("1f1b", "zb1p"):
        module = made("skips")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = context.plan("skips", family)
            pipe = Pipeline(context.capture("skips").with_module(made("skips")), plan, compile=dict(backend="aot_eager"))
        found[f"said {family}"] = 0.0 if sum("W is empty" in str(warning.message) for warning in caught) == (family == "zb1p") else 1.0
        batch = batch_of("skips", 8, 0)
        pipe.step(*batch)
        for part in context.capture("skips").split(batch, pipe.microbatches):
            (module(*part) * (len(part[0]) / 8)).backward()
        found[f"gradients {family}"] = apart(pipe, module)
    return found


def replicas(context):
    """Two pipelines of two ranks on batches of their own, of different sizes: gradients of the mean over all samples."""
    found = {}
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    across = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    replica, place = divmod(context.rank, 2)
    for family in ("1f1b", "zbv"):
        plan = context.plan("tied_gpt", family, ranks=2)
        module, own = made("tied_gpt"), made("tied_gpt")
        for parameter in own.parameters():
            parameter.data += replica  # they begin as the first replica does
        pipe = Pipeline(context.capture("tied_gpt").with_module(own), plan, group=pairs[replica], replicas=across[place])
        for first in (0, 2):  # accumulated
            batches = [batch_of("tied_gpt", samples, first + seed) for seed, samples in enumerate((8, 11))]
            loss = pipe.step(*batches[replica])
            plain = sum(module(*batch) * (len(batch[0]) / 19) for batch in batches)
            plain.backward()
            found[f"loss {family} {first}"] = difference(loss, plain.detach())
        found[f"gradients {family}"] = apart(pipe, module)
    return found


def sharded(context):
    """FSDP2 of each stage on two pipelines of two ranks: gradients and steps of the mean over all samples."""
    mesh = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    found = {}
    for model, how in (("batch_norm", dict(family="interleaved_1f1b")), ("skips", dict(family="1f1b", recompute="full"))):
        plan = context.plan(model, ranks=2, **how)
        module = made(model)
        own = made(model)
        # A layer that several stages use is refused.
        shared = model == "skips"
        try:
            pipe = Pipeline(context.capture(model).with_module(own), plan, group=mesh["pp"], shard=mesh["dp"])
            assert not shared
        except pfeife.ConfigError as error:
            found["refused"] = 0.0 if shared and "several stages" in str(error) else str(error)
            continue
        optimizer, plain_optimizer = torch.optim.AdamW(pipe.parameters()), torch.optim.AdamW(module.parameters())
        for step in range(2):
            batches = [batch_of(model, samples, seed + step) for seed, samples in enumerate((8, 11))]
            loss = pipe.step(*batches[mesh["dp"].get_local_rank()])
            plain = 0.0
            for batch in batches:
                for part in context.capture(model).split(batch, pipe.microbatches):
                    own_loss = module(*part) * (len(part[0]) / 19)
                    own_loss.backward()
                    plain = plain + own_loss.detach()
            found[f"loss {step}"] = difference(loss, plain)
            wanted = dict(module.named_parameters())
            far = [difference(parameter.grad.full_tensor(), wanted[name].grad) for name, parameter in pipe.named_parameters().items()]
            found[f"gradients {step}"] = max(far)
            norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            found[f"norm {step}"] = difference(pipe.clip_grad_norm_(0.1), norm)
            optimizer.step(), plain_optimizer.step()
            optimizer.zero_grad(), plain_optimizer.zero_grad()
        far = [difference(parameter.full_tensor(), wanted[name]) for name, parameter in pipe.named_parameters().items()]
        found["weights"] = max(far)
        found["parts"] = 0.0 if any(hasattr(parameter, "full_tensor") for parameter in own.parameters()) else 1.0
    try:
        plan = context.plan("batch_norm", "zbv", ranks=2)
        Pipeline(context.capture("batch_norm").with_module(made("batch_norm")), plan, group=mesh["pp"], shard=mesh["dp"])
        found["split"] = 1.0
    except pfeife.ConfigError as error:
        found["split"] = 0.0 if "I and W" in str(error) else str(error)
    return found


def refused(context):
    """Mistakes, each the same on every rank, none of which hangs."""
    found = {}

    def says(name, words, work):
        try:
            work()
            found[name] = 1.0
        except (pfeife.ConfigError, pfeife.RuntimeFault) as error:
            right = all(word in str(error) for word in words) and ("imed out" in str(error)) == ("imed out" in words)
            found[name] = 0.0 if right else str(error)

    plan = context.plan("skips", "1f1b")
    two = context.plan("skips", "1f1b", ranks=2) if context.ranks != 2 else context.plan("skips", "1f1b", ranks=4)
    says("world", ["ranks, and the group has"], lambda: Pipeline(context.capture("skips").with_module(made("skips")), two))
    says("graph", ["another module"], lambda: Pipeline(context.capture("batch_norm").with_module(made("batch_norm")), plan))
    context.capture("skips").with_module(made("skips"))
    wide = Skips(9 if context.rank == 1 else 8).double()
    plan.capture = context.plan("skips", "gpipe").capture = context.capture("skips")
    says("shapes", ["another module", "[9, 9]"], lambda: Pipeline(wide, plan))
    others = context.plan("skips", "gpipe")
    says("plans", ["another graph or plan"], lambda: Pipeline(made("skips"), others if context.rank == 1 else plan))
    says("scaler", ["ShardedGradScaler"], lambda: Pipeline(made("skips"), plan, scaler=torch.amp.GradScaler("cpu")))
    # A rank whose forward fails, one that stalls: the others hear of it.
    for name, timeout, words in (("raises", 40, ["rank 1, 1F0", "no such thing"]), ("stalls", 3, ["rank 1 ", "imed out"])):
        pipe = Pipeline(made("skips"), plan, timeout=timeout)
        pipe.step(*batch_of("skips", 4 * context.ranks, 0))
        if context.rank == 1:
            def broken(*inputs, name=name):
                if name == "raises":
                    raise ValueError("no such thing")
                time.sleep(6)
                raise ValueError("imed out")

            pipe.stages[1].module = broken
        says(name, words, lambda: pipe.step(*batch_of("skips", 4 * context.ranks, 0)))
        says(name + " for good", words, lambda: pipe.step(*batch_of("skips", 4 * context.ranks, 0)))
    return found


class Named(nn.Module):
    """Arguments by name, the loss in a dictionary."""

    def __init__(self):
        super().__init__()
        self.gpt = TinyGPT(dropout=0.1)

    def forward(self, tokens, labels):
        return {"loss": self.gpt(tokens, labels)}


def from_a_module(context):
    """Every rank captures and plans by itself."""
    torch.manual_seed(SEED)
    module = Named().double()
    batch = dict(zip(("tokens", "labels"), tokens(8, torch.Generator().manual_seed(0))))
    plan = pfeife.plan(module, batch, pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=["zb_greedy"], baselines=[])
    pipe = Pipeline(module, plan, seed=SEED)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=1e-2)
    first = pipe.step(**batch)
    optimizer.step()
    optimizer.zero_grad()
    checked = pipe.check(**batch)
    last = pipe.check(**{name: tensor[:5] for name, tensor in batch.items()})  # two microbatches of four
    objects = dict(module.named_parameters())
    same = all(parameter is objects[name] for name, parameter in pipe.named_parameters().items())
    trained = same and checked.loss < float(first)
    # The plan of a model without contents trains that model.
    with torch.device("meta"):
        empty = Named().double()
    plan = pfeife.plan(empty, batch, pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=["1f1b"], baselines=[])
    torch.manual_seed(SEED)
    full, loaded = Named().double(), Pipeline(empty, plan, seed=SEED)
    loaded.load_state_dict(full.state_dict())
    found = {"gradients": max(checked.gradients.values()), "trained": 0.0 if trained else 1.0, "meta": difference(loaded.step(**batch), first)}
    found["last batch"] = max(abs(last.loss - last.plain_loss), *last.gradients.values())
    # A saved plan trains what is captured again.
    if context.rank == 0:
        plan.save(context.folder / "saved")
    dist.barrier()
    loaded = pfeife.load_plan(context.folder / "saved")
    found["loaded"] = difference(Pipeline(pfeife.capture(full, **batch, microbatches=4), loaded, seed=SEED).step(**batch), first)
    try:
        Pipeline(full, loaded)
        found["said"] = 1.0
    except pfeife.ConfigError as error:
        found["said"] = 0.0 if "in the model's place" in str(error) else str(error)
    return found


@dataclasses.dataclass
class Returned:
    """What a model returns, beside the loss: of samples, of numbers, of several stages, of a cache."""

    loss: torch.Tensor = None
    logits: torch.Tensor = None
    best: torch.Tensor = None
    states: tuple = ()
    right: torch.Tensor = None
    spread: torch.Tensor = None
    cache: object = None
    kind: str = "classes"


class Returns(nn.Module):
    """Its argmax, its count and a sum of states are needed for no loss; a head of its own is not planned at all."""

    def __init__(self, pictures, layers=4):
        super().__init__()
        self.pictures = pictures
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(layers))
        self.norm, self.last, self.aside = nn.BatchNorm1d(8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x, y):
        states = []
        for layer in self.layers:
            x = F.dropout(torch.tanh(layer(x)), 0.3, self.training)
            states.append(x)
        logits = self.last(self.norm(x)).view(y.shape[0], -1)  # whose number of samples is not its labels
        best = logits.argmax(-1)
        loss = F.cross_entropy(logits, y)
        made = dict(loss=loss, logits=logits, best=best, states=(*states, states[0] + states[-1]), right=(best == y).sum())
        made.update(spread=(logits * logits).mean(), cache=object())
        return Returned(**made) if self.pictures else {**made, "aside": self.aside(x), "kind": "classes"}


def outputs(context):
    """pipe(batch) is what the evaluating module returns, in its containers, of batches of any size; nothing is trained by it."""
    found = {}
    for family, kind in (("1f1b", True), ("zbv", False)):
        torch.manual_seed(SEED)
        module = Returns(kind).double()
        x, y = batch_of("skips", 11, 0)
        plan = pfeife.plan(
            module, dict(x=x[:8], y=y[:8]), pfeife.uniform_cluster(2, **CLUSTER), microbatches=4, families=[family], baselines=[]
        )
        pipe = Pipeline(module, plan, seed=SEED)
        before = [tensor.clone() for tensor in module.state_dict().values()]
        for samples in (8, 11, 5, 2):
            got = pipe(x=x[:samples], y=y[:samples])
            module.eval()
            wanted = module(x[:samples], y[:samples])
            module.train()
            assert type(got) is type(wanted), type(got)
            got, wanted = (value.__dict__ if kind else value for value in (got, wanted))
            pairs = [(got[name], wanted[name]) for name in ("loss", "logits", "spread")] + list(zip(got["states"], wanted["states"]))
            found[f"outputs {family} {samples}"] = max(difference(value, expected) for value, expected in pairs)
            same = got["kind"] == "classes" and got["cache"] is None and got.get("aside") is None
            same = same and torch.equal(got["best"], wanted["best"]) and int(got["right"]) == int(wanted["right"])
            found[f"same {family} {samples}"] = 0.0 if same else 1.0
        module.eval()
        wanted = module(x, y)
        wanted = wanted.__dict__ if kind else wanted
        module.train()
        for name, batch in (("absent", dict(x=x)), ("None", dict(x=x, y=None))):
            got = pipe(**batch)
            got = got.__dict__ if kind else got
            pairs = [(got[key], wanted[key]) for key in ("logits", "spread")] + list(zip(got["states"], wanted["states"]))
            found[f"unlabelled {name} {family}"] = max(difference(value, expected) for value, expected in pairs)
            same = torch.equal(got["best"], wanted["best"]) and got["loss"] is None and got["right"] is None
            found[f"labels' dependents {name} {family}"] = 0.0 if same else 1.0
        try:
            pipe(y=y)
            found[f"without x {family}"] = 1.0
        except pfeife.Unexportable as error:
            found[f"without x {family}"] = 0.0 if "lacks x, which all that the model returns depends on" in str(error) else str(error)
        kept = all(torch.equal(tensor, kept) for tensor, kept in zip(before, module.state_dict().values()))
        notes = [note for note in plan.capture.notes if "aside is None" in note]
        found[f"kept {family}"] = 0.0 if kept and len(notes) == (not kind) else 1.0
        module.eval()
        try:
            pipe.step(x=x[:8], y=y[:8])
            found[f"mode {family}"] = 1.0
        except pfeife.ConfigError as error:
            found[f"mode {family}"] = 0.0 if "model.train() before step()" in str(error) else str(error)
    return found


def forward_only(context):
    """Rows of F alone give what the evaluating module does, keep nothing that was read, and train nothing."""
    found = {}
    microbatches = 2 * context.ranks
    x, y = batch_of("skips", 2 * microbatches, 0)
    torch.manual_seed(SEED)
    module = Returns(True, layers=10).double()
    baselines = [
        dict(family="forward", name=name, stages_per_rank=2, **how)
        for name, how in (("interleaved", {}), ("breadth_first", dict(loop_batch=microbatches)))
    ]
    best = pfeife.plan(
        module,
        dict(x=x, y=y),
        pfeife.uniform_cluster(context.ranks, **CLUSTER),
        microbatches=microbatches,
        mode="forward",
        stages_per_rank=1,
        baselines=baselines,
    )
    plans = {"in order": best, **best.baselines}
    assert len(plans) == 3, list(plans)
    for name, plan in plans.items():
        stages = 1 if plan is best else 2
        assert len(plan.rank_of_stage) == stages * context.ranks, plan.rank_of_stage
        module.train()
        pipe = Pipeline(best.capture, plan)
        read, kept, saved = [], [], []
        for stage in pipe.stages.values():
            def evaluation(*inputs, stage=stage, inner=stage.evaluation):
                kept.extend(reference for reference in read if reference() is not None)
                read.extend(weakref.ref(inputs[i]) for places in stage.sources.values() for i in places)
                return inner(*inputs)

            stage.evaluation = evaluation
        with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda tensor: tensor):
            loss = pipe.evaluate(x=x, y=y)
        found[f"kept {name}"] = float(len(kept) + len(saved))
        module.eval()
        for batch in (dict(x=x, y=y), dict(x=x[:-3], y=y[:-3])):
            got, wanted = pipe(**batch), module(**batch)
            pairs = [(got.loss, wanted.loss), (got.logits, wanted.logits), *zip(got.states, wanted.states)]
            found[f"outputs {name} {len(batch['x'])}"] = max(difference(value, expected) for value, expected in pairs)
        found[f"loss {name}"] = difference(loss, module(x, y).loss)
        found[f"unlabelled {name}"] = difference(pipe(x=x).logits, module(x, y).logits)
        none = all(tensor.grad is None for tensor in module.parameters()) and not any(tensor.requires_grad for tensor in (got.logits, loss))
        events = pipe.trace(x=x, y=y).events
        found[f"no gradients {name}"] = 0.0 if none and len(events) == stages * context.ranks * microbatches else 1.0
        for what in ("step", "check"):
            try:
                getattr(pipe, what)(x=x, y=y)
                found[f"{what} {name}"] = 1.0
            except pfeife.ConfigError as error:
                found[f"{what} {name}"] = 0.0 if f"{what}(): the plan has forward only" in str(error) else str(error)
    return found


def dies(context):
    pipe = context.pipe("skips", "1f1b")
    pipe.step(*batch_of("skips", 4 * context.ranks, 0))
    if context.rank == context.ranks - 1:
        return "dies"
    found = {"step": 1.0}
    try:
        pipe.step(*batch_of("skips", 4 * context.ranks, 0))
    except pfeife.RuntimeFault as error:
        dead = f"rank {context.ranks - 1} "
        found["step"] = 0.0 if str(error).startswith(dead) and "onnection" in str(error) else str(error)
    try:
        Pipeline(context.captures["skips"].with_module(made("skips")), context.plan("skips", "1f1b"), timeout=2)
        found["new"] = 1.0
    except pfeife.RuntimeFault as error:
        found["new"] = 0.0 if f"{dead}did not come within 2 s: died or stalled before Pipeline()" in str(error) else str(error)
    return found


def slices_of_other_lengths(context):
    """Slices that take equally long are not equally long; slices have different counts of labels that count."""
    plan = context.plan("tied_gpt", "seq1f1b", slices=2, slice_lengths="equal_time")
    batches = [batch_of("tied_gpt", 8, seed) for seed in range(2)]
    for _, labels in batches:
        labels[::2, 3:] = -100
    capture = context.captures["tied_gpt"]
    found = {}
    for lengths in ([4, 2], [1, 5]):
        wanted = plain(capture, made("tied_gpt"), batches, 4)
        far = trained(capture, plan, made("tied_gpt"), batches, wanted, slice_lengths=lengths)
        found.update({f"{what} {lengths}": distance for what, distance in far.items()})
    for what, call in (
        ("the plan has slices", lambda: Pipeline(capture.with_module(made("tied_gpt")), plan, compile=True)),
        ("lengths of 1 and more", lambda: Pipeline(capture.with_module(made("tied_gpt")), plan, slice_lengths=[6])),
    ):
        try:
            call()
            found[what] = float("inf")
        except pfeife.ConfigError as error:
            found[what] = 0.0 if what in str(error) else str(error)
    return found


def traced_slices(context):
    """A trace has every slice's actions, of its microbatch, with times; compare() takes it. check() agrees."""
    plan = context.plan("tied_gpt", "zb_greedy", slices=2)
    module, batch = made("tied_gpt"), batch_of("tied_gpt", 8, 0)
    capture = context.captures["tied_gpt"].with_module(module)
    capture.whole = module
    pipe = Pipeline(capture, plan, seed=SEED)
    pipe.step(*batch)
    measured = pipe.trace(*batch)
    events, simulated = (trace.events[trace.events.kind == "compute"] for trace in (measured, plan.simulate()))
    found = {"gradients": max(pipe.check(*batch).gradients.values())}
    found["actions"] = 0.0 if sorted(events.action) == sorted(simulated.action) and (events.end > events.start).all() else 1.0
    wanted = dict(zip(simulated.action, simulated.microbatch))
    found["microbatches"] = 0.0 if all(wanted[event.action] == event.microbatch for event in events) else 1.0
    found["compared"] = 0.0 if "longer than simulated" in plan.compare(measured).why else 1.0
    capture.whole = None
    return found


ALSO = {
    2: (accumulation, another_plan, meta_device, autocast, precision, loss_weight, another_batch, later_batches, checked, slower, runtime, except_last, on_torch, compiled,
        slices_of_other_lengths, traced_slices)
    + ((from_a_module, means_over_labels, checked_with_checkpoints, changed_module, outputs, forward_only) if hasattr(pfeife, "capture") else ()),
    4: (replicas, sharded, refused, forward_only, dies),
}
