# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Time exact trees against XGBoost's hist: one JSON line a run, each run in a process of its own.

    python benchmarks/train.py --headline            # the table of the main README
    python benchmarks/train.py --headline --quick    # the same of a tenth of the rows: two minutes
    python benchmarks/train.py --shapes higgs,bosch --systems gpu_exact_cuda,xgb_hist_gpu_256

A line is written if the model's metric on the training rows is right: see metrics.py.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cases
import measure
import metrics
import tables
from cases import Case
from systems import EXACT, JUDGE, SYSTEMS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from proof import source_hash  # noqa: E402

JUDGE_ROWS = 50_000_000  # beyond, XGBoost's own exact takes many minutes
FULL = {"part": 1, "iterations": 100, "budget": 10.0}
QUICK = {"part": 10, "iterations": 30, "budget": 2.0}


def results_file(line: dict[str, Any], kind: str = "train") -> Path | None:
    """Where a line goes unless it is said; a machine without a GPU leaves no results."""
    name = line["device"].rsplit(",", 1)[0]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return None if name == "no GPU" else ROOT / f"benchmarks/results/{kind}-{slug}.jsonl"


def table_key(line: dict[str, Any]) -> tuple:
    """What two runs must have in common to reach the same metric."""
    return tuple(line[key] for key in ("shape", "rows", "columns", "max_depth"))


def append(line: dict[str, Any], out: Path | None) -> None:
    """Print a line, and add it to a file."""
    text = json.dumps(line, separators=(",", ":"))
    print(text, flush=True)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a") as file:
            file.write(text + "\n")


class Session:
    """The runs of one command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._judged: dict[tuple, float] = {}  # metric of the judge, by table_key
        self._build = source_hash()
        self.lines: list[dict[str, Any]] = []
        self.skipped, self.failed = 0, 0

    def run_all(self, chosen: list[Case]) -> None:
        for _, same in itertools.groupby(chosen, key=lambda case: case.table):
            some = list(same)
            with cases.made(some[0]) as folder:
                for case, system in itertools.product(some, self._options.systems):
                    self._run(system, case, folder)

    def _run(self, system: str, case: Case, folder: Path) -> None:
        what = f"{case.name}: {system}"
        if system == JUDGE and (reason := not_judged(case)):
            self.skipped += 1
            return say(f"{what}: skipped: {reason}")
        job = {"system": system, "case": case._asdict(), "folder": str(folder)}
        job |= {"iterations": self._options.iterations, "budget_s": self._options.budget}
        job |= {"build": self._build, "origin": origin(self._build)}
        begin = time.perf_counter()
        answer = measure.run_apart(measure.measure, [job])[0]
        if "skipped" in answer:
            self.skipped += 1
            return say(f"{what}: skipped: {answer['skipped']}")
        problem = answer.get("failed") or self._objection(answer)
        if problem:
            self.failed += 1
            return say(f"{what}: FAILED: {problem}")
        line = answer["line"]
        self.lines.append(line)
        append(line, self._options.out or results_file(line))
        seconds = time.perf_counter() - begin
        return say(f"{what}: {line['ms']:.2f} ms a tree in the end, {seconds:.1f} s in all")

    def _objection(self, answer: dict[str, Any]) -> str | None:
        line = answer["line"]
        exact = self._exact_value(line) if line["system"] in EXACT else None
        value = line["value"]
        problem = metrics.objection(answer["metric"], value, answer["untrained"], exact)
        if problem is None and line["system"] == JUDGE:
            self._judged[table_key(line)] = value
        if problem is None and line["system"] in EXACT and exact is None:
            say(f"{line['shape']}: {line['system']}: no {JUDGE} of this table to compare with")
        return problem

    def _exact_value(self, line: dict[str, Any]) -> float | None:
        """The judge's metric, of this command or of an earlier one."""
        out = self._options.out or results_file(line)
        if table_key(line) not in self._judged and out is not None and out.exists():
            earlier = (json.loads(text) for text in out.read_text().splitlines())
            self._judged |= {table_key(e): e["value"] for e in earlier if e["system"] == JUDGE}
        return self._judged.get(table_key(line))


def not_judged(case: Case) -> str | None:
    """Why XGBoost's own exact does not run on a table; None where it does."""
    if not case.stock:
        return "XGBoost's own exact does not grow such trees"
    if case.rows > JUDGE_ROWS:
        return f"it would take many minutes on {case.rows:,} rows"
    return None


def origin(build: str | None = None) -> dict[str, str]:
    """What a result is of: commit, with a + where files have changed since; build; day."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"commit": commit + changed} | ({"build": build[:8]} if build else {}) | {"date": day}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def above_zero(text: str) -> int:
    """For argparse: what cannot be run is said before anything is made."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number above 0")
    return int(text)


def words(text: str) -> list[str]:
    return text.split(",")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    headline = "the shapes and systems of the main README's table, which is printed"
    add("--headline", action="store_true", help=headline)
    add("--quick", action="store_true", help="a tenth of the rows, fewer rounds")
    shapes = "a shape, a series (growth-rows, ...; growth: all; other) or one case of it"
    shapes = f"by comma: {shapes} (default: all but growth, other and huge)"
    add("--shapes", type=words, help=shapes)
    add("--systems", type=words, help=f"by comma: {', '.join(SYSTEMS)} (default: all)")
    add("--rows", type=above_zero, help="instead of each shape's own")
    add("--max-depth", type=above_zero, help="instead of each shape's own")
    add("--iterations", type=above_zero, help="rounds at most (default 100)")
    budget = "of the rounds that count, after which no further one begins (default 10)"
    add("--budget", type=float, metavar="SECONDS", help=budget)
    out = "JSON lines are added to it (default: benchmarks/results/train-<GPU>.jsonl; of a headline none)"
    add("--out", type=Path, metavar="FILE", help=out)
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    groups = ("growth-", "other-", "huge")
    shapes = [case.name for case in cases.all_cases() if not case.name.startswith(groups)]
    systems = list(SYSTEMS)
    if options.headline:
        options.out = options.out or Path("/dev/null")
        shapes = list(tables.HEADLINE)
        systems = [JUDGE, tables.OURS, tables.HIST, tables.HIST + tables.BY_DMATRIX]
    options.iterations = options.iterations or size["iterations"]
    options.budget = size["budget"] if options.budget is None else options.budget
    unknown = set(options.systems or ()) - {*SYSTEMS}
    if unknown:
        parser.error(f"there is no system {unknown.pop()}; there are {', '.join(SYSTEMS)}")
    options.systems = [name for name in SYSTEMS if name in (options.systems or systems)]
    try:
        options.cases = [
            case._replace(
                rows=options.rows or case.rows // size["part"],
                max_depth=options.max_depth or case.max_depth,
            )
            for case in cases.select(options.shapes or shapes)
        ]
    except ValueError as error:
        parser.error(str(error))
    return options


def main() -> int:
    options = parse()
    session = Session(options)
    session.run_all(options.cases)
    if options.headline and session.lines:
        print(f"\n{tables.headline(session.lines)}", end="")
    say(f"{len(session.lines)} measured, {session.skipped} skipped, {session.failed} failed")
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
