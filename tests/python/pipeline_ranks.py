"""Ranks in processes of this machine that train models as pipelines and compare them with the plain modules.

Usage: pipeline_ranks.py RANKS FOLDER: runs every case of that many ranks; FOLDER/rankR.json has what rank R found, by case.
test_pipeline.py judges it. Processes are forked after torch is loaded, and run all cases one after the other.
Here stands how far each family is from the plain module; what else a pipeline does stands in pipeline_uses.py.
"""

import datetime
import hashlib
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

import pfeife
from pfeife._pipeline import Pipeline
from pfeife._check import Draws
from pfeife._operators import Moment
from pipeline_models import MODELS

SEED = 7
CLUSTER = dict(memory="1 GiB", peak={"fp32": "1 TFLOP/s"}, gemm_efficiency={"fp32": [["0.001 GFLOP", 1]]}, memory_bandwidth="100 GB/s")


class Captured:
    """What pfeife.capture() gives, for modules of tensors by position. inlined: by pfeife.capture() itself, as blocks without
    gradients need."""

    def __init__(self, module, args, inlined=False):
        self.whole = None
        if inlined:
            captured = pfeife.capture(module, *args)
            self.program, self.archive = captured.program, captured.archive
            self.with_module(module)
            return
        batch = torch.export.Dim("batch", min=2, max=64)
        self.program = torch.export.export(module, args, dynamic_shapes=tuple({0: batch} for _ in args))
        saved = io.BytesIO()
        torch.export.save(self.program, saved)
        self.archive = saved.getvalue()
        self.with_module(module)

    def with_module(self, module):
        self.module = module
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self.buffers = dict(module.named_buffers(remove_duplicate=False))
        return self

    def leaves(self, *args):
        return list(args)

    def batches(self, args, kwargs):
        return None

    def split(self, leaves, microbatches):
        return [list(part) for part in zip(*(leaf.tensor_split(microbatches) for leaf in leaves))]


def placed(ranks, microbatches):
    """2 D - 1 stages: the first lives on the last rank, the others in turn on all, forwards before backwards."""
    rows = [[stage for stage in range(2 * ranks - 1) if (stage - 1) % ranks == rank] for rank in range(ranks)]
    forwards = [[f"{stage}F{m}" for m in range(microbatches) for stage in row] for row in rows]
    backwards = [[f"{stage}B{m}" for m in range(microbatches) for stage in reversed(row)] for row in rows]
    return pfeife.Schedule([forward + backward for forward, backward in zip(forwards, backwards)])


def schedule_of(family, ranks, microbatches):
    if family == "placed":
        return placed(ranks, microbatches)
    stages = 2 if family in ("looped", "interleaved_1f1b", "looped_bfs", "zb1p", "zb_greedy") else None
    return pfeife.schedule(family, ranks=ranks, microbatches=microbatches, stages_per_rank=stages)


def edited(plan, folder, rows, **values):
    """The plan with other rows, and other values in its plan.yaml."""
    plan.save(folder)
    settings = (folder / "plan.yaml").read_text()
    digest = hashlib.sha256((folder / "schedule.csv").read_bytes()).hexdigest()
    assert digest in settings
    text = "".join(",".join(row) + "\n" for row in rows)
    (folder / "schedule.csv").write_text(text)
    settings = settings.replace(digest, hashlib.sha256(text.encode()).hexdigest())
    for key, value in values.items():
        settings = re.sub(f"^{key}: .*\n", "", settings, flags=re.MULTILINE)
        settings = re.sub("^predicted:", f"{key}: {json.dumps(value)}\npredicted:", settings, flags=re.MULTILINE)
    (folder / "plan.yaml").write_text(settings)
    return pfeife.load_plan(folder)


def sliced(plan, folder, recompute):
    """Of a plan with slices one that computes stages or blocks again."""
    values = {"recompute": [True] * len(plan.stages)}
    if recompute == "blocks":  # of each stage but the last all layers but the first
        values = {"recompute_blocks": [{"layers": [a + 2, b]} for a, b in zip([-1, *plan.cuts], plan.cuts)]}
    found = edited(plan, folder, plan.schedule.cells, **values)
    assert bool(found.recomputed_blocks) == (recompute == "blocks")
    assert all(stage["recomputed"] == (recompute == "full") for stage in found.stages)
    return found


