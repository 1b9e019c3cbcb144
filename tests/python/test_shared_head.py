"""Heads that all ranks share, beside the plain module: each family of rows with S and T, in processes of this machine, in fp64."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import pipeline_heads  # noqa: E402
from pfeife._schedule import Action  # noqa: E402
from pfeife._shared_head import barriers_of, shares_of  # noqa: E402
from test_pipeline import bound  # noqa: E402

CASES = {ranks: list(pipeline_heads.cases(ranks)) for ranks in (2, 4)}


@pytest.mark.parametrize("ranks, case", [(ranks, case) for ranks in CASES for case in CASES[ranks]])
def test_trains_as_the_plain_module(found, ranks, case):
    for rank, cases in enumerate(found(pipeline_heads.__file__, ranks)):
        assert case in cases, f"rank {rank} ended before: {list(cases)[-1:]}"
        assert "error" not in cases[case], cases[case]["error"]
        far = {what: value for what, value in cases[case].items() if not isinstance(value, float) or not value <= bound(what)}
        assert far == {}, f"rank {rank}"


@pytest.mark.parametrize("words, ranks", [(11, 2), (11, 4), (9, 4), (2, 4), (128, 8)])
def test_words_are_divided_as_torch_divides(words, ranks):
    parts = torch.arange(words).chunk(ranks)
    sizes = [len(part) for part in parts] + [0] * (ranks - len(parts))
    assert [share.end - share.begin for share in shares_of(words, ranks)] == sizes


def test_a_late_t_of_the_last_stage_says_one_barrier():
    def row(*kinds):
        return [Action(kind, 1, 0, 1, f"1{kind}0") for kind in kinds]

    assert [barriers_of([row(*kinds)]) for kinds in ("FSTB", "FSBT", "FB")] == [2, 1, 0]
