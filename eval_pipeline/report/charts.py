"""Charts as SVG text: histograms, trends, judge against labels, and the small range in a table row.

Drawn by hand, because a page that is read in light and dark needs colours that the page decides. Data in, SVG out; what
is drawn for which evaluation is `content`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from eval_pipeline.report.figures import number
from eval_pipeline.report.inert import line

STYLE = """
.c-axis{{stroke:{rule};stroke-width:1}} .c-text{{fill:{muted};font:11px {font}}} .c-bar{{fill:{accent}}}
.c-low{{fill:{bad}}} .c-line{{fill:none;stroke:{accent};stroke-width:2}} .c-band{{fill:{accent};opacity:.18}}
.c-dot{{fill:{accent};stroke:{accent};stroke-width:2}} .c-new{{fill:{ground};stroke:{accent};stroke-width:2}}
.c-bubble{{fill:{accent};opacity:.55}} .c-even{{stroke:{muted};stroke-dasharray:4 3}} .c-wide{{fill:{rule}}}
.c-ci{{fill:{accent};opacity:.45}} .c-mean{{fill:{ink}}}
"""
NAMES = ("ink", "muted", "rule", "ground", "accent", "bad")
LIGHT = dict(zip(NAMES, ("#1b2430", "#56616f", "#c9d1db", "#ffffff", "#1f66b0", "#b3261e"), strict=True))
DARK = dict(zip(NAMES, ("#e8edf3", "#a9b4c2", "#445060", "#12171e", "#6fb1f5", "#ff8a80"), strict=True))
FONT = "system-ui,'Noto Sans CJK KR','Apple SD Gothic Neo','Malgun Gothic',sans-serif"
BINS = 21
"""Bins are centred on multiples of .05, so every grade scale in use falls into the middle of one."""


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation in a trend. Null ends mean there is no interval."""

    label: str
    mean: float
    lower: float | None
    upper: float | None
    is_new_system: bool = False
    is_new_judge: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """How many texts got this label and this judge score."""

    human: float
    judge: float
    count: int


def page_style() -> str:
    """Rules for charts inside a page that declares the colours as custom properties."""
    return STYLE.format(font=FONT, **{name: f"var(--{name})" for name in NAMES})


def standalone(svg: str, *, is_dark_too: bool = True) -> str:
    """A chart as a file of its own: namespace, colours and background inside."""
    rules = f"{STYLE.format(font=FONT, **LIGHT)} svg{{background:{LIGHT['ground']}}}"
    if is_dark_too:
        rules += f"@media (prefers-color-scheme:dark){{{STYLE.format(font=FONT, **DARK)} svg{{background:{DARK['ground']}}}}}"
    head, _, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{rules}</style>{rest}'


def png(svg: str, scale: float = 2) -> bytes:
    """A chart as a PNG image on white."""
    import vl_convert

    head, _, rest = standalone(svg, is_dark_too=False).partition("</style>")
    return vl_convert.svg_to_png(f'{head}</style><rect width="100%" height="100%" fill="#ffffff"/>{rest}', scale=scale)


