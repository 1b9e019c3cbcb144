"""What exporting shares with `pfeife.plan(module, ...)`: python/pfeife/_capture, of which nothing needs to be installed."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "pfeife"))
from _capture import Unexportable, grad_regions, loss_weight  # noqa: E402,F401
from _capture.archive import packed, strip_archive  # noqa: E402,F401
from _capture.capture import masks_as_in_eager_mode, with_fake_weights, without_contents  # noqa: E402,F401
from _capture.grad_regions import inline_regions, recorded_as_it_trains, refuse_hooks, refuse_untraced  # noqa: E402,F401
