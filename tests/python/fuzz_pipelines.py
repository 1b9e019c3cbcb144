"""Random modules under plans of every family, in both runtimes, beside the plain modules: losses, gradients, written buffers,
evaluated losses and returned values, in fp64.

    python tests/python/fuzz_pipelines.py [--seeds 0:300] [--results FILE] [--findings FOLDER] [--only FAMILY ...]

Each seed is a module of random_modules.py and a number of ranks, planned twice. Pipelines run on Gloo ranks in processes of
this machine, which are forked once for a group of seeds; PFEIFE_RUN names the pfeife-run whose `check` takes the same plans.
The results hold a record for each plan: "equal", "refused" by capture or planner with the reason, or what went wrong. A finding
is a page for each kind of failure: its smallest module, the plan, the error. Exit status 1 if anything went wrong.
"""

import argparse
import contextlib
import copy
import datetime
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # pools of threads do not live through a fork
import torch
import torch.distributed as dist

import pfeife
import random_modules

RANKS, GROUP, LIMIT_S = 4, 15, 30
TOLERANCE = 1e-11  # relative; sums in another order differ by less
CLUSTER = dict(memory="1 GiB", peak={"fp32": "1 TFLOP/s"}, gemm_efficiency={"fp32": [["0.001 GFLOP", 1]]}, memory_bandwidth="100 GB/s")
STAGES_PER_RANK = {
    "looped": (1, 2, 3), "interleaved_1f1b": (2, 3), "looped_bfs": (2, 3), "zb1p": (2, 3), "zb_greedy": (1, 2, 3),
    "zbv": (2,), "zbv_greedy": (2,), "dualpipev": (2,),
}  # fmt: skip
SLICED = ("seq1f1b", "terapipe", "slimpipe")


class Case(NamedTuple):
    seed: int
    number: int
    family: str
    stages_per_rank: int
    ranks: int
    microbatches: int
    recompute: str
    cuts: str  # "random" or "planned"
    clips: bool

    def __str__(self) -> str:
        how = f"{self.family} V={self.stages_per_rank}, {self.ranks} ranks, {self.microbatches} microbatches"
        return f"seed {self.seed}: {how}, recompute {self.recompute}, {self.cuts} cuts{', clip_norm' * self.clips}"


def cases_of(seed: int, only: list[str]) -> list[Case]:
    choice = random.Random(1000 + seed)
    families = only or [name for name in pfeife.families() if name not in SLICED and name not in ("v_half", "v_min")]
    ranks = choice.choice((2, 2, 3, 4))
    microbatches = choice.choice((1, 2)) * ranks
    made = []
    for number in range(2):
        family = families[(2 * seed + number) % len(families)]
        count = 2 * ranks if family == "dualpipev" else microbatches
        stages = choice.choice(STAGES_PER_RANK.get(family, (1,)))
        recompute, cuts = choice.choice(("none", "none", "full", "blocks")), choice.choice(("random", "planned"))
        made.append(Case(seed, number, family, stages, ranks, count, recompute, cuts, choice.random() < 0.2))
    return made


def planned(capture: Any, case: Case) -> Any:
    cluster = pfeife.uniform_cluster(case.ranks, **CLUSTER)
    how: dict[str, Any] = dict(devices=case.ranks, microbatches=case.microbatches, engines=["estimate"], baselines=[])
    if case.cuts == "random":
        stages = case.ranks * case.stages_per_rank
        pricer = pfeife.Pricer(pfeife.model(capture.archive), cluster, cuts_at="layers", **how)
        allowed = [i for i, (_, may) in enumerate(pricer.layers[:-1]) if may]
        if len(allowed) < stages - 1:
            raise pfeife.ConfigError(f"{len(allowed)} places to cut for {stages} stages")
        how["cuts"] = sorted(random.Random(case.seed).sample(allowed, stages - 1))
    how.update(families=[case.family], stages_per_rank=[case.stages_per_rank], iterations=1, recompute=case.recompute)
    if case.clips:
        how["clip_norm"] = 1.0
    return pfeife.plan(capture, cluster, **how, threads=1)


# A pipeline beside its module.


def loss_of(output: Any) -> torch.Tensor:
    return output["loss"] if isinstance(output, dict) else output[0] if isinstance(output, tuple) else output


