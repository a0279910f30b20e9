# Copyright 2026, the gpu_exact contributors
"""Time trees on several GPUs of one machine: one JSON line a run.

    python benchmarks/scale.py --shapes higgs,epsilon --gpus 1,2

`devices` is one process with `gpu_exact_devices`, `processes` one process a GPU by XGBoost's
communicator, each with its part of the rows. A model is compared with that of one GPU, tree by tree.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import measure
import numpy as np
import train
from arguments import above_zero, folder, words
from cases import Case, Table
from systems import Laps, XGBoost

import device

SHAPES = ["higgs", "yltr", "epsilon", "criteo", "tall"]
MODES = ("devices", "processes")
EXACT, HIST = "gpu_exact", "xgb_hist_gpu_256"


def planned(gpus: list[int], modes: list[str], systems: list[str]) -> list[dict[str, Any]]:
    """The runs of a shape: one GPU comes first, as the judge of the others.

    One worker of a communicator shows what a group costs that shares nothing.
    """
    runs = []
    for system in systems:
        of_system = [m for m in modes if system == EXACT or m != "devices"]
        alone = {*of_system[:1], *(["processes"] if system == EXACT else [])}  # modes of one GPU
        for n in sorted({1, *gpus}):
            chosen = [m for m in of_system if n > 1 or m in alone]
            runs += [{"system": system, "gpus": n, "mode": m} for m in chosen]
    return runs


def part_of(table: Table, rank: int, n_workers: int) -> Table:
    """A worker's rows; queries are not divided."""

    def begin(worker: int) -> int:
        row = table.X.shape[0] * worker // n_workers
        if table.qid is not None and 0 < row < len(table.qid):
            row = int(np.searchsorted(table.qid, table.qid[row]))
        return row

    rows = slice(begin(rank), begin(rank + 1))
    qid = None if table.qid is None else table.qid[rows]
    return Table(table.X[rows], table.y[rows], qid)


def trees_of(booster: Any) -> list[str]:
    """A hash of each."""
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
    return [hashlib.sha1(json.dumps(t).encode()).hexdigest()[:16] for t in model["trees"]]


class SteadyLaps(Laps):
    """The budget is that of the rounds that count: to set up several GPUs may take longer."""

    @property
    def spent_s(self) -> float:
        return sum(self.seconds[self.warm_up :])


class SharedLaps(SteadyLaps):
    """All workers train as many rounds as the first one asks for.

    It is asked before every tenth round: the others hear of it late, and begin that round late.
    """

    EVERY = 10

    def __init__(self, iterations: int, budget_s: float, warm_up: int) -> None:
        super().__init__(iterations, budget_s, warm_up)
        self._more = True

    @property
    def more(self) -> bool:
        from xgboost import collective

        if len(self.seconds) % self.EVERY == 0:
            self._more = bool(collective.broadcast(super().more, 0))
        return self._more


class Measured(XGBoost):
    """Tells the trees it has grown."""

    def trees(self) -> list[str]:
        return trees_of(self._booster)


def params_of(job: dict[str, Any]) -> dict[str, Any]:
    where = job["device"]
    if where == "cuda":
        where = f"cuda:{job['ordinals'][job['rank']]}"
    # One worker's mean is not that of all.
    params: dict[str, Any] = {"device": where, "base_score": 0.5}
    if job["system"] == HIST:
        return params | {"tree_method": "hist", "max_bin": 256}
    params |= {"tree_method": "exact", "gpu_exact_fallback": "error"}
    if job["mode"] == "devices" and job["gpus"] > 1:
        params["gpu_exact_devices"] = ",".join(map(str, job["ordinals"][: job["gpus"]]))
    return params


