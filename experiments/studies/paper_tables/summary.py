"""tables.csv as text: how close, then every cell."""
from statistics import mean


def errors(rows: list[dict]) -> list[float]:
    return [abs(float(row["error_percent"])) for row in rows if row["error_percent"] and row["role"] == "scored"]


def order_of(rows: list[dict]) -> tuple[int, int]:
    """In how many ViT cells of Table 1 that nothing was fitted to the system that is faster in the paper is faster here, too."""
    def rates(system, calibration):
        return {row["cell"]: row for row in rows if row["table"] == "1" and row["group"] == "ViT-g/14" and
                row["system"] == system and row["calibration"] == calibration and row["role"] == "scored"}

    rivals, ours = rates("DeepSpeed", "k"), rates("Pfeife", "A")
    cells = sorted(rivals.keys() & ours.keys())
    right = [cell for cell in cells if (float(rivals[cell]["paper"]) > float(ours[cell]["paper"])) ==
             (float(rivals[cell]["ours"]) > float(ours[cell]["ours"]))]
    return len(right), len(cells)


# The README's lines: words, table, groups (beginnings), system, calibration.
HEADLINES = [
    ("Table 1, DeepSpeed: our 1F1B", "1", ["ViT-g/14"], "DeepSpeed", ""),
    ("the same", "1", ["ViT-g/14"], "DeepSpeed", "k"),
    ("Table 1, Pfeife: reference mode", "1", ["ViT-g/14", "Llama2-7B"], "Pfeife", ""),
    ("the same", "1", ["ViT-g/14", "Llama2-7B"], "Pfeife", "A"),
    ("the same", "1", ["ViT-g/14", "Llama2-7B"], "Pfeife", "B"),
    ("Table 2, SDXL FP16, one replica", "2", ["SDXL FP16"], "Pfeife", "FP16"),
    ("FP16, replicas", "2", ["SDXL FP16, replicas"], "Pfeife", "FP16"),
    ("FP16, twice as many microbatches", "2", ["SDXL FP16_x2", "SDXL FP16_x2, replicas"], "Pfeife", "FP16"),
    ("FP32", "2", ["SDXL FP32", "SDXL FP32, replicas"], "Pfeife", "FP32"),
    ("ZeRO 2, FP16", "2", ["SDXL FP16", "SDXL FP16_x2"], "ZeRO2", ""),
    ("the same", "2", ["SDXL FP16", "SDXL FP16_x2"], "ZeRO2", "FP16"),
    ("ZeRO 2, FP32", "2", ["SDXL FP32"], "ZeRO2", "FP32"),
    ("ZeRO 3, FP16", "2", ["SDXL FP16", "SDXL FP16_x2"], "ZeRO3", "FP16"),
    ("ZeRO 3, FP32", "2", ["SDXL FP32"], "ZeRO3", "FP32"),
    ("Table 4, memory in parts", "4", ["ViT-g/14", "Llama2-7B", "SDXL FP16", "SDXL FP32"], "Pfeife", ""),
    ("Table 5, the paper's estimates: ViT", "5", ["ViT-g/14"], "Pfeife's estimate", "ViT"),
    ("GPT-2", "5", ["GPT2-large"], "Pfeife's estimate", "GPT-2"),
    ("Table 5, measured: ViT", "5", ["ViT-g/14"], "Pfeife measured", "ViT"),
    ("GPT-2", "5", ["GPT2-large"], "Pfeife measured", "GPT-2"),
    ("Table 5, peak memory, reference rule: GPT-2 up to 4 devices", "5", ["GPT2-large memory, reference rule, up to 4 devices"], "Pfeife measured", ""),
    ("GPT-2 on 8", "5", ["GPT2-large memory, reference rule, 8 devices"], "Pfeife measured", ""),
    ("ViT", "5", ["ViT-g/14 memory, reference rule, up to 4 devices", "ViT-g/14 memory, reference rule, 8 devices"], "Pfeife measured", ""),
    ("Figures 2 and 4", "figure", ["example"], "Pfeife", ""),
    ("Figure 5, best cut and its time", "figure 5", ["ViT-g/14, 2 of RTX 3090"], "Pfeife", "figure 5"),
    ("Figures 7 and 8, ratios", "figure", ["ViT-g/14, 4 of RTX 3090"], "Pfeife", ""),
]


