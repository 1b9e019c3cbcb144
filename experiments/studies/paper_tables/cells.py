"""What this project's engines say to each cell of the paper's tables and figures."""
import csv

from runs import HERE, Calibration, Runs

# What is fitted to what: fixed before anything is scored.
CALIBRATED_ON = {
    "k": "compute from DeepSpeed's ViT cell (2,4) of Table 1",
    "A": "compute and stage_overhead from Pfeife's ViT cells (2,4) and (8,16) of Table 1",
    "B": "compute from DeepSpeed's, stage_overhead from Pfeife's ViT cell (2,4) of Table 1",
    "FP16": "compute from FP16 (1,2) of Table 2, stage_overhead of A",
    "FP32": "compute from FP32 (1,2) of Table 2, stage_overhead of A",
    "ViT": "compute from the estimate of Table 5's first ViT row",
    "GPT-2": "compute from the estimate of Table 5's first GPT-2 row",
    "figure 5": "compute from the least time with two microbatches",
    "ViT, A": "compute of ViT, stage_overhead of A",
}
FITTED_CELLS = [  # table, group, cell, system, calibration
    ("1", "ViT-g/14", "(2,4)", "DeepSpeed", "k"), ("1", "ViT-g/14", "(2,4)", "Pfeife", "A"),
    ("1", "ViT-g/14", "(8,16)", "Pfeife", "A"), ("1", "ViT-g/14", "(2,4)", "Pfeife", "B"),
    ("2", "SDXL FP16", "(1,2)", "Pfeife", "FP16"), ("2", "SDXL FP32", "(1,2)", "Pfeife", "FP32"),
    ("5", "ViT-g/14", "D=2 V=1 B=8 F=1", "Pfeife's estimate", "ViT"),
    ("figure 5", "ViT-g/14, 2 of RTX 3090", "2 microbatches, time", "Pfeife", "figure 5"),
    ("5", "GPT2-large", "D=2 V=1 B=8 F=0", "Pfeife's estimate", "GPT-2"),
]
COLUMNS = ["table", "group", "cell", "system", "unit", "paper", "ours", "calibration", "error_percent", "role", "note"]
GIB = 2**30


def paper(name: str) -> list[dict]:
    with open(HERE / "paper" / f"{name}.csv") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class Table:
    """Rows of tables.csv."""

    def __init__(self):
        self.rows = []

    def add(self, table, group, cell, system, unit, published, ours=None, calibration="", role="scored", note=""):
        try:
            number = float(published)
        except ValueError:
            number, role = None, "no figure" if role == "scored" else role
        error = 100 * (ours / number - 1) if ours and number else None
        self.rows.append(dict(zip(COLUMNS, [
            table, group, cell, system, unit, published, f"{ours:.4g}" if ours else "", calibration,
            f"{error:.1f}" if error is not None else "", role, note])))

    def calibration(self, found: Calibration) -> None:
        """What was fitted."""
        self.add("calibration", found.origin, "compute", "", "factor", "", found.compute, role="fitted")
        if found.overhead_ms:
            self.add("calibration", found.origin, "stage_overhead", "", "ms", "", found.overhead_ms, role="fitted")


def memory_note(plan: dict) -> str:
    """Whether it fits: estimated peak of the rank that has most, and the device less its reserve."""
    peaks, limit = plan["peak_memory_bytes_of_rank"], plan["memory_limit_bytes"] / GIB
    if not peaks:
        return "fits in no way that was tried"
    return f"{'fits' if plan['feasible'] else 'out of memory'}: estimated peak {max(peaks) / GIB:.1f} of {limit:.1f} GiB"


