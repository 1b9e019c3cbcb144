#!/usr/bin/env python3
"""The Pfeife paper's Tables 1, 2, 4, 5 and Figures 2, 4, 7, 8 with this project's engines, cell by cell.

    python3 experiments/studies/paper_tables/paper_tables.py                 # all of it, into this folder's tables.csv and tables.md
    python3 experiments/studies/paper_tables/paper_tables.py table4 --check  # computes some again, fails if tables.csv says otherwise

Needs build/release (or --program). Finished cases are kept in results/paper_tables. Which cells calibrations come from is
written in cells.py; a cell is never scored with a calibration that was fitted to it.
"""
import argparse
import csv
import sys
from pathlib import Path

from cells import CALIBRATED_ON, COLUMNS, FITTED_CELLS, Table, figures, table1, table2, table4, table5
from runs import HERE, Runs
from summary import headlines, markdown

BEGIN, END = "<!-- summary -->", "<!-- end -->"


def texts(rows: list[dict]) -> dict[Path, str]:
    """The files that say in words what tables.csv has: tables.md, and the README's first screen."""
    readme = (HERE / "README.md").read_text()
    head, rest = readme.split(BEGIN)
    return {HERE / "tables.md": markdown(rows, CALIBRATED_ON),
            HERE / "README.md": head + BEGIN + "\n" + headlines(rows, CALIBRATED_ON) + "\n" + END + rest.split(END)[1]}


def write_texts(rows: list[dict]) -> None:
    for file, text in texts(rows).items():
        file.write_text(text)


def check_texts(rows: list[dict]) -> list[str]:
    """What is wrong with the files beside tables.csv; no cell may be scored with a calibration that was fitted to it."""
    wrong = [f"{file.name} is not what tables.csv says; run paper_tables.py" for file, text in texts(rows).items() if file.read_text() != text]
    for table, group, cell, system, calibration in FITTED_CELLS:
        found = [row["role"] for row in rows if (row["table"], row["group"], row["cell"], row["system"], row["calibration"]) ==
                 (table, group, cell, system, calibration)]
        if found != ["fitted"]:
            wrong.append(f"{system} {group} {cell} was fitted to for {calibration}, and is {found}")
    return wrong


def compute(names: list[str], runs: Runs) -> list[dict]:
    table = Table()
    overhead = table1(runs, table) if {"table1", "table2", "figures"} & set(names) else None
    if "table1" not in names:
        table.rows.clear()
    if "table2" in names:
        table2(runs, table, overhead)
    if "table4" in names:
        table4(runs, table)
    if "table5" in names:
        table5(runs, table)
    if "figures" in names:
        figures(runs, table, overhead)
    return table.rows


def main() -> int:
    every = ["table1", "table2", "table4", "table5", "figures"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="of: " + ", ".join(every) + " (default: all)")
    parser.add_argument("--program", type=Path, default=HERE.parents[2] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/paper_tables"), help="folder of the cases")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if tables.csv says otherwise")
    options = parser.parse_args()
    names = options.tables or every
    if unknown := set(names) - set(every):
        parser.error(f"unknown table {unknown.pop()}; use {', '.join(every)}")
    rows = compute(names, Runs(options.program, options.out, *([options.out] if options.check else [])))
    file = HERE / "tables.csv"
    known = list(csv.DictReader(open(file))) if file.is_file() else []
    fitted = {(row["table"], row["group"]) for row in rows if row["table"] == "calibration"}

    def computed(row):
        return ("figures" if row["table"].startswith("figure") else f"table{row['table']}") in names

    if options.check:
        wrong = check_texts(known) + [f"tables.csv has no such row: {row}" for row in rows if row not in known]
        for sentence in wrong:
            print(sentence, file=sys.stderr)
        return 1 if wrong else 0
    rows = sorted([r for r in known if not computed(r) and (r["table"], r["group"]) not in fitted] + rows, key=lambda row: row["table"])
    with open(file, "w") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write_texts(rows)
    print(f"{len(rows)} rows in {file} and tables.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