def planned(capture, family, ranks, microbatches, memory=CLUSTER["memory"], **more):
    """A plan of that family, cut into equal numbers of layers, in the midst of blocks."""
    if more.get("recompute") == "blocks" and memory == CLUSTER["memory"]:
        # Blocks are computed again where there is no room.
        peaks = planned(capture, family, ranks, microbatches, **{**more, "recompute": "none", "recompute_except_last": False}).peaks
        plan = planned(capture, family, ranks, microbatches, f"{int(0.9 * max(peaks))} B", allocator="none", **more)
        assert plan.recomputed_blocks or any(stage["recomputed"] for stage in plan.stages), (family, peaks)
        return plan
    if "slices" in more:
        more = {**more, "slices": [more["slices"]], "recompute": "none"}
    schedule = schedule_of(family, ranks, microbatches)
    stages = 1 + max(action.stage for row in schedule._actions()[1] for cell in row for action in cell)
    model, cluster = pfeife.model(capture.archive), pfeife.uniform_cluster(ranks, **{**CLUSTER, "memory": memory})
    common = dict(devices=ranks, microbatches=microbatches, engines=["estimate"], baselines=[])
    pricer = pfeife.Pricer(model, cluster, **common, cuts_at="layers")
    allowed = [i for i, (_, may) in enumerate(pricer.layers[:-1]) if may]
    common["cuts"] = [allowed[(s * len(allowed)) // stages] for s in range(1, stages)]
    how = dict(families=[family], stages_per_rank=stages // ranks, iterations=1, **more) if more else dict(schedule=schedule)
    return pfeife.plan(model, cluster, **how, **common)


def plain(capture, module, batches, microbatches):
    """[step] Of the plain module on the microbatches one by one: loss, gradients, then weights, buffers and evaluated loss."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    steps = []
    for step, batch in enumerate(batches):
        parts = capture.split(batch, microbatches)
        loss = 0
        for m, part in enumerate(parts):
            moment = Moment(SEED, torch.device("cpu"))
            moment.step = step
            with Draws(capture.program, moment, m):
                own = module(*part) * (len(part[0]) / len(batch[0]))
                own.backward()
            loss += own.detach()
        gradients = {name: tensor.grad for name, tensor in module.named_parameters()}
        optimizer.step()
        optimizer.zero_grad()
        weights = {name: tensor.detach().clone() for name, tensor in module.named_parameters()}
        buffers = {name: tensor.double().clone() for name, tensor in module.named_buffers()}
        module.eval()
        with torch.no_grad():
            evaluated = sum(module(*part) * (len(part[0]) / len(batch[0])) for part in parts)
        module.train()
        steps.append((loss, gradients, weights, buffers, evaluated))
    return steps


def difference(tensor, wanted):
    if tensor is None or wanted is None:
        return 0.0 if tensor is wanted else float("inf")
    far = float((tensor.detach() - wanted.detach()).abs().max() / wanted.detach().abs().max().clamp(min=1e-3))
    return far if far == far else float("inf")  # max() of what was found would pass over NaN


def trained(capture, plan, module, batches, wanted, **how):
    """How far a pipeline is from the plain module."""
    pipe = Pipeline(capture.with_module(module), plan, seed=SEED, **how)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=1e-2)
    found = {"loss": 0.0, "gradients": 0.0, "weights": 0.0, "buffers": 0.0, "evaluation": 0.0}

    def note(what, tensor, wanted):
        found[what] = max(found[what], difference(tensor, wanted))

    for batch, (loss, gradients, weights, buffers, evaluated) in zip(batches, wanted):
        note("loss", pipe.step(*batch), loss)
        for name, parameter in pipe.named_parameters().items():
            note("gradients", parameter.grad, gradients[name])
        optimizer.step()
        optimizer.zero_grad()
        for name, parameter in pipe.named_parameters().items():
            note("weights", parameter, weights[name])
        for name in set(buffers) & set(pipe.names):
            note("buffers", capture.buffers[name].double(), buffers[name])
        note("evaluation", pipe.evaluate(*batch), evaluated)
    return found


def made(name):
    torch.manual_seed(SEED)
    return MODELS[name][0]().double()


def batch_of(name, samples, seed):
    return MODELS[name][1](samples, torch.Generator().manual_seed(seed))


def apart(pipe, module):
    wanted = dict(module.named_parameters())
    return max([difference(parameter.grad, wanted[name].grad) for name, parameter in pipe.named_parameters().items()], default=0.0)


class Context:
    """Of a rank: what it captures and plans, which is the same on all."""

    def __init__(self, ranks, folder):
        self.ranks, self.folder, self.rank = ranks, folder, 0
        self.captures, self.plans = {}, {}

    def capture(self, model, dtype="float64"):
        key = model if dtype == "float64" else (model, dtype)
        if key not in self.captures:
            make, batch = MODELS[model]
            torch.manual_seed(SEED)
            module = make().to(getattr(torch, dtype))
            given = [tensor.to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor for tensor in batch(4, torch.Generator())]
            self.captures[key] = Captured(module, tuple(given), inlined=model == "averages")
        return self.captures[key]

    def plan(self, model, family, dtype="float64", ranks=None, **how):
        ranks = ranks or self.ranks
        key = model, family, dtype, ranks, *how.items()
        if key not in self.plans:
            again = how.pop("recompute", None) if "slices" in how else None
            plan = planned(self.capture(model, dtype), family, ranks, 2 * ranks, **how)
            self.plans[key] = sliced(plan, self.folder / f"plan{len(self.plans)}", again) if again else plan
        return self.plans[key]

    def scaler(self):
        return ShardedGradScaler("cpu", init_scale=1024.0, process_group=dist.group.WORLD)

    def pipe(self, model, family, **how):
        plan = self.plan(model, family, **how)
        return Pipeline(self.captures[model].with_module(made(model)), plan, seed=SEED)


def cases(ranks):
    """By name the model, and what its plan is made of; or a function."""
    from pipeline_uses import ALSO  # here, since pipeline_uses imports this file

    found = {}
    for model in ("skips", "tied_gpt", "batch_norm", "dropout_gpt") if ranks == 2 else ("skips", "dropout_gpt"):
        for family in pfeife.families():
            found[f"{model}-{family}"] = model, dict(family=family)
    for model in ("towers", "averages", "layouts"):
        for family in ("1f1b", "zb1p", "zbv", "dualpipev"):
            found[f"{model}-{family}"] = model, dict(family=family)
            found[f"{model}-{family}-full"] = model, dict(family=family, recompute="full")
    found["skips-placed"] = "skips", dict(family="placed")
    for family in ("1f1b", "zbv") if ranks == 2 else ():
        found[f"recurrent-{family}"] = "recurrent", dict(family=family)
    for family in ("1f1b", "zb1p", "dualpipev"):
        for kind in ("full", "blocks"):
            for model in ("dropout_gpt", "batch_norm"):
                found[f"{model}-{family}-{kind}"] = model, dict(family=family, recompute=kind)
    for family in ("seq1f1b", "slimpipe", "terapipe", "zb_greedy", "zbv_greedy"):
        for slices in (2, 4) if ranks == 2 else (4,):
            how = dict(family=family, slices=slices)
            found[f"tied_gpt-{family}-{slices}"] = "tied_gpt", how
            for again in ("full", "blocks") if slices == 4 else ():
                found[f"tied_gpt-{family}-{slices}-{again}"] = "tied_gpt", {**how, "recompute": again}
    return {**found, **{work.__name__: (work, {}) for work in ALSO[ranks]}}


def run(context, names, work):
    """Forks the ranks; each writes what work(name) found, by name, and ends with the first error."""
    ranks, folder, results = context.ranks, context.folder, {}
    for rank in range(1, ranks):
        if os.fork() == 0:
            context.rank = rank
            break
    limit = datetime.timedelta(seconds=300)  # a busy machine compiles for longer than a minute
    store = dist.FileStore(str(folder / "store"), ranks)
    dist.init_process_group("gloo", store=store, rank=context.rank, world_size=ranks, timeout=limit)
    for name in names:
        try:
            results[name] = work(name)
        except Exception as error:
            results[name] = {"error": "".join(traceback.format_exception(error))}
        if results[name] == "dies" or "error" in results[name]:
            break
    (folder / f"rank{context.rank}.json").write_text(json.dumps(results))
    if context.rank:
        os._exit(0)  # as a rank that dies does
    for _ in range(1, ranks):
        os.wait()


def main():
    ranks, folder, *only = int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    asked = {name: case for name, case in cases(ranks).items() if not only or name in only}
    if "PFEIFE_RUN" not in os.environ:
        asked.pop("runtime", None)
    context = Context(ranks, folder)
    for model, how in asked.values():
        if isinstance(model, str):
            context.plan(model, **how)
    wanted = {}

    def work(name):
        model, how = asked[name]
        if callable(model):
            return model(context)
        batches = [batch_of(model, samples, seed) for seed, samples in enumerate((4 * ranks, 4 * ranks + 3))]
        if model not in wanted:
            wanted[model] = plain(context.captures[model], made(model), batches, 2 * ranks)
        return trained(context.captures[model], context.plan(model, **how), made(model), batches, wanted[model])

    run(context, asked, work)


if __name__ == "__main__":
    import pipeline_ranks  # the module that pipeline_uses has

    pipeline_ranks.main()
