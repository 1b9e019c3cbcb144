"""pfeife-exp for paper_tables.py: runs that resume, and calibrations found by `--fit`."""
import hashlib
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What is allocated must fit: the paper says nothing of what an allocator reserves.
ALLOCATED = ["plan.allocator=none", "plan.memory_margin=0"]


@dataclass(frozen=True)
class Calibration:
    """Factor of compute times, ms of a stage execution; and the cells that it was fitted to."""
    compute: float = 1
    overhead_ms: float = 0
    origin: str = ""

    def settings(self) -> list[str]:
        if not self.origin:
            return []
        return [f"calibration={{compute: {self.compute}, stage_overhead: {self.overhead_ms} ms, origin: \"{self.origin}\"}}"]


class Runs:
    """Results under `out`; what is there already is taken as it is. Drawings go to `drawings`."""

    def __init__(self, program: Path, out: Path, drawings: Path = HERE / "figures"):
        self.program, self.out, self.drawings, self.started = program, out, drawings, time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:6.0f} s  {text}", file=sys.stderr, flush=True)

    def call(self, config: str, arguments: list[str], settings: list[str]) -> str:
        return self.run([str(HERE / config), *arguments, *(word for setting in settings for word in ("--set", setting))])

    def draw(self, results: Path, svg: Path, arguments: list[str]) -> None:
        """A figure of results.csv; arguments: options of `pfeife-exp figure`."""
        self.run(["figure", str(results), *arguments, "--out", str(svg)])

    def draw_timeline(self, plan: Path, svg: Path, title: str) -> None:
        """An estimated step with its critical path."""
        self.run(["draw", str(plan), "--engine", "estimated", "--svg", str(svg), "--width", "900px", "--title", title],
                 self.program.parents[1] / "planner/pfeife-schedule")

    def run(self, arguments: list[str], program: Path | None = None) -> str:
        command = [str(program or self.program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 3):  # 3: no plan fits, which is a result
            sys.exit(f"paper_tables: {' '.join(command)}\n{done.stderr}")
        return done.stdout

    def cases(self, config: str, name: str, settings: list[str]) -> dict:
        """Plans by ((devices, microbatches), name of the plan)."""
        self.say(name)
        folder = self.out / name
        self.call(config, ["--out", str(folder), "--quiet"], settings + ALLOCATED)
        plans = {}
        for case in json.loads((folder / "results.json").read_text())["cases"]:
            for plan in case["plans"]:
                plans[(plan["devices"], plan["microbatches"]), plan["plan"]] = plan
        return plans

    def fit(self, config: str, name: str, settings: list[str], rows: list[tuple], column: str = "step_ms") -> Calibration:
        """Rows: (devices, microbatches, plan, ms). `name` is also what the calibration is called."""
        self.say(f"calibration {name}")
        text = f"case,plan,{column}\n" + "".join(f'"devices={d},microbatches={n}",{plan},{ms:.6f}\n' for d, n, plan, ms in rows)
        self.out.mkdir(parents=True, exist_ok=True)
        key = hashlib.sha256("\n".join([text, (HERE / config).read_text(), *settings]).encode() + self.program.read_bytes()).hexdigest()
        known = self.out / (name.replace(" ", "_") + ".fit")
        if not known.is_file() or not known.read_text().startswith(key):
            rows_file = self.out / (name.replace(" ", "_") + ".rows.csv")
            rows_file.write_text(text)
            found = self.call(config, ["--fit", str(rows_file)], settings + ALLOCATED)
            known.write_text(key + "\n" + found)
        compute, overhead = re.search(r"compute: ([\d.]+), stage_overhead: ([\d.]+) ms", known.read_text()).groups()
        return Calibration(float(compute), float(overhead), name)
