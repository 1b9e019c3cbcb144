"""Makes python/COVERAGE.md: each model of zoo.py captured, planned in two parts, and trained in them beside the plain module.

    python tests/python/zoo_coverage.py [NAME ...] [--results FILE]

What is in FILE already is not tried again, so that it goes on where it was; names given are. No test runs this.
"""

import argparse
import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import sys
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

SAMPLES, MICROBATCHES, STEPS, SEED = 4, 2, 2, 0
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
"""


def short(error, length=160):
    text = re.sub(r"\S*/(?=[\w.-]+/[\w.-]+\.py)", "", " ".join(str(error).split()))  # no places of this machine
    return f"{type(error).__name__}: {text[:length]}" if not isinstance(error, pfeife.Unexportable) else text


def built(name, dtype):
    torch.manual_seed(SEED)
    module, batch = ZOO[name](SAMPLES)
    module.train().to(dtype)
    return module, {key: one.to(dtype) if one.is_floating_point() else one for key, one in batch.items()}


def plain_steps(name, dtype, capture):
    """[step] (loss, gradients by name) of the module itself."""
    module, batch = built(name, dtype)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    moment = Moment(SEED, torch.device("cpu"))
    parts = list(zip(*(one.tensor_split(MICROBATCHES) for one in batch.values())))
    done = []
    for step in range(STEPS):
        loss = 0
        moment.step = step
        for number, part in enumerate(parts):
            with Draws(capture.program, moment, number):
                own = module(**dict(zip(batch, part))) / MICROBATCHES
                own.backward()
            loss += own.detach()
        done.append((loss, {key: one.grad.clone() for key, one in module.named_parameters() if one.grad is not None}))
        optimizer.step()
        optimizer.zero_grad()
    return done


def difference(one, other):
    if one is None or other is None:  # no gradient is one of zeros
        return float((other if one is None else one).abs().max()) if one is not other else 0.0
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-6))


def trained(name, dtype, module, batch, plan, rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    pipe = pfeife.Pipeline(module, plan, seed=SEED)
    optimizer = torch.optim.AdamW(pipe.parameters(), lr=1e-3)
    gradients = []
    for _ in range(STEPS):
        loss = pipe.step(**batch)
        gradients.append((loss, {key: one.grad.clone() for key, one in pipe.named_parameters().items() if one.grad is not None}))
        optimizer.step()
        optimizer.zero_grad()
    worst = 0.0
    for (loss, mine), (wanted_loss, wanted) in zip(gradients, plain_steps(name, dtype, plan.capture)):
        worst = max(worst, difference(loss, wanted_loss))
        for key in pipe.named_parameters():
            worst = max(worst, difference(mine.get(key), wanted.get(key)))
    return worst


def on_two_ranks(work):
    """The worst that work(rank, store) gives on two ranks of their own; RuntimeError if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [in_process(lambda say, rank=rank: work(rank, folder + "/store")) for rank in range(2)]
        found = [result() for result in ranks]
    if wrong := [one for one in found if isinstance(one, str)]:
        raise RuntimeError(wrong[0])
    return max(found)


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
            said = [json.loads(line) for line in pipe]
        died_of = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if not died_of:
            return said[-1]
        by_limit = {-signal.SIGXCPU: f"not within {limit_s} s", -signal.SIGALRM: f"hung for {10 * limit_s} s"}
        why = by_limit.get(died_of, f"died of signal {-died_of}")
        if not said:
            return why
        lacking = next(what for what in ("captured", "planned", "trained") if what not in said[-1])
        return {**said[-1], lacking: why}

    return result


def planned(capture):
    cluster = pfeife.uniform_cluster(2, **CLUSTER)
    how = dict(families=["1f1b"], iterations=1, baselines=[], engines=["estimate"], threads=1)
    return pfeife.plan(capture, cluster=cluster, microbatches=MICROBATCHES, **how)


