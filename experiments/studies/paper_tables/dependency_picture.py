"""A plan's step as a labelled dependency graph: what waits for what, drawn from the trace.json of a plan without parallel links."""
import json
from dataclasses import dataclass, field
from pathlib import Path

from chart import ALARM, FILLS, INK, document, text

WIDE, TALL, ACROSS, DOWN = 76, 34, 104, 78
FILL = {"F": FILLS["F"], "B": FILLS["B"], "SEND": "#e8e8e8"}


@dataclass
class Node:
    kind: str  # F, B, SEND
    direction: str  # of a transfer: F or B
    stage: int
    microbatch: int
    begin: float  # ms
    length: float
    waited_for: str
    before: list[str] = field(default_factory=list)  # data
    earlier: str = ""  # the same device's last action
    level: int = 0


def nodes_of(trace: Path) -> dict[str, Node]:
    nodes = {}
    for event in json.loads(trace.read_text())["traceEvents"]:
        what = event.get("args", {})
        if "microbatch" not in what:
            continue
        words = what["action"].lstrip("0123456789")
        kind = "SEND" if words.startswith("SEND") else words[0]
        nodes[what["action"]] = Node(kind, words[5] if kind == "SEND" else "", what["stage"], what["microbatch"],
                                     event["ts"] / 1000, event["dur"] / 1000, what.get("waited_for", ""))
    return nodes


def link(nodes: dict[str, Node]) -> None:
    """Data goes through the stages and back; a device takes one action after the other."""
    last = max(node.stage for node in nodes.values())
    for node in nodes.values():
        s, m = node.stage, node.microbatch
        wanted = {"F": f"{s - 1}SEND_F{m}", "B": f"{s + 1}SEND_B{m}" if s < last else f"{s}F{m}",
                  "SEND": f"{s}{node.direction}{m}"}[node.kind]
        node.before = [name for name in [wanted] if name in nodes]
    for stage in range(last + 1):
        row = sorted((name for name, node in nodes.items() if node.stage == stage and node.kind != "SEND"), key=lambda name: nodes[name].begin)
        for first, second in zip(row, row[1:]):
            nodes[second].earlier = first
    for name in sorted(nodes, key=lambda name: (nodes[name].begin, nodes[name].kind == "SEND")):
        node = nodes[name]
        node.level = 1 + max((nodes[other].level for other in [*node.before, node.earlier] if other), default=-1)


def critical_path(nodes: dict[str, Node]) -> list[str]:
    name = max(nodes, key=lambda name: nodes[name].begin + nodes[name].length)
    path = []
    while name in nodes:
        path.append(name)
        name = nodes[name].waited_for
    return path[::-1]


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    tip = f"M{x2:.1f} {y2:.1f}L{x2 - 8 * ux - 3.5 * uy:.1f} {y2 - 8 * uy + 3.5 * ux:.1f}L{x2 - 8 * ux + 3.5 * uy:.1f} {y2 - 8 * uy - 3.5 * ux:.1f}Z"
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2 - 6 * ux:.1f}" y2="{y2 - 6 * uy:.1f}" stroke="{colour}" stroke-width="1.6" {more}/>'
            f'<path d="{tip}" fill="{colour}"/>')


def around(x1: float, x2: float, y: float, colour: str, more: str) -> str:
    """From the lower edge of a box to that of another one, below those between."""
    return f'<path d="M{x1:.1f} {y:.1f}C{x1 + 20:.1f} {y + 22:.1f} {x2 - 20:.1f} {y + 22:.1f} {x2:.1f} {y + 6:.1f}" fill="none" stroke="{colour}" stroke-width="1.6" {more}/>' + \
        f'<path d="M{x2:.1f} {y:.1f}L{x2 - 3.5:.1f} {y + 8:.1f}L{x2 + 3.5:.1f} {y + 8:.1f}Z" fill="{colour}"/>'


def picture(trace: Path, title: str) -> str:
    nodes = nodes_of(trace)
    link(nodes)
    path = critical_path(nodes)
    steps = set(zip(path, path[1:]))

    def row(node):  # device 0, its transfers, device 1, ...
        return 2 * node.stage + (0 if node.kind != "SEND" else 1 if node.direction == "F" else -1)

    def centre(node):
        return 96 + WIDE / 2 + ACROSS * node.level, 84 + DOWN * row(node)

    out = []
    for name, node in nodes.items():
        for other in [*node.before, node.earlier]:
            if not other:
                continue
            (x1, y1), (x2, y2) = centre(nodes[other]), centre(node)
            colour, dash = ALARM if (other, name) in steps else "#8a939e", "" if other in node.before else 'stroke-dasharray="3 3"'
            along = abs(y2 - y1) < 1
            if along and any(row(between) == row(node) and nodes[other].level < between.level < node.level for between in nodes.values()):
                out.append(around(x1, x2, y1 + TALL / 2, colour, dash))
                continue
            ends = (x1 + WIDE / 2, y1, x2 - WIDE / 2, y2) if along else (x1, y1 + (TALL / 2 if y2 > y1 else -TALL / 2), x2 - WIDE / 2 + 4 if x2 - x1 > ACROSS / 2 else x2,
                                                                         y2 + (-TALL / 2 if y2 > y1 else TALL / 2))
            out.append(arrow(*ends, colour, dash))
    for name, node in nodes.items():
        x, y = centre(node)
        words = f"{node.direction if node.kind == 'SEND' else node.kind}{node.microbatch}, {node.length:g} ms"
        out += [f'<rect x="{x - WIDE / 2:.1f}" y="{y - TALL / 2:.1f}" width="{WIDE}" height="{TALL}" rx="{TALL / 2 if node.kind == "SEND" else 4}" '
                f'fill="{FILL[node.kind]}" stroke="{ALARM if name in path else "#57606a"}" stroke-width="{2 if name in path else 1}"/>',
                text(x, y - 2, words, "middle", 'font-size="11"'),
                text(x, y + 12, f"{node.begin:g} to {node.begin + node.length:g}", "middle", 'font-size="10" fill="' + INK + '"')]
    last = max(node.stage for node in nodes.values())
    for stage in range(last + 1):
        out.append(text(12, 88 + DOWN * 2 * stage, f"stage {stage}"))
    for stage in range(last):
        out.append(text(12, 88 + DOWN * (2 * stage + 1), "transfers"))
    width = 96 + WIDE + ACROSS * max(node.level for node in nodes.values()) + 20
    bottom = 84 + DOWN * 2 * last + TALL / 2 + 38
    out.append(text(12, bottom, "F, B: forward, backward of a microbatch. Solid: data, dashed: order of a device. Red: critical path.", more='font-size="11"'))
    return document(width, bottom + 14, title, out)
