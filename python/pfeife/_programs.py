"""The command line's programs, which lie beside the module."""

import os
import sys
from pathlib import Path


def _run(name: str) -> None:
    program = Path(__file__).with_name(name)
    os.execv(program, [name, *sys.argv[1:]])


def experiment() -> None:
    _run("pfeife-exp")


def schedule() -> None:
    _run("pfeife-schedule")
