# Copyright 2026, the gpu_exact contributors
"""Write the tables of the guides from benchmarks/results, between markers.

    python benchmarks/tables.py --write     # after new results
    python benchmarks/tables.py --check     # ends with 1 where a table is not that of the results

A marker names the table: `<!-- table: speed -->`, and `<!-- end of table -->` ends it. Of two runs
of one system on one table the last line counts; of XGBoost's exact on the CPU all do, and the
tables show the fastest and the slowest. Of the two ways to load a table for `hist` the one with
the faster trees is shown.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
GUIDES = ("README.md", "plugin/guide/*.md", "src/README.md", "benchmarks/*.md")
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)

OURS, HIST, HIST_FINE, EXACT = (
    "gpu_exact_cuda",
    "xgb_hist_gpu_256",
    "xgb_hist_gpu_4096",
    "xgb_exact_cpu",
)
BY_DMATRIX = "_dmatrix"  # ends the name of `hist` from a DMatrix, not a QuantileDMatrix
LABELS = {  # of the systems in tables
    OURS: "this plugin",
    HIST: "`hist`, 256 bins",
    HIST_FINE: "`hist`, 4,096 bins",
    EXACT: "XGBoost exact, CPU",
}
HEADLINE = {  # shapes of the first table: what they imitate
    "higgs": "HIGGS",
    "bosch": "Bosch",
    "yltr": "Yahoo LTR",
    "news20": "news20",
    "epsilon": "epsilon",
}
BINS = {  # systems of accuracy.py
    "xgb_hist_cpu_64": "64 bins",
    "xgb_hist_cpu_256": "256 bins",
    "xgb_hist_cpu_4096": "4,096 bins",
}
CONFIDENCE = 0.95

Line = dict[str, Any]


def read(pattern: str, results: Path = RESULTS) -> list[Line]:
    files = sorted(results.glob(pattern))
    return [json.loads(text) for file in files for text in file.read_text().splitlines()]


def latest(lines: Iterable[Line], *keys: str) -> list[Line]:
    """The last line of each combination of the keys' values."""
    return list({tuple(line[k] for k in keys): line for line in lines}.values())


class Row(NamedTuple):
    """A table that was trained on, with the runs of each system."""

    name: str
    size: str
    depth: str
    runs: dict[str, list[Line]]

    def ms(self, system: str) -> str:
        """Milliseconds a tree; from the fastest to the slowest of several runs."""
        times = [run["ms"] for run in self.runs.get(system, [])]
        ends = {min(times): None, max(times): None} if times else {}
        return " to ".join(map(text_of, ends))

    def share(self) -> str:
        """Time of the plugin as a part of that of hist."""
        if OURS not in self.runs or HIST not in self.runs:
            return ""
        return f"{self.runs[OURS][0]['ms'] / self.runs[HIST][0]['ms']:.2f}"


def rows_of(lines: list[Line]) -> list[Row]:
    """By shape, in the order of the file; strategies that were asked for do not count."""
    lines = [line for line in lines if "strategy" not in line]
    single = [line for line in lines if line["system"] != EXACT]
    chosen = [line for line in lines if line["system"] == EXACT]
    # The faster way to load comes last, under the name of both.
    single = latest(single, "system", "shape", "rows", "max_depth")
    single = [r | {"system": r["system"].removesuffix(BY_DMATRIX)} for r in single]
    single.sort(key=lambda r: -r["ms"])
    chosen += latest(single, "system", "shape", "rows", "max_depth")
    rows: dict[tuple, Row] = {}
    for r in lines:
        size = f"{r['rows']:,} x {r['columns']:,}"
        row = Row(r["shape"], size, str(r["max_depth"]), {})
        rows.setdefault((r["shape"], r["rows"], r["max_depth"]), row)
    for r in chosen:
        rows[r["shape"], r["rows"], r["max_depth"]].runs.setdefault(r["system"], []).append(r)
    return list(rows.values())


