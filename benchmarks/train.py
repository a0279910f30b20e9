# Copyright 2026, the gpu_exact contributors
"""Time exact trees against their peers: one JSON line a run, each run in a process of its own.

    python benchmarks/train.py --shapes higgs,bosch --systems gpu_exact_cuda,xgb_hist_gpu_256

A line is written if the model's metric on the training rows is right: see metrics.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cases
import measure
import metrics
from arguments import above_zero, folder, words
from cases import Case
from synthetic import SHAPES
from systems import EXACT, JUDGE, PEERS, STRATEGIES, SYSTEMS

import device

ROOT = Path(__file__).resolve().parents[1]
JUDGE_ROWS = 50_000_000  # beyond, XGBoost's own exact takes many minutes
ENDING_S = 30.0  # that a run has for its end, once it has told its answer


def results_file(line: dict[str, Any]) -> Path | None:
    """Where a line goes unless it is said; a machine without a GPU leaves no results."""
    name = line["device"].rsplit(",", 1)[0]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return None if name == "no GPU" else ROOT / f"benchmarks/results/train-{slug}.jsonl"


def table_key(line: dict[str, Any]) -> tuple:
    """What two runs must have in common to reach the same metric."""
    return tuple(line[key] for key in ("shape", "rows", "columns", "entries", "max_depth"))


class Session:
    """The runs of one command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._judged: dict[tuple, float] = {}  # metric of the judge, by table_key
        self._source_hash = source_hash()
        self._begin = time.perf_counter()
        self.written, self.skipped, self.failed = 0, 0, 0

    def run_all(self, chosen: list[Case]) -> None:
        previous, folder = None, None
        for case in chosen:
            if folder is None or not case.same_table(previous):
                if folder is not None:
                    folder.cleanup()
                folder, entries = self._make_table(case)
            for system in self._options.systems:
                self._run(system, case, folder.name, entries)
            previous = case
        folder.cleanup()

    def _make_table(self, case: Case) -> tuple[tempfile.TemporaryDirectory, int]:
        begin = time.perf_counter()
        table = case.make()
        n_bytes = cases.table_bytes(table)
        where = self._options.tables or cases.room_for(n_bytes)
        folder = tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=where)
        cases.save(table, Path(folder.name))
        entries = cases.count_entries(table)
        seconds = time.perf_counter() - begin
        say(f"{case.name}: {n_bytes / 1e9:.2f} GB made in {seconds:.1f} s, in {where}")
        return folder, entries

    def _run(self, system: str, case: Case, folder: str, entries: int) -> None:
        what = f"{self._progress()} {case.name}: {system}"
        if system == JUDGE and case.rows > JUDGE_ROWS:
            self.skipped += 1
            return say(f"{what}: skipped: it would take many minutes on {case.rows:,} rows")
        job = {
            "system": system,
            "strategy": self._options.strategy,
            "case": case._asdict(),
            "folder": folder,
            "entries": entries,
            "threads": self._options.threads,
            "iterations": self._options.iterations,
            "budget_s": self._options.budget,
            "source_hash": self._source_hash,
        }
        begin = time.perf_counter()
        answer = run_apart(job, self._options.timeout)
        if system in PEERS and "failed" in answer:
            answer = {"skipped": answer["failed"]}
        if "skipped" in answer:
            self.skipped += 1
            return say(f"{what}: skipped: {answer['skipped']}")
        problem = answer.get("failed") or self._objection(answer)
        if problem:
            self.failed += 1
            return say(f"{what}: FAILED: {problem}")
        self._write(answer["line"])
        return say(
            f"{what}: {answer['line']['ms_per_tree']:.2f} ms a tree in the end, "
            f"{time.perf_counter() - begin:.1f} s in all"
        )

    def _progress(self) -> str:
        n_runs = len(self._options.cases) * len(self._options.systems)
        n_begun = self.written + self.skipped + self.failed + 1
        return f"[{n_begun}/{n_runs}, {time.perf_counter() - self._begin:.0f} s]"

    def _objection(self, answer: dict[str, Any]) -> str | None:
        line = answer["line"]
        exact = self._exact_value(line) if line["system"] in EXACT else None
        value = line["metric_value"]
        problem = metrics.objection(line["metric"], value, answer["untrained"], exact)
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
            self._judged |= {
                table_key(e): e["metric_value"] for e in earlier if e["system"] == JUDGE
            }
        return self._judged.get(table_key(line))

    def _write(self, line: dict[str, Any]) -> None:
        self.written += 1
        text = json.dumps(line)
        print(text, flush=True)
        out = self._options.out or results_file(line)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a") as file:
                file.write(text + "\n")


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


def source_hash() -> str:
    """As in the GPU report of the tests."""
    spec = importlib.util.spec_from_file_location("gpu_report", ROOT / "tests/gpu_report.py")
    gpu_report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_report)
    return gpu_report.source_hash(ROOT)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add(
        "--shapes",
        type=words,
        default=list(SHAPES),
        help="by comma: a shape, a series (growth-rows, ...; growth: all; other) or one case of it "
        "(default: all but growth and other)",
    )
    add("--systems", type=words, default=list(SYSTEMS), help=f"by comma: {', '.join(SYSTEMS)}")
    add("--strategy", choices=STRATEGIES, default="auto", help="of the plugin (default auto)")
    add("--rows", type=above_zero(int), help="instead of each shape's own")
    add("--max-depth", type=above_zero(int), help="instead of each shape's own")
    add("--iterations", type=above_zero(int), default=100, help="rounds at most (default 100)")
    add(
        "--budget",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="of training a run, after which no further round begins (default 10)",
    )
    add(
        "--timeout",
        type=above_zero(float),
        default=300.0,
        metavar="SECONDS",
        help="a run, loading included (default 300)",
    )
    cores = device.cpu_cores()
    add("--threads", type=above_zero(int), default=cores, help="default: all cores")
    add("--tables", type=folder, metavar="FOLDER", help="for tables (default: memory, else /tmp)")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="JSON lines are added to it (default: benchmarks/results/train-<GPU>.jsonl)",
    )
    options = parser.parse_args(arguments)
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
    return case._replace(
        rows=options.rows or case.rows, max_depth=options.max_depth or case.max_depth
    )


def main() -> int:
    options = parse()
    session = Session(options)
    session.run_all(options.cases)
    say(f"{session.written} measured, {session.skipped} skipped, {session.failed} failed")
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
