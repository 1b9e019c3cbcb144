#!/usr/bin/env python3
"""Measures torch.distributed.pipelining, pfeife-run and pfeife.Pipeline in one run: same model, schedule, processes and threads.

For each of nine cells (three sizes, three schedules) the sides take turns, `--pairs` times; the figures are the medians
of the ratios of their step times to torch's, with the interval that the order statistics give. See README.md.
"""

import argparse
import csv
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SCHEDULES = {"1f1b": 2, "gpipe": 2, "interleaved_1f1b": 4}  # stages
STEPS = {64: 20, 256: 2, 768: 1}  # measured steps a turn
SAMPLES = {64: 1, 256: 2, 768: 1}  # a microbatch, as in stack.py
OUR_WARM_UP = 2  # steps that pfeife-run train leaves out of its median


def missing() -> str:
    """Why this study cannot run here; empty if it can."""
    for name in ("torch", "numpy"):
        if importlib.util.find_spec(name) is None:
            return f"{sys.executable} has no {name}"
    try:
        import torch.distributed.pipelining  # noqa: F401
    except Exception as error:
        return f"torch.distributed.pipelining does not load: {error}"
    return ""


class TorchSide:
    """Two processes that wait for requests, and run torch's runtime or pfeife.Pipeline."""

    def __init__(self, folder: Path):
        command = [sys.executable, str(HERE / "torch_side.py")]
        self.ranks = [subprocess.Popen([*command, str(r), str(folder / "meeting")], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True) for r in range(2)]

    def ask(self, **request) -> list[dict]:
        for rank in self.ranks:
            rank.stdin.write(json.dumps(request) + "\n")
            rank.stdin.flush()
        answers = [rank.stdout.readline() for rank in self.ranks]
        if not all(answers):
            raise SystemExit("versus_torch: a torch process ended; see its message above")
        return [json.loads(answer) for answer in answers]

    def step_time(self, side: str, hidden: int, schedule: str, steps: int) -> float:
        stages = SCHEDULES[schedule]
        answer = self.ask(what="measure", side=side, hidden=hidden, schedule=schedule, stages=stages, warm=1, steps=steps)
        return statistics.median(answer[0]["steps"])

    def difference(self, side: str, hidden: int, schedule: str, **more) -> float:
        stages = SCHEDULES[schedule]
        answers = self.ask(what="compare", side=side, hidden=hidden, schedule=schedule, stages=stages, **more)
        return max(answer["difference"] for answer in answers)

    def close(self) -> None:
        for rank in self.ranks:
            rank.stdin.close()
        for rank in self.ranks:
            rank.wait()