def values_of(output: Any) -> list[torch.Tensor]:
    return list(output.values()) if isinstance(output, dict) else list(output) if isinstance(output, tuple) else [output]


def apart(found: Any, wanted: Any) -> float:
    """Relative to the largest number; an absent gradient counts as zeros."""
    if found is None or wanted is None:
        left = wanted if found is None else found
        return 0.0 if left is None else float(left.abs().max())
    if found.shape != wanted.shape:
        return float("inf")
    found, wanted = found.detach().double(), wanted.detach().double()
    far = float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-3))
    return far if far == far else float("inf")


def descend(parameters: Any) -> None:
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is not None:
                parameter -= 0.05 * parameter.grad


def plain_steps(module: torch.nn.Module, batches: list[dict], microbatches: int, evaluates: bool) -> list[dict]:
    """[step] Loss, gradients, buffers, evaluated loss and values of the module itself, a microbatch at a time."""
    done = []
    for batch in batches:
        module.zero_grad()
        parts = [dict(zip(batch, part)) for part in zip(*(leaf.tensor_split(microbatches) for leaf in batch.values()))]
        shares = [len(part["y"]) / len(batch["y"]) for part in parts]
        step: dict[str, Any] = {"loss": 0.0}
        for part, share in zip(parts, shares):
            loss = loss_of(module(**part)) * share
            loss.backward()
            step["loss"] = step["loss"] + loss.detach()
        gradients = {name: parameter.grad for name, parameter in module.named_parameters(remove_duplicate=False)}
        step["gradients"] = {name: None if gradient is None else gradient.clone() for name, gradient in gradients.items()}
        step["buffers"] = {name: buffer.clone() for name, buffer in module.named_buffers()}
        if evaluates:
            module.eval()
            with torch.no_grad():
                made = [values_of(module(**part)) for part in parts]
            module.train()
            step["evaluated"] = sum(values[0] * share for values, share in zip(made, shares))
            step["values"] = [step["evaluated"], *(torch.cat(pieces) for pieces in list(zip(*made))[1:])]
        descend(module.parameters())
        done.append(step)
    return done


def differences(made: Any, plan: Any, group: Any, wanted: list[dict], batches: list[dict]) -> dict[str, float]:
    pipe = pfeife.Pipeline(made.module, plan, group=group, timeout=LIMIT_S)
    found: dict[str, float] = {}

    def note(what: str, value: Any, expected: Any) -> None:
        found[what] = max(found.get(what, 0.0), apart(value, expected))

    for step, (batch, own) in enumerate(zip(batches, wanted)):
        for parameter in pipe.parameters():
            parameter.grad = None
        note(f"loss of step {step}", pipe.step(**batch), own["loss"])
        for name, parameter in dict(pipe.named_parameters()).items():
            note(f"gradient {name} of step {step}", parameter.grad, own["gradients"][name])
        for name, buffer in pipe.state_dict().items():
            if name in own["buffers"]:
                note(f"buffer {name} of step {step}", buffer, own["buffers"][name])
        if "evaluated" in own:
            note(f"evaluation after step {step}", pipe.evaluate(**batch), own["evaluated"])
            for number, (value, expected) in enumerate(zip(values_of(pipe(**batch)), own["values"])):
                note(f"value {number} after step {step}", value, expected)
        descend(pipe.parameters())
    return found


# Ranks.


class Work(NamedTuple):
    case: Case
    made: Any
    plan: Any
    batches: list[dict]


def run_rank(rank: int, works: list[Work], first: int, folder: Path) -> None:
    store = dist.FileStore(str(folder / f"store{first}"), RANKS)
    store.set_timeout(datetime.timedelta(seconds=LIMIT_S))
    limit = datetime.timedelta(seconds=4 * LIMIT_S)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS, timeout=limit)
    groups = {ranks: dist.new_group(list(range(ranks))) for ranks in range(2, RANKS + 1)}
    for number, work in enumerate(works[first:], first):
        if rank == 0:
            (folder / "now").write_text(str(number))
        answer: Any = {}
        if rank < work.case.ranks:
            before, wanted = copy.deepcopy(work.made.module.state_dict()), None
            try:
                wanted = plain_steps(copy.deepcopy(work.made.module), work.batches, work.case.microbatches, work.made.evaluates)
            except RuntimeError as error:
                answer = {"invalid": str(error)}
            if wanted is not None:
                try:
                    answer = differences(work.made, work.plan, groups[work.case.ranks], wanted, work.batches)
                except Exception as error:
                    answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
                work.made.module.load_state_dict(before)
        said_by_rank: list[Any] = [None] * RANKS
        dist.all_gather_object(said_by_rank, answer)
        if rank == 0:
            (folder / f"{number}.json").write_text(json.dumps(judged(said_by_rank[: work.case.ranks])))
    os._exit(0)


