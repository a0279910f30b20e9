# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
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
GUIDES = ("README.md", "plugin/**/*.md", "src/**/*.md", "benchmarks/*.md")
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end of table -->)", re.DOTALL)

OURS, HIST = "gpu_exact_cuda", "xgb_hist_gpu_256"
ON_CPU_CONTEXT = "gpu_exact_cpu_context"
HIST_FINE, EXACT = "xgb_hist_gpu_4096", "xgb_exact_cpu"
BY_DMATRIX = "_dmatrix"  # ends the name of `hist` from a DMatrix, not a QuantileDMatrix
LABELS = {  # of the systems in tables
    OURS: "this plugin",
    HIST: "`hist`, 256 bins",
    HIST_FINE: "`hist`, 4,096 bins",
    EXACT: "XGBoost exact, CPU",
    ON_CPU_CONTEXT: "this plugin without `device`",
}
HEADLINE = {  # shapes of the first table: what they imitate
    "higgs_6": "HIGGS",
    "higgs_8": "HIGGS",
    "higgs": "HIGGS",
    "bosch": "Bosch",
    "yltr": "Yahoo LTR",
    "news20": "news20",
    "epsilon": "epsilon",
}
GROWTH = ("rows", "missing", "depth", "features", "distinct")
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


class Row(NamedTuple):
    """A table that was trained on, with the runs of each system."""

    series: str  # empty, `other` or one of GROWTH
    name: str
    size: str
    depth: str
    runs: dict[str, list[Line]]

    def of(self, system: str) -> list[Line]:
        """The runs that are shown: of hist those of the faster way to load."""
        ways = [self.runs[s] for s in (system, system + BY_DMATRIX) if s in self.runs]
        return min(ways, key=lambda runs: runs[0]["ms"], default=[])

    def ms(self, system: str) -> str:
        """Milliseconds a tree; from the fastest to the slowest of several runs."""
        times = sorted(run["ms"] for run in self.of(system))
        return " to ".join(dict.fromkeys(map(text_of, times[:1] + times[-1:])))

    def share(self) -> float:
        """Time of the plugin as a part of that of hist."""
        return self.of(OURS)[0]["ms"] / self.of(HIST)[0]["ms"]

    def title(self) -> str:
        """As train.py's option takes it, but without `other-`."""
        return f"`growth-{self.series}-{self.name}`" if self.series in GROWTH else f"`{self.name}`"

    def step(self) -> float:
        """Of a series: the number that grows."""
        return float("inf") if self.name == "all" else float(self.name)

    def peak(self, *systems: str) -> str:
        """MiB, of the thriftiest."""
        mib = [run["peak_mib"] for s in systems for run in self.runs.get(s, [])]
        return f"{min(mib):,}" if mib else ""


def rows_of(lines: list[Line]) -> list[Row]:
    """In the order of the file; strategies that were asked for do not count."""
    rows: dict[tuple, Row] = {}
    for line in (line for line in lines if "strategy" not in line):
        found = re.fullmatch(r"(?:growth-|(?=other-))(\w+)-(\w+)", line["shape"])
        series, name = found.groups() if found else ("", line["shape"])
        size = f"{line['rows']:,} x {line['columns']:,}"
        row = Row(series, name, size, str(line["max_depth"]), {})
        row = rows.setdefault((line["shape"], line["rows"], line["max_depth"]), row)
        runs = row.runs.setdefault(line["system"], [])
        if line["system"] != EXACT:
            runs.clear()
        runs.append(line)
    return list(rows.values())


def compared(lines: list[Line], *series: str) -> list[Row]:
    """Tables of some series on which both the plugin and hist were timed."""
    rows = [row for row in rows_of(lines) if row.series in series]
    return [row for row in rows if row.of(OURS) and row.of(HIST)]


def all_compared(lines: list[Line]) -> list[Row]:
    return compared(lines, "", "other", *GROWTH)


def famous(lines: list[Line]) -> list[Row]:
    """The rows of the first page."""
    rows = [row for row in rows_of(lines) if row.name in HEADLINE]
    return sorted(rows, key=lambda row: list(HEADLINE).index(row.name))


def text_of(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def times_of(factor: float) -> str:
    return f"{factor:,.0f}x" if factor >= 10 else f"{factor:.2f}x"


def markdown(head: list[str], rows: Iterable[list[str]], told: str) -> str:
    """A table, whose rows have as many cells as the head, and what it is of."""
    text = "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))
    return f"{text}\n{wrapped(told)}\n"


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False)


