#!/usr/bin/env bash
# The studies of published tables: what is written beside tables.csv says what it says, and some of it computed again is the same.
# Usage: tests/paper_tables_test.sh PFEIFE_EXP REPOSITORY
set -euo pipefail
program=$1 studies=$2/experiments
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export PYTHONDONTWRITEBYTECODE=1
python3 "$studies/paper_tables/paper_tables.py" table4 --check --program "$program" --out "$results/paper_tables"
python3 "$studies/schedule_tables/schedule_tables.py" --settings 2 --check --program "$program" --out "$results/schedule_tables"
