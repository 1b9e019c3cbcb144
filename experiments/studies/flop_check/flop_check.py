#!/usr/bin/env python3
"""FLOPs of exported models as the planner counts them, beside torch.utils.flop_counter; see README.md.

    flop_check.py [NAME...] [--out build/flop_check] [--shipped] [--force]

Each model is exported and counted by torch once (NAME.pt2 and NAME.json in the folder); a later call goes on with what
is missing, and writes flops.csv of all that is there.
"""
import argparse
import csv
import json
import re
import subprocess
import sys
import traceback
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / "configs" / "models")]

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

BATCH = 2


def grouped_backward(grad, x, weight, _bias, _stride, _padding, _dilation, transposed, _output_padding, groups, mask,
                     out_shape=None, **_):
    """What torch's formula for the backward of convolutions gives, but with the weight's gradient for its groups."""
    from torch.utils.flop_counter import conv_backward_flop

    flops = lambda wanted: conv_backward_flop(grad, x, weight, _bias, _stride, _padding, _dilation, transposed,
                                              _output_padding, groups, wanted, out_val=out_shape)
    return (flops([True, False, False]) if mask[0] else 0) + (flops([False, True, False]) // groups if mask[1] else 0)


class Passes:
    """FLOPs of forward and backward by torch operator."""

    def __init__(self):
        self.flops = {"forward": {}, "backward": {}}

    def count(self, name, run):
        counter = FlopCounterMode(display=False)
        by_group = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution_backward: grouped_backward})
        with by_group, counter:
            result = run()
        by_operator = counter.get_flop_counts().get("Global", {})
        self.flops[name] = {str(op): int(flops) for op, flops in by_operator.items()}
        self.flops[name + "_by_group"] = by_group.get_total_flops()
        return result


def kept_bytes(module, run):
    """Bytes of the storages that autograd keeps, parameters and buffers left out, and the result of run()."""
    own = {t.untyped_storage().data_ptr() for t in [*module.parameters(), *module.buffers()]}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    return sum(kept.values()), result


def run_module(module, inputs, real):
    """What torch counts in a training step. Without fused operators of which its counter knows nothing."""
    call = (lambda: module(**inputs)) if isinstance(inputs, dict) else (lambda: module(*inputs))
    passes = Passes()
    answer = {}
    if real:
        with torch.backends.mkldnn.flags(enabled=False):
            answer["kept"] = kept_bytes(module, call)[0]
    for config in {id(part.config): part.config for part in module.modules() if hasattr(part, "config")}.values():
        if hasattr(config, "_experts_implementation"):  # the counter does not look into a custom operator
            config._experts_implementation = "eager"
    with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
        loss = passes.count("forward", call)
        loss = loss[0] if isinstance(loss, tuple) else loss
        passes.count("backward", loss.backward)
    return {**answer, **passes.flops}


def small_model(builders, name):
    from shipped_models import Model

    torch.manual_seed(0)
    return Model(builders[name], BATCH, real_weights=True)


def export_archive(entry, path):
    from pt2_export import write_archive

    write_archive(path, entry, BATCH, torch.float32, keep_weights=False)


def count_small(builders, name, out, again):
    from pt2_export import masks_as_in_eager_mode

    entry = small_model(builders, name)
    if again or not (out / f"{name}.pt2").exists():
        export_archive(entry, out / f"{name}.pt2")
    torch.manual_seed(0)
    module, inputs = entry.build(BATCH)
    with masks_as_in_eager_mode():
        return run_module(module.train(), inputs, real=True)


def count_shipped(name):
    """The models of configs/models: too large to run, so on tensors without contents."""
    import shipped_models
    from pt2_export import without_contents, masks_as_in_eager_mode, with_fake_weights

    eager = name.endswith("_eager")
    shipped_models.ATTENTION = "eager" if eager else "sdpa"
    entry = shipped_models.MODELS[name.removesuffix("_eager")]
    with torch.device("meta"):
        module, inputs = entry.build(max(BATCH, entry.microbatch))
    with FakeTensorMode(allow_non_fake_inputs=True), masks_as_in_eager_mode():
        with_fake_weights(module)
        inputs = ({key: without_contents(value) for key, value in inputs.items()} if isinstance(inputs, dict)
                  else tuple(without_contents(value) for value in inputs))
        return run_module(module.train(), inputs, real=False)


