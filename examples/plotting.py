"""Plots as SVG text: curves, points and small grey images, without other packages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
MARGIN, GAP = 52, 18


class Axes:
    """One panel: lines and points over common axes."""

    def __init__(self, title: str = "", x: str = "", y: str = "", log: bool = False) -> None:
        self.title, self.x, self.y, self.log = title, x, y, log
        self.series: list[tuple[str, list[float], list[float], bool]] = []

    def line(self, y: Sequence[float], x: Sequence[float] | None = None, label: str = "") -> Axes:
        """Adds a curve; without `x`, over 0, 1, 2 ..."""
        return self._add(y, x, label, False)

    def points(self, x: Sequence[float], y: Sequence[float], label: str = "") -> Axes:
        """Adds points."""
        return self._add(y, x, label, True)

    def _add(self, y: Sequence[float], x: Sequence[float] | None, label: str, dots: bool) -> Axes:
        ys = [float(v) for v in y]
        xs = [float(v) for v in x] if x is not None else [float(k) for k in range(len(ys))]
        self.series.append((label, xs, ys, dots))
        return self

    def draw(self, left: float, top: float, width: float, height: float) -> list[str]:
        """The panel's SVG elements, in the given box."""
        scale = math.log10 if self.log else float
        shown = [(label, xs, [scale(max(y, 1e-12)) if self.log else y for y in ys], dots)
                 for label, xs, ys, dots in self.series]  # fmt: skip
        x0, x1 = _range([x for _, xs, _, _ in shown for x in xs])
        y0, y1 = _range([y for _, _, ys, _ in shown for y in ys])
        inner_left, inner_top = left + MARGIN, top + 26
        w, h = width - MARGIN - 10, height - 26 - 40

        def place(x: float, y: float) -> tuple[float, float]:
            return (inner_left + (x - x0) / (x1 - x0) * w,
                    inner_top + h - (y - y0) / (y1 - y0) * h)  # fmt: skip

        out = [_text(left + width / 2, top + 16, self.title, "middle", 14),
               f'<rect x="{inner_left:.1f}" y="{inner_top:.1f}" width="{w:.1f}" '
               f'height="{h:.1f}" fill="none" stroke="#999"/>']  # fmt: skip
        for tick in _ticks(x0, x1):
            out.append(_text(place(tick, y0)[0], inner_top + h + 15, _short(tick), "middle"))
        for tick in _ticks(y0, y1):
            shown_tick = f"1e{tick:g}" if self.log else _short(tick)
            out.append(_text(inner_left - 5, place(x0, tick)[1] + 4, shown_tick, "end"))
        out.append(_text(inner_left + w / 2, inner_top + h + 32, self.x, "middle"))
        out.append(_text(left + 4, inner_top - 6, self.y, "start"))
        for k, (label, xs, ys, dots) in enumerate(shown):
            colour = COLOURS[k % len(COLOURS)]
            spots = [place(x, y) for x, y in zip(xs, ys)]
            out += _dots(spots, colour) if dots else [_path(spots, colour)]
            if label:
                x, y = inner_left + w - 8, inner_top + 16 + 16 * k
                out.append(_text(x, y, label, "end", 12, colour))
        return out


class Images:
    """One panel: small grey images in rows; each image is a list of rows of numbers in [0, 1]."""

    def __init__(self, images: Sequence[Sequence[Sequence[float]]], columns: int, title: str = ""):
        self.images, self.columns, self.title = images, columns, title

    def draw(self, left: float, top: float, width: float, height: float) -> list[str]:
        """The panel's SVG elements, in the given box."""
        rows = -(-len(self.images) // self.columns)
        size = min((width - 10) / self.columns, (height - 30) / rows)
        out = [_text(left + width / 2, top + 16, self.title, "middle", 14)]
        for k, image in enumerate(self.images):
            row, column = divmod(k, self.columns)
            pixel = size * 0.92 / len(image)
            for i, line in enumerate(image):
                for j, value in enumerate(line):
                    grey = round(255 * (1 - min(max(float(value), 0.0), 1.0)))
                    x = left + 5 + column * size + j * pixel
                    y = top + 26 + row * size + i * pixel
                    out.append(
                        f'<rect x="{x:.1f}" y="{y:.1f}" width="{pixel:.2f}" height='
                        f'"{pixel:.2f}" fill="#{grey:02x}{grey:02x}{grey:02x}"/>'
                    )
        return out


def save(path: str | Path, *panels: Axes | Images, width: int = 460, height: int = 320) -> Path:
    """Writes the panels side by side and returns the path."""
    total = len(panels) * (width + GAP)
    body = [line for k, panel in enumerate(panels)
            for line in panel.draw(k * (width + GAP), 0, width, height)]  # fmt: skip
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}" '
            f'viewBox="0 0 {total} {height}" font-family="sans-serif">')  # fmt: skip
    background = f'<rect width="{total}" height="{height}" fill="white"/>'
    path = Path(path)
    path.write_text("\n".join([head, background, *body, "</svg>"]) + "\n")
    return path


def smooth(values: Sequence[float], window: int = 20) -> list[float]:
    """Running means over the last `window` values."""
    out = []
    for k in range(len(values)):
        part = values[max(0, k + 1 - window) : k + 1]
        out.append(sum(part) / len(part))
    return out


def _range(values: list[float]) -> tuple[float, float]:
    finite = [v for v in values if math.isfinite(v)] or [0.0]
    low, high = min(finite), max(finite)
    pad = 0.04 * (high - low) or 0.5
    return low - pad, high + pad


def _ticks(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) > 1e-12 else "0"


def _text(x: float, y: float, text: str, anchor: str, size: int = 11, fill: str = "#222") -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}">{escape(text)}</text>')  # fmt: skip


def _path(spots: list[tuple[float, float]], colour: str) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots if math.isfinite(y))
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _dots(spots: list[tuple[float, float]], colour: str) -> list[str]:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in spots
            if math.isfinite(y)]  # fmt: skip
