"""Single operators for the study: name -> function(batch) like those of zoo.py. What an operator reads needs a gradient
(it is data + a parameter, an addition, which keeps nothing), and the loss is the sum of its (first) result.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Single(nn.Module):
    """`function(x, y, module)`, with x of `shape` behind the sample's dimension, y of `second`; `net` its own module."""

    def __init__(self, function, shape, second, net):
        super().__init__()
        self.function = function
        self.a = nn.Parameter(torch.rand(shape))
        self.b = nn.Parameter(torch.rand(second)) if second else None
        self.net = net

    def forward(self, data, other):
        x, y = data + self.a, None if self.b is None else other + self.b
        result = self.function(x, y, self.net)
        return (result[0] if isinstance(result, tuple) else result).sum()


def single(function, shape=(4, 8, 8), second=None, net=None):
    def build(batch):
        inputs = {"data": torch.rand(batch, *shape), "other": torch.rand(batch, *(second or shape))}
        return Single(function, shape, second, net() if net else None), inputs

    return build


def unary(function, **options):
    return single(lambda x, y, net: function(x), **options)


def binary(function, shape=(6, 8), second=(6, 8)):
    return single(lambda x, y, net: function(x, y), shape, second)


def module(build, shape=(4, 8, 8)):
    return single(lambda x, y, net: net(x), shape, None, build)


def places(x, count):
    """Integers below `count`, as many as x has in its last dimension, that need no gradient."""
    return torch.arange(x.shape[-1]) % count