def _svg(width: int, height: int, label: str, parts: Sequence[str], *, name: str = "chart") -> str:
    return (
        f'<svg class="{name}" role="img" aria-label="{escape(line(label))}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: object, anchor: str = "middle") -> str:
    return f'<text class="c-text" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(line(text))}</text>'


def _axis(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="c-axis" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def histogram(counts: Sequence[int], low: int, label: str) -> str:
    """`BINS` counts of values on [0, 1]; bins below index `low` are the worst tenth."""
    width, height, left, bottom, top = 340, 132, 12, 22, 18
    step, room, most = (width - 2 * left) / BINS, height - bottom - top, max(counts, default=0) or 1
    parts = [_axis(left, height - bottom, width - left, height - bottom)]
    for index, count in enumerate(counts):
        if not count:
            continue
        tall, x = max(room * count / most, 1.5), left + index * step
        kind = "c-low" if index < low else "c-bar"
        parts.append(
            f'<rect class="{kind}" x="{x + 1:.1f}" y="{height - bottom - tall:.1f}" width="{step - 2:.1f}" height="{tall:.1f}"/>'
        )
        if count >= most * 0.04:
            parts.append(_text(x + step / 2, height - bottom - tall - 4, f"{count:,}"))
    parts += [_text(left + step * (tick * 20 + 0.5), height - 6, number(tick, 2)) for tick in (0, 0.25, 0.5, 0.75, 1)]
    return _svg(width, height, label, parts)


def trend(points: Sequence[Point], label: str) -> str:
    """Means over time with their intervals; the axis is cut to what the intervals cover."""
    width, height, left, right, top, bottom = 520, 160, 40, 14, 12, 26
    ends = [end for p in points for end in (p.lower, p.upper, p.mean) if end is not None]
    low, high = max(0.0, min(ends) - 0.03), min(1.0, max(ends) + 0.03)
    reach = high - low or 1.0

    def x(index: int) -> float:
        return left + (width - left - right) * (0.5 if len(points) == 1 else index / (len(points) - 1))

    def y(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / reach

    parts = [_axis(left, y(v), width - right, y(v)) for v in (low, (low + high) / 2, high)]
    parts += [_text(left - 5, y(v) + 4, number(v, 2), "end") for v in (low, (low + high) / 2, high)]
    known = [(i, p, p.lower, p.upper) for i, p in enumerate(points) if p.lower is not None and p.upper is not None]
    edge = [f"{x(i):.1f},{y(up):.1f}" for i, _, _, up in known] + [
        f"{x(i):.1f},{y(lo):.1f}" for i, _, lo, _ in reversed(known)
    ]
    parts.append(f'<polygon class="c-band" points="{" ".join(edge)}"/>')
    parts.append(
        f'<polyline class="c-line" points="{" ".join(f"{x(i):.1f},{y(p.mean):.1f}" for i, p in enumerate(points))}"/>'
    )
    parts += [_mark(x(i), y(p.mean), p) for i, p in enumerate(points)]
    parts += [
        _text(x(0), height - 6, points[0].label, "start"),
        _text(x(len(points) - 1), height - 6, points[-1].label, "end"),
    ]
    return _svg(width, height, label, parts)


def _mark(x: float, y: float, point: Point) -> str:
    kind = "c-new" if point.is_new_system or point.is_new_judge else "c-dot"
    if point.is_new_judge:
        return f'<rect class="{kind}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{4 if kind == "c-new" else 2.5}"/>'


def calibration(cells: Sequence[Cell], label: str, across: str, up: str) -> str:
    """Judge score against label: a disc per combination, its area the count; the dashed line is perfect agreement."""
    size, left, bottom, top, right = 270, 44, 40, 12, 16
    room = size - left - right
    most = max((cell.count for cell in cells), default=1)

    def at(human: float, judge: float) -> tuple[float, float]:
        return left + room * (0.08 + 0.84 * human), top + room * (0.08 + 0.84 * (1 - judge))

    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    parts = [_axis(left, top + room, left + room, top + room), _axis(left, top, left, top + room)]
    parts.append(f'<line class="c-even" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>')
    for cell in sorted(cells, key=lambda c: -c.count):
        x, y = at(cell.human, cell.judge)
        radius = max(2.5, 22 * (cell.count / most) ** 0.5)
        parts.append(
            f'<circle class="c-bubble" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{cell.count}</title></circle>'
        )
    for tick in (0, 0.5, 1):
        parts += [
            _text(at(tick, 0)[0], top + room + 15, number(tick, 1)),
            _text(left - 7, at(0, tick)[1] + 4, number(tick, 1), "end"),
        ]
    parts.append(_text(left + room / 2, size - 8 + (bottom - 40), across))
    parts.append(f'<g transform="rotate(-90 12 {top + room / 2:.0f})">{_text(12, top + room / 2, up)}</g>')
    return _svg(size, size, label, parts)


def ranges(
    mean: float | None,
    interval: tuple[float | None, float | None],
    bounds: tuple[float | None, float | None],
    label: str,
) -> str:
    """One row's mean, interval (thick) and bounds if missing (pale) on [0, 1]."""
    width, height, pad = 130, 18, 4

    def x(value: float) -> float:
        return pad + (width - 2 * pad) * min(max(value, 0.0), 1.0)

    parts = [_axis(pad, height / 2, width - pad, height / 2)]
    for (lower, upper), kind, tall in ((bounds, "c-wide", 12), (interval, "c-ci", 6)):
        if lower is not None and upper is not None:
            parts.append(
                f'<rect class="{kind}" x="{x(lower):.1f}" y="{(height - tall) / 2}" width="{max(x(upper) - x(lower), 1):.1f}" height="{tall}"/>'
            )
    if mean is not None:
        parts.append(f'<rect class="c-mean" x="{x(mean) - 1.2:.1f}" y="1" width="2.4" height="{height - 2}"/>')
    return _svg(width, height, label, parts, name="chart range")
