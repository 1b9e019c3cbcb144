#!/usr/bin/env bash
# The studies of published tables: what is written beside tables.csv says what it says, and some of it computed again is the same.
# Usage: tests/paper_tables_test.sh PFEIFE_EXP REPOSITORY
set -euo pipefail
program=$1 studies=$2/experiments/studies
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export PYTHONDONTWRITEBYTECODE=1
python3 "$studies/paper_tables/paper_tables.py" table4 --check --program "$program" --out "$results/paper_tables"
python3 "$studies/paper_tables/more_figures.py" --check --program "$program"
python3 "$studies/schedule_tables/torchgpipe.py" "U-Net(5 64)" --check --program "$program" --out "$results/schedule_tables"
# Equal stages, forward f, backward b, no transfer time: GPipe that recomputes all but the last microbatch while gradients are awaited takes
# (m + n - 1) f + n b + (m - 1)(f + b) on n devices; with one microbatch, which is recomputed once on the way, (n + 1) f + n b.
PYTHONPATH="$studies/schedule_tables" python3 - "$program" "$results/closed_form" <<'PYTHON'
import sys
from pathlib import Path
from torchgpipe import step
for n, m in ((1, 2), (2, 4), (4, 8), (8, 3), (2, 1), (8, 1)):
    ours = step({"n": n, "m": m, "experiment": "pipeline"}, [(10, 20, 1)] * n, 1.0, Path(sys.argv[1]), Path(sys.argv[2]) / f"{n}_{m}")
    wanted = (m + n - 1) * 10 + n * 20 + (m - 1) * 30 + (10 if m == 1 else 0)
    transfers = 2 * (n - 1) * 0.0251  # of one byte: latency
    if not wanted <= ours <= wanted + transfers:
        sys.exit(f"torchgpipe.step: {n} devices, {m} microbatches: {ours} ms, not {wanted}")
PYTHON
python3 "$studies/schedule_tables/schedule_tables.py" --settings 2 --check --program "$program" --out "$results/schedule_tables"