def judged(said_by_rank: list[dict]) -> dict[str, Any]:
    for what, outcome in (("invalid", "invalid"), ("error", "error")):
        for answer in said_by_rank:
            if what in answer:
                return {"said": outcome, "why": answer[what], "trace": answer.get("trace", "")}
    worst, what = max(((far, what) for answer in said_by_rank for what, far in answer.items()), default=(0.0, ""))
    return {"said": "equal", "far": worst} if worst <= TOLERANCE else {"said": "differs", "why": f"{what} differs by {worst:.1e}"}


def run_all(works: list[Work], folder: Path) -> list[dict]:
    """[work] What its ranks found. A rank that dies ends its plan; the next plans run in new ranks."""
    first = 0
    while first < len(works):
        processes = []
        for rank in range(RANKS):
            process = os.fork()
            if process == 0:
                signal.alarm(LIMIT_S * (4 + len(works)))
                try:
                    run_rank(rank, works, first, folder)
                except BaseException:
                    traceback.print_exc()
                os._exit(1)
            processes.append(process)
        if first == 0:
            run_checks(works, folder)
        waiting, died = set(processes), ""
        while waiting:
            process, status = os.wait()
            waiting.discard(process)
            if status and not died:
                died = f"a rank ended with status {os.waitstatus_to_exitcode(status)}"
                for left in waiting:
                    os.kill(left, signal.SIGKILL)
        if not died:
            break
        now = int((folder / "now").read_text())
        (folder / f"{now}.json").write_text(json.dumps({"said": "died", "why": died}))
        first = now + 1
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(len(works))]


def run_checks(works: list[Work], folder: Path) -> None:
    """What pfeife-run says of the same plans. It begins with buffers of zeros, which some modules divide by: such are not judged."""
    if "PFEIFE_RUN" not in os.environ:
        return
    for number, work in enumerate(works):
        place = folder / f"plan{number}"
        command = [os.environ["PFEIFE_RUN"], "check", place / "plan.yaml", "--threads", "--tolerance", str(TOLERANCE)]
        try:
            work.plan.save(place)
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
            text = f"{done.stdout}\n{done.stderr}".strip()
            undefined = re.search(r"^DIFFERENT: .* is off by nan", done.stdout, re.MULTILINE)
            answer = {"said": "equal" if done.returncode == 0 else "undefined" if undefined else "error", "why": text}
        except Exception as error:
            answer = {"said": "error", "why": f"{type(error).__name__}: {error}"}
        (folder / f"check{number}.json").write_text(json.dumps(answer))


# A group of seeds.