def table1(runs: Runs, table: Table) -> Calibration:
    def step(cell, size, system):
        return 1000 * cell[1] * size / float(published[cell][system])

    rows = paper("table1")
    published = {(int(r["D"]), int(r["B"])): r for r in rows if r["model"] == "ViT-g/14"}
    wide = ["cases={devices: [2, 8], microbatches: [4, 16]}"]
    first, last = (2, 4), (8, 16)
    k = runs.fit("table1_vit.yaml", "k", wide, [(*first, "DeepSpeed", step(first, 24, "deepspeed"))])
    a = runs.fit("table1_vit.yaml", "A", wide, [(*cell, "planned", step(cell, 24, "pfeife")) for cell in (first, last)])
    b = runs.fit("table1_vit.yaml", "B", [*wide, f"calibration={{compute: {k.compute}}}"],
                 [(*first, "planned", step(first, 24, "pfeife"))])
    for found in (k, a, b):
        table.calibration(found)
    for calibration in (Calibration(), k, a, b):
        name = calibration.origin
        plans = {}
        extra = calibration.settings() + (["plan_with=published"] if name else [])
        for d in (2, 4, 8):
            plans |= runs.cases("table1_vit.yaml", f"table1_vit_{d}_{name or 'published'}",
                                [f"cases={{devices: [{d}], microbatches: [{d}, {2 * d}]}}", *extra])
        plans |= {("Llama", *key): plan for key, plan in
                  runs.cases("table1_llama.yaml", f"table1_llama_{name or 'published'}", extra).items()} if name != "k" else {}
        for row in rows:
            vit = row["model"] == "ViT-g/14"
            cell = int(row["D"]), int(row["B"])
            text = f"({cell[0]},{cell[1]})"
            systems = []
            if name in ("", "k") and vit:
                systems += [("DeepSpeed", "DeepSpeed"), ("DeepSpeed", "DeepSpeed_blocks")]
            if name == "" and not vit:
                systems += [("DeepSpeed", "DeepSpeed")]
            if name != "k":
                systems += [("Pfeife", "planned")]
            for system, plan_name in systems:
                plan = plans[(cell, plan_name) if vit else ("Llama", cell, plan_name)]
                fitted = vit and (name == "k" and cell == first or name == "A" and cell in (first, last) or
                                  name == "B" and cell == first)
                group = row["model"] + (", cuts between blocks" if plan_name.endswith("blocks") else "")
                table.add("1", group, text, system, "samples/s", row[system.lower()], plan["samples_per_s"], name,
                          "fitted" if fitted else "scored",
                          memory_note(plan) if row[system.lower()] == "OOM" or not plan["feasible"] else "")
            if name == "":
                table.add("1", row["model"], text, "Colossal-AI", "samples/s", row["colossalai"], role="not expressible",
                          note="a pipeline of its own with other kernels")
    return a


def table2(runs: Runs, table: Table, overhead: Calibration) -> None:
    rows = paper("table2")
    ours = [r for r in rows if r["method"] == "Pfeife"]
    single_pipeline = next(r for r in ours if (r["DP"], r["PP"]) == ("1", "2"))
    fits = {}
    for precision, name in (("fp16_amp", "FP16"), ("tf32", "FP32")):
        settings = [f"training.precision={precision}", f"calibration={{stage_overhead: {overhead.overhead_ms} ms}}"]
        fits[name] = runs.fit("table2.yaml", name, settings, [(2, 2, "planned", 2000 / float(single_pipeline[name]))])
        table.calibration(fits[name])
    for column, precision, times in (("FP16", "fp16_amp", 1), ("FP16_x2", "fp16_amp", 2), ("FP32", "tf32", 1)):
        for calibration in (Calibration(), fits[column.removesuffix("_x2")]):
            name = calibration.origin
            extra = [f"training.precision={precision}", *calibration.settings(), *(["plan_with=published"] if name else [])]
            for row in ours:
                replicas, devices = int(row["DP"]), int(row["PP"])
                settings = [f"cases={{devices: [{devices}], microbatches: [{times * devices}]}}", *extra]
                # The paper's runtime runs its own order of actions; that reductions overlap is not said.
                if replicas > 1:
                    settings.append(f"parallel={{dp: {replicas}, overlap_reductions: false}}")
                plans = runs.cases("table2.yaml", f"table2_{column}_{replicas}x{devices}_{name or 'published'}", settings)
                plan = plans[(devices, times * devices), "planned"]
                fitted = name and column == name and row is single_pipeline
                table.add("2", f"SDXL {column}" + (", replicas" if replicas > 1 else ""), f"({replicas},{devices})", "Pfeife",
                          "samples/s", row[column], plan["samples_per_s"], name, "fitted" if fitted else "scored",
                          "parallel: {dp: %d}, reductions not overlapped" % replicas if replicas > 1 else "")
            for row in rows:
                if row["method"] == "Pfeife":
                    continue
                replicas, zero = int(row["DP"]), int(row["method"][-1])
                # DeepSpeed's defaults: reductions overlap in stage 3 only.
                plan = runs.cases("table2.yaml", f"table2_{column}_{row['method']}_{replicas}_{name or 'published'}", [
                    f"cases={{devices: [1], microbatches: [{times}]}}", "plan={families: [1f1b], stages_per_rank: [1], iterations: 1, recompute: none}",
                    f"parallel={{dp: {replicas}, zero: {zero}, overlap_reductions: false}}", *extra])[(1, times), "planned"]
                table.add("2", f"SDXL {column}", f"({replicas},1)", row["method"], "samples/s", row[column], plan["samples_per_s"], name,
                          note=memory_note(plan))