def tried(name, dtype, say):
    """What became of a model: captured, planned, trained, each a text or a figure."""
    module, batch = built(name, dtype)
    try:
        capture = pfeife.capture(module, microbatches=MICROBATCHES, **batch)
    except pfeife.Unexportable as error:
        return {"captured": short(error)}
    found = {"captured": "open batch" if capture.is_open else "fixed microbatch", "dtype": str(dtype)}
    say(found)
    try:
        plan = planned(capture)
    except ValueError as error:
        return {**found, "planned": short(error)}
    found["planned"] = "yes"
    say(found)
    if any("autograd.Function" in note for note in capture.notes):
        return found  # autograd has run, and lives through no fork
    try:
        found["trained"] = on_two_ranks(lambda rank, store: trained(name, dtype, module, batch, plan, rank, store))
    except Exception as error:
        found["trained"] = short(error)
    return found


def trained_anew(name, dtype):
    """In ranks that capture for themselves."""

    def work(rank, store):
        module, batch = built(name, dtype)
        return trained(name, dtype, module, batch, planned(pfeife.capture(module, microbatches=MICROBATCHES, **batch)), rank, store)

    try:
        return on_two_ranks(work)
    except Exception as error:
        return short(error)


def summary(results, versions):
    def yes(found, what):
        value = found.get(what)
        if what == "trained":
            return isinstance(value, float) and value <= TOLERANCE[getattr(torch, found["dtype"].split(".")[1])]
        return value in ("yes", "open batch", "fixed microbatch")

    rows = []
    for name in ZOO:
        found = results.get(name, {"captured": "not tried"})
        difference = found.get("trained", "")
        shown = (f"{difference:.0e}".replace("0e+00", "equal") if yes(found, "trained") else f"differs by {difference:.0e}") if isinstance(difference, float) else difference
        if found.get("dtype") == "torch.float32" and shown:
            shown += " (fp32)"
        called = f"{name}, {CHOSEN[name]}" if name in CHOSEN else name
        rows.append("| " + " | ".join([called, found["captured"], found.get("planned", ""), shown]).replace("\n", " ") + " |")
    counts = {what: sum(yes(results.get(name, {}), what) for name in ZOO) for what in ("captured", "planned", "trained")}
    totals = f"Of {len(ZOO)} models {counts['captured']} are captured, {counts['planned']} planned, {counts['trained']} trained with equal gradients."
    return FORMAT.format(totals=totals, rows="\n".join(rows), versions=versions, samples=SAMPLES, microbatches=MICROBATCHES, steps=STEPS)


def main():
    global limit_s
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ZOO))
    parser.add_argument("--results", type=Path, default=Path("coverage.json"))
    parser.add_argument("--table", type=Path, default=Path(__file__).resolve().parents[2] / "python" / "COVERAGE.md")
    parser.add_argument("--seconds", type=int, default=limit_s, help="of a processor, for a model's process and each of its ranks")
    options = parser.parse_args()
    limit_s = options.seconds
    if unknown := [name for name in options.names if name not in ZOO]:
        parser.error(f"unknown model {unknown[0]}; known: {', '.join(ZOO)}")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    versions = [f"torch {torch.__version__.split('+')[0]}"]
    for library in ("transformers", "diffusers", "timm", "torchvision"):
        with contextlib.suppress(ImportError):
            versions.append(f"{library} {__import__(library).__version__.split('+')[0]}")
    for name in options.names or [one for one in ZOO if one not in results]:
        start = time.monotonic()
        found = in_process(lambda say: tried(name, torch.float64, say))()
        if isinstance(found, dict) and found.get("planned") == "yes" and "trained" not in found:
            found["trained"] = trained_anew(name, torch.float64)
        wrong = isinstance(found, str) or isinstance(found.get("trained"), str) or "planned" not in found
        if wrong and not re.search("not within|hung", str(found)):  # not all run in fp64
            other = in_process(lambda say: tried(name, torch.float32, say))()
            found = found if isinstance(other, str) and not isinstance(found, str) else other
        results[name] = found if not isinstance(found, str) else {"captured": found}
        options.results.write_text(json.dumps(results, indent=1))
        print(f"{name} {time.monotonic() - start:.0f} s: {results[name]}", flush=True)
        options.table.write_text(summary(results, ", ".join(versions)))


if __name__ == "__main__":
    main()