def origin(rows: Iterable[Row], *systems: str) -> str:
    """Which runs a table is of: for `hist` those of both ways to load, between which it chooses."""
    commits: dict[str, dict[str, None]] = {}  # of each system, in the order of the file
    devices: dict[str, dict[str, None]] = {}  # and their hosts
    for system in systems:
        ways = [row.runs.get(way, []) for row in rows for way in (system, system + BY_DMATRIX)]
        for run in (run for runs in ways for run in runs):
            build = f", build {run['build']}" if system == OURS else ""
            commits.setdefault(LABELS[system], {})[f"{run['commit']} ({run['date']}{build})"] = None
            gpu, _, host = run["device"].partition(", ")
            devices.setdefault(gpu, {})[host] = None
    told = [f"{label}: commit {', '.join(some)}" for label, some in commits.items()]
    where = [f"{gpu}, {' or '.join(filter(None, hosts))}" for gpu, hosts in devices.items()]
    return f"Device: {'; '.join(where)}. Runs of {'; '.join(told)}."


def headline(lines: list[Line]) -> str:
    """Milliseconds, and in brackets divided by the plugin's; exact's fastest run."""
    rows = famous(lines)
    cells, cores = [], {}
    for row in rows:
        best = {s: min((run["ms"] for run in row.of(s)), default=0.0) for s in (OURS, HIST, EXACT)}
        cell = [HEADLINE[row.name], row.size, row.depth]
        for system, ms in best.items():
            least = ms == min(filter(None, best.values()))
            text = f"**{text_of(ms)}**" if least else text_of(ms)
            if system != OURS and best[OURS]:
                text += f" ({times_of(ms / best[OURS])})"
            cell.append(text if ms else "not timed")
        cells.append(cell)
        cores |= {run["device"].rsplit(", ", 1)[-1]: None for run in row.of(EXACT)}
    head = ["ms a tree; data shaped like", "rows x columns", "depth", "exact, this plugin"]
    head += ["GPU `hist`, 256 bins", f"XGBoost's exact, {' or '.join(cores)}"]
    devices = {run["device"].rsplit(", ", 1)[0]: None for row in rows for run in row.of(OURS)}
    where = f"On one {' or '.join(devices) or 'GPU'}, gradients included."
    return markdown(head, cells, f"{where} In brackets: that time divided by this plugin's.")


SLOWER = {  # what a table is like on which the plugin may be slower than hist
    "monotone": "where monotone constraints forbid nearly every split",
    "half": "with 3,000 columns and 50,000 rows, half of the values missing",
    "many_leaves_31": "with 10,000,000 rows and 31 leaves",
    "growth-depth-4": "with 1,000,000 rows and 28 columns at depth 4",
    "defaults": "with `subsample=0.8` and `colsample_bytree=0.8`",
    "higgs_6": "in HIGGS's shape at depth 6",
}


def summary(lines: list[Line]) -> str:
    """On how many tables the plugin is ahead of hist, how many times as fast, and where it is not."""
    shares = {row.title().strip("`"): row.share() for row in all_compared(lines)}
    ahead = [share for share in shares.values() if share < 1]
    slower = {name: share for name, share in shares.items() if share >= 1}
    behind = [
        f"{1 / share:.2f} times as fast {SLOWER.get(name, f'on `{name}`')}"
        for name, share in sorted(slower.items(), key=lambda item: -item[1])
    ]
    told = (
        f"On {len(ahead)} of {len(shares)} generated tables a tree grows faster than with GPU `hist`: "
        f"at the median {1 / statistics.median(shares.values()):.2g} times as fast, at most {1 / min(ahead):.2g} "
        f"times. On {len(behind)} it grows slower: {', '.join(behind)}."
    )
    return f"{wrapped(told)}\n"


def times(rows: list[Row], *systems: str) -> str:
    head = ["ms a tree", "rows x columns", "depth", *(LABELS[s] for s in systems)]
    head.insert(5, "plugin / `hist`")
    cells = []
    for row in rows:
        cell = [row.name, row.size, row.depth, *(row.ms(s) for s in systems)]
        cell.insert(5, f"{row.share():.2f}")
        cells.append(cell)
    return markdown(head, cells, origin(rows, *systems))


def speed(lines: list[Line]) -> str:
    return times(compared(lines, ""), OURS, HIST, HIST_FINE, EXACT)


def other(lines: list[Line]) -> str:
    return times(compared(lines, "other"), OURS, HIST)


def growth(lines: list[Line]) -> str:
    """The plugin's time as a part of hist's, along each series."""
    cells = []
    for series in GROWTH:
        rows = sorted(compared(lines, series), key=Row.step)
        cells.append([series, ", ".join(f"{row.name}: {row.share():.2f}" for row in rows)])
    told = origin(compared(lines, *GROWTH), OURS, HIST)
    return markdown(["what grows", "plugin / `hist` of 256 bins"], cells, told)


