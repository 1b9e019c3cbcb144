"""Plans: what is asked for, what is shown, what is refused, and that others can work meanwhile."""

import contextlib
import csv
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import pfeife

from conftest import REPOSITORY

QUICK = dict(iterations=20, baselines=["1f1b"])


def two_layers(**more):
    """Two layers of 1 ms forward and 1 + 1 ms backward, whose messages take no time."""
    return pfeife.layers([1, 1], [1, 1], [1, 1], output_ms=0, **more)


def two_devices(**more):
    return pfeife.uniform_cluster(2, memory="1 GiB", **more)


# One microbatch: forward 1 + 1, input gradients 1 + 1 (the first layer's weights beside nothing), weights 1.
def test_a_step_done_by_hand():
    plan = pfeife.plan(two_layers(), two_devices(), microbatches=1, launch_overhead="0 us", baselines=["gpipe"])
    assert plan.estimated.step == 5
    assert plan.step == 5
    assert plan.bound == 5 and plan.gap == 0
    assert plan.cuts == [0] and plan.cut_modules == ["layer0"]
    assert set(plan.baselines) == {"gpipe"}
    assert plan.baselines["gpipe"].step == 6  # B in one piece: 1 + 1 + 2 + 2
    events = plan.estimated.events
    forward = events[events.action == "0F0"]
    assert forward.start.tolist() == [0] and forward.end.tolist() == [1_000_000]
    assert set(events.kind) <= {"compute", "transfer", "optimizer"}
    for rank in plan.estimated.attribution:
        assert sum(rank.values()) == 5_000_000


def test_the_same_as_the_program(tmp_path, tiny):
    plan = pfeife.plan(
        tiny, "a100_sxm4_40gb_x8", devices=2, microbatches=4, precision="tf32", families=["1f1b", "zb1p"], **QUICK
    )
    config = tmp_path / "same.yaml"
    cluster = Path(pfeife.__file__).parent / "clusters" / "a100_sxm4_40gb_x8.yaml"
    config.write_text(
        f"version: 1\nmodel: {tiny}\ncluster: {cluster}\ntraining: {{precision: tf32}}\n"
        "cases: {devices: 2, microbatches: 4}\nplan: {families: [1f1b, zb1p], iterations: 20}\nbaselines: [1f1b]\n"
    )
    subprocess.run(["pfeife-exp", config, "--out", tmp_path / "out", "--quiet"], check=True, stdout=subprocess.PIPE)
    theirs = list(csv.DictReader((tmp_path / "out" / "results.csv").open()))[0]
    assert plan.step == pytest.approx(float(theirs["simulate_ms"]), abs=1e-6)
    assert plan.bound == pytest.approx(float(theirs["lower_bound_ms"]), abs=1e-6)
    assert plan.peaks.max() == plan.record["plans"][0]["peak_memory_bytes"]
    plan.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "schedule.csv").read_text() == (
        tmp_path / "out" / "devices=2,microbatches=4" / "planned" / "schedule.csv"
    ).read_text()
    again = pfeife.load_plan(tmp_path / "saved")
    assert again.estimated.step == plan.estimated.step and again.bound == plan.bound
    assert pfeife.certify(tmp_path / "saved").proven
    assert plan.certify().proven


def test_what_a_notebook_shows(tiny):
    plan = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=4, **QUICK)
    assert "1f1b" in repr(plan) and "step ms" in repr(plan)
    assert plan._repr_html_().count("<svg") == 1
    assert plan.timeline_svg().startswith("<svg")
    page = plan.report()
    assert page.lower().startswith("<!doctype html>")
    frames = ElementTree.fromstring(page._repr_html_())  # a browser reads the page back from its attribute
    assert frames.tag == "iframe" and "".join(frames.get("srcdoc").split()) == "".join(page.split())
    memory = plan.simulate().memory
    assert [int(rank.bytes.max()) for rank in memory] == plan.peaks.tolist()


def test_memory_as_torch_takes_it(tiny):
    trace = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=4, **QUICK).simulate()
    snapshot = trace.memory_snapshot()
    for samples, entries in zip(trace.memory, snapshot["device_traces"]):
        live, held = {}, []
        for entry in entries:
            if entry["action"] == "alloc":
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                assert live.pop(entry["addr"]) == entry["size"]
            held.append((entry["time_us"] * 1000, sum(live.values())))
        after = dict(held)  # the last of each moment
        for at, total in dict(zip(samples.time.tolist(), samples.bytes.tolist())).items():
            nearest = max(moment for moment in after if moment <= at + 0.5)
            assert after[nearest] == total
    memory_viz = pytest.importorskip("torch.cuda._memory_viz")
    assert "Device 1" in memory_viz.trace(snapshot)
    assert "<html>" in memory_viz.trace_plot(snapshot)