def planner_counts(archives):
    program = ROOT / "build" / "release" / "experiments" / "flop_check" / "flop_count"
    text = subprocess.run([program, *archives], check=True, capture_output=True, text=True).stdout
    models = defaultdict(dict)
    for line in csv.DictReader(text.splitlines()):
        models[line["model"]][line["operator"]] = {key: int(line[key]) for key in ("forward", "backward", "saved")}
    return models


def reason(ours, theirs):
    """Why backward differs, where that is known: with all that explains it taken into account, the rest is within 1 %."""
    planner, torchs = sum(count["backward"] for count in ours.values()), theirs["backward_by_group"]
    again = sum(count["backward"] - 2 * count["forward"] for op, count in ours.items()
                if op.endswith("scaled_dot_product_attention"))
    if not torchs or abs((planner - again) / torchs - 1) > 0.01:
        return ""
    reasons = []
    if abs(planner / torchs - 1) > 0.01:
        reasons.append("fused attention computes the scores again in backward")
    if torchs != sum(theirs["backward"].values()):
        reasons.append("torch counts the weight gradients of convolutions with groups as if they had none")
    return "; ".join(reasons)


def compare(out, names, known_reasons):
    archives = {name: out / f"{name}.pt2" if (out / f"{name}.pt2").exists()
                else ROOT / "configs" / "models" / f"{name}.pt2" for name in names}
    counted = planner_counts(list(archives.values()))
    rows = []
    for name in names:
        ours, theirs = counted[name], json.loads((out / f"{name}.json").read_text())
        row = {"model": name}
        for way in ("forward", "backward"):
            planner, torchs = sum(count[way] for count in ours.values()), sum(theirs[way].values())
            row[f"{way}_planner"], row[f"{way}_torch"] = planner, torchs
            row[f"{way}_ratio"] = f"{planner / torchs:.4f}" if torchs else ""
        kept = sum(count["saved"] for count in ours.values())
        row["kept_planner"] = kept if "kept" in theirs else ""
        row["kept_torch"] = theirs.get("kept", "")
        row["kept_ratio"] = f"{kept / theirs['kept']:.4f}" if theirs.get("kept") else ""
        row["reason"] = reason(ours, theirs) or known_reasons.get(name, "")
        missing = [op for op in ours if op.endswith("(no row)")]
        if missing:
            row["reason"] = (row["reason"] + " " + ", ".join(missing)).strip()
        rows.append(row)
    return rows


def main():
    import single
    import zoo

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"models: {', '.join(zoo.MODELS)} (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "flop_check")
    parser.add_argument("--operators", action="store_true", help="the single operators of single.py instead")
    parser.add_argument("--shipped", action="store_true", help="the archives of configs/models as well")
    parser.add_argument("--force", action="store_true", help="export and count again what is there")
    options = parser.parse_args()
    builders = single.OPERATORS if options.operators else zoo.MODELS
    reasons = single.REASONS if options.operators else zoo.REASONS
    table = options.out / ("operators.csv" if options.operators else "flops.csv")
    out = options.out / "operators" if options.operators else options.out
    out.mkdir(parents=True, exist_ok=True)
    shipped = sorted(path.stem for path in (ROOT / "configs" / "models").glob("*.pt2")) if options.shipped else []
    names = (options.names or list(builders)) + shipped
    failed = []
    for name in names:
        record = out / f"{name}.json"
        if record.exists() and not options.force:
            continue
        try:
            counts = count_small(builders, name, out, options.force) if name in builders else count_shipped(name)
            record.write_text(json.dumps(counts))
            print(name, flush=True)
        except Exception:  # one model that cannot be exported does not end the study
            traceback.print_exc()
            failed.append(name)
    rows = compare(out, [name for name in names if name not in failed], reasons)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(f"{row['model']:22} forward {row['forward_ratio']:>7} backward {row['backward_ratio']:>7} "
              f"kept {row['kept_ratio']:>7}  {row['reason']}")
    print("failed:", ", ".join(failed) or "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
