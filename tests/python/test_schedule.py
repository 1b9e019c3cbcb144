"""Schedules: made, edited, judged and timed."""

import pytest

import pfeife


# Figure 1 of Narayanan et al. 2021: (D - 1)(f + b) of bubble in a step of (N + D - 1)(f + b).
def test_a_familys_step_and_bubble():
    schedule = pfeife.schedule("1f1b", ranks=4, microbatches=8)
    trace = schedule.time(f=1, b=2)
    assert trace.step == (8 + 3) * 3
    assert trace.bubble == pytest.approx(3 / 11)
    # min(N, D - r) microbatches in flight on rank r
    assert [int(rank.bytes.max()) for rank in trace.memory] == [4, 3, 2, 1]


def test_costs_of_each_stage():
    trace = pfeife.schedule("gpipe", ranks=2, microbatches=1).time(f=[1, 2], i=1, w=[1, 3], transfer=0.5, launch=0.25)
    # F 1, transfer, F 2, B 1 + 3, transfer, B 1 + 1; four actions and the optimizer step, each launched for 0.25 ms
    assert trace.step == 1 + 0.5 + 2 + 4 + 0.5 + 2 + 5 * 0.25
    assert trace.attribution[0]["launch"] == 750_000


# N + D - 1 of them, one after the other: rows of F alone are a pass forward only.
def test_rows_of_forwards_alone():
    schedule = pfeife.Schedule([[f"{rank}F{m}" for m in range(8)] for rank in range(4)])
    assert schedule.violations() == "" and schedule.time(f=1).step == 8 + 3
    lowered = schedule.lower()
    assert lowered.violations(queues="rank", blocking=True) == "" and "0OPTIMIZER_STEP" not in lowered.cells[0]
    assert "rank 3" in repr(schedule) and schedule.svg(f=1).startswith("<svg")
    schedule.cells[0].append("0OPTIMIZER_STEP")
    assert "lacks B (or I and W)" in schedule.violations()


def test_text_both_ways():
    schedule = pfeife.schedule("zbv", ranks=4, microbatches=8)
    assert pfeife.Schedule(schedule.text()) == schedule
    assert pfeife.Schedule(schedule.cells) == schedule
    assert schedule.ranks == 4 and schedule.cells[0][0] == "0F0"
    assert schedule.svg(f=1, i=1, w=0.8).startswith("<svg")
    assert "rank 0" in repr(schedule)


def test_cells_are_edited_and_judged():
    schedule = pfeife.schedule("gpipe", ranks=2, microbatches=2)
    assert schedule.violations() == ""
    row = schedule.cells[1]
    row[row.index("1B0")], row[row.index("1F1")] = "1F1", "1B0"  # 1F1B on the last rank: the same step
    assert schedule.violations() == "" and schedule.time(f=1, b=2).step == 9
    row.remove("1B0")
    assert "lacks B (or I and W) of microbatch 0" in schedule.violations()
    with pytest.raises(pfeife.ConfigError, match="cannot run"):
        schedule.time()
    row.append("nonsense")
    with pytest.raises(pfeife.ConfigError, match="nonsense"):
        schedule.text()


def test_lowered():
    schedule = pfeife.schedule("1f1b", ranks=2, microbatches=2)
    lowered = schedule.lower(f=1, b=2)
    assert lowered.cells[0][:3] == ["0F0", "0SEND_F0", "0F1"]
    assert "0OPTIMIZER_STEP" in lowered.cells[0]
    assert "0OPTIMIZER_STEP" not in schedule.lower(for_torch=True).cells[0]
    assert lowered.violations(queues="pair") == ""


def test_built_for_costs():
    built = pfeife.schedule("zb_greedy", ranks=4, microbatches=8, f=1, i=1, w=1, most_in_flight=4)
    assert built.time(f=1, i=1, w=1).step < pfeife.schedule("1f1b", ranks=4, microbatches=8).time(f=1, i=1, w=1).step
    with pytest.raises(pfeife.ConfigError, match="1f1b"):
        pfeife.schedule("1f1b", ranks=4, microbatches=8, f=1)


def test_refused_points():
    with pytest.raises(pfeife.ConfigError, match="did you mean|interleaved"):
        pfeife.schedule("interleaved", ranks=4, microbatches=8)
    with pytest.raises(pfeife.ConfigError):
        pfeife.schedule("1f1b", ranks=0, microbatches=8)
    assert "gpipe" in pfeife.families()


# Slice 1 of microbatch 2 of three slices each is the seventh; the parts of an overlapped cell are in its order.
def test_actions_of_cells():
    schedule = pfeife.Schedule([["1F2.1", "1SKIP_SEND_F2.1>3", "1SEND_B0.2", "", "1OPTIMIZER_STEP"], ["0F0.2", "(4F4.0;3B0.1)OVERLAP_F_B"]])
    slices, (first, second) = schedule._actions()
    assert slices == 3
    assert first == [[("F", 1, 7, 1, "1F2.1")], [("SEND_F", 1, 7, 3, "1SKIP_SEND_F2.1>3")], [("SEND_B", 1, 2, 0, "1SEND_B0.2")], [], []]
    assert second == [[("F", 0, 2, 0, "0F0.2")], [("F", 4, 12, 4, "4F4.0"), ("B", 3, 1, 3, "3B0.1")]]