def test_every_key_is_a_keyword(tiny):
    plan = pfeife.plan(
        tiny,
        "a100_sxm4_40gb_x8",
        devices=2,
        global_batch=8,
        cuts=[12],
        recompute="full",
        queues="edge",
        launch_overhead="7 us",
        plan={"devices": [1, 0]},
        parallel={"dp": 2, "zero": 1},
        engines=["estimate"],
        microbatches=2,
        **QUICK,
    )
    assert plan.device_of_rank == [1, 0] and plan.cuts == [12]
    compute = plan.simulate().events
    assert set(compute[compute.kind == "compute"].launch) == {7000}


def test_a_schedule_of_ones_own(tiny):
    rows = pfeife.schedule("1f1b", ranks=2, microbatches=4)
    plan = pfeife.plan(tiny, "3090_x8", schedule=rows, cuts=[12], baselines=[])
    compute = [[cell for cell in row if cell[1:2] in "FB"] for row in plan.schedule.cells]
    assert [[cell for cell in row if "SEND" not in cell and "RECV" not in cell][: len(cells)]
            for row, cells in zip(compute, rows.cells)] == rows.cells


def test_what_runs_in_which_stage(tiny):
    plan = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=2, cuts=[18], families=["1f1b"], baselines=[], iterations=1)
    first, last = plan.stages
    assert (first["rank"], last["rank"]) == (0, 1)
    assert first["sends"] == [(value, 1) for value, _ in last["receives"]] and first["sends"]
    assert "loss" in str(last["outputs"]) or last["outputs"]
    assert not first["outputs"]
    tied = set(first["parameters"]) & set(last["parameters"])
    assert tied == {"tokens.weight"}  # the embedding is the head
    with pytest.raises(pfeife.ConfigError, match="layers alone"):
        _ = pfeife.plan(two_layers(), two_devices(), baselines=[]).stages


def test_bytes_and_dictionaries_stand_for_files(tmp_path, tiny):
    of_file = pfeife.plan(tiny, "laptop", microbatches=2, **QUICK)
    of_bytes = pfeife.plan(pfeife.model(tiny.read_bytes(), name="mine"), "laptop", microbatches=2, **QUICK)
    assert of_bytes.step == of_file.step
    assert of_bytes.record["model"] == "mine"
    of_bytes.save(tmp_path)
    assert (tmp_path / "model.pt2").read_bytes() == tiny.read_bytes()
    cluster = pfeife.cluster("laptop", set={"links.socket.latency": "1 ms"})
    assert pfeife.plan(tiny, cluster, microbatches=2, **QUICK).step > of_file.step


def test_a_changed_cluster_is_saved(tmp_path, tiny):
    slow = pfeife.cluster("laptop", set={"links.socket.latency": "1 ms"})
    plan = pfeife.plan(tiny, slow, microbatches=2, **QUICK)
    plan.save(tmp_path)
    assert "1 ms" in (tmp_path / "cluster.yaml").read_text()
    assert pfeife.load_plan(tmp_path).estimated.step == plan.estimated.step
    with pytest.raises(pfeife.ConfigError, match="links.sockte.*at laptop"):
        pfeife.cluster("laptop", set={"links.sockte.latency": "1 ms"})


# Work up to a share x of the sequence is l x + (1 - l) x^2: attention reads all that came before. From the first slice follows l,
# and all others take as long.
def test_slices_end_where_they_take_equally_long(configs):
    ask = dict(devices=2, microbatches=4, families=["seq1f1b"], recompute="none", baselines=[], iterations=5)
    archive = configs / "models" / "gpt2_large.pt2"
    planned = pfeife.plan(archive, "a100_sxm4_80gb_x8", plan=dict(slices=[4], slice_lengths="equal_time"), **ask)
    ends = planned.slice_ends
    share = (0.25 - ends[0] ** 2) / (ends[0] - ends[0] ** 2)
    assert 0.5 < share < 0.99
    assert [share * end + (1 - share) * end**2 for end in ends] == pytest.approx([0.25, 0.5, 0.75, 1], abs=2e-3)
    equal = pfeife.plan(archive, "a100_sxm4_80gb_x8", plan=dict(slices=[4], slice_lengths="equal_length"), **ask)
    assert equal.slice_ends == [0.25, 0.5, 0.75, 1]
    whole = pfeife.plan(archive, "a100_sxm4_80gb_x8", **{**ask, "families": ["1f1b"]})
    assert whole.slice_ends == []


