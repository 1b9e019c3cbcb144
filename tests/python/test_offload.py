"""Pipelines whose plans take what stages save to the host and back: gradients, what leaves the device, what is refused.

As a program, test_offload.py RANKS FOLDER: the ranks, whose findings are in FOLDER/rankR.json by case, as of pipeline_ranks.py.
"""

import contextlib
import csv
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import pfeife  # noqa: E402
import pipeline_ranks  # noqa: E402
import torch.distributed as dist  # noqa: E402
from pfeife import _host  # noqa: E402
from pfeife._check import KINDS  # noqa: E402
from pfeife._pipeline import Pipeline  # noqa: E402
from pipeline_ranks import SEED, Context, batch_of, edited, made, plain, trained  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402

TABLE = Path(__file__).resolve().parents[1] / "data" / "offload" / "unit_cases.csv"


def with_copies(schedule, stages):
    """[rank] cells: of these stages, each OFFLOAD right behind its F, each RELOAD right ahead of its B or I."""
    rows = []
    for cells, row in zip(schedule.cells, schedule._actions()[1]):
        rows.append([])
        for cell, actions in zip(cells, row):
            parts = [action for action in actions if action.stage in stages]
            rows[-1] += [f"{part.stage}RELOAD{part.microbatch}" for part in parts if part.kind in "BI"] + [cell]
            rows[-1] += [f"{part.stage}OFFLOAD{part.microbatch}" for part in parts if part.kind == "F"]
    return rows


def offloading(context, folder, model, shares, rows=None, **how):
    """A plan of that family in which each stage offloads its share."""
    plan = context.plan(model, **how)
    rows = rows or with_copies(plan.schedule, [i for i, share in enumerate(shares) if share])
    loaded = edited(plan, folder, rows, offload=list(shares))
    assert [stage["offload"] for stage in loaded.stages] == list(shares)
    return loaded


def pipe_of(context, name, **how):
    model = CASES[context.ranks][name][0]
    return Pipeline(context.captures[model].with_module(made(model)), context.offloading[name], seed=SEED, **how)


def watched(pipe, step):
    """[action] which of the storages that OFFLOAD took, or RELOAD brought, are still there behind it, by stage and microbatch;
    shares: (stage, share, bytes that went, bytes that might have gone, largest storage)."""
    executor = pipe._executor
    refs, levels, shares = {}, [], []
    do = dict(executor._do)

    def sizes(going):
        return [handles[0].tensor.untyped_storage().nbytes() for handles in going]

    def then(action):
        saved = executor._flights[action.stage, action.microbatch].saved if "LOAD" in action.kind else None
        if action.kind == "OFFLOAD":
            going = saved.going(pipe.device)
            refs[action[1:3]] = [StorageWeakRef(handles[0].tensor.untyped_storage()) for handles in going]
            went = sum(sizes(going))
            del going
            saved.share, share = 1.0, saved.share
            all_of_them = sizes(saved.going(pipe.device))
            saved.share = share
            shares.append((action.stage, share, went, sum(all_of_them), max(all_of_them, default=0)))
        back = [handle for _, handles in saved.away for handle in handles] if action.kind == "RELOAD" else []
        do[action.kind](action)
        if action.kind == "RELOAD":
            refs[action[1:3]] = [StorageWeakRef(handle.tensor.untyped_storage()) for handle in back]
        levels.append((action, {key for key, references in refs.items() if any(not reference.expired() for reference in references)}))

    executor._do = dict.fromkeys(do, then)
    step()
    executor._do = do
    return levels, shares


def leaves_the_device(context):
    """What goes is gone between OFFLOAD and RELOAD, and behind the backward; of each stage at least its share of bytes, by less
    than a storage more; buffers of the host serve the next steps."""
    pipe = pipe_of(context, "tied_gpt interleaved")
    batch = batch_of("tied_gpt", 4 * context.ranks, 0)
    levels, shares = watched(pipe, lambda: pipe.step(*batch))
    found = {"shares": 0.0, "moved": 0.0 if len(shares) == sum(action.kind == "OFFLOAD" for action in pipe.row) > 0 else 1.0, "gone": 0.0}
    for _, share, went, might, largest in shares:
        found["shares"] += not (share * might <= went < share * might + largest)
    for action, there in levels:
        if action.kind in ("OFFLOAD", "B"):
            found["gone"] += action[1:3] in there
        if action.kind == "RELOAD":
            found["gone"] += action[1:3] not in there
    before = pipe._executor._host.allocated
    for _ in range(2):
        pipe.step(*batch)
    found["allocated"] = float(pipe._executor._host.allocated - before)
    # A stage that is recomputed saves what it receives, and that goes.
    pipe = pipe_of(context, "dropout_gpt 1f1b full")
    batch = batch_of("dropout_gpt", 4 * context.ranks, 0)
    levels, shares = watched(pipe, lambda: pipe.step(*batch))
    found["recomputed"] = float(sum(went == 0 for stage, _, went, _, _ in shares if stage))
    found["recomputed gone"] = float(sum(action[1:3] in there for action, there in levels if action.kind in ("OFFLOAD", "B")))
    return found