def text_of(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    """A table; every row has as many cells as the head."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def origin(rows: Iterable[Row], systems: Iterable[str] = LABELS) -> str:
    """Which runs a table is of."""
    commits: dict[str, dict[str, None]] = {}  # of each system, in the order of the file
    devices: dict[str, None] = {}
    for system in systems:
        for run in (run for row in rows for run in row.runs.get(system, [])):
            build = f", build {run['build']}" if system == OURS else ""
            commits.setdefault(LABELS[system], {})[f"{run['commit']} ({run['date']}{build})"] = None
            devices[run["device"]] = None
    told = [f"{label}: commit {', '.join(some)}" for label, some in commits.items()]
    return wrapped(f"Device: {'; '.join(devices)}. Runs of {'; '.join(told)}.")


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False)


def plain(lines: list[Line]) -> list[Row]:
    return [r for r in rows_of(lines) if not r.name.startswith(("growth-", "other-"))]


def headline(lines: list[Line]) -> str:
    """The five rows of the first page."""
    systems = (OURS, HIST, EXACT)
    by_name = {row.name: row for row in plain(lines)}
    rows = [by_name[name] for name in HEADLINE if name in by_name]
    cells = []
    for r in rows:
        ours, *hist = (run["peak_mib"] if run else None for run in by_load(lines, r.name))
        peaks = [
            f"{peak:,}" if peak else "" for peak in (ours, min(filter(None, hist), default=None))
        ]
        cells.append(
            [HEADLINE[r.name], r.size, r.depth, *(r.ms(s) or "not timed" for s in systems), *peaks]
        )
    head = ["ms a tree, shape of", "rows x columns", "depth", *(LABELS[s] for s in systems)]
    head += ["MiB, plugin", "MiB, `hist`"]
    return f"{markdown(head, cells)}\n{origin(rows, systems)}\n"


def slower(lines: list[Line]) -> str:
    """On which shapes hist is ahead, as a sentence."""
    rows = [r for r in rows_of(lines) if not r.name.startswith("growth-") and r.share()]
    ahead = [float(r.share()) for r in rows if float(r.share()) <= 1]
    behind = [
        f"`{r.name.removeprefix('other-')}` {r.share()}" for r in rows if float(r.share()) > 1
    ]
    spread = f"{min(ahead):.2f} to {max(ahead):.2f}"
    return (
        wrapped(
            f"Of {len(rows)} shapes, {len(ahead)} took {spread} of the time that `hist` with 256 bins took. "
            f"The plugin was slower on {len(behind)}: {', '.join(behind)} times its time."
        )
        + "\n"
    )


def times(rows: list[Row], systems: tuple[str, ...]) -> str:
    systems = tuple(s for s in systems if any(s in r.runs for r in rows))
    head = ["ms a tree", "rows x columns", "depth", *(LABELS[s] for s in systems)]
    head.insert(5, "plugin / `hist`")
    cells = [[r.name, r.size, r.depth, *(r.ms(s) for s in systems)] for r in rows]
    for cell, row in zip(cells, rows, strict=True):
        cell.insert(5, row.share())
    return f"{markdown(head, cells)}\n{origin(rows, systems)}\n"


def speed(lines: list[Line]) -> str:
    return times(plain(lines), (OURS, HIST, HIST_FINE, EXACT))


def other(lines: list[Line]) -> str:
    rows = [r for r in rows_of(lines) if r.name.startswith("other-")]
    return times([r._replace(name=r.name.removeprefix("other-")) for r in rows], (OURS, HIST))


def growth(lines: list[Line]) -> str:
    """The plugin's time as a part of hist's, along each series."""
    series: dict[str, list[Row]] = {}
    for row in rows_of(lines):
        if row.name.startswith("growth-"):
            series.setdefault(row.name.split("-")[1], []).append(row)
    rows = [r for some in series.values() for r in some]
    cells = []
    for name, some in series.items():
        steps = sorted(
            (r.name.split("-")[2] for r in some), key=lambda step: (step == "all", len(step), step)
        )
        share = {r.name.split("-")[2]: r.share() for r in some}
        cells.append([name, ", ".join(f"{step}: {share[step]}" for step in steps)])
    return f"{markdown(['what grows', 'plugin / `hist` of 256 bins'], cells)}\n{origin(rows, (OURS, HIST))}\n"


def by_load(lines: list[Line], shape: str) -> list[Line | None]:
    """The runs of the plugin, of hist from a QuantileDMatrix, and of hist from a DMatrix."""
    found = {r["system"]: r for r in lines if r["shape"] == shape and "strategy" not in r}
    return [found.get(system) for system in (OURS, HIST, HIST + BY_DMATRIX)]


def rounds(lines: list[Line]) -> str:
    """Early and late trees, and what comes before the first."""
    rows = [row for row in plain(lines) if OURS in row.runs and HIST in row.runs]
    cells = []
    for row in rows:
        cell = [row.name]
        for run in (row.runs[OURS][0], row.runs[HIST][0]):
            cell += [text_of(run["ms_first"]), text_of(run["ms"]), f"{run['set_up_s']:.2f}"]
        ours, quantile, _ = by_load(lines, row.name)
        cells.append([*cell, *(f"{run['load_s']:.1f}" for run in (ours, quantile))])
    head = [
        "",
        "plugin: first 20, ms",
        "last 20, ms",
        "set-up, s",
        "`hist`: first 20, ms",
        "last 20, ms",
    ]
    head += ["set-up, s", "`DMatrix`, s", "`QuantileDMatrix`, s"]
    return f"{markdown(head, cells)}\n{origin(rows, (OURS, HIST))}\n"


def memory(lines: list[Line]) -> str:
    """Device memory of the headline's tables."""
    rows = [row for row in plain(lines) if row.name in HEADLINE]
    cells = [
        [row.name, row.size, *(f"{run['peak_mib']:,}" for run in by_load(lines, row.name))]
        for row in rows
    ]
    head = [
        "peak MiB",
        "rows x columns",
        "this plugin",
        "`hist`, `QuantileDMatrix`",
        "`hist`, `DMatrix`",
    ]
    return f"{markdown(head, cells)}\n{origin(rows, (OURS, HIST))}\n"


def scale(lines: list[Line]) -> str:
    """Several GPUs: milliseconds a tree, and how many times as fast as one."""
    found = {(r["shape"], r["system"], r["gpus"], r["mode"]): r for r in lines}
    shapes = {r["shape"]: r for r in lines}
    cells, used = [], []
    for shape, about in shapes.items():
        one = found.get((shape, "gpu_exact", 1, "devices"))
        if one is None:
            continue
        cell = [f"{shape}, {about['rows']:,} x {about['columns']:,}, depth {about['max_depth']}"]
        cell.append(text_of(one["ms"]))
        used.append(one)
        for gpus in (2, 4):
            for mode in ("devices", "processes"):
                run = found.get((shape, "gpu_exact", gpus, mode))
                cell.append(
                    "" if run is None else f"{text_of(run['ms'])} ({one['ms'] / run['ms']:.2f})"
                )
                used += [run] if run else []
        hist = [found.get((shape, HIST, gpus, "processes")) for gpus in (1, 2, 4)]
        cells.append([*cell, ", ".join(text_of(run["ms"]) if run else "not run" for run in hist)])
    head = ["ms a tree (times as fast)", "1 GPU", "2 GPUs, `devices`", "2 processes"]
    head += ["4 GPUs, `devices`", "4 processes", "`hist`: 1, 2, 4 processes"]
    if not all(run["identical"] for run in used):
        raise SystemExit(
            "error: A run on several GPUs grew other trees than one GPU: no table of it."
        )
    runs = sorted({(r["commit"], r["build"], r["date"], r["device"]) for r in used})
    told = "; ".join(f"commit {c} (build {b}, {date}), {device}" for c, b, date, device in runs)
    told = wrapped(f"Run: {told}. Every model equals that of one GPU.")
    return f"{markdown(head, cells)}\n{told}\n"


class Difference(NamedTuple):
    """How much more than exact bins lose on rows held out, in % of what exact loses there."""

    percent: tuple[float, ...]  # of each split

    @property
    def mean(self) -> float:
        return statistics.fmean(self.percent)

    @property
    def is_noise(self) -> bool:
        """Whether splits differ so much that the mean tells nothing: a paired t-test."""
        from scipy import stats

        n = len(self.percent)
        if n < 2:
            return True  # nothing tells how much splits differ
        bound = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))
        return abs(self.mean) <= statistics.stdev(self.percent) / n**0.5 * bound

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
        for system in BINS:
            pairs = [(losses[table, system, s], losses[table, EXACT, s]) for s in seeds]
            percent = tuple(100 * (own / exact - 1) for own, exact in pairs)
            found.setdefault(table, {})[system] = Difference(percent)
    fewest = next(iter(BINS))
    return dict(sorted(found.items(), key=lambda item: -item[1][fewest].mean))