def test_in_the_words_of_a_framework(tmp_path, configs):
    ask = dict(devices=4, microbatches=8, precision="bf16_amp", iterations=1, baselines=[], engines=["estimate"])
    plan = pfeife.plan(configs / "models" / "llama2_7b.pt2", "a100_sxm4_80gb_x8", plan={"for": "megatron"}, **ask)
    exported = plan.export("megatron", tmp_path)
    layout = exported.text.split("layout '")[1].split("'")[0]
    blocks = [block.strip("EL") for block in layout.split("|")]  # "t*8", "t", ""
    counts = [int(block[2:] or len(block)) for block in blocks]
    assert sum(counts) == 32 and len(counts) % 4 == 0 and exported.lost == []
    assert (tmp_path / "megatron_args.sh").read_text() == exported.text == str(exported)
    assert set(plan.export("chakra").files) == {f"plan.{rank}.et" for rank in range(4)}
    with pytest.raises(pfeife.ConfigError, match="did you mean megatron"):
        plan.export("megatorn")


def test_meshes(configs):
    llama = configs / "architectures" / "llama3_8b.yaml"
    on_8, two = pfeife.mesh(llama, "h100_sxm_hosts", devices=[8, 16], sequence=2048, batch=64, frame=False)
    assert on_8["fits"] and on_8["tokens_per_second"] < two["tokens_per_second"] < 2.001 * on_8["tokens_per_second"]
    # 6 FLOPs a parameter and token (and attention) of 8 H100, 989 TFLOP/s each, are at most all that they do.
    assert 6 * 8.03e9 * on_8["tokens_per_second"] < on_8["mfu"] * 8 * 989e12 < 8 * 989e12
    assert on_8["step_ms"] * on_8["tokens_per_second"] == pytest.approx(64 * 2048 * 1000)
    with pytest.raises(pfeife.ConfigError, match="nowhere"):
        pfeife.mesh("nowhere.yaml", "h100_sxm_hosts")


def test_a_report_needs_nothing_else(tiny):
    import re

    page = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=4, **QUICK).report()
    links = re.findall(r"""(?:href|src)=["']([^"']*)["']""", page)
    assert [link for link in links if not link.startswith(("#", "data:", "http"))] == []


@pytest.mark.parametrize(
    "keywords, words",
    [
        (dict(precision="tf33"), ["training.precision", "tf32"]),
        (dict(precisoin="tf32"), ["precisoin", "did you mean 'precision'"]),
        (dict(devices=3), ["3", "2"]),
        (dict(families=["gpip"]), ["gpip", "gpipe"]),
        (dict(launch_overhead=5), ["launch_overhead", "5"]),
        (dict(devices=[1, 2]), ["2 cases"]),
    ],
)
def test_mistakes_in_the_programs_words(keywords, words):
    with pytest.raises(pfeife.ConfigError) as refused:
        pfeife.plan(two_layers(), two_devices(), **keywords)
    assert isinstance(refused.value, ValueError)
    for word in words:
        assert word in str(refused.value)
    assert "/proc" not in str(refused.value) and "keywords:" not in str(refused.value)


def test_what_this_does_not_do(tiny):
    with pytest.raises(pfeife.ConfigError, match="pfeife-exp does"):
        pfeife.plan(tiny, "laptop", engines=["measure"])


def test_unknown_clusters_and_models(tmp_path):
    with pytest.raises(pfeife.ConfigError, match="did you mean 'a100_sxm4_40gb_x8'"):
        pfeife.plan(two_layers(), "a100_sxm4_40gb_x")
    with pytest.raises(pfeife.ConfigError, match="nowhere.pt2"):
        pfeife.plan(tmp_path / "nowhere.pt2", "laptop")
    with pytest.raises(pfeife.ConfigError, match="saved_bytes has 3 values, and there are 2 layers"):
        two_layers(saved_bytes=[1, 2, 3])