def inputs_and_weights(context):
    """Where I and W leave what linear layers read until W, as much can go as where B is one."""
    batch = batch_of("tied_gpt", 4 * context.ranks, 0)
    of_stage = []
    for name in ("tied_gpt interleaved", "tied_gpt zbv"):
        pipe = pipe_of(context, name)
        _, shares = watched(pipe, lambda pipe=pipe: pipe.step(*batch))
        of_stage.append({stage: might for stage, _, _, might, _ in shares})
    both = of_stage[0].keys() & of_stage[1].keys()
    return {"bytes": 0.0 if both and all(of_stage[0][stage] == of_stage[1][stage] > 0 for stage in both) else str(of_stage)}


def peaks(context):
    """Of D = N = 4 no rank has more microbatches at once than the table, which copies beside computations; without, 4, 3, 2, 1."""
    with TABLE.open() as file:
        of_case = {"D": "4", "N": "4", "one_way_time": "1.0", "engines": "2"}
        limits = [int(row["peak"]) for row in csv.DictReader(file) if of_case.items() <= row.items()]
    assert limits == [2, 2, 2, 1]
    pipe = Pipeline(context.captures["chain"].with_module(made("chain")), context.offloading["peaks"], seed=SEED)
    batch = batch_of("chain", 16, 0)
    levels, _ = watched(pipe, lambda: pipe.step(*batch))
    most, forwards = 0, set()
    for action, there in levels:
        forwards |= {action.microbatch} if action.kind == "F" else set()
        forwards -= {action.microbatch} if action.kind in ("OFFLOAD", "B") else set()
        most = max(most, len(forwards | {m for _, m in there}))
    return {"peak": 0.0 if most <= limits[context.rank] else most, "gradients": max(pipe.check(*batch).gradients.values())}


def stale(context):
    """A RELOAD that brings zeros, or what another microbatch left in its buffer, is seen in the gradients."""
    found = {}
    batch = batch_of("tied_gpt", 4 * context.ranks, 0)
    for name, wrong in (("zeros", torch.zeros_like), ("stale", lambda data: data.flip(0))):
        pipe = pipe_of(context, "tied_gpt 1f1b")
        reload = pipe._executor._host.reload

        def broken(saved, clock, reload=reload, wrong=wrong):
            for buffer, _ in saved.away:
                buffer.data.copy_(wrong(buffer.data))
            return reload(saved, clock)

        pipe._executor._host.reload = broken
        found[name] = 0.0 if not max(pipe.check(*batch).gradients.values()) < 1e-3 else 1.0
    return found


def order(context):
    """A backward ahead of its RELOAD is an error that says so, whatever the judge says."""
    pipe = pipe_of(context, "tied_gpt 1f1b", timeout=60)
    if context.rank == 0:
        pipe.row = [action for action in pipe.row if action.kind != "RELOAD"]
    try:
        pipe.step(*batch_of("tied_gpt", 4 * context.ranks, 0))
        return {"said": 1.0}
    except pfeife.RuntimeFault as error:
        return {"said": 0.0 if "rank 0" in str(error) and "0RELOAD0 did not run before it" in str(error) else str(error)}


class Rows:
    """A plan with other rows."""

    def __init__(self, plan, change):
        self._plan = plan
        self.schedule = type(plan.schedule)([[change(cell) for cell in row] for row in plan.schedule.cells])

    def __getattr__(self, name):
        return getattr(self._plan, name)


def refused(context):
    found = {}
    plan, capture = context.offloading["tied_gpt 1f1b"], context.captures["tied_gpt"]
    swapped = {"0OFFLOAD0": "0RELOAD0", "0RELOAD0": "0OFFLOAD0"}
    alone = [dist.new_group([rank]) for rank in range(context.ranks)]
    for what, call in (
        ("cannot run", lambda: Pipeline(capture.with_module(made("tied_gpt")), Rows(plan, lambda cell: swapped.get(cell, cell)))),
        ("the plan has offload", lambda: Pipeline(capture.with_module(made("tied_gpt")), plan, shard=alone[context.rank])),
        ("names no share", lambda: Pipeline(capture.with_module(made("tied_gpt")), context.offloading["no share"])),
        ("OFFLOAD", lambda: context.offloading["chain 1f1b"].to_torch(context.captures["chain"].with_module(made("chain")))),
    ):
        try:
            call()
            found[what] = 1.0
        except pfeife.ConfigError as error:
            found[what] = 0.0 if what in str(error) else str(error)
    return found


