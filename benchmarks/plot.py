# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Draw what benchmarks/results holds: how much faster than `hist`, and time as tables grow.

python benchmarks/plot.py     # times_as_fast.svg and growth.png beside the results; needs matplotlib
"""

from __future__ import annotations

import argparse
import math
from html import escape
from pathlib import Path

import matplotlib
import tables
from tables import HIST, OURS, Row, times_of

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

SYSTEMS = {OURS: ("plugin", "#1b7837"), HIST: ("GPU hist, 256 bins", "#2166ac")}
LABELS = {
    "rows": "rows, 8 columns, depth 6",
    "features": "columns, 100,000 rows, depth 6",
    "depth": "depth, 1,000,000 rows x 28",
    "distinct": "distinct values a column, 1,000,000 rows x 28, depth 6",
    "missing": "% missing, by what is present, 1,000,000 rows x 28, depth 6",
}


def place(row: Row) -> float:
    """Where a table stands on the axis of its series."""
    size = 1e6 if row.name == "all" else row.step()
    return 100.0 - size if row.series == "missing" else size


def draw(rows: list[Row], file: Path) -> None:
    """Time against size, a panel each series and a line each system; both axes logarithmic."""
    figure, panels = plt.subplots(2, 3, figsize=(15.0, 8.0), layout="constrained")
    present = dict.fromkeys(row.series for row in rows)
    for axes in panels.flat[len(present) :]:
        axes.remove()
    for axes, series in zip(panels.flat, present, strict=False):
        some = sorted((row for row in rows if row.series == series), key=place)
        for system, (name, colour) in SYSTEMS.items():
            ms = [row.of(system)[0]["ms"] for row in some]
            axes.plot(list(map(place, some)), ms, "o-", label=name, color=colour)
        axes.set(xscale="log", yscale="log", xlabel=LABELS[series], ylabel="ms a tree (median)")
        steps = [f"{int(row.name):,}" if row.name.isdecimal() else row.name for row in some]
        axes.set_xticks(list(map(place, some)), steps, fontsize=8)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    devices = dict.fromkeys(row.of(system)[0]["device"] for row in rows for system in SYSTEMS)
    figure.suptitle(f"Growth: {'; '.join(devices)}")
    figure.savefig(file, dpi=120, bbox_inches="tight", metadata={"Software": None})


def bars(rows: list[Row]) -> str:
    """An SVG: a bar for each table, how many times as fast as hist; the axis is logarithmic."""
    rows = sorted(rows, key=Row.share)
    times = [1 / row.share() for row in rows]
    left, right, top, bottom = 62.0, 750.0, 50.0, 225.0
    low, high = math.log(min(0.9, *times)) - 0.1, math.log(max(1.1, *times)) + 0.1

    def height(factor: float) -> float:
        return bottom - (math.log(factor) - low) / (high - low) * (bottom - top)

    step = (right - left) / len(rows)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 260" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="760" height="260" fill="white"/>',  # text is readable on dark pages too
        f'<text x="10" y="20" font-size="14">Exact trees by this plugin, how many times as fast as by GPU '
        f"hist: {len(rows)} generated tables, a bar each</text>",
    ]
    for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        if low <= math.log(tick) <= high:
            y, colour = f"{height(tick):.1f}", "black" if tick == 1 else "#ccc"
            lines.append(f'<path d="M{left:g} {y}H{right:g}" stroke="{colour}"/>')
            lines.append(f'<text x="{left - 8:g}" y="{y}" dy="4" text-anchor="end">{tick:g}x</text>')
    for i, (row, factor) in enumerate(zip(rows, times, strict=True)):
        y, base = height(factor), height(1.0)
        colour = SYSTEMS[OURS if factor >= 1 else HIST][1]
        name = row.title().strip("`")
        lines.append(
            f'<rect x="{left + i * step + 0.1 * step:.1f}" y="{min(y, base):.1f}" '
            f'width="{0.8 * step:.1f}" height="{abs(base - y):.1f}" fill="{colour}">'
            f"<title>{escape(name)}: {times_of(factor)}</title></rect>"
        )
        if i in (0, len(rows) - 1):
            anchor, x = ("start", left + step + 4) if i == 0 else ("end", right - step - 4)
            lines.append(
                f'<text x="{x:.1f}" y="{y:.1f}" dy="4" text-anchor="{anchor}">'
                f"{escape(name)} {times_of(factor)}</text>"
            )
    ahead = sum(factor > 1 for factor in times)
    lines.append(
        f'<text x="{left:g}" y="250">faster on {ahead}, slower on {len(rows) - ahead}. hist with 256 '
        "bins, the faster of two ways to load; last 20 of up to 100 rounds, one NVIDIA H200</text>"
    )
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=tables.RESULTS)
    results = parser.parse_args().results
    lines = tables.read("train-*.jsonl", results)
    (results / "times_as_fast.svg").write_text(bars(tables.all_compared(lines)))
    draw(tables.compared(lines, *tables.GROWTH), results / "growth.png")


if __name__ == "__main__":
    main()
