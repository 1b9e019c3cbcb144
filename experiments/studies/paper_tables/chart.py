"""Charts of the studies in Python as SVG: lines, grouped bars, grids of cells, dependency graphs.

What a plan or a case looks like is drawn by plots/, from records that pfeife-exp has; here are figures over many runs, which only the
studies' scripts have gathered. Colours and dashes are those of plots/, read from its sources.
"""
import re
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log, log10
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "plots/figure"


def listed(name: str, file: str) -> str:
    """What stands between the outer braces of a constant."""
    return re.search(rf"\b{name}\{{\{{?(.*?)\}}\}}?;", (SOURCES / file).read_text(), re.DOTALL)[1]


def colours(text: str) -> list[str]:
    return ["#" + "".join(channels) for channels in re.findall(r"0x(\w\w), 0x(\w\w), 0x(\w\w)", text)]


COLOURS = colours(listed("kColors", "line_looks.cc"))
DASHES = re.findall(r'"(.*?)"', listed("kDashes", "line_looks.cc"))
INK, ALARM = (colours(listed(name, "theme.h"))[0] for name in ("kInk", "kAlarm"))
# By letter, of an event's kind.
FILLS = {letter: colours(fill)[0] for fill, letter in re.findall(r'(\{0x.*?\}), .*?, "(\w+)"', listed("kLooks", "theme.cc"))[:4]}


def look(number: int) -> tuple[str, str]:
    """Colour and dash of a line (line_look in line_looks.cc)."""
    colour, turn = number % len(COLOURS), number // len(COLOURS) % 2
    return COLOURS[colour], DASHES[2 * turn + colour % 2]


def ink_on(fill: str) -> str:
    """Black or white, whichever has more contrast (WCAG 2.1)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (int(fill[i:i + 2], 16) / 255 for i in (1, 3, 5))]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 64, 170, 40, 46


def text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def document(width: float, height: float, title: str, elements: list[str]) -> str:
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>',
            text(LEFT, 22, title, more='font-size="14" font-weight="bold"')]
    return "\n".join(head + elements) + "\n</svg>\n"


@dataclass
class Line:
    name: str
    points: list[tuple[float, float]]
    marks: list[tuple[float, float, str]] = field(default_factory=list)  # points with a word each
    hollow: list[tuple[float, float]] = field(default_factory=list)  # of plans that do not fit
    dots: bool = False
    dashed: bool = False
    steps: bool = False  # the value holds until the next point
    ours: bool = False  # black and thick


def ticks(least: float, most: float, about: int = 6) -> list[float]:
    raw = (most - least) / about or 1
    unit = 10 ** floor(log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = -floor(-least / step)
    return [step * i for i in range(first, first + int((most - first * step) / step + 1e-9) + 1)]


def path_of(points: list[tuple[float, float]], steps: bool) -> str:
    if not points:
        return ""
    out = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for x, y in points[1:]:
        out += f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}"
    return out


def name_places(wanted: list[float], apart: float = 13) -> list[float]:
    """Heights for names: as wanted but so far apart, in the same order, none below the axis."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = list(wanted)
    for before, after in zip(order, order[1:]):
        places[after] = max(places[after], places[before] + apart)
    limit = HEIGHT - BOTTOM
    for i in reversed(order):
        places[i] = min(places[i], limit)
        limit = places[i] - apart
    return places