def calibrations(rows: list[dict], calibrated_on: dict) -> str:
    """A line for each: its figures and what it was fitted to."""
    lines = ["| calibration | compute | stage overhead, ms | fitted |", "|---|---|---|---|"]
    for name, cells in calibrated_on.items():
        figure = {row["cell"]: row["ours"] for row in rows if row["table"] == "calibration" and row["group"] == name}
        lines.append(f"| {name} | {figure.get('compute', '')} | {figure.get('stage_overhead', '')} | {cells} |")
    return "\n".join(lines)


def headlines(rows: list[dict], calibrated_on: dict) -> str:
    lines = ["| what | calibrated on | cells scored | mean error % | largest % |", "|---|---|---|---|---|"]
    for words, table, groups, system, calibration in HEADLINES:
        found = errors([row for row in rows if row["table"].startswith(table) and row["group"] in groups and
                        row["system"] == system and row["calibration"] == calibration])
        if found:
            lines.append(f"| {words} | {calibration or 'nothing'} | {len(found)} | {mean(found):.1f} | {max(found):.1f} |")
    right, cells = order_of(rows)
    return "\n".join([*lines, "", f"Which of DeepSpeed (k) and Pfeife (A) is faster comes out as in the paper in {right} of {cells} scored ViT cells of Table 1.",
                      "", calibrations(rows, calibrated_on)])


def summary(rows: list[dict]) -> str:
    """A line for each group, system and calibration."""
    groups = {}
    for row in rows:
        groups.setdefault((row["table"], row["group"], row["system"], row["calibration"]), []).append(row)
    lines = ["| table | cells | against | calibrated on | scored | mean error % | largest % |", "|---|---|---|---|---|---|---|"]
    for (table, group, system, calibration), members in groups.items():
        found = errors(members)
        if found:
            lines.append(f"| {table} | {group} | {system} | {calibration or 'nothing'} | {len(found)} | {mean(found):.1f} | {max(found):.1f} |")
    return "\n".join(lines)


def cells_of(rows: list[dict]) -> str:
    """A line a cell: the paper, ours without calibration and with each, with errors."""
    names = sorted({row["calibration"] for row in rows})
    by_cell = {}
    for row in rows:
        by_cell.setdefault((row["group"], row["cell"], row["system"], row["unit"], row["paper"]), {})[row["calibration"]] = row
    heads = ["as published" if name == "" else f"calibration {name}" for name in names]
    lines = ["| cells | cell | system | unit | paper | " + " | ".join(heads) + " | note |", "|---" * (6 + len(names)) + "|"]
    for (group, cell, system, unit, published), found in by_cell.items():
        figures = []
        for name in names:
            row = found.get(name)
            if row is None or not row["ours"]:
                figures.append("not expressible" if row and row["role"] == "not expressible" else "")
                continue
            error = f"{float(row['error_percent']):+.1f} %" if row["error_percent"] else "no figure"
            figures.append(f"{row['ours']} ({'fitted' if row['role'] == 'fitted' else error})")
        note = next((row["note"] for row in found.values() if row["note"]), "")
        lines.append(f"| {group} | {cell} | {system} | {unit} | {published} | " + " | ".join(figures) + f" | {note} |")
    return "\n".join(lines)


def markdown(rows: list[dict], calibrated_on: dict) -> str:
    text = "# The Pfeife paper's tables, cell by cell\n\nMade by paper_tables.py; do not edit. Ours: *simulated* (Tables 1 and 2), " \
           "*estimated* (Tables 4 and 5). Error: ours / paper - 1.\n\n"
    text += summary(rows) + "\n\n" + calibrations(rows, calibrated_on) + "\n"
    for number in sorted({row["table"] for row in rows} - {"calibration"}):
        text += f"\n## {number.capitalize() if number.startswith('figure') else 'Table ' + number}\n\n" + cells_of([row for row in rows if row["table"] == number]) + "\n"
    return text
