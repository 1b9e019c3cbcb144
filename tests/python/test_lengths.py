"""Steps over lists of microbatches of different lengths, beside the plain module on each; what is captured with open lengths."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import pfeife  # noqa: E402
import pipeline_lengths  # noqa: E402
from pfeife._executor import laid_out_like  # noqa: E402
from pfeife._messages import form_of  # noqa: E402
from pipeline_lengths import OPEN, Long, batch_of  # noqa: E402

CASES = {ranks: list(pipeline_lengths.cases(ranks)) for ranks in (2, 4)}


@pytest.mark.parametrize("ranks, case", [(ranks, case) for ranks in CASES for case in CASES[ranks]])
def test_trains_as_the_plain_module_on_the_same_microbatches(found, ranks, case):
    for rank, cases in enumerate(found(pipeline_lengths.__file__, ranks)):
        assert case in cases, f"rank {rank} ended before: {list(cases)[-1:]}"
        assert "error" not in cases[case], cases[case]["error"]
        far = {what: value for what, value in cases[case].items() if not isinstance(value, float) or not value <= 1e-12}
        assert far == {}, f"rank {rank}"


@pytest.mark.parametrize(
    "named, why",
    [
        ({"token": {1: "length"}}, "dynamic_shapes: there is no input 'token'; inputs: tokens, labels"),
        ({"tokens": {0: "length"}}, r"dynamic_shapes: dimension 0 of tokens \[4, 6\] counts samples, which may differ anyway"),
        ({"tokens": {2: "length"}}, r"dynamic_shapes: dimension 2 of tokens \[4, 6\] is none that it has"),
        ({"tokens": 1}, "dynamic_shapes: tokens has 1; a dimension and a name"),
    ],
)
def test_dimensions_that_cannot_be_open_are_refused(named, why):
    with pytest.raises(pfeife.Unexportable, match=why):
        pfeife.capture(Long(), **batch_of(4, 6, torch.Generator()), dynamic_shapes=named)


def test_a_length_that_a_weight_has_cannot_be_open():
    class Wide(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(6, 3), torch.nn.Linear(3, 1)

        def forward(self, x):
            return self.last(self.first(x)).pow(2).mean()

    with pytest.raises(pfeife.Unexportable, match="no graph of this model holds for other sizes in the dimensions of dynamic_shapes"):
        pfeife.capture(Wide(), x=torch.ones(4, 6), dynamic_shapes={"x": {1: "length"}})


def test_one_token_is_no_example_of_an_open_length():
    with pytest.raises(pfeife.Unexportable, match="is 1 long, of which torch.export makes a graph for this length alone"):
        pfeife.capture(Long(), **batch_of(4, 1, torch.Generator()), dynamic_shapes=OPEN)


def test_sizes_of_one_name_are_equal():
    batch = batch_of(4, 6, torch.Generator())
    with pytest.raises(pfeife.Unexportable, match="'length' of dynamic_shapes is 6 in dimension 1 of tokens .* and 5 in dimension 1 of labels"):
        pfeife.capture(Long(), tokens=batch["tokens"], labels=batch["labels"][:, 1:], dynamic_shapes=OPEN)


def test_the_planner_reads_the_lengths_of_the_example():
    """An archive with open lengths says what one without them says, but for the nodes that read lengths."""
    batch = batch_of(4, 6, torch.Generator())
    opened, fixed = (pfeife.capture(Long(), **batch, dynamic_shapes=shapes) for shapes in (OPEN, None))
    plans = [
        pfeife.plan(captured, pfeife.uniform_cluster(2, **pipeline_lengths.CLUSTER), microbatches=4, families=["1f1b"], baselines=[], calibration={"stage_overhead": "0 us"})
        for captured in (opened, fixed)
    ]
    assert plans[0].step == plans[1].step and plans[0].cuts == plans[1].cuts and list(plans[0].peaks) == list(plans[1].peaks)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (0, 2, 1), (1, 2, 0)])
def test_other_sizes_lie_in_memory_as_the_first_did(order):
    def tensor(sizes):
        return torch.empty([sizes[d] for d in order]).permute([order.index(d) for d in range(3)])

    for first, later in (((2, 3, 4), (5, 6, 7)), ((2, 3, 4), (1, 6, 7)), ((1, 3, 4), (1, 6, 7))):
        assert laid_out_like(form_of(tensor(first)), torch.Size(later)).stride == tuple(tensor(later).stride())
