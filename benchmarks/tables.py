"""What is shown of measurements: lines for a terminal, Markdown tables, bar charts and curves."""

from __future__ import annotations

import math
from html import escape
from typing import Any

COLOURS = {"numpy": "#8a8f98", "torch-eager": "#e8a087", "torch-compile": "#c8553d",
           "jax": "#6a994e", "wengert-eager": "#8fb3e0", "wengert-compile": "#2457a6"}  # fmt: skip
OURS = "wengert-compile"


def best_peer(rows: dict[str, Any], what: str = "minimum") -> float | None:
    peers = [r[what] for name, r in rows.items() if not name.startswith("wengert")]
    return min(peers, default=None)


def row(name: str, systems: list[str], rows: dict[str, Any], heads: bool = False) -> str:
    """A line for a terminal."""
    cells = systems if heads else [f"{rows[s]['minimum'] * 1e6:,.1f}" if s in rows else "-"
                                   for s in systems]  # fmt: skip
    return f"{name:44s}" + "".join(f"{cell:>17s}" for cell in cells)


# --- Markdown ------------------------------------------------------------------------------------


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    text = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    return "\n".join(text + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def ratio(ours: float | None, theirs: float | None) -> str:
    return f"{theirs / ours:.2f}x" if ours and theirs else "-"


def ratios(found: dict[str, Any], what: str = "minimum") -> list[float]:
    pairs = [(best_peer(rows, what), rows[OURS][what]) for rows in found["workloads"].values()
             if OURS in rows]  # fmt: skip
    return [peer / ours for peer, ours in pairs if peer]


def step_table(found: dict[str, Any], systems: list[str]) -> str:
    lines = []
    for name, rows in found["workloads"].items():
        cells = [f"{rows[s]['minimum'] * 1e6:,.1f} ({rows[s]['median'] * 1e6:,.1f})"
                 if s in rows else "-" for s in systems]  # fmt: skip
        lines.append([name, *cells, ratio(rows.get(OURS, {}).get("minimum"), best_peer(rows))])
    return markdown(["workload", *systems, "best peer / compiled"], lines)


def first_table(found: dict[str, Any], systems: list[str]) -> str:
    compiling = [s for s in systems if s in ("torch-compile", "jax", OURS)]
    lines = []
    for name, rows in found["workloads"].items():
        cells = [f"{rows[s]['cold']:.2f} / {rows[s]['warm']:.2f}" if s in rows else "-"
                 for s in compiling]  # fmt: skip
        peers = [ratio(rows.get(OURS, {}).get("cold"), rows.get(s, {}).get("cold"))
                 for s in compiling if s != OURS]  # fmt: skip
        lines.append([name, *cells, *peers])
    return markdown(["workload", *compiling, *(f"{s} / ours" for s in compiling if s != OURS)],
                    lines)  # fmt: skip


def system_table(found: dict[str, Any], systems: list[str]) -> str:
    lines = []
    for system in systems:
        rows = [r[system] for r in found["workloads"].values() if system in r]
        if rows:
            peaks = [r["peak"] / 1e6 for r in rows]
            lines.append([
                system, rows[0]["version"], f"{min(r['import'] for r in rows):.2f}",
                f"{min(peaks):,.0f} to {max(peaks):,.0f}", f"{rows[0]['installed'] / 1e6:,.0f}",
            ])  # fmt: skip
    return markdown(["system", "version", "import, s", "peak memory, MB", "installed, MB"], lines)


def report(found: dict[str, Any], systems: list[str]) -> str:
    """All tables."""
    shown = [s for s in systems if any(s in rows for rows in found["workloads"].values())]
    threads = found["machine"]["threads"]
    parts = [f"Minimum (median) step in microseconds, {threads} threads.\n",
             step_table(found, shown)]  # fmt: skip
    speed = ratios(found)
    if speed:
        mean = math.exp(sum(map(math.log, speed)) / len(speed))
        parts.append(
            f"Best peer / compiled: geometric mean {mean:.2f}x, least {min(speed):.2f}x.\n"
        )
    parts += ["First two calls in seconds, cache on disk empty / filled.\n",
              first_table(found, shown), system_table(found, shown)]  # fmt: skip
    return "\n".join(parts)


# --- pictures ------------------------------------------------------------------------------------


def picture(width: float, height: float, parts: list[str]) -> str:
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="sans-serif" font-size="11">')  # fmt: skip
    return "\n".join([head, f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
                      *parts, "</svg>\n"])  # fmt: skip


def label(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def legend(systems: list[str], x: float, y: float) -> list[str]:
    parts = []
    for system in systems:
        parts += [f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[system]}"/>',
                  label(x + 14, y, system)]  # fmt: skip
        x += 28 + 6.4 * len(system)
    return parts


def bars(workloads: dict[str, Any], systems: list[str]) -> str:
    """Minimum step times, each workload scaled to its slowest system."""
    thick, left, width = 13, 250, 900
    shown = [s for s in systems if any(s in rows for rows in workloads.values())]
    parts, y = legend(shown, left, 18), 34.0
    for name, rows in workloads.items():
        slowest = max((r["minimum"] for r in rows.values()), default=1.0)
        present = [s for s in shown if s in rows]
        parts.append(label(left - 8, y + thick * len(present) / 2 + 4, name, 'text-anchor="end"'))
        for system in present:
            value = rows[system]["minimum"]
            length = (width - left - 90) * value / slowest
            parts.append(f'<rect x="{left}" y="{y:.1f}" width="{length:.1f}" height="{thick - 2}" '
                         f'fill="{COLOURS[system]}"/>')  # fmt: skip
            parts.append(label(left + length + 4, y + thick - 4, f"{value * 1e6:,.1f} us"))
            y += thick
        y += 10
    return picture(width, y + 4, parts)


def curves(title: str, unit: str, axis: str, lines: dict[str, list[tuple[float, float]]]) -> str:
    """Values against sizes, both logarithmic; a dashed line grows as fast as the size does."""
    width, height, left, top = 460.0, 300.0, 58.0, 44.0
    points = [p for line in lines.values() for p in line]
    low_x, high_x = (f(math.log10(x) for x, _ in points) for f in (min, max))
    low_y, high_y = (f(math.log10(y) for _, y in points) for f in (min, max))
    low_y, high_y = math.floor(low_y * 2) / 2, math.ceil(high_y * 2 + 0.01) / 2

    def at(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - low_x) / max(high_x - low_x, 1e-9) * (width - left - 20)
        up = (math.log10(y) - low_y) / (high_y - low_y) * (height - top - 40)
        return left + right, height - 40 - up

    parts = [label(left, 16, title, 'font-weight="bold"'), *legend(list(lines), left, 34),
             label(width - 16, height - 8, axis, 'text-anchor="end"')]  # fmt: skip
    for power in range(math.ceil(low_y), math.floor(high_y) + 1):
        _, y = at(10**low_x, 10**power)
        parts.append(f'<path d="M{left} {y:.1f}H{width - 20}" stroke="#e3e6ea"/>')
        parts.append(label(left - 6, y + 4, f"{10.0**power:g} {unit}", 'text-anchor="end"'))
    for x in sorted({x for x, _ in points}):
        parts.append(label(at(x, 10**low_y)[0], height - 24, f"{x:g}", 'text-anchor="middle"'))
    for system, line in lines.items():
        path = " ".join("{:.1f},{:.1f}".format(*at(*point)) for point in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[system]}" '
                     'stroke-width="2"/>')  # fmt: skip
    (x0, y0), (x1, _) = lines[OURS][-1], lines[OURS][0]
    part = max(x1 / x0, 10**low_y / y0)  # as far as the chart goes
    slope = [at(x0, y0), at(x0 * part, y0 * part)]
    parts.append('<path d="M{:.1f} {:.1f}L{:.1f} {:.1f}" stroke="#9aa3ad" fill="none" '
                 'stroke-dasharray="4 4"/>'.format(*slope[0], *slope[1]))  # fmt: skip
    return picture(width, height, parts)
