#!/usr/bin/env python3
"""on_card with programs that only pretend: what it does after a failure, and after it was killed itself."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

TEST_GPU = """#!/bin/sh
case $1 in
  --gtest_list_tests) printf 'Suite.\\n  Good\\n  Bad  # GetParam() = 1\\n  Crash\\n'; exit 0 ;;
  *Suite.Good) exit 0 ;;
  *Suite.Crash) echo 'terminate called'; kill -ABRT $$ ;;
esac
printf 'file.cc:7: Failure\\nExpected equality\\n'; exit 1
"""
# The first call of assumptions writes a part of its answer and hangs.
CARD_PROBE = """#!/bin/sh
out= ; for word; do [ "$last" = --out ] && out=$word; last=$word; done
echo "$1" >>"$CALLS"
[ -n "$out" ] && echo '{"stream_pool": {"streams_before_one_comes_again": 32, "asked": 200}}' >"$out"
[ "$1" = assumptions ] && [ ! -e "$CALLS.hung" ] && touch "$CALLS.hung" && exec sleep 15
[ "$1" = nccl ] && echo 'card_probe: no NCCL' && exit 4
exit 0
"""


def check(right, what):
    if not right:
        sys.exit(f"on_card_test: {what}")


def main():
    place = Path(tempfile.mkdtemp())
    try:
        (place / "bin").mkdir()
        for name in ("on_card", "on_card_page.py"):
            shutil.copy(HERE / name, place)
        for name, text in (("bin/test_gpu", TEST_GPU), ("bin/card_probe", CARD_PROBE),
                           ("bin/pfeife-run", "#!/bin/sh\necho 'fine: all of it'\n"),
                           ("with_torch", "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n")):
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        calls = place / "calls"
        command = [sys.executable, str(place / "on_card"), str(place / "results"), "--stand-in"]
        environment = dict(os.environ, CALLS=str(calls))

        killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while not (place / "calls.hung").exists():
            time.sleep(0.05)
            check(killed.poll() is None, "ended before assumptions began")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        page = (place / "results/page.md").read_text()
        check("| assumptions | running |" in page, "the page does not say what is running")
        check(re.search(r"Suite.Bad, failed after [0-9.]+ s:\n```\nfile.cc:7: Failure\nExpected equality", page),
              "no first lines of a failed test")
        check("terminate called" in page, "no words of a test that crashed")
        check("1 passed, 2 failed" in page, "wrong verdicts")
        check("Suite.Good" not in page, "a line for each test that passed")

        calls.write_text("")
        again = subprocess.run(command, env=environment, capture_output=True, text=True)
        check(again.returncode == 1, f"exit code {again.returncode} though tasks have failed")
        done = calls.read_text().split()
        check(done[0] == "nccl" and done[-1] == "assumptions", f"began again or in another order: {done}")
        check(done.count("assumptions") == 1 and "--help" not in done, f"did something twice: {done}")
        results = json.loads((place / "results/results.json").read_text())
        check(results["tasks"]["assumptions"]["state"] == "done", "what was cut off was not done again")
        check(results["tasks"]["assumptions"]["tries"] == 2 and results["pieces"] == 2, "miscounted")
        page = (place / "results/page.md").read_text()
        check("Streams before one comes again: 32" in page, "an answer is not on the page")
        check("fine: all of it" in page, "what the doctor said is not on the page")
        check("card_probe: no NCCL" in page, "a failed task's message is not on the page")
        check("No time, rate or size below says anything about a GPU" in page, "does not say that it is the stand-in")

        calls.write_text("")
        subprocess.run(command, env=environment, capture_output=True)
        check(not calls.read_text(), "did again what was done")
        other = subprocess.run(command[:-1], env=environment, capture_output=True, text=True)
        check(other.returncode != 0 and "the results there are of the stand-in" in other.stderr, "mixed stand-in and card")
    finally:
        shutil.rmtree(place)


main()