def test_nothing_fits_and_what_would_help():
    model = two_layers(parameter_bytes=[400 << 20, 100 << 20])  # with gradients and Adam 4 x 400 MiB > 1 GiB
    with pytest.raises(pfeife.Infeasible) as nothing:
        pfeife.plan(model, two_devices(), microbatches=2)
    assert "rank 0" in str(nothing.value)
    model = two_layers(saved_bytes=[300 << 20, 300 << 20])  # four microbatches of 300 MiB, one at a time fits
    with pytest.raises(pfeife.Infeasible) as nothing:
        pfeife.plan(model, two_devices(), microbatches=4, families=["gpipe"], recompute="none")
    assert nothing.value.helps and "would help" in str(nothing.value)


def test_a_sweep_resumes(tmp_path, tiny, capfd):
    ask = dict(devices=[1, 2], microbatches=[2, 4], folder=tmp_path, frame=False, cases={"training.precision": ["fp32"]})
    rows = pfeife.sweep(tiny, "3090_x8", progress=True, **ask, **QUICK)
    assert "4/4" in capfd.readouterr().err
    planned = [row for row in rows if row["plan"] == "planned"]
    assert [(row["devices"], row["microbatches"]) for row in planned] == [(1, 2), (1, 4), (2, 2), (2, 4)]
    assert all(row["feasible"] is True for row in planned)
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("case.json")}
    assert len(kept) == 4
    assert pfeife.sweep(tiny, "3090_x8", progress=True, **ask, **QUICK) == rows
    assert capfd.readouterr().err == ""
    assert kept == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("case.json")}
    loaded = pfeife.load_plan(next(tmp_path.glob("devices=2,*microbatches=4*")) / "planned")
    assert loaded.estimated.step == pytest.approx(planned[3]["estimate_ms"], abs=1e-6)


def test_editors_and_type_checkers_know_the_keywords():
    from pfeife import _config

    file = REPOSITORY / "python/pfeife/_keys.py"
    if "PFEIFE_WRITE_KEYS" in os.environ:
        file.write_text(_config.keys_module())
    assert file.read_text() == _config.keys_module()
    checker = shutil.which("mypy")
    if checker is None:
        pytest.skip("no mypy")

    def mistakes(call):
        program = f'import pfeife\npfeife.{call}\n'
        asked = [checker, "--no-incremental", "--python-executable", sys.executable, "-c", program]
        return subprocess.run(asked, capture_output=True, text=True).stdout

    assert "Success" in mistakes('plan("m.pt2", "laptop", devices=2, microbatches=4, families=["1f1b"])')
    assert 'Unexpected keyword argument "microbatchs"' in mistakes('plan("m.pt2", "laptop", devices=2, microbatchs=4)')
    assert 'Unexpected keyword argument "device"' in mistakes('sweep("m.pt2", "laptop", device=[2])')


def without_times(rows):
    return [{key: value for key, value in row.items() if key != "search_s"} for row in rows]


def executors():
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    yield ThreadPoolExecutor(2)
    yield ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    with contextlib.suppress(ImportError):
        from distributed import Client, LocalCluster

        workers = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
        yield Client(workers).get_executor()
        workers.close()


def test_any_executor_plans_the_cases_of_a_sweep(tmp_path, tiny):
    """Of a model at hand, which no other process can open: rows as without, in the same order, and plans in the folder."""
    at_hand = Path(tiny).read_bytes()
    ask = dict(devices=[1, 2], microbatches=[2, 4], frame=False, **QUICK)
    rows = without_times(pfeife.sweep(at_hand, "3090_x8", **ask))
    for number, executor in enumerate(executors()):
        folder = tmp_path / str(number)
        with executor:
            assert without_times(pfeife.sweep(at_hand, "3090_x8", folder=folder, executor=executor, **ask)) == rows
        assert len(list(folder.rglob("plan.yaml"))) == 4
        assert without_times(pfeife.sweep(at_hand, "3090_x8", folder=folder, executor=None, **ask)) == rows


def test_a_case_that_dies_in_an_executor_is_named_and_the_rest_goes_on(tiny):
    from concurrent.futures import Future

    class Dying:
        submitted = 0

        def submit(self, work, *arguments):
            self.submitted += 1
            future = Future()
            if self.submitted == 2:
                future.set_exception(MemoryError("killed"))
            else:
                future.set_result(work(*arguments))
            return future

    with pytest.warns(UserWarning, match="microbatches=4 died and is left out: MemoryError: killed"):
        rows = pfeife.sweep(tiny, "3090_x8", devices=[2], microbatches=[2, 4, 8], frame=False, executor=Dying(), **QUICK)
    assert sorted({row["microbatches"] for row in rows}) == [2, 8]


