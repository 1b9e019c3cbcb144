"""Makes python/COVERAGE.md: each model of zoo.py captured, planned in two parts, and trained in them beside the plain module.

    python tests/python/zoo_coverage.py [NAME ...] [--results FILE] [--plans]

What is in FILE already is not tried again, so that it goes on where it was; names given are. With --plans, a model trains under
every plan of PLANS. No test runs this.
"""

import argparse
import contextlib
import copy
import ctypes
import json
import os
import re
import resource
import signal
import tempfile
import time
import traceback
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # pools of threads do not live through a fork
import torch
import torch.distributed as dist

import pfeife
from pfeife._check import Draws
from pfeife._operators import Moment
from zoo import CHOSEN, ZOO

STEPS, SEED = 2, 0
SAMPLES_PER_MICROBATCH = 2
microbatches = 2
BYTES = 5 << 30  # of a model's process, and of each of its ranks
PR_SET_PDEATHSIG = 1
limit_s = 150
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}
CLUSTER = dict(memory="80 GiB", peak={"fp32": "10 TFLOP/s"}, memory_bandwidth="1 TB/s")
FORMAT = """# Which models are captured, planned and trained

{totals}

Made by `tests/python/zoo_coverage.py` with {versions}: tiny configurations, random weights, a batch of {samples} in {microbatches} microbatches. *planned*: in two parts for two equal devices.
*trained*: {steps} steps of AdamW on two Gloo ranks; the largest difference of a gradient from the plain module's, as a share of the parameter's largest.

| model | captured | planned | trained |
|---|---|---|---|
{rows}

raft_small runs in fp32 alone, as torchvision makes its coordinates so. With coordinates of fp64 and all else in fp64 it differs by 4e-11: the difference is rounding,
which its repeated refinement makes large.
mamba2 computes its scan and its norms in fp32 whatever its weights are (transformers), so that a last bit of an fp64 weight may change a bit of fp32: 3 of its 16 plans
differ by 2e-7, the others by 6e-16.
{by_plans}"""
# (ranks, family, recomputation)
PLANS = [(ranks, family, recompute) for ranks in (2, 4) for family in ("1f1b", "zb1p", "zbv", "interleaved_1f1b") for recompute in ("none", "full")]
wanted_plans = PLANS[:1]
BY_PLANS = """
## Under more plans

{totals}

Each model under {count} plans: 2 and 4 Gloo ranks, `1f1b`, `zb1p`, `zbv` and `interleaved_1f1b` (two stages a rank in the last two), without recomputation and with all
of it; {microbatches} microbatches, {samples} samples, {steps} steps of AdamW, all in processes of one machine. The numbers are plans whose gradients and losses are the plain module's to 1e-9 (fp32: 1e-3).

| model | 2 ranks | 4 ranks | largest difference | the rest |
|---|---|---|---|---|
{rows}
"""


def short(error, length=160):
    text = re.sub(r"\S*/(?=[\w.-]+/[\w.-]+\.py)", "", " ".join(str(error).split()))  # no places of this machine
    return f"{type(error).__name__}: {text[:length]}" if not isinstance(error, pfeife.Unexportable) else text


def built(name, dtype):
    torch.manual_seed(SEED)
    module, batch = ZOO[name](SAMPLES_PER_MICROBATCH * microbatches)
    module.train().to(dtype)
    return module, {key: value.to(dtype) if value.is_floating_point() else value for key, value in batch.items()}


def plain_steps(name, dtype, capture):
    """[step] (loss, gradients by name) of the module itself."""
    module, batch = built(name, dtype)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    moment = Moment(SEED, torch.device("cpu"))
    parts = list(zip(*(value.tensor_split(microbatches) for value in batch.values())))
    done = []
    for step in range(STEPS):
        loss = 0
        moment.step = step
        for number, part in enumerate(parts):
            with Draws(capture.program, moment, number):
                own = module(**dict(zip(batch, part))) / microbatches
                own.backward()
            loss += own.detach()
        done.append((loss, {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}))
        optimizer.step()
        optimizer.zero_grad()
    return done


def difference(pipelined, plain):
    """Relative to the plain module's; no gradient is one of zeros."""
    if pipelined is None or plain is None:
        return 0.0 if pipelined is plain else float((plain if pipelined is None else pipelined).abs().max())
    return float((pipelined - plain).abs().max() / plain.abs().max().clamp(min=1e-6))


