# Copyright 2026, the gpu_exact contributors
"""Draw what benchmarks/results holds: peers, growth, interleaved levels, accuracy; all or some.

    python benchmarks/plot.py                     # pictures beside the results
    python benchmarks/plot.py --table             # the tables of README.md too
    python benchmarks/plot.py --results FOLDER

Of runs of one system on one table the last line counts, and of GPU hist's two ways to load a table
the faster one. Needs matplotlib and SciPy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter
from scale_model import held_together, text_of
from scipy import stats

SYSTEMS = {  # name: (label, colour)
    "gpu_exact_cuda": ('plugin, device="cuda"', "#1b7837"),
    "gpu_exact_cpu_context": ('plugin, tree_method="exact"', "#7fbf7b"),
    "xgb_hist_gpu_256": ("GPU hist, 256 bins", "#2166ac"),
    "xgb_hist_gpu_4096": ("GPU hist, 4,096 bins", "#92c5de"),
    "lightgbm_gpu": ("LightGBM, GPU", "#e08214"),
    "catboost_gpu": ("CatBoost, GPU", "#fdb863"),
    "xgb_exact_cpu": ("XGBoost exact, CPU", "#878787"),
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
# Seconds of the whole training with 0 to 5 interleaved levels, from the paper's table.
PAPER = [86.0, 85.6, 82.3, 80.0, 76.4, 75.2]
EXACT = "xgb_exact_cpu"
BINS = {  # systems of accuracy.py: (label, colour)
    "xgb_hist_cpu_64": ("64 bins", "#b2182b"),
    "xgb_hist_cpu_256": ("256 bins", "#2166ac"),
    "xgb_hist_cpu_4096": ("4,096 bins", "#92c5de"),
}
CONFIDENCE = 0.95
DPI = 120
LEAST_COUNTED = 5  # rounds of a median
PANEL_TABLES = 7  # groups of bars side by side, at most
OURS, HIST = "gpu_exact_cuda", "xgb_hist_gpu_256"  # whose times are compared

Line = dict[str, Any]


def read(files: Iterable[Path]) -> list[Line]:
    return [json.loads(t) for f in sorted(files) for t in f.read_text().splitlines() if t.strip()]


def latest(lines: list[Line], *keys: str) -> list[Line]:
    """The last line of each combination of the keys' values."""
    return list({tuple(line.get(k) for k in keys): line for line in lines}.values())