def study(lines: list[Line]) -> str:
    """Which run the tables of accuracy are of."""
    runs = {(r["xgboost"], r["commit"], r["date"]): None for r in lines}
    told = ", ".join(f"XGBoost {v} (commit {c}, {date})" for v, c, date in runs)
    return wrapped(f"Device: CPU. Run of {told}.")


def accuracy(lines: list[Line]) -> str:
    """A row each table: what exact loses, and what bins lose more."""
    facts = {r["table"]: r for r in lines}
    rows = []
    for table, by_system in differences(lines).items():
        r = facts[table]
        exact = [x["loss_test"] for x in lines if (x["table"], x["system"]) == (table, EXACT)]
        size = [f"{r['rows']:,} x {r['columns']:,}", f"{r['most_values']:,}", r["metric"]]
        rows.append([table, *size, f"{statistics.fmean(exact):.4g}", *map(str, by_system.values())])
    head = ["table", "rows x columns", "most values a column", "loss", "exact", *BINS.values()]
    return f"{markdown(head, rows)}\n{study(lines)}\n"


def bins(lines: list[Line]) -> str:
    """On how many tables bins lose, a row each number of bins."""
    found = differences(lines)
    rows = []
    for system, label in BINS.items():
        clear = [d.mean for d in (by[system] for by in found.values()) if not d.is_noise]
        worse, better = [m for m in clear if m > 0], [m for m in clear if m < 0]
        worst = f" (up to {max(worse):.2g}% more)" if worse else ""
        rows.append([label, f"{len(worse)}{worst}", str(len(better)), str(len(found) - len(clear))])
    head = [f"of {len(found)} tables", "loses more than exact", "loses less", "noise, or the same"]
    return f"{markdown(head, rows)}\n{study(lines)}\n"