def table4(runs: Runs, table: Table) -> None:
    # The paper calls all of its units GiB; its weights say that they are 1000 MiB, of SDXL GB.
    models = {"ViT-g/14": ("vit_g14_eager", "tf32", 24, 1000 * 2**20), "Llama2-7B": ("llama2_7b_eager", "tf32", 1, 1000 * 2**20),
              "SDXL FP16": ("sdxl_unet", "fp16_amp", 1, 10**9), "SDXL FP32": ("sdxl_unet", "tf32", 1, 10**9)}
    for row in paper("table4"):
        model, precision, size, unit = models[row["model"]]
        plan = runs.cases("table4.yaml", f"table4_{model}_{precision}", [
            f"model=../../../configs/models/{model}.pt2", f"training.precision={precision}", f"training.microbatch_size={size}",
        ])[(1, 1), "planned"]
        parts = {name: amount / unit for name, amount in plan["memory_of_rank"][0].items()}
        weights, saved, copies = parts["parameters_bytes"], parts["saved_bytes"], parts["autocast_copies_bytes"]
        half = precision == "fp16_amp"

        def add(cell, published, ours, role="scored", note=""):
            table.add("4", row["model"], cell, "Pfeife", "GB" if unit == 10**9 else "1000 MiB", row[published], ours, "", role, note)

        add("weights", "weights_GiB", weights / 2 if half else weights, note="in 16 bits" if half else "")
        add("train", "train_GiB", weights + parts["gradients_bytes"] + parts["optimizer_bytes"])
        add("activations", "activations_GiB", saved, note=f"besides, autocast's copies that backward keeps: {copies:.1f} GB" if half else "")
        if half:
            add("activations and copies, less all weights in 16 bits", "activations_GiB", saved + copies - weights / 2, "reported")


TABLE5 = {"ViT": ("ViT-g/14", "table5_vit.yaml"), "GPT-2": ("GPT2-large", "table5_gpt2.yaml")}


def schedule_of(row: dict) -> str:
    return f"V{row['Nl']}_B{row['Bl'] or 8}_F{row['Bf']}"


def rows_of_table5(name: str) -> list[dict]:
    return [row for row in paper("table5") if row["model"] == TABLE5[name][0]]


def table5_settings(name: str, devices: int) -> list[str]:
    entries = [f"{{name: {schedule_of(r)}, family: looped, cuts: reference, stages_per_rank: {r['Nl']}, "
               f"loop_batch: {r['Bl'] or 8}, prefetch: {r['Bf']}}}" for r in rows_of_table5(name) if int(r["D"]) == devices]
    return [f"cases.devices={devices}", f"baselines=[{', '.join(entries)}]"]


