"""What cannot be computed slice by slice is refused, with the operator that is in the way."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import torch.nn.functional as F  # noqa: E402
from pfeife import ConfigError  # noqa: E402
from pfeife._slices import Slices  # noqa: E402
from pfeife._stages import Program  # noqa: E402
from pipeline_models import tokens  # noqa: E402
from pipeline_ranks import Captured  # noqa: E402
from torch import nn  # noqa: E402


class Middle(nn.Module):
    """Embedding, something in between, and a head."""

    def __init__(self, between, loss=lambda scores, labels: F.cross_entropy(scores.flatten(0, 1), labels.flatten())):
        super().__init__()
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)
        self.mixing = nn.Conv1d(8, 8, 3, padding=1)
        self.between, self.loss = between, loss

    def forward(self, ids, labels):
        return self.loss(self.head(self.between(self, self.embedding(ids))), labels)


def attention(h, **how):
    q = h.unflatten(2, (2, 4)).transpose(1, 2)
    return F.scaled_dot_product_attention(q, q, q, **how).transpose(1, 2).flatten(2)


def sliced(module, lengths=None):
    capture = Captured(module, tokens(4, torch.Generator()))
    nodes = [node.name for node in capture.program.graph.nodes if node.op == "call_function"]
    return Slices(Program(capture, capture.parameters, capture.buffers, [{"nodes": nodes}]), [0.5, 1], lengths)


REFUSED = {
    "scaled_dot_product_attention.*is not causal": lambda self, h: attention(h),
    "scaled_dot_product_attention.*draws": lambda self, h: attention(h, is_causal=True, dropout_p=0.1),
    "mean .*meets the sequence": lambda self, h: h + h.mean(1, keepdim=True),
    "dropout .*draws": lambda self, h: F.dropout(h, 0.1),
    "conv1d .*meets the sequence": lambda self, h: self.mixing(h.transpose(1, 2)).transpose(1, 2),
    "cumsum .*meets the sequence": lambda self, h: h.cumsum(1),
    "softmax .*meets the sequence": lambda self, h: h.softmax(1),
    "matmul .*meets the sequence": lambda self, h: (h @ h.transpose(1, 2)).tril().softmax(-1) @ h,
    "layer_norm .*meets the sequence": lambda self, h: F.layer_norm(h, (6, 8)),
    "slice .*meets the sequence": lambda self, h: torch.cat([h[:, 1:], h[:, :1]], 1),
    "flip .*meets the sequence": lambda self, h: h.flip(1),
    "has the sequence along several": lambda self, h: (h.unsqueeze(2) * h.unsqueeze(1)).sum(2),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_mixes_positions_is_refused_by_name(why):
    with pytest.raises(ConfigError, match=why):
        sliced(Middle(REFUSED[why]))


def test_what_treats_positions_one_by_one_is_taken():
    sliced(Middle(lambda self, h: attention(F.layer_norm(h, (8,)), is_causal=True) + F.gelu(h).softmax(-1)))


def test_labels_of_the_next_position_and_other_losses_are_refused():
    shifted = Middle(lambda self, h: h, lambda scores, labels: F.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten()))
    with pytest.raises(ConfigError, match="slice .*meets the sequence"):
        sliced(shifted)
    with pytest.raises(ConfigError, match="sum .*meets the sequence"):
        sliced(Middle(lambda self, h: h, lambda scores, labels: scores.sum()))
    with pytest.raises(ConfigError, match="not the module's loss"):
        sliced(Middle(lambda self, h: h, lambda scores, labels: F.cross_entropy(scores.flatten(0, 1), labels.flatten()) * 2))


@pytest.mark.parametrize("lengths", [[3, 4], [6], [6, 0]])
def test_lengths_that_do_not_fit_are_refused(lengths):
    with pytest.raises(ConfigError, match="2 lengths of 1 and more that add up to 6"):
        sliced(Middle(lambda self, h: h), lengths)