def tried(seeds: list[int], only: list[str], folder: Path) -> list[dict]:
    works, results = [], []
    for seed in seeds:
        made = random_modules.made(seed)
        for case in cases_of(seed, only):
            result: dict[str, Any] = {**case._asdict(), "case": str(case), "text": made.text}
            results.append(result)
            try:
                batch = made.batch(2 * case.microbatches, seed)
                capture = pfeife.capture(made.module, **batch, microbatches=case.microbatches)
                plan = planned(capture, case)
            except (pfeife.ConfigError, pfeife.Unexportable, pfeife.Infeasible) as error:
                result.update(pipeline="refused", why=f"{type(error).__name__}: {error}")
                continue
            except Exception as error:
                result.update(pipeline="error", why=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
                continue
            batches = [batch, made.batch(2 * case.microbatches + capture.is_open, seed + 1)]
            result.update(cells=plan.schedule.cells, layers=plan.cuts)
            with contextlib.suppress(pfeife.ConfigError):  # the pipeline has the same error
                result["stages"] = [(stage["rank"], stage["receives"], stage["sends"]) for stage in plan.stages]
            result["work"] = len(works)
            works.append(Work(case, made, plan, batches))
    for number, found in enumerate(run_all(works, folder) if works else []):
        result = next(result for result in results if result.get("work") == number)
        result.update(pipeline=found.pop("said"), **found)
        if (file := folder / f"check{number}.json").exists():
            answer = json.loads(file.read_text())
            result["runtime"], result["runtime_why"] = answer["said"], answer.get("why", "")
    return results


def wrong(result: dict) -> str:
    """The kind of a failure: its message without names and numbers; "" if there is none."""
    if result["pipeline"] in ("error", "differs", "died"):
        text = f"{result['pipeline']}: {result['why']}".splitlines()[0]
    elif result.get("runtime") == "error" and result["pipeline"] != "invalid":
        lines = [line for line in result["runtime_why"].splitlines() if re.match("DIFFERENT|ORDER BROKEN|pfeife-run", line)]
        text = f"pfeife-run: {[*lines, result['runtime_why']][0]}"
    else:
        return ""
    text = re.sub(r"\S*/(\S*)", r"\1", text)
    return re.sub(r"\b[a-z]*_?[a-z]*\d+\b|\d+(\.\d+)?(e-?\d+)?|'[^']*'", "#", text)[:110]


def by_kind(results: list[dict], kind: Any) -> dict[str, list[dict]]:
    kinds: dict[str, list[dict]] = {}
    for result in results:
        if name := kind(result):
            kinds.setdefault(name, []).append(result)
    return dict(sorted(kinds.items(), key=lambda entry: -len(entry[1])))


def write_findings(results: list[dict], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind, found in by_kind(results, wrong).items():
        least = min(found, key=lambda result: (len(result["text"]), result["ranks"]))
        parts = [
            f"# {kind}",
            f"{len(found)} plans, seeds {', '.join(str(result['seed']) for result in found[:30])}; the smallest: {least['case']}",
            f"```python\n{least['text']}```",
            f"pipeline: {least.get('why', least['pipeline'])}",
            f"pfeife-run: {least.get('runtime_why', 'not run')}",
            "stages (rank, receives, sends):\n" + "\n".join(map(str, least.get("stages", []))),
            least.get("trace", ""),
            "rows:\n" + "\n".join(",".join(row) for row in least.get("cells", [])),
        ]
        name = re.sub(r"\W+", "_", kind)[:80].strip("_")
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n")


def summary(results: list[dict]) -> str:
    def refused(result: dict) -> str:
        return "refused: " + re.sub(r"\d+|'[^']*'", "#", result["why"].splitlines()[0])[:120] if result["pipeline"] == "refused" else ""

    counts: dict[str, int] = {}
    for result in results:
        for what in [f"pipelines {result['pipeline']}"] + ([f"pfeife-run {result['runtime']}"] if "runtime" in result else []):
            counts[what] = counts.get(what, 0) + 1
    lines = [f"{len(results)} plans: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))]
    for kind, found in {**by_kind(results, wrong), **by_kind(results, refused)}.items():
        lines.append(f"{len(found):4}  {kind}  (seeds {' '.join(str(result['seed']) for result in found[:6])})")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:300", help="FIRST:BEHIND")
    parser.add_argument("--only", nargs="*", default=[], metavar="FAMILY")
    parser.add_argument("--results", type=Path, help="JSON of every plan")
    parser.add_argument("--findings", type=Path, help="a folder; a page for each kind of failure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seeds = list(range(*map(int, options.seeds.split(":"))))
    results: list[dict] = []
    for begin in range(0, len(seeds), GROUP):
        group = seeds[begin : begin + GROUP]
        with tempfile.TemporaryDirectory() as folder:
            results += tried(group, options.only, Path(folder))
        if options.results:
            options.results.write_text(json.dumps(results))
        if options.findings:
            write_findings(results, options.findings)
        print(f"seeds to {group[-1]}: {sum(bool(wrong(result)) for result in results)} wrong of {len(results)} plans", file=sys.stderr, flush=True)
    print(summary(results))
    return any(wrong(result) for result in results)


if __name__ == "__main__":
    sys.exit(main())