def line_chart(title: str, x_name: str, y_name: str, lines: list[Line], x_ticks: list[float] | None = None,
               y_range: tuple[float, float] | None = None) -> str:
    everything = [point for line in lines for point in line.points + line.hollow]
    xs, ys = [x for x, _ in everything], [y for _, y in everything]
    margin = (0.1 if any(line.marks for line in lines) else 0.06) * (max(ys) - min(ys) or 1)  # marks have words below
    low, high = y_range or (0 if min(ys) >= 0 > min(ys) - margin else min(ys) - margin, max(ys) + margin)

    def px(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * (x - min(xs)) / (max(xs) - min(xs) or 1)

    def py(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - low) / (high - low)

    out = []
    for y in ticks(low, high):
        out += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(y):.1f}" y2="{py(y):.1f}" stroke="#ddd"/>',
                text(LEFT - 6, py(y) + 4, f"{y:g}", "end")]
    for x in x_ticks or ticks(min(xs), max(xs)):
        out += [f'<line x1="{px(x):.1f}" x2="{px(x):.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}" stroke="black"/>',
                text(px(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle")]
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name, "middle"),
            text(16, (TOP + HEIGHT - BOTTOM) / 2, y_name, "middle", f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"'),
            f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>']
    places = name_places([py((line.points or line.hollow)[-1][1]) for line in lines if line.points or line.hollow])
    others = (look(number) for number in range(2 * len(COLOURS)))
    for line in lines:
        colour, dash = (INK, "") if line.ours else next(others)
        path = path_of([(px(x), py(y)) for x, y in line.points], line.steps)
        if dash := "5 4" if line.dashed else dash:
            dash = f' stroke-dasharray="{dash}"'
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{2.4 if line.ours and not line.dashed else 1.6}"{dash}/>')
        if line.dots:
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.2" fill="{colour}"/>' for x, y in line.points if (x, y) not in line.hollow]
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.2" fill="white" stroke="{colour}"/>' for x, y in line.hollow]
        for x, y, words in line.marks:
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="4" fill="{colour}"/>', text(px(x), py(y) + 18, words, "middle", f'fill="{colour}"')]
        if line.points or line.hollow:
            out.append(text(WIDTH - RIGHT + 8, places.pop(0) + 4, line.name, more=f'fill="{colour}"'))
    return document(WIDTH, HEIGHT, title, out)


def bar_chart(title: str, y_name: str, panels: list[tuple[str, list[tuple[str, list[float]]]]], series: list[str]) -> str:
    """A panel is a name and groups; a group is a name and a bar of each series, from zero."""
    high = 1.08 * max(value for _, groups in panels for _, values in groups for value in values)
    groups_in_all = sum(len(groups) for _, groups in panels)
    slot = (WIDTH - LEFT - 16) / (groups_in_all + 0.5 * (len(panels) - 1))

    def py(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM - 18) * y / high

    out = [text(16, (TOP + HEIGHT - BOTTOM) / 2, y_name, "middle", f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"')]
    for y in ticks(0, high):
        out += [f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{py(y):.1f}" y2="{py(y):.1f}" stroke="#ddd"/>', text(LEFT - 6, py(y) + 4, f"{y:g}", "end")]
    for number, name in enumerate(series):
        out += [f'<rect x="{LEFT + 130 * number}" y="{TOP - 8}" width="11" height="11" fill="{COLOURS[number]}"/>', text(LEFT + 130 * number + 16, TOP + 2, name)]
    x, bar = float(LEFT), slot * 0.8 / len(series)
    for panel, groups in panels:
        out.append(text(x + slot * len(groups) / 2, HEIGHT - 8, panel, "middle", 'font-weight="bold"'))
        for name, values in groups:
            for number, value in enumerate(values):
                left = x + slot * 0.1 + bar * number
                out += [f'<rect x="{left:.1f}" y="{py(value):.1f}" width="{bar:.1f}" height="{py(0) - py(value):.1f}" fill="{COLOURS[number]}"/>',
                        text(left + bar / 2, py(value) - 3, f"{value:.0f}", "middle", 'font-size="9"')]
            out += [text(x + slot / 2, HEIGHT - BOTTOM + 12 + 11 * line, words, "middle", 'font-size="10"') for line, words in enumerate(name.split(", "))]
            x += slot
        x += slot / 2
    return document(WIDTH, HEIGHT, title, out + [f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{py(0):.1f}" y2="{py(0):.1f}" stroke="black"/>'])


@dataclass
class Cell:
    kind: str  # what the colour stands for; "" leaves the cell white
    words: str


def grid_chart(title: str, x_name: str, y_name: str, x_ticks: list[str], y_ticks: list[str],
               panels: list[tuple[str, list[list[Cell]]]], note: str) -> str:
    """Panels of cells beside one another, two in a row; a panel's rows go upwards like its y axis."""
    width, height, gap = 46, 26, 56
    wide, tall = width * len(x_ticks), height * len(y_ticks)
    found = {cell.kind: bool(cell.words) for _, rows in panels for row in rows for cell in row if cell.kind}
    kinds = sorted(found, key=lambda kind: (not found[kind], kind))
    colour = {kind: COLOURS[number] if found[kind] else "#dcdcdc" for number, kind in enumerate(kinds)}
    across = min(2, len(panels))
    total = LEFT + across * (wide + gap) + 20
    out = []
    for number, (name, rows) in enumerate(panels):
        left, top = LEFT + (number % across) * (wide + gap), 62 + (number // across) * (tall + 66)
        out.append(text(left, top - 6, name, more='font-weight="bold"'))
        for j, row in enumerate(rows):
            y = top + tall - (j + 1) * height
            out.append(text(left - 6, y + height / 2 + 4, y_ticks[j], "end"))
            for i, cell in enumerate(row):
                fill = colour.get(cell.kind, "#ffffff")
                out += [f'<rect x="{left + i * width}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="white"/>',
                        text(left + (i + 0.5) * width, y + height / 2 + 4, cell.words, "middle", f'fill="{ink_on(fill)}" font-size="10.5"')]
        out += [text(left + (i + 0.5) * width, top + tall + 14, tick, "middle") for i, tick in enumerate(x_ticks)]
        out += [f'<rect x="{left}" y="{top}" width="{wide}" height="{tall}" fill="none" stroke="#999"/>',
                text(left + wide / 2, top + tall + 30, x_name, "middle"),
                text(left - 40, top + tall / 2, y_name, "middle", f'transform="rotate(-90 {left - 40} {top + tall / 2})"')]
    below = 62 + ceil(len(panels) / across) * (tall + 66) - 8
    for number, kind in enumerate(kinds):
        x, y = LEFT + 190 * (number % 3), below + 20 * (number // 3)
        out += [f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour[kind]}"/>', text(x + 17, y, kind)]
    below += 20 * ceil(len(kinds) / 3)
    return document(total, below + 14, title, out + [text(LEFT, below + 2, note, more='font-size="11"')])
