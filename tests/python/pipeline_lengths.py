"""Ranks that step over lists of microbatches of different lengths, and compare with the plain module on each.

Usage: pipeline_lengths.py RANKS FOLDER, as pipeline_ranks.py; test_lengths.py judges it.
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import pfeife
from pfeife._pipeline import Pipeline
from pipeline_models import TinyGPT
from pipeline_ranks import CLUSTER, SEED, Context, apart, difference, planned, run

FAMILIES = ("1f1b", "interleaved_1f1b", "zb1p", "zb_h1", "zbv")
OPEN = {"tokens": {1: "length"}, "labels": {1: "length"}}
LENGTHS = ([6, 3, 9, 2, 17, 5, 4, 11], [3, 3, 8, 12, 7, 6, 30, 2])


class Long(TinyGPT):
    def __init__(self):
        super().__init__()
        self.position = nn.Embedding(64, 8)


class Masked(nn.Module):
    """A mean of squares over a mask, divided by a count that is no sum where `least`; else with a mean over samples."""

    def __init__(self, least):
        super().__init__()
        self.layers, self.least = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Linear(3, 3), nn.Tanh()))), least

    def forward(self, x, mask):
        squares = self.layers(x).pow(2).sum(-1)
        if self.least:
            return (squares * mask).sum() / mask.sum().clamp(min=1.0)
        return (squares * mask).sum() / mask.sum() + squares.mean((0, 1))


def made():
    torch.manual_seed(SEED)
    return Long().double()


def batch_of(samples, length, generator):
    labels = torch.randint(11, (samples, length), generator=generator)
    labels[:, : length // 3] = -100
    return {"tokens": torch.randint(11, (samples, length), generator=generator), "labels": labels}


def counted(batch):
    return float((batch["labels"] != -100).sum())


def plain(module, batches, weights):
    """The loss of the plain module over the same microbatches, whose gradients it adds."""
    parts = [module(**batch) * (weight / sum(weights)) for batch, weight in zip(batches, weights)]
    for part in parts:
        part.backward()
    return sum(part.detach() for part in parts)


class Lengths(Context):
    def __init__(self, ranks, folder):
        super().__init__(ranks, folder)
        self.microbatches = 2 * ranks
        generator = torch.Generator().manual_seed(0)
        self.whole = [[batch_of(1, length, generator) for length in lengths[: self.microbatches]] for lengths in LENGTHS]
        self.uneven = [[batch_of(2 + m % 3, length, generator) for m, length in enumerate(LENGTHS[0][: self.microbatches])]]
        self.of_samples = {n: pfeife.capture(made(), **batch_of(n, 6, generator), dynamic_shapes=OPEN) for n in (1, 4)}

    def family_plan(self, family, samples):
        key = family, samples
        if key not in self.plans:
            self.plans[key] = planned(self.of_samples[samples], family, self.ranks, self.microbatches)
        return self.plans[key]

    def piped(self, family, samples):
        """A pipeline of a module of its own, on a plan that all ranks know."""
        own = made()
        plan = self.family_plan(family, samples)
        plan.capture = pfeife.capture(own, **batch_of(samples, 6, torch.Generator()), dynamic_shapes=OPEN)
        return Pipeline(own, plan, seed=SEED)


def family_case(family, samples):
    def work(context):
        module, pipe = made(), context.piped(family, samples)
        found = {"loss": 0.0, "gradients": 0.0, "evaluation": 0.0}
        for batches in context.whole if samples == 1 else context.uneven:
            module.zero_grad()
            for parameter in pipe.parameters():
                parameter.grad = None
            loss = pipe.step(batches)
            wanted = plain(module, batches, [counted(batch) for batch in batches])
            found["loss"] = max(found["loss"], difference(loss, wanted))
            found["gradients"] = max(found["gradients"], apart(pipe, module))
            found["evaluation"] = max(found["evaluation"], difference(pipe.evaluate(batches), wanted))
            checked = pipe.check(batches)
            found["checked"] = max(abs(checked.loss - checked.plain_loss), *checked.gradients.values())
        announced = len(pipe._executor._forms)
        pipe.step([dict(reversed(batch.items())) for batch in batches])
        pipe.step([{name: tensor[:, :2] for name, tensor in batch.items()} for batch in batches])
        found["new lengths are not announced"] = float(len(pipe._executor._forms) - announced)
        return found

    return work


def whole_batches(context):
    """A batch of one length is still a batch, also of another length than was captured."""
    module, pipe = made(), context.piped("1f1b", 4)
    batch = batch_of(4 * context.microbatches, 9, torch.Generator().manual_seed(3))
    wanted = module(**batch)
    wanted.backward()
    return {"loss": difference(pipe.step(**batch), wanted), "gradients": apart(pipe, module)}


def refused(context):
    """What a list cannot be, with what to do; the pipeline goes on with the next one."""
    pipe, batches = context.piped("1f1b", 1), context.whole[0]
    loss = pipe.step(batches)
    short = {name: tensor[:, :1] for name, tensor in batches[0].items()}
    apart = {"tokens": batches[0]["tokens"], "labels": batches[0]["labels"][:, 1:]}
    two = {name: tensor.expand(2, -1) for name, tensor in batches[0].items()}
    lists = {
        f"a list of {context.microbatches - 1} batches, and the plan has {context.microbatches} microbatches": batches[1:],
        "microbatch 0: tokens of the batch is [1, 1]; the graph holds for [1, 6], where dimension 0 counts samples: plan again; dimension 1 is open from 2 on": [short, *batches[1:]],
        "microbatch 0: 'length' of dynamic_shapes is 6 in dimension 1 of tokens [1, 6] and 5 in dimension 1 of labels": [apart, *batches[1:]],
        "microbatch 0: it has 2 samples; the graph holds for microbatches of 1": [two, *batches[1:]],
        "microbatch 0: the batch is not as the one that was planned for: it lacks labels": [{"tokens": batches[0]["tokens"]}, *batches[1:]],
    }
    fixed = made()
    plan = pfeife.plan(fixed, batch_of(2 * context.microbatches, 6, torch.Generator()), pfeife.uniform_cluster(context.ranks, **CLUSTER), microbatches=context.microbatches, families=["1f1b"], baselines=[])
    found = {}

    def refuses(words, pipe, given):
        try:
            pipe.step(given)
            found[words] = 1.0
        except ValueError as error:
            found[words] = 0.0 if words in str(error) else str(error)

    for words, given in lists.items():
        refuses(words, pipe, given)
    remedy = "or leave dimension 1 open: dynamic_shapes={'tokens': {1: 'length'}} of plan() and capture()"
    refuses(remedy, Pipeline(fixed, plan), [batch_of(2, 7, torch.Generator()) for _ in batches])
    found["goes on"] = difference(pipe.step(batches), loss)
    return found


def other_losses(context):
    """Counts of masks add up over the list; means over samples are weighted by samples; a divisor that is no sum is refused."""
    found = {}
    for least in (False, True):
        torch.manual_seed(SEED)
        module, own = Masked(least).double(), Masked(least).double()
        own.load_state_dict(module.state_dict())
        generator = torch.Generator().manual_seed(1)

        def batch(samples, length):
            return {"x": torch.randn(samples, length, 3, generator=generator, dtype=torch.float64), "mask": (torch.rand(samples, length, generator=generator) > 0.3).double()}

        example, batches = batch(4, 6), [batch(2 + m % 3, length) for m, length in enumerate(LENGTHS[0][: context.microbatches])]
        plan = pfeife.plan(
            pfeife.capture(own, **example, dynamic_shapes={"x": {1: "length"}, "mask": {1: "length"}}),
            pfeife.uniform_cluster(context.ranks, **CLUSTER), microbatches=context.microbatches, families=["1f1b"], baselines=[]
        )
        pipe = Pipeline(own, plan)
        if least:
            try:
                pipe.step(batches)
                found["refused"] = 1.0
            except pfeife.ConfigError as error:
                found["refused"] = 0.0 if "which is no sum over the microbatches of a list" in str(error) and "loss_weight" in str(error) else str(error)
            continue
        samples, masks = sum(len(b["x"]) for b in batches), sum(b["mask"].sum() for b in batches)
        squares = [module.layers(b["x"]).pow(2).sum(-1) for b in batches]
        wanted = sum((s * b["mask"]).sum() / masks + s.mean() * (len(s) / samples) for s, b in zip(squares, batches))
        wanted.backward()
        found["loss"] = difference(pipe.step(batches), wanted)
        found["gradients"] = apart(pipe, module)
    return found


def outputs(context):
    """A list of microbatches gives a list of what forward returns for each."""

    class Logits(Long):
        def forward(self, tokens, labels):
            h = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                h = h + block["down"](block["up"](block["before"](h)).chunk(2, -1)[0])
            scores = self.head(h)
            return {"loss": F.cross_entropy(scores.flatten(0, 1), labels.flatten()), "logits": scores}

    torch.manual_seed(SEED)
    module = Logits().double()
    plan = pfeife.plan(
        pfeife.capture(module, **batch_of(1, 6, torch.Generator()), dynamic_shapes=OPEN),
        pfeife.uniform_cluster(context.ranks, **CLUSTER), microbatches=context.microbatches, families=["1f1b"], baselines=[]
    )
    given = Pipeline(module, plan)(context.whole[0])
    torch.manual_seed(SEED)
    plain_module = Logits().double().eval()
    wanted = [plain_module(**batch) for batch in context.whole[0]]
    return {"evaluation": max(difference(own[name], there[name]) for own, there in zip(given, wanted) for name in there), "as many": float(len(given) - len(wanted))}


def planned_for_lengths(context):
    """plan(lengths=, microbatch_order="search") of a module, then the list in the order of `lengths`, whatever order was found."""
    lengths = LENGTHS[1][: context.microbatches]
    own, module = made(), made()
    captured = pfeife.capture(own, **batch_of(1, max(lengths), torch.Generator()), dynamic_shapes=OPEN)
    plan = pfeife.plan(
        captured, pfeife.uniform_cluster(context.ranks, **CLUSTER), lengths=[[length] for length in lengths], microbatch_order="search",
        families=["1f1b"], baselines=[], calibration={"stage_overhead": "0 us"}
    )
    pipe = Pipeline(own, plan)
    batches = context.whole[1]
    wanted = plain(module, batches, [counted(batch) for batch in batches])
    order = [action.microbatch for action in pipe.row if action.kind == "F"]
    found = {"loss": difference(pipe.step(batches), wanted), "gradients": apart(pipe, module), "all": 0.0 if sorted(order) == list(range(len(lengths))) else 1.0}
    found["another order"] = 0.0 if order != sorted(order) else f"the search kept {order}"
    return found


def cases(ranks):
    found = {f"{family}-{samples}": family_case(family, samples) for family in FAMILIES for samples in (1, 4)}
    also = (whole_batches, refused, other_losses, outputs, planned_for_lengths) if ranks == 2 else (planned_for_lengths,)
    return {**found, **{work.__name__: work for work in also}}


def main():
    ranks, folder, *only = int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    context = Lengths(ranks, folder)
    asked = {name: work for name, work in cases(ranks).items() if not only or name in only}
    for name in asked:
        family, _, samples = name.partition("-")
        if samples:
            context.family_plan(family, int(samples))
    run(context, asked, lambda name: asked[name](context))


if __name__ == "__main__":
    main()
