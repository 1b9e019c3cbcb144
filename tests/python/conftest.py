import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(os.environ.get("PFEIFE_SOURCE", Path(__file__).resolve().parents[2]))


@pytest.fixture
def configs() -> Path:
    return REPOSITORY / "configs"


@pytest.fixture
def tiny(configs):
    return configs / "models" / "tiny_gpt.pt2"


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """found(PROGRAM, RANKS): [rank] what each case of the program found, by name; so many ranks run once, all cases together."""

    @functools.cache
    def ran(program, ranks):
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        return folder, subprocess.run([sys.executable, program, str(ranks), folder], stderr=subprocess.PIPE, text=True)

    def by_rank(program, ranks):
        folder, done = ran(program, ranks)
        assert done.returncode == 0, done.stderr
        return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]

    return by_rank