def fit_table5(runs: Runs, name: str) -> Calibration:
    first = rows_of_table5(name)[0]
    return runs.fit(TABLE5[name][1], name, table5_settings(name, 2), [(2, 8, schedule_of(first), float(first["est_ms"]))],
                    "without_optimizer_ms")


def add_row_of_table5(table: Table, model: str, row: dict, plan: dict, calibration: str, fitted: bool) -> None:
    cell = f"D={row['D']} V={row['Nl']} B={row['Bl'] or 8} F={row['Bf']}"
    refused = row["rejected"] == "1"
    note = "the paper's own rule refuses it" if refused else plan["reason"]
    time = plan["without_optimizer_ms"]
    table.add("5", model, cell, "Pfeife's estimate", "ms", row["est_ms"], time, calibration, "fitted" if fitted else "scored", note)
    table.add("5", model, cell, "Pfeife measured", "ms", row["act_ms"], time, calibration, "reported" if refused else "scored", note)
    if calibration or not plan["reference_peak_bytes_of_rank"]:
        return
    few = ", up to 4 devices" if int(row["D"]) <= 4 else ", 8 devices"
    for end, rank in (("first", 0), ("last", -1)):
        for rule, peaks in (("reference rule", plan["reference_peak_bytes_of_rank"]), ("lifetimes", plan["peak_memory_bytes_of_rank"])):
            table.add("5", f"{model} memory, {rule}{few}", f"{cell} {end}", "Pfeife measured", "GiB", row[f"act_mem_{end}_GiB"],
                      peaks[rank] / GIB, "", "scored", note)


def table5(runs: Runs, table: Table) -> None:
    for name, (model, config) in TABLE5.items():
        rows = rows_of_table5(name)
        k = fit_table5(runs, name)
        table.calibration(k)
        for calibration in (Calibration(), k):
            extra = calibration.settings() + (["plan_with=published"] if calibration.origin else [])
            plans = {}
            for d in (2, 4, 8):
                plans |= runs.cases(config, f"table5_{name}_{d}_{calibration.origin or 'published'}", table5_settings(name, d) + extra)
            for row in rows:
                add_row_of_table5(table, model, row, plans[(int(row["D"]), 8), schedule_of(row)], calibration.origin,
                                  bool(calibration.origin) and row is rows[0])


FIGURE5_CUTS = range(180, 300)  # the published minima lie between 225 and 245


def figure5(runs: Runs, table: Table) -> None:
    """Time over the cut; the minima of the paper are cuts of its own graph of 407 nodes."""
    entries = ", ".join(f"{{name: cut_{cut}, family: looped, cuts: [{cut}], stages_per_rank: 1, prefetch: 1}}" for cut in FIGURE5_CUTS)
    k = runs.fit("figure5.yaml", "figure 5", [], [(2, 2, "planned", 498.7)], "without_optimizer_ms")
    table.calibration(k)
    plans = runs.cases("figure5.yaml", "figure5", [f"baselines=[{entries}]", *k.settings(), "plan_with=published"])
    published = {2: (("238", "245"), "498.7"), 3: (("238",), "629.4"), 4: (("225", "229"), "789.8")}
    for n, (cuts, ms) in published.items():
        best = min(((cut, plans[(2, n), f"cut_{cut}"]["without_optimizer_ms"]) for cut in FIGURE5_CUTS), key=lambda point: point[1])
        table.add("figure 5", "ViT-g/14, 2 of RTX 3090", f"{n} microbatches, cut", "Pfeife", "operator", cuts[0], best[0], k.origin,
                  note="or " + cuts[1] if len(cuts) > 1 else "")
        table.add("figure 5", "ViT-g/14, 2 of RTX 3090", f"{n} microbatches, time", "Pfeife", "ms", ms, best[1], k.origin, "fitted" if n == 2 else "scored")
    runs.draw(runs.out / "figure5", runs.drawings / "figure5.svg",
              ["--x", "cuts", "--y", "without_optimizer_ms", "--facet", "microbatches", "--where", "family=looped", "--no-title"])