def test_frames(tiny):
    pandas = pytest.importorskip("pandas")
    frame = pfeife.sweep(tiny, "3090_x8", devices=[1, 2], microbatches=[2], **QUICK)
    assert isinstance(frame, pandas.DataFrame) and frame.feasible.dtype == bool
    plan = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=2, **QUICK)
    events = plan.simulate().to_pandas()
    assert events.end.max() - events.start.min() == round(plan.step * 1e6)


def test_ask_and_tell(tiny):
    ask = dict(devices=2, microbatches=4, families=["gpipe", "1f1b"], stages_per_rank=[1])
    pricer = pfeife.Pricer(tiny, "3090_x8", **ask)
    legal = [i for i, (_, may_be_cut) in enumerate(pricer.layers[:-1]) if may_be_cut]
    choices = [{**spec, "cuts": [cut]} for spec in pricer.schedules for cut in legal]
    prices = pricer.price(choices)
    best = min(price.step for price in prices if price.fits)
    plan = pfeife.plan(tiny, "3090_x8", select_by="estimate", baselines=[], **ask)
    assert plan.estimated.step == best  # all of them were tried
    with pytest.raises(pfeife.ConfigError, match="stages"):
        pricer.price([{"family": "1f1b", "cuts": [1, 2]}])
    with pytest.raises(pfeife.ConfigError, match="'cut'"):
        pricer.price([{"family": "1f1b", "cut": [1]}])


def test_several_threads_plan_at_once(tiny):
    steps = [0.0] * 4
    beside = 0

    def work(number):
        steps[number] = pfeife.plan(tiny, "3090_x8", devices=2, microbatches=4, threads=1, **QUICK).step

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        beside += 1
        time.sleep(0.001)
    assert len(set(steps)) == 1 and steps[0] > 0
    assert beside > 10  # this thread was never held up


def test_progress_is_a_share(tiny):
    shares = []
    pfeife.plan(tiny, "3090_x8", devices=4, microbatches=8, progress=shares.append, baselines=[])
    assert shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 1

    def fail(share):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pfeife.plan(tiny, "3090_x8", devices=4, microbatches=8, progress=fail, baselines=[])


def test_an_interrupt_ends_a_search(configs):
    program = f"""
import pfeife, time
print("ready", flush=True)
try:
    pfeife.plan({str(configs / "models" / "vit_g14.pt2")!r}, "a100_sxm4_40gb_x8", devices=8, microbatches=32)
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    ended = float(process.stdout.readline())
    assert ended - sent < 0.5
    assert process.wait() == 0


def test_what_is_shipped_is_found_by_name_from_any_folder(tmp_path, monkeypatch, tiny):
    monkeypatch.chdir(tmp_path)
    few = {"devices": 2, "microbatches": 2, "iterations": 1, "families": ["1f1b"], "engines": ["estimate"]}
    assert pfeife.plan("tiny_gpt", "3090_x8", **few).step == pfeife.plan(tiny, "3090_x8", **few).step
    [row] = pfeife.mesh("llama3_8b", "h100_sxm_hosts", devices=8, frame=False)
    assert row["fits"]


def test_no_torch_and_no_build_path():
    folder = Path(pfeife.__file__).parent
    program = "import pfeife, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
    assert os.access(folder / "pfeife_sim_server", os.X_OK)
    for file in (*folder.glob("_core*.so"), folder / "pfeife_sim_server"):
        assert b"/build/release" not in file.read_bytes()
    assert (folder / "py.typed").exists() and (folder / "_core.pyi").exists()
    assert json.dumps(pfeife.cluster_names())
    assert np.__version__


# The optimizer's step has an I in its name, and splits no backward.
def test_a_sliced_plan_that_cannot_run_is_planned_again_without_slices(tiny):
    from pfeife._plan import _without

    request = dict(devices=2, microbatches=4, precision="fp32", families=["seq1f1b", "1f1b"], slices=2, recompute="none")
    found = pfeife.plan(tiny, "a100_sxm4_40gb_x8", **{**request, "families": ["seq1f1b"]})
    assert _without(found, tiny, "a100_sxm4_40gb_x8", request) == ({**request, "slices": None, "families": ["1f1b"]}, "slices")


# Without torch there is no Pipeline, and `from pfeife import *` must work all the same.
def test_all_public_names_are_listed_and_there():
    names = {}
    exec("from pfeife import *", names)
    assert set(pfeife.__all__) <= names.keys() and set(pfeife.__all__) <= set(dir(pfeife))
    assert ("Pipeline" in names) == (importlib.util.find_spec("torch") is not None)