def trained(name, dtype, module, batch, plans, rank, store):
    """[plan] The largest difference on any rank, or the text of a mistake. plans: (ranks, family, recomputation) -> plan, or a text."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks_of(plans))
    groups = {ranks: dist.new_group(list(range(ranks))) for ranks in dict.fromkeys(ranks for ranks, *_ in plans)}
    capture = next(plan.capture for plan in plans.values() if not isinstance(plan, str))
    wanted, before = plain_steps(name, dtype, capture), copy.deepcopy(module.state_dict())
    worst = {}
    for key, plan in plans.items():
        own = plan if isinstance(plan, str) else 0.0
        if own == 0.0 and rank < key[0]:
            try:
                own = worst_difference(module, batch, plan, groups[key[0]], wanted)
            except Exception as error:
                own = short(error)
            module.load_state_dict(before)
        of_ranks = [None] * ranks_of(plans)
        dist.all_gather_object(of_ranks, own)
        worst[label(key)] = next((result for result in of_ranks if isinstance(result, str)), None) or max(of_ranks)
    return worst


def worst_difference(module, batch, plan, group, steps):
    pipe = pfeife.Pipeline(module, plan, group=group, seed=SEED, timeout=60)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=1e-3)
    worst = 0.0
    for wanted_loss, wanted in steps:
        worst = max(worst, difference(pipe.step(**batch), wanted_loss))
        for key, parameter in dict(pipe.named_parameters()).items():
            worst = max(worst, difference(parameter.grad, wanted.get(key)))
        optimizer.step()
        optimizer.zero_grad()
    return worst


def ranks_of(plans):
    return max(ranks for ranks, *_ in plans)


def label(key):
    ranks, family, recompute = key
    return f"{ranks} ranks, {family}, recompute {recompute}"


def on_ranks(work):
    """What work(rank, store) gives on ranks of their own; RuntimeError if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [in_process(lambda say, rank=rank: work(rank, folder + "/store")) for rank in range(ranks_of(wanted_plans))]
        found = [result() for result in ranks]
    if wrong := [result for result in found if isinstance(result, str)]:
        raise RuntimeError(wrong[0])
    return found[0]


