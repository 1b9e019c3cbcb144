"""What helps to write a config: schemas for editors, `check`, `init` and completion.

The judge of a schema is the program itself: what it refuses in a config, the schema refuses, too.
"""
import copy
import json
import os
import pathlib
import random
import subprocess

import jsonschema
import pytest
import yaml

SOURCE = pathlib.Path(os.environ["PFEIFE_SOURCE"])
CONFIGS = SOURCE / "configs"


def run(*words, cwd=None):
    return subprocess.run(["pfeife-exp", *map(str, words)], cwd=cwd, capture_output=True, text=True)


def schema(name):
    return json.loads(run("schema", name).stdout)


def validator(name):
    return jsonschema.Draft202012Validator(schema(name))


@pytest.mark.parametrize("name", ["config", "cluster", "architecture"])
def test_the_shipped_schema_is_what_the_program_prints(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert json.loads((CONFIGS / "schemas" / f"{name}.json").read_text()) == schema(name), (
        f"write it anew: pfeife-exp schema {name} > configs/schemas/{name}.json")


@pytest.mark.parametrize("name, folders", [("config", [".", "meshes"]), ("cluster", ["clusters"]),
                                           ("architecture", ["architectures"])])
def test_shipped_files_are_valid_and_name_their_schema(name, folders):
    files = [file for folder in folders for file in sorted((CONFIGS / folder).glob("*.yaml"))]
    assert files
    check = validator(name)
    for file in files:
        text = file.read_text()
        errors = [error.message for error in check.iter_errors(yaml.safe_load(text))]
        assert not errors, (file, errors)
        first = text.splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema="), file
        named = (file.parent / first.split("=", 1)[1]).resolve()
        assert named == (CONFIGS / "schemas" / f"{name}.json").resolve(), file


BASE = yaml.safe_load("""
version: 1
model: tables/two_stage.csv
cluster: {file: clusters/laptop.yaml, set: {device_kinds.laptop.memory: 8 GiB}}
training: {precision: fp32, optimizer: adam, mode: train, clip_norm: 1.5}
cases: {devices: [2], microbatches: [2, 4], plan.recompute: [none, full]}
plan: {families: [gpipe, 1f1b], stages_per_rank: [1], iterations: 10, recompute: none, reserve: 1 GiB,
       as_fast: 0.02, allocator: none, receives: if_needed, cuts: search}
baselines: [gpipe, {family: 1f1b, cuts: equal_layers, name: rival}]
simulation: {queues: edge, launch_overhead: 1 us, jitter: {cv: 0.05, repetitions: 10}}
engines: [estimate, simulate]
select_by: p95
step_below: 2 s
figures: [{x: microbatches, y: step, width: 3.3in}]
what_if: {slow: {rank: 1, factor: 1.1}}
""")


def leaves(value, path=()):
    """Paths of all keys and items, inner ones, too."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from leaves(below, (*path, key))


def holder(config, path):
    for key in path[:-1]:
        config = config[key]
    return config


def broken(random, path):
    """The base with one mistake at the path, and what it is."""
    config = copy.deepcopy(BASE)
    at, key = holder(config, path), path[-1]
    value = at[key]
    mistakes = ["type"]
    if isinstance(at, dict):
        mistakes += ["key", "key"]
    if isinstance(value, str) and path[0] != "cases":
        mistakes += ["word"]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        mistakes += ["range"]
    mistake = random.choice(mistakes)
    if mistake == "key":
        at[str(key) + random.choice("xq")] = at.pop(key)
    elif mistake == "type":
        at[key] = "no map" if isinstance(value, dict) else {"unexpected": "map"}
    elif mistake == "word":
        at[key] = value + "qq"
    else:
        at[key] = -7
    return config, f"{'.'.join(map(str, path))}: {mistake}"


# Files, names and paths of keys are not the schema's: that they are there, or wrong, it cannot know.
OPEN = {("model",), ("cluster",), ("cluster", "file"), ("cluster", "set"), ("baselines", 1, "name"),
        ("figures", 0, "x"), ("figures", 0, "y"), ("cases",), ("baselines", 0), ("plan", "cuts"),
        ("plan", "allocator"),
        ("plan", "recompute")}  # a list of `cases` replaces it


def test_the_schema_refuses_what_the_program_refuses(tmp_path):
    for folder in ("tables", "clusters"):
        (tmp_path / folder).symlink_to(CONFIGS / folder)
    check, draw = validator("config"), random.Random(68)
    file = tmp_path / "config.yaml"

    def verdicts(config):
        file.write_text(yaml.safe_dump(config))
        asked = run("check", file)
        assert asked.returncode in (0, 2), asked.stderr
        return asked, list(check.iter_errors(config))

    asked, errors = verdicts(BASE)
    assert asked.returncode == 0, asked.stderr
    assert "no mistakes; 4 cases" in asked.stdout
    assert not errors
    paths = [path for path in leaves(BASE)
             if path not in OPEN and path[:2] != ("cluster", "set") and path[0] != "cases"]
    differ, refused = [], 0
    for _ in range(200):
        config, what = broken(draw, draw.choice(paths))
        asked, errors = verdicts(config)
        refused += asked.returncode == 2
        if (asked.returncode == 2) != bool(errors):
            differ.append(f"{what}: {asked.stderr or 'passes check'}{len(errors)} errors of the schema")
    assert not differ, "\n".join(differ)
    assert refused > 180


def test_init_writes_a_config_that_passes_check_and_plans(tmp_path):
    for model, cluster in ((CONFIGS / "tables/two_stage.csv", CONFIGS / "clusters/laptop.yaml"),
                           (CONFIGS / "architectures/llama3_8b.yaml", CONFIGS / "clusters/h100_sxm_hosts.yaml")):
        out = tmp_path / "folder" / (model.stem + ".yaml")
        out.parent.mkdir(exist_ok=True)
        made = run("init", model, cluster, "--out", out, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        assert run("check", out).returncode == 0, run("check", out).stderr
        assert not list(validator("config").iter_errors(yaml.safe_load(out.read_text())))
        again = run("init", model, cluster, "--out", out, cwd=tmp_path)
        assert again.returncode == 2 and "is there already" in again.stderr


def test_check_says_where_a_mistake_is(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("version: 1\nmodel: nowhere.csv\ncluster: c.yaml\n")
    asked = run("check", file)
    assert asked.returncode == 2
    assert "config.yaml:2:" in asked.stderr


def test_completion_offers_verbs_options_and_keys():
    for shell in ("bash", "zsh"):
        assert run("completion", shell).returncode == 0
    script = run("completion", "bash").stdout

    def offered(*words):
        line = " ".join(f"'{word}'" for word in ("pfeife-exp", *words))
        ask = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _pfeife_exp; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return subprocess.run(["bash", "-c", ask], capture_output=True, text=True).stdout.split()

    assert "check" in offered("ch")
    assert offered("a.yaml", "--ver") == ["--verbose", "--version"]
    assert "plan.recompute=" in offered("a.yaml", "--set", "plan.rec")
    assert offered("schema", "cl") == ["cluster"]
    assert run("completion", "fish").returncode == 2