class OurSide:
    def __init__(self, build: Path, folder: Path):
        self.run_program, self.schedule_program = build / "runtime/pfeife-run", build / "planner/pfeife-schedule"
        for program in (self.run_program, self.schedule_program):
            if not program.exists():
                raise SystemExit(f"versus_torch: {program} is missing; build it, or name the folder with --build")
        self.folder = folder

    def call(self, program: Path, *arguments: str, text: str | None = None) -> str:
        done = subprocess.run([str(program), *arguments], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"versus_torch: {program.name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def export(self, hidden: int) -> None:
        path = self.folder / f"hidden_{hidden}.pt2"
        if path.exists() and path.stat().st_mtime > (HERE / "stack.py").stat().st_mtime:
            return
        subprocess.run([sys.executable, str(ROOT / "configs/models/export_models.py"), "--real-weights", "--out", str(self.folder),
                        "--microbatch", str(SAMPLES[hidden]), "--module", f"{HERE / 'stack.py'}:hidden_{hidden}"], check=True, stdout=subprocess.DEVNULL)

    def cuts(self, hidden: int, stages: int) -> str:
        """The last node of every run of layers but the last."""
        with zipfile.ZipFile(self.folder / f"hidden_{hidden}.pt2") as archive:
            graph = json.loads(archive.read(f"hidden_{hidden}/models/model.json"))["graph_module"]["graph"]
        last = {}
        for index, node in enumerate(graph["nodes"]):
            for word in node["metadata"].get("nn_module_stack", "").replace(";", ",").split(","):
                if word.startswith("layers.") and word.count(".") == 1:
                    last[int(word.split(".")[1])] = index
        each = len(last) // stages
        return " ".join(str(last[s * each - 1]) for s in range(1, stages))

    def schedule(self, name: str, *, for_torch: bool = False) -> Path:
        """Lowered without optimizer steps: neither side updates within the time."""
        loops = ["--stages-per-rank", "2"] if SCHEDULES[name] > 2 else []
        plain = self.call(self.schedule_program, "generate", name, "--ranks", "2", "--microbatches", "8", *loops)
        lowered = self.call(self.schedule_program, "lower", "-", *(["--torch"] if for_torch else ["--no-optimizer"]), text=plain)
        path = self.folder / f"{name}{'_torch' if for_torch else ''}.csv"
        path.write_text(lowered)
        return path

    def arguments(self, hidden: int, schedule: str) -> list[str]:
        return ["--model", str(self.folder / f"hidden_{hidden}.pt2"), "--schedule", str(self.schedule(schedule)),
                "--cuts", self.cuts(hidden, SCHEDULES[schedule])]

    def step_time(self, hidden: int, schedule: str, steps: int) -> float:
        table = self.folder / "measurement.csv"
        self.call(self.run_program, "train", *self.arguments(hidden, schedule), "--steps", str(steps + OUR_WARM_UP), "--out", str(table))
        steps = csv.DictReader(table.read_text().split("\n\n")[0].splitlines())
        return statistics.median(int(step["time_ns"]) for step in steps if step["counts"] == "1") * 1e-9

    def check(self, hidden: int, schedule: str) -> str:
        return self.call(self.run_program, "check", "--fp64", *self.arguments(hidden, schedule)).strip()


def interval(values: list[float]) -> tuple[float, float, float]:
    """Bounds of the median from order statistics, and how often they enclose it: no assumption on the distribution."""
    ordered, n = sorted(values), len(values)
    k = 0
    while k + 1 < n // 2 and 1 - 2 * sum(math.comb(n, i) for i in range(k + 2)) / 2**n >= 0.95:
        k += 1
    return ordered[k], ordered[n - 1 - k], 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n


def compare_gradients(ours: OurSide, torch_side: TorchSide, sizes: list[int], with_pipeline: bool) -> bool:
    right = True
    print("gradients (largest |g - g0| / |g0| of a tensor, float64, against the unsplit model)")
    for hidden in sizes:
        for name in SCHEDULES:
            found = {"our schedule run by torch": torch_side.difference("torch", hidden, name, csv=str(ours.schedule(name, for_torch=True)))}
            if with_pipeline:
                found["run by pfeife.Pipeline"] = torch_side.difference("pipeline", hidden, name)
            differences = "; ".join(f"{what} {largest:.1e}" for what, largest in found.items())
            print(f"  hidden {hidden}, {name}: {differences}; run by pfeife-run: {ours.check(hidden, name)}", flush=True)
            right = right and max(found.values()) <= 1e-12
    return right


def compare_times(ours: OurSide, torch_side: TorchSide, sizes: list[int], pairs: int, with_pipeline: bool) -> None:
    sides = {"torch": partial(torch_side.step_time, "torch"), "pfeife-run": ours.step_time}
    if with_pipeline:
        sides["pfeife.Pipeline"] = partial(torch_side.step_time, "pipeline")
    print(f"\nstep times (measured; {pairs} turns of each, 8 microbatches, 2 processes, 1 thread each), and over torch's with the "
          "interval of the median")
    for hidden in sizes:
        for name in SCHEDULES:
            times = {side: [] for side in sides}
            for pair in range(pairs):
                first = pair % len(sides)
                for side in [*sides, *sides][first:first + len(sides)]:
                    times[side].append(sides[side](hidden, name, STEPS[hidden]))
            line = f"  {hidden:6}  {name:17}"
            for side, own in times.items():
                line += f"  {side} {statistics.median(own) * 1e3:.1f} ms"
                if side != "torch":
                    ratios = [a / b for a, b in zip(own, times["torch"])]
                    low, high, confidence = interval(ratios)
                    line += f" = {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}, {confidence * 100:.0f} %)"
            print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three pairs, hidden 64 only: does it work?")
    parser.add_argument("--hidden", type=int, nargs="+", choices=list(STEPS), help="only these sizes")
    parser.add_argument("--pairs", type=int, help="turns of each side (default 10)")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="where pfeife-run is built")
    options = parser.parse_args()
    if reason := missing():
        print(f"versus_torch: SKIPPED: {reason}; it needs a full torch 2.11 with numpy")
        return 0
    with_pipeline = importlib.util.find_spec("pfeife") is not None
    if not with_pipeline:
        print(f"without pfeife.Pipeline: {sys.executable} has no pfeife (pip install .)")
    sizes = options.hidden or ([64] if options.quick else list(STEPS))
    pairs = options.pairs or (3 if options.quick else 10)
    if pairs < 1:
        parser.error("--pairs must be at least 1")
    folder = ROOT / "build/versus_torch"
    folder.mkdir(parents=True, exist_ok=True)
    ours = OurSide(options.build, folder)
    for hidden in sizes:
        ours.export(hidden)
    with tempfile.TemporaryDirectory() as meeting:
        torch_side = TorchSide(Path(meeting))
        try:
            right = compare_gradients(ours, torch_side, sizes, with_pipeline)
            compare_times(ours, torch_side, sizes, pairs, with_pipeline)
        finally:
            torch_side.close()
    return 0 if right else 4


if __name__ == "__main__":
    sys.exit(main())
