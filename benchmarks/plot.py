# Copyright 2026, the gpu_exact contributors
"""Draw what benchmarks/results holds: bars of all tables, and times as tables grow.

python benchmarks/plot.py     # peers.png and growth.png beside the results; needs matplotlib
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import tables
from tables import EXACT, HIST, HIST_FINE, OURS, Row

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

SYSTEMS = {  # name: (label, colour)
    OURS: ("plugin", "#1b7837"),
    HIST: ("GPU hist, 256 bins", "#2166ac"),
    HIST_FINE: ("GPU hist, 4,096 bins", "#92c5de"),
    EXACT: ("XGBoost exact, CPU (fastest run)", "#878787"),
}


class Axis(NamedTuple):
    """Of a growth series."""

    label: str
    size: Callable[[str], float] = float  # of a step, by its name


AXES = {
    "rows": Axis("rows, 8 columns, depth 6"),
    "features": Axis("columns, 100,000 rows, depth 6"),
    "depth": Axis("depth, 1,000,000 rows x 28"),
    "distinct": Axis(
        "distinct values a column, 1,000,000 rows x 28, depth 6",
        lambda step: 1e6 if step == "all" else float(step),
    ),
    "missing": Axis(
        "% missing, by what is present, 1,000,000 rows x 28, depth 6",
        lambda step: 100.0 - float(step),
    ),
}
DPI = 120
PANEL_TABLES = 8  # groups of bars side by side, at most


def save(figure: plt.Figure, file: Path) -> Path:
    figure.savefig(file, dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return file


def fastest(row: Row, system: str) -> float:
    return min(run["ms"] for run in row.runs[system])


def draw_peers(rows: list[Row], device: str, file: Path) -> Path:
    """Bars of milliseconds a tree: a group each table, a colour each system."""
    systems = [s for s in SYSTEMS if any(s in row.runs for row in rows)]
    n_high = -(-len(rows) // PANEL_TABLES)
    n_wide = -(-len(rows) // n_high)
    size = (max(6.0, 1.8 * n_wide), 4.0 * n_high)
    figure, panels = plt.subplots(
        n_high, figsize=size, squeeze=False, sharey=True, layout="constrained"
    )
    width = 0.85 / len(systems)
    for s, system in enumerate(systems):
        label, colour = SYSTEMS[system]
        for p, axes in enumerate(panels.flat):
            shown = rows[p * n_wide : (p + 1) * n_wide]
            at = [t for t, row in enumerate(shown) if system in row.runs]
            ms = [fastest(shown[t], system) for t in at]
            bars = axes.bar(
                np.array(at) + (s - (len(systems) - 1) / 2) * width,
                ms,
                width,
                label=label,
                color=colour,
            )
            axes.bar_label(
                bars, [tables.text_of(m) for m in ms], fontsize=7, padding=2, rotation=90
            )
            axes.set_xticks(
                range(len(shown)), [f"{r.name}\n{r.size}\ndepth {r.depth}" for r in shown]
            )
            axes.set(yscale="log", ylabel="ms a tree (median)")
            axes.set_xlim(-0.6, n_wide - 0.4)
            axes.margins(y=0.45)  # room for the labels
    figure.suptitle(f"Time of a tree, {device}")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    return save(figure, file)


def draw_growth(rows: list[Row], device: str, file: Path) -> Path:
    """Time against size, a panel each series and a line each system; both axes logarithmic."""
    steps = {name: [r for r in rows if r.name.startswith(f"growth-{name}-")] for name in AXES}
    steps = {name: some for name, some in steps.items() if some}
    n_wide = min(3, len(steps))
    n_high = -(-len(steps) // n_wide)
    figure, panels = plt.subplots(
        n_high, n_wide, figsize=(5.0 * n_wide, 4.0 * n_high), squeeze=False, layout="constrained"
    )
    for axes in panels.flat[len(steps) :]:
        axes.remove()
    for (name, some), axes in zip(steps.items(), panels.flat, strict=False):
        at = {row.name.split("-")[2]: AXES[name].size(row.name.split("-")[2]) for row in some}
        some = sorted(some, key=lambda row: at[row.name.split("-")[2]])
        for system, (label, colour) in SYSTEMS.items():
            timed = [row for row in some if system in row.runs]
            if timed:
                places = [at[row.name.split("-")[2]] for row in timed]
                axes.plot(
                    places, [fastest(r, system) for r in timed], "o-", label=label, color=colour
                )
        axes.set(xscale="log", yscale="log", xlabel=AXES[name].label, ylabel="ms a tree (median)")
        axes.set_xticks(
            list(at.values()), [f"{int(t):,}" if t.isdigit() else t for t in at], fontsize=8
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(f"Growth, {device}")
    return save(figure, file)


def draw_all(results: Path) -> list[Path]:
    """Every picture for which there are results."""
    lines = tables.read("train-*.jsonl", results)
    devices = dict.fromkeys(line["device"] for line in lines)
    made = []
    for device in devices:
        mine = [line for line in lines if line["device"] == device]
        slug = (
            "-" + "".join(c if c.isalnum() else "-" for c in device.lower())
            if len(devices) > 1
            else ""
        )
        growth = [row for row in tables.rows_of(mine) if row.name.startswith("growth-")]
        for draw, rows in ((draw_peers, tables.plain(mine)), (draw_growth, growth)):
            if rows:
                name = draw.__name__.removeprefix("draw_")
                made.append(draw(rows, device, results / f"{name}{slug}.png"))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=tables.RESULTS)
    made = draw_all(parser.parse_args().results)
    print("\n".join(map(str, made)) if made else "There is nothing to draw.")
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
