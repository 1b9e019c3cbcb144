import os
from pathlib import Path

import pytest

REPOSITORY = Path(os.environ.get("PFEIFE_SOURCE", Path(__file__).resolve().parents[2]))


@pytest.fixture
def configs() -> Path:
    return REPOSITORY / "configs"


@pytest.fixture
def tiny(configs):
    return configs / "models" / "tiny_gpt.pt2"
