# Copyright 2026, the gpu_exact contributors
"""Draw the time of a tree as tables grow, of what benchmarks/results holds.

python benchmarks/plot.py     # growth.png beside the results; needs matplotlib
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import tables
from tables import HIST, OURS, Row

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=tables.RESULTS)
    results = parser.parse_args().results
    rows = tables.compared(tables.read("train-*.jsonl", results), *tables.GROWTH)
    draw(rows, results / "growth.png")


if __name__ == "__main__":
    main()