TABLES: dict[str, tuple[Callable[[list[Line]], str], str]] = {
    "headline": (headline, "train-*.jsonl"),
    "slower": (slower, "train-*.jsonl"),
    "speed": (speed, "train-*.jsonl"),
    "other": (other, "train-*.jsonl"),
    "growth": (growth, "train-*.jsonl"),
    "rounds": (rounds, "train-*.jsonl"),
    "memory": (memory, "train-*.jsonl"),
    "scale": (scale, "scale-*.jsonl"),
    "accuracy": (accuracy, "accuracy.jsonl"),
    "bins": (bins, "accuracy.jsonl"),
}


def filled(text: str) -> str:
    """A guide with the tables that its markers name."""

    def table(found: re.Match[str]) -> str:
        make, pattern = TABLES[found[2]]
        return f"{found[1]}{make(read(pattern))}{found[4]}"

    return MARKED.sub(table, text)


def guides() -> list[Path]:
    return [file for pattern in GUIDES for file in sorted(ROOT.glob(pattern))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="the tables into the guides")
    what.add_argument("--check", action="store_true", help="whether the guides have them")
    options = parser.parse_args()
    stale = {
        file: text for file in guides() if (text := filled(file.read_text())) != file.read_text()
    }
    for file, text in stale.items():
        if options.write:
            file.write_text(text)
        print(
            f"{file.relative_to(ROOT)}: {'written' if options.write else 'its tables are not those of the results'}"
        )
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
