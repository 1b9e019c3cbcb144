"""What exporting shares with `pfeife.plan(module, ...)`: python/pfeife/_capture, of which nothing needs to be installed."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "pfeife"))
from _capture import Unexportable, capture, grad_regions, loss_weight  # noqa: E402,F401
from _capture.archive import packed  # noqa: E402,F401
from _capture.errors import explained  # noqa: E402,F401