def traced(context):
    """A trace has every copy, with times, and the bubble is that of computations; compare() takes it."""
    pipe = pipe_of(context, "tied_gpt 1f1b")
    batch = batch_of("tied_gpt", 4 * context.ranks, 0)
    pipe.step(*batch)
    measured = pipe.trace(*batch)
    events = measured.events
    actions = [action for row in pipe.plan.schedule._actions()[1] for cell in row for action in cell]
    wanted = [action.text for action in actions if action.kind in KINDS]
    copies = events[events.kind == "copy"]
    right = sorted(events.action) == sorted(wanted) and (copies.end > copies.start).all() and len(copies) > 0
    computing = events[events.kind == "compute"]
    bubble = 1 - int((computing.end - computing.start).sum()) / (context.ranks * measured.step * 1e6)
    simulated = pipe.plan.simulate().events
    found = {"events": 0.0 if right else 1.0, "bubble": abs(bubble - measured.bubble)}
    found["simulated"] = 0.0 if sorted(simulated[simulated.kind == "copy"].action) == sorted(copies.action) else 1.0
    found["compared"] = 0.0 if "longer than simulated" in pipe.plan.compare(measured).why else 1.0
    return found


def accumulated(context):
    """Steps without sums, of other sizes, after an evaluation, add up."""
    module, pipe = made("tied_gpt"), pipe_of(context, "tied_gpt 1f1b")
    for number, samples in enumerate((8, 11, 8)):
        batch = batch_of("tied_gpt", samples, number)
        pipe.evaluate(*batch)
        with pipe.no_sync() if number < 2 else contextlib.nullcontext():
            pipe.step(*batch)
        for part in context.captures["tied_gpt"].split(batch, pipe.microbatches):
            (module(*part) * (len(part[0]) / samples)).backward()
    return {"gradients": pipeline_ranks.apart(pipe, module)}


def compiled(context):
    pipe = pipe_of(context, "tied_gpt 1f1b", compile=dict(backend="aot_eager"))
    module, batch = made("tied_gpt"), batch_of("tied_gpt", 4 * context.ranks, 0)
    levels, shares = watched(pipe, lambda: pipe.step(*batch))
    for part in context.captures["tied_gpt"].split(batch, pipe.microbatches):
        (module(*part) * (len(part[0]) / len(batch[0]))).backward()
    gone = [action for action, there in levels if action.kind in ("OFFLOAD", "B") and action[1:3] in there]
    moved = sum(went for _, _, went, _, _ in shares)
    return {"gradients": pipeline_ranks.apart(pipe, module), "gone": float(len(gone)), "moved": 0.0 if moved else 1.0}


CASES = {
    2: {
        "tied_gpt 1f1b": ("tied_gpt", [1, 0.5], dict(family="1f1b")),
        "tied_gpt interleaved": ("tied_gpt", [1, 0.5, 0, 1], dict(family="interleaved_1f1b")),
        "tied_gpt zbv": ("tied_gpt", [1, 0.5, 0.5, 1], dict(family="zbv")),
        "batch_norm zb1p": ("batch_norm", [1, 0.5, 1, 1], dict(family="zb1p")),
        "batch_norm 1f1b": ("batch_norm", [1, 1], dict(family="1f1b")),
        "chain 1f1b": ("chain", [1, 1], dict(family="1f1b")),
        "recurrent 1f1b": ("recurrent", [1, 0.5], dict(family="1f1b")),
        **{
            f"dropout_gpt {family} {kind}": ("dropout_gpt", [1] * stages, dict(family=family, recompute=kind))
            for family, stages in (("1f1b", 2), ("zbv", 4))
            for kind in ("full", "blocks")
        },
        **{work.__name__: work for work in (leaves_the_device, inputs_and_weights, stale, order, refused, traced, accumulated, compiled)},
    },
    4: {
        "skips 1f1b": ("skips", [1, 0.5, 0, 1], dict(family="1f1b")),
        "tied_gpt interleaved": ("tied_gpt", [1, 0.5, 0, 1, 0.5, 0.3, 1, 1], dict(family="interleaved_1f1b")),
        "dropout_gpt 1f1b full": ("dropout_gpt", [1] * 4, dict(family="1f1b", recompute="full")),
        **{work.__name__: work for work in (leaves_the_device, peaks)},
    },
}