def rounds(lines: list[Line]) -> str:
    """Early and late trees, and what comes before the first."""
    rows = compared(lines, "")
    cells = []
    for row in rows:
        cell = [row.name]
        for run in (row.of(OURS)[0], row.of(HIST)[0]):
            cell += [text_of(run["ms_first"]), text_of(run["ms"]), f"{run['set_up_s']:.2f}"]
        cells.append([*cell, *(f"{row.runs[s][0]['load_s']:.1f}" for s in (OURS, HIST))])
    head = ["", "plugin: first 20, ms", "last 20, ms", "set-up, s"]
    head += ["`hist`: first 20, ms", *head[2:], "`DMatrix`, s", "`QuantileDMatrix`, s"]
    return markdown(head, cells, origin(rows, OURS, HIST))


def context(lines: list[Line]) -> str:
    """What the plugin takes where XGBoost computes gradients on the CPU."""
    rows = [row for row in famous(lines) if row.of(ON_CPU_CONTEXT)]
    cells = [
        [HEADLINE[row.name], row.size, row.depth, row.ms(ON_CPU_CONTEXT), row.ms(OURS)]
        for row in rows
    ]
    head = ["ms a tree; data shaped like", "rows x columns", "depth"]
    head += ["plugin, `device` not set", 'plugin, `device="cuda"`']
    return markdown(head, cells, origin(rows, ON_CPU_CONTEXT, OURS))


def memory(lines: list[Line]) -> str:
    rows = famous(lines)
    systems = (OURS, HIST, HIST + BY_DMATRIX)
    cells = [[row.name, row.size, *(row.peak(system) for system in systems)] for row in rows]
    head = ["peak MiB", "rows x columns", "this plugin"]
    head += ["`hist`, `QuantileDMatrix`", "`hist`, `DMatrix`"]
    return markdown(head, cells, origin(rows, OURS, HIST))


def scale(lines: list[Line]) -> str:
    """Several GPUs: milliseconds a tree, and how many times as fast as one."""
    found = {(r["shape"], r["system"], r["gpus"], r["mode"]): r for r in lines}
    shown = [r for r in lines if (r["system"], r["gpus"], r["mode"]) == ("gpu_exact", 1, "devices")]
    cells, used = [], []
    for one in shown:
        shape = one["shape"]
        cell = [f"{shape}, {one['rows']:,} x {one['columns']:,}, depth {one['max_depth']}"]
        cell.append(text_of(one["ms"]))
        several = [(shape, "gpu_exact", n, m) for n in (2, 4) for m in ("devices", "processes")]
        runs = [found.get(key) for key in several]
        cell += [f"{text_of(r['ms'])} ({one['ms'] / r['ms']:.2f})" if r else "not run" for r in runs]
        used += [one, *filter(None, runs)]
        hist = [found.get((shape, HIST, gpus, "processes")) for gpus in (1, 2, 4)]
        cells.append([*cell, ", ".join(text_of(run["ms"]) if run else "not run" for run in hist)])
    head = ["ms a tree (times as fast)", "1 GPU", "2 GPUs, `devices`", "2 processes"]
    head += ["4 GPUs, `devices`", "4 processes", "`hist`: 1, 2, 4 processes"]
    if not all(run["identical"] for run in used):
        raise SystemExit("error: Several GPUs grew other trees than one: no table of that.")
    runs = sorted({(r["commit"], r["build"], r["date"], r["device"]) for r in used})
    told = "; ".join(f"commit {c} (build {b}, {date}), {device}" for c, b, date, device in runs)
    return markdown(head, cells, f"Run: {told}. Every model equals that of one GPU.")


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
    runs = dict.fromkeys((r["xgboost"], r["commit"], r["date"]) for r in lines)
    told = ", ".join(f"XGBoost {v} (commit {c}, {date})" for v, c, date in runs)
    return f"Device: CPU. Run of {told}."


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
    return markdown(head, rows, study(lines))


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
    return markdown(head, rows, study(lines))


TABLES: dict[str, tuple[Callable[[list[Line]], str], str]] = {
    "headline": (headline, "train-*.jsonl"),
    "summary": (summary, "train-*.jsonl"),
    "speed": (speed, "train-*.jsonl"),
    "other": (other, "train-*.jsonl"),
    "growth": (growth, "train-*.jsonl"),
    "rounds": (rounds, "train-*.jsonl"),
    "context": (context, "train-*.jsonl"),
    "memory": (memory, "train-*.jsonl"),
    "scale": (scale, "scale-*.jsonl"),
    "accuracy": (accuracy, "accuracy.jsonl"),
    "bins": (bins, "accuracy.jsonl"),
    "made": (accuracy, "accuracy-made.jsonl"),
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
    stale = {f: text for f in guides() if (text := filled(f.read_text())) != f.read_text()}
    for file, text in stale.items():
        if options.write:
            file.write_text(text)
        told = "written" if options.write else "its tables are not those of the results"
        print(f"{file.relative_to(ROOT)}: {told}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