def save(figure: plt.Figure, file: Path) -> Path:
    figure.savefig(file, dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return file


def counted(run: Line) -> int:
    """Of how many rounds `ms_per_tree` is the median.

    Older lines say how many there were: the first, on a GPU the first two, did not count.
    """
    return run.get("counted") or run["iterations"] - (1 if run["system"] == "xgb_exact_cpu" else 2)


def few(run: Line) -> str:
    """Of how many rounds a time is, where that makes no good median; else nothing."""
    n = counted(run)
    return "" if n >= LEAST_COUNTED else f" ({n} round{'s' if n > 1 else ''})"


def cell(run: Line | None) -> str:
    """Milliseconds a tree, and of how many rounds where they are few."""
    return "" if run is None else text_of(run["ms_per_tree"]) + few(run)


def draw_peers(lines: list[Line], device: str, file: Path) -> Path:
    """Bars of milliseconds a tree: a group each shape, a colour each system."""
    tables = list(dict.fromkeys((r["shape"], r["rows"], r["max_depth"]) for r in lines))
    systems = [s for s in SYSTEMS if any(r["system"] == s for r in lines)]
    n_high = -(-len(tables) // PANEL_TABLES)
    n_wide = -(-len(tables) // n_high)
    figure, panels = plt.subplots(
        n_high,
        figsize=(max(6.0, 1.8 * n_wide), 4.0 * n_high),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    width = 0.85 / len(systems)
    for s, system in enumerate(systems):
        label, colour = SYSTEMS[system]
        mine = {(r["shape"], r["rows"], r["max_depth"]): r for r in lines if r["system"] == system}
        for p, axes in enumerate(panels.flat):
            shown = tables[p * n_wide : (p + 1) * n_wide]
            at = [t for t, key in enumerate(shown) if key in mine]
            rows = [mine[shown[t]] for t in at]
            ms = [r["ms_per_tree"] for r in rows]
            quartiles = np.array([r["ms_per_tree_quartiles"] for r in rows]).reshape(-1, 2)
            reach = np.maximum(0.0, [ms - quartiles[:, 0], quartiles[:, 1] - ms])
            centres = np.array(at) + (s - (len(systems) - 1) / 2) * width
            bars = axes.bar(centres, ms, width, label=label, color=colour, yerr=reach)
            axes.bar_label(bars, [cell(r) for r in rows], fontsize=7, padding=2, rotation=90)
            axes.set_xticks(range(len(shown)), [f"{n}\n{r:,} rows\ndepth {d}" for n, r, d in shown])
            axes.set(yscale="log", ylabel="ms a tree (median, quartiles)")
            axes.set_xlim(-0.6, n_wide - 0.4)
            axes.margins(y=0.45)  # room for the labels
    figure.suptitle(f"Time of a tree, {device}")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), ncols=3, loc="outside lower center")
    return save(figure, file)


def is_other(line: Line) -> bool:
    """Of the tables that are in no picture."""
    return line["shape"].startswith("other-")


def series_of(line: Line) -> tuple[str, str] | None:
    """`growth-depth-8` is ("depth", "8")."""
    parts = line["shape"].split("-")
    return (parts[1], parts[2]) if parts[0] == "growth" else None


def draw_growth(lines: list[Line], device: str, file: Path) -> Path:
    """Time against size, a panel each series and a line each system; both axes logarithmic."""
    names = [name for name in AXES if any(series_of(r)[0] == name for r in lines)]
    n_wide = min(3, len(names))
    n_high = -(-len(names) // n_wide)
    figure, panels = plt.subplots(
        n_high, n_wide, figsize=(5.0 * n_wide, 4.0 * n_high), squeeze=False, layout="constrained"
    )
    for axes in panels.flat[len(names) :]:
        axes.remove()
    for name, axes in zip(names, panels.flat, strict=False):
        mine = [r for r in lines if series_of(r)[0] == name]
        size = AXES[name].size
        for system, (label, colour) in SYSTEMS.items():
            points = {size(series_of(r)[1]): r for r in mine if r["system"] == system}
            if points:
                at = sorted(points)
                ms = [points[x]["ms_per_tree"] for x in at]
                axes.plot(at, ms, "o-", label=label, color=colour)
                hollow = [i for i, x in enumerate(at) if few(points[x])]
                axes.plot(np.take(at, hollow), np.take(ms, hollow), "o", mfc="white", mec=colour)
        axes.set(xscale="log", yscale="log", xlabel=AXES[name].label)
        axes.set_ylabel(f"ms a tree (median; hollow: under {LEAST_COUNTED} rounds)")
        steps = sorted({series_of(r)[1] for r in mine}, key=size)
        texts = [f"{int(t):,}" if t.isdigit() else t for t in steps]
        axes.set_xticks([size(t) for t in steps], texts, fontsize=8)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.suptitle(f"Growth, {device}")
    return save(figure, file)


def draw_levels(lines: list[Line], device: str, file: Path) -> Path:
    """Time against interleaved levels beside the paper's, each as part of its own first value."""
    figure, axes = plt.subplots(figsize=(6.5, 4.5))
    head = sorted({r["interleaved_levels"] for r in lines} | set(range(len(PAPER))))
    table = [["paper, s"] + [f"{PAPER[k]:.1f}" if k < len(PAPER) else "" for k in head]]
    axes.plot(
        range(len(PAPER)), [t / PAPER[0] for t in PAPER], "k--", label="paper (whole training)"
    )
    for key in dict.fromkeys((r["shape"], r["rows"], r["max_depth"]) for r in lines):
        mine = {
            r["interleaved_levels"]: r["ms_per_tree"]
            for r in lines
            if (r["shape"], r["rows"], r["max_depth"]) == key
        }
        at = sorted(mine)
        label = f"{key[0]}, {key[1]:,} rows, depth {key[2]}"
        axes.plot(at, [mine[k] / mine[at[0]] for k in at], "o-", label=label)
        table.append([f"{key[0]}, ms"] + [f"{mine[k]:.2f}" if k in mine else "" for k in head])
    axes.set(ylabel="time, first = 1", xticks=head, title=f"Interleaved levels, {device}")
    axes.set_xlabel("levels before entries are sorted by node")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    cells = axes.table(table, colLabels=["levels", *map(str, head)], bbox=(0, -0.55, 1, 0.35))
    cells.auto_set_font_size(False)
    cells.set_fontsize(7)
    return save(figure, file)


class Difference(NamedTuple):
    """How much more than exact bins lose on rows held out, in % of what exact loses there."""

    percent: tuple[float, ...]  # of each split

    @property
    def mean(self) -> float:
        return float(np.mean(self.percent))

    @property
    def is_noise(self) -> bool:
        """Whether splits differ so much that the mean tells nothing: a paired t-test."""
        if len(self.percent) < 2:
            return True  # nothing tells how much splits differ
        spread = np.std(self.percent, ddof=1) / np.sqrt(len(self.percent))
        return abs(self.mean) <= spread * stats.t.ppf((1 + CONFIDENCE) / 2, len(self.percent) - 1)

    def __str__(self) -> str:
        if not any(self.percent):
            return "same"
        text = f"{self.mean:+.2f}%" if abs(self.mean) < 10 else f"{self.mean:+.0f}%"
        return f"{text}, noise" if self.is_noise else f"**{text}**"


def differences(lines: list[Line]) -> dict[str, dict[str, Difference]]:
    """By table and system; tables with the most to lose by few bins come first."""
    losses = {(r["table"], r["system"], r["seed"]): r["loss_test"] for r in lines}
    found: dict[str, dict[str, Difference]] = {}
    for table in dict.fromkeys(r["table"] for r in lines):
        seeds = sorted(seed for name, system, seed in losses if (name, system) == (table, EXACT))
        exact = np.array([losses[table, EXACT, seed] for seed in seeds])
        for system in BINS:
            own = np.array([losses[table, system, seed] for seed in seeds])
            percent = 100 * (own / exact - 1)
            found.setdefault(table, {})[system] = Difference(tuple(percent.tolist()))
    fewest = next(iter(BINS))
    return dict(sorted(found.items(), key=lambda item: -item[1][fewest].mean))


def accuracy_table(lines: list[Line]) -> str:
    """A row each table in Markdown: what exact loses, and what bins lose more."""
    facts = {r["table"]: r for r in lines}
    rows = []
    for table, by_system in differences(lines).items():
        r = facts[table]
        exact = [x["loss_test"] for x in lines if (x["table"], x["system"]) == (table, EXACT)]
        size = [f"{r['rows']:,} x {r['columns']:,}", f"{r['most_values']:,}", r["metric"]]
        rows.append([table, *size, f"{np.mean(exact):.4g}", *map(str, by_system.values())])
    head = ["table", "rows x columns", "most values a column", "loss", "exact"]
    return markdown([*head, *(label for label, _ in BINS.values())], rows)


def accuracy_summary(lines: list[Line]) -> str:
    """On how many tables bins lose, in Markdown, a row each number of bins."""
    found = differences(lines)
    rows = []
    for system, (label, _) in BINS.items():
        mine = [by_system[system] for by_system in found.values()]
        clear = [d.mean for d in mine if not d.is_noise]
        worse, better = [m for m in clear if m > 0], [m for m in clear if m < 0]
        worst = f" (up to {max(worse):.2g}% more)" if worse else ""
        rows.append([label, f"{len(worse)}{worst}", str(len(better)), str(len(mine) - len(clear))])
    head = [f"of {len(found)} tables", "loses more than exact", "loses less", "noise, or the same"]
    return markdown(head, rows)


def draw_accuracy(lines: list[Line], device: str, file: Path) -> Path:
    """What bins lose more than exact: a row each table, a colour each number of bins."""
    found = differences(lines)
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(found) + 1.6), layout="constrained")
    for s, (system, (label, colour)) in enumerate(BINS.items()):
        for t, by_system in enumerate(found.values()):
            d, at = by_system[system], t + 0.22 * (s - 1)
            axes.plot([min(d.percent), max(d.percent)], [at, at], color=colour, linewidth=1)
            face = "white" if d.is_noise else colour
            axes.plot(d.mean, at, "o", color=colour, markerfacecolor=face, markersize=5)
        axes.plot([], [], "o-", color=colour, label=label)
    axes.plot([], [], "o", color="grey", markerfacecolor="white", label="noise")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(found)), found)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+g}%" if x else "0%"))
    r = lines[0]
    axes.set_xlabel("loss on rows held out, less (left) or more (right) than exact; mean and range")
    axes.set_title(f"Bins against exact, {device}: {r['rounds']} rounds, depth {r['max_depth']}")
    axes.grid(alpha=0.3, axis="x")
    axes.legend(fontsize=8)
    return save(figure, file)


