"""A line chart as SVG: enough for the figures of this study."""
from dataclasses import dataclass, field
from html import escape
from math import floor, log10

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 64, 170, 40, 46


@dataclass
class Line:
    name: str
    points: list[tuple[float, float]]
    marks: list[tuple[float, float, str]] = field(default_factory=list)  # points with a word each
    hollow: list[tuple[float, float]] = field(default_factory=list)  # of plans that do not fit
    dots: bool = False
    dashed: bool = False


def ticks(least: float, most: float, about: int = 6) -> list[float]:
    raw = (most - least) / about or 1
    unit = 10 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = -floor(-least / step)
    return [step * i for i in range(first, first + int((most - first * step) / step + 1e-9) + 1)]


def line_chart(title: str, x_name: str, y_name: str, lines: list[Line], x_ticks: list[float] | None = None) -> str:
    everything = [point for line in lines for point in line.points + line.hollow]
    xs, ys = [x for x, _ in everything], [y for _, y in everything]
    margin = 0.06 * (max(ys) - min(ys) or 1)
    low, high = min(ys) - margin, max(ys) + margin
    low = 0 if min(ys) >= 0 > low else low

    def px(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - min(xs)) / (max(xs) - min(xs) or 1)

    def py(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (high - low)

    def text(x, y, words, anchor="start", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 22, title, more='font-size="14" font-weight="bold"')]
    for y in ticks(low, high):
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(y):.1f}" y2="{py(y):.1f}" stroke="#ddd"/>',
                text(LEFT - 6, py(y) + 4, f"{y:g}", "end")]
    for x in x_ticks or ticks(min(xs), max(xs)):
        out += [f'<line x1="{px(x):.1f}" x2="{px(x):.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}" stroke="black"/>',
                text(px(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle")]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name, "middle"),
            text(16, (TOP + HEIGHT - BOTTOM) / 2, y_name, "middle", f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"'),
            f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>']
    names = []  # y of names already placed
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path = "M" + "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in line.points) if line.points else ""
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        if line.dots:
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.2" fill="{colour}"/>' for x, y in line.points if (x, y) not in line.hollow]
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.2" fill="white" stroke="{colour}"/>' for x, y in line.hollow]
        for x, y, words in line.marks:
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="4" fill="{colour}"/>', text(px(x), py(y) + 18, words, "middle", f'fill="{colour}"')]
        if line.points or line.hollow:
            at = py(line.points[-1][1])
            while any(abs(at - other) < 13 for other in names):
                at += 1
            names.append(at)
            out.append(text(WIDTH - RIGHT + 8, at + 4, line.name, more=f'fill="{colour}"'))
    return "\n".join(out) + "\n</svg>\n"
