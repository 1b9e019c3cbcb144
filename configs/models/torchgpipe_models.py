"""The three networks of torchgpipe's speed benchmarks, as sequences of the pieces that its balances count.

AmoebaNet-D: Real et al. 2019, with the cells of the TensorFlow reference (github.com/tensorflow/tpu, amoeba_net); 18 cells of 208 and of 416
filters have 81.5 and 319.0 M parameters here, 82 and 318 M in GPipe's Table 1. U-Net (B, C): Ronneberger et al. 2015 as torchgpipe's paper parametrises it. ResNet-101: He et al. 2016.
"""
import torch
from torch import nn
from torch.nn import functional as F


def activated(kernel, inputs: int, outputs: int, stride=1, padding=0) -> list[nn.Module]:
    return [nn.ReLU(), nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm2d(outputs)]


class Halve(nn.Module):
    """Half as many pixels each way: two 1x1 convolutions, one of them a pixel further."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.even = nn.Conv2d(inputs, outputs // 2, 1, 2, bias=False)
        self.odd = nn.Conv2d(inputs, outputs // 2, 1, 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = F.relu(x)
        return self.norm(torch.cat([self.even(x), self.odd(F.pad(x[:, :, 1:, 1:], (0, 1, 0, 1)))], 1))


def bottleneck(width: int, *inner) -> nn.Module:
    """1x1 down to a quarter, the inner convolutions (kernel, stride, padding), 1x1 up again."""
    narrow = width // 4
    layers = activated(1, width, narrow)
    for kernel, stride, padding in inner:
        layers += activated(kernel, narrow, narrow, stride, padding)
    return nn.Sequential(*layers, *activated(1, narrow, width))


# An operator of a cell, by width and stride. The reference pools by mean where the genotype says a maximum of 3x3.
OPERATORS = {
    "same": lambda c, s: nn.Identity() if s == 1 else Halve(c, c),
    "mean3": lambda c, s: nn.AvgPool2d(3, s, 1, count_include_pad=False),
    "max2": lambda c, s: nn.MaxPool2d(2, s),
    "conv1": lambda c, s: nn.Sequential(*activated(1, c, c, s)),
    "conv3": lambda c, s: bottleneck(c, (3, s, 1)),
    "conv7": lambda c, s: bottleneck(c, ((1, 7), (1, s), (0, 3)), ((7, 1), (s, 1), (3, 0))),
}
# A cell: pairs of (state, operator) whose sum is the next state, and the states that it gives on. States 0 and 1 are the inputs.
NORMAL = ([((1, "conv1"), (1, "mean3")), ((1, "same"), (0, "conv7")), ((0, "conv1"), (0, "conv7")), ((2, "mean3"), (2, "same")), ((1, "mean3"), (5, "conv1"))],
          (0, 3, 4, 6))
REDUCTION = ([((0, "max2"), (0, "mean3")), ((2, "same"), (1, "conv3")), ((2, "conv7"), (2, "mean3")), ((3, "same"), (1, "max2")), ((2, "mean3"), (3, "conv1"))],
             (4, 5, 6))


class AmoebaCell(nn.Module):
    def __init__(self, before_last: int, last: int, width: int, reduces: bool, after_reduction: bool):
        super().__init__()
        self.pairs, self.kept = REDUCTION if reduces else NORMAL
        self.last = nn.Sequential(*activated(1, last, width))
        self.before_last = (Halve(before_last, width) if after_reduction else
                            nn.Sequential(*activated(1, before_last, width)) if before_last != width else nn.Identity())
        self.operators = nn.ModuleList(OPERATORS[name](width, 2 if reduces and state < 2 else 1) for pair in self.pairs for state, name in pair)

    def forward(self, last, before_last):
        states = [self.last(last), self.before_last(before_last)]
        for i, ((first, _), (second, _)) in enumerate(self.pairs):
            states.append(self.operators[2 * i](states[first]) + self.operators[2 * i + 1](states[second]))
        return torch.cat([states[i] for i in self.kept], 1), last


class AmoebaNetD(nn.Module):
    """24 pieces for 18 normal cells: the stem, two reductions, three thirds of the cells with a reduction between, the classifier."""

    def __init__(self, cells: int = 18, filters: int = 256, classes: int = 1000):
        super().__init__()
        width = filters // 4
        self.stem = nn.Sequential(nn.ReLU(), nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width))
        self.cells = nn.ModuleList()
        before_last = last = width
        after_reduction = False
        for reduces in [True, True, *([False] * (cells // 3)), True, *([False] * (cells // 3)), True, *([False] * (cells // 3))]:
            width *= 2 if reduces else 1
            cell = AmoebaCell(before_last, last, width, reduces, after_reduction)
            before_last, last, after_reduction = last, width * len(cell.kept), reduces
            self.cells.append(cell)
        self.classifier = nn.Linear(last, classes)

    def forward(self, images, labels):
        last = before_last = self.stem(images)
        for cell in self.cells:
            last, before_last = cell(last, before_last)
        return F.cross_entropy(self.classifier(F.avg_pool2d(last, 7).flatten(1)), labels)


class UNet(nn.Module):
    """U-Net (B, C): five levels of B convolutions, C channels at the top; each convolution is four pieces."""

    def __init__(self, convolutions: int = 5, channels: int = 64, levels: int = 5):
        super().__init__()
        widths = [channels * 2 ** level for level in range(levels)]

        def level(inputs: int, inner: int, outputs: int) -> nn.Sequential:
            sizes = [inputs, *([inner] * (convolutions - 1)), outputs]
            return nn.Sequential(*(layer for a, b in zip(sizes, sizes[1:]) for layer in
                                   (nn.Conv2d(a, b, 3, padding=1, bias=False), nn.Dropout2d(0.1), nn.InstanceNorm2d(b), nn.LeakyReLU(0.01))))

        self.encoder = nn.ModuleList(level(before, width, width) for before, width in zip([3, *widths], widths))
        self.bottom = level(widths[-1], 2 * widths[-1], widths[-1])
        self.decoder = nn.ModuleList(level(2 * width, width // 2, width // 2) for width in reversed(widths))
        self.segment = nn.Conv2d(channels // 2, 1, 1, bias=False)

    def forward(self, images, masks):
        x, skips = images, []
        for level in self.encoder:
            skips.append(level(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for level, skip in zip(self.decoder, reversed(skips)):
            x = level(torch.cat([F.interpolate(x, scale_factor=2.0), skip], 1))
        return F.binary_cross_entropy_with_logits(self.segment(x), masks)


class Bottleneck(nn.Module):
    """Ten pieces and the addition."""

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut = (nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
                         if stride > 1 or inputs != 4 * width else nn.Identity())

    def forward(self, x):
        inner = F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))
        return F.relu(self.norm3(self.conv3(inner)) + self.shortcut(x))


class ResNet101(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList()
        inputs = 64
        for width, repeats in ((64, 3), (128, 4), (256, 23), (512, 3)):
            for block in range(repeats):
                self.blocks.append(Bottleneck(inputs, width, 2 if block == 0 and width > 64 else 1))
                inputs = 4 * width
        self.classifier = nn.Linear(inputs, 1000)

    def forward(self, images, labels):
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.classifier(F.adaptive_avg_pool2d(x, 1).flatten(1)), labels)