def in_process(work):
    """Starts work(say) in a process of its own, within --seconds and BYTES; what is returned waits for its value, or for the text
    of its mistake. What it says before counts where it comes to none."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # ranks do not outlive a model's process
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
        signal.alarm(10 * limit_s)  # a hang needs no processor
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))

        def say(value):
            os.write(writing, json.dumps(value).encode() + b"\n")

        try:
            say(work(say))
        except BaseException as error:  # also SystemExit
            if os.environ.get("COVERAGE_DEBUG"):
                traceback.print_exc()
            say(short(error))
        os._exit(0)
    os.close(writing)

    def result():
        with open(reading) as pipe:
            values = [json.loads(line) for line in pipe]
        died_of = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if not died_of:
            return values[-1]
        by_limit = {-signal.SIGXCPU: f"not within {limit_s} s", -signal.SIGALRM: f"hung for {10 * limit_s} s"}
        why = by_limit.get(died_of, f"died of signal {-died_of}")
        if not values:
            return why
        lacking = next(what for what in ("captured", "planned", "trained") if what not in values[-1])
        return {**values[-1], lacking: why}

    return result


def planned(capture, key):
    ranks, family, recompute = key
    how = dict(families=[family], recompute=recompute, iterations=1, baselines=[], engines=["estimate"], threads=1)
    return pfeife.plan(capture, cluster=pfeife.uniform_cluster(ranks, **CLUSTER), microbatches=microbatches, **how)


def all_planned(capture):
    """[plan] Or why it cannot be planned. ValueError or Infeasible where the first cannot."""
    plans = {wanted_plans[0]: planned(capture, wanted_plans[0])}
    for key in wanted_plans[1:]:
        try:
            plans[key] = planned(capture, key)
        except (ValueError, pfeife.Infeasible) as error:
            plans[key] = f"not planned: {short(error)}"
    return plans


def tried(name, dtype, say):
    """What became of a model: captured, planned, trained, each a text or a figure."""
    module, batch = built(name, dtype)
    try:
        capture = pfeife.capture(module, microbatches=microbatches, **batch)
    except pfeife.Unexportable as error:
        return {"captured": short(error)}
    found = {"captured": "open batch" if capture.is_open else "fixed microbatch", "dtype": str(dtype)}
    say(found)
    try:
        plans = all_planned(capture)
    except (ValueError, pfeife.Infeasible) as error:
        return {**found, "planned": short(error)}
    found["planned"] = "yes"
    say(found)
    if any("autograd.Function" in note for note in capture.notes):
        return found  # autograd has run, and lives through no fork
    try:
        found.update(result_of(on_ranks(lambda rank, store: trained(name, dtype, module, batch, plans, rank, store))))
    except Exception as error:
        found["trained"] = short(error)
    return found


def result_of(by_plan):
    return {"trained": by_plan[label(PLANS[0])], **({"plans": by_plan} if len(by_plan) > 1 else {})}


def trained_anew(name, dtype):
    """In ranks that capture for themselves."""

    def work(rank, store):
        module, batch = built(name, dtype)
        return trained(name, dtype, module, batch, all_planned(pfeife.capture(module, microbatches=microbatches, **batch)), rank, store)

    try:
        return result_of(on_ranks(work))
    except Exception as error:
        return {"trained": short(error)}


def is_equal(value, dtype):
    return isinstance(value, float) and value <= TOLERANCE[getattr(torch, dtype.split(".")[1])]


def figure(value):
    return f"{value:.0e}".replace("0e+00", "equal")


def name_of(name):
    return f"{name}, {CHOSEN[name]}" if name in CHOSEN else name


def summary(results, versions):
    def yes(found, what):
        value = found.get(what)
        return is_equal(value, found.get("dtype", "torch.float64")) if what == "trained" else value in ("yes", "open batch", "fixed microbatch")

    rows = []
    for name in ZOO:
        found = results.get(name, {"captured": "not tried"})
        difference = found.get("trained", "")
        shown = (figure(difference) if yes(found, "trained") else f"differs by {difference:.0e}") if isinstance(difference, float) else difference
        if found.get("dtype") == "torch.float32" and shown:
            shown += " (fp32)"
        rows.append("| " + " | ".join([name_of(name), found["captured"], found.get("planned", ""), shown]).replace("\n", " ") + " |")
    counts = {what: sum(yes(results.get(name, {}), what) for name in ZOO) for what in ("captured", "planned", "trained")}
    totals = f"Of {len(ZOO)} models {counts['captured']} are captured, {counts['planned']} planned, {counts['trained']} trained with equal gradients."
    by_plans = by_plans_of({name: found["plans"] for name, found in results.items() if "plans" in found})
    sizes = dict(samples=2 * SAMPLES_PER_MICROBATCH, microbatches=2, steps=STEPS)
    return FORMAT.format(totals=totals, rows="\n".join(rows), versions=versions, by_plans=by_plans, **sizes)


def by_plans_of(results):
    if not results:
        return ""
    rows, right, tried_plans = [], {2: 0, 4: 0}, {2: 0, 4: 0}
    for name, found in results.items():
        plans = found.get("plans") or {label(key): found.get("trained") or found.get("planned") or found["captured"] for key in PLANS}
        dtype = found.get("dtype", "torch.float64")
        cells = []
        for ranks in (2, 4):
            values = [plans[label(key)] for key in PLANS if key[0] == ranks]
            equal = sum(is_equal(value, dtype) for value in values)
            right[ranks] += equal
            tried_plans[ranks] += len(values)
            cells.append(f"{equal} of {len(values)}")
        largest = max((value for value in plans.values() if is_equal(value, dtype)), default=None)
        rest = {}
        for key, value in plans.items():
            if not is_equal(value, dtype):
                rest.setdefault(value if isinstance(value, str) else f"differs by {value:.0e}", []).append(key)
        others = "; ".join(f"{', '.join(keys) if len(keys) < len(plans) else 'all'}: {value}" for value, keys in rest.items())
        cells += ["" if largest is None else figure(largest) + " (fp32)" * (dtype == "torch.float32"), others]
        rows.append("| " + " | ".join([name, *cells]).replace("\n", " ") + " |")
    totals = f"Of {len(results)} models {right[2]} of {tried_plans[2]} plans for two ranks and {right[4]} of {tried_plans[4]} for four train with equal gradients."
    return BY_PLANS.format(totals=totals, rows="\n".join(rows), count=len(PLANS), microbatches=4, samples=4 * SAMPLES_PER_MICROBATCH, steps=STEPS)


def main():
    global limit_s, microbatches, wanted_plans
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ZOO))
    parser.add_argument("--results", type=Path, default=Path("coverage.json"))
    parser.add_argument("--table", type=Path, default=Path(__file__).resolve().parents[2] / "python" / "COVERAGE.md")
    parser.add_argument("--seconds", type=int, default=limit_s, help="of a processor, for a model's process and each of its ranks")
    parser.add_argument("--plans", action="store_true", help=f"the {len(PLANS)} plans of the second table")
    options = parser.parse_args()
    limit_s = options.seconds
    if options.plans:
        microbatches, wanted_plans = 4, PLANS
    if unknown := [name for name in options.names if name not in ZOO]:
        parser.error(f"unknown model {unknown[0]}; known: {', '.join(ZOO)}")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    versions = [f"torch {torch.__version__.split('+')[0]}"]
    for library in ("transformers", "diffusers", "timm", "torchvision"):
        with contextlib.suppress(ImportError):
            versions.append(f"{library} {__import__(library).__version__.split('+')[0]}")
    missing = [name for name in ZOO if ("plans" if options.plans else "captured") not in results.get(name, {})]
    for name in options.names or missing:
        start = time.monotonic()
        found = in_process(lambda say: tried(name, torch.float64, say))()
        if isinstance(found, dict) and found.get("planned") == "yes" and "trained" not in found:
            found.update(trained_anew(name, torch.float64))
        wrong = isinstance(found, str) or isinstance(found.get("trained"), str) or "planned" not in found
        if wrong and not re.search("not within|hung", str(found)):  # not all run in fp64
            again = in_process(lambda say: tried(name, torch.float32, say))()
            found = found if isinstance(again, str) and not isinstance(found, str) else again
        found = found if not isinstance(found, str) else {"captured": found}
        results[name] = {**results.get(name, {"captured": "not tried"}), "plans": found} if options.plans else found
        options.results.write_text(json.dumps(results, indent=1))
        print(f"{name} {time.monotonic() - start:.0f} s: {found}", flush=True)
        options.table.write_text(summary(results, ", ".join(versions)))


if __name__ == "__main__":
    main()