def draw_scale(lines: list[Line], device: str, file: Path) -> Path:
    """Bars of milliseconds a tree of scale.py: a group each shape, a colour each number of GPUs.

    Marks are what the cost model says; not of Dask, whose workers are processes to it.
    """
    shapes = list(dict.fromkeys(r["shape"] for r in lines))
    kinds = sorted({(r["system"], r["gpus"], r["mode"] if r["gpus"] > 1 else "") for r in lines})
    figure, axes = plt.subplots(figsize=(max(6.0, 3.0 * len(shapes)), 4.0), layout="constrained")
    width = 0.85 / len(kinds)
    place_of: dict[tuple[str, int, str], float] = {}
    for k, (system, gpus, mode) in enumerate(kinds):
        ours = system == "gpu_exact"
        # One GPU without a communicator, where there is such a run: it comes last.
        of_kind = sorted(
            (r for r in lines if (r["system"], r["gpus"]) == (system, gpus)),
            key=lambda r: r["mode"] == "devices",
        )
        mine = {r["shape"]: r["ms_per_tree"] for r in of_kind if gpus == 1 or r["mode"] == mode}
        name = "plugin" if ours else "hist, 256 bins"
        label = f"{name}, {gpus} GPUs, {mode}" if gpus > 1 else f"{name}, 1 GPU"
        colours = plt.get_cmap("Greens" if ours else "Greys")
        shown = [s for s in shapes if s in mine]
        places = [shapes.index(s) + (k - (len(kinds) - 1) / 2) * width for s in shown]
        heights = [mine[s] for s in shown]
        colour = colours(0.35 + 0.5 * k / len(kinds))
        bars = axes.bar(places, heights, width, label=label, color=colour)
        axes.bar_label(bars, [text_of(ms) for ms in heights], fontsize=7)
        if ours:
            place_of |= {(s, gpus, mode): place for s, place in zip(shown, places)}
    told = held_together(lines).items()
    if marks := [(place_of[run], model) for run, (_, model) in told if run[2] != "dask"]:
        axes.plot(*zip(*marks), "_k", markersize=12, label="cost model")
    axes.set_xticks(range(len(shapes)), shapes)
    axes.set_ylabel("ms a tree")
    axes.set_title(f"Several GPUs: {device}")
    axes.legend(fontsize=8)
    return save(figure, file)