FIGURE6_PLANS = {"even": "even", "uneven": "uneven", "even_prefetch": "even, prefetch", "uneven_prefetch": "uneven, prefetch"}


def figure6(runs: Runs, table: Table) -> None:
    """Estimated beside simulated. The paper's image has axes without figures, so there is nothing to score but the order."""
    for devices, microbatches in ((2, 4), (4, 8)):
        entries = ", ".join(f"{{name: {name}, family: looped, cuts: {'reference' if name.startswith('uneven') else 'equal_time'}, stages_per_rank: 1, "
                            f"loop_batch: {microbatches}, prefetch: {(devices - 1) if name.endswith('prefetch') else 0}}}" for name in FIGURE6_PLANS)
        plans = runs.cases("figure6.yaml", f"figure6_{devices}", [
            f"cases={{devices: [{devices}], microbatches: [{microbatches}]}}", f"baselines=[{entries}]"])
        for name, words in FIGURE6_PLANS.items():
            plan = plans[(devices, microbatches), name]
            for engine in ("estimate", "simulate"):
                table.add("figure 6", f"ViT-g/14, {devices} of RTX 3090", f"{words}, {engine}d", "Pfeife", "ms", "", plan[f"{engine}_ms"], role="no figure")


def figures(runs: Runs, table: Table, overhead: Calibration) -> None:
    """Figures 2, 4, 5, 6, 7 and 8: times, and plans on one time axis as figures/*.svg."""
    def case_of(name):
        return next(path for path in (runs.out / name).iterdir() if path.is_dir())

    def draw(number, name):
        (runs.drawings / f"figure{number}.svg").write_text((case_of(name) / "plans.svg").read_text())

    plans = runs.cases("figure2.yaml", "figure2", [])
    table.add("figure 2", "example", "all forwards first", "Pfeife", "ms", "122", plans[(2, 2), "planned"]["estimate_ms"])
    runs.draw_timeline(case_of("figure2") / "planned", runs.drawings / "figure2.svg", "Figure 2: two stages, two microbatches, all forwards first")
    figure6(runs, table)
    draw(6, "figure6_4")
    plans = runs.cases("figure4.yaml", "figure4", [])
    for name, paper_ms in (("5-5-5", 75), ("7-4-4", 73), ("6-5-4", 72), ("6-5-4_prefetch_1", 69)):
        table.add("figure 4", "example", name, "Pfeife", "ms", str(paper_ms), plans[(3, 3), name]["estimate_ms"])
    table.add("figure 4", "example", "cuts and prefetch searched", "Pfeife", "ms", "69", plans[(3, 3), "planned"]["estimate_ms"])
    draw(4, "figure4")
    k = fit_table5(runs, "ViT")
    figure5(runs, table)
    both = Calibration(k.compute, overhead.overhead_ms, "ViT, A")
    for calibration in (Calibration(), k, both):
        extra = calibration.settings() + (["plan_with=published"] if calibration.origin else [])
        name = f"figure7_{(calibration.origin or 'published').replace(', ', '_')}"
        plans = runs.cases("figure7.yaml", name, extra)

        def time(plan):
            return plans[(4, 8), plan]["without_optimizer_ms"]

        def add(figure, cell, published, ours):
            table.add(figure, "ViT-g/14, 4 of RTX 3090", cell, "Pfeife", "of the first" if float(published) < 2 else "ms", published, ours, calibration.origin)

        add("figure 7", "uneven cuts and prefetch", "0.925", time("uneven_prefetch") / time("even"))
        add("figure 7", "and loops", "0.84", time("planned") / time("even"))
        for v in (2, 3):
            add("figure 8", f"V={v}: loop batch 8, even cuts", "0.974", time(f"loops_{v}_batch_even") / time(f"loops_{v}"))
            add("figure 8", f"V={v}: and cuts searched", "0.923", time(f"loops_{v}_batch") / time(f"loops_{v}"))
    draw(7, "figure7_published")