def plans(context, folder):
    """By case."""
    found = {}
    for name, case in CASES[context.ranks].items():
        if not callable(case):
            found[name] = offloading(context, folder / name, case[0], case[1], **case[2])
    if context.ranks == 2:
        rows = with_copies(context.plan("tied_gpt", family="1f1b").schedule, [0, 1])
        found["no share"] = offloading(context, folder / "no", "tied_gpt", [0, 0.5], rows, family="1f1b")
    else:
        rows = pfeife.schedule("1f1b", ranks=4, microbatches=4).lower(offload=1, b=2).cells
        context.plans["chain", "1f1b", "float64", 4] = pipeline_ranks.planned(context.capture("chain"), "1f1b", 4, 4)
        found["peaks"] = offloading(context, folder / "peaks", "chain", [1, 1, 1, 0], rows, family="1f1b")
    return found


def main():
    ranks, folder, *only = int(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    torch.set_num_threads(1)
    _host.LEAST_BYTES = 0  # these models are small
    pipeline_ranks.CLUSTER["host_link"] = {"bandwidth": "1 TB/s"}
    context = Context(ranks, folder)
    context.offloading = plans(context, folder)

    def work(name):
        case = CASES[ranks][name]
        if callable(case):
            return case(context)
        batches = [batch_of(case[0], samples, seed) for seed, samples in enumerate((4 * ranks, 4 * ranks + 3))]
        wanted = plain(context.captures[case[0]], made(case[0]), batches, 2 * ranks)
        return trained(context.captures[case[0]], context.offloading[name], made(case[0]), batches, wanted)

    pipeline_ranks.run(context, [name for name in CASES[ranks] if not only or name in only], work)


@pytest.mark.parametrize("ranks, case", [(ranks, case) for ranks in CASES for case in CASES[ranks]])
def test_offloads_with_the_gradients_of_the_plain_module(found, ranks, case):
    for rank, cases in enumerate(found(__file__, ranks)):
        assert case in cases, f"rank {rank} ended before: {list(cases)[-1:]}"
        assert "error" not in cases[case], cases[case]["error"]
        bounds = {"weights": 1e-9, "evaluation": 1e-9}
        far = {what: value for what, value in cases[case].items() if not isinstance(value, float) or not value <= bounds.get(what, 1e-12)}
        assert far == {}, f"rank {rank}"


def test_largest_first_and_never_less_than_the_share():
    assert _host.chosen([1, 5, 3, 3], 7) == [1, 0, 3]  # 5 + 1, and 1 is lacking: a 3
    assert _host.chosen([4, 4, 4], 6) == [0, 2]
    assert _host.chosen([10, 1], 0.5) == [1]
    assert sorted(_host.chosen([2, 1], 3)) == [0, 1]
    assert _host.chosen([2], 0) == []


def net():
    torch.manual_seed(SEED)
    return torch.nn.Linear(64, 64).double(), torch.randn(32, 64, dtype=torch.float64, requires_grad=True)


def test_what_others_hold_stays_and_views_move_once():
    layer, x = net()
    kept = []

    def forward():
        h = layer(x).tanh()
        blocks = h.unflatten(1, (8, 8)).transpose(1, 2)
        gates = blocks.softmax(-1)
        kept.append(gates)  # a user's
        return layer((blocks * gates).flatten(1)).tanh().sum()

    wanted = torch.autograd.grad(forward(), [x, layer.weight])
    saved, host = _host.Saved(0, 0, 1.0), _host.Host(torch.device("cpu"))
    with saved.hooks():
        loss = forward()
    host.offload(saved, lambda: None)
    # tanh's result, which the product and the softmax's gradient read as a view; the second product's input; its tanh.
    assert [len(handles) for _, handles in saved.away] == [2, 1, 1]
    assert {buffer.data.numel() for buffer, _ in saved.away} == {32 * 64 * 8}
    host.reload(saved, lambda: None)
    for gradient, expected in zip(torch.autograd.grad(loss, [x, layer.weight]), wanted):
        assert torch.equal(gradient, expected)


def test_a_write_in_place_since_the_forward_is_an_error_as_without_offload():
    layer, x = net()
    for later in (False, True):
        saved = _host.Saved(0, 3, 1.0)
        with saved.hooks():
            h = layer(x).exp()
            loss = h.sum()
        h.mul_(2)
        with pytest.raises(RuntimeError, match="microbatch 3 was modified by an inplace operation"):
            if later:
                torch.autograd.grad(loss, x)
            else:
                del h
                _host.Host(torch.device("cpu")).offload(saved, lambda: None)


def test_small_storages_stay():
    x = torch.randn(8, 8, dtype=torch.float64, requires_grad=True)
    saved = _host.Saved(0, 0, 1.0)
    with saved.hooks():
        loss = x.exp().sum()
    assert saved.going(torch.device("cpu")) == [] and 8 * 8 * 8 < _host.LEAST_BYTES
    loss.backward()


if __name__ == "__main__":
    main()