OPERATORS = {
    **{name: unary(getattr(torch, name)) for name in (
        "abs", "acosh", "asinh", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "log",
        "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
        "square", "tan", "tanh", "trunc", "frac", "sinc")},
    **{name: unary(getattr(F, name)) for name in (
        "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
        "relu", "relu6", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink")},
    **{name + "_": unary(lambda x, f=getattr(F, name): f(x * 2, inplace=True).square()) for name in (
        "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "selu", "silu")},
    "glu": unary(lambda x: F.glu(x)),
    "softmax": unary(lambda x: x.softmax(-1) * 2), "log_softmax": unary(lambda x: x.log_softmax(-1) * 2),
    "threshold": unary(lambda x: F.threshold(x, 0.1, 0.2)),
    "clamp": unary(lambda x: x.clamp(0.2, 0.8)), "clamp_min": unary(lambda x: x.clamp_min(0.2)),
    "pow": unary(lambda x: x.pow(3)), "nan_to_num": unary(torch.nan_to_num), "logit": unary(lambda x: (x / 4).logit()),
    **{name: unary(lambda x, f=getattr(torch, name): f(x, dim=1)) for name in (
        "amax", "amin", "cummax", "cumprod", "cumsum", "logcumsumexp", "logsumexp", "max", "mean", "median",
        "min", "mode", "sort", "prod", "std", "std_mean", "sum", "var", "var_mean")},
    "max_all": unary(lambda x: x.max()), "norm": unary(lambda x: x.norm()),
    "vector_norm": unary(lambda x: torch.linalg.vector_norm(x, dim=-1)),
    "topk": unary(lambda x: x.topk(3)[0]), "kthvalue": unary(lambda x: x.kthvalue(3)[0]),
    **{name: binary(getattr(torch, name)) for name in (
        "add", "atan2", "div", "fmax", "fmod", "hypot", "logaddexp", "maximum", "minimum", "mul", "remainder", "sub",
        "xlogy")},
    "pow_tensor": binary(torch.pow), "lerp": binary(lambda x, y: torch.lerp(x, y, 0.3)),
    "addcmul": binary(lambda x, y: torch.addcmul(x, x, y)), "addcdiv": binary(lambda x, y: torch.addcdiv(x, x, y)),
    "where": binary(lambda x, y: torch.where(x > 0.5, x, y)), "masked_fill": unary(lambda x: x.masked_fill(x > 0.5, 0)),
    "kron": binary(torch.kron), "cross": binary(lambda x, y: torch.linalg.cross(x, y), (6, 3), (6, 3)),
    # products
    "bmm": binary(torch.bmm, (6, 8), (8, 5)), "matmul": binary(torch.matmul, (3, 6, 8), (3, 8, 5)),
    "baddbmm": single(lambda x, y, net: torch.baddbmm(x[:, :, :5], x, y), (6, 8), (8, 5)),
    "addbmm": single(lambda x, y, net: torch.addbmm(x[0, :, :5], x, y), (6, 8), (8, 5)),
    "mv": single(lambda x, y, net: torch.mv(x[0], y[0]), (6, 8), (8,)),
    "dot": single(lambda x, y, net: torch.dot(x[0], y[0]), (8,), (8,)),
    "inner": single(lambda x, y, net: torch.inner(x, y), (6, 8), (5, 8)),
    "outer": single(lambda x, y, net: torch.outer(x[0], y[0]), (8,), (5,)),
    "addmv": single(lambda x, y, net: torch.addmv(x[0, :, 0], x[0], y[0]), (6, 8), (8,)),
    "tensordot": single(lambda x, y, net: torch.tensordot(x, y, ([1, 2], [1, 2])), (6, 8), (6, 8)),
    "einsum": single(lambda x, y, net: torch.einsum("bij,bjk->bik", x, y), (6, 8), (8, 5)),
    "einsum_copies": single(lambda x, y, net: torch.einsum("bti,bhio->bhto", x, y), (6, 8), (3, 8, 5)),
    "einsum_three": single(lambda x, y, net: torch.einsum("bij,bjk,bkl->il", x, y, y.transpose(1, 2)), (6, 8), (8, 5)),
    "einsum_mul": single(lambda x, y, net: torch.einsum("bi,bj->bij", x, y), (6,), (5,)),
    "multi_dot": single(lambda x, y, net: torch.linalg.multi_dot([x[0], y[0], x[1]]), (6, 8), (8, 6)),
    "cdist": binary(torch.cdist, (6, 8), (5, 8)),
    "cdist_by_product": binary(torch.cdist, (30, 8), (40, 8)),
    "bilinear": single(lambda x, y, net: net(x, y), (6,), (5,), lambda: nn.Bilinear(6, 5, 7)),
    # convolutions
    "conv1d": module(lambda: nn.Conv1d(4, 6, 3, padding=1), (4, 8)), "conv2d": module(lambda: nn.Conv2d(4, 6, 3)),
    "conv2d_same": module(lambda: nn.Conv2d(4, 6, 3, padding="same")),
    "conv2d_groups": module(lambda: nn.Conv2d(4, 8, 3, groups=2, stride=2)),
    "conv2d_depthwise": module(lambda: nn.Conv2d(4, 4, 3, groups=4)),
    "conv3d": module(lambda: nn.Conv3d(4, 6, 3), (4, 6, 6, 6)),
    "conv_transpose1d": module(lambda: nn.ConvTranspose1d(4, 6, 3), (4, 8)),
    "conv_transpose2d": module(lambda: nn.ConvTranspose2d(4, 6, 3, stride=2)),
    "conv_transpose2d_groups": module(lambda: nn.ConvTranspose2d(4, 6, 3, groups=2)),
    "conv_transpose3d": module(lambda: nn.ConvTranspose3d(4, 6, 3), (4, 4, 4, 4)),
    # recurrent
    "lstm": module(lambda: nn.LSTM(8, 16, 2, batch_first=True), (5, 8)),
    "lstm_both_ways": module(lambda: nn.LSTM(8, 16, batch_first=True, bidirectional=True), (5, 8)),
    "lstm_projected": module(lambda: nn.LSTM(8, 16, batch_first=True, proj_size=4), (5, 8)),
    "gru": module(lambda: nn.GRU(8, 16, 2, batch_first=True), (5, 8)),
    "rnn_tanh": module(lambda: nn.RNN(8, 16, batch_first=True), (5, 8)),
    "lstm_cell": module(lambda: nn.LSTMCell(8, 16), (8,)), "gru_cell": module(lambda: nn.GRUCell(8, 16), (8,)),
    "rnn_tanh_cell": module(lambda: nn.RNNCell(8, 16), (8,)),
    # attention
    "sdpa": single(lambda x, y, net: F.scaled_dot_product_attention(x, y, y), (4, 6, 8), (4, 5, 8)),
    "sdpa_causal": unary(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
    "sdpa_grouped": single(lambda x, y, net: F.scaled_dot_product_attention(x, y, y, enable_gqa=True), (4, 6, 8), (2, 6, 8)),
    "multihead_attention": single(lambda x, y, net: net(x, x, x, need_weights=False), (6, 16), None,
                                  lambda: nn.MultiheadAttention(16, 4, batch_first=True)),
    # norms
    "batch_norm": module(lambda: nn.BatchNorm2d(4)), "group_norm": module(lambda: nn.GroupNorm(2, 4)),
    "instance_norm": module(lambda: nn.InstanceNorm2d(4, affine=True)), "layer_norm": module(lambda: nn.LayerNorm(8)),
    "rms_norm": module(lambda: nn.RMSNorm(8)), "local_response_norm": module(lambda: nn.LocalResponseNorm(2)),
    # pools and sampling
    "avg_pool1d": module(lambda: nn.AvgPool1d(2), (4, 8)), "avg_pool2d": module(lambda: nn.AvgPool2d(2)),
    "avg_pool3d": module(lambda: nn.AvgPool3d(2), (4, 4, 4, 4)), "max_pool1d": module(lambda: nn.MaxPool1d(2), (4, 8)),
    "max_pool2d": module(lambda: nn.MaxPool2d(2)), "max_pool3d": module(lambda: nn.MaxPool3d(2), (4, 4, 4, 4)),
    "adaptive_avg_pool1d": module(lambda: nn.AdaptiveAvgPool1d(2), (4, 8)),
    "adaptive_avg_pool2d": module(lambda: nn.AdaptiveAvgPool2d(2)),
    "adaptive_avg_pool3d": module(lambda: nn.AdaptiveAvgPool3d(2), (4, 4, 4, 4)),
    "adaptive_max_pool2d": module(lambda: nn.AdaptiveMaxPool2d(2)),
    **{"upsample_" + mode: unary(lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode))
       for mode in ("nearest", "bilinear", "bicubic")},
    "grid_sample": single(lambda x, y, net: F.grid_sample(x, y, align_corners=False), (4, 8, 8), (6, 6, 2)),
    "pixel_shuffle": unary(lambda x: F.pixel_shuffle(x, 2)), "unfold": unary(lambda x: F.unfold(x, 3)),
    **{"pad_" + mode: unary(lambda x, mode=mode: F.pad(x, (1, 1, 1, 1), mode=mode))
       for mode in ("constant", "reflect", "replicate", "circular")},
    # look-ups and scatters
    "embedding": single(lambda x, y, net: net(places(x, 10)), (4, 8), None, lambda: nn.Embedding(10, 6)),
    "embedding_bag": single(lambda x, y, net: net(places(x, 10).view(2, 4)), (4, 8), None,
                            lambda: nn.EmbeddingBag(10, 6, mode="sum")),
    "index": unary(lambda x: x[:, places(x, 4)]), "index_select": unary(lambda x: x.index_select(1, places(x, 4))),
    "gather": unary(lambda x: x.gather(3, torch.zeros(x.shape, dtype=torch.long))),
    "scatter": binary(lambda x, y: x.scatter(2, torch.zeros(y.shape, dtype=torch.long), y)),
    "scatter_add": binary(lambda x, y: x.scatter_add(2, torch.zeros(y.shape, dtype=torch.long), y)),
    "index_add": binary(lambda x, y: x.index_add(2, places(x, 8), y)),
    "index_put": unary(lambda x: x.index_put((torch.zeros(1, dtype=torch.long),), x[1:])),
    "take_along_dim": unary(lambda x: x.take_along_dim(torch.zeros((1, 1, 1, 8), dtype=torch.long), 3)),
    "repeat_interleave": unary(lambda x: x.repeat_interleave(2, 1)), "repeat": unary(lambda x: x.repeat(1, 2, 1, 1)),
    # losses
    **{name: binary(getattr(F, name)) for name in (
        "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss",
        "cosine_similarity")},
    "binary_cross_entropy": single(lambda x, y, net: F.binary_cross_entropy(x / 4, y.detach() / 4), (6,), (6,)),
    "nll_loss": unary(lambda x: F.nll_loss(x, torch.zeros(2, dtype=torch.long)), shape=(6,)),
    "cross_entropy": unary(lambda x: F.cross_entropy(x, torch.zeros(2, dtype=torch.long)), shape=(6,)),
    # others
    "fft": unary(lambda x: torch.fft.fft(x).real), "rfft2": unary(lambda x: torch.fft.rfft2(x).imag),
    "irfft": unary(lambda x: torch.fft.irfft(torch.fft.rfft(x))),
    "tril": unary(torch.tril), "flip": unary(lambda x: x.flip(1)), "roll": unary(lambda x: x.roll(1, 1)),
    "diagonal": unary(lambda x: x.diagonal(dim1=2, dim2=3)), "cat": binary(lambda x, y: torch.cat([x, y], 1)),
    "stack": binary(lambda x, y: torch.stack([x, y])), "prelu": module(lambda: nn.PReLU(4)),
    "dropout": module(lambda: nn.Dropout(0.5)), "dropout2d": module(lambda: nn.Dropout2d(0.5)),
    "alpha_dropout": module(lambda: nn.AlphaDropout(0.5)),
}

# Why an operator is further off than 1 %, besides what flop_check.py finds out.
REASONS = {
    "logsigmoid": "kept: on a CPU a buffer of its size as well",
    "take_along_dim": "kept: the indices, repeated to the size of the tensor",
    "cosine_similarity": "kept: composed of operators that keep both vectors several times",
    "nll_loss": "kept: a scalar",
}