def read_runs(results: Path) -> list[Line]:
    """Runs of train.py, with the strategy that is chosen where none is asked for."""
    runs = [r for r in read(results.glob("train-*.jsonl")) if r.get("strategy") in (None, "auto")]
    return faster_load(latest(runs, "device", "system", "shape", "rows", "max_depth"))


def faster_load(runs: list[Line]) -> list[Line]:
    """Of a system that was run with and without a `DMatrix` the faster run, under one name."""
    runs = [r | {"system": r["system"].removesuffix("_dmatrix")} for r in runs]
    slow_first = sorted(runs, key=lambda r: -r["ms_per_tree"])
    best = latest(slow_first, "device", "system", "shape", "rows", "max_depth")
    return [r for r in runs if r in best]


def plain(runs: list[Line]) -> list[Line]:
    """Of tables in no series."""
    return [r for r in runs if series_of(r) is None and not is_other(r)]


def markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    """A table; every row has as many cells as the head."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def by_table(runs: list[Line]) -> dict[str, dict[str, Line]]:
    """The run of each system, by the first cells of its row: name, size and depth."""
    several = len({r["device"] for r in runs}) > 1
    tables: dict[str, dict[str, Line]] = {}
    for r in runs:
        name = f"{r['shape']}, {r['device']}" if several else r["shape"]
        key = f"{name} | {r['rows']:,} x {r['columns']:,} | {r['max_depth']}"
        tables.setdefault(key, {})[r["system"]] = r
    return tables


def peers_table(runs: list[Line]) -> str:
    """Milliseconds a tree in Markdown: a row each device and table, a column each system."""
    tables = by_table(runs)
    systems = [s for s in SYSTEMS if any(s in mine for mine in tables.values())]
    lines = []
    for name, mine in tables.items():
        share = ""
        if OURS in mine and HIST in mine:
            share = f"{mine[OURS]['ms_per_tree'] / mine[HIST]['ms_per_tree']:.0%}"
        lines.append([name, share, *(cell(mine.get(s)) for s in systems)])
    head = ["ms a tree", "rows x columns", "depth", "share of hist's time"]
    return markdown([*head, *(SYSTEMS[s][0] for s in systems)], lines)


def rounds_table(runs: list[Line]) -> str:
    """Early and late trees, and what comes before the first, in Markdown; "" without such runs."""
    tables = by_table([r for r in runs if "ms_per_tree_first" in r])
    head = ["ms a tree, early and late", "rows x columns", "depth"]
    for system in (OURS, HIST):
        head += [f"{SYSTEMS[system][0]}: first 20", "last 20", "rounds", "set-up, s"]
    lines = []
    for name, mine in tables.items():
        line = [name]
        for r in map(mine.get, (OURS, HIST)):
            if r is None:
                line += [""] * 4
            else:
                line += [text_of(r["ms_per_tree_first"]), text_of(r["ms_per_tree"])]
                line += [str(r["iterations"]), f"{r['set_up_s']:.2f}"]
        lines.append(line)
    return markdown(head, lines) if lines else ""


def growth_table(runs: list[Line]) -> str:
    """What ten times the rows make of the time, in Markdown: a row each device and system."""
    times: dict[tuple[str, str], dict[int, float]] = {}
    for r in runs:
        if (series_of(r) or [""])[0] == "rows":
            times.setdefault((r["device"], r["system"]), {})[r["rows"]] = r["ms_per_tree"]
    devices = {device for device, _ in times}
    ends = sorted({n for mine in times.values() for n in mine if n // 10 in mine})
    if not ends:
        return ""
    lines = []
    for (device, system), mine in sorted(times.items(), key=lambda t: list(SYSTEMS).index(t[0][1])):
        name = SYSTEMS[system][0] + (f", {device}" if len(devices) > 1 else "")
        factors = [
            f"x {mine[n] / mine[n // 10]:.1f}" if n in mine and n // 10 in mine else ""
            for n in ends
        ]
        lines.append([name, *factors])
    head = ["ten times the rows, x 8, depth 6", *(f"{n // 10:,} to {n:,}" for n in ends)]
    return markdown(head, lines)


def draw_all(results: Path) -> list[Path]:
    """Every picture for which there are results."""
    made = []
    runs = read_runs(results)
    builds = [
        r
        for r in read(results.glob("builder-*.jsonl"))
        if r["bench"] == "levels" and r.get("strategy") in (None, "auto", "sort")
    ]
    # A chosen strategy may have no such levels: where sort was asked for, that counts.
    builds.sort(key=lambda r: r.get("strategy") == "sort")
    builds = latest(builds, "device", "shape", "rows", "max_depth", "interleaved_levels")
    scale = read(results.glob("scale-*.jsonl"))
    # Machines with more GPUs have more cores: one picture of all.
    scale = [r | {"device": r["device"].split(",")[0]} for r in scale]
    scale = latest(scale, "device", "shape", "system", "gpus", "mode")
    for draw, lines in (
        (draw_peers, plain(runs)),
        (draw_growth, [r for r in runs if series_of(r) is not None]),
        (draw_levels, builds),
        (draw_accuracy, read(results.glob("accuracy.jsonl"))),
        (draw_scale, scale),
    ):
        devices = dict.fromkeys(r["device"] for r in lines)
        for device in devices:
            name = draw.__name__.removeprefix("draw_")
            slug = "-" + "".join(c if c.isalnum() else "-" for c in device.lower())
            file = results / f"{name}{slug if len(devices) > 1 else ''}.png"
            made.append(draw([r for r in lines if r["device"] == device], device, file))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=Path(__file__).resolve().parent / "results")
    parser.add_argument("--table", action="store_true", help="print README's tables too")
    options = parser.parse_args()
    made = draw_all(options.results)
    if options.table:
        runs = read_runs(options.results)
        tables = [peers_table(plain(runs)), rounds_table(plain(runs)), growth_table(runs)]
        if others := [r for r in runs if is_other(r)]:
            tables.append(peers_table(others))
        accuracy = read(options.results.glob("accuracy.jsonl"))
        tables += [accuracy_summary(accuracy), accuracy_table(accuracy)] if accuracy else []
        print("\n\n".join(filter(None, tables)), end="\n\n")
    print("\n".join(map(str, made)) if made else "There is nothing to draw.")
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main())