@contextlib.contextmanager
def communicator(job: dict[str, Any]) -> Iterator[type[Laps]]:
    if not job["communicator"]:
        yield SteadyLaps
        return
    from xgboost.collective import CommunicatorContext

    with CommunicatorContext(**job["communicator"], dmlc_task_id=str(job["rank"])):
        yield SharedLaps


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One worker's part of a run, in this process."""
    case = Case(**job["case"])
    exact = job["system"] == EXACT
    system = Measured(
        params_of(job),
        plugin=exact,
        needs_cuda=job["device"] == "cuda",
        quantile=not exact,
    )
    if exact:
        measure.check_module(job["build"])
    table = cases.load(Path(job["folder"]))
    n_workers = job["gpus"] if job["communicator"] else 1
    with communicator(job) as make_laps:
        laps = make_laps(job["iterations"], job["budget_s"], warm_up=2)
        system.load(part_of(table, job["rank"], n_workers), case, job["threads"] // n_workers)
        system.train(laps, lambda: None)
    per_tree = 1e3 / case.classes
    line = {
        "rows": table.X.shape[0],
        "columns": table.X.shape[1],
        "max_depth": case.max_depth,
        "rounds": len(laps.seconds),
        "ms": measure.short(per_tree * float(np.median(laps.last))),
        "ms_first": measure.short(per_tree * float(np.median(laps.first))),
        "set_up_s": measure.short(laps.set_up_s),
    }
    if exact:
        run = sys.modules["xgboost_gpu_exact"].last_run()
        line |= {"peak_mib": run.peak_bytes >> 20, "planned_mib": run.planned_bytes >> 20}
    return {"trees": system.trees(), "line": line}


def run_apart(job: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """What the first worker answers, each in a process of its own; or `failed`, by any of them."""
    with contextlib.ExitStack() as stack:
        job = job | {"communicator": None}
        n_workers = 1
        if job["mode"] == "processes":
            from xgboost.tracker import RabitTracker

            n_workers = job["gpus"]
            tracker = RabitTracker(n_workers, "127.0.0.1", sortby="task")
            tracker.start()
            stack.callback(tracker.free)
            job["communicator"] = tracker.worker_args()
        workers = []
        for rank in range(n_workers):
            command = [sys.executable, __file__, "--work", json.dumps(job | {"rank": rank})]
            worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(worker.kill)
            workers.append(worker)
        deadline = time.monotonic() + timeout_s
        answers = []
        for worker in workers:
            try:
                out, _ = worker.communicate(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return {"failed": f"it took more than {timeout_s:g} s; --timeout allows more"}
            lines = out.strip().splitlines()
            ended = {"failed": f"exit {worker.returncode}"}
            answers.append(json.loads(lines[-1]) if worker.returncode == 0 and lines else ended)
    return next((answer for answer in answers if "failed" in answer), answers[0])


def same_trees(ours: list[str], theirs: list[str]) -> bool:
    """Of the rounds that both have."""
    n = min(len(ours), len(theirs))
    return n > 0 and ours[:n] == theirs[:n]


def run_shape(case: Case, options: argparse.Namespace, common: dict[str, Any]) -> int:
    """All runs of a shape. Gives the number that failed."""
    begin = time.perf_counter()
    table = case.make()
    where = options.tables or cases.room_for(cases.table_bytes(table))
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="gpu-exact-", dir=where) as folder:
        cases.save(table, Path(folder))
        del table
        train.say(f"{case.name}: made in {time.perf_counter() - begin:.1f} s")
        alone: dict[str, list[str]] = {}
        for run in planned(options.gpus, options.modes, options.systems):
            job = common | run | {"case": case._asdict(), "folder": folder}
            begin = time.perf_counter()
            answer = run_apart(job, options.timeout)
            what = f"{case.name}: {run['system']}, {run['gpus']} GPUs, {run['mode']}"
            if "failed" in answer:
                n_failed += 1
                train.say(f"{what}: FAILED: {answer['failed']}")
                continue
            if run["gpus"] == 1:
                alone.setdefault(run["system"], answer["trees"])
            judge = alone.get(run["system"])  # None: that run has failed
            line = {"shape": case.name} | run | answer["line"]
            line["identical"] = None if judge is None else same_trees(answer["trees"], judge)
            line |= {"context": options.device, "device": options.device_name}
            line |= train.origin(common["build"])
            train.append(line, options.out)
            train.say(
                f"{what}: {line['ms']:.2f} ms a tree, identical {line['identical']}, "
                f"{time.perf_counter() - begin:.1f} s in all"
            )
    return n_failed


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    def counts(text: str) -> list[int]:
        return [above_zero(int)(word) for word in words(text)]

    def ordinals(text: str) -> list[int]:
        return [int(word) for word in words(text)]

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--shapes", type=words, default=SHAPES, help=f"by comma (default: {','.join(SHAPES)})")
    add("--gpus", type=counts, default=[1, 2], help="by comma (default 1,2)")
    add("--ordinals", type=ordinals, help="of the GPUs, in the order of use (default 0,1,...)")
    add("--modes", type=words, default=list(MODES), help=f"of {', '.join(MODES)} (default: both)")
    add("--systems", type=words, default=[EXACT, HIST], help=f"default: {EXACT},{HIST}")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="of gradients and predictions")
    add(
        "--scale",
        type=above_zero(float),
        default=1.0,
        help="rows as a part of each shape's own (default 1)",
    )
    add("--iterations", type=above_zero(int), default=60, help="rounds at most (default 60)")
    budget = "of the rounds that count (default 1.5)"
    add("--budget", type=float, default=1.5, metavar="SECONDS", help=budget)
    add(
        "--timeout",
        type=above_zero(float),
        default=120.0,
        metavar="SECONDS",
        help="a run (default 120)",
    )
    cores = device.cpu_cores()
    add("--threads", type=above_zero(int), default=cores, help="of all workers; default: cores")
    add("--tables", type=folder, metavar="FOLDER", help="for tables (default: memory, else /tmp)")
    add("--out", type=Path, metavar="FILE", help="default: benchmarks/results/scale-<GPU>.jsonl")
    options = parser.parse_args(arguments)
    options.ordinals = options.ordinals or list(range(max(options.gpus)))
    if len(options.ordinals) < max(options.gpus):
        parser.error(f"--ordinals has {len(options.ordinals)} of {max(options.gpus)} GPUs")
    for given, known in ((options.modes, MODES), (options.systems, (EXACT, HIST))):
        for word in given:
            if word not in known:
                parser.error(f"there is no {word}; there are {', '.join(known)}")
    try:
        options.cases = [
            case._replace(rows=max(1, int(options.scale * case.rows)))
            for case in cases.select(options.shapes)
        ]
        gpu = device.Gpu()
        name, n_gpus = gpu.name(), gpu.visible()
        if not 0 <= min(options.ordinals) <= max(options.ordinals) < n_gpus:
            # XGBoost would take another one instead.
            parser.error(f"of the GPUs {options.ordinals} {n_gpus} are there, numbered from 0")
    except ValueError as error:
        parser.error(str(error))
    except device.NoGpu:
        name = "no GPU"
    options.device_name = f"{name}, {options.threads} CPU cores"
    if options.out is None and options.scale == 1.0 and options.device == "cuda":
        options.out = train.results_file({"device": options.device_name}, "scale")
    return options


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        try:
            job = json.loads(sys.argv[2])
            answer = work(job)
        except Exception as error:
            reason = (str(error).strip() or "no message").splitlines()[0]
            answer = {"failed": f"{type(error).__name__}: {reason}"}
        print(json.dumps(answer))
        return 0
    options = parse()
    common = {
        "device": options.device,
        "ordinals": options.ordinals,
        "threads": options.threads,
        "iterations": options.iterations,
        "budget_s": options.budget,
        "build": train.source_hash(),
    }
    n_failed = sum(run_shape(case, options, common) for case in options.cases)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
