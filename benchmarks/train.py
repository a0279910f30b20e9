# Copyright 2026, the gpu_exact contributors
"""Time exact trees against XGBoost's hist: one JSON line a run, each run in a process of its own.

    python benchmarks/train.py --headline            # the table of the main README
    python benchmarks/train.py --headline --quick    # the same of a tenth of the rows: two minutes
    python benchmarks/train.py --shapes higgs,bosch --systems gpu_exact_cuda,xgb_hist_gpu_256

A line is written if the model's metric on the training rows is right: see metrics.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cases
import measure
import metrics
import tables
from arguments import above_zero, folder, words
from cases import Case
from synthetic import SHAPES
from systems import EXACT, JUDGE, STRATEGIES, SYSTEMS

import device

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from proof import source_hash  # noqa: E402

JUDGE_ROWS = 50_000_000  # beyond, XGBoost's own exact takes many minutes
ENDING_S = 30.0  # that a run has for its end, once it has told its answer
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
        self._begin = time.perf_counter()
        self.lines: list[dict[str, Any]] = []
        self.skipped, self.failed = 0, 0

    def run_all(self, chosen: list[Case]) -> None:
        previous, folder = None, None
        for case in chosen:
            if folder is None or not case.same_table(previous):
                if folder is not None:
                    folder.cleanup()
                folder = self._make_table(case)
            for system in self._options.systems:
                self._run(system, case, folder.name)
            previous = case
        folder.cleanup()

    def _make_table(self, case: Case) -> tempfile.TemporaryDirectory:
        begin = time.perf_counter()
        table = case.make()
        n_bytes = cases.table_bytes(table)
        where = self._options.tables or cases.room_for(n_bytes)
        folder = tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=where)
        cases.save(table, Path(folder.name))
        seconds = time.perf_counter() - begin
        say(f"{case.name}: {n_bytes / 1e9:.2f} GB made in {seconds:.1f} s, in {where}")
        return folder

    def _run(self, system: str, case: Case, folder: str) -> None:
        what = f"{self._progress()} {case.name}: {system}"
        if system == JUDGE and case.rows > JUDGE_ROWS:
            self.skipped += 1
            return say(f"{what}: skipped: it would take many minutes on {case.rows:,} rows")
        job = {
            "system": system,
            "strategy": self._options.strategy,
            "case": case._asdict(),
            "folder": folder,
            "threads": self._options.threads,
            "iterations": self._options.iterations,
            "budget_s": self._options.budget,
            "build": self._build,
            "origin": origin(self._build),
        }
        begin = time.perf_counter()
        answer = run_apart(job, self._options.timeout)
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
        return say(
            f"{what}: {line['ms']:.2f} ms a tree in the end, {time.perf_counter() - begin:.1f} s in all"
        )

    def _progress(self) -> str:
        n_runs = len(self._options.cases) * len(self._options.systems)
        n_begun = len(self.lines) + self.skipped + self.failed + 1
        return f"[{n_begun}/{n_runs}, {time.perf_counter() - self._begin:.0f} s]"

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


def run_apart(job: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """measure.py in a process of its own; `skipped` or `failed` hold a reason instead.

    Processes are forked from one that has imported XGBoost, which takes a second, and has not used
    CUDA.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["measure", "xgboost"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measure.send_answer, args=(job, sender))
    process.start()
    sender.close()  # the run's own is left, which ends with it
    too_late = {"failed": f"it took more than {timeout_s:g} s; --timeout allows more"}
    try:
        answer = receiver.recv() if receiver.poll(timeout_s) else too_late
    except EOFError:
        answer = None
    if answer is not too_late:
        process.join(ENDING_S)
    process.kill()  # what still runs
    process.join()
    return answer or {"failed": f"exit {process.exitcode}"}


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


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--headline",
        action="store_true",
        help="the shapes and systems of the main README's table, which is printed",
    )
    add("--quick", action="store_true", help="a tenth of the rows, fewer rounds")
    shapes = "a shape, a series (growth-rows, ...; growth: all; other) or one case of it"
    add(
        "--shapes", type=words, help=f"by comma: {shapes} (default: all but growth, other and huge)"
    )
    add("--systems", type=words, help=f"by comma: {', '.join(SYSTEMS)} (default: all)")
    add("--strategy", choices=STRATEGIES, default="auto", help="of the plugin (default auto)")
    add("--rows", type=above_zero(int), help="instead of each shape's own")
    add("--max-depth", type=above_zero(int), help="instead of each shape's own")
    add("--iterations", type=above_zero(int), help="rounds at most (default 100)")
    budget = "of training a run, after which no further round begins (default 10)"
    add("--budget", type=float, metavar="SECONDS", help=budget)
    timeout = "a run, loading included (default 580)"
    add("--timeout", type=above_zero(float), default=580.0, metavar="SECONDS", help=timeout)
    add("--threads", type=above_zero(int), default=device.cpu_cores(), help="default: all cores")
    add("--tables", type=folder, metavar="FOLDER", help="for tables (default: memory, else /tmp)")
    out = "JSON lines are added to it (default: benchmarks/results/train-<GPU>.jsonl; of a headline none)"
    add("--out", type=Path, metavar="FILE", help=out)
    options = parser.parse_args(arguments)
    if options.headline and options.out is None:
        options.out = Path("/dev/null")
    all_shapes, all_systems = list(SHAPES), list(SYSTEMS)
    if options.headline:
        all_shapes, all_systems = list(tables.HEADLINE), [JUDGE, tables.OURS, tables.HIST]
        all_systems.append(tables.HIST + tables.BY_DMATRIX)
    options.shapes = options.shapes or all_shapes
    options.iterations = options.iterations or (QUICK["iterations"] if options.quick else 100)
    if options.budget is None:
        options.budget = QUICK["budget"] if options.quick else 10.0
    options.systems = options.systems or all_systems
    unknown = [name for name in options.systems if name not in SYSTEMS]
    if unknown:
        parser.error(f"there is no system {unknown[0]}; there are {', '.join(SYSTEMS)}")
    options.systems = [name for name in SYSTEMS if name in options.systems]
    try:
        options.cases = [change(case, options) for case in cases.select(options.shapes)]
    except ValueError as error:
        parser.error(str(error))
    return options


def change(case: Case, options: argparse.Namespace) -> Case:
    rows = options.rows or case.rows // (QUICK["part"] if options.quick else 1)
    return case._replace(rows=rows, max_depth=options.max_depth or case.max_depth)


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
